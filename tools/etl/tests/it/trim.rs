//! Parts of traces: `etl merge` with a selection.

use crate::kernel_cli::{APP, NTOSKRNL, image, kernel, perfinfo};
use crate::run::Folder;
use etl_file::write::{ClassicRecord, Losses};
use etl_file::{
    ClockType, EncodedRecord, EventRecord, ExtendedItem, FileTime, LogFileHeader, Trace, ext_type,
};
use etl_fixtures::{decoders, kernel_records, schema_events, trace};
use serde_json::Value as Json;

/// The trace, and a part of it.
const WHOLE: &str = "whole.etl";
const PART: &str = "part.etl";

/// Cuts out a part, and returns the command's output.
fn cut(folder: &Folder, options: &[&str]) -> String {
    folder.etl(&[&["merge", WHOLE, "-o", PART], options].concat()).ok().text()
}

/// Returns a file's events as JSON, without their offsets in the file.
fn events(folder: &Folder, name: &str, options: &[&str]) -> Vec<Json> {
    let arguments = [&["dump", "--format", "json", "--names", name], options].concat();
    let lines = folder.etl(&arguments).ok().lines().into_iter();
    let events = lines.filter(|line| line["record"] == "event");
    let placeless = events.map(|mut event| {
        let members = event.as_object_mut().unwrap();
        for member in ["buffer", "offset"] {
            members.remove(member).unwrap();
        }
        event
    });
    placeless.collect()
}

/// Formats the time of a clock reading for use as an option.
fn time(reading: i64) -> String {
    LogFileHeader::default().session_clock().to_file_time(reading).to_string()
}

/// Returns the name and clock reading of each event.
fn names(events: &[Json]) -> Vec<(&str, i64)> {
    let name = |event: &'_ Json| event["timestamp"].as_i64().unwrap();
    events.iter().map(|event| (event["event"].as_str().unwrap_or("-"), name(event))).collect()
}

