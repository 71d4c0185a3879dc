//! Captured security descriptors.

use super::security_descriptors::{INVALID_DESCRIPTOR, descriptor, parts, self_relative};
use crate::{
    execution::routine::{At, routine},
    ground::{NtResult, NtStatus, opaque::SecurityDescriptor},
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
        },
    },
};

/// The pool tag of captured descriptors.
const TAG: Tag = Tag(u32::from_le_bytes(*b"SeSd"));

pub const ENTRIES: Entries = &[
    routine("SeCaptureSecurityDescriptor", capture),
    routine("SeReleaseSecurityDescriptor", release_captured),
];

/// Copies a descriptor, unless it belongs to the kernel and a copy is not forced.
fn capture(
    context: &Context,
    at: At<SecurityDescriptor>,
    mode: i8,
    _pool: u32,
    is_forced: bool,
    captured_descriptor: At<u64>,
) -> NtResult {
    if mode == 0 && !is_forced {
        captured_descriptor.write(context, at.0);
        return Ok(());
    }
    let found = descriptor(context, at.0).ok_or(INVALID_DESCRIPTOR)?;
    let parts = parts(context, &found).ok_or(INVALID_DESCRIPTOR)?;
    store_copy(context, captured_descriptor, &self_relative(found.control, &parts))
}

fn release_captured(context: &Context, at: At<SecurityDescriptor>, mode: i8, is_forced: bool) {
    if mode != 0 || is_forced {
        pool::free_block(context, at.0);
    }
}

/// Copies a descriptor to paged pool, and stores the address of the copy, or 0.
pub fn store_copy(context: &Context, captured_descriptor: At<u64>, bytes: &[u8]) -> NtResult {
    let block = context.allocate(bytes.len(), TAG, true);
    if let Some(block) = block {
        context.write_bytes(block, bytes);
    }
    captured_descriptor.write(context, block.unwrap_or(0));
    block.map(drop).ok_or(NtStatus::INSUFFICIENT_RESOURCES)
}
