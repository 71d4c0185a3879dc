//! Code that the test drivers share: the panic handler and the allocator, the entry point, calls of the
//! framework and the kernel, and strings in UTF-16.
//!
//! The sample driver and the examples in `driver` do not use it, because authors copy them.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

extern crate wdk_panic;

use core::{ffi::c_void, ptr, slice};

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, GUID, NTSTATUS, PCUNICODE_STRING, UNICODE_STRING, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_OBJECT_ATTRIBUTES, WDFDRIVER, WDFOBJECT,
};

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// Exports a function of the module, with the arguments `&mut DRIVER_OBJECT` and [`Service`], as
/// `DriverEntry`.
#[macro_export]
macro_rules! entry {
    ($entry:ident) => {
        mod exported {
            /// The driver's entry point.
            ///
            /// # Safety
            ///
            /// Only the system or the framework's entry code may call this function, with a driver
            /// object and the path of the driver's key.
            // SAFETY: the linker and the framework's entry code find the entry point by this name, and
            // no other symbol has the name.
            #[unsafe(export_name = "DriverEntry")]
            pub unsafe extern "system" fn driver_entry(
                driver: &mut ::wdk_sys::DRIVER_OBJECT,
                registry_path: ::wdk_sys::PCUNICODE_STRING,
            ) -> ::wdk_sys::NTSTATUS {
                // SAFETY: the caller passes the path of the driver's key, which outlives the call.
                super::$entry(driver, unsafe { $crate::Service::from_path(registry_path) })
            }
        }
    };
}

/// Calls a function of the framework.
#[macro_export]
macro_rules! wdf {
    ($name:ident $(, $argument:expr)* $(,)?) => {{
        // SAFETY: handles come from the framework, and out-parameters are the caller's locals.
        // Wrong calls are faults that a test expects.
        #[allow(clippy::macro_metavars_in_unsafe, reason = "arguments are values without unsafe code")]
        unsafe { ::wdk_sys::call_unsafe_wdf_function_binding!($name, $($argument),*) }
    }};
}

/// Calls a routine of the kernel.
#[macro_export]
macro_rules! nt {
    ($name:ident $(, $argument:expr)* $(,)?) => {{
        // SAFETY: pointers come from the system, or refer to driver memory that outlives the call's
        // effects. Wrong calls are faults that a test expects.
        #[allow(clippy::macro_metavars_in_unsafe, reason = "arguments are values without unsafe code")]
        unsafe { ::wdk_sys::ntddk::$name($($argument),*) }
    }};
}

/// Creates a structure with these fields and its size, like its `…_INIT` in the headers.
#[macro_export]
macro_rules! sized {
    ($type:path { $($field:ident: $value:expr),* $(,)? }) => {{
        type Structure = $type;
        #[allow(clippy::needless_update, reason = "the call can name all fields")]
        {
            let size = size_of::<Structure>() as u32;
            Structure { Size: size, $($field: $value,)* ..Structure::default() }
        }
    }};
}

/// Returns from the function with a status unless the status is a success.
#[macro_export]
macro_rules! check {
    ($status:expr) => {
        let status: ::wdk_sys::NTSTATUS = $status;
        if !::wdk_sys::NT_SUCCESS(status) {
            return status;
        }
    };
}

/// The service under which the system started the driver. Its name selects the driver's behavior.
#[derive(Clone, Copy)]
pub struct Service<'a> {
    path: &'a UNICODE_STRING,
}

impl<'a> Service<'a> {
    /// Returns the service with this registry path.
    ///
    /// # Safety
    ///
    /// `path` must be the path of the driver's key.
    #[must_use]
    pub const unsafe fn from_path(path: PCUNICODE_STRING) -> Self {
        // SAFETY: the caller guarantees that the path is valid.
        Self { path: unsafe { &*path } }
    }

    /// Returns the path of the service's key.
    #[must_use]
    pub const fn path(self) -> PCUNICODE_STRING {
        self.path
    }

