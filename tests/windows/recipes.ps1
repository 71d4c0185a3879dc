# Runs the guides' recipes: starts a session with each tool, sends requests, and counts the events.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

# Runs a recipe and counts its events. Stores the outcome in RESULT.
function Invoke-Recipe($Stage, $Recipes, $Recipe, $Result) {
    $name = $Recipe.name
    $trace = $Recipe.trace
    if (-not [IO.Path]::IsPathRooted($trace)) { $trace = Join-Path $Stage.Folder $trace }
    if (Test-Path -LiteralPath $trace) { Remove-Item -LiteralPath $trace }
    $running = @()
    try {
        Invoke-Lines $Stage "$name-start" $Recipe.shell $Recipe.start
        # A session in paged memory (0x1000000) gets no events from drivers.
        $session = Get-EtwTraceSession -Name $Recipes.session -ErrorAction SilentlyContinue
        if ($session) {
            $Result.mode = '0x{0:x}' -f [uint32] $session.LogFileMode
            $paged = ([uint32] $session.LogFileMode -band 0x1000000) -ne 0
            Add-Check $Stage "$name`: buffers in paged memory" $false $paged
        }
        $running = @(Start-Lines $Stage "$name-during" (Get-Value $Recipe 'during'))
        # The group's session starts first.
        if ($running.Count -gt 0) { Start-Sleep -Seconds (3 * $Stage.Slowness) }
        $known = Invoke-Traffic $Stage $name $Recipes
        foreach ($line in $running) { Wait-Line $Stage $line }
        $running = @()
        Invoke-Lines $Stage "$name-stop" $Recipe.shell $Recipe.stop
    } finally {
        # A leftover session would block the later recipes, whose sessions have the same name.
        foreach ($line in $running) {
            [void] (Invoke-Program $Stage "$($line.Name)-kill" 'taskkill.exe' "/f /t /pid $($line.Process.Id)")
        }
        if (Get-EtwTraceSession -Name $Recipes.session -ErrorAction SilentlyContinue) {
            Add-Check $Stage "$name`: the session is stopped" $true $false
            [void] (Invoke-Program $Stage "$name-clean" 'logman.exe' "stop $($Recipes.session) -ets")
        }
        # The command fails if no session is recording, which is expected.
        if ($Recipe.needs -eq 'wpr') {
            [void] (Invoke-Program $Stage "$name-cancel" 'wpr.exe' '-cancel')
        }
    }
    Add-Check $Stage "$name`: trace" $true (Test-Path -LiteralPath $trace)
    if (-not (Test-Path -LiteralPath $trace)) { return }
    $kept = Join-Path $Stage.Folder "$name$([IO.Path]::GetExtension($trace))"
    Move-Item -LiteralPath $trace -Destination $kept -Force
    $provider = Get-Provider $Stage
    if (-not $provider) { return }
    if ($kept -like '*.jsonl') {
        $Result.events = @([IO.File]::ReadAllLines($kept) | Where-Object { $_.StartsWith('{') }).Count
    } else {
        $Result.events = @(Get-TraceEvents $kept $provider).Count
    }
    Add-EventCheck $Stage $Recipe $known $Result.events ([bool] (Get-Value $Recipe 'at_least'))
}

Invoke-Stage 'recipes' $Kit $Out {
    param($Stage)
    $recipes = Get-Recipes $Stage
    if (-not $recipes) { return }
    # The recipes of the client and of cargo-etw name them without their folder.
    $tracer = Get-Tracer $Stage
    if ($tracer) { $env:PATH = "$(Split-Path -Parent $tracer.Program);$env:PATH" }
    $results = New-Object Collections.ArrayList
    foreach ($recipe in $recipes.recipes) {
        $result = @{ name = $recipe.name; ran = $false; events = $null; mode = $null; why = $null }
        [void] $results.Add($result)
        if ($recipe.boots) {
            $result.why = 'needs a restart between its commands: the stages boot and booted run it'
            continue
        }
        if (-not (Get-Command $recipe.needs -ErrorAction SilentlyContinue)) {
            $result.why = "$($recipe.needs) is not on this machine"
            continue
        }
        $result.ran = $true
        # A failure does not affect the other recipes.
        try {
            Invoke-Recipe $Stage $recipes $recipe $result
        } catch {
            $result.why = $_.Exception.Message
            Add-Check $Stage "$($recipe.name): runs to its end" 'no error' $_.Exception.Message $false
        }
    }
    Write-Json (Join-Path $Stage.Folder 'recipes.json') @{ recipes = [object[]] $results.ToArray() }
    [void] (Invoke-Program $Stage 'sessions-after' 'logman.exe' 'query -ets')
}
