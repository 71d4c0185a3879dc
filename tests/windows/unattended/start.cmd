@echo off
rem Runs as SYSTEM at each start of Windows: starts the agent of the kit, if a CD has one. Without a kit,
rem the first start after setup.cmd ends the installation: it checks the settings that must be in force, and
rem turns Windows off. The disk is then a base image.
setlocal
if not defined ETW_PORT set ETW_PORT=COM1
if not defined ETW_HOME set ETW_HOME=%SystemDrive%\wdk-etw
set KIT=
set TRIES=0
:look
for %%d in (D E F G H I J K L M N O P) do if exist %%d:\wdk-etw-kit.json set KIT=%%d:
if defined KIT goto found
if not exist "%ETW_HOME%\settled" goto settle
rem Drives get their letters a little after the start.
set /a TRIES+=1
if %TRIES% GEQ 12 goto end
ping -n 6 127.0.0.1 >nul
goto look
:found
call %KIT%\agent\agent.cmd %KIT%
goto end

rem Removed features may need more starts: at most three, because some request a start forever.
:settle
set COUNT=0
if exist "%ETW_HOME%\starts" set /p COUNT=<"%ETW_HOME%\starts"
set /a COUNT+=1
>"%ETW_HOME%\starts" echo %COUNT%
reg query "HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending" >nul 2>&1
if errorlevel 1 goto options
if %COUNT% GTR 3 goto options
call :say setup servicing needs another start
call shutdown /r /f /t 0
goto end
:options
rem The options with which Windows was started; bcdedit shows those for the next start.
set OPTIONS=
for /f "tokens=2,*" %%a in ('reg query HKLM\SYSTEM\CurrentControlSet\Control /v SystemStartOptions 2^>nul') do set OPTIONS=%%b
if not defined OPTIONS goto unsigned
if "%OPTIONS:TESTSIGNING=%"=="%OPTIONS%" goto unsigned
>"%ETW_HOME%\settled" echo settled
for /f "delims=" %%v in ('ver') do call :say installed %%v
call shutdown /s /f /t 0
goto end
:unsigned
call :say error test signing is not on, though bcdedit has set it; is Secure Boot on?
call shutdown /s /f /t 0
goto end

:say
rem The place comes first: in `1>COM1`, the number would be a handle.
>%ETW_PORT% echo wdk-etw: %*
goto :eof

:end
endlocal
