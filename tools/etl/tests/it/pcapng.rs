//! Compares pcapng files with the packets that python-pcapng reads from them.

use std::io::Cursor;

use crate::run::{Folder, Ran};
use etl::pcapng::{Capture, Summary, Writer};
use etl_file::write::{ClassicRecord, Finish, LogFile};
use etl_file::{ClockType, EncodedRecord, Event, EventRecord, Guid, LogFileHeader, Trace};
use etl_fixtures::packets::{
    END, ETHERNET, RECEIVE, SEND, START, TUNNEL, WHOLE, WIRELESS_WAN, WLAN, ethernet, fragment,
    ipv4, ipv6, reception, switched, wlan,
};
use etl_fixtures::{decoders, kernel_records, trace};
use serde_json::{Value, json};

/// Returns the header of the traces.
fn header() -> LogFileHeader {
    LogFileHeader { start_time: trace::START, buffer_size: 0x2_0000, ..LogFileHeader::default() }
}

/// Returns the time of a reading of the traces' clock, in a packet's form.
fn nanoseconds(reading: i64) -> Value {
    let time = header().session_clock().to_file_time(reading);
    json!(u64::try_from(time.unix_nanos()).unwrap())
}

/// The names of a trace, and of the file that the command writes.
const TRACE: &str = "trace.etl";
const OUT: &str = "packets.pcapng";

/// Returns a folder with a trace.
fn folder<R: trace::Recorded>(records: impl IntoIterator<Item = R>) -> Folder {
    Folder::with(TRACE, trace::of_records(header(), 1 << 40, records))
}

/// Runs `etl dump`.
fn run(files: &Folder, options: &[&str]) -> Ran {
    let arguments = [&["dump", "--format", "pcapng", "--out", OUT, TRACE], options].concat();
    let ran = files.etl(&arguments);
    assert_eq!(ran.bytes, b"");
    ran
}

/// Returns the interfaces and the packets of the file that a successful command writes, and its
/// error output.
fn blocks(files: &Folder, options: &[&str]) -> (Vec<Value>, Vec<Value>, String) {
    let said = run(files, options).ok().said;
    let mut lines = decoders::dump("pcapng_dump.py", &files.path(OUT));
    assert_eq!(lines.remove(0)["version"], json!([1, 0]));
    let is_interface = |line: &Value| line["kind"] == "interface";
    let (interfaces, packets) = lines.into_iter().partition(is_interface);
    (interfaces, packets, said)
}

