//! Captured security descriptors.

use super::{
    context::{Context, Entries},
    object_security::store_copy,
    pool,
    security::{INVALID_DESCRIPTOR, descriptor, parts, self_relative},
};
use crate::{
    execution::routine::{Routine, low_byte},
    ground::{irql::Irql, status::NtStatus},
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

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
