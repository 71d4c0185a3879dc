//! The operations that a scenario performs on its host.
//!
//! One host is the stand-in kernel, and the other is a Windows machine on which the driver is
//! installed. If a scenario passes on one and fails on the other, the stand-in kernel is wrong.

use std::{fmt, time::Duration};

use etl_file::{Catalog, Decoded, Guid, Trace, decode, decode::ProviderTraits};
#[cfg(windows)]
use etw_session::error::{SessionError, Win32Error};
pub use etw_session::{Filter, Ids, Source};

use crate::{client, provider};

/// The manifest of the sample driver's provider.
pub const MANIFEST: &str = include_str!("../../../inf/etw_sample_driver.man");

/// A session of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session(pub usize);

/// An open file of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File(pub usize);

/// A sent request, which may still be pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending(pub usize);

/// The size of a session's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSpace {
    /// More buffers than the scenarios need.
    Ample,
    /// The fewest and smallest buffers, which a burst fills faster than the session can write them.
    Minimal,
}

/// The result of a request.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// The NTSTATUS with which the request completed.
    pub status: u32,
    /// The output bytes.
    pub output: Vec<u8>,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.status)?;
        if !self.output.is_empty() {
            write!(f, " {:02x?}", self.output)?;
        }
        Ok(())
    }
}

/// A host failed to carry out an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct HostError {
    /// The message.
    pub what: String,
    /// The Windows error code, if the failed call returned one.
    pub code: Option<u32>,
}

impl HostError {
    /// Returns an error of the host itself.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), code: None }
    }
}

#[cfg(windows)]
impl From<SessionError> for HostError {
    fn from(error: SessionError) -> Self {
        let code = match &error {
            SessionError::Win32(error) => Some(error.code),
            _ => None,
        };
        Self { what: error.to_string(), code }
    }
}

#[cfg(windows)]
impl From<Win32Error> for HostError {
    fn from(error: Win32Error) -> Self {
        SessionError::Win32(error).into()
    }
}

/// A host's sessions, files or requests, by number.
#[derive(Debug)]
pub struct Slots<T> {
    all: Vec<Option<T>>,
    what: &'static str,
    is_gone: &'static str,
}

impl<T> Slots<T> {
    /// Returns an empty list. Errors about a missing element combine the two strings: "session 3 is
    /// not running".
    #[must_use]
    pub const fn new(what: &'static str, is_gone: &'static str) -> Self {
        Self { all: Vec::new(), what, is_gone }
    }

    /// Returns the number of the next element.
    #[must_use]
    pub const fn next(&self) -> usize {
        self.all.len()
    }

    /// Adds an element. Returns its number.
    pub fn add(&mut self, one: T) -> usize {
        self.all.push(Some(one));
        self.all.len() - 1
    }

    /// Returns an element.
    ///
    /// # Errors
    ///
    /// Fails if no element has this number.
    pub fn get(&self, number: usize) -> Result<&T, HostError> {
        self.all.get(number).and_then(Option::as_ref).ok_or_else(|| self.gone(number))
    }

    /// Removes an element.
    ///
    /// # Errors
    ///
    /// Fails in the cases that [`Self::get`] lists.
    pub fn take(&mut self, number: usize) -> Result<T, HostError> {
        let taken = self.all.get_mut(number).and_then(Option::take);
        taken.ok_or_else(|| self.gone(number))
    }

    /// Removes all elements. The numbers start again.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.all.drain(..).flatten()
    }

    fn gone(&self, number: usize) -> HostError {
        HostError::new(format!("{} {number} {}", self.what, self.is_gone))
    }
}

/// An event that a session recorded.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The decoded event.
    pub event: Decoded,
    /// The provider traits in the event.
    pub traits: Option<ProviderTraits>,
}

/// The events of the sample driver's and the client's providers that a session recorded, ordered by
/// time.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The events.
    pub events: Vec<Seen>,
    /// The number of events that the session lost.
    pub lost: u64,
}

impl Recording {
    /// Returns the events of the sample driver's and the client's providers in a trace.
    ///
    /// # Errors
    ///
    /// Returns an error if the trace is damaged.
    pub fn from_trace(trace: &Trace, lost: u64) -> Result<Self, HostError> {
        if let Some(damage) = trace.damages().first() {
            return Err(HostError::new(format!("the trace is damaged: {damage}")));
        }
        let mut catalog = Catalog::new();
        catalog.add(MANIFEST).map_err(|error| {
            HostError::new(format!("cannot read the provider's manifest: {error}"))
        })?;
        let events = trace
            .events_by_time()
            .into_iter()
            .filter(|event| [provider(), client()].contains(&event.record.provider))
            .map(|event| Seen {
                event: decode(event, &catalog),
                traits: event
                    .record
                    .item(PROVIDER_TRAITS)
                    .and_then(|blob| ProviderTraits::parse(blob).ok()),
            })
            .collect();
        Ok(Self { events, lost })
    }
}

