# Assembles a kit for a hosted runner: the kit from Linux and, if there is one, the WDK's package.
# This script has not run on Windows yet.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Wdk,
    [Parameter(Mandatory = $true)] [string] $To
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

Copy-Item -LiteralPath $Kit -Destination $To -Recurse
if (Test-Path -LiteralPath $Wdk) {
    # The artifact contains the folder structure below target.
    $inf = Get-ChildItem -LiteralPath $Wdk -Recurse -Filter '*.inf' | Select-Object -First 1
    if ($inf) {
        Copy-Item -LiteralPath $inf.DirectoryName -Destination (Join-Path $To 'package-wdk') -Recurse
    }
}
Get-ChildItem -LiteralPath $To -Recurse -File | ForEach-Object { Write-Host $_.FullName }
