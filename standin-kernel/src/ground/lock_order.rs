//! The order in which a driver acquires wait locks and waits for enable callbacks.

use std::collections::HashSet;

/// The locks that are held during waits for enable callbacks or that callbacks acquire, identified
/// by their handles.
#[derive(Default)]
pub struct LockOrder {
    /// The locks held during `EtwUnregister` or `EtwSetInformation`, which wait for callbacks
    /// (ETW-2.9).
    over_waits: HashSet<u64>,
    /// The locks that callbacks acquire.
    in_callbacks: HashSet<u64>,
}

impl LockOrder {
    /// Records a lock that is held during a call that waits for callbacks. Returns whether a
    /// callback has acquired the lock.
    pub fn over_waits(&mut self, lock: u64) -> bool {
        self.over_waits.insert(lock);
        self.in_callbacks.contains(&lock)
    }

    /// Records a lock that a callback acquires. Returns whether the lock was held during a call
    /// that waits for callbacks.
    pub fn in_callbacks(&mut self, lock: u64) -> bool {
        self.in_callbacks.insert(lock);
        self.over_waits.contains(&lock)
    }
}
