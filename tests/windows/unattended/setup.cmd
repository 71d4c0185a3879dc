@echo off
rem Prepares a new Windows for tests at its first logon, and restarts it. The changes are then in force;
rem start.cmd, which runs at each start, checks them and turns Windows off.
rem The failure of a step that an edition may not support is noted; any other failure is an error.
setlocal
if not defined ETW_PORT set ETW_PORT=COM1
if not defined ETW_HOME set ETW_HOME=%SystemDrive%\wdk-etw
set FAILED=
call :say setup first-logon

rem Drivers with a test certificate are loaded after the next start.
call :needed bcdedit /set testsigning on
rem After a crash, Windows restarts without questions and repairs.
call :wanted bcdedit /set {current} recoveryenabled no
call :wanted bcdedit /set {current} bootstatuspolicy ignoreallfailures

rem A crash, or the interrupt by which the host ends a hang, leaves a kernel dump.
set CRASH=HKLM\SYSTEM\CurrentControlSet\Control\CrashControl
call :needed reg add %CRASH% /v CrashDumpEnabled /t REG_DWORD /d 2 /f
call :needed reg add %CRASH% /v AutoReboot /t REG_DWORD /d 1 /f
call :needed reg add %CRASH% /v NMICrashDump /t REG_DWORD /d 1 /f
call :needed reg add %CRASH% /v AlwaysKeepMemoryDump /t REG_DWORD /d 1 /f

rem Windows does not sleep, update, or scan files while a test runs.
call :wanted powercfg /change standby-timeout-ac 0
call :wanted powercfg /change monitor-timeout-ac 0
call :wanted powercfg /hibernate off
call :wanted reg add HKLM\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU /v NoAutoUpdate /t REG_DWORD /d 1 /f
call :wanted powershell -NoProfile -Command "if (Get-Command Uninstall-WindowsFeature -ErrorAction SilentlyContinue) { Uninstall-WindowsFeature Windows-Defender } else { Set-MpPreference -DisableRealtimeMonitoring $true }"

rem The agent runs at each start, as SYSTEM, without a logon.
if not exist "%ETW_HOME%" md "%ETW_HOME%"
call :needed copy /y "%~dp0start.cmd" "%ETW_HOME%\start.cmd"
call :needed schtasks /create /tn wdk-etw /sc onstart /ru SYSTEM /rl highest /f /tr "%ETW_HOME%\start.cmd"

if defined FAILED (
    call :say error the preparation of Windows failed: %FAILED%
    call shutdown /s /f /t 0
) else (
    call shutdown /r /f /t 0
)
goto end

:needed
call %* >nul 2>&1
if errorlevel 1 set FAILED=%FAILED% %1 %2 %3 %4;
goto :eof

:wanted
call %* >nul 2>&1
if errorlevel 1 call :say setup %1 %2 %3 could not be run
goto :eof

:say
rem The place comes first: in `1>COM1`, the number would be a handle.
>%ETW_PORT% echo wdk-etw: %*
goto :eof

:end
endlocal
