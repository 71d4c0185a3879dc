# Starts the recipes that trace a start of Windows, and requests a restart. The stage booted stops them.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'boot' $Kit $Out {
    param($Stage)
    if ($env:WDK_ETW_NO_RESTART) {
        Skip-Stage $Stage 'this machine cannot restart between two stages'
        return
    }
    $recipes = Get-Recipes $Stage
    if (-not $recipes) { return }
    $started = @()
    $missing = @()
    foreach ($recipe in @($recipes.recipes | Where-Object { $_.boots })) {
        if (-not (Get-Command $recipe.needs -ErrorAction SilentlyContinue)) {
            $missing += $recipe.needs
            continue
        }
        # A failure does not affect the other recipes.
        try {
            Invoke-Lines $Stage "$($recipe.name)-start" $recipe.shell $recipe.start
            $started += $recipe.name
        } catch {
            Add-Check $Stage "$($recipe.name): is started" 'no error' $_.Exception.Message $false
        }
    }
    if ($started.Count -eq 0) {
        # A stage with a failed check is not skipped.
        Skip-Stage $Stage "no recipe traces a start of Windows here; missing: $($missing -join ', ')"
        return
    }
    Write-Json (Join-Path $Stage.Folder 'started.json') @{ recipes = [object[]] $started }
    $Stage.Restart = $true
}
