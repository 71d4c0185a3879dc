//! Calls of the kernel's routines with their declared types, and checks of the results.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use wdk_sys::{DRIVER_OBJECT, LARGE_INTEGER, LUID, PVOID, STRING, UNICODE_STRING};

/// The number of checks so far.
static CHECKS: AtomicU32 = AtomicU32::new(0);

/// The driver object.
static DRIVER: AtomicPtr<DRIVER_OBJECT> = AtomicPtr::new(ptr::null_mut());

/// Stores the driver object.
pub fn note_driver(driver: &mut DRIVER_OBJECT) {
    DRIVER.store(driver, Ordering::Relaxed);
}

/// Returns the driver object.
pub fn driver() -> *mut DRIVER_OBJECT {
    DRIVER.load(Ordering::Relaxed)
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
        $crate::call::check(
            line!(),
            stringify!($found),
            $crate::call::Bits::bits($found),
            $crate::call::Bits::bits($expected),
        )
    };
}
pub(crate) use same;

/// Calls a routine of [`crate::routines`].
///
/// An argument is converted to the type of the parameter, as [`Argument`] describes. A function is
/// passed as `Some(function)`, and must have the parameter's type. The variable arguments of a
/// routine follow a semicolon.
macro_rules! call {
    (@ $name:ident ($($done:tt)*)) => {{
        // SAFETY: pointers come from the system, or refer to driver memory that outlives the call's
        // effects. Wrong calls are faults that a test expects.
        #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe, reason = "an argument can be a call")]
        unsafe { $crate::routines::$name($($done)*) }
    }};
    (@ $name:ident ($($done:tt)*) ; $($variable:expr),*) => {
        $crate::call::call!(@ $name ($($done)* $($variable),*))
    };
    (@ $name:ident ($($done:tt)*) Some($function:expr) $(, $($rest:tt)*)?) => {
        $crate::call::call!(@ $name ($($done)* Some($function),) $($($rest)*)?)
    };
    (@ $name:ident ($($done:tt)*) $argument:expr $(, $($rest:tt)*)?) => {
        $crate::call::call!(@ $name ($($done)* $crate::call::Argument::convert($argument),) $($($rest)*)?)
    };
    (@ $name:ident ($($done:tt)*) $argument:expr; $($variable:expr),*) => {
        $crate::call::call!(
            @ $name ($($done)* $crate::call::Argument::convert($argument),) ; $($variable),*
        )
    };
    ($name:ident $(, $($arguments:tt)*)?) => {
        $crate::call::call!(@ $name () $($($arguments)*)?)
    };
}
pub(crate) use call;

/// Runs `body` with a device of the driver.
pub fn with_device(body: impl FnOnce(PVOID)) {
    let mut device = NULL;
    same!(call!(IoCreateDevice, driver(), 0, NULL, 0x22, 0, 0, &mut device), 0);
    body(device);
    call!(IoDeleteDevice, device);
}

/// A value that can be passed for a parameter of type `T`: an integer for an integer, and a pointer
/// or a reference for a pointer, because the driver's memory often has no declared type.
pub trait Argument<T> {
    /// Returns the value as the parameter's type.
    fn convert(self) -> T;
}

/// A value that [`same`] compares.
pub trait Bits {
    /// Returns the value, extended with zeros.
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($type:ty as $unsigned:ty),*) => {
        $(
            impl Bits for $type {
                fn bits(self) -> u64 {
                    self as $unsigned as u64
                }
            }

            integers!(@ $type: u8, i8, u16, i16, u32, i32, u64, i64, usize);
        )*
    };
    (@ $from:ty: $($type:ty),*) => {
        $(
            impl Argument<$type> for $from {
                fn convert(self) -> $type {
                    self as $type
                }
            }
        )*
    };
}

integers!(
    u8 as u8, i8 as u8, u16 as u16, i16 as u16, u32 as u32, i32 as u32, u64 as u64, i64 as u64,
    usize as usize
);

impl Bits for bool {
    fn bits(self) -> u64 {
        self.into()
    }
}

impl<T> Bits for *mut T {
    fn bits(self) -> u64 {
        self.addr() as u64
    }
}

impl<T> Bits for *const T {
    fn bits(self) -> u64 {
        self.addr() as u64
    }
}

impl Argument<u8> for bool {
    fn convert(self) -> u8 {
        self.into()
    }
}

impl Bits for LARGE_INTEGER {
    fn bits(self) -> u64 {
        // SAFETY: every bit pattern is a number.
        unsafe { self.QuadPart }.cast_unsigned()
    }
}

impl Argument<LARGE_INTEGER> for u64 {
    fn convert(self) -> LARGE_INTEGER {
        self.cast_signed().convert()
    }
}

impl Argument<Self> for LARGE_INTEGER {
    fn convert(self) -> Self {
        self
    }
}

impl Argument<LARGE_INTEGER> for i32 {
    fn convert(self) -> LARGE_INTEGER {
        i64::from(self).convert()
    }
}

impl Argument<LARGE_INTEGER> for i64 {
    fn convert(self) -> LARGE_INTEGER {
        LARGE_INTEGER { QuadPart: self }
    }
}

/// Implements the conversions of pointers and references, each with a function that returns the
/// pointer.
macro_rules! pointers {
    ($($from:ty: $pointer:expr),*) => {
        $(
            impl<T, U> Argument<*mut U> for $from {
                fn convert(self) -> *mut U {
                    $pointer(self).cast_mut().cast()
                }
            }

            impl<T, U> Argument<*const U> for $from {
                fn convert(self) -> *const U {
                    $pointer(self).cast()
                }
            }
        )*
    };
}

pointers!(*mut T: <*mut T>::cast_const, *const T: core::convert::identity, &mut T: from_mut);

const fn from_mut<T>(variable: &mut T) -> *const T {
    ptr::from_mut(variable).cast_const()
}

impl Argument<Self> for LUID {
    fn convert(self) -> Self {
        self
    }
}

/// A null function pointer.
impl<F> Argument<Self> for Option<F> {
    fn convert(self) -> Self {
        self
    }
}

/// Reads a field of a structure.
pub const fn field<T: Copy>(structure: PVOID, offset: usize) -> T {
    // SAFETY: the kernel passed or allocated a structure that has the field.
    unsafe { structure.wrapping_byte_add(offset).cast::<T>().read_unaligned() }
}

/// Changes a field of a structure.
pub const fn set_field<T>(structure: PVOID, offset: usize, value: T) {
    // SAFETY: as in `field`, and the driver is allowed to change the field.
    unsafe { structure.wrapping_byte_add(offset).cast::<T>().write_unaligned(value) };
}

/// A null pointer.
pub const NULL: PVOID = ptr::null_mut();

/// Returns a pointer to no memory of the driver: an invalid address, an identifier, or a number that
/// a routine receives as a pointer.
pub const fn pointer(address: usize) -> PVOID {
    ptr::without_provenance_mut(address)
}

/// Returns the address of a value.
pub const fn at<T>(value: &mut T) -> PVOID {
    ptr::from_mut(value).cast()
}

/// Returns true if a `BOOLEAN` is not zero.
pub const fn boolean(result: u8) -> bool {
    result != 0
}

impl Argument<Self> for STRING {
    fn convert(self) -> Self {
        self
    }
}

impl Argument<Self> for UNICODE_STRING {
    fn convert(self) -> Self {
        self
    }
}
