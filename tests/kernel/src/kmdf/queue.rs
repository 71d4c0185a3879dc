//! I/O queues.

use std::{collections::VecDeque, thread::ThreadId};

use super::{
    Entries, Routine,
    device::{DeviceData, device_of},
    lock_framework,
    object::{self, Kind, create, read_attributes},
    request::{self, FileData, RequestData, RequestKind, Stop},
    wait,
    work::{Work, queue_work},
};
use crate::{
    abi::IoQueueConfig,
    irql::Irql,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// `WDF_IO_QUEUE_DISPATCH_TYPE`.
const SEQUENTIAL: u32 = 1;
const PARALLEL: u32 = 2;
const MANUAL: u32 = 3;

/// `WDF_REQUEST_STOP_ACTION_FLAGS`.
const STOP_SUSPEND: u64 = 1;
const STOP_PURGE: u64 = 2;
const STOP_CANCELABLE: u64 = 0x1000_0000;

/// A callback with its context.
#[derive(Clone, Copy)]
struct Notify {
    function: u64,
    context: u64,
}

/// A queue.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a state of its own, as the bits of WDF_IO_QUEUE_STATE are"
)]
pub struct QueueData {
    config: IoQueueConfig,
    /// Requests that wait, the next one first.
    waiting: VecDeque<u64>,
    /// Requests that the driver holds, in the order in which it got them.
    presented: Vec<u64>,
    /// Requests among them that were cancelled while they waited, and that the driver
    /// is still to be told of.
    canceled: VecDeque<u64>,
    accepts: bool,
    dispatches: bool,
    /// Whether the device's power lets it dispatch.
    is_powered: bool,
    is_power_managed: bool,
    /// Its device is going: it accepts no requests any more.
    is_shut_down: bool,
    /// A purge goes on: what the driver gives back is cancelled.
    cancels: bool,
    /// Whether a request came to an empty queue, which a ready callback is told.
    became_ready: bool,
    ready: Option<Notify>,
    idle: Option<Notify>,
    purged: Option<Notify>,
    /// The threads that dispatch its events, further down their stacks.
    dispatching: Vec<ThreadId>,
}

/// What a queue does next.
enum Event {
    CanceledOnQueue(u64, u64),
    Notify(&'static str, Notify),
    Deliver(u64, Box<IoQueueConfig>),
}

impl QueueData {
    /// Whether it gets the requests that no other queue gets.
    pub const fn is_default(&self) -> bool {
        self.config.default_queue != 0
    }

    /// Whether a request waits in it.
    pub fn has_waiting(&self, request: u64) -> bool {
        self.waiting.contains(&request)
    }

    /// Whether a purge cancels what the driver gives back or makes cancelable.
    pub const fn cancels_what_comes_back(&self) -> bool {
        self.cancels
    }

    /// Takes a request out.
    pub fn forget(&mut self, request: u64) {
        self.waiting.retain(|waiting| *waiting != request);
        self.presented.retain(|presented| *presented != request);
        self.canceled.retain(|canceled| *canceled != request);
    }

    fn put_last(&mut self, request: u64) {
        self.waiting.push_back(request);
        self.became_ready |= self.waiting.len() == 1;
    }

    fn put_first(&mut self, request: u64) {
        self.waiting.push_front(request);
        self.became_ready |= self.waiting.len() == 1;
    }

