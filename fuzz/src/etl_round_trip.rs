//! Writes arbitrary sessions to files and reads them again.

use std::{collections::BTreeSet, io};

use arbitrary::Arbitrary;
use etl_file::write::{AppendError, Buffer, Finish, LogFile, Losses, WriteError};
use etl_file::{
    ClockType, EventDescriptor, EventRecord, ExtendedItem, FileTime, Guid, HeaderError,
    LogFileHeader, TimeZone, Trace, log_file_mode,
};

/// The number of processors of a session with per-processor buffers.
const PROCESSORS: usize = 4;

/// A session's configuration and steps.
#[derive(Arbitrary, Debug)]
pub struct Session {
    header: Header,
    steps: Vec<Step>,
    end_time: i64,
}

/// A session's configuration.
#[derive(Arbitrary, Debug)]
struct Header {
    /// The index of the buffer size; other values select an unusual size.
    size: u8,
    odd_size: Option<u32>,
    processors: u8,
    clock: u8,
    perf_frequency: i64,
    cpu_mhz: u32,
    start_time: i64,
    start_clock: i64,
    boot_time: i64,
    mode: u32,
    maximum_file_size: u32,
    session_name: String,
    log_file_name: String,
    zone: [String; 2],
    biases: [i32; 3],
    logger_id: u16,
    thread_id: u32,
    process_id: u32,
    os: (u8, u8, u32),
}

/// A step of a session.
#[derive(Arbitrary, Debug)]
enum Step {
    /// Writes an event on a processor.
    Write { processor: u8, event: Box<Event> },
    /// Writes the previous event again, with user data of `bytes` bytes.
    Large { processor: u8, bytes: u16 },
    /// Flushes a processor's buffer.
    Flush { processor: u8, time: i64 },
    /// Overwrites the oldest buffer in the file with a processor's buffer.
    Replace { processor: u8, time: i64 },
    /// Reports lost events and buffers.
    Lose { events: u32, buffers: u32 },
}

/// An event record.
#[derive(Arbitrary, Clone, Debug, Default)]
struct Event {
    ids: (u32, u32),
    timestamp: i64,
    provider: [u8; 16],
    descriptor: (u16, u8, u8, u8, u8, u16, u64),
    activity: [u8; 16],
    times: (u32, u32),
    property: u16,
    string_only: bool,
    extended: Vec<(u16, Vec<u8>)>,
    user_data: Vec<u8>,
}

impl Event {
    fn record(&self) -> EventRecord {
        let (id, version, channel, level, opcode, task, keyword) = self.descriptor;
        EventRecord {
            thread_id: self.ids.0,
            process_id: self.ids.1,
            timestamp: self.timestamp,
            provider: Guid::from_bytes(self.provider),
            descriptor: EventDescriptor { id, version, channel, level, opcode, task, keyword },
            activity_id: Guid::from_bytes(self.activity),
            kernel_time: self.times.0,
            user_time: self.times.1,
            event_property: self.property,
            string_only: self.string_only,
            extended: self
                .extended
                .iter()
                .map(|(ext_type, data)| ExtendedItem { ext_type: *ext_type, data: data.clone() })
                .collect(),
            user_data: self.user_data.clone(),
        }
    }
}

impl Header {
    fn header(&self) -> LogFileHeader {
        LogFileHeader {
            buffer_size: self.odd_size.unwrap_or_else(|| 1024 * kib(self.size.into())),
            processors: u32::from(self.processors),
            clock: ClockType::from_raw(u32::from(self.clock)),
            perf_frequency: self.perf_frequency,
            start_time: FileTime::from_raw(self.start_time),
            start_clock: self.start_clock,
            boot_time: FileTime::from_raw(self.boot_time),
            log_file_mode: self.mode,
            maximum_file_size: self.maximum_file_size,
            os_major: self.os.0,
            os_minor: self.os.1,
            os_build: self.os.2,
            cpu_mhz: self.cpu_mhz,
            timer_resolution: 156_250,
            session_name: self.session_name.clone(),
            log_file_name: self.log_file_name.clone(),
            time_zone: TimeZone {
                bias: self.biases[0],
                standard_name: self.zone[0].clone(),
                standard_bias: self.biases[1],
                daylight_name: self.zone[1].clone(),
                daylight_bias: self.biases[2],
                ..TimeZone::default()
            },
            logger_id: self.logger_id,
            thread_id: self.thread_id,
            process_id: self.process_id,
        }
    }
}

/// Buffer sizes in KiB: small ones, which are fast to write, and one that can hold the largest
/// record.
const fn kib(number: u32) -> u32 {
    let sizes = [4, 5, 8, 16, 66];
    sizes[number as usize % sizes.len()]
}

