//! The path of requests into a device and down its stack. The framework chooses between the
//! driver's queues and the next lower device, and returns the results.

use std::collections::HashMap;

use super::{
    completion::record,
    directed, dispatch, ending,
    irp::irp_of,
    send::{make, make_file},
};
use crate::{
    ground::{NtResult, NtStatus, arena::Block},
    services::kmdf::{
        deferred::timer::clear_deadline,
        lifetime,
        lifetime::tell,
        state::{
            device::{Below, DeviceData, Presence, device_of, queue_for, queue_of},
            file::FileData,
            framework::{Context, Data, ObjectRoutine},
            outgoing::{Buffer, Format, Lower, Phase},
            queue::QueueData,
            request::{
                Completion, IoRequest, METHOD_IN_DIRECT, METHOD_MASK, RequestData, RequestKind,
            },
            simulated,
            simulated::Given,
            target::TargetData,
        },
        synchronization::presentation,
    },
};

impl Data for RequestData {
    const NAME: &'static str = "WDFREQUEST";
    const REQUEST_ENDED: Option<ObjectRoutine> = Some(finish);
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(before_delete);

    fn is_frameworks(&self) -> bool {
        !self.is_created
    }
}

/// The maximum length in bytes of the buffers of a request that is sent down a stack.
const MAX_LENGTH: u64 = 1 << 28;

/// Sends a request to an open file's device, and returns the request's handle. Fails if the file
/// was deleted with its device, which is not the driver's fault.
pub fn submit(context: &Context, file: u64, request: &IoRequest) -> NtResult<u64> {
    let device = context.framework().get::<FileData>(file).map(|file| file.device);
    let device = device.map_err(|_| NtStatus::NO_SUCH_DEVICE)?;
    let handle = make(context, device, Some(file), request)?;
    enter(context, device, handle);
    Ok(handle)
}

/// The routines that receive IRPs before the framework, by major function.
#[derive(Default)]
pub struct Preprocess(pub HashMap<u8, u64>);

/// Returns the `IRP_MJ` code of a request.
const fn major_function(kind: RequestKind) -> u8 {
    match kind {
        RequestKind::Create => 0,
        RequestKind::Close => 2,
        RequestKind::Read => 3,
        RequestKind::Write => 4,
        RequestKind::DeviceControl { .. } => 14,
        RequestKind::InternalDeviceControl { .. } => 15,
        RequestKind::Cleanup => 18,
    }
}

/// Passes a new request to a device. If the driver has registered a routine that preprocesses its
/// IRP, calls the routine first.
pub fn enter(context: &Context, device: u64, request: u64) {
    let kind = context.with::<RequestData, _>(request, |request| request.kind);
    let routine = context.with::<DeviceData, _>(device, |device| {
        let all = &device.part::<Preprocess>().0;
        all.get(&major_function(kind)).copied()
    });
    match routine {
        Some(routine) => {
            let irp = irp_of(context, request);
            context.call_driver("EvtDeviceWdmIrpPreprocess", routine, [device, irp]);
        }
        None => enter_preprocessed(context, device, request),
    }
}

/// Passes a request to the framework: calls the driver's callback for its IRP if there is one.
pub fn enter_preprocessed(context: &Context, device: u64, request: u64) {
    let kind = context.with::<RequestData, _>(request, |request| request.kind);
    if !directed::call(context, device, request, major_function(kind)) {
        enter_directed(context, device, request);
    }
}

/// Calls the driver in the sender's context if the driver has registered a callback for this, or
/// queues the request.
pub fn enter_directed(context: &Context, device: u64, request: u64) {
    let kind = context.with::<RequestData, _>(request, |request| request.kind);
    let in_caller_context =
        context.with::<DeviceData, _>(device, |device| device.init.in_caller_context);
    let is_io = !matches!(kind, RequestKind::Create | RequestKind::Cleanup | RequestKind::Close);
    if is_io && in_caller_context != 0 {
        context.with::<RequestData, _>(request, |request| {
            request.is_in_caller_context = true;
            request.set_presented();
        });
        context.call_driver("EvtIoInCallerContext", in_caller_context, [device, request]);
        if let Ok(request) = context.framework().get::<RequestData>(request) {
            request.is_in_caller_context = false;
        }
    } else {
        enqueue(context, device, request);
    }
}

