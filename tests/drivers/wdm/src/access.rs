//! Checks an opener's access to the device against the device's own descriptor.

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use etw_driver_support::nt;
use wdk_sys::{
    _MODE::UserMode, DEVICE_OBJECT, GENERIC_MAPPING, IO_STACK_LOCATION, NTSTATUS,
    PSECURITY_DESCRIPTOR, STATUS_SUCCESS,
};

/// The rights to check: the right to read data, and the right to change the descriptor's list.
const WANTED: [u32; 2] = [0x1, 0x4_0000];

/// The result of the last open: for each right, the granted access and the status.
static RESULTS: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// Checks the access of the process that opens the device.
pub fn check(device: *mut DEVICE_OBJECT, location: &IO_STACK_LOCATION) {
    let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
    let mut is_allocated = 0;
    let status =
        nt!(ObGetObjectSecurity, device.cast(), &raw mut descriptor, &raw mut is_allocated);
    if status != STATUS_SUCCESS {
        return;
    }
    // SAFETY: the location belongs to a create request.
    let create = unsafe { location.Parameters.Create };
    // SAFETY: a create request has a security context.
    let state = unsafe { (*create.SecurityContext).AccessState };
    // SAFETY: the security context has an access state.
    let subject = unsafe { &raw mut (*state).SubjectSecurityContext };
    for (slots, wanted) in RESULTS.chunks_exact(2).zip(WANTED) {
        let mut mapping = GENERIC_MAPPING::default();
        let (mut granted, mut status): (u32, NTSTATUS) = (0, 0);
        nt!(
            SeAccessCheck,
            descriptor,
            subject,
            0,
            wanted,
            0,
            ptr::null_mut(),
            &raw mut mapping,
            UserMode as i8,
            &raw mut granted,
            &raw mut status,
        );
        for (slot, value) in slots.iter().zip([granted, status.cast_unsigned()]) {
            slot.store(value, Ordering::Relaxed);
        }
    }
    nt!(ObReleaseObjectSecurity, descriptor, is_allocated);
}

/// Returns the results of [`check`].
pub fn results() -> [u32; 4] {
    let mut all = [0; 4];
    for (to, from) in all.iter_mut().zip(&RESULTS) {
        *to = from.load(Ordering::Relaxed);
    }
    all
}
