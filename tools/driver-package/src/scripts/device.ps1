# Creates a device with a hardware ID, unless there is one, and installs the driver for it.
param(
    [Parameter(Mandatory)] [string] $Inf,
    [Parameter(Mandatory)] [string] $HardwareId
)
$ErrorActionPreference = 'Stop'
Add-Type -TypeDefinition @'
using System;
using System.ComponentModel;
using System.Runtime.InteropServices;
using System.Text;

public static class DeviceMaker
{
    [StructLayout(LayoutKind.Sequential)]
    struct DeviceData { public int Size; public Guid Class; public int Instance; public IntPtr Reserved; }

    const int GenerateId = 1, HardwareIdProperty = 1, RegisterDevice = 0x19, RemoveDevice = 5;

    [DllImport("setupapi.dll", CharSet = CharSet.Unicode, SetLastError = true)]
    static extern bool SetupDiGetINFClassW(string inf, out Guid guid, StringBuilder name, int size, IntPtr needed);
    [DllImport("setupapi.dll", SetLastError = true)]
    static extern IntPtr SetupDiCreateDeviceInfoList(ref Guid guid, IntPtr window);
    [DllImport("setupapi.dll", CharSet = CharSet.Unicode, SetLastError = true)]
    static extern bool SetupDiCreateDeviceInfoW(IntPtr list, string name, ref Guid guid, string description,
        IntPtr window, int flags, ref DeviceData data);
    [DllImport("setupapi.dll", SetLastError = true)]
    static extern bool SetupDiSetDeviceRegistryPropertyW(IntPtr list, ref DeviceData data, int property,
        byte[] value, int size);
    [DllImport("setupapi.dll", SetLastError = true)]
    static extern bool SetupDiCallClassInstaller(int function, IntPtr list, ref DeviceData data);
    [DllImport("setupapi.dll")]
    static extern bool SetupDiDestroyDeviceInfoList(IntPtr list);
    [DllImport("newdev.dll", CharSet = CharSet.Unicode, SetLastError = true)]
    static extern bool UpdateDriverForPlugAndPlayDevicesW(IntPtr window, string id, string inf, int flags,
        out bool restart);

    static void Check(bool succeeded, string what)
    {
        if (succeeded) { return; }
        throw Failure(Marshal.GetLastWin32Error(), what);
    }

    // SetupAPI's own codes have no text, but the HRESULTs that stand for them have (HRESULT_FROM_SETUPAPI).
    static Win32Exception Failure(int error, string what)
    {
        uint code = (uint)error;
        if ((code & 0xE0000000) == 0xE0000000) { code = 0x800F0000 | (code & 0xFFFF); }
        string text = new Win32Exception(unchecked((int)code)).Message;
        return new Win32Exception(error, what + " failed: " + text + " (error 0x" + error.ToString("X8")
            + "). Has prepare.cmd been run? The end of %SystemRoot%\\INF\\setupapi.dev.log has the reason.");
    }

    public static bool Install(string inf, string id, bool create)
    {
        // Nobody may be there to answer a question: the installation fails instead, and says why.
        const int Force = 1, NonInteractive = 4;
        IntPtr list = IntPtr.Zero;
        DeviceData data = new DeviceData();
        try
        {
            if (create)
            {
                Guid guid;
                StringBuilder name = new StringBuilder(260);
                Check(SetupDiGetINFClassW(inf, out guid, name, name.Capacity, IntPtr.Zero), "SetupDiGetINFClass");
                list = SetupDiCreateDeviceInfoList(ref guid, IntPtr.Zero);
                if (list == new IntPtr(-1)) { list = IntPtr.Zero; Check(false, "SetupDiCreateDeviceInfoList"); }
                data.Size = Marshal.SizeOf(data);
                Check(SetupDiCreateDeviceInfoW(list, name.ToString(), ref guid, null, IntPtr.Zero, GenerateId,
                    ref data), "SetupDiCreateDeviceInfo");
                byte[] ids = Encoding.Unicode.GetBytes(id + "\0\0");
                Check(SetupDiSetDeviceRegistryPropertyW(list, ref data, HardwareIdProperty, ids, ids.Length),
                    "SetupDiSetDeviceRegistryProperty");
                Check(SetupDiCallClassInstaller(RegisterDevice, list, ref data), "SetupDiCallClassInstaller");
            }
            bool restart;
            bool updated = UpdateDriverForPlugAndPlayDevicesW(IntPtr.Zero, id, inf, Force | NonInteractive,
                out restart);
            if (!updated && create)
            {
                int error = Marshal.GetLastWin32Error();
                SetupDiCallClassInstaller(RemoveDevice, list, ref data);
                throw Failure(error, "UpdateDriverForPlugAndPlayDevices");
            }
            Check(updated, "UpdateDriverForPlugAndPlayDevices");
            return restart;
        }
        finally
        {
            if (list != IntPtr.Zero) { SetupDiDestroyDeviceInfoList(list); }
        }
    }
}
'@
$there = Get-PnpDevice -PresentOnly | Where-Object { @($_.HardwareID) -contains $HardwareId }
$restart = [DeviceMaker]::Install((Resolve-Path $Inf).Path, $HardwareId, -not $there)
Get-PnpDevice -PresentOnly | Where-Object { @($_.HardwareID) -contains $HardwareId } |
    Format-Table -Property "Status", "FriendlyName", "InstanceId"
if ($restart) { Write-Output 'Restart Windows ("shutdown /r /t 0").' }
