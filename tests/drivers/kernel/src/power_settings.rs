//! Callbacks for power settings.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicPtr, Ordering},
};

use wdk_sys::{LPCGUID, NTSTATUS, PPOWER_SETTING_CALLBACK, PVOID, ULONG};

use crate::{
    call::{NULL, at, call, pointer, same},
    timers::irql,
};

/// `GUID_ACDC_POWER_SOURCE`, and a setting that no system has.
const SOURCE: [u32; 4] = [0x5D3E_9A59, 0x4B00_E9D5, 0x34FF_BDA6, 0x4865_51FF];
const UNKNOWN: [u32; 4] = [1, 2, 3, 4];

/// The handle of the registration that lasts until the driver is unloaded.
static KEPT: AtomicPtr<c_void> = AtomicPtr::new(NULL);

/// Prints the new value.
unsafe extern "C" fn changed(
    setting: LPCGUID,
    value: PVOID,
    length: ULONG,
    context: PVOID,
) -> NTSTATUS {
    same!(irql(), 0);
    // SAFETY: the setting is a GUID.
    let setting = unsafe { setting.cast::<u32>().read() };
    // SAFETY: the values that the test sets are numbers.
    let value = unsafe { value.cast::<u32>().read() };
    wdk::println!("setting {setting:x} {length} {value} {}", context.addr());
    0
}

fn register(setting: &[u32; 4], context: PVOID, handle: PVOID) -> NTSTATUS {
    let setting = core::ptr::from_ref(setting);
    let routine: PPOWER_SETTING_CALLBACK = Some(changed);
    call!(PoRegisterPowerSettingCallback, NULL, setting, routine, context, handle)
}

fn unregister(handle: PVOID) -> NTSTATUS {
    call!(PoUnregisterPowerSettingCallback, handle)
}

pub fn run() {
    let (mut first, mut second) = (NULL, NULL);
    // If the setting has a value, the callback is called with it immediately.
    same!(register(&SOURCE, pointer(1), at(&mut first)), 0);
    same!(register(&UNKNOWN, pointer(2), at(&mut second)), 0);
    same!(unregister(first), 0);
    same!(unregister(first), 0xC000_000D_u32);
    KEPT.store(second, Ordering::Relaxed);
}

/// Ends the registration that [`run`] left.
pub fn stop() {
    let kept = KEPT.swap(NULL, Ordering::Relaxed);
    if !kept.is_null() {
        same!(unregister(kept), 0);
    }
}

/// Leaves a registration at unload.
pub fn left() {
    same!(register(&UNKNOWN, NULL, NULL), 0);
}
