# Removes the devices with hardware IDs, which are separated by commas, then the driver's package from
# the driver store.
param(
    [Parameter(Mandatory)] [string] $Inf,
    [Parameter(Mandatory)] [string] $HardwareId
)
$failed = $false
$ids = $HardwareId -split ','
$name = [IO.Path]::GetFileName($Inf)
foreach ($device in Get-PnpDevice) {
    if (@($device.HardwareID) | Where-Object { $ids -contains $_ }) {
        pnputil /remove-device $device.InstanceId
        if ($LASTEXITCODE) { $failed = $true }
    }
}
$packages = Get-WindowsDriver -Online |
    Where-Object { [IO.Path]::GetFileName($_.OriginalFileName) -eq $name }
foreach ($package in $packages) {
    pnputil /delete-driver $package.Driver /uninstall /force
    if ($LASTEXITCODE) { $failed = $true }
}
if (-not $packages) { Write-Output 'The driver is not installed.' }
if ($failed) { exit 1 }
