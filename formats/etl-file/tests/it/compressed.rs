//! Tests compressed files from our writer with our reader and with dissect.

use std::cmp::Ordering;
use std::fs;
use std::io::Cursor;
use std::iter;
use std::path::PathBuf;

use etl_file::internals::compression;
use etl_file::write::{AppendError, Buffer, Finish, LogFile, Losses, Obstacle, WriteError};
use etl_file::{
    ClockType, CompressionError, DamageKind, EventRecord, LogFileHeader, Trace, TraceFile,
    log_file_mode,
};
use etl_fixtures::decoders;
use etl_fixtures::trace;

/// Returns the header of a compressed file.
fn header(buffer_size: u32, processors: u32) -> LogFileHeader {
    LogFileHeader {
        log_file_mode: log_file_mode::SEQUENTIAL | log_file_mode::COMPRESSED,
        ..trace::header(ClockType::Qpc, buffer_size, processors)
    }
}

/// Returns a compressed file with `events` events, and the events.
fn sample(buffer_size: u32, processors: u32, events: u32) -> (Vec<u8>, Vec<EventRecord>) {
    trace::file(header(buffer_size, processors), events, Losses::default())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Returns the offsets of the buffers, which follow from the buffers' sizes.
fn offsets(file: &[u8]) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut at = 0;
    while at < file.len() {
        offsets.push(at);
        at += u32_at(file, at) as usize;
    }
    assert_eq!(at, file.len(), "nothing follows the last buffer");
    offsets
}

fn by_time(trace: &Trace) -> Vec<EventRecord> {
    let events = trace.events_by_time().into_iter();
    events.map(|event| event.record.clone()).collect()
}

/// Reads a file without damage, and checks its events.
fn assert_read(file: &[u8], written: &[EventRecord]) -> Trace {
    let trace = Trace::parse(file).unwrap();
    assert_eq!(trace.damages(), []);
    assert_eq!(by_time(&trace), written);
    trace
}

/// Returns bytes without repetitions.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn every_event_of_a_compressed_file_is_read() {
    for (buffer_size, processors, events) in [(0x1000, 1, 0), (0x1000, 3, 200), (0x1_0000, 2, 900)]
    {
        let (file, written) = sample(buffer_size, processors, events);
        let trace = assert_read(&file, &written);
        assert_eq!(trace.header().layout_version, (2, 0));
        assert!(trace.header().session.is_compressed());
        let offsets = offsets(&file);
        assert_eq!(trace.header().buffers_written as usize, offsets.len());
        assert_eq!(trace.buffers().len(), offsets.len());
    }
}

#[test]
fn compressed_buffers_are_read_in_the_order_of_their_first_records() {
    let header = header(0x1000, 1);
    let start = header.start_clock;
    let buffers = [200, 0, 100].map(|first| {
        let events = (first..first + 20).map(|n| trace::manifest_event(0, start + n));
        trace::buffer(0x1000, 0, events)
    });
    let file = trace::of_buffers(header, start, buffers);
    let mut trace = TraceFile::new(Cursor::new(file)).unwrap();
    let mut records = trace.records();
    let mut times = Vec::new();
    while let Some(record) = records.next().unwrap() {
        times.push(record.timestamp - start);
    }
    assert_eq!(records.late(), 0);
    let expected = (0..20).chain(100..120).chain(200..220);
    assert!(times.iter().copied().eq(expected), "{times:?}");
}

#[test]
fn buffers_have_the_documented_layout() {
    let (file, _) = sample(0x1_0000, 2, 900);
    for (number, &at) in offsets(&file).iter().enumerate() {
        let size = u32_at(&file, at) as usize;
        let used = u32_at(&file, at + 0x30) as usize;
        let flags = u16::from_le_bytes([file[at + 0x34], file[at + 0x35]]);
        assert_eq!(u32_at(&file, at + 0x2C), 3, "State");
        if number == 0 {
            assert_eq!(size % 512, 0);
            assert_eq!(flags & 0x40, 0);
            assert!(file[at + used..at + size].iter().all(|&byte| byte == 0xFF));
        } else {
            assert_eq!(flags & 0x40, 0x40);
            assert!(size < used / 2, "{size} of {used} bytes");
            let content = &file[at + 72..at + size];
            let records = compression::decompress(content, used - 72).unwrap();
            assert_eq!(records[2..4], [0x13, 0xC0], "a record");
        }
    }
    let compressed = file.len();
    let plain = trace::header(ClockType::Qpc, 0x1_0000, 2);
    let (file, _) = trace::file(plain, 900, Losses::default());
    assert!(compressed * 3 < file.len());
}

