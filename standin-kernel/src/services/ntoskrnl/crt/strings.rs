//! The C runtime's string routines that ntoskrnl.exe exports, except those that compilers call
//! implicitly. `WIDE` selects routines for UTF-16 strings. The locale is the C locale.

use super::format::{Arguments, Formatted, Width, format, variadic, wide_string};
use crate::{
    execution::routine::Routine,
    ground::{irql::Irql, memory},
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("wcslen", HIGH, Routine::of(length::<true>)),
    ("strnlen", HIGH, Routine::of(limited_length::<false>)),
    ("wcsnlen", HIGH, Routine::of(limited_length::<true>)),
    ("strcmp", HIGH, Routine::of(compare::<false, false>)),
    ("wcscmp", HIGH, Routine::of(compare::<true, false>)),
    ("_stricmp", HIGH, Routine::of(compare::<false, true>)),
    ("_wcsicmp", HIGH, Routine::of(compare::<true, true>)),
    ("strncmp", HIGH, Routine::of(compare_limited::<false, false>)),
    ("wcsncmp", HIGH, Routine::of(compare_limited::<true, false>)),
    ("_strnicmp", HIGH, Routine::of(compare_limited::<false, true>)),
    ("_wcsnicmp", HIGH, Routine::of(compare_limited::<true, true>)),
    ("strchr", HIGH, Routine::of(find_narrow)),
    ("wcschr", HIGH, Routine::of(find::<true>)),
    ("strrchr", HIGH, Routine::of(find_last_narrow)),
    ("wcsrchr", HIGH, Routine::of(find_last::<true>)),
    ("strstr", HIGH, Routine::of(find_text::<false>)),
    ("wcsstr", HIGH, Routine::of(find_text::<true>)),
    ("strcpy", HIGH, Routine::of(copy::<false>)),
    ("wcscpy", HIGH, Routine::of(copy::<true>)),
    ("strncpy", HIGH, Routine::of(copy_limited::<false>)),
    ("wcsncpy", HIGH, Routine::of(copy_limited::<true>)),
    ("strcat", HIGH, Routine::of(append::<false>)),
    ("wcscat", HIGH, Routine::of(append::<true>)),
    ("strcpy_s", HIGH, Routine::of(copy_safely::<false>)),
    ("wcscpy_s", HIGH, Routine::of(copy_safely::<true>)),
    ("strncpy_s", HIGH, Routine::of(copy_limited_safely::<false>)),
    ("wcsncpy_s", HIGH, Routine::of(copy_limited_safely::<true>)),
    ("strcat_s", HIGH, Routine::of(append_safely::<false>)),
    ("wcscat_s", HIGH, Routine::of(append_safely::<true>)),
    ("tolower", HIGH, Routine::of(to_lower)),
    ("toupper", HIGH, Routine::of(to_upper)),
    ("towlower", HIGH, Routine::of(to_lower_wide)),
    ("towupper", HIGH, Routine::of(to_upper_wide)),
    ("sprintf", HIGH, Routine::of(print_unlimited::<false>)),
    ("swprintf", HIGH, Routine::of(print_unlimited::<true>)),
    ("_snprintf", HIGH, Routine::of(print_limited::<false, false>)),
    ("_snwprintf", HIGH, Routine::of(print_limited::<true, false>)),
    ("_vsnprintf", HIGH, Routine::of(print_limited::<false, true>)),
    ("_vsnwprintf", HIGH, Routine::of(print_limited::<true, true>)),
    ("sprintf_s", HIGH, Routine::of(print_safely::<false, false>)),
    ("swprintf_s", HIGH, Routine::of(print_safely::<true, false>)),
    ("vsprintf_s", HIGH, Routine::of(print_safely::<false, true>)),
    ("vswprintf_s", HIGH, Routine::of(print_safely::<true, true>)),
    ("_snprintf_s", HIGH, Routine::of(print_truncated::<false>)),
    ("_snwprintf_s", HIGH, Routine::of(print_truncated::<true>)),
    ("_vsnprintf_s", HIGH, Routine::of(print_truncated_list::<false>)),
    ("_vsnwprintf_s", HIGH, Routine::of(print_truncated_list::<true>)),
];

