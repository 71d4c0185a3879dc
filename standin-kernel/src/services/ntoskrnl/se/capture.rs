//! Captured security descriptors.

use super::security_descriptors::{INVALID_DESCRIPTOR, descriptor, parts, self_relative};
use crate::{
    execution::routine::{Routine, low_byte},
    ground::{irql::Irql, status::NtStatus},
    services::{
        managers::pool::{Tag, Wanted},
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
        },
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

/// The tag of captured descriptors: `SeSd`.
const TAG: Tag = Tag(u32::from_le_bytes(*b"SeSd"));

pub const ENTRIES: Entries = &[
    ("SeCaptureSecurityDescriptor", PASSIVE, Routine::Five(capture)),
    ("SeReleaseSecurityDescriptor", PASSIVE, Routine::Three(release_captured)),
];

/// Copies a descriptor, unless it is the kernel's own and no copy is forced.
fn capture(context: &Context, at: u64, mode: u64, _pool: u64, is_forced: u64, to: u64) -> u64 {
    if low_byte(mode) == 0 && low_byte(is_forced) == 0 {
        context.write(to, &at);
        return NtStatus::SUCCESS.to_register();
    }
    let found = descriptor(context, at);
    let Some((found, parts)) = found.and_then(|one| parts(context, &one).map(|parts| (one, parts)))
    else {
        return INVALID_DESCRIPTOR.to_register();
    };
    store_copy(context, to, &self_relative(found.control, &parts)).to_register()
}

fn release_captured(context: &Context, at: u64, mode: u64, is_forced: u64) -> u64 {
    if low_byte(mode) != 0 || low_byte(is_forced) != 0 {
        pool::free_block(context, at);
    }
    0
}

/// Copies a descriptor to paged pool. Returns its address, or 0.
fn copy(context: &Context, bytes: &[u8]) -> u64 {
    let wanted = Wanted { size: bytes.len(), tag: TAG, paged: true, uninitialized: false };
    let block = context.pool().allocate(wanted, context, context.call());
    if let Some(block) = block {
        context.write_bytes(block, bytes);
    }
    block.unwrap_or(0)
}

/// Stores the address of a copy.
pub fn store_copy(context: &Context, to: u64, bytes: &[u8]) -> NtStatus {
    let block = copy(context, bytes);
    context.write(to, &block);
    if block == 0 { NtStatus::INSUFFICIENT_RESOURCES } else { NtStatus::SUCCESS }
}