#[test]
fn a_buffer_that_would_not_become_smaller_is_plain() {
    let mut log = LogFile::create(Cursor::new(Vec::new()), header(0x1000, 1)).unwrap();
    let mut written = Vec::new();
    for (time, length) in [(1, 3000), (2, 3500), (3, 20)] {
        let mut buffer = Buffer::new(0x1000, 0);
        let event =
            EventRecord { timestamp: time, user_data: noise(length), ..EventRecord::default() };
        buffer.try_append(&event).unwrap();
        log.append(&buffer, time).unwrap();
        written.push(event);
    }
    let length = log.len();
    let file = log.finish(Finish::default()).unwrap().into_inner();
    assert_eq!(file.len() as u64, length);
    let sizes: Vec<(u32, u16)> = Trace::parse(&file)
        .unwrap()
        .buffers()
        .iter()
        .map(|buffer| (buffer.size % 512, buffer.flags))
        .collect();
    assert_eq!(sizes[1..3], [(0, 0x20), (0, 0x20)]);
    assert!(matches!(sizes[3], (size, 0x61) if size > 0), "{sizes:?}");
    assert_read(&file, &written);
}

#[test]
fn saved_offset_may_be_smaller_than_offset() {
    let (mut file, written) = sample(0x1000, 1, 40);
    for at in offsets(&file) {
        file[at + 4..at + 8].copy_from_slice(&72_u32.to_le_bytes());
    }
    assert_read(&file, &written);
}

#[test]
fn a_compressed_file_is_recognised_without_its_mode() {
    let (mut file, written) = sample(0x1000, 1, 40);
    file[0x88..0x8C].copy_from_slice(&1_u32.to_le_bytes());
    assert_eq!(by_time(&Trace::parse(&file).unwrap()), written);
}

/// A merged file can store its buffers uncompressed, and round up only the size of the first one.
#[test]
fn a_plain_file_with_a_smaller_first_buffer_is_read() {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let (file, written) = trace::file(header, 60, Losses::default());
    let used = u32_at(&file, 0x30).next_multiple_of(512);
    let mut smaller = file[..used as usize].to_vec();
    smaller[..4].copy_from_slice(&used.to_le_bytes());
    smaller.extend(&file[0x1000..]);
    assert!(used < 0x1000);
    assert_read(&smaller, &written);
}

#[test]
fn an_uncompressed_file_is_read_whatever_its_mode() {
    let plain = trace::header(ClockType::Qpc, 0x1000, 2);
    let (mut file, written) = trace::file(plain, 40, Losses::default());
    file[0x88..0x8C].copy_from_slice(&0x0400_0001_u32.to_le_bytes());
    assert_read(&file, &written);
}

#[test]
fn records_before_the_damage_of_a_compressed_buffer_are_read() {
    let (whole, written) = sample(0x1000, 1, 100);
    let offsets = offsets(&whole);
    let second = offsets[1];
    let count = |file: &[u8], buffer: u32| {
        let trace = Trace::parse(file).unwrap();
        let events = trace.events().filter(|event| event.buffer == buffer);
        (events.count(), trace)
    };
    let (all, _) = count(&whole, 1);
    // The stated uncompressed size is larger than the content.
    let mut file = whole.clone();
    let used = u32_at(&file, second + 0x30);
    file[second + 0x30..second + 0x34].copy_from_slice(&(used + 8).to_le_bytes());
    let (read, trace) = count(&file, 1);
    assert_eq!(read, all);
    let damage = trace.damages()[0];
    assert_eq!((damage.buffer, damage.offset), (1, second as u64 + 72));
    let DamageKind::Compression(CompressionError::Truncated { present, expected }) = damage.kind
    else {
        panic!("{damage}");
    };
    assert_eq!((present, expected), (used as usize - 72, used as usize - 64));
    assert_eq!(trace.events().count(), written.len());
    // A match in the middle refers to bytes before the buffer.
    let mut file = whole.clone();
    let middle = second + (offsets[2] - second) / 2;
    file[middle..middle + 12].fill(0xFF);
    let (read, trace) = count(&file, 1);
    assert!((1..all).contains(&read), "{read} of {all}");
    assert!(trace.events().count() >= written.len() - all);
    assert!(!trace.damages().is_empty());
    // The file ends inside a buffer.
    let cut = &whole[..middle];
    let (read, trace) = count(cut, 1);
    assert!((1..all).contains(&read), "{read} of {all}");
    assert!(matches!(trace.damages()[0].kind, DamageKind::Truncated { .. }));
}

#[test]
fn no_damage_makes_the_reader_panic_or_allocate_without_limit() {
    let (whole, _) = sample(0x1000, 2, 60);
    for at in 0..whole.len() {
        for value in [0x00, 0x7F, 0xFF] {
            let mut file = whole.clone();
            file[at] = value;
            if let Ok(trace) = Trace::parse(&file) {
                assert!(trace.events().count() <= 2000);
            }
        }
    }
}

