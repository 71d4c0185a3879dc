//! The `WdfRequest*` routines that act on one request.

use super::{
    dispatch::call_cancel_routine,
    ending::{
        complete, information_of, must_not_be_cancelable, must_not_wait, must_own,
        set_information_of,
    },
    irp::create_words,
};
use crate::{
    execution::routine::{At, Callback, Handle, routine},
    ground::{NtResult, NtStatus, abi::RequestParameters, rule::Rule},
    services::kmdf::state::{
        device::{DeviceData, device_of},
        file::FileData,
        framework::{Context, Entries},
        queue::QueueData,
        request::{RequestData, RequestKind, describe},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfRequestComplete", request_complete),
    routine("WdfRequestCompleteWithInformation", complete_with_information),
    routine("WdfRequestCompleteWithPriorityBoost", complete_with_boost),
    routine("WdfRequestSetInformation", set_information),
    routine("WdfRequestGetInformation", get_information),
    routine("WdfRequestGetParameters", get_parameters),
    routine("WdfRequestRetrieveInputBuffer", retrieve_input),
    routine("WdfRequestRetrieveOutputBuffer", retrieve_output),
    routine("WdfRequestGetFileObject", get_file_object),
    routine("WdfRequestGetIoQueue", get_io_queue),
    routine("WdfRequestMarkCancelable", mark_cancelable),
    routine("WdfRequestMarkCancelableEx", mark_cancelable_ex),
    routine("WdfRequestUnmarkCancelable", unmark_cancelable),
    routine("WdfRequestIsCanceled", is_canceled),
];

fn request_complete(context: &Context, request: Handle<RequestData>, status: NtStatus) {
    complete(context, request.0, status, None);
}

fn complete_with_information(
    context: &Context,
    request: Handle<RequestData>,
    status: NtStatus,
    information: u64,
) {
    complete(context, request.0, status, Some(information));
}

fn complete_with_boost(
    context: &Context,
    request: Handle<RequestData>,
    status: NtStatus,
    _boost: i8,
) {
    complete(context, request.0, status, None);
}

fn set_information(context: &Context, request: Handle<RequestData>, information: u64) {
    request.with(context, |request| {
        set_information_of(request, information);
    });
}

fn get_information(context: &Context, request: Handle<RequestData>) -> u64 {
    request.with(context, information_of)
}

fn get_parameters(
    context: &Context,
    request: Handle<RequestData>,
    parameters: At<RequestParameters>,
) {
    let size: u16 = context.read(parameters.0);
    if usize::from(size) == size_of::<RequestParameters>() {
        fill_parameters(context, request.0, parameters.0);
    } else {
        context.warn_of_misuse(|| {
            format!("with a WDF_REQUEST_PARAMETERS whose Size is {size}; nothing is written")
        });
    }
}

/// Fills a `WDF_REQUEST_PARAMETERS` with a request's parameters for the driver.
pub fn fill_parameters(context: &Context, request: u64, parameters: u64) {
    /// `WDF_REQUEST_TYPE`.
    const CREATE: u32 = 0;
    const READ: u32 = 3;
    const WRITE: u32 = 4;
    const DEVICE_CONTROL: u32 = 14;
    const INTERNAL_DEVICE_CONTROL: u32 = 15;
    const CLEANUP: u32 = 18;
    const CLOSE: u32 = 2;
    let mut filled: RequestParameters = context.read(parameters);
    let (kind, words) = context.with::<RequestData, _>(request, |request| match request.kind {
        RequestKind::Create => (CREATE, create_words(request)),
        RequestKind::Read => (READ, [request.output_length(), 0, request.offset, 0]),
        RequestKind::Write => (WRITE, [request.input_length(), 0, request.offset, 0]),
        RequestKind::Cleanup => (CLEANUP, [0; 4]),
        RequestKind::Close => (CLOSE, [0; 4]),
        RequestKind::InternalDeviceControl { code } => (
            INTERNAL_DEVICE_CONTROL,
            request.others.map_or_else(
                || [request.output_length(), request.input_length(), u64::from(code), 0],
                |[first, second, fourth]| [first, second, u64::from(code), fourth],
            ),
        ),
        RequestKind::DeviceControl { code } => {
            (DEVICE_CONTROL, [request.output_length(), request.input_length(), u64::from(code), 0])
        }
    });
    filled.minor_function = 0;
    filled.kind = kind;
    filled.parameters = words;
    context.write(parameters, &filled);
}

fn retrieve_input(
    context: &Context,
    request: Handle<RequestData>,
    minimum: u64,
    buffer: At<u64>,
    length: At<u64>,
) -> NtResult {
    let range = context.with(request.0, RequestData::provided_input);
    retrieve(context, range, minimum, buffer.0, length.0)
}

fn retrieve_output(
    context: &Context,
    request: Handle<RequestData>,
    minimum: u64,
    buffer: At<u64>,
    length: At<u64>,
) -> NtResult {
    let range = context.with(request.0, RequestData::provided_output);
    retrieve(context, range, minimum, buffer.0, length.0)
}

/// Returns a buffer for the driver, or an error if the buffer is shorter than required.
fn retrieve(
    context: &Context,
    range: NtResult<(u64, u64)>,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> NtResult {
    context.write(buffer, &0_u64);
    context.write_optional(length, &0_u64);
    let (address, available) = range?;
    if available < minimum {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    context.write(buffer, &address);
    context.write_optional(length, &available);
    Ok(())
}

fn get_file_object(context: &Context, request: Handle<RequestData>) -> Handle<FileData> {
    let (file, device) =
        (request.with(context, |request| request.file), device_of(context, request.0));
    let (Some(file), Some(device)) = (file, device) else {
        return Handle::new(0);
    };
    Handle::new(context.with::<DeviceData, _>(device, |device| device.handle_of(file)))
}

fn get_io_queue(context: &Context, request: Handle<RequestData>) -> Handle<QueueData> {
    Handle::new(request.with(context, |request| request.queue.unwrap_or(0)))
}

fn mark_cancelable(context: &Context, request: Handle<RequestData>, routine: Callback) {
    if mark(context, request, routine.0) == Ok(true) {
        request.with(context, RequestData::set_cancelled);
        call_cancel_routine(context, request.0);
    }
}

fn mark_cancelable_ex(
    context: &Context,
    request: Handle<RequestData>,
    routine: Callback,
) -> NtResult {
    if mark(context, request, routine.0)? {
        request.with(context, |request| request.cancel_routine = 0);
        return Err(NtStatus::CANCELLED);
    }
    Ok(())
}

/// Makes a request cancelable. Returns whether the request is already canceled or its queue is
/// being purged.
fn mark(context: &Context, request: Handle<RequestData>, routine: u64) -> NtResult<bool> {
    context.require(routine);
    must_own(context, request.0);
    must_not_be_cancelable(context, request.0);
    let queue = queue_of(context, request)?;
    let is_cancelled = request.with(context, |request| {
        request.forget_cancellation();
        request.cancel_routine = routine;
        request.cancelled
    });
    let is_purged = |queue: &mut QueueData| queue.cancels_what_comes_back();
    Ok(is_cancelled || queue.is_some_and(|queue| context.is::<QueueData>(queue, is_purged)))
}

/// Returns the queue of a request, or `None` for the framework's own queue for creates. Only a
/// request from a queue can be cancelable.
fn queue_of(context: &Context, request: Handle<RequestData>) -> NtResult<Option<u64>> {
    let (queue, has_one) = request.with(context, |request| (request.queue, request.has_queue()));
    if !has_one {
        context.warn_of_misuse(|| "for a request that is not from a queue".to_owned());
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    Ok(queue)
}

fn unmark_cancelable(context: &Context, request: Handle<RequestData>) -> NtStatus {
    must_own(context, request.0);
    if let Err(status) = queue_of(context, request) {
        return status;
    }
    let (was_marked, told) = request.with(context, |request| {
        let was_marked = request.cancel_routine != 0;
        if request.is_cancelable() && !request.cancellation_due {
            request.cancel_routine = 0;
        }
        (was_marked, request.cancellation_due)
    });
    if !was_marked {
        let description = request.with(context, |request| describe(request));
        context.stop_call(
            Rule::RequestMisused,
            &format!("for {description}, which is not cancelable"),
        );
    }
    if told { NtStatus::CANCELLED } else { NtStatus::SUCCESS }
}

fn is_canceled(context: &Context, request: Handle<RequestData>) -> bool {
    must_not_wait(context, request.0);
    must_not_be_cancelable(context, request.0);
    request.with(context, |request| request.cancelled)
}
