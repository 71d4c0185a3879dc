//! Merges several traces into one, in time order.
//!
//! One buffer for each processor of each trace is in memory, regardless of the traces' lengths. All
//! records are copied unchanged, except for their times: if the sessions' clocks differ, times are
//! converted to system time. The sessions' losses are added up.
//!
//! Some records of a kernel session describe the session, not the system; they
//! are meaningless in a merged trace and are omitted.

use std::io::{Read, Seek, Write};

use crate::decode::kernel;
use crate::header::{HeaderError, LogFileHeader, log_file_mode};
use crate::layout::Form;
use crate::read::{Damages, ReadError, RecordRef, Records, TraceFile};
use crate::record::{EncodeError, EncodedRecord};
use crate::time::{Clock, ClockType, FileTime};
use crate::trim::Kept;
use crate::write::{AppendError, Buffer, Finish, LogFile, Losses, WriteError};

/// The reason why traces cannot be merged. `trace` is the index of the trace at fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// No trace was given.
    #[error("no traces to merge were given")]
    Nothing,
    /// A trace could not be read.
    #[error("{error}")]
    Read {
        /// The index of the trace.
        trace: usize,
        /// A trace's times are unknown, so its records cannot be sorted among the others.
        error: ReadError,
    },
    /// The times of a trace are unknown, so its records cannot be sorted among the others.
    #[error("cannot merge the trace, because its times are unknown: {error}")]
    Clock {
        /// The index of the trace.
        trace: usize,
        /// The reason.
        error: HeaderError,
    },
    /// A trace has buffers of more processors than a merged trace can have.
    #[error("cannot merge the trace: {error}")]
    Processors {
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
    /// Returns the index of the trace that prevents merging, if it is a single trace.
    #[must_use]
    pub const fn trace(&self) -> Option<usize> {
        match self {
            Self::Read { trace, .. }
            | Self::Clock { trace, .. }
            | Self::Processors { trace, .. }
            | Self::Record { trace, .. }
            | Self::Append { trace, .. } => Some(*trace),
            Self::Nothing | Self::Write(_) => None,
        }
    }
}

/// The options of a merged trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True to compress the buffers.
    pub compress: bool,
}

/// The counts of the records that a merge copied and omitted, and the damage that it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The number of event records.
    pub events: u64,
    /// The number of other records: kernel events, classic events, WPP messages.
    pub others: u64,
    /// The number of omitted records that describe a session.
    pub left_out: u64,
    /// The number of omitted records that were not selected.
    pub unselected: u64,
    /// The number of copied records that were not selected themselves, but are needed by selected
    /// ones.
    pub needed: u64,
    /// The number of records so far out of order in their trace that they could not be sorted.
    pub late: u64,
    /// The damaged parts of each trace, in the order of the traces. The merged trace lacks their
    /// unreadable data.
    pub damages: Vec<Damages>,
}

/// Returns true if a record with a hook describes its session: a header event (0x00), group masks
/// (0x05, 0x20), the container id (0x50) or the last drop times (0x52).
#[must_use]
const fn is_of_session(hook: u16) -> bool {
    matches!(hook, 0x00 | 0x05 | 0x20 | 0x50 | 0x52)
}

/// Two sessions read the same counter if their clocks' origins differ by at most this, in 100 ns. A
/// tolerance is necessary because the system time can be adjusted between the sessions' starts.
const SAME_COUNTER: u64 = 2 * 10_000_000;

/// The maximum number of processors of a merged trace.
const MAX_PROCESSORS: u32 = 256;
/// The valid sizes of a trace's buffers, in bytes.
const BUFFER_SIZES: std::ops::RangeInclusive<u32> = 0x1000..=0x10_0000;

/// Writes the records of all traces to one trace, sorted by time. `log_file_name` is the name in
/// its header. Skips unreadable parts of damaged traces, and lists them in [`Merged::damages`].
///
/// # Errors
///
/// Fails with [`MergeError`]; the output is then an incomplete trace.
pub fn merge<R: Read + Seek, W: Write + Seek>(
    traces: &mut [TraceFile<R>],
    log_file_name: &str,
    options: Options,
    out: W,
) -> Result<(W, Merged), MergeError> {
    merge_part(traces, log_file_name, options, |_, _| Some(Kept::Selected), |_, _| None, out)
}

