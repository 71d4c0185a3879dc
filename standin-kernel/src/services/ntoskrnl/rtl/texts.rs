//! Strings that are not counted strings: sizes, comparison, parsing, and conversion.

use super::strings::{difference, number_in, store, terminated};
use crate::{
    execution::{
        routine::{At, routine},
        strings::units,
    },
    ground::{NtResult, NtStatus, abi::UnicodeString},
    services::ntoskrnl::{
        context::{Context, Entries},
        crt::letters::upcase,
    },
};

pub const ENTRIES: Entries = &[
    routine("RtlUnicodeToMultiByteSize", size_as_bytes),
    routine("RtlMultiByteToUnicodeSize", size_as_units),
    routine("RtlCompareUnicodeStrings", compare),
    routine("RtlCharToInteger", to_integer),
    routine("RtlCreateUnicodeString", create),
];

/// Stores the size of a string in the ANSI code page, in which each character is one byte long.
fn size_as_bytes(context: &Context, byte_count: At<u32>, _text: At<u16>, length: u32) -> NtStatus {
    byte_count.write(context, length / 2);
    NtStatus::SUCCESS
}

fn size_as_units(context: &Context, byte_count: At<u32>, _text: At<i8>, length: u32) -> NtStatus {
    byte_count.write(context, length.wrapping_mul(2));
    NtStatus::SUCCESS
}

/// Compares two strings, given their numbers of characters.
fn compare(
    context: &Context,
    one: At<u16>,
    length: u64,
    other: At<u16>,
    other_length: u64,
    ignore_case: bool,
) -> i32 {
    let [one, other] = [(one, length), (other, other_length)].map(|(at, count)| {
        let units = units(&context.bytes(at.0, count.saturating_mul(2)));
        if ignore_case { units.into_iter().map(upcase).collect() } else { units }
    });
    difference(&one, &other)
}

/// Parses the number at the start of a zero-terminated string.
fn to_integer(context: &Context, text: At<i8>, base: u32, value: At<u32>) -> NtResult {
    let text = String::from_utf16_lossy(&terminated::<false>(context, text.0));
    let number = number_in(&text, base).ok_or(NtStatus::INVALID_PARAMETER)?;
    value.write(context, number);
    Ok(())
}

/// Creates a counted string with its own buffer from a zero-terminated string. Returns whether this
/// succeeded.
fn create(context: &Context, destination: At<UnicodeString>, text: At<u16>) -> bool {
    let units = terminated::<true>(context, text.0);
    store::<true>(context, destination.0, &units, true, true).is_ok()
}
