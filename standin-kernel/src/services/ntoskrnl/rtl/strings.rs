//! Counted strings. `WIDE` selects routines for UTF-16 strings.

use crate::{
    execution::{
        routine::{At, routine},
        strings::units,
    },
    ground::{NtResult, NtStatus, abi::UnicodeString, memory, opaque::AnsiString},
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            crt::{
                code_page,
                format::wide_string,
                letters::{downcase, upcase},
                strings::Unit,
            },
            ex::pool,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("RtlInitString", init::<u8>),
    routine("RtlInitAnsiString", init::<u8>),
    routine("RtlInitUnicodeString", init::<u16>),
    routine("RtlInitStringEx", init_checked::<u8>),
    routine("RtlInitAnsiStringEx", init_checked::<u8>),
    routine("RtlInitUnicodeStringEx", init_checked::<u16>),
    routine("RtlCopyString", copy::<false>),
    routine("RtlCopyUnicodeString", copy::<true>),
    routine("RtlAppendUnicodeToString", append_text),
    routine("RtlAppendUnicodeStringToString", append::<true>),
    routine("RtlAppendStringToString", append::<false>),
    routine("RtlCompareUnicodeString", compare::<true>),
    routine("RtlCompareString", compare::<false>),
    routine("RtlEqualUnicodeString", equal::<true>),
    routine("RtlEqualString", equal::<false>),
    routine("RtlPrefixUnicodeString", prefix::<true>),
    routine("RtlPrefixString", prefix::<false>),
    routine("RtlUpcaseUnicodeString", upcase_string),
    routine("RtlDowncaseUnicodeString", downcase_string),
    routine("RtlUpcaseUnicodeChar", upcase_character),
    routine("RtlDowncaseUnicodeChar", downcase_character),
    routine("RtlUpperChar", upper_character),
    routine("RtlUpperString", upper_string),
    routine("RtlAnsiStringToUnicodeString", ansi_to_unicode),
    routine("RtlUnicodeStringToAnsiString", unicode_to_ansi),
    routine("RtlUnicodeToMultiByteN", unicode_to_bytes),
    routine("RtlMultiByteToUnicodeN", bytes_to_unicode),
    routine("RtlxAnsiStringToUnicodeSize", unicode_size),
    routine("RtlxUnicodeStringToAnsiSize", ansi_size),
    routine("RtlFreeUnicodeString", free),
    routine("RtlFreeAnsiString", free),
    routine("RtlDuplicateUnicodeString", duplicate),
    routine("RtlHashUnicodeString", hash),
    routine("RtlStringFromGUID", from_guid),
    routine("RtlGUIDFromString", to_guid),
    routine("RtlIntegerToUnicodeString", from_integer),
    routine("RtlInt64ToUnicodeString", from_int64),
    routine("RtlUnicodeStringToInteger", to_integer),
];

/// `STATUS_NAME_TOO_LONG`.
const NAME_TOO_LONG: NtStatus = NtStatus::from_bits(0xC000_0106);
/// `STATUS_INVALID_PARAMETER_2`.
const INVALID_PARAMETER_2: NtStatus = NtStatus::from_bits(0xC000_00F0);

/// The tag of the strings that these routines allocate.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Strg"));

const fn step<const WIDE: bool>() -> u16 {
    if WIDE { 2 } else { 1 }
}

/// Returns the characters of a zero-terminated string.
pub fn terminated<const WIDE: bool>(context: &Context, address: u64) -> Vec<u16> {
    /// A number that exceeds the maximum length of a counted string.
    const LIMIT: usize = 0x1_0000;
    let units = if WIDE {
        wide_string(address, LIMIT)
    } else {
        let bytes = memory::read_c_string(address, LIMIT);
        bytes.map(|bytes| bytes.into_iter().map(u16::from).collect())
    };
    context.checked(units)
}

fn bytes_of(context: &Context, string: &UnicodeString) -> Vec<u8> {
    context.read_bytes(string.buffer, usize::from(string.length))
}