    /// Returns the units of the path of the service's key.
    #[must_use]
    pub const fn units(self) -> &'a [u16] {
        // SAFETY: the string's buffer has the length that the string states.
        unsafe { slice::from_raw_parts(self.path.Buffer, self.path.Length as usize / 2) }
    }

    /// Returns true if this is the service's name.
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        let mut units = self.units().iter().rev();
        name.bytes().rev().all(|byte| units.next() == Some(&u16::from(byte)))
            && units.next() == Some(&u16::from(b'\\'))
    }

    /// Returns the table's entry for the service's name.
    #[must_use]
    pub fn find<'t, T>(self, table: &'t [(&str, T)]) -> Option<&'t T> {
        table.iter().find(|(name, _)| self.is(name)).map(|(_, entry)| entry)
    }
}

/// Returns the configuration of a driver, like `WDF_DRIVER_CONFIG_INIT`.
#[must_use]
#[inline]
pub fn config() -> WDF_DRIVER_CONFIG {
    sized!(WDF_DRIVER_CONFIG {})
}

/// Creates the framework's driver object, and stores its handle if `handle` is not `None`.
#[inline]
pub fn create_driver(
    driver: &mut DRIVER_OBJECT,
    service: Service<'_>,
    mut config: WDF_DRIVER_CONFIG,
    handle: Option<&mut WDFDRIVER>,
) -> NTSTATUS {
    let handle = handle.map_or(ptr::null_mut(), ptr::from_mut);
    wdf!(WdfDriverCreate, driver, service.path(), WDF_NO_OBJECT_ATTRIBUTES, &raw mut config, handle,)
}

/// Returns default attributes for an object with this parent, like `WDF_OBJECT_ATTRIBUTES_INIT`.
#[must_use]
pub fn attributes(parent: WDFOBJECT) -> WDF_OBJECT_ATTRIBUTES {
    sized!(WDF_OBJECT_ATTRIBUTES {
        ExecutionLevel: wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelInheritFromParent,
        SynchronizationScope:
            wdk_sys::_WDF_SYNCHRONIZATION_SCOPE::WdfSynchronizationScopeInheritFromParent,
        ParentObject: parent
    })
}

/// Creates an object. Returns the status and the handle.
pub fn made<T>(create: impl FnOnce(*mut *mut T) -> NTSTATUS) -> (NTSTATUS, *mut T) {
    let mut handle = ptr::null_mut();
    let status = create(&raw mut handle);
    (status, handle)
}

/// Returns the current IRQL.
#[must_use]
pub fn irql() -> u8 {
    nt!(KeGetCurrentIrql)
}

/// Calls a function at a higher IRQL.
pub fn at_irql<T>(irql: u8, body: impl FnOnce() -> T) -> T {
    let before = nt!(KfRaiseIrql, irql);
    let result = body();
    nt!(KeLowerIrql, before);
    result
}

/// Returns the address of a kernel routine, or null. IRQL: `PASSIVE_LEVEL`.
#[must_use]
pub fn routine(name: &str) -> *mut c_void {
    let mut units = [0_u16; 64];
    for (unit, byte) in units.iter_mut().zip(name.bytes()) {
        *unit = u16::from(byte);
    }
    let length = 2 * name.len() as u16;
    let mut name =
        UNICODE_STRING { Length: length, MaximumLength: length, Buffer: units.as_mut_ptr() };
    nt!(MmGetSystemRoutineAddress, &raw mut name)
}

/// Returns a GUID with these fields.
#[must_use]
pub const fn guid(first: u32, second: u16, third: u16, rest: [u8; 8]) -> GUID {
    GUID { Data1: first, Data2: second, Data3: third, Data4: rest }
}

/// Converts an ASCII string to UTF-16.
#[must_use]
pub const fn utf16<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut units = [0; N];
    let mut at = 0;
    while at < N {
        units[at] = text[at] as u16;
        at += 1;
    }
    units
}

/// Returns a `UNICODE_STRING` for a static string.
#[must_use]
pub const fn counted(text: &'static [u16]) -> UNICODE_STRING {
    let length = size_of_val(text) as u16;
    UNICODE_STRING { Length: length, MaximumLength: length, Buffer: text.as_ptr().cast_mut() }
}
