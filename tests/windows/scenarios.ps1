# Runs the scenarios that the stand-in kernel passes on Linux.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'scenarios' $Kit $Out {
    param($Stage)
    $client = Get-Client $Stage
    if (-not $client) {
        Skip-Stage $Stage 'the kit has no client, which runs the scenarios'
        return
    }
    [void] (Invoke-Program $Stage 'status-before' $client 'status')
    $arguments = 'scenarios --json scenarios.json --junit scenarios.xml --traces traces'
    $ran = Invoke-Program $Stage 'scenarios' $client $arguments (Get-StageSeconds $Stage)
    [void] (Invoke-Program $Stage 'status-after' $client 'status')
    Add-Check $Stage 'exit code of scenarios' 0 $ran.Code
    # One line for each scenario: "pass NAME" or "FAIL NAME".
    foreach ($line in $ran.Text -split "`r?`n") {
        if ($line -match '^(pass|FAIL)\s+(\S+)') {
            Add-Check $Stage $Matches[2] 'pass' $Matches[1]
        }
    }
}
