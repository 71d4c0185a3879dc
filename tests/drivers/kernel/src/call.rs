//! Calls of the kernel's routines by name, and checks of the results.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use wdk_sys::DRIVER_OBJECT;

/// The number of checks so far.
static CHECKS: AtomicU32 = AtomicU32::new(0);

/// The driver object.
static DRIVER: AtomicPtr<DRIVER_OBJECT> = AtomicPtr::new(core::ptr::null_mut());

/// Stores the driver object.
pub fn note_driver(driver: &mut DRIVER_OBJECT) {
    DRIVER.store(driver, Ordering::Relaxed);
}

/// Returns the address of the driver object.
pub fn driver() -> u64 {
    DRIVER.load(Ordering::Relaxed) as u64
}

/// Returns the number of checks so far.
pub fn checks() -> u32 {
    CHECKS.load(Ordering::Relaxed)
}

/// Counts a check, and prints it if it fails.
pub fn check(line: u32, what: &str, found: u64, expected: u64) {
    CHECKS.fetch_add(1, Ordering::Relaxed);
    if found != expected {
        wdk::println!("FAILED line {line}: {what} is {found:#x}, not {expected:#x}");
    }
}

/// Checks that an expression has a value.
macro_rules! same {
    ($found:expr, $expected:expr $(,)?) => {
        $crate::call::check(line!(), stringify!($found), ($found) as u64, ($expected) as u64)
    };
}
pub(crate) use same;

/// A kernel routine whose parameters and result are whole registers.
#[derive(Clone, Copy)]
pub struct Routine(Entry);

type Entry = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> u64;

impl Routine {
    /// Finds a routine. Must be called at `PASSIVE_LEVEL`.
    pub fn find(name: &str) -> Self {
        let address = etw_driver_support::routine(name);
        assert!(!address.is_null(), "{name} is not found");
        // SAFETY: a routine starts at the address. The callers pass the arguments that the routine
        // requires, and the routine ignores the registers and slots of additional arguments.
        Self(unsafe { core::mem::transmute::<*mut c_void, Entry>(address) })
    }

    /// Returns the address.
    pub fn address(self) -> u64 {
        self.0 as usize as u64
    }

    /// Returns the routine at an address that [`Self::address`] returned.
    pub fn of(address: u64) -> Self {
        // SAFETY: a routine starts at the address, as above.
        Self(unsafe { core::mem::transmute::<*mut c_void, Entry>(address as *mut c_void) })
    }

    /// Calls the routine with up to fifteen arguments.
    pub fn call(self, arguments: &[u64]) -> u64 {
        let mut x = [0; 15];
        x[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: the callers pass the arguments that the routine requires. Wrong calls are faults
        // that a test expects.
        unsafe {
            (self.0)(
                x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12],
                x[13], x[14],
            )
        }
    }
}

/// Calls a routine by name, at `PASSIVE_LEVEL`.
macro_rules! call {
    ($name:literal $(, $argument:expr)* $(,)?) => {
        $crate::call::Routine::find($name).call(&[$(($argument) as u64),*])
    };
}
pub(crate) use call;

/// Returns a routine's address.
pub fn address(routine: *const c_void) -> u64 {
    routine as u64
}

/// Returns the address of a value.
pub fn at<T>(value: &mut T) -> u64 {
    &raw mut *value as u64
}

/// Returns the low 32 bits of a result, which is an `NTSTATUS`, a `LONG` or a `ULONG`.
pub const fn low(result: u64) -> u32 {
    (result & 0xFFFF_FFFF) as u32
}

/// Returns a `BOOLEAN` result.
pub const fn boolean(result: u64) -> bool {
    result & 0xFF != 0
}
