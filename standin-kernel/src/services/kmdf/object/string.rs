//! The `WdfString*` routines.

use crate::{
    execution::{
        routine::{At, Handle, Out, routine},
        strings::read_unicode_string,
    },
    ground::{
        NtResult, NtStatus,
        abi::{ObjectAttributes, UnicodeString},
    },
    services::kmdf::{
        binding::driver_of,
        lifetime::create_from,
        state::{
            framework::{Context, Entries},
            text::TextData,
        },
    },
};

pub const ENTRIES: Entries =
    &[routine("WdfStringCreate", string_create), routine("WdfStringGetUnicodeString", string_get)];

fn string_create(
    context: &Context,
    text: At<UnicodeString>,
    attributes: At<ObjectAttributes>,
    string: Out<TextData>,
) -> NtResult {
    let data = if text.is_null() {
        TextData::default()
    } else {
        let text = read_text(context, text.0)?;
        TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW)?
    };
    let handle = create_from(context, data, attributes.0, driver_of(context))?;
    context.write(string.0, &handle);
    Ok(())
}

/// Returns the counted string that the driver passed.
///
/// # Errors
///
/// Returns `STATUS_INVALID_PARAMETER` for an invalid string.
pub fn read_text(context: &Context, address: u64) -> NtResult<String> {
    let string: UnicodeString = context.read(address);
    let (length, room) = (string.length, string.maximum_length);
    if (length | room) & 1 != 0 || length > room || (room > 0 && string.buffer == 0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(read_unicode_string(context, address))
}

/// Returns the counted string that the driver passed, or an empty string for a null pointer. See
/// [`read_text`].
pub fn read_optional_text(context: &Context, address: u64) -> NtResult<String> {
    if address == 0 { Ok(String::new()) } else { read_text(context, address) }
}

/// Replaces the string in a string object.
pub fn assign(context: &Context, string: u64, text: &str) -> NtResult {
    let new = TextData::new(text).ok_or(NtStatus::INTEGER_OVERFLOW)?;
    context.with::<TextData, _>(string, |data| *data = new);
    Ok(())
}

fn string_get(context: &Context, string: Handle<TextData>, unicode: At<UnicodeString>) {
    let counted = string.with(context, |text| text.counted());
    context.write(unicode.0, &counted);
}
