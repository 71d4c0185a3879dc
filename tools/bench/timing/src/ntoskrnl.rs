//! The routines of ntoskrnl.exe that the image imports.
//!
//! In Windows' calling convention, the caller removes the arguments, so a function without
//! parameters can stand for routines with any number of parameters.

use std::{
    ffi::c_void,
    mem, process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// An enable callback (`ETWENABLECALLBACK`).
type EnableCallback =
    unsafe extern "win64" fn(*const c_void, u32, u8, u64, u64, *const c_void, *mut c_void);

/// `EVENT_CONTROL_CODE_DISABLE_PROVIDER`.
const DISABLE: u32 = 0;

/// `EVENT_CONTROL_CODE_ENABLE_PROVIDER`.
const ENABLE: u32 = 1;

/// A provider's registration.
#[derive(Clone, Copy)]
pub struct Registration {
    callback: EnableCallback,
    context: *mut c_void,
}

// SAFETY: the context is a provider's address, which is valid on every thread.
unsafe impl Send for Registration {}
// SAFETY: as above; threads share the provider itself.
unsafe impl Sync for Registration {}

impl Registration {
    /// Notifies the provider that sessions want all its events, or none.
    ///
    /// # Safety
    ///
    /// The image that registered the provider must be mapped.
    pub unsafe fn notify(&self, enabled: bool) {
        let (code, level, any) = if enabled { (ENABLE, 5, 0xFF) } else { (DISABLE, 0, 0) };
        let none = std::ptr::null();
        // SAFETY: the caller guarantees that the callback's code exists. The parameters are those
        // that ETW passes.
        unsafe { (self.callback)(none, code, level, any, 0, none, self.context) };
    }
}

/// The registrations that [`take_registrations`] has not returned yet.
static REGISTRATIONS: Mutex<Vec<Registration>> = Mutex::new(Vec::new());

/// The number of calls of [`counted_write`].
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Returns the registrations since the previous call.
pub fn take_registrations() -> Vec<Registration> {
    mem::take(&mut *REGISTRATIONS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns the number of calls of [`counted_write`] since this function was last called.
pub fn take_writes() -> u64 {
    WRITES.swap(0, Ordering::Relaxed)
}

/// A write that does nothing and succeeds.
pub const extern "win64" fn empty_write() -> u32 {
    0
}

/// A write that is counted and succeeds.
pub extern "win64" fn counted_write() -> u32 {
    WRITES.fetch_add(1, Ordering::Relaxed);
    0
}

/// `EtwRegister`.
unsafe extern "win64" fn register(
    _id: *const c_void,
    callback: Option<EnableCallback>,
    context: *mut c_void,
    handle: *mut u64,
) -> u32 {
    REGISTRATIONS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .extend(callback.map(|callback| Registration { callback, context }));
    // SAFETY: the image passes the address of its handle.
    unsafe { handle.write(1) };
    0
}

/// A routine that succeeds.
const extern "win64" fn succeed() -> u32 {
    0
}

/// A routine that the loops never call.
extern "win64" fn unexpected() -> u32 {
    eprintln!("error: a loop of the image called a routine other than ETW's");
    process::abort()
}

/// Returns the address to which an import is bound. `write` is the routine for writes.
pub fn routine(name: &str, write: extern "win64" fn() -> u32) -> u64 {
    let routine = match name {
        "EtwRegister" => register as *const (),
        "EtwWrite" | "EtwWriteEx" | "EtwWriteTransfer" => write as *const (),
        "EtwUnregister"
        | "EtwSetInformation"
        | "EtwActivityIdControl"
        | "KeGetCurrentIrql"
        | "PsGetCurrentThreadId" => succeed as *const (),
        _ => unexpected as *const (),
    };
    routine as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_bound_to_the_given_routine_and_others_are_not() {
        for name in ["EtwWrite", "EtwWriteEx", "EtwWriteTransfer"] {
            assert_eq!(routine(name, counted_write), counted_write as *const () as u64);
        }
        assert_eq!(routine("EtwRegister", counted_write), register as *const () as u64);
        assert_eq!(routine("Other", counted_write), unexpected as *const () as u64);
    }
}
