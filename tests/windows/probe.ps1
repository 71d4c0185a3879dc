# Installs the probe driver, which asks Windows what no document says.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'probe' $Kit $Out {
    param($Stage)
    $probe = Get-Value $Stage.Plan 'probe'
    if (-not $probe) {
        Skip-Stage $Stage 'the kit has no probe driver'
        return
    }
    $folder = Get-KitPath $Stage 'probe'
    Import-Certificates $Stage $folder
    [void] (Install-Package $Stage 'install' $probe $folder)
    Add-Check $Stage 'probe driver' 'Running' (Get-DriverState $probe.service)
    [void] (Uninstall-Package $Stage 'uninstall' $probe $folder)
}