/// `EINVAL`, `ERANGE` and `STRUNCATE`, which the safe routines return.
pub const INVALID: i32 = 22;
pub const RANGE: i32 = 34;
const TRUNCATED: i32 = 80;
/// `_TRUNCATE`: copies as much as fits.
const AS_FITS: u64 = u64::MAX;
/// A printing routine's result if the output does not fit.
const FAILED: i32 = -1;

pub const fn step<const WIDE: bool>() -> u64 {
    if WIDE { 2 } else { 1 }
}

/// Reads the character at this index.
pub fn read<const WIDE: bool>(context: &Context, text: u64, number: u64) -> u16 {
    let at = text.wrapping_add(number.wrapping_mul(step::<WIDE>()));
    if WIDE { context.read(at) } else { u16::from(context.read::<u8>(at)) }
}

/// Reads the characters of a string, up to its end or the limit.
pub fn text<const WIDE: bool>(context: &Context, address: u64, limit: u64) -> Vec<u16> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = if WIDE {
        wide_string(address, limit)
    } else {
        let bytes = memory::read_c_string(address, limit);
        bytes.map(|bytes| bytes.into_iter().map(u16::from).collect())
    };
    context.checked(found)
}

/// Writes characters, starting at this index.
pub fn write<const WIDE: bool>(context: &Context, to: u64, number: u64, units: &[u16]) {
    let at = to.wrapping_add(number.wrapping_mul(step::<WIDE>()));
    let bytes: Vec<u8> = if WIDE {
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
    } else {
        units.iter().map(|unit| (unit & 0xFF) as u8).collect()
    };
    context.write_bytes(at, &bytes);
}

/// Writes a string and its terminator.
pub fn write_string<const WIDE: bool>(
    context: &Context,
    to: u64,
    number: u64,
    mut units: Vec<u16>,
) {
    units.push(0);
    write::<WIDE>(context, to, number, &units);
}

const fn count(units: &[u16]) -> u64 {
    units.len() as u64
}

fn length<const WIDE: bool>(context: &Context, address: u64) -> u64 {
    limited_length::<WIDE>(context, address, u64::MAX)
}

fn limited_length<const WIDE: bool>(context: &Context, address: u64, limit: u64) -> u64 {
    if address == 0 && limit != u64::MAX {
        return 0;
    }
    count(&text::<WIDE>(context, address, limit))
}

pub const fn lower(unit: u16) -> u16 {
    if unit >= b'A' as u16 && unit <= b'Z' as u16 { unit + 0x20 } else { unit }
}

pub const fn upper(unit: u16) -> u16 {
    if unit >= b'a' as u16 && unit <= b'z' as u16 { unit - 0x20 } else { unit }
}

fn to_lower(_context: &Context, character: i32) -> i32 {
    lower(low_unit(character)).into()
}

fn to_upper(_context: &Context, character: i32) -> i32 {
    upper(low_unit(character)).into()
}

const fn to_lower_wide(_context: &Context, unit: u16) -> u16 {
    lower(unit)
}

const fn to_upper_wide(_context: &Context, unit: u16) -> u16 {
    upper(unit)
}

/// Returns the low 16 bits of a character that is passed as an `int`.
pub const fn low_unit(character: i32) -> u16 {
    let [low, high, ..] = character.to_le_bytes();
    u16::from_le_bytes([low, high])
}

fn compare<const WIDE: bool, const FOLD: bool>(context: &Context, one: u64, other: u64) -> i32 {
    compare_limited::<WIDE, FOLD>(context, one, other, u64::MAX)
}

fn compare_limited<const WIDE: bool, const FOLD: bool>(
    context: &Context,
    one: u64,
    other: u64,
    limit: u64,
) -> i32 {
    for number in 0..limit {
        let mut pair = [one, other].map(|text| read::<WIDE>(context, text, number));
        if FOLD {
            pair = pair.map(lower);
        }
        let [one, other] = pair;
        if one != other {
            return if one < other { FAILED } else { 1 };
        }
        if one == 0 {
            break;
        }
    }
    0
}

