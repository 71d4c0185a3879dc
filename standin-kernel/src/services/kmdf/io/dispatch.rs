//! Dispatches queues: calls their callbacks, and presents requests to drivers.

use super::ending;
use crate::{
    ground::{NtStatus, abi::IoQueueConfig, irql::Irql},
    services::kmdf::{
        deferred::timer::queue_dpc,
        state::{
            framework::Context,
            queue::{Event, QueueData},
            request::{RequestData, RequestKind},
        },
        synchronization::presentation,
        work::{Work, WorkKind, queue_work},
    },
};

/// The name of the callbacks for queue state changes.
const STATE: &str = "EvtIoQueueState";

/// Puts a new request in a queue.
pub fn enqueue(context: &Context, queue: u64, request: u64) {
    let is_accepted = context.with::<QueueData, _>(queue, |queue| {
        if queue.accepts {
            queue.put_last(request);
        }
        queue.accepts
    });
    if is_accepted {
        dispatch(context, queue);
        // A request that its sender has already canceled does not wait.
        if context.is::<RequestData>(request, |request| request.cancelled) {
            cancel_waiting(context, queue, request);
        }
    } else {
        ending::end(context, request, NtStatus::INVALID_DEVICE_STATE, Some(0));
    }
}

/// Dispatches a queue's pending events, unless a thread is already dispatching them. That thread
/// then handles the new events after its current callback. The framework does the same when a
/// request ends or is canceled, because it would otherwise call the driver back inside its
/// callback. See [`dispatch`].
pub fn dispatch_later(context: &Context, queue: u64) {
    let is_idle = context.is::<QueueData>(queue, |queue| queue.dispatching.is_empty());
    if is_idle {
        dispatch(context, queue);
    }
}

/// Dispatches a queue's pending events: calls its callbacks, and presents the requests that its
/// type and state allow.
pub fn dispatch(context: &Context, queue: u64) {
    let this = context.id();
    let lock = presentation::lock_of(context, queue);
    let is_owner = lock.is_some_and(|lock| presentation::is_owner(context, lock));
    let (must_wait, is_passive) = {
        let mut framework = context.framework();
        let is_passive = framework.is_passive(queue);
        // The lock for the queue's callbacks cannot be acquired recursively.
        let must_wait = is_owner || (context.irql() > Irql::PASSIVE_LEVEL && is_passive);
        match framework.get::<QueueData>(queue) {
            Ok(queue) if !must_wait => queue.dispatching.push(this),
            Ok(_) => {}
            Err(_) => return,
        }
        (must_wait, is_passive)
    };
    if must_wait && !is_passive {
        queue_dpc(context, queue, dispatch);
        return;
    }
    if must_wait {
        queue_work(
            context,
            Work { kind: WorkKind::Queue, routine: 0, handle: queue, run: dispatch },
        );
        return;
    }
    loop {
        let event = match context.framework().get::<QueueData>(queue) {
            Ok(data) => {
                let event = data.next_event();
                if event.is_none()
                    && let Some(own) = data.dispatching.iter().rposition(|thread| *thread == this)
                {
                    data.dispatching.remove(own);
                }
                event
            }
            Err(_) => return,
        };
        match event {
            Some(Event::Canceled(request)) => {
                let routine = context.framework().get::<RequestData>(request).map(|request| {
                    request.set_cancellation_delivered();
                    request.cancel_routine
                });
                if let Ok(routine) = routine {
                    presentation::call(context, queue, "EvtRequestCancel", routine, [request]);
                }
            }
            Some(Event::CanceledOnQueue(request, callback)) => {
                context.with::<RequestData, _>(request, RequestData::set_cancellation_delivered);
                let arguments = [queue, request];
                presentation::call(context, queue, "EvtIoCanceledOnQueue", callback, arguments);
            }
            // A stop or purge for which a thread waits has no callback.
            Some(Event::Stopped(notify) | Event::Notify(notify)) if notify.function == 0 => {}
            Some(Event::Stopped(notify)) => {
                let arguments = [queue, notify.argument];
                context.call_driver(STATE, notify.function, arguments);
            }
            Some(Event::Notify(notify)) => {
                let arguments = [queue, notify.argument];
                presentation::call(context, queue, STATE, notify.function, arguments);
            }
            Some(Event::Deliver(request, config)) => deliver(context, queue, request, &config),
            None => return,
        }
    }
}

