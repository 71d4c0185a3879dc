# Checks that the WDK of a version is complete, and puts its tools on the path of the workflow's
# later steps. winget and the installers may end before all files exist, so this waits for up to
# five minutes. This script has not run on Windows yet.
param([Parameter(Mandatory = $true)] [string] $Version)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$kits = Join-Path ([Environment]::GetFolderPath('ProgramFilesX86')) 'Windows Kits\10'
$architecture = 'x64'
if ($env:PROCESSOR_ARCHITECTURE -eq 'ARM64') { $architecture = 'arm64' }
# The folders in which wdk-build 0.6 looks for programs.
$bin = Join-Path $kits "bin\$Version\$architecture"
$x86 = Join-Path $kits "bin\$Version\x86"
$tools = Join-Path $kits "Tools\$Version\$architecture"
$needed = @(
    (Join-Path $kits "Include\$Version\km\ntddk.h"),
    (Join-Path $kits 'Include\wdf\kmdf\1.31\wdf.h'),
    (Join-Path $bin 'stampinf.exe'),
    (Join-Path $bin 'signtool.exe'),
    (Join-Path $x86 'Inf2Cat.exe'),
    (Join-Path $tools 'infverif.exe')
)
$until = (Get-Date).AddMinutes(5)
do {
    $missing = @($needed | Where-Object { -not (Test-Path -LiteralPath $_) })
    if ($missing.Count -eq 0) { break }
    Start-Sleep -Seconds 10
} while ((Get-Date) -lt $until)
if ($missing.Count -gt 0) {
    Get-ChildItem -Path (Join-Path $kits 'Include'), (Join-Path $kits 'bin'), (Join-Path $kits 'Tools') -ErrorAction SilentlyContinue |
        ForEach-Object { Write-Host $_.FullName }
    throw "the WDK $Version is incomplete; missing: $($missing -join ', ')"
}
if ($env:GITHUB_PATH) {
    [IO.File]::AppendAllText($env:GITHUB_PATH, (($bin, $x86, $tools) -join "`n") + "`n", (New-Object Text.UTF8Encoding $false))
}
# bindgen would otherwise load the libclang of Visual Studio.
$llvm = 'C:\Program Files\LLVM\bin'
if ($env:GITHUB_ENV -and (Test-Path -LiteralPath (Join-Path $llvm 'libclang.dll'))) {
    [IO.File]::AppendAllText($env:GITHUB_ENV, "LIBCLANG_PATH=$llvm`n", (New-Object Text.UTF8Encoding $false))
}
# bindgen loads libclang. Microsoft tests wdk-build with LLVM 17; bindgen 0.73 supports 20.
$clang = (& clang --version) -join "`n"
if ($LASTEXITCODE) { throw "clang --version failed with $LASTEXITCODE" }
Write-Host $clang
if ($clang -match 'version 18\.') { throw 'LLVM 18 generates no bindings for ARM64; use 17, or 19 or later' }
