@echo off
rem Once, from an elevated prompt, on a machine for tests only: from now on it loads drivers
rem that are signed with test certificates, and trusts every certificate in this folder.
setlocal
cd /d "%~dp0"
if not exist *.cer (
    echo No certificate ^(*.cer^) in this folder: unpack the whole package.
    exit /b 1
)
for %%c in (*.cer) do (
    certutil -addstore Root "%%c" || goto failed
    certutil -addstore TrustedPublisher "%%c" || goto failed
)
bcdedit /set testsigning on || goto failed
echo.
echo Done. Restart Windows ("shutdown /r /t 0"), then run install.cmd.
exit /b 0
:failed
echo.
echo Failed. Use an elevated prompt, and turn Secure Boot off.
exit /b 1
