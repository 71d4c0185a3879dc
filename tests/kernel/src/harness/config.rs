//! The configuration of a kernel.

use std::time::SystemTime;

use crate::services::etw::unspecified::UnspecifiedBehaviour;

/// The configuration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The initial time of the clock. Equal runs from equal times have equal timestamps.
    pub start: SystemTime,
    /// The number of processors, 1 to 64. All but the first run only the work passed to
    /// `Kernel::together`.
    pub processors: u16,
    /// The choices for behaviour of ETW that is not documented.
    pub unspecified_behaviour: UnspecifiedBehaviour,
    /// Places each block of non-paged pool directly before inaccessible memory, and makes it
    /// inaccessible when it is freed.
    pub special_pool: bool,
    /// Passes filter data to enable callbacks whose chain leads past its end.
    pub hostile_filters: bool,
}

impl Default for KernelConfig {
    /// Returns a configuration with one processor and the present time.
    fn default() -> Self {
        Self {
            start: SystemTime::now(),
            processors: 1,
            unspecified_behaviour: UnspecifiedBehaviour::default(),
            special_pool: false,
            hostile_filters: false,
        }
    }
}
