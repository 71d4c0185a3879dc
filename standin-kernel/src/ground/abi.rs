//! The structures that a driver and the kernel exchange, in the WDK headers' layout for x64. `build/`
//! generates those that structures.txt lists. Pointers and handles are plain addresses.

#![expect(clippy::struct_field_names, reason = "the headers use these names")]

use core::mem::offset_of;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

include!(concat!(env!("OUT_DIR"), "/structures.rs"));

/// A structure or number that drivers pass by address.
pub trait Pointee {
    /// The name in the headers, or the Rust name of a number type.
    const NAME: &'static str;
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Pointee for $number {
            const NAME: &'static str = stringify!($number);
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 }

impl Pointee for etl_file::Guid {
    const NAME: &'static str = "_GUID";
}

impl Pointee for () {
    const NAME: &'static str = "void";
}

/// `WDF_BIND_INFO`: the information about a driver that its stub passes to the framework's loader. Newer
/// stubs append fields (see [`BindInfo2`]). Only the loader's header declares it, which the data lack.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct BindInfo {
    pub size: u32,
    pub reserved: u32,
    pub component: u64,
    pub version: [u32; 3],
    pub function_count: u32,
    pub function_table: u64,
    pub module: u64,
}

/// The longer form of [`BindInfo`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct BindInfo2 {
    pub v1: BindInfo,
    pub minimum_version_required: u64,
    pub client_version_higher: u64,
    pub function_count_pointer: u64,
    pub structure_count_pointer: u64,
    pub structure_table: u64,
}

impl Pointee for BindInfo {
    const NAME: &'static str = "_WDF_BIND_INFO";
}

const _: () = assert!(size_of::<BindInfo>() == 0x30);
const _: () = assert!(size_of::<BindInfo2>() == 0x58);

impl FileObject {
    /// `IO_TYPE_FILE`.
    pub const TYPE: i16 = 5;
    /// The size in bytes.
    pub const SIZE: i16 = 0xD8;
}

const _: () = assert!(size_of::<FileObject>() == FileObject::SIZE as usize);

/// The types of objects that threads can wait for, as stored in the header's first byte.
pub mod dispatcher_kind {
    pub const NOTIFICATION_EVENT: u8 = 0;
    pub const SYNCHRONIZATION_EVENT: u8 = 1;
    pub const MUTANT: u8 = 2;
    pub const PROCESS: u8 = 3;
    pub const QUEUE: u8 = 4;
    pub const SEMAPHORE: u8 = 5;
    pub const THREAD: u8 = 6;
    pub const NOTIFICATION_TIMER: u8 = 8;
    pub const SYNCHRONIZATION_TIMER: u8 = 9;
}

impl DispatcherHeader {
    /// Returns the header of a new object at the address `object`, with an empty list of waiters.
    pub fn new(object: u64, kind: u8, size: usize, state: i32) -> Self {
        /// The offset of the list of waiters.
        const WAITERS: u64 = offset_of!(DispatcherHeader, wait_list_head) as u64;
        Self {
            kind,
            // The unit is 32 bits.
            size: u8::try_from(size / 4).unwrap_or(0),
            signal_state: state,
            wait_list_head: [object.wrapping_add(WAITERS); 2],
            ..Self::default()
        }
    }
}
