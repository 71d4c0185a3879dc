//! Trace files and the sessions that write them.

use std::io::Cursor;

use arbitrary::{Arbitrary, Unstructured};
use etl_file::internals::compression::compress;
use etl_file::write::{Buffer, Finish, LogFile, Losses};
use etl_file::{
    ClockType, EventDescriptor, EventRecord, ExtendedItem, Guid, LogFileHeader, ext_type,
    log_file_mode,
};
use etl_fixtures::{packets, trace};

use super::{
    metadata,
    seed::{MAX_BYTES, Seed},
};
use crate::etl_round_trip::{Session, Written, check};

/// The size in bytes of the buffers that the writer produces.
const WRITTEN: usize = 0x1000;
/// The buffer size of most seeds, in bytes; less than the writer's minimum.
const SMALL: usize = 1024;
/// The buffer size, in bytes, of the seeds whose buffers hold many events.
const LARGE: usize = 2048;
/// The size of a buffer's header in bytes.
const BUFFER_HEADER: usize = 72;

/// Overwrites bytes of a file.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Returns a file with its buffers cut to a size that still holds the used bytes.
fn cut(file: &[u8], size: usize) -> Vec<u8> {
    let field = u32::try_from(size).expect("it is small").to_le_bytes();
    let mut out = Vec::new();
    for buffer in file.chunks(WRITTEN) {
        let used = u32::from_le_bytes(buffer[0x30..0x34].try_into().expect("4 bytes"));
        assert!(used as usize <= size, "{used} bytes are used");
        let start = out.len();
        out.extend(&buffer[..size]);
        put(&mut out, start, &field);
    }
    // The BufferSize field of the trace's header.
    put(&mut out, 0x68, &field);
    out
}

/// Returns the header of a session with one processor.
fn header(clock: ClockType) -> LogFileHeader {
    trace::header(clock, 0x1000, 1)
}

/// Returns a file with `TraceLogging` events and manifest events.
fn mixed(header: LogFileHeader, events: u32, losses: Losses) -> Vec<u8> {
    cut(&trace::file(header, events, losses).0, SMALL)
}

/// Returns a file whose buffers contain these events. Events without a timestamp are one
/// millisecond apart.
fn file(size: usize, buffers: &[&[EventRecord]]) -> Vec<u8> {
    let header = header(ClockType::Qpc);
    let mut now = header.start_clock;
    let mut log = LogFile::create(Cursor::new(Vec::new()), header).expect("a valid header");
    for events in buffers {
        let mut buffer = Buffer::new(0x1000, 0);
        for event in *events {
            now += 10_000;
            let mut event = event.clone();
            if event.timestamp == 0 {
                event.timestamp = now;
            }
            buffer.try_append(&event).expect("the buffer has room");
        }
        log.append(&buffer, now).expect("memory takes everything");
    }
    let log = log.finish(Finish::default());
    cut(&log.expect("memory takes everything").into_inner(), size)
}

/// Returns an extended data item.
fn item(ext_type: u16, data: impl Into<Vec<u8>>) -> ExtendedItem {
    ExtendedItem { ext_type, data: data.into() }
}

/// Returns a `TraceLogging` event with this metadata.
fn self_describing((metadata, user_data): (Vec<u8>, Vec<u8>)) -> EventRecord {
    EventRecord {
        provider: trace::SELF_DESCRIBING,
        extended: vec![item(ext_type::EVENT_SCHEMA_TL, metadata)],
        user_data,
        ..EventRecord::default()
    }
}

