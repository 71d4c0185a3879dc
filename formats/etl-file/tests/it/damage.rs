//! Tests damaged, unfinished and unusual files.

use std::cmp::Ordering;
use std::io::Cursor;

use etl_file::internals::kernel;
use etl_file::lines::{self, Members};
use etl_file::write::{Buffer, ClassicRecord, Finish, KernelRecord, LogFile, Losses};
use etl_file::{
    Catalog, ClockType, DamageKind, EventRecord, ExtendedItem, FileTime, Guid, LogFileHeader,
    OtherKind, Pipeline, PointerSize, ReadError, Record, RecordCount, Summary, Trace, TraceFile,
};
use etl_fixtures::trace;

const SIZE: usize = 0x1000;

/// Returns a finished file with a header buffer and some data buffers.
fn sample() -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let (file, _) = trace::file(header, 40, Losses::default());
    assert!(file.len() >= 4 * SIZE, "there are three data buffers");
    file
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns the timestamps of the events outside a buffer.
fn outside(trace: &Trace, buffer: u32) -> Vec<i64> {
    trace
        .events()
        .filter(|event| event.buffer != buffer)
        .map(|event| event.record.timestamp)
        .collect()
}

/// Reads a file without damage.
fn undamaged(file: &[u8]) -> Trace {
    let trace = Trace::parse(file).unwrap();
    assert_eq!(trace.damages(), []);
    trace
}

/// Reads a file in time order, and decodes and shows its records. Returns the counts.
fn exercise(file: &[u8]) -> Summary {
    let mut file = TraceFile::new(Cursor::new(file)).unwrap();
    let (events, summary) = trace::events(&mut file, &Pipeline::new(&Catalog::new()));
    let (mut members, mut text) = (Members::default(), Vec::new());
    for (event, decoded) in events {
        assert!(!lines::line(&decoded).is_empty());
        members.line(&event.view(), &decoded, &mut text).unwrap();
    }
    summary
}

/// Damages the second buffer, checks that no other buffer loses records, and returns the reported
/// damage.
fn damage_of(change: impl FnOnce(&mut [u8])) -> Vec<(u64, DamageKind)> {
    let mut file = sample();
    let whole = Trace::parse(&file).unwrap();
    change(&mut file[SIZE..2 * SIZE]);
    let trace = Trace::parse(&file).unwrap();
    assert_eq!(outside(&trace, 1), outside(&whole, 1), "the others are read");
    exercise(&file);
    trace.damages().iter().map(|damage| (damage.offset, damage.kind)).collect()
}

#[test]
fn buffer_of_another_size_is_skipped() {
    let damages = damage_of(|buffer| put(buffer, 0, &[0, 0x20]));
    let kind = DamageKind::BufferSize { expected: 0x1000, found: 0x2000 };
    assert_eq!(damages, [(0x1000, kind)]);
}

#[test]
fn impossible_number_of_used_bytes_is_taken_from_its_copy() {
    let mut file = sample();
    let whole = Trace::parse(&file).unwrap();
    put(&mut file, SIZE + 0x30, &[0, 0x20]);
    let trace = Trace::parse(&file).unwrap();
    assert_eq!(trace.records(), whole.records());
    let damages = trace.damages();
    assert_eq!(damages.len(), 1);
    assert_eq!(damages[0].offset, 0x1030);
    let kind = DamageKind::Used { used: 0x2000, size: 0x1000 };
    assert_eq!(damages[0].kind, kind);
}

#[test]
fn buffer_that_is_wrongly_marked_as_compressed_is_damaged() {
    let damages = damage_of(|buffer| put(buffer, 0x34, &[0x60]));
    let (offset, kind) = damages[0];
    assert_eq!(offset, 0x1048);
    assert!(matches!(kind, DamageKind::Compression(_)), "{kind}");
    let mut file = sample();
    file[0x34] |= 0x40;
    assert!(matches!(Trace::parse(&file), Err(ReadError::Compressed)));
}

#[test]
fn bytes_that_do_not_start_a_record_end_the_buffer() {
    let damages = damage_of(|buffer| put(buffer, 0x48, &[1, 2, 3, 4]));
    let kind = DamageKind::NotARecord { marker: 0x0403_0201 };
    assert_eq!(damages, [(0x1048, kind)]);
}

