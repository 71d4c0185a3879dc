# Installs the driver packages one after another, and leaves the first one installed.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'install' $Kit $Out {
    param($Stage)
    $driver = $Stage.Plan.driver
    $setup = Join-Path $env:SystemRoot 'INF\setupapi.dev.log'
    $since = Get-Length $setup
    # Other packages of the same driver: the WDK's, and the one whose catalog has SHA-256.
    $others = @('package-wdk', 'package-catalog-2' | Where-Object { Test-Path -LiteralPath (Get-KitPath $Stage $_) })
    $accepted = @{}
    try {
        foreach ($name in $others + @('package')) {
            $folder = Get-KitPath $Stage $name
            Import-Certificates $Stage $folder
            foreach ($file in Get-ChildItem -LiteralPath $folder | Where-Object { '.sys', '.cat' -contains $_.Extension }) {
                $signature = Get-AuthenticodeSignature -LiteralPath $file.FullName
                Add-Check $Stage "signature of $name\$($file.Name)" 'Valid' $signature.Status
            }
            $installed = Install-Package $Stage "install-$name" $driver $folder
            $state = Get-DriverState $driver.service
            $accepted[$name] = @{ code = $installed.Code; state = $state; says = $installed.Text }
            Add-Check $Stage "driver of $name" 'Running' $state
            [void] (Invoke-Program $Stage "query-$name" 'sc.exe' "query $($driver.service)")
            if ($name -ne 'package') {
                [void] (Uninstall-Package $Stage "uninstall-$name" $driver $folder)
            }
        }
    } finally {
        Write-Json (Join-Path $Stage.Folder 'packages.json') $accepted
        Copy-LogSince $Stage $setup $since 'setupapi.dev.log'
        $log = Join-Path $Stage.Folder 'code-integrity.evtx'
        [void] (Invoke-Program $Stage 'code-integrity' 'wevtutil.exe' "epl Microsoft-Windows-CodeIntegrity/Operational `"$log`" /ow:true")
    }
    # Done after the last package, because uninstalling a package removes the settings.
    Enable-FrameworkVerifier $Stage $driver
    $devices = @(Get-Devices $driver.hardware_id)
    Add-Check $Stage 'number of devices' ([int] [bool] $driver.hardware_id) $devices.Count
    foreach ($device in $devices) { Add-Check $Stage "status of $($device.InstanceId)" 'OK' $device.Status }
    $client = Get-Client $Stage
    if ($client) { [void] (Invoke-Checked $Stage 'status' $client 'status') }
}
