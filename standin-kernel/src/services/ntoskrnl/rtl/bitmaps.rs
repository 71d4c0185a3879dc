//! Bitmaps (`RTL_BITMAP`): arrays of bits in a driver's memory.

use crate::{
    execution::routine::{At, routine},
    ground::abi::Bitmap,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlInitializeBitMap", initialize),
    routine("RtlSetBit", change_one::<true>),
    routine("RtlClearBit", change_one::<false>),
    routine("RtlTestBit", test),
    routine("RtlSetBits", change::<true>),
    routine("RtlClearBits", change::<false>),
    routine("RtlSetAllBits", change_all::<true>),
    routine("RtlClearAllBits", change_all::<false>),
    routine("RtlAreBitsSet", are::<true>),
    routine("RtlAreBitsClear", are::<false>),
    routine("RtlNumberOfSetBits", count::<true>),
    routine("RtlNumberOfClearBits", count::<false>),
    routine("RtlFindSetBits", find::<true>),
    routine("RtlFindClearBits", find::<false>),
    routine("RtlFindSetBitsAndClear", find_and_change::<true>),
    routine("RtlFindClearBitsAndSet", find_and_change::<false>),
    routine("RtlFindFirstRunClear", first_clear_run),
    routine("RtlFindLongestRunClear", longest_clear_run),
    routine("RtlFindNextForwardRunClear", next_clear_run),
];

/// The result of an unsuccessful search.
const NONE: u32 = u32::MAX;

/// A copy of a bitmap's bits.
struct Bits {
    /// The bits' address.
    at: u64,
    length: u32,
    bytes: Vec<u8>,
}

impl Bits {
    /// Reads a bitmap's bits, in whole words as in memory.
    fn read(context: &Context, bitmap: At<Bitmap>) -> Self {
        let value = bitmap.read(context);
        let words = u64::from(value.size_of_bit_map).div_ceil(32);
        Self {
            at: value.buffer,
            length: value.size_of_bit_map,
            bytes: context.bytes(value.buffer, 4 * words),
        }
    }

    fn write(&self, context: &Context) {
        context.write_bytes(self.at, &self.bytes);
    }

    /// Stores the bytes that contain a range of bits. Other threads can change other bytes.
    fn write_some(&self, context: &Context, start: u32, end: u32) {
        let (first, after) = (start / 8, end.div_ceil(8));
        if let Some(bytes) = self.bytes.get(first as usize..after as usize) {
            context.write_bytes(self.at.wrapping_add(u64::from(first)), bytes);
        }
    }

    fn get(&self, bit: u32) -> bool {
        let byte = self.bytes.get(bit as usize / 8);
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 != 0)
    }

    fn set(&mut self, bit: u32, is_set: bool) {
        if let Some(byte) = self.bytes.get_mut(bit as usize / 8) {
            let mask = 1 << (bit % 8);
            if is_set {
                *byte |= mask;
            } else {
                *byte &= !mask;
            }
        }
    }

    /// Returns the end of a range of bits, or `None` if the range exceeds the bitmap.
    fn end(&self, start: u32, count: u32) -> Option<u32> {
        let end = start.checked_add(count)?;
        (end <= self.length).then_some(end)
    }

    /// Returns the start and length of the first run of set or clear bits at or after `from`.
    fn run(&self, from: u32, is_set: bool) -> Option<(u32, u32)> {
        let start = (from..self.length).find(|bit| self.get(*bit) == is_set)?;
        let end = (start..self.length).find(|bit| self.get(*bit) != is_set);
        Some((start, end.unwrap_or(self.length) - start))
    }

    /// Returns the first position, from `from` to `below`, at which `count` set or clear bits
    /// start.
    fn place(&self, from: u32, below: u32, count: u32, is_set: bool) -> Option<u32> {
        let mut at = from;
        while let Some((start, length)) = self.run(at, is_set) {
            if start >= below {
                return None;
            }
            if length >= count {
                return Some(start);
            }
            at = start.saturating_add(length);
        }
        None
    }
}

fn initialize(context: &Context, bitmap: At<Bitmap>, buffer: At<u32>, size: u32) {
    bitmap.write(context, Bitmap { size_of_bit_map: size, buffer: buffer.0, ..Default::default() });
}

/// Bugchecks if a range exceeds the bitmap. On Windows, the routine would change other memory.
fn must_have(context: &Context, bits: &Bits, start: u32, count: u32) -> u32 {
    bits.end(start, count).unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "for {count} bits from bit {start} of a bitmap with {} bits",
            bits.length
        ))
    })
}

fn change_one<const SET: bool>(context: &Context, bitmap: At<Bitmap>, bit: u32) {
    change::<SET>(context, bitmap, bit, 1);
}

fn change<const SET: bool>(context: &Context, bitmap: At<Bitmap>, start: u32, count: u32) {
    let mut bits = Bits::read(context, bitmap);
    let end = must_have(context, &bits, start, count);
    for bit in start..end {
        bits.set(bit, SET);
    }
    bits.write_some(context, start, end);
}

