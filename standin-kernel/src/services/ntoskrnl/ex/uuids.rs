//! Universally unique identifiers.

use etl_file::Guid;

use crate::{
    execution::routine::{At, routine},
    ground::NtStatus,
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[routine("ExUuidCreate", create_uuid)];

/// The time of the last UUID.
#[derive(Default)]
struct LastUuid(i64);

/// Creates a version 1 UUID from the clock and a node that no network adapter has. Identical runs create
/// identical UUIDs.
fn create_uuid(context: &Context, uuid: At<Guid>) -> NtStatus {
    /// The time from 1582-10-15 to 1601-01-01 in units of 100 ns.
    const BEFORE_1601: i64 = 5_748_192_000_000_000;
    /// The variant and a constant clock sequence, and a node with the multicast bit set.
    const REST: [u8; 8] = [0x80, 0, 0x03, 0, 0, 0, 0, 0x01];
    let clock = context.clock();
    let now = clock.file_time(clock.counter()).wrapping_add(BEFORE_1601);
    let time = context.with_state(|LastUuid(last)| {
        *last = now.max(last.wrapping_add(1));
        last.cast_unsigned()
    });
    let low = time & 0xFFFF_FFFF;
    let middle = time >> 32 & 0xFFFF;
    let high = time >> 48 & 0x0FFF | 0x1000;
    context.write(uuid.0, &(low | middle << 32 | high << 48));
    context.write(uuid.0.wrapping_add(8), &REST);
    NtStatus::SUCCESS
}
