//! Running sessions and their buffers.
//!
//! A session has one buffer in use per processor, and free buffers. When a buffer is full, a free
//! buffer replaces it, and the full buffer goes to the [`Sink`]. Locks are acquired in this order:
//! the buffers in use, by session and processor; the free buffers; the sink.
//!
//! An event write changes only its processor's [`Lane`]. Processors share the free buffers and the
//! sink, which each processor uses once per buffer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
};

use crossbeam_channel::Sender;
use crossbeam_utils::CachePadded;
use etl_file::{
    EncodedRecord,
    write::{AppendError, Buffer, WriteError},
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    config::{Output, Sequence, SessionConfig, SessionReport, SessionStatistics},
    counts::stamp,
    inner::{Inner, Lane, Spare, ToWriter, Writer},
    realtime::Mailbox,
    sink::Sink,
};
use crate::{
    ground::{clock::Clock, flight},
    services::etw::error::ControlError,
};

/// The reason that an event cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The event does not fit in an empty buffer (ETW-1.3.18).
    NeverFits,
    /// All buffers are full and waiting to be written (ETW-1.3.19).
    NoBuffer,
    /// The store for real-time consumers is full (ETW-1.3.20).
    StoreFull,
    /// The session has stopped on its own because its file is full (ETW-6.4.4).
    Stopped,
    /// The session was stopped after the routes were read.
    Ended,
}

/// A session.
pub struct Session {
    inner: Arc<Inner>,
    writer: Mutex<Option<Writer>>,
    /// The channel to the writer thread, if the session has one.
    to_writer: Option<Sender<ToWriter>>,
}

/// A reservation of space for an event in a session's buffer.
pub struct Reservation<'a> {
    session: &'a Session,
    lane: &'a Lane,
    buffer: MutexGuard<'a, Buffer>,
}

impl Session {
    /// Starts a session and creates its file.
    pub fn start(
        id: u16,
        config: SessionConfig,
        clock: &Arc<Clock>,
        processors: u16,
    ) -> Result<Self, ControlError> {
        let config = Arc::new(config.settle(processors)?);
        let streams = if config.per_processor { processors } else { 1 };
        let size = config.buffer_kb * 1024;
        let sink = Sink::new(id, Arc::clone(&config), Arc::clone(clock), processors);
        let inner = Inner {
            id,
            lanes: (0..streams)
                .map(|processor| {
                    CachePadded::new(Lane {
                        buffer: Mutex::new(Buffer::new(size, processor)),
                        events: AtomicU64::new(0),
                    })
                })
                .collect(),
            spare: CachePadded::new(Mutex::new(Spare {
                free: Vec::new(),
                made: u32::from(streams),
            })),
            sink: CachePadded::new(Mutex::new(sink)),
            counts: CachePadded::default(),
            full: AtomicBool::new(false),
            store_full: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            told: AtomicBool::new(false),
            sequence: AtomicU32::new(0),
            flush_due: AtomicI64::new(i64::MAX),
            clock: Arc::clone(clock),
            config,
        };
        inner.make_spare(size);
        inner.rearm();
        if !matches!(inner.config.output, Output::Memory { .. } | Output::Consumers) {
            let mut sink = inner.sink.lock();
            sink.create_file().map_err(|error| failed(&sink, error))?;
        }
        let inner = Arc::new(inner);
        let writer =
            inner.config.writer_thread.then(|| Writer::start(Arc::clone(&inner))).transpose()?;
        Ok(Self {
            to_writer: writer.as_ref().map(|writer| writer.to.clone()),
            inner,
            writer: Mutex::new(writer),
        })
    }

    /// Returns the session's number.
    pub fn id(&self) -> u16 {
        self.inner.id
    }

    /// Returns the session's configuration, with the effective numbers of buffers.
    pub fn config(&self) -> &SessionConfig {
        &self.inner.config
    }

    /// Returns whether the session is private to a process.
    pub fn is_private(&self) -> bool {
        self.inner.config.private.is_some()
    }

    /// Returns whether the file is full, so that the session records no more events.
    pub fn is_full(&self) -> bool {
        self.inner.full.load(Ordering::Acquire)
    }

    /// Returns whether the file is full and the providers have not been notified yet.
    pub fn take_full(&self) -> bool {
        self.is_full() && !self.inner.told.swap(true, Ordering::Relaxed)
    }

