//! Tests the merging of files.

use std::fs;
use std::io::Cursor;

use etl_file::merge::{self, MergeError, Merged, Options};
use etl_file::write::{KernelRecord, Losses};
use etl_file::{
    ClockType, Damages, EventRecord, FileTime, Guid, LogFileHeader, PointerSize, Trace, TraceFile,
    log_file_mode,
};
use etl_fixtures::decoders;
use etl_fixtures::sessions::{FREQUENCY, driver_trace as trace, kernel_trace};
use etl_fixtures::trace;

/// Merges files in memory.
fn merge(files: &[Vec<u8>], options: Options) -> Result<(Vec<u8>, Merged), MergeError> {
    let traces = files.iter().map(|file| TraceFile::new(Cursor::new(file)));
    let mut traces: Vec<_> = traces.map(Result::unwrap).collect();
    let (out, merged) = merge::merge(&mut traces, "merged.etl", options, Cursor::new(Vec::new()))?;
    Ok((out.into_inner(), merged))
}

fn merged(files: &[Vec<u8>]) -> Trace {
    let (file, _) = merge(files, Options::default()).unwrap();
    Trace::parse(&file).unwrap()
}

/// Returns the events by time. Each has its absolute time instead of its timestamp, which depends
/// on the clock.
fn by_time(trace: &Trace) -> Vec<(FileTime, u16, EventRecord)> {
    let events = trace.events_by_time().into_iter();
    events
        .map(|event| {
            let record = EventRecord { timestamp: 0, ..event.record.clone() };
            (event.time, event.processor, record)
        })
        .collect()
}

