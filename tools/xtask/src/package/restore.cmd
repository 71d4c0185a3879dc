@echo off
rem From an elevated prompt, after the driver is uninstalled: undoes what prepare.cmd did.
rem Every step is tried, whatever became of the one before. Certificates are removed by their
rem thumbprints, whatever their names are.
setlocal
set failed=
cd /d "%~dp0"
powershell -NoProfile -Command "$failed = 0; foreach ($file in Get-ChildItem *.cer) { $thumbprint = (Get-PfxCertificate $file.FullName).Thumbprint; foreach ($store in 'Root', 'TrustedPublisher') { certutil -delstore $store $thumbprint; if ($LASTEXITCODE) { $failed = 1 } } }; exit $failed" || set failed=1
bcdedit /set testsigning off || set failed=1
if defined failed goto failed
echo.
echo Done. Start Windows anew ("shutdown /r /t 0").
exit /b 0
:failed
echo.
echo Not everything was undone: see above. Is the prompt elevated?
exit /b 1
