@echo off
rem Once, from an elevated prompt, on a machine for tests only: from now on it loads drivers
rem that are signed with test certificates, and trusts the one in this folder.
setlocal
cd /d "%~dp0"
certutil -addstore Root etw_sample_driver.cer || goto failed
certutil -addstore TrustedPublisher etw_sample_driver.cer || goto failed
bcdedit /set testsigning on || goto failed
echo.
echo Done. Start Windows anew ("shutdown /r /t 0"), then run install.cmd.
exit /b 0
:failed
echo.
echo Failed. Is the prompt elevated, and Secure Boot off?
exit /b 1
