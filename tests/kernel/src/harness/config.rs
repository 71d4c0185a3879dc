//! The configuration of a kernel.

use std::time::SystemTime;

use crate::services::etw::unspecified::UnspecifiedBehaviour;

/// The configuration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// The time that its clock shows at first: the same run has the same timestamps.
    pub start: SystemTime,
    /// The number of processors, 1 to 64. All but the first run what
    /// `Kernel::together` gives them.
    pub processors: u16,
    /// The choices for what is not documented of ETW.
    pub unspecified_behaviour: UnspecifiedBehaviour,
    /// Whether each block of non-paged pool ends where inaccessible memory begins, and is
    /// inaccessible once it is freed.
    pub special_pool: bool,
    /// Whether the filters that enable callbacks get lead past their end.
    pub hostile_filters: bool,
}

impl Default for KernelConfig {
    /// One processor, and the present time.
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