/// `EVENT_HEADER_EXT_TYPE_PROV_TRAITS`.
const PROVIDER_TRAITS: u16 = 12;

/// A system on which scenarios run: it controls sessions, reads the events that they record, and
/// sends requests to the sample driver's device.
#[expect(
    clippy::missing_errors_doc,
    reason = "one sentence per operation describes its errors; separate sections would hide the operations"
)]
pub trait Host {
    /// Loads the driver and adds its device. Fails if the driver or the system fails.
    fn load_driver(&mut self) -> Result<(), HostError>;

    /// Removes the device and unloads the driver. Fails if the driver or the system fails.
    fn unload_driver(&mut self) -> Result<(), HostError>;

    /// Starts a session that records to a file. The host may extend the name to make it unique.
    /// Fails with the error of `StartTrace`.
    fn start_session(&mut self, name: &str, room: BufferSpace) -> Result<Session, HostError>;

    /// Stops a session and returns its recording.
    /// Fails with the error of `ControlTrace`, or if the file cannot be read.
    fn stop_session(&mut self, session: Session) -> Result<Recording, HostError>;

    /// Enables a provider or group. Fails with the error of `EnableTraceEx2`.
    fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), HostError>;

    /// Disables a provider or group. Fails with the error of `EnableTraceEx2`.
    fn disable(&mut self, session: Session, source: Source) -> Result<(), HostError>;

    /// Requests that a provider or group write its state. Fails with the error of `EnableTraceEx2`.
    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), HostError>;

    /// Sets the list of providers that the session does not enable through their groups
    /// (`TraceSetDisallowList`). Fails with the error of `TraceSetInformation`.
    fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), HostError>;

    /// Sets or clears the activity of the thread that sends requests.
    /// Fails with the error of `EventActivityIdControl`.
    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), HostError>;

    /// Opens the device. Fails with the error of `CreateFile`.
    fn open(&mut self) -> Result<File, HostError>;

    /// Closes a file of the device, which cancels its pending requests.
    /// Fails if the file is not open.
    fn close(&mut self, file: File) -> Result<(), HostError>;

    /// Reads from a file of the device.
    /// Fails if the request could not be sent. The driver's status is in the answer.
    fn read(&mut self, file: File, length: usize) -> Result<Answer, HostError>;

    /// Writes to a file of the device. Fails in the cases that [`read`](Self::read) lists.
    fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, HostError>;

    /// Sends a device control request without waiting for its completion. Fails in the cases that
    /// [`read`](Self::read) lists.
    fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, HostError>;

    /// Sends a traced device control request like the client, without waiting for its completion:
    /// creates an activity, writes the client's event about the request, and sends the activity's
    /// id before the input ([`traced`](etw_sample_interface::traced)). [`Self::finish`] writes the
    /// client's event about the answer, and removes the id from the output. Returns the activity.
    /// Fails in the cases that [`read`](Self::read) lists.
    fn start_traced_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<(Pending, Guid), HostError>;

    /// Cancels a pending request. Fails if the request has already been finished.
    fn cancel(&mut self, request: Pending) -> Result<(), HostError>;

    /// Waits until a request completes. Fails if the request does not complete.
    fn finish(&mut self, request: Pending) -> Result<Answer, HostError>;

    /// Waits. On the stand-in kernel, advances the kernel's clock. Fails if the system crashes in
    /// the meantime.
    fn pass(&mut self, time: Duration) -> Result<(), HostError>;

    /// Returns true if a session with [`BufferSpace::Minimal`] loses events in every burst that
    /// exceeds its buffers, and counts exactly the events that the provider could not write. On
    /// Windows, the writer thread runs concurrently, and may keep up with the burst.
    fn counts_losses_exactly(&self) -> bool {
        false
    }

    /// Stops sessions, closes files and unloads the driver, so that the next scenario starts with
    /// the host in its initial state.
    /// Fails if a step fails, or if the host has detected a fault in the driver.
    fn clear(&mut self) -> Result<(), HostError>;
}