pub fn etl_read() -> Vec<Seed> {
    let losses = Losses { events_lost: 3, buffers_lost: 1 };
    let two_processors = mixed(trace::header(ClockType::Qpc, 0x1000, 2), 6, losses);
    // The sample's event from 32-bit code, and a truncated file.
    let mut cut_short = two_processors.clone();
    cut_short[SMALL + 74] = 0x12;
    cut_short.truncate(3 * SMALL - 700);
    let clock = |clock| mixed(header(clock), 4, Losses::default());
    let mut seeds = vec![
        Seed::new("qpc.etl", clock(ClockType::Qpc)),
        Seed::new("system_time.etl", clock(ClockType::SystemTime)),
        Seed::new("cycles.etl", clock(ClockType::CpuCycles)),
        Seed::new("processors_and_losses.etl", two_processors),
        Seed::new("cut_short.etl", cut_short),
        Seed::new("other_records.etl", other_records()),
        Seed::new("32_bit_header.etl", narrow_header()),
        Seed::new("names.etl", file(LARGE, &[&names()])),
        Seed::new("every_item.etl", file(SMALL, &[&[every_item()]])),
        Seed::new("by_manifest.etl", file(SMALL, &[&by_manifest()])),
        Seed::new("undescribed.etl", file(SMALL, &[&undescribed()])),
        Seed::new("packets.etl", file(LARGE, &[&captured()])),
    ];
    let every_type = (metadata::every_type(), metadata::data_of_every_type());
    let arrays = metadata::ARRAYS_AND_STRUCTURES.to_vec();
    let arrays = (arrays, metadata::THEIR_DATA.to_vec());
    let events = [every_type, arrays, metadata::sized_values()].map(self_describing);
    seeds.push(Seed::new("types.etl", file(LARGE, &[&events])));
    let events = [metadata::every_out_type(), metadata::nested()].map(self_describing);
    seeds.push(Seed::new("out_types.etl", file(LARGE, &[&events])));
    let unsuited = metadata::unsuited();
    let events = unsuited.map(|(_, metadata, data)| self_describing((metadata, data.to_vec())));
    seeds.push(Seed::new("unsuited_data.etl", file(SMALL, &[&events])));
    let [odd_text, odd_numbers] = [metadata::odd_text(), metadata::odd_numbers()];
    let odd = [self_describing(odd_text), self_describing(odd_numbers)];
    seeds.push(Seed::new("odd_values.etl", file(LARGE, &[&odd])));
    seeds.push(Seed::new("odd_times.etl", file(LARGE, &[&odd_times()])));
    seeds.push(Seed::new("unknown_clock.etl", unknown_clock()));
    seeds.extend(damaged());
    seeds.extend(compressed());
    seeds.extend(refused());
    seeds
}

/// Returns records of the kernel, of classic providers and of WPP, and a record of an unknown kind.
fn other_records() -> Vec<u8> {
    let mut file = mixed(header(ClockType::Qpc), 1, Losses::default());
    let mut at = SMALL + BUFFER_HEADER;
    for (size, first) in [
        (40, [2, 0, 2, 0xC0, 40, 0, 0x24, 3]),
        (32, [2, 0, 1, 0xC0, 32, 0, 0x24, 3]),
        (24, [2, 0, 4, 0xC0, 24, 0, 1, 2]),
        (24, [2, 0, 3, 0xC0, 24, 0, 1, 2]),
        (16, [2, 0, 0x11, 0xC0, 16, 0, 0x2E, 15]),
        (16, [2, 0, 0x10, 0xC0, 16, 0, 0x2E, 15]),
        (48, [48, 0, 0x14, 0xC0, 1, 0, 0, 0]),
        (48, [48, 0, 0x0A, 0xC0, 1, 0, 0, 0]),
        (56, [56, 0, 0x15, 0xC0, 1, 0, 0, 0]),
        (16, [16, 0, 1, 0x90, 0, 0, 0, 0]),
        (16, [10, 0, 0x77, 0xC0, 0, 0, 0, 0]),
    ] {
        file[at..at + size].fill(0x11);
        put(&mut file, at, &first);
        at += size;
    }
    let bytes = u32::try_from(at - SMALL).expect("small").to_le_bytes();
    for used in [4, 8, 0x30] {
        put(&mut file, SMALL + used, &bytes);
    }
    file
}

/// Returns a file from a 32-bit machine, whose header is 8 bytes shorter because it contains two
/// pointers.
fn narrow_header() -> Vec<u8> {
    let mut file = mixed(header(ClockType::Qpc), 2, Losses::default());
    let used = usize::from(u16::from_le_bytes([file[0x30], file[0x31]]));
    file.copy_within(0xB0..used, 0xA8);
    file[0x4A] = 1;
    file[0x94] = 4;
    // The events come from 32-bit code.
    file[SMALL + 74] = 0x12;
    file
}

