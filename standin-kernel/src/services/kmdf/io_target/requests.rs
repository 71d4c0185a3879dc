//! The `WdfRequest*` routines that create, format, send and reuse requests.

use super::{
    format::{must_be_open, set_format},
    submit::{
        Options, SEND_AND_FORGET, SYNCHRONOUS, must_be_passive, read_options, submit, wait_for,
    },
};
use crate::{
    execution::routine::{At, Callback, Handle, Memory, Out, low_half, routine},
    ground::{
        NtResult, NtStatus,
        abi::{CompletionParameters, IrpStack, ObjectAttributes, ReuseParameters, SendOptions},
        arena::Block,
        rule::Rule,
    },
    services::{
        kmdf::{
            binding::driver_of,
            io::{
                ending::{must_not_be_cancelable, must_not_be_under_way, must_own, release_format},
                pass::{call_routine, current_format, forget},
                send::cancel_below,
            },
            lifetime::{create_from, give},
            state::{
                framework::{Context, Entries},
                outgoing::{Buffer, Format, Outgoing},
                request::{RequestData, RequestKind, Stop},
                target::TargetData,
            },
        },
        managers::{create_parameters::CreateParameters, module_states::ModuleStates},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfRequestCreate", request_create),
    routine("WdfRequestReuse", reuse),
    routine("WdfRequestChangeTarget", change_target),
    routine("WdfRequestFormatRequestUsingCurrentType", format_using_current_type),
    routine("WdfRequestWdmFormatUsingStackLocation", format_using_stack_location),
    routine("WdfRequestSend", send),
    routine("WdfRequestGetStatus", get_status),
    routine("WdfRequestSetCompletionRoutine", set_completion_routine),
    routine("WdfRequestGetCompletionParams", get_completion_parameters),
    routine("WdfRequestCancelSentRequest", cancel_sent_request),
    routine("WdfRequestAllocateTimer", allocate_timer),
];

/// Returns the data for a request that a driver creates in order to send it.
pub fn created(context: &Context) -> RequestData {
    RequestData {
        kind: RequestKind::DeviceControl { code: 0 },
        offset: 0,
        others: None,
        create: CreateParameters::OF_PROCESS,
        is_from_user: false,
        thread: 0,
        addresses: None,
        is_neither: false,
        is_created: true,
        is_in_caller_context: false,
        upper: None,
        outgoing: Outgoing::default(),
        parts: ModuleStates::default(),
        process: context.identity().process,
        queue: None,
        file: None,
        buffer: Block::zeroed(0),
        mapped: None,
        input_length: 0,
        output_length: 0,
        information: 0,
        cancel_routine: 0,
        cancelled: false,
        cancellation_due: false,
        cancellation_delivered: false,
        presented: false,
        stop: Stop::None,
    }
}

fn request_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    target: Handle<TargetData>,
    request: Out<RequestData>,
) -> NtResult {
    context.write(request.0, &0_u64);
    if target.0 != 0 {
        must_be_open(context, target.0)?;
    }
    let made = create_from(context, created(context), attributes.0, driver_of(context));
    give(context, made, request.0)
}

