# Turns Driver Verifier on for the driver and the probes' driver: the standard settings, which need a
# restart, or, if WDK_ETW_NO_RESTART is set, the settings that Windows applies immediately.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

# Exit codes of verifier.exe: 0 done, 1 an error, 2 a restart is needed.
$Done = 0
$NeedsRestart = 2

# Turns rules on with immediate effect, which Windows 11 supports, and returns whether it succeeded.
# This is possible only while no rules are on: special pool (1), pool tracking (4), I/O (5),
# security (9), miscellaneous (12) and DDI compliance (18).
function Enable-RulesNow($Stage, [string] $Names) {
    $set = Invoke-Program $Stage 'dif-now' 'verifier.exe' "/dif 1 4 5 9 12 18 /now /driver $Names"
    return $set.Code -eq $Done
}

# Sets the volatile flags that this Windows accepts, and adds the drivers. Returns the set flags.
function Set-VolatileFlags($Stage, [string] $Names) {
    # Sets each flag separately, so that a flag that this Windows rejects does not affect the others:
    # special pool (0x1), IRQL (0x2), pool tracking (0x8), I/O (0x10), deadlocks (0x20), DMA (0x80),
    # security (0x100), force pending (0x200), IRP logging (0x400), miscellaneous (0x800). Windows Server
    # 2022 accepts 0x20, 0x80, 0x200, 0x400 and 0x4, which is left out: it makes allocations fail at random.
    $taken = @()
    $mask = 0
    foreach ($flag in 0x1, 0x2, 0x8, 0x10, 0x20, 0x80, 0x100, 0x200, 0x400, 0x800) {
        $text = '0x{0:x}' -f $flag
        $set = Invoke-Program $Stage "volatile-$text" 'verifier.exe' "/volatile /flags $text"
        if ($set.Code -eq $Done) {
            $taken += $text
            $mask = $mask -bor $flag
        }
    }
    # The command sets these flags and clears all others.
    $text = '0x{0:x}' -f $mask
    $all = Invoke-Program $Stage 'volatile-all' 'verifier.exe' "/volatile /flags $text"
    $added = Invoke-Program $Stage 'volatile-driver' 'verifier.exe' "/volatile /adddriver $Names"
    return @{ Taken = $taken; Flags = $text; Code = $all.Code; Driver = $added.Code }
}

Invoke-Stage 'verifier' $Kit $Out {
    param($Stage)
    # One call for all drivers, because each call replaces the whole list.
    $images = @($Stage.Plan.driver.sys)
    $probe = Get-Value $Stage.Plan 'probe'
    if ($probe) { $images += $probe.sys }
    $names = $images -join ' '
    if (-not $env:WDK_ETW_NO_RESTART) {
        $set = Invoke-Program $Stage 'standard' 'verifier.exe' "/standard /driver $names"
        Add-Check $Stage 'exit code of verifier /standard' '0 or 2' $set.Code ($Done, $NeedsRestart -contains $set.Code)
        # A crash during startup must not repeat forever.
        [void] (Invoke-Program $Stage 'bootmode' 'verifier.exe' '/bootmode resetonunusualshutdown')
        $settings = Invoke-Program $Stage 'settings' 'verifier.exe' '/querysettings'
        foreach ($image in $images) {
            Add-Check $Stage "the settings name $image" $true ($settings.Text -match [Regex]::Escape($image))
        }
        $Stage.Restart = $true
        return
    }
    # Windows 11 and Server 2025 accept few volatile flags, but can turn these rules on at once.
    $rules = $false
    if ([Environment]::OSVersion.Version.Build -ge 22000) { $rules = Enable-RulesNow $Stage $names }
    $volatile = $null
    if (-not $rules) { $volatile = Set-VolatileFlags $Stage $names }
    $query = Invoke-Program $Stage 'settings' 'verifier.exe' '/query'
    Write-Json (Join-Path $Stage.Folder 'volatile.json') @{ rules = $rules; volatile = $volatile }
    if (-not $rules -and $volatile.Taken.Count -eq 0) {
        Skip-Stage $Stage 'this Windows takes no verifier flag without a restart'
        return
    }
    if ($volatile) {
        Add-Check $Stage "exit code of verifier /volatile /flags $($volatile.Flags)" $Done $volatile.Code
        Add-Check $Stage 'exit code of verifier /volatile /adddriver' $Done $volatile.Driver
    }
    # A driver that is not loaded may not be listed yet; the stages that install it check again.
    $named = @($images | Where-Object { $query.Text -match [Regex]::Escape($_) })
    Add-Check $Stage 'verifier /query names a driver' $true ($named.Count -gt 0)
}
