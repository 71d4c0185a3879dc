//! More C runtime routines for strings and characters. `WIDE` selects routines for UTF-16 strings.

use super::strings::{INVALID, RANGE, at, low_unit, lower, read, text, upper, write, write_string};
use crate::{
    execution::routine::{Argument, Routine},
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("_strlwr", HIGH, Routine::of(change_case::<false, false>)),
    ("_wcslwr", HIGH, Routine::of(change_case::<true, false>)),
    ("_strupr", HIGH, Routine::of(change_case::<false, true>)),
    ("_wcsupr", HIGH, Routine::of(change_case::<true, true>)),
    ("_wcslwr_s", HIGH, Routine::of(change_case_safely::<true, false>)),
    ("_wcsupr_s", HIGH, Routine::of(change_case_safely::<true, true>)),
    ("_strrev", HIGH, Routine::of(reverse::<false>)),
    ("_wcsrev", HIGH, Routine::of(reverse::<true>)),
    ("_strset", HIGH, Routine::of(fill_narrow)),
    ("_wcsset", HIGH, Routine::of(fill::<true>)),
    ("strncat", HIGH, Routine::of(append_limited::<false>)),
    ("wcsncat", HIGH, Routine::of(append_limited::<true>)),
    ("strncat_s", HIGH, Routine::of(append_safely::<false>)),
    ("wcsncat_s", HIGH, Routine::of(append_safely::<true>)),
    ("strspn", HIGH, Routine::of(span::<false, true>)),
    ("wcsspn", HIGH, Routine::of(span::<true, true>)),
    ("strcspn", HIGH, Routine::of(span::<false, false>)),
    ("wcscspn", HIGH, Routine::of(span::<true, false>)),
    ("strpbrk", HIGH, Routine::of(find_any::<false>)),
    ("wcspbrk", HIGH, Routine::of(find_any::<true>)),
    ("strtok_s", HIGH, Routine::of(token::<false>)),
    ("wcstok_s", HIGH, Routine::of(token::<true>)),
    ("isalnum", HIGH, Routine::of(is_alphanumeric::<i32>)),
    ("isalpha", HIGH, Routine::of(is_alphabetic::<i32>)),
    ("isdigit", HIGH, Routine::of(is_digit::<i32>)),
    ("islower", HIGH, Routine::of(is_lower)),
    ("isprint", HIGH, Routine::of(is_printable)),
    ("isspace", HIGH, Routine::of(is_space::<i32>)),
    ("isupper", HIGH, Routine::of(is_upper)),
    ("isxdigit", HIGH, Routine::of(is_hex_digit::<i32>)),
    ("iswalnum", HIGH, Routine::of(is_alphanumeric::<u16>)),
    ("iswalpha", HIGH, Routine::of(is_alphabetic::<u16>)),
    ("iswdigit", HIGH, Routine::of(is_digit::<u16>)),
    ("iswspace", HIGH, Routine::of(is_space::<u16>)),
    ("iswxdigit", HIGH, Routine::of(is_hex_digit::<u16>)),
];

/// A character from a string, or an `int`.
trait Character: Argument + TryInto<u8> {}

impl<T: Argument + TryInto<u8>> Character for T {}

/// Returns whether a character is a member of a class, as C does: nonzero for a member. In the C
/// locale, EOF and characters beyond ASCII are in no class.
fn class(character: impl Character, is_member: fn(&u8) -> bool) -> i32 {
    character.try_into().is_ok_and(|byte| is_member(&byte)).into()
}

fn is_alphanumeric<T: Character>(_context: &Context, character: T) -> i32 {
    class(character, u8::is_ascii_alphanumeric)
}

fn is_alphabetic<T: Character>(_context: &Context, character: T) -> i32 {
    class(character, u8::is_ascii_alphabetic)
}

fn is_digit<T: Character>(_context: &Context, character: T) -> i32 {
    class(character, u8::is_ascii_digit)
}

fn is_lower(_context: &Context, character: i32) -> i32 {
    class(character, u8::is_ascii_lowercase)
}

fn is_printable(_context: &Context, character: i32) -> i32 {
    class(character, |byte| (0x20..0x7F).contains(byte))
}

fn is_space<T: Character>(_context: &Context, character: T) -> i32 {
    class(character, |byte| matches!(byte, 9..=13 | 32))
}

fn is_upper(_context: &Context, character: i32) -> i32 {
    class(character, u8::is_ascii_uppercase)
}

fn is_hex_digit<T: Character>(_context: &Context, character: T) -> i32 {
    class(character, u8::is_ascii_hexdigit)
}

