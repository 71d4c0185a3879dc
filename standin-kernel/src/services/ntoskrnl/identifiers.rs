//! Identifiers: new UUIDs, security identifiers as texts, and generic access rights.

use std::fmt::Write as _;

use super::{
    context::{Context, Entries},
    rtl,
    strings::store,
};
use crate::{
    execution::routine::Routine,
    ground::{irql::Irql, status::NtStatus},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExUuidCreate", PASSIVE, Routine::One(create_uuid)),
    ("RtlConvertSidToUnicodeString", APC, Routine::Three(sid_to_text)),
    ("RtlMapGenericMask", APC, Routine::Two(map_generic)),
];

/// `STATUS_INVALID_SID`.
const INVALID_SID: NtStatus = NtStatus::from_bits(0xC000_0078);

/// The time of the last UUID.
#[derive(Default)]
struct LastUuid(i64);

/// Creates a UUID of version 1 from the clock, and from a node that no network adapter has. The same run
/// creates the same UUIDs.
fn create_uuid(context: &Context, to: u64) -> u64 {
    /// The time from 1582-10-15 to 1601-01-01 in units of 100 ns.
    const BEFORE_1601: i64 = 5_748_192_000_000_000;
    /// The variant with a sequence that never changes, and a node with the bit of group addresses.
    const REST: [u8; 8] = [0x80, 0, 0x03, 0, 0, 0, 0, 0x01];
    let clock = context.clock();
    let now = clock.file_time(clock.counter()).wrapping_add(BEFORE_1601);
    let time = {
        let mut state = context.state();
        let last = &mut state.get::<LastUuid>().0;
        *last = now.max(last.wrapping_add(1));
        last.cast_unsigned()
    };
    let low = time & 0xFFFF_FFFF;
    let middle = time >> 32 & 0xFFFF;
    let high = time >> 48 & 0x0FFF | 0x1000;
    context.write(to, &(low | middle << 32 | high << 48));
    context.write(to.wrapping_add(8), &REST);
    NtStatus::SUCCESS.to_register()
}

/// Writes a security identifier as `S-1-5-18`.
fn sid_to_text(context: &Context, to: u64, sid: u64, allocate: u64) -> u64 {
    /// The largest authority that is a decimal number.
    const DECIMAL: u64 = 0xFFFF_FFFF;
    if !rtl::is_sid(context, sid) {
        return INVALID_SID.to_register();
    }
    let bytes = context.bytes(sid, rtl::length_of_sid(context, sid));
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
