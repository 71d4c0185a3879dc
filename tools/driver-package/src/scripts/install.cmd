@echo off
rem Run from an elevated prompt: installs the driver@MADE@.
setlocal
cd /d "%~dp0"
@INSTALL@
