//! The effects of a device's power state on its queues.

use super::{
    dispatch::{dispatch, dispatch_later},
    ending::{must_not_be_cancelable, must_not_be_under_way, must_not_wait},
    halt::{Halt, halt, presented, queues_of},
    retrieve::put_back,
};
use crate::{
    execution::routine::{Handle, routine},
    ground::rule::Rule,
    services::kmdf::{
        state::{
            device::DeviceData,
            framework::{Context, Entries},
            queue::{Power, QueueData},
            request::{RequestData, Stop, describe},
        },
        synchronization::{presentation, wait},
    },
};

/// `WDF_REQUEST_STOP_ACTION_FLAGS`.
const STOP_SUSPEND: u64 = 1;

const STOP_PURGE: u64 = 2;

const STOP_CANCELABLE: u64 = 0x1000_0000;

pub const ENTRIES: Entries = &[routine("WdfRequestStopAcknowledge", stop_acknowledge)];

/// `WdfRequestStopAcknowledge`: while the device is not in its working state, the driver leaves a
/// request pending, possibly in an I/O target, or returns it to its queue.
pub fn stop_acknowledge(context: &Context, request: Handle<RequestData>, requeue: bool) {
    must_not_wait(context, request.0);
    let (stop, queue, description) =
        request.with(context, |request| (request.stop, request.queue(), describe(request)));
    let Some(queue) = queue.filter(|_| stop == Stop::Notified) else {
        context.stop_call(
            Rule::RequestMisused,
            &format!("for {description}, whose queue is not stopping"),
        );
    };
    if requeue {
        must_not_be_under_way(context, request.0);
        must_not_be_cancelable(context, request.0);
        put_back(context, queue, request.0);
    } else {
        request.with(context, |request| request.stop = Stop::Acknowledged);
    }
}

/// Stops the power-managed queues of a device that is leaving its working state. The driver
/// acknowledges or ends the requests from these queues that it holds.
pub fn stop_for_power(context: &Context, device: u64) {
    let queues = queues_of(context, device, |queue| queue.is_power_managed);
    let occasion = "the device left D0";
    // One after another: a callback of a newer queue may wait for a request of an older one.
    for queue in queues.iter().rev() {
        context.with::<QueueData, _>(*queue, |queue| queue.power = Power::Changing);
        wait_for_callbacks(context, *queue, occasion);
    }
    for queue in queues {
        stop_held_requests(context, queue, STOP_SUSPEND, occasion);
    }
}

/// Waits until other threads have returned from the queue's callbacks. Does not wait inside a callback of the
/// device's queues, where queued work can run: the others may wait for that callback.
fn wait_for_callbacks(context: &Context, queue: u64, occasion: &str) {
    let this = context.id();
    let device = context.framework().ancestor::<DeviceData>(queue);
    let is_in_callback = |queue: &QueueData| queue.dispatching.contains(&this);
    if device.is_some_and(|device| !queues_of(context, device, is_in_callback).is_empty()) {
        return;
    }
    let is_over = wait::wait_until(context, None, |context| {
        let mut framework = context.framework();
        framework.get::<QueueData>(queue).map_or(true, |queue| queue.dispatching.is_empty())
    });
    if !is_over {
        context.stop(
            Rule::Deadlock,
            format!("{occasion}, and would wait forever for a callback of a queue to return"),
        );
    }
}

/// Restarts the power-managed queues of a device that has returned to its working state. The driver
/// resumes the pending requests of all queues before it receives other requests.
pub fn resume_for_power(context: &Context, device: u64) {
    let queues = queues_of(context, device, |queue| queue.is_power_managed);
    for &queue in &queues {
        let resume = context.with::<QueueData, _>(queue, |queue| {
            (queue.power, queue.is_notifying) = (Power::Changing, true);
            queue.config.evt_io_resume
        });
        for request in presented(context, queue) {
            let is_told = context.is::<RequestData>(request, |request| {
                request.stop = Stop::None;
                !request.cancellation_due
            });
            if is_told && resume != 0 {
                presentation::call(context, queue, "EvtIoResume", resume, [queue, request]);
            }
        }
        context.with::<QueueData, _>(queue, |queue| {
            (queue.power, queue.is_notifying) = (Power::On, false);
        });
    }
    for queue in queues {
        // A callback may have deleted the queue.
        if let Ok(queue) = context.framework().get::<QueueData>(queue) {
            queue.became_ready |= !queue.waiting.is_empty();
        }
        dispatch(context, queue);
    }
}

/// Closes the queues of a device that is being removed: the power-managed queues, or the other
/// queues. They accept no more requests, and their requests, including those that the driver holds,
/// are canceled.
pub fn purge_for_removal(context: &Context, device: u64, power_managed: bool) {
    for queue in queues_of(context, device, |queue| queue.is_power_managed == power_managed) {
        context.with::<QueueData, _>(queue, |queue| queue.is_shut_down = true);
        halt(context, queue, Halt::Purge, None);
        context.with::<QueueData, _>(queue, |queue| queue.power = Power::Changing);
        stop_held_requests(context, queue, STOP_PURGE, "the device was removed");
    }
}

/// Calls `EvtIoStop` for a queue's requests that the driver holds, and waits until each request is
/// acknowledged or ended.
fn stop_held_requests(context: &Context, queue: u64, action: u64, occasion: &str) {
    let callback = context.with::<QueueData, _>(queue, |queue| {
        queue.is_notifying = true;
        queue.config.evt_io_stop
    });
    let held = presented(context, queue);
    for request in &held {
        let state = context.framework().get::<RequestData>(*request).ok().map(|request| {
            request.stop = Stop::Notified;
            (request.cancellation_due, request.is_cancelable())
        });
        if let Some((false, is_cancelable)) = state
            && callback != 0
        {
            let flags = action | if is_cancelable { STOP_CANCELABLE } else { 0 };
            let arguments = [queue, *request, flags];
            presentation::call(context, queue, "EvtIoStop", callback, arguments);
        }
    }
    context.with::<QueueData, _>(queue, |queue| queue.is_notifying = false);
    dispatch_later(context, queue);
    let mut left = None;
    let is_over = wait::wait_until(context, None, |context| {
        let mut framework = context.framework();
        let presented = framework
            .get::<QueueData>(queue)
            .map_or_else(|_| Vec::new(), |queue| queue.presented.clone());
        left = held.iter().filter(|request| presented.contains(request)).find_map(|request| {
            let data = framework.get::<RequestData>(*request).ok()?;
            (data.stop == Stop::Notified).then(|| describe(data))
        });
        left.is_none()
    });
    if let Some(description) = left.filter(|_| !is_over) {
        context.stop(
            Rule::RequestNotCompleted,
            format!(
                "{occasion} while the driver held {description}, which it neither completed nor \
                 acknowledged with WdfRequestStopAcknowledge"
            ),
        );
    }
    wait_for_callbacks(context, queue, occasion);
    if let Ok(queue) = context.framework().get::<QueueData>(queue) {
        queue.power = Power::Off;
    }
}
