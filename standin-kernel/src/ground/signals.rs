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
    ops::Range,
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use nix::{
    libc,
    sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal},
};

use super::{copy, flight, system_calls, unwind::Registers as General};

/// The signal that [`Interruption`] sends to a thread.
pub const INTERRUPT: Signal = Signal::SIGVTALRM;

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

/// The flags that the calling convention requires to be clear. Code outside drivers cannot run
/// while one is set: single step, direction, nested task and alignment check.
pub const CLEAR_FLAGS: u32 = 1 << 8 | DIRECTION | 1 << 14 | ALIGNMENT_CHECK;
/// The direction flag.
pub const DIRECTION: u32 = 1 << 10;
const ALIGNMENT_CHECK: u32 = 1 << 18;

/// The selectors of 32-bit and 64-bit code.
const CODE_32: u64 = 0x23;
const CODE_64: u64 = 0x33;

/// The previously installed handlers, in the order of [`SIGNALS`].
static BEFORE: OnceLock<[SigAction; SIGNALS.len()]> = OnceLock::new();

/// A fault, as the processor reports it.
#[derive(Clone, Copy)]
pub struct Trap {
    /// The signal's number.
    pub signal: libc::c_int,
    /// The address of the instruction, and the other registers there.
    pub registers: General,
    /// The address that could not be accessed.
    pub address: u64,
    /// The processor's error code: bit 1 for a write, bit 4 for a fetch.
    pub error: u64,
    /// The number of the processor's exception.
    pub exception: u64,
    /// The processor's flags.
    pub flags: u64,
    /// Set if the processor was not in 64-bit mode.
    pub is_32_bit: bool,
    /// The number of the system call that the confinement of this process refused.
    pub refused: Option<u64>,
}

/// The exceptions for accesses to noncanonical addresses: the first for accesses through the stack
/// registers; the second for other accesses, and for instructions that are not allowed.
const STACK_FAULT: u64 = 12;
pub const GENERAL_PROTECTION: u64 = 13;
/// The exceptions for a single step and for a breakpoint.
pub const DEBUG: u64 = 1;
const BREAKPOINT: u64 = 3;

impl Trap {
    /// Returns whether the fault is a general-protection fault. Its address is unknown.
    pub const fn is_protection_fault(&self) -> bool {
        let is_fault = self.signal != INTERRUPT as libc::c_int && !self.is_system_call();
        is_fault && matches!(self.exception, STACK_FAULT | GENERAL_PROTECTION)
    }

    /// Returns whether the instruction makes a system call.
    pub const fn is_system_call(&self) -> bool {
        self.signal == Signal::SIGSYS as libc::c_int
    }
}

/// The location where a thread continues in order to serve an access by driver code.
pub struct Diversion {
    /// The instruction.
    pub instruction: u64,
    /// The stack pointer.
    pub stack: u64,
    /// The first argument.
    pub argument: u64,
}

/// Prepares a thread to serve an access. Runs in the signal handler, so it may only read and write
/// memory.
pub type Divert = fn(&Trap) -> Diversion;

/// The routine in which a thread continues after a fault. It never returns to the faulting
/// instruction.
pub type Resume = extern "C" fn() -> !;

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

    /// Returns the thread.
    pub const fn thread(&self) -> libc::pthread_t {
        self.thread
    }

    /// Makes the thread continue as it would after a fault, if it is running on an interruptible
    /// stack. The thread must not have ended.
    pub fn interrupt(&self) {
        self.requested.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the signal has a handler, since threads that can be interrupted install it, and
        // the caller guarantees that the thread has not ended.
        let sent = unsafe { libc::pthread_kill(self.thread, INTERRUPT as libc::c_int) };
        if sent != 0 {
            self.requested.fetch_sub(1, Ordering::AcqRel);
        }
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

/// Makes this thread continue in `resume` after its first fault, on the stack with the top `top`, a
/// multiple of 16. While the thread runs on one of the stacks `interruptible`, [`Interruption`]
/// also makes it continue in `resume`, and after a fault, it continues at the location that
/// `divert` returns.
pub fn resume_at(top: u64, resume: Resume, interruptible: &[Range<u64>; 2], divert: Divert) {
    DIVERT.set(Some(divert));
    let bounds = |range: &Range<u64>| (range.start, range.end.saturating_sub(1));
    INTERRUPTIBLE.set(interruptible.each_ref().map(bounds));
    RESUME.set(Some((top, resume)));
    watch();
}

/// Makes this thread continue as it does after a fault that cannot be served.
pub fn resume(trap: Trap) -> ! {
    TRAP.set(Some(trap));
    let Some((top, resume)) = RESUME.get() else {
        unreachable!("only a thread that called `resume_at` has accesses served");
    };
    // SAFETY: the stack belongs to the thread and nothing runs on it, and the routine does not return.
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
        signal == Signal::SIGSYS as libc::c_int && !system_calls::is_reported(info.si_code);
    if (signal == INTERRUPT as libc::c_int && !is_interrupt) || is_foreign_call {
        leave_to_others(signal, info, context);
        return;
    }
    let is_refused =
        signal == Signal::SIGSYS as libc::c_int && info.si_code == system_calls::REFUSED;
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
    let is_fault = !is_interrupt && !trap.is_system_call() && !trap.is_32_bit;
    if let Some(divert) = DIVERT.get().filter(|_| is_fault && is_on_driver_stack) {
        let to = divert(&trap);
        *register(registers, libc::REG_RDI) = to.argument;
        *register(registers, libc::REG_RSP) = to.stack;
        *register(registers, libc::REG_RIP) = to.instruction;
        return;
    }
    TRAP.set(Some(trap));
    if trap.is_32_bit {
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
    let exception = *register(registers, libc::REG_TRAPNO);
    let mut general = general(registers);
    let mut address = 0;
    let is_system_call = signal == Signal::SIGSYS as libc::c_int;
    let is_refused = is_system_call && info.si_code == system_calls::REFUSED;
    if is_system_call {
        // RIP points past the system call instruction. All such instructions are two bytes long.
        general.rip = general.rip.wrapping_sub(2);
    } else if !is_interrupt {
        // SAFETY: the information is about a fault, so it has an address.
        address = unsafe { info.si_addr() }.addr() as u64;
    }
    if signal == Signal::SIGTRAP as libc::c_int && exception == BREAKPOINT {
        // RIP points past the breakpoint instruction, which is one byte long as compilers emit it.
        general.rip = general.rip.wrapping_sub(1);
    }
    Trap {
        signal,
        registers: general,
        address,
        error: *register(registers, libc::REG_ERR),
        exception,
        flags: *register(registers, libc::REG_EFL),
        is_32_bit: *register(registers, libc::REG_CSGSFS) & 0xFFFF == CODE_32,
        refused: is_refused.then_some(general.general[0]),
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
    use std::mem::MaybeUninit;

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
