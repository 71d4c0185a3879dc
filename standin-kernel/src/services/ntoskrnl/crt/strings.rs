//! The C runtime's string routines that ntoskrnl.exe exports, except those that compilers call
//! implicitly. `C` is the type of the characters. The locale is the C locale.

use super::{
    format::{Arguments, Formatted, Width, format, variadic, wide_string},
    letters,
};
use crate::{
    execution::routine::{At, routine},
    ground::{abi::Pointee, irql::Irql, memory},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("wcslen", length::<u16>),
    routine("strnlen", limited_length::<u8>),
    routine("wcsnlen", limited_length::<u16>),
    routine("strcmp", compare::<u8, false>),
    routine("wcscmp", compare::<u16, false>),
    routine("_stricmp", compare::<u8, true>),
    routine("_wcsicmp", compare::<u16, true>),
    routine("strncmp", compare_limited::<u8, false>),
    routine("wcsncmp", compare_limited::<u16, false>),
    routine("_strnicmp", compare_limited::<u8, true>),
    routine("_wcsnicmp", compare_limited::<u16, true>),
    routine("strchr", find_narrow),
    routine("wcschr", find::<u16>),
    routine("strrchr", find_last_narrow),
    routine("wcsrchr", find_last::<u16>),
    routine("strstr", find_text::<u8>),
    routine("wcsstr", find_text::<u16>),
    routine("strcpy", copy::<u8>),
    routine("wcscpy", copy::<u16>),
    routine("strncpy", copy_limited::<u8>),
    routine("wcsncpy", copy_limited::<u16>),
    routine("strcat", append::<u8>),
    routine("wcscat", append::<u16>),
    routine("strcpy_s", copy_safely::<u8>),
    routine("wcscpy_s", copy_safely::<u16>),
    routine("strncpy_s", copy_limited_safely::<u8>),
    routine("wcsncpy_s", copy_limited_safely::<u16>),
    routine("strcat_s", append_safely::<u8>),
    routine("wcscat_s", append_safely::<u16>),
    routine("tolower", to_lower),
    routine("toupper", to_upper),
    routine("towlower", to_lower_wide),
    routine("towupper", to_upper_wide),
    routine("sprintf", print_unlimited::<u8>),
    routine("swprintf", print_unlimited::<u16>),
    routine("_snprintf", print_limited::<u8, false>),
    routine("_snwprintf", print_limited::<u16, false>),
    routine("_vsnprintf", print_limited::<u8, true>),
    routine("_vsnwprintf", print_limited::<u16, true>),
    routine("sprintf_s", print_safely::<u8, false>),
    routine("swprintf_s", print_safely::<u16, false>),
    routine("vsprintf_s", print_safely::<u8, true>),
    routine("vswprintf_s", print_safely::<u16, true>),
    routine("_snprintf_s", print_truncated::<u8>),
    routine("_snwprintf_s", print_truncated::<u16>),
    routine("_vsnprintf_s", print_truncated_list::<u8>),
    routine("_vsnwprintf_s", print_truncated_list::<u16>),
];

/// `EINVAL`, `ERANGE` and `STRUNCATE`, which the safe routines return.
pub const INVALID: i32 = 22;
pub const RANGE: i32 = 34;
const TRUNCATED: i32 = 80;
/// `_TRUNCATE`: copies as much as fits.
const AS_FITS: u64 = u64::MAX;
/// A printing routine's result if the output does not fit.
const FAILED: i32 = -1;

pub const fn step<C: Unit>() -> u64 {
    if C::WIDE { 2 } else { 1 }
}

/// A character: a byte or a UTF-16 unit.
pub trait Unit: Pointee {
    const WIDE: bool;
}

impl Unit for u8 {
    const WIDE: bool = false;
}

impl Unit for u16 {
    const WIDE: bool = true;
}

/// Reads the character at this index.
pub fn read<C: Unit>(context: &Context, text: u64, number: u64) -> u16 {
    let at = text.wrapping_add(number.wrapping_mul(step::<C>()));
    if C::WIDE { context.read(at) } else { u16::from(context.read::<u8>(at)) }
}

/// Reads the characters of a string, up to its end or the limit.
pub fn text<C: Unit>(context: &Context, address: u64, limit: u64) -> Vec<u16> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = if C::WIDE {
        wide_string(address, limit)
    } else {
        let bytes = memory::read_c_string(address, limit);
        bytes.map(|bytes| bytes.into_iter().map(u16::from).collect())
    };
    context.checked(found)
}

/// Writes characters, starting at this index.
pub fn write<C: Unit>(context: &Context, dest: u64, number: u64, units: &[u16]) {
    let at = dest.wrapping_add(number.wrapping_mul(step::<C>()));
    let bytes: Vec<u8> = if C::WIDE {
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
    } else {
        units.iter().map(|unit| (unit & 0xFF) as u8).collect()
    };
    context.write_bytes(at, &bytes);
}

/// Writes a string and its terminator.
pub fn write_string<C: Unit>(context: &Context, dest: u64, number: u64, mut units: Vec<u16>) {
    units.push(0);
    write::<C>(context, dest, number, &units);
}

