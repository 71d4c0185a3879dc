//! Faults of driver code.
//!
//! Driver code runs natively, so its access violations, illegal instructions and divisions
//! by zero reach this process as signals. A kernel's thread continues after one in
//! [`trapped`], on another stack, because the thread's own may have overflowed. There it reports
//! a bugcheck, and never runs again.

use std::cell::RefCell;

use nix::libc;

use super::{
    stack,
    thread::{self, Thread},
};
use crate::ground::{
    access::Finding,
    irql::Irql,
    memory,
    signals::{self, Trap},
};

/// The size in bytes of the stack on which a trapped thread reports.
const REPORT_BYTES: usize = 256 * 1024;

/// `KMODE_EXCEPTION_NOT_HANDLED`.
const EXCEPTION_NOT_HANDLED: u32 = 0x1E;
/// `DRIVER_IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xD1;

/// `UNEXPECTED_KERNEL_MODE_TRAP`, and its parameter for a fault that the remaining stack has no
/// room to report.
const UNEXPECTED_KERNEL_MODE_TRAP: u32 = 0x7F;
const DOUBLE_FAULT: u64 = 8;

/// `STATUS_*` of the exceptions.
const ACCESS_VIOLATION: u64 = 0xC000_0005;
const ILLEGAL_INSTRUCTION: u64 = 0xC000_001D;
const INTEGER_DIVIDE_BY_ZERO: u64 = 0xC000_0094;
const BREAKPOINT: u64 = 0x8000_0003;

thread_local! {
    static REPORT_STACK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Turns the faults of this thread into bugchecks from now on.
pub fn watch_this_thread() {
    REPORT_STACK.with_borrow_mut(|stack| {
        stack.resize(REPORT_BYTES, 0);
        let top = stack.as_mut_ptr_range().end.addr() as u64;
        signals::resume_at(top & !0xF, trapped);
    });
}

/// Continues a thread after a fault. The signal handler has returned, so the thread may call any
/// function here.
extern "C" fn trapped() -> ! {
    let thread = thread::current();
    let Some(trap) = signals::trap() else {
        unreachable!("only the handler leads here, and it sets the trap");
    };
    report(&thread, trap)
}

fn report(thread: &Thread, trap: Trap) -> ! {
    let images = &thread.environment().images;
    let place = images.instruction(trap.at).unwrap_or_else(|| {
        // A jump to nowhere, or a routine such as memcpy that was given a bad address:
        // the first return address in a driver on the stack is the driver's part.
        let caller = (0..64)
            .filter_map(|word| memory::read::<u64>(trap.stack + 8 * word).ok())
            .find(|address| images.contains(*address));
        caller.map_or_else(
            || format!("0x{:016X}, which no driver code called", trap.at),
            |caller| {
                let caller = images.place(caller);
                format!("0x{:016X}, called from {caller}", trap.at)
            },
        )
    });
    let irql = thread.irql();
    if thread.stack().is_below(trap.address) {
        thread.bugcheck(
            UNEXPECTED_KERNEL_MODE_TRAP,
            [DOUBLE_FAULT, trap.at, trap.stack, trap.address],
            format!(
                "the kernel stack of {} KiB overflowed at {irql}, at {place}",
                stack::SIZE / 1024
            ),
        );
    }
    let (status, what) = match trap.signal {
        libc::SIGILL => (ILLEGAL_INSTRUCTION, "an illegal instruction".to_owned()),
        libc::SIGFPE => (INTEGER_DIVIDE_BY_ZERO, "a division by zero".to_owned()),
        libc::SIGTRAP => (BREAKPOINT, "a breakpoint".to_owned()),
        _ => {
            let access = match (trap.error & 0x10 != 0, trap.error & 2 != 0) {
                (true, _) => "the execution",
                (false, true) => "a write",
                (false, false) => "a read",
            };
            (
                ACCESS_VIOLATION,
                format!(
                    "{access} of 0x{:016X}, which {}",
                    trap.address,
                    thread
                        .host()
                        .finding(trap.address)
                        .map_or_else(|| "cannot be accessed".to_owned(), Finding::numbered)
                ),
            )
        }
    };
    let message = format!("{what}, at {irql}, at {place}");
    if status == ACCESS_VIOLATION && irql >= Irql::DISPATCH_LEVEL {
        let operation = u64::from(trap.error & 2 != 0);
        let parameters = [trap.address, u64::from(irql.number()), operation, trap.at];
        thread.bugcheck(IRQL_NOT_LESS_OR_EQUAL, parameters, message);
    }
    thread.bugcheck(
        EXCEPTION_NOT_HANDLED,
        [status, trap.at, trap.error & 2, trap.address],
        message,
    )
}
