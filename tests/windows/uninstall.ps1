# Removes the driver, and lists its remains.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'uninstall' $Kit $Out {
    param($Stage)
    $driver = $Stage.Plan.driver
    [void] (Uninstall-Package $Stage 'uninstall' $driver (Get-KitPath $Stage 'package'))
    Add-Check $Stage 'devices left' 0 @(Get-Devices $driver.hardware_id).Count
    $packages = @(Get-WindowsDriver -Online | Where-Object { [IO.Path]::GetFileName($_.OriginalFileName) -eq $driver.inf })
    Add-Check $Stage 'packages left in the driver store' 0 $packages.Count
    Add-Check $Stage 'driver' 'not running' (Get-DriverState $driver.service) ((Get-DriverState $driver.service) -ne 'Running')
    $left = @()
    $places = @("HKLM:\SYSTEM\CurrentControlSet\Services\$($driver.service)")
    $provider = Get-Provider $Stage
    if ($provider) {
        $places += "HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\WINEVT\Publishers\{$provider}"
        [void] (Invoke-Program $Stage 'provider' 'logman.exe' "query providers `"{$provider}`"")
    }
    foreach ($place in $places) {
        if (Test-Path -LiteralPath $place) { $left += $place }
    }
    Write-Json (Join-Path $Stage.Folder 'left.json') @{ registry = [object[]] $left }
    [void] (Invoke-Program $Stage 'sessions' 'logman.exe' 'query -ets')
}