const fn count(units: &[u16]) -> u64 {
    units.len() as u64
}

fn length<C: Unit>(context: &Context, address: At<C>) -> u64 {
    limited_length::<C>(context, address, u64::MAX)
}

fn limited_length<C: Unit>(context: &Context, address: At<C>, limit: u64) -> u64 {
    if address.is_null() && limit != u64::MAX {
        return 0;
    }
    count(&text::<C>(context, address.0, limit))
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

/// The letters that the C library of the kernel knows besides those of ASCII are those of Latin-1.
fn to_lower_wide(_context: &Context, unit: u16) -> u16 {
    if unit <= 0xFF { letters::downcase(unit) } else { unit }
}

fn to_upper_wide(_context: &Context, unit: u16) -> u16 {
    let upper = letters::upcase(unit);
    if unit <= 0xFF && upper <= 0xFF { upper } else { unit }
}

/// Returns the low 16 bits of a character that is passed as an `int`.
pub const fn low_unit(character: i32) -> u16 {
    let [low, high, ..] = character.to_le_bytes();
    u16::from_le_bytes([low, high])
}

fn compare<C: Unit, const FOLD: bool>(context: &Context, one: At<C>, other: At<C>) -> i32 {
    compare_limited::<C, FOLD>(context, one, other, u64::MAX)
}

fn compare_limited<C: Unit, const FOLD: bool>(
    context: &Context,
    one: At<C>,
    other: At<C>,
    limit: u64,
) -> i32 {
    for number in 0..limit {
        let mut pair = [one, other].map(|text| read::<C>(context, text.0, number));
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
pub const fn at<C: Unit>(address: u64, number: Option<usize>) -> u64 {
    match number {
        Some(number) => address.wrapping_add(number as u64 * step::<C>()),
        None => 0,
    }
}

/// Returns a string with its terminator, because routines that search for a character can also find
/// the terminator.
fn with_end<C: Unit>(context: &Context, address: u64) -> Vec<u16> {
    let mut units = text::<C>(context, address, u64::MAX);
    units.push(0);
    units
}

fn find_narrow(context: &Context, address: At<u8>, character: i32) -> At<u8> {
    find::<u8>(context, address, low_unit(character) & 0xFF)
}

fn find_last_narrow(context: &Context, address: At<u8>, character: i32) -> At<u8> {
    find_last::<u8>(context, address, low_unit(character) & 0xFF)
}

fn find<C: Unit>(context: &Context, address: At<C>, wanted: u16) -> At<C> {
    let units = with_end::<C>(context, address.0);
    At::new(at::<C>(address.0, units.iter().position(|unit| *unit == wanted)))
}

fn find_last<C: Unit>(context: &Context, address: At<C>, wanted: u16) -> At<C> {
    let units = with_end::<C>(context, address.0);
    At::new(at::<C>(address.0, units.iter().rposition(|unit| *unit == wanted)))
}

fn find_text<C: Unit>(context: &Context, address: At<C>, wanted: At<C>) -> At<C> {
    let units = text::<C>(context, address.0, u64::MAX);
    let wanted = text::<C>(context, wanted.0, u64::MAX);
    if wanted.is_empty() {
        return address;
    }
    let mut windows = units.windows(wanted.len());
    At::new(at::<C>(address.0, windows.position(|window| window == wanted)))
}

fn copy<C: Unit>(context: &Context, dest: At<C>, from: At<C>) -> At<C> {
    let units = text::<C>(context, from.0, u64::MAX);
    write_string::<C>(context, dest.0, 0, units);
    dest
}

/// Copies up to `limit` characters, and fills the rest with zeros.
fn copy_limited<C: Unit>(context: &Context, dest: At<C>, from: At<C>, limit: u64) -> At<C> {
    let units = text::<C>(context, from.0, limit);
    let length = count(&units);
    write::<C>(context, dest.0, 0, &units);
    for number in length..limit {
        write::<C>(context, dest.0, number, &[0]);
    }
    dest
}

fn append<C: Unit>(context: &Context, dest: At<C>, from: At<C>) -> At<C> {
    let start = length::<C>(context, dest);
    let units = text::<C>(context, from.0, u64::MAX);
    write_string::<C>(context, dest.0, start, units);
    dest
}

fn copy_safely<C: Unit>(context: &Context, dest: At<C>, size: u64, from: At<C>) -> i32 {
    if dest.is_null() || size == 0 {
        return INVALID;
    }
    if from.is_null() {
        write::<C>(context, dest.0, 0, &[0]);
        return INVALID;
    }
    store::<C>(context, dest.0, 0, size, text::<C>(context, from.0, size))
}

/// Stores a string, starting at this index, or empties the buffer.
pub fn store<C: Unit>(
    context: &Context,
    dest: u64,
    number: u64,
    size: u64,
    units: Vec<u16>,
) -> i32 {
    if number + count(&units) >= size {
        write::<C>(context, dest, 0, &[0]);
        return RANGE;
    }
    write_string::<C>(context, dest, number, units);
    0
}

fn copy_limited_safely<C: Unit>(
    context: &Context,
    dest: At<C>,
    size: u64,
    from: At<C>,
    limit: u64,
) -> i32 {
    if dest.is_null() && size == 0 && limit == 0 {
        return 0;
    }
    if dest.is_null() || size == 0 {
        return INVALID;
    }
    if limit == 0 || from.is_null() {
        write::<C>(context, dest.0, 0, &[0]);
        return if limit == 0 { 0 } else { INVALID };
    }
    let mut units = text::<C>(context, from.0, limit.min(size));
    if limit == AS_FITS && count(&units) >= size {
        units.truncate(usize::try_from(size - 1).unwrap_or(0));
        write_string::<C>(context, dest.0, 0, units);
        return TRUNCATED;
    }
    store::<C>(context, dest.0, 0, size, units)
}

fn append_safely<C: Unit>(context: &Context, dest: At<C>, size: u64, from: At<C>) -> i32 {
    if dest.is_null() || size == 0 {
        return INVALID;
    }
    let start = limited_length::<C>(context, dest, size);
    if from.is_null() || start == size {
        write::<C>(context, dest.0, 0, &[0]);
        return INVALID;
    }
    store::<C>(context, dest.0, start, size, text::<C>(context, from.0, size))
}

fn formatted<C: Unit>(context: &Context, address: u64, mut arguments: Arguments) -> Vec<u16> {
    let units = text::<C>(context, address, u64::MAX);
    let width = if C::WIDE { Width::Wide } else { Width::Narrow };
    let formatted: Formatted = context.checked(format(&units, width, &mut arguments));
    if formatted.converts {
        context.require_irql(
            Irql::PASSIVE_LEVEL,
            "with a directive for characters of the other width",
        );
    }
    if C::WIDE {
        formatted.to_wide()
    } else {
        formatted.to_narrow().into_iter().map(u16::from).collect()
    }
}

/// Returns a count as an `int`.
fn as_int(units: &[u16]) -> i32 {
    i32::try_from(units.len()).unwrap_or(i32::MAX)
}

fn print_unlimited<C: Unit>(context: &Context, dest: At<C>, format: At<C>, _: u64, _: u64) -> i32 {
    let units = formatted::<C>(context, format.0, variadic(context, 2));
    let length = as_int(&units);
    write_string::<C>(context, dest.0, 0, units);
    length
}

/// Returns the arguments for a format: from a `va_list`, or after the first three parameters.
fn arguments<const LIST: bool>(context: &Context, list: At<u8>) -> Arguments {
    if LIST { Arguments::at(list.0) } else { variadic(context, 3) }
}

/// Prints at most `size` characters. Stores the terminator only if it fits.
fn print_limited<C: Unit, const LIST: bool>(
    context: &Context,
    dest: At<C>,
    size: u64,
    format: At<C>,
    list: At<u8>,
) -> i32 {
    let mut units = formatted::<C>(context, format.0, arguments::<LIST>(context, list));
    let length = as_int(&units);
    if dest.is_null() && size == 0 {
        return length;
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let fits = units.len() <= size;
    if units.len() < size {
        units.push(0);
    }
    units.truncate(size);
    write::<C>(context, dest.0, 0, &units);
    if fits { length } else { FAILED }
}

/// Prints output that must fit. If it does not fit, empties the buffer.
fn print_safely<C: Unit, const LIST: bool>(
    context: &Context,
    dest: At<C>,
    size: u64,
    format: At<C>,
    list: At<u8>,
) -> i32 {
    if dest.is_null() || size == 0 || format.is_null() {
        return FAILED;
    }
    let units = formatted::<C>(context, format.0, arguments::<LIST>(context, list));
    let length = as_int(&units);
    if store::<C>(context, dest.0, 0, size, units) == 0 { length } else { FAILED }
}

fn print_truncated<C: Unit>(
    context: &Context,
    dest: At<C>,
    size: u64,
    limit: u64,
    format: At<C>,
) -> i32 {
    print_within::<C>(context, [dest.0, size, limit, format.0], variadic(context, 4))
}

fn print_truncated_list<C: Unit>(
    context: &Context,
    dest: At<C>,
    size: u64,
    limit: u64,
    format: At<C>,
    list: At<u8>,
) -> i32 {
    print_within::<C>(context, [dest.0, size, limit, format.0], Arguments::at(list.0))
}

/// Prints at most `limit` characters of the output, and the terminator.
fn print_within<C: Unit>(
    context: &Context,
    [to, size, limit, format]: [u64; 4],
    arguments: Arguments,
) -> i32 {
    if format == 0 || to == 0 || size == 0 {
        return FAILED;
    }
    let mut units = formatted::<C>(context, format, arguments);
    let length = as_int(&units);
    let room = if limit == AS_FITS { size - 1 } else { limit };
    let is_cut = count(&units) > room;
    units.truncate(usize::try_from(room).unwrap_or(usize::MAX));
    if store::<C>(context, to, 0, size, units) == 0 && !is_cut { length } else { FAILED }
}
