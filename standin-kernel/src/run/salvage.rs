//! Completes the trace of a process that ended before it wrote its buffers.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File},
    path::Path,
};

use anyhow::Result;
use etl_file::internals::kernel::RecordHeader;
use etl_file::write::{AppendError, Buffer, Finish, LogFile};
use etl_file::{Catalog, EncodedRecord, Record, Trace, decode};

use crate::{
    ground::flight::{self, Recorded, SessionCounts},
    harness::recording::RecordedEvent,
};

/// The result of [`complete`].
pub struct Completed {
    /// The trace.
    pub trace: Trace,
    /// The number of records left by the process that are invalid because the driver corrupted them.
    pub corrupted: u32,
    /// The number of recorded events that are neither in the file nor among the records that the
    /// process left.
    pub missing: u32,
}

/// Appends a process's events that the file lacks, and finishes the file. Events that cannot be
/// appended count as lost.
pub fn complete(file: &Path, recorded: &Recorded) -> Result<Completed> {
    let mut bytes = fs::read(file)?;
    let size = usize::try_from(Trace::parse(&bytes)?.header().session.buffer_size)?;
    // The process may have ended while writing a buffer. The recorder also has that buffer's
    // events.
    bytes.truncate(bytes.len() - bytes.len() % size.max(1));
    let trace = Trace::parse(&bytes)?;
    let session = &trace.header().session;
    // Records are compared as stored in the file, since a corrupted record may not be encodable.
    let mut written: HashMap<&[u8], usize> = HashMap::new();
    for record in trace.records() {
        let record = record_at(&bytes, offset_of(record));
        *written.entry(record).or_default() += 1;
    }
    let out = File::options().write(true).open(file)?;
    out.set_len(u64::try_from(bytes.len())?)?;
    let mut log = LogFile::resume(out, &trace)?;
    let flush = |log: &mut LogFile<File>, buffer: &mut Buffer| {
        let time = buffer.last_timestamp().unwrap_or_default();
        log.append(buffer, time)?;
        buffer.reset();
        anyhow::Ok(time)
    };
    let (mut corrupted, mut appended) = (0_u32, 0_u64);
    let mut end = trace.records().iter().filter_map(timestamp_of).max();
    let mut buffers: BTreeMap<u16, Buffer> = BTreeMap::new();
    for event in &recorded.events {
        flight::note_progress();
        if event.session != session.logger_id {
            continue;
        }
        if u32::from(event.processor) >= session.processors {
            corrupted = corrupted.saturating_add(1);
            continue;
        }
        if let Some(count) = written.get_mut(event.record.as_slice())
            && *count > 0
        {
            *count -= 1;
            continue;
        }
        let buffer = buffers
            .entry(event.processor)
            .or_insert_with(|| Buffer::new(session.buffer_size, event.processor));
        let result = match append(buffer, &event.record) {
            Err(AppendError::Full) => {
                end = end.max(Some(flush(&mut log, buffer)?));
                append(buffer, &event.record)
            }
            other => other,
        };
        match result {
            Ok(()) => appended += 1,
            Err(_) => corrupted = corrupted.saturating_add(1),
        }
    }
    for buffer in buffers.values_mut().filter(|buffer| !buffer.is_empty()) {
        end = end.max(Some(flush(&mut log, buffer)?));
    }
    let counts = counts_of(recorded, session.logger_id);
    let in_file = trace.records().len() as u64;
    let known = in_file + appended + u64::from(corrupted);
    let missing = u32::try_from(counts.recorded.saturating_sub(known)).unwrap_or(u32::MAX);
    let clock = trace.clock();
    let header = trace.header();
    log.finish(Finish {
        end_time: end.map_or(session.start_time, |end| clock.to_file_time(end)),
        events_lost: header
            .events_lost
            .max(counts.events_lost)
            .saturating_add(corrupted)
            .saturating_add(missing),
        buffers_lost: header.buffers_lost.max(counts.buffers_lost),
    })?;
    Ok(Completed { trace: Trace::open(file)?, corrupted, missing })
}

/// Appends the record of an event, a message or a classic provider's event.
fn append(buffer: &mut Buffer, record: &[u8]) -> Result<(), AppendError> {
    let Some(header) = RecordHeader::parse(record) else {
        return buffer.try_append_encoded(record);
    };
    let timestamp = header.timestamp.or_else(|| buffer.last_timestamp());
    let encoded = EncodedRecord::from_bytes(record)?;
    buffer.try_append_record(&encoded, timestamp.unwrap_or_default())
}

/// Returns a record's offset in the file.
const fn offset_of(record: &Record) -> u64 {
    match record {
        Record::Event(event) => event.offset,
        Record::Other(other) => other.offset,
    }
}

/// Returns a record's timestamp, if it has one.
const fn timestamp_of(record: &Record) -> Option<i64> {
    match record {
        Record::Event(event) => Some(event.record.timestamp),
        Record::Other(other) => other.timestamp,
    }
}

/// Returns a session's counters.
fn counts_of(recorded: &Recorded, session: u16) -> SessionCounts {
    let counts = recorded.sessions.get(usize::from(session));
    counts.copied().unwrap_or_default()
}

/// Returns the bytes of the record at an offset in a file.
fn record_at(file: &[u8], offset: u64) -> &[u8] {
    let record = usize::try_from(offset).ok().and_then(|at| file.get(at..));
    let record = record.unwrap_or_default();
    let size = record.first_chunk().map_or(0, |size| usize::from(u16::from_le_bytes(*size)));
    record.get(..size).unwrap_or_default()
}

