//! Faults of driver code.
//!
//! Driver code runs natively, so its access violations, illegal instructions and divisions by zero
//! reach this process as signals. After such a fault, a kernel's thread continues in [`trapped`], on
//! another stack because its own stack may have overflowed. There it reports a bugcheck, and never
//! runs again.

use std::{cell::RefCell, ffi::c_void, num::NonZeroUsize, ptr::NonNull};

use etl_file::internals::show::Escaped;
use nix::{
    libc,
    sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap},
};

use super::{
    intercept,
    origin::origin,
    protection::{self, Cause},
    routine::low_half,
    thread::{self, THREAD_STUCK_IN_DEVICE_DRIVER, Thread},
};
use crate::ground::{
    access::AddressError,
    arena::PAGE,
    fast_fail,
    irql::Irql,
    memory, processor_block,
    rule::Rule,
    signals::{self, Trap},
    system_calls, unprovided,
};

/// The size in bytes of the stack on which a trapped thread reports, which must be large enough for
/// the PDB parser. Unused pages use no memory.
const REPORT_BYTES: usize = 8 << 20;

/// `KMODE_EXCEPTION_NOT_HANDLED`.
const EXCEPTION_NOT_HANDLED: u32 = 0x1E;
/// `DRIVER_IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xD1;

/// `UNEXPECTED_KERNEL_MODE_TRAP`, and its parameter for a double fault, which occurs if too little
/// stack remains to report a fault.
const UNEXPECTED_KERNEL_MODE_TRAP: u32 = 0x7F;
const DOUBLE_FAULT: u64 = 8;

/// `KERNEL_SECURITY_CHECK_FAILURE`.
const KERNEL_SECURITY_CHECK_FAILURE: u32 = 0x139;
/// `DPC_WATCHDOG_VIOLATION`.
pub const DPC_WATCHDOG_VIOLATION: u32 = 0x133;

/// The statuses of the exceptions (`STATUS_*`).
const ACCESS_VIOLATION: u64 = 0xC000_0005;
const ILLEGAL_INSTRUCTION: u64 = 0xC000_001D;
const INTEGER_DIVIDE_BY_ZERO: u64 = 0xC000_0094;
const BREAKPOINT: u64 = 0x8000_0003;
const PRIVILEGED_INSTRUCTION: u64 = 0xC000_0096;
const INTEGER_OVERFLOW: u64 = 0xC000_0095;
const FLOAT_INVALID_OPERATION: u64 = 0xC000_0090;
const SINGLE_STEP: u64 = 0x8000_0004;
const DATATYPE_MISALIGNMENT: u64 = 0x8000_0002;
const ASSERTION_FAILURE: u64 = 0xC000_0420;

/// The exception for an access that the alignment check flag forbids.
const ALIGNMENT_CHECK: u64 = 17;

/// The interrupts that report a failed assertion and call a debugger.
const ASSERTION: u8 = 0x2C;
const DEBUG_SERVICE: u8 = 0x2D;

thread_local! {
    static REPORT_STACK: RefCell<Option<ReportStack>> = const { RefCell::new(None) };
}

/// From now on, serves the accesses of this thread to the processor's state, and turns its other
/// faults into bugchecks.
pub fn watch_this_thread(thread: &Thread) {
    REPORT_STACK.with_borrow_mut(|stack| {
        let top = stack.get_or_insert_with(ReportStack::new).top();
        intercept::prepare();
        signals::resume_at(top, trapped, &thread.stacks().addresses(), intercept::divert);
    });
    processor_block::use_on_this_thread();
    system_calls::report_on_this_thread();
}

/// Reports a thread's fault and bugchecks. The signal handler has returned, so this function may
/// call any other.
extern "C" fn trapped() -> ! {
    let thread = thread::current();
    let Some(trap) = signals::trap() else {
        unreachable!("only the signal handler resumes here, after it recorded the trap");
    };
    report(&thread, trap)
}

fn report(thread: &Thread, trap: Trap) -> ! {
    let (backtrace, place) = origin(thread, trap.registers);
    let at = trap.registers.rip;
    if let Some(name) = thread.environment().images.unprovided_at(trap.address) {
        let use_of_it = if at == trap.address {
            // The driver called the routine, so the backtrace starts at the call.
            format!("called from {}", thread.explain(&backtrace).place)
        } else {
            format!("used at {place}")
        };
        let module = name.split('!').next().unwrap_or_default();
        let why = unprovided::framework(module).map_or_else(
            || "the stand-in kernel does not provide it".to_owned(),
            |what| format!("the stand-in kernel does not run {what}"),
        );
        thread.stop_at(
            Rule::NotProvided,
            format!("{} was {use_of_it}; {why}", Escaped(&name)),
            &backtrace,
        );
    }
    let irql = thread.irql();
    if thread.stacks().is_below(trap.address) {
        thread.bugcheck(
            UNEXPECTED_KERNEL_MODE_TRAP,
            [DOUBLE_FAULT, at, trap.registers.rsp(), trap.address],
            format!(
                "the kernel stack of {} KiB overflowed at {irql}, in {place}",
                thread.stack().size() / 1024
            ),
            &backtrace,
        );
    }
    if trap.signal == signals::INTERRUPT as libc::c_int {
        let code = if irql >= Irql::DISPATCH_LEVEL {
            DPC_WATCHDOG_VIOLATION
        } else {
            THREAD_STUCK_IN_DEVICE_DRIVER
        };
        thread.bugcheck(
            code,
            [0, at, 0, 0],
            format!(
                "driver code ran for {:?} of processor time at {irql} and neither returned nor \
                 called the kernel; it was interrupted in {place}",
                thread.watch.limit()
            ),
            &backtrace,
        );
    }
    if trap.exception == signals::GENERAL_PROTECTION
        && memory::read(at) == Ok(fast_fail::INSTRUCTION)
    {
        let code = low_half(trap.registers.get(1));
        let name = fast_fail::name(code).unwrap_or("an unknown code");
        thread.bugcheck(
            KERNEL_SECURITY_CHECK_FAILURE,
            [u64::from(code), 0, 0, 0],
            format!("a fast fail with {name} ({code}) at {irql}, in {place}"),
            &backtrace,
        );
    }
    let (status, what, address) = fault(thread, &trap);
    let message = if thread.explain(&backtrace).has_panicked {
        // The panic handler of a debug build starts with a breakpoint.
        format!("the driver panicked at {irql}, in {place}; its panic handler stopped at a {what}")
    } else {
        format!("{what} at {irql}, in {place}")
    };
    let is_page_fault = status == ACCESS_VIOLATION && !trap.is_protection_fault();
    if is_page_fault && irql >= Irql::DISPATCH_LEVEL {
        let operation = u64::from(trap.error & 2 != 0);
        let parameters = [trap.address, u64::from(irql.number()), operation, at];
        thread.bugcheck(IRQL_NOT_LESS_OR_EQUAL, parameters, message, &backtrace);
    }
    thread.bugcheck(
        EXCEPTION_NOT_HANDLED,
        [status, at, trap.error & 2, address],
        message,
        &backtrace,
    )
}