/// Returns events without data whose levels, opcodes, tasks and keywords cover all kinds of names,
/// and whose activities start, nest and stop.
fn names() -> Vec<EventRecord> {
    let activity = |number| Guid::from_bytes([number; 16]);
    let event = |number: u8, opcode, id| EventRecord {
        thread_id: number.into(),
        process_id: 4,
        provider: trace::MANIFEST_PROVIDER,
        descriptor: EventDescriptor {
            id: 4,
            level: number,
            opcode,
            task: 7 * u16::from(number % 2),
            keyword: 1 << (44 + number % 20) | u64::from(number),
            ..EventDescriptor::default()
        },
        activity_id: activity(id),
        ..EventRecord::default()
    };
    let opcodes = [1, 1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 2, 20, 20, 240, 1, 2, 2, 255];
    let activities = [1, 1, 1, 0, 1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1];
    (0..)
        .zip(opcodes.into_iter().zip(activities))
        .map(|(number, (opcode, id))| event(number, opcode, id))
        .collect()
}

/// Returns an event with an extended data item of every kind.
fn every_item() -> EventRecord {
    let mut event = trace::manifest_event(0, 0);
    event.event_property = 0xF;
    event.extended = vec![
        ExtendedItem::related_activity(Guid::from_bytes([0xA1; 16])),
        item(ext_type::SID, metadata::SID),
        item(ext_type::TS_ID, [1, 0, 0, 0]),
        item(ext_type::INSTANCE_INFO, [7; 24]),
        item(ext_type::STACK_TRACE32, [9; 16]),
        item(ext_type::STACK_TRACE64, [9; 24]),
        item(ext_type::PEBS_INDEX, [1; 8]),
        item(ext_type::PMC_COUNTERS, [2; 16]),
        item(ext_type::PSM_KEY, *b"k\0e\0y\0\0\0"),
        item(ext_type::EVENT_KEY, [3; 8]),
        item(ext_type::PROV_TRAITS, trace::traits("Contoso.Sample", Some(trace::GROUP))),
        item(ext_type::PROCESS_START_KEY, [4; 8]),
        item(ext_type::CONTROL_GUID, trace::GROUP.to_bytes()),
        item(99, [5; 3]),
    ];
    event
}

/// Returns manifest events: with every kind of field, without data, and from a provider that its
/// traits identify.
fn by_manifest() -> Vec<EventRecord> {
    let mut user_data = vec![0x07, 2, 0]; // flags and count
    user_data.extend([0x10, 0, 0, 0, 0x20, 0, 0, 0]); // numbers
    user_data.extend([0xFF, 0xFF, 1, 0]); // pair
    user_data.extend([3, 0, 0, 0, 0xAA, 0xBB, 0xCC]); // length and blob
    user_data.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]); // address
    user_data.extend(b"ab\0\0"); // tag
    user_data.extend([0x22, 0, 0, 0xC0]); // status
    user_data.extend([0x00, 0x10, 0, 0, 0, 0x80, 0xFF, 0xFF]); // owner
    user_data.extend([1, 0, 0, 0]); // on
    user_data.extend([1, 0x11, 2, 0x22, 0x23]); // parts
    let descriptor =
        |id| EventDescriptor { id, level: 17, task: 7, opcode: 20, ..EventDescriptor::default() };
    let everything = EventRecord {
        provider: trace::MANIFEST_PROVIDER,
        descriptor: descriptor(3),
        user_data,
        ..EventRecord::default()
    };
    let empty = EventRecord {
        provider: trace::MANIFEST_PROVIDER,
        descriptor: descriptor(4),
        ..EventRecord::default()
    };
    let mut by_traits = trace::manifest_event(1, 0);
    by_traits.provider = Guid::from_bytes([0x5A; 16]);
    let mut traits = trace::traits("Fixture.Control", Some(trace::GROUP));
    traits.extend([0x13, 0, 2]);
    traits.extend(trace::MANIFEST_PROVIDER.to_bytes());
    traits[0] += 0x13;
    by_traits.extended = vec![item(ext_type::PROV_TRAITS, traits)];
    vec![everything, empty, by_traits, trace::manifest_event(2, 0)]
}

/// Returns events without metadata or with damaged metadata.
fn undescribed() -> Vec<EventRecord> {
    let mut unknown = trace::manifest_event(4, 0);
    unknown.descriptor.version = 9;
    let mut damaged = trace::trace_logging_event(1, 0);
    damaged.extended[0].data[0] = 0xFF;
    damaged.extended[1].data.truncate(20);
    let mut short = trace::manifest_event(0, 0);
    short.user_data.truncate(9);
    vec![unknown, damaged, short]
}

