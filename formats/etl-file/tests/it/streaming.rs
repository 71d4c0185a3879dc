//! Traces read buffer by buffer: their order, and files that differ from a closed session's file.

use std::cell::RefCell;
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};

use etl_file::write::{Buffer, Finish, LogFile, Losses};
use etl_file::{
    Catalog, ClockType, DamageKind, EventRecord, LogFileHeader, Pipeline, ReadError, Trace,
    TraceFile, log_file_mode,
};
use etl_fixtures::trace;

type Bytes = TraceFile<Cursor<Vec<u8>>>;

fn open(file: Vec<u8>) -> Bytes {
    TraceFile::new(Cursor::new(file)).unwrap()
}

/// Returns the events in stream order, the number of late records, and the damage.
fn streamed(file: &mut Bytes) -> (Vec<EventRecord>, u64, Vec<DamageKind>) {
    let mut records = file.records();
    let mut events = Vec::new();
    while let Some(record) = records.next().unwrap() {
        events.push(record.event().unwrap().to_event().record);
        assert_eq!(records.count(), events.len() as u64);
    }
    let damages = records.damages().listed().iter();
    let damages = damages.map(|damage| damage.kind).collect();
    (events, records.late(), damages)
}

/// Writes buffers in this order, each with a processor and its events.
fn buffers(header: LogFileHeader, buffers: &[(u16, Vec<EventRecord>)]) -> Vec<u8> {
    let size = header.buffer_size;
    let buffers = buffers.iter();
    let buffers = buffers.map(|(processor, events)| trace::buffer(size, *processor, events));
    trace::of_buffers(header, 0, buffers)
}

fn at(times: &[i64]) -> Vec<EventRecord> {
    let start = trace::header(ClockType::Qpc, 0x1000, 1).start_clock;
    let numbered = (0..).zip(times);
    numbered.map(|(n, time)| trace::manifest_event(n, start + time)).collect()
}

/// Returns 16 events at these times, which fill a buffer of 1 MiB.
fn full(time: impl Fn(i64) -> i64) -> Vec<EventRecord> {
    let mut events = at(&(0..16).map(time).collect::<Vec<_>>());
    for event in &mut events {
        event.user_data = vec![0; 65_000];
    }
    events
}

fn times(events: &[EventRecord]) -> Vec<i64> {
    let start = trace::header(ClockType::Qpc, 0x1000, 1).start_clock;
    events.iter().map(|event| event.timestamp - start).collect()
}

/// Returns a closed file with 200 events on two processors, and the events.
fn closed() -> (Vec<u8>, Vec<EventRecord>) {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    trace::file(header, 200, Losses::default())
}

fn patch(file: &mut [u8], at: usize, value: u32) {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn processors_are_merged_by_time_and_ties_stay_in_the_order_of_the_file() {
    let header = trace::header(ClockType::Qpc, 0x1000, 3);
    let file = buffers(
        header,
        &[
            (0, at(&[10, 20, 20])),
            (1, at(&[5, 20, 40])),
            (2, at(&[100, 110])),
            (0, at(&[20, 30])),
            (1, at(&[40, 41])),
            (0, at(&[100])),
        ],
    );
    let by_time: Vec<EventRecord> = Trace::parse(&file)
        .unwrap()
        .events_by_time()
        .into_iter()
        .map(|event| event.record.clone())
        .collect();
    let (events, late, damages) = streamed(&mut open(file));
    assert_eq!(events, by_time);
    assert_eq!((late, damages), (0, vec![]));
    assert_eq!(times(&events)[..6], [5, 10, 20, 20, 20, 20]);
}

#[test]
fn a_disordered_buffer_is_sorted_and_overlapping_buffers_are_merged() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let disordered = (0, at(&[10, 40, 30, 20]));
    let overlapping = [(0, at(&[12, 35])), (0, at(&[5, 50])), (0, at(&[31]))];
    let file = buffers(header, &[&[disordered][..], &overlapping].concat());
    let (events, late, _) = streamed(&mut open(file));
    assert_eq!(times(&events), [5, 10, 12, 20, 30, 31, 35, 40, 50]);
    assert_eq!(late, 0);
}

