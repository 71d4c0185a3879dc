//! The behavior of Microsoft's framework source for objects, as named facts. The names are from
//! `docs/reference/kmdf-objects.md`, and the values are from the source.

mod common;
mod device;
mod memory;
mod named;
mod objects;
mod registry;
mod timers;

use core::{ptr, slice, sync::atomic::Ordering::Relaxed};

use wdk_sys::{PVOID, STATUS_SUCCESS, ULONG, WDFDEVICE, WDFREQUEST};

use crate::{
    commands,
    framework::{complete, wdf},
};

/// Checks the facts, or runs the call that the request's input names.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    if code != commands::FACTS {
        return false;
    }
    let mut buffer: PVOID = ptr::null_mut();
    let mut length = 0;
    let status = wdf!(WdfRequestRetrieveInputBuffer, request, 1, &raw mut buffer, &raw mut length);
    if status == STATUS_SUCCESS {
        // SAFETY: the framework returned the buffer with this length.
        named::run(device, unsafe { slice::from_raw_parts(buffer.cast(), length) });
    } else {
        objects::check(device);
        timers::check(device);
        memory::check(device);
        registry::check(device);
        device::check(device);
        wdk::println!("done {}", common::COUNT.load(Relaxed));
    }
    complete(request, STATUS_SUCCESS);
    true
}
