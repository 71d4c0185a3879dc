//! The data on a report's page about each recorded session.

use serde::Serialize;

use etl_file::{FileTime, Trace, TraceHeader};

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

    /// Creates the description of a trace's session. `file` is the name to show.
    #[must_use]
    pub fn of(file: &str, trace: &Trace) -> Self {
        let mut skipped: Vec<Skipped> = Vec::new();
        for other in trace.others() {
            let kind = other.kind.to_string();
            let at = skipped.iter().position(|known| known.kind == kind);
            let at = at.unwrap_or_else(|| {
                skipped.push(Skipped { kind, ..Skipped::default() });
                skipped.len() - 1
            });
            if let Some(known) = skipped.get_mut(at) {
                known.records += 1;
                known.bytes += u64::from(other.size);
            }
        }
        let damages = trace.damages();
        Self {
            events: trace.events().count() as u64,
            damages: damages.iter().map(ToString::to_string).collect(),
            damage_count: damages.len() as u64,
            skipped,
            ..Self::new(file, trace.header())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use etl_file::write::{Buffer, Finish, LogFile, WppRecord};
    use etl_file::{EncodedRecord, EventRecord, LogFileHeader};

    #[test]
    fn a_session_has_the_numbers_of_its_records_and_damages() {
        let header = LogFileHeader { buffer_size: 0x1000, ..LogFileHeader::default() };
        let mut buffer = Buffer::new(0x1000, 0);
        let wpp = WppRecord::default();
        let wpp = EncodedRecord::try_from(&wpp).unwrap();
        let mut unknown = EventRecord::default().encode().unwrap();
        unknown[2] = 0x77;
        let unknown = EncodedRecord::from_bytes(&unknown).unwrap();
        for record in [&wpp, &unknown, &wpp] {
            buffer.try_append_record(record, 1).unwrap();
        }
        buffer.try_append(&EventRecord::default()).unwrap();
        let mut log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
        log.append(&buffer, 5).unwrap();
        let mut file = log.finish(Finish::default()).unwrap().into_inner();
        file.truncate(file.len() - 8);
        let session = Session::of("a.etl", &Trace::parse(&file).unwrap());
        let skipped = |kind: &str, records, bytes: usize| Skipped {
            kind: kind.to_owned(),
            records,
            bytes: bytes as u64,
        };
        assert_eq!(
            session.skipped,
            [skipped("WPP", 2, 2 * wpp.size()), skipped("unknown 0x77", 1, unknown.size()),]
        );
        assert_eq!((session.events, session.damage_count), (1, 1));
        assert_eq!(session.damages.len(), 1);
    }
}