/// Returns the events of packets: of every form, in fragments, and without their start.
fn captured() -> Vec<EventRecord> {
    let ethernet = packets::ethernet(0x0800, &packets::ipv4(b"x"));
    let part = |keywords, bytes: &[u8]| packets::fragment(0, keywords, 8, bytes);
    vec![
        part(packets::WHOLE | packets::ETHERNET | packets::SEND, &ethernet),
        packets::reception(0, 8),
        part(packets::WHOLE | packets::WLAN, &packets::wlan(0x42, &packets::ipv4(b"y"))),
        part(packets::WHOLE | packets::TUNNEL, &packets::ipv6(b"z")),
        part(packets::START | packets::WIRELESS_WAN, &[0x45]),
        part(packets::END | packets::WIRELESS_WAN, &[0, 0, 1]),
        part(packets::END | packets::ETHERNET, &ethernet),
        packets::switched(0, packets::WHOLE, 3, 17, &ethernet),
    ]
}

/// Returns files with damaged buffers, with damaged records, with a buffer that was never written,
/// and with fewer buffers than the header states.
fn damaged() -> [Seed; 4] {
    let event = || vec![trace::manifest_event(0, 0), trace::manifest_event(1, 0)];
    let sound = file(SMALL, &[&event(), &event(), &event()]);
    let [first, second, third] = [SMALL, 2 * SMALL, 3 * SMALL];
    let mut buffers = sound.clone();
    put(&mut buffers, first, &[0, 8]); // another size
    put(&mut buffers, second + 0x30, &[0, 0x20]); // more used bytes than the buffer has
    put(&mut buffers, third + 0x34, &[0x60]); // compressed
    let mut records = sound.clone();
    put(&mut records, first + BUFFER_HEADER, &[1, 2, 3, 4]); // no record
    put(&mut records, second + BUFFER_HEADER, &[79, 0]); // a record shorter than its header
    put(&mut records, third + BUFFER_HEADER + 86, &[0xFF, 0xFF]); // an item past its record
    let mut never_written = sound.clone();
    never_written[first..second].fill(0);
    let mut too_few = sound;
    put(&mut too_few, 0x8C, &[9]); // BuffersWritten
    too_few.truncate(third);
    [
        Seed::new("damaged_buffers.etl", buffers),
        Seed::new("damaged_records.etl", records),
        Seed::new("never_written.etl", never_written),
        Seed::new("too_few_buffers.etl", too_few),
    ]
}

/// Returns events that are out of order over many days, and events at a clock's first and last
/// times.
fn odd_times() -> Vec<EventRecord> {
    const DAY: i64 = 864_000_000_000;
    let start = header(ClockType::Qpc).start_clock;
    let days = [7, 3, 11, 1, 2, 13, 5, 4, 17, 0, 23, 29, 8, 6, 31, 9, 12, 10, 15, 14];
    let times = days.map(|day| start + day * DAY);
    let event = |timestamp| EventRecord { timestamp, ..EventRecord::default() };
    let ends = [i64::MIN, i64::MAX];
    ends.into_iter().chain(times).map(event).collect()
}

/// Returns the file of a session with an unknown clock and without per-processor buffers.
fn unknown_clock() -> Vec<u8> {
    let mut file = mixed(header(ClockType::Qpc), 2, Losses::default());
    put(&mut file, 0x88, &[0, 0, 0, 0x10]); // LogFileMode
    put(&mut file, 0x178, &[9]); // ReservedFlags
    file
}

/// Returns files that are rejected, each for a different reason.
fn refused() -> [Seed; 4] {
    let file = mixed(header(ClockType::Qpc), 0, Losses::default());
    let changed = |at, bytes: &[u8]| {
        let mut file = file.clone();
        put(&mut file, at, bytes);
        file
    };
    [
        Seed::new("too_short.etl", &file[..0x100]),
        Seed::new("no_buffer_size.etl", changed(0, &[7])),
        Seed::new("compressed.etl", changed(0x34, &[0x60])),
        Seed::new("no_header_event.etl", changed(BUFFER_HEADER + 6, &[1])),
    ]
}

