//! UTF-8, suffixes of counted strings, and random numbers.

use super::strings;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::UnicodeString, irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlUTF8ToUnicodeN", PASSIVE, Routine::Five(utf8_to_unicode)),
    ("RtlUnicodeToUTF8N", PASSIVE, Routine::Five(unicode_to_utf8)),
    ("RtlUTF8StringToUnicodeString", PASSIVE, Routine::Three(utf8_string_to_unicode)),
    ("RtlUnicodeStringToUTF8String", PASSIVE, Routine::Three(unicode_string_to_utf8)),
    ("RtlSuffixUnicodeString", PASSIVE, Routine::Three(strings::suffix)),
    ("RtlRandom", APC, Routine::One(random)),
    ("RtlRandomEx", APC, Routine::One(random)),
];

/// `STATUS_SOME_NOT_MAPPED`: a success with replacement characters.
const SOME_NOT_MAPPED: NtStatus = NtStatus::from_bits(0x0000_0107);
/// `STATUS_INVALID_PARAMETER_4` and `STATUS_INVALID_PARAMETER_5`.
const INVALID_SOURCE: NtStatus = NtStatus::from_bits(0xC000_00F2);
const INVALID_LENGTH: NtStatus = NtStatus::from_bits(0xC000_00F3);

/// Returns the characters of UTF-8, and whether all of it is valid. Each maximal invalid part is one
/// replacement character.
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

/// Returns the characters of UTF-16 in UTF-8, and whether all of it is valid.
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

fn units_of(bytes: &[u8]) -> Vec<u16> {
    let pairs = bytes.chunks_exact(2);
    pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Stores as many whole characters as fit, and the number of bytes. Without a destination, only counts.
fn store(
    context: &Context,
    to: u64,
    room: u64,
    actual: u64,
    characters: &[Vec<u8>],
    is_valid: bool,
) -> NtStatus {
    let room =
        if to == 0 { usize::MAX } else { usize::try_from(low_half(room)).unwrap_or(usize::MAX) };
    let mut bytes: Vec<u8> = Vec::new();
    let mut is_cut = false;
    for one in characters {
        if bytes.len() + one.len() > room {
            is_cut = true;
            break;
        }
        bytes.extend(one);
    }
    if to != 0 {
        context.write_bytes(to, &bytes);
    }
    if actual != 0 {
        context.write(actual, &u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    }
    match (is_cut, is_valid) {
        (true, _) => NtStatus::BUFFER_TOO_SMALL,
        (false, false) => SOME_NOT_MAPPED,
        (false, true) => NtStatus::SUCCESS,
    }
}

fn wide(characters: &[Vec<u16>]) -> Vec<Vec<u8>> {
    let one = |units: &Vec<u16>| units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    characters.iter().map(one).collect()
}

/// Returns why the arguments that both directions have are not valid.
const fn refused(to: u64, actual: u64, source: u64) -> Option<NtStatus> {
    if source == 0 {
        Some(INVALID_SOURCE)
    } else if to == 0 && actual == 0 {
        Some(NtStatus::INVALID_PARAMETER)
    } else {
        None
    }
}

fn utf8_to_unicode(
    context: &Context,
    to: u64,
    room: u64,
    actual: u64,
    source: u64,
    length: u64,
) -> u64 {
    if let Some(status) = refused(to, actual, source) {
        return status.to_register();
    }
    let length = usize::try_from(low_half(length)).unwrap_or(usize::MAX);
    let (characters, is_valid) = decode(&context.read_bytes(source, length));
    let characters = wide(&characters);
    store(context, to, room, actual, &characters, is_valid).to_register()
}

fn unicode_to_utf8(
    context: &Context,
    to: u64,
    room: u64,
    actual: u64,
    source: u64,
    length: u64,
) -> u64 {
    if let Some(status) = refused(to, actual, source) {
        return status.to_register();
    }
    let length = low_half(length);
    if !length.is_multiple_of(2) {
        return INVALID_LENGTH.to_register();
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (characters, is_valid) = encode(&units_of(&context.read_bytes(source, length)));
    store(context, to, room, actual, &characters, is_valid).to_register()
}

/// Returns the bytes of a counted string.
fn bytes_of(context: &Context, string: u64) -> Vec<u8> {
    let string: UnicodeString = context.read(string);
    context.read_bytes(string.buffer, usize::from(string.length))
}

/// Returns a success's status, or that of replaced characters.
const fn mapped(status: NtStatus, is_valid: bool) -> u64 {
    if status.is_success() && !is_valid {
        return SOME_NOT_MAPPED.to_register();
    }
    status.to_register()
}

fn utf8_string_to_unicode(context: &Context, to: u64, source: u64, allocate: u64) -> u64 {
    let (characters, is_valid) = decode(&bytes_of(context, source));
    let status = strings::store::<true>(context, to, &characters.concat(), allocate, true);
    mapped(status, is_valid)
}

fn unicode_string_to_utf8(context: &Context, to: u64, source: u64, allocate: u64) -> u64 {
    let (characters, is_valid) = encode(&units_of(&bytes_of(context, source)));
    let bytes: Vec<u16> = characters.concat().into_iter().map(u16::from).collect();
    let status = strings::store::<false>(context, to, &bytes, allocate, true);
    mapped(status, is_valid)
}

/// Returns a number below 2^31, and changes the seed.
fn random(context: &Context, seed: u64) -> u64 {
    /// The factors that the documentation of `RtlUniform` names.
    const FACTOR: u64 = 0x7FFF_FFED;
    const SUMMAND: u64 = 0x7FFF_FFC3;
    const MODULUS: u64 = 0x7FFF_FFFF;
    let before: u32 = context.read(seed);
    let next = (u64::from(before) * FACTOR + SUMMAND) % MODULUS;
    context.write(seed, &low_half(next));
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
