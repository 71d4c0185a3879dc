//! Requests that drivers build for other drivers, and the I/O manager's work on their completion.

use std::collections::HashMap;

use super::{
    devices,
    devices::flag,
    irp,
    irp::{Ended, THREAD, call_driver},
};
use crate::{
    execution::{
        coroutine::wait_until,
        routine::{At, Callback, Memory, routine},
    },
    ground::{
        NtStatus,
        abi::{DeviceObject, IoStatusBlock, Irp, IrpStack},
        irql::Irql,
        opaque::KernelEvent,
        rule::Rule,
    },
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ke::{
                dispatcher::set_state,
                header::{header_of, kind},
                thread_objects,
                threads::queue_body,
            },
            live_irps,
            mm::mdl,
            ob::handles,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoBuildDeviceIoControlRequest", build_control),
    routine("IoBuildSynchronousFsdRequest", build_synchronous),
    routine("IoBuildAsynchronousFsdRequest", build_asynchronous),
    routine("IoForwardIrpSynchronously", forward_and_wait),
    routine("IoSetCompletionRoutineEx", set_completion_routine),
];

/// The major functions that these routines support.
pub const READ: u8 = 3;
pub const WRITE: u8 = 4;
pub const FLUSH: u8 = 9;
const DEVICE_CONTROL: u8 = 14;
const INTERNAL_CONTROL: u8 = 15;
const SHUTDOWN: u8 = 16;
const PNP: u8 = 27;

/// `IRP_BUFFERED_IO`, `IRP_DEALLOCATE_BUFFER` and `IRP_INPUT_OPERATION`.
const BUFFERED: u32 = 0x10;
const DEALLOCATE: u32 = 0x20;
const INPUT: u32 = 0x40;

/// The tag of system buffers.
const TAG: Tag = Tag(u32::from_le_bytes(*b"Io  "));

/// The data of a request that the I/O manager uses on completion.
#[derive(Clone, Copy, Default)]
struct Built {
    /// The system buffer, or 0.
    system: u64,
    /// The address and size of the buffer that receives the output.
    output: Option<(u64, u64)>,
    mdl: u64,
    event: u64,
    status: u64,
    /// The number under which the request's result is kept, or 0.
    number: u64,
    /// The objects to which the request holds references: its file and its event, or 0.
    held: [u64; 2],
}

/// The requests that the I/O manager completes, by address.
#[derive(Default)]
struct Requests(HashMap<u64, Built>);

/// The results of the requests that [`watch`] was called for, by number.
#[derive(Default)]
struct Results {
    issued: u64,
    ended: HashMap<u64, NtStatus>,
}

/// Keeps the result of a request until [`take_result`] or [`forget_result`], and references to its file and
/// event until it ends. Returns the number of the result.
pub fn watch(context: &Context, request: At<Irp>, file: u64, event: u64) -> u64 {
    let held = [file, event];
    for object in held.into_iter().filter(|object| *object != 0) {
        handles::reference(context, At::new(object));
    }
    let mut state = context.state();
    let results = state.get::<Results>();
    results.issued += 1;
    let number = results.issued;
    if let Some(built) = state.get::<Requests>().0.get_mut(&request.0) {
        built.number = number;
        built.held = held;
    }
    number
}

/// No longer keeps the result of a request.
pub fn forget_result(context: &Context, request: At<Irp>, number: u64) {
    let mut state = context.state();
    state.get::<Results>().ended.remove(&number);
    let built = state.get::<Requests>().0.get_mut(&request.0);
    if let Some(built) = built.filter(|built| built.number == number) {
        built.number = 0;
    }
}

/// Releases the objects of a request that has ended. The last release of a file sends a request to its
/// driver, which a thread does if this thread cannot.
fn release(context: &Context, held: [u64; 2]) {
    let body = move |context: &Context| {
        for object in held.into_iter().filter(|object| *object != 0) {
            handles::dereference(context, At::new(object));
        }
    };
    if held == [0; 2] {
        return;
    }
    if context.irql() == Irql::PASSIVE_LEVEL {
        body(context);
    } else {
        queue_body(context, 0, body);
    }
}

/// Returns and removes the status of a request, if the request is complete.
pub fn take_result(context: &Context, number: u64) -> Option<NtStatus> {
    context.with_state(|results: &mut Results| results.ended.remove(&number))
}

