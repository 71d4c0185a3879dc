//! Tests that the reader returns exactly the written events, and that no input makes the reader
//! panic.

use std::io::{self, Cursor, Seek, SeekFrom, Write};

use etl_file::decode::ProviderTraits;
use etl_file::internals::schema::Schema;
use etl_file::lines::{self, Members};
use etl_file::write::{AppendError, Buffer, Finish, LogFile, Losses, Obstacle, WriteError};
use etl_file::{
    Catalog, ClockType, EventDescriptor, EventRecord, ExtendedItem, FileTime, Guid, LogFileHeader,
    PointerSize, Trace, decode, log_file_mode,
};
use etl_fixtures::trace;
use proptest::collection::vec;
use proptest::prelude::*;

fn descriptor() -> impl Strategy<Value = EventDescriptor> {
    (any::<u16>(), any::<[u8; 4]>(), any::<u16>(), any::<u64>()).prop_map(
        |(id, [version, channel, level, opcode], task, keyword)| EventDescriptor {
            id,
            version,
            channel,
            level,
            opcode,
            task,
            keyword,
        },
    )
}

fn item() -> impl Strategy<Value = ExtendedItem> {
    (any::<u16>(), vec(any::<u8>(), 0..40))
        .prop_map(|(ext_type, data)| ExtendedItem { ext_type, data })
}

fn record() -> impl Strategy<Value = EventRecord> {
    (
        any::<(u32, u32, i64)>(),
        any::<([u8; 16], [u8; 16])>(),
        any::<(u32, u32, u16)>(),
        descriptor(),
        vec(item(), 0..4),
        vec(any::<u8>(), 0..200),
    )
        .prop_map(|(ids, guids, times, descriptor, extended, user_data)| EventRecord {
            thread_id: ids.0,
            process_id: ids.1,
            timestamp: ids.2,
            provider: Guid::from_bytes(guids.0),
            descriptor,
            activity_id: Guid::from_bytes(guids.1),
            kernel_time: times.0,
            user_time: times.1,
            event_property: times.2,
            string_only: times.0 & 1 != 0,
            extended,
            user_data,
        })
}

fn header() -> impl Strategy<Value = LogFileHeader> {
    (
        any::<(i64, i64, i64)>(),
        1..i64::MAX,
        1..u32::MAX,
        "[^\0]{0,40}",
        "[^\0]{0,40}",
        any::<(i32, i32, u16)>(),
    )
        .prop_map(|(times, perf_frequency, cpu_mhz, session_name, log_file_name, more)| {
            let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
            header.start_time = FileTime::from_raw(times.0);
            header.start_clock = times.1;
            header.boot_time = FileTime::from_raw(times.2);
            header.perf_frequency = perf_frequency;
            header.cpu_mhz = cpu_mhz;
            header.session_name = session_name;
            header.log_file_name = log_file_name;
            header.time_zone.bias = more.0;
            header.time_zone.daylight_bias = more.1;
            "UTC".clone_into(&mut header.time_zone.standard_name);
            header.logger_id = more.2;
            header
        })
}

/// Writes records to a single-processor file.
fn write(header: LogFileHeader, records: &[EventRecord]) -> Vec<u8> {
    trace::of_records(header, 0, records)
}

/// Calls every function that reads a trace.
fn exercise(trace: &Trace) {
    let catalog = Catalog::new();
    let events: Vec<_> =
        trace.events_by_time().into_iter().map(|event| decode(event, &catalog)).collect();
    for (event, decoded) in trace.events_by_time().into_iter().zip(&events) {
        assert!(!lines::line(decoded).is_empty());
        Members::default().line(&event.view(), decoded, &mut Vec::new()).unwrap();
    }
}

