# Checks the packages that were made on Linux with the WDK's own infverif, inf2cat and signtool.
# wdk.ps1 has put them on the path. This script has not run on Windows yet.
param([Parameter(Mandatory = $true)] [string] $Kit)
Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'
$failed = @()

foreach ($name in 'package', 'package-catalog-2', 'probe') {
    $folder = (Resolve-Path -LiteralPath (Join-Path $Kit $name)).ProviderPath
    $inf = @(Get-ChildItem -LiteralPath $folder -Filter '*.inf')[0]
    $sys = @(Get-ChildItem -LiteralPath $folder -Filter '*.sys')[0]
    $catalog = @(Get-ChildItem -LiteralPath $folder -Filter '*.cat')[0]
    # Called as wdk-build calls it for a driver that is not UMDF.
    infverif /v /w $inf.FullName
    if ($LASTEXITCODE) { $failed += "infverif of $name ($LASTEXITCODE)" }
    foreach ($certificate in Get-ChildItem -LiteralPath $folder -Filter '*.cer') {
        certutil -f -addstore Root $certificate.FullName
        if ($LASTEXITCODE) { $failed += "certutil of $name ($LASTEXITCODE)" }
    }
    foreach ($file in $sys, $catalog) {
        signtool verify /v /pa $file.FullName
        if ($LASTEXITCODE) { $failed += "signtool of $name\$($file.Name) ($LASTEXITCODE)" }
    }
    # The catalog that was made on Linux contains the files' hashes: SHA-1, and in one package SHA-256 too.
    # No document says which one signtool looks for without /hash.
    foreach ($file in $sys, $inf) {
        $passed = @('', 'SHA1', 'SHA256' | Where-Object {
            $hash = @(if ($_) { '/hash', $_ })
            signtool verify /v /pa @hash /c $catalog.FullName $file.FullName | Out-Host
            $LASTEXITCODE -eq 0
        })
        Write-Host "$name\$($file.Name) is in its catalog by: '$($passed -join "', '")'"
        if ($passed.Count -eq 0) { $failed += "signtool of $name\$($file.Name) in its catalog" }
    }
    # inf2cat replaces the catalog in a copy of the files that it covers.
    $copy = Join-Path (Resolve-Path -LiteralPath '.').ProviderPath "inf2cat-$name"
    New-Item -ItemType Directory -Force -Path $copy | Out-Null
    Copy-Item -LiteralPath $inf.FullName, $sys.FullName -Destination $copy
    inf2cat /driver:$copy /os:10_VB_X64 /uselocaltime
    if ($LASTEXITCODE) { $failed += "inf2cat of $name ($LASTEXITCODE)" }
}
if ($failed.Count -gt 0) { throw "failed: $($failed -join ', ')" }
