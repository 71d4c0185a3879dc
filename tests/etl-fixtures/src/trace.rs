//! Files that the writer creates, with manifest-based and `TraceLogging` events.

use std::borrow::Borrow;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use etl_file::write::{AppendError, Buffer, Finish, KernelRecord, LogFile, Losses};
use etl_file::{
    ClockType, Decoded, EncodedRecord, Event, EventDescriptor, EventRecord, ExtendedItem, FileTime,
    Guid, LogFileHeader, Pipeline, ReadError, Summary, TraceFile, ext_type,
};

/// The manifest of [`MANIFEST_PROVIDER`].
pub const MANIFEST: &str = include_str!("sample.man");
/// The provider of the manifest-based events. [`MANIFEST`] describes it.
pub const MANIFEST_PROVIDER: Guid = Guid::from_u128(0x2f4c_8a60_7d1b_4c35_9e02_51a6_0b7c_d8e9);
/// The provider of the `TraceLogging` events.
pub const SELF_DESCRIBING: Guid = Guid::from_u128(0x29d5_a000_45bd_558a_9252_9500_10cc_7465);
/// The provider group in the provider's traits.
pub const GROUP: Guid = Guid::from_u128(0x4aa0_9f40_b4fd_5f91_9ca5_dfdd_f6a3_1cea);

/// The time at which the session of every fixture starts: 2026-01-02 03:04:05 UTC.
pub const START: FileTime = FileTime::from_raw(134_117_966_450_000_000);

/// Returns the path of the file with [`MANIFEST`].
pub fn manifest_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sample.man")
}

/// Returns a session's header with the given clock type.
pub fn header(clock: ClockType, buffer_size: u32, processors: u32) -> LogFileHeader {
    LogFileHeader {
        buffer_size,
        processors,
        clock,
        start_time: START,
        start_clock: match clock {
            ClockType::SystemTime => START.raw(),
            _ => 2_745_263_251_517,
        },
        boot_time: FileTime::from_raw(START.raw() - 274_526_000_000),
        session_name: "Fixture".to_owned(),
        log_file_name: r"C:\traces\fixture.etl".to_owned(),
        logger_id: 20,
        thread_id: 0x11,
        process_id: 0x22,
        ..LogFileHeader::default()
    }
}

/// Returns a manifest-based event: the start or the completion of a request.
pub fn manifest_event(n: u32, timestamp: i64) -> EventRecord {
    let stops = n % 2 == 1;
    let mut user_data = u64::from(n).to_le_bytes().to_vec();
    user_data.extend((n % 3).to_le_bytes());
    user_data.extend("path".encode_utf16().flat_map(u16::to_le_bytes));
    user_data.extend([0, 0]);
    let related = ExtendedItem::related_activity(Guid::from_bytes([0xA1; 16]));
    EventRecord {
        thread_id: 0x44,
        process_id: 0x55,
        timestamp,
        provider: MANIFEST_PROVIDER,
        descriptor: EventDescriptor {
            id: 1 + u16::from(stops),
            version: 1,
            channel: 16,
            level: 4,
            opcode: 1 + u8::from(stops),
            task: 7,
            keyword: 0x8000_0000_0000_0003,
        },
        activity_id: Guid::from_bytes([0xB2; 16]),
        kernel_time: 3,
        user_time: 4,
        extended: if stops { Vec::new() } else { vec![related] },
        user_data,
        ..EventRecord::default()
    }
}

