//! The data on a report's page about each recorded session.

use serde::Serialize;

use etl_file::{FileTime, TraceHeader};

/// The data of a session whose events a page shows, taken from the session's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Session {
    /// The name of the file.
    pub file: String,
    /// The session's name.
    pub name: String,
    /// The time at which the session started.
    pub start: FileTime,
    /// The time at which the session stopped, if it stopped.
    pub end: Option<FileTime>,
    /// The version of Windows and other properties of the system, as text.
    pub system: String,
    /// The number of processors.
    pub processors: u32,
    /// The number of events in the file.
    pub events: u64,
    /// The number of events that the session lost.
    pub events_lost: u64,
    /// The number of buffers that the session lost.
    pub buffers_lost: u64,
    /// The damaged parts. The page lists the first hundred.
    pub damages: Vec<String>,
    /// The number of damaged parts, which can exceed the length of [`damages`](Self::damages).
    pub damage_count: u64,
    /// The records that are not events or were not decoded.
    pub skipped: Vec<Skipped>,
    /// The number of call stacks without an event.
    pub unmatched_stacks: u64,
    /// The number of records that followed a record with a later time.
    pub late: u64,
    /// The number of entries for names and stacks that were dropped because the tables were full.
    pub dropped: u64,
}

/// The skipped records of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The kind of the records.
    pub kind: String,
    /// The number of records.
    pub records: u64,
    /// The total size of the records in bytes.
    pub bytes: u64,
}

impl Session {
    /// Creates the description of a session from its file's header. `file` is the name to show.
    #[must_use]
    pub fn new(file: &str, header: &TraceHeader) -> Self {
        let session = &header.session;
        Self {
            file: file.to_owned(),
            name: session.session_name.clone(),
            start: session.start_time,
            end: header.end_time,
            system: format!(
                "Windows {}.{}.{}",
                session.os_major, session.os_minor, session.os_build
            ),
            processors: session.processors,
            events_lost: u64::from(header.events_lost),
            buffers_lost: u64::from(header.buffers_lost),
            ..Self::default()
        }
    }
}
