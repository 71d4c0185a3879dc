//! Merges several traces into one, in the order of time.
//!
//! One buffer for each processor of each trace is in memory, whatever the traces' length. Records of
//! every form are kept as they are, except for their times: if the sessions had different clocks,
//! the merged trace uses system time, to which every clock can be converted. The losses of the
//! sessions are added up.
//!
//! Some records of a kernel session describe the session, not the system ([`is_of_session`]); they
//! have no meaning in a merged trace and are left out.

use std::io::{Read, Seek, Write};

use crate::header::{HeaderError, LogFileHeader, log_file_mode};
use crate::kernel;
use crate::layout::Form;
use crate::read::{Damages, ReadError, RecordRef, Records, TraceFile};
use crate::record::{EncodeError, EncodedRecord};
use crate::time::{Clock, ClockType, FileTime};
use crate::trim::Kept;
use crate::write::{AppendError, Buffer, Finish, LogFile, Losses, WriteError};

/// Traces cannot be merged. `trace` is the index of the trace that prevents it.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// No trace was given.
    #[error("no traces to merge were given")]
    Nothing,
    /// A trace could not be read.
    #[error("{error}")]
    Read {
        /// The index of the trace.
        trace: usize,
        /// The cause.
        error: ReadError,
    },
    /// The times of a trace are unknown, so that its records have no place among the others.
    #[error("cannot merge the trace, because its times are unknown: {error}")]
    Clock {
        /// The index of the trace.
        trace: usize,
        /// The reason.
        error: HeaderError,
    },
    /// A record cannot be copied.
    #[error("cannot merge the record at offset {offset:#x}: {error}")]
    Record {
        /// The index of the trace.
        trace: usize,
        /// The offset of the record.
        offset: u64,
        /// The reason.
        error: EncodeError,
    },
    /// A record does not fit in a buffer.
    #[error("cannot merge the record at offset {offset:#x}: {error}")]
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
            Self::Read { trace, .. }
            | Self::Clock { trace, .. }
            | Self::Record { trace, .. }
            | Self::Append { trace, .. } => Some(*trace),
            Self::Nothing | Self::Write(_) => None,
        }
    }
}

/// The form of the merged trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The buffers are compressed.
    pub compress: bool,
}

/// The contents of a merged trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Event records.
    pub events: u64,
    /// Records of other forms: kernel events, classic events, WPP messages.
    pub others: u64,
    /// Records that describe a session, which were left out.
    pub left_out: u64,
    /// Records that were not selected, which were left out.
    pub unselected: u64,
    /// Records among the events and the others that were not selected, which selected ones need.
    pub needed: u64,
    /// Records that a trace had so far from their place in time that they could not be sorted.
    pub late: u64,
    /// The damaged parts of each trace, in the order of the traces. What could not be read there is
    /// missing.
    pub damages: Vec<Damages>,
}

/// Returns true if a record with a hook describes its session: a header event (0x00), the group masks
/// (0x05, 0x20), the identity of the system's container (0x50) and the last times of drops (0x52).
#[must_use]
pub const fn is_of_session(hook: u16) -> bool {
    matches!(hook, 0x00 | 0x05 | 0x20 | 0x50 | 0x52)
}

/// The difference between the starts of two sessions' clocks, in 100 ns, up to which they are
/// readings of the same counter. The system time may be set between the two starts.
const SAME_COUNTER: u64 = 2 * 10_000_000;

/// The sizes of a trace's buffers, in bytes.
const BUFFER_SIZES: std::ops::RangeInclusive<u32> = 0x1000..=0x10_0000;

/// Writes the records of all traces to one trace, sorted by time. `log_file_name` is the name in its
/// header. What cannot be read of a damaged trace is missing; [`Merged::damages`] lists it.
///
/// # Errors
///
/// Returns [`MergeError`]; the output is then an incomplete trace.
pub fn merge<R: Read + Seek, W: Write + Seek>(
    traces: &mut [TraceFile<R>],
    log_file_name: &str,
    options: Options,
    out: W,
) -> Result<(W, Merged), MergeError> {
    merge_part(traces, log_file_name, options, |_, _| Some(Kept::Selected), out)
}

