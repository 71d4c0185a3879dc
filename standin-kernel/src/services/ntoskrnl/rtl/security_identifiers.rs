//! Security identifiers and generic access rights.

use super::strings::store;
use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        abi::UnicodeString,
        opaque::{GenericMapping, Sid},
    },
    services::ntoskrnl::context::{Context, Entries},
};
use std::fmt::Write as _;

pub const ENTRIES: Entries = &[
    routine("RtlConvertSidToUnicodeString", sid_to_text),
    routine("RtlMapGenericMask", map_generic),
    routine("RtlValidSid", is_sid),
    routine("RtlLengthSid", length_of_sid),
    routine("RtlLengthRequiredSid", length_required),
    routine("RtlCopySid", copy_sid),
    routine("RtlEqualSid", equal_sids),
];

/// `STATUS_INVALID_SID`.
const INVALID_SID: NtStatus = NtStatus::from_bits(0xC000_0078);

/// Formats a security identifier as a string such as `S-1-5-18`.
fn sid_to_text(
    context: &Context,
    unicode_string: At<UnicodeString>,
    sid: At<Sid>,
    allocate: bool,
) -> NtResult {
    /// The largest authority that is formatted in decimal.
    const DECIMAL: u64 = 0xFFFF_FFFF;
    if !is_sid(context, sid) {
        return Err(INVALID_SID);
    }
    let bytes = context.bytes(sid.0, length_of_sid(context, sid).into());
    let (fixed, rest) = bytes.split_at(bytes.len().min(8));
    let authority = fixed.iter().skip(2);
    let authority = authority.fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    let mut text = format!("S-{}-", fixed.first().copied().unwrap_or_default());
    if authority > DECIMAL {
        let _ = write!(text, "0x{authority:012x}");
    } else {
        let _ = write!(text, "{authority}");
    }
    for part in rest.chunks_exact(4) {
        let part = part.first_chunk().copied().unwrap_or_default();
        let _ = write!(text, "-{}", u32::from_le_bytes(part));
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    store::<true>(context, unicode_string.0, &units, allocate, true)
}

/// Replaces the generic rights in a mask according to a `GENERIC_MAPPING`.
fn map_generic(context: &Context, mask: At<u32>, mapping: At<GenericMapping>) {
    /// `GENERIC_READ`, `GENERIC_WRITE`, `GENERIC_EXECUTE` and `GENERIC_ALL`, in the order of the mapping.
    const GENERIC: [u32; 4] = [0x8000_0000, 0x4000_0000, 0x2000_0000, 0x1000_0000];
    let mapping: [u32; 4] = context.read(mapping.0);
    let before = mask.read(context);
    let granted = GENERIC.iter().zip(mapping).filter(|(generic, _)| before & *generic != 0);
    let after = granted.fold(before & 0x0FFF_FFFF, |mask, (_, rights)| mask | rights);
    mask.write(context, after);
}

/// The maximum number of sub-authorities in a security identifier.
const MAX_SUB_AUTHORITIES: u8 = 15;

/// Returns the size of a security identifier with this number of sub-authorities.
const fn length_required(_context: &Context, count: u32) -> u32 {
    count.wrapping_mul(4).wrapping_add(8)
}

/// Returns whether a security identifier is valid.
fn is_sid(context: &Context, sid: At<Sid>) -> bool {
    if sid.is_null() {
        return false;
    }
    let [revision, count]: [u8; 2] = context.read(sid.0);
    revision & 0xF == 1 && count <= MAX_SUB_AUTHORITIES
}

fn length_of_sid(context: &Context, sid: At<Sid>) -> u32 {
    let [_, count]: [u8; 2] = context.read(sid.0);
    length_required(context, count.into())
}

fn copy_sid(context: &Context, room: u32, destination_sid: At<Sid>, sid: At<Sid>) -> NtResult {
    let length = length_of_sid(context, sid);
    if room < length {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write_bytes(destination_sid.0, &context.bytes(sid.0, length.into()));
    Ok(())
}

fn equal_sids(context: &Context, one: At<Sid>, other: At<Sid>) -> bool {
    let lengths = [one, other].map(|sid| length_of_sid(context, sid));
    let contents = |sid| context.bytes(sid, lengths[0].into());
    lengths[0] == lengths[1] && contents(one.0) == contents(other.0)
}
