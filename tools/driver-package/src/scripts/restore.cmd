@echo off
rem Run from an elevated prompt after the driver is uninstalled: undoes prepare.cmd.
rem Every step runs even if an earlier one fails. Certificates are removed by their
rem thumbprints, whatever their names are.
setlocal
set failed=
cd /d "%~dp0"
powershell -NoProfile -Command "$failed = 0; foreach ($file in Get-ChildItem *.cer) { $thumbprint = (Get-PfxCertificate $file.FullName).Thumbprint; foreach ($store in 'Root', 'TrustedPublisher') { certutil -delstore $store $thumbprint; if ($LASTEXITCODE) { $failed = 1 } } }; exit $failed" || set failed=1
bcdedit /set testsigning off || set failed=1
if defined failed goto failed
echo.
echo Done. Restart Windows ("shutdown /r /t 0").
echo If you suspended BitLocker, resume it afterwards: manage-bde -protectors -enable %SystemDrive%
exit /b 0
:failed
echo.
echo Some steps failed, see above. Use an elevated prompt.
exit /b 1
