//! Completes the trace of a process that ended before it wrote its buffers.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    path::Path,
};

use anyhow::Result;
use etl_file::{
    Catalog, Trace, decode,
    write::{AppendError, Buffer, Finish, LogFile},
};

use crate::{ground::flight::SpooledEvent, harness::recording::RecordedEvent};

/// A trace after [`complete`].
pub struct Completed {
    /// The trace.
    pub trace: Trace,
    /// The number of its first new buffer.
    pub first: u32,
    /// The number of events that the process left and that are no events: a driver corrupted them.
    pub corrupted: usize,
}

/// Appends those of the events that the file does not have, and finishes the file.
pub fn complete(file: &Path, events: &[SpooledEvent]) -> Result<Completed> {
    let trace = Trace::open(file)?;
    let session = &trace.header().session;
    let mut written: HashMap<Vec<u8>, usize> = HashMap::new();
    for event in trace.events() {
        *written.entry(event.record.encode()?).or_default() += 1;
    }
    let first = u32::try_from(trace.buffers().len())?;
    let out = File::options().write(true).open(file)?;
    let mut log = LogFile::resume(out, &trace)?;
    let flush = |log: &mut LogFile<File>, buffer: &mut Buffer| {
        let time = buffer.last_timestamp().unwrap_or_default();
        log.append(buffer, time)?;
        buffer.reset();
        anyhow::Ok(time)
    };
    let mut corrupted = 0;
    let mut end = trace.events().map(|event| event.record.timestamp).max();
    let mut buffers: BTreeMap<u16, Buffer> = BTreeMap::new();
    for event in events {
        if event.session != session.logger_id {
            continue;
        }
        if u32::from(event.processor) >= session.processors {
            corrupted += 1;
            continue;
        }
        if let Some(count) = written.get_mut(&event.record)
            && *count > 0
        {
            *count -= 1;
            continue;
        }
        let buffer = buffers
            .entry(event.processor)
            .or_insert_with(|| Buffer::new(session.buffer_size, event.processor));
        let appended = match buffer.try_append_encoded(&event.record) {
            Err(AppendError::Full) => {
                end = end.max(Some(flush(&mut log, buffer)?));
                buffer.try_append_encoded(&event.record)
            }
            other => other,
        };
        corrupted += usize::from(appended.is_err());
    }
    for buffer in buffers.values_mut().filter(|buffer| !buffer.is_empty()) {
        end = end.max(Some(flush(&mut log, buffer)?));
    }
    let clock = trace.clock();
    log.finish(Finish {
        end_time: end.map_or(session.start_time, |end| clock.to_file_time(end)),
        events_lost: trace.header().events_lost,
        buffers_lost: trace.header().buffers_lost,
    })?;
    Ok(Completed {
        trace: Trace::open(file)?,
        first,
        corrupted,
    })
}

/// Returns the events of the buffers from a number on, in the order of their writes.
pub fn events_from(trace: &Trace, first: u32, catalog: &Catalog) -> Vec<RecordedEvent> {
    let events = trace.events_by_time().into_iter();
    events
        .filter(|event| event.buffer >= first)
        .map(|event| RecordedEvent {
            event: event.clone(),
            decoded: decode(event, catalog),
        })
        .collect()
}