/// Returns whether a request is complete and its result is kept.
pub fn has_result(context: &Context, number: u64) -> bool {
    context.with_state(|results: &mut Results| results.ended.contains_key(&number))
}

fn allocate_buffer(context: &Context, from: u64, input: u64, size: u64) -> Option<u64> {
    let buffer = context.allocate(usize::try_from(size).ok()?, TAG, false)?;
    if input > 0 {
        let bytes = context.bytes(from, input);
        context.write_bytes(buffer, &bytes);
    }
    Some(buffer)
}

/// Allocates a request for a device, and fills in its driver's stack location.
fn allocate(
    context: &Context,
    device: u64,
    ended: Option<Ended>,
    major: u8,
    parameters: [u64; 4],
) -> u64 {
    devices::must_be_device(context, device);
    let stack_size = context.read::<DeviceObject>(device).stack_size;
    let request = irp::create(context, stack_size, ended);
    if request == 0 {
        return 0;
    }
    let thread = thread_objects::current(context);
    irp::store(context, request, irp::tail(THREAD), &thread.0);
    irp::update_next(context, request, |location| {
        location.major_function = major;
        location.parameters = parameters;
    });
    request
}

/// Bugchecks if an event was not initialized.
fn must_be_event(context: &Context, event: u64) {
    if event != 0 {
        let kinds = &[kind::NOTIFICATION_EVENT, kind::SYNCHRONIZATION_EVENT];
        header_of(context, event, kinds);
    }
}

/// Builds a device control request. On completion, the I/O manager copies the output, stores the status,
/// signals the event and frees the request.
fn build_control(
    context: &Context,
    code: u32,
    device: At<DeviceObject>,
    input: Memory,
    input_length: u32,
    output: Memory,
    output_length: u32,
    is_internal: bool,
    event: At<KernelEvent>,
    status: At<IoStatusBlock>,
) -> At<Irp> {
    must_be_event(context, event.0);
    let major = if is_internal { INTERNAL_CONTROL } else { DEVICE_CONTROL };
    let control =
        Control { major, code, input: (input, input_length), output: (output, output_length) };
    control_request(context, device, &control, event.0, status)
}

/// A device or file system control, with the addresses and lengths of its buffers.
pub struct Control {
    pub major: u8,
    pub code: u32,
    pub input: (Memory, u32),
    pub output: (Memory, u32),
}

/// Builds the request for a control, or returns null if memory is exhausted.
pub fn control_request(
    context: &Context,
    device: At<DeviceObject>,
    control: &Control,
    event: u64,
    status: At<IoStatusBlock>,
) -> At<Irp> {
    const METHOD_BUFFERED: u32 = 0;
    const METHOD_NEITHER: u32 = 3;
    let Control { major, code, input: (input, input_length), output: (output, output_length) } =
        *control;
    let (input_size, output_size) = (u64::from(input_length), u64::from(output_length));
    let method = code & 3;
    let third = if method == METHOD_NEITHER { input.0 } else { 0 };
    let parameters = [output_size, input_size, u64::from(code), third];
    let request = allocate(context, device.0, Some(ended), major, parameters);
    if request == 0 {
        return At::NULL;
    }
    let mut built = Built { event, status: status.0, ..Built::default() };
    let mut value: Irp = context.read(request);
    let buffer = |size| allocate_buffer(context, input.0, input_size, size);
    let is_made = match method {
        METHOD_BUFFERED => {
            let size = input_size.max(output_size);
            built.output = Some((output.0, output_size)).filter(|(_, size)| *size > 0);
            value.flags = BUFFERED | DEALLOCATE | if output_size > 0 { INPUT } else { 0 };
            value.user_buffer = output.0;
            if size > 0 {
                built.system = buffer(size).unwrap_or(0);
            }
            size == 0 || built.system != 0
        }
        METHOD_NEITHER => {
            value.user_buffer = output.0;
            true
        }
        _ => {
            if input_size > 0 {
                built.system = buffer(input_size).unwrap_or(0);
            }
            if output_size > 0 {
                let length = usize::try_from(output_size).unwrap_or(usize::MAX);
                built.mdl = mdl::locked(context, output.0, length);
            }
            value.flags = BUFFERED | DEALLOCATE;
            input_size == 0 || built.system != 0
        }
    };
    if !is_made {
        irp::discard(context, request);
        return At::NULL;
    }
    value.associated_irp = built.system;
    value.mdl_address = built.mdl;
    value.user_event = event;
    value.user_iosb = status.0;
    context.write(request, &value);
    context.state().get::<Requests>().0.insert(request, built);
    At::new(request)
}