/// Returns the events of a trace file that a process has not shown, in the order in which they were
/// written. `shown` is the number of events at the start of the file that it has shown.
pub fn unshown(trace: &Trace, file: &Path, shown: u64, catalog: &Catalog) -> Vec<RecordedEvent> {
    let shown = usize::try_from(shown).unwrap_or(usize::MAX);
    let bytes = fs::read(file).unwrap_or_default();
    let clock = trace.clock();
    let records = trace.records().iter().skip(shown);
    let mut events: Vec<RecordedEvent> = records
        .filter_map(|record| {
            flight::note_progress();
            match record {
                Record::Event(event) => {
                    Some(RecordedEvent { event: event.clone(), decoded: decode(event, catalog) })
                }
                Record::Other(other) => {
                    let timestamp = other.timestamp.unwrap_or_default();
                    let time = clock.to_file_time(timestamp);
                    let record = record_at(&bytes, other.offset);
                    RecordedEvent::of_record(record, timestamp, time, catalog)
                }
            }
        })
        .collect();
    events.sort_by_key(|event| event.event.record.timestamp);
    events
}

#[cfg(test)]
mod tests {
    use etl_file::{EventRecord, ExtendedItem, Guid, LogFileHeader};

    use super::*;
    use crate::ground::flight::SpooledEvent;

    const SESSION: u16 = 1;

    fn record(timestamp: i64) -> EventRecord {
        EventRecord {
            timestamp,
            extended: vec![ExtendedItem::related_activity(Guid::from_bytes([7; 16]))],
            ..EventRecord::default()
        }
    }

    fn spooled(timestamp: i64) -> SpooledEvent {
        SpooledEvent { session: SESSION, processor: 0, record: record(timestamp).encode().unwrap() }
    }

    /// Writes an unfinished file with one buffer per event.
    fn unfinished(file: &Path, times: &[i64]) {
        let header = LogFileHeader {
            buffer_size: 0x1000,
            processors: 1,
            logger_id: SESSION,
            ..LogFileHeader::default()
        };
        let mut log = LogFile::create(File::create(file).unwrap(), header).unwrap();
        for timestamp in times {
            let mut buffer = Buffer::new(0x1000, 0);
            buffer.try_append(&record(*timestamp)).unwrap();
            log.append(&buffer, *timestamp).unwrap();
        }
    }

    fn counts(recorded: u64, events_lost: u32, buffers_lost: u32) -> Vec<SessionCounts> {
        let counts = SessionCounts { recorded, events_lost, buffers_lost };
        vec![SessionCounts::default(), counts]
    }

    #[test]
    fn a_record_that_cannot_be_encoded_again_loses_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.etl");
        unfinished(&file, &[1, 2]);
        // The driver corrupted the first event before the flush: its extended item extends past the
        // record.
        let mut bytes = fs::read(&file).unwrap();
        let item = record(1).encode().unwrap().len() - 24;
        bytes[0x1000 + 72 + item + 6] = 0xFF;
        fs::write(&file, &bytes).unwrap();
        let corrupted = Trace::parse(&bytes).unwrap();
        let first = corrupted.events().next().unwrap();
        assert_ne!(first.record, record(1));
        let mut left = vec![spooled(2), spooled(3), spooled(4)];
        left[1].record.truncate(30);
        let recorded = Recorded { events: left, sessions: counts(4, 0, 0), ..Recorded::default() };
        let completed = complete(&file, &recorded).unwrap();
        assert_eq!((completed.corrupted, completed.missing), (1, 0));
        let times: Vec<i64> =
            completed.trace.events().map(|event| event.record.timestamp).collect();
        assert_eq!(times, [1, 2, 4]);
        assert_eq!(completed.trace.header().events_lost, 1);
    }

    #[test]
    fn losses_are_those_when_the_process_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.etl");
        unfinished(&file, &[1]);
        let recorded = Recorded {
            events: vec![spooled(5)],
            sessions: counts(10, 3, 2),
            ..Recorded::default()
        };
        let completed = complete(&file, &recorded).unwrap();
        // Ten events were recorded: one is in the file, and one was left in the recorder.
        assert_eq!((completed.corrupted, completed.missing), (0, 8));
        let header = completed.trace.header();
        assert_eq!((header.events_lost, header.buffers_lost), (3 + 8, 2));
    }

    #[test]
    fn a_buffer_that_was_cut_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.etl");
        for length in [0x2000 + 300, 0x2000 + 20] {
            unfinished(&file, &[1, 2]);
            let out = File::options().write(true).open(&file).unwrap();
            out.set_len(length).unwrap();
            let recorded = Recorded {
                events: vec![spooled(1), spooled(2), spooled(3)],
                sessions: counts(3, 0, 0),
                ..Recorded::default()
            };
            let completed = complete(&file, &recorded).unwrap();
            assert_eq!((completed.corrupted, completed.missing), (0, 0));
            assert_eq!(completed.trace.damages(), []);
            let times = completed.trace.events().map(|one| one.record.timestamp);
            assert!(times.eq([1, 2, 3]), "{length}");
        }
    }

    #[test]
    fn events_of_written_buffers_that_were_not_shown_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.etl");
        unfinished(&file, &[1, 2, 3]);
        let recorded = Recorded {
            events: vec![spooled(3), spooled(4)],
            sessions: counts(4, 0, 0),
            ..Recorded::default()
        };
        let trace = complete(&file, &recorded).unwrap().trace;
        let shown = |count| {
            let events = unshown(&trace, &file, count, &Catalog::new()).into_iter();
            let times: Vec<i64> = events.map(|one| one.event.record.timestamp).collect();
            times
        };
        assert_eq!(shown(0), [1, 2, 3, 4]);
        assert_eq!(shown(1), [2, 3, 4]);
        assert_eq!(shown(9), [] as [i64; 0]);
    }
}
