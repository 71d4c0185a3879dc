//! The `WdfRequest*` routines that act on one request.

use super::{
    ending::{
        call_cancel_routine, complete, information_of, must_not_be_cancelable, must_own,
        set_information_of,
    },
    irp::create_words,
};
use crate::{
    execution::routine::Routine,
    ground::{abi::RequestParameters, rule::Rule, status::NtStatus},
    services::kmdf::state::{
        framework::{Context, Entries},
        queue::QueueData,
        request::{RequestData, RequestKind, describe},
    },
};

pub const ENTRIES: Entries = &[
    ("WdfRequestComplete", Routine::Three(request_complete)),
    ("WdfRequestCompleteWithInformation", Routine::Four(complete_with_information)),
    ("WdfRequestCompleteWithPriorityBoost", Routine::Four(complete_with_boost)),
    ("WdfRequestSetInformation", Routine::Three(set_information)),
    ("WdfRequestGetInformation", Routine::Two(get_information)),
    ("WdfRequestGetParameters", Routine::Three(get_parameters)),
    ("WdfRequestRetrieveInputBuffer", Routine::Five(retrieve_input)),
    ("WdfRequestRetrieveOutputBuffer", Routine::Five(retrieve_output)),
    ("WdfRequestGetFileObject", Routine::Two(get_file_object)),
    ("WdfRequestGetIoQueue", Routine::Two(get_io_queue)),
    ("WdfRequestMarkCancelable", Routine::Three(mark_cancelable)),
    ("WdfRequestMarkCancelableEx", Routine::Three(mark_cancelable_ex)),
    ("WdfRequestUnmarkCancelable", Routine::Two(unmark_cancelable)),
    ("WdfRequestIsCanceled", Routine::Two(is_canceled)),
];

fn request_complete(context: &Context, _globals: u64, request: u64, status: u64) -> u64 {
    complete(context, request, NtStatus::from_register(status), None);
    0
}

fn complete_with_information(
    context: &Context,
    _globals: u64,
    request: u64,
    status: u64,
    information: u64,
) -> u64 {
    complete(context, request, NtStatus::from_register(status), Some(information));
    0
}

fn complete_with_boost(
    context: &Context,
    _globals: u64,
    request: u64,
    status: u64,
    _boost: u64,
) -> u64 {
    complete(context, request, NtStatus::from_register(status), None);
    0
}

fn set_information(context: &Context, _globals: u64, request: u64, information: u64) -> u64 {
    context.with::<RequestData, _>(request, |request| {
        set_information_of(request, information);
    });
    0
}

fn get_information(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, information_of)
}

fn get_parameters(context: &Context, _globals: u64, request: u64, parameters: u64) -> u64 {
    fill_parameters(context, request, parameters);
    0
}

/// Describes a request to the driver in a `WDF_REQUEST_PARAMETERS`.
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
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let Some((address, available)) = buffer_of(context, request, RequestData::input) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    retrieve(context, address, available, minimum, buffer, length).to_register()
}

fn retrieve_output(
    context: &Context,
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let Some((address, available)) = buffer_of(context, request, RequestData::output) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    retrieve(context, address, available, minimum, buffer, length).to_register()
}

/// Returns the address and length of a request's input or output, if the framework provides it.
pub fn buffer_of(
    context: &Context,
    request: u64,
    which: impl FnOnce(&RequestData) -> (u64, u64),
) -> Option<(u64, u64)> {
    context.with::<RequestData, _>(request, |request| request.has_buffers().then(|| which(request)))
}

/// Returns a buffer to the driver, unless it is empty or shorter than the driver needs.
fn retrieve(
    context: &Context,
    address: u64,
    available: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> NtStatus {
    if available == 0 || available < minimum {
        return NtStatus::BUFFER_TOO_SMALL;
    }
    context.write(buffer, &address);
    if length != 0 {
        context.write(length, &available);
    }
    NtStatus::SUCCESS
}

fn get_file_object(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, |request| request.file.unwrap_or(0))
}

fn get_io_queue(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, |request| request.queue.unwrap_or(0))
}

fn mark_cancelable(context: &Context, _globals: u64, request: u64, routine: u64) -> u64 {
    if mark(context, request, routine) {
        call_cancel_routine(context, request);
    }
    0
}

fn mark_cancelable_ex(context: &Context, _globals: u64, request: u64, routine: u64) -> u64 {
    if mark(context, request, routine) {
        context.with::<RequestData, _>(request, |request| request.cancel_routine = 0);
        return NtStatus::CANCELLED.to_register();
    }
    NtStatus::SUCCESS.to_register()
}

/// Makes a request cancelable. Returns whether it is already cancelled.
fn mark(context: &Context, request: u64, routine: u64) -> bool {
    must_own(context, request);
    must_not_be_cancelable(context, request);
    let queue = context.with::<RequestData, _>(request, |request| {
        request.cancel_routine = routine;
        request.queue
    });
    let is_purged = queue.is_some_and(|queue| {
        context
            .framework()
            .get::<QueueData>(queue)
            .is_ok_and(|queue| queue.cancels_what_comes_back())
    });
    context.with::<RequestData, _>(request, |request| {
        request.cancelled |= is_purged;
        request.cancelled
    })
}

fn unmark_cancelable(context: &Context, _globals: u64, request: u64) -> u64 {
    must_own(context, request);
    let (was_marked, told) = context.with::<RequestData, _>(request, |request| {
        let was_marked = request.cancel_routine != 0;
        if request.is_cancelable() {
            request.cancel_routine = 0;
        }
        (was_marked, request.cancellation_delivered)
    });
    if !was_marked {
        let description = context.with::<RequestData, _>(request, |request| describe(request));
        context.stop(
            Rule::RequestMisused,
            format!(
                "WdfRequestUnmarkCancelable was called from {} for {description}, which is not \
                 cancelable",
                context.caller()
            ),
        );
    }
    if told { NtStatus::CANCELLED.to_register() } else { NtStatus::SUCCESS.to_register() }
}

fn is_canceled(context: &Context, _globals: u64, request: u64) -> u64 {
    must_own(context, request);
    must_not_be_cancelable(context, request);
    u64::from(context.with::<RequestData, _>(request, |request| request.cancelled))
}
