//! Callbacks for power settings.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    call::{address, at, call, low, same},
    queues::irql,
};

/// `GUID_ACDC_POWER_SOURCE`, and a setting that no system has.
const SOURCE: [u32; 4] = [0x5D3E_9A59, 0x4B00_E9D5, 0x34FF_BDA6, 0x4865_51FF];
const UNKNOWN: [u32; 4] = [1, 2, 3, 4];

/// The handle of the registration that lasts until the driver is unloaded.
static KEPT: AtomicU64 = AtomicU64::new(0);

/// Prints the new value.
unsafe extern "C" fn changed(setting: u64, value: u64, length: u32, context: u64) -> u32 {
    same!(irql(), 0);
    // SAFETY: the setting is a GUID.
    let setting = unsafe { (setting as *const u32).read() };
    // SAFETY: the values that the test sets are numbers.
    let value = unsafe { (value as *const u32).read() };
    wdk::println!("setting {setting:x} {length} {value} {context}");
    0
}

fn register(setting: &[u32; 4], context: u64, handle: u64) -> u32 {
    let setting = core::ptr::from_ref(setting) as u64;
    let routine = address(changed as *const c_void);
    low(call!("PoRegisterPowerSettingCallback", 0, setting, routine, context, handle))
}

fn unregister(handle: u64) -> u32 {
    low(call!("PoUnregisterPowerSettingCallback", handle))
}

pub fn run() {
    let (mut first, mut second) = (0_u64, 0_u64);
    // If the setting has a value, the callback is called with it immediately.
    same!(register(&SOURCE, 1, at(&mut first)), 0);
    same!(register(&UNKNOWN, 2, at(&mut second)), 0);
    same!(unregister(first), 0);
    same!(unregister(first), 0xC000_000D);
    KEPT.store(second, Ordering::Relaxed);
}

/// Ends the registration that [`run`] left.
pub fn stop() {
    let kept = KEPT.swap(0, Ordering::Relaxed);
    if kept != 0 {
        same!(unregister(kept), 0);
    }
}

/// Leaves a registration at unload.
pub fn left() {
    same!(register(&UNKNOWN, 0, 0), 0);
}