#[test]
fn compressed_files_are_neither_circular_nor_continued() {
    let mut log = LogFile::create(Cursor::new(Vec::new()), header(0x1000, 1)).unwrap();
    let mut buffer = Buffer::new(0x1000, 0);
    buffer.try_append(&trace::manifest_event(1, 1)).unwrap();
    log.append(&buffer, 1).unwrap();
    let refused = log.replace_oldest(&buffer, 2);
    assert!(matches!(refused, Err(WriteError::Compressed)));
    let file = log.finish(Finish::default()).unwrap().into_inner();
    let trace = Trace::parse(&file).unwrap();
    let refused = LogFile::resume(Cursor::new(file), &trace).map(|_| ());
    let obstacle = match refused {
        Err(WriteError::NotContinuable(obstacle)) => obstacle,
        other => panic!("{other:?}"),
    };
    assert_eq!(obstacle, Obstacle::Compressed);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn dissect_reads_what_we_compress() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (buffer_size, processors, events)) in
        [(0x1000, 1, 40), (0x2000, 4, 300), (0x1_0000, 2, 1500)].into_iter().enumerate()
    {
        let (file, written) = sample(buffer_size, processors, events);
        let path = folder.path().join(format!("{number}.etl"));
        fs::write(&path, file).unwrap();
        assert_eq!(decoders::assert_third_party_decoders_agree(&path), written.len());
    }
}

/// A script that decompresses files with dissect.util.
const DECOMPRESS: &str = "import sys
from dissect.util.compression.lzxpress import decompress
for name in sys.argv[1:]:
    open(name + '.out', 'wb').write(decompress(open(name, 'rb').read()))
";

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn dissect_decompresses_every_form_of_a_match() {
    let folder = tempfile::tempdir().unwrap();
    let mut inputs: Vec<Vec<u8>> = vec![
        noise(100),
        noise(32),
        noise(9000).repeat(2),
        (0..=255).collect::<Vec<u8>>().repeat(40),
    ];
    for length in [3, 9, 10, 24, 25, 279, 280, 281, 65_538, 65_539, 70_000] {
        inputs.push([vec![b'a'; length + 1], noise(5), vec![b'b'; length + 1]].concat());
    }
    let path = |number: usize| folder.path().join(number.to_string());
    for (number, bytes) in inputs.iter().enumerate() {
        fs::write(path(number), compression::compress(bytes)).unwrap();
    }
    let script = folder.path().join("decompress.py");
    fs::write(&script, DECOMPRESS).unwrap();
    let names: Vec<_> = (0..inputs.len()).map(path).collect();
    let arguments = iter::once(script.as_path()).chain(names.iter().map(PathBuf::as_path));
    let output = etw_test_support::run_python(arguments);
    assert!(output.is_empty());
    for (number, bytes) in inputs.iter().enumerate() {
        let output = path(number).with_extension("out");
        assert!(fs::read(output).unwrap() == *bytes, "input {number}");
    }
}

#[test]
fn a_full_buffer_fits_when_it_is_compressed() {
    let mut buffer = Buffer::new(0x1000, 0);
    let mut time = 0;
    while buffer.try_append(&trace::manifest_event(time, time.into())) != Err(AppendError::Full) {
        time += 1;
    }
    let file = trace::of_buffers(header(0x1000, 1), time.into(), [buffer]);
    assert_eq!(Trace::parse(&file).unwrap().events().count(), time as usize);
}

#[test]
fn a_size_that_no_buffer_has_ends_a_compressed_file() {
    let (whole, _) = sample(0x1000, 1, 200);
    let offsets = offsets(&whole);
    for size in [8_u32, 71, 0x100_0001] {
        let mut file = whole.clone();
        file[offsets[2]..offsets[2] + 4].copy_from_slice(&size.to_le_bytes());
        let trace = Trace::parse(&file).unwrap();
        let damage = trace.damages()[0];
        assert_eq!((damage.offset, damage.buffer), (offsets[2] as u64, 2));
        let expected = DamageKind::BufferSize { expected: 0x1000, found: size };
        assert_eq!(damage.kind, expected);
        assert_eq!(trace.buffers().len(), 2);
        assert!(trace.events().all(|event| event.buffer == 1));
    }
}

#[test]
fn a_buffer_is_compressed_only_if_that_makes_it_smaller() {
    let mut kinds = [0; 3];
    for (length, zeros) in (200..216).flat_map(|length| (0..40).map(move |zeros| (length, zeros))) {
        let mut event = trace::manifest_event(1, 1);
        event.user_data = [noise(length), vec![0; zeros]].concat();
        let file = trace::of_records(header(0x1000, 1), 1, [&event]);
        let trace = Trace::parse(&file).unwrap();
        let written = &trace.buffers()[1];
        let is_compressed = written.flags & 0x40 != 0;
        let encoded = event.encode().unwrap();
        let mut records = encoded.clone();
        records.resize(encoded.len().next_multiple_of(8), 0);
        let order = compression::compress(&records).len().cmp(&records.len());
        kinds[match order {
            Ordering::Less => 0,
            Ordering::Equal => 1,
            Ordering::Greater => 2,
        }] += 1;
        assert_eq!(is_compressed, order.is_lt(), "{length} {zeros}");
        assert_eq!(trace.events().count(), 1);
    }
    assert!(kinds.iter().all(|&count| count > 0), "{kinds:?}");
}
