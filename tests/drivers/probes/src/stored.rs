//! The answers that only `DriverEntry` can give.

use core::cell::UnsafeCell;

use etw_probes_interface::{Reply, operation};

/// An answer that `DriverEntry` stores.
struct Stored(UnsafeCell<Reply>);

// SAFETY: `DriverEntry` writes the answer before any other code of the driver runs; later code only
// reads it.
unsafe impl Sync for Stored {}

/// The answers of `DriverEntry`, by operation.
static ANSWERS: [Stored; 2] = [
    Stored(UnsafeCell::new(not_asked(operation::ACTIVITY))),
    Stored(UnsafeCell::new(not_asked(operation::ACTIVITY_KERNEL))),
];

/// Returns the answer of a `DriverEntry` that ran no probes.
const fn not_asked(operation: u32) -> Reply {
    let mut reply = Reply::new(operation);
    reply.available = 0;
    reply.statuses[7] = 0;
    reply
}

/// Returns the answer from `DriverEntry` for an operation, if it was performed there.
pub fn answer_of(operation: u32) -> Option<Reply> {
    ANSWERS
        .iter()
        // SAFETY: `DriverEntry` has returned, so nothing writes to it.
        .map(|stored| unsafe { *stored.0.get() })
        .find(|reply| reply.operation == operation)
}

/// Stores the answers that `ask` gives for the operations. Only `DriverEntry` calls this.
pub fn store(ask: impl Fn(u32) -> Reply) {
    for (stored, operation) in ANSWERS.iter().zip([operation::ACTIVITY, operation::ACTIVITY_KERNEL])
    {
        // SAFETY: `DriverEntry` runs once, before any other code of the driver.
        unsafe { stored.0.get().write(ask(operation)) };
    }
}
