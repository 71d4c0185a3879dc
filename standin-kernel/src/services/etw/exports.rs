//! The Etw* routines of ntoskrnl.exe.

use etl_file::Guid;

use super::{
    activity_io,
    activity_routines::{etw_activity_id_control, etw_activity_id_control_kernel},
    classic,
    enable_info::EnableInfo,
    event::{Content, WriteCall},
    message, registration,
    service::Context,
    state::{Form, HandleError},
    trace_information, write,
};
use crate::{
    execution::routine::{At, Callback, Memory, Routine, routine},
    ground::{
        NtResult, NtStatus,
        abi::{EventDataDescriptor, EventDescriptor},
        rule::Rule,
    },
};

/// The exports. `EtwActivityIdControl` and `EtwActivityIdControlKernel` check their IRQL limits
/// themselves: the limit of the former depends on its control code, and wdm.h does not declare the
/// latter.
const ENTRIES: &[Routine<Context>] = &[
    routine("EtwRegister", etw_register),
    routine("EtwUnregister", etw_unregister),
    routine("EtwSetInformation", etw_set_information),
    routine("EtwEventEnabled", etw_event_enabled),
    routine("EtwProviderEnabled", etw_provider_enabled),
    routine("EtwActivityIdControl", etw_activity_id_control),
    routine("EtwActivityIdControlKernel", etw_activity_id_control_kernel),
    routine("EtwWrite", etw_write),
    routine("EtwWriteTransfer", etw_write_transfer),
    routine("EtwWriteEx", etw_write_ex),
    routine("EtwWriteString", etw_write_string),
];

/// Returns the exports of all modules.
pub fn exports() -> impl Iterator<Item = Routine<Context>> {
    let modules = [
        ENTRIES,
        activity_io::ENTRIES,
        classic::ENTRIES,
        message::ENTRIES,
        trace_information::ENTRIES,
    ];
    modules.into_iter().flatten().copied()
}

fn etw_register(
    context: &Context,
    provider: At<Guid>,
    callback: Callback,
    argument: Memory,
    slot: At<u64>,
) -> NtResult {
    registration::register_at(context, provider.0, callback.0, argument.0, slot.0, Form::Modern)
}

fn etw_unregister(context: &Context, handle: u64) -> NtResult {
    context.verifier().note_wait_for_callbacks(context);
    context.faults().take("EtwUnregister").map_or(Ok(()), Err)?;
    registration::unregister(context, handle)
}

fn etw_set_information(
    context: &Context,
    handle: u64,
    class: u32,
    information: Memory,
    length: u32,
) -> NtResult {
    /// `EVENT_INFO_CLASS`.
    const BINARY_TRACK_INFO: u32 = 0;
    const SET_TRAITS: u32 = 2;
    const USE_DESCRIPTOR_TYPE: u32 = 3;
    /// The lowest address that Windows maps.
    const LOWEST_ADDRESS: u64 = 0x1_0000;
    context.faults().take("EtwSetInformation").map_or(Ok(()), Err)?;
    context.verifier().note_wait_for_callbacks(context);
    let known = context.etw().registration(handle).err();
    if let Some(error) = known {
        return Err(registration::refuse(context, handle, &error));
    }
    if information.is_null() && length != 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if length == 0 && !information.is_null() && information.0 < LOWEST_ADDRESS {
        context.warn(Rule::EmptyInformation, || {
            format!("with 0 bytes at 0x{information:X}, which is not a valid address; pass a null pointer")
        });
    }
    context.check_address("information", information.0, u64::from(length));
    let bytes = context.read_bytes(information.0, length as usize);
    match class {
        BINARY_TRACK_INFO => Ok(()),
        SET_TRAITS => registration::set_traits(context, handle, bytes),
        USE_DESCRIPTOR_TYPE => {
            if let [on @ (0 | 1)] = *bytes {
                if let Ok(registration) = context.etw().registration(handle) {
                    registration.honours_types = on == 1;
                }
                Ok(())
            } else {
                context.warn(Rule::DescriptorTypeSwitch, || {
                    format!(
                        "for EventProviderUseDescriptorType with the bytes {bytes:02x?}; the \
                         value must be one byte, 0 or 1"
                    )
                });
                Err(NtStatus::INVALID_PARAMETER)
            }
        }
        _ => {
            context.warn(Rule::InformationClass, || {
                format!("with the unknown information class {class}")
            });
            Err(NtStatus::INVALID_DEVICE_REQUEST)
        }
    }
}

