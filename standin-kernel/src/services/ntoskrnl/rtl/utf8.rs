//! UTF-8, suffixes of counted strings, and random numbers.

use super::strings;
use crate::{
    execution::{
        routine::{At, low_half, routine},
        strings::units,
    },
    ground::{NtResult, NtStatus, abi::UnicodeString, opaque::AnsiString},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlUTF8ToUnicodeN", utf8_to_unicode),
    routine("RtlUnicodeToUTF8N", unicode_to_utf8),
    routine("RtlUTF8StringToUnicodeString", utf8_string_to_unicode),
    routine("RtlUnicodeStringToUTF8String", unicode_string_to_utf8),
    routine("RtlInitUTF8String", strings::init::<u8>),
    routine("RtlInitUTF8StringEx", strings::init_checked::<u8>),
    routine("RtlFreeUTF8String", strings::free),
    routine("RtlSuffixUnicodeString", strings::suffix),
    routine("RtlRandom", random),
    routine("RtlRandomEx", random),
];

/// `STATUS_SOME_NOT_MAPPED`: success with replacement characters.
const SOME_NOT_MAPPED: NtStatus = NtStatus::from_bits(0x0000_0107);
/// `STATUS_INVALID_PARAMETER_4` and `STATUS_INVALID_PARAMETER_5`.
const INVALID_SOURCE: NtStatus = NtStatus::from_bits(0xC000_00F2);
const INVALID_LENGTH: NtStatus = NtStatus::from_bits(0xC000_00F3);

/// Decodes UTF-8 to UTF-16 characters. Returns whether all bytes are valid. Each maximal invalid
/// part becomes one replacement character.
fn decode(bytes: &[u8]) -> (Vec<Vec<u16>>, bool) {
    let mut is_valid = true;
    let mut units = Vec::new();
    for chunk in bytes.utf8_chunks() {
        let characters = chunk.valid().chars();
        units.extend(characters.map(|one| one.encode_utf16(&mut [0; 2]).to_vec()));
        if !chunk.invalid().is_empty() {
            is_valid = false;
            units.push(vec![u16::from_be_bytes([0xFF, 0xFD])]);
        }
    }
    (units, is_valid)
}

/// Encodes UTF-16 as UTF-8 characters. Returns whether all units are valid.
fn encode(units: &[u16]) -> (Vec<Vec<u8>>, bool) {
    let mut is_valid = true;
    let characters = char::decode_utf16(units.iter().copied()).map(|one| {
        is_valid &= one.is_ok();
        let one = one.unwrap_or(char::REPLACEMENT_CHARACTER);
        one.encode_utf8(&mut [0; 4]).as_bytes().to_vec()
    });
    let characters = characters.collect();
    (characters, is_valid)
}

/// Stores as many whole parts as fit, and the number of bytes. If there is no destination,
/// only counts.
fn store(
    context: &Context,
    destination: u64,
    room: u32,
    actual: At<u32>,
    characters: &[Vec<u8>],
    is_valid: bool,
) -> NtResult<NtStatus> {
    let room = if destination == 0 { usize::MAX } else { room as usize };
    let mut bytes: Vec<u8> = Vec::new();
    let mut is_cut = false;
    for one in characters {
        if bytes.len() + one.len() > room {
            is_cut = true;
            break;
        }
        bytes.extend(one);
    }
    if destination != 0 {
        context.write_bytes(destination, &bytes);
    }
    actual.write_optional(context, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if is_cut { Err(NtStatus::BUFFER_TOO_SMALL) } else { Ok(mapped(is_valid)) }
}

/// Returns the bytes of each unit. The end of a buffer may divide a surrogate pair.
fn wide(characters: &[Vec<u16>]) -> Vec<Vec<u8>> {
    characters.iter().flatten().map(|unit| unit.to_le_bytes().to_vec()).collect()
}

/// Checks the arguments common to both directions.
const fn check(destination: u64, actual: At<u32>, source: u64) -> NtResult {
    if source == 0 {
        Err(INVALID_SOURCE)
    } else if destination == 0 && actual.is_null() {
        Err(NtStatus::INVALID_PARAMETER)
    } else {
        Ok(())
    }
}

fn utf8_to_unicode(
    context: &Context,
    destination: At<u16>,
    room: u32,
    actual: At<u32>,
    source: At<i8>,
    length: u32,
) -> NtResult<NtStatus> {
    check(destination.0, actual, source.0)?;
    let (characters, is_valid) = decode(&context.read_bytes(source.0, length as usize));
    let characters = wide(&characters);
    store(context, destination.0, room, actual, &characters, is_valid)
}

fn unicode_to_utf8(
    context: &Context,
    destination: At<i8>,
    room: u32,
    actual: At<u32>,
    source: At<u16>,
    length: u32,
) -> NtResult<NtStatus> {
    check(destination.0, actual, source.0)?;
    // A call that only counts ignores half a unit.
    if !length.is_multiple_of(2) && !destination.is_null() {
        return Err(INVALID_LENGTH);
    }
    let length = length & !1;
    let (characters, is_valid) = encode(&units(&context.read_bytes(source.0, length as usize)));
    store(context, destination.0, room, actual, &characters, is_valid)
}

/// Returns the bytes of a counted string.
fn bytes_of(context: &Context, string: u64) -> Vec<u8> {
    let string: UnicodeString = context.read(string);
    context.read_bytes(string.buffer, usize::from(string.length))
}

/// Returns the status of a conversion that may have replaced invalid parts.
const fn mapped(is_valid: bool) -> NtStatus {
    if is_valid { NtStatus::SUCCESS } else { SOME_NOT_MAPPED }
}

fn utf8_string_to_unicode(
    context: &Context,
    destination: At<UnicodeString>,
    source: At<AnsiString>,
    allocate: bool,
) -> NtResult<NtStatus> {
    let (characters, is_valid) = decode(&bytes_of(context, source.0));
    strings::store::<true>(context, destination.0, &characters.concat(), allocate, true)?;
    Ok(mapped(is_valid))
}

fn unicode_string_to_utf8(
    context: &Context,
    destination: At<AnsiString>,
    source: At<UnicodeString>,
    allocate: bool,
) -> NtResult<NtStatus> {
    let (characters, is_valid) = encode(&units(&bytes_of(context, source.0)));
    let bytes: Vec<u16> = characters.concat().into_iter().map(u16::from).collect();
    strings::store::<false>(context, destination.0, &bytes, allocate, true)?;
    Ok(mapped(is_valid))
}

/// Returns a random number below 2^31, and updates the seed.
fn random(context: &Context, seed: At<u32>) -> u32 {
    /// The factors in the documentation of `RtlUniform`.
    const FACTOR: u64 = 0x7FFF_FFED;
    const SUMMAND: u64 = 0x7FFF_FFC3;
    const MODULUS: u64 = 0x7FFF_FFFF;
    let next = low_half((u64::from(seed.read(context)) * FACTOR + SUMMAND) % MODULUS);
    seed.write(context, next);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_converted_both_ways() {
        let text = "aä€😀";
        let (units, is_valid) = decode(text.as_bytes());
        assert!(is_valid);
        assert_eq!(units.concat(), text.encode_utf16().collect::<Vec<_>>());
        let (bytes, is_valid) = encode(&units.concat());
        assert!(is_valid);
        assert_eq!(bytes.concat(), text.as_bytes());
        assert_eq!(decode(b"a\xC3"), (vec![vec![97], vec![0xFFFD]], false));
        let (bytes, is_valid) = encode(&[0xD800, 97]);
        assert_eq!((bytes.concat(), is_valid), ("\u{FFFD}a".into(), false));
    }
}
