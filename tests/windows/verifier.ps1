# Turns Driver Verifier on for the driver: the standard settings, which need a restart, or, where
# WDK_ETW_NO_RESTART is set, what Windows takes at once.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'verifier' $Kit $Out {
    param($Stage)
    $sys = $Stage.Plan.driver.sys
    if (-not $env:WDK_ETW_NO_RESTART) {
        # 0 and 2 are success; 2 says that a restart is needed.
        $set = Invoke-Program $Stage 'standard' 'verifier.exe' "/standard /driver $sys"
        Add-Check $Stage 'exit code of verifier /standard' '0 or 2' $set.Code (0, 2 -contains $set.Code)
        # A crash at the start must not repeat for ever.
        [void] (Invoke-Program $Stage 'bootmode' 'verifier.exe' '/bootmode resetonunusualshutdown')
        $settings = Invoke-Program $Stage 'settings' 'verifier.exe' '/querysettings'
        Add-Check $Stage 'the settings name the driver' $true ($settings.Text -match [Regex]::Escape($sys))
        $service = "HKLM:\SYSTEM\CurrentControlSet\Services\$($Stage.Plan.driver.service)\Parameters\Wdf"
        New-Item -Path $service -Force | Out-Null
        Set-ItemProperty -LiteralPath $service -Name VerifierOn -Value 1 -Type DWord
        $Stage.Restart = $true
        return
    }
    # Each flag by itself, so that one that this Windows does not take leaves the others: low
    # resources (0x4), I/O (0x10), deadlocks (0x20), DMA (0x80), security (0x100), force pending
    # (0x200), miscellaneous (0x800), DDI compliance (0x20000).
    $taken = @()
    foreach ($flag in '0x10', '0x20', '0x80', '0x100', '0x200', '0x800', '0x20000') {
        $set = Invoke-Program $Stage "volatile-$flag" 'verifier.exe' "/volatile /flags $flag"
        if (0, 2 -contains $set.Code) { $taken += $flag }
    }
    $added = Invoke-Program $Stage 'volatile-driver' 'verifier.exe' "/volatile /adddriver $sys"
    [void] (Invoke-Program $Stage 'settings' 'verifier.exe' '/query')
    Write-Json (Join-Path $Stage.Folder 'volatile.json') @{ taken = [object[]] $taken; driver = $added.Code }
    if ($taken.Count -eq 0 -or (0, 2 -notcontains $added.Code)) {
        Skip-Stage $Stage 'this Windows takes no verifier flag without a restart'
    }
}
