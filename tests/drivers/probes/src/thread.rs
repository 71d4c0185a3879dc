//! The system thread that performs an operation.

use core::ptr;

use wdk_sys::{
    DRIVER_OBJECT, HANDLE, NT_SUCCESS, NTSTATUS, OBJ_KERNEL_HANDLE, OBJECT_ATTRIBUTES, PVOID,
    STATUS_NOT_SUPPORTED,
};

use crate::{context::check, system};

/// Starts a system thread, which keeps this object's driver loaded. The routine must call [`end`]
/// last. IRQL: `PASSIVE_LEVEL`.
pub fn start(
    driver: *mut DRIVER_OBJECT,
    routine: unsafe extern "C" fn(PVOID),
) -> Result<(), NTSTATUS> {
    /// `THREAD_ALL_ACCESS`.
    const ALL_ACCESS: u32 = 0x001F_FFFF;
    let (Some(create), Some(_), Some(close)) =
        (system::create_system_thread(), system::terminate_system_thread(), system::close())
    else {
        return Err(STATUS_NOT_SUPPORTED);
    };
    // The handle belongs to the system, not to the requesting process.
    let mut attributes = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        Attributes: OBJ_KERNEL_HANDLE,
        ..OBJECT_ATTRIBUTES::default()
    };
    let attributes: *mut OBJECT_ATTRIBUTES = &raw mut attributes;
    let mut thread: HANDLE = ptr::null_mut();
    // SAFETY: the driver object is this driver's, and the thread keeps the driver loaded. The
    // out-parameter is a local.
    let status = unsafe {
        create(
            driver.cast(),
            &raw mut thread,
            ALL_ACCESS,
            attributes.cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            routine,
            ptr::null_mut(),
        )
    };
    check(status)?;
    // SAFETY: the handle was created above.
    let closed = unsafe { close(thread) };
    debug_assert!(NT_SUCCESS(closed), "the handle is valid");
    Ok(())
}

/// Ends the current thread, which [`start`] has started.
pub fn end() {
    if let Some(terminate) = system::terminate_system_thread() {
        // SAFETY: this driver created this thread.
        let _status = unsafe { terminate(0) };
    }
}