/// Returns the address of the character at this index, or null.
pub const fn at<const WIDE: bool>(address: u64, number: Option<usize>) -> u64 {
    match number {
        Some(number) => address.wrapping_add(number as u64 * step::<WIDE>()),
        None => 0,
    }
}

/// Returns a string with its terminator, because routines that search for a character can also find
/// the terminator.
fn with_end<const WIDE: bool>(context: &Context, address: u64) -> Vec<u16> {
    let mut units = text::<WIDE>(context, address, u64::MAX);
    units.push(0);
    units
}

fn find_narrow(context: &Context, address: u64, character: i32) -> u64 {
    find::<false>(context, address, low_unit(character) & 0xFF)
}

fn find_last_narrow(context: &Context, address: u64, character: i32) -> u64 {
    find_last::<false>(context, address, low_unit(character) & 0xFF)
}

fn find<const WIDE: bool>(context: &Context, address: u64, wanted: u16) -> u64 {
    let units = with_end::<WIDE>(context, address);
    at::<WIDE>(address, units.iter().position(|unit| *unit == wanted))
}

fn find_last<const WIDE: bool>(context: &Context, address: u64, wanted: u16) -> u64 {
    let units = with_end::<WIDE>(context, address);
    at::<WIDE>(address, units.iter().rposition(|unit| *unit == wanted))
}

fn find_text<const WIDE: bool>(context: &Context, address: u64, wanted: u64) -> u64 {
    let units = text::<WIDE>(context, address, u64::MAX);
    let wanted = text::<WIDE>(context, wanted, u64::MAX);
    if wanted.is_empty() {
        return address;
    }
    let mut windows = units.windows(wanted.len());
    at::<WIDE>(address, windows.position(|window| window == wanted))
}

fn copy<const WIDE: bool>(context: &Context, to: u64, from: u64) -> u64 {
    let units = text::<WIDE>(context, from, u64::MAX);
    write_string::<WIDE>(context, to, 0, units);
    to
}

/// Copies up to `limit` characters, and fills the rest with zeros.
fn copy_limited<const WIDE: bool>(context: &Context, to: u64, from: u64, limit: u64) -> u64 {
    let units = text::<WIDE>(context, from, limit);
    let length = count(&units);
    write::<WIDE>(context, to, 0, &units);
    for number in length..limit {
        write::<WIDE>(context, to, number, &[0]);
    }
    to
}

fn append<const WIDE: bool>(context: &Context, to: u64, from: u64) -> u64 {
    let start = length::<WIDE>(context, to);
    let units = text::<WIDE>(context, from, u64::MAX);
    write_string::<WIDE>(context, to, start, units);
    to
}

fn copy_safely<const WIDE: bool>(context: &Context, to: u64, size: u64, from: u64) -> i32 {
    if to == 0 || size == 0 {
        return INVALID;
    }
    if from == 0 {
        write::<WIDE>(context, to, 0, &[0]);
        return INVALID;
    }
    store::<WIDE>(context, to, 0, size, text::<WIDE>(context, from, size))
}

/// Stores a string, starting at this index, or empties the buffer.
pub fn store<const WIDE: bool>(
    context: &Context,
    to: u64,
    number: u64,
    size: u64,
    units: Vec<u16>,
) -> i32 {
    if number + count(&units) >= size {
        write::<WIDE>(context, to, 0, &[0]);
        return RANGE;
    }
    write_string::<WIDE>(context, to, number, units);
    0
}

fn copy_limited_safely<const WIDE: bool>(
    context: &Context,
    to: u64,
    size: u64,
    from: u64,
    limit: u64,
) -> i32 {
    if to == 0 && size == 0 && limit == 0 {
        return 0;
    }
    if to == 0 || size == 0 {
        return INVALID;
    }
    if limit == 0 || from == 0 {
        write::<WIDE>(context, to, 0, &[0]);
        return if limit == 0 { 0 } else { INVALID };
    }
    let mut units = text::<WIDE>(context, from, limit.min(size));
    if limit == AS_FITS && count(&units) >= size {
        units.truncate(usize::try_from(size - 1).unwrap_or(0));
        write_string::<WIDE>(context, to, 0, units);
        return TRUNCATED;
    }
    store::<WIDE>(context, to, 0, size, units)
}

