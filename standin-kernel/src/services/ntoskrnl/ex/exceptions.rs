//! The exceptions that drivers raise, and the language handler of C, which finds the blocks of a function
//! that handle exceptions.

use crate::{
    execution::{
        exceptions::{
            CONTINUE_EXECUTION, CONTINUE_SEARCH, Chosen, TARGET_UNWIND, UNWINDING, choose,
        },
        identity::Identity,
        routine::{Argument, At, Memory, routine},
    },
    ground::{
        NtStatus,
        arena::Block,
        memory,
        opaque::{DispatcherContext, ExceptionRecord, ThreadContext},
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("ExRaiseStatus", raise_status),
    routine("ExRaiseAccessViolation", raise_access_violation),
    routine("ExRaiseDatatypeMisalignment", raise_misalignment),
    routine("RtlRaiseStatus", raise_status),
    routine("__C_specific_handler", c_specific_handler),
    routine("ExGetPreviousMode", previous_mode),
];

/// `STATUS_DATATYPE_MISALIGNMENT`.
pub const MISALIGNMENT: NtStatus = NtStatus::from_bits(0x8000_0002);

fn raise_status(context: &Context, status: NtStatus) {
    context.raise_exception(status, "by the driver");
}

fn raise_access_violation(context: &Context) {
    context.raise_exception(NtStatus::ACCESS_VIOLATION, "by the driver");
}

fn raise_misalignment(context: &Context) {
    context.raise_exception(MISALIGNMENT, "by the driver");
}

/// Returns `UserMode` on a thread of a program's process, which entered the kernel with a request,
/// and `KernelMode` on a system thread.
fn previous_mode(context: &Context) -> i8 {
    /// `KernelMode` and `UserMode`.
    const MODES: [i8; 2] = [0, 1];
    let system = [Identity::IDLE.process, Identity::SYSTEM.process];
    let is_user = !system.contains(&context.identity().process);
    MODES[usize::from(is_user)]
}

/// A block of code with a handler, in the scope table of a function. Addresses are offsets in the image.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scope {
    begin: u32,
    end: u32,
    /// The filter, 1 for a filter that accepts every exception, or the termination handler.
    handler: u32,
    /// The block that handles the exception, or 0 for a termination handler.
    target: u32,
}

impl Scope {
    fn contains(&self, offset: u64) -> bool {
        (u64::from(self.begin)..u64::from(self.end)).contains(&offset)
    }
}

/// Reads a function's scope table: the number of scopes, and the scopes from the innermost outward. The
/// table ends where it cannot be read.
fn scopes(at: u64) -> Vec<Scope> {
    /// The most scopes in a table.
    const MAX: u32 = 0x1000;
    let count = memory::read::<u32>(at).unwrap_or(0).min(MAX);
    let read = |number: u32| {
        let entry = at.wrapping_add(4 + 16 * u64::from(number));
        let [begin, end, handler, target] = memory::read::<[u32; 4]>(entry).ok()?;
        Some(Scope { begin, end, handler, target })
    };
    (0..count).map_while(read).collect()
}

/// Handles an exception in a function of C code, or runs the function's termination handlers while frames
/// are unwound.
fn c_specific_handler(
    context: &Context,
    record: At<ExceptionRecord>,
    frame: Memory,
    thread_context: At<ThreadContext>,
    dispatcher: At<DispatcherContext>,
) -> i32 {
    /// A filter that accepts every exception.
    const ACCEPTS: u32 = 1;
    let word = |number: u64| context.read::<u64>(dispatcher.0.wrapping_add(8 * number));
    let (base, target, data) = (word(1), word(4), word(7));
    let offset = word(0).wrapping_sub(base);
    let flags: u32 = context.read(record.0.wrapping_add(4));
    let scopes = scopes(data);
    let around = || scopes.iter().filter(|scope| scope.contains(offset));
    if flags & UNWINDING == 0 {
        for scope in around().filter(|scope| scope.target != 0) {
            let accepts = if scope.handler == ACCEPTS {
                1
            } else {
                let pointers = Pointers::new(record.0, thread_context.0);
                let filter = base.wrapping_add(scope.handler.into());
                let arguments = [pointers.address(), frame.0];
                let result = context.call_driver("an exception filter", filter, arguments);
                i32::from_register(result)
            };
            if accepts < 0 {
                return CONTINUE_EXECUTION;
            }
            if accepts > 0 {
                let target = base.wrapping_add(scope.target.into());
                choose(context, Chosen { frame: frame.0, target });
                return CONTINUE_SEARCH;
            }
        }
        return CONTINUE_SEARCH;
    }
    let target = target.wrapping_sub(base);
    for scope in around() {
        if flags & TARGET_UNWIND != 0 {
            // A scope that also contains the target is not left.
            let is_left = !scope.contains(target);
            if !is_left || u64::from(scope.target) == target {
                break;
            }
        }
        if scope.target == 0 {
            let handler = base.wrapping_add(scope.handler.into());
            context.call_driver("a termination handler", handler, [1, frame.0]);
        }
    }
    CONTINUE_SEARCH
}

/// The `EXCEPTION_POINTERS` for a filter.
struct Pointers(Block);

impl Pointers {
    fn new(record: u64, context: u64) -> Self {
        let block = Block::zeroed(16);
        // The kernel's own memory is writable.
        let _written = memory::write(block.address(), &[record, context]);
        Self(block)
    }

    const fn address(&self) -> u64 {
        self.0.address()
    }
}
