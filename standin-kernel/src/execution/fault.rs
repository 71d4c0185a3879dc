//! Faults of driver code, as exceptions and in words.

use super::{
    protection::{self, Cause},
    routine::low_half,
    thread::Thread,
};
use crate::ground::{
    access::AddressError,
    arena::Arena,
    fast_fail,
    host::{
        self,
        fault::{Fault, Trap},
    },
    irql::Irql,
    memory,
};

/// The statuses of the exceptions (`STATUS_*`).
pub const ACCESS_VIOLATION: u64 = 0xC000_0005;
const ILLEGAL_INSTRUCTION: u64 = 0xC000_001D;
const INTEGER_DIVIDE_BY_ZERO: u64 = 0xC000_0094;
const BREAKPOINT: u64 = 0x8000_0003;
const PRIVILEGED_INSTRUCTION: u64 = 0xC000_0096;
const INTEGER_OVERFLOW: u64 = 0xC000_0095;
const FLOAT_INVALID_OPERATION: u64 = 0xC000_0090;
const SINGLE_STEP: u64 = 0x8000_0004;
const DATATYPE_MISALIGNMENT: u64 = 0x8000_0002;
const ASSERTION_FAILURE: u64 = 0xC000_0420;

/// The interrupts that report a failed assertion and call a debugger.
const ASSERTION: u8 = 0x2C;
const DEBUG_SERVICE: u8 = 0x2D;

/// An exception.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The status (`STATUS_*`).
    pub status: u32,
    /// The address of the instruction.
    pub address: u64,
    /// The operation (0 to read, 1 to write) and the address of an access violation.
    pub access: Option<[u64; 2]>,
    /// Set if the code cannot continue at the instruction.
    pub is_noncontinuable: bool,
}

/// Returns the exception that a fault raises in driver code. Returns `None` for a fault that bugchecks
/// regardless of handlers: an access to a kernel address or at `DISPATCH_LEVEL` or above, and whatever
/// Windows does not treat as an exception.
pub fn exception_of(thread: &Thread, trap: &Trap) -> Option<Exception> {
    let environment = thread.environment();
    let at = trap.registers.rip;
    let is_none = !trap.fault.is_served()
        || thread.stacks().is_below(trap.address)
        || environment.images.unprovided_at(trap.address).is_some()
        || protection::code_at(at).starts_with(&fast_fail::INSTRUCTION);
    if is_none {
        return None;
    }
    let (status, _, address) = fault(thread, trap);
    let is_violation = status == ACCESS_VIOLATION;
    if is_violation && trap.fault != Fault::Protection {
        let is_fetch = trap.fault == Fault::Fetch;
        let is_system = trap.address >> 47 != 0
            || Arena::non_paged().contains(trap.address)
            || environment.paged.contains(trap.address)
            || environment.images.contains(trap.address)
            || thread.stacks().contains(trap.address)
            || thread.host().address_error(trap.address).is_some();
        if is_fetch || is_system || thread.irql() >= Irql::DISPATCH_LEVEL {
            return None;
        }
    }
    // On Windows, drivers may execute these instructions.
    if status == PRIVILEGED_INSTRUCTION {
        return None;
    }
    Some(Exception {
        status: low_half(status),
        address: at,
        access: is_violation.then_some([u64::from(trap.fault == Fault::Write), address]),
        is_noncontinuable: false,
    })
}

