# Functions that the stages share: for the plan, checks, programs and the result.
#
# The scripts are for Windows PowerShell 5.1, which every supported version of Windows includes.
# They have not run on Windows yet; their syntax is checked on Linux.
#
# A stage is called as: STAGE.ps1 -Kit FOLDER -Out FOLDER. It writes its files and, last,
# result.json to OUT\STAGE. Exit codes: 0 passed, skipped or (of evidence) differs, 1 failed, 3010
# restart needed.

Set-StrictMode -Version 2
$ErrorActionPreference = 'Stop'

$RestartNeeded = 3010

# Runs a stage's body with its state, and ends the script with the stage's exit code.
function Invoke-Stage([string] $Name, [string] $Kit, [string] $Out, [scriptblock] $Body) {
    $folder = Join-Path $Out $Name
    New-Item -ItemType Directory -Force -Path $folder | Out-Null
    $stage = @{
        Name = $Name
        Kit = (Resolve-Path -LiteralPath $Kit).ProviderPath
        Folder = (Resolve-Path -LiteralPath $folder).ProviderPath
        # The leg is the folder's name.
        Leg = (Split-Path -Leaf $Out)
        Plan = $null
        # The factor by which everything takes longer than with virtualization.
        Slowness = 1
        Checks = New-Object Collections.ArrayList
        SkipReason = $null
        Restart = $false
        # True if the checks give evidence: a difference does not fail the stage.
        Evidence = $false
    }
    $started = Get-Date
    $failure = $null
    $isEvidence = $false
    # If the stage is ended, the next one's logs have what this one left.
    Save-WindowsLogs $stage 'before'
    try {
        $text = [IO.File]::ReadAllText((Join-Path $stage.Kit 'wdk-etw-kit.json'))
        $stage.Plan = ConvertFrom-Json $text
        $slowness = Get-Value $stage.Plan 'slowness'
        if ($slowness) { $stage.Slowness = [int] $slowness }
        $stage.Evidence = Test-Evidence $stage
        $isEvidence = $stage.Evidence
        $off = Get-VerifierOff $stage $Out
        if (-not $off) {
            & $Body $stage
        } elseif ($off.Skip) {
            Skip-Stage $stage $off.Why
        } else {
            Add-Check $stage $off.Why 'on' 'off' $false
        }
    } catch {
        $failure = "$($_.Exception.Message) ($($_.InvocationInfo.ScriptName):$($_.InvocationInfo.ScriptLineNumber))"
    }
    $evidence = Get-Value $stage.Plan 'evidence'
    $isStrict = [bool] (Get-Value $evidence 'strict')
    # Differences that were looked at are expected.
    $known = @(Get-Value $evidence 'looked_at')
    $failed = @($stage.Checks | Where-Object {
        -not $_.passed -and -not ($_.evidence -and $known -contains "$Name | $($_.name) | $($_.got)")
    })
    $gates = @($failed | Where-Object { $isStrict -or -not $_.evidence })
    $isFailed = $gates.Count -gt 0 -or ($failure -and ($isStrict -or -not $isEvidence))
    $notAsked = $failure
    if ($failed.Count -gt 0 -and -not $failure) {
        $names = ($failed | ForEach-Object { $_.name }) -join ', '
        $failure = "$($failed.Count) of $($stage.Checks.Count) checks failed: $names"
    }
    $status = 'passed'
    $reason = $null
    if ($failure) {
        $status = 'differs'
        if ($isFailed) { $status = 'failed' }
        $reason = $failure
    } elseif ($stage.SkipReason) {
        $status = 'skipped'
        $reason = $stage.SkipReason
    }
    $kind = 'path'
    if ($isEvidence) { $kind = 'evidence' }
    $result = @{
        stage = $Name
        kind = $kind
        status = $status
        reason = $reason
        # The error that ended the stage before all checks were made.
        error = $notAsked
        reboot = [bool] $stage.Restart
        checks = [object[]] $stage.Checks.ToArray()
        seconds = [int] ((Get-Date) - $started).TotalSeconds
    }
    Write-Json (Join-Path $stage.Folder 'result.json') $result
    Save-WindowsLogs $stage 'after'
    Write-Host "$Name`: $status $reason"
    if ($status -eq 'failed') { exit 1 }
    if ($stage.Restart) { exit $RestartNeeded }
    exit 0
}