fn append_safely<const WIDE: bool>(context: &Context, to: u64, size: u64, from: u64) -> i32 {
    if to == 0 || size == 0 {
        return INVALID;
    }
    let start = limited_length::<WIDE>(context, to, size);
    if from == 0 || start == size {
        write::<WIDE>(context, to, 0, &[0]);
        return INVALID;
    }
    store::<WIDE>(context, to, start, size, text::<WIDE>(context, from, size))
}

fn formatted<const WIDE: bool>(
    context: &Context,
    address: u64,
    mut arguments: Arguments,
) -> Vec<u16> {
    let units = text::<WIDE>(context, address, u64::MAX);
    let width = if WIDE { Width::Wide } else { Width::Narrow };
    let formatted: Formatted = context.checked(format(&units, width, &mut arguments));
    if formatted.converts {
        context.require_irql(
            Irql::PASSIVE_LEVEL,
            "with a directive for characters of the other width",
        );
    }
    if WIDE {
        formatted.to_wide()
    } else {
        formatted.to_narrow().into_iter().map(u16::from).collect()
    }
}

/// Returns a count as an `int`.
fn as_int(units: &[u16]) -> i32 {
    i32::try_from(units.len()).unwrap_or(i32::MAX)
}

fn print_unlimited<const WIDE: bool>(
    context: &Context,
    to: u64,
    format: u64,
    _: u64,
    _: u64,
) -> i32 {
    let units = formatted::<WIDE>(context, format, variadic(context, 2));
    let length = as_int(&units);
    write_string::<WIDE>(context, to, 0, units);
    length
}

/// Returns the arguments for a format: from a `va_list`, or after the first three parameters.
fn arguments<const LIST: bool>(context: &Context, list: u64) -> Arguments {
    if LIST { Arguments::at(list) } else { variadic(context, 3) }
}

/// Prints at most `size` characters. Stores the terminator only if it fits.
fn print_limited<const WIDE: bool, const LIST: bool>(
    context: &Context,
    to: u64,
    size: u64,
    format: u64,
    list: u64,
) -> i32 {
    let mut units = formatted::<WIDE>(context, format, arguments::<LIST>(context, list));
    let length = as_int(&units);
    if to == 0 && size == 0 {
        return length;
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let fits = units.len() <= size;
    if units.len() < size {
        units.push(0);
    }
    units.truncate(size);
    write::<WIDE>(context, to, 0, &units);
    if fits { length } else { FAILED }
}

/// Prints output that must fit. If it does not fit, empties the buffer.
fn print_safely<const WIDE: bool, const LIST: bool>(
    context: &Context,
    to: u64,
    size: u64,
    format: u64,
    list: u64,
) -> i32 {
    if to == 0 || size == 0 || format == 0 {
        return FAILED;
    }
    let units = formatted::<WIDE>(context, format, arguments::<LIST>(context, list));
    let length = as_int(&units);
    if store::<WIDE>(context, to, 0, size, units) == 0 { length } else { FAILED }
}

fn print_truncated<const WIDE: bool>(
    context: &Context,
    to: u64,
    size: u64,
    limit: u64,
    format: u64,
) -> i32 {
    print_within::<WIDE>(context, [to, size, limit, format], variadic(context, 4))
}

fn print_truncated_list<const WIDE: bool>(
    context: &Context,
    to: u64,
    size: u64,
    limit: u64,
    format: u64,
    list: u64,
) -> i32 {
    print_within::<WIDE>(context, [to, size, limit, format], Arguments::at(list))
}

/// Prints at most `limit` characters of the output, and the terminator.
fn print_within<const WIDE: bool>(
    context: &Context,
    [to, size, limit, format]: [u64; 4],
    arguments: Arguments,
) -> i32 {
    if format == 0 || to == 0 || size == 0 {
        return FAILED;
    }
    let mut units = formatted::<WIDE>(context, format, arguments);
    let length = as_int(&units);
    let room = if limit == AS_FITS { size - 1 } else { limit };
    let is_cut = count(&units) > room;
    units.truncate(usize::try_from(room).unwrap_or(usize::MAX));
    if store::<WIDE>(context, to, 0, size, units) == 0 && !is_cut { length } else { FAILED }
}
