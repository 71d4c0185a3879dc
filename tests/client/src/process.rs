//! The process's elevation, its use of Wine, and Ctrl+C.

use std::{
    ptr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use windows_sys::{
    Win32::{
        Foundation::{CloseHandle, HANDLE},
        Security::{GetTokenInformation, TOKEN_ELEVATION, TOKEN_QUERY, TokenElevation},
        System::{
            Console::SetConsoleCtrlHandler,
            LibraryLoader::{GetModuleHandleW, GetProcAddress},
            Threading::{GetCurrentProcess, OpenProcessToken},
        },
    },
    core::BOOL,
};

use crate::{
    error::{Failure, Win32Error},
    wide::wide,
};

/// Returns true if this process runs with an administrator's full rights.
pub fn is_elevated() -> Result<bool, Win32Error> {
    // SAFETY: the call has no preconditions.
    let process = unsafe { GetCurrentProcess() };
    let mut token: HANDLE = ptr::null_mut();
    // SAFETY: the out-parameter is a local.
    if unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(Win32Error::last("OpenProcessToken"));
    }
    let mut elevation = TOKEN_ELEVATION::default();
    let mut length = 0;
    // SAFETY: the out-parameters are locals, and the size is the structure's.
    let found = unsafe {
        GetTokenInformation(
            token,
            TokenElevation,
            (&raw mut elevation).cast(),
            u32::try_from(size_of::<TOKEN_ELEVATION>()).unwrap_or(0),
            &raw mut length,
        )
    };
    let result = if found == 0 {
        Err(Win32Error::last("GetTokenInformation"))
    } else {
        Ok(elevation.TokenIsElevated != 0)
    };
    // SAFETY: the handle was opened above, and is used nowhere else.
    unsafe { CloseHandle(token) };
    result
}

/// Returns an error on Wine, which has no ETW and loads no drivers: its routines either report
/// success without doing anything or end the process.
pub fn require_windows() -> Result<(), Failure> {
    let ntdll = wide("ntdll.dll");
    // SAFETY: the name ends with a NUL.
    let ntdll = unsafe { GetModuleHandleW(ntdll.as_ptr()) };
    // SAFETY: every process has that module, and the name ends with a NUL.
    let version = unsafe { GetProcAddress(ntdll, c"wine_get_version".as_ptr().cast()) };
    if version.is_some() {
        return Err(Failure::NotWindows);
    }
    Ok(())
}

/// Set once Ctrl+C has been pressed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

unsafe extern "system" fn interrupt(_event: u32) -> BOOL {
    INTERRUPTED.store(true, Ordering::Relaxed);
    1
}

/// Makes Ctrl+C end [`wait`] instead of the process.
pub fn catch_interrupts() -> Result<(), Win32Error> {
    // SAFETY: the routine touches an atomic only.
    if unsafe { SetConsoleCtrlHandler(Some(interrupt), 1) } == 0 {
        return Err(Win32Error::last("SetConsoleCtrlHandler"));
    }
    Ok(())
}

/// Waits until Ctrl+C is pressed, the given time has passed, or `over` returns true.
pub fn wait(seconds: Option<u64>, over: impl Fn() -> bool) {
    const STEP: Duration = Duration::from_millis(100);
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    while !INTERRUPTED.load(Ordering::Relaxed)
        && !over()
        && end.is_none_or(|end| Instant::now() < end)
    {
        thread::sleep(STEP);
    }
}