/// Returns whether any session would record the event (ETW-1.3.26: it is never `false` for an event
/// that would be recorded).
fn is_enabled(context: &Context, handle: u64, passes: impl Fn(&EnableInfo) -> bool) -> bool {
    if let Some(route) = context.routes().now().get(&handle) {
        return route.target_sessions.iter().any(|target| passes(&target.enable_info));
    }
    let error = context.etw().registration(handle).err();
    if let Some(error @ (HandleError::Released | HandleError::NeverIssued)) = error {
        registration::refuse(context, handle, &error);
    }
    false
}

fn etw_event_enabled(context: &Context, handle: u64, descriptor: At<EventDescriptor>) -> bool {
    let event = descriptor.read(context);
    is_enabled(context, handle, |one| one.passes(event.level, event.keyword))
}

fn etw_provider_enabled(context: &Context, handle: u64, level: u8, keyword: u64) -> bool {
    is_enabled(context, handle, |one| one.passes(level, keyword))
}

fn etw_write(
    context: &Context,
    handle: u64,
    descriptor: At<EventDescriptor>,
    activity: At<Guid>,
    count: u32,
    data: At<EventDataDescriptor>,
) -> NtResult {
    let call = write_call(context, handle, descriptor.0, (activity.0, 0), (count, data.0));
    write::write(context, &call)
}

fn etw_write_transfer(
    context: &Context,
    handle: u64,
    descriptor: At<EventDescriptor>,
    activity: At<Guid>,
    related: At<Guid>,
    count: u32,
    data: At<EventDataDescriptor>,
) -> NtResult {
    let ids = (activity.0, related.0);
    let call = write_call(context, handle, descriptor.0, ids, (count, data.0));
    write::write(context, &call)
}

fn etw_write_ex(
    context: &Context,
    handle: u64,
    descriptor: At<EventDescriptor>,
    filter: u64,
    flags: u32,
    activity: At<Guid>,
    related: At<Guid>,
    count: u32,
    data: At<EventDataDescriptor>,
) -> NtResult {
    context.faults().take("EtwWriteEx").map_or(Ok(()), Err)?;
    let call = WriteCall {
        filter,
        flags,
        ..write_call(context, handle, descriptor.0, (activity.0, related.0), (count, data.0))
    };
    write::write(context, &call)
}

/// Returns the arguments of a write without flags or a filter, given the addresses of the ids and
/// the data.
fn write_call(
    context: &Context,
    handle: u64,
    descriptor: u64,
    (activity, related): (u64, u64),
    (count, data): (u32, u64),
) -> WriteCall {
    WriteCall {
        handle,
        descriptor,
        activity: guid(context, "an activity id", activity),
        related: guid(context, "a related activity id", related),
        count,
        data,
        filter: 0,
        flags: 0,
    }
}

/// Returns the id at this address, or `None` for a null pointer.
fn guid(context: &Context, what: &str, address: u64) -> Option<Guid> {
    context.check_address(what, address, if address == 0 { 0 } else { 16 });
    (address != 0).then(|| Guid::from_bytes(context.read(address)))
}

fn etw_write_string(
    context: &Context,
    handle: u64,
    level: u8,
    keyword: u64,
    activity: At<Guid>,
    string: At<u16>,
) -> NtResult {
    let mut text = Vec::new();
    loop {
        let unit: u16 = context.read(string.0 + text.len() as u64);
        text.extend_from_slice(&unit.to_le_bytes());
        if unit == 0 {
            break;
        }
        if text.len() > usize::from(u16::MAX) {
            return Err(NtStatus::INTEGER_OVERFLOW);
        }
    }
    let activity = guid(context, "an activity id", activity.0);
    let descriptor =
        EventDescriptor { id: 0, version: 0, channel: 0, level, opcode: 0, task: 0, keyword };
    let written = Content { payload: text, string_only: true, ..Content::default() };
    write::write_content(context, handle, descriptor, activity, written, true)
}
