//! Faults of driver code.
//!
//! Driver code runs natively, so its access violations, illegal instructions and divisions
//! by zero reach this process as signals. A kernel's thread continues after one in
//! [`trapped`], on another stack, because the thread's own may have overflowed. There it reports
//! a bugcheck, and never runs again.

use std::cell::RefCell;

use etl_file::show::Escaped;
use nix::libc;

use super::{
    routine::low_half,
    stack,
    thread::{self, THREAD_STUCK_IN_DEVICE_DRIVER, Thread},
};
use crate::ground::{
    access::Finding,
    backtrace::Backtrace,
    fast_fail,
    irql::Irql,
    memory,
    rule::Rule,
    signals::{self, Trap},
    unwind::Registers,
};

/// The size in bytes of the stack on which a trapped thread reports.
const REPORT_BYTES: usize = 256 * 1024;

/// `KMODE_EXCEPTION_NOT_HANDLED`.
const EXCEPTION_NOT_HANDLED: u32 = 0x1E;
/// `DRIVER_IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xD1;

/// `UNEXPECTED_KERNEL_MODE_TRAP`, and its parameter for a fault that the remaining stack is too
/// small to report.
const UNEXPECTED_KERNEL_MODE_TRAP: u32 = 0x7F;
const DOUBLE_FAULT: u64 = 8;

/// `KERNEL_SECURITY_CHECK_FAILURE`.
const KERNEL_SECURITY_CHECK_FAILURE: u32 = 0x139;
/// `DPC_WATCHDOG_VIOLATION`.
const DPC_WATCHDOG_VIOLATION: u32 = 0x133;

/// The processor's exception for instructions that are not allowed.
const GENERAL_PROTECTION: u64 = 13;

/// `STATUS_*` of the exceptions.
const ACCESS_VIOLATION: u64 = 0xC000_0005;
const ILLEGAL_INSTRUCTION: u64 = 0xC000_001D;
const INTEGER_DIVIDE_BY_ZERO: u64 = 0xC000_0094;
const BREAKPOINT: u64 = 0x8000_0003;

thread_local! {
    static REPORT_STACK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Turns the faults of this thread into bugchecks from now on.
pub fn watch_this_thread(thread: &Thread) {
    REPORT_STACK.with_borrow_mut(|stack| {
        stack.resize(REPORT_BYTES, 0);
        let top = stack.as_mut_ptr_range().end.addr() as u64;
        signals::resume_at(top & !0xF, trapped, &thread.stack().addresses());
    });
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
        thread.stop_at(
            Rule::NotProvided,
            format!(
                "{} was {use_of_it}; the stand-in kernel does not provide it",
                Escaped(&name)
            ),
            &backtrace,
        );
    }
    let irql = thread.irql();
    if thread.stack().is_below(trap.address) {
        thread.bugcheck(
            UNEXPECTED_KERNEL_MODE_TRAP,
            [DOUBLE_FAULT, at, trap.registers.rsp(), trap.address],
            format!(
                "the kernel stack of {} KiB overflowed at {irql}, in {place}",
                stack::SIZE / 1024
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
    if trap.exception == GENERAL_PROTECTION && memory::read(at) == Ok(fast_fail::INSTRUCTION) {
        let code = low_half(trap.registers.get(1));
        let name = fast_fail::name(code).unwrap_or("an unknown code");
        thread.bugcheck(
            KERNEL_SECURITY_CHECK_FAILURE,
            [u64::from(code), 0, 0, 0],
            format!("a fast fail with {name} ({code}) at {irql}, in {place}"),
            &backtrace,
        );
    }
    let (status, what) = match trap.signal {
        libc::SIGILL => (ILLEGAL_INSTRUCTION, "illegal instruction".to_owned()),
        libc::SIGFPE => (INTEGER_DIVIDE_BY_ZERO, "division by zero".to_owned()),
        libc::SIGTRAP => (BREAKPOINT, "breakpoint".to_owned()),
        _ => {
            let access = match (trap.error & 0x10 != 0, trap.error & 2 != 0) {
                (true, _) => "instruction fetch from",
                (false, true) => "write to",
                (false, false) => "read from",
            };
            (
                ACCESS_VIOLATION,
                format!(
                    "{access} 0x{:016X}, which {}",
                    trap.address,
                    thread
                        .host()
                        .finding(trap.address)
                        .map_or_else(|| "cannot be accessed".to_owned(), Finding::numbered)
                ),
            )
        }
    };
    let message = format!("{what} at {irql}, in {place}");
    if status == ACCESS_VIOLATION && irql >= Irql::DISPATCH_LEVEL {
        let operation = u64::from(trap.error & 2 != 0);
        let parameters = [trap.address, u64::from(irql.number()), operation, at];
        thread.bugcheck(IRQL_NOT_LESS_OR_EQUAL, parameters, message, &backtrace);
    }
    thread.bugcheck(
        EXCEPTION_NOT_HANDLED,
        [status, at, trap.error & 2, trap.address],
        message,
        &backtrace,
    )
}

/// Returns the calls that led to a fault, and the place that the report names.
fn origin(thread: &Thread, registers: Registers) -> (Backtrace, String) {
    let images = &thread.environment().images;
    if images.contains(registers.rip) {
        let backtrace = thread.backtrace_from(registers, false);
        let place = thread.explain(&backtrace).place;
        return (backtrace, place);
    }
    // The fault is outside the driver: after a jump to a bad address, or in a routine such as
    // memcpy that was given one. The report names the first return address on the stack that is in
    // a driver.
    let caller = (0..64).find_map(|word| {
        let at = registers.rsp().wrapping_add(8 * word);
        let address = memory::read::<u64>(at).ok()?;
        images.is_after_call(address).then_some((address, at))
    });
    let at = registers.rip;
    let caller = caller.filter(|_| thread.stack().contains(registers.rsp()));
    let Some((address, stack)) = caller else {
        let place = format!("code at 0x{at:016X}, which no driver code called");
        return (thread.backtrace(), place);
    };
    let mut registers = registers;
    registers.rip = address;
    registers.set_rsp(stack.wrapping_add(8));
    let backtrace = thread.backtrace_from(registers, true);
    let place = thread.explain(&backtrace).place;
    (
        backtrace,
        format!("code at 0x{at:016X}, called from {place}"),
    )
}
