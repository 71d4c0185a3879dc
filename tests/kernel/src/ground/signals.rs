//! Processor faults, which reach this process as signals.
//!
//! The handler handles two kinds of faults. A fault of the copying instruction ([`copy`]) ends
//! the copy. A fault on a thread that called [`resume_at`] makes the thread continue in the
//! routine and on the stack that it named. All other faults go to the handler that was
//! installed before.

use std::{cell::Cell, sync::OnceLock};

use nix::{
    libc,
    sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal},
};

use super::copy;

/// The signals of processor faults.
const SIGNALS: [Signal; 5] = [
    Signal::SIGSEGV,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGTRAP,
];

/// The handlers that were installed before, in the order of [`SIGNALS`].
static BEFORE: OnceLock<[SigAction; SIGNALS.len()]> = OnceLock::new();

/// A fault, as the processor reports it.
#[derive(Clone, Copy)]
pub struct Trap {
    /// The signal's number.
    pub signal: libc::c_int,
    /// The address of the instruction.
    pub at: u64,
    /// The stack pointer at the instruction.
    pub stack: u64,
    /// The address that could not be accessed.
    pub address: u64,
    /// The processor's error code: bit 1 for a write, bit 4 for a fetch.
    pub error: u64,
}

/// The place where a thread continues after a fault. It never returns to the fault.
pub type Resume = extern "C" fn() -> !;

thread_local! {
    static TRAP: Cell<Option<Trap>> = const { Cell::new(None) };
    /// The top of the stack to continue on, and the routine to continue in.
    static RESUME: Cell<Option<(u64, Resume)>> = const { Cell::new(None) };
}

/// Installs the handler for the process's faults.
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

/// Makes this thread continue in `resume` after its first fault, on the stack whose top is
/// at `top`, a multiple of 16.
pub fn resume_at(top: u64, resume: Resume) {
    RESUME.set(Some((top, resume)));
    watch();
}

/// Returns the fault that this thread had.
pub fn trap() -> Option<Trap> {
    TRAP.get()
}

/// The registers of an interrupted thread.
type Registers = [libc::greg_t; 23];

/// Returns the registers of the interrupted thread.
///
/// # Safety
///
/// `context` is what the system passed to a signal handler that still runs.
unsafe fn registers<'a>(context: *mut libc::c_void) -> &'a mut Registers {
    // SAFETY: the caller says so.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    &mut context.uc_mcontext.gregs
}

/// Returns one register.
fn register(registers: &mut Registers, number: libc::c_int) -> &mut u64 {
    let register = &mut registers[number.unsigned_abs() as usize];
    // SAFETY: the two types have the same values but for the sign.
    unsafe { &mut *core::ptr::from_mut(register).cast::<u64>() }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passed it to this handler.
    let registers = unsafe { registers(context) };
    let at = register(registers, libc::REG_RIP);
    if let Some(after) = copy::after_fault(*at) {
        *at = after;
        return;
    }
    let (Some((top, resume)), None) = (RESUME.get(), TRAP.get()) else {
        leave_to_others(signal, info, context);
        return;
    };
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
    // The stack pointer is unaligned as after a call, which pushes a return address.
    *register(registers, libc::REG_RSP) = top - 8;
    *register(registers, libc::REG_RIP) = resume as usize as u64;
}

/// Handles a fault as if this module did not exist.
fn leave_to_others(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = SIGNALS
        .iter()
        .position(|known| *known as libc::c_int == signal)
        .and_then(|at| BEFORE.get()?.get(at));
    match before.map(SigAction::handler) {
        Some(SigHandler::SigAction(handler)) => handler(signal, info, context),
        Some(SigHandler::Handler(handler)) => handler(signal),
        _ => {
            // The fault occurs again, and then ends the process.
            // SAFETY: the default action is always allowed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}
