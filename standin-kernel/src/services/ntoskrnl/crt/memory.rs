//! The C runtime's memory and array routines, except those that compilers call implicitly.

use super::strings::{INVALID, RANGE};
use crate::{
    execution::routine::{At, Callback, Memory, low_half, routine},
    ground::memory,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("memchr", find),
    routine("memcpy_s", copy_safely),
    routine("memmove_s", move_safely),
    routine("qsort", sort),
    routine("qsort_s", sort_safely),
    routine("bsearch", search),
    routine("bsearch_s", search_safely),
];

/// Returns the address of the first byte with the given value, or null.
fn find(context: &Context, address: Memory, value: i32, length: u64) -> Memory {
    let [wanted, ..] = value.to_le_bytes();
    for number in 0..length {
        let at = address.0.wrapping_add(number);
        if context.read::<u8>(at) == wanted {
            return At::new(at);
        }
    }
    At::NULL
}

/// Returns the error for a copy that does not fit or has a null pointer, if it is such a copy.
const fn refused(dest: u64, size: u64, from: u64, count: u64) -> Option<i32> {
    if dest == 0 || from == 0 {
        Some(INVALID)
    } else if size < count {
        Some(RANGE)
    } else {
        None
    }
}

/// The maximum number of bytes for one routine. A larger count is reported as wrong.
const LARGEST: u64 = 1 << 32;

fn copy(context: &Context, dest: u64, from: u64, count: u64) {
    if count > LARGEST {
        context.stop_for_misuse(&format!("for {count} bytes"));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let bytes = memory::read_bytes(from, count);
    let written = bytes.and_then(|bytes| memory::write_bytes(dest, &bytes));
    context.checked(written);
}

/// Copies memory. If the destination is too small, clears it.
fn copy_safely(context: &Context, dest: Memory, size: u64, from: Memory, count: u64) -> i32 {
    if count == 0 {
        return 0;
    }
    let Some(error) = refused(dest.0, size, from.0, count) else {
        copy(context, dest.0, from.0, count);
        return 0;
    };
    if !dest.is_null() {
        let zeros = vec![0; usize::try_from(size.min(LARGEST)).unwrap_or(0)];
        context.write_bytes(dest.0, &zeros);
    }
    error
}

/// Copies memory that may overlap. If the destination is too small, leaves it unchanged.
fn move_safely(context: &Context, dest: Memory, size: u64, from: Memory, count: u64) -> i32 {
    if count == 0 {
        return 0;
    }
    let error = refused(dest.0, size, from.0, count);
    if error.is_none() {
        copy(context, dest.0, from.0, count);
    }
    error.unwrap_or(0)
}

/// An array whose elements a driver routine compares.
struct Array<'a> {
    context: &'a Context,
    base: u64,
    width: u64,
    routine: u64,
    /// The first argument of a comparison routine that has more parameters than the two elements.
    argument: Option<u64>,
}

impl Array<'_> {
    /// Bugchecks if the array is larger than memory.
    fn check(&self, count: u64) {
        let size = self.width.checked_mul(count);
        if size.is_none_or(|size| size > LARGEST) {
            let what = format!("for {count} elements of {} bytes", self.width);
            self.context.stop_for_misuse(&what);
        }
    }

    const fn at(&self, number: u64) -> u64 {
        self.base.wrapping_add(number.wrapping_mul(self.width))
    }

    /// Returns a negative number, 0 or a positive number if the first element is less than, equal
    /// to or greater than the second.
    fn compare(&self, one: u64, other: u64) -> i32 {
        let what = "the comparison routine";
        let result = self.argument.map_or_else(
            || self.context.call_driver(what, self.routine, [one, other]),
            |argument| {
                let arguments = [argument, one, other];
                self.context.call_driver(what, self.routine, arguments)
            },
        );
        low_half(result).cast_signed()
    }

    fn swap(&self, one: u64, other: u64) {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        let swapped = memory::read_bytes(one, width).and_then(|first| {
            let second = memory::read_bytes(other, width)?;
            memory::write_bytes(one, &second)?;
            memory::write_bytes(other, &first)
        });
        self.context.checked(swapped);
    }

    /// Moves an element down in a heap until no child is greater.
    fn sift_down(&self, start: u64, count: u64) {
        let mut parent = start;
        loop {
            let mut child = 2 * parent + 1;
            if child >= count {
                return;
            }
            if child + 1 < count && self.compare(self.at(child), self.at(child + 1)) < 0 {
                child += 1;
            }
            if self.compare(self.at(parent), self.at(child)) >= 0 {
                return;
            }
            self.swap(self.at(parent), self.at(child));
            parent = child;
        }
    }

    /// Sorts the elements in place. As on Windows, the order of equal elements is unspecified.
    fn sort(&self, count: u64) {
        self.check(count);
        for start in (0..count / 2).rev() {
            self.sift_down(start, count);
        }
        for end in (1..count).rev() {
            self.swap(self.at(0), self.at(end));
            self.sift_down(0, end);
        }
    }

    /// Returns the address of an element that equals a key, or null.
    fn search(&self, key: u64, count: u64) -> u64 {
        self.check(count);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.compare(key, self.at(middle));
            if order == 0 {
                return self.at(middle);
            }
            if order < 0 {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        0
    }
}

fn sort(context: &Context, base: Memory, count: u64, width: u64, routine: Callback) {
    let array = Array { context, base: base.0, width, routine: routine.0, argument: None };
    array.sort(count);
}

fn sort_safely(
    context: &Context,
    base: Memory,
    count: u64,
    width: u64,
    routine: Callback,
    argument: Memory,
) {
    let array =
        Array { context, base: base.0, width, routine: routine.0, argument: Some(argument.0) };
    array.sort(count);
}

fn search(
    context: &Context,
    key: Memory,
    base: Memory,
    count: u64,
    width: u64,
    routine: Callback,
) -> Memory {
    let array = Array { context, base: base.0, width, routine: routine.0, argument: None };
    At::new(array.search(key.0, count))
}

fn search_safely(
    context: &Context,
    key: Memory,
    base: Memory,
    count: u64,
    width: u64,
    routine: Callback,
    argument: Memory,
) -> Memory {
    let array =
        Array { context, base: base.0, width, routine: routine.0, argument: Some(argument.0) };
    At::new(array.search(key.0, count))
}
