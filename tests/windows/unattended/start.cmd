@echo off
rem Runs as SYSTEM at each start of Windows: starts the agent of the kit, if a CD has one.
setlocal
set KIT=
set TRIES=0
:look
for %%d in (D E F G H I J K L M N O P) do if exist %%d:\wdk-etw-kit.json set KIT=%%d:
if defined KIT goto found
rem Drives get their letters a little after the start.
set /a TRIES+=1
if %TRIES% GEQ 12 goto end
ping -n 6 127.0.0.1 >nul
goto look
:found
call %KIT%\agent\agent.cmd %KIT%
:end
endlocal
