//! The `WdfString*` routines.

use super::{
    driver::driver_of,
    object::{create, read_attributes},
    state::{
        framework::{Context, Entries},
        text::TextData,
    },
};
use crate::{
    execution::routine::Routine, ground::status::NtStatus, services::strings::read_unicode_string,
};

pub const ENTRIES: Entries = &[
    ("WdfStringCreate", Routine::Four(string_create)),
    ("WdfStringGetUnicodeString", Routine::Three(string_get)),
];

fn string_create(context: &Context, _globals: u64, text: u64, attributes: u64, string: u64) -> u64 {
    let text = if text == 0 { String::new() } else { read_unicode_string(context, text) };
    let Some(data) = TextData::new(&text) else {
        return NtStatus::INTEGER_OVERFLOW.to_register();
    };
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    match create(context, data, attributes.as_ref(), parent) {
        Ok(handle) => {
            context.write(string, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

/// Replaces the text of a string object.
pub fn assign(context: &Context, string: u64, text: &str) -> NtStatus {
    let Some(new) = TextData::new(text) else {
        return NtStatus::INTEGER_OVERFLOW;
    };
    context.with::<TextData, _>(string, |data| *data = new);
    NtStatus::SUCCESS
}

fn string_get(context: &Context, _globals: u64, string: u64, unicode: u64) -> u64 {
    let counted = context.with::<TextData, _>(string, |text| text.counted());
    context.write(unicode, &counted);
    0
}
