# Installs the minimal driver of docs/instrument-your-driver.md from its package, traces it, and
# removes it, with the commands of the guide. A failure shows that Windows rejects the signature or
# the entry point, not that the sample driver is at fault. This script has not run on Windows yet.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Package,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $Kit 'stages\common.ps1')

Invoke-Stage 'minimal' $Kit $Out {
    param($Stage)
    $folder = Join-Path $Stage.Folder 'package'
    Expand-Archive -LiteralPath $Package -DestinationPath $folder -Force
    $inf = @(Get-ChildItem -LiteralPath $folder -Recurse -Filter 'etw_minimal_driver.inf')[0]
    $folder = $inf.DirectoryName
    $service = 'etw_minimal_driver'
    $arguments = "-Inf `"$($inf.FullName)`" -HardwareId `"Root\$service`""
    $script = '-NoProfile -ExecutionPolicy Bypass -File'
    $provider = '7f7a2fd1-1391-5401-f475-6c4e00ed0528'
    $trace = Join-Path $Stage.Folder 'minimal.etl'
    Import-Certificates $Stage $folder
    [void] (Invoke-Checked $Stage 'start' 'logman.exe' "create trace wdk-etw-minimal -ow -o `"$trace`" -p `"{$provider}`" 0xffffffff 5 -ets")
    try {
        [void] (Invoke-Checked $Stage 'install' 'powershell.exe' "$script `"$(Join-Path $folder 'device.ps1')`" $arguments" 120)
        Add-Check $Stage 'driver' 'Running' (Get-DriverState $service)
        [void] (Invoke-Program $Stage 'query' 'sc.exe' "query $service")
    } finally {
        [void] (Invoke-Program $Stage 'uninstall' 'powershell.exe' "$script `"$(Join-Path $folder 'uninstall.ps1')`" $arguments" 120)
        [void] (Invoke-Program $Stage 'stop' 'logman.exe' 'stop wdk-etw-minimal -ets')
    }
    Add-Check $Stage 'driver after its removal' 'not running' (Get-DriverState $service) ((Get-DriverState $service) -ne 'Running')
    $events = 0
    if (Test-Path -LiteralPath $trace) { $events = @(Get-TraceEvents $trace $provider).Count }
    Add-Check $Stage 'events' '1 or more' $events ($events -ge 1)
}
