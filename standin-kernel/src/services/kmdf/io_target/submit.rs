//! Sends requests to a target, depending on its state.

use crate::{
    ground::{NtResult, NtStatus, abi::SendOptions, irql::Irql, rule::Rule},
    services::kmdf::{
        deferred::timer::{reading_of, set_deadline},
        io::{
            ending::{must_not_be_cancelable, must_not_be_under_way, must_own},
            pass,
            send::cancel_below,
        },
        state::{
            framework::Context,
            outgoing::Phase,
            request::{RequestData, describe},
            target::{State, TargetData},
        },
        synchronization::wait,
    },
};

/// `WDF_REQUEST_SEND_OPTIONS_FLAGS`.
pub const TIMEOUT: u32 = 1;
pub const SYNCHRONOUS: u32 = 2;
pub const IGNORE_TARGET_STATE: u32 = 4;
pub const SEND_AND_FORGET: u32 = 8;
const VALID_FLAGS: u32 = 0xF;

/// The options of a send.
#[derive(Clone, Copy, Default)]
pub struct Options {
    pub flags: u32,
    /// The counter's reading at which the request times out.
    pub deadline: Option<i64>,
}

/// Reads the options of a send. A null pointer means no options.
pub fn read_options(context: &Context, address: u64) -> NtResult<Options> {
    if address == 0 {
        return Ok(Options::default());
    }
    let given: SendOptions = context.read(address);
    if given.size as usize != size_of::<SendOptions>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let forgets = given.flags & SEND_AND_FORGET != 0;
    if given.flags & !VALID_FLAGS != 0 || (forgets && given.flags != SEND_AND_FORGET) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let timeout = given.timeout;
    let has_timeout = given.flags & TIMEOUT != 0 && timeout != 0;
    Ok(Options { flags: given.flags, deadline: has_timeout.then(|| reading_of(context, timeout)) })
}

/// Sends a formatted request, or queues it in a stopped target. Returns the status with which the
/// target refuses the request as an error.
pub fn submit(
    context: &Context,
    request: u64,
    target: u64,
    options: Options,
    is_awaited: bool,
) -> NtResult {
    must_not_be_under_way(context, request);
    if context.with::<RequestData, _>(request, |request| !request.is_created) {
        must_own(context, request);
        must_not_be_cancelable(context, request);
    }
    let (is_formatted, is_cancelled) = context.with::<RequestData, _>(request, |request| {
        let outgoing = &request.outgoing;
        (outgoing.format.is_some() && !outgoing.is_spent, outgoing.is_cancelled)
    });
    if !is_formatted {
        context.warn_of_misuse(|| {
            "for a request that is not formatted; the framework refuses to send it".to_owned()
        });
        return Err(NtStatus::REQUEST_NOT_ACCEPTED);
    }
    let ignores_state = options.flags & IGNORE_TARGET_STATE != 0;
    let is_queued = context.with::<TargetData, _>(target, |target| match target.state {
        _ if target.to.is_none() => Err(NtStatus::INVALID_DEVICE_STATE),
        State::Started => Ok(false),
        State::Stopped | State::Purged if ignores_state => Ok(false),
        State::Stopped => Ok(true),
        _ => Err(NtStatus::INVALID_DEVICE_STATE),
    })?;
    if is_cancelled {
        return Err(NtStatus::CANCELLED);
    }
    context.with::<RequestData, _>(request, |request| {
        let outgoing = &mut request.outgoing;
        outgoing.target = Some(target);
        outgoing.is_awaited = is_awaited;
        outgoing.is_forgotten = false;
        outgoing.is_timed_out = false;
        outgoing.ignores_state = ignores_state;
        outgoing.status = None;
        outgoing.parameters = None;
        if is_queued {
            outgoing.phase = Phase::Queued;
        }
    });
    if let Some(deadline) = options.deadline
        && !is_awaited
    {
        set_deadline(context, request, deadline, expire);
    }
    if is_queued {
        context.with::<TargetData, _>(target, |target| target.queued.push_back(request));
    } else {
        send_now(context, request, target);
    }
    Ok(())
}

/// Sends a request to a target's device.
pub fn send_now(context: &Context, request: u64, target: u64) {
    let (to, file) = context.with::<TargetData, _>(target, |target| {
        target.sent.push(request);
        (target.to, target.file)
    });
    pass::deliver(context, request, to.unwrap_or_default(), file);
}

/// Cancels a request that has timed out.
fn expire(context: &Context, request: u64) {
    if let Ok(request) = context.framework().get::<RequestData>(request) {
        request.outgoing.is_timed_out = true;
    }
    let before = context.raise_irql(Irql::DISPATCH_LEVEL);
    cancel_below(context, request);
    context.lower_irql(before);
}

/// Waits until a sent request has ended, or has timed out and was canceled.
pub fn wait_for(context: &Context, request: u64, deadline: Option<i64>) {
    let is_over = |context: &Context| {
        context
            .framework()
            .get::<RequestData>(request)
            .map_or(true, |request| !request.outgoing.is_under_way())
    };
    if wait::wait_until(context, deadline, is_over) {
        return;
    }
    if deadline.is_some() {
        context.with::<RequestData, _>(request, |request| request.outgoing.is_timed_out = true);
        cancel_below(context, request);
        if wait::wait_until(context, None, is_over) {
            return;
        }
    }
    let description = context.with::<RequestData, _>(request, |request| describe(request));
    context.stop_call(
        Rule::Deadlock,
        &format!("and would wait forever for {description}, which no lower driver completes"),
    );
}

/// Bugchecks if a routine that waits is called above `PASSIVE_LEVEL`.
pub fn must_be_passive(context: &Context, why: &str) {
    context.check_irql(Irql::PASSIVE_LEVEL, why, "that");
}