/// Sets up the buffer of a read or write according to the device's flags. Returns the system buffer
/// and the memory descriptor list, or `None` if memory is exhausted.
fn place(
    context: &Context,
    request: u64,
    device: u64,
    major: u8,
    (buffer, length): (u64, u32),
) -> Option<Built> {
    let flags = context.read::<DeviceObject>(device).flags;
    let size = u64::from(length);
    let mut value: Irp = context.read(request);
    let mut built = Built::default();
    if flags & flag::BUFFERED_IO != 0 && size > 0 {
        let input = if major == WRITE { size } else { 0 };
        built.system = allocate_buffer(context, buffer, input, size)?;
        value.associated_irp = built.system;
        value.flags = BUFFERED | DEALLOCATE;
        if major == READ {
            value.flags |= INPUT;
            value.user_buffer = buffer;
            built.output = Some((buffer, size));
        }
    } else if flags & flag::DIRECT_IO != 0 && size > 0 {
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        built.mdl = mdl::locked(context, buffer, length);
        value.mdl_address = built.mdl;
    } else {
        value.user_buffer = buffer;
    }
    context.write(request, &value);
    Some(built)
}

/// Builds a request of a kind that file systems receive. Returns the request, and the data that the
/// I/O manager uses on its completion.
fn build(
    context: &Context,
    major: u32,
    device: u64,
    buffer: (u64, u32),
    offset: u64,
    ended: Option<Ended>,
) -> Option<(u64, Built)> {
    let major = u8::try_from(major).unwrap_or(u8::MAX);
    let has_buffer = matches!(major, READ | WRITE);
    if !has_buffer && !matches!(major, FLUSH | SHUTDOWN | PNP) {
        context.stop_for_misuse(&format!("for {}, which it cannot build", irp::major_name(major)));
    }
    let parameters = if has_buffer { [u64::from(buffer.1), 0, offset, 0] } else { [0; 4] };
    let request = allocate(context, device, ended, major, parameters);
    if request == 0 {
        return None;
    }
    if !has_buffer {
        return Some((request, Built::default()));
    }
    let built = place(context, request, device, major, buffer);
    if built.is_none() {
        irp::discard(context, request);
    }
    Some((request, built?))
}

/// Builds a request that the I/O manager frees on completion.
fn build_synchronous(
    context: &Context,
    major: u32,
    device: At<DeviceObject>,
    buffer: Memory,
    length: u32,
    offset: At<i64>,
    event: At<KernelEvent>,
    status: At<IoStatusBlock>,
) -> At<Irp> {
    must_be_event(context, event.0);
    let offset = offset_at(context, offset);
    synchronous_request(context, major, device, (buffer.0, length), offset, event.0, status)
}

/// Returns the offset at an address, or 0.
fn offset_at(context: &Context, address: At<i64>) -> u64 {
    if address.is_null() { 0 } else { address.read(context).cast_unsigned() }
}

/// Builds a read, a write, or a request without a buffer, which the I/O manager frees on completion, or
/// returns null if memory is exhausted.
pub fn synchronous_request(
    context: &Context,
    major: u32,
    device: At<DeviceObject>,
    buffer: (u64, u32),
    offset: u64,
    event: u64,
    status: At<IoStatusBlock>,
) -> At<Irp> {
    let Some((request, built)) = build(context, major, device.0, buffer, offset, Some(ended))
    else {
        return At::NULL;
    };
    context.update(request, |value: &mut Irp| {
        value.user_event = event;
        value.user_iosb = status.0;
    });
    let built = Built { event, status: status.0, ..built };
    context.state().get::<Requests>().0.insert(request, built);
    At::new(request)
}

