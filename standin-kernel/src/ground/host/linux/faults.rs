//! Processor faults, which reach this process as signals.
//!
//! The handler handles two kinds of faults. A fault of the copying instruction ([`copy`]) ends the
//! copy. After another fault, a thread that called [`resume_at`] continues in the routine and on
//! the stack that it named or, if the fault is an access by code on the driver's stack, at the
//! location that the thread's [`Divert`] returns. All other faults go to the handler that was
//! previously installed. [`Interruption`] makes a thread continue in its routine without a fault.

use std::{
    arch::asm,
    cell::Cell,
    mem::MaybeUninit,
    ops::Range,
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use nix::{
    libc,
    sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal},
};

use super::code;
use crate::ground::{
    copy, flight,
    host::fault::{ALIGNMENT_CHECK, CLEAR_FLAGS, Divert, Fault, Resume, Trap, continue_on},
    unwind::Registers as General,
};

/// The signal that [`Interruption`] sends to a thread.
const INTERRUPT: Signal = Signal::SIGVTALRM;

/// The signals of processor faults, and [`INTERRUPT`].
const SIGNALS: [Signal; 7] = [
    Signal::SIGSEGV,
    Signal::SIGSYS,
    Signal::SIGBUS,
    Signal::SIGILL,
    Signal::SIGFPE,
    Signal::SIGTRAP,
    INTERRUPT,
];

/// The selectors of 32-bit and 64-bit code.
const CODE_32: u64 = 0x23;
const CODE_64: u64 = 0x33;

/// The previously installed handlers, in the order of [`SIGNALS`].
static BEFORE: OnceLock<[SigAction; SIGNALS.len()]> = OnceLock::new();

/// The processor's exceptions. The stack fault and the general-protection fault are accesses to
/// noncanonical addresses: the first through the stack registers; the second otherwise, and for
/// instructions that are not allowed.
const DEBUG: u64 = 1;
const STACK_FAULT: u64 = 12;
const GENERAL_PROTECTION: u64 = 13;
const X87_FAULT: u64 = 16;
const ALIGNMENT_FAULT: u64 = 17;
const SSE_FAULT: u64 = 19;

/// The bits of a page fault's error code.
const WRITE: u64 = 1 << 1;
const FETCH: u64 = 1 << 4;

thread_local! {
    static TRAP: Cell<Option<Trap>> = const { Cell::new(None) };
    /// The top of the stack on which to continue, and the routine in which to continue.
    static RESUME: Cell<Option<(u64, Resume)>> = const { Cell::new(None) };
    static DIVERT: Cell<Option<Divert>> = const { Cell::new(None) };
    /// The first and last addresses of the stacks that [`Interruption`] may interrupt.
    static INTERRUPTIBLE: Cell<[(u64, u64); 2]> = const { Cell::new([(1, 0); 2]) };
    /// The count of pending signals in this thread's [`Interruption`], or null.
    static REQUESTED: Cell<*const AtomicU32> = const { Cell::new(ptr::null()) };
}

/// Interrupts the thread that created this value. An [`INTERRUPT`] signal from elsewhere, such as a
/// timer of the program, is not an interruption.
pub struct Interruption {
    thread: libc::pthread_t,
    /// The number of signals that the thread has not received yet.
    requested: Arc<AtomicU32>,
}

impl Interruption {
    /// Creates the interruption of this thread. [`Self::end`] must be called before it is dropped.
    pub fn of_this_thread() -> Self {
        let requested = Arc::new(AtomicU32::new(0));
        REQUESTED.set(Arc::as_ptr(&requested));
        // SAFETY: the function has no preconditions.
        let thread = unsafe { libc::pthread_self() };
        Self { thread, requested }
    }

    /// Returns the processor time that the thread has used. The thread must not have ended.
    pub fn processor_time(&self) -> Option<Duration> {
        let mut clock = 0;
        // SAFETY: the thread has not ended, and the result is stored in a local.
        let found = unsafe { libc::pthread_getcpuclockid(self.thread, &raw mut clock) };
        if found != 0 {
            return None;
        }
        let mut time = MaybeUninit::<libc::timespec>::zeroed();
        // SAFETY: the result is stored in a local.
        let read = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
        if read != 0 {
            return None;
        }
        // SAFETY: zeros are a valid time, and the call has set it.
        let time = unsafe { time.assume_init() };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
    }

