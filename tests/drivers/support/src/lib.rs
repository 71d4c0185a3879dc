//! Code that the test drivers share: the panic handler and the allocator, the entry point, calls of the
//! framework, and strings in UTF-16.
//!
//! The sample driver and the examples in `driver` do without it, because authors copy them.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

extern crate wdk_panic;

use core::{ptr, slice};

use wdk_alloc::WdkAllocator;
use wdk_sys::{
    DRIVER_OBJECT, NTSTATUS, PCUNICODE_STRING, UNICODE_STRING, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDRIVER,
};

#[global_allocator]
static ALLOCATOR: WdkAllocator = WdkAllocator;

/// Exports a function of the module with the arguments `&mut DRIVER_OBJECT` and [`Service`] as
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
                super::$entry(driver, unsafe { $crate::Service::of(registry_path) })
            }
        }
    };
}

/// Calls a function of the framework.
#[macro_export]
macro_rules! wdf {
    ($name:ident $(, $argument:expr)* $(,)?) => {{
        // SAFETY: handles come from the framework, and out-parameters are locals of the caller. Calls
        // that are wrong are faults that a test expects.
        #[allow(clippy::macro_metavars_in_unsafe, reason = "arguments are values without unsafe code")]
        unsafe { ::wdk_sys::call_unsafe_wdf_function_binding!($name, $($argument),*) }
    }};
}

/// Returns from the function with a status that is not a success.
#[macro_export]
macro_rules! check {
    ($status:expr) => {
        let status: ::wdk_sys::NTSTATUS = $status;
        if !::wdk_sys::NT_SUCCESS(status) {
            return status;
        }
    };
}

/// The service that the system started the driver as, by whose name a test says what the driver does.
#[derive(Clone, Copy)]
pub struct Service<'a> {
    path: &'a UNICODE_STRING,
}

impl<'a> Service<'a> {
    /// Returns the service of a registry path.
    ///
    /// # Safety
    ///
    /// The path is that of the driver's key.
    #[must_use]
    pub const unsafe fn of(path: PCUNICODE_STRING) -> Self {
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
        // SAFETY: the string counts its own bytes.
        unsafe { slice::from_raw_parts(self.path.Buffer, self.path.Length as usize / 2) }
    }

    /// Returns true if the service has this name.
    #[must_use]
    pub fn is(self, name: &str) -> bool {
        let mut units = self.units().iter().rev();
        name.bytes().rev().all(|byte| units.next() == Some(&u16::from(byte)))
            && units.next() == Some(&u16::from(b'\\'))
    }
}

/// Returns the configuration of a driver, like `WDF_DRIVER_CONFIG_INIT`.
#[must_use]
#[inline]
pub fn config() -> WDF_DRIVER_CONFIG {
    WDF_DRIVER_CONFIG {
        Size: size_of::<WDF_DRIVER_CONFIG>() as u32,
        ..WDF_DRIVER_CONFIG::default()
    }
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

/// Converts ASCII text to UTF-16.
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

/// Returns a `UNICODE_STRING` of static text.
#[must_use]
pub const fn counted(text: &'static [u16]) -> UNICODE_STRING {
    let length = size_of_val(text) as u16;
    UNICODE_STRING { Length: length, MaximumLength: length, Buffer: text.as_ptr().cast_mut() }
}
