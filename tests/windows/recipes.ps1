# Runs the guides' recipes: starts a session by each tool, sends requests, and counts the events.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'recipes' $Kit $Out {
    param($Stage)
    $recipes = Get-Recipes $Stage
    if (-not $recipes) { return }
    $client = Get-Client $Stage
    $provider = Get-Provider $Stage
    $traffic = Get-Value $recipes 'traffic'
    # The recipes of the client name it without its folder.
    if ($client) { $env:PATH = "$(Split-Path -Parent $client);$env:PATH" }
    $results = New-Object Collections.ArrayList
    foreach ($recipe in $recipes.recipes) {
        $name = $recipe.name
        $result = @{ name = $name; ran = $false; events = $null; mode = $null; why = $null }
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
        $trace = $recipe.trace
        if (-not [IO.Path]::IsPathRooted($trace)) { $trace = Join-Path $Stage.Folder $trace }
        if (Test-Path -LiteralPath $trace) { Remove-Item -LiteralPath $trace }
        Invoke-Lines $Stage "$name-start" $recipe.shell $recipe.start
        # A session in paged memory (0x1000000) gets no events of drivers.
        $session = Get-EtwTraceSession -Name $recipes.session -ErrorAction SilentlyContinue
        if ($session) {
            $result.mode = '0x{0:x}' -f [uint32] $session.LogFileMode
            $paged = ([uint32] $session.LogFileMode -band 0x1000000) -ne 0
            Add-Check $Stage "$name`: buffers in paged memory" $false $paged
        }
        $running = @(Start-Lines $Stage "$name-during" (Get-Value $recipe 'during'))
        # Their session starts first.
        if ($running.Count -gt 0) { Start-Sleep -Seconds 3 }
        if ($client -and $traffic) { Send-Traffic $Stage $name $traffic }
        foreach ($line in $running) { Wait-Line $Stage $line }
        Invoke-Lines $Stage "$name-stop" $recipe.shell $recipe.stop
        Add-Check $Stage "$name`: trace" $true (Test-Path -LiteralPath $trace)
        if (-not (Test-Path -LiteralPath $trace)) { continue }
        $kept = Join-Path $Stage.Folder "$name$([IO.Path]::GetExtension($trace))"
        Move-Item -LiteralPath $trace -Destination $kept -Force
        if (-not $provider) { continue }
        if ($kept -like '*.jsonl') {
            $result.events = @([IO.File]::ReadAllLines($kept) | Where-Object { $_.StartsWith('{') }).Count
        } else {
            $result.events = @(Get-TraceEvents $kept $provider).Count
        }
        $expected = Get-Value $recipe 'expected'
        if ($client -and $null -ne $expected) {
            if (Get-Value $recipe 'at_least') {
                Add-Check $Stage "$name`: events" "$expected or more" $result.events ($result.events -ge $expected)
            } else {
                Add-Check $Stage "$name`: events" $expected $result.events
            }
        }
    }
    Write-Json (Join-Path $Stage.Folder 'recipes.json') @{ recipes = [object[]] $results.ToArray() }
    [void] (Invoke-Program $Stage 'sessions-after' 'logman.exe' 'query -ets')
}