    /// Makes the thread continue as it would after a fault, if it is running on an interruptible
    /// stack. The thread must not have ended. Returns `false` if the thread cannot be interrupted
    /// now although it may be running driver code.
    pub fn interrupt(&self) -> bool {
        self.requested.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the signal has a handler, since threads that can be interrupted install it, and
        // the caller guarantees that the thread has not ended.
        let sent = unsafe { libc::pthread_kill(self.thread, INTERRUPT as libc::c_int) };
        if sent != 0 {
            self.requested.fetch_sub(1, Ordering::AcqRel);
        }
        true
    }

    /// Ends the interruptions of this thread. The thread must have created the [`Interruption`].
    pub fn end() {
        REQUESTED.set(ptr::null());
    }
}

/// Returns whether a signal is an [`Interruption`] of this thread.
fn is_interruption(signal: libc::c_int, info: *const libc::siginfo_t) -> bool {
    // SAFETY: the system passes the signal's information.
    let code = unsafe { (*info).si_code };
    let requested = REQUESTED.get();
    if signal != INTERRUPT as libc::c_int || code != libc::SI_TKILL || requested.is_null() {
        return false;
    }
    // SAFETY: the count lives until the thread has called `Interruption::end`.
    let requested = unsafe { &*requested };
    let mut count = requested.load(Ordering::Acquire);
    while let Some(fewer) = count.checked_sub(1) {
        let exchanged =
            requested.compare_exchange_weak(count, fewer, Ordering::AcqRel, Ordering::Acquire);
        match exchanged {
            Ok(_) => return true,
            Err(now) => count = now,
        }
    }
    false
}

/// Installs the handler for the processor faults of this process.
pub fn watch() {
    BEFORE.get_or_init(|| {
        SIGNALS.map(|signal| {
            let action = SigAction::new(
                SigHandler::SigAction(handle),
                SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK | SaFlags::SA_RESTART,
                SigSet::empty(),
            );
            // SAFETY: the handler touches its arguments and thread-locals without
            // destructors only.
            unsafe { signal::sigaction(signal, &action) }
                .expect("a handler can be installed for a fault")
        })
    });
}

/// Makes this thread continue in `resume` after its first fault, on the stack with the addresses
/// `stack`, whose end is a multiple of 16. While the thread runs on one of the stacks
/// `interruptible`, [`Interruption`] also makes it continue in `resume`, and after a fault, it
/// continues at the location that `divert` returns.
pub fn resume_at(
    stack: &Range<u64>,
    resume: Resume,
    interruptible: &[Range<u64>; 2],
    divert: Divert,
) {
    DIVERT.set(Some(divert));
    let bounds = |range: &Range<u64>| (range.start, range.end.saturating_sub(1));
    INTERRUPTIBLE.set(interruptible.each_ref().map(bounds));
    RESUME.set(Some((stack.end, resume)));
    watch();
}

/// Makes this thread continue as it does after a fault that cannot be served.
pub fn resume(trap: Trap) -> ! {
    TRAP.set(Some(trap));
    let Some((top, resume)) = RESUME.get() else {
        unreachable!("only a thread that called `resume_at` has accesses served");
    };
    // SAFETY: the stack belongs to the thread and nothing runs on it.
    unsafe { continue_on(top, resume) }
}

/// Returns the fault of this thread, if there was one.
pub fn trap() -> Option<Trap> {
    TRAP.get()
}

/// The registers of an interrupted thread.
type Registers = [libc::greg_t; 23];

/// Returns the registers of the interrupted thread.
///
/// # Safety
///
/// `context` must be the pointer that the system passed to a signal handler that is still running.
unsafe fn registers<'a>(context: *mut libc::c_void) -> &'a mut Registers {
    // SAFETY: the caller guarantees that the context is valid.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    &mut context.uc_mcontext.gregs
}

/// Returns the address of the interrupted instruction, and the general registers.
fn general(registers: &mut Registers) -> General {
    const ORDER: [libc::c_int; 16] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    General {
        rip: *register(registers, libc::REG_RIP),
        general: ORDER.map(|number| *register(registers, number)),
    }
}