#[test]
fn record_size_below_its_header_or_beyond_the_buffer_is_found() {
    for size in [0_u16, 79, 0x2000] {
        let damages = damage_of(|buffer| put(buffer, 0x48, &size.to_le_bytes()));
        let [(0x1048, DamageKind::RecordSize { size: found, minimum: 80, .. })] = damages[..]
        else {
            panic!("{damages:?}");
        };
        assert_eq!(found, usize::from(size));
    }
}

#[test]
fn item_that_runs_over_its_record_stays_in_the_user_data() {
    let mut file = sample();
    let item = SIZE + 72 + 80;
    put(&mut file, item + 6, &[0xFF, 0xFF]);
    let trace = Trace::parse(&file).unwrap();
    let damage = trace.damages()[0];
    assert_eq!(damage.kind, DamageKind::ItemOverrun);
    assert_eq!(damage.offset, u64::try_from(item).unwrap());
    let event = trace.events().next().unwrap();
    assert_eq!(event.record.extended, []);
    assert_eq!(event.record.user_data[6..8], [0xFF, 0xFF]);
    exercise(&file);
}

#[test]
fn buffer_of_zeros_is_damage_only_in_the_middle() {
    let damages = damage_of(|buffer| buffer.fill(0));
    assert_eq!(damages, [(0x1000, DamageKind::NeverWritten)]);
    let mut file = sample();
    let whole = Trace::parse(&file).unwrap();
    file.resize(file.len() + 3 * SIZE, 0);
    let trace = undamaged(&file);
    assert_eq!(trace.records(), whole.records());
}

#[test]
fn any_number_of_buffers_in_the_header_is_tolerated() {
    let whole = Trace::parse(&sample()).unwrap();
    for count in [0_u32, 1, 2, 1000, u32::MAX] {
        let mut file = sample();
        put(&mut file, 0x8C, &count.to_le_bytes());
        let trace = Trace::parse(&file).unwrap();
        assert_eq!(trace.records(), whole.records(), "{count}");
        let present = u32::try_from(file.len() / SIZE).unwrap();
        let expected = match count.cmp(&present) {
            Ordering::Less => Some(DamageKind::UncountedBuffers { expected: count, present }),
            Ordering::Equal => None,
            Ordering::Greater => Some(DamageKind::MissingBuffers { expected: count, present }),
        };
        let found = trace.damages().first().map(|damage| damage.kind);
        assert_eq!(found, expected);
    }
}

#[test]
fn the_header_of_a_session_that_has_not_ended_need_not_count_all_buffers() {
    let mut file = sample();
    // BuffersWritten and EndTime.
    put(&mut file, 0x8C, &1_u32.to_le_bytes());
    put(&mut file, 0x78, &[0; 8]);
    assert_eq!(Trace::parse(&file).unwrap().damages(), []);
}

#[test]
fn a_second_header_is_damage_that_loses_no_event() {
    let mut file = sample();
    let whole = Trace::parse(&file).unwrap();
    let present = u32::try_from(file.len() / SIZE).unwrap();
    file.extend_from_within(..SIZE);
    put(&mut file, 0x8C, &(present + 1).to_le_bytes());
    let trace = Trace::parse(&file).unwrap();
    let [damage] = trace.damages() else {
        panic!("{:?}", trace.damages());
    };
    assert_eq!((damage.kind, damage.buffer), (DamageKind::SecondHeader, present));
    assert_eq!(trace.events().count(), whole.events().count());
}

#[test]
fn stale_pointers_in_a_buffer_header_are_ignored() {
    let mut file = sample();
    let whole = Trace::parse(&file).unwrap();
    for start in (0..file.len()).step_by(SIZE) {
        put(&mut file, start + 0x08, &[0xEE; 4]);
        put(&mut file, start + 0x18, &[0x7E; 16]);
        put(&mut file, start + 0x38, &[0xEE; 16]);
    }
    let trace = undamaged(&file);
    assert_eq!(trace.records(), whole.records());
}