/// Writes some records of all traces to one trace, as [`merge`] does.
///
/// `keeps` gets each record with the index of its trace, and returns why it is in the part; see
/// [`Trimmer::keeps`](crate::trim::Trimmer::keeps).
///
/// # Errors
///
/// Returns [`MergeError`]; the output is then an incomplete trace.
pub fn merge_part<R: Read + Seek, W: Write + Seek>(
    traces: &mut [TraceFile<R>],
    log_file_name: &str,
    options: Options,
    mut keeps: impl FnMut(usize, &RecordRef<'_>) -> Option<Kept>,
    out: W,
) -> Result<(W, Merged), MergeError> {
    for (trace, file) in traces.iter().enumerate() {
        if let Some(error) = file.header().session.clock_error() {
            return Err(MergeError::Clock { trace, error });
        }
    }
    let processors = processors(traces)?;
    let header = header(traces, processors, log_file_name, options);
    let header = header.ok_or(MergeError::Nothing)?;
    let losses = traces.iter().fold(Losses::default(), |sum, trace| {
        let header = trace.header();
        Losses {
            events_lost: sum.events_lost.saturating_add(header.events_lost),
            buffers_lost: sum.buffers_lost.saturating_add(header.buffers_lost),
        }
    });
    let ends = traces.iter().filter_map(|trace| trace.header().end_time);
    let end_time = ends.max().unwrap_or(header.start_time);
    let to = header.session_clock();
    let mut writer = Writer::create(header, out)?;
    let mut sources = Vec::new();
    for (number, trace) in traces.iter_mut().enumerate() {
        let times = Times { from: trace.clock(), to };
        sources.push(Source::new(number, trace.records(), times)?);
    }
    loop {
        let heads = sources.iter().enumerate();
        let heads = heads.filter_map(|(at, source)| Some((source.next?, at)));
        let Some((_, first)) = heads.min() else {
            break;
        };
        let Some(source) = sources.get_mut(first) else {
            break; // not reached: it was just found
        };
        if let Some(record) = source.records.get() {
            match keeps(source.number, &record) {
                None => writer.merged.unselected += 1,
                Some(kept) => writer.copy(source.number, &record, &source.times, kept)?,
            }
        }
        source.advance()?;
    }
    for source in &sources {
        writer.merged.late = writer.merged.late.saturating_add(source.records.late());
        let damages = source.records.damages().clone();
        writer.merged.damages.push(damages);
    }
    writer.finish(end_time, losses)
}

/// Returns the number of processors of all traces: of their headers, and of their buffers.
fn processors<R: Read + Seek>(traces: &mut [TraceFile<R>]) -> Result<u32, MergeError> {
    let mut processors = 0;
    for (number, trace) in traces.iter_mut().enumerate() {
        let failed = |error| MergeError::Read { trace: number, error };
        processors = processors.max(trace.header().session.processors);
        for buffer in 0..trace.buffers() {
            if let Some(info) = trace.info(buffer).map_err(failed)? {
                processors = processors.max(u32::from(info.processor) + 1);
            }
        }
    }
    Ok(processors)
}

/// Returns the header of the merged trace: that of the trace that starts first, with the time span
/// of all.
fn header<R: Read + Seek>(
    traces: &[TraceFile<R>],
    processors: u32,
    log_file_name: &str,
    options: Options,
) -> Option<LogFileHeader> {
    let sessions = || traces.iter().map(|trace| &trace.header().session);
    let first = sessions().min_by_key(|session| session.start_time)?;
    let mut names: Vec<&str> = Vec::new();
    for session in sessions() {
        if !names.contains(&session.session_name.as_str()) {
            names.push(&session.session_name);
        }
    }
    let largest = sessions().map(|session| session.buffer_size).max()?;
    let buffer_size = largest.clamp(*BUFFER_SIZES.start(), *BUFFER_SIZES.end());
    let mut header = LogFileHeader {
        buffer_size: buffer_size.next_multiple_of(1024),
        processors,
        log_file_mode: log_file_mode::SEQUENTIAL,
        maximum_file_size: 0,
        session_name: names.join(" + "),
        log_file_name: log_file_name.to_owned(),
        ..first.clone()
    };
    if options.compress {
        header.log_file_mode |= log_file_mode::COMPRESSED;
    }
    let clock = first.session_clock();
    if !traces.iter().all(|trace| is_same_counter(&clock, &trace.clock())) {
        header.clock = ClockType::SystemTime;
    }
    if header.clock == ClockType::SystemTime {
        header.start_clock = header.start_time.raw();
    }
    // The merged clock does not use these, which a header has to state.
    if header.perf_frequency <= 0 {
        header.perf_frequency = LogFileHeader::default().perf_frequency;
    }
    if header.cpu_mhz == 0 {
        header.cpu_mhz = sessions().map(|session| session.cpu_mhz).max()?.max(1);
    }
    Some(header)
}

/// Returns true if two sessions read the same counter, so that the readings of one are readings of
/// the other.
fn is_same_counter(one: &Clock, other: &Clock) -> bool {
    let same_kind = one.kind == other.kind;
    let is_known = !matches!(one.kind, ClockType::Other(_));
    let same_rate = match one.kind {
        ClockType::Qpc => one.perf_frequency == other.perf_frequency && one.perf_frequency > 0,
        ClockType::CpuCycles => one.cpu_mhz == other.cpu_mhz && one.cpu_mhz > 0,
        ClockType::SystemTime | ClockType::Other(_) => true,
    };
    // A machine that was started in between counts from 0 again.
    let by_one = one.to_file_time(other.start_clock).raw();
    let apart = by_one.abs_diff(other.start_time.raw());
    same_kind
        && is_known
        && same_rate
        && (one.kind == ClockType::SystemTime || apart <= SAME_COUNTER)
}

/// Converts the readings of a trace's clock to those of the merged trace's.
#[derive(Clone, Copy, Debug)]
struct Times {
    from: Clock,
    to: Clock,
}

impl Times {
    /// Converts a reading. The same reading always becomes the same, so that stacks still have the
    /// times of their events.
    fn convert(&self, raw: i64) -> i64 {
        if self.is_equal() { raw } else { self.from.to_file_time(raw).raw() }
    }

    /// Returns true if readings stay as they are. A session's system time may count from another
    /// anchor than its start.
    fn is_equal(&self) -> bool {
        let is_anchored = self.from.start_clock == self.from.start_time.raw();
        self.from.kind == self.to.kind && (self.to.kind != ClockType::SystemTime || is_anchored)
    }

    /// Converts a number of ticks.
    fn duration(&self, ticks: u64) -> u64 {
        if self.from.kind == self.to.kind {
            return ticks;
        }
        let (numerator, denominator) = match self.from.kind {
            ClockType::Qpc => (10_000_000, self.from.perf_frequency.unsigned_abs()),
            ClockType::CpuCycles => (10, u64::from(self.from.cpu_mhz)),
            ClockType::SystemTime | ClockType::Other(_) => (1, 1),
        };
        let scaled = u128::from(ticks) * numerator / u128::from(denominator.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// A trace and its next record.
struct Source<'t, R> {
    number: usize,
    records: Records<'t, R>,
    times: Times,
    /// The merged time of the next record.
    next: Option<i64>,
}

impl<'t, R: Read + Seek> Source<'t, R> {
    fn new(number: usize, records: Records<'t, R>, times: Times) -> Result<Self, MergeError> {
        let mut source = Self { number, records, times, next: None };
        source.advance()?;
        Ok(source)
    }

    fn advance(&mut self) -> Result<(), MergeError> {
        let trace = self.number;
        let read = self.records.advance();
        read.map_err(|error| MergeError::Read { trace, error })?;
        let record = self.records.get();
        self.next = record.map(|record| self.times.convert(record.timestamp));
        Ok(())
    }
}

/// Writes the merged trace.
struct Writer<W> {
    file: LogFile<W>,
    /// The buffers, by processor.
    buffers: Vec<Buffer>,
    merged: Merged,
    last: Option<i64>,
    clock: Clock,
}

impl<W: Write + Seek> Writer<W> {
    fn create(header: LogFileHeader, out: W) -> Result<Self, MergeError> {
        let clock = header.session_clock();
        let size = header.buffer_size;
        let processors = header.processors as usize;
        let file = LogFile::create(out, header)?;
        let buffers = (0..=u16::MAX).take(processors);
        Ok(Self {
            file,
            buffers: buffers.map(|processor| Buffer::new(size, processor)).collect(),
            merged: Merged::default(),
            last: None,
            clock,
        })
    }

    fn copy(
        &mut self,
        trace: usize,
        record: &RecordRef<'_>,
        times: &Times,
        kept: Kept,
    ) -> Result<(), MergeError> {
        let offset = record.offset;
        let hook = Form::of(record.bytes).and_then(|form| form.hook(record.bytes));
        if hook.is_some_and(is_of_session) {
            self.merged.left_out += 1;
            return Ok(());
        }
        let failed = |error| MergeError::Record { trace, offset, error };
        let values = if times.is_equal() { Vec::new() } else { kernel::clock_values(record) };
        let encoded = if values.is_empty() {
            EncodedRecord::from_bytes(record.bytes)
        } else {
            let mut bytes = record.bytes.to_vec();
            convert_payload(&mut bytes, &values, times);
            EncodedRecord::from_bytes(&bytes)
        };
        let encoded = encoded.map_err(failed)?;
        let own = Form::of(record.bytes).and_then(|form| form.timestamp(record.bytes));
        let timestamp = times.convert(own.unwrap_or(record.timestamp));
        let Some(buffer) = self.buffers.get_mut(usize::from(record.processor)) else {
            return Ok(()); // not reached: the header counts every buffer's processor
        };
        let mut appended = buffer.try_append_record(&encoded, timestamp);
        if appended == Err(AppendError::Full) {
            flush(&mut self.file, buffer)?;
            appended = buffer.try_append_record(&encoded, timestamp);
        }
        appended.map_err(|error| MergeError::Append { trace, offset, error })?;
        if record.event().is_some() {
            self.merged.events += 1;
        } else {
            self.merged.others += 1;
        }
        self.merged.needed += u64::from(kept == Kept::Needed);
        self.last = self.last.max(Some(timestamp));
        Ok(())
    }

    fn finish(mut self, end_time: FileTime, losses: Losses) -> Result<(W, Merged), MergeError> {
        self.buffers.retain(|buffer| !buffer.is_empty());
        self.buffers.sort_by_key(Buffer::last_timestamp);
        for buffer in &mut self.buffers {
            flush(&mut self.file, buffer)?;
        }
        let last = self.last.map(|last| self.clock.to_file_time(last));
        let file = self.file.finish(Finish {
            end_time: last.map_or(end_time, |last| last.max(end_time)),
            events_lost: losses.events_lost,
            buffers_lost: losses.buffers_lost,
        })?;
        Ok((file, self.merged))
    }
}

fn flush<W: Write + Seek>(file: &mut LogFile<W>, buffer: &mut Buffer) -> Result<(), WriteError> {
    file.append(buffer, buffer.last_timestamp().unwrap_or(0))?;
    buffer.reset();
    Ok(())
}

/// Converts the readings of the clock and the durations in the payload of a kernel event: the start of
/// an interval whose end is the event's time, the time of the event that a stack belongs to, and the
/// duration of a transfer.
fn convert_payload(record: &mut [u8], values: &[(usize, kernel::Type)], times: &Times) {
    for &(at, kind) in values {
        let place = record.get_mut(at..);
        let Some(place) = place.and_then(<[u8]>::first_chunk_mut::<8>) else {
            continue; // not reached: the value was just read
        };
        *place = if kind == kernel::Type::TickDuration {
            times.duration(u64::from_le_bytes(*place)).to_le_bytes()
        } else {
            times.convert(i64::from_le_bytes(*place)).to_le_bytes()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Type;

    #[test]
    fn durations_are_marked_in_the_tables() {
        let mut found = Vec::new();
        for class in kernel::classes() {
            for event in &class.events {
                let mut fields = event.layouts.iter().flat_map(|layout| &layout.fields);
                if fields.any(|field| field.kind == Type::TickDuration) {
                    found.push((class.group, event.opcode));
                }
            }
        }
        let expected = [0x0A, 0x0B, 0x0E, 0x37, 0x38, 0x39];
        assert_eq!(found, expected.map(|opcode| (Some(0x01), opcode)));
    }

    #[test]
    fn durations_are_scaled() {
        let clock = |kind, perf_frequency| Clock {
            kind,
            perf_frequency,
            cpu_mhz: 3000,
            start_clock: 0,
            start_time: FileTime::from_raw(0),
        };
        let to = clock(ClockType::SystemTime, 1);
        let times = |from| Times { from, to };
        assert_eq!(times(clock(ClockType::Qpc, 2_500_000)).duration(100), 400);
        assert_eq!(times(clock(ClockType::CpuCycles, 1)).duration(3000), 10);
        assert_eq!(times(to).duration(100), 100);
    }

    #[test]
    fn an_error_names_the_trace_that_prevents_merging() {
        let error = ReadError::Compressed;
        assert_eq!(MergeError::Read { trace: 3, error }.trace(), Some(3));
        assert_eq!(MergeError::Nothing.trace(), None);
    }

    #[test]
    fn counters_of_the_processor_are_the_same_at_one_known_rate() {
        let clock = |cpu_mhz| Clock {
            kind: ClockType::CpuCycles,
            perf_frequency: 0,
            cpu_mhz,
            start_clock: 5_000_000,
            start_time: FileTime::from_raw(134_117_966_450_000_000),
        };
        assert!(is_same_counter(&clock(3000), &clock(3000)));
        assert!(!is_same_counter(&clock(3000), &clock(3001)));
        assert!(!is_same_counter(&clock(0), &clock(0)));
    }

    #[test]
    fn counters_are_the_same_at_one_known_rate_and_at_most_two_seconds_apart() {
        let start = 134_117_966_450_000_000;
        let clock = |kind, perf_frequency, later: i64| Clock {
            kind,
            perf_frequency,
            cpu_mhz: 3000,
            start_clock: 5_000_000,
            start_time: FileTime::from_raw(start + later),
        };
        let qpc = |perf_frequency, later| clock(ClockType::Qpc, perf_frequency, later);
        for (later, is_same) in [
            (0, true),
            (15_000_000, true),
            (20_000_000, true),
            (20_000_001, false),
            (-20_000_001, false),
        ] {
            let (one, other) = (qpc(10_000_000, 0), qpc(10_000_000, later));
            assert_eq!(is_same_counter(&one, &other), is_same, "{later}");
        }
        assert!(!is_same_counter(&qpc(10_000_000, 0), &qpc(3_000_000, 0)));
        assert!(!is_same_counter(&qpc(0, 0), &qpc(0, 0)));
        // System time is the same clock on every machine.
        let system = |later| clock(ClockType::SystemTime, 10_000_000, later);
        assert!(is_same_counter(&system(0), &system(20_000_001)));
        assert!(!is_same_counter(&system(0), &qpc(10_000_000, 0)));
        assert!(!is_same_counter(&qpc(10_000_000, 0), &system(0)));
        let other = clock(ClockType::Other(9), 10_000_000, 0);
        assert!(!is_same_counter(&other, &other));
    }
}
