@echo off
rem Once, from an elevated prompt, on a machine for tests only: from now on it loads drivers
rem that are signed with test certificates, and trusts every certificate in this folder.
rem "call" only serves tests, which replace the programs by batch files.
setlocal
cd /d "%~dp0"
if not exist *.cer (
    echo No certificate ^(*.cer^) in this folder: unpack the whole package.
    exit /b 1
)
rem The exit code is 0 only if the drive is protected. Windows without BitLocker lacks the program.
call manage-bde -status %SystemDrive% -protectionaserrorlevel >nul 2>&1
if not errorlevel 1 goto protected
rem Windows refuses this if Secure Boot is on, so nothing else has been changed before.
call bcdedit /set testsigning on
if errorlevel 1 goto refused
for %%c in (*.cer) do (
    call certutil -addstore Root "%%c"
    if errorlevel 1 goto failed
    call certutil -addstore TrustedPublisher "%%c"
    if errorlevel 1 goto failed
)
echo.
echo Done. Restart Windows ("shutdown /r /t 0"), then run install.cmd.
exit /b 0
:protected
echo BitLocker or device encryption protects %SystemDrive%. After this change of the boot settings, and after
echo turning Secure Boot off, Windows would ask for the recovery key at its next start. Keep the key, and
echo suspend the protection:
echo     manage-bde -protectors -get %SystemDrive%
echo     manage-bde -protectors -disable %SystemDrive% -RebootCount 0
echo Then run prepare.cmd again. Nothing was changed.
exit /b 1
:refused
echo.
echo Failed; nothing was changed. Use an elevated prompt, and turn Secure Boot off.
exit /b 1
:failed
echo.
echo Failed: test signing is on, but the certificate is not trusted. restore.cmd undoes what was done.
exit /b 1
