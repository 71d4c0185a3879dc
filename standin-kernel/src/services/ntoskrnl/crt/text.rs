//! More C runtime routines for strings and characters. `C` is the type of the characters.

use super::strings::{
    INVALID, RANGE, Unit, at, low_unit, lower, read, text, upper, write, write_string,
};
use crate::{
    execution::routine::{Argument, At, routine},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("_strlwr", change_case::<u8, false>),
    routine("_wcslwr", change_case::<u16, false>),
    routine("_strupr", change_case::<u8, true>),
    routine("_wcsupr", change_case::<u16, true>),
    routine("_wcslwr_s", change_case_safely::<u16, false>),
    routine("_wcsupr_s", change_case_safely::<u16, true>),
    routine("_strrev", reverse::<u8>),
    routine("_wcsrev", reverse::<u16>),
    routine("_strset", fill_narrow),
    routine("_wcsset", fill::<u16>),
    routine("strncat", append_limited::<u8>),
    routine("wcsncat", append_limited::<u16>),
    routine("strncat_s", append_safely::<u8>),
    routine("wcsncat_s", append_safely::<u16>),
    routine("strspn", span::<u8, true>),
    routine("wcsspn", span::<u16, true>),
    routine("strcspn", span::<u8, false>),
    routine("wcscspn", span::<u16, false>),
    routine("strpbrk", find_any::<u8>),
    routine("wcspbrk", find_any::<u16>),
    routine("strtok_s", token::<u8>),
    routine("wcstok_s", token::<u16>),
    routine("isalnum", is_alphanumeric::<i32>),
    routine("isalpha", is_alphabetic::<i32>),
    routine("isdigit", is_digit::<i32>),
    routine("islower", is_lower),
    routine("isprint", is_printable),
    routine("isspace", is_space::<i32>),
    routine("isupper", is_upper),
    routine("isxdigit", is_hex_digit::<i32>),
    routine("iswalnum", is_alphanumeric::<u16>),
    routine("iswalpha", is_alphabetic::<u16>),
    routine("iswdigit", is_digit::<u16>),
    routine("iswspace", is_space::<u16>),
    routine("iswxdigit", is_hex_digit::<u16>),
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

fn change_case<C: Unit, const UPPER: bool>(context: &Context, address: At<C>) -> At<C> {
    let units = text::<C>(context, address.0, u64::MAX);
    let change = if UPPER { upper } else { lower };
    let units: Vec<u16> = units.into_iter().map(change).collect();
    write::<C>(context, address.0, 0, &units);
    address
}

fn change_case_safely<C: Unit, const UPPER: bool>(
    context: &Context,
    address: At<C>,
    size: u64,
) -> i32 {
    if address.is_null() || size == 0 {
        return INVALID;
    }
    let length = text::<C>(context, address.0, size).len() as u64;
    if length == size {
        write::<C>(context, address.0, 0, &[0]);
        return INVALID;
    }
    change_case::<C, UPPER>(context, address);
    0
}

fn reverse<C: Unit>(context: &Context, address: At<C>) -> At<C> {
    let mut units = text::<C>(context, address.0, u64::MAX);
    units.reverse();
    write::<C>(context, address.0, 0, &units);
    address
}

/// Replaces each character of a string.
fn fill<C: Unit>(context: &Context, address: At<C>, unit: u16) -> At<C> {
    let length = text::<C>(context, address.0, u64::MAX).len();
    write::<C>(context, address.0, 0, &vec![unit; length]);
    address
}

fn fill_narrow(context: &Context, address: At<u8>, character: i32) -> At<u8> {
    fill::<u8>(context, address, low_unit(character))
}

fn append_limited<C: Unit>(context: &Context, dest: At<C>, from: At<C>, limit: u64) -> At<C> {
    let start = text::<C>(context, dest.0, u64::MAX).len() as u64;
    let units = text::<C>(context, from.0, limit);
    write_string::<C>(context, dest.0, start, units);
    dest
}

/// Appends at most `limit` characters. If they do not fit, empties the buffer.
fn append_safely<C: Unit>(
    context: &Context,
    dest: At<C>,
    size: u64,
    from: At<C>,
    limit: u64,
) -> i32 {
    /// `_TRUNCATE` and `STRUNCATE`.
    const AS_FITS: u64 = u64::MAX;
    const TRUNCATED: i32 = 80;
    if dest.is_null() || size == 0 {
        return INVALID;
    }
    let start = text::<C>(context, dest.0, size).len() as u64;
    if from.is_null() || start == size {
        write::<C>(context, dest.0, 0, &[0]);
        return INVALID;
    }
    let room = size - start - 1;
    let mut units = text::<C>(context, from.0, limit.min(room + 1));
    if units.len() as u64 <= room {
        write_string::<C>(context, dest.0, start, units);
        return 0;
    }
    if limit != AS_FITS {
        write::<C>(context, dest.0, 0, &[0]);
        return RANGE;
    }
    units.truncate(usize::try_from(room).unwrap_or(0));
    write_string::<C>(context, dest.0, start, units);
    TRUNCATED
}

/// Returns the number of characters at the start of a string that are all in a set or, if `IN_SET`
/// is not set, all outside it.
fn span<C: Unit, const IN_SET: bool>(context: &Context, address: At<C>, set: At<C>) -> u64 {
    let set = text::<C>(context, set.0, u64::MAX);
    let units = text::<C>(context, address.0, u64::MAX);
    let counted = units.iter().take_while(|unit| set.contains(unit) == IN_SET);
    counted.count() as u64
}

fn find_any<C: Unit>(context: &Context, address: At<C>, set: At<C>) -> At<C> {
    let set = text::<C>(context, set.0, u64::MAX);
    let units = text::<C>(context, address.0, u64::MAX);
    At::new(at::<C>(address.0, units.iter().position(|unit| set.contains(unit))))
}

/// Returns the next part of a string between separators, and overwrites the separator after it.
/// `rest` is the address of the caller's variable for the address of the remaining string.
fn token<C: Unit>(context: &Context, address: At<C>, separators: At<C>, rest: At<u64>) -> At<C> {
    let start = if address.is_null() { At::new(rest.read(context)) } else { address };
    if start.0 == 0 {
        return At::NULL;
    }
    let first = start.0.wrapping_add(offset::<C>(span::<C, true>(context, start, separators)));
    if read::<C>(context, first, 0) == 0 {
        context.write(rest.0, &first);
        return At::NULL;
    }
    let length = span::<C, false>(context, At::new(first), separators);
    let mut after = first.wrapping_add(offset::<C>(length));
    if read::<C>(context, after, 0) != 0 {
        write::<C>(context, after, 0, &[0]);
        after = after.wrapping_add(offset::<C>(1));
    }
    context.write(rest.0, &after);
    At::new(first)
}

const fn offset<C: Unit>(count: u64) -> u64 {
    if C::WIDE { count.wrapping_mul(2) } else { count }
}
