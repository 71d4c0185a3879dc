# Removes the devices with hardware IDs, which are separated by commas, then the driver's package from
# the driver store.
param(
    [Parameter(Mandatory)] [string] $Inf,
    [Parameter(Mandatory)] [string] $HardwareId
)
$failed = $false
$restart = $false

# Evaluates an exit code of pnputil: ERROR_SUCCESS_REBOOT_INITIATED and ERROR_SUCCESS_REBOOT_REQUIRED are
# successes, as is ERROR_NO_MORE_ITEMS, which says that no device used the driver.
function Test-Pnputil([int] $Code) {
    if (1641, 3010 -contains $Code) { $script:restart = $true }
    elseif (0, 259 -notcontains $Code) { $script:failed = $true }
}

$ids = $HardwareId -split ','
$name = [IO.Path]::GetFileName($Inf)
foreach ($device in Get-PnpDevice) {
    if (@($device.HardwareID) | Where-Object { $ids -contains $_ }) {
        pnputil /remove-device $device.InstanceId
        Test-Pnputil $LASTEXITCODE
    }
}
$packages = Get-WindowsDriver -Online |
    Where-Object { [IO.Path]::GetFileName($_.OriginalFileName) -eq $name }
foreach ($package in $packages) {
    pnputil /delete-driver $package.Driver /uninstall /force
    Test-Pnputil $LASTEXITCODE
}
if (-not $packages) { Write-Output 'The driver is not installed.' }
if ($restart) { Write-Output 'Restart Windows ("shutdown /r /t 0").' }
if ($failed) { exit 1 }