proptest! {
    // R-O1
    #[test]
    fn every_written_record_is_read_back(header in header(), records in vec(record(), 0..60)) {
        let trace = Trace::parse(&write(header.clone(), &records)).unwrap();
        prop_assert_eq!(trace.damages(), []);
        prop_assert_eq!(&trace.header().session, &header);
        let read: Vec<EventRecord> = trace.events().map(|event| event.record.clone()).collect();
        prop_assert_eq!(read, records);
        exercise(&trace);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..8192)) {
        if let Ok(trace) = Trace::parse(&bytes) {
            exercise(&trace);
        }
    }

    #[test]
    fn arbitrary_records_in_a_buffer_do_not_panic(
        bytes in vec(any::<u8>(), 0..(0x1000 - 72)),
        kinds in vec((0_usize..0x1000 - 80, 0_usize..17), 0..40),
    ) {
        // Records of every kind with random bytes, so that the reader gets past the first marker.
        const TYPES: [u8; 17] = [
            1, 2, 3, 4, 0x0A, 0x0B, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0, 0x0D, 0xFF, 0x80,
        ];
        let mut file = write(trace::header(ClockType::Qpc, 0x1000, 1), &[EventRecord::default()]);
        let records = &mut file[0x1048..];
        records[..bytes.len()].copy_from_slice(&bytes);
        for (at, kind) in kinds {
            let at = at / 8 * 8;
            records[at + 2..at + 4].copy_from_slice(&[TYPES[kind], 0xC0]);
            records[at] = 88;
            records[at + 1] = 0;
            records[at + 4] &= 0x7F;
            records[at + 5] = 0;
        }
        file[0x1004..0x1008].copy_from_slice(&0x1000_u32.to_le_bytes());
        file[0x1030..0x1034].copy_from_slice(&0x1000_u32.to_le_bytes());
        exercise(&Trace::parse(&file).unwrap());
    }

    #[test]
    fn mutated_files_do_not_panic(
        changes in vec((0_usize..0x4000, any::<u8>()), 1..20),
        length in 0_usize..0x4000,
        cut in any::<bool>(),
    ) {
        let header = trace::header(ClockType::Qpc, 0x1000, 2);
        let (mut file, _) = trace::file(header, 40, Losses::default());
        for (at, value) in changes {
            let at = at % file.len();
            file[at] = value;
        }
        if cut {
            file.truncate(length);
        }
        if let Ok(trace) = Trace::parse(&file) {
            exercise(&trace);
        }
    }

    #[test]
    fn mutated_metadata_does_not_panic(
        changes in vec((0_usize..200, any::<u8>()), 0..6),
        length in 0_usize..200,
        payload in vec(any::<u8>(), 0..300),
    ) {
        let event = trace::trace_logging_event(3, 0);
        for item in &event.extended {
            let mut blob = item.data.clone();
            for (at, value) in &changes {
                let at = at % blob.len();
                blob[at] = *value;
            }
            for bytes in [&blob[..], &blob[..length.min(blob.len())]] {
                let _ = ProviderTraits::parse(bytes);
                if let Ok(schema) = Schema::parse_trace_logging(bytes) {
                    for (data, size) in [
                        (&payload, PointerSize::Eight),
                        (&event.user_data, PointerSize::Four),
                    ] {
                        let decoded = schema.decode(data, size);
                        prop_assert!(data.ends_with(&decoded.leftover));
                    }
                }
            }
        }
    }

    #[test]
    fn arbitrary_metadata_does_not_panic(
        body in vec(prop_oneof![Just(0_u8), 0..=0x1F_u8, any::<u8>()], 0..120),
        payload in vec(any::<u8>(), 0..120),
    ) {
        let size = u16::try_from(body.len() + 2).unwrap().to_le_bytes();
        let blob = [&size[..], &body].concat();
        let _ = ProviderTraits::parse(&blob);
        if let Ok(schema) = Schema::parse_trace_logging(&blob) {
            let decoded = schema.decode(&payload, PointerSize::Eight);
            let read = payload.len() - decoded.leftover.len();
            prop_assert!(payload.ends_with(&decoded.leftover), "{read} bytes are read");
        }
    }
}

