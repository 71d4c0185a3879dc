//! Structured exceptions: the search for a handler in driver code, and the unwinding of the stack to it.
//!
//! As on Windows, both use the unwind data of the drivers' images and call the language handlers that the
//! data name, which call `__C_specific_handler`. The search covers the driver code that the kernel called
//! last: an exception does not pass through a routine of the kernel to the driver that called it.
//! Malformed data end the search, and the exception is then unhandled.

use std::{
    cell::{Cell, RefCell},
    mem::offset_of,
};

use super::{
    context::Context,
    fault::{Exception, exception_of},
    frame::Frame,
    thread,
};
use crate::ground::{
    NtStatus,
    arena::Block,
    memory, memory_routines,
    unwind::{EXCEPTION_HANDLER, End, Handler, MAX_FRAMES, Registers, TERMINATION_HANDLER},
};

/// The flags of an exception (`EXCEPTION_NONCONTINUABLE`, `EXCEPTION_UNWINDING` and
/// `EXCEPTION_TARGET_UNWIND`).
const NONCONTINUABLE: u32 = 1;
pub const UNWINDING: u32 = 2;
pub const TARGET_UNWIND: u32 = 0x20;

/// The results of a language handler (`ExceptionContinueExecution` and `ExceptionContinueSearch`).
pub const CONTINUE_EXECUTION: i32 = 0;
pub const CONTINUE_SEARCH: i32 = 1;

/// The registers with which driver code continues after an exception.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Continuation {
    /// The general registers, in the processor's order.
    pub general: [u64; 16],
    /// The address of the instruction.
    pub rip: u64,
    /// The XMM registers to set, one bit each.
    pub changed: u64,
    /// The XMM registers.
    pub xmm: [[u64; 2]; 16],
}

const _: () = {
    assert!(offset_of!(Continuation, rip) == 128, "the gateways have the offsets");
    assert!(offset_of!(Continuation, changed) == 136, "as above");
    assert!(offset_of!(Continuation, xmm) == 144, "as above");
};

/// The block of code that handles an exception, which a language handler has chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The base of the stack frame of the function that contains the block.
    pub frame: u64,
    /// The address of the block.
    pub target: u64,
}

/// A thread's state for exceptions.
#[derive(Default)]
struct Dispatching {
    chosen: Cell<Option<Chosen>>,
    /// The last continuation, whose registers a gateway reads.
    last: RefCell<Option<Box<Continuation>>>,
}

/// Ends the search for a handler, from a language handler.
pub fn choose(context: &Context, chosen: Chosen) {
    context.local::<Dispatching>().chosen.set(Some(chosen));
}

/// The structures that describe an exception to language handlers, in memory of the kernel: `CONTEXT`,
/// `EXCEPTION_RECORD` and `DISPATCHER_CONTEXT`.
struct Records(Block);

impl Records {
    const RECORD: u64 = 0x4D0;
    const DISPATCHER: u64 = 0x570;
    const SIZE: usize = 0x5C0;
    /// The offsets in `CONTEXT`.
    const CONTEXT_FLAGS: u64 = 0x30;
    const GENERAL: u64 = 0x78;
    const RIP: u64 = 0xF8;

    fn new(exception: &Exception, registers: &Registers) -> Option<Self> {
        /// `CONTEXT_AMD64 | CONTEXT_CONTROL | CONTEXT_INTEGER`.
        const FULL: u32 = 0x0010_0003;
        let records = Self(Block::try_zeroed(Self::SIZE)?);
        let flags = if exception.is_noncontinuable { NONCONTINUABLE } else { 0 };
        let [operation, address] = exception.access.unwrap_or_default();
        let count = if exception.access.is_some() { 2 } else { 0 };
        let record = [
            u64::from(exception.status) | u64::from(flags) << 32,
            0,
            exception.address,
            count,
            operation,
            address,
        ];
        records.set(Self::RECORD, &record);
        records.set(Self::CONTEXT_FLAGS, &[u64::from(FULL)]);
        records.set(Self::GENERAL, &registers.general);
        records.set(Self::RIP, &[registers.rip]);
        Some(records)
    }

    fn set(&self, offset: u64, words: &[u64]) {
        for (place, word) in words.iter().enumerate() {
            let at = self.0.address() + offset + 8 * place as u64;
            // The kernel's own memory is writable.
            let _written = memory::write(at, word);
        }
    }

