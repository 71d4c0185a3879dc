//! The provider, the pool tag and the locks that the faults share.

use etw_driver_support::{guid, made, wdf};
use wdk_sys::{GUID, WDF_NO_OBJECT_ATTRIBUTES, WDFSPINLOCK};

/// `{7c1a1b2e-0e5f-4b7c-9c62-5d0a7a3f10c4}`.
pub static PROVIDER: GUID =
    guid(0x7c1a_1b2e, 0x0e5f, 0x4b7c, [0x9c, 0x62, 0x5d, 0x0a, 0x7a, 0x3f, 0x10, 0xc4]);

/// A service's name, and the function that the driver runs for the service.
pub type Run = (&'static str, fn());

/// The tag `Leak`, as a debugger displays it.
pub const TAG: u32 = u32::from_le_bytes(*b"Leak");

/// Creates a spin lock. Returns null if there is not enough memory.
pub fn create_lock() -> WDFSPINLOCK {
    let (_status, lock) = made(|handle| wdf!(WdfSpinLockCreate, WDF_NO_OBJECT_ATTRIBUTES, handle,));
    lock
}

/// Ends the process with a signal that no process can handle, without calling the kernel.
pub fn end_process() {
    let process: u64;
    // SAFETY: `getpid` has no preconditions.
    unsafe {
        core::arch::asm!("syscall", inout("rax") 39_u64 => process, out("rcx") _, out("r11") _);
    }
    // SAFETY: violated on purpose: this is the fault.
    unsafe {
        core::arch::asm!("syscall", inout("rax") 62_u64 => _, in("rdi") process, in("rsi") 9_u64, out("rcx") _, out("r11") _);
    }
}
