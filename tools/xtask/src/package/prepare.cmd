@echo off
rem Run this once, from an elevated prompt, on a test machine only. It makes the machine load
rem drivers that are signed with test certificates and trust every certificate in this folder:
rem etw_sample_driver.cer in this project's package, WDRLocalTestCert.cer in the WDK's.
setlocal
cd /d "%~dp0"
if not exist *.cer (
    echo Cannot find a certificate ^(*.cer^) next to this script: unpack the whole package.
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
echo Failed. Check that the prompt is elevated and that Secure Boot is off.
exit /b 1