/// Changes all bits, including the padding in the last word.
fn change_all<const SET: bool>(context: &Context, bitmap: At<Bitmap>) {
    let mut bits = Bits::read(context, bitmap);
    bits.bytes.fill(if SET { u8::MAX } else { 0 });
    bits.write(context);
}

fn test(context: &Context, bitmap: At<Bitmap>, bit: u32) -> bool {
    let bits = Bits::read(context, bitmap);
    must_have(context, &bits, bit, 1);
    bits.get(bit)
}

/// Returns whether all bits in a range are set or, if `SET` is not set, clear. Returns `false` if
/// the range is empty or exceeds the bitmap.
fn are<const SET: bool>(context: &Context, bitmap: At<Bitmap>, start: u32, count: u32) -> bool {
    let bits = Bits::read(context, bitmap);
    let end = bits.end(start, count).filter(|_| count > 0);
    end.is_some_and(|end| (start..end).all(|bit| bits.get(bit) == SET))
}

fn count<const SET: bool>(context: &Context, bitmap: At<Bitmap>) -> u32 {
    let bits = Bits::read(context, bitmap);
    (0..bits.length).map(|bit| u32::from(bits.get(bit) == SET)).sum()
}

/// Returns the start of a run of set or clear bits: the first run after a hint or, if there is
/// none, after the bitmap's start.
fn search<const SET: bool>(bits: &Bits, count: u32, hint: u32) -> Option<u32> {
    let hint = if hint < bits.length { hint } else { 0 };
    if count == 0 {
        // As on Windows, an empty run is found at the hint.
        return Some(hint & !7);
    }
    bits.place(hint, bits.length, count, SET).or_else(|| bits.place(0, hint, count, SET))
}

fn find<const SET: bool>(context: &Context, bitmap: At<Bitmap>, count: u32, hint: u32) -> u32 {
    let bits = Bits::read(context, bitmap);
    search::<SET>(&bits, count, hint).unwrap_or(NONE)
}

fn find_and_change<const SET: bool>(
    context: &Context,
    bitmap: At<Bitmap>,
    count: u32,
    hint: u32,
) -> u32 {
    let mut bits = Bits::read(context, bitmap);
    let Some(start) = search::<SET>(&bits, count, hint) else {
        return NONE;
    };
    for bit in start..start.saturating_add(count) {
        bits.set(bit, !SET);
    }
    bits.write(context);
    start
}

/// Stores the start of a run of clear bits. Returns the run's length.
fn store(context: &Context, run: Option<(u32, u32)>, otherwise: u32, start: At<u32>) -> u32 {
    let (found, length) = run.unwrap_or((otherwise, 0));
    start.write(context, found);
    length
}

fn first_clear_run(context: &Context, bitmap: At<Bitmap>, start: At<u32>) -> u32 {
    let bits = Bits::read(context, bitmap);
    store(context, bits.run(0, false), bits.length, start)
}

fn next_clear_run(context: &Context, bitmap: At<Bitmap>, from: u32, start: At<u32>) -> u32 {
    let bits = Bits::read(context, bitmap);
    store(context, bits.run(from, false), bits.length, start)
}

fn longest_clear_run(context: &Context, bitmap: At<Bitmap>, start: At<u32>) -> u32 {
    let bits = Bits::read(context, bitmap);
    let mut longest: Option<(u32, u32)> = None;
    let mut from = 0;
    while let Some((at, length)) = bits.run(from, false) {
        if longest.is_none_or(|(_, longest)| length > longest) {
            longest = Some((at, length));
        }
        from = at.saturating_add(length);
    }
    store(context, longest, 0, start)
}

#[cfg(test)]
mod tests {
    use super::{Bits, search};

    fn bits(text: &str) -> Bits {
        let mut bits = Bits {
            at: 0,
            length: u32::try_from(text.len()).unwrap(),
            bytes: vec![0; text.len().div_ceil(32) * 4],
        };
        for (bit, digit) in (0..).zip(text.chars()) {
            bits.set(bit, digit == '1');
        }
        bits
    }

    #[test]
    fn a_search_begins_at_the_hint_and_goes_on_at_the_start() {
        let bits = bits("0011001110000100");
        assert_eq!(search::<false>(&bits, 2, 0), Some(0));
        assert_eq!(search::<false>(&bits, 3, 0), Some(9));
        assert_eq!(search::<false>(&bits, 2, 1), Some(4));
        assert_eq!(search::<false>(&bits, 2, 12), Some(14));
        assert_eq!(search::<false>(&bits, 3, 13), Some(9));
        assert_eq!(search::<false>(&bits, 5, 0), None);
        assert_eq!(search::<true>(&bits, 3, 0), Some(6));
        assert_eq!(search::<true>(&bits, 1, 99), Some(2));
    }

    #[test]
    fn a_run_ends_with_the_bitmap() {
        let bits = bits("11100");
        assert_eq!(bits.run(0, false), Some((3, 2)));
        assert_eq!(bits.run(0, true), Some((0, 3)));
        assert_eq!(bits.run(3, true), None);
        assert_eq!(bits.end(3, 2), Some(5));
        assert_eq!(bits.end(3, 3), None);
        assert_eq!(bits.end(u32::MAX, 2), None);
    }
}
