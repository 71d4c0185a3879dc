//! Security identifiers and generic access rights.

use super::strings::store;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};
use std::fmt::Write as _;

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlConvertSidToUnicodeString", APC, Routine::Three(sid_to_text)),
    ("RtlMapGenericMask", APC, Routine::Two(map_generic)),
    ("RtlValidSid", APC, Routine::One(is_valid_sid)),
    ("RtlLengthSid", HIGH, Routine::One(length_of_sid)),
    ("RtlLengthRequiredSid", APC, Routine::One(length_required)),
    ("RtlCopySid", APC, Routine::Three(copy_sid)),
    ("RtlEqualSid", HIGH, Routine::Two(equal_sids)),
];

/// `STATUS_INVALID_SID`.
const INVALID_SID: NtStatus = NtStatus::from_bits(0xC000_0078);

/// Writes a security identifier as `S-1-5-18`.
fn sid_to_text(context: &Context, to: u64, sid: u64, allocate: u64) -> u64 {
    /// The largest authority that is a decimal number.
    const DECIMAL: u64 = 0xFFFF_FFFF;
    if !is_sid(context, sid) {
        return INVALID_SID.to_register();
    }
    let bytes = context.bytes(sid, length_of_sid(context, sid));
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
    store::<true>(context, to, &units, allocate, true).to_register()
}

/// Replaces the generic rights of a mask by those that a `GENERIC_MAPPING` says.
fn map_generic(context: &Context, mask: u64, mapping: u64) -> u64 {
    /// `GENERIC_READ`, `GENERIC_WRITE`, `GENERIC_EXECUTE` and `GENERIC_ALL`, in the order of the mapping.
    const GENERIC: [u32; 4] = [0x8000_0000, 0x4000_0000, 0x2000_0000, 0x1000_0000];
    let mapping: [u32; 4] = context.read(mapping);
    let before: u32 = context.read(mask);
    let mapped = GENERIC.iter().zip(mapping);
    let after =
        mapped.fold(
            before & 0x0FFF_FFFF,
            |mask, (generic, rights)| {
                if before & generic == 0 { mask } else { mask | rights }
            },
        );
    context.write(mask, &after);
    0
}

const HIGH: Irql = Irql::HIGH_LEVEL;

/// The maximum number of a security identifier's sub-authorities.
const MAX_SUB_AUTHORITIES: u8 = 15;

/// Returns the size of a security identifier with this number of sub-authorities.
const fn sid_size(count: u8) -> u64 {
    8 + 4 * count as u64
}

fn is_valid_sid(context: &Context, sid: u64) -> u64 {
    u64::from(is_sid(context, sid))
}

/// Returns whether an address is that of a security identifier.
pub fn is_sid(context: &Context, sid: u64) -> bool {
    if sid == 0 {
        return false;
    }
    let [revision, count]: [u8; 2] = context.read(sid);
    revision & 0xF == 1 && count <= MAX_SUB_AUTHORITIES
}

/// Returns the size of a security identifier.
pub fn length_of_sid(context: &Context, sid: u64) -> u64 {
    let [_, count]: [u8; 2] = context.read(sid);
    sid_size(count)
}

fn length_required(_context: &Context, count: u64) -> u64 {
    8_u64.wrapping_add(4 * u64::from(low_half(count))) & 0xFFFF_FFFF
}

fn copy_sid(context: &Context, room: u64, to: u64, sid: u64) -> u64 {
    let length = length_of_sid(context, sid);
    if u64::from(low_half(room)) < length {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    context.write_bytes(to, &context.bytes(sid, length));
    NtStatus::SUCCESS.to_register()
}

fn equal_sids(context: &Context, one: u64, other: u64) -> u64 {
    let lengths = [one, other].map(|sid| length_of_sid(context, sid));
    let contents = || [one, other].map(|sid| context.bytes(sid, lengths[0]));
    u64::from(
        lengths[0] == lengths[1] && {
            let [one, other] = contents();
            one == other
        },
    )
}
