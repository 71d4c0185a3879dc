//! Process and thread ids, as events record them.

/// A process id and a thread id, as events record them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The process id.
    pub process: u32,
    /// The thread id.
    pub thread: u32,
}

impl Identity {
    /// The idle thread, which a timer or DPC interrupts on an idle processor.
    pub const IDLE: Self = Self { process: 0, thread: 0 };
    /// A system thread, on which drivers are loaded, devices are started and enable callbacks
    /// run.
    pub const SYSTEM: Self = Self { process: 4, thread: 8 };
}
