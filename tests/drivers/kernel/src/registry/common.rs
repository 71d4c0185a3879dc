//! Opening, creating and closing keys, and the statuses that tests expect.

use crate::{
    call::{at, call, low, same},
    names::with_attributes,
};

pub const INVALID_HANDLE: u32 = 0xC000_0008;
pub const INVALID_PARAMETER: u32 = 0xC000_000D;
pub const TYPE_MISMATCH: u32 = 0xC000_0024;
pub const NOT_FOUND: u32 = 0xC000_0034;
pub const PATH_SYNTAX_BAD: u32 = 0xC000_003B;
pub const CANNOT_DELETE: u32 = 0xC000_0121;
pub const KEY_DELETED: u32 = 0xC000_017C;
pub const CHILD_MUST_BE_VOLATILE: u32 = 0xC000_0181;
pub const BUFFER_TOO_SMALL: u32 = 0xC000_0023;
pub const BUFFER_OVERFLOW: u32 = 0x8000_0005;
pub const NO_MORE_ENTRIES: u32 = 0x8000_001A;

pub const READ: u64 = 0x2_0019;
pub const ALL: u64 = 0xF_003F;

/// The path of the key in which tests create keys.
pub const SOFTWARE: &[u8] = br"\Registry\Machine\Software";

/// Opens a key. Returns the status and the handle.
pub fn open(root: u64, name: &[u8], access: u64) -> (u32, u64) {
    let mut handle = 0_u64;
    let status = with_attributes(root, name, 0x240, |attributes| {
        call!("ZwOpenKey", at(&mut handle), access, attributes)
    });
    (low(status), handle)
}

/// Creates a key. Returns the status, the handle and the disposition.
pub fn create(root: u64, name: &[u8], access: u64, options: u64) -> (u32, u64, u32) {
    let (mut handle, mut disposition) = (0_u64, 0_u32);
    let status = with_attributes(root, name, 0x240, |attributes| {
        call!(
            "ZwCreateKey",
            at(&mut handle),
            access,
            attributes,
            0,
            0,
            options,
            at(&mut disposition)
        )
    });
    (low(status), handle, disposition)
}

pub fn close(handle: u64) {
    same!(low(call!("ZwClose", handle)), 0);
}