/// Puts a request in the queue for its kind. If there is no such queue, a filter passes the request
/// down, and any other driver fails it.
pub fn enqueue(context: &Context, device: u64, request: u64) {
    let kind = context.with::<RequestData, _>(request, |request| request.kind);
    if kind == RequestKind::Create {
        enter_create(context, device, request);
    } else if let Some(queue) = queue_of(context, device, kind) {
        context.with::<RequestData, _>(request, |request| request.queue = Some(queue));
        dispatch::enqueue(context, queue, request);
    } else if is_filter(context, device) {
        pass_down(context, device, request);
    } else {
        ending::end(context, request, NtStatus::INVALID_DEVICE_REQUEST, Some(0));
    }
}

/// Passes a create request to the driver, or ends it if the driver does not handle such requests.
fn enter_create(context: &Context, device: u64, request: u64) {
    let file = context.with::<RequestData, _>(request, |request| request.file.unwrap_or(0));
    let (config, handle) = context
        .with::<DeviceData, _>(device, |device| (device.file_config(), device.handle_of(file)));
    let callback = config.map_or(0, |(config, _)| config.evt_device_file_create);
    if callback != 0 {
        context.with::<RequestData, _>(request, RequestData::set_presented);
        let arguments = [device, request, handle];
        presentation::call(context, file, "EvtDeviceFileCreate", callback, arguments);
    } else if let Some(queue) = queue_for(context, device, RequestKind::Create) {
        context.with::<RequestData, _>(request, |request| request.queue = Some(queue));
        dispatch::enqueue(context, queue, request);
    } else if is_filter(context, device) {
        pass_down(context, device, request);
    } else {
        ending::end(context, request, NtStatus::SUCCESS, Some(0));
    }
}

/// Returns whether a device's driver is a filter.
pub fn is_filter(context: &Context, device: u64) -> bool {
    context.with::<DeviceData, _>(device, |device| device.init.is_filter)
}

/// Sends a request to the next lower device and forgets it. The request ends together with the
/// lower request.
pub fn pass_down(context: &Context, device: u64, request: u64) {
    let below = context.with::<DeviceData, _>(device, |device| device.init.below);
    forget(context, request, below, None);
}

/// Sends a request to a device and forgets it. The request's queue can then present the next
/// request.
pub fn forget(context: &Context, request: u64, below: Below, file: Option<u64>) {
    let queue = context.with::<RequestData, _>(request, |request| {
        request.outgoing.format = Some(current_format(request));
        request.outgoing.is_forgotten = true;
        request.queue.take()
    });
    if let Some(queue) = queue
        && let Ok(queue) = context.framework().get::<QueueData>(queue)
    {
        queue.forget(request);
    }
    deliver(context, request, below, file);
    if let Some(queue) = queue {
        tell(context, queue, |data| data.request_ended());
    }
}

/// Permanently forwards a child's request to a queue of its parent, as a request to the parent.
pub fn forget_to_parent(context: &Context, request: u64, queue: u64) -> NtResult {
    ending::must_own(context, request);
    ending::must_not_be_cancelable(context, request);
    let parent = device_of(context, queue).ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    let from = context.with::<RequestData, _>(request, |request| {
        request.outgoing.format = Some(current_format(request));
        request.outgoing.is_forgotten = true;
        request.queue.take()
    });
    if let Some(from) = from
        && let Ok(from) = context.framework().get::<QueueData>(from)
    {
        from.forget(request);
    }
    let moved = formatted(context, request)?;
    let lower = make(context, parent, None, &moved)?;
    link(context, request, lower);
    context.with::<RequestData, _>(lower, |lower| lower.queue = Some(queue));
    context.with::<RequestData, _>(request, |request| {
        request.outgoing.phase = Phase::Sent(Lower::Request(lower));
    });
    dispatch::enqueue(context, queue, lower);
    if let Some(from) = from {
        tell(context, from, |data| data.request_ended());
    }
    Ok(())
}

/// Links a lower request to its upper request. If a driver passes the upper request on, the lower
/// request keeps the sender's thread and a cancellation.
fn link(context: &Context, upper: u64, lower: u64) {
    let (thread, cancelled) =
        context.with::<RequestData, _>(upper, |upper| (upper.thread, upper.cancelled));
    context.with::<RequestData, _>(lower, |lower| {
        lower.upper = Some(upper);
        lower.cancelled = cancelled;
        if thread != 0 {
            lower.thread = thread;
        }
    });
}

/// Returns a request's own operation and buffers as a format.
pub fn current_format(request: &RequestData) -> Format {
    let whole = |(address, length)| Buffer { address, length, memory: None };
    Format {
        kind: request.kind,
        input: whole(request.input()),
        output: whole(request.output()),
        offset: request.offset,
        others: request
            .others
            .map(|others| others.map(|address| Buffer { address, length: 0, memory: None })),
        is_current_type: true,
    }
}