#[test]
fn every_event_is_merged_in_order_of_time() {
    let losses = |events_lost, buffers_lost| Losses { events_lost, buffers_lost };
    let traces = [
        trace(ClockType::Qpc, 0, 100, losses(3, 1)),
        trace(ClockType::SystemTime, 7, 60, losses(4, 0)),
        trace(ClockType::Qpc, 12_345, 80, losses(0, 2)),
    ];
    let all = merged(&traces);
    assert_eq!(all.damages(), []);
    let parsed = traces.iter().map(|file| Trace::parse(file).unwrap());
    let mut expected: Vec<_> = parsed.flat_map(|trace| by_time(&trace)).collect();
    expected.sort_by_key(|(time, ..)| *time);
    let mut found = by_time(&all);
    assert!(found.is_sorted_by_key(|(time, ..)| *time));
    // Events with equal times are in the order of their files, which requires a stable sort.
    let key = |(time, processor, record): &(FileTime, u16, EventRecord)| {
        (*time, *processor, format!("{record:?}"))
    };
    expected.sort_by_key(key);
    found.sort_by_key(key);
    assert_eq!(found, expected);
    let header = all.header();
    assert_eq!((header.events_lost, header.buffers_lost), (7, 3));
    assert_eq!(header.session.clock, ClockType::SystemTime);
    assert_eq!(header.session.start_time, trace::START);
    assert_eq!(header.session.session_name, "Session 0 + Session 7 + Session 12345");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn third_party_decoders_read_the_same() {
    let traces = [
        trace(ClockType::Qpc, 0, 30, Losses::default()),
        trace(ClockType::Qpc, 50, 30, Losses::default()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("merged.etl");
    for compress in [false, true] {
        let (file, merged) = merge(&traces, Options { compress }).unwrap();
        assert_eq!((merged.events, merged.others), (60, 0));
        fs::write(&path, file).unwrap();
        assert_eq!(decoders::assert_third_party_decoders_agree(&path), 60);
        let header = Trace::open(&path).unwrap().header().session.clone();
        assert_eq!(header.is_compressed(), compress);
        // Both sessions read the same counter.
        assert_eq!(header.clock, ClockType::Qpc);
    }
}

#[test]
fn what_can_be_read_of_damaged_traces_is_merged() {
    let good = trace(ClockType::Qpc, 0, 10, Losses::default());
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let (mut file, _) = trace::file(header, 200, Losses::default());
    file.truncate(file.len() - 0x1000);
    // A buffer in the middle was never written.
    file[0x2000..0x3000].fill(0);
    let rest = Trace::parse(&file).unwrap().events().count();
    assert!((1..200).contains(&rest), "{rest}");
    let (out, found) = merge(&[good, file], Options::default()).unwrap();
    assert_eq!(found.events, 10 + u64::try_from(rest).unwrap());
    let counts: Vec<u64> = found.damages.iter().map(Damages::count).collect();
    assert_eq!(counts, [0, 2]);
    let merged = Trace::parse(&out).unwrap();
    assert_eq!(merged.damages(), []);
    assert_eq!(merged.events().count(), 10 + rest);
    let error = merge(&[], Options::default()).unwrap_err();
    assert!(matches!(error, MergeError::Nothing));
}

/// Returns all records' bytes, and their times in 100 ns since the fixture's start.
fn records(file: &[u8]) -> Vec<(i64, Vec<u8>)> {
    let mut trace = TraceFile::new(Cursor::new(file)).unwrap();
    let mut records = trace.records();
    let mut all = Vec::new();
    while let Some(record) = records.next().unwrap() {
        let time = record.time().raw() - trace::START.raw();
        all.push((time, record.bytes.to_vec()));
    }
    assert!(records.damages().is_empty());
    all
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_drivers_trace_and_a_kernel_trace_have_one_timeline() {
    // A tick of the driver's clock is 100 ns; a tick of the kernel's clock is 400 ns.
    let driver = trace(ClockType::SystemTime, 2050, 40, Losses::default());
    let (file, found) = merge(&[driver.clone(), kernel_trace()], Options::default()).unwrap();
    assert_eq!((found.events, found.others, found.left_out), (41, 7, 2));
    let all = records(&file);
    assert!(all.is_sorted_by_key(|(time, _)| *time));
    assert_eq!(all.len(), 48);
    let hooks = all.iter().filter(|(_, bytes)| bytes[2] == 2 && bytes[3] == 0xC0);
    let hooks: Vec<(i64, u16, &[u8])> = hooks
        .map(|(time, bytes)| {
            let hook = u16::from_le_bytes([bytes[6], bytes[7]]);
            (*time, hook, &bytes[32..])
        })
        .collect();
    let times: Vec<(i64, u16)> = hooks.iter().map(|(time, hook, _)| (*time, *hook)).collect();
    let expected = [(4000, 0x0524), (4400, 0x0F44), (4800, 0x1820), (5200, 0x010A), (5600, 0x0008)];
    assert_eq!(times, expected);
    let since_start = |raw: u64| i64::try_from(raw).unwrap() - trace::START.raw();
    // The interval's start, the time of the stack's event, and the transfer's duration.
    assert_eq!(since_start(u64_at(hooks[1].2, 0)), 2800);
    assert_eq!(since_start(u64_at(hooks[2].2, 0)), hooks[0].0);
    assert_eq!(u64_at(hooks[3].2, 40), 4000);
    // Records of the other forms are present.
    let forms = |bytes: &[u8]| matches!((bytes[2], bytes[3]), (0x14 | 0x12, 0xC0) | (_, 0x90));
    let others: Vec<i64> =
        all.iter().filter(|(_, bytes)| forms(bytes)).map(|(time, _)| *time).collect();
    assert_eq!(others, [6000, 6400, 6800]);
    let header = Trace::parse(&file).unwrap().header().session.clone();
    assert_eq!(header.session_name, "Session 2050 + NT Kernel Logger");
    assert_eq!(header.clock, ClockType::SystemTime);
    // Every driver event lies between them.
    let before: Vec<i64> = records(&driver).into_iter().map(|(time, _)| time).collect();
    assert!(before.iter().all(|time| all.iter().any(|(found, _)| found == time)));
}

/// Merges the records of a trace whose ticks are not 100 ns with a trace in system time, and
/// returns the merged records.
fn converted(of: &[KernelRecord]) -> Vec<Vec<u8>> {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.perf_frequency = FREQUENCY;
    let start = header.start_clock;
    let encoded = of.iter().map(|record| (start, record.encode().unwrap()));
    let file = trace::of_records(header, start, encoded);
    let other = trace(ClockType::SystemTime, 0, 1, Losses::default());
    let (file, found) = merge(&[file, other], Options::default()).unwrap();
    let left_out = of.len() as u64 - found.others;
    assert_eq!(found.left_out, left_out);
    let all = records(&file).into_iter();
    all.map(|(_, bytes)| bytes).filter(|bytes| bytes[2] == 1).collect()
}

#[test]
fn durations_are_found_by_the_layout_of_the_payload() {
    const IRP: u64 = 0xFFFF_E001_2345_6780;
    let record = |hook, version, payload: &[u8]| KernelRecord {
        pointer_size: PointerSize::Four,
        hook,
        version,
        payload: payload.to_vec(),
        ..KernelRecord::default()
    };
    let [irp, ticks] = [IRP, 1000].map(u64::to_le_bytes);
    let narrow = 0x8345_6780_u32.to_le_bytes();
    // 64-bit payloads after a 32-bit header, without and with the Irp; 32-bit payloads; and
    // flushes.
    let third = [&[0; 24][..], &irp, &irp, &ticks, &[7; 4]].concat();
    let payloads = [
        (0x010A, 3, 40, third.clone()),
        (0x0137, 3, 40, third),
        (0x010B, 1, 32, [&[0; 24][..], &irp, &ticks].concat()),
        (0x0138, 2, 32, [&[0; 24][..], &narrow, &narrow, &ticks].concat()),
        (0x010E, 2, 8, [&[0; 8][..], &ticks, &irp].concat()),
        (0x0139, 3, 8, [&[0; 8][..], &ticks, &narrow, &[7; 4]].concat()),
    ];
    let of: Vec<_> = payloads
        .iter()
        .map(|(hook, version, _, payload)| record(*hook, *version, payload))
        .collect();
    let found = converted(&of);
    assert_eq!(found.len(), payloads.len());
    for ((hook, _, at, payload), found) in payloads.iter().zip(found) {
        let mut expected = payload.clone();
        expected[*at..at + 8].copy_from_slice(&4000_u64.to_le_bytes());
        assert_eq!(found[32..], expected, "{hook:#06x}");
    }
}

#[test]
fn a_relogged_stack_keeps_the_time_of_its_event() {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.perf_frequency = FREQUENCY;
    let start = header.start_clock;
    let stack_walk = Guid::from_u128(0xdef2_fe46_7bd6_4b80_bd94_f57f_e20d_0ce3);
    let mut event = trace::manifest_event(3, start + 300);
    event.provider = stack_walk;
    event.descriptor.id = 0;
    event.descriptor.version = 2;
    event.descriptor.opcode = 0x20;
    event.user_data = [start + 200, 0x44, 0x55].map(i64::to_le_bytes).concat();
    let file = trace::of_records(header, start, [event]);
    let other = trace(ClockType::SystemTime, 0, 1, Losses::default());
    let all = merged(&[file, other]);
    let found = all.events().find(|event| event.record.provider == stack_walk);
    let found = found.unwrap();
    assert_eq!(found.time.raw(), trace::START.raw() + 1200);
    let of = i64::try_from(u64_at(&found.record.user_data, 0)).unwrap();
    assert_eq!(of, trace::START.raw() + 800);
}

#[test]
fn further_header_events_are_left_out() {
    let header_event = KernelRecord {
        pointer_size: PointerSize::Four,
        hook: 0x0000,
        version: 2,
        payload: vec![0; 0x118],
        ..KernelRecord::default()
    };
    let other = KernelRecord { hook: 0x0008, payload: vec![0; 4], ..header_event.clone() };
    let found = converted(&[header_event, other]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0][6..8], [8, 0]);
}

#[test]
fn a_kernel_trace_alone_keeps_its_clock_and_its_payloads() {
    let before = kernel_trace();
    let (file, found) = merge(std::slice::from_ref(&before), Options { compress: true }).unwrap();
    assert_eq!((found.events, found.others, found.left_out), (1, 7, 2));
    let kept: Vec<_> = records(&before)
        .into_iter()
        .filter(|(_, bytes)| !matches!(bytes[6..8], [0x50 | 0x05, 0]) || bytes[3] != 0xC0)
        .collect();
    assert_eq!(records(&file), kept);
    assert_eq!(Trace::parse(&file).unwrap().header().session.clock, ClockType::Qpc);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn dissect_counts_the_same_records() {
    const SCRIPT: &str = "import sys
from dissect.etl.etl import ETL
print(sum(1 for _ in ETL(open(sys.argv[1], 'rb'))))
";
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("count.py");
    fs::write(&script, SCRIPT).unwrap();
    let driver = trace(ClockType::SystemTime, 2050, 40, Losses::default());
    for compress in [false, true] {
        let files = [driver.clone(), kernel_trace()];
        let (file, _) = merge(&files, Options { compress }).unwrap();
        let path = folder.path().join("merged.etl");
        fs::write(&path, file).unwrap();
        let output = etw_test_support::run_python([&script, &path]);
        // The header event is a record, too.
        assert_eq!(String::from_utf8(output).unwrap().trim(), "49");
    }
}

#[test]
fn the_header_of_a_merged_trace_is_made_for_all_sessions() {
    let first = LogFileHeader {
        log_file_mode: log_file_mode::CIRCULAR,
        maximum_file_size: 7,
        ..trace::header(ClockType::Qpc, 0x1000, 1)
    };
    let mut second = trace::header(ClockType::Qpc, 0x4000, 3);
    second.start_time = FileTime::from_raw(first.start_time.raw() + 1);
    let mut large = trace::manifest_event(0, second.start_clock + 5);
    large.user_data = vec![7; 0x3000];
    let one = trace::file(first, 20, Losses::default()).0;
    let other = trace::of_buffers(second, 0, [trace::buffer(0x4000, 2, [&large])]);
    let all = merged(&[one, other]);
    assert_eq!(all.damages(), []);
    assert_eq!(all.events().count(), 21);
    assert!(all.events().any(|event| event.record == large));
    let session = &all.header().session;
    assert_eq!((session.buffer_size, session.processors), (0x4000, 3));
    assert_eq!(session.log_file_mode, log_file_mode::SEQUENTIAL);
    assert_eq!(session.maximum_file_size, 0);
    assert_eq!(session.log_file_name, "merged.etl");
}

#[test]
fn processors_that_the_header_does_not_count_keep_their_events() {
    let mut file = trace(ClockType::Qpc, 0, 40, Losses::default());
    let good = file.clone();
    let events = Trace::parse(&file).unwrap().events().count();
    // The header states one processor (NumberOfProcessors) or too many, but the buffers come from
    // two.
    for stated in [1, u32::MAX] {
        file[0x74..0x78].copy_from_slice(&stated.to_le_bytes());
        let all = merged(&[file.clone()]);
        assert_eq!(all.events().count(), events);
        assert_eq!(all.header().session.processors, 2);
        assert!(all.events().any(|event| event.processor == 1));
    }
    // The processor of the last buffer.
    let last = file.len() - u32::from_le_bytes(file[..4].try_into().unwrap()) as usize;
    file[last + 0x28..last + 0x2A].copy_from_slice(&300_u16.to_le_bytes());
    let error = merge(&[good, file], Options::default()).unwrap_err();
    assert_eq!(error.trace(), Some(1));
    assert!(error.to_string().contains("the processor count 301 is invalid"), "{error}");
}

/// The offsets of the header's frequency, clock type and processor speed in a file.
const PERF_FREQUENCY: usize = 0x168;
const CLOCK: usize = 0x178;
const CPU_SPEED: usize = 0x9C;

#[test]
fn unknown_times_are_damage_and_are_not_merged() {
    for (clock, at, value, reason) in [
        (1, CLOCK, 0_u32, "clock type 0 is not defined"),
        (1, CLOCK, 7, "clock type 7 is not defined"),
        (1, PERF_FREQUENCY, 0, "a performance counter of 0 ticks per second"),
        (3, CPU_SPEED, 0, "the processor speed must not be zero"),
    ] {
        let mut file = trace(ClockType::from_raw(clock), 0, 9, Losses::default());
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let trace = Trace::parse(&file).unwrap();
        let damages: Vec<String> = trace.damages().iter().map(ToString::to_string).collect();
        assert_eq!(damages.len(), 1, "{damages:?}");
        assert!(damages[0].contains("times are unknown"), "{damages:?}");
        assert!(damages[0].contains(reason), "{damages:?}");
        let other = self::trace(ClockType::Qpc, 5, 9, Losses::default());
        let error = merge(&[other, file], Options::default()).unwrap_err();
        assert_eq!(error.trace(), Some(1));
        assert!(error.to_string().contains(reason), "{error}");
    }
    let mut negative = trace(ClockType::Qpc, 0, 9, Losses::default());
    negative[PERF_FREQUENCY..PERF_FREQUENCY + 8].copy_from_slice(&(-5_i64).to_le_bytes());
    let error = merge(&[negative], Options::default()).unwrap_err().to_string();
    assert!(error.contains("a performance counter of -5 ticks"), "{error}");
}

#[test]
fn header_values_that_the_clock_does_not_use_do_not_prevent_merging() {
    let mut qpc = trace(ClockType::Qpc, 0, 9, Losses::default());
    qpc[CPU_SPEED..CPU_SPEED + 4].fill(0);
    let mut system = trace(ClockType::SystemTime, 3, 9, Losses::default());
    system[CPU_SPEED..CPU_SPEED + 4].fill(0);
    system[PERF_FREQUENCY..PERF_FREQUENCY + 8].fill(0);
    // The clock's reading at the start differs from the start time.
    let mut anchored = trace(ClockType::SystemTime, 6, 9, Losses::default());
    let start = i64::from_le_bytes(anchored[0x58..0x60].try_into().unwrap());
    anchored[0x58..0x60].copy_from_slice(&(start - 1_000).to_le_bytes());
    for files in [
        vec![qpc.clone()],
        vec![system.clone()],
        vec![anchored.clone()],
        vec![anchored, system, qpc],
    ] {
        let merged = merged(&files);
        assert_eq!(merged.damages(), []);
        let mut expected: Vec<FileTime> = Vec::new();
        for file in &files {
            expected.extend(Trace::parse(file).unwrap().events().map(|event| event.time));
        }
        expected.sort_unstable();
        let times: Vec<FileTime> = merged.events_by_time().iter().map(|event| event.time).collect();
        assert_eq!(times, expected);
    }
}
