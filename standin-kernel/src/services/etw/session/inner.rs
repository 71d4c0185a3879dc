//! The part of a session that its writer thread shares: buffers, counters and the sink.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use crossbeam_channel::Sender;
use crossbeam_utils::CachePadded;
use etl_file::write::Buffer;
use parking_lot::Mutex;

use super::{
    config::{Output, SessionConfig},
    counts::Counts,
    realtime,
    sink::Sink,
};
use crate::{
    ground::clock::{self, Clock},
    services::etw::error::ControlError,
};

/// The buffers that are not in use.
pub struct Spare {
    pub free: Vec<Buffer>,
    /// The total number of buffers, including those that are in use or waiting to be written.
    pub made: u32,
}

/// The data that a processor writes when it records an event.
pub struct Lane {
    /// The buffer in use.
    pub buffer: Mutex<Buffer>,
    /// The number of events written to this lane's buffers. Changed while the buffer is locked.
    pub events: AtomicU64,
}

/// The part of a session that its writer thread shares.
///
/// Frequently changed data have their own cache lines: a processor that records events writes only
/// to its own lane, and only reads the rest.
pub struct Inner {
    pub id: u16,
    pub config: Arc<SessionConfig>,
    pub clock: Arc<Clock>,
    /// One lane per processor, or one lane for all.
    pub lanes: Box<[CachePadded<Lane>]>,
    pub spare: CachePadded<Mutex<Spare>>,
    pub sink: CachePadded<Mutex<Sink>>,
    pub counts: CachePadded<Counts>,
    /// Set if the file has reached its maximum size, so that no more buffers are written.
    pub full: AtomicBool,
    /// Set if the store for consumers is full and the session has no file.
    pub store_full: AtomicBool,
    /// Set if the session was stopped.
    pub ended: AtomicBool,
    /// Set once the providers have been notified that the session stopped.
    pub told: AtomicBool,
    /// The last message number from the session's own sequence.
    pub sequence: AtomicU32,
    /// The time of the next flush of partly filled buffers; `i64::MAX` for never.
    pub flush_due: AtomicI64,
}

impl Inner {
    /// Creates the initial buffers.
    pub fn make_spare(&self, size: u32) {
        let mut spare = self.spare.lock();
        while spare.made < self.config.minimum_buffers {
            spare.free.push(Buffer::new(size, 0));
            spare.made += 1;
        }
    }

    /// Returns an empty buffer, if one is available or may be allocated.
    pub fn take_spare(&self, size: u32, processor: u16, may_grow: bool) -> Option<Buffer> {
        let mut spare = self.spare.lock();
        // The memory session's limit covers the buffers in use and the stored buffers together.
        let unlimited = matches!(self.config.output, Output::Memory { .. });
        if let Some(buffer) = spare.free.pop() {
            return Some(buffer.on_processor(processor));
        }
        if unlimited || (may_grow && spare.made < self.config.maximum_buffers) {
            spare.made += 1;
            return Some(Buffer::new(size, processor));
        }
        None
    }

    pub fn put(&self, buffer: Buffer) {
        let (free, store_full) = {
            let mut sink = self.sink.lock();
            let free = sink.put(buffer, &self.counts, &self.full);
            let store_full = sink.deliveries.as_ref().is_some_and(realtime::Deliveries::is_full);
            (free, store_full)
        };
        if matches!(self.config.output, Output::Consumers) {
            self.store_full.store(store_full, Ordering::Release);
        }
        self.spare.lock().free.extend(free);
    }

    pub fn rearm(&self) {
        let due = self
            .config
            .flush_period()
            .map_or(i64::MAX, |period| self.clock.last().saturating_add(clock::ticks(period)));
        self.flush_due.store(due, Ordering::Relaxed);
    }
}

/// A message to the writer's thread.
pub enum ToWriter {
    /// A full buffer.
    Full(Buffer),
    /// A request to answer once all earlier messages are handled.
    Done(Sender<()>),
}

/// The thread that writes a session's full buffers.
pub struct Writer {
    pub to: Sender<ToWriter>,
    pub thread: JoinHandle<()>,
}

impl Writer {
    pub fn start(inner: Arc<Inner>) -> Result<Self, ControlError> {
        let (to, inbox) = crossbeam_channel::unbounded();
        let name = format!("writer of session {}", inner.id);
        let path = inner.config.file.clone();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                for message in inbox {
                    match message {
                        ToWriter::Full(buffer) => inner.put(buffer),
                        // The requesting thread may no longer be waiting.
                        ToWriter::Done(done) => drop(done.send(())),
                    }
                }
            })
            .map_err(|error| ControlError::File { path, error: error.into() })?;
        Ok(Self { to, thread })
    }

    /// Lets the thread handle the messages sent so far. Later messages are lost.
    pub fn stop(self) {
        drop(self.to);
        // The thread is not joined: routes that are being replaced may briefly keep the session alive,
        // and with it the channel to the thread.
        drop(self.thread);
    }
}
