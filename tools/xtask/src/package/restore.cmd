@echo off
rem Run this from an elevated prompt after the driver was uninstalled. It undoes prepare.cmd.
rem All steps run even if one fails. Certificates are identified by their thumbprints, so their
rem names do not matter.
setlocal
set failed=
cd /d "%~dp0"
powershell -NoProfile -Command "$failed = 0; foreach ($file in Get-ChildItem *.cer) { $thumbprint = (Get-PfxCertificate $file.FullName).Thumbprint; foreach ($store in 'Root', 'TrustedPublisher') { certutil -delstore $store $thumbprint; if ($LASTEXITCODE) { $failed = 1 } } }; exit $failed" || set failed=1
bcdedit /set testsigning off || set failed=1
if defined failed goto failed
echo.
echo Done. Restart Windows ("shutdown /r /t 0").
exit /b 0
:failed
echo.
echo Some steps failed: see the messages above. Check that the prompt is elevated.
exit /b 1
