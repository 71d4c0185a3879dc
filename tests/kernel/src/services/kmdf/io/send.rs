//! The sending of requests from a device's user to a queue.

use super::{
    super::{
        object::create,
        state::{
            device::{DeviceData, queue_of},
            file::FileData,
            framework::Context,
            request::{
                Completion, EndedRequests, IoRequest, METHOD_BUFFERED, METHOD_MASK, RequestData,
                RequestKind, Stop,
            },
        },
    },
    dispatch,
    ending::{call_cancel_routine, end},
};
use crate::ground::{arena::Block, memory, status::NtStatus};

/// Sends a request to an open file's device and returns its handle. Fails for a file that is gone with
/// its device, which no fault of the driver is.
pub fn submit(context: &Context, file: u64, request: &IoRequest) -> Result<u64, NtStatus> {
    let device = context
        .framework()
        .get::<FileData>(file)
        .map(|file| file.device);
    let device = device.map_err(|_| NtStatus::NO_SUCH_DEVICE)?;
    let handle = make(context, device, Some(file), request)?;
    send(context, device, handle, request.kind);
    Ok(handle)
}

/// Creates a request object with its system buffer.
pub fn make(
    context: &Context,
    device: u64,
    file: Option<u64>,
    request: &IoRequest,
) -> Result<u64, NtStatus> {
    let method = match request.kind {
        RequestKind::DeviceControl { code } => code & METHOD_MASK,
        _ => METHOD_BUFFERED,
    };
    let mapped = (method != METHOD_BUFFERED).then(|| Block::zeroed(request.output_length));
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
        queue: None,
        file,
        buffer,
        mapped,
        input_length: request.input.len(),
        output_length: request.output_length,
        information: 0,
        cancel_routine: 0,
        cancelled: false,
        cancellation_delivered: false,
        presented: false,
        stop: Stop::None,
    };
    create(context, data, attributes.as_ref(), Some(device))
}

/// Puts a request in the queue for its kind, or fails it if there is none.
pub fn send(context: &Context, device: u64, handle: u64, kind: RequestKind) {
    if let Some(queue) = queue_of(context, device, kind) {
        context.with::<RequestData, _>(handle, |request| request.queue = Some(queue));
        dispatch::enqueue(context, queue, handle);
    } else {
        end(context, handle, NtStatus::INVALID_DEVICE_REQUEST, Some(0));
    }
}

/// Returns the completion of a completed request, at the first call only.
pub fn outcome(context: &Context, request: u64) -> Option<Completion> {
    context
        .framework()
        .part::<EndedRequests>()
        .0
        .get_mut(&request)?
        .completion
        .take()
}

/// Cancels a request for its sender (`CancelIoEx`). A request in a queue ends; for one that the
/// driver made cancelable, the driver's cancel routine is called.
pub fn cancel(context: &Context, handle: u64) {
    let queue = {
        let mut framework = context.framework();
        if framework.part::<EndedRequests>().0.contains_key(&handle) {
            return;
        }
        let Ok(request) = framework.get::<RequestData>(handle) else {
            return;
        };
        if core::mem::replace(&mut request.cancelled, true) {
            return;
        }
        request.queue
    };
    if queue.is_none_or(|queue| !dispatch::cancel_waiting(context, queue, handle)) {
        call_cancel_routine(context, handle);
    }
}