/// Returns the characters of a counted string.
fn units_of<const WIDE: bool>(context: &Context, string: u64) -> Vec<u16> {
    let string: UnicodeString = context.read(string);
    let bytes = bytes_of(context, &string);
    if WIDE { units(&bytes) } else { bytes.into_iter().map(u16::from).collect() }
}

fn to_bytes<const WIDE: bool>(units: &[u16]) -> Vec<u8> {
    if WIDE {
        units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
    } else {
        units.iter().map(|unit| (unit & 0xFF) as u8).collect()
    }
}

pub fn init<C: Unit>(context: &Context, destination: At<UnicodeString>, source: At<C>) {
    init_at_most(context, destination, source, true);
}

pub fn init_checked<C: Unit>(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<C>,
) -> NtResult {
    if init_at_most(context, destination, source, false) { Ok(()) } else { Err(NAME_TOO_LONG) }
}

/// Initializes a counted string from a terminated string. If the string does not fit, returns
/// `false` unless `cut` allows truncation.
fn init_at_most<C: Unit>(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<C>,
    cut: bool,
) -> bool {
    let step = if C::WIDE { step::<true>() } else { step::<false>() };
    let longest = u16::MAX / step - 1;
    let mut value = UnicodeString { buffer: source.0, ..Default::default() };
    if !source.is_null() {
        let count = if C::WIDE {
            terminated::<true>(context, source.0).len()
        } else {
            terminated::<false>(context, source.0).len()
        };
        let fitting = u16::try_from(count).ok().filter(|count| *count <= longest);
        let Some(count) = fitting.or_else(|| cut.then_some(longest)) else {
            return false;
        };
        value.length = count * step;
        value.maximum_length = value.length + step;
    }
    destination.write(context, value);
    true
}

/// Copies as much as fits in the destination. A null source empties the destination.
fn copy<const WIDE: bool>(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<UnicodeString>,
) {
    let mut to = destination.read(context);
    let mut bytes =
        if source.is_null() { Vec::new() } else { bytes_of(context, &context.read(source.0)) };
    let room = usize::from(to.maximum_length);
    bytes.truncate(room);
    to.length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    // A terminator is stored if it fits.
    let end = usize::from(step::<WIDE>());
    if WIDE && bytes.len() + end <= room {
        bytes.extend([0, 0]);
    }
    context.write_bytes(to.buffer, &bytes);
    destination.write(context, to);
}