    fn word(&self, offset: u64) -> u64 {
        memory::read(self.0.address() + offset).unwrap_or_default()
    }

    fn add_flags(&self, flags: u32) {
        self.set(Self::RECORD, &[self.word(Self::RECORD) | u64::from(flags) << 32]);
    }

    /// Returns the registers that a handler has left in the context.
    fn continuation(&self) -> Box<Continuation> {
        let mut general = [0; 16];
        for (place, register) in general.iter_mut().enumerate() {
            *register = self.word(Self::GENERAL + 8 * place as u64);
        }
        let rip = self.word(Self::RIP);
        Box::new(Continuation { general, rip, changed: 0, xmm: [[0; 2]; 16] })
    }

    /// Calls the language handler of a function at the instruction `at`.
    fn call(&self, context: &Context, handler: &Handler, at: u64, target: u64) -> i32 {
        let base = self.0.address();
        let dispatcher = [
            at, handler.base, handler.entry, handler.frame, target, base, handler.routine,
            handler.data, 0, 0,
        ];
        self.set(Self::DISPATCHER, &dispatcher);
        let arguments = [base + Self::RECORD, handler.frame, base, base + Self::DISPATCHER];
        let what = "the language handler for an exception";
        let result = context.call_driver(what, handler.routine, arguments);
        super::routine::low_half(result).cast_signed()
    }
}

/// A step of a walk: the registers in a frame, and whether its instruction follows a call.
#[derive(Clone, Copy)]
struct Place {
    registers: Registers,
    is_return: bool,
}

impl Place {
    /// Returns the handler of the function, if it has one. Fails if its unwind data is damaged.
    fn handler(&self, context: &Context) -> Result<Option<Handler>, End> {
        context.environment().images.handler(&self.registers, self.is_return)
    }

    /// Moves to the caller. Returns `None` if it is not in a driver, or if its frame is unknown.
    fn leave(&mut self, context: &Context, saved: &mut dyn FnMut(u8, u64)) -> Option<()> {
        let before = self.registers.rsp();
        let read = |address: u64| {
            context.stacks().contains(address).then(|| memory::read(address).ok()).flatten()
        };
        let images = &context.environment().images;
        let step = images.unwind_saving(&mut self.registers, self.is_return, read, saved);
        self.is_return = step.ok()?;
        let is_sound = self.registers.rsp() > before && images.contains(self.registers.rip);
        is_sound.then_some(())
    }
}

/// Searches for a handler of an exception at an instruction, or after a call. Runs the termination
/// handlers of the frames that it leaves, and returns the registers with which driver code continues.
/// Returns `None` if no handler takes the exception.
pub fn dispatch(
    context: &Context,
    exception: &Exception,
    registers: Registers,
    is_return: bool,
) -> Option<Box<Continuation>> {
    let start = Place { registers, is_return };
    let mut place = start;
    let mut records = None;
    for _ in 0..MAX_FRAMES {
        let handler = place.handler(context).ok()?;
        if let Some(handler) = handler.filter(|one| one.flags & EXCEPTION_HANDLER != 0) {
            if records.is_none() {
                records = Some(Records::new(exception, &registers)?);
            }
            let records = records.as_ref()?;
            let result = records.call(context, &handler, place.registers.rip, 0);
            if let Some(chosen) = context.local::<Dispatching>().chosen.take() {
                return unwind(context, records, start, chosen, exception.status);
            }
            match result {
                CONTINUE_SEARCH => {}
                CONTINUE_EXECUTION if !exception.is_noncontinuable => {
                    return Some(records.continuation());
                }
                _ => return None,
            }
        }
        place.leave(context, &mut |_, _| {})?;
    }
    None
}