    fn next_event(&mut self) -> Option<Event> {
        if let Some(request) = self.canceled.pop_front() {
            return Some(Event::CanceledOnQueue(
                request,
                self.config.io_canceled_on_queue,
            ));
        }
        if self.presented.is_empty() {
            if let Some(idle) = self.idle.take() {
                self.cancels = false;
                return Some(Event::Notify("EvtIoQueueState", idle));
            }
            if self.waiting.is_empty()
                && let Some(purged) = self.purged.take()
            {
                self.cancels = false;
                return Some(Event::Notify("EvtIoQueueState", purged));
            }
        }
        if !self.is_powered || !self.dispatches {
            return None;
        }
        let room = match self.config.dispatch_type {
            MANUAL => {
                let ready = self.ready.filter(|_| self.became_ready)?;
                self.became_ready = false;
                return Some(Event::Notify("EvtIoQueueState", ready));
            }
            SEQUENTIAL => 1,
            _ => usize::try_from(self.config.presented_requests).unwrap_or(usize::MAX),
        };
        if self.presented.len() >= room {
            return None;
        }
        let request = self.waiting.pop_front()?;
        self.presented.push(request);
        Some(Event::Deliver(request, Box::new(self.config)))
    }
}

pub const ENTRIES: Entries = &[
    ("WdfIoQueueCreate", Routine::Five(queue_create)),
    ("WdfIoQueueGetDevice", Routine::Two(get_device)),
    ("WdfIoQueueGetState", Routine::Four(get_state)),
    ("WdfIoQueueStart", Routine::Two(start)),
    ("WdfIoQueueStop", Routine::Four(stop)),
    ("WdfIoQueueStopSynchronously", Routine::Two(stop_and_wait)),
    ("WdfIoQueueStopAndPurge", Routine::Four(stop_and_purge)),
    (
        "WdfIoQueueStopAndPurgeSynchronously",
        Routine::Two(stop_purge_and_wait),
    ),
    ("WdfIoQueuePurge", Routine::Four(purge)),
    ("WdfIoQueuePurgeSynchronously", Routine::Two(purge_and_wait)),
    ("WdfIoQueueDrain", Routine::Four(drain)),
    ("WdfIoQueueDrainSynchronously", Routine::Two(drain_and_wait)),
    ("WdfIoQueueReadyNotify", Routine::Four(ready_notify)),
    (
        "WdfIoQueueRetrieveNextRequest",
        Routine::Three(retrieve_next),
    ),
    (
        "WdfIoQueueRetrieveRequestByFileObject",
        Routine::Four(retrieve_by_file),
    ),
    ("WdfIoQueueFindRequest", Routine::Six(find_request)),
    (
        "WdfIoQueueRetrieveFoundRequest",
        Routine::Four(retrieve_found),
    ),
];

/// Whether a configuration makes a queue that can work.
const fn check(config: &IoQueueConfig) -> Result<(), NtStatus> {
    if config.size as usize != size_of::<IoQueueConfig>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let has_callback = config.io_default != 0
        || config.io_read != 0
        || config.io_write != 0
        || config.io_device_control != 0
        || config.io_internal_device_control != 0;
    match config.dispatch_type {
        SEQUENTIAL | PARALLEL if !has_callback => Err(NtStatus::WDF_NO_CALLBACK),
        MANUAL if has_callback => Err(NtStatus::INVALID_PARAMETER),
        SEQUENTIAL | MANUAL if config.presented_requests != 0 => Err(NtStatus::INVALID_PARAMETER),
        SEQUENTIAL | PARALLEL | MANUAL => Ok(()),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

extern "win64" fn queue_create(
    _globals: u64,
    device: u64,
    config: u64,
    attributes: u64,
    queue: u64,
) -> u64 {
    const USE_DEFAULT: u32 = 2;
    let thread = thread::current();
    let config: IoQueueConfig = thread.read(config);
    if let Err(status) = check(&config) {
        return status.to_register();
    }
    let is_default = config.default_queue != 0;
    let (taken, is_control, in_d0) = thread.with::<DeviceData, _>(device, |device| {
        (
            device.default_queue.is_some(),
            device.is_control(),
            device.is_in_d0(),
        )
    });
    if is_default && taken {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let is_power_managed = match config.power_managed {
        0 => false,
        USE_DEFAULT => !is_control,
        _ => true,
    };
    let attributes = read_attributes(&thread, attributes);
    let kind = Kind::Queue(Box::new(QueueData {
        config,
        waiting: VecDeque::new(),
        presented: Vec::new(),
        canceled: VecDeque::new(),
        accepts: true,
        dispatches: true,
        is_powered: in_d0 || !is_power_managed,
        is_power_managed,
        is_shut_down: false,
        cancels: false,
        became_ready: false,
        ready: None,
        idle: None,
        purged: None,
        dispatching: Vec::new(),
    }));
    match create(&thread, kind, attributes.as_ref(), Some(device)) {
        Ok(handle) => {
            if is_default {
                thread.with::<DeviceData, _>(device, |device| device.default_queue = Some(handle));
            }
            if queue != 0 {
                thread.write(queue, &handle);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

extern "win64" fn get_device(_globals: u64, queue: u64) -> u64 {
    let thread = thread::current();
    thread.with::<QueueData, _>(queue, |_| ());
    device_of(&thread, queue).unwrap_or(0)
}

extern "win64" fn get_state(_globals: u64, queue: u64, waiting: u64, presented: u64) -> u64 {
    const ACCEPTS: u64 = 1;
    const DISPATCHES: u64 = 2;
    const NONE_WAIT: u64 = 4;
    const DRIVER_HAS_NONE: u64 = 8;
    const PNP_HELD: u64 = 16;
    let thread = thread::current();
    let (state, counts) = thread.with::<QueueData, _>(queue, |queue| {
        let bits = [
            (queue.accepts, ACCEPTS),
            (queue.dispatches, DISPATCHES),
            (queue.waiting.is_empty(), NONE_WAIT),
            (queue.presented.is_empty(), DRIVER_HAS_NONE),
            (!queue.is_powered, PNP_HELD),
        ];
        let state = bits.iter().filter(|(is_set, _)| *is_set);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (
            state.map(|(_, bit)| *bit).sum::<u64>(),
            [
                (waiting, count(queue.waiting.len())),
                (presented, count(queue.presented.len())),
            ],
        )
    });
    for (address, count) in counts {
        if address != 0 {
            thread.write(address, &count);
        }
    }
    state
}

extern "win64" fn start(_globals: u64, queue: u64) -> u64 {
    let thread = thread::current();
    thread.with::<QueueData, _>(queue, |queue| {
        queue.accepts = !queue.is_shut_down;
        queue.dispatches = true;
        queue.cancels = false;
        queue.became_ready |= !queue.waiting.is_empty();
    });
    dispatch(&thread, queue);
    0
}

/// What a queue stops for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halt {
    /// It goes on accepting.
    Stop,
    /// As `Stop`, and what it and the driver hold is cancelled.
    StopAndPurge,
    /// It accepts nothing, and what it and the driver hold is cancelled.
    Purge,
    /// It accepts nothing.
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

/// Changes the queue's state and cancels what is to be cancelled. A second callback
/// while one is due is not taken, and changes nothing.
fn halt(thread: &Thread, queue: u64, halt: Halt, callback: u64, context: u64) {
    let notify = (callback != 0).then_some(Notify {
        function: callback,
        context,
    });
    let is_taken = thread.with::<QueueData, _>(queue, |queue| {
        let slot = if halt.stops_dispatching() {
            &mut queue.idle
        } else {
            &mut queue.purged
        };
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
        return;
    }
    if halt.cancels() {
        cancel_all(thread, queue);
    }
    dispatch(thread, queue);
}

/// As [`halt`], and waits for the end.
fn halt_and_wait(thread: &Thread, queue: u64, how: Halt) {
    // Callbacks make calls of their own meanwhile.
    let call = thread.call();
    halt(thread, queue, how, 0, 0);
    let is_over = wait::wait_until(thread, None, |thread| {
        lock_framework(thread.shared())
            .get::<QueueData>(queue)
            .map_or(true, |queue| {
                queue.presented.is_empty() && (how.stops_dispatching() || queue.waiting.is_empty())
            })
    });
    if !is_over {
        let left = thread.with::<QueueData, _>(queue, |queue| {
            queue
                .presented
                .first()
                .or_else(|| queue.waiting.front())
                .copied()
        });
        let description = left.map_or_else(String::new, |request| {
            thread.with::<RequestData, _>(request, |request| request::describe(request))
        });
        thread.stop(
            Rule::Deadlock,
            format!(
                "{} was called from {} and waits for {description}, which nothing completes",
                call.name(),
                thread.shared().place(call.return_address)
            ),
        );
    }
    if let Ok(queue) = lock_framework(thread.shared()).get::<QueueData>(queue) {
        queue.cancels = false;
    }
}

extern "win64" fn stop(_globals: u64, queue: u64, callback: u64, context: u64) -> u64 {
    halt(&thread::current(), queue, Halt::Stop, callback, context);
    0
}

extern "win64" fn stop_and_wait(_globals: u64, queue: u64) -> u64 {
    halt_and_wait(&thread::current(), queue, Halt::Stop);
    0
}

extern "win64" fn stop_and_purge(_globals: u64, queue: u64, callback: u64, context: u64) -> u64 {
    let thread = thread::current();
    halt(&thread, queue, Halt::StopAndPurge, callback, context);
    0
}

extern "win64" fn stop_purge_and_wait(_globals: u64, queue: u64) -> u64 {
    halt_and_wait(&thread::current(), queue, Halt::StopAndPurge);
    0
}

extern "win64" fn purge(_globals: u64, queue: u64, callback: u64, context: u64) -> u64 {
    halt(&thread::current(), queue, Halt::Purge, callback, context);
    0
}

extern "win64" fn purge_and_wait(_globals: u64, queue: u64) -> u64 {
    halt_and_wait(&thread::current(), queue, Halt::Purge);
    0
}

extern "win64" fn drain(_globals: u64, queue: u64, callback: u64, context: u64) -> u64 {
    halt(&thread::current(), queue, Halt::Drain, callback, context);
    0
}

extern "win64" fn drain_and_wait(_globals: u64, queue: u64) -> u64 {
    halt_and_wait(&thread::current(), queue, Halt::Drain);
    0
}

extern "win64" fn ready_notify(_globals: u64, queue: u64, callback: u64, context: u64) -> u64 {
    let thread = thread::current();
    let is_taken = thread.with::<QueueData, _>(queue, |queue| {
        let is_setting = callback != 0;
        if queue.config.dispatch_type != MANUAL
            || queue.ready.is_some() == is_setting
            || (!is_setting && queue.dispatches)
        {
            return false;
        }
        queue.ready = is_setting.then_some(Notify {
            function: callback,
            context,
        });
        true
    });
    if !is_taken {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    dispatch(&thread, queue);
    NtStatus::SUCCESS.to_register()
}

/// Gives the driver a request that waits: the first one of those that `is_wanted`.
fn retrieve(
    thread: &Thread,
    queue: u64,
    mut is_wanted: impl FnMut(u64, &RequestData) -> bool,
) -> Result<u64, NtStatus> {
    thread.with::<QueueData, _>(queue, |queue| {
        if queue.config.dispatch_type == PARALLEL {
            Err(NtStatus::INVALID_DEVICE_STATE)
        } else if !queue.is_powered || !queue.dispatches {
            Err(NtStatus::WDF_PAUSED)
        } else {
            Ok(())
        }
    })?;
    loop {
        let (waiting, allows_empty) = thread.with::<QueueData, _>(queue, |queue| {
            (queue.waiting.clone(), queue.config.allow_zero_length != 0)
        });
        let found = waiting.into_iter().find(|request| {
            thread.with::<RequestData, _>(*request, |data| is_wanted(*request, data))
        });
        let request = found.ok_or(NtStatus::NO_MORE_ENTRIES)?;
        let is_empty = thread.with::<RequestData, _>(request, |data| data.is_empty());
        if is_empty && !allows_empty {
            request::end(thread, request, NtStatus::SUCCESS, Some(0));
            continue;
        }
        thread.with::<QueueData, _>(queue, |queue| {
            queue.waiting.retain(|waiting| *waiting != request);
            queue.presented.push(request);
        });
        thread.with::<RequestData, _>(request, RequestData::set_presented);
        return Ok(request);
    }
}

/// Writes a request that was found, or says why there is none.
fn hand_out(thread: &Thread, found: Result<u64, NtStatus>, to: u64) -> u64 {
    match found {
        Ok(request) => {
            thread.write(to, &request);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => {
            thread.write(to, &0_u64);
            status.to_register()
        }
    }
}

extern "win64" fn retrieve_next(_globals: u64, queue: u64, request: u64) -> u64 {
    let thread = thread::current();
    let found = retrieve(&thread, queue, |_, _| true);
    hand_out(&thread, found, request)
}

extern "win64" fn retrieve_by_file(_globals: u64, queue: u64, file: u64, request: u64) -> u64 {
    let thread = thread::current();
    thread.with::<FileData, _>(file, |_| ());
    let found = retrieve(&thread, queue, |_, data| data.file() == Some(file));
    hand_out(&thread, found, request)
}

extern "win64" fn retrieve_found(_globals: u64, queue: u64, found: u64, request: u64) -> u64 {
    let thread = thread::current();
    if thread.with::<QueueData, _>(queue, |queue| queue.config.dispatch_type != MANUAL) {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    let found = retrieve(&thread, queue, |handle, _| handle == found).map_err(|status| {
        if status == NtStatus::NO_MORE_ENTRIES {
            NtStatus::NOT_FOUND
        } else {
            status
        }
    });
    hand_out(&thread, found, request)
}

/// Looks at what waits, after a request that was found before. The driver owns a
/// reference to what it is shown, and not the request.
extern "win64" fn find_request(
    _globals: u64,
    queue: u64,
    after: u64,
    file: u64,
    parameters: u64,
    request: u64,
) -> u64 {
    let thread = thread::current();
    let waiting = thread.with::<QueueData, _>(queue, |queue| queue.waiting.clone());
    if after != 0 && !waiting.contains(&after) {
        return hand_out(&thread, Err(NtStatus::NOT_FOUND), request);
    }
    let skipped = waiting
        .iter()
        .position(|waiting| *waiting == after)
        .map_or(0, |place| place + 1);
    let found = waiting.into_iter().skip(skipped).find(|waiting| {
        file == 0 || thread.with::<RequestData, _>(*waiting, |data| data.file() == Some(file))
    });
    if let Some(found) = found {
        object::add_reference(&thread, found);
        if parameters != 0 {
            request::fill_parameters(&thread, found, parameters);
        }
    }
    hand_out(&thread, found.ok_or(NtStatus::NO_MORE_ENTRIES), request)
}

/// A request that the driver moves on, and its present queue.
fn take_back(thread: &Thread, request: u64) -> Option<u64> {
    request::must_own(thread, request);
    request::must_not_be_cancelable(thread, request);
    thread.with::<RequestData, _>(request, |request| request.queue())
}

/// `WdfRequestForwardToIoQueue`.
pub extern "win64" fn forward(_globals: u64, request: u64, to: u64) -> u64 {
    let thread = thread::current();
    let accepts = thread.with::<QueueData, _>(to, |queue| queue.accepts);
    let from = take_back(&thread, request);
    let goes_elsewhere = from.is_none_or(|from| device_of(&thread, from) != device_of(&thread, to));
    if from == Some(to) || (from.is_some() && goes_elsewhere) {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    }
    if !accepts {
        return NtStatus::WDF_BUSY.to_register();
    }
    if let Some(from) = from {
        thread.with::<QueueData, _>(from, |queue| queue.forget(request));
    }
    let is_cancelled = thread.with::<RequestData, _>(request, |data| {
        data.set_queue(to);
        data.set_presented();
        data.is_cancelled()
    });
    if is_cancelled {
        cancel_on_queue(&thread, to, request);
    } else {
        thread.with::<QueueData, _>(to, |queue| queue.put_last(request));
        dispatch(&thread, to);
    }
    if let Some(from) = from {
        dispatch(&thread, from);
    }
    NtStatus::SUCCESS.to_register()
}

/// `WdfRequestRequeue`: back to the head of a manual queue.
pub extern "win64" fn requeue(_globals: u64, request: u64) -> u64 {
    let thread = thread::current();
    let queue = take_back(&thread, request).filter(|queue| {
        thread.with::<QueueData, _>(*queue, |queue| queue.config.dispatch_type == MANUAL)
    });
    let Some(queue) = queue else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    put_back(&thread, queue, request);
    NtStatus::SUCCESS.to_register()
}

/// Puts a request that the driver had back at the head of its queue, unless it is
/// cancelled.
fn put_back(thread: &Thread, queue: u64, request: u64) {
    let is_cancelled = thread.with::<RequestData, _>(request, |data| {
        data.stop = Stop::None;
        data.is_cancelled()
    });
    let cancels = thread.with::<QueueData, _>(queue, |queue| {
        queue.forget(request);
        let cancels = is_cancelled || queue.cancels;
        if !cancels {
            queue.put_first(request);
        }
        cancels
    });
    if cancels {
        cancel_on_queue(thread, queue, request);
    }
    dispatch(thread, queue);
}

/// `WdfRequestStopAcknowledge`: the driver keeps a request while the device is out of
/// its working state, or gives it back until the device returns.
pub extern "win64" fn stop_acknowledge(_globals: u64, request: u64, requeue: u64) -> u64 {
    let thread = thread::current();
    request::must_own(&thread, request);
    let (stop, queue, description) = thread.with::<RequestData, _>(request, |request| {
        (request.stop, request.queue(), request::describe(request))
    });
    let Some(queue) = queue.filter(|_| stop == Stop::Told) else {
        let call = thread.call();
        thread.stop(
            Rule::RequestMisused,
            format!(
                "WdfRequestStopAcknowledge was called from {} for {description}, whose queue is \
                 not stopping",
                thread.shared().place(call.return_address)
            ),
        );
    };
    let [requeue, ..] = requeue.to_le_bytes();
    if requeue == 0 {
        thread.with::<RequestData, _>(request, |request| request.stop = Stop::Acknowledged);
    } else {
        request::must_not_be_cancelable(&thread, request);
        put_back(&thread, queue, request);
    }
    0
}

/// Puts a new request in a queue.
pub fn enqueue(thread: &Thread, queue: u64, request: u64) {
    let is_accepted = thread.with::<QueueData, _>(queue, |queue| {
        if queue.accepts {
            queue.put_last(request);
        }
        queue.accepts
    });
    if is_accepted {
        dispatch(thread, queue);
    } else {
        request::end(thread, request, NtStatus::INVALID_DEVICE_STATE, Some(0));
    }
}

/// Cancels a request that waits in a queue; whether it did.
pub fn cancel_waiting(thread: &Thread, queue: u64, request: u64) -> bool {
    let was_waiting = thread.with::<QueueData, _>(queue, |queue| {
        let was_waiting = queue.has_waiting(request);
        if was_waiting {
            queue.forget(request);
        }
        was_waiting
    });
    if was_waiting {
        cancel_on_queue(thread, queue, request);
    }
    was_waiting
}

/// Ends a request that was cancelled in a queue. One that the driver has had before
/// is given to it, if it wants to know.
fn cancel_on_queue(thread: &Thread, queue: u64, request: u64) {
    let was_presented = thread.with::<RequestData, _>(request, |request| {
        request.set_cancelled();
        request.was_presented()
    });
    let is_told = thread.with::<QueueData, _>(queue, |queue| {
        let is_told = was_presented && queue.config.io_canceled_on_queue != 0;
        if is_told {
            queue.presented.push(request);
            queue.canceled.push_back(request);
        }
        is_told
    });
    if is_told {
        dispatch(thread, queue);
    } else {
        request::end(thread, request, NtStatus::CANCELLED, Some(0));
    }
}

/// Cancels what waits in a queue and what the driver holds and made cancelable.
fn cancel_all(thread: &Thread, queue: u64) {
    loop {
        let next = lock_framework(thread.shared())
            .get::<QueueData>(queue)
            .ok()
            .and_then(|queue| queue.waiting.pop_front());
        let Some(request) = next else {
            break;
        };
        cancel_on_queue(thread, queue, request);
    }
    for request in presented(thread, queue) {
        let is_cancelable = lock_framework(thread.shared())
            .get::<RequestData>(request)
            .is_ok_and(|request| {
                if request.is_cancelable() {
                    request.set_cancelled();
                }
                request.is_cancelable()
            });
        if is_cancelable {
            request::tell_of_cancellation(thread, request);
        }
    }
}

/// What the driver holds of a queue's requests.
fn presented(thread: &Thread, queue: u64) -> Vec<u64> {
    lock_framework(thread.shared())
        .get::<QueueData>(queue)
        .map_or_else(|_| Vec::new(), |queue| queue.presented.clone())
}

/// Cancels what waits in the queues of a file's device for that file.
pub fn cancel_of_file(thread: &Thread, file: u64) {
    let device = thread.with::<FileData, _>(file, |file| file.device());
    for queue in queues_of(thread, device, |_| true) {
        let waiting = thread.with::<QueueData, _>(queue, |queue| queue.waiting.clone());
        for request in waiting {
            let is_files = lock_framework(thread.shared())
                .get::<RequestData>(request)
                .is_ok_and(|request| request.file() == Some(file));
            if is_files {
                cancel_waiting(thread, queue, request);
            }
        }
    }
}

/// Dispatches a queue's events, while there are any: callbacks, and requests as far
/// as its type and state allow.
pub fn dispatch(thread: &Thread, queue: u64) {
    let this = std::thread::current().id();
    let must_wait = {
        let mut framework = lock_framework(thread.shared());
        let must_wait = thread.irql() > Irql::PASSIVE_LEVEL && framework.is_passive(queue);
        match framework.get::<QueueData>(queue) {
            Ok(queue) if !queue.dispatching.contains(&this) => {
                if !must_wait {
                    queue.dispatching.push(this);
                }
            }
            // A thread that dispatches already goes on with what is new.
            _ => return,
        }
        must_wait
    };
    if must_wait {
        queue_work(thread, Work::Queue(queue));
        return;
    }
    loop {
        let event = match lock_framework(thread.shared()).get::<QueueData>(queue) {
            Ok(data) => data.next_event(),
            Err(_) => return,
        };
        match event {
            Some(Event::CanceledOnQueue(request, callback)) => {
                thread.with::<RequestData, _>(request, RequestData::set_told_of_cancellation);
                thread.call_driver("EvtIoCanceledOnQueue", callback, [queue, request]);
            }
            Some(Event::Notify(name, notify)) => {
                thread.call_driver(name, notify.function, [queue, notify.context]);
            }
            Some(Event::Deliver(request, config)) => deliver(thread, queue, request, &config),
            None => break,
        }
    }
    if let Ok(queue) = lock_framework(thread.shared()).get::<QueueData>(queue) {
        queue.dispatching.retain(|thread| *thread != this);
    }
}

/// Calls the queue's callback for the request's kind, or completes a request
/// that it has none for.
fn deliver(thread: &Thread, queue: u64, request: u64, config: &IoQueueConfig) {
    let (kind, input, output, is_empty) = thread.with::<RequestData, _>(request, |data| {
        (
            data.kind(),
            data.input_length(),
            data.output_length(),
            data.is_empty(),
        )
    });
    let (name, callback, arguments) = match kind {
        RequestKind::Read => ("EvtIoRead", config.io_read, [queue, request, output, 0, 0]),
        RequestKind::Write => ("EvtIoWrite", config.io_write, [queue, request, input, 0, 0]),
        RequestKind::DeviceControl { code } => (
            "EvtIoDeviceControl",
            config.io_device_control,
            [queue, request, output, input, u64::from(code)],
        ),
        RequestKind::Create => ("EvtIoDefault", config.io_default, [queue, request, 0, 0, 0]),
    };
    // Without leave to present them, empty reads and writes are done by the framework.
    if is_empty && config.allow_zero_length == 0 {
        request::end(thread, request, NtStatus::SUCCESS, Some(0));
        return;
    }
    thread.with::<RequestData, _>(request, RequestData::set_presented);
    if callback != 0 {
        thread.call_driver(name, callback, arguments);
    } else if config.io_default != 0 {
        thread.call_driver("EvtIoDefault", config.io_default, [queue, request]);
    } else {
        request::end(thread, request, NtStatus::INVALID_DEVICE_REQUEST, None);
    }
}

/// A device's queues of a sort, oldest first.
fn queues_of(thread: &Thread, device: u64, is_wanted: impl Fn(&QueueData) -> bool) -> Vec<u64> {
    let mut framework = lock_framework(thread.shared());
    let mut queues = framework.all::<QueueData>();
    queues.retain(|queue| {
        framework.ancestor::<DeviceData>(*queue) == Some(device)
            && framework
                .get::<QueueData>(*queue)
                .is_ok_and(|queue| is_wanted(queue))
    });
    queues
}

/// The device leaves its working state: its power-managed queues stop, and the
/// driver acknowledges or ends what it holds of theirs.
pub fn stop_for_power(thread: &Thread, device: u64) {
    let queues = queues_of(thread, device, |queue| queue.is_power_managed);
    for queue in &queues {
        thread.with::<QueueData, _>(*queue, |queue| queue.is_powered = false);
    }
    for queue in queues {
        tell_of_stop(thread, queue, STOP_SUSPEND, "the device left D0");
    }
}

/// The device is in its working state again: the driver goes on with what it kept,
/// and its power-managed queues dispatch.
pub fn resume_for_power(thread: &Thread, device: u64) {
    for queue in queues_of(thread, device, |queue| queue.is_power_managed) {
        let resume = thread.with::<QueueData, _>(queue, |queue| queue.config.io_resume);
        for request in presented(thread, queue) {
            let is_kept = lock_framework(thread.shared())
                .get::<RequestData>(request)
                .map(|request| request.stop = Stop::None)
                .is_ok();
            if is_kept && resume != 0 {
                thread.call_driver("EvtIoResume", resume, [queue, request]);
            }
        }
        thread.with::<QueueData, _>(queue, |queue| {
            queue.is_powered = true;
            queue.became_ready |= !queue.waiting.is_empty();
        });
        dispatch(thread, queue);
    }
}

/// The device goes: its queues, those that are power-managed or the others, accept
/// nothing any more, and what they and the driver hold of theirs is cancelled.
pub fn purge_for_removal(thread: &Thread, device: u64, power_managed: bool) {
    for queue in queues_of(thread, device, |queue| {
        queue.is_power_managed == power_managed
    }) {
        thread.with::<QueueData, _>(queue, |queue| queue.is_shut_down = true);
        halt(thread, queue, Halt::Purge, 0, 0);
        thread.with::<QueueData, _>(queue, |queue| queue.is_powered = false);
        tell_of_stop(thread, queue, STOP_PURGE, "the device was removed");
    }
}

/// Calls `EvtIoStop` for what the driver holds of a queue's requests, and waits until
/// each is acknowledged or done.
fn tell_of_stop(thread: &Thread, queue: u64, action: u64, occasion: &str) {
    let callback = thread.with::<QueueData, _>(queue, |queue| queue.config.io_stop);
    let held = presented(thread, queue);
    for request in &held {
        let state = lock_framework(thread.shared())
            .get::<RequestData>(*request)
            .ok()
            .map(|request| {
                request.stop = Stop::Told;
                (request.was_told_of_cancellation(), request.is_cancelable())
            });
        if let Some((false, is_cancelable)) = state
            && callback != 0
        {
            let flags = action | if is_cancelable { STOP_CANCELABLE } else { 0 };
            thread.call_driver("EvtIoStop", callback, [queue, *request, flags]);
        }
    }
    let mut left = None;
    let is_over = wait::wait_until(thread, None, |thread| {
        let mut framework = lock_framework(thread.shared());
        let presented = framework
            .get::<QueueData>(queue)
            .map_or_else(|_| Vec::new(), |queue| queue.presented.clone());
        left = held
            .iter()
            .filter(|request| presented.contains(request))
            .find_map(|request| {
                let data = framework.get::<RequestData>(*request).ok()?;
                (data.stop == Stop::Told).then(|| request::describe(data))
            });
        left.is_none()
    });
    if let Some(description) = left.filter(|_| !is_over) {
        thread.stop(
            Rule::RequestNotCompleted,
            format!(
                "{occasion} while the driver held {description}, never completed nor \
                 acknowledged with WdfRequestStopAcknowledge"
            ),
        );
    }
}

/// What waits in a queue that is being deleted is cancelled.
pub fn purge_before_delete(thread: &Thread, handle: u64) {
    let is_queue = lock_framework(thread.shared())
        .get::<QueueData>(handle)
        .map(|queue| queue.is_shut_down = true)
        .is_ok();
    if is_queue {
        halt(thread, handle, Halt::Purge, 0, 0);
    }
}
