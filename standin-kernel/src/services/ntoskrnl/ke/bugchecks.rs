//! Bugchecks that drivers cause, and the routines that they register for bugchecks and hardware
//! changes. A kernel that has bugchecked runs no more driver code, so it never calls routines for
//! bugchecks.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{
        NtResult, NtStatus,
        abi::{BugCheckRecord, Pointee},
        arena::Block,
        memory,
        opaque::BugCheckReasonRecord,
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeRegisterBugCheckCallback", register),
    routine("KeDeregisterBugCheckCallback", deregister::<BugCheckRecord, STATE>),
    routine("KeRegisterBugCheckReasonCallback", register_for_reason),
    routine("KeDeregisterBugCheckReasonCallback", deregister::<BugCheckReasonRecord, REASON_STATE>),
    routine("KeRegisterNmiCallback", register_nmi),
    routine("KeDeregisterNmiCallback", deregister_handle),
    routine("KeBugCheck", ke_bug_check),
    routine("KeBugCheckEx", ke_bug_check_ex),
];

/// `BufferEmpty` and `BufferInserted`: the states of a record.
const EMPTY: u8 = 0;

const INSERTED: u8 = 1;

/// The offsets of the fields of `KBUGCHECK_REASON_CALLBACK_RECORD`, which begins like the other
/// record.
const REASON_COMPONENT: u64 = 24;

const REASON_CHECKSUM: u64 = 32;
const REASON: u64 = 40;
const REASON_STATE: u64 = 44;

/// The offset of a record's state, and of its routine.
const STATE: u64 = std::mem::offset_of!(BugCheckRecord, state) as u64;

const ROUTINE: u64 = std::mem::offset_of!(BugCheckRecord, callback_routine) as u64;

/// The routines, by record address or handle.
#[derive(Default)]
struct Registered(BTreeMap<u64, Registration>);

struct Registration {
    routine: u64,
    /// The memory whose address serves as the handle.
    _memory: Option<Block>,
}

fn remember(context: &Context, key: u64, routine: u64, memory: Option<Block>) {
    let registration = Registration { routine, _memory: memory };
    context.state().get::<Registered>().0.insert(key, registration);
}

/// Returns whether a record is not registered, as after its initialization.
fn is_empty(context: &Context, record: u64, state: u64) -> bool {
    context.read::<u8>(record.wrapping_add(state)) == EMPTY
}

fn register(
    context: &Context,
    record: At<BugCheckRecord>,
    routine: Callback,
    buffer: Memory,
    length: u32,
    component: At<u8>,
) -> bool {
    if !is_empty(context, record.0, STATE) {
        return false;
    }
    let sum = [routine.0, buffer.0, u64::from(length), component.0];
    let value = BugCheckRecord {
        entry: [record.0; 2],
        callback_routine: routine.0,
        buffer: buffer.0,
        length,
        component: component.0,
        checksum: sum.into_iter().fold(0, u64::wrapping_add),
        state: INSERTED,
        ..Default::default()
    };
    record.write(context, value);
    remember(context, record.0, routine.0, None);
    true
}

fn register_for_reason(
    context: &Context,
    record: At<BugCheckReasonRecord>,
    routine: Callback,
    reason: u32,
    component: At<u8>,
) -> bool {
    /// `KbCallbackSecondaryDumpData` is the first reason that drivers can register for.
    const FIRST_REASON: u32 = 2;
    if !is_empty(context, record.0, REASON_STATE) || reason < FIRST_REASON {
        return false;
    }
    let sum = [routine.0, u64::from(reason), component.0];
    context.write(record.0, &[record.0; 2]);
    for (offset, value) in [
        (ROUTINE, routine.0),
        (REASON_COMPONENT, component.0),
        (REASON_CHECKSUM, sum.into_iter().fold(0, u64::wrapping_add)),
    ] {
        context.write(record.0.wrapping_add(offset), &value);
    }
    context.write(record.0.wrapping_add(REASON), &reason);
    context.write(record.0.wrapping_add(REASON_STATE), &INSERTED);
    remember(context, record.0, routine.0, None);
    true
}

/// Removes a record, if it is registered. `STATE` is the offset of its state field.
fn deregister<T: Pointee, const STATE: u64>(context: &Context, record: At<T>) -> bool {
    let removed = context.state().get::<Registered>().0.remove(&record.0);
    if removed.is_none() || is_empty(context, record.0, STATE) {
        return false;
    }
    context.write(record.0.wrapping_add(STATE), &EMPTY);
    true
}

fn register_nmi(context: &Context, routine: Callback, _argument: Memory) -> Memory {
    let memory = Block::zeroed(0x40);
    let handle = memory.address();
    remember(context, handle, routine.0, Some(memory));
    At::new(handle)
}

fn deregister_handle(context: &Context, handle: Memory) -> NtResult {
    let removed = context.state().get::<Registered>().0.remove(&handle.0);
    removed.map(drop).ok_or(NtStatus::INVALID_HANDLE)
}

/// Removes the registrations whose routines and records `belongs` selects. Returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context.with_state(|Registered(all)| {
        all.extract_if(.., |key, one| belongs(one.routine) || belongs(*key)).count()
    })
}

fn ke_bug_check(context: &Context, code: u32) {
    ke_bug_check_ex(context, code, 0, 0, 0, 0);
}

fn ke_bug_check_ex(context: &Context, code: u32, p1: u64, p2: u64, p3: u64, p4: u64) {
    /// wdk-panic's code: "RPNC".
    const RUST_PANIC: u32 = u32::from_be_bytes(*b"RPNC");
    let from = context.caller();
    let message = if code == RUST_PANIC {
        let length = usize::try_from(p2).unwrap_or(0).min(512);
        let file = memory::read_bytes(p1, length).unwrap_or_default();
        format!(
            "the driver panicked at {}:{p3}:{p4} and called KeBugCheckEx from {from}",
            String::from_utf8_lossy(&file)
        )
    } else {
        format!("the driver called KeBugCheckEx from {from}")
    };
    context.bugcheck(code, [p1, p2, p3, p4], message, &context.backtrace())
}
