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

    static bool Check(bool succeeded, string what, bool restart)
    {
        if (succeeded) { return restart; }
        int error = Marshal.GetLastWin32Error();
        throw new Win32Exception(error, what + " failed: " + new Win32Exception(error).Message
            + " (error 0x" + error.ToString("X8") + ")");
    }

    public static bool Install(string inf)
    {
        bool restart;
        bool succeeded = DiInstallDriverW(IntPtr.Zero, inf, 0, out restart);
        return Check(succeeded, "DiInstallDriver", restart);
    }

    public static bool Uninstall(string inf)
    {
        bool restart;
        bool succeeded = DiUninstallDriverW(IntPtr.Zero, inf, 0, out restart);
        return Check(succeeded, "DiUninstallDriver", restart);
    }
}
'@
$notInstalled, $notRunning, $running = 1060, 1062, 1056
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
            if ($LASTEXITCODE) { exit 1 }
        }
    }
} else {
    $restart = [PrimitiveDriver]::Install($path)
    sc.exe start $Service
    if (@(0, $running) -notcontains $LASTEXITCODE) { exit 1 }
}
if ($restart) { Write-Output 'Restart Windows ("shutdown /r /t 0").' }