# Returns whether a stage gives evidence, so that what differs is only reported. Only hosted runs have
# evidence; a stage that the plan does not list is evidence, too.
function Test-Evidence($Stage) {
    if (-not (Get-Value $Stage.Plan 'evidence')) { return $false }
    foreach ($planned in $Stage.Plan.stages) {
        if ($planned.leg -eq $Stage.Leg -and $planned.name -eq $Stage.Name) { return $planned.kind -ne 'path' }
    }
    return $true
}

# Saves Windows' logs about drivers in the stage's folder. A log that cannot be saved is left out: it must
# not hide the stage's own result.
function Save-WindowsLogs($Stage, [string] $When) {
    $folder = Join-Path $Stage.Folder "windows-$When"
    try {
        New-Item -ItemType Directory -Force -Path $folder | Out-Null
        $setup = Join-Path $env:SystemRoot 'INF\setupapi.dev.log'
        if (Test-Path -LiteralPath $setup) { Copy-Item -LiteralPath $setup -Destination $folder }
    } catch { Write-Host "  setupapi.dev.log: $($_.Exception.Message)" }
    $programs = @(
        @('code-integrity', 'wevtutil.exe', "epl Microsoft-Windows-CodeIntegrity/Operational `"$folder\code-integrity.evtx`" /ow:true"),
        @('system', 'wevtutil.exe', "epl System `"$folder\system.evtx`" /ow:true /q:*[System[TimeCreated[timediff(@SystemTime)<=3600000]]]"),
        @('drivers', 'pnputil.exe', '/enum-drivers'),
        @('loaded', 'driverquery.exe', '/v')
    )
    foreach ($program in $programs) {
        try {
            [void] (Invoke-Program $Stage "windows-$When\$($program[0])" $program[1] $program[2] 20)
        } catch { Write-Host "  $($program[0]): $($_.Exception.Message)" }
    }
}

# Returns the driver that a stage uses.
function Get-StageDriver($Stage) {
    $probe = Get-Value $Stage.Plan 'probe'
    if ($probe -and $Stage.Name -like 'probe*') { return $probe }
    return $Stage.Plan.driver
}

# Returns whether Driver Verifier verifies an image.
function Test-Verified($Stage, [string] $Sys) {
    $name = [Regex]::Escape($Sys)
    # The first command shows the drivers that are verified now, the second the registry's settings,
    # without those set for immediate effect. A driver that has not been loaded yet may appear only
    # in the second.
    foreach ($query in 'query', 'querysettings') {
        $shown = Invoke-Program $Stage "verifier-$query" 'verifier.exe' "/$query"
        if ($shown.Text -match $name) { return $true }
    }
    return $false
}

# Returns the reason why a stage of the leg `verifier` would verify nothing, and whether to skip the stage,
# or null. After a crash, Windows starts without Driver Verifier (resetonunusualshutdown): the stage that
# crashed has failed, and the others are skipped. If Windows accepts no flag without a restart, the stage
# `verifier` has reported that. In any other case, the stage fails.
function Get-VerifierOff($Stage, [string] $Out) {
    # These stages turn Driver Verifier on, or must run in any case.
    if ('verifier', 'uninstall' -contains $Stage.Name) { return $null }
    if ($Stage.Leg -ne 'verifier') { return $null }
    $path = Join-Path $Out 'verifier\result.json'
    if (Test-Path -LiteralPath $path) {
        $result = ConvertFrom-Json ([IO.File]::ReadAllText($path))
        if ($result.status -eq 'skipped') { return @{ Skip = $true; Why = "Driver Verifier is off: $($result.reason)" } }
    }
    # The agent writes the names of the stages in which Windows restarted.
    $crashes = Join-Path $Out 'crashed.txt'
    $crashed = @()
    if (Test-Path -LiteralPath $crashes) { $crashed = @([IO.File]::ReadAllLines($crashes) | ForEach-Object { $_.Trim() }) }
    $sys = (Get-StageDriver $Stage).sys
    # A machine that does not restart keeps the settings, and may list a driver only once it is loaded:
    # the stages that install a driver check that.
    if ($env:WDK_ETW_NO_RESTART) {
        if ($Stage.Name -eq 'install') { return $null }
        $sys = $Stage.Plan.driver.sys
    }
    if (Test-Verified $Stage $sys) { return $null }
    if ($crashed.Count -gt 0) {
        return @{ Skip = $true; Why = "Driver Verifier is off since Windows restarted in $($crashed -join ', ')" }
    }
    return @{ Skip = $false; Why = "Driver Verifier for $sys" }
}

# In the leg `verifier`, checks that an installed driver is verified, and turns the framework's verifier on
# for it: the framework reads the setting when it loads the driver.
function Enable-FrameworkVerifier($Stage, $Driver) {
    if ($Stage.Leg -ne 'verifier') { return }
    Add-Check $Stage "Driver Verifier verifies $($Driver.sys)" $true (Test-Verified $Stage $Driver.sys)
    $key = "HKLM\SYSTEM\CurrentControlSet\Services\$($Driver.service)\Parameters\Wdf"
    $log = "framework-verifier-$($Driver.service)"
    [void] (Invoke-Checked $Stage $log 'reg.exe' "add `"$key`" /v VerifierOn /t REG_DWORD /d 1 /f")
    Restart-Devices $Stage $Driver
    $value = Get-ItemProperty -LiteralPath "Registry::HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\$($Driver.service)\Parameters\Wdf" -ErrorAction SilentlyContinue
    Add-Check $Stage "VerifierOn of $($Driver.service)" 1 (Get-Value $value 'VerifierOn')
    Add-Check $Stage "$($Driver.service) with the framework's verifier" 'Running' (Get-DriverState $Driver.service)
}

# Restarts the devices of a driver, so that Windows unloads the driver and loads it again.
# A driver without a device is a service that is stopped and started.
function Restart-Devices($Stage, $Driver) {
    if (-not $Driver.hardware_id) {
        $verbs = @('start')
        if ((Get-DriverState $Driver.service) -eq 'Running') { $verbs = 'stop', 'start' }
        foreach ($verb in $verbs) {
            [void] (Invoke-Checked $Stage "$verb-$($Driver.service)" 'sc.exe' "$verb $($Driver.service)" 120)
        }
        return
    }
    $number = 0
    foreach ($device in Get-Devices $Driver.hardware_id) {
        $number += 1
        [void] (Invoke-Pnputil $Stage "restart-$($Driver.service)-$number" 'pnputil.exe' "/restart-device `"$($device.InstanceId)`"" 120)
    }
}

# Returns the time limit in seconds for a stage's program with virtualization: five minutes less
# than the stage's. The plan's times already contain the factor for machines without virtualization.
function Get-StageSeconds($Stage) {
    foreach ($planned in $Stage.Plan.stages) {
        if ($planned.leg -eq $Stage.Leg -and $planned.name -eq $Stage.Name) {
            return [Math]::Max(300, [int] ($planned.timeout_minutes * 60 / $Stage.Slowness) - 300)
        }
    }
    return 1500
}

# Writes a value as JSON in UTF-8 without a byte order mark.
function Write-Json([string] $Path, $Value) {
    $text = ConvertTo-Json -InputObject $Value -Depth 8
    [IO.File]::WriteAllText($Path, $text + "`n", (New-Object Text.UTF8Encoding $false))
}

# Returns a property of an object that was read from JSON, or null if there is none.
function Get-Value($Object, [string] $Name) {
    if ($null -eq $Object) { return $null }
    $property = $Object.PSObject.Properties[$Name]
    if ($null -eq $property) { return $null }
    return $property.Value
}

# Returns the GUID of the driver's provider, or null if the plan names none.
function Get-Provider($Stage) {
    return Get-Value (Get-Value $Stage.Plan 'provider') 'guid'
}

# Ends the stage as skipped; the body returns after this.
function Skip-Stage($Stage, [string] $Reason) {
    $Stage.SkipReason = $Reason
}

# Records a check. Without a verdict, it passes if both values have the same text.
function Add-Check($Stage, [string] $Name, $Expected, $Got, $Passed = $null) {
    if ($null -eq $Passed) { $Passed = "$Expected" -eq "$Got" }
    $check = @{ name = $Name; expected = "$Expected"; got = "$Got"; passed = [bool] $Passed; evidence = $Stage.Evidence }
    [void] $Stage.Checks.Add($check)
    $mark = 'FAIL'
    if ($check.passed) { $mark = 'pass' }
    Write-Host "  $mark $Name`: expected $Expected, got $Got"
}

# Runs a program, and keeps its output in the stage's folder. Returns its exit code and output. The
# exit code is -1 if the program exceeded its time limit: the seconds multiplied by the machine's
# slowness.
function Invoke-Program($Stage, [string] $Log, [string] $File, [string] $Arguments = '', [int] $Seconds = 300) {
    $output = Join-Path $Stage.Folder "$Log.log"
    $errors = Join-Path $Stage.Folder "$Log.errors.log"
    $parameters = @{
        FilePath = $File
        WorkingDirectory = $Stage.Folder
        NoNewWindow = $true
        PassThru = $true
        RedirectStandardOutput = $output
        RedirectStandardError = $errors
    }
    if ($Arguments) { $parameters.ArgumentList = $Arguments }
    $process = Start-Process @parameters
    # Without this, Windows PowerShell does not keep the exit code.
    $null = $process.Handle
    $code = -1
    if ($process.WaitForExit($Seconds * 1000 * $Stage.Slowness)) {
        $process.WaitForExit()
        $code = $process.ExitCode
    } else {
        $process.Kill()
        $process.WaitForExit()
    }
    $text = ''
    foreach ($path in $output, $errors) {
        if (Test-Path -LiteralPath $path) { $text += [IO.File]::ReadAllText($path) }
    }
    return @{ Code = $code; Text = $text }
}

# Runs a program that must succeed.
function Invoke-Checked($Stage, [string] $Log, [string] $File, [string] $Arguments = '', [int] $Seconds = 300) {
    $ran = Invoke-Program $Stage $Log $File $Arguments $Seconds
    Add-Check $Stage "exit code of $Log" 0 $ran.Code
    return $ran
}

# Runs pnputil, which succeeds with several codes: 259 (ERROR_NO_MORE_ITEMS) if the package is staged and no
# present device needs it, 1641 and 3010 (ERROR_SUCCESS_REBOOT_*) if Windows must be restarted.
function Invoke-Pnputil($Stage, [string] $Log, [string] $File, [string] $Arguments, [int] $Seconds = 300) {
    $ran = Invoke-Program $Stage $Log $File $Arguments $Seconds
    Add-Check $Stage "exit code of $Log" '0, 259, 1641 or 3010' $ran.Code (0, 259, 1641, 3010 -contains $ran.Code)
    if ($ran.Code -eq 259) { Write-Host "  $Log`: the package is in the driver store; no present device needs it" }
    if (1641, 3010 -contains $ran.Code) {
        Write-Host "  $Log`: Windows must be restarted"
        # A machine that cannot restart goes on, and the next check shows what is missing.
        if (-not $env:WDK_ETW_NO_RESTART) { $Stage.Restart = $true }
    }
    return $ran
}

# Returns the path of a file of the kit.
function Get-KitPath($Stage, [string] $Path) {
    return Join-Path $Stage.Kit ($Path -replace '/', '\')
}

# Returns the path of the user-mode client, or null if the kit has none.
function Get-Client($Stage) {
    $client = Get-Value $Stage.Plan 'client'
    if (-not $client) { return $null }
    return Get-KitPath $Stage $client
}

# Returns the program that decodes traces with TDH and its first arguments, or null if the kit has
# none: the client, or the built-in one, `cargo etw trace`.
function Get-Tracer($Stage) {
    $client = Get-Client $Stage
    if ($client) { return @{ Program = $client; Arguments = 'trace' } }
    $tracer = Get-Value $Stage.Plan 'tracer'
    if ($tracer) { return @{ Program = (Get-KitPath $Stage $tracer); Arguments = 'trace --tdh' } }
    return $null
}

# Returns the state of a driver's service, such as Running, or another text if it does not exist.
# The names are the same in every language of Windows.
function Get-DriverState([string] $Service) {
    $found = Get-CimInstance -ClassName Win32_SystemDriver -Filter "Name='$Service'"
    if ($found) { return $found.State }
    return 'no service'
}

# Returns the root-enumerated devices with a hardware ID, including those that are not present.
# A driver without a device has no hardware ID.
function Get-Devices([string] $HardwareId) {
    if (-not $HardwareId) { return @() }
    return @(Get-PnpDevice | Where-Object { @($_.HardwareID) -contains $HardwareId })
}

# Makes this machine trust the test certificates in a folder.
function Import-Certificates($Stage, [string] $Folder) {
    foreach ($certificate in Get-ChildItem -LiteralPath $Folder -Filter '*.cer') {
        foreach ($store in 'Root', 'TrustedPublisher') {
            $log = "certutil-$($certificate.BaseName)-$store"
            [void] (Invoke-Checked $Stage $log 'certutil.exe' "-f -addstore $store `"$($certificate.FullName)`"")
        }
    }
}

# Returns the path of a script that `cargo etw package` adds to packages: the package's own, or the
# kit's for other packages.
function Get-PackageScript([string] $Folder, [string] $Name) {
    $own = Join-Path $Folder "$Name.ps1"
    if (Test-Path -LiteralPath $own) { return $own }
    return Join-Path $PSScriptRoot "package-$Name.ps1"
}

# Returns the arguments of PowerShell for the script of a driver without a device.
function Get-ServiceArguments($Driver, [string] $Folder, [string] $Inf) {
    $script = Get-PackageScript $Folder 'service'
    return "-NoProfile -ExecutionPolicy Bypass -File `"$script`" -Inf `"$Inf`" -Service `"$($Driver.service)`""
}

# Installs a driver package and creates its device, or starts its service if it has no device: with the
# client if the kit has one, otherwise with a script. A program can create only devices whose IDs start
# with Root\.
function Install-Package($Stage, [string] $Log, $Driver, [string] $Folder) {
    $inf = Join-Path $Folder $Driver.inf
    $client = Get-Client $Stage
    if ($client -and $Driver.service -eq $Stage.Plan.driver.service) {
        return Invoke-Checked $Stage $Log $client "install `"$inf`"" 120
    }
    if (-not $Driver.hardware_id) {
        return Invoke-Checked $Stage $Log 'powershell.exe' (Get-ServiceArguments $Driver $Folder $inf) 120
    }
    if ($Driver.hardware_id -match '^Root\\') {
        $script = Get-PackageScript $Folder 'device'
        $arguments = "-NoProfile -ExecutionPolicy Bypass -File `"$script`" -Inf `"$inf`" -HardwareId `"$($Driver.hardware_id)`""
        return Invoke-Checked $Stage $Log 'powershell.exe' $arguments 120
    }
    return Invoke-Pnputil $Stage $Log 'pnputil.exe' "/add-driver `"$inf`" /install" 120
}

# Removes a driver package and its devices.
function Uninstall-Package($Stage, [string] $Log, $Driver, [string] $Folder) {
    $inf = Join-Path $Folder $Driver.inf
    $client = Get-Client $Stage
    if ($client -and $Driver.service -eq $Stage.Plan.driver.service) {
        return Invoke-Checked $Stage $Log $client "uninstall `"$inf`"" 120
    }
    if (-not $Driver.hardware_id) {
        $arguments = "$(Get-ServiceArguments $Driver $Folder $inf) -Remove"
        return Invoke-Checked $Stage $Log 'powershell.exe' $arguments 120
    }
    $script = Get-PackageScript $Folder 'uninstall'
    $arguments = "-NoProfile -ExecutionPolicy Bypass -File `"$script`" -Inf `"$inf`" -HardwareId `"$($Driver.hardware_id)`""
    return Invoke-Checked $Stage $Log 'powershell.exe' $arguments 120
}

# Sends the requests whose events the recipes expect. Each is a list of arguments for the client.
function Send-Traffic($Stage, [string] $Log, $Traffic) {
    $client = Get-Client $Stage
    $number = 0
    foreach ($arguments in $Traffic) {
        $number += 1
        [void] (Invoke-Checked $Stage "$Log-request-$number" $client $arguments)
    }
}

# Makes the driver write events: with the client's requests, whose events are known, or by
# restarting its devices, so that Windows unloads and loads it. Returns whether the events are
# known.
function Invoke-Traffic($Stage, [string] $Log, $Recipes) {
    $traffic = Get-Value $Recipes 'traffic'
    if ((Get-Client $Stage) -and $traffic) {
        Send-Traffic $Stage $Log $traffic
        return $true
    }
    $driver = $Stage.Plan.driver
    if ($driver.hardware_id -and @(Get-Devices $driver.hardware_id).Count -eq 0) {
        throw "no device has the hardware ID $($driver.hardware_id), so the driver writes no events"
    }
    Restart-Devices $Stage $driver
    return $false
}

# Checks the number of a recipe's events. Those of a restarted device are not known, but if the
# recipe records everything, there are some.
function Add-EventCheck($Stage, $Recipe, [bool] $Known, [int] $Count, [bool] $AtLeast) {
    $name = "$($Recipe.name): events"
    if (-not $Known) {
        if (Get-Value $Recipe 'whole') { Add-Check $Stage $name '1 or more' $Count ($Count -ge 1) }
        return
    }
    $expected = Get-Value $Recipe 'expected'
    if ($null -eq $expected) { return }
    if ($AtLeast) {
        Add-Check $Stage $name "$expected or more" $Count ($Count -ge $expected)
    } else {
        Add-Check $Stage $name $expected $Count
    }
}

# Returns the events of a provider in a trace, as Get-WinEvent decodes them.
function Get-TraceEvents([string] $Path, [string] $Provider) {
    $guid = [Guid] $Provider
    $events = @(Get-WinEvent -Path $Path -Oldest -ErrorAction SilentlyContinue)
    return @($events | Where-Object { $_.ProviderId -eq $guid })
}

# Adds the programs of the Windows kits to the search path: tracelog, xperf and wpr are in no folder
# that every machine's path contains. The existing path comes first, then the newest version.
function Add-KitTools {
    $kits = Join-Path ([Environment]::GetFolderPath('ProgramFilesX86')) 'Windows Kits\10'
    $architecture = 'x64'
    if ($env:PROCESSOR_ARCHITECTURE -eq 'ARM64') { $architecture = 'arm64' }
    $versions = @(Get-ChildItem -Path (Join-Path $kits "bin\10.*\$architecture") -ErrorAction SilentlyContinue)
    $folders = @($versions | Sort-Object { [Version] $_.Parent.Name } -Descending | ForEach-Object { $_.FullName })
    $folders += Join-Path $kits 'Windows Performance Toolkit'
    $env:PATH = (@($env:PATH) + $folders) -join ';'
}

# Returns the guides' recipes, with the profiles that they name in the stage's folder, or null if
# the kit has none; the stage is then skipped.
function Get-Recipes($Stage) {
    $path = Join-Path $Stage.Kit 'recipes.json'
    if (-not (Test-Path -LiteralPath $path)) {
        Skip-Stage $Stage 'the kit has no recipes.json'
        return $null
    }
    Add-KitTools
    # The profiles are beside the driver.
    Get-ChildItem -LiteralPath (Get-KitPath $Stage 'package') -Filter '*.wprp' | Copy-Item -Destination $Stage.Folder
    return ConvertFrom-Json ([IO.File]::ReadAllText($path))
}

# Runs the command lines of a recipe in the stage's folder.
function Invoke-Lines($Stage, [string] $Log, [string] $Shell, $Lines) {
    $number = 0
    foreach ($line in $Lines) {
        $number += 1
        $file = 'cmd.exe'
        $arguments = "/d /c $line"
        if ($Shell -eq 'powershell') {
            $bytes = [Text.Encoding]::Unicode.GetBytes("`$ErrorActionPreference = 'Stop'; $line")
            $file = 'powershell.exe'
            $arguments = "-NoProfile -ExecutionPolicy Bypass -EncodedCommand $([Convert]::ToBase64String($bytes))"
        }
        [void] (Invoke-Checked $Stage "$Log-$number" $file $arguments)
    }
}

# Starts command lines of a recipe that run for some time in parallel with the script. On a slow
# machine they run longer, because the requests take longer.
function Start-Lines($Stage, [string] $Log, $Lines) {
    $number = 0
    foreach ($line in $Lines) {
        $number += 1
        if ($line -match '--seconds (\d+)') {
            $line = $line -replace '--seconds \d+', "--seconds $([int] $Matches[1] * $Stage.Slowness)"
        }
        $parameters = @{
            FilePath = 'cmd.exe'
            ArgumentList = "/d /c $line"
            WorkingDirectory = $Stage.Folder
            NoNewWindow = $true
            PassThru = $true
            RedirectStandardError = Join-Path $Stage.Folder "$Log-$number.errors.log"
        }
        $process = Start-Process @parameters
        # Without this, Windows PowerShell does not keep the exit code.
        $null = $process.Handle
        @{ Name = "$Log-$number"; Process = $process }
    }
}

# Waits for a command line that was started, which must end on its own and succeed.
function Wait-Line($Stage, $Line) {
    $code = -1
    if ($Line.Process.WaitForExit(60000 * $Stage.Slowness)) {
        $Line.Process.WaitForExit()
        $code = $Line.Process.ExitCode
    } else {
        # Ends the command prompt and the program that it runs.
        [void] (Invoke-Program $Stage "$($Line.Name)-kill" 'taskkill.exe' "/f /t /pid $($Line.Process.Id)")
    }
    Add-Check $Stage "exit code of $($Line.Name)" 0 $code
}
