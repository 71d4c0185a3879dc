//! Texts without a counted string: their sizes, comparisons and numbers, and strings that are made of them.

use super::strings::{difference, number_in, store, terminated};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        crt::letters::upcase,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlUnicodeToMultiByteSize", PASSIVE, Routine::Three(size_as_bytes)),
    ("RtlMultiByteToUnicodeSize", PASSIVE, Routine::Three(size_as_units)),
    ("RtlCompareUnicodeStrings", PASSIVE, Routine::Five(compare)),
    ("RtlCharToInteger", PASSIVE, Routine::Three(to_integer)),
    ("RtlCreateUnicodeString", APC, Routine::Two(create)),
];

/// Stores the size of a text in bytes of the ANSI code page, in which each character has one.
fn size_as_bytes(context: &Context, to: u64, _text: u64, length: u64) -> u64 {
    context.write(to, &(low_half(length) / 2));
    NtStatus::SUCCESS.to_register()
}

fn size_as_units(context: &Context, to: u64, _text: u64, length: u64) -> u64 {
    context.write(to, &low_half(length).wrapping_mul(2));
    NtStatus::SUCCESS.to_register()
}

/// Compares texts of these numbers of characters.
fn compare(
    context: &Context,
    one: u64,
    length: u64,
    other: u64,
    other_length: u64,
    ignore_case: u64,
) -> u64 {
    let folds = ignore_case & 0xFF != 0;
    let [one, other] = [(one, length), (other, other_length)].map(|(at, count)| {
        let bytes = context.bytes(at, count.saturating_mul(2));
        let pairs = bytes.chunks_exact(2);
        let units = pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        if folds { units.map(upcase).collect() } else { units.collect::<Vec<u16>>() }
    });
    u64::from(difference(&one, &other).cast_unsigned())
}

/// Reads the number at the start of a text that ends with a zero.
fn to_integer(context: &Context, text: u64, base: u64, value: u64) -> u64 {
    let text = String::from_utf16_lossy(&terminated::<false>(context, text));
    let Some(number) = number_in(&text, low_half(base)) else {
        return NtStatus::INVALID_PARAMETER.to_register();
    };
    context.write(value, &number);
    NtStatus::SUCCESS.to_register()
}

/// Makes a counted string with a buffer of its own of a text that ends with a zero. Returns whether that
/// succeeded.
fn create(context: &Context, to: u64, text: u64) -> u64 {
    let units = terminated::<true>(context, text);
    let status = store::<true>(context, to, &units, 1, true);
    u64::from(status.is_success())
}
