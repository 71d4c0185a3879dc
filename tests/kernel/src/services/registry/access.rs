//! Access rights of keys.

/// `KEY_QUERY_VALUE`.
pub const QUERY_VALUE: u32 = 0x1;
/// `KEY_SET_VALUE`.
pub const SET_VALUE: u32 = 0x2;
/// `KEY_CREATE_SUB_KEY`.
pub const CREATE_SUB_KEY: u32 = 0x4;
/// `KEY_ENUMERATE_SUB_KEYS`.
pub const ENUMERATE_SUB_KEYS: u32 = 0x8;
/// `DELETE`.
pub const DELETE: u32 = 0x1_0000;

/// `KEY_READ`, `KEY_WRITE`, `KEY_ALL_ACCESS`.
const READ: u32 = 0x2_0019;
const WRITE: u32 = 0x2_0006;
const ALL: u32 = 0xF_003F;
const MAXIMUM_ALLOWED: u32 = 0x0200_0000;
const GENERIC_ALL: u32 = 0x1000_0000;
const GENERIC_EXECUTE: u32 = 0x2000_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_READ: u32 = 0x8000_0000;

/// Returns the rights that an access mask asks for, with generic rights replaced.
pub const fn granted(mask: u32) -> u32 {
    let mut rights = mask & ALL;
    if mask & (GENERIC_READ | GENERIC_EXECUTE) != 0 {
        rights |= READ;
    }
    if mask & GENERIC_WRITE != 0 {
        rights |= WRITE;
    }
    if mask & (GENERIC_ALL | MAXIMUM_ALLOWED) != 0 {
        rights |= ALL;
    }
    rights
}