#[test]
fn a_buffer_without_the_flag_for_it_has_the_number_of_its_processor_in_one_byte() {
    let mut file = sample();
    put(&mut file, SIZE + 0x28, &[1, 7]);
    let processor = |file: &[u8]| Trace::parse(file).unwrap().buffers()[1].processor;
    assert_eq!(processor(&file), 0x0701);
    assert_eq!(file[SIZE + 0x34] & 0x20, 0x20);
    file[SIZE + 0x34] &= !0x20;
    assert_eq!(processor(&file), 1);
}

#[test]
fn recording_that_was_cut_short_is_readable() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut file = std::io::Cursor::new(Vec::new());
    let mut log = LogFile::create(&mut file, header).unwrap();
    let mut buffer = Buffer::new(0x1000, 0);
    let event = trace::manifest_event(1, 2_745_263_251_600);
    buffer.try_append(&event).unwrap();
    log.append(&buffer, 2_745_263_251_700).unwrap();
    drop(log);
    let trace = undamaged(file.get_ref());
    assert_eq!(trace.header().end_time, None);
    assert_eq!(trace.header().buffers_written, 2);
    assert_eq!(trace.events().next().unwrap().record, event);
}

#[test]
fn every_truncation_keeps_the_complete_buffers() {
    let file = sample();
    let whole = Trace::parse(&file).unwrap();
    for length in 0..file.len() {
        let cut = &file[..length];
        match Trace::parse(cut) {
            Err(error) => assert!(length < 0x1D0, "{length}: {error}"),
            Ok(trace) => {
                let present = u32::try_from(length / SIZE).unwrap();
                let expected = whole.events().filter(|event| event.buffer < present);
                let found = trace.events().filter(|event| event.buffer < present);
                assert!(found.eq(expected), "{length}");
                assert!(!trace.damages().is_empty(), "{length}");
            }
        }
    }
}

#[test]
fn every_changed_byte_is_tolerated_and_hides_no_other_buffer() {
    let file = sample();
    let whole = Trace::parse(&file).unwrap();
    let buffer_of = |at: usize| u32::try_from(at / SIZE).unwrap();
    let others: Vec<Vec<i64>> =
        (0..=buffer_of(file.len())).map(|buffer| outside(&whole, buffer)).collect();
    let mut changed = file.clone();
    for at in 0..file.len() {
        // Changes every byte once; in headers, also the lowest and highest bit of each byte.
        let flips: &[u8] = if at % SIZE < 0x100 { &[0x01, 0x80, 0xFF] } else { &[0xFF] };
        for flip in flips {
            changed[at] = file[at] ^ flip;
            match Trace::parse(&changed) {
                Err(_) => assert!(at < SIZE, "{at:#x}: only damage to the first buffer is fatal"),
                Ok(trace) if at >= SIZE => {
                    let buffer = buffer_of(at);
                    let expected = &others[at / SIZE];
                    assert_eq!(outside(&trace, buffer), *expected, "{at:#x} ^ {flip:#x}");
                    if at % 64 == 0 {
                        exercise(&changed);
                    }
                }
                Ok(_) if at % 16 == 0 => {
                    exercise(&changed);
                }
                Ok(_) => {}
            }
        }
        changed[at] = file[at];
    }
}

#[test]
fn a_file_that_is_not_a_trace_is_refused_with_the_offset() {
    let refusal = |file: &[u8]| Trace::parse(file).unwrap_err().to_string();
    assert_eq!(
        refusal(b"MZ"),
        "at offset 0x0: the file ends within the header of the first buffer"
    );
    assert_eq!(
        refusal(&[0x33; 0x1000]),
        "at offset 0x0: not an .etl file: a buffer cannot be 858993459 bytes long"
    );
    let mut file = sample();
    file[0x4B] = 0x90;
    assert_eq!(
        refusal(&file),
        "at offset 0x48: not an .etl file: the first record is not a header event"
    );
    assert_eq!(
        refusal(&sample()[..0x180]),
        "at offset 0x48: the file ends within the trace's header event"
    );
    assert!(matches!(Trace::open("no such file"), Err(ReadError::Io(_))));
}

/// Returns a record of a kind that the writer does not support.
fn raw_record(first: [u8; 8], rest: &[u8], size: usize) -> Vec<u8> {
    let mut record = first.to_vec();
    record.extend(rest);
    record.resize(size.next_multiple_of(8), 0);
    record
}