/// Leaves the frames up to the chosen one. See [`dispatch`].
fn unwind(
    context: &Context,
    records: &Records,
    mut place: Place,
    chosen: Chosen,
    status: u32,
) -> Option<Box<Continuation>> {
    if !context.environment().images.contains(chosen.target) {
        return None;
    }
    let (mut changed, mut xmm) = (0, [[0; 2]; 16]);
    records.add_flags(UNWINDING);
    for _ in 0..MAX_FRAMES {
        let handler = place.handler(context).ok()?;
        let is_target = handler.is_some_and(|one| one.frame == chosen.frame);
        if is_target {
            records.add_flags(TARGET_UNWIND);
        }
        if let Some(handler) = handler.filter(|one| one.flags & TERMINATION_HANDLER != 0) {
            records.call(context, &handler, place.registers.rip, chosen.target);
        }
        if is_target {
            let mut general = place.registers.general;
            general[0] = status.into();
            return Some(Box::new(Continuation { general, rip: chosen.target, changed, xmm }));
        }
        place.leave(context, &mut |register, address| {
            let number = usize::from(register & 15);
            if let Ok(value) = memory::read(address) {
                changed |= 1 << number;
                xmm[number] = value;
            }
        })?;
    }
    None
}

impl Context {
    /// Raises an exception in the driver that has made the current call. If a handler takes it, the
    /// routine must return, and the driver continues in its handler; otherwise, bugchecks. `why`
    /// completes "was called from PLACE".
    pub fn raise_exception(&self, status: NtStatus, why: &str) {
        /// `KMODE_EXCEPTION_NOT_HANDLED`.
        const NOT_HANDLED: u32 = 0x1E;
        let exception = Exception {
            status: status.bits(),
            address: self.call().return_address,
            access: None,
            is_noncontinuable: true,
        };
        if let Some(continuation) = dispatch(self, &exception, self.call().registers(), true) {
            let kept = keep(self, continuation);
            self.continuation.set(kept);
            return;
        }
        self.bugcheck(
            NOT_HANDLED,
            [u64::from(status.bits()), self.call().return_address, 0, 0],
            self.sentence(&format!(
                "{why} and raised {status}, which no handler of the driver took"
            )),
            &self.backtrace(),
        )
    }
}

/// Stores the registers with which the driver continues after the current call, and returns their
/// address. They live until the next exception on this thread.
fn keep(context: &Context, continuation: Box<Continuation>) -> u64 {
    let local = context.local::<Dispatching>();
    let address = &raw const *continuation as u64;
    local.last.replace(Some(continuation));
    address
}

/// Dispatches the exception of a fault. If a handler takes it, changes the frame and the processor's
/// extended state, so that the driver continues in the handler. Returns whether one does.
///
/// # Safety
///
/// `state` must be the area with the extended state that the frame describes.
pub unsafe fn serve_fault(frame: &mut Frame, state: *mut u8) -> bool {
    /// The offset of the XMM registers in the area, and of the mask of the saved components.
    const XMM: usize = 160;
    const COMPONENTS: usize = 512;
    const SSE: u64 = 2;
    let thread = thread::current();
    let trap = frame.trap;
    let Some(exception) = exception_of(&thread, &trap) else {
        return false;
    };
    let images = &thread.environment().images;
    let (registers, is_return) = if images.contains(trap.registers.rip) {
        (trap.registers, false)
    } else {
        // The fault is in a routine such as memcpy that received a bad address.
        let caller = memory::read(trap.registers.rsp()).ok();
        let is_bare = memory_routines::routine_at(trap.registers.rip).is_some();
        let Some(caller) = caller.filter(|_| is_bare) else {
            return false;
        };
        (memory_routines::caller(trap.registers, caller), true)
    };
    let context = Context::of_job(&thread);
    let Some(continuation) = dispatch(&context, &exception, registers, is_return) else {
        return false;
    };
    frame.general = continuation.general;
    frame.rip = continuation.rip;
    frame.rsp = continuation.general[4];
    for (number, value) in continuation.xmm.iter().enumerate() {
        if continuation.changed & 1 << number != 0 {
            // SAFETY: the caller guarantees the area, which begins with that of FXSAVE.
            let to = unsafe { state.add(XMM + 16 * number) };
            // SAFETY: as above.
            unsafe { to.cast::<[u64; 2]>().write_unaligned(*value) };
        }
    }
    if continuation.changed != 0 {
        // SAFETY: as above; the area has room for the header of XSAVE in any case.
        let components = unsafe { state.add(COMPONENTS) };
        // SAFETY: as above.
        let before = unsafe { components.cast::<u64>().read_unaligned() };
        // SAFETY: as above.
        unsafe { components.cast::<u64>().write_unaligned(before | SSE) };
    }
    true
}