/// Returns the header that a reader returns for `header`: the time zone's name ends at a NUL and
/// has at most 31 UTF-16 units, and the file is not marked as real-time.
fn as_read(mut header: LogFileHeader) -> LogFileHeader {
    let zone = &mut header.time_zone;
    for name in [&mut zone.standard_name, &mut zone.daylight_name] {
        let units: Vec<u16> = name.encode_utf16().take(31).take_while(|unit| *unit != 0).collect();
        *name = String::from_utf16_lossy(&units);
    }
    header.log_file_mode &= !log_file_mode::REAL_TIME;
    header
}

/// Returns a valid header that is similar to `header`.
fn corrected(header: LogFileHeader) -> LogFileHeader {
    let clean = |name: &str| -> String { name.chars().filter(|c| *c != '\0').take(64).collect() };
    let mut corrected = LogFileHeader {
        buffer_size: 1024 * kib(header.buffer_size),
        processors: header.processors.clamp(1, 4),
        clock: ClockType::from_raw(header.clock.raw() % 3 + 1),
        perf_frequency: header.perf_frequency.saturating_abs().max(1),
        cpu_mhz: header.cpu_mhz.max(1),
        session_name: clean(&header.session_name),
        log_file_name: clean(&header.log_file_name),
        ..header
    };
    if corrected.log_file_mode & log_file_mode::NO_PER_PROCESSOR_BUFFERING != 0 {
        corrected.processors = 1;
    }
    if corrected.clock == ClockType::SystemTime {
        corrected.start_clock = corrected.start_time.raw();
    }
    corrected
}

/// A buffer of the file, as the model expects it.
#[derive(Clone)]
struct Slot {
    processor: u16,
    time: i64,
    sequence: i64,
    records: Vec<EventRecord>,
}

/// A running session and the expected contents of its file.
struct Writer {
    log: LogFile<io::Cursor<Vec<u8>>>,
    buffers: Vec<(Buffer, Vec<EventRecord>)>,
    slots: Vec<Slot>,
    sequence: i64,
    losses: Losses,
    compressed: bool,
    written: Written,
}

/// The results of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The session's clock.
    pub clock: ClockType,
    /// True if the file is compressed.
    pub compressed: bool,
    /// True if the session's header was rejected and replaced by a similar valid one.
    pub corrected: bool,
    /// The number of events in the file.
    pub events: usize,
    /// The number of the events' extended data items.
    pub items: usize,
    /// The size of the largest user data of an event.
    pub largest: usize,
    /// The number of events that are too large for the session's buffers.
    pub refused: usize,
    /// The number of buffers in the file.
    pub buffers: usize,
    /// The number of buffers that replaced the oldest one.
    pub replaced: usize,
    /// The number of processors that have buffers.
    pub processors: usize,
    /// The numbers of lost events and buffers.
    pub lost: (u32, u32),
}

/// Checks that the file contains the written events in the same order without damage, and that
/// rejected events do not change the file.
#[must_use]
pub fn check(session: &Session) -> Written {
    let wanted = session.header.header();
    let refused = LogFile::create(io::Cursor::new(Vec::new()), wanted.clone());
    let is_corrected = refused.is_err();
    let header = match refused {
        Ok(_) => wanted,
        Err(WriteError::Header(error)) => {
            let header = corrected(wanted.clone());
            assert!(header != wanted, "a valid header is refused: {error}");
            if matches!(error, HeaderError::NamesTooLong { .. }) {
                let long = wanted.session_name.len() + wanted.log_file_name.len();
                assert!(long > 128, "names of {long} bytes are refused");
            }
            header
        }
        Err(error) => panic!("{error}"),
    };
    let log = LogFile::create(io::Cursor::new(Vec::new()), header.clone()).expect("a valid header");
    let processors = usize::try_from(header.processors).expect("few").min(PROCESSORS);
    let mut writer = Writer {
        log,
        buffers: (0..processors)
            .map(|cpu| u16::try_from(cpu).expect("few"))
            .map(|cpu| (Buffer::new(header.buffer_size, cpu), Vec::new()))
            .collect(),
        slots: Vec::new(),
        sequence: 1,
        losses: Losses::default(),
        compressed: header.is_compressed(),
        written: Written {
            clock: header.clock,
            compressed: header.is_compressed(),
            corrected: is_corrected,
            ..Written::default()
        },
    };
    let mut last = Event::default();
    for step in &session.steps {
        writer.take_step(step, &mut last);
    }
    for cpu in 0..writer.buffers.len() {
        writer.flush(cpu, 0, false);
    }
    writer.finish(&header, session.end_time)
}

impl Writer {
    fn cpu(&self, processor: u8) -> usize {
        usize::from(processor) % self.buffers.len()
    }