/// Returns a `TraceLogging` event of a provider that belongs to a group.
pub fn trace_logging_event(n: u32, timestamp: i64) -> EventRecord {
    let traits = traits("Contoso.Sample", Some(GROUP));
    let mut schema = Schema::new("Progress");
    schema.field("count", &[8]); // UINT32
    schema.field("delta", &[9]); // INT64
    schema.field("ratio", &[12]); // DOUBLE
    schema.field("id", &[15]); // GUID
    schema.field("text", &[1]); // UNICODESTRING
    schema.field("name", &[2]); // ANSISTRING
    schema.field("mask", &[20]); // HEXINT32
    schema.field("bytes", &[0x44]); // UINT8, variable count
    let mut user_data = n.to_le_bytes().to_vec();
    user_data.extend((-i64::from(n)).to_le_bytes());
    user_data.extend((f64::from(n) / 4.0).to_le_bytes());
    user_data.extend(SELF_DESCRIBING.to_bytes());
    user_data.extend("half".encode_utf16().flat_map(u16::to_le_bytes));
    user_data.extend([0, 0]);
    user_data.extend(b"plain\0");
    user_data.extend(0xBEEF_u32.to_le_bytes());
    user_data.extend([3, 0, 7, 8, 9]);
    EventRecord {
        thread_id: 0x66,
        process_id: 0x77,
        timestamp,
        provider: SELF_DESCRIBING,
        descriptor: EventDescriptor {
            channel: 11,
            level: 5,
            keyword: 2,
            ..EventDescriptor::default()
        },
        extended: vec![
            ExtendedItem { ext_type: ext_type::PROV_TRAITS, data: traits },
            ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: schema.finish() },
        ],
        user_data,
        ..EventRecord::default()
    }
}

/// Returns a provider traits blob.
pub fn traits(name: &str, group: Option<Guid>) -> Vec<u8> {
    let mut blob = vec![0, 0];
    blob.extend(name.as_bytes());
    blob.push(0);
    if let Some(group) = group {
        blob.extend([0x13, 0, 1]);
        blob.extend(group.to_bytes());
    }
    sized(blob)
}

/// A builder of `TraceLogging` metadata.
pub struct Schema(Vec<u8>);

impl Schema {
    /// Starts the metadata of an event.
    pub fn new(event: &str) -> Self {
        let mut blob = vec![0, 0, 0];
        blob.extend(event.as_bytes());
        blob.push(0);
        Self(blob)
    }

    /// Adds a field with this name and the bytes of its type.
    pub fn field(&mut self, name: &str, meta: &[u8]) {
        self.0.extend(name.as_bytes());
        self.0.push(0);
        self.0.extend(meta);
    }

    /// Returns the metadata, preceded by its size.
    pub fn finish(self) -> Vec<u8> {
        sized(self.0)
    }
}

/// Returns a blob whose first two bytes are set to its size.
fn sized(mut blob: Vec<u8>) -> Vec<u8> {
    let size = u16::try_from(blob.len()).expect("metadata is small");
    blob[..2].copy_from_slice(&size.to_le_bytes());
    blob
}

/// Writes a file with `events` events of alternating kinds, on the processors in turn, one
/// millisecond apart. Returns the file and the events.
pub fn file(header: LogFileHeader, events: u32, losses: Losses) -> (Vec<u8>, Vec<EventRecord>) {
    let tick = 10_000;
    let (start, processors) = (header.start_clock, header.processors);
    let event = |n: u32| {
        let now = start + i64::from(n + 1) * tick;
        if n.is_multiple_of(2) { trace_logging_event(n, now) } else { manifest_event(n / 2, now) }
    };
    let written: Vec<EventRecord> = (0..events).map(event).collect();
    let log =
        on_processors(header, losses, (0..).zip(&written).map(|(n, it)| (n % processors, it)));
    let finish = Finish {
        end_time: FileTime::from_raw(START.raw() + i64::from(events) * tick),
        events_lost: losses.events_lost,
        buffers_lost: losses.buffers_lost,
    };
    let bytes = log.finish(finish).expect("memory takes everything");
    (bytes.into_inner(), written)
}

