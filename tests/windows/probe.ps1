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
        # The driver asks two questions in DriverEntry, where they might crash Windows: these are the
        # last ones. The client writes the file after each answer.
        $entry = 'activity-driver-entry', 'activity-kernel-driver-entry'
        $except = ($entry | ForEach-Object { "--except $_" }) -join ' '
        $asked = Invoke-Program $Stage 'questions' $client "questions --out answers.json --traces traces $except" 720
        Add-Check $Stage 'exit code of questions' 0 $asked.Code
        # The next start of the driver asks; it clears the value before it does.
        $key = "HKLM\SYSTEM\CurrentControlSet\Services\$($probe.service)\Parameters"
        [void] (Invoke-Checked $Stage 'ask-in-driver-entry' 'reg.exe' "add `"$key`" /v AskInDriverEntry /t REG_DWORD /d 1 /f")
        foreach ($device in Get-Devices $probe.hardware_id) {
            [void] (Invoke-Checked $Stage 'restart' 'pnputil.exe' "/restart-device `"$($device.InstanceId)`"" 120)
        }
        # The second file begins with the answers of the first, which stays as it is until the end.
        $with = ''
        $first = Join-Path $Stage.Folder 'answers.json'
        if (Test-Path -LiteralPath $first) { $with = '--with answers.json' }
        $last = Invoke-Program $Stage 'questions-entry' $client "questions --out entry.json $with --traces traces $($entry -join ' ')" 120
        Add-Check $Stage 'exit code of questions in DriverEntry' 0 $last.Code
        $second = Join-Path $Stage.Folder 'entry.json'
        if (Test-Path -LiteralPath $second) { Move-Item -LiteralPath $second -Destination $first -Force }
        # One line for each question that was not asked: "ID not asked: REASON".
        foreach ($line in "$($asked.Text)`n$($last.Text)" -split "`r?`n") {
            if ($line -match '^(\S+)\s+not asked: (.*)$') {
                Add-Check $Stage $Matches[1] 'asked' "not asked: $($Matches[2])"
            }
        }
    } finally {
        [void] (Uninstall-Package $Stage 'uninstall' $probe $folder)
    }
}
