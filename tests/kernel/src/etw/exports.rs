//! The Etw* routines of ntoskrnl.exe.

use super::{
    Guid, composite,
    runtime::{self, HandleError},
    write::{self, WriteCall},
};
use crate::{
    abi::EventDescriptor,
    gateway::Export,
    irql::Irql,
    memory,
    ntoskrnl::low_half,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// The exports, with the IRQL ceilings of wdm.h. `EtwActivityIdControl`'s
/// depends on its control code, and is checked there.
pub fn exports() -> Vec<Export> {
    const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
    const HIGH: Irql = Irql::HIGH_LEVEL;
    vec![
        ("EtwRegister", PASSIVE, etw_register as *const () as u64),
        ("EtwUnregister", PASSIVE, etw_unregister as *const () as u64),
        (
            "EtwSetInformation",
            PASSIVE,
            etw_set_information as *const () as u64,
        ),
        (
            "EtwEventEnabled",
            HIGH,
            etw_event_enabled as *const () as u64,
        ),
        (
            "EtwProviderEnabled",
            HIGH,
            etw_provider_enabled as *const () as u64,
        ),
        (
            "EtwActivityIdControl",
            HIGH,
            etw_activity_id_control as *const () as u64,
        ),
        ("EtwWrite", HIGH, etw_write as *const () as u64),
        (
            "EtwWriteTransfer",
            HIGH,
            etw_write_transfer as *const () as u64,
        ),
        ("EtwWriteEx", HIGH, etw_write_ex as *const () as u64),
        ("EtwWriteString", HIGH, etw_write_string as *const () as u64),
    ]
}

extern "win64" fn etw_register(provider: u64, callback: u64, context: u64, slot: u64) -> u64 {
    let thread = thread::current();
    if provider == 0 || slot == 0 {
        thread.warn(Rule::RegisterPointer, || {
            "without a place for the provider's id, or for the handle".to_owned()
        });
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    thread.check_address("a provider's id", provider, 16);
    thread.check_address("the place for a handle", slot, 8);
    let provider = Guid::from_bytes(thread.read(provider));
    // A slot that cannot be written is found out before anything is made.
    let before: u64 = thread.read(slot);
    if let Some(status) = thread.shared().faults.take("EtwRegister") {
        thread.shared().etw().left_by_failures.insert(before);
        return status.to_register();
    }
    if before != 0 {
        thread.warn(Rule::HandleOverwritten, || {
            format!("with a place for the handle that holds 0x{before:016X}, which is lost")
        });
    }
    let handle = runtime::register(&thread, provider, callback, context);
    thread.write(slot, &handle);
    NtStatus::SUCCESS.to_register()
}

extern "win64" fn etw_unregister(handle: u64) -> u64 {
    let thread = thread::current();
    thread.note_wait_for_callbacks();
    if let Some(status) = thread.shared().faults.take("EtwUnregister") {
        return status.to_register();
    }
    runtime::unregister(&thread, handle).to_register()
}

extern "win64" fn etw_set_information(
    handle: u64,
    class: u64,
    information: u64,
    length: u64,
) -> u64 {
    let thread = thread::current();
    if let Some(status) = thread.shared().faults.take("EtwSetInformation") {
        return status.to_register();
    }
    set_information(
        &thread,
        handle,
        low_half(class),
        information,
        low_half(length),
    )
    .to_register()
}

fn set_information(
    thread: &Thread,
    handle: u64,
    class: u32,
    information: u64,
    length: u32,
) -> NtStatus {
    /// `EVENT_INFO_CLASS`.
    const BINARY_TRACK_INFO: u32 = 0;
    const SET_TRAITS: u32 = 2;
    const USE_DESCRIPTOR_TYPE: u32 = 3;
    thread.note_wait_for_callbacks();
    let known = thread.shared().etw().registration(handle).err();
    if let Some(error) = known {
        return runtime::refuse(thread, handle, &error);
    }
    if information == 0 && length != 0 {
        return NtStatus::INVALID_PARAMETER;
    }
    thread.check_address("information", information, u64::from(length));
    let bytes = match memory::read_bytes(information, length as usize) {
        Ok(bytes) => bytes,
        Err(error) => thread.stop_for_address(error),
    };
    match class {
        BINARY_TRACK_INFO => NtStatus::SUCCESS,
        SET_TRAITS => runtime::set_traits(thread, handle, bytes),
        USE_DESCRIPTOR_TYPE => {
            if let [on @ (0 | 1)] = *bytes {
                if let Ok(registration) = thread.shared().etw().registration(handle) {
                    registration.honours_types = on == 1;
                }
                NtStatus::SUCCESS
            } else {
                thread.warn(Rule::DescriptorTypeSwitch, || {
                    format!("to switch descriptor types with the bytes {bytes:02x?}")
                });
                NtStatus::INVALID_PARAMETER
            }
        }
        _ => {
            thread.warn(Rule::InformationClass, || {
                format!("with the class {class}, which does not exist")
            });
            NtStatus::INVALID_DEVICE_REQUEST
        }
    }
}

/// Whether any session wants the event (ETW-1.3.26: never false for one that would
/// be recorded).
fn is_enabled(thread: &Thread, handle: u64, wants: impl Fn(&composite::Enablement) -> bool) -> u64 {
    if let Some(route) = thread.shared().routes.get(handle) {
        return u64::from(route.reaches.iter().any(|reach| wants(&reach.enablement)));
    }
    let error = thread.shared().etw().registration(handle).err();
    if let Some(error @ (HandleError::Released | HandleError::NeverIssued)) = error {
        runtime::refuse(thread, handle, &error);
    }
    0
}

extern "win64" fn etw_event_enabled(handle: u64, descriptor: u64) -> u64 {
    let thread = thread::current();
    let event: EventDescriptor = thread.read(descriptor);
    is_enabled(&thread, handle, |one| one.wants(event.level, event.keyword))
}

extern "win64" fn etw_provider_enabled(handle: u64, level: u64, keyword: u64) -> u64 {
    let level = (level & 0xFF) as u8;
    is_enabled(&thread::current(), handle, |one| one.wants(level, keyword))
}

extern "win64" fn etw_write(
    handle: u64,
    descriptor: u64,
    activity: u64,
    count: u64,
    data: u64,
) -> u64 {
    let thread = thread::current();
    let call = write_call(&thread, handle, descriptor, (activity, 0), (count, data));
    write::write(&thread, &call).to_register()
}

extern "win64" fn etw_write_transfer(
    handle: u64,
    descriptor: u64,
    activity: u64,
    related: u64,
    count: u64,
    data: u64,
) -> u64 {
    let thread = thread::current();
    let ids = (activity, related);
    let call = write_call(&thread, handle, descriptor, ids, (count, data));
    write::write(&thread, &call).to_register()
}

extern "win64" fn etw_write_ex(
    handle: u64,
    descriptor: u64,
    filter: u64,
    flags: u64,
    activity: u64,
    related: u64,
    count: u64,
    data: u64,
) -> u64 {
    let thread = thread::current();
    if let Some(status) = thread.shared().faults.take("EtwWriteEx") {
        return status.to_register();
    }
    let call = WriteCall {
        filter,
        flags: low_half(flags),
        ..write_call(
            &thread,
            handle,
            descriptor,
            (activity, related),
            (count, data),
        )
    };
    write::write(&thread, &call).to_register()
}

/// The arguments of a write without flags and filter; ids and data by their addresses.
fn write_call(
    thread: &Thread,
    handle: u64,
    descriptor: u64,
    (activity, related): (u64, u64),
    (count, data): (u64, u64),
) -> WriteCall {
    WriteCall {
        handle,
        descriptor,
        activity: guid(thread, "an activity id", activity),
        related: guid(thread, "a related activity id", related),
        count: low_half(count),
        data,
        filter: 0,
        flags: 0,
    }
}

/// The id at an address, if there is one.
fn guid(thread: &Thread, what: &str, address: u64) -> Option<Guid> {
    thread.check_address(what, address, if address == 0 { 0 } else { 16 });
    (address != 0).then(|| Guid::from_bytes(thread.read(address)))
}

extern "win64" fn etw_write_string(
    handle: u64,
    level: u64,
    keyword: u64,
    activity: u64,
    string: u64,
) -> u64 {
    let thread = thread::current();
    let mut text = Vec::new();
    loop {
        let unit: u16 = thread.read(string + text.len() as u64);
        text.extend_from_slice(&unit.to_le_bytes());
        if unit == 0 {
            break;
        }
        if text.len() > usize::from(u16::MAX) {
            return NtStatus::INTEGER_OVERFLOW.to_register();
        }
    }
    let activity = guid(&thread, "an activity id", activity);
    let descriptor = EventDescriptor {
        id: 0,
        version: 0,
        channel: 0,
        level: (level & 0xFF) as u8,
        opcode: 0,
        task: 0,
        keyword,
    };
    write::write_string(&thread, handle, descriptor, activity, text).to_register()
}

extern "win64" fn etw_activity_id_control(code: u64, activity: u64) -> u64 {
    let thread = thread::current();
    if let Some(status) = thread.shared().faults.take("EtwActivityIdControl") {
        return status.to_register();
    }
    activity_id_control(&thread, low_half(code), activity).to_register()
}

/// Reads, sets or creates activity ids (ETW-6.5.3). All but creating touch the
/// thread's own, which a routine at `DISPATCH_LEVEL` has no business with.
fn activity_id_control(thread: &Thread, code: u32, address: u64) -> NtStatus {
    const GET: u32 = 1;
    const SET: u32 = 2;
    const CREATE: u32 = 3;
    const GET_SET: u32 = 4;
    const CREATE_SET: u32 = 5;
    let call = thread.call();
    if !(GET..=CREATE_SET).contains(&code) {
        thread.warn(Rule::ActivityCode, || {
            format!("with the code {code}, which does not exist")
        });
        return NtStatus::INVALID_PARAMETER;
    }
    if address == 0 {
        thread.warn(Rule::ActivityPointer, || {
            "without an activity id".to_owned()
        });
        return NtStatus::INVALID_PARAMETER;
    }
    if code != CREATE && call.irql > Irql::APC_LEVEL {
        thread.stop(
            Rule::ActivityIrql,
            format!(
                "EtwActivityIdControl was called with code {code} at {} from {}; the highest IRQL \
                 for that code is {}",
                call.irql,
                thread.shared().place(call.return_address),
                Irql::APC_LEVEL
            ),
        );
    }
    thread.check_address("an activity id", address, 16);
    let given = Guid::from_bytes(thread.read(address));
    let this = thread.identity().thread;
    let result = {
        let activities = &thread.shared().activities;
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
            thread.note_replaced_activity((code == CREATE_SET).then_some(present));
        }
        result
    };
    if let Some(result) = result {
        thread.write(address, &result.to_bytes());
    }
    NtStatus::SUCCESS
}
