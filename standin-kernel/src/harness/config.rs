//! The configuration of a kernel.

use std::time::{Duration, SystemTime};

use crate::services::etw::unspecified::UnspecifiedBehaviour;

/// The configuration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The initial time of the clock. Equal runs from equal times have equal timestamps, unless
    /// threads run in parallel.
    pub start: SystemTime,
    /// The number of processors, 1 to 64. All but the first run only the work passed to
    /// `Kernel::together`.
    pub processors: u16,
    /// The choices for unspecified behaviour of ETW.
    pub unspecified_behaviour: UnspecifiedBehaviour,
    /// Places each block of non-paged pool directly before inaccessible memory, and makes it
    /// inaccessible when it is freed.
    pub special_pool: bool,
    /// Passes filter data whose chain of filters continues past the end of the data to enable
    /// callbacks.
    pub hostile_filters: bool,
    /// Keeps notes about style (see `Kernel::notes`).
    pub notes: bool,
    /// The processor time that driver code may use without calling the kernel. Code that uses more,
    /// such as an endless loop, causes a bugcheck that names the place. Code that keeps calling the
    /// kernel may use six times as much.
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
