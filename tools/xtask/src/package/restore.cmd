@echo off
rem From an elevated prompt, after the driver is uninstalled: undoes what prepare.cmd did.
rem Certificates are removed by their thumbprints, whatever their names are.
setlocal
cd /d "%~dp0"
powershell -NoProfile -Command "$failed = 0; foreach ($file in Get-ChildItem *.cer) { $thumbprint = (Get-PfxCertificate $file.FullName).Thumbprint; foreach ($store in 'Root', 'TrustedPublisher') { certutil -delstore $store $thumbprint; if ($LASTEXITCODE) { $failed = 1 } } }; exit $failed" || goto failed
bcdedit /set testsigning off || goto failed
echo.
echo Done. Start Windows anew ("shutdown /r /t 0").
exit /b 0
:failed
echo.
echo Failed. Is the prompt elevated?
exit /b 1
