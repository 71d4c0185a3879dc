# Removes the driver's devices, then its package from the driver store.
$failed = $false
$ids = @(@HARDWARE_IDS@)
foreach ($device in Get-PnpDevice) {
    if (@($device.HardwareID) | Where-Object { $ids -contains $_ }) {
        pnputil /remove-device $device.InstanceId
        if ($LASTEXITCODE) { $failed = $true }
    }
}
$packages = Get-WindowsDriver -Online |
    Where-Object { [IO.Path]::GetFileName($_.OriginalFileName) -eq @INF_LITERAL@ }
foreach ($package in $packages) {
    pnputil /delete-driver $package.Driver /uninstall /force
    if ($LASTEXITCODE) { $failed = $true }
}
if (-not $packages) { Write-Output 'The driver is not installed.' }
if ($failed) { exit 1 }
