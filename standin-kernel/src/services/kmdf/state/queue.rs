//! I/O queues: their requests and state.

use std::{collections::VecDeque, thread::ThreadId};

use crate::ground::{NtResult, NtStatus, abi::IoQueueConfig};

/// `WDF_IO_QUEUE_DISPATCH_TYPE`.
pub const SEQUENTIAL: u32 = 1;

pub const PARALLEL: u32 = 2;

pub const MANUAL: u32 = 3;

/// A callback and its context.
#[derive(Clone, Copy)]
pub struct Notify {
    pub function: u64,
    pub argument: u64,
}

/// A queue.
#[expect(
    clippy::struct_excessive_bools,
    reason = "the flags are independent, like the bits of WDF_IO_QUEUE_STATE"
)]
pub struct QueueData {
    pub config: IoQueueConfig,
    /// The waiting requests. The first one is presented next.
    pub waiting: VecDeque<u64>,
    /// The requests that the driver holds, in the order in which they were presented.
    pub presented: Vec<u64>,
    /// The requests that were canceled in the queue, if the driver has not been notified yet.
    pub canceled: VecDeque<u64>,
    /// The canceled requests whose `EvtRequestCancel` has not been called yet.
    pub cancelable: VecDeque<u64>,
    pub accepts: bool,
    pub dispatches: bool,
    pub power: Power,
    /// Set while the driver is notified of a change of the power state. Notifications of
    /// cancellations wait during that time.
    pub is_notifying: bool,
    pub is_power_managed: bool,
    /// Set once the device directs requests to the queue, which the driver then cannot delete.
    pub is_routed: bool,
    /// Set if the device is being removed, so that the queue accepts no more requests.
    pub is_shut_down: bool,
    /// Set during a purge. Requests that the driver returns to the queue are then canceled.
    pub cancels: bool,
    /// Set if a request arrived in the empty queue, so that the ready callback is due.
    pub became_ready: bool,
    pub ready: Option<Notify>,
    pub idle: Option<Notify>,
    pub purged: Option<Notify>,
    /// The threads that are dispatching the queue's events, once for each callback that they are in.
    pub dispatching: Vec<ThreadId>,
}

/// The effect of the device's power state on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The queue dispatches.
    On,
    /// The driver is being notified of a change. The queue does not dispatch, but the driver can
    /// retrieve requests.
    Changing,
    /// The queue provides no requests.
    Off,
}

/// The next event of a queue.
pub enum Event {
    /// `EvtRequestCancel` is due.
    Canceled(u64),
    CanceledOnQueue(u64, u64),
    /// The queue has stopped completely. This callback, unlike others, is not synchronized.
    Stopped(Notify),
    Notify(Notify),
    Deliver(u64, Box<IoQueueConfig>),
}

impl QueueData {
    /// Returns whether the queue is the default queue.
    pub const fn is_default(&self) -> bool {
        self.config.default_queue != 0
    }

    /// Returns whether the queue has a callback for a `WDF_REQUEST_TYPE`, or is a manual queue.
    pub const fn handles(&self, request_type: u32) -> bool {
        let own = match request_type {
            3 => self.config.evt_io_read,
            4 => self.config.evt_io_write,
            14 => self.config.evt_io_device_control,
            15 => self.config.evt_io_internal_device_control,
            _ => 0,
        };
        self.config.dispatch_type == MANUAL || self.config.evt_io_default != 0 || own != 0
    }

    /// Returns whether a request waits in the queue.
    pub fn has_waiting(&self, request: u64) -> bool {
        self.waiting.contains(&request)
    }

    /// Returns whether a purge cancels requests that the driver returns to the queue or makes
    /// cancelable.
    pub const fn cancels_what_comes_back(&self) -> bool {
        self.cancels
    }

    /// Removes a request.
    pub fn forget(&mut self, request: u64) {
        self.waiting.retain(|waiting| *waiting != request);
        self.presented.retain(|presented| *presented != request);
        self.canceled.retain(|canceled| *canceled != request);
        self.cancelable.retain(|cancelable| *cancelable != request);
    }

    pub fn put_last(&mut self, request: u64) {
        self.waiting.push_back(request);
        self.became_ready |= self.waiting.len() == 1;
    }

    pub fn put_first(&mut self, request: u64) {
        self.waiting.push_front(request);
        self.became_ready |= self.waiting.len() == 1;
    }

    pub fn next_event(&mut self) -> Option<Event> {
        if !self.is_notifying {
            if let Some(request) = self.cancelable.pop_front() {
                return Some(Event::Canceled(request));
            }
            if let Some(request) = self.canceled.pop_front() {
                return Some(Event::CanceledOnQueue(request, self.config.evt_io_canceled_on_queue));
            }
        }
        // The end of a stop or purge is notified only after the running callbacks have returned.
        if self.presented.is_empty() && self.dispatching.len() == 1 {
            if let Some(idle) = self.idle.take() {
                self.cancels = false;
                return Some(Event::Stopped(idle));
            }
            if self.waiting.is_empty()
                && let Some(purged) = self.purged.take()
            {
                self.cancels = false;
                return Some(Event::Notify(purged));
            }
        }
        if self.power != Power::On || !self.dispatches {
            return None;
        }
        let room = match self.config.dispatch_type {
            MANUAL => {
                let ready = self.ready.filter(|_| self.became_ready)?;
                self.became_ready = false;
                return Some(Event::Notify(ready));
            }
            SEQUENTIAL => 1,
            _ => usize::try_from(self.config.settings).unwrap_or(usize::MAX),
        };
        if self.presented.len() >= room {
            return None;
        }
        let request = self.waiting.pop_front()?;
        self.presented.push(request);
        Some(Event::Deliver(request, Box::new(self.config)))
    }
}

/// Returns whether a configuration is valid.
pub const fn check(config: &IoQueueConfig) -> NtResult {
    let has_callback = config.evt_io_default != 0
        || config.evt_io_read != 0
        || config.evt_io_write != 0
        || config.evt_io_device_control != 0
        || config.evt_io_internal_device_control != 0;
    match config.dispatch_type {
        SEQUENTIAL | PARALLEL if !has_callback => Err(NtStatus::WDF_NO_CALLBACK),
        MANUAL if has_callback => Err(NtStatus::INVALID_PARAMETER),
        SEQUENTIAL | MANUAL if config.settings != 0 => Err(NtStatus::INVALID_PARAMETER),
        SEQUENTIAL | PARALLEL | MANUAL => Ok(()),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}
