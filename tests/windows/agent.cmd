@echo off
rem Runs the stages of a kit in order, across as many starts of Windows as they need.
rem
rem     agent.cmd KIT
rem
rem KIT is the drive of the CD. The plan is agent\plan.txt: number, leg, stage, minutes, 1 for a risky
rem stage, script. Results go to the disk that has the tag wdk-etw-results.tag. The place in the plan
rem is kept in files, NUMBER.begun, NUMBER.code and NUMBER.ended, so that a start after a crash continues
rem with the next stage. Each step is reported on the serial port.
rem
rem Tests set ETW_PORT, ETW_PLACE, ETW_OUT, ETW_POWERSHELL, ETW_TICKS, ETW_DUMP_ROUNDS and ETW_SYSTEM.
setlocal enableextensions disabledelayedexpansion
if "%~1"=="run" goto run
set KIT=%~1
if not defined ETW_PORT set ETW_PORT=COM1
if not defined ETW_PLACE set ETW_PLACE=%SystemDrive%\wdk-etw\place
if not defined ETW_POWERSHELL set ETW_POWERSHELL=powershell -NoProfile -ExecutionPolicy Bypass -File
if not defined ETW_SYSTEM set ETW_SYSTEM=%SystemRoot%
rem Rounds of waiting in a minute: each takes 5 seconds.
if not defined ETW_TICKS set ETW_TICKS=12
rem The factor by which everything takes longer than with virtualization; the plan's minutes include it.
set SLOWNESS=1
if exist "%KIT%\agent\slowness.txt" set /p SLOWNESS=<"%KIT%\agent\slowness.txt"
rem Rounds in which a crash dump must appear, and as many in which it must be copied: five minutes.
if not defined ETW_DUMP_ROUNDS set /a ETW_DUMP_ROUNDS=5*%ETW_TICKS%*%SLOWNESS%
call :say boot
if not exist "%ETW_PLACE%" md "%ETW_PLACE%"

set TRIES=0
:look
if not defined ETW_OUT for %%d in (C D E F G H I J K L M N O P Q R S T U V W X Y Z) do if exist %%d:\wdk-etw-results.tag set ETW_OUT=%%d:
if defined ETW_OUT goto stages
set /a TRIES+=1
if %TRIES% LSS 12 (
    call :pause
    goto look
)
call :say error no disk has the tag wdk-etw-results.tag
goto off

:stages
set STOP=
for /f "usebackq tokens=1-6" %%a in ("%KIT%\agent\plan.txt") do if not defined STOP call :stage %%a %%b %%c %%d %%e %%f
call :flush
if defined STOP (
    call :say reboot
    call shutdown /r /f /t 0
    goto end
)
call :say finished
:off
call shutdown /s /f /t 0
goto end

rem :stage NUMBER LEG STAGE MINUTES RISKY SCRIPT
:stage
if exist "%ETW_PLACE%\%1.ended" goto :eof
if exist "%ETW_PLACE%\%1.begun" goto lost
set LEG=%ETW_OUT%\%2
if not exist "%LEG%\%3" md "%LEG%\%3"
>"%ETW_PLACE%\%1.begun" echo begun
call :say begin %2 %3
if "%5"=="1" call :flush
rem The stage runs in parallel with this loop, which tells the host that Windows is alive.
start "" /b cmd /c call "%~f0" run %1 "%KIT%\%6" "%LEG%" "%3"
set /a LEFT=%4*%ETW_TICKS%
:wait
if exist "%ETW_PLACE%\%1.code" goto ended
set /a LEFT-=1
if %LEFT% LSS 0 goto late
call :say alive %LEFT%
call :pause
goto wait

:ended
set CODE=
set /p CODE=<"%ETW_PLACE%\%1.code"
>"%ETW_PLACE%\%1.ended" echo %CODE%
call :room
call :say end %2 %3 %CODE%
if "%CODE%"=="3010" set STOP=1
goto :eof

:late
call taskkill /f /t /im powershell.exe >nul 2>&1
>"%ETW_PLACE%\%1.ended" echo timeout
call :say timeout %2 %3
goto :eof

rem Windows restarted in the stage: after a crash, its dump is saved a little later. The stages of the
rem leg read the crash from crashed.txt.
:lost
call :say lost %2 %3
>"%ETW_PLACE%\%1.ended" echo lost
if not exist "%ETW_OUT%\%2\%3" md "%ETW_OUT%\%2\%3"
>>"%ETW_OUT%\%2\crashed.txt" echo %3
set ROUND=0
:dump
if exist "%ETW_SYSTEM%\MEMORY.DMP" goto copies
set /a ROUND+=1
if %ROUND% GTR %ETW_DUMP_ROUNDS% (
    call :say error Windows restarted in the stage %3 of the leg %2 and left no crash dump
    goto small
)
call :say alive %ROUND%
call :pause
goto dump
:copies
set ROUND=0
:copy
copy /y "%ETW_SYSTEM%\MEMORY.DMP" "%ETW_OUT%\%2\%3\MEMORY.DMP" >nul 2>&1
if not errorlevel 1 goto copied
rem The dump is still being written, or there is no space.
set /a ROUND+=1
if %ROUND% LEQ %ETW_DUMP_ROUNDS% (
    call :say alive %ROUND%
    call :pause
    goto copy
)
call :say error the crash dump of the stage %3 of the leg %2 could not be copied
call :room
goto small
:copied
rem The next crash has its own dump.
del "%ETW_SYSTEM%\MEMORY.DMP" >nul 2>&1
call :say dump %2 %3 MEMORY.DMP
:small
if exist "%ETW_SYSTEM%\Minidump\*.dmp" copy /y "%ETW_SYSTEM%\Minidump\*.dmp" "%ETW_OUT%\%2\%3\" >nul 2>&1
goto :eof

rem Runs a script: run NUMBER SCRIPT OUT STAGE. A script may serve several stages.
:run
set WDK_ETW_STAGE=%~5
%ETW_POWERSHELL% "%~3" -Kit %KIT%\ -Out "%~4" >"%~4\%~5\output.txt" 2>&1
set CODE=%ERRORLEVEL%
>"%ETW_PLACE%\%2.tmp" echo %CODE%
ren "%ETW_PLACE%\%2.tmp" %2.code
goto end

rem Tells the host if the results disk is full.
:room
copy /y "%~f0" "%ETW_OUT%\room.tmp" >nul 2>&1
if errorlevel 1 call :say full
del "%ETW_OUT%\room.tmp" >nul 2>&1
goto :eof

rem Writes everything to the disks.
:flush
if defined ETW_OUT powershell -NoProfile -Command "Write-VolumeCache %ETW_OUT:~0,1%; Write-VolumeCache %SystemDrive:~0,1%" >nul 2>&1
goto :eof

:pause
if defined ETW_PAUSE (call %ETW_PAUSE%) else ping -n 6 127.0.0.1 >nul
goto :eof

:say
rem The place comes first: in `1>COM1`, the number would be a handle.
>%ETW_PORT% echo wdk-etw: %*
goto :eof

:end
endlocal