/// Reinitializes a request, so that it can be used again.
fn reuse(
    context: &Context,
    request: Handle<RequestData>,
    parameters: At<ReuseParameters>,
) -> NtStatus {
    /// `WDF_REQUEST_REUSE_SET_NEW_IRP` and `WDF_REQUEST_REUSE_MUST_COMPLETE`.
    const NEW_IRP: u32 = 1;
    const MUST_COMPLETE: u32 = 2;
    const WDF_REQUEST_INVALID_STATE: NtStatus = NtStatus::from_bits(0xC020_0208);
    let parameters = parameters.read(context);
    let is_created = request.with(context, |request| request.is_created);
    let is_wrong = parameters.flags & !(NEW_IRP | MUST_COMPLETE) != 0;
    if parameters.size as usize != size_of::<ReuseParameters>() || is_wrong {
        return NtStatus::INVALID_PARAMETER;
    }
    must_not_be_under_way(context, request.0);
    if !is_created && parameters.flags & NEW_IRP != 0 {
        return WDF_REQUEST_INVALID_STATE;
    }
    if is_created && parameters.flags & MUST_COMPLETE != 0 {
        // A created request has no IRP from another driver that would have to be completed.
        return NtStatus::INVALID_PARAMETER;
    }
    if parameters.flags & NEW_IRP != 0 && parameters.new_irp != 0 {
        // In the stand-in kernel, IRPs belong to their requests.
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    release_format(context, request.0);
    request.with(context, |request| {
        request.outgoing = Outgoing {
            status: Some(NtStatus::from_bits(parameters.status)),
            ..Outgoing::default()
        };
        request.information = 0;
        request.cancelled = false;
        request.forget_cancellation();
    });
    NtStatus::SUCCESS
}

/// Checks that a request can be sent to a target. Clears the request's format.
fn change_target(
    context: &Context,
    request: Handle<RequestData>,
    target: Handle<TargetData>,
) -> NtResult {
    request.check(context);
    must_not_be_under_way(context, request.0);
    let is_open = must_be_open(context, target.0);
    release_format(context, request.0);
    is_open
}

/// Formats a request for the next lower device with the operation and buffers with which the driver
/// received it.
fn format_using_current_type(context: &Context, request: Handle<RequestData>) {
    must_not_be_created(context, request.0);
    let format = request.with(context, |request| current_format(request));
    set_format(context, request.0, format);
}

/// Bugchecks if the driver created the request. Such a request has no current type.
fn must_not_be_created(context: &Context, request: u64) {
    if context.with::<RequestData, _>(request, |request| request.is_created) {
        context.stop_call(
            Rule::RequestMisused,
            "for a request that the driver created, which has no current type",
        );
    }
}

/// Formats a request according to an `IO_STACK_LOCATION` that the driver filled. The request keeps its
/// buffers.
fn format_using_stack_location(
    context: &Context,
    request: Handle<RequestData>,
    location: At<IrpStack>,
) {
    let location: IrpStack = context.read(location.0);
    let own =
        request.with(context, |request| (!request.is_created).then(|| current_format(request)));
    let [first, second, third, fourth] = location.parameters;
    let kind = match location.major_function {
        0 => RequestKind::Create,
        3 => RequestKind::Read,
        4 => RequestKind::Write,
        14 => RequestKind::DeviceControl {
            code: low_half(third),
        },
        15 => RequestKind::InternalDeviceControl {
            code: low_half(third),
        },
        major => context.stop_call(Rule::NotProvided, &format!("for IRP_MJ {major}; the stand-in kernel sends only creates, reads, writes and device controls")),
    };
    let limited = |buffer: Buffer, length: u64| Buffer {
        length: buffer.length.min(length & 0xFFFF_FFFF),
        ..buffer
    };
    let (input, output) =
        own.map_or_else(|| (Buffer::default(), Buffer::default()), |own| (own.input, own.output));
    let (input, output, offset, others) = match kind {
        RequestKind::Read => (Buffer::default(), limited(output, first), third, None),
        RequestKind::Write => (limited(input, first), Buffer::default(), third, None),
        RequestKind::InternalDeviceControl { .. } => {
            let others =
                [first, second, fourth].map(|address| Buffer { address, length: 0, memory: None });
            (input, output, 0, Some(others))
        }
        _ => (limited(input, second), limited(output, first), 0, None),
    };
    set_format(
        context,
        request.0,
        Format { kind, input, output, offset, others, is_current_type: true },
    );
}

/// Sends a request. Returns whether it was sent; if not, `WdfRequestGetStatus` returns the reason.
fn send(
    context: &Context,
    request: Handle<RequestData>,
    target: Handle<TargetData>,
    options: At<SendOptions>,
) -> bool {
    request.check(context);
    target.check(context);
    let sent = read_options(context, options.0)
        .map_err(|_| NtStatus::INVALID_PARAMETER)
        .and_then(|options| send_with(context, request.0, target.0, options));
    if let Err(status) = sent {
        request.with(context, |request| {
            request.outgoing.status = Some(status);
        });
    }
    sent.is_ok()
}

fn send_with(context: &Context, request: u64, target: u64, options: Options) -> NtResult {
    let (is_created, has_routine, is_reformatted) =
        context.with::<RequestData, _>(request, |request| {
            let outgoing = &request.outgoing;
            let is_reformatted = outgoing.format.is_some_and(|format| !format.is_current_type);
            (request.is_created, outgoing.routine != 0, is_reformatted)
        });
    if options.flags & SYNCHRONOUS != 0 {
        must_be_passive(context, "with WDF_REQUEST_SEND_OPTION_SYNCHRONOUS");
        submit(context, request, target, options, true)?;
        wait_for(context, request, options.deadline);
        call_routine(context, request);
        return Ok(());
    }
    if options.flags & SEND_AND_FORGET != 0 {
        if is_created {
            return Err(NtStatus::INVALID_DEVICE_STATE);
        }
        if is_reformatted {
            context.warn_of_misuse(|| {
                "to send and forget a request that is formatted for a target; the framework refuses \
                 it"
                .to_owned()
            });
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        }
        return forget_request(context, request, target);
    }
    if !is_created && !has_routine {
        context.warn_of_misuse(|| {
            "for a request that the driver received, without a completion routine; the framework \
             refuses to send it, because nothing would complete it"
                .to_owned()
        });
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    submit(context, request, target, options, false)
}

/// Sends a request and forgets it. The target can be in any state, but must be open.
fn forget_request(context: &Context, request: u64, target: u64) -> NtResult {
    must_own(context, request);
    must_not_be_cancelable(context, request);
    let (to, file) = context.with::<TargetData, _>(target, |target| (target.to, target.file));
    let to = to.ok_or(NtStatus::INVALID_DEVICE_STATE)?;
    forget(context, request, to, file);
    Ok(())
}

fn get_status(context: &Context, request: Handle<RequestData>) -> NtStatus {
    let status = request.with(context, |request| request.outgoing.status);
    status.unwrap_or(NtStatus::SUCCESS)
}

fn set_completion_routine(
    context: &Context,
    request: Handle<RequestData>,
    routine: Callback,
    routine_context: Memory,
) {
    must_not_be_under_way(context, request.0);
    request.with(context, |request| {
        request.outgoing.routine = routine.0;
        request.outgoing.routine_context = routine_context.0;
    });
}

fn get_completion_parameters(
    context: &Context,
    request: Handle<RequestData>,
    parameters: At<CompletionParameters>,
) {
    let size: u32 = context.read(parameters.0);
    let found = request.with(context, |request| request.outgoing.parameters);
    if size as usize == size_of::<CompletionParameters>() {
        if let Some(found) = found {
            context.write(parameters.0, &found);
        }
    } else {
        context.warn_of_misuse(|| {
            format!("with a WDF_REQUEST_COMPLETION_PARAMS whose Size is {size}; nothing is written")
        });
    }
}

/// Asks the lower driver to cancel a request. Returns whether a driver was asked. If the request
/// has not been sent yet, a later send fails.
fn cancel_sent_request(context: &Context, request: Handle<RequestData>) -> bool {
    let is_under_way = request.with(context, |request| {
        request.outgoing.is_cancelled = true;
        request.outgoing.is_under_way()
    });
    is_under_way && cancel_below(context, request.0)
}

/// Always succeeds, because the stand-in kernel needs no memory for the timer.
fn allocate_timer(context: &Context, request: Handle<RequestData>) -> NtStatus {
    request.check(context);
    NtStatus::SUCCESS
}
