# Asks Windows what no document says, by a driver and the client. The answers are answers.json.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'probe' $Kit $Out {
    param($Stage)
    $probe = Get-Value $Stage.Plan 'probe'
    $client = Get-Client $Stage
    if (-not $probe -or -not $client) {
        Skip-Stage $Stage 'the kit has no driver that asks questions, or no client'
        return
    }
    $folder = Get-KitPath $Stage 'probe'
    Import-Certificates $Stage $folder
    try {
        [void] (Install-Package $Stage 'install' $probe $folder)
        Add-Check $Stage 'probe driver' 'Running' (Get-DriverState $probe.service)
        # The next start of the driver asks in DriverEntry, too; the driver clears the value before it
        # does.
        $key = "HKLM\SYSTEM\CurrentControlSet\Services\$($probe.service)\Parameters"
        [void] (Invoke-Checked $Stage 'ask-in-driver-entry' 'reg.exe' "add `"$key`" /v AskInDriverEntry /t REG_DWORD /d 1 /f")
        foreach ($device in Get-Devices $probe.hardware_id) {
            [void] (Invoke-Checked $Stage 'restart' 'pnputil.exe' "/restart-device `"$($device.InstanceId)`"")
        }
        # The client writes the file after each answer; the risky questions are the last ones.
        $asked = Invoke-Program $Stage 'questions' $client 'questions --out answers.json --traces traces' 900
        Add-Check $Stage 'exit code of questions' 0 $asked.Code
        # One line for each question that was not asked: "ID not asked: REASON".
        foreach ($line in $asked.Text -split "`r?`n") {
            if ($line -match '^(\S+)\s+not asked: (.*)$') {
                Add-Check $Stage $Matches[1] 'asked' "not asked: $($Matches[2])"
            }
        }
    } finally {
        [void] (Uninstall-Package $Stage 'uninstall' $probe $folder)
    }
}
