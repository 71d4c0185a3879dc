//! The configuration of a kernel.

use std::time::{Duration, SystemTime};

use crate::services::etw::unspecified::UnspecifiedBehaviour;

/// The configuration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The initial time of the clock. Identical runs that start at the same time have identical
    /// timestamps, unless threads run in parallel.
    pub start: SystemTime,
    /// The number of processors, 1 to 64. Processors other than the first run only the work passed
    /// to `Kernel::together`.
    pub processors: u16,
    /// The choices for ETW behavior that no document specifies.
    pub unspecified_behaviour: UnspecifiedBehaviour,
    /// Places each non-paged pool block directly before inaccessible memory, and makes a freed
    /// block inaccessible.
    pub special_pool: bool,
    /// Passes filter data to enable callbacks in which the chain of filters extends past the end.
    pub hostile_filters: bool,
    /// Records notes about style (see `Kernel::notes`).
    pub notes: bool,
    /// The processor time that driver code may use without calling the kernel. Code that uses more,
    /// such as an endless loop, causes a bugcheck that names the code's location. Code that keeps
    /// calling the kernel may use six times as much.
    pub time_limit: Duration,
}

impl Default for KernelConfig {
    /// Returns a configuration with one processor, the current time and a time limit of 10 seconds.
    fn default() -> Self {
        Self {
            start: SystemTime::now(),
            processors: 1,
            unspecified_behaviour: UnspecifiedBehaviour::default(),
            special_pool: false,
            hostile_filters: false,
            notes: true,
            time_limit: Duration::from_secs(10),
        }
    }
}
