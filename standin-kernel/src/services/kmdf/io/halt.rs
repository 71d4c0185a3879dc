//! Stops, purges and drains queues.

use super::dispatch::{call_cancel_routine, cancel_waiting, dispatch, dispatch_later};
use crate::{
    execution::routine::{Callback, Handle, Memory, routine},
    ground::rule::Rule,
    services::kmdf::{
        state::{
            device::DeviceData,
            file::FileData,
            framework::{Choices, Context, Data, Entries, ObjectRoutine},
            queue::{Notify, QueueData},
            request::{RequestData, describe},
        },
        synchronization::wait,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfIoQueueStop", stop),
    routine("WdfIoQueueStopSynchronously", stop_and_wait),
    routine("WdfIoQueueStopAndPurge", stop_and_purge),
    routine("WdfIoQueueStopAndPurgeSynchronously", stop_purge_and_wait),
    routine("WdfIoQueuePurge", purge),
    routine("WdfIoQueuePurgeSynchronously", purge_and_wait),
    routine("WdfIoQueueDrain", drain),
    routine("WdfIoQueueDrainSynchronously", drain_and_wait),
];

impl Data for QueueData {
    const NAME: &'static str = "WDFQUEUE";
    const CHOICES: Choices = Choices { level: true, scope: true, has_fixed_parent: false };
    const IS_PASSIVE: bool = true;
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(purge_before_delete);
    const REQUEST_ENDED: Option<ObjectRoutine> = Some(dispatch_later);

    fn is_frameworks(&self) -> bool {
        self.is_default() || self.is_routed
    }
}

/// The way in which a queue is halted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The queue still accepts requests.
    Stop,
    /// The queue still accepts requests. Requests in the queue or held by the driver are canceled.
    StopAndPurge,
    /// The queue accepts no requests. Requests in the queue or held by the driver are canceled.
    Purge,
    /// The queue accepts no requests.
    Drain,
}

impl Halt {
    const fn cancels(self) -> bool {
        matches!(self, Self::StopAndPurge | Self::Purge)
    }

    const fn stops_dispatching(self) -> bool {
        matches!(self, Self::Stop | Self::StopAndPurge)
    }
}

/// Changes the queue's state and cancels the requests that the change affects. Bugchecks if a
/// callback is requested while another one is due.
pub fn halt(context: &Context, queue: u64, halt: Halt, notify: Option<Notify>) {
    let is_taken = context.with::<QueueData, _>(queue, |queue| {
        let slot = if halt.stops_dispatching() { &mut queue.idle } else { &mut queue.purged };
        if slot.is_some() && notify.is_some() {
            return false;
        }
        *slot = slot.or(notify);
        if halt.stops_dispatching() {
            queue.accepts = !queue.is_shut_down;
            queue.dispatches = false;
        } else {
            queue.accepts = false;
        }
        queue.cancels |= halt.cancels();
        true
    });
    if !is_taken {
        context.stop_call(
            Rule::RequestMisused,
            "for a queue whose previous stop or purge has not finished; wait for its callback",
        );
    }
    if halt.cancels() {
        cancel_all(context, queue, halt);
    }
    dispatch(context, queue);
}

/// Halts the queue, and waits until its requests have ended. See [`halt`].
fn halt_and_wait(context: &Context, queue: u64, how: Halt) {
    halt(context, queue, how, Some(Notify { function: 0, argument: 0 }));
    let is_over = wait::wait_until(context, None, |context| {
        context.framework().get::<QueueData>(queue).map_or(true, |queue| {
            if how.stops_dispatching() { queue.idle.is_none() } else { queue.purged.is_none() }
        })
    });
    if !is_over {
        let left = context.with::<QueueData, _>(queue, |queue| {
            queue.presented.first().or_else(|| queue.waiting.front()).copied()
        });
        let what = left.map_or_else(
            || "a callback of the queue, which does not return".to_owned(),
            |request| {
                let request = context.with::<RequestData, _>(request, |request| describe(request));
                format!("{request}, which is never completed")
            },
        );
        context.stop_call(Rule::Deadlock, &format!("and would wait forever for {what}"));
    }
}

