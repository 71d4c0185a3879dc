# Records the state of the machine, and checks that it loads test-signed drivers.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'machine' $Kit $Out {
    param($Stage)
    $system = Get-CimInstance -ClassName Win32_OperatingSystem
    $version = Get-ItemProperty -LiteralPath 'HKLM:\SOFTWARE\Microsoft\Windows NT\CurrentVersion'
    $control = Get-ItemProperty -LiteralPath 'HKLM:\SYSTEM\CurrentControlSet\Control'
    $guard = Get-CimInstance -Namespace 'root\Microsoft\Windows\DeviceGuard' -ClassName Win32_DeviceGuard -ErrorAction SilentlyContinue
    $secure = 'unknown'
    # The cmdlet fails on machines without UEFI.
    try { $secure = [string] (Confirm-SecureBootUEFI) } catch { $secure = $_.Exception.Message }
    $integrity = $false
    # 2 is memory integrity (HVCI).
    if ($guard) { $integrity = @($guard.SecurityServicesRunning) -contains 2 }
    $identity = [Security.Principal.WindowsIdentity]::GetCurrent()
    $principal = New-Object Security.Principal.WindowsPrincipal $identity
    $elevated = $principal.IsInRole([Security.Principal.WindowsBuiltInRole]::Administrator)
    $machine = @{
        caption = $system.Caption
        build = $system.BuildNumber
        revision = $version.UBR
        edition = $version.EditionID
        architecture = $env:PROCESSOR_ARCHITECTURE
        processors = [Environment]::ProcessorCount
        memory_integrity = $integrity
        secure_boot = $secure
        start_options = $control.SystemStartOptions
        elevated = $elevated
        powershell = $PSVersionTable.PSVersion.ToString()
    }
    Write-Json (Join-Path $Stage.Folder 'machine.json') $machine
    # The options with which Windows was started; bcdedit shows those for the next start.
    $signing = $control.SystemStartOptions -match 'TESTSIGNING'
    Add-Check $Stage 'test signing is on' $true $signing
    Add-Check $Stage 'elevated' $true $elevated
    Add-Check $Stage 'build' '19041 or later' $system.BuildNumber ([int] $system.BuildNumber -ge 19041)
    [void] (Invoke-Program $Stage 'bcdedit' 'bcdedit.exe' '/enum {current}')
    [void] (Invoke-Program $Stage 'verifier' 'verifier.exe' '/querysettings')
    [void] (Invoke-Program $Stage 'sessions' 'logman.exe' 'query -ets')
}
