@echo off
rem Run from an elevated prompt: installs the driver, creates its device, and shows its state.
setlocal
cd /d "%~dp0"
etw-sample-client install etw_sample_driver.inf || exit /b 1
etw-sample-client status
