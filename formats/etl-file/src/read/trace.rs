//! Traces.

use std::io::{Cursor, Read, Seek};
use std::path::Path;

use super::buffer::BufferInfo;
use super::error::{Damage, ReadError};
use super::event::Event;
use super::file::TraceFile;
use super::header::TraceHeader;
use super::other::Other;
use crate::time::Clock;

/// A record of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An event record.
    Event(Event),
    /// A record of another kind, which is not decoded.
    Other(Other),
}

/// A trace whose records are all in memory. For traces of any size, see [`TraceFile`].
#[derive(Clone, Debug)]
pub struct Trace {
    header: TraceHeader,
    buffers: Vec<BufferInfo>,
    records: Vec<Record>,
    damages: Vec<Damage>,
}

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read, otherwise with the error
    /// of [`parse`](Self::parse).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::read(TraceFile::open(path)?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Fails with [`ReadError`] if the first buffer does not describe a trace. Other
    /// damage is listed in [`damages`](Self::damages).
    pub fn parse(file: &[u8]) -> Result<Self, ReadError> {
        Self::read(TraceFile::new(Cursor::new(file))?)
    }

    /// Reads all records of a trace into memory.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the source cannot be read.
    pub fn read<R: Read + Seek>(mut file: TraceFile<R>) -> Result<Self, ReadError> {
        let mut trace = Self {
            header: file.header().clone(),
            buffers: Vec::new(),
            records: Vec::new(),
            damages: file.damages().listed().to_vec(),
        };
        for number in 0..file.buffers() {
            let Some(info) = file.info(number)? else {
                continue;
            };
            if let Some(buffer) = file.buffer(number)? {
                trace.damages.extend(buffer.damages());
                trace.records.extend(buffer.records().filter_map(|record| {
                    let event = record.event().map(|event| event.to_event());
                    event.map(Record::Event).or_else(|| record.other().map(Record::Other))
                }));
            }
            trace.buffers.push(info);
        }
        trace.damages.sort_by_key(|damage| (damage.buffer, damage.offset));
        Ok(trace)
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the buffers, in file order.
    #[must_use]
    pub fn buffers(&self) -> &[BufferInfo] {
        &self.buffers
    }

    /// Returns all records except the header event, in file order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the damaged parts, in file order.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Returns the events, in file order.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.records.iter().filter_map(|record| match record {
            Record::Event(event) => Some(event),
            Record::Other(_) => None,
        })
    }

    /// Returns the records that are not decoded, in file order.
    pub fn others(&self) -> impl Iterator<Item = &Other> {
        self.records.iter().filter_map(|record| match record {
            Record::Event(_) => None,
            Record::Other(other) => Some(other),
        })
    }

    /// Returns the events sorted by timestamp; events with equal timestamps are in file order.
    #[must_use]
    pub fn events_by_time(&self) -> Vec<&Event> {
        let mut events: Vec<&Event> = self.events().collect();
        events.sort_by_key(|event| event.record.timestamp);
        events
    }

    /// Returns the clock, which converts the trace's timestamps to absolute times.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.header.session.session_clock()
    }
}
