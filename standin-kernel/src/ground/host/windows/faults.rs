//! Processor faults, which reach this process as exceptions.
//!
//! Windows stores the context of a faulting thread on the stack that the thread uses, and calls the
//! vectored handler there; the block below a driver's stack has room for that. The handler handles
//! two kinds of faults. A fault of the copying instruction ([`copy`]) ends the copy. After another
//! fault, a thread that called [`resume_at`] continues in the routine and on the stack that it named
//! or, if the fault is an access by code on the driver's stack, at the location that the thread's
//! [`Divert`] returns. All other faults go to the other handlers of the process. [`Interruption`]
//! makes a thread continue in its routine without a fault.

use std::{
    arch::asm,
    io,
    mem::MaybeUninit,
    ops::Range,
    os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
    ptr,
    sync::{Arc, Once},
    time::Duration,
};

use parking_lot::Mutex;
use windows_sys::Win32::{
    Foundation::{
        DUPLICATE_SAME_ACCESS, DuplicateHandle, EXCEPTION_ACCESS_VIOLATION, EXCEPTION_BREAKPOINT,
        EXCEPTION_DATATYPE_MISALIGNMENT, EXCEPTION_FLT_DENORMAL_OPERAND,
        EXCEPTION_FLT_DIVIDE_BY_ZERO, EXCEPTION_FLT_INEXACT_RESULT,
        EXCEPTION_FLT_INVALID_OPERATION, EXCEPTION_FLT_OVERFLOW, EXCEPTION_FLT_STACK_CHECK,
        EXCEPTION_FLT_UNDERFLOW, EXCEPTION_GUARD_PAGE, EXCEPTION_ILLEGAL_INSTRUCTION,
        EXCEPTION_IN_PAGE_ERROR, EXCEPTION_INT_DIVIDE_BY_ZERO, EXCEPTION_INT_OVERFLOW,
        EXCEPTION_PRIV_INSTRUCTION, EXCEPTION_SINGLE_STEP, EXCEPTION_STACK_OVERFLOW, FILETIME,
        STATUS_ASSERTION_FAILURE, STATUS_FLOAT_MULTIPLE_FAULTS, STATUS_FLOAT_MULTIPLE_TRAPS,
    },
    System::{
        Diagnostics::Debug::{
            AddVectoredExceptionHandler, CONTEXT, CONTEXT_CONTROL_AMD64, CONTEXT_INTEGER_AMD64,
            EXCEPTION_CONTINUE_EXECUTION, EXCEPTION_CONTINUE_SEARCH, EXCEPTION_POINTERS,
            EXCEPTION_RECORD, GetThreadContext, SetThreadContext,
        },
        Threading::{
            GetCurrentProcess, GetCurrentThread, GetThreadTimes, ResumeThread, SuspendThread,
        },
    },
};

use super::code;
use crate::ground::{
    copy, flight,
    host::fault::{ALIGNMENT_CHECK, CLEAR_FLAGS, Divert, Fault, Resume, Trap, continue_on},
    memory_routines,
    unwind::Registers,
};

/// A thread's part in the handling of faults.
#[derive(Default)]
struct State {
    trap: Option<Trap>,
    /// The stack on which to continue, and the routine in which to continue.
    resume: Option<(Range<u64>, Resume)>,
    divert: Option<Divert>,
    /// The first and last addresses of the stacks of driver code.
    driver_stacks: [(u64, u64); 2],
}

thread_local! {
    /// This thread's state. Only the thread itself and, while the thread is suspended, the watchdog
    /// use it, so the handler never waits for the lock.
    static STATE: Arc<Mutex<State>> = Arc::default();
}

impl State {
    fn is_on_driver_stack(&self, stack: u64) -> bool {
        self.driver_stacks.iter().any(|(first, last)| (*first..=*last).contains(&stack))
    }

    /// Makes a thread continue in its routine. Returns `false` if it has none, or is there already.
    fn resume(&mut self, trap: Trap, context: &mut CONTEXT) -> bool {
        let (Some((stack, resume)), None) = (&self.resume, self.trap) else {
            return false;
        };
        // The calling convention requires these flags to be clear, but the driver may have set them.
        context.EFlags &= !CLEAR_FLAGS;
        // The stack pointer is unaligned, as it is after a call pushes the return address.
        context.Rsp = stack.end - 8;
        context.Rip = *resume as usize as u64;
        self.trap = Some(trap);
        true
    }
}

/// Interrupts the thread that created this value.
pub struct Interruption {
    thread: OwnedHandle,
    state: Arc<Mutex<State>>,
}

impl Interruption {
    /// Creates the interruption of this thread. [`Self::end`] must be called before it is dropped.
    pub fn of_this_thread() -> Self {
        let mut handle = ptr::null_mut();
        // SAFETY: the function has no preconditions.
        let process = unsafe { GetCurrentProcess() };
        // SAFETY: as above.
        let thread = unsafe { GetCurrentThread() };
        let (access, options) = (0, DUPLICATE_SAME_ACCESS);
        // SAFETY: the handle is stored in a local.
        let duplicated = unsafe {
            DuplicateHandle(process, thread, process, &raw mut handle, access, 0, options)
        };
        assert!(duplicated != 0, "a thread's own handle: {}", io::Error::last_os_error());
        // SAFETY: the call returned the handle, which nothing else owns.
        let thread = unsafe { OwnedHandle::from_raw_handle(handle) };
        Self { thread, state: STATE.with(Arc::clone) }
    }

