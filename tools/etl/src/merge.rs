//! Merges several traces into one.
//!
//! Sessions use different clocks, so a merged trace uses system time, to which every clock can be
//! converted. Records keep everything else, including their processors. The losses of the sessions
//! are added up.

use std::io::{Seek, Write};

use crate::header::{LogFileHeader, log_file_mode};
use crate::read::{Damage, Event, OtherKind, PointerSize, Trace};
use crate::time::{ClockType, FileTime};
use crate::write::{AppendError, Buffer, Finish, LogFile, Losses, WriteError};

/// Traces cannot be merged. `trace` is the index of the trace that prevents it.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// No trace was given.
    #[error("no traces to merge were given")]
    Nothing,
    /// A part of a trace is damaged and would be missing.
    #[error("{damage}")]
    Damaged {
        /// The index of the trace.
        trace: usize,
        /// The damage.
        damage: Damage,
    },
    /// A trace contains records other than events, which cannot be written.
    #[error("cannot merge the record at offset {offset}: it is {kind:?}, not an event")]
    Other {
        /// The index of the trace.
        trace: usize,
        /// The offset of the record.
        offset: u64,
        /// The kind of the record.
        kind: OtherKind,
    },
    /// A trace contains events of 32-bit code, which cannot be written.
    #[error("cannot merge the event at offset {offset}: it was written by 32-bit code")]
    Narrow {
        /// The index of the trace.
        trace: usize,
        /// The offset of the record.
        offset: u64,
    },
    /// An event does not fit in a buffer.
    #[error("cannot merge the event at offset {offset}: {error}")]
    Append {
        /// The index of the trace.
        trace: usize,
        /// The offset of the record.
        offset: u64,
        /// The reason.
        error: AppendError,
    },
    /// The merged trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl MergeError {
    /// Returns the index of the trace that prevents merging, if it is a single one.
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

/// Checks that every record of a trace can be merged.
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

/// Returns the header of the merged trace: that of the first trace, with the time span and the
/// processors of all.
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

/// Writes the events of all traces to one trace, sorted by time. `log_file_name` is the name in its
/// header.
///
/// # Errors
/// Returns [`MergeError`]; if a trace prevents merging, before anything is written.
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