/// Returns the sample with other records in its second buffer.
fn with_records(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = sample();
    let bytes = records.concat();
    put(&mut file, SIZE + 72, &bytes);
    let used = u32::try_from(72 + bytes.len()).unwrap().to_le_bytes();
    put(&mut file, SIZE + 0x04, &used);
    put(&mut file, SIZE + 0x30, &used);
    file
}

#[test]
fn damage_is_listed_in_the_order_of_the_file() {
    let mut file = sample();
    let last = file.len() - SIZE;
    put(&mut file, last + 72, &[1, 2, 3, 4]);
    file.truncate(last + 200);
    let trace = Trace::parse(&file).unwrap();
    let damages: Vec<_> = trace.damages().iter().map(|d| (d.offset, d.kind)).collect();
    let (record, end) = (last as u64 + 72, file.len() as u64);
    let marker = 0x0403_0201;
    assert_eq!(
        damages,
        [
            (record, DamageKind::NotARecord { marker }),
            (end, DamageKind::Truncated { present: 200 }),
        ]
    );
}

#[test]
fn other_records_are_listed_with_kind_and_size() {
    let time = 0x1122_3344_i64.to_le_bytes();
    let at_16 = [&[0; 8], &time[..]].concat();
    let classic = [&[0; 8], &time[..], &[7; 16]].concat();
    let file = with_records(&[
        raw_record([2, 0, 2, 0xC0, 44, 0, 0x24, 0x03], &at_16, 44),
        raw_record([2, 0, 4, 0xC0, 24, 0, 1, 2], &at_16, 24),
        raw_record([2, 0, 0x11, 0xC0, 16, 0, 0x2E, 0x0F], &time, 16),
        raw_record([50, 0, 0x14, 0xC0, 1, 0, 0, 0], &classic, 50),
        raw_record([56, 0, 0x15, 0xC0, 1, 0, 0, 0], &classic, 56),
        raw_record([12, 0, 1, 0x90, 0, 0, 0, 0], &[], 12),
        raw_record([10, 0, 0x77, 0xC0, 0, 0, 0, 0], &[], 10),
    ]);
    let trace = undamaged(&file);
    let found: Vec<_> =
        trace.others().map(|other| (other.kind, other.size, other.timestamp)).collect();
    let time = Some(0x1122_3344);
    let class = Guid::from_bytes([7; 16]);
    assert_eq!(
        found,
        [
            (OtherKind::System { hook: 0x0324 }, 44, time),
            (OtherKind::CompactSystem { hook: 0x0201 }, 24, time),
            (OtherKind::PerfInfo { hook: 0x0F2E }, 16, time),
            (OtherKind::Classic { class }, 50, time),
            (OtherKind::ClassicInstance, 56, time),
            (OtherKind::Wpp, 12, None),
            (OtherKind::Unknown { header_type: 0x77 }, 10, None),
        ]
    );
    assert_eq!(trace.others().next().unwrap().offset, 0x1048);
    let counts = exercise(&file);
    let skipped = RecordCount { records: 1, bytes: 10 };
    assert_eq!(counts.skipped.iter().collect::<Vec<_>>(), [("unknown 0x77", skipped)]);
    assert_eq!(counts.decoded, trace.records().len() as u64 - 1);
}

#[test]
fn records_without_a_time_have_that_of_their_buffer_in_either_form() {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let clock = header.session_clock();
    let reading = header.start_clock + header.perf_frequency * 3;
    let time = clock.to_file_time(reading);
    let mut file = with_records(&[raw_record([12, 0, 1, 0x90, 0, 0, 0, 0], &[], 12)]);
    for timestamp in [reading, time.raw()] {
        put(&mut file, SIZE + 0x10, &timestamp.to_le_bytes());
        let mut trace = TraceFile::new(Cursor::new(&file)).unwrap();
        let mut records = trace.records();
        let mut found = None;
        while let Some(record) = records.next().unwrap() {
            if record.kind() == Some(OtherKind::Wpp) {
                found = Some((record.timestamp, record.time()));
            }
        }
        assert_eq!(found, Some((reading, time)), "{timestamp}");
    }
}

