//! Strings that are not counted strings: sizes, comparison, parsing, and conversion.

use super::strings::{difference, number_in, store, terminated};
use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, irql::Irql},
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            crt::letters::upcase,
        },
        strings::units,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlUnicodeToMultiByteSize", PASSIVE, Routine::of(size_as_bytes)),
    ("RtlMultiByteToUnicodeSize", PASSIVE, Routine::of(size_as_units)),
    ("RtlCompareUnicodeStrings", PASSIVE, Routine::of(compare)),
    ("RtlCharToInteger", PASSIVE, Routine::of(to_integer)),
    ("RtlCreateUnicodeString", APC, Routine::of(create)),
];

/// Stores the size of a string in the ANSI code page, in which each character is one byte long.
fn size_as_bytes(context: &Context, to: At<u32>, _text: u64, length: u32) -> NtStatus {
    to.write(context, length / 2);
    NtStatus::SUCCESS
}

fn size_as_units(context: &Context, to: At<u32>, _text: u64, length: u32) -> NtStatus {
    to.write(context, length.wrapping_mul(2));
    NtStatus::SUCCESS
}

/// Compares two strings, given their numbers of characters.
fn compare(
    context: &Context,
    one: u64,
    length: u64,
    other: u64,
    other_length: u64,
    ignore_case: bool,
) -> i32 {
    let [one, other] = [(one, length), (other, other_length)].map(|(at, count)| {
        let units = units(&context.bytes(at, count.saturating_mul(2)));
        if ignore_case { units.into_iter().map(upcase).collect() } else { units }
    });
    difference(&one, &other)
}

/// Parses the number at the start of a zero-terminated string.
fn to_integer(context: &Context, text: u64, base: u32, value: At<u32>) -> NtResult {
    let text = String::from_utf16_lossy(&terminated::<false>(context, text));
    let number = number_in(&text, base).ok_or(NtStatus::INVALID_PARAMETER)?;
    value.write(context, number);
    Ok(())
}

/// Creates a counted string with its own buffer from a zero-terminated string. Returns whether this
/// succeeded.
fn create(context: &Context, to: u64, text: u64) -> bool {
    let units = terminated::<true>(context, text);
    store::<true>(context, to, &units, true, true).is_ok()
}
