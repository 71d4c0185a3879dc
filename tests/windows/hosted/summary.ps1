# Writes the table of the stages that ran, with the checks that failed and the recipes that were skipped, and copies the answers to
# OUT\answers, named by Windows' build and architecture. This script has not run on Windows yet.
param(
    [Parameter(Mandatory = $true)] [string] $Out,
    [Parameter(Mandatory = $true)] [string] $Summary
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$lines = @('| leg | stage | result | seconds | reason |', '|---|---|---|--:|---|')
$failed = @()
$notRun = @()
$machine = $null
foreach ($leg in Get-ChildItem -LiteralPath $Out | Where-Object { $_.PSIsContainer }) {
    $path = Join-Path $leg.FullName 'machine\machine.json'
    if (Test-Path -LiteralPath $path) { $machine = ConvertFrom-Json ([IO.File]::ReadAllText($path)) }
    $folders = @(Get-ChildItem -LiteralPath $leg.FullName | Where-Object { $_.PSIsContainer } | Sort-Object CreationTime)
    foreach ($folder in $folders) {
        $path = Join-Path $folder.FullName 'result.json'
        if (-not (Test-Path -LiteralPath $path)) {
            $lines += "| $($leg.Name) | $($folder.Name) | no result | | the stage was ended |"
            continue
        }
        $result = ConvertFrom-Json ([IO.File]::ReadAllText($path))
        $reason = "$($result.reason)" -replace '\|', '\|' -replace '\s+', ' '
        $lines += "| $($leg.Name) | $($result.stage) | $($result.status) | $($result.seconds) | $reason |"
        foreach ($check in $result.checks) {
            if (-not $check.passed) {
                $failed += "- $($leg.Name), $($result.stage), $($check.name): expected $($check.expected), got $($check.got)"
            }
        }
        $path = Join-Path $folder.FullName 'recipes.json'
        if (Test-Path -LiteralPath $path) {
            foreach ($recipe in (ConvertFrom-Json ([IO.File]::ReadAllText($path))).recipes) {
                if (-not $recipe.ran) { $notRun += "- $($leg.Name), $($result.stage), $($recipe.name): $($recipe.why)" }
            }
        }
    }
}
$title = '# Stages'
if ($machine) { $title = "# $($machine.caption), build $($machine.build).$($machine.revision)" }
$text = @($title, '') + $lines
if ($failed.Count -gt 0) { $text += @('', '## Checks that failed', '') + $failed }
if ($notRun.Count -gt 0) { $text += @('', '## Recipes that were skipped', '') + $notRun }
[IO.File]::AppendAllText($Summary, ($text -join "`n") + "`n", (New-Object Text.UTF8Encoding $false))

# The file is named like those in standin-kernel/answers, by build and architecture. Driver Verifier
# changes the system's behaviour, so only the answers of the leg without it count.
$answers = Join-Path $Out 'plain\probe\answers.json'
if (Test-Path -LiteralPath $answers) {
    $system = (ConvertFrom-Json ([IO.File]::ReadAllText($answers))).system
    $folder = Join-Path $Out 'answers'
    New-Item -ItemType Directory -Force -Path $folder | Out-Null
    $name = "$($system.build)-$($system.architecture).json"
    Copy-Item -LiteralPath $answers -Destination (Join-Path $folder $name) -Force
}