/// Returns the status of a fault's exception, the fault's description, and the exception's address.
pub fn fault(thread: &Thread, trap: &Trap) -> (u64, String, u64) {
    let is_protection = trap.fault == Fault::Protection;
    let (status, what) = match trap.fault {
        Fault::RefusedCall(number) => {
            let name = host::call_name(number);
            let what = format!("the Linux system call {name}, which the confinement refused,");
            (ILLEGAL_INSTRUCTION, what)
        }
        Fault::Not64Bit => (
            ILLEGAL_INSTRUCTION,
            "an instruction that left 64-bit mode, such as `sysenter`,".to_owned(),
        ),
        Fault::SystemCall => (
            ILLEGAL_INSTRUCTION,
            format!(
                "the instruction `{}`, which makes a system call and which only user-mode code may \
                 execute,",
                system_call(trap)
            ),
        ),
        Fault::Illegal => {
            let instruction = protection::instruction_at(trap.registers.rip);
            let name = instruction.map_or_else(String::new, |text| format!(" `{text}`"));
            (ILLEGAL_INSTRUCTION, format!("illegal instruction{name}"))
        }
        Fault::FloatingPoint => (
            FLOAT_INVALID_OPERATION,
            "floating-point exception, which the driver did not mask,".to_owned(),
        ),
        Fault::Arithmetic => arithmetic(trap),
        Fault::Alignment => (
            DATATYPE_MISALIGNMENT,
            "unaligned access with the alignment check on (the driver set the flag AC)".to_owned(),
        ),
        Fault::SingleStep => (SINGLE_STEP, "single step (the trap flag is set)".to_owned()),
        Fault::Breakpoint => (BREAKPOINT, "breakpoint".to_owned()),
        Fault::Protection => protection_fault(trap),
        Fault::Read | Fault::Write | Fault::Fetch | Fault::Interruption => {
            let access = match trap.fault {
                Fault::Fetch => "instruction fetch from",
                Fault::Write => "write to",
                _ => "read from",
            };
            let error = thread.host().address_error(trap.address);
            let is_readable = || memory::read::<u8>(trap.address).is_ok();
            let unknown = if trap.fault == Fault::Fetch && is_readable() {
                // With HVCI, Windows does not allow executable NonPagedPool.
                "is not executable: only images are executable, as with memory integrity (HVCI)"
            } else {
                "cannot be accessed"
            };
            let error = error.map_or_else(|| unknown.to_owned(), AddressError::numbered);
            (ACCESS_VIOLATION, format!("{access} 0x{:016X}, which {error}", trap.address))
        }
    };
    // On Windows, a general-protection fault has no known address either.
    let address = if is_protection && status == ACCESS_VIOLATION { u64::MAX } else { trap.address };
    (status, what, address)
}

/// Returns the name of the instruction that made a system call.
fn system_call(trap: &Trap) -> &'static str {
    let code = protection::code_at(trap.registers.rip);
    let mut known = host::INSTRUCTIONS.iter();
    known.find(|(instruction, _)| code.starts_with(instruction)).map_or("syscall", |(_, name)| name)
}

/// Returns an arithmetic exception's status and description.
fn arithmetic(trap: &Trap) -> (u64, String) {
    let read = |address: u64| memory::read::<u64>(address).ok();
    match protection::divisor(trap.registers, read) {
        Some(divisor) if divisor != 0 => {
            (INTEGER_OVERFLOW, "overflow of a division, whose quotient does not fit,".to_owned())
        }
        _ => (INTEGER_DIVIDE_BY_ZERO, "division by zero".to_owned()),
    }
}

/// Returns a general-protection fault's status and description.
fn protection_fault(trap: &Trap) -> (u64, String) {
    let code = protection::code_at(trap.registers.rip);
    let read = |address: u64| memory::read::<u64>(address).ok();
    match Cause::from_fault(&code, &trap.registers, read) {
        Some(Cause::Privileged(instruction)) => (
            PRIVILEGED_INSTRUCTION,
            format!(
                "privileged instruction `{instruction}`, which a driver may execute on Windows, but \
                 which the stand-in kernel does not provide,"
            ),
        ),
        Some(Cause::Interrupt(ASSERTION)) => {
            (ASSERTION_FAILURE, "failed assertion (the instruction `int 2Ch`)".to_owned())
        }
        Some(Cause::Interrupt(DEBUG_SERVICE)) => (
            BREAKPOINT,
            "debugger call (the instruction `int 2Dh`) with no debugger attached,".to_owned(),
        ),
        Some(Cause::Interrupt(number)) => (
            ACCESS_VIOLATION,
            format!("software interrupt `int {number:X}h`, which has no handler,"),
        ),
        Some(Cause::NotCanonical { access, address }) => (
            ACCESS_VIOLATION,
            format!("{access} 0x{address:016X}, which is not a canonical address,"),
        ),
        Some(Cause::Misaligned { access, address, instruction }) => (
            ACCESS_VIOLATION,
            format!("{access} 0x{address:016X}, which is not aligned as `{instruction}` requires,"),
        ),
        Some(Cause::Instruction(instruction)) => (
            ACCESS_VIOLATION,
            format!("general-protection fault of the instruction `{instruction}`"),
        ),
        None => (ACCESS_VIOLATION, "general-protection fault".to_owned()),
    }
}
