//! Opens and closes targets on other devices.

use super::{
    format::set_format,
    requests::created,
    submit::{send_now, wait_for},
};
use crate::{
    execution::{
        routine::{At, Handle, routine},
        strings::units,
    },
    ground::{
        NtResult, NtStatus,
        abi::{TargetOpenParameters, UnicodeString},
        rule::Rule,
    },
    services::{
        kmdf::{
            device::wdm::{Owner, owner},
            file_opening::{close_file, create_file_by},
            io::{
                pass::deliver,
                send::{cancel_below, deliver_result},
            },
            lifetime,
            lifetime::create,
            state::{
                device::{Below, find_device, rest_of_name},
                file::FileData,
                framework::{BadHandle, Context, Entries},
                outgoing::{Buffer, Format},
                request::{Completion, IoRequest, RequestData, RequestKind},
                simulated::SimulatedDevices,
                target::{OpenedByName, RemovalCallbacks, State, TargetData},
            },
            synchronization::wait,
        },
        managers::create_parameters::CreateParameters,
        ntoskrnl::ob::namespace,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfIoTargetOpen", open),
    routine("WdfIoTargetClose", close),
    routine("WdfIoTargetCloseForQueryRemove", close_for_query_remove),
];

/// Bugchecks for the device's local I/O target, which only the framework opens and closes.
fn must_be_remote(context: &Context, target: u64) {
    if context.with::<TargetData, _>(target, |target| target.is_local) {
        context.stop_call(
            Rule::BadHandle,
            "for the device's local I/O target, which only the framework opens and closes",
        );
    }
}

fn open(
    context: &Context,
    target: Handle<TargetData>,
    parameters: At<TargetOpenParameters>,
) -> NtResult {
    must_be_remote(context, target.0);
    try_open(context, target.0, parameters.0)
}

/// The device on which a target is opened.
struct Opened {
    to: Below,
    file: Option<u64>,
    name: Option<OpenedByName>,
}

fn try_open(context: &Context, target: u64, parameters: u64) -> NtResult {
    /// `WDF_IO_TARGET_OPEN_TYPE`.
    const EXISTING: u32 = 1;
    const BY_NAME: u32 = 2;
    const REOPEN: u32 = 3;
    /// The structure's size up to KMDF 1.11, without the file name.
    const OLD: usize = size_of::<TargetOpenParameters>() - size_of::<UnicodeString>();
    let given: TargetOpenParameters =
        context.read_sized(parameters, &[OLD]).map_err(|_| NtStatus::INFO_LENGTH_MISMATCH)?;
    let (state, is_open, was_named) = context.with::<TargetData, _>(target, |target| {
        (target.state, target.to.is_some(), target.name.is_some())
    });
    let callbacks = [
        given.evt_io_target_query_remove, given.evt_io_target_remove_canceled,
        given.evt_io_target_remove_complete,
    ];
    let has_callbacks = callbacks.iter().any(|callback| *callback != 0);
    let name = given.target_device_name;
    let is_valid = match given.kind {
        EXISTING => {
            given.target_device_object != 0 && (given.target_file_object != 0 || !has_callbacks)
        }
        BY_NAME => name.buffer != 0 && name.length != 0 && name.maximum_length != 0,
        kind => kind == REOPEN,
    };
    if !is_valid {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if given.kind == REOPEN && !was_named {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    if is_open || state == State::Deleted {
        return Err(NtStatus::INVALID_DEVICE_STATE);
    }
    let opened = match given.kind {
        EXISTING => {
            Opened { to: existing(context, given.target_device_object), file: None, name: None }
        }
        BY_NAME => {
            let units = units(&context.read_bytes(name.buffer, usize::from(name.length)));
            let create = CreateParameters::new(
                given.desired_access,
                [given.create_disposition, given.create_options],
                given.file_attributes,
                given.share_access,
            );
            by_name(context, target, String::from_utf16_lossy(&units), create)?
        }
        _ => return reopen(context, target),
    };
    context.with::<TargetData, _>(target, |data| {
        data.callbacks = RemovalCallbacks {
            query_remove: given.evt_io_target_query_remove,
            remove_canceled: given.evt_io_target_remove_canceled,
            remove_complete: given.evt_io_target_remove_complete,
        };
    });
    begin(context, target, opened);
    Ok(())
}

/// Reopens a target by the name with which it was last opened.
pub fn reopen(context: &Context, target: u64) -> NtResult {
    let name = context.with::<TargetData, _>(target, |target| {
        let name = target.name.as_ref()?;
        Some((name.path.clone(), name.create))
    });
    let (path, create) = name.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    let opened = by_name(context, target, path, create)?;
    begin(context, target, opened);
    Ok(())
}

/// Starts a newly opened target.
fn begin(context: &Context, target: u64, opened: Opened) {
    context.with::<TargetData, _>(target, |data| {
        data.to = Some(opened.to);
        data.file = opened.file;
        data.name = opened.name;
        data.state = State::Started;
    });
    send_queued(context, target);
}

/// Returns the device to which a `DEVICE_OBJECT` belongs.
fn existing(context: &Context, object: u64) -> Below {
    match owner(context, object) {
        Some(Owner::Device(device)) => Below::Device(device),
        Some(Owner::Bus(_)) => Below::Bus,
        None => {
            let simulated = context.framework().part::<SimulatedDevices>().of_object(object);
            let number = simulated.unwrap_or_else(|| {
                context.stop_for_handle(&BadHandle {
                    handle: object,
                    expected: "DEVICE_OBJECT of the test",
                    found: None,
                })
            });
            Below::Simulated(number)
        }
    }
}

/// Opens the device at this path.
fn by_name(
    context: &Context,
    target: u64,
    path: String,
    create: CreateParameters,
) -> NtResult<Opened> {
    let simulated = {
        let mut framework = context.framework();
        let devices = framework.part::<SimulatedDevices>();
        let found = devices.names().find(|(_, name)| rest_of_name(&path, name).is_some());
        found.map(|(number, _)| number)
    };
    if let Some(number) = simulated {
        let status = open_simulated(context, target, number)?;
        if !status.is_success() {
            return Err(status);
        }
        return Ok(Opened {
            to: Below::Simulated(number),
            file: None,
            name: Some(OpenedByName { path, create }),
        });
    }
    let (device, rest) =
        find_device(context, &path).ok_or_else(|| namespace::status_of_absent(&path))?;
    let mut request = IoRequest::new(RequestKind::Create, Vec::new(), 0);
    request.is_from_driver = true;
    request.create = create;
    let file = create_file_by(context, device, &rest, &request)?;
    let device = context.with::<FileData, _>(file, |file| file.device());
    Ok(Opened {
        to: Below::Device(device),
        file: Some(file),
        name: Some(OpenedByName { path, create }),
    })
}

/// Sends the open request to a simulated device.
fn open_simulated(context: &Context, target: u64, number: u64) -> NtResult<NtStatus> {
    tell_simulated(context, target, number, RequestKind::Create)
}

fn tell_simulated(
    context: &Context,
    target: u64,
    number: u64,
    kind: RequestKind,
) -> NtResult<NtStatus> {
    let request = create(context, created(context), None, Some(target))?;
    let format = Format {
        kind,
        input: Buffer::default(),
        output: Buffer::default(),
        offset: 0,
        others: None,
        is_current_type: false,
    };
    set_format(context, request, format);
    context.with::<RequestData, _>(request, |request| request.outgoing.is_awaited = true);
    deliver(context, request, Below::Simulated(number), None);
    wait_for(context, request, None);
    let status = context.with::<RequestData, _>(request, |request| request.outgoing.status);
    lifetime::delete(context, request);
    Ok(status.unwrap_or(NtStatus::SUCCESS))
}

/// Sends the requests that wait in a target.
pub fn send_queued(context: &Context, target: u64) {
    loop {
        let next = context
            .framework()
            .get::<TargetData>(target)
            .ok()
            .filter(|target| target.state == State::Started)
            .and_then(|target| target.queued.pop_front());
        match next {
            Some(request) => send_now(context, request, target),
            None => return,
        }
    }
}

/// Fails the requests that wait in a target.
pub fn fail_queued(context: &Context, target: u64) {
    const WDF_DEVICE_REMOVED_NOT_SENT: NtStatus = NtStatus::from_bits(0xC020_0206);
    let queued =
        context.with::<TargetData, _>(target, |target| core::mem::take(&mut target.queued));
    for request in queued {
        deliver_result(context, request, Completion::failure(WDF_DEVICE_REMOVED_NOT_SENT));
    }
}

/// The requests to select among those that a target has sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The requests that were sent without ignoring the target's state.
    Regular,
    /// All requests.
    All,
}

fn sent(context: &Context, target: u64, which: Sent) -> Vec<u64> {
    let mut framework = context.framework();
    let mut sent = framework
        .get::<TargetData>(target)
        .map_or_else(|_| Vec::new(), |target| target.sent.clone());
    sent.retain(|request| {
        framework
            .get::<RequestData>(*request)
            .is_ok_and(|request| which == Sent::All || !request.outgoing.ignores_state)
    });
    sent
}

/// Cancels the requests that a target has sent.
pub fn cancel_sent(context: &Context, target: u64, which: Sent) {
    for request in sent(context, target, which) {
        cancel_below(context, request);
    }
}

/// Waits until the requests that a target has sent have ended.
pub fn wait_for_sent(context: &Context, target: u64, which: Sent) {
    let is_over =
        wait::wait_until(context, None, |context| sent(context, target, which).is_empty());
    if !is_over {
        context.stop_call(
            Rule::Deadlock,
            "and would wait forever for the requests that the target has sent",
        );
    }
}

/// Closes a target: cancels its requests, waits for them, and closes the file.
pub fn shut(context: &Context, target: u64, state: State) {
    context.with::<TargetData, _>(target, |target| target.state = state);
    fail_queued(context, target);
    cancel_sent(context, target, Sent::All);
    wait_for_sent(context, target, Sent::All);
    let (to, file, is_named) = context.with::<TargetData, _>(target, |target| {
        (target.to.take(), target.file.take(), target.name.is_some())
    });
    match (to, file) {
        (_, Some(file)) if context.framework().exists(file) => close_file(context, file),
        (Some(Below::Simulated(number)), None) if is_named => {
            for kind in [RequestKind::Cleanup, RequestKind::Close] {
                let _ = tell_simulated(context, target, number, kind);
            }
        }
        _ => {}
    }
}

fn close(context: &Context, target: Handle<TargetData>) {
    close_as(context, target.0, State::Closed);
}

/// Closes a target until the removal of its device has completed or failed.
fn close_for_query_remove(context: &Context, target: Handle<TargetData>) {
    close_as(context, target.0, State::ClosedForQueryRemove);
}

fn close_as(context: &Context, target: u64, state: State) {
    must_be_remote(context, target);
    let is_open = context.with::<TargetData, _>(target, |target| target.to.is_some());
    if is_open {
        shut(context, target, state);
    } else {
        context.with::<TargetData, _>(target, |target| target.state = State::Closed);
    }
}
