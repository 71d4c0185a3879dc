//! One-time initialization (`RTL_RUN_ONCE`): by one thread while other threads wait, or by several
//! threads, of which the first to finish provides the context.

use crate::{
    execution::{
        coroutine::wait_until,
        routine::{At, Callback, Memory, low_half, routine},
    },
    ground::{NtResult, NtStatus, memory, opaque::RunOnce, rule::Rule},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::thread_objects,
    },
};

pub const ENTRIES: Entries = &[
    routine("RtlRunOnceInitialize", initialize),
    routine("RtlRunOnceBeginInitialize", begin),
    routine("RtlRunOnceComplete", complete),
    routine("RtlRunOnceExecuteOnce", execute),
];

/// `RTL_RUN_ONCE_CHECK_ONLY`, `RTL_RUN_ONCE_ASYNC` and `RTL_RUN_ONCE_INIT_FAILED`.
const CHECK_ONLY: u32 = 1;
const ASYNC: u32 = 2;
const FAILED: u32 = 4;

/// The states in the lowest bits of the word (`RTL_RUN_ONCE_CTX_RESERVED_BITS`): one thread is
/// initializing; initialization is complete, and the other bits are its context; or several threads
/// are initializing.
const STATE: u64 = 3;
const ALONE: u64 = 1;
const DONE: u64 = 2;
const TOGETHER: u64 = 3;

fn initialize(context: &Context, once: At<RunOnce>) {
    context.write(once.0, &0_u64);
}

/// The outcome of starting an initialization.
enum Start {
    Ends(NtResult<NtStatus>),
    /// Initialization is complete, with this context.
    Done(u64),
    /// Another thread is initializing.
    Waits,
}

/// Tries to start an initialization atomically.
fn try_start(context: &Context, once: u64, is_async: bool) -> Start {
    context.atomically(|_| {
        let value: u64 = memory::read(once)?;
        Ok(match (value & STATE, is_async) {
            (DONE, _) => Start::Done(value & !STATE),
            (0, _) => {
                memory::write(once, &if is_async { TOGETHER } else { ALONE })?;
                Start::Ends(Ok(NtStatus::PENDING))
            }
            (TOGETHER, true) => Start::Ends(Ok(NtStatus::PENDING)),
            (ALONE, false) => Start::Waits,
            _ => Start::Ends(Err(NtStatus::INVALID_PARAMETER)),
        })
    })
}

/// Starts an initialization. Returns `STATUS_PENDING` if the caller must perform it.
fn begin(context: &Context, once: At<RunOnce>, flags: u32, result: At<u64>) -> NtResult<NtStatus> {
    if flags & !(CHECK_ONLY | ASYNC) != 0 || flags == CHECK_ONLY | ASYNC {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if flags == CHECK_ONLY {
        let value: u64 = context.read(once.0);
        if value & STATE != DONE {
            return Err(NtStatus::UNSUCCESSFUL);
        }
        result.write_optional(context, value & !STATE);
        return Ok(NtStatus::SUCCESS);
    }
    let mut started = Start::Waits;
    let is_over = wait_until(context, None, || {
        started = try_start(context, once.0, flags & ASYNC != 0);
        !matches!(started, Start::Waits)
    });
    match started {
        Start::Ends(status) if is_over => status,
        Start::Done(value) if is_over => {
            result.write_optional(context, value);
            Ok(NtStatus::SUCCESS)
        }
        _ => context.stop_call(
            Rule::Deadlock,
            "and would wait forever for an initialization that never completes",
        ),
    }
}

/// Completes an initialization with its context or, if it failed, allows another attempt.
fn complete(context: &Context, once: At<RunOnce>, flags: u32, value: Memory) -> NtResult {
    let has_failed = flags & FAILED != 0;
    let is_async = flags & ASYNC != 0;
    let is_bad = value.0 & STATE != 0 || (has_failed && (!value.is_null() || is_async));
    if is_bad || flags & !(ASYNC | FAILED) != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    context.atomically(|_| {
        let state = memory::read::<u64>(once.0)? & STATE;
        if state == TOGETHER && !is_async {
            return Ok(Err(NtStatus::INVALID_PARAMETER));
        }
        if state != if is_async { TOGETHER } else { ALONE } {
            return Ok(Err(NtStatus::UNSUCCESSFUL));
        }
        memory::write(once.0, &if has_failed { 0 } else { value.0 | DONE })?;
        Ok(Ok(()))
    })
}

/// Calls the driver's routine unless initialization is already complete, and stores the context. The
/// entire call runs in a critical region.
fn execute(
    context: &Context,
    once: At<RunOnce>,
    routine: Callback,
    parameter: Memory,
    result: At<u64>,
) -> NtResult {
    thread_objects::enter_region(context);
    let status = execute_in_region(context, once.0, routine.0, parameter.0, result);
    thread_objects::leave_region(context);
    status
}

fn execute_in_region(
    context: &Context,
    once: u64,
    routine: u64,
    parameter: u64,
    result: At<u64>,
) -> NtResult {
    if begin(context, At::new(once), 0, result)? != NtStatus::PENDING {
        return Ok(());
    }
    let arguments = [once, parameter, result.0];
    let returned = context.call_driver("the initialization routine", routine, arguments);
    if low_half(returned) == 0 {
        let _ended = complete(context, At::new(once), FAILED, At::NULL);
        return Err(NtStatus::UNSUCCESSFUL);
    }
    let value = if result.is_null() { 0 } else { result.read(context) };
    if value & STATE != 0 {
        // With this context, the initialization would never complete, and each later caller would
        // wait for it.
        context.stop_for_misuse(&format!(
            "for {}, which returned the context 0x{value:016X}; its lowest 2 bits must be 0",
            context.environment().images.function(routine)
        ));
    }
    complete(context, At::new(once), 0, At::new(value))
}