    /// Returns the next number of the session's sequence, if the session has one. `global` is the
    /// last number of the shared sequence.
    pub fn next_sequence(&self, global: &AtomicU32) -> Option<u32> {
        let last = match self.inner.config.sequence? {
            Sequence::Local => &self.inner.sequence,
            Sequence::Global => global,
        };
        Some(last.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    /// Counts an event that could not be recorded.
    pub fn count_lost(&self) {
        let counts = &self.inner.counts;
        counts.events_lost.fetch_add(1, Ordering::Relaxed);
        counts.note_losses(self.inner.id);
    }

    /// Counts a recorded event for which a stack was requested.
    pub fn count_stack(&self) {
        self.inner.counts.stacks_not_captured.fetch_add(1, Ordering::Relaxed);
    }

    /// Reserves space for a record of `size` bytes in a processor's buffer. `may_grow` allows
    /// allocating a buffer, which is impossible at a high IRQL (ETW-6.3.4).
    pub fn reserve(
        &self,
        processor: u16,
        size: usize,
        may_grow: bool,
    ) -> Result<Reservation<'_>, NoRoom> {
        let inner = &*self.inner;
        let lane = usize::from(processor) % inner.lanes.len().max(1);
        let Some(lane) = inner.lanes.get(lane) else {
            return Err(NoRoom::NoBuffer);
        };
        let mut buffer = lane.buffer.lock();
        if inner.ended.load(Ordering::Acquire) {
            return Err(NoRoom::Ended);
        }
        if inner.full.load(Ordering::Acquire) {
            return Err(NoRoom::Stopped);
        }
        if inner.store_full.load(Ordering::Acquire) {
            return Err(NoRoom::StoreFull);
        }
        match buffer.check(size) {
            Ok(()) => {}
            Err(AppendError::Full) => {
                let empty = inner
                    .take_spare(buffer.size(), buffer.processor(), may_grow)
                    .ok_or(NoRoom::NoBuffer)?;
                let full = std::mem::replace(&mut *buffer, empty);
                self.submit(full);
                if inner.full.load(Ordering::Acquire) {
                    return Err(NoRoom::Stopped);
                }
                if inner.store_full.load(Ordering::Acquire) {
                    return Err(NoRoom::StoreFull);
                }
            }
            Err(
                AppendError::NeverFits { .. }
                | AppendError::Encode(_)
                | AppendError::NotARecord { .. },
            ) => {
                return Err(NoRoom::NeverFits);
            }
        }
        Ok(Reservation { session: self, lane, buffer })
    }

    /// Passes a full buffer to the writer thread or the sink.
    fn submit(&self, buffer: Buffer) {
        match &self.to_writer {
            // The thread ends after the session's last buffer, so it receives every buffer.
            Some(writer) => drop(writer.send(ToWriter::Full(buffer))),
            None => self.inner.put(buffer),
        }
    }

    /// Writes the contents of the buffers (`EVENT_TRACE_CONTROL_FLUSH`). For a session in memory,
    /// writes its buffers to a file, replacing any existing file.
    pub fn flush(&self) -> Result<(), ControlError> {
        let inner = &*self.inner;
        if matches!(inner.config.output, Output::Memory { .. }) {
            let in_use: Vec<_> = inner.lanes.iter().map(|lane| lane.buffer.lock()).collect();
            let mut sink = inner.sink.lock();
            return sink.write_memory(&in_use, &inner.counts).map_err(|error| failed(&sink, error));
        }
        inner.rearm();
        for lane in &inner.lanes {
            let mut buffer = lane.buffer.lock();
            if buffer.is_empty() || self.is_full() {
                continue;
            }
            if let Some(empty) = inner.take_spare(buffer.size(), buffer.processor(), true) {
                let partly = std::mem::replace(&mut *buffer, empty);
                self.submit(partly);
            }
            // If there is no free buffer, the other buffers are waiting to be written, and this one
            // will follow them when it is full.
        }
        self.wait_for_writer();
        Ok(())
    }

    fn wait_for_writer(&self) {
        if let Some(writer) = &self.to_writer {
            let (done, finished) = crossbeam_channel::bounded(1);
            if writer.send(ToWriter::Done(done)).is_ok() {
                // The thread answers, or has already ended.
                let _answered = finished.recv();
            }
        }
    }

    /// Flushes the buffers if a flush is due by `now`. Returns whether a flush was due.
    pub fn flush_if_due(&self, now: i64) -> bool {
        let due = self.inner.flush_due.load(Ordering::Relaxed) <= now;
        if due {
            // Buffers that cannot be written to the file are counted as lost.
            let _flushed = self.flush();
        }
        due
    }

    /// Returns the time of the next flush of partly filled buffers, if flushes are scheduled.
    pub fn flush_due(&self) -> Option<i64> {
        let due = self.inner.flush_due.load(Ordering::Relaxed);
        (due != i64::MAX).then_some(due)
    }

    /// Delays writing full buffers, like a slow disk, or resumes it.
    pub fn hold_writer(&self, hold: bool) {
        self.wait_for_writer();
        let inner = &*self.inner;
        let free = {
            let mut sink = inner.sink.lock();
            if hold {
                sink.held = true;
                Vec::new()
            } else {
                sink.release(&inner.counts, &inner.full)
            }
        };
        inner.spare.lock().free.extend(free);
    }

    /// Makes writing the next buffers fail.
    pub fn fail_writes(&self, buffers: u32) {
        self.inner.sink.lock().failing += buffers;
    }

    /// Attaches a consumer.
    pub fn attach(&self) -> Result<Arc<Mailbox>, ControlError> {
        let mut sink = self.inner.sink.lock();
        let Some(deliveries) = &mut sink.deliveries else {
            return Err(ControlError::InvalidParameter(format!(
                "the session \"{}\" does not deliver in real time",
                self.inner.config.name
            )));
        };
        let mailbox = deliveries.attach();
        self.inner.store_full.store(false, Ordering::Release);
        Ok(mailbox)
    }

    /// Detaches a consumer.
    pub fn detach(&self, mailbox: &Arc<Mailbox>) {
        if let Some(deliveries) = &mut self.inner.sink.lock().deliveries {
            deliveries.detach(mailbox);
        }
    }

    /// Returns the statistics.
    pub fn statistics(&self) -> SessionStatistics {
        let inner = &*self.inner;
        let (buffers, free_buffers) = {
            let spare = inner.spare.lock();
            let free = u32::try_from(spare.free.len()).unwrap_or(u32::MAX);
            (spare.made, free)
        };
        let sink = inner.sink.lock();
        let counts = &inner.counts;
        // This is read before the recorded events, which include it.
        let events_in_lost_buffers = counts.events_in_lost_buffers.load(Ordering::Relaxed);
        let lanes = inner.lanes.iter();
        let recorded: u64 = lanes.map(|lane| lane.events.load(Ordering::Relaxed)).sum();
        SessionStatistics {
            events: recorded.saturating_sub(events_in_lost_buffers),
            events_lost: counts.events_lost.load(Ordering::Relaxed),
            log_buffers_lost: counts.log_buffers_lost.load(Ordering::Relaxed),
            events_in_lost_buffers,
            stacks_not_captured: counts.stacks_not_captured.load(Ordering::Relaxed),
            real_time_buffers_lost: sink.deliveries.as_ref().map_or(0, |one| one.lost),
            buffers_written: sink.buffers_written,
            buffers,
            free_buffers,
        }
    }

    /// Writes the remaining buffers and finishes the file.
    pub fn finish(&self) -> Result<SessionReport, ControlError> {
        self.inner.ended.store(true, Ordering::Release);
        if !matches!(self.inner.config.output, Output::Memory { .. }) {
            self.hold_writer(false);
            self.flush()?;
        }
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            writer.stop();
        }
        let inner = &*self.inner;
        {
            let mut sink = inner.sink.lock();
            sink.finish_file(&inner.counts).map_err(|error| failed(&sink, error))?;
        }
        let statistics = self.statistics();
        let sink = inner.sink.lock();
        Ok(SessionReport {
            name: inner.config.name.clone(),
            file: sink.path().to_owned(),
            files: sink.files.clone(),
            events: statistics.events,
            events_lost: statistics.events_lost,
            log_buffers_lost: statistics.log_buffers_lost,
            events_in_lost_buffers: statistics.events_in_lost_buffers,
            real_time_buffers_lost: statistics.real_time_buffers_lost,
            stacks_not_captured: statistics.stacks_not_captured,
            buffers_written: statistics.buffers_written,
            stopped_by_itself: self.is_full(),
            file_error: sink.error.clone(),
        })
    }
}

impl Reservation<'_> {
    /// Writes an event to the reserved space. `counter` is the counter's reading for its timestamp.
    pub fn record(mut self, record: &EncodedRecord, counter: i64) -> Result<(), AppendError> {
        let inner = &*self.session.inner;
        let timestamp = stamp(&inner.config, &inner.clock, counter);
        let before = self.buffer.records().len();
        self.buffer.try_append_record(record, timestamp)?;
        let record = before..before + record.size();
        if let Some(record) = self.buffer.records().get(record) {
            flight::note_event(inner.id, self.buffer.processor(), record);
        }
        // Only the owner of the buffer changes the count.
        let events = self.lane.events.load(Ordering::Relaxed);
        self.lane.events.store(events + 1, Ordering::Relaxed);
        Ok(())
    }
}

fn failed(sink: &Sink, error: WriteError) -> ControlError {
    ControlError::File { path: sink.path().to_owned(), error }
}
