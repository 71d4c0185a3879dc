//! `OBJECT_ATTRIBUTES`, which contain the names of objects.

use crate::{
    execution::strings::read_unicode_string,
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributesNt, UnicodeString},
    },
    services::ntoskrnl::context::Context,
};

const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);

/// `OBJ_OPENIF`: opens an object with the name if one exists.
pub const OPEN_IF: u32 = 0x80;
/// `OBJ_VALID_ATTRIBUTES`.
const VALID: u32 = 0x1FF2;

/// The contents of an `OBJECT_ATTRIBUTES` structure.
pub struct Attributes {
    /// The handle of the object to which the name is relative, or 0.
    pub root: u64,
    /// The name, or an empty string.
    pub name: String,
    /// The `OBJ_*` flags.
    pub flags: u32,
}

/// Reads object attributes.
pub fn read(context: &Context, address: u64) -> NtResult<Attributes> {
    let value: ObjectAttributesNt = context.read(address);
    if value.length as usize != size_of::<ObjectAttributesNt>() || value.attributes & !VALID != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let name = if value.object_name == 0 {
        String::new()
    } else {
        let string: UnicodeString = context.read(value.object_name);
        if !string.length.is_multiple_of(2) {
            return Err(OBJECT_NAME_INVALID);
        }
        read_unicode_string(context, value.object_name)
    };
    Ok(Attributes { root: value.root_directory, name, flags: value.attributes })
}

/// Reads object attributes that the caller can omit.
pub fn read_optional(context: &Context, address: u64) -> NtResult<Option<Attributes>> {
    (address != 0).then(|| read(context, address)).transpose()
}