/// Cancels the requests that wait in a queue, and the cancelable requests that the driver holds. A
/// queue that is only stopped keeps the requests that arrive during the call.
fn cancel_all(context: &Context, queue: u64, how: Halt) {
    if how != Halt::Purge {
        let mut framework = context.framework();
        let waiting = framework.get::<QueueData>(queue).map(|queue| queue.waiting.clone());
        for request in waiting.unwrap_or_default() {
            if let Ok(request) = framework.get::<RequestData>(request) {
                request.set_cancelled();
            }
        }
    }
    let front = || context.framework().get::<QueueData>(queue).ok()?.waiting.front().copied();
    while let Some(request) = front() {
        if how != Halt::Purge && !context.is::<RequestData>(request, |request| request.cancelled) {
            break;
        }
        cancel_waiting(context, queue, request);
    }
    for request in presented(context, queue) {
        let is_cancelable = context.is::<RequestData>(request, |request| {
            if request.is_cancelable() {
                request.set_cancelled();
            }
            request.is_cancelable()
        });
        if is_cancelable {
            call_cancel_routine(context, request);
        }
    }
}

/// Cancels a file's requests that wait in queues of the file's device.
pub fn cancel_of_file(context: &Context, file: u64) {
    let device = context.with::<FileData, _>(file, |file| file.device());
    for queue in queues_of(context, device, |_| true) {
        let waiting = context.with::<QueueData, _>(queue, |queue| queue.waiting.clone());
        for request in waiting {
            let is_files =
                context.is::<RequestData>(request, |request| request.file() == Some(file));
            if is_files {
                cancel_waiting(context, queue, request);
            }
        }
    }
}

/// Halts the queue and, if `function` is not null, calls the driver's callback afterwards. See
/// [`halt`].
fn halt_and_call(context: &Context, queue: u64, how: Halt, function: u64, argument: u64) {
    let notify = Notify { function, argument };
    halt(context, queue, how, (function != 0).then_some(notify));
}

fn stop(context: &Context, queue: Handle<QueueData>, callback: Callback, argument: Memory) {
    halt_and_call(context, queue.0, Halt::Stop, callback.0, argument.0);
}

fn stop_and_wait(context: &Context, queue: Handle<QueueData>) {
    halt_and_wait(context, queue.0, Halt::Stop);
}

fn stop_and_purge(
    context: &Context,
    queue: Handle<QueueData>,
    callback: Callback,
    argument: Memory,
) {
    halt_and_call(context, queue.0, Halt::StopAndPurge, callback.0, argument.0);
}

fn stop_purge_and_wait(context: &Context, queue: Handle<QueueData>) {
    halt_and_wait(context, queue.0, Halt::StopAndPurge);
}

fn purge(context: &Context, queue: Handle<QueueData>, callback: Callback, argument: Memory) {
    halt_and_call(context, queue.0, Halt::Purge, callback.0, argument.0);
}

fn purge_and_wait(context: &Context, queue: Handle<QueueData>) {
    halt_and_wait(context, queue.0, Halt::Purge);
}

fn drain(context: &Context, queue: Handle<QueueData>, callback: Callback, argument: Memory) {
    halt_and_call(context, queue.0, Halt::Drain, callback.0, argument.0);
}

fn drain_and_wait(context: &Context, queue: Handle<QueueData>) {
    halt_and_wait(context, queue.0, Halt::Drain);
}

/// Cancels the requests that wait in a queue that is being deleted.
pub fn purge_before_delete(context: &Context, handle: u64) {
    let is_queue =
        context.framework().get::<QueueData>(handle).map(|queue| queue.is_shut_down = true).is_ok();
    if is_queue {
        halt(context, handle, Halt::Purge, None);
    }
}

/// Returns the requests of a queue that the driver holds.
pub fn presented(context: &Context, queue: u64) -> Vec<u64> {
    context
        .framework()
        .get::<QueueData>(queue)
        .map_or_else(|_| Vec::new(), |queue| queue.presented.clone())
}

/// Returns a device's queues that `is_wanted` selects, oldest first.
pub fn queues_of(
    context: &Context,
    device: u64,
    is_wanted: impl Fn(&QueueData) -> bool,
) -> Vec<u64> {
    let mut framework = context.framework();
    let mut queues = framework.all::<QueueData>();
    queues.retain(|queue| {
        framework.ancestor::<DeviceData>(*queue) == Some(device)
            && framework.get::<QueueData>(*queue).is_ok_and(|queue| is_wanted(queue))
    });
    queues
}
