//! The accesses that pages allow.

/// The accesses that pages allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// No access.
    None,
    /// No access, until the first access has been reported. For the page below a stack, because a
    /// host may need the pages of the stack to report a fault.
    Guard,
    /// Reads.
    Read,
    /// Reads and writes.
    ReadWrite,
    /// Reads and execution.
    ReadExecute,
    /// All accesses.
    ReadWriteExecute,
}

impl Protection {
    /// Returns the protection of readable pages.
    pub const fn readable(is_writable: bool, is_executable: bool) -> Self {
        match (is_writable, is_executable) {
            (false, false) => Self::Read,
            (true, false) => Self::ReadWrite,
            (false, true) => Self::ReadExecute,
            (true, true) => Self::ReadWriteExecute,
        }
    }
}
