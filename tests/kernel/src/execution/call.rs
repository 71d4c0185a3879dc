//! A driver's call to a routine.

use crate::ground::irql::Irql;

/// A driver's call to a routine.
#[derive(Clone, Copy)]
pub struct Call {
    /// The routine's name.
    pub name: &'static str,
    /// The return address, which is the byte after the call instruction.
    pub return_address: u64,
    /// The caller's IRQL.
    pub irql: Irql,
    /// The caller's stack pointer.
    pub stack: u64,
}

impl Call {
    /// The placeholder for the last call of a thread whose drivers have made none.
    pub const NONE: Self = Self {
        name: "(no call yet)",
        return_address: 0,
        irql: Irql::PASSIVE_LEVEL,
        stack: 0,
    };
}