/// Writes events in order of time, each on a processor. The losses are noted at the end.
pub fn on_processors<E: Borrow<EventRecord>>(
    header: LogFileHeader,
    losses: Losses,
    events: impl IntoIterator<Item = (u32, E)>,
) -> LogFile<Cursor<Vec<u8>>> {
    let mut buffers: Vec<Buffer> = (0..header.processors)
        .map(|cpu| Buffer::new(header.buffer_size, u16::try_from(cpu).expect("few processors")))
        .collect();
    let mut now = header.start_clock;
    let mut log = LogFile::create(Cursor::new(Vec::new()), header).expect("a valid header");
    for (processor, event) in events {
        let event = event.borrow();
        now = event.timestamp;
        let buffer = &mut buffers[processor as usize];
        if buffer.try_append(event) == Err(AppendError::Full) {
            log.append(buffer, now).expect("memory takes everything");
            buffer.reset();
            buffer.try_append(event).expect("it fits an empty buffer");
        }
    }
    log.note_losses(losses);
    for buffer in buffers.iter().filter(|buffer| !buffer.is_empty()) {
        log.append(buffer, now).expect("memory takes everything");
    }
    log
}

/// A record in a file, with the time by which records are sorted.
pub trait Recorded {
    /// Returns the time and the record.
    fn record(&self) -> (i64, EncodedRecord);
}

impl<R: Recorded> Recorded for &R {
    fn record(&self) -> (i64, EncodedRecord) {
        (*self).record()
    }
}

impl Recorded for EventRecord {
    fn record(&self) -> (i64, EncodedRecord) {
        (self.timestamp, EncodedRecord::new(self).expect("the event fits in a record"))
    }
}

impl Recorded for KernelRecord {
    fn record(&self) -> (i64, EncodedRecord) {
        (self.timestamp, self.try_into().expect("the event fits in a record"))
    }
}

impl Recorded for (i64, EncodedRecord) {
    fn record(&self) -> (i64, EncodedRecord) {
        self.clone()
    }
}

impl Recorded for (i64, Vec<u8>) {
    fn record(&self) -> (i64, EncodedRecord) {
        (self.0, EncodedRecord::from_bytes(&self.1).expect("the bytes are a record"))
    }
}

/// Returns a processor's buffer with these records.
pub fn buffer<R: Recorded>(
    size: u32,
    processor: u16,
    records: impl IntoIterator<Item = R>,
) -> Buffer {
    let mut buffer = Buffer::new(size, processor);
    for record in records {
        let (time, record) = record.record();
        buffer.try_append_record(&record, time).expect("the buffer holds all records");
    }
    buffer
}

/// Writes a file with these buffers in order. `flushed` is the clock's reading when they are
/// flushed.
pub fn of_buffers(
    header: LogFileHeader,
    flushed: i64,
    buffers: impl IntoIterator<Item = Buffer>,
) -> Vec<u8> {
    let mut log = LogFile::create(Cursor::new(Vec::new()), header).expect("a valid header");
    for buffer in buffers.into_iter().filter(|buffer| !buffer.is_empty()) {
        log.append(&buffer, flushed).expect("memory takes everything");
    }
    log.finish(Finish::default()).expect("memory takes everything").into_inner()
}

/// Writes a file with the records of one processor, in as many buffers as the records require.
pub fn of_records<R: Recorded>(
    header: LogFileHeader,
    flushed: i64,
    records: impl IntoIterator<Item = R>,
) -> Vec<u8> {
    let empty = Buffer::new(header.buffer_size, 0);
    let mut buffers = vec![empty.clone()];
    for record in records {
        let (time, record) = record.record();
        let last = buffers.last_mut().expect("there is one");
        if last.try_append_record(&record, time) == Err(AppendError::Full) {
            let mut next = empty.clone();
            next.try_append_record(&record, time).expect("it fits an empty buffer");
            buffers.push(next);
        }
    }
    of_buffers(header, flushed, buffers)
}

/// Returns the events that a pipeline makes of a file, as recorded and decoded, and its counts.
///
/// # Panics
/// Panics if the file cannot be read.
pub fn events<R: Read + Seek + Send>(
    file: &mut TraceFile<R>,
    pipeline: &Pipeline<'_>,
) -> (Vec<(Event, Decoded)>, Summary) {
    let mut all = Vec::new();
    let result: Result<Summary, ReadError> = pipeline.run(
        file,
        || (),
        |(), event, decoded, batch: &mut Vec<_>| {
            batch.push((event.to_event(), decoded));
            Ok(())
        },
        |batch| {
            all.append(batch);
            Ok(())
        },
    );
    (all, result.unwrap())
}