/// Calls the queue's callback for the request's kind, or completes the request if there is none.
fn deliver(context: &Context, queue: u64, request: u64, config: &IoQueueConfig) {
    let (kind, input, output, is_empty) = context.with::<RequestData, _>(request, |data| {
        (data.kind(), data.input_length(), data.output_length(), data.is_empty())
    });
    let (name, callback, arguments) = match kind {
        RequestKind::Read => ("EvtIoRead", config.evt_io_read, [queue, request, output, 0, 0]),
        RequestKind::Write => ("EvtIoWrite", config.evt_io_write, [queue, request, input, 0, 0]),
        RequestKind::DeviceControl { code } => (
            "EvtIoDeviceControl",
            config.evt_io_device_control,
            [queue, request, output, input, u64::from(code)],
        ),
        RequestKind::InternalDeviceControl { code } => (
            "EvtIoInternalDeviceControl",
            config.evt_io_internal_device_control,
            [queue, request, output, input, u64::from(code)],
        ),
        RequestKind::Create | RequestKind::Cleanup | RequestKind::Close => {
            ("EvtIoDefault", config.evt_io_default, [queue, request, 0, 0, 0])
        }
    };
    let has_callback = callback != 0 || config.evt_io_default != 0;
    // The framework completes empty reads and writes unless the driver has requested them.
    if has_callback && is_empty && config.allow_zero_length_requests == 0 {
        ending::end(context, request, NtStatus::SUCCESS, Some(0));
        return;
    }
    if !has_callback {
        ending::end(context, request, NtStatus::INVALID_DEVICE_REQUEST, None);
        return;
    }
    context.with::<RequestData, _>(request, RequestData::set_presented);
    if callback != 0 {
        presentation::call(context, queue, name, callback, arguments);
    } else {
        let arguments = [queue, request];
        presentation::call(context, queue, "EvtIoDefault", config.evt_io_default, arguments);
    }
}

/// Cancels a request that waits in a queue. Returns whether the request was waiting.
pub fn cancel_waiting(context: &Context, queue: u64, request: u64) -> bool {
    let was_waiting = context.with::<QueueData, _>(queue, |queue| {
        let was_waiting = queue.has_waiting(request);
        if was_waiting {
            queue.forget(request);
        }
        was_waiting
    });
    if was_waiting {
        cancel_on_queue(context, queue, request);
    }
    was_waiting
}

/// Ends a request that was canceled in a queue. If the request was presented to the driver before,
/// calls the driver's callback for such requests, if any.
pub fn cancel_on_queue(context: &Context, queue: u64, request: u64) {
    let was_presented = context.with::<RequestData, _>(request, |request| {
        request.set_cancelled();
        request.was_presented()
    });
    let is_told = context.with::<QueueData, _>(queue, |queue| {
        let is_told = was_presented && queue.config.evt_io_canceled_on_queue != 0;
        if is_told {
            queue.presented.push(request);
            queue.canceled.push_back(request);
        }
        is_told
    });
    if is_told {
        dispatch_later(context, queue);
    } else {
        ending::end(context, request, NtStatus::CANCELLED, Some(0));
    }
}

/// If the driver marked a canceled request cancelable, makes the request's queue call
/// `EvtRequestCancel`. Returns `true` if this call requested the callback.
pub fn call_cancel_routine(context: &Context, handle: u64) -> bool {
    let (is_new, queue) = context.with::<RequestData, _>(handle, |request| {
        let is_new = request.is_cancelable() && !request.cancellation_due;
        request.cancellation_due |= is_new;
        (is_new, request.queue)
    });
    match queue {
        Some(queue) if is_new => {
            context.with::<QueueData, _>(queue, |queue| queue.cancelable.push_back(handle));
            dispatch_later(context, queue);
        }
        None if is_new => cancel_create(context, handle),
        _ => {}
    }
    is_new
}

/// Calls `EvtRequestCancel` for a create request that is not in any of the driver's queues. The
/// framework's own queue for creates calls no other callback, so the call waits only for the lock
/// and the IRQL of the file's callbacks.
fn cancel_create(context: &Context, request: u64) {
    let found = context.framework().get::<RequestData>(request).ok().and_then(|request| {
        let is_due = request.is_cancelable() && request.queue.is_none();
        is_due.then_some((request.file.unwrap_or(0), request.cancel_routine))
    });
    let Some((file, routine)) = found else {
        return;
    };
    let lock = presentation::automatic(context, file);
    let is_owner = lock.is_some_and(|lock| presentation::is_owner(context, lock));
    let is_passive = context.framework().is_passive(file);
    if is_owner || (context.irql() > Irql::PASSIVE_LEVEL && is_passive) {
        let kind = WorkKind::Queue;
        queue_work(context, Work { kind, routine: 0, handle: request, run: cancel_create });
        return;
    }
    context.with::<RequestData, _>(request, RequestData::set_cancellation_delivered);
    presentation::call(context, file, "EvtRequestCancel", routine, [request]);
}