fn register(registers: &mut Registers, number: libc::c_int) -> &mut u64 {
    let register = &mut registers[number.unsigned_abs() as usize];
    // SAFETY: the two types differ only in their sign.
    unsafe { &mut *core::ptr::from_mut(register).cast::<u64>() }
}

/// Clears the alignment check flag, because the system leaves the driver's value in it.
fn allow_unaligned() {
    // SAFETY: only a driver's code sets the flag.
    unsafe {
        asm!(
            "pushfq",
            "and dword ptr [rsp], {mask}",
            "popfq",
            mask = const !ALIGNMENT_CHECK,
        );
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    allow_unaligned();
    // SAFETY: the system passed it to this handler.
    let registers = unsafe { registers(context) };
    let is_interrupt = is_interruption(signal, info);
    let rsp = *register(registers, libc::REG_RSP);
    let mut stacks = INTERRUPTIBLE.get().into_iter();
    let is_on_driver_stack = stacks.any(|(first, last)| (first..=last).contains(&rsp));
    if is_interrupt && !is_on_driver_stack {
        return;
    }
    // SAFETY: the system passes the signal's information.
    let info = unsafe { &mut *info };
    let is_foreign_call =
        signal == Signal::SIGSYS as libc::c_int && !code::is_reported(info.si_code);
    if (signal == INTERRUPT as libc::c_int && !is_interrupt) || is_foreign_call {
        leave_to_others(signal, info, context);
        return;
    }
    let is_refused = signal == Signal::SIGSYS as libc::c_int && info.si_code == code::REFUSED;
    if is_refused && (!is_on_driver_stack || TRAP.get().is_some()) {
        // If the driver has left its stack, the caller is unknown. It may be a library that can do
        // without the call.
        let result = register(registers, libc::REG_RAX);
        flight::note_refused(*result);
        *result = (-i64::from(libc::EPERM)).cast_unsigned();
        return;
    }
    let at = register(registers, libc::REG_RIP);
    // An interruption at the copying instruction is not a fault of that copy.
    if let (false, Some(after)) = (is_interrupt, copy::after_fault(*at)) {
        *at = after;
        return;
    }
    let (Some((top, resume)), None) = (RESUME.get(), TRAP.get()) else {
        flight::note_fault(*register(registers, libc::REG_RIP));
        leave_to_others(signal, info, context);
        return;
    };
    let trap = trap_of(signal, is_interrupt, info, registers);
    // The calling convention requires these flags to be clear, but the driver may have set them.
    *register(registers, libc::REG_EFL) &= !u64::from(CLEAR_FLAGS);
    let is_served = trap.fault.is_served() && is_on_driver_stack;
    if let Some(divert) = DIVERT.get().filter(|_| is_served) {
        let to = divert(&trap);
        *register(registers, libc::REG_RDI) = to.argument;
        *register(registers, libc::REG_RSP) = to.stack;
        *register(registers, libc::REG_RIP) = to.instruction;
        return;
    }
    TRAP.set(Some(trap));
    if is_32_bit(registers) {
        // In 32-bit mode, the thread would continue with the low halves of both addresses.
        let selectors = register(registers, libc::REG_CSGSFS);
        *selectors = *selectors & !0xFFFF | CODE_64;
    }
    // The stack pointer is unaligned, as it is after a call pushes the return address.
    *register(registers, libc::REG_RSP) = top - 8;
    *register(registers, libc::REG_RIP) = resume as usize as u64;
}

/// Returns the fault that a signal reports.
fn trap_of(
    signal: libc::c_int,
    is_interrupt: bool,
    info: &libc::siginfo_t,
    registers: &mut Registers,
) -> Trap {
    let mut general = general(registers);
    let fault = if is_interrupt { Fault::Interruption } else { fault_of(signal, info, registers) };
    let mut address = 0;
    match fault {
        Fault::Interruption => {}
        // RIP points past the system call instruction. All such instructions are two bytes long.
        Fault::SystemCall | Fault::RefusedCall(_) => general.rip = general.rip.wrapping_sub(2),
        // SAFETY: the information is about a fault, so it has an address.
        _ => address = unsafe { info.si_addr() }.addr() as u64,
    }
    if fault == Fault::Breakpoint {
        // RIP points past the breakpoint instruction, which is one byte long as compilers emit it.
        general.rip = general.rip.wrapping_sub(1);
    }
    Trap { fault, registers: general, address, flags: *register(registers, libc::REG_EFL) }
}

fn is_32_bit(registers: &mut Registers) -> bool {
    *register(registers, libc::REG_CSGSFS) & 0xFFFF == CODE_32
}

/// Returns the kind of the fault that a signal reports.
fn fault_of(signal: libc::c_int, info: &libc::siginfo_t, registers: &mut Registers) -> Fault {
    let exception = *register(registers, libc::REG_TRAPNO);
    let error = *register(registers, libc::REG_ERR);
    match signal {
        libc::SIGSYS if info.si_code == code::REFUSED => {
            Fault::RefusedCall(*register(registers, libc::REG_RAX))
        }
        _ if is_32_bit(registers) => Fault::Not64Bit,
        libc::SIGSYS => Fault::SystemCall,
        libc::SIGILL => Fault::Illegal,
        libc::SIGFPE if matches!(exception, X87_FAULT | SSE_FAULT) => Fault::FloatingPoint,
        libc::SIGFPE => Fault::Arithmetic,
        libc::SIGTRAP if exception == DEBUG => Fault::SingleStep,
        libc::SIGTRAP => Fault::Breakpoint,
        libc::SIGBUS if exception == ALIGNMENT_FAULT => Fault::Alignment,
        _ if matches!(exception, STACK_FAULT | GENERAL_PROTECTION) => Fault::Protection,
        _ if error & FETCH != 0 => Fault::Fetch,
        _ if error & WRITE != 0 => Fault::Write,
        _ => Fault::Read,
    }
}

/// Passes a fault to the handler that was previously installed.
fn leave_to_others(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = SIGNALS
        .iter()
        .position(|known| *known as libc::c_int == signal)
        .and_then(|at| BEFORE.get()?.get(at));
    match before.map(SigAction::handler) {
        Some(SigHandler::SigAction(handler)) => handler(signal, info, context),
        Some(SigHandler::Handler(handler)) => handler(signal),
        _ => {
            // The fault occurs again and ends the process. SAFETY: the default action is always allowed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the information for a signal with this code.
    fn information(code: libc::c_int) -> libc::siginfo_t {
        // SAFETY: zeros are valid.
        let mut info = unsafe { MaybeUninit::<libc::siginfo_t>::zeroed().assume_init() };
        info.si_code = code;
        info
    }

    const SIGNAL: libc::c_int = INTERRUPT as libc::c_int;

    #[test]
    fn a_signal_from_elsewhere_is_no_interruption() {
        let [own, of_timer] = [libc::SI_TKILL, libc::SI_KERNEL].map(information);
        assert!(!is_interruption(SIGNAL, &raw const own));
        let interruption = Interruption::of_this_thread();
        assert!(!is_interruption(SIGNAL, &raw const own));
        interruption.requested.store(1, Ordering::Release);
        assert!(!is_interruption(SIGNAL, &raw const of_timer));
        assert!(!is_interruption(libc::SIGSEGV, &raw const own));
        assert!(is_interruption(SIGNAL, &raw const own));
        // Each interruption request covers one signal.
        assert!(!is_interruption(SIGNAL, &raw const own));
        Interruption::end();
    }

    #[test]
    fn an_interruption_does_not_fail_a_copy() {
        let copying = copy::copying_instruction();
        let mut context = MaybeUninit::<libc::ucontext_t>::zeroed();
        let context = context.as_mut_ptr().cast();
        let interruption = Interruption::of_this_thread();
        interruption.requested.store(1, Ordering::Release);
        let after = |signal: libc::c_int, code: libc::c_int| {
            let mut info = information(code);
            // SAFETY: zeros are a valid context.
            let before = unsafe { registers(context) };
            *register(before, libc::REG_RIP) = copying;
            handle(signal, &raw mut info, context);
            // SAFETY: as above.
            *register(unsafe { registers(context) }, libc::REG_RIP)
        };
        assert_eq!(after(SIGNAL, libc::SI_TKILL), copying);
        // A fault at the instruction fails the copy.
        assert_eq!(Some(after(libc::SIGSEGV, libc::SI_KERNEL)), copy::after_fault(copying));
        Interruption::end();
    }
}
