//! `EtwActivityIdControl` and `EtwActivityIdControlKernel`.

use etl_file::Guid;

use super::service::Context;
use crate::{
    execution::{identity::Identity, routine::At},
    ground::{NtResult, NtStatus, irql::Irql, rule::Rule},
};

const GET: u32 = 1;
const SET: u32 = 2;
const CREATE: u32 = 3;
const GET_SET: u32 = 4;
const CREATE_SET: u32 = 5;

/// `EtwActivityIdControl`.
pub fn etw_activity_id_control(context: &Context, code: u32, activity: At<Guid>) -> NtResult {
    context.faults().take("EtwActivityIdControl").map_or(Ok(()), Err)?;
    activity_id_control(context, code, activity.0)
}

/// Reads, sets or creates activity ids (ETW-6.5.3). All codes except creation access the thread's
/// id, which is not allowed at `DISPATCH_LEVEL`.
fn activity_id_control(context: &Context, code: u32, address: u64) -> NtResult {
    let call = context.call();
    if !(GET..=CREATE_SET).contains(&code) {
        context.warn(Rule::ActivityCode, || format!("with the unknown control code {code}"));
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if address == 0 {
        context
            .warn(Rule::ActivityPointer, || "with a null pointer for the activity id".to_owned());
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if code != CREATE && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::ActivityIrql,
            format!(
                "EtwActivityIdControl was called with code {code} at {} from {}; it may be called \
                 with that code at IRQL <= {}",
                call.irql,
                context.caller(),
                Irql::APC_LEVEL
            ),
        );
    }
    context.check_address("an activity id", address, 16);
    // O11: the thread's id is stored in its TEB, which threads of the system process do not have.
    if code != CREATE && !has_teb(context) {
        let status = context.config().unspecified_behaviour.activity_without_teb;
        if status != NtStatus::SUCCESS {
            return Err(status);
        }
    }
    let given = Guid::from_bytes(context.read(address));
    let this = context.identity().thread;
    let result = {
        let activities = context.activities();
        let present = activities.current(this);
        let (result, set) = match code {
            GET => (Some(present), None),
            SET => (None, Some(given)),
            CREATE => (Some(activities.create()), None),
            GET_SET => (Some(present), Some(given)),
            _ => (Some(present), Some(activities.create())),
        };
        if let Some(set) = set {
            activities.set(this, set);
            context.note_replaced_activity((code == CREATE_SET).then_some(present));
        }
        result
    };
    if let Some(result) = result {
        context.write(address, &result.to_bytes());
    }
    Ok(())
}

/// Returns whether the current thread has a thread environment block, as threads of programs do.
fn has_teb(context: &Context) -> bool {
    ![Identity::SYSTEM.process, Identity::IDLE.process].contains(&context.identity().process)
}

/// `EtwActivityIdControlKernel`: reads or sets the pointer to the thread's activity id, on any thread
/// (ETW-6.5.10).
pub fn etw_activity_id_control_kernel(context: &Context, code: u32, pointer: At<Guid>) -> NtResult {
    if ![GET, SET].contains(&code) {
        context.warn(Rule::ActivityCode, || {
            format!("with the control code {code}, which only EtwActivityIdControl supports")
        });
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if pointer.is_null() {
        context.warn(Rule::ActivityPointer, || {
            "with a null pointer for the pointer to the activity id".to_owned()
        });
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let call = context.call();
    if call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::ActivityIrql,
            format!(
                "EtwActivityIdControlKernel was called with code {code} at {} from {}; it may be \
                 called at IRQL <= {}",
                call.irql,
                context.caller(),
                Irql::APC_LEVEL
            ),
        );
    }
    // The activity id's type stands for that of a pointer to one.
    let pointer: At<u64> = pointer.cast();
    context.check_address("a pointer to an activity id", pointer.0, 8);
    let this = context.identity().thread;
    if code == GET {
        pointer.write(context, context.activities().current_pointer(this));
        return Ok(());
    }
    let address = pointer.read(context);
    let activity = if address == 0 {
        Guid::NULL
    } else {
        context.check_address("an activity id", address, 16);
        Guid::from_bytes(context.read(address))
    };
    context.activities().set_pointer(this, address, activity);
    Ok(())
}
