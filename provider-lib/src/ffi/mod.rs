//! The routines that this crate calls. They are in ntoskrnl.exe or, with the feature `user-mode`,
//! in advapi32.dll. Both modules have the same items, named after the kernel's routines.

#[cfg(not(feature = "user-mode"))]
mod kernel;
#[cfg(feature = "user-mode")]
mod user;

#[cfg(not(feature = "user-mode"))]
pub use kernel::*;
#[cfg(feature = "user-mode")]
pub use user::*;

use core::ffi::c_void;

use crate::Guid;

/// The names of routines, for errors.
pub struct Names {
    pub register: &'static str,
    pub unregister: &'static str,
    pub set_information: &'static str,
    pub write: &'static str,
    pub activity: &'static str,
}

/// A registration's handle (`REGHANDLE`), or 0.
pub type RegHandle = u64;

/// The enable callback (`PETWENABLECALLBACK`). ETW calls it at `PASSIVE_LEVEL`.
pub type EnableCallback = unsafe extern "system" fn(
    source_id: *const Guid,
    control_code: u32,
    level: u8,
    match_any_keyword: u64,
    match_all_keyword: u64,
    filter_data: *const FilterDescriptor,
    context: *mut c_void,
);

/// `EVENT_FILTER_DESCRIPTOR` of evntprov.h.
#[repr(C)]
pub struct FilterDescriptor {
    pub address: u64,
    pub size: u32,
    pub kind: u32,
}

const _: () = {
    assert!(size_of::<FilterDescriptor>() == 16);
    assert!(core::mem::offset_of!(FilterDescriptor, size) == 8);
    assert!(core::mem::offset_of!(FilterDescriptor, kind) == 12);
};

/// `PASSIVE_LEVEL`.
pub const PASSIVE_LEVEL: u8 = 0;
/// `APC_LEVEL`.
pub const APC_LEVEL: u8 = 1;
/// The highest IRQL of devices on x64, one below `CLOCK_LEVEL`.
pub const MAX_DIRQL: u8 = 12;

/// `DPFLTR_ERROR_LEVEL` of dpfilter.h.
pub const DPFLTR_ERROR_LEVEL: u32 = 0;
/// `DPFLTR_WARNING_LEVEL`.
pub const DPFLTR_WARNING_LEVEL: u32 = 1;
/// `DPFLTR_TRACE_LEVEL`.
pub const DPFLTR_TRACE_LEVEL: u32 = 2;
/// `DPFLTR_INFO_LEVEL`.
pub const DPFLTR_INFO_LEVEL: u32 = 3;