#[test]
fn event_of_32_bit_code_has_pointers_of_four_bytes() {
    let mut file = sample();
    assert_eq!(file[SIZE + 74], 0x13);
    file[SIZE + 74] = 0x12;
    let trace = Trace::parse(&file).unwrap();
    let mut events = trace.events();
    assert_eq!(events.next().unwrap().pointer_size, PointerSize::Four);
    assert_eq!(events.next().unwrap().pointer_size, PointerSize::Eight);
}

#[test]
fn the_header_of_a_32_bit_machine_is_read_whatever_its_type() {
    // The second case is the usual one; in the others, the header type contradicts the layout.
    for (header_type, pointer_size) in [(1, 8), (1, 4), (2, 4)] {
        let mut file = sample();
        file[0x4A] = header_type;
        if pointer_size == 4 {
            // The two name pointers are 8 bytes shorter in total, so the later fields move up.
            let used = usize::from(u16::from_le_bytes([file[0x30], file[0x31]]));
            file.copy_within(0xB0..used, 0xA8);
            file[0x94] = 4;
        }
        let trace = Trace::parse(&file).unwrap();
        assert_eq!(trace.header().session, trace::header(ClockType::Qpc, 0x1000, 2));
        assert_eq!(trace.header().pointer_size, pointer_size);
    }
}

#[test]
fn records_that_state_no_pointer_size_have_that_of_the_trace() {
    use PointerSize::{Eight, Four};

    let time = [&[0; 8], &0x1122_3344_i64.to_le_bytes()[..]].concat();
    let mut file = with_records(&[
        // WPP messages without and with flags for the pointer size.
        raw_record([12, 0, 1, 0x90, 0, 0, 0, 0], &[], 12),
        raw_record([12, 0, 1, 0x90, 0, 0, 0x40, 0], &[], 12),
        raw_record([12, 0, 1, 0x90, 0, 0, 0x80, 0], &[], 12),
        // Kernel records whose header types imply the pointer size.
        raw_record([2, 0, 1, 0xC0, 36, 0, 0x0b, 0x03], &time, 36),
        raw_record([2, 0, 2, 0xC0, 36, 0, 0x0b, 0x03], &time, 36),
    ]);
    let sizes = |file: &[u8]| -> Vec<PointerSize> {
        let mut file = TraceFile::new(Cursor::new(file)).unwrap();
        let buffer = file.buffer(1).unwrap().unwrap();
        let sizes = buffer.records().map(|record| {
            let decoded = kernel::decode_record(&record).unwrap();
            let size = record.pointer_size();
            assert_eq!(decoded.header.pointer_size, size);
            size
        });
        let sizes: Vec<_> = sizes.collect();
        let (mut events, _) = trace::events(&mut file, &Pipeline::new(&Catalog::new()));
        events.retain(|(event, _)| event.buffer == 1);
        events.sort_by_key(|(event, _)| event.offset);
        assert!(events.iter().map(|(event, _)| event.pointer_size).eq(sizes.iter().copied()));
        sizes
    };
    assert_eq!(sizes(&file), [Eight, Four, Eight, Four, Eight]);
    // The field precedes those whose offsets depend on the pointer size.
    file[0x94] = 4;
    assert_eq!(sizes(&file), [Four, Four, Eight, Four, Eight]);
}

#[test]
fn events_are_in_order_of_time_across_processors() {
    let (file, written) =
        trace::file(trace::header(ClockType::Qpc, 0x1000, 3), 100, Losses::default());
    let trace = Trace::parse(&file).unwrap();
    let in_file: Vec<i64> = trace.events().map(|e| e.record.timestamp).collect();
    assert!(!in_file.is_sorted(), "the file has them by processor");
    let by_time: Vec<&EventRecord> =
        trace.events_by_time().into_iter().map(|event| &event.record).collect();
    assert_eq!(by_time, written.iter().collect::<Vec<_>>());
    let events = trace.records().iter().filter(|r| matches!(r, Record::Event(_)));
    assert_eq!(events.count(), written.len());
}