/// Builds a request that the driver frees in a completion routine, together with the system buffer
/// and the memory descriptor list.
fn build_asynchronous(
    context: &Context,
    major: u32,
    device: At<DeviceObject>,
    buffer: Memory,
    length: u32,
    offset: At<i64>,
    status: At<IoStatusBlock>,
) -> At<Irp> {
    let buffer = (buffer.0, length);
    let offset = offset_at(context, offset);
    let Some((request, built)) = build(context, major, device.0, buffer, offset, None) else {
        return At::NULL;
    };
    context.update(request, |value: &mut Irp| value.user_iosb = status.0);
    context.state().get::<Requests>().0.insert(request, Built { status: status.0, ..built });
    live_irps::end_by(context, request, ended);
    At::new(request)
}

/// Finishes a completed request. If the request failed immediately, only the call's result reports
/// the failure.
fn ended(context: &Context, request: u64) {
    let Some(built) = context.with_state(|Requests(all)| all.remove(&request)) else {
        return;
    };
    let value: Irp = context.read(request);
    let block = value.io_status;
    let is_error = block.status >> 30 == 3;
    if built.number != 0 {
        let status = NtStatus::from_bits(block.status);
        context.with_state(|results: &mut Results| results.ended.insert(built.number, status));
    }
    if let Some((output, room)) = built.output
        && !is_error
        && built.system != 0
    {
        if block.information > room {
            context.stop(
                Rule::RequestMisused,
                format!(
                    "a driver completed a request with {} bytes, but its output buffer is only \
                     {room} bytes long",
                    block.information
                ),
            );
        }
        let bytes = context.bytes(built.system, block.information);
        context.write_bytes(output, &bytes);
    }
    if built.system != 0 {
        context.free_own(built.system);
    }
    if built.mdl != 0 {
        mdl::discard(context, built.mdl);
    }
    if is_error && value.pending_returned == 0 {
        release(context, built.held);
        return;
    }
    if built.status != 0 {
        let block = IoStatusBlock {
            status: block.status,
            information: block.information,
            ..Default::default()
        };
        context.write(built.status, &block);
    }
    if built.event != 0 {
        set_state(context, built.event, 1);
    }
    release(context, built.held);
}

/// The requests for which drivers wait, by the address of the stack location at which each returns,
/// because several drivers in a stack can wait for the same request. The value is set to `true`
/// when the request returns.
#[derive(Default)]
struct Back(HashMap<u64, bool>);

/// Passes a request to the next lower driver, and waits until the request returns. Returns `false`
/// if the request has no stack location for that driver.
fn forward_and_wait(context: &Context, device: At<DeviceObject>, request: At<Irp>) -> bool {
    devices::must_be_device(context, device.0);
    let value = request.read(context);
    if value.current_location <= 1 {
        return false;
    }
    let current: IrpStack = context.read(value.tail[irp::STACK]);
    let next = irp::next_location(context, request.0);
    let copied = IrpStack { control: 0, completion_routine: 0, context: 0, ..current };
    context.write(next, &copied);
    irp::keep(context, next, came_back);
    context.state().get::<Back>().0.insert(next, false);
    call_driver(context, device, request);
    let is_back = || context.state().get::<Back>().0.get(&next) == Some(&true);
    if !wait_until(context, None, is_back) {
        context.stop_call(
            Rule::RequestNotCompleted,
            "and would wait forever: no lower driver completes the request",
        );
    }
    context.state().get::<Back>().0.remove(&next);
    true
}

/// Records that a request has returned at a stack location.
fn came_back(context: &Context, location: u64) {
    context.state().get::<Back>().0.insert(location, true);
}

/// Sets the routine to call when the lower drivers have completed a request.
fn set_completion_routine(
    context: &Context,
    device: At<DeviceObject>,
    request: At<Irp>,
    routine: Callback,
    completion_context: Memory,
    on_success: bool,
    on_error: bool,
    on_cancel: bool,
) -> NtStatus {
    devices::must_be_device(context, device.0);
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    irp::update_next(context, request.0, |location| {
        location.completion_routine = routine.0;
        location.context = completion_context.0;
        location.control = bit(on_success, irp::control::INVOKE_ON_SUCCESS)
            | bit(on_error, irp::control::INVOKE_ON_ERROR)
            | bit(on_cancel, irp::control::INVOKE_ON_CANCEL);
    });
    NtStatus::SUCCESS
}
