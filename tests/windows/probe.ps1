# Runs the probes of undocumented behaviour with a driver and the client. Writes answers.json.
#
# If Windows crashes at a probe, the stages probe-2 and so on run this script again: they begin with
# the previous stage's answers, and run the remaining probes. The agent names the stage in
# WDK_ETW_STAGE.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

$name = 'probe'
if ($env:WDK_ETW_STAGE) { $name = $env:WDK_ETW_STAGE }

# Returns the probes that earlier stages have tried, and the file with the most answers, or null if
# there is none. The client writes a file as NAME.new and renames it; a crash can occur before the
# new name is on disk.
function Get-Tried($Stage, [string] $Out) {
    $best = $null
    $tried = @{}
    foreach ($folder in 'probe', 'probe-2', 'probe-3', 'probe-4') {
        if ($folder -eq $Stage.Name) { break }
        foreach ($file in 'answers.json', 'answers.json.new', 'entry.json', 'entry.json.new') {
            $path = Join-Path $Out "$folder\$file"
            if (-not (Test-Path -LiteralPath $path)) { continue }
            # A crash can leave an incomplete file.
            try { $read = ConvertFrom-Json ([IO.File]::ReadAllText($path)) } catch { continue }
            $answers = Get-Value $read 'answers'
            if ($null -eq $answers) { continue }
            $ids = @($answers.PSObject.Properties | ForEach-Object { $_.Name })
            if (-not $best -or $ids.Count -ge $best.Count) { $best = @{ Path = $path; Count = $ids.Count } }
            foreach ($id in $ids) { $tried[$id] = $true }
        }
        # A probe has no entry if Windows crashed although the probe is not marked as risky.
        foreach ($log in 'probes.log', 'probes-entry.log') {
            $path = Join-Path $Out "$folder\$log"
            if (-not (Test-Path -LiteralPath $path)) { continue }
            foreach ($line in [IO.File]::ReadAllLines($path)) {
                if ($line -match '^([a-z0-9-]+)\s+asking') { $tried[$Matches[1]] = $true }
            }
        }
    }
    if (-not $best) { return $null }
    return @{ Path = $best.Path; Ids = @($tried.Keys) }
}

Invoke-Stage $name $Kit $Out {
    param($Stage)
    $probe = Get-Value $Stage.Plan 'probe'
    $client = Get-Client $Stage
    if (-not $probe -or -not $client) {
        Skip-Stage $Stage 'the kit has no driver of the probes, or no client'
        return
    }
    # The driver answers two probes in DriverEntry, where they might crash Windows, so they come
    # last.
    $entry = @('activity-driver-entry', 'activity-kernel-driver-entry')
    $listed = Invoke-Checked $Stage 'list' $client 'probes --list'
    $left = @($listed.Text -split "`r?`n" | Where-Object { $_ -match '^([a-z0-9-]+)\s' } | ForEach-Object { ($_ -split '\s+')[0] })
    $with = ''
    $answers = Join-Path $Stage.Folder 'answers.json'
    if ($Stage.Name -ne 'probe') {
        $tried = Get-Tried $Stage $Out
        if (-not $tried) {
            Skip-Stage $Stage 'the stage probe left no answers, so that nothing says which probe to leave out'
            return
        }
        $left = @($left | Where-Object { $tried.Ids -notcontains $_ })
        if ($left.Count -eq 0) {
            Skip-Stage $Stage 'every probe has been run'
            return
        }
        Copy-Item -LiteralPath $tried.Path -Destination $answers
        $with = '--with answers.json'
    }
    $now = @($left | Where-Object { $entry -notcontains $_ })
    $entry = @($entry | Where-Object { $left -contains $_ })
    $said = ''
    $folder = Get-KitPath $Stage 'probe'
    Import-Certificates $Stage $folder
    try {
        [void] (Install-Package $Stage 'install' $probe $folder)
        Add-Check $Stage 'probe driver' 'Running' (Get-DriverState $probe.service)
        Enable-FrameworkVerifier $Stage $probe
        # The client writes the file after each answer.
        if ($now.Count -gt 0) {
            $asked = Invoke-Program $Stage 'probes' $client "probes --out answers.json $with --traces traces $($now -join ' ')" ([int] ((Get-StageSeconds $Stage) * 0.8))
            Add-Check $Stage 'exit code of probes' 0 $asked.Code
            $said += "$($asked.Text)`n"
        }
        if ($entry.Count -gt 0) {
            # The driver runs the probes at its next start, after it has cleared the value.
            $key = "HKLM\SYSTEM\CurrentControlSet\Services\$($probe.service)\Parameters"
            [void] (Invoke-Checked $Stage 'ask-in-driver-entry' 'reg.exe' "add `"$key`" /v AskInDriverEntry /t REG_DWORD /d 1 /f")
            # If Windows crashes in DriverEntry, the next stage skips these.
            [IO.File]::WriteAllText((Join-Path $Stage.Folder 'probes-entry.log'), (($entry | ForEach-Object { "$_ asking`r`n" }) -join ''))
            Restart-Devices $Stage $probe
            # The second file begins with the answers of the first, which stays as it is until the end.
            $with = ''
            if (Test-Path -LiteralPath $answers) { $with = '--with answers.json' }
            $last = Invoke-Program $Stage 'probes-entry' $client "probes --out entry.json $with --traces traces $($entry -join ' ')" 120
            Add-Check $Stage 'exit code of probes in DriverEntry' 0 $last.Code
            $said += $last.Text
            $second = Join-Path $Stage.Folder 'entry.json'
            if (Test-Path -LiteralPath $second) { Move-Item -LiteralPath $second -Destination $answers -Force }
        }
        # One line for each probe that was not run: "ID not asked: REASON".
        foreach ($line in $said -split "`r?`n") {
            if ($line -match '^(\S+)\s+not asked: (.*)$') {
                Add-Check $Stage $Matches[1] 'asked' "not asked: $($Matches[2])"
            }
        }
        # All answers of the leg are in one folder.
        if ($Stage.Name -ne 'probe' -and (Test-Path -LiteralPath $answers)) {
            Copy-Item -LiteralPath $answers -Destination (Join-Path $Out 'probe\answers.json') -Force
        }
    } finally {
        [void] (Uninstall-Package $Stage 'uninstall' $probe $folder)
    }
}
