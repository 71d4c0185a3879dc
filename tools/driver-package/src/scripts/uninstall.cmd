@echo off
rem Run from an elevated prompt: removes the driver@REMOVED@.
setlocal
cd /d "%~dp0"
@UNINSTALL@