/// Returns the status of a fault's exception, the fault's description, and the exception's address.
fn fault(thread: &Thread, trap: &Trap) -> (u64, String, u64) {
    if let Some(number) = trap.refused {
        let name = system_calls::name(number);
        let what = format!("the Linux system call {name}, which the confinement refused,");
        return (ILLEGAL_INSTRUCTION, what, trap.address);
    }
    let is_protection = trap.is_protection_fault();
    let (status, what) = match trap.signal {
        _ if trap.is_32_bit => (
            ILLEGAL_INSTRUCTION,
            "an instruction that left 64-bit mode, such as `sysenter`,".to_owned(),
        ),
        libc::SIGSYS => (
            ILLEGAL_INSTRUCTION,
            format!(
                "the instruction `{}`, which makes a system call and which only user-mode code may \
                 execute,",
                system_call(trap)
            ),
        ),
        libc::SIGILL => {
            let instruction = protection::instruction_at(trap.registers.rip);
            let name = instruction.map_or_else(String::new, |text| format!(" `{text}`"));
            (ILLEGAL_INSTRUCTION, format!("illegal instruction{name}"))
        }
        libc::SIGFPE => arithmetic(trap),
        libc::SIGBUS if trap.exception == ALIGNMENT_CHECK => (
            DATATYPE_MISALIGNMENT,
            "unaligned access with the alignment check on (the driver set the flag AC)".to_owned(),
        ),
        libc::SIGTRAP if trap.exception == signals::DEBUG => {
            (SINGLE_STEP, "single step (the trap flag is set)".to_owned())
        }
        libc::SIGTRAP => (BREAKPOINT, "breakpoint".to_owned()),
        _ if is_protection => protection_fault(trap),
        _ => {
            let access = match (trap.error & 0x10 != 0, trap.error & 2 != 0) {
                (true, _) => "instruction fetch from",
                (false, true) => "write to",
                (false, false) => "read from",
            };
            let error = thread.host().address_error(trap.address);
            let is_readable = || memory::read::<u8>(trap.address).is_ok();
            let unknown = if trap.error & 0x10 != 0 && is_readable() {
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
    let code: [u8; 2] = memory::read(trap.registers.rip).unwrap_or_default();
    let mut known = system_calls::INSTRUCTIONS.iter();
    known.find(|(instruction, _)| *instruction == code).map_or("syscall", |(_, name)| name)
}

/// Returns an arithmetic exception's status and description.
fn arithmetic(trap: &Trap) -> (u64, String) {
    /// The exceptions of the x87 unit and of SSE.
    const FLOATING_POINT: [u64; 2] = [16, 19];
    if FLOATING_POINT.contains(&trap.exception) {
        let what = "floating-point exception, which the driver did not mask,";
        return (FLOAT_INVALID_OPERATION, what.to_owned());
    }
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

/// The stack on which a trapped thread reports, above an inaccessible page.
struct ReportStack(NonNull<c_void>);

impl ReportStack {
    fn new() -> Self {
        let size = NonZeroUsize::new(PAGE + REPORT_BYTES).expect("the size is not zero");
        // SAFETY: a fresh anonymous mapping aliases nothing.
        let mapping = unsafe {
            mmap_anonymous(
                None,
                size,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE,
            )
        }
        .expect("memory for a stack can be mapped");
        // SAFETY: the page belongs to this stack, and nothing uses it.
        unsafe { mprotect(mapping, PAGE, ProtFlags::PROT_NONE) }
            .expect("the page below a stack can be protected");
        Self(mapping)
    }

    /// Returns the address at the top of the stack.
    fn top(&self) -> u64 {
        (self.0.addr().get() + PAGE + REPORT_BYTES) as u64
    }
}

impl Drop for ReportStack {
    fn drop(&mut self) {
        // SAFETY: a thread that reports never ends, so no code runs on the stack.
        let unmapped = unsafe { munmap(self.0, PAGE + REPORT_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap succeeds for the stack's own mapping");
    }
}