/// Returns the formatted request with its input, or the status with which sending it fails.
fn formatted(context: &Context, request: u64) -> NtResult<IoRequest> {
    let (format, create, is_from_user) = context.with::<RequestData, _>(request, |request| {
        let format = request.outgoing.format;
        (format, request.create, request.is_from_user)
    });
    let format = format.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    if format.input.length > MAX_LENGTH || format.output.length > MAX_LENGTH {
        return Err(NtStatus::INSUFFICIENT_RESOURCES);
    }
    let length = |buffer: Buffer| usize::try_from(buffer.length).unwrap_or(usize::MAX);
    let contents = |buffer: Buffer| match length(buffer) {
        0 => Vec::new(),
        length => context.read_bytes(buffer.address, length),
    };
    let input = contents(format.input);
    let output_contents = match format.kind {
        RequestKind::DeviceControl { code } | RequestKind::InternalDeviceControl { code }
            if code & METHOD_MASK == METHOD_IN_DIRECT =>
        {
            contents(format.output)
        }
        _ => Vec::new(),
    };
    Ok(IoRequest {
        kind: format.kind,
        input,
        output_contents,
        // A process's request keeps its requestor mode when a driver passes it on.
        is_from_driver: !is_from_user,
        addresses: (!is_from_user).then_some([format.input.address, format.output.address]),
        create,
        output_length: length(format.output),
        offset: format.offset,
        others: format.others.map(|others| others.map(|buffer| buffer.address)),
    })
}

/// Sends a formatted request to a device. `file` is the file that is open on the device, unless the
/// request opens the file.
pub fn deliver(context: &Context, upper: u64, below: Below, file: Option<u64>) {
    context.with::<RequestData, _>(upper, |request| {
        request.outgoing.phase = Phase::Sent(Lower::Nobody);
        request.outgoing.result = None;
    });
    let answer = match formatted(context, upper) {
        Err(status) => Completion::failure(status),
        Ok(request) => match below {
            Below::Bus => Completion::failure(NtStatus::INVALID_DEVICE_REQUEST),
            Below::Simulated(number) => match give_to_simulated(context, number, upper, request) {
                Given::Answered(completion) => completion,
                Given::Kept(kept) => {
                    context.with::<RequestData, _>(upper, |request| {
                        request.outgoing.phase = Phase::Sent(Lower::Simulated(number, kept));
                    });
                    return;
                }
            },
            Below::Device(device) => match deliver_to(context, upper, device, file, &request) {
                Ok(()) => return,
                Err(status) => Completion::failure(status),
            },
        },
    };
    context.with::<RequestData, _>(upper, |request| request.outgoing.result = Some(answer));
    finish(context, upper);
}

/// Sends a request to a simulated device. A file that the request opens is recorded as open on the
/// device.
fn give_to_simulated(context: &Context, device: u64, upper: u64, request: IoRequest) -> Given {
    if request.kind == RequestKind::Create
        && let Some(file) = context.with::<RequestData, _>(upper, |request| request.file)
    {
        context.with::<FileData, _>(file, |file| file.below = Below::Simulated(device));
    }
    simulated::give(context, device, upper, request)
}

/// Sends a request to another driver's device. The result arrives through [`finish`], possibly before
/// this function returns.
fn deliver_to(
    context: &Context,
    upper: u64,
    device: u64,
    file: Option<u64>,
    request: &IoRequest,
) -> NtResult {
    let is_present =
        context.is::<DeviceData>(device, |device| device.presence == Presence::Present);
    if !is_present {
        return Err(NtStatus::NO_SUCH_DEVICE);
    }
    let upper_file = context.with::<RequestData, _>(upper, |request| request.file);
    let file = match (file, upper_file) {
        (None, Some(upper_file)) if request.kind == RequestKind::Create => {
            let name = context.with::<FileData, _>(upper_file, |file| file.name.to_text());
            let made = make_file(context, device, &name)?;
            context.with::<FileData, _>(upper_file, |file| file.below = Below::Device(made));
            Some(made)
        }
        (None, Some(upper_file)) => {
            match context.with::<FileData, _>(upper_file, |file| file.below) {
                Below::Device(file) => Some(file),
                _ => None,
            }
        }
        (file, _) => file,
    };
    let lower = make(context, device, file, request)?;
    link(context, upper, lower);
    context.with::<RequestData, _>(upper, |request| {
        request.outgoing.phase = Phase::Sent(Lower::Request(lower));
    });
    enter(context, device, lower);
    Ok(())
}

