//! A driver's call to a routine.

use crate::ground::{irql::Irql, unwind::Registers};

/// The registers that a routine preserves for its caller, in the order in which gateways store
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Preserved {
    /// rbx, rbp, rsi and rdi.
    pub low: [u64; 4],
    /// r12 to r15.
    pub high: [u64; 4],
}

/// The part of the driver's processor state that a gateway stores.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entered {
    /// The registers that the routine preserves.
    pub preserved: Preserved,
    /// The processor's flags.
    pub flags: u64,
    /// The address of the registers with which the driver continues after an exception
    /// ([`Continuation`](super::exceptions::Continuation)), or 0.
    pub continuation: u64,
}

const _: () = assert!(size_of::<Preserved>() == 64 && size_of::<Entered>() == 80);

/// A driver's call to a routine.
#[derive(Clone, Copy)]
pub struct Call {
    /// The routine's name.
    pub name: &'static str,
    /// The return address: the first byte after the call instruction.
    pub return_address: u64,
    /// The caller's IRQL.
    pub irql: Irql,
    /// The caller's stack pointer, which points to the return address.
    pub stack: u64,
    /// The caller's other registers.
    pub preserved: Preserved,
}

impl Call {
    /// The placeholder for the last call of a thread whose drivers have not called the kernel yet.
    pub const NONE: Self = Self {
        name: "(no call yet)",
        return_address: 0,
        irql: Irql::PASSIVE_LEVEL,
        stack: 0,
        preserved: Preserved { low: [0; 4], high: [0; 4] },
    };

    /// Returns the caller's registers after the call. Registers that a routine does not preserve
    /// are 0.
    pub const fn registers(&self) -> Registers {
        let [rbx, rbp, rsi, rdi] = self.preserved.low;
        let [r12, r13, r14, r15] = self.preserved.high;
        let rsp = self.stack.wrapping_add(8);
        Registers {
            rip: self.return_address,
            general: [0, 0, 0, rbx, rsp, rbp, rsi, rdi, 0, 0, 0, 0, r12, r13, r14, r15],
        }
    }
}