/// Writes some records of all traces to one trace, like [`merge`].
///
/// `keeps` receives each record with the index of its trace, and returns the reason to keep it; see
/// [`Trimmer::keeps`](crate::trim::Trimmer::keeps). `hides` receives each kept record, and returns
/// the bytes to write in its place, if any.
///
/// # Errors
///
/// Fails with [`MergeError`]; the output is then an incomplete trace.
pub fn merge_part<R: Read + Seek, W: Write + Seek>(
    traces: &mut [TraceFile<R>],
    log_file_name: &str,
    options: Options,
    mut keeps: impl FnMut(usize, &RecordRef<'_>) -> Option<Kept>,
    mut hides: impl FnMut(usize, &RecordRef<'_>) -> Option<Vec<u8>>,
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
            break; // unreachable: it was just found
        };
        if let Some(record) = source.records.get() {
            match keeps(source.number, &record) {
                None => writer.merged.unselected += 1,
                Some(kept) => {
                    let hidden = hides(source.number, &record);
                    let bytes = hidden.as_deref().unwrap_or(record.bytes);
                    let record = record.with_bytes(bytes);
                    writer.copy(source.number, &record, &source.times, kept)?;
                }
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

/// Returns the maximum number of processors, according to the traces' headers and buffers.
fn processors<R: Read + Seek>(traces: &mut [TraceFile<R>]) -> Result<u32, MergeError> {
    let mut processors = 0;
    for (number, trace) in traces.iter_mut().enumerate() {
        let failed = |error| MergeError::Read { trace: number, error };
        let stated = trace.header().session.processors;
        let mut known = 0;
        for buffer in 0..trace.buffers() {
            if let Some(info) = trace.info(buffer).map_err(failed)? {
                known = known.max(u32::from(info.processor) + 1);
            }
        }
        if known > MAX_PROCESSORS {
            let error = HeaderError::Processors(known);
            return Err(MergeError::Processors { trace: number, error });
        }
        // A header that states more is damaged, or not all of the machine's processors have buffers.
        processors = processors.max(known).max(if stated <= MAX_PROCESSORS { stated } else { 0 });
    }
    Ok(processors)
}

/// Returns the merged trace's header: the header of the trace that starts first, with the time span
/// of all traces.
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
    // The merged clock does not use these values, but a header needs them.
    if header.perf_frequency <= 0 {
        header.perf_frequency = LogFileHeader::default().perf_frequency;
    }
    if header.cpu_mhz == 0 {
        header.cpu_mhz = sessions().map(|session| session.cpu_mhz).max()?.max(1);
    }
    Some(header)
}

/// Returns true if two sessions read the same counter, so that their readings are comparable.
fn is_same_counter(one: &Clock, other: &Clock) -> bool {
    let same_kind = one.kind == other.kind;
    let is_known = !matches!(one.kind, ClockType::Other(_));
    let same_rate = match one.kind {
        ClockType::Qpc => one.perf_frequency == other.perf_frequency && one.perf_frequency > 0,
        ClockType::CpuCycles => one.cpu_mhz == other.cpu_mhz && one.cpu_mhz > 0,
        ClockType::SystemTime | ClockType::Other(_) => true,
    };
    // If the machine was restarted in between, the counter starts at 0 again.
    let by_one = one.to_file_time(other.start_clock).raw();
    let apart = by_one.abs_diff(other.start_time.raw());
    same_kind
        && is_known
        && same_rate
        && (one.kind == ClockType::SystemTime || apart <= SAME_COUNTER)
}

/// Converts readings of a trace's clock to readings of the merged trace's clock.
#[derive(Clone, Copy, Debug)]
struct Times {
    from: Clock,
    to: Clock,
}

impl Times {
    /// Converts a reading. Equal readings stay equal, so that stacks keep the times of their
    /// events.
    fn convert(&self, raw: i64) -> i64 {
        if self.is_equal() { raw } else { self.from.to_file_time(raw).raw() }
    }

    /// Returns true if readings stay unchanged. A session's system time can have an origin other
    /// than its start.
    fn is_equal(&self) -> bool {
        let is_anchored = self.from.start_clock == self.from.start_time.raw();
        self.from.kind == self.to.kind && (self.to.kind != ClockType::SystemTime || is_anchored)
    }

    /// Converts a number of ticks.
    fn duration(&self, ticks: u64) -> u64 {
        if self.from.kind == self.to.kind {
            return ticks;
        }
        let (units, of_ticks) = self.from.rate().unwrap_or((1, 1));
        u64::try_from(i128::from(ticks) * units / of_ticks).unwrap_or(u64::MAX)
    }
}

/// A trace and its next record.
struct Source<'t, R> {
    number: usize,
    records: Records<'t, R>,
    times: Times,
    /// The time of the next record, in the merged trace's clock.
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
        let hook = Form::recognize(record.bytes).and_then(|form| form.hook(record.bytes));
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
        let own = Form::recognize(record.bytes).and_then(|form| form.timestamp(record.bytes));
        let timestamp = times.convert(own.unwrap_or(record.timestamp));
        let Some(buffer) = self.buffers.get_mut(usize::from(record.processor)) else {
            return Ok(()); // unreachable: the header counts every buffer's processor
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

/// Converts the readings of the clock and the durations in the payload of a kernel event: the start
/// of an interval that ends with the event, the time of a stack's event, and the duration of a
/// transfer.
fn convert_payload(record: &mut [u8], values: &[(usize, kernel::Type)], times: &Times) {
    for &(at, kind) in values {
        let place = record.get_mut(at..);
        let Some(place) = place.and_then(<[u8]>::first_chunk_mut::<8>) else {
            continue; // unreachable: the value was just read
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
    use crate::decode::kernel::Type;

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
        // All machines have the same system time.
        let system = |later| clock(ClockType::SystemTime, 10_000_000, later);
        assert!(is_same_counter(&system(0), &system(20_000_001)));
        assert!(!is_same_counter(&system(0), &qpc(10_000_000, 0)));
        assert!(!is_same_counter(&qpc(10_000_000, 0), &system(0)));
        let other = clock(ClockType::Other(9), 10_000_000, 0);
        assert!(!is_same_counter(&other, &other));
    }
}
