//! Opening, creating and closing keys, and the statuses that tests expect.

use wdk_sys::{NTSTATUS, PVOID};

use crate::{
    call::{NULL, call, same},
    names::with_attributes,
};

pub const READ: u64 = 0x2_0019;
pub const ALL: u64 = 0xF_003F;

/// The path of the key in which tests create keys.
pub const SOFTWARE: &[u8] = br"\Registry\Machine\Software";

/// Opens a key. Returns the status and the handle.
pub fn open(root: PVOID, name: &[u8], access: u64) -> (NTSTATUS, PVOID) {
    let mut handle = NULL;
    let status = with_attributes(root, name, 0x240, |attributes| {
        call!(ZwOpenKey, &mut handle, access, attributes)
    });
    (status, handle)
}

/// Creates a key. Returns the status, the handle and the disposition.
pub fn create(root: PVOID, name: &[u8], access: u64, options: u64) -> (NTSTATUS, PVOID, u32) {
    let (mut handle, mut disposition) = (NULL, 0_u32);
    let status = with_attributes(root, name, 0x240, |attributes| {
        call!(ZwCreateKey, &mut handle, access, attributes, 0, NULL, options, &mut disposition)
    });
    (status, handle, disposition)
}

pub fn close(handle: PVOID) {
    same!(call!(ZwClose, handle), 0);
}
