# Traces the installed driver twice, with a session of logman and with one of this project's, and decodes at
# least one of its events from each: the shortest way from an installed driver to a decoded trace.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

# Returns the number of events in the output of a decoder: each is a line of JSON.
function Get-EventCount($Stage, [string] $Name) {
    $path = Join-Path $Stage.Folder $Name
    if (-not (Test-Path -LiteralPath $path)) { return 0 }
    return @([IO.File]::ReadAllLines($path) | Where-Object { $_.StartsWith('{') }).Count
}

Invoke-Stage 'trace' $Kit $Out {
    param($Stage)
    $provider = Get-Provider $Stage
    $tracer = Get-Tracer $Stage
    if (-not $provider -or -not $tracer) {
        Skip-Stage $Stage 'the kit names no provider, or has no program that decodes traces'
        return
    }
    $path = Join-Path $Stage.Kit 'recipes.json'
    $recipes = $null
    if (Test-Path -LiteralPath $path) { $recipes = ConvertFrom-Json ([IO.File]::ReadAllText($path)) }
    $decode = "$($tracer.Arguments) --json --provider $provider"
    $session = 'wdk-etw-trace'
    $trace = Join-Path $Stage.Folder 'trace.etl'
    [void] (Invoke-Checked $Stage 'start' 'logman.exe' "create trace $session -ow -o `"$trace`" -p `"{$provider}`" 0xffffffffffffffff 5 -ets" 60)
    try {
        [void] (Invoke-Traffic $Stage 'logman' $recipes)
    } finally {
        [void] (Invoke-Checked $Stage 'stop' 'logman.exe' "stop $session -ets" 60)
    }
    [void] (Invoke-Checked $Stage 'decoded' $tracer.Program "$decode --file `"$trace`"" 120)
    $count = Get-EventCount $Stage 'decoded.log'
    Add-Check $Stage 'events of the session of logman' '1 or more' $count ($count -ge 1)

    $line = Start-Lines $Stage 'live' @("`"$($tracer.Program)`" $decode --seconds 20 >live.jsonl")
    # The session starts first.
    Start-Sleep -Seconds (5 * $Stage.Slowness)
    [void] (Invoke-Traffic $Stage 'own' $recipes)
    Wait-Line $Stage $line
    $count = Get-EventCount $Stage 'live.jsonl'
    Add-Check $Stage 'events of the own session' '1 or more' $count ($count -ge 1)
}