/// Returns a circular file without data buffers, and a maker of buffers with one event at this
/// number of ticks after the start.
fn circular() -> (LogFile<Cursor<Vec<u8>>>, i64, impl Fn(u32) -> Buffer) {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.log_file_mode = etl_file::log_file_mode::CIRCULAR;
    header.maximum_file_size = 1;
    let start = header.start_clock;
    let log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
    let event = move |n: u32| trace::manifest_event(n, start + i64::from(n));
    (log, start, move |n| trace::buffer(0x1000, 0, [event(n)]))
}

#[test]
fn circular_file_overwrites_its_oldest_buffer() {
    let (mut log, start, buffer) = circular();
    assert!(log.replace_oldest(&buffer(0), start).is_err());
    for n in 0..3 {
        log.append(&buffer(n), start + i64::from(n)).unwrap();
    }
    for n in 3..7 {
        log.replace_oldest(&buffer(n), start + i64::from(n)).unwrap();
    }
    assert_eq!((log.buffers_written(), log.len()), (4, 0x4000));
    let file = log.finish(Finish::default()).unwrap();
    let trace = undamaged(file.get_ref());
    let times: Vec<i64> =
        trace.events_by_time().iter().map(|event| event.record.timestamp - start).collect();
    assert_eq!(times, [4, 5, 6]);
    let flags: Vec<u16> = trace.buffers().iter().map(|b| b.flags).collect();
    assert_eq!(flags, [0x21, 0x21, 0x20, 0x20], "the newest is marked");
}

#[test]
fn the_oldest_buffer_is_the_one_written_longest_ago() {
    let (mut log, start, buffer) = circular();
    log.append(&buffer(0), start).unwrap();
    log.append(&buffer(1), start).unwrap();
    log.replace_oldest(&buffer(2), start).unwrap();
    // The file can still grow after the writer has wrapped around.
    log.append(&buffer(3), start).unwrap();
    log.replace_oldest(&buffer(4), start).unwrap();
    log.replace_oldest(&buffer(5), start).unwrap();
    let file = log.finish(Finish::default()).unwrap();
    let trace = Trace::parse(file.get_ref()).unwrap();
    let times: Vec<i64> = trace.events().map(|event| event.record.timestamp - start).collect();
    assert_eq!(times, [5, 4, 3]);
}

#[test]
fn the_stated_size_of_an_item_counts_if_it_is_possible() {
    let item = |ext_type, byte| ExtendedItem { ext_type, data: vec![byte; 8] };
    let event = EventRecord {
        extended: vec![item(1, 7), item(5, 9)],
        user_data: vec![1; 8],
        ..trace::manifest_event(0, 2_745_263_251_600)
    };
    let encoded = event.encode().unwrap();
    // An item starts with its size, its type, its linkage and the size of its data.
    let items = |size: u8, data: u8| {
        let mut bytes = encoded.clone();
        assert_eq!((bytes[80], bytes[86]), (16, 8));
        (bytes[80], bytes[86]) = (size, data);
        let trace = undamaged(&with_records(&[bytes]));
        trace.events().next().unwrap().record.extended.clone()
    };
    for size in [0, 8, 13, 16, 17] {
        assert_eq!(items(size, 8), event.extended, "{size}");
    }
    // If the data is shorter, the rest is padding.
    let mut padded = event.extended;
    padded[0].data.clear();
    assert_eq!(items(16, 0), padded);
    padded[0].data.push(7);
    assert_eq!(items(0, 1), padded);
}

#[test]
fn the_damage_of_whole_buffers_is_listed_in_the_order_of_the_file() {
    let mut file = sample();
    let last = file.len() - SIZE;
    put(&mut file, last + 0x30, &[0, 0x20]);
    file.truncate(last + 200);
    let file = TraceFile::new(Cursor::new(file)).unwrap();
    let damages = file.damages().listed().iter();
    let offsets: Vec<u64> = damages.map(|damage| damage.offset).collect();
    assert_eq!(offsets, [last + 0x30, last + 200].map(|at| at as u64));
}

#[test]
fn a_record_of_an_unknown_type_has_the_pointers_of_the_trace() {
    let mut file = with_records(&[raw_record([10, 0, 0x77, 0xC0, 0, 0, 0, 0], &[], 10)]);
    let size = |file: &[u8]| {
        let mut trace = TraceFile::new(Cursor::new(file)).unwrap();
        let buffer = trace.buffer(1).unwrap().unwrap();
        buffer.record(0).unwrap().pointer_size()
    };
    assert_eq!(size(&file), PointerSize::Eight);
    file[0x94] = 4;
    assert_eq!(size(&file), PointerSize::Four);
}