/// Returns a file with kernel events about two processes.
fn kernel_trace() -> Vec<u8> {
    let stack = |at: i64, of: i64| {
        (at, kernel(0x1820, 2, at, kernel_records::stack(of, 7, 9, &[NTOSKRNL + 16, APP + 32])))
    };
    let terminate = |at, process: u8| (at, kernel(0x030b, 2, at, vec![process, 0, 0, 0]));
    let name = |at| {
        let mut payload = 0x1234_u64.to_le_bytes().to_vec();
        payload.extend(kernel_records::utf16(r"\Device\x"));
        (at, kernel(0x0400, 2, at, payload))
    };
    let records: Vec<(i64, EncodedRecord)> = vec![
        (100, kernel(0x0303, 2, 100, kernel_records::process(7, "app.exe"))),
        (105, kernel(0x0503, 3, 105, kernel_records::thread(7, 9, "worker"))),
        (110, image(110, 4, NTOSKRNL, r"\SystemRoot\system32\ntoskrnl.exe")),
        (130, image(130, 7, APP, r"\Device\HarddiskVolume3\app.exe")),
        terminate(200, 7),
        stack(205, 200),
        (210, perfinfo(0x0524, 210, kernel_records::switch(9))),
        terminate(300, 7),
        stack(305, 300),
        (310, kernel(0x7777, 1, 310, vec![1; 5])),
        terminate(400, 7),
        stack(405, 400),
        (500, kernel(0x0301, 2, 500, kernel_records::process(8, "late.exe"))),
        (510, kernel(0x7777, 1, 510, vec![1; 5])),
        (900, kernel(0x0304, 2, 900, kernel_records::process(6, "other.exe"))),
        name(910),
    ];
    trace::of_records(LogFileHeader::default(), 1000, records)
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn a_part_by_time_has_what_its_events_need() {
    let files = Folder::with(WHOLE, kernel_trace());
    let said = cut(&files, &["--from", &time(300), "--to", &time(400)]);
    assert!(said.contains("omitted 5 records that are not selected; 8 records are kept"), "{said}");
    let part = events(&files, PART, &[]);
    let expected = [
        ("DCStart", 100),
        ("DCStart", 105),
        ("DCStart", 110),
        ("DCStart", 130),
        ("Terminate", 300),
        ("Opcode(119)", 310),
        ("Terminate", 400),
        ("DCEnd", 900),
        ("Name", 910),
    ];
    assert_eq!(names(&part), expected);
    // The events have the same names and stacks as in the whole trace.
    let whole = events(&files, WHOLE, &[]);
    assert!(part.iter().all(|event| whole.contains(event)), "{part:#?}");
    assert!(part[4]["stack"].to_string().contains("app.exe+0x20"));
    assert_eq!(part[4]["process_name"], "app.exe");
    // The header event is a record, too.
    let lines = decoders::dump("dissect_kernel.py", &files.path(PART));
    assert_eq!(lines.len(), 12);
}

#[test]
fn an_event_never_gets_the_stack_of_another_thread() {
    let event = EventRecord { thread_id: 70, ..trace::manifest_event(0, 300) };
    let provider = event.provider.to_string();
    let stack = kernel_records::stack(300, 7, 9, &[NTOSKRNL + 16]);
    let records: Vec<(i64, EncodedRecord)> = vec![
        (300, kernel(0x030b, 2, 300, vec![7, 0, 0, 0])),
        (300, EncodedRecord::new(&event).unwrap()),
        (305, kernel(0x1820, 2, 305, stack)),
    ];
    let files =
        Folder::with(WHOLE, trace::of_records(LogFileHeader::default(), 400, records.clone()));
    let said = cut(&files, &["--provider", &provider]);
    assert!(said.contains("omitted 2 records that are not selected; 0 records are kept"), "{said}");
    assert_eq!(events(&files, PART, &[]), events(&files, WHOLE, &["--provider", &provider]));
    // The kernel event is missing altogether.
    let alone = trace::of_records(LogFileHeader::default(), 400, records[1..].to_vec());
    let alone = events(&Folder::with(WHOLE, &alone), WHOLE, &[]);
    assert_eq!(names(&alone), [("-", 300), ("Stack", 305)]);
    assert!(alone[0]["stack"].is_null(), "{alone:#?}");
}

#[test]
fn a_part_by_process_follows_names_and_threads() {
    let files = Folder::with(WHOLE, kernel_trace());
    for process in ["7", "APP.EXE"] {
        cut(&files, &["--process", process, "--to", &time(210)]);
        let part = events(&files, PART, &[]);
        let expected = [
            ("DCStart", 100),
            ("DCStart", 105),
            ("DCStart", 110),
            ("DCStart", 130),
            ("Terminate", 200),
            ("CSwitch", 210),
            ("DCEnd", 900),
            ("Name", 910),
        ];
        assert_eq!(names(&part), expected, "{process}");
        let dumped = events(&files, WHOLE, &["--process", process, "--to", &time(210)]);
        assert!(dumped.iter().any(|event| event["event"] == "Terminate"));
        assert!(dumped.iter().all(|event| event["process_name"] == "app.exe"), "{dumped:#?}");
    }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn a_part_by_provider_is_read_by_other_decoders() {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let (bytes, written) = trace::file(header, 200, Losses { events_lost: 3, buffers_lost: 1 });
    let files = Folder::with(WHOLE, &bytes);
    let provider = written[0].provider;
    let expected: Vec<_> = written.iter().filter(|event| event.provider == provider).collect();
    let by_name = events(&files, WHOLE, &[])[0]["provider_name"].as_str().unwrap().to_owned();
    for option in [provider.to_string(), by_name] {
        let said = cut(&files, &["--provider", &option]);
        assert!(said.starts_with("100 events of 1 files"), "{said}");
        assert!(said.contains("omitted 100 records that are not selected; 0 records"), "{said}");
        let part = Trace::open(files.path(PART)).unwrap();
        assert_eq!(part.damages(), []);
        let found: Vec<_> = part.events_by_time().iter().map(|event| &event.record).collect();
        assert_eq!(found, expected);
        assert_eq!((part.header().events_lost, part.header().buffers_lost), (3, 1));
        assert_eq!(decoders::assert_third_party_decoders_agree(&files.path(PART)), 100);
    }
}

#[test]
fn the_rundown_of_a_selected_provider_is_kept_at_any_time() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let start = header.start_clock;
    let events = [(10, 0), (20, 1), (30, 0), (40, 4)].map(|(at, opcode)| {
        let mut event = trace::manifest_event(0, start + at);
        event.descriptor.opcode = opcode;
        event
    });
    let other = {
        let mut event = trace::trace_logging_event(0, start + 50);
        event.descriptor.opcode = 4;
        event
    };
    let provider = events[0].provider.to_string();
    let from = header.session_clock().to_file_time(start + 20).to_string();
    let to = header.session_clock().to_file_time(start + 30).to_string();
    let records = events.iter().chain([&other]);
    let files = Folder::with(WHOLE, trace::of_records(header, start + 60, records));
    cut(&files, &["--provider", &provider, "--from", &from, "--to", &to]);
    let part = Trace::open(files.path(PART)).unwrap();
    let found: Vec<_> = part.events().map(|event| event.record.timestamp - start).collect();
    assert_eq!(found, [20, 30, 40]);
}

#[test]
fn times_are_read_as_they_are_shown() {
    let time = FileTime::from_raw(134_117_966_451_234_567);
    assert_eq!(time.to_string().parse(), Ok(time));
    assert_eq!(time.to_string().trim_end_matches('Z').parse(), Ok(time));
    let files = Folder::with(WHOLE, kernel_trace());
    let ran = files.etl(&["dump", WHOLE, "--from", "yesterday"]);
    assert_eq!(ran.code, Some(2), "{}", ran.said);
    assert!(ran.said.contains("expected a time in UTC such as"), "{}", ran.said);
}

#[test]
fn a_minimal_part_has_only_what_its_events_need() {
    let event = |process_id, at| {
        let event = EventRecord { process_id, ..trace::manifest_event(0, at) };
        (at, EncodedRecord::new(&event).unwrap())
    };
    let schema = |at, provider| {
        let info = schema_events::EventInfo {
            provider,
            descriptor: trace::manifest_event(0, 0).descriptor,
            ..schema_events::EventInfo::default()
        };
        let class = schema_events::METADATA;
        let record = ClassicRecord { class, opcode: 32, timestamp: at, ..ClassicRecord::default() };
        (at, EncodedRecord::try_from(&ClassicRecord { payload: info.encode(), ..record }).unwrap())
    };
    let stack =
        |at, of, key: u64| (at, kernel(0x1826, 2, at, kernel_records::stack(of, 7, 0x44, &[key])));
    let definition = |at, key: u64| {
        let payload = [key, APP + 0x20].into_iter().flat_map(u64::to_le_bytes).collect();
        (at, kernel(0x1823, 2, at, payload))
    };
    // One of two events with halves of a stack is selected.
    let half = |process_id, at, key: u64| {
        let data = [0x99, key].into_iter().flat_map(u64::to_le_bytes).collect();
        let extended = vec![ExtendedItem { ext_type: ext_type::STACK_KEY64, data }];
        let event = EventRecord { process_id, extended, ..trace::manifest_event(0, at) };
        (at, EncodedRecord::new(&event).unwrap())
    };
    let records = vec![
        (100, kernel(0x0303, 2, 100, kernel_records::process(7, "app.exe"))),
        (101, kernel(0x0303, 2, 101, kernel_records::process(8, "other.exe"))),
        (105, kernel(0x0503, 3, 105, kernel_records::thread(7, 0x44, "worker"))),
        (106, kernel(0x0503, 3, 106, kernel_records::thread(8, 10, "idle"))),
        (110, image(110, 4, NTOSKRNL, r"\SystemRoot\system32\ntoskrnl.exe")),
        (130, image(130, 7, APP, r"\Device\HarddiskVolume3\app.exe")),
        (131, image(131, 8, APP, r"\Device\HarddiskVolume3\other.exe")),
        schema(140, trace::MANIFEST_PROVIDER),
        schema(141, trace::SELF_DESCRIBING),
        event(7, 200),
        stack(201, 200, 0x11),
        half(7, 210, 0x33),
        half(9, 220, 0x44),
        event(8, 300),
        stack(301, 300, 0x22),
        definition(900, 0x11),
        definition(901, 0x22),
        definition(902, 0x33),
        definition(903, 0x44),
        (910, kernel(0x0400, 2, 910, [vec![1; 8], kernel_records::utf16("name")].concat())),
    ];
    let whole = trace::of_records(LogFileHeader::default(), 1000, records);
    let files = Folder::with(WHOLE, whole);
    let process = ["--process", "app.exe", "--provider", &trace::MANIFEST_PROVIDER.to_string()];
    cut(&files, &[&process[..], &["--minimal"]].concat());
    let part = Trace::open(files.path(PART)).unwrap();
    let mut times: Vec<i64> = part.events().map(|event| event.record.timestamp).collect();
    times.extend(part.others().filter_map(|other| other.timestamp));
    times.sort_unstable();
    times.retain(|time| *time >= 100);
    assert_eq!(times, [100, 105, 110, 130, 140, 200, 201, 210, 220, 900, 902, 903]);
    // The event is decoded as in the whole trace.
    let [minimal, found] = [PART, WHOLE].map(|name| events(&files, name, &process));
    assert_eq!(minimal, found);
    assert_eq!(minimal[0]["stack"], serde_json::json!(["0x7ff600000020 app.exe+0x20"]));
    files
        .etl(&["merge", WHOLE, "-o", PART, "--minimal"])
        .fails(1, &["--minimal needs selected events"]);
}
