@echo off
rem Run from an elevated prompt: removes the driver's devices and the driver.
setlocal
cd /d "%~dp0"
powershell -NoProfile -ExecutionPolicy Bypass -File uninstall.ps1 -Inf "@INF@" -HardwareId "@HARDWARE_IDS@" || exit /b 1
