//! The `WdfString*` routines.

use super::{
    driver::driver_of,
    object::create_from,
    state::{
        framework::{Context, Entries},
        text::TextData,
    },
};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus},
    services::strings::read_unicode_string,
};

pub const ENTRIES: Entries = &[
    ("WdfStringCreate", Routine::after_globals(string_create)),
    ("WdfStringGetUnicodeString", Routine::after_globals(string_get)),
];

fn string_create(context: &Context, text: u64, attributes: u64, string: u64) -> NtResult {
    let text = if text == 0 { String::new() } else { read_unicode_string(context, text) };
    let data = TextData::new(&text).ok_or(NtStatus::INTEGER_OVERFLOW)?;
    let handle = create_from(context, data, attributes, driver_of(context))?;
    context.write(string, &handle);
    Ok(())
}

/// Replaces the text of a string object.
pub fn assign(context: &Context, string: u64, text: &str) -> NtResult {
    let new = TextData::new(text).ok_or(NtStatus::INTEGER_OVERFLOW)?;
    context.with::<TextData, _>(string, |data| *data = new);
    Ok(())
}

fn string_get(context: &Context, string: Handle<TextData>, unicode: u64) {
    let counted = string.with(context, |text| text.counted());
    context.write(unicode, &counted);
}
