//! Faults of the processor: what a driver's code does that the processor refuses.
//!
//! Driver code runs natively, so its access violations, illegal instructions and divisions
//! by zero reach this process as signals. The handler turns one into a bugcheck: it makes
//! the thread go on in [`trapped`], on a stack of its own, since the thread's may be what is
//! used up. There the machine stops, and the thread never runs again.
//!
//! A fault on a thread that is not the machine's is left to whoever handled such faults
//! before.

use std::{
    cell::{Cell, RefCell},
    sync::OnceLock,
};

use nix::{
    libc,
    sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal},
};

use crate::{
    irql::Irql,
    memory, stack,
    thread::{self, Thread},
};

/// Bytes of the stack that a trapped thread reports on.
const REPORT_BYTES: usize = 256 * 1024;

/// The signals that faults of the processor come as.
const SIGNALS: [Signal; 5] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGTRAP,
];

/// Who handled the signals before, in the order of [`SIGNALS`].
static BEFORE: OnceLock<[SigAction; SIGNALS.len()]> = OnceLock::new();

/// `KMODE_EXCEPTION_NOT_HANDLED`.
const EXCEPTION_NOT_HANDLED: u32 = 0x1E;
/// `DRIVER_IRQL_NOT_LESS_OR_EQUAL`.
const IRQL_NOT_LESS_OR_EQUAL: u32 = 0xD1;

/// `UNEXPECTED_KERNEL_MODE_TRAP`, and its parameter for a fault that cannot be told on the
/// stack that is left.
const UNEXPECTED_KERNEL_MODE_TRAP: u32 = 0x7F;
const DOUBLE_FAULT: u64 = 8;

/// `STATUS_*` of the exceptions.
const ACCESS_VIOLATION: u64 = 0xC000_0005;
const ILLEGAL_INSTRUCTION: u64 = 0xC000_001D;
const INTEGER_DIVIDE_BY_ZERO: u64 = 0xC000_0094;
const BREAKPOINT: u64 = 0x8000_0003;

/// A fault, as the processor tells it.
#[derive(Clone, Copy)]
struct Trap {
    signal: libc::c_int,
    /// The instruction.
    at: u64,
    /// The stack pointer there.
    stack: u64,
    /// What could not be accessed.
    address: u64,
    /// The processor's error code: bit 1 for a write, bit 4 for a fetch.
    error: u64,
}

thread_local! {
    static TRAP: Cell<Option<Trap>> = const { Cell::new(None) };
    static REPORT_STACK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The top of the stack that the thread reports on; 0 for a thread that is not the
    /// machine's.
    static REPORT_ON: Cell<u64> = const { Cell::new(0) };
}

/// Makes faults of this thread bugchecks from now on.
pub fn watch_this_thread() {
    REPORT_STACK.with_borrow_mut(|stack| {
        stack.resize(REPORT_BYTES, 0);
        let top = stack.as_mut_ptr_range().end.addr() as u64;
        REPORT_ON.set(top & !0xF);
    });
    watch();
}

/// Handles faults of the process from now on. Those of a thread that is not the machine's
/// are handled only where [`memory`] expects them.
pub fn watch() {
    BEFORE.get_or_init(|| {
        SIGNALS.map(|signal| {
            let action = SigAction::new(
                SigHandler::SigAction(handle),
                SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK,
                SigSet::empty(),
            );
            // SAFETY: the handler touches its arguments and thread-locals without
            // destructors only.
            unsafe { signal::sigaction(signal, &action) }
                .expect("a handler can be installed for a fault")
        })
    });
}

/// The registers of an interrupted thread.
type Registers = [libc::greg_t; 23];

/// The registers of the interrupted thread.
///
/// # Safety
///
/// `context` is what the system passed to a signal handler that still runs.
unsafe fn registers<'a>(context: *mut libc::c_void) -> &'a mut Registers {
    // SAFETY: the caller says so.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    &mut context.uc_mcontext.gregs
}

/// One of them.
fn register(registers: &mut Registers, number: libc::c_int) -> &mut u64 {
    let register = &mut registers[number.unsigned_abs() as usize];
    // SAFETY: the two types have the same values but for the sign.
    unsafe { &mut *core::ptr::from_mut(register).cast::<u64>() }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passed it to this handler.
    let registers = unsafe { registers(context) };
    let at = register(registers, libc::REG_RIP);
    if let Some(after) = memory::after_fault(*at) {
        *at = after;
        return;
    }
    let top = REPORT_ON.get();
    if top == 0 || TRAP.get().is_some() {
        leave_to_others(signal, info, context);
        return;
    }
    // SAFETY: the system passes the information that goes with the signal.
    let info = unsafe { &*info };
    // SAFETY: it is a fault's, so it has an address.
    let address = unsafe { info.si_addr() };
    TRAP.set(Some(Trap {
        signal,
        at: *register(registers, libc::REG_RIP),
        stack: *register(registers, libc::REG_RSP),
        address: address.addr() as u64,
        error: *register(registers, libc::REG_ERR),
    }));
    // As after a call: the return address's place is not aligned.
    *register(registers, libc::REG_RSP) = top - 8;
    *register(registers, libc::REG_RIP) = (trapped as extern "C" fn() -> !) as usize as u64;
}

/// Does what would have been done without this module.
fn leave_to_others(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = SIGNALS
        .iter()
        .position(|known| *known as libc::c_int == signal)
        .and_then(|at| BEFORE.get()?.get(at));
    match before.map(SigAction::handler) {
        Some(SigHandler::SigAction(handler)) => handler(signal, info, context),
        Some(SigHandler::Handler(handler)) => handler(signal),
        _ => {
            // The fault comes again, and then ends the process.
            // SAFETY: the default action is always allowed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Where a thread goes on after a fault. The handler has returned, so everything that the
/// thread may do otherwise it may do here.
extern "C" fn trapped() -> ! {
    let thread = thread::current();
    let Some(trap) = TRAP.get() else {
        unreachable!("only the handler leads here, and it sets the trap");
    };
    report(&thread, trap)
}

fn report(thread: &Thread, trap: Trap) -> ! {
    let shared = thread.shared();
    let place = shared.instruction(trap.at).unwrap_or_else(|| {
        // A jump to nowhere, or a routine such as memcpy that was given a bad address:
        // the driver's part is what the stack leads back to.
        let caller = (0..64)
            .filter_map(|word| memory::read::<u64>(trap.stack + 8 * word).ok())
            .find(|address| shared.is_driver_code(*address));
        caller.map_or_else(
            || format!("0x{:016X}, which no driver called", trap.at),
            |caller| {
                let caller = shared.place(caller);
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
                "the {} KiB of the kernel stack are used up, at {irql}, at {place}",
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
                    shared
                        .about(trap.address)
                        .unwrap_or_else(|| "cannot be accessed".to_owned())
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
