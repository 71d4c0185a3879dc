//! A session whose events are decoded while it runs.

use std::sync::Arc;

use etl_file::internals::kernel;
use etl_file::{
    Catalog, Clock, ClockType, Decoded, Event, EventDescriptor, EventRecord, FileTime, PointerSize,
    decode,
};

use super::{error::KernelError, kernel::Kernel, session::Consumer};
use crate::{
    ground::flight,
    services::etw::{
        controller::SessionHandle,
        session::{
            config::{RealTime, SessionConfig, SessionReport},
            realtime::{Delivered, RT_LOST_EVENT},
        },
    },
};

/// A session whose events are decoded while it runs. Clones share the session.
#[derive(Clone)]
pub struct Recording {
    kernel: Kernel,
    session: SessionHandle,
    consumer: Arc<Consumer>,
    catalog: Arc<Catalog>,
}

/// An event of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// The event as recorded in the trace. Its offset in the file is not known yet, and is zero.
    pub event: Event,
    /// The event's decoded form.
    pub decoded: Decoded,
}

impl Recording {
    /// Starts a session that writes its file and also returns its events. `catalog` contains the
    /// schemas of events that are not self-describing.
    ///
    /// # Errors
    ///
    /// Returns an error if the session cannot be started.
    pub fn start(
        kernel: &Kernel,
        config: SessionConfig,
        catalog: Catalog,
    ) -> Result<Self, KernelError> {
        // [`Recording::take`] empties the queue after each step, so the number of events is not
        // limited.
        let real_time = RealTime { max_stored: usize::MAX, max_unread: usize::MAX };
        let session =
            kernel.start_session(SessionConfig { real_time: Some(real_time), ..config })?;
        Ok(Self {
            kernel: kernel.clone(),
            session,
            consumer: Arc::new(kernel.open_consumer(session)?),
            catalog: Arc::new(catalog),
        })
    }

    /// Returns the session, so that a test can enable providers for it.
    #[must_use]
    pub const fn session(&self) -> SessionHandle {
        self.session
    }

    /// Returns the schemas of the recording's events.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the events since the last call, in the order in which they were written, and writes
    /// them to the session's file.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, if its file cannot be written, or if the
    /// kernel has bugchecked; after a bugcheck, [`Self::stop`] returns the events.
    pub fn take(&self) -> Result<Vec<RecordedEvent>, KernelError> {
        self.kernel.flush_session(self.session)?;
        Ok(self.delivered())
    }

    /// Stops the session, and returns the events since the last call of [`Self::take`]. Also works
    /// after a bugcheck.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, or if its file cannot be written.
    pub fn stop(self) -> Result<(Vec<RecordedEvent>, SessionReport), KernelError> {
        let report = self.kernel.stop_session(self.session)?;
        Ok((self.delivered(), report))
    }

    /// Returns the events that were delivered since the last call.
    fn delivered(&self) -> Vec<RecordedEvent> {
        let records = self.consumer.take_all().into_iter();
        records
            .filter_map(|record| {
                flight::note_progress();
                let time = |timestamp| FileTime::from_raw(self.kernel.file_time(timestamp));
                match record {
                    // The session's report includes the number of lost events.
                    Delivered::Event(event) if event.provider == RT_LOST_EVENT => None,
                    Delivered::Event(record) => {
                        let event = Event {
                            time: time(record.timestamp),
                            record,
                            processor: 0,
                            buffer: 0,
                            offset: 0,
                            pointer_size: PointerSize::Eight,
                            flags: 0,
                        };
                        Some(RecordedEvent { decoded: decode(&event, &self.catalog), event })
                    }
                    Delivered::Other { record, timestamp } => {
                        let time = time(timestamp);
                        RecordedEvent::of_record(&record, timestamp, time, &self.catalog)
                    }
                }
            })
            .collect()
    }
}

impl RecordedEvent {
    /// Returns the event in a record that is not an event record: a WPP message or a classic
    /// provider's event.
    pub(crate) fn of_record(
        record: &[u8],
        timestamp: i64,
        time: FileTime,
        catalog: &Catalog,
    ) -> Option<Self> {
        // This clock is a placeholder, because the caller passes the time.
        let clock = Clock {
            kind: ClockType::SystemTime,
            perf_frequency: 0,
            cpu_mhz: 0,
            start_clock: 0,
            start_time: FileTime::default(),
        };
        let found = kernel::decode(record)?;
        let header = &found.header;
        let event = Event {
            record: EventRecord {
                thread_id: header.thread_id.unwrap_or(u32::MAX),
                process_id: header.process_id.unwrap_or(u32::MAX),
                timestamp,
                provider: found.class,
                descriptor: EventDescriptor {
                    id: header.message,
                    version: u8::try_from(header.version).unwrap_or(u8::MAX),
                    level: header.level,
                    opcode: header.opcode,
                    ..EventDescriptor::default()
                },
                user_data: record.get(header.payload..).unwrap_or_default().to_vec(),
                ..EventRecord::default()
            },
            time,
            processor: 0,
            buffer: 0,
            offset: 0,
            pointer_size: found.pointer_size,
            flags: 0,
        };
        let found = found.described_by(catalog.formats());
        let decoded = found.into_decoded(&clock, 0, timestamp);
        Some(Self { event, decoded: Decoded { time, timestamp, ..decoded } })
    }
}