    /// Returns the processor time that the thread has used.
    pub fn processor_time(&self) -> Option<Duration> {
        const ZERO: FILETIME = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
        let [mut created, mut ended, mut kernel, mut user] = [ZERO; 4];
        let thread = self.thread.as_raw_handle();
        // SAFETY: the handle is open, and the results are stored in locals.
        let read = unsafe {
            GetThreadTimes(thread, &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user)
        };
        let ticks =
            |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        (read != 0).then(|| Duration::from_nanos((ticks(kernel) + ticks(user)).saturating_mul(100)))
    }

    /// Makes the thread continue as it would after a fault, if it is running on an interruptible
    /// stack. The thread must not have ended. Returns `false` if the thread cannot be interrupted
    /// now although it may be running driver code.
    pub fn interrupt(&self) -> bool {
        let thread = self.thread.as_raw_handle();
        // SAFETY: the handle is open.
        if unsafe { SuspendThread(thread) } == u32::MAX {
            return false;
        }
        let is_done = self.redirect();
        // SAFETY: as above, and the call above suspended the thread.
        unsafe { ResumeThread(thread) };
        is_done
    }

    /// Redirects the thread, which is suspended.
    fn redirect(&self) -> bool {
        // The thread may have been suspended while it held the lock.
        let Some(mut state) = self.state.try_lock() else {
            return false;
        };
        let thread = self.thread.as_raw_handle();
        // SAFETY: zeros are a valid context.
        let mut context = unsafe { MaybeUninit::<CONTEXT>::zeroed().assume_init() };
        context.ContextFlags = CONTEXT_CONTROL_AMD64 | CONTEXT_INTEGER_AMD64;
        // SAFETY: the handle is open, and the context is a local, which its type aligns.
        if unsafe { GetThreadContext(thread, &raw mut context) } == 0 {
            return false;
        }
        if !state.is_on_driver_stack(context.Rsp) {
            return true;
        }
        // On this stack, Windows also dispatches faults, and must not be interrupted there.
        if !code::IMAGES.contains(&context.Rip)
            && memory_routines::routine_at(context.Rip).is_none()
        {
            return false;
        }
        let trap = Trap {
            fault: Fault::Interruption,
            registers: registers(&context),
            address: 0,
            flags: u64::from(context.EFlags),
        };
        if state.resume(trap, &mut context) {
            // SAFETY: the handle is open, and the thread continues in a routine that never returns.
            unsafe { SetThreadContext(thread, &raw const context) };
        }
        true
    }

    /// Ends the interruptions of this thread. The thread must have created the [`Interruption`].
    pub const fn end() {}
}

/// Installs the handler for the processor faults of this process.
pub fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler has the declared type, and lives as long as the process.
        let installed = unsafe { AddVectoredExceptionHandler(1, Some(handle)) };
        assert!(!installed.is_null(), "a handler can be installed for faults");
    });
}

/// Makes this thread continue in `resume` after its first fault, on the stack with the addresses
/// `stack`, whose end is a multiple of 16. While the thread runs on one of the stacks
/// `interruptible`, [`Interruption`] also makes it continue in `resume`, and after a fault,
/// it continues at the location that `divert` returns.
pub fn resume_at(
    stack: &Range<u64>,
    resume: Resume,
    interruptible: &[Range<u64>; 2],
    divert: Divert,
) {
    let bounds = |range: &Range<u64>| (range.start, range.end.saturating_sub(1));
    STATE.with(|state| {
        let mut state = state.lock();
        state.divert = Some(divert);
        state.driver_stacks = interruptible.each_ref().map(bounds);
        state.resume = Some((stack.clone(), resume));
    });
    watch();
}

/// Makes this thread continue as it does after a fault that cannot be served.
pub fn resume(trap: Trap) -> ! {
    let resume = STATE.with(|state| {
        let mut state = state.lock();
        state.trap = Some(trap);
        state.resume.clone()
    });
    let Some((stack, resume)) = resume else {
        unreachable!("only a thread that called `resume_at` has accesses served");
    };
    // SAFETY: the stack belongs to the thread and nothing runs on it.
    unsafe { continue_on(stack.end, resume) }
}

/// Returns the fault of this thread, if there was one. Called first by the routine in which the
/// thread continues: names the routine's stack in the thread's block, as a fiber does.
pub fn trap() -> Option<Trap> {
    let (trap, stack) = STATE.with(|state| {
        let state = state.lock();
        (state.trap, state.resume.as_ref().map(|(stack, _)| stack.clone()))
    });
    if let (Some(_), Some(stack)) = (trap, stack) {
        // SAFETY: the fields StackBase, StackLimit and DeallocationStack of this thread's block
        // describe the stack that the thread uses from now on.
        unsafe {
            asm!(
                "mov gs:[0x08], {end}",
                "mov gs:[0x10], {start}",
                "mov gs:[0x1478], {start}",
                end = in(reg) stack.end,
                start = in(reg) stack.start,
                options(nostack, preserves_flags),
            );
        }
    }
    trap
}

