//! The blocks of pool that are cache-aware rundown references.

use std::collections::BTreeSet;

use crate::services::ntoskrnl::context::Context;

/// The cache-aware rundown references that this kernel allocated.
#[derive(Default)]
pub struct Allocated(pub BTreeSet<u64>);

/// Forgets a reference whose block is freed, by whichever routine. Returns whether the address is that of one.
pub fn forget(context: &Context, address: u64) -> bool {
    context.state().get::<Allocated>().0.remove(&address)
}
