//! The notifications that registry callbacks receive before and after an operation on a key.

use std::collections::HashMap;

use crate::{
    ground::{NtResult, NtStatus, arena::Block},
    services::ntoskrnl::{
        context::Context,
        ob::filters::{
            Registered, Watched, begin, block_of, end, registered, running, while_running,
        },
    },
};

/// The notification classes (`REG_NOTIFY_CLASS`) before and after an operation.
#[derive(Clone, Copy)]
pub struct Operation(u64, u64);

impl Operation {
    pub const DELETE_KEY: Self = Self(0, 15);
    pub const SET_VALUE: Self = Self(1, 16);
    pub const DELETE_VALUE: Self = Self(2, 17);
    pub const ENUMERATE_KEY: Self = Self(5, 20);
    pub const ENUMERATE_VALUE: Self = Self(6, 21);
    pub const QUERY_KEY: Self = Self(7, 22);
    pub const QUERY_VALUE: Self = Self(8, 23);
    pub const CLOSE_HANDLE: Self = Self(14, 25);
    pub const CREATE_KEY: Self = Self(26, 27);
    pub const OPEN_KEY: Self = Self(28, 29);
    pub const FLUSH_KEY: Self = Self(30, 31);
}

/// `RegNtCallbackObjectContextCleanup`.
const CONTEXT_CLEANUP: u64 = 40;
/// `STATUS_CALLBACK_BYPASS`.
const CALLBACK_BYPASS: NtStatus = NtStatus::from_bits(0xC000_0503);

/// The structure that callbacks receive before an operation.
pub struct Information<'a> {
    /// The members as words: two 32-bit members can share one.
    pub words: &'a [u64],
    /// The index of `CallContext`. The context of the object follows it.
    pub contexts: usize,
    /// The object whose context the structure contains.
    pub object: u64,
}

/// The contexts of key objects, by object and cookie.
#[derive(Default)]
struct Contexts(HashMap<(u64, u64), u64>);

/// Sets a callback's context of a key object. Returns the previous context, or 0.
pub fn replace_context(context: &Context, object: u64, cookie: u64, new: u64) -> u64 {
    let key = (object, cookie);
    context.with_state(|contexts: &mut Contexts| contexts.0.insert(key, new)).unwrap_or(0)
}

/// Removes the contexts that `selects` selects by object and cookie, and notifies their callbacks.
pub fn clean_up_contexts(context: &Context, selects: impl Fn(u64, u64) -> bool) {
    let removed: Vec<((u64, u64), u64)> = context.with_state(|contexts: &mut Contexts| {
        contexts.0.extract_if(|(object, cookie), _| selects(*object, *cookie)).collect()
    });
    for routine in registered(context, Watched::Registry) {
        for ((object, _), value) in removed.iter().filter(|((_, one), _)| *one == routine.key) {
            let block = block_of(context, &[*object, *value, 0]);
            call(context, routine, CONTEXT_CLEANUP, &block);
        }
    }
}

/// Performs an operation between its notifications. `object` returns the object for the notifications
/// after an operation with a result, or 0. A callback can prevent the operation or change its status.
/// For an operation by a callback, only the callbacks at lower altitudes are notified.
pub fn notify(
    context: &Context,
    operation: Operation,
    information: &Information<'_>,
    body: impl FnOnce() -> NtResult,
    object: impl Fn(NtResult) -> u64,
) -> NtResult {
    let mut routines = registered(context, Watched::Registry);
    if let Some(running) = running(context) {
        let at = routines.iter().position(|one| one.key == running);
        routines.drain(..at.map_or(0, |at| at + 1));
    }
    if routines.is_empty() {
        return body();
    }
    let block = block_of(context, information.words);
    let at = |index: usize| block.address() + index as u64 * 8;
    let object_context = |cookie: u64| {
        let key = (information.object, cookie);
        context.with_state(|contexts: &mut Contexts| contexts.0.get(&key).copied()).unwrap_or(0)
    };
    let mut notified: Vec<(Registered, u64)> = Vec::new();
    let mut prevented = None;
    for routine in routines {
        if !begin(context, routine.key) {
            continue;
        }
        context.write(at(information.contexts), &0_u64);
        context.write(at(information.contexts + 1), &object_context(routine.key));
        let status = call(context, routine, operation.0, &block);
        if !status.is_success() {
            end(context, routine.key);
            let is_done = status == CALLBACK_BYPASS;
            if is_done && object(Ok(())) == 0 {
                stop_without_object(context, routine);
            }
            prevented = Some(if is_done { Ok(()) } else { Err(status) });
            break;
        }
        notified.push((routine, context.read(at(information.contexts))));
    }
    let mut done = prevented.unwrap_or_else(body);
    for (routine, call_context) in notified.into_iter().rev() {
        let status = u64::from(done.err().unwrap_or(NtStatus::SUCCESS).bits());
        let object_context = object_context(routine.key);
        let words =
            [object(done), status, block.address(), status, call_context, object_context, 0];
        let after = block_of(context, &words);
        if call(context, routine, operation.1, &after) == CALLBACK_BYPASS {
            let status = NtStatus::from_register(context.read(after.address() + RETURN_STATUS));
            done = if status.is_success() { Ok(()) } else { Err(status) };
            if done.is_ok() && object(done) == 0 {
                stop_without_object(context, routine);
            }
        }
        end(context, routine.key);
    }
    done
}

/// Bugchecks because a callback changed the creation or opening of a key to a success without a key.
fn stop_without_object(context: &Context, routine: Registered) -> ! {
    context.stop_for_misuse(&format!(
        "and the registry callback at {} returned STATUS_CALLBACK_BYPASS for a success without a \
         key in ResultObject",
        context.thread().place(routine.routines.before)
    ))
}

/// The offset of `ReturnStatus` in `REG_POST_OPERATION_INFORMATION`.
const RETURN_STATUS: u64 = 24;

fn call(context: &Context, routine: Registered, class: u64, information: &Block) -> NtStatus {
    let arguments = [routine.argument, class, information.address()];
    while_running(context, routine.key, || {
        let address = routine.routines.before;
        NtStatus::from_register(context.call_driver("the registry callback", address, arguments))
    })
}
