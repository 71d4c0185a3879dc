@echo off
rem Runs as SYSTEM at each start of Windows: starts the agent of the kit, if a CD has one.
setlocal
if not defined ETW_PORT set ETW_PORT=COM1
set TRIES=0
:look
for %%d in (D E F G H I J K L M N O P) do if exist %%d:\wdk-etw-kit.json if exist %%d:\agent\agent.cmd (
    call %%d:\agent\agent.cmd %%d:
    goto end
)
rem Drives get their letters a little after the start.
set /a TRIES+=1
if %TRIES% LSS 12 (
    ping -n 6 127.0.0.1 >nul
    goto look
)
:end
endlocal
