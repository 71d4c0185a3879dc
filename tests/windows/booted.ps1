# Runs after the restart that the stage boot requested: sends requests, stops the recipes, and counts
# their events.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'booted' $Kit $Out {
    param($Stage)
    $state = Join-Path $Out 'boot\started.json'
    if (-not (Test-Path -LiteralPath $state)) {
        Skip-Stage $Stage 'the stage boot started no recipe'
        return
    }
    $started = @((ConvertFrom-Json ([IO.File]::ReadAllText($state))).recipes)
    $recipes = Get-Recipes $Stage
    if (-not $recipes) { return }
    $provider = Get-Provider $Stage
    $known = Invoke-Traffic $Stage 'traffic' $recipes
    foreach ($recipe in @($recipes.recipes | Where-Object { $started -contains $_.name })) {
        $name = $recipe.name
        # A failure does not affect the other recipes.
        try {
            Invoke-Lines $Stage "$name-stop" $recipe.shell $recipe.stop
        } catch {
            Add-Check $Stage "$name`: is stopped" 'no error' $_.Exception.Message $false
        }
        $trace = $recipe.trace
        if (-not [IO.Path]::IsPathRooted($trace)) { $trace = Join-Path $Stage.Folder $trace }
        Add-Check $Stage "$name`: trace" $true (Test-Path -LiteralPath $trace)
        if (-not $provider -or -not (Test-Path -LiteralPath $trace)) { continue }
        # The trace also contains the driver's start.
        $count = @(Get-TraceEvents $trace $provider).Count
        Add-EventCheck $Stage $recipe $known $count $true
    }
}
