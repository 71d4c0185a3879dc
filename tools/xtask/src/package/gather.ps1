# Copies the WDK's package of the sample driver, the client, which it builds, and the scripts for a
# test machine to one folder. Run it in the checkout's root. It has not run on Windows yet.
param(
    [string] $Package = 'target\debug\etw_sample_driver_package',
    [string] $To = 'target\etw_sample_driver'
)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$root = (Resolve-Path -LiteralPath (Join-Path $PSScriptRoot '..\..\..\..')).ProviderPath
if (-not (Test-Path -LiteralPath (Join-Path $Package 'etw_sample_driver.inf'))) {
    throw "$Package has no etw_sample_driver.inf: run cargo wdk build in the folder driver, or name the package with -Package"
}
# Also for an ARM64 package, because Windows on ARM64 runs x64 programs.
cargo build --locked --manifest-path (Join-Path $root 'Cargo.toml') --package etw-sample-client --target-dir (Join-Path $root 'target')
if ($LASTEXITCODE) { exit $LASTEXITCODE }
New-Item -ItemType Directory -Force -Path $To | Out-Null
Copy-Item -Path (Join-Path $Package '*') -Destination $To -Force
foreach ($file in 'target\debug\etw-sample-client.exe',
    'tools\driver-package\src\scripts\prepare.cmd',
    'tools\driver-package\src\scripts\restore.cmd',
    'tools\xtask\src\package\install.cmd') {
    Copy-Item -LiteralPath (Join-Path $root $file) -Destination $To -Force
}
Get-ChildItem -LiteralPath $To | ForEach-Object { Write-Host $_.FullName }
