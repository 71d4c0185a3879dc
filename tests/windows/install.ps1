# Installs the driver packages one after another, and leaves the last one installed.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

# Installs a package, checks it, and uninstalls every package but the last one, `package`.
function Install-AndKeep($Stage, [string] $Name, $Driver, $Accepted) {
    $folder = Get-KitPath $Stage $Name
    Import-Certificates $Stage $folder
    foreach ($file in Get-ChildItem -LiteralPath $folder | Where-Object { '.sys', '.cat' -contains $_.Extension }) {
        $signature = Get-AuthenticodeSignature -LiteralPath $file.FullName
        Add-Check $Stage "signature of $Name\$($file.Name)" 'Valid' $signature.Status
    }
    $installed = Install-Package $Stage "install-$Name" $Driver $folder
    $state = Get-DriverState $Driver.service
    $Accepted[$Name] = @{ code = $installed.Code; state = $state; says = $installed.Text }
    Add-Check $Stage "driver of $Name" 'Running' $state
    [void] (Invoke-Program $Stage "query-$Name" 'sc.exe' "query $($Driver.service)")
    if ($Name -ne 'package') { [void] (Uninstall-Package $Stage "uninstall-$Name" $Driver $folder) }
}

Invoke-Stage 'install' $Kit $Out {
    param($Stage)
    $driver = $Stage.Plan.driver
    # Other packages of the same driver: the WDK's, and the one whose catalog has SHA-256.
    $others = @('package-wdk', 'package-catalog-2' | Where-Object { Test-Path -LiteralPath (Get-KitPath $Stage $_) })
    $accepted = @{}
    $isEvidence = $Stage.Evidence
    foreach ($name in $others + @('package')) {
        # Only the package that stays installed decides whether the stage fails on a hosted runner.
        $Stage.Evidence = $isEvidence -or ($name -ne 'package' -and [bool] (Get-Value $Stage.Plan 'evidence'))
        try {
            Install-AndKeep $Stage $name $driver $accepted
        } catch {
            if (-not $Stage.Evidence) { throw }
            Add-Check $Stage "$name is installed" 'no error' $_.Exception.Message $false
        } finally {
            # Written after each package, so that a crash at the next one leaves it.
            Write-Json (Join-Path $Stage.Folder 'packages.json') $accepted
            Save-WindowsLogs $Stage $name
        }
    }
    # Done after the last package, because uninstalling a package removes the settings.
    Enable-FrameworkVerifier $Stage $driver
    $devices = @(Get-Devices $driver.hardware_id)
    Add-Check $Stage 'number of devices' ([int] [bool] $driver.hardware_id) $devices.Count
    foreach ($device in $devices) { Add-Check $Stage "status of $($device.InstanceId)" 'OK' $device.Status }
    $client = Get-Client $Stage
    if ($client) { [void] (Invoke-Checked $Stage 'status' $client 'status') }
}