/// Returns a compressed file, the same file with damage, and a truncated file.
fn compressed() -> [Seed; 3] {
    let header =
        LogFileHeader { log_file_mode: log_file_mode::COMPRESSED, ..header(ClockType::Qpc) };
    let (sound, _) = trace::file(header, 20, Losses::default());
    let mut damaged = sound.clone();
    let near_the_end = damaged.len() - 200;
    put(&mut damaged, near_the_end, &[0xFF; 16]);
    let cut = &sound[..sound.len() - 200];
    [
        Seed::new("compressed_buffers.etl", sound.clone()),
        Seed::new("compressed_damaged.etl", damaged),
        Seed::new("compressed_cut.etl", cut),
    ]
}

/// Returns compressed blocks, each after its size.
pub fn compression() -> Vec<Seed> {
    let block = |name, size: u32, block: &[u8]| {
        let [a, b, c, _] = size.to_le_bytes();
        Seed::new(name, [&[a, b, c], block].concat())
    };
    let long = [b"a".repeat(70_000), b"b".repeat(300), b"c".repeat(280)].concat();
    let (file, _) = trace::file(header(ClockType::Qpc), 20, Losses::default());
    let compressed = compress(&file[WRITTEN..]);
    let size = u32::try_from(file.len() - WRITTEN).expect("it is small");
    vec![
        block("literals", 26, b"\x3f\0\0\0abcdefghijklmnopqrstuvwxyz"),
        block("overlapping", 300, b"\xff\xff\xff\x1fabc\x17\0\x0f\xff\x26\x01"),
        block("long_matches", 70_580, &compress(&long)),
        block("surplus_flags", 32, &compress(&(0..32).collect::<Vec<u8>>())),
        block("records", size, &compressed),
        block("cut", size, &compressed[..compressed.len() / 2]),
        block("before_the_start", 4, b"\0\0\0\x40a\x08\0"),
        block("wrong_length", 40, b"\0\0\0\x40a\x07\0\x0f\xff\x15\0"),
    ]
}

/// A property of a session: its name and the test for it.
type Property = (&'static str, fn(&Written) -> bool);

const SESSIONS: [Property; 11] = [
    ("empty", |it| it.events == 0 && it.buffers == 0),
    ("corrected", |it| it.corrected && it.events > 0),
    ("qpc", |it| !it.corrected && it.events > 1 && it.clock == ClockType::Qpc),
    // The clock and the start time must match, which only a corrected header guarantees.
    ("system_time", |it| it.events > 1 && it.clock == ClockType::SystemTime),
    ("cycles", |it| !it.corrected && it.events > 1 && it.clock == ClockType::CpuCycles),
    ("processors", |it| it.processors > 1 && it.events > 2),
    ("replaced", |it| it.replaced > 0 && it.buffers > 1),
    ("losses", |it| it.lost.0 > 0 && it.lost.1 > 0 && it.events > 0),
    ("large", |it| it.largest > 0x1000),
    ("compressed", |it| it.compressed && it.events > 2),
    ("refused", |it| it.refused > 0 && it.events > 0 && it.items > 0),
];

/// Returns input for `arbitrary`, which has no encoder: the first pseudo-random bytes that decode
/// to a session with the seed's properties.
pub fn etl_round_trip() -> Vec<Seed> {
    const MAX_TRIES: u64 = 20_000;
    let mut missing = SESSIONS.to_vec();
    let mut seeds = Vec::new();
    for number in 1..MAX_TRIES {
        let bytes = candidate(number);
        let session = Session::arbitrary_take_rest(Unstructured::new(&bytes));
        let Ok(session) = session else { continue };
        let written = check(&session);
        if let Some(at) = missing.iter().position(|(_, wanted)| wanted(&written)) {
            seeds.push(Seed::new(missing.remove(at).0, bytes));
        }
        if missing.is_empty() {
            return seeds;
        }
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    panic!("no session in {MAX_TRIES} is {names:?}");
}

/// Returns pseudo-random bytes with strings, small numbers and many odd bytes; `arbitrary` reads an
/// odd byte as "another step follows".
fn candidate(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let length = [256, 1024, 2048, MAX_BYTES][usize::from(next()[0] % 4)];
    (0..length)
        .map(|_| match next() {
            [0..=95, ..] => 1,
            [96..=159, letter, ..] => b'a' + letter % 26,
            [160..=207, small, ..] => small & 3,
            [_, any, ..] => any,
        })
        .collect()
}
