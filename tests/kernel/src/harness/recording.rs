//! A session whose events are decoded while it runs.

use std::sync::Arc;

use etl_file::{Catalog, Decoded, Event, FileTime, decode, read::PointerSize};

use super::{error::KernelError, kernel::Kernel, session::Consumer};
use crate::{
    ground::flight,
    services::etw::{
        controller::SessionHandle,
        session::{
            config::{RealTime, SessionConfig, SessionReport},
            realtime::RT_LOST_EVENT,
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
    /// The event as it is in the trace. Its place in the file is not known yet, and is zero.
    pub event: Event,
    /// The event's decoded form.
    pub decoded: Decoded,
}

impl Recording {
    /// Starts a session that writes its file and hands out its events as well. `catalog` has the
    /// descriptions of the events that do not describe themselves.
    ///
    /// # Errors
    ///
    /// Returns an error if the session cannot be started.
    pub fn start(
        kernel: &Kernel,
        config: SessionConfig,
        catalog: Catalog,
    ) -> Result<Self, KernelError> {
        // The events are taken after each step, however many they are.
        let real_time = RealTime {
            max_stored: usize::MAX,
            max_unread: usize::MAX,
        };
        let session = kernel.start_session(SessionConfig {
            real_time: Some(real_time),
            ..config
        })?;
        Ok(Self {
            kernel: kernel.clone(),
            session,
            consumer: Arc::new(kernel.open_consumer(session)?),
            catalog: Arc::new(catalog),
        })
    }

    /// Returns the session, which a test enables providers for.
    #[must_use]
    pub const fn session(&self) -> SessionHandle {
        self.session
    }

    /// Returns the descriptions of events.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the events since the last call, in the order of their writes, and writes them to the
    /// session's file.
    ///
    /// # Errors
    ///
    /// Returns an error if the session is not running, if its file cannot be written, or if the
    /// kernel has bugchecked; [`Self::stop`] returns the events then.
    pub fn take(&self) -> Result<Vec<RecordedEvent>, KernelError> {
        self.kernel.flush_session(self.session)?;
        Ok(self.delivered())
    }

    /// Stops the session, and returns the events since the last call of [`Self::take`]. A kernel that
    /// has bugchecked can stop it too.
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
        let records = self.consumer.take().into_iter();
        records
            // The session's report counts lost events.
            .filter(|record| record.provider != RT_LOST_EVENT)
            .map(|record| {
                flight::note_progress();
                let event = Event {
                    time: FileTime::from_raw(self.kernel.file_time(record.timestamp)),
                    record,
                    processor: 0,
                    buffer: 0,
                    offset: 0,
                    pointer_size: PointerSize::Eight,
                    flags: 0,
                };
                RecordedEvent {
                    decoded: decode(&event, &self.catalog),
                    event,
                }
            })
            .collect()
    }
}