#[test]
fn records_before_the_first_one_of_their_buffer_are_late_and_counted() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let file = buffers(header, &[(0, at(&[10, 15])), (0, at(&[20, 12]))]);
    let (events, late, _) = streamed(&mut open(file.clone()));
    assert_eq!(times(&events), [10, 15, 12, 20]);
    assert_eq!(late, 1);
    let (_, summary) = trace::events(&mut open(file), &Pipeline::new(&Catalog::new()));
    assert_eq!(summary.late, 1);
}

#[test]
fn large_buffers_of_many_processors_are_in_memory_at_the_same_time() {
    const PROCESSORS: u16 = 20;
    let header = trace::header(ClockType::Qpc, 1 << 20, PROCESSORS.into());
    let filled: Vec<_> = (0..PROCESSORS)
        .map(|processor| (processor, full(|n| n * 100 + i64::from(processor))))
        .collect();
    let (events, late, damages) = streamed(&mut open(buffers(header, &filled)));
    assert_eq!((events.len(), late, damages), (320, 0, vec![]));
    assert!(times(&events).is_sorted());
}

#[test]
fn a_circular_file_is_read_from_its_oldest_buffer() {
    let header = LogFileHeader {
        log_file_mode: log_file_mode::CIRCULAR,
        maximum_file_size: 1,
        ..trace::header(ClockType::Qpc, 0x1000, 1)
    };
    let mut log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
    for n in 0..8 {
        let mut buffer = Buffer::new(0x1000, 0);
        for event in at(&[n * 10, n * 10 + 1]) {
            buffer.try_append(&event).unwrap();
        }
        if n < 5 {
            log.append(&buffer, 0).unwrap();
        } else {
            log.replace_oldest(&buffer, 0).unwrap();
        }
    }
    let file = log.finish(Finish::default()).unwrap().into_inner();
    let (events, late, damages) = streamed(&mut open(file));
    assert_eq!(times(&events), [30, 31, 40, 41, 50, 51, 60, 61, 70, 71]);
    assert_eq!((late, damages), (0, vec![]));
}

#[test]
fn sizes_of_the_header_event_that_the_file_does_not_have_lose_no_event() {
    let (file, written) = closed();
    // BufferSize, NumberOfProcessors.
    for (at, values) in [(0x68, [0, 0x40, 0xFFFF_FFFF]), (0x74, [0, 1, 0xFFFF_FFFF])] {
        for value in values {
            let mut file = file.clone();
            patch(&mut file, at, value);
            let (events, late, damages) = streamed(&mut open(file));
            assert_eq!(events, written, "{at:#x}: {value:#x}");
            assert_eq!((late, damages), (0, vec![]), "{at:#x}: {value:#x}");
        }
    }
    // BuffersWritten.
    let present = u32::try_from(file.len() / 0x1000).unwrap();
    for (value, expected) in [
        (0, vec![DamageKind::UncountedBuffers { expected: 0, present }]),
        (1, vec![DamageKind::UncountedBuffers { expected: 1, present }]),
        (u32::MAX, vec![DamageKind::MissingBuffers { expected: u32::MAX, present }]),
    ] {
        let mut file = file.clone();
        patch(&mut file, 0x8C, value);
        let (events, _, damages) = streamed(&mut open(file));
        assert_eq!(events, written, "{value:#x}");
        assert_eq!(damages, expected);
    }
}

