//! Files on devices that drivers open with `ZwCreateFile`, and the requests that drivers send with their
//! handles.

use std::collections::HashSet;

use super::{
    build::{self, Control},
    devices,
    irp::{self, FILE, call_driver},
    send, stacks,
};
use crate::{
    execution::{
        coroutine::wait_until,
        kinds::NtObject,
        routine::{At, Callback, Handle, Memory, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, FileObject, IoStatusBlock, Irp, IrpStack},
        rule::Rule,
    },
    services::{
        managers::create_parameters::CreateParameters,
        ntoskrnl::{
            context::{Context, Entries},
            ex::named_events,
            ke::{apcs, dispatcher},
            ob::handles,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwDeviceIoControlFile", control::<DEVICE_CONTROL>),
    routine("ZwFsControlFile", control::<FILE_SYSTEM_CONTROL>),
];

/// The major functions of the controls.
const FILE_SYSTEM_CONTROL: u8 = 13;
const DEVICE_CONTROL: u8 = 14;

/// The synchronous files with a request in progress.
#[derive(Default)]
struct Locked(HashSet<u64>);

/// Finds a device by its name or a link's. Returns it, and the rest of the name. Stops the run for a device
/// that drivers cannot open here.
pub fn find(context: &Context, name: &str) -> Option<(u64, String)> {
    let found = devices::find(context, name).or_else(|| context.nodes().find(name));
    if found.is_none() && context.devices().has_name(name) {
        context.stop_for_unprovided(&format!("for {name}, which is a KMDF or simulated device"));
    }
    found
}

/// Opens a file on the device with this name on behalf of a driver. Returns the file and the information of
/// the status block, or `None` if no device has the name.
pub fn open(
    context: &Context,
    name: &str,
    [access, share, disposition, options]: [u32; 4],
    attributes: u32,
) -> Option<NtResult<(u64, u64)>> {
    /// `SYNCHRONIZE`, and the generic rights that include it.
    const SYNCHRONIZE: u32 = 0xF010_0000;
    let (device, rest) = find(context, name)?;
    let create = CreateParameters::new(access, [disposition, options], attributes, share);
    if create.is_synchronous() && access & SYNCHRONIZE == 0 {
        return Some(Err(NtStatus::INVALID_PARAMETER));
    }
    let opener = send::Opener { create, mode: 0, by: context.call().return_address };
    Some(send::open_as(context, device, &rest, opener))
}

/// Sends the cleanup request when the last handle to a file is closed.
pub fn handle_closed(context: &Context, file: u64) {
    if handles::count(context, file) == 0 {
        send::clean_up(context, file);
    }
}

/// Returns the file on a device to which a handle refers, or `None` if it refers to something else.
pub fn opened(context: &Context, handle: Handle<NtObject>) -> Option<u64> {
    let object = handles::target(context, handle.0)?.object;
    send::is_open(context, object).then_some(object)
}

/// Stops the run for an APC routine. Most drivers pass none.
pub fn refuse_apc(context: &Context, routine: Callback) {
    if routine != Callback(0) {
        context.stop_for_unprovided("with an APC routine");
    }
}

/// A request of a driver, by the object of its event, which may be 0, and its status block.
#[derive(Clone, Copy)]
pub struct Sender {
    pub file: u64,
    pub event: u64,
    pub block: At<IoStatusBlock>,
}

/// Sends a request to a file's device. Waits for it if the file is open for synchronous requests. `build`
/// gets the device and the event that the request sets.
pub fn send(
    context: &Context,
    sender: Sender,
    build: impl FnOnce(At<DeviceObject>, u64) -> At<Irp>,
) -> NtResult<NtStatus> {
    let Sender { file, event, .. } = sender;
    let is_synchronous = send::is_synchronous(context, file);
    let lock = || context.state().get::<Locked>().0.insert(file);
    if is_synchronous && !wait_until(context, None, lock) {
        context.stop_call(
            Rule::RequestNotCompleted,
            "for a file that is open for synchronous requests, and would wait forever: the file's \
             other request does not end",
        );
    }
    let result = send_now(context, sender, is_synchronous, |device| {
        let own = file + send::FILE_EVENT;
        dispatcher::set_state(context, own, 0);
        build(device, if event == 0 { own } else { event })
    });
    context.state().get::<Locked>().0.remove(&file);
    result
}

fn send_now(
    context: &Context,
    Sender { file, event, .. }: Sender,
    is_synchronous: bool,
    build: impl FnOnce(At<DeviceObject>) -> At<Irp>,
) -> NtResult<NtStatus> {
    let device = send::device_of(context, file).ok_or(NtStatus::INVALID_HANDLE)?;
    if !devices::has_driver(context, device) {
        return Err(NtStatus::NO_SUCH_DEVICE);
    }
    let top = At::new(stacks::top_of(context, device));
    let request = build(top);
    if request.is_null() {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    context.update(request.0, |value: &mut Irp| value.tail[FILE] = file);
    irp::update_next(context, request.0, |location| location.file_object = file);
    let major = context.read::<IrpStack>(irp::next_location(context, request.0)).major_function;
    let number = build::watch(context, request, file, event);
    let status = apcs::in_region(context, is_synchronous, || call_driver(context, top, request));
    if let Some(ended) = build::take_result(context, number) {
        return if status == NtStatus::PENDING && !is_synchronous { Ok(status) } else { Ok(ended) };
    }
    if status != NtStatus::PENDING {
        context.stop(
            Rule::RequestNotCompleted,
            format!(
                "the driver returned {status} for {} and did not complete the request",
                irp::major_name(major)
            ),
        );
    }
    if !is_synchronous {
        build::forget_result(context, request, number);
        return Ok(status);
    }
    if !wait_until(context, None, || build::has_result(context, number)) {
        context.stop_call(
            Rule::RequestNotCompleted,
            "for a file that is open for synchronous requests, and would wait forever: no driver \
             completes the request",
        );
    }
    Ok(build::take_result(context, number).unwrap_or(NtStatus::SUCCESS))
}

/// Reads from or writes to a file on a device.
pub fn transfer(
    context: &Context,
    sender: Sender,
    major: u8,
    buffer: (u64, u32),
    offset: Option<u64>,
) -> NtResult<NtStatus> {
    // Only a file that is open for synchronous use has a current position.
    if offset.is_none() && !send::is_synchronous(context, sender.file) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    send(context, sender, |device, event| {
        let current = || context.read::<FileObject>(sender.file).current_byte_offset;
        let offset = offset.unwrap_or_else(|| current().cast_unsigned());
        let major = major.into();
        build::synchronous_request(context, major, device, buffer, offset, event, sender.block)
    })
}

/// Flushes a file on a device.
pub fn flush(context: &Context, sender: Sender) -> NtResult<NtStatus> {
    send(context, sender, |device, event| {
        let major = build::FLUSH.into();
        build::synchronous_request(context, major, device, (0, 0), 0, event, sender.block)
    })
}

/// Sends a control of a major function to the device of a file. Files of the folder and their volume have no
/// controls.
fn control<const MAJOR: u8>(
    context: &Context,
    handle: Handle<NtObject>,
    event: Handle<NtObject>,
    routine: Callback,
    _argument: Memory,
    block: At<IoStatusBlock>,
    code: u32,
    input: Memory,
    input_length: u32,
    output: Memory,
    output_length: u32,
) -> NtResult<NtStatus> {
    refuse_apc(context, routine);
    let event = named_events::reset_optional(context, event.0)?.unwrap_or(0);
    let Some(file) = opened(context, handle) else {
        let target = handles::target(context, handle.0).ok_or(NtStatus::INVALID_HANDLE)?;
        let is_file = target.type_name == "IoFileObjectType";
        return Err(if is_file {
            NtStatus::INVALID_DEVICE_REQUEST
        } else {
            NtStatus::OBJECT_TYPE_MISMATCH
        });
    };
    let (input, output) = ((input, input_length), (output, output_length));
    let control = Control { major: MAJOR, code, input, output };
    send(context, Sender { file, event, block }, |device, event| {
        build::control_request(context, device, &control, event, block)
    })
}
