//! Wait locks and enable callbacks: the order in which a driver takes the one and waits for
//! the other.

use std::collections::HashSet;

/// The locks that matter, by their handles.
#[derive(Default)]
pub struct LockOrder {
    /// Held over `EtwUnregister` or `EtwSetInformation`, which wait for callbacks (ETW-2.9).
    over_waits: HashSet<u64>,
    /// Acquired by callbacks.
    in_callbacks: HashSet<u64>,
}

impl LockOrder {
    /// Notes a lock that is held over a call that waits for callbacks. Returns whether a
    /// callback takes it.
    pub fn over_waits(&mut self, lock: u64) -> bool {
        self.over_waits.insert(lock);
        self.in_callbacks.contains(&lock)
    }

    /// Notes a lock that a callback acquires. Returns whether it is held over such a call.
    pub fn in_callbacks(&mut self, lock: u64) -> bool {
        self.in_callbacks.insert(lock);
        self.over_waits.contains(&lock)
    }
}
