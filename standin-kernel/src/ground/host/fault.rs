//! Processor faults, as the hosts report them.

use std::arch::asm;

use crate::ground::unwind::Registers;

/// The flags that the calling convention requires to be clear. Code outside drivers cannot run
/// while one is set: single step, direction, nested task and alignment check.
pub const CLEAR_FLAGS: u32 = 1 << 8 | DIRECTION | 1 << 14 | ALIGNMENT_CHECK;
/// The direction flag.
pub const DIRECTION: u32 = 1 << 10;
/// The alignment check flag.
pub const ALIGNMENT_CHECK: u32 = 1 << 18;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A read of memory that cannot be accessed.
    Read,
    /// A write to memory that cannot be accessed.
    Write,
    /// The execution of memory that cannot be executed.
    Fetch,
    /// A general-protection fault, or an access to a noncanonical address. The address is unknown.
    Protection,
    /// An illegal instruction.
    Illegal,
    /// A division by zero, or a quotient that does not fit.
    Arithmetic,
    /// A floating-point exception that is not masked.
    FloatingPoint,
    /// An access that the alignment check flag forbids.
    Alignment,
    /// A single step, because the trap flag is set.
    SingleStep,
    /// A breakpoint instruction.
    Breakpoint,
    /// An instruction that makes a system call.
    SystemCall,
    /// A system call with this number, which the confinement of this process refused.
    RefusedCall(u64),
    /// Any fault of code that left 64-bit mode.
    Not64Bit,
    /// An interruption by [`Interruption`](super::Interruption), which is not a fault.
    Interruption,
}

impl Fault {
    /// Returns whether the kernel may serve the fault, so that driver code continues after it.
    pub const fn is_served(self) -> bool {
        !matches!(
            self,
            Self::SystemCall | Self::RefusedCall(_) | Self::Not64Bit | Self::Interruption
        )
    }
}

/// A fault.
#[derive(Clone, Copy)]
pub struct Trap {
    /// The kind.
    pub fault: Fault,
    /// The address of the instruction, and the other registers there.
    pub registers: Registers,
    /// The address that could not be accessed.
    pub address: u64,
    /// The processor's flags.
    pub flags: u64,
}

/// The location where a thread continues in order to serve a fault of driver code.
pub struct Diversion {
    /// The instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The first argument.
    pub argument: u64,
}

/// Prepares a thread to serve a fault. Runs in the fault handler, so it may only read and write
/// memory.
pub type Divert = fn(&Trap) -> Diversion;

/// The routine in which a thread continues after a fault. It never returns to the faulting
/// instruction.
pub type Resume = extern "C" fn() -> !;

/// Makes this thread continue in a routine, on the stack with this end.
///
/// # Safety
///
/// The stack must belong to this thread, and nothing on it may be used again. Its end must be a multiple
/// of 16.
pub unsafe fn continue_on(top: u64, resume: Resume) -> ! {
    // SAFETY: the caller guarantees that the stack can be used, and the routine does not return.
    unsafe {
        asm!(
            "mov rsp, {top}",
            // The null return address ends stack walks, such as the walk of a panic.
            "push 0",
            "jmp {resume}",
            top = in(reg) top,
            resume = in(reg) resume,
            options(noreturn),
        )
    }
}
