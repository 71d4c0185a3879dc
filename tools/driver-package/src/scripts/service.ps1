# Installs the package of a driver without a device (a primitive driver) and starts its service; with
# -Remove, stops the service and removes the package.
param(
    [Parameter(Mandatory)] [string] $Inf,
    [Parameter(Mandatory)] [string] $Service,
    [switch] $Remove
)
$ErrorActionPreference = 'Stop'
Add-Type -TypeDefinition @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;

public static class PrimitiveDriver
{
    [DllImport("newdev.dll", CharSet = CharSet.Unicode, SetLastError = true)]
    static extern bool DiInstallDriverW(IntPtr window, string inf, int flags, out bool restart);
    [DllImport("newdev.dll", CharSet = CharSet.Unicode, SetLastError = true)]
    static extern bool DiUninstallDriverW(IntPtr window, string inf, int flags, out bool restart);

    // Makes the functions fail where they would ask: nobody may be there to answer.
    [DllImport("setupapi.dll")]
    static extern bool SetupSetNonInteractiveMode(bool nonInteractive);

    // SetupAPI's own codes have no text, but the HRESULTs that stand for them have (HRESULT_FROM_SETUPAPI).
    static Win32Exception Failure(int error, string what)
    {
        uint code = (uint)error;
        if ((code & 0xE0000000) == 0xE0000000) { code = 0x800F0000 | (code & 0xFFFF); }
        string text = new Win32Exception(unchecked((int)code)).Message;
        return new Win32Exception(error, what + " failed: " + text + " (error 0x" + error.ToString("X8")
            + "). Has prepare.cmd been run? The end of %SystemRoot%\\INF\\setupapi.dev.log has the reason.");
    }

    public static bool Install(string inf)
    {
        const int NoMoreItems = 259;
        bool restart;
        SetupSetNonInteractiveMode(true);
        if (DiInstallDriverW(IntPtr.Zero, inf, 0, out restart)) { return restart; }
        int error = Marshal.GetLastWin32Error();
        if (error != NoMoreItems) { throw Failure(error, "DiInstallDriver"); }
        Console.WriteLine("The same or a better version of the driver is already installed.");
        return restart;
    }

    public static bool Uninstall(string inf)
    {
        bool restart;
        SetupSetNonInteractiveMode(true);
        if (DiUninstallDriverW(IntPtr.Zero, inf, 0, out restart)) { return restart; }
        throw Failure(Marshal.GetLastWin32Error(), "DiUninstallDriver");
    }
}
'@
$notInstalled, $notRunning, $running = 1060, 1062, 1056
$restart = $false
$path = (Resolve-Path $Inf).Path
if ($Remove) {
    sc.exe stop $Service
    if (@(0, $notInstalled, $notRunning) -notcontains $LASTEXITCODE) {
        Write-Output 'The service cannot be stopped, so the driver remains loaded until Windows restarts.'
    }
    try {
        $restart = [PrimitiveDriver]::Uninstall($path)
    } catch {
        $failure = $_.Exception.Message
        # An earlier build of the package may be installed: Windows finds it only by its own INF file.
        $name = [IO.Path]::GetFileName($Inf)
        $packages = Get-WindowsDriver -Online |
            Where-Object { [IO.Path]::GetFileName($_.OriginalFileName) -eq $name }
        if (-not $packages) { throw }
        Write-Output "$failure; removing the installed $name by pnputil."
        foreach ($package in $packages) {
            pnputil /delete-driver $package.Driver /uninstall /force
            # ERROR_SUCCESS_REBOOT_INITIATED and ERROR_SUCCESS_REBOOT_REQUIRED are successes, as is
            # ERROR_NO_MORE_ITEMS, which says that no device used the driver.
            if (1641, 3010 -contains $LASTEXITCODE) { $restart = $true }
            elseif (0, 259 -notcontains $LASTEXITCODE) { exit 1 }
        }
    }
} else {
    $restart = [PrimitiveDriver]::Install($path)
    sc.exe start $Service
    if (@(0, $running) -notcontains $LASTEXITCODE) { exit 1 }
}
if ($restart) { Write-Output 'Restart Windows ("shutdown /r /t 0").' }
