//! The process's elevation, the detection of Wine, and Ctrl+C.

use std::{
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use windows_sys::{
    Win32::{
        Foundation::{CloseHandle, HANDLE},
        Security::{GetTokenInformation, TOKEN_ELEVATION, TOKEN_QUERY, TokenElevation},
        System::{
            Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler},
            LibraryLoader::{GetModuleHandleW, GetProcAddress},
            Threading::{GetCurrentProcess, OpenProcessToken},
        },
    },
    core::BOOL,
};

use crate::{
    error::{SessionError, Win32Error},
    wide::wide,
};

/// Returns true if this process runs with an administrator's full rights.
///
/// # Errors
///
/// Fails if Windows does not provide the information.
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

/// Returns an error on Wine, which has no ETW and loads no drivers: its routines either do nothing
/// and report success, or end the process. In tests, the mock counts as ETW.
///
/// # Errors
///
/// Fails on Wine.
pub fn require_windows() -> Result<(), SessionError> {
    let ntdll = wide("ntdll.dll");
    // SAFETY: the name ends with a NUL.
    let ntdll = unsafe { GetModuleHandleW(ntdll.as_ptr()) };
    // SAFETY: every process has that module, and the name ends with a NUL.
    let version = unsafe { GetProcAddress(ntdll, c"wine_get_version".as_ptr().cast()) };
    if version.is_some() && !cfg!(test) {
        return Err(SessionError::NotWindows);
    }
    Ok(())
}

/// Set once Ctrl+C has been pressed, or the console is about to close.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The number of [`Interrupts`] that exist.
static CAUGHT: AtomicUsize = AtomicUsize::new(0);

/// The interval at which a condition is checked.
const STEP: Duration = Duration::from_millis(100);

/// While a value of this type exists, Ctrl+C ends [`wait`] instead of the process.
#[must_use = "Ctrl+C ends the process once this value is dropped"]
#[derive(Debug)]
pub struct Interrupts(());

impl Drop for Interrupts {
    fn drop(&mut self) {
        CAUGHT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Handles Ctrl+C, Ctrl+Break and the closing of the console, on a separate thread.
unsafe extern "system" fn interrupt(event: u32) -> BOOL {
    /// Windows ends the process 5 seconds after the console is closed.
    const STEPS: u32 = 45;
    if CAUGHT.load(Ordering::Relaxed) == 0 {
        // The next handler ends the process.
        return 0;
    }
    INTERRUPTED.store(true, Ordering::Relaxed);
    if ![CTRL_C_EVENT, CTRL_BREAK_EVENT].contains(&event) {
        // The console closes or the user signs out: the process ends when this routine returns, so
        // it waits until the session has been stopped.
        let is_caught = |_: &u32| CAUGHT.load(Ordering::Relaxed) != 0;
        (0..STEPS).take_while(is_caught).for_each(|_| thread::sleep(STEP));
    }
    1
}

/// Makes Ctrl+C and the closing of the console end [`wait`] instead of the process.
///
/// # Errors
///
/// Fails if Windows rejects the handler.
pub fn catch_interrupts() -> Result<Interrupts, Win32Error> {
    // SAFETY: the routine touches atomics only.
    if unsafe { SetConsoleCtrlHandler(Some(interrupt), 1) } == 0 {
        return Err(Win32Error::last("SetConsoleCtrlHandler"));
    }
    CAUGHT.fetch_add(1, Ordering::Relaxed);
    Ok(Interrupts(()))
}

/// Waits until Ctrl+C is pressed, the given time has passed, or `over` returns true.
pub fn wait(seconds: Option<u64>, over: impl Fn() -> bool) {
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    while !INTERRUPTED.load(Ordering::Relaxed)
        && !over()
        && end.is_none_or(|end| Instant::now() < end)
    {
        thread::sleep(STEP);
    }
}