fn change_case<const WIDE: bool, const UPPER: bool>(context: &Context, address: u64) -> u64 {
    let units = text::<WIDE>(context, address, u64::MAX);
    let change = if UPPER { upper } else { lower };
    let units: Vec<u16> = units.into_iter().map(change).collect();
    write::<WIDE>(context, address, 0, &units);
    address
}

fn change_case_safely<const WIDE: bool, const UPPER: bool>(
    context: &Context,
    address: u64,
    size: u64,
) -> i32 {
    if address == 0 || size == 0 {
        return INVALID;
    }
    let length = text::<WIDE>(context, address, size).len() as u64;
    if length == size {
        write::<WIDE>(context, address, 0, &[0]);
        return INVALID;
    }
    change_case::<WIDE, UPPER>(context, address);
    0
}

fn reverse<const WIDE: bool>(context: &Context, address: u64) -> u64 {
    let mut units = text::<WIDE>(context, address, u64::MAX);
    units.reverse();
    write::<WIDE>(context, address, 0, &units);
    address
}

/// Replaces each character of a string.
fn fill<const WIDE: bool>(context: &Context, address: u64, unit: u16) -> u64 {
    let length = text::<WIDE>(context, address, u64::MAX).len();
    write::<WIDE>(context, address, 0, &vec![unit; length]);
    address
}

fn fill_narrow(context: &Context, address: u64, character: i32) -> u64 {
    fill::<false>(context, address, low_unit(character))
}

fn append_limited<const WIDE: bool>(context: &Context, to: u64, from: u64, limit: u64) -> u64 {
    let start = text::<WIDE>(context, to, u64::MAX).len() as u64;
    let units = text::<WIDE>(context, from, limit);
    write_string::<WIDE>(context, to, start, units);
    to
}

/// Appends at most `limit` characters. If they do not fit, empties the buffer.
fn append_safely<const WIDE: bool>(
    context: &Context,
    to: u64,
    size: u64,
    from: u64,
    limit: u64,
) -> i32 {
    /// `_TRUNCATE` and `STRUNCATE`.
    const AS_FITS: u64 = u64::MAX;
    const TRUNCATED: i32 = 80;
    if to == 0 || size == 0 {
        return INVALID;
    }
    let start = text::<WIDE>(context, to, size).len() as u64;
    if from == 0 || start == size {
        write::<WIDE>(context, to, 0, &[0]);
        return INVALID;
    }
    let room = size - start - 1;
    let mut units = text::<WIDE>(context, from, limit.min(room + 1));
    if units.len() as u64 <= room {
        write_string::<WIDE>(context, to, start, units);
        return 0;
    }
    if limit != AS_FITS {
        write::<WIDE>(context, to, 0, &[0]);
        return RANGE;
    }
    units.truncate(usize::try_from(room).unwrap_or(0));
    write_string::<WIDE>(context, to, start, units);
    TRUNCATED
}

/// Returns the number of characters at the start of a string that are all in a set or, if `IN_SET`
/// is not set, all outside it.
fn span<const WIDE: bool, const IN_SET: bool>(context: &Context, address: u64, set: u64) -> u64 {
    let set = text::<WIDE>(context, set, u64::MAX);
    let units = text::<WIDE>(context, address, u64::MAX);
    let counted = units.iter().take_while(|unit| set.contains(unit) == IN_SET);
    counted.count() as u64
}

fn find_any<const WIDE: bool>(context: &Context, address: u64, set: u64) -> u64 {
    let set = text::<WIDE>(context, set, u64::MAX);
    let units = text::<WIDE>(context, address, u64::MAX);
    at::<WIDE>(address, units.iter().position(|unit| set.contains(unit)))
}

/// Returns the next part of a string between separators, and overwrites the separator after it.
/// `rest` is the address of the caller's variable for the address of the remaining string.
fn token<const WIDE: bool>(context: &Context, address: u64, separators: u64, rest: u64) -> u64 {
    let start = if address == 0 { context.read(rest) } else { address };
    if start == 0 {
        return 0;
    }
    let first = start.wrapping_add(offset::<WIDE>(span::<WIDE, true>(context, start, separators)));
    if read::<WIDE>(context, first, 0) == 0 {
        context.write(rest, &first);
        return 0;
    }
    let length = span::<WIDE, false>(context, first, separators);
    let mut after = first.wrapping_add(offset::<WIDE>(length));
    if read::<WIDE>(context, after, 0) != 0 {
        write::<WIDE>(context, after, 0, &[0]);
        after = after.wrapping_add(offset::<WIDE>(1));
    }
    context.write(rest, &after);
    first
}

const fn offset<const WIDE: bool>(count: u64) -> u64 {
    if WIDE { count.wrapping_mul(2) } else { count }
}