#[test]
fn invalid_headers_are_refused() {
    let valid = || trace::header(ClockType::Qpc, 0x1000, 2);
    let refused = |change: fn(&mut LogFileHeader)| {
        let mut header = valid();
        change(&mut header);
        match LogFile::create(Cursor::new(Vec::new()), header) {
            Err(WriteError::Header(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(|h| h.buffer_size = 0x1001).contains("4097 bytes"));
    assert!(refused(|h| h.buffer_size = 0x800).contains("2048 bytes"));
    assert!(refused(|h| h.buffer_size = 0x20_0000).contains("2097152 bytes"));
    assert!(refused(|h| h.processors = 0).contains("the processor count 0 is"));
    assert!(refused(|h| h.processors = 257).contains("the processor count 257 is"));
    assert!(refused(|h| h.log_file_mode = 0x1000_0000).contains("the processor count 2 is"));
    assert!(refused(|h| h.clock = ClockType::Other(4)).contains("clock type 4"));
    assert!(refused(|h| h.perf_frequency = 0).contains("0 ticks"));
    assert!(refused(|h| h.cpu_mhz = 0).contains("processor speed"));
    assert!(refused(|h| h.clock = ClockType::SystemTime).contains("system clock"));
    assert!(refused(|h| h.session_name.push('\0')).contains("session name"));
    assert!(refused(|h| h.log_file_name.push('\0')).contains("log file name"));
    assert!(refused(|h| h.session_name = "x".repeat(2000)).contains("of 4024"));
}

#[test]
fn real_time_bit_is_never_stored() {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.log_file_mode = 0x101;
    let trace = Trace::parse(&write(header, &[])).unwrap();
    assert_eq!(trace.header().session.log_file_mode, 1);
}

#[test]
fn buffers_that_do_not_belong_to_the_file_are_refused() {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let mut log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
    let filled = |size, processor| {
        let mut buffer = Buffer::new(size, processor);
        buffer.try_append(&EventRecord::default()).unwrap();
        buffer
    };
    assert!(matches!(log.append(&Buffer::new(0x1000, 0), 0), Err(WriteError::EmptyBuffer)));
    assert!(matches!(
        log.append(&filled(0x2000, 0), 0),
        Err(WriteError::BufferSize { buffer: 0x2000, file: 0x1000 })
    ));
    assert!(matches!(
        log.append(&filled(0x1000, 2), 0),
        Err(WriteError::Processor { processor: 2, processors: 2 })
    ));
    assert!(log.is_empty());
    log.append(&filled(0x1000, 1), 0).unwrap();
    assert!(!log.is_empty());
}

/// An output with a limited size, which is interrupted before each write, and then accepts only a
/// few bytes.
#[derive(Debug)]
struct Difficult {
    inner: Cursor<Vec<u8>>,
    room: u64,
    is_interrupted: bool,
}

impl Difficult {
    const fn with_room(room: u64) -> Self {
        Self { inner: Cursor::new(Vec::new()), room, is_interrupted: false }
    }
}

impl Write for Difficult {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.inner.position() + u64::try_from(bytes.len()).unwrap() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.write(&bytes[..bytes.len().min(100)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Difficult {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

#[test]
fn output_that_fails_leaves_the_buffers_before_it() {
    let out = Difficult::with_room(0x2000);
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut log = LogFile::create(out, header).unwrap();
    let mut buffer = Buffer::new(0x1000, 0);
    buffer.try_append(&EventRecord::default()).unwrap();
    log.append(&buffer, 0).unwrap();
    let failed = log.append(&buffer, 0);
    assert!(matches!(failed, Err(WriteError::Io(_))), "{failed:?}");
    assert_eq!(log.buffers_written(), 2);
    let out = log.finish(Finish::default()).unwrap();
    let trace = Trace::parse(out.inner.get_ref()).unwrap();
    assert_eq!(trace.damages(), []);
    assert_eq!(trace.events().count(), 1);
}

#[test]
fn a_file_that_was_cut_short_is_continued() {
    let record = |timestamp| EventRecord { timestamp, ..EventRecord::default() };
    let filled = |timestamp| {
        let mut buffer = Buffer::new(0x1000, 0);
        buffer.try_append(&record(timestamp)).unwrap();
        buffer
    };
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    // Writes the same buffers without an interruption, and with one after each buffer, without a
    // call to `finish`.
    let finish = Finish { events_lost: 3, ..Finish::default() };
    let start = || LogFile::create(Cursor::new(Vec::new()), header.clone()).unwrap();
    let mut whole = start();
    let mut parts = start().finish(Finish::default()).unwrap();
    for (timestamp, replaces) in [(1, false), (2, false), (3, true), (4, true), (5, true)] {
        let trace = Trace::parse(parts.get_ref()).unwrap();
        let mut part = LogFile::resume(parts, &trace).unwrap();
        for log in [&mut whole, &mut part] {
            if replaces {
                log.replace_oldest(&filled(timestamp), timestamp).unwrap();
            } else {
                log.append(&filled(timestamp), timestamp).unwrap();
            }
        }
        parts = part.finish(Finish::default()).unwrap();
    }
    let trace = Trace::parse(parts.get_ref()).unwrap();
    let parts = LogFile::resume(parts, &trace).unwrap().finish(finish);
    let read = |file: Cursor<Vec<u8>>| {
        let trace = Trace::parse(file.get_ref()).unwrap();
        assert_eq!(trace.damages(), []);
        let buffers: Vec<_> = trace.buffers().iter().map(|one| one.sequence).collect();
        let times: Vec<_> = trace.events().map(|one| one.record.timestamp).collect();
        (trace.header().clone(), buffers, times)
    };
    let parts = read(parts.unwrap());
    assert_eq!(parts, read(whole.finish(finish).unwrap()));
    assert_eq!(parts.2, [5, 4]);
}

#[test]
fn a_file_whose_buffers_moved_is_not_continued() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut bytes = write(header, &[EventRecord::default()]);
    let refused = |bytes: &[u8]| {
        let trace = Trace::parse(bytes).unwrap();
        let file = Cursor::new(bytes.to_vec());
        LogFile::resume(file, &trace).unwrap_err().to_string()
    };
    // The file ends in the data buffer, before and after the end of its header.
    for end in [0x1800, 0x1010] {
        let expected = format!(
            "the file cannot be continued: its last buffer is truncated: the file ends at \
             offset 0x{end:X}, inside a buffer of 4096 bytes; write the events that can be read to \
             a new file, as `etl merge` does"
        );
        assert_eq!(refused(&bytes[..end]), expected);
    }
    // The data buffer's sequence number and size.
    bytes[0x1018..0x1020].copy_from_slice(&i64::MAX.to_le_bytes());
    let expected = "the buffer at offset 0x1000 has the sequence number 9223372036854775807";
    assert!(refused(&bytes).contains(expected), "{}", refused(&bytes));
    bytes[0x1000..0x1004].copy_from_slice(&0x800_u32.to_le_bytes());
    let expected = "the buffer at offset 0x1000 is 2048 bytes long; the file's buffers are 4096;";
    assert!(refused(&bytes).contains(expected), "{}", refused(&bytes));
    // A buffer between two others was never written.
    let mut bytes =
        write(trace::header(ClockType::Qpc, 0x1000, 1), &vec![EventRecord::default(); 60]);
    bytes[0x1000..0x2000].fill(0);
    let expected = "expected a buffer at offset 0x1000; the next buffer is at 0x2000;";
    assert!(refused(&bytes).contains(expected), "{}", refused(&bytes));
}

#[test]
fn losses_are_in_the_next_buffer_and_in_the_header_while_the_session_records() {
    let mut log =
        LogFile::create(Cursor::new(Vec::new()), trace::header(ClockType::Qpc, 0x1000, 1)).unwrap();
    let mut buffer = Buffer::new(0x1000, 0);
    buffer.try_append(&EventRecord::default()).unwrap();
    let losses = |events_lost, buffers_lost| Losses { events_lost, buffers_lost };
    for noted in [(0, 0), (3, 0), (3, 0), (3, 2), (3, 2), (5, 4), (5, 4)] {
        log.note_losses(losses(noted.0, noted.1));
        log.append(&buffer, 0).unwrap();
    }
    log.note_losses(losses(9, 9));
    let finish = Finish { events_lost: 5, buffers_lost: 4, ..Finish::default() };
    let file = log.finish(finish).unwrap().into_inner();
    let trace = Trace::parse(&file).unwrap();
    let flags: Vec<u16> = trace.buffers().iter().map(|one| one.flags).collect();
    // 0x20: the processor index is 16 bits wide; 0x02 and 0x04: losses; 0x01: the start and the
    // end.
    assert_eq!(flags, [0x21, 0x20, 0x22, 0x20, 0x24, 0x20, 0x26, 0x21]);

    // A session that was not closed states its losses up to the last buffer.
    let mut bytes = Vec::new();
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut log = LogFile::create(Cursor::new(&mut bytes), header).unwrap();
    log.note_losses(losses(3, 2));
    log.append(&buffer, 0).unwrap();
    drop(log);
    let header = Trace::parse(&bytes).unwrap().header().clone();
    assert_eq!((header.events_lost, header.buffers_lost), (3, 2));
}

#[test]
fn a_continued_file_that_gets_no_buffer_stays_as_it_is() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let file = write(header, &[EventRecord::default()]);
    let trace = Trace::parse(&file).unwrap();
    let resumed = LogFile::resume(Cursor::new(file.clone()), &trace).unwrap();
    let again = resumed.finish(Finish::default()).unwrap().into_inner();
    assert!(again == file);
}

#[test]
fn a_file_with_compressed_buffers_is_not_continued_whatever_its_mode() {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.log_file_mode |= log_file_mode::COMPRESSED;
    for buffers in [1, 2] {
        let mut log = LogFile::create(Cursor::new(Vec::new()), header.clone()).unwrap();
        let mut buffer = Buffer::new(0x1000, 0);
        buffer.try_append(&trace::manifest_event(1, 1)).unwrap();
        for _ in 0..buffers {
            log.append(&buffer, 0).unwrap();
        }
        let mut file = log.finish(Finish::default()).unwrap().into_inner();
        file[0x88..0x8C].copy_from_slice(&1_u32.to_le_bytes());
        let trace = Trace::parse(&file).unwrap();
        assert!(!trace.header().session.is_compressed());
        let refused = LogFile::resume(Cursor::new(file), &trace).unwrap_err();
        assert!(matches!(refused, WriteError::NotContinuable(Obstacle::Compressed)), "{refused}");
    }
}

#[test]
fn names_and_records_may_fill_their_room() {
    let named = |units| {
        let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
        header.session_name = "s".repeat(units);
        header.log_file_name = "f".repeat(900);
        LogFile::create(Cursor::new(Vec::new()), header)
    };
    // 4096 bytes minus the headers of the buffer (72), the record (32) and the trace (280), and
    // minus the two NULs: 1854 units.
    let log = named(954).unwrap();
    let file = log.finish(Finish::default()).unwrap().into_inner();
    let session = Trace::parse(&file).unwrap().header().session.clone();
    assert_eq!(session.session_name, "s".repeat(954));
    assert_eq!(session.log_file_name, "f".repeat(900));
    assert!(matches!(named(955), Err(WriteError::Header(_))));

    let mut buffer = Buffer::new(0x10_0000, 0);
    let largest = EventRecord { user_data: vec![1; 0xFFFF - 80], ..EventRecord::default() };
    buffer.try_append(&largest).unwrap();
    assert_eq!(buffer.check(0xFFFF), Ok(()));
    assert!(matches!(buffer.check(0x1_0000), Err(AppendError::Encode(_))));
}

#[test]
fn names_of_time_zones_are_cut_to_their_field() {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.time_zone.standard_name = "s".repeat(40);
    header.time_zone.daylight_name = "d".repeat(31);
    let trace = Trace::parse(&write(header, &[])).unwrap();
    let zone = &trace.header().session.time_zone;
    assert_eq!(zone.standard_name, "s".repeat(31));
    assert_eq!(zone.daylight_name, "d".repeat(31));
}

#[test]
fn interrupted_writes_are_repeated() {
    let out = Difficult::with_room(u64::MAX);
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut log = LogFile::create(out, header.clone()).unwrap();
    let mut buffer = Buffer::new(0x1000, 0);
    buffer.try_append(&EventRecord::default()).unwrap();
    log.append(&buffer, 0).unwrap();
    let out = log.finish(Finish::default()).unwrap();
    assert!(out.inner.into_inner() == write(header, &[EventRecord::default()]));
}
