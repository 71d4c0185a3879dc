//! `EtwActivityIdControl`.

use etl_file::Guid;

use super::service::Context;
use crate::{
    execution::routine::low_half,
    ground::{irql::Irql, rule::Rule, status::NtStatus},
};

/// `EtwActivityIdControl`.
pub fn etw_activity_id_control(context: &Context, code: u64, activity: u64) -> u64 {
    if let Some(status) = context.faults().take("EtwActivityIdControl") {
        return status.to_register();
    }
    activity_id_control(context, low_half(code), activity).to_register()
}

/// Reads, sets or creates activity ids (ETW-6.5.3). All codes except creation access the thread's
/// id, which is not allowed at `DISPATCH_LEVEL`.
fn activity_id_control(context: &Context, code: u32, address: u64) -> NtStatus {
    const GET: u32 = 1;
    const SET: u32 = 2;
    const CREATE: u32 = 3;
    const GET_SET: u32 = 4;
    const CREATE_SET: u32 = 5;
    let call = context.call();
    if !(GET..=CREATE_SET).contains(&code) {
        context.warn(Rule::ActivityCode, || {
            format!("with the unknown control code {code}")
        });
        return NtStatus::INVALID_PARAMETER;
    }
    if address == 0 {
        context.warn(Rule::ActivityPointer, || {
            "with a null pointer for the activity id".to_owned()
        });
        return NtStatus::INVALID_PARAMETER;
    }
    if code != CREATE && call.irql > Irql::APC_LEVEL {
        context.stop(
            Rule::ActivityIrql,
            format!(
                "EtwActivityIdControl was called with code {code} at {} from {}; the highest IRQL \
                 for that code is {}",
                call.irql,
                context.caller(),
                Irql::APC_LEVEL
            ),
        );
    }
    context.check_address("an activity id", address, 16);
    let given = Guid::from_bytes(context.read(address));
    let this = context.identity().thread;
    let result = {
        let activities = context.activities();
        let present = activities.of_thread(this);
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
    NtStatus::SUCCESS
}
