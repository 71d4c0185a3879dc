//! Faults of driver code.
//!
//! Driver code runs natively, so its access violations, illegal instructions and divisions by zero
//! reach this process as faults. After such a fault, a kernel's thread continues in [`trapped`], on
//! another stack because its own stack may have overflowed. There it reports a bugcheck, and never
//! runs again.

use std::{cell::RefCell, ops::Range};

use etl_file::internals::show::Escaped;

use super::{
    fault::{ACCESS_VIOLATION, fault},
    intercept,
    origin::origin,
    protection,
    routine::low_half,
    thread::{self, THREAD_STUCK_IN_DEVICE_DRIVER, Thread},
};
use crate::ground::{
    arena::PAGE,
    fast_fail,
    host::{
        self, Mapping,
        fault::{Fault, Trap},
        protection::Protection,
    },
    irql::Irql,
    processor_block,
    rule::Rule,
    unprovided,
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

thread_local! {
    static REPORT_STACK: RefCell<Option<ReportStack>> = const { RefCell::new(None) };
}

/// From now on, serves the accesses of this thread to the processor's state, and turns its other
/// faults into bugchecks.
pub fn watch_this_thread(thread: &Thread) {
    REPORT_STACK.with_borrow_mut(|stack| {
        let stack = stack.get_or_insert_with(ReportStack::new).addresses();
        intercept::prepare();
        host::resume_at(&stack, trapped, &thread.stacks().addresses(), intercept::divert);
    });
    processor_block::use_on_this_thread();
    host::report_on_this_thread();
}

/// Reports a thread's fault and bugchecks. The fault handler has returned, so this function may
/// call any other.
extern "C" fn trapped() -> ! {
    let thread = thread::current();
    let Some(trap) = host::trap() else {
        unreachable!("only the fault handler resumes here, after it recorded the trap");
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
    if trap.fault == Fault::Interruption {
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
    if trap.fault == Fault::Protection
        && protection::code_at(at).starts_with(&fast_fail::INSTRUCTION)
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
    let is_page_fault = status == ACCESS_VIOLATION && trap.fault != Fault::Protection;
    if is_page_fault && irql >= Irql::DISPATCH_LEVEL {
        let operation = u64::from(trap.fault == Fault::Write);
        let parameters = [trap.address, u64::from(irql.number()), operation, at];
        thread.bugcheck(IRQL_NOT_LESS_OR_EQUAL, parameters, message, &backtrace);
    }
    thread.bugcheck(
        EXCEPTION_NOT_HANDLED,
        [status, at, 2 * u64::from(trap.fault == Fault::Write), address],
        message,
        &backtrace,
    )
}

/// The stack on which a trapped thread reports, above an inaccessible page.
struct ReportStack(Mapping);

impl ReportStack {
    fn new() -> Self {
        let mapping =
            Mapping::reserve(PAGE + REPORT_BYTES).expect("memory for a stack can be reserved");
        mapping
            .protect(PAGE, REPORT_BYTES, Protection::ReadWrite)
            .expect("memory for a stack can be mapped");
        Self(mapping)
    }

    fn addresses(&self) -> Range<u64> {
        let start = self.0.address() + PAGE as u64;
        start..start + REPORT_BYTES as u64
    }
}