#[test]
fn a_header_without_boot_time_or_frequency_is_read_by_its_plausible_layout() {
    let mut header = trace::header(ClockType::Qpc, 0x1000, 1);
    header.boot_time = FileTime::from_raw(0);
    // In a 32-bit interpretation, the low half would be the clock type.
    header.start_time = FileTime::from_raw(0x01DC_7B00_0000_0001);
    let (whole, _) = trace::file(header.clone(), 3, Losses::default());
    let mut file = whole.clone();
    file[0x4A] = 1;
    let session = |file: &[u8]| Trace::parse(file).unwrap().header().session.clone();
    assert_eq!(session(&file), header);
    // Without a frequency, neither layout is plausible, so the header type decides.
    let at =
        whole.windows(8).position(|bytes| bytes == header.perf_frequency.to_le_bytes()).unwrap();
    for boot_time in [0, 5_i64] {
        let mut file = whole.clone();
        file[at..at + 8].fill(0);
        file[at - 8..at].copy_from_slice(&boot_time.to_le_bytes());
        let expected = LogFileHeader {
            perf_frequency: 0,
            boot_time: FileTime::from_raw(boot_time),
            ..header.clone()
        };
        assert_eq!(session(&file), expected);
    }
}

#[test]
fn records_without_a_time_have_that_of_the_next_or_the_last_one() {
    let dated = |time: i64| {
        let times = [&[0; 8], &time.to_le_bytes()[..]].concat();
        raw_record([2, 0, 2, 0xC0, 36, 0, 0x0b, 0x03], &times, 36)
    };
    let undated = || raw_record([12, 0, 1, 0x90, 0, 0, 0, 0], &[], 12);
    let file = with_records(&[undated(), undated(), dated(700), undated(), dated(900)]);
    let mut trace = TraceFile::new(Cursor::new(file)).unwrap();
    let buffer = trace.buffer(1).unwrap().unwrap();
    let times: Vec<i64> = buffer.records().map(|record| record.timestamp).collect();
    assert_eq!(times, [700, 700, 700, 700, 900]);
}

#[test]
fn a_view_of_a_kernel_record_has_the_parts_of_its_header() {
    let bytes = KernelRecord {
        hook: 0x0A03,
        version: 7,
        thread_id: 11,
        process_id: 12,
        timestamp: 500,
        kernel_time: 13,
        user_time: 14,
        payload: vec![1, 2, 3],
        ..KernelRecord::default()
    };
    let classic = ClassicRecord {
        class: Guid::from_u128(9),
        opcode: 21,
        level: 4,
        version: 3,
        timestamp: 600,
        ..ClassicRecord::default()
    };
    let padded = |mut record: Vec<u8>| {
        record.resize(record.len().next_multiple_of(8), 0);
        record
    };
    let records = [bytes.encode().unwrap(), classic.encode().unwrap()];
    let file = with_records(&records.map(padded));
    let mut file = TraceFile::new(Cursor::new(file)).unwrap();
    let (events, _) = trace::events(&mut file, &Pipeline::new(&Catalog::new()));
    let events = events.into_iter().filter(|(event, _)| event.buffer == 1);
    let views: Vec<_> = events.map(|(event, _)| event.record).collect();
    let kernel = &views[0];
    assert_eq!((kernel.descriptor.id, kernel.descriptor.opcode), (0x0A03, 3));
    assert_eq!((kernel.descriptor.version, kernel.descriptor.level), (7, 0));
    assert_eq!((kernel.thread_id, kernel.process_id), (11, 12));
    assert_eq!((kernel.kernel_time, kernel.user_time), (13, 14));
    assert_eq!((kernel.timestamp, &*kernel.user_data), (500, &[1, 2, 3][..]));
    let classic = &views[1];
    assert_eq!(classic.provider, Guid::from_u128(9));
    assert_eq!((classic.descriptor.opcode, classic.descriptor.level), (21, 4));
    assert_eq!(classic.descriptor.version, 3);
    assert_eq!(classic.timestamp, 600);
}