/// Returns the bytes of a packet.
fn data(packet: &Value) -> Vec<u8> {
    let digits = packet["data"].as_str().unwrap().as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// Writes these events, and returns the file and the writer's summary.
fn written(events: &[EventRecord]) -> (Vec<u8>, Summary) {
    let empty = trace::of_records(header(), 1, Vec::<EventRecord>::new());
    let trace = Trace::parse(&empty).unwrap();
    let mut writer = Writer::new(Vec::new(), trace.header(), Capture::default()).unwrap();
    for record in events {
        let event = Event { record: record.clone(), ..Event::default() };
        writer.event(&event.view(), None).unwrap();
    }
    writer.finish()
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn packets_of_every_medium_have_their_link_type_time_and_direction() {
    let (v4, v6) = (ipv4(b"four"), ipv6(b"six"));
    let packets = [
        (ETHERNET | SEND, 8, ethernet(0x0800, &v4)),
        (ETHERNET | RECEIVE, 9, ethernet(0x86DD, &v6)),
        (WLAN | RECEIVE, 10, wlan(0x02, &v4)),
        (WIRELESS_WAN | SEND, 11, v6.clone()),
        (TUNNEL | RECEIVE, 12, v6),
        (ETHERNET, 8, ethernet(0x0806, &[7; 28])),
    ];
    let records = packets
        .iter()
        .zip(1..)
        .map(|((keywords, lower, bytes), n)| fragment(1000 * n, WHOLE | keywords, *lower, bytes));
    let (interfaces, found, said) = blocks(&folder(records), &[]);
    assert!(said.contains("6 packets of 5 interfaces; 0 other records are omitted"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let links: Vec<_> = interfaces.iter().map(|interface| interface["link"].as_u64()).collect();
    assert_eq!(links, [1, 1, 105, 101, 101].map(Some));
    let names: Vec<_> = interfaces.iter().map(|interface| interface["if_name"].as_str()).collect();
    let expected = ["Ethernet:8", "Ethernet:9", "802.11:10", "wireless WAN:11", "tunnel:12"];
    assert_eq!(names, expected.map(Some));
    assert_eq!(interfaces[0]["if_description"], "Ethernet, interface index 8");
    let above = "Ethernet, interface index 9, filter above interface index 8";
    assert_eq!(interfaces[1]["if_description"], above);
    let directions = ["outbound", "inbound", "inbound", "outbound", "inbound", "NA"];
    let expected = packets.iter().zip(directions).zip([0, 1, 2, 3, 4, 0]).zip(1..);
    assert_eq!(found.len(), packets.len());
    for (packet, ((((_, _, bytes), direction), interface), n)) in found.iter().zip(expected) {
        assert_eq!(packet["interface"], interface, "{n}");
        assert_eq!(packet["nanoseconds"], nanoseconds(1000 * n), "{n}");
        assert_eq!(packet["resolution"], 1e-9, "{n}");
        assert_eq!(data(packet), *bytes, "{n}");
        assert_eq!(packet["original"], bytes.len(), "{n}");
        assert_eq!(packet["epb_flags"], direction, "{n}");
        assert_eq!(packet["opt_comment"], "process 85, thread 68", "{n}");
        // The process that runs when a packet is received is unrelated to it.
        let sender = (direction == "outbound").then(|| json!([85, 68]));
        assert_eq!(packet.get("epb_processid_threadid"), sender.as_ref(), "{n}");
    }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn fragments_of_a_packet_are_joined() {
    let of = |thread, processor, record: EventRecord| {
        (processor, EventRecord { thread_id: thread, ..record })
    };
    let part = |at, keywords, text: &str| fragment(at, ETHERNET | keywords, 8, text.as_bytes());
    let events = [
        of(1, 0, part(10, SEND | START, "first packet ")),
        of(2, 1, part(11, SEND | START, "second packet ")),
        // A packet of the other direction interrupts the thread.
        of(1, 0, part(12, RECEIVE | START, "third packet, ")),
        of(1, 0, part(13, RECEIVE | END, "its end")),
        of(2, 1, part(14, SEND, "continues ")),
        of(1, 0, part(15, SEND | END, "ends")),
        of(2, 1, part(16, SEND | END, "ends")),
        // All idle threads have the id 0.
        of(0, 0, part(17, RECEIVE | START, "fourth packet ")),
        of(0, 1, part(18, RECEIVE | START, "fifth packet ")),
        of(0, 0, part(19, RECEIVE | END, "ends")),
        of(0, 1, part(20, RECEIVE | END, "ends")),
    ];
    let header = LogFileHeader { processors: 2, ..header() };
    let buffers = [0, 1].map(|processor| {
        let records = events.iter().filter(|(of, _)| *of == processor).map(|(_, record)| record);
        trace::buffer(header.buffer_size, processor, records)
    });
    let files = self::folder(Vec::<EventRecord>::new());
    files.write(TRACE, trace::of_buffers(header, 1000, buffers));
    let (_, packets, said) = blocks(&files, &[]);
    assert_eq!(said.lines().count(), 1, "{said}");
    let texts: Vec<_> =
        packets.iter().map(|packet| String::from_utf8(data(packet)).unwrap()).collect();
    let expected = [
        "third packet, its end", "first packet ends", "second packet continues ends",
        "fourth packet ends", "fifth packet ends",
    ];
    assert_eq!(texts, expected);
    // A packet has the time of its last fragment, so that times do not decrease.
    let times: Vec<_> = packets.iter().map(|packet| packet["nanoseconds"].clone()).collect();
    assert_eq!(times, [13, 15, 16, 19, 20].map(nanoseconds));
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn parts_that_cannot_be_written_are_counted() {
    let whole = |keywords| fragment(1, WHOLE | keywords, 8, &ethernet(0x0800, b"x"));
    let cut = |mut record: EventRecord, size| {
        record.user_data.truncate(size);
        record
    };
    let large = vec![7; 0xF000];
    let mut events = vec![
        whole(ETHERNET),
        fragment(2, ETHERNET | END, 8, b"no start"),
        fragment(3, ETHERNET, 8, b"no start"),
        fragment(4, ETHERNET | START, 8, b"no end, as another packet starts"),
        fragment(5, ETHERNET | START, 8, b"no end"),
        whole(0),
        whole(0x2),
        whole(0x8_0000),
        // No version of IP starts with 2.
        fragment(6, WHOLE | TUNNEL, 8, &[0x20; 20]),
        cut(whole(ETHERNET), 11),
        cut(whole(ETHERNET), 20),
        cut(switched(7, WHOLE, 3, 1, b"x"), 40),
        cut(reception(8, 8), 30),
        reception(9, 9),
        reception(10, 9),
        EventRecord { user_data: [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].into(), ..reception(11, 9) },
    ];
    events.push(fragment(12, ETHERNET | START, 20, &large));
    events.extend((0..4).map(|n| fragment(13 + n, ETHERNET, 20, &large)));
    events.push(fragment(17, ETHERNET | END, 20, &large));
    let (_, summary) = written(&events);
    let expected = Summary {
        events: 22,
        packets: 1,
        interfaces: 1,
        malformed: 4,
        without_start: 2,
        incomplete: 2,
        too_large: 1,
        unknown_medium: 4,
        unknown_media: 0x8_8002,
        unused_metadata: 3,
        clamped: 1,
        ..Summary::default()
    };
    assert_eq!(summary, expected);
    let files = self::folder(&events);
    let (_, packets, said) = blocks(&files, &[]);
    assert_eq!(packets.len(), 1);
    for line in [
        "1 packets of 1 interfaces; 0 other records are omitted",
        "4 packet events end within a field, and are omitted",
        "2 fragments have no first fragment, and are omitted",
        "2 packets have no last fragment, and are omitted",
        "1 packets are longer than 262144 bytes, and are omitted",
        "4 packets of an unknown medium are omitted (keywords 0x88002)",
        "3 descriptions of a reception belong to no packet",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}

#[test]
fn a_bounded_number_of_packets_interfaces_and_receptions_is_in_memory() {
    let start = |lower: u32, bytes: &[u8]| fragment(1, ETHERNET | START, lower, bytes);
    let mut events: Vec<_> = (0..5000).map(|lower| start(lower, b"start")).collect();
    events.push(fragment(2, ETHERNET | END, 0, b"end"));
    events.push(fragment(3, ETHERNET | END, 4999, b"end"));
    let (_, summary) = written(&events);
    assert_eq!((summary.packets, summary.without_start), (1, 1));
    assert_eq!(summary.incomplete, 4999);
    // 16 MiB are 273 fragments of this size.
    let large = vec![7; 0xF000];
    let mut events: Vec<_> = (0..400).map(|lower| start(lower, &large)).collect();
    events.extend((0..400).map(|lower| fragment(2, ETHERNET | END, lower, b"end")));
    let (_, summary) = written(&events);
    assert_eq!((summary.packets, summary.without_start, summary.incomplete), (273, 127, 127));
    let packet = ethernet(0x0800, b"x");
    let events: Vec<_> =
        (0..5000).map(|lower| fragment(1, ETHERNET | WHOLE, lower, &packet)).collect();
    let (_, summary) = written(&events);
    assert_eq!((summary.interfaces, summary.packets, summary.without_interface), (4096, 4096, 904));
    let events: Vec<_> = (0..5000).map(|lower| reception(1, lower)).collect();
    assert_eq!(written(&events).1.unused_metadata, 5000);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn truncated_packets_have_the_length_that_their_ip_header_states() {
    const TRUNCATED: u64 = 0x200_0000;
    let (v4, v6) = (ipv4(&[1; 100]), ipv6(&[1; 100]));
    let part = |keywords, bytes: &[u8]| fragment(1, WHOLE | keywords, 8, &bytes[..60]);
    let events = [
        part(ETHERNET | TRUNCATED, &ethernet(0x0800, &v4)),
        part(ETHERNET | TRUNCATED, &ethernet(0x86DD, &v6)),
        part(WIRELESS_WAN, &v4),
        part(WIRELESS_WAN, &v6),
        // One tag of a VLAN, and two.
        part(ETHERNET | TRUNCATED, &ethernet(0x8100, &[&[0, 5, 8, 0], &*v4].concat())),
        part(ETHERNET, &ethernet(0x88A8, &[&[0, 5, 0x81, 0, 0, 6, 0x86, 0xDD], &*v6].concat())),
        // Only IP packets have a length.
        part(ETHERNET | TRUNCATED, &ethernet(0x88CC, &v4)),
        // If the adapter segments packets, the length is missing.
        fragment(1, WHOLE | ETHERNET, 8, &ethernet(0x0800, &[0x45, 0, 0, 0, 0, 0])),
    ];
    let (_, packets, _) = blocks(&folder(&events), &[]);
    let lengths: Vec<_> = packets.iter().map(|packet| packet["original"].as_u64()).collect();
    assert_eq!(lengths, [14 + 128, 14 + 148, 128, 148, 18 + 128, 22 + 148, 60, 20].map(Some));
    let comments: Vec<_> = packets.iter().map(|packet| packet["opt_comment"].as_str()).collect();
    assert_eq!(comments[0], Some("process 85, thread 68, truncated"));
    assert_eq!(comments[3], Some("process 85, thread 68"));
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn packets_of_802_11_have_their_reception_and_are_not_protected() {
    let ip = ipv4(b"decrypted");
    let events = [
        reception(1, 8),
        fragment(2, WLAN | RECEIVE | WHOLE, 8, &wlan(0x42, &ip)),
        fragment(3, WLAN | RECEIVE | WHOLE, 8, &wlan(0x02, &ip)),
    ];
    let (_, packets, said) = blocks(&folder(&events), &[]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(data(&packets[0]), wlan(0x02, &ip));
    let expected = "process 85, thread 68, PHY 7, 2412 MHz, -60 dBm, 65 Mbit/s";
    assert_eq!(packets[0]["opt_comment"], expected);
    assert_eq!(packets[1]["opt_comment"], "process 85, thread 68");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn ports_of_a_virtual_switch_are_interfaces() {
    let packet = ethernet(0x0800, &ipv4(b"x"));
    let events = [
        switched(1, WHOLE | ETHERNET | RECEIVE, 3, 0, &packet),
        switched(2, WHOLE | SEND, 4, 17, &packet),
        switched(3, WHOLE | SEND, 3, 18, &packet),
        fragment(4, WHOLE | ETHERNET, 8, &packet),
    ];
    let (interfaces, packets, said) = blocks(&folder(&events), &[]);
    assert_eq!(said.lines().count(), 1, "{said}");
    let names: Vec<_> = interfaces.iter().map(|interface| interface["if_name"].as_str()).collect();
    assert_eq!(names, ["8:Port-3", "8:Port-4", "Ethernet:8"].map(Some));
    let port = "Ethernet, interface index 8, virtual switch port 3 Port-3, Synthetic NIC-3";
    assert_eq!(interfaces[0]["if_description"], port);
    let found: Vec<_> = packets
        .iter()
        .map(|packet| {
            (packet["interface"].as_u64().unwrap(), packet["opt_comment"].as_str().unwrap())
        })
        .collect();
    let by = "process 85, thread 68";
    let (in_17, in_18) = (format!("{by}, VLAN 17"), format!("{by}, VLAN 18"));
    assert_eq!(found, [(0, by), (1, in_17.as_str()), (0, in_18.as_str()), (2, by)]);
    assert!(packets.iter().all(|found| data(found) == packet));
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn interfaces_have_the_names_that_a_merged_trace_contains() {
    let adapter = ClassicRecord {
        class: Guid::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0),
        opcode: 36,
        timestamp: 500,
        payload: kernel_records::network_interface(),
        ..ClassicRecord::default()
    };
    let of_adapter = fragment(1, WHOLE | ETHERNET, 20, &ethernet(0x0800, b"x"));
    // The adapter below a filter that the trace does not describe.
    let mut of_filter = fragment(1, WHOLE | ETHERNET, 21, &ethernet(0x0800, b"x"));
    of_filter.user_data[..4].copy_from_slice(&20_u32.to_le_bytes());
    for packet in [of_adapter, of_filter] {
        let packet = (1, EncodedRecord::new(&packet).unwrap());
        // Merging adds the description at the end.
        let adapter = (500, EncodedRecord::from_bytes(&adapter.encode().unwrap()).unwrap());
        let (interfaces, _, said) = blocks(&folder([packet, adapter]), &[]);
        assert!(said.contains("1 packets of 1 interfaces; 1 other records are omitted"), "{said}");
        assert_eq!(interfaces[0]["if_name"], "Ethernet");
        assert_eq!(interfaces[0]["if_hardware"], "Example GbE Adapter");
    }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn packets_are_selected_as_events() {
    let packet = ethernet(0x0800, b"x");
    let at =
        |at, process_id| EventRecord { process_id, ..fragment(at, WHOLE | ETHERNET, 8, &packet) };
    let files = self::folder([at(10, 1), at(20, 2), at(30, 2), trace::trace_logging_event(1, 40)]);
    let time = header().session_clock().to_file_time(20).to_string();
    let (_, packets, said) = blocks(&files, &["--to", &time, "--process", "2"]);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0]["nanoseconds"], nanoseconds(20));
    assert!(said.contains("1 packets of 1 interfaces; 0 other records"), "{said}");
    // A selection without packets is an empty file.
    let (interfaces, packets, said) = blocks(&files, &["--process", "7"]);
    assert_eq!((interfaces.len(), packets.len()), (0, 0));
    assert!(said.contains("0 packets of 0 interfaces"), "{said}");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn the_output_does_not_depend_on_the_number_of_threads() {
    // Every packet ends three packets later, so that some end in the next of many batches.
    let part = |n: u8, round: i64, after: i64, keywords| EventRecord {
        thread_id: u32::from(1 + n % 5),
        ..fragment(
            1000 * round + 10 * i64::from(n) + after,
            ETHERNET | SEND | keywords,
            8,
            &[n; 500],
        )
    };
    let each = (0..8).flat_map(|round| (0..100).map(move |n| (round, n)));
    let mut events: Vec<_> = each
        .clone()
        .flat_map(|(round, n)| [part(n, round, 0, START), part(n, round, 35, END)])
        .collect();
    events.sort_by_key(|event| event.timestamp);
    let files = self::folder(&events);
    assert!(files.read(TRACE).len() > 12 * (64 << 10));
    let (_, packets, said) = blocks(&files, &["--threads", "1"]);
    assert!(said.contains("800 packets of 1 interfaces; 0 other records"), "{said}");
    assert!(packets.iter().zip(each).all(|(packet, (_, n))| data(packet) == [n; 1000]));
    let one = files.read(OUT);
    for threads in ["2", "3", "7"] {
        assert_eq!(run(&files, &["--threads", threads]).ok().said, said, "{threads}");
        assert!(files.read(OUT) == one, "{threads}");
    }
}

#[test]
fn a_trace_without_packets_is_an_error() {
    let files = folder([EventRecord {
        provider: Guid::from_u128(0x4d4f_80d9_c8bd_4d73_bb5b_19c9_0402_c5ac),
        ..fragment(1, WHOLE | ETHERNET, 8, b"x")
    }]);
    let Ran { code, said, .. } = run(&files, &[]);
    assert_eq!(code, Some(1));
    let expected = "the trace contains no packets of Microsoft-Windows-NDIS-PacketCapture";
    assert!(said.contains(expected), "{said}");
    let left: Vec<_> = std::fs::read_dir(files.path("")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Returns a packet of Microsoft-Windows-PktMon in the published layout.
fn of_pktmon(
    id: u16,
    at: i64,
    [direction, kind, component]: [u16; 3],
    bytes: &[u8],
) -> EventRecord {
    let logged = u16::try_from(bytes.len()).unwrap();
    let mut user_data = 77_u64.to_le_bytes().to_vec();
    let numbers = [1, 2, direction, kind, component, 4, 5];
    user_data.extend(numbers.into_iter().flat_map(u16::to_le_bytes));
    let drop: [u32; 2] = if id == 170 { [230, 9] } else { [0, 0] };
    user_data.extend(drop.into_iter().flat_map(u32::to_le_bytes));
    user_data.extend([logged + 40, logged].into_iter().flat_map(u16::to_le_bytes));
    user_data.extend(bytes);
    let mut event = EventRecord { user_data, ..fragment(at, 0, 8, b"") };
    event.provider = Guid::from_u128(0x4d4f_80d9_c8bd_4d73_bb5b_19c9_0402_c5ac);
    event.descriptor.id = id;
    event
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn packets_of_pktmon_have_their_component_direction_and_drop() {
    let (frame, ip) = (ethernet(0x0800, &ipv4(b"four")), ipv6(b"six"));
    let mut cut = of_pktmon(160, 6, [3, 1, 13], &frame);
    cut.user_data.pop();
    let files = folder([
        of_pktmon(160, 1, [3, 1, 13], &frame),
        of_pktmon(160, 2, [4, 3, 14], &ip),
        of_pktmon(170, 3, [1, 1, 13], &frame),
        of_pktmon(160, 4, [6, 2, 13], &wlan(0x02, &ipv4(b"x"))),
        of_pktmon(160, 5, [6, 9, 13], &frame),
        cut,
    ]);
    let (interfaces, packets, said) = blocks(&files, &[]);
    let links: Vec<_> = interfaces.iter().map(|interface| interface["link"].as_u64()).collect();
    assert_eq!(links, [1, 101, 105].map(Some));
    assert_eq!(interfaces[0]["if_name"], "component 13");
    let flags: Vec<_> = packets.iter().map(|packet| &packet["epb_flags"]).collect();
    assert_eq!(flags, ["inbound", "outbound", "NA", "outbound"]);
    assert_eq!((data(&packets[0]), data(&packets[1])), (frame.clone(), ip));
    assert_eq!(packets[0]["original"], frame.len() + 40);
    let comment = |at: usize| packets[at]["opt_comment"].as_str().unwrap();
    let properties = "process 85, thread 68, group 77, packet 1, appearance 2, direction";
    assert_eq!(comment(0), format!("{properties} 3, component 13, edge 4, filter 5"));
    assert!(comment(2).ends_with("filter 5, dropped for reason 230, at 9"), "{}", comment(2));
    for text in
        ["4 packets of 3 interfaces", "1 packets of an unknown medium", "1 packet events end"]
    {
        assert!(said.contains(text), "{text}: {said}");
    }
}

#[test]
fn damage_is_reported_before_the_lack_of_packets() {
    let files =
        self::folder([trace::trace_logging_event(1, 40), trace::trace_logging_event(2, 50)]);
    let mut bytes = files.read(TRACE);
    let second = usize::try_from(header().buffer_size).unwrap();
    bytes[second + 0x48..][..4].copy_from_slice(&[1, 2, 3, 4]);
    files.write(TRACE, bytes);
    let damage = files.etl(&["dump", "--format", "json", TRACE]).said;
    assert_eq!(damage.lines().count(), 1, "{damage}");
    let Ran { code, said, .. } = run(&files, &[]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with(&damage) && said.contains("contains no packets"), "{said}");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn losses_and_the_session_are_named() {
    let packet = fragment(1, WHOLE | ETHERNET, 8, &ethernet(0x0800, b"x"));
    let files = self::folder([&packet]);
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
    log.append(&trace::buffer(0x1000, 0, [packet]), 2).unwrap();
    let finish = Finish { events_lost: 7, buffers_lost: 2, ..Finish::default() };
    files.write(TRACE, log.finish(finish).unwrap().into_inner());
    let (_, _, said) = blocks(&files, &[]);
    assert!(said.contains("the session lost 7 events and 2 buffers"), "{said}");
    let section = decoders::dump("pcapng_dump.py", &files.path(OUT)).remove(0);
    let expected = "Packets of the ETW session Fixture, which lost 7 events and 2 buffers";
    assert_eq!(section["opt_comment"], expected);
}