/// Processes the result of a sent request: copies the output, then ends the request or calls the
/// driver's completion routine.
fn finish(context: &Context, request: u64) {
    let taken = context.framework().get::<RequestData>(request).ok().and_then(|data| {
        data.outgoing.phase = Phase::Idle;
        data.outgoing.result.take()
    });
    let Some(mut result) = taken else {
        return;
    };
    clear_deadline(context, request);
    let (format, is_timed_out, target) = context.with::<RequestData, _>(request, |data| {
        let outgoing = &mut data.outgoing;
        (outgoing.format, outgoing.is_timed_out, outgoing.target)
    });
    if is_timed_out && result.status == NtStatus::CANCELLED {
        result.status = NtStatus::IO_TIMEOUT;
    }
    if let Some(format) = format {
        fit(&format, &mut result);
        copy_output(context, &format, &result);
        if format.kind == RequestKind::Create {
            note_create(context, request, result.status);
        }
    }
    context.with::<RequestData, _>(request, |data| record(data, &result));
    let (is_forgotten, is_awaited) = context.with::<RequestData, _>(request, |data| {
        (data.outgoing.is_forgotten, data.outgoing.is_awaited)
    });
    if is_forgotten {
        ending::end(context, request, result.status, Some(result.information));
    } else if !is_awaited {
        call_routine(context, request);
    }
    if let Some(target) = target {
        forget_sent(context, target, request);
    }
}

/// Removes a completed request from its target's list, and notifies the target.
fn forget_sent(context: &Context, target: u64, request: u64) {
    let is_under_way = context.is::<RequestData>(request, |data| data.outgoing.is_under_way());
    if is_under_way {
        // The completion routine may have sent the request again.
        return;
    }
    if let Ok(target) = context.framework().get::<TargetData>(target) {
        target.sent.retain(|sent| *sent != request);
        target.queued.retain(|queued| *queued != request);
    }
    tell(context, target, |data| data.request_ended());
}

/// Truncates a simulated device's output to the size of the buffer. When a driver completes a
/// request, the size is checked instead.
fn fit(format: &Format, result: &mut Completion) {
    let is_all = result.output.len() as u64 == result.information;
    if is_all && !result.output.is_empty() {
        result.information = result.information.min(format.output.length);
    }
}

/// Copies the lower device's output to the buffer in the request's format.
fn copy_output(context: &Context, format: &Format, result: &Completion) {
    let room = usize::try_from(format.output.length).unwrap_or(usize::MAX);
    let length = result.output.len().min(room);
    let Some(output) = result.output.get(..length).filter(|output| !output.is_empty()) else {
        return;
    };
    context.write_bytes(format.output.address, output);
}

/// Records in the file the lower device on which it is also open, if any.
fn note_create(context: &Context, request: u64, status: NtStatus) {
    let file = context.with::<RequestData, _>(request, |data| data.file);
    let Some(file) = file else {
        return;
    };
    if status.is_success() {
        return;
    }
    let below = context.with::<FileData, _>(file, |file| core::mem::take(&mut file.below));
    if let Below::Device(lower) = below {
        lifetime::delete(context, lower);
    }
}

/// Calls the driver's completion routine, if there is one. The driver must set the routine again
/// for each call.
pub fn call_routine(context: &Context, request: u64) {
    let (routine, routine_context, target, parameters) =
        context.with::<RequestData, _>(request, |data| {
            let outgoing = &mut data.outgoing;
            (
                core::mem::take(&mut outgoing.routine),
                core::mem::take(&mut outgoing.routine_context),
                outgoing.target.unwrap_or(0),
                outgoing.parameters,
            )
        });
    if routine == 0 {
        return;
    }
    let Some(parameters) = parameters else {
        return;
    };
    let block = Block::zeroed(size_of_val(&parameters));
    context.write(block.address(), &parameters);
    context.call_driver(
        "EvtRequestCompletionRoutine",
        routine,
        [request, target, block.address(), routine_context],
    );
}

/// Bugchecks if a driver deletes a request that is in flight. Otherwise, releases the memory
/// objects in its format.
fn before_delete(context: &Context, request: u64) {
    if context.with::<RequestData, _>(request, |data| data.is_created) {
        ending::must_not_be_under_way(context, request);
    }
    ending::release_format(context, request);
}
