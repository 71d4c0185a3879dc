//! Routines that compare, copy and fill memory, and find the bits of a number.

use crate::{
    execution::routine::{At, Memory, routine},
    ground::arena::PAGE,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlCompareMemory", compare_memory),
    routine("RtlCompareMemoryUlong", compare_words),
    routine("RtlCopyMemory", move_memory),
    routine("RtlMoveMemory", move_memory),
    routine("RtlFillMemory", fill_memory),
    routine("RtlZeroMemory", zero_memory),
    routine("RtlFindLeastSignificantBit", least_significant_bit),
    routine("RtlFindMostSignificantBit", most_significant_bit),
];

/// Returns the number of equal bytes at the start. After the first difference, reads at most up to
/// the end of the page.
fn compare_memory(context: &Context, one: Memory, other: Memory, length: u64) -> u64 {
    equal_from_start(&[one.0, other.0], length, |at, step| {
        let [one, other] = [one, other].map(|start| context.bytes(start.0.wrapping_add(at), step));
        let equal = one.iter().zip(&other).take_while(|(one, other)| one == other);
        equal.count() as u64
    })
}

/// Adds up the results of `equal` for successive steps of memory, up to the first step that is not
/// entirely equal. `equal` receives a step's offset and length. No step crosses a page boundary of
/// any of `starts`.
fn equal_from_start(starts: &[u64], length: u64, equal: impl Fn(u64, u64) -> u64) -> u64 {
    const PAGE_SIZE: u64 = PAGE as u64;
    let mut at = 0;
    while at < length {
        let on_page = |start: &u64| PAGE_SIZE - start.wrapping_add(at) % PAGE_SIZE;
        let step = starts.iter().map(on_page).fold(length - at, u64::min);
        let found = equal(at, step);
        at += found;
        if found < step {
            break;
        }
    }
    at
}

/// Returns the total size of the words at the start that equal a pattern.
fn compare_words(context: &Context, at: Memory, length: u64, pattern: u32) -> u64 {
    let pattern = pattern.to_le_bytes();
    equal_from_start(&[at.0], length & !3, |offset, step| {
        let bytes = context.bytes(at.0.wrapping_add(offset), step);
        let mut places = (offset..).zip(&bytes);
        let differs = places.find(|(place, byte)| pattern.get((place & 3) as usize) != Some(*byte));
        differs.map_or(step, |(place, _)| place - offset)
    }) & !3
}

fn move_memory(context: &Context, destination: Memory, from: Memory, length: u64) {
    context.write_bytes(destination.0, &context.bytes(from.0, length));
}

fn fill_memory(context: &Context, destination: Memory, length: u64, value: u8) {
    /// The maximum number of bytes in a step.
    const STEP: u64 = 0x1_0000;
    let mut at = destination;
    let mut left = length;
    while left > 0 {
        let now = left.min(STEP);
        let step = vec![value; usize::try_from(now).unwrap_or(0)];
        context.write_bytes(at.0, &step);
        at = At::new(at.0.wrapping_add(now));
        left -= now;
    }
}

fn zero_memory(context: &Context, destination: Memory, length: u64) {
    fill_memory(context, destination, length, 0);
}

/// Converts a bit's index to a `CCHAR`, or returns -1 if there is no bit.
fn bit(number: Option<u32>) -> i8 {
    number.and_then(|number| i8::try_from(number).ok()).unwrap_or(-1)
}

fn least_significant_bit(_context: &Context, set: u64) -> i8 {
    bit((set != 0).then(|| set.trailing_zeros()))
}

fn most_significant_bit(_context: &Context, set: u64) -> i8 {
    bit(set.checked_ilog2())
}