/// Appends bytes to a string, and a terminator if it fits. Without bytes, nothing is written.
fn append_bytes<const WIDE: bool>(
    context: &Context,
    destination: u64,
    mut bytes: Vec<u8>,
) -> NtResult {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut string: UnicodeString = context.read(destination);
    let used = usize::from(string.length) + bytes.len();
    if used > usize::from(string.maximum_length) {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    if WIDE && used + 2 <= usize::from(string.maximum_length) {
        bytes.extend([0, 0]);
    }
    let at = string.buffer.wrapping_add(u64::from(string.length));
    context.write_bytes(at, &bytes);
    string.length = u16::try_from(used).unwrap_or(u16::MAX);
    context.write(destination, &string);
    Ok(())
}

fn append_text(context: &Context, destination: At<UnicodeString>, source: At<u16>) -> NtResult {
    let units = if source.is_null() { Vec::new() } else { terminated::<true>(context, source.0) };
    append_bytes::<true>(context, destination.0, to_bytes::<true>(&units))
}

fn append<const WIDE: bool>(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<UnicodeString>,
) -> NtResult {
    let bytes = bytes_of(context, &context.read(source.0));
    append_bytes::<WIDE>(context, destination.0, bytes)
}

fn folded<const WIDE: bool>(context: &Context, string: u64, ignore_case: bool) -> Vec<u16> {
    let mut units = units_of::<WIDE>(context, string);
    if ignore_case {
        for unit in &mut units {
            *unit = upcase(*unit);
        }
    }
    units
}

fn compare<const WIDE: bool>(
    context: &Context,
    one: At<UnicodeString>,
    other: At<UnicodeString>,
    ignore_case: bool,
) -> i32 {
    let [one, other] = [one, other].map(|string| folded::<WIDE>(context, string.0, ignore_case));
    difference(&one, &other)
}

/// Returns the difference between the first differing characters or, if there are none, between the
/// lengths.
pub fn difference(one: &[u16], other: &[u16]) -> i32 {
    let different = one.iter().zip(other).find(|(one, other)| one != other);
    if let Some((one, other)) = different {
        i32::from(*one) - i32::from(*other)
    } else {
        let lengths = [one, other].map(|units| i32::try_from(units.len()).unwrap_or(i32::MAX));
        lengths[0] - lengths[1]
    }
}

fn equal<const WIDE: bool>(
    context: &Context,
    one: At<UnicodeString>,
    other: At<UnicodeString>,
    ignore_case: bool,
) -> bool {
    let [one, other] = [one, other].map(|string| folded::<WIDE>(context, string.0, ignore_case));
    one == other
}

fn prefix<const WIDE: bool>(
    context: &Context,
    start: At<UnicodeString>,
    whole: At<UnicodeString>,
    ignore_case: bool,
) -> bool {
    let [start, whole] =
        [start, whole].map(|string| folded::<WIDE>(context, string.0, ignore_case));
    whole.starts_with(&start)
}

/// Returns whether a string ends with another string.
pub fn suffix(
    context: &Context,
    end: At<UnicodeString>,
    whole: At<UnicodeString>,
    ignore_case: bool,
) -> bool {
    let [end, whole] = [end, whole].map(|string| folded::<true>(context, string.0, ignore_case));
    whole.ends_with(&end)
}

/// Stores characters in a string's buffer, or in a new buffer. The characters are terminated if the
/// buffer is new or if `terminates` is set; in both cases, the terminator must fit.
pub fn store<const WIDE: bool>(
    context: &Context,
    destination: u64,
    units: &[u16],
    allocate: bool,
    terminates: bool,
) -> NtResult {
    let mut bytes = to_bytes::<WIDE>(units);
    let step = usize::from(step::<WIDE>());
    let needed = bytes.len() + if terminates { step } else { 0 };
    let needed_field = u16::try_from(needed).map_err(|_| INVALID_PARAMETER_2)?;
    let mut string: UnicodeString = context.read(destination);
    if allocate {
        string.maximum_length = needed_field;
        string.buffer = new_buffer(context, needed);
        if string.buffer == 0 {
            return Err(NtStatus::NO_MEMORY);
        }
    } else if needed > usize::from(string.maximum_length) {
        return Err(NtStatus::BUFFER_OVERFLOW);
    }
    string.length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    bytes.resize(needed, 0);
    context.write_bytes(string.buffer, &bytes);
    context.write(destination, &string);
    Ok(())
}

/// Allocates paged pool for a string, which `RtlFreeUnicodeString` frees.
pub fn new_buffer(context: &Context, size: usize) -> u64 {
    if context.faults().take("ExAllocatePool2").is_some() {
        return 0;
    }
    context.allocate(size, TAG, true).unwrap_or(0)
}

fn upcase_string(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<UnicodeString>,
    allocate: bool,
) -> NtResult {
    let units: Vec<u16> = units_of::<true>(context, source.0).into_iter().map(upcase).collect();
    store::<true>(context, destination.0, &units, allocate, false)
}

fn downcase_string(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<UnicodeString>,
    allocate: bool,
) -> NtResult {
    let units: Vec<u16> = units_of::<true>(context, source.0).into_iter().map(downcase).collect();
    store::<true>(context, destination.0, &units, allocate, false)
}

fn upcase_character(_context: &Context, character: u16) -> u16 {
    upcase(character)
}

fn downcase_character(_context: &Context, character: u16) -> u16 {
    downcase(character)
}

/// Returns the upper-case form of a letter from a to z. Other characters have none in these routines.
const fn upper_character(_context: &Context, character: i8) -> i8 {
    character.cast_unsigned().to_ascii_uppercase().cast_signed()
}

/// Copies as much as fits, in upper case.
fn upper_string(context: &Context, destination: At<AnsiString>, source: At<AnsiString>) {
    let mut to: UnicodeString = context.read(destination.0);
    let mut bytes = bytes_of(context, &context.read(source.0));
    bytes.truncate(usize::from(to.maximum_length));
    bytes.make_ascii_uppercase();
    to.length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    context.write_bytes(to.buffer, &bytes);
    context.write(destination.0, &to);
}

fn ansi_to_unicode(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<AnsiString>,
    allocate: bool,
) -> NtResult {
    let bytes = bytes_of(context, &context.read(source.0));
    let units: Vec<u16> = bytes.into_iter().map(code_page::to_unit).collect();
    store::<true>(context, destination.0, &units, allocate, true)
}

fn unicode_to_ansi(
    context: &Context,
    destination: At<AnsiString>,
    source: At<UnicodeString>,
    allocate: bool,
) -> NtResult {
    let units = units_of::<true>(context, source.0);
    let mut bytes: Vec<u16> =
        units.into_iter().map(|unit| code_page::to_byte(unit).into()).collect();
    let room = usize::from(context.read::<UnicodeString>(destination.0).maximum_length);
    if allocate || bytes.len() < room || room == 0 {
        return store::<false>(context, destination.0, &bytes, allocate, true);
    }
    // The part that fits is stored, with a terminator.
    bytes.truncate(room - 1);
    store::<false>(context, destination.0, &bytes, false, true)?;
    Err(NtStatus::BUFFER_OVERFLOW)
}

/// Converts as much as fits. Always succeeds.
fn unicode_to_bytes(
    context: &Context,
    multi_byte_string: At<i8>,
    room: u32,
    written: At<u32>,
    source: At<u16>,
    length: u32,
) -> NtStatus {
    let count = (length / 2).min(room);
    let read = |number: u32| -> u16 { context.read(source.0.wrapping_add(u64::from(number) * 2)) };
    let bytes: Vec<u8> = (0..count).map(|number| code_page::to_byte(read(number))).collect();
    context.write_bytes(multi_byte_string.0, &bytes);
    written.write_optional(context, count);
    NtStatus::SUCCESS
}

fn bytes_to_unicode(
    context: &Context,
    unicode_string: At<u16>,
    room: u32,
    written: At<u32>,
    source: At<i8>,
    length: u32,
) -> NtStatus {
    let count = length.min(room / 2);
    let read = |number: u32| -> u8 { context.read(source.0.wrapping_add(u64::from(number))) };
    let units: Vec<u16> = (0..count).map(|number| code_page::to_unit(read(number))).collect();
    context.write_bytes(unicode_string.0, &to_bytes::<true>(&units));
    written.write_optional(context, count * 2);
    NtStatus::SUCCESS
}

fn unicode_size(context: &Context, string: At<AnsiString>) -> u32 {
    let string: UnicodeString = context.read(string.0);
    (u32::from(string.length) + 1) * 2
}

fn ansi_size(context: &Context, string: At<UnicodeString>) -> u32 {
    let string = string.read(context);
    u32::from(string.length) / 2 + 1
}

/// Frees a string's buffer, which one of these routines has allocated, and empties the string.
pub fn free(context: &Context, string: At<UnicodeString>) {
    let value = string.read(context);
    if value.buffer == 0 {
        return;
    }
    pool::free_block(context, value.buffer);
    let empty = UnicodeString { buffer: 0, ..Default::default() };
    string.write(context, empty);
}

fn duplicate(
    context: &Context,
    flags: u32,
    source: At<UnicodeString>,
    string_out: At<UnicodeString>,
) -> NtResult {
    /// `RTL_DUPLICATE_UNICODE_STRING_NULL_TERMINATE` and
    /// `RTL_DUPLICATE_UNICODE_STRING_ALLOCATE_NULL_STRING`.
    const TERMINATE: u32 = 1;
    const ALLOCATE_EMPTY: u32 = 2;
    if flags & !(TERMINATE | ALLOCATE_EMPTY) != 0
        || flags == ALLOCATE_EMPTY
        || source.is_null()
        || string_out.is_null()
    {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let value = source.read(context);
    let is_malformed = !value.length.is_multiple_of(2)
        || !value.maximum_length.is_multiple_of(2)
        || value.length > value.maximum_length
        || value.buffer == 0 && value.maximum_length != 0;
    if is_malformed {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let units = units_of::<true>(context, source.0);
    let empty = UnicodeString { buffer: 0, ..Default::default() };
    string_out.write(context, empty);
    if units.is_empty() && flags & ALLOCATE_EMPTY == 0 {
        return Ok(());
    }
    let terminates = flags & TERMINATE != 0;
    store::<true>(context, string_out.0, &units, true, terminates)
}

fn hash(
    context: &Context,
    string: At<UnicodeString>,
    ignore_case: bool,
    algorithm: u32,
    value: At<u32>,
) -> NtResult {
    /// `HASH_STRING_ALGORITHM_X65599`, which is also the default algorithm.
    const X65599: u32 = 1;
    if algorithm > X65599 || string.is_null() || value.is_null() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let units = folded::<true>(context, string.0, ignore_case);
    let hash = units
        .into_iter()
        .fold(0_u32, |hash, unit| hash.wrapping_mul(65599).wrapping_add(u32::from(unit)));
    value.write(context, hash);
    Ok(())
}

fn from_guid(
    context: &Context,
    guid: At<etl_file::Guid>,
    guid_string: At<UnicodeString>,
) -> NtResult {
    let guid: [u8; 16] = context.read(guid.0);
    let text = format!("{{{}}}", etl_file::Guid::from_bytes(guid)).to_uppercase();
    let units: Vec<u16> = text.encode_utf16().collect();
    store::<true>(context, guid_string.0, &units, true, true)
}

fn to_guid(context: &Context, string: At<UnicodeString>, guid: At<etl_file::Guid>) -> NtResult {
    let text = String::from_utf16_lossy(&units_of::<true>(context, string.0));
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.filter(|inner| inner.len() == 36).ok_or(NtStatus::INVALID_PARAMETER)?;
    let value: etl_file::Guid = inner.parse().map_err(|_| NtStatus::INVALID_PARAMETER)?;
    context.write_bytes(guid.0, &value.to_bytes());
    Ok(())
}

fn from_integer(context: &Context, value: u32, base: u32, string: At<UnicodeString>) -> NtResult {
    from_int64(context, u64::from(value), base, string)
}

fn from_int64(context: &Context, value: u64, base: u32, string: At<UnicodeString>) -> NtResult {
    let text = match base {
        0 | 10 => value.to_string(),
        2 => format!("{value:b}"),
        8 => format!("{value:o}"),
        16 => format!("{value:X}"),
        _ => return Err(NtStatus::INVALID_PARAMETER),
    };
    let units: Vec<u16> = text.encode_utf16().collect();
    // The terminator must also fit.
    store::<true>(context, string.0, &units, false, true)
}

fn to_integer(context: &Context, string: At<UnicodeString>, base: u32, value: At<u32>) -> NtResult {
    let text = String::from_utf16_lossy(&units_of::<true>(context, string.0));
    let number = number_in(&text, base).ok_or(NtStatus::INVALID_PARAMETER)?;
    value.write(context, number);
    Ok(())
}

/// Parses a number with an optional sign and, for base 0, an optional `0b`, `0o` or `0x` prefix.
/// Ignores characters after the digits. Returns `None` for an invalid base.
pub fn number_in(text: &str, base: u32) -> Option<u32> {
    let text = text.trim_start_matches(|character| character <= ' ');
    let (is_negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let prefixes = [("0b", 2), ("0o", 8), ("0x", 16)];
    let (base, digits) = match base {
        0 => {
            let found = prefixes
                .iter()
                .find_map(|(prefix, base)| Some((*base, rest.strip_prefix(prefix)?)));
            found.unwrap_or((10, rest))
        }
        base @ (2 | 8 | 10 | 16) => (base, rest),
        _ => return None,
    };
    let number = digits
        .chars()
        .map_while(|digit| digit.to_digit(base))
        .fold(0_u32, |number, digit| number.wrapping_mul(base).wrapping_add(digit));
    Some(if is_negative { number.wrapping_neg() } else { number })
}
