//! Creates requests, and handles their completion and cancellation for their senders.

use super::dispatch;
use crate::{
    ground::{NtResult, NtStatus, arena::Block, memory},
    services::{
        kmdf::{
            lifetime::{create, tell},
            state::{
                device::{Below, DeviceData},
                file::FileData,
                framework::Context,
                outgoing::{Lower, Outgoing, Phase},
                request::{
                    Completion, EndedRequests, IoRequest, METHOD_BUFFERED, METHOD_IN_DIRECT,
                    METHOD_MASK, METHOD_NEITHER, RequestData, RequestKind, Stop,
                },
                simulated,
                text::TextData,
            },
        },
        managers::{create_parameters::CreateParameters, module_states::ModuleStates},
    },
};

/// The `WDF_DEVICE_IO_TYPE` of a device that receives the sender's own addresses.
const IO_NEITHER: u32 = 1;

/// Creates a file object on a device. `name` is the part of the path after the device.
pub fn make_file(context: &Context, device: u64, name: &str) -> NtResult<u64> {
    let config = context.with::<DeviceData, _>(device, |device| device.file_config());
    let attributes = config.and_then(|(_, attributes)| attributes);
    let data = FileData {
        device,
        name: TextData::new(name).ok_or(NtStatus::INVALID_PARAMETER)?,
        name_structure: None,
        closing: false,
        object: None,
        process: context.identity().process,
        create: CreateParameters::OF_PROCESS,
        is_opened: false,
        abandoned: false,
        below: Below::Bus,
    };
    create(context, data, attributes.as_ref(), Some(device))
}

/// Creates a request object with its system buffer.
pub fn make(
    context: &Context,
    device: u64,
    file: Option<u64>,
    request: &IoRequest,
) -> NtResult<u64> {
    let io_type = context.with::<DeviceData, _>(device, |device| device.init.io_type);
    let method = match request.kind {
        RequestKind::DeviceControl { code } | RequestKind::InternalDeviceControl { code } => {
            code & METHOD_MASK
        }
        RequestKind::Read | RequestKind::Write if io_type == IO_NEITHER => METHOD_NEITHER,
        _ => METHOD_BUFFERED,
    };
    let mapped = (method != METHOD_BUFFERED).then(|| Block::zeroed(request.output_length));
    if method == METHOD_IN_DIRECT
        && let Some(mapped) = &mapped
    {
        let contents = &request.output_contents;
        let length = contents.len().min(request.output_length);
        memory::write_bytes(mapped.address(), contents.get(..length).unwrap_or_default())
            .map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    }
    let shared = if mapped.is_some() {
        request.input.len()
    } else {
        request.input.len().max(request.output_length)
    };
    let buffer = Block::zeroed(shared);
    memory::write_bytes(buffer.address(), &request.input)
        .map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    let attributes = context.with::<DeviceData, _>(device, |device| device.request_attributes());
    let data = RequestData {
        kind: request.kind,
        offset: request.offset,
        others: request.others,
        create: request.create,
        is_from_user: !request.is_from_driver,
        thread: context.host().thread_object(context.thread()),
        addresses: request.addresses.filter(|_| method == METHOD_NEITHER),
        is_neither: method == METHOD_NEITHER,
        is_created: false,
        is_in_caller_context: false,
        upper: None,
        outgoing: Outgoing::default(),
        parts: ModuleStates::default(),
        process: context.identity().process,
        queue: None,
        file,
        buffer,
        mapped,
        input_length: request.input.len(),
        output_length: request.output_length,
        information: 0,
        cancel_routine: 0,
        cancelled: false,
        cancellation_due: false,
        cancellation_delivered: false,
        presented: false,
        stop: Stop::None,
    };
    create(context, data, attributes.as_ref(), Some(device))
}

/// Returns the completion of a completed request. Only the first call returns it.
pub fn outcome(context: &Context, request: u64) -> Option<Completion> {
    context.framework().part::<EndedRequests>().0.get_mut(&request)?.completion.take()
}

/// Cancels a request on behalf of its sender (`CancelIoEx`, `IoCancelIrp`). A queued request ends.
/// If the driver made the request cancelable, its cancel routine is called. If the driver sent the
/// request to a lower device, the lower request is canceled. Returns whether a driver was asked to
/// cancel the request.
pub fn cancel(context: &Context, handle: u64) -> bool {
    let queue = {
        let mut framework = context.framework();
        if framework.part::<EndedRequests>().0.contains_key(&handle) {
            return false;
        }
        let Ok(request) = framework.get::<RequestData>(handle) else {
            return false;
        };
        if core::mem::replace(&mut request.cancelled, true) {
            return false;
        }
        request.queue
    };
    if queue.is_some_and(|queue| dispatch::cancel_waiting(context, queue, handle)) {
        return true;
    }
    cancel_below(context, handle) || dispatch::call_cancel_routine(context, handle)
}

/// Cancels a request that a driver sent to a target. Returns whether a lower driver was asked to
/// cancel the request.
pub fn cancel_below(context: &Context, handle: u64) -> bool {
    let phase = context.framework().get::<RequestData>(handle).map_or(Phase::Idle, |request| {
        if request.outgoing.is_under_way() {
            request.outgoing.is_cancelled = true;
        }
        request.outgoing.phase
    });
    match phase {
        Phase::Sent(Lower::Request(lower)) => cancel(context, lower),
        Phase::Sent(Lower::Simulated(device, number)) => {
            let (was_asked, upper) = simulated::cancel(context, device, number);
            if let Some(upper) = upper {
                deliver_result(context, upper, Completion::failure(NtStatus::CANCELLED));
            }
            was_asked
        }
        Phase::Queued => {
            deliver_result(context, handle, Completion::failure(NtStatus::CANCELLED));
            true
        }
        Phase::Idle | Phase::Sent(Lower::Nobody) => false,
    }
}

/// Delivers a lower device's result to the request that was sent.
pub fn deliver_result(context: &Context, upper: u64, result: Completion) {
    let is_there = context
        .framework()
        .get::<RequestData>(upper)
        .map(|request| request.outgoing.result = Some(result))
        .is_ok();
    if is_there {
        tell(context, upper, |data| data.request_ended());
    }
}
