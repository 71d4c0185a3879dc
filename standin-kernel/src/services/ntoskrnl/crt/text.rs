//! More of the C runtime's routines on strings and characters. `WIDE` stands for routines on UTF-16
//! strings.

use super::strings::{INVALID, RANGE, at, lower, read, text, upper, write, write_string};
use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("_strlwr", HIGH, Routine::One(change_case::<false, false>)),
    ("_wcslwr", HIGH, Routine::One(change_case::<true, false>)),
    ("_strupr", HIGH, Routine::One(change_case::<false, true>)),
    ("_wcsupr", HIGH, Routine::One(change_case::<true, true>)),
    ("_wcslwr_s", HIGH, Routine::Two(change_case_safely::<true, false>)),
    ("_wcsupr_s", HIGH, Routine::Two(change_case_safely::<true, true>)),
    ("_strrev", HIGH, Routine::One(reverse::<false>)),
    ("_wcsrev", HIGH, Routine::One(reverse::<true>)),
    ("_strset", HIGH, Routine::Two(fill::<false>)),
    ("_wcsset", HIGH, Routine::Two(fill::<true>)),
    ("strncat", HIGH, Routine::Three(append_limited::<false>)),
    ("wcsncat", HIGH, Routine::Three(append_limited::<true>)),
    ("strncat_s", HIGH, Routine::Four(append_safely::<false>)),
    ("wcsncat_s", HIGH, Routine::Four(append_safely::<true>)),
    ("strspn", HIGH, Routine::Two(span::<false, true>)),
    ("wcsspn", HIGH, Routine::Two(span::<true, true>)),
    ("strcspn", HIGH, Routine::Two(span::<false, false>)),
    ("wcscspn", HIGH, Routine::Two(span::<true, false>)),
    ("strpbrk", HIGH, Routine::Two(find_any::<false>)),
    ("wcspbrk", HIGH, Routine::Two(find_any::<true>)),
    ("strtok_s", HIGH, Routine::Three(token::<false>)),
    ("wcstok_s", HIGH, Routine::Three(token::<true>)),
    ("isalnum", HIGH, Routine::One(is_alphanumeric)),
    ("isalpha", HIGH, Routine::One(is_alphabetic)),
    ("isdigit", HIGH, Routine::One(is_digit)),
    ("islower", HIGH, Routine::One(is_lower)),
    ("isprint", HIGH, Routine::One(is_printable)),
    ("isspace", HIGH, Routine::One(is_space)),
    ("isupper", HIGH, Routine::One(is_upper)),
    ("isxdigit", HIGH, Routine::One(is_hex_digit)),
    ("iswalnum", HIGH, Routine::One(is_alphanumeric)),
    ("iswalpha", HIGH, Routine::One(is_alphabetic)),
    ("iswdigit", HIGH, Routine::One(is_digit)),
    ("iswspace", HIGH, Routine::One(is_space)),
    ("iswxdigit", HIGH, Routine::One(is_hex_digit)),
];

/// Returns a character's class as C does: a value that is not 0 for a member.
fn class(value: u64, is_member: fn(&u8) -> bool) -> u64 {
    // EOF and characters beyond ASCII are in no class of the C locale.
    let byte = u8::try_from(value & 0xFFFF_FFFF);
    u64::from(byte.is_ok_and(|byte| is_member(&byte)))
}

fn is_alphanumeric(_context: &Context, value: u64) -> u64 {
    class(value, u8::is_ascii_alphanumeric)
}

fn is_alphabetic(_context: &Context, value: u64) -> u64 {
    class(value, u8::is_ascii_alphabetic)
}

fn is_digit(_context: &Context, value: u64) -> u64 {
    class(value, u8::is_ascii_digit)
}

fn is_lower(_context: &Context, value: u64) -> u64 {
    class(value, u8::is_ascii_lowercase)
}

fn is_printable(_context: &Context, value: u64) -> u64 {
    class(value, |byte| (0x20..0x7F).contains(byte))
}

fn is_space(_context: &Context, value: u64) -> u64 {
    class(value, |byte| matches!(byte, 9..=13 | 32))
}

fn is_upper(_context: &Context, value: u64) -> u64 {
    class(value, u8::is_ascii_uppercase)
}

fn is_hex_digit(_context: &Context, value: u64) -> u64 {
    class(value, u8::is_ascii_hexdigit)
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
) -> u64 {
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
fn fill<const WIDE: bool>(context: &Context, address: u64, value: u64) -> u64 {
    let length = text::<WIDE>(context, address, u64::MAX).len();
    write::<WIDE>(context, address, 0, &vec![(value & 0xFFFF) as u16; length]);
    address
}

fn append_limited<const WIDE: bool>(context: &Context, to: u64, from: u64, limit: u64) -> u64 {
    let start = text::<WIDE>(context, to, u64::MAX).len() as u64;
    let units = text::<WIDE>(context, from, limit);
    write_string::<WIDE>(context, to, start, units);
    to
}

/// Appends at most `limit` characters. The buffer is emptied if they do not fit.
fn append_safely<const WIDE: bool>(
    context: &Context,
    to: u64,
    size: u64,
    from: u64,
    limit: u64,
) -> u64 {
    /// `_TRUNCATE` and `STRUNCATE`.
    const AS_FITS: u64 = u64::MAX;
    const TRUNCATED: u64 = 80;
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

/// Returns the number of characters at the start that are in a set, or that are not.
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

/// Returns the next part of a string between separators, which are overwritten. `rest` is where the caller
/// keeps the address of what follows.
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
