//! The pool blocks that are cache-aware rundown references.

use std::collections::BTreeSet;

use crate::services::ntoskrnl::context::Context;

/// The cache-aware rundown references that this kernel allocated.
#[derive(Default)]
pub struct Allocated(pub BTreeSet<u64>);

/// Removes the reference whose block is being freed. Returns whether the block was a reference.
pub fn forget(context: &Context, address: u64) -> bool {
    context.state().get::<Allocated>().0.remove(&address)
}
