//! The operations that probes perform on their host.

use std::time::Duration;

use etl_file::{EventRecord, Guid, Trace};
use etw_probes_interface::PROVIDER;
use etw_scenarios::{HostError, Session, Source};

use crate::answers::System;

/// A process and a thread, by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
}

/// The configuration of a session that writes to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionPlan {
    /// The size of a buffer in kilobytes; 0 means 64.
    pub buffer_kb: u32,
    /// Set to use the minimum number of buffers. A burst fills them faster than they are written.
    pub few_buffers: bool,
    /// `EVENT_TRACE_INDEPENDENT_SESSION_MODE`.
    pub independent: bool,
    /// `EVENT_TRACE_USE_PAGED_MEMORY`.
    pub paged: bool,
}

/// The parameters with which a session enables a provider or group (`EnableTraceEx2`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Enabling {
    /// The level.
    pub level: u8,
    /// Match-any.
    pub any: u64,
    /// Match-all.
    pub all: u64,
    /// The source id.
    pub source: Option<Guid>,
    /// The data of a schematized filter, without its header.
    pub filter: Option<Vec<u8>>,
    /// The ids that an event id filter passes.
    pub ids: Option<Vec<u16>>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The NTSTATUS with which the request completed.
    pub status: u32,
    /// The output.
    pub output: Vec<u8>,
}

/// The events of the driver's provider that a session recorded.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The events, by time.
    pub events: Vec<EventRecord>,
    /// The number of events that the session lost (`EventsLost`).
    pub lost: u64,
}

impl Recorded {
    /// Returns the events of the driver's provider in a trace.
    ///
    /// # Errors
    ///
    /// Returns an error if the trace is damaged.
    pub fn from_trace(trace: &Trace, lost: u64) -> Result<Self, HostError> {
        if let Some(damage) = trace.damages().first() {
            return Err(HostError { what: format!("the trace is damaged: {damage}"), code: None });
        }
        let provider = Guid::new(PROVIDER.0, PROVIDER.1, PROVIDER.2, PROVIDER.3);
        let events = trace
            .events_by_time()
            .into_iter()
            .map(|event| &event.record)
            .filter(|record| record.provider == provider)
            .cloned()
            .collect();
        Ok(Self { events, lost })
    }
}

/// A system to probe: it runs the driver `etw-probes-driver` and controls sessions.
#[expect(
    clippy::missing_errors_doc,
    reason = "one sentence per operation describes its errors; separate sections would hide the operations"
)]
pub trait Host {
    /// Returns the system. Fails if the system cannot be identified.
    fn system(&self) -> Result<System, HostError>;

    /// Returns the thread that sends requests.
    fn thread(&self) -> Thread;

    /// Sends a device control request and waits for its completion.
    /// Fails if the request could not be sent. The driver's status is in the result.
    fn control(&mut self, code: u32, input: &[u8], output: usize) -> Result<Completed, HostError>;

    /// Starts a session. Fails with the error of `StartTrace`.
    fn start_session(&mut self, plan: SessionPlan) -> Result<Session, HostError>;

    /// Stops a session and returns its recording.
    /// Fails with the error of `ControlTrace`, or if the file cannot be read.
    fn stop_session(&mut self, session: Session) -> Result<Recorded, HostError>;

    /// Enables a provider or group. Fails with the error of `EnableTraceEx2`.
    fn enable(
        &mut self,
        session: Session,
        source: Source,
        enabling: &Enabling,
    ) -> Result<(), HostError>;

    /// Disables a provider or group. Fails with the error of `EnableTraceEx2`.
    fn disable(
        &mut self,
        session: Session,
        source: Source,
        id: Option<Guid>,
    ) -> Result<(), HostError>;

    /// Requests that a provider or group write its state. Fails with the error of `EnableTraceEx2`.
    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError>;

    /// Sets or clears the activity of the thread that sends requests.
    /// Fails with the error of `EventActivityIdControl`.
    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError>;

    /// Denies providers membership in a group, until [`Self::clear`].
    /// Fails with the error of `EventAccessControl`.
    fn deny_group(&mut self, group: Guid) -> Result<(), HostError>;

    /// Waits. On the stand-in kernel, advances the kernel's clock. Fails if the system crashes in
    /// the meantime.
    fn pass(&mut self, time: Duration) -> Result<(), HostError>;

    /// Stops sessions and undoes a probe's changes, so that the next probe starts with the
    /// host in its initial state. Fails if a step fails.
    fn clear(&mut self) -> Result<(), HostError>;
}