#[test]
fn impossible_sizes_of_the_first_buffer_are_refused_and_take_no_memory() {
    let (file, _) = closed();
    for size in [0, 96, 0x1001, 0x0200_0000, u32::MAX] {
        let mut file = file.clone();
        patch(&mut file, 0, size);
        match TraceFile::new(Cursor::new(file)) {
            Err(ReadError::BufferSize { size: found }) => assert_eq!(found, size),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn layout_version_2_without_compression_is_read() {
    let (mut file, written) = closed();
    file[0x6E..0x70].copy_from_slice(&[2, 0]);
    let mut file = open(file);
    assert_eq!(file.header().layout_version, (2, 0));
    let (events, late, damages) = streamed(&mut file);
    assert_eq!(events, written);
    assert_eq!((late, damages), (0, vec![]));
}

#[test]
fn a_session_that_crashed_leaves_a_readable_file() {
    let (mut file, written) = closed();
    file[0x78..0x80].fill(0); // EndTime
    for buffer in file.chunks_exact_mut(0x1000).skip(1) {
        buffer[0x2C..0x30].copy_from_slice(&1_u32.to_le_bytes()); // State: general logging
    }
    for (buffers_written, preallocated) in [(0, 0), (1, 0), (1, 0x5000), (0, 0x5123)] {
        let mut file = file.clone();
        patch(&mut file, 0x8C, buffers_written);
        let buffers = u32::try_from(file.len() / 0x1000).unwrap();
        file.resize(file.len() + preallocated, 0);
        let mut file = open(file);
        assert_eq!(file.header().end_time, None);
        assert_eq!(file.buffers(), buffers);
        let (events, late, damages) = streamed(&mut file);
        assert_eq!(events, written);
        assert_eq!((late, damages), (0, vec![]));
    }
}

#[test]
fn buffers_and_records_are_accessible_by_position() {
    let (file, _) = closed();
    let trace = Trace::parse(&file).unwrap();
    let mut file = open(file);
    let mut events = Vec::new();
    for number in 0..file.buffers() {
        let buffer = file.buffer(number).unwrap().unwrap();
        assert_eq!(buffer.number(), number);
        let last = buffer.len().checked_sub(1);
        let last = last.and_then(|last| buffer.record(last));
        assert_eq!(last.is_none(), number == 0);
        assert_eq!(buffer.is_empty(), number == 0);
        events.extend(buffer.records().map(|record| record.event().unwrap().to_event()));
        assert!(buffer.record(buffer.len()).is_none());
    }
    assert!(trace.events().eq(&events));
    assert!(file.buffer(file.buffers()).unwrap().is_none());
}

/// A source in which every other read is interrupted or fails.
struct Uneven {
    source: Cursor<Vec<u8>>,
    error: ErrorKind,
    fails: bool,
}

impl Read for Uneven {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.fails = !self.fails;
        if self.fails {
            return Err(self.error.into());
        }
        // Returns few bytes at a time.
        let most = out.len().min(100);
        self.source.read(&mut out[..most])
    }
}

impl Seek for Uneven {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

#[test]
fn interrupted_reads_are_repeated_and_others_fail() {
    let (file, written) = closed();
    let source = |error| Uneven { source: Cursor::new(file.clone()), error, fails: false };
    let mut trace = TraceFile::new(source(ErrorKind::Interrupted)).unwrap();
    let mut records = trace.records();
    let mut events = 0;
    while records.next().unwrap().is_some() {
        events += 1;
    }
    assert_eq!(events, written.len());
    let refused = TraceFile::new(source(ErrorKind::PermissionDenied));
    assert!(matches!(refused, Err(ReadError::Io(_))));
}

#[test]
fn only_the_first_damages_are_listed_but_all_are_counted() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let many = vec![(0, at(&[1])); 1500];
    let mut file = buffers(header, &many);
    for buffer in file.chunks_exact_mut(0x1000).skip(1) {
        buffer[0x4B] = 0; // the marker of the first record
    }
    let mut file = open(file);
    let mut records = file.records();
    assert!(records.next().unwrap().is_none());
    assert_eq!(records.damages().count(), 1500);
    assert_eq!(records.damages().listed().len(), 1000);
    assert_eq!(records.damages().unlisted(), 500);
}

#[test]
fn buffers_that_overlap_beyond_the_limit_come_late_and_are_counted() {
    // 20 buffers of 1 MiB that all start at the same time; 16 MiB of them can be in memory.
    let header = trace::header(ClockType::Qpc, 1 << 20, 1);
    let filled: Vec<_> = (0..20).map(|number| (0, full(|n| n * 100 + number))).collect();
    let (events, late, _) = streamed(&mut open(buffers(header, &filled)));
    assert_eq!(events.len(), 320);
    let times = times(&events);
    assert!(times[..256].is_sorted());
    // The remaining buffers start when another one has ended.
    assert!((1..=4 * 16).contains(&late), "{late}");
    let mut last = i64::MIN;
    let mut expected = 0;
    for time in times {
        expected += u64::from(time < last);
        last = last.max(time);
    }
    assert_eq!(late, expected);
}

#[test]
fn small_buffers_may_overlap_in_any_number_of_processors_buffers() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let overlapping: Vec<_> = (0..100).map(|n| (0, at(&[n, 1000 + n]))).collect();
    let (events, late, _) = streamed(&mut open(buffers(header, &overlapping)));
    assert_eq!((events.len(), late), (200, 0));
    assert!(times(&events).is_sorted());
}

#[test]
fn buffers_that_were_read_make_room_for_others() {
    let header = trace::header(ClockType::Qpc, 1 << 20, 1);
    // More than 16 MiB of consecutive buffers, then two overlapping buffers.
    let mut all: Vec<_> = (0..20).map(|number| (0, full(|n| number * 100 + n))).collect();
    all.push((0, at(&[5000, 5010])));
    all.push((0, at(&[5005, 5015])));
    let (events, late, _) = streamed(&mut open(buffers(header, &all)));
    let times = times(&events);
    assert_eq!(times[320..], [5000, 5005, 5010, 5015]);
    assert_eq!(late, 0);
}

/// A source that records the offsets and lengths of reads.
struct Noted<'a> {
    source: Cursor<Vec<u8>>,
    reads: &'a RefCell<Vec<(u64, usize)>>,
}

