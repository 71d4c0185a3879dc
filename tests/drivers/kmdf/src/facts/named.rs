//! Calls that a test requests by name: misuse that bugchecks, and settings.

use core::ptr;

use etw_driver_support::{at_irql, made};
use wdk_sys::{WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE};

use super::common::{dereference, object};
use crate::framework::{child_of, wdf};

const NONE: *mut wdk_sys::WDF_OBJECT_ATTRIBUTES = WDF_NO_OBJECT_ATTRIBUTES;

/// A call and its name.
type Named = (&'static str, fn(WDFDEVICE));

const NAMED: &[Named] = &[
    ("hold", |device| wdf!(WdfDeviceSetStaticStopRemove, device, 0)),
    ("release", |device| wdf!(WdfDeviceSetStaticStopRemove, device, 1)),
    ("null-handle", |_| wdf!(WdfObjectDelete, ptr::null_mut())),
    ("wrong-kind", |device| {
        wdf!(WdfSpinLockAcquire, device.cast());
    }),
    ("null-result", |device| {
        let _status = wdf!(WdfObjectCreate, &mut child_of(device.cast()), ptr::null_mut());
    }),
    ("null-buffer", |_| {
        let (_status, _memory) =
            made(|handle| wdf!(WdfMemoryCreatePreallocated, NONE, ptr::null_mut(), 8, handle));
    }),
    ("null-description", |_| {
        let mut init = ptr::null_mut();
        let _made = made(|handle| wdf!(WdfDeviceCreate, &raw mut init, NONE, handle));
    }),
    ("assign-allocated", |_| {
        let mut buffer = ptr::null_mut();
        let pool = wdk_sys::_POOL_TYPE::NonPagedPoolNx;
        let (_, memory) =
            made(|handle| wdf!(WdfMemoryCreate, NONE, pool, 0, 8, handle, &raw mut buffer));
        let _status = wdf!(WdfMemoryAssignBuffer, memory, buffer, 8);
    }),
    ("too-many-dereferences", |device| dereference(object(&mut child_of(device.cast())).1)),
    ("no-lock", |device| {
        wdf!(WdfObjectAcquireLock, object(&mut child_of(device.cast())).1);
    }),
    ("recursive-lock", |device| {
        for _ in 0..2 {
            wdf!(WdfObjectAcquireLock, device.cast());
        }
    }),
    ("wait-lock-twice", |_| {
        let (_, lock) = made(|handle| wdf!(WdfWaitLockCreate, NONE, handle));
        for _ in 0..2 {
            let _status = wdf!(WdfWaitLockAcquire, lock, ptr::null_mut());
        }
    }),
    ("lock-of-another", |_| {
        let (_, lock) = made(|handle| wdf!(WdfSpinLockCreate, NONE, handle));
        at_irql(2, || wdf!(WdfSpinLockRelease, lock));
    }),
];

/// Runs the call with this name.
pub fn run(device: WDFDEVICE, name: &[u8]) {
    if let Some((_, run)) = NAMED.iter().find(|(known, _)| known.as_bytes() == name) {
        run(device);
    }
}
