@echo off
rem From an elevated prompt: installs the driver, makes its device, and says how it is.
setlocal
cd /d "%~dp0"
etw-sample-client install etw_sample_driver.inf || exit /b 1
etw-sample-client status