impl Read for Noted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let at = self.source.position();
        let length = self.source.read(out)?;
        self.reads.borrow_mut().push((at, length));
        Ok(length)
    }
}

impl Seek for Noted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

/// Returns events whose data has no repetitions, so that it stays large when compressed.
fn incompressible(first: i64) -> Vec<EventRecord> {
    let mut events = at(&(first..first + 6).collect::<Vec<_>>());
    let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_add(first.unsigned_abs());
    for event in &mut events {
        event.user_data = (0..1000)
            .flat_map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                // Some bytes repeat, so that the buffer becomes slightly smaller.
                [state.to_le_bytes(), [0; 8]].concat()
            })
            .collect();
    }
    events
}

#[test]
fn opening_reads_the_starts_of_buffers_and_each_buffer_is_read_when_its_time_has_come() {
    const SIZE: u32 = 1 << 18;
    for mode in [0, log_file_mode::COMPRESSED] {
        let header = LogFileHeader {
            log_file_mode: log_file_mode::SEQUENTIAL | mode,
            ..trace::header(ClockType::Qpc, SIZE, 1)
        };
        let filled = [200, 0, 100].map(|first| (0, incompressible(first)));
        let file = buffers(header, &filled);
        let whole = Trace::parse(&file).unwrap();
        let flags = whole.buffers().iter().map(|buffer| buffer.flags & 0x40);
        assert!(flags.skip(1).all(|flag| (flag != 0) == (mode != 0)));
        let offsets: Vec<u64> = whole.buffers().iter().map(|one| one.offset).collect();
        let reads = RefCell::default();
        let source = Noted { source: Cursor::new(file), reads: &reads };
        let mut trace = TraceFile::new(source).unwrap();
        // The header event can take up to 64 KiB. Only the start of compressed buffers is
        // decompressed.
        let of_buffers = |reads: &[(u64, usize)]| -> Vec<(u64, usize)> {
            let later = reads.iter().filter(|(at, _)| *at >= offsets[1]);
            later.copied().collect()
        };
        let opening = of_buffers(&reads.take());
        let bytes: usize = opening.iter().map(|(_, length)| length).sum();
        let limit = if mode == 0 { 500 } else { 5000 };
        assert!((72 * 3..=limit).contains(&bytes), "{bytes} {opening:?}");
        // The second buffer is the earliest, so the others wait.
        let mut records = trace.records();
        assert!(records.next().unwrap().is_some());
        let first = reads.take();
        let is_second = |at: u64| (offsets[2]..offsets[3]).contains(&at);
        assert!(first.iter().all(|(at, _)| is_second(*at)), "{first:?}");
        while records.next().unwrap().is_some() {}
        assert_eq!((records.count(), records.late()), (18, 0));
        let rest = reads.take();
        let again = rest.iter().filter(|(at, _)| is_second(*at)).count();
        assert_eq!(again, 0, "each buffer is read once");
        assert!(rest.iter().all(|(at, _)| *at >= offsets[1]), "{rest:?}");
    }
}
