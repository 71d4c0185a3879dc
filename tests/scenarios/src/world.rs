//! What a scenario needs of the world that it runs in.
//!
//! One world is the stand-in kernel, another a Windows machine that the driver is installed
//! on. Where a scenario comes out differently in the two, the stand-in kernel is wrong.

use std::{fmt, time::Duration};

use etl_file::{Catalog, Decoded, Guid, Trace, decode, decode::ProviderTraits};

use crate::provider;

/// The manifest of the sample driver's provider.
pub const MANIFEST: &str = include_str!("../../../inf/etw_sample_driver.man");

/// A session of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session(pub usize);

/// A file of the device, opened by the scenario's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File(pub usize);

/// A request that was sent and may not be done yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending(pub usize);

/// What a session enables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A provider, by its GUID.
    Provider(Guid),
    /// A provider group, by its GUID.
    Group(Guid),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(guid) => write!(f, "provider {guid}"),
            Self::Group(guid) => write!(f, "group {guid}"),
        }
    }
}

/// What a session wants of what it enables (`EnableTraceEx2`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Events up to this level; 0 for all.
    pub level: u8,
    /// Events with any of these keywords; 0 for all.
    pub any: u64,
    /// Events with all of these keywords.
    pub all: u64,
    /// Events with one of these ids, or with none of them (`EVENT_FILTER_TYPE_EVENT_ID`).
    pub ids: Option<Ids>,
}

/// A choice of event ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Events with these ids.
    Only(Vec<u16>),
    /// Events with other ids.
    Without(Vec<u16>),
}

/// How much room a session has for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// More than the scenarios need.
    Plenty,
    /// The smallest buffers and the fewest, which are not emptied as fast as a burst fills
    /// them.
    Scarce,
}

/// How a request ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its NTSTATUS.
    pub status: u32,
    /// What came back.
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

/// The world refused something, or could not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct WorldError {
    /// The whole story, as a sentence.
    pub what: String,
    /// The Windows error code, where the call that failed has one.
    pub code: Option<u32>,
}

/// An event that a session recorded.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What it says.
    pub event: Decoded,
    /// What its provider says of itself with it.
    pub traits: Option<ProviderTraits>,
}

/// What a session recorded of the sample driver's provider, by time.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The events.
    pub events: Vec<Seen>,
    /// Events that the session could not take.
    pub lost: u64,
}

impl Recording {
    /// What a trace holds of the sample driver's provider.
    ///
    /// # Errors
    ///
    /// When the trace is damaged.
    pub fn of(trace: &Trace, lost: u64) -> Result<Self, WorldError> {
        if let Some(damage) = trace.damages().first() {
            return Err(WorldError {
                what: format!("the trace is damaged: {damage}"),
                code: None,
            });
        }
        let mut catalog = Catalog::new();
        catalog.add(MANIFEST).map_err(|error| WorldError {
            what: format!("the provider's manifest: {error}"),
            code: None,
        })?;
        let events = trace
            .events_by_time()
            .into_iter()
            .filter(|event| event.record.provider == provider())
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

/// A world: a controller of sessions, a consumer of what they record, and a client of the
/// sample driver's device.
pub trait World {
    /// Loads the driver and adds its device.
    ///
    /// # Errors
    ///
    /// When the driver or the system refuses.
    fn load_driver(&mut self) -> Result<(), WorldError>;

    /// Removes the device and unloads the driver.
    ///
    /// # Errors
    ///
    /// When the driver or the system refuses.
    fn unload_driver(&mut self) -> Result<(), WorldError>;

    /// Starts a session that records to a file. Its name is the world's to complete.
    ///
    /// # Errors
    ///
    /// As `StartTrace`.
    fn start_session(&mut self, name: &str, room: Room) -> Result<Session, WorldError>;

    /// Stops a session, and reads what it recorded.
    ///
    /// # Errors
    ///
    /// As `ControlTrace`, and when the file cannot be read.
    fn stop_session(&mut self, session: Session) -> Result<Recording, WorldError>;

    /// Enables a provider or group.
    ///
    /// # Errors
    ///
    /// As `EnableTraceEx2`.
    fn enable(
        &mut self,
        session: Session,
        source: Source,
        filter: &Filter,
    ) -> Result<(), WorldError>;

    /// Disables a provider or group.
    ///
    /// # Errors
    ///
    /// As `EnableTraceEx2`.
    fn disable(&mut self, session: Session, source: Source) -> Result<(), WorldError>;

    /// Asks a provider or group to write what it is like.
    ///
    /// # Errors
    ///
    /// As `EnableTraceEx2`.
    fn capture_state(&mut self, session: Session, source: Source) -> Result<(), WorldError>;

    /// Says which providers the session does not enable by their groups
    /// (`TraceSetDisallowList`).
    ///
    /// # Errors
    ///
    /// As `TraceSetInformation`.
    fn disallow(&mut self, session: Session, providers: &[Guid]) -> Result<(), WorldError>;

    /// Sets the activity of the thread that sends requests, or none.
    ///
    /// # Errors
    ///
    /// As `EventActivityIdControl`.
    fn set_activity(&mut self, activity: Option<Guid>) -> Result<(), WorldError>;

    /// Opens the device.
    ///
    /// # Errors
    ///
    /// As `CreateFile`.
    fn open(&mut self) -> Result<File, WorldError>;

    /// Closes a file of the device; its requests that wait are cancelled.
    ///
    /// # Errors
    ///
    /// When the file is not open.
    fn close(&mut self, file: File) -> Result<(), WorldError>;

    /// Reads.
    ///
    /// # Errors
    ///
    /// When the request could not be sent. What the driver says of it is in the answer.
    fn read(&mut self, file: File, length: usize) -> Result<Answer, WorldError>;

    /// Writes.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn write(&mut self, file: File, bytes: &[u8]) -> Result<Answer, WorldError>;

    /// Sends a device control, and does not wait for its end.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn start_control(
        &mut self,
        file: File,
        code: u32,
        input: &[u8],
        output: usize,
    ) -> Result<Pending, WorldError>;

    /// Cancels a request.
    ///
    /// # Errors
    ///
    /// When there is no such request.
    fn cancel(&mut self, request: Pending) -> Result<(), WorldError>;

    /// Waits for the end of a request.
    ///
    /// # Errors
    ///
    /// When it does not end.
    fn finish(&mut self, request: Pending) -> Result<Answer, WorldError>;

    /// Lets time pass.
    ///
    /// # Errors
    ///
    /// When the system stops meanwhile.
    fn pass(&mut self, time: Duration) -> Result<(), WorldError>;

    /// Stops what still runs, closes what is open, and unloads the driver: the world is as
    /// it was.
    ///
    /// # Errors
    ///
    /// When something cannot be undone, or the world found fault with the driver.
    fn clear(&mut self) -> Result<(), WorldError>;
}