const fn registers(context: &CONTEXT) -> Registers {
    Registers {
        rip: context.Rip,
        general: [
            context.Rax, context.Rcx, context.Rdx, context.Rbx, context.Rsp, context.Rbp,
            context.Rsi, context.Rdi, context.R8, context.R9, context.R10, context.R11,
            context.R12, context.R13, context.R14, context.R15,
        ],
    }
}

/// Clears the alignment check flag, because the system may leave the driver's value in it.
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

/// Returns the kind of fault that an exception reports, and the address that could not be accessed.
fn fault_of(record: &EXCEPTION_RECORD) -> Option<(Fault, u64)> {
    let [kind, address, ..] = record.ExceptionInformation.map(|word| word as u64);
    let at = record.ExceptionAddress.addr() as u64;
    Some(match record.ExceptionCode {
        // Windows reports a general-protection fault as a read of the highest address.
        EXCEPTION_ACCESS_VIOLATION if kind == 0 && address == u64::MAX => (Fault::Protection, 0),
        EXCEPTION_ACCESS_VIOLATION | EXCEPTION_IN_PAGE_ERROR | EXCEPTION_GUARD_PAGE => {
            let fault = match kind {
                0 => Fault::Read,
                1 => Fault::Write,
                _ => Fault::Fetch,
            };
            (fault, address)
        }
        EXCEPTION_PRIV_INSTRUCTION | EXCEPTION_STACK_OVERFLOW | STATUS_ASSERTION_FAILURE => {
            (Fault::Protection, 0)
        }
        EXCEPTION_ILLEGAL_INSTRUCTION => (Fault::Illegal, at),
        EXCEPTION_INT_DIVIDE_BY_ZERO | EXCEPTION_INT_OVERFLOW => (Fault::Arithmetic, at),
        EXCEPTION_DATATYPE_MISALIGNMENT => (Fault::Alignment, 0),
        EXCEPTION_SINGLE_STEP => (Fault::SingleStep, at),
        EXCEPTION_BREAKPOINT => (code::fault_at(at).unwrap_or(Fault::Breakpoint), 0),
        EXCEPTION_FLT_DENORMAL_OPERAND
        | EXCEPTION_FLT_DIVIDE_BY_ZERO
        | EXCEPTION_FLT_INEXACT_RESULT
        | EXCEPTION_FLT_INVALID_OPERATION
        | EXCEPTION_FLT_OVERFLOW
        | EXCEPTION_FLT_STACK_CHECK
        | EXCEPTION_FLT_UNDERFLOW
        | STATUS_FLOAT_MULTIPLE_FAULTS
        | STATUS_FLOAT_MULTIPLE_TRAPS => (Fault::FloatingPoint, at),
        _ => return None,
    })
}

unsafe extern "system" fn handle(pointers: *mut EXCEPTION_POINTERS) -> i32 {
    allow_unaligned();
    // SAFETY: the system passes the exception's record and context.
    let pointers = unsafe { &*pointers };
    // SAFETY: as above.
    let record = unsafe { &*pointers.ExceptionRecord };
    // SAFETY: as above.
    let context = unsafe { &mut *pointers.ContextRecord };
    let Some((fault, address)) = fault_of(record) else {
        return EXCEPTION_CONTINUE_SEARCH;
    };
    if let Some(after) = copy::after_fault(context.Rip) {
        context.Rip = after;
        return EXCEPTION_CONTINUE_EXECUTION;
    }
    let is_handled =
        STATE.try_with(|state| serve(&mut state.lock(), fault, address, record, context));
    if is_handled == Ok(true) {
        return EXCEPTION_CONTINUE_EXECUTION;
    }
    flight::note_fault(record.ExceptionAddress.addr() as u64);
    EXCEPTION_CONTINUE_SEARCH
}

/// Makes the thread continue elsewhere after a fault. Returns `false` if it cannot.
fn serve(
    state: &mut State,
    fault: Fault,
    address: u64,
    record: &EXCEPTION_RECORD,
    context: &mut CONTEXT,
) -> bool {
    if state.resume.is_none() || state.trap.is_some() {
        return false;
    }
    let mut registers = registers(context);
    if record.ExceptionCode == EXCEPTION_BREAKPOINT {
        // RIP may point past the breakpoint instruction.
        registers.rip = record.ExceptionAddress.addr() as u64;
    }
    let trap = Trap { fault, registers, address, flags: u64::from(context.EFlags) };
    let is_served = fault.is_served() && state.is_on_driver_stack(context.Rsp);
    let Some(divert) = state.divert.filter(|_| is_served) else {
        return state.resume(trap, context);
    };
    let to = divert(&trap);
    context.EFlags &= !CLEAR_FLAGS;
    context.Rdi = to.argument;
    context.Rsp = to.stack;
    context.Rip = to.instruction;
    true
}
