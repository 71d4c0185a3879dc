//! Several traces as one.
//!
//! Sessions count time differently: a merged trace counts the system's time, which every
//! trace's clock can be turned into. Records keep everything else, and their processors.
//! What the sessions lost is added up.

use std::io::{Seek, Write};

use crate::header::{LogFileHeader, log_file_mode};
use crate::read::{Damage, Event, OtherKind, PointerSize, Trace};
use crate::time::{ClockType, FileTime};
use crate::write::{AppendError, Buffer, Finish, LogFile, Losses, WriteError};

/// Why traces cannot be merged. `trace` is the place of the trace that is in the way.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("there is no trace to merge")]
    Nothing,
    /// A part of a trace could not be read, and would be missing.
    #[error("{damage}")]
    Damaged {
        /// The trace.
        trace: usize,
        /// What could not be read.
        damage: Damage,
    },
    /// A trace has records that are no events, and they cannot be written.
    #[error("the record at offset {offset} is no event but {kind:?}, and cannot be merged")]
    Other {
        /// The trace.
        trace: usize,
        /// Where the record is.
        offset: u64,
        /// What it is.
        kind: OtherKind,
    },
    /// A trace has events of 32-bit code, and they cannot be written.
    #[error("the event at offset {offset} was written by 32-bit code, and cannot be merged")]
    Narrow {
        /// The trace.
        trace: usize,
        /// Where the record is.
        offset: u64,
    },
    /// An event does not fit in a buffer.
    #[error("the event at offset {offset} does not fit: {error}")]
    Append {
        /// The trace.
        trace: usize,
        /// Where the record is.
        offset: u64,
        /// Why not.
        error: AppendError,
    },
    /// The merged trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl MergeError {
    /// The place of the trace that is in the way, if it is one of them.
    #[must_use]
    pub const fn trace(&self) -> Option<usize> {
        match self {
            Self::Damaged { trace, .. }
            | Self::Other { trace, .. }
            | Self::Narrow { trace, .. }
            | Self::Append { trace, .. } => Some(*trace),
            Self::Nothing | Self::Write(_) => None,
        }
    }
}

/// Checks that nothing of a trace would be missing.
fn check(trace: usize, it: &Trace) -> Result<(), MergeError> {
    if let Some(damage) = it.damages().first() {
        return Err(MergeError::Damaged {
            trace,
            damage: *damage,
        });
    }
    if let Some(other) = it.others().next() {
        return Err(MergeError::Other {
            trace,
            offset: other.offset,
            kind: other.kind,
        });
    }
    let narrow = it
        .events()
        .find(|event| event.pointer_size == PointerSize::Four);
    narrow.map_or(Ok(()), |event| {
        Err(MergeError::Narrow {
            trace,
            offset: event.offset,
        })
    })
}

/// The header of the merged trace: of the first one, for the time and the processors of all.
fn header(traces: &[Trace], log_file_name: &str) -> Option<LogFileHeader> {
    let sessions = || traces.iter().map(|trace| &trace.header().session);
    let first = sessions().next()?;
    let starts = sessions().map(|session| session.start_time);
    let events = traces.iter().flat_map(Trace::events);
    let processors = events
        .map(|event| u32::from(event.processor) + 1)
        .chain(sessions().map(|session| session.processors))
        .max()?;
    let start_time = starts.min()?;
    let mut names: Vec<&str> = Vec::new();
    for session in sessions() {
        if !names.contains(&session.session_name.as_str()) {
            names.push(&session.session_name);
        }
    }
    Some(LogFileHeader {
        buffer_size: sessions().map(|session| session.buffer_size).max()?,
        processors,
        clock: ClockType::SystemTime,
        start_time,
        start_clock: start_time.raw(),
        log_file_mode: log_file_mode::SEQUENTIAL,
        maximum_file_size: 0,
        session_name: names.join(" + "),
        log_file_name: log_file_name.to_owned(),
        ..first.clone()
    })
}

/// Writes traces as one, with their events in the order of time. `log_file_name` is what the
/// trace says it is called.
///
/// # Errors
/// [`MergeError`], before anything is written where a trace is in the way.
pub fn merge<W: Write + Seek>(
    traces: &[Trace],
    log_file_name: &str,
    out: W,
) -> Result<W, MergeError> {
    for (number, trace) in traces.iter().enumerate() {
        check(number, trace)?;
    }
    let header = header(traces, log_file_name).ok_or(MergeError::Nothing)?;
    let mut events: Vec<(usize, &Event)> = traces
        .iter()
        .enumerate()
        .flat_map(|(number, trace)| {
            let events = trace.events_by_time().into_iter();
            events.map(move |event| (number, event))
        })
        .collect();
    events.sort_by_key(|(_, event)| event.time);
    for (trace, event) in &events {
        let size = event.record.encoded_size();
        let fits = Buffer::new(header.buffer_size, 0).check(size);
        fits.map_err(|error| MergeError::Append {
            trace: *trace,
            offset: event.offset,
            error,
        })?;
    }
    let add = |one: u32, other: u32| one.saturating_add(other);
    let losses = traces.iter().fold(Losses::default(), |sum, trace| Losses {
        events_lost: add(sum.events_lost, trace.header().events_lost),
        buffers_lost: add(sum.buffers_lost, trace.header().buffers_lost),
    });
    let ends = traces.iter().filter_map(|trace| trace.header().end_time);
    let last_event = events.last().map(|(_, event)| event.time);
    let end_time = ends.chain(last_event).max().unwrap_or(header.start_time);
    write(header, &events, losses, end_time, out)
}

fn write<W: Write + Seek>(
    header: LogFileHeader,
    events: &[(usize, &Event)],
    losses: Losses,
    end_time: FileTime,
    out: W,
) -> Result<W, MergeError> {
    let mut buffers: Vec<Buffer> = (0..=u16::MAX)
        .take(header.processors as usize)
        .map(|processor| Buffer::new(header.buffer_size, processor))
        .collect();
    let mut file = LogFile::create(out, header)?;
    for (trace, event) in events {
        let Some(buffer) = buffers.get_mut(usize::from(event.processor)) else {
            continue; // not reached: the header counts every event's processor
        };
        let mut record = event.record.clone();
        record.timestamp = event.time.raw();
        let full = buffer.try_append(&record) == Err(AppendError::Full);
        if full {
            flush(&mut file, buffer)?;
            buffer
                .try_append(&record)
                .map_err(|error| MergeError::Append {
                    trace: *trace,
                    offset: event.offset,
                    error,
                })?;
        }
    }
    buffers.retain(|buffer| !buffer.is_empty());
    buffers.sort_by_key(Buffer::last_timestamp);
    for buffer in &mut buffers {
        flush(&mut file, buffer)?;
    }
    Ok(file.finish(Finish {
        end_time,
        events_lost: losses.events_lost,
        buffers_lost: losses.buffers_lost,
    })?)
}

fn flush<W: Write + Seek>(file: &mut LogFile<W>, buffer: &mut Buffer) -> Result<(), WriteError> {
    file.append(buffer, buffer.last_timestamp().unwrap_or(0))?;
    buffer.reset();
    Ok(())
}