    fn take_step(&mut self, step: &Step, last: &mut Event) {
        match step {
            Step::Write { processor, event } => {
                last.clone_from(event);
                self.write(self.cpu(*processor), event.record());
            }
            Step::Large { processor, bytes } => {
                let mut record = last.record();
                record.user_data.resize((*bytes).into(), 0xEE);
                self.write(self.cpu(*processor), record);
            }
            Step::Flush { processor, time } => self.flush(self.cpu(*processor), *time, false),
            Step::Replace { processor, time } => self.flush(self.cpu(*processor), *time, true),
            Step::Lose { events, buffers } => {
                self.losses = Losses {
                    events_lost: self.losses.events_lost.saturating_add(*events),
                    buffers_lost: self.losses.buffers_lost.saturating_add(*buffers),
                };
                self.log.note_losses(self.losses);
            }
        }
    }

    fn write(&mut self, cpu: usize, record: EventRecord) {
        let (buffer, records) = &mut self.buffers[cpu];
        let before = buffer.clone();
        let mut result = buffer.try_append(&record);
        if result == Err(AppendError::Full) {
            assert_eq!(*buffer, before);
            self.flush(cpu, record.timestamp, false);
            let (buffer, _) = &mut self.buffers[cpu];
            result = buffer.try_append(&record);
            assert!(result.is_ok(), "it fits an empty buffer");
            self.buffers[cpu].1.push(record);
            return;
        }
        match result {
            Ok(()) => records.push(record),
            Err(AppendError::NeverFits { size, capacity }) => {
                assert!(size > capacity);
                assert_eq!(*buffer, before);
                self.written.refused += 1;
            }
            Err(_) => {
                assert!(record.encoded_size() > 0xFFFF);
                assert_eq!(*buffer, before);
                self.written.refused += 1;
            }
        }
    }

    fn flush(&mut self, cpu: usize, time: i64, replace: bool) {
        let (buffer, records) = &mut self.buffers[cpu];
        let result = if replace {
            self.log.replace_oldest(buffer, time)
        } else {
            self.log.append(buffer, time)
        };
        match result {
            Err(WriteError::EmptyBuffer) => return assert!(records.is_empty()),
            Err(WriteError::NothingToReplace) => return assert!(self.slots.is_empty()),
            Err(WriteError::Compressed) => return assert!(replace && self.compressed),
            Err(error) => panic!("{error}"),
            Ok(()) => {}
        }
        let slot = Slot {
            processor: buffer.processor(),
            time,
            sequence: self.sequence,
            records: std::mem::take(records),
        };
        buffer.reset();
        self.sequence += 1;
        if replace {
            let oldest = self.slots.iter_mut().min_by_key(|slot| slot.sequence);
            *oldest.expect("there was one to replace") = slot;
            self.written.replaced += 1;
        } else {
            self.slots.push(slot);
        }
    }

    /// Completes the file, reads it, and compares it with the model.
    fn finish(self, header: &LogFileHeader, end_time: i64) -> Written {
        let finish = Finish {
            end_time: FileTime::from_raw(end_time),
            events_lost: self.losses.events_lost,
            buffers_lost: self.losses.buffers_lost,
        };
        assert_eq!(self.log.is_empty(), self.slots.is_empty());
        let length = self.log.len();
        let file = self.log.finish(finish).expect("memory takes everything");
        let file = file.into_inner();
        assert_eq!(file.len() as u64, length);
        let trace = Trace::parse(&file).expect("it was just written");
        assert_eq!(trace.damages(), []);
        let found = trace.header();
        assert_eq!(found.session, as_read(header.clone()));
        assert_eq!(found.end_time, (end_time != 0).then_some(finish.end_time));
        assert_eq!(found.events_lost, self.losses.events_lost);
        assert_eq!(found.buffers_lost, self.losses.buffers_lost);
        assert_eq!(found.buffers_written as usize, self.slots.len() + 1);
        assert_eq!(trace.others().count(), 0);
        let (_, buffers) = trace.buffers().split_first().expect("a first buffer");
        assert_eq!(buffers.len(), self.slots.len());
        for (buffer, slot) in buffers.iter().zip(&self.slots) {
            assert_eq!(
                (buffer.processor, buffer.timestamp, buffer.sequence),
                (slot.processor, slot.time, slot.sequence)
            );
            assert_eq!(buffer.logger_id, header.logger_id);
        }
        let written = self.slots.iter().flat_map(|slot| &slot.records);
        assert!(trace.events().map(|event| &event.record).eq(written));
        let clock = header.session_clock();
        for event in trace.events() {
            assert_eq!(event.time, clock.to_file_time(event.record.timestamp));
        }
        let of_processors: BTreeSet<u16> = self.slots.iter().map(|slot| slot.processor).collect();
        let records = || trace.events().map(|event| &event.record);
        Written {
            events: records().count(),
            items: records().map(|record| record.extended.len()).sum(),
            largest: records().map(|record| record.user_data.len()).max().unwrap_or(0),
            buffers: self.slots.len(),
            processors: of_processors.len(),
            lost: (self.losses.events_lost, self.losses.buffers_lost),
            ..self.written
        }
    }
}
