//! Kernel events, names and stacks in the `etl` command's output.

use std::io::Cursor;

use crate::page;
use crate::run::Folder;
use etl::stats::Stats;
use etl_file::write::{ClassicRecord, WppRecord};
use etl_file::{
    Catalog, EncodedRecord, EventRecord, ExtendedItem, FirstPass, LogFileHeader, Pipeline,
    TraceFile,
};
use etl_fixtures::{kernel_records, trace};
use serde_json::Value as Json;

pub const NTOSKRNL: u64 = 0xFFFF_F801_0000_0000;
pub const APP: u64 = 0x7FF6_0000_0000;

pub fn kernel(hook: u16, version: u8, timestamp: i64, payload: Vec<u8>) -> EncodedRecord {
    EncodedRecord::try_from(&kernel_records::event(hook, version, timestamp, payload)).unwrap()
}

pub fn perfinfo(hook: u16, timestamp: i64, payload: Vec<u8>) -> EncodedRecord {
    EncodedRecord::try_from(&kernel_records::perfinfo(hook, timestamp, payload)).unwrap()
}

pub fn image(time: i64, process: u32, base: u64, path: &str) -> EncodedRecord {
    kernel(0x1403, 1, time, kernel_records::image(base, process, path))
}

/// Returns the records of a file, with times.
fn records() -> Vec<(i64, EncodedRecord)> {
    let mut dpc = 390_i64.to_le_bytes().to_vec();
    dpc.extend((NTOSKRNL + 0x50).to_le_bytes());
    let stack = |time| kernel_records::stack(time, 7, 9, &[NTOSKRNL + 0x10, APP + 0x20]);
    let mut match_id_and_frames = vec![0; 8];
    match_id_and_frames.extend((APP + 0x30).to_le_bytes());
    let event = EventRecord {
        thread_id: 9,
        process_id: 7,
        timestamp: 600,
        extended: vec![ExtendedItem { ext_type: 6, data: match_id_and_frames }],
        ..EventRecord::default()
    };
    let wpp = WppRecord {
        message: 12,
        sequence: Some(1),
        timestamp: Some(700),
        arguments: vec![1, 2, 3],
        ..WppRecord::default()
    };
    let records = [
        (100, kernel(0x0303, 2, 100, kernel_records::process(7, "app.exe"))),
        (110, kernel(0x0503, 3, 110, kernel_records::thread(7, 9, "worker"))),
        (120, image(120, 4, NTOSKRNL, r"\SystemRoot\system32\ntoskrnl.exe")),
        (130, image(130, 7, APP, r"\Device\HarddiskVolume3\app.exe")),
        (200, perfinfo(0x0524, 200, kernel_records::switch(9))),
        (400, perfinfo(0x0f44, 400, dpc)),
        (500, kernel(0x030b, 2, 500, vec![7, 0, 0, 0])),
        (550, kernel(0x1820, 2, 550, stack(500))),
        (560, kernel(0x1820, 2, 560, stack(12345))),
        (600, EncodedRecord::new(&event).unwrap()),
        (700, EncodedRecord::try_from(&wpp).unwrap()),
        (800, kernel(0x0301, 99, 800, vec![0xAB; 3])),
    ];
    records.into()
}

/// Returns the bytes of a file that contains the records.
fn bytes_of(records: Vec<(i64, EncodedRecord)>) -> Vec<u8> {
    trace::of_records(LogFileHeader::default(), 1000, records)
}

/// Writes the records to a file, `kernel.etl`.
fn file() -> Folder {
    Folder::with("kernel.etl", bytes_of(records()))
}

/// Runs the program, and returns its standard output and standard error.
fn etl(arguments: &[&str]) -> (String, String) {
    let ran = file().etl(&[arguments, &["kernel.etl"]].concat()).ok();
    (ran.text(), ran.said)
}

fn json(options: &[&str]) -> Vec<Json> {
    let arguments = [&["dump", "--format", "json", "kernel.etl"], options].concat();
    file().etl(&arguments).ok().lines()
}

fn event<'a>(lines: &'a [Json], provider: &str, name: &str) -> &'a Json {
    lines
        .iter()
        .find(|line| line["provider_name"] == provider && line["event"] == name)
        .unwrap_or_else(|| panic!("{provider}/{name} in {lines:?}"))
}

#[test]
fn json_has_kernel_events_with_stacks_and_without_the_joined_record() {
    let lines = json(&[]);
    let terminate = event(&lines, "Process", "Terminate");
    assert_eq!(terminate["fields"]["ProcessId"], 7);
    assert_eq!(terminate["opcode"], 11);
    assert_eq!(terminate["process"], 7);
    assert_eq!(
        terminate["stack"],
        serde_json::json!(["0xfffff80100000010 ntoskrnl.exe+0x10", "0x7ff600000020 app.exe+0x20",])
    );
    let stacks = lines.iter().filter(|line| line["provider_name"] == "StackWalk").count();
    assert_eq!(stacks, 1, "the stack that matches no event");
    let dpc = event(&lines, "PerfInfo", "DPC");
    assert_eq!(dpc["thread"], 9, "who runs on the processor");
    assert_eq!(dpc["fields"]["InitialTime"], 390);
    assert_eq!(dpc["fields"]["Routine"], "0xfffff80100000050 ntoskrnl.exe+0x50");
    let unknown = event(&lines, "Process", "Start");
    assert_eq!(unknown["leftover"], "ababab");
    assert_eq!(
        unknown["problems"][0],
        "version 99 of this kernel event is unknown; the last known version is 5"
    );
    let wpp = event(&lines, "WPP", "Message12");
    assert_eq!(wpp["fields"]["Arguments"], "010203");
    let end = lines.last().unwrap();
    assert_eq!(end["record"], "end");
    assert_eq!(end["events"], 12);
    assert_eq!(end["stacks_joined"], 1);
    assert_eq!(end["stacks_unmatched"], 1);
    assert!(lines.iter().all(|line| line["process_name"].is_null()));
}

#[test]
fn an_event_of_a_provider_has_the_places_of_its_own_stack() {
    let lines = json(&[]);
    let own = lines.iter().find(|line| line["timestamp"] == 600).expect("the event");
    assert_eq!(own["stack"][0], "0x7ff600000030 app.exe+0x30");
}

#[test]
fn names_are_shown_in_every_format() {
    let lines = json(&["--names"]);
    let terminate = event(&lines, "Process", "Terminate");
    assert_eq!(terminate["process_name"], "app.exe");
    assert_eq!(terminate["thread_name"], "worker");
    let dpc = event(&lines, "PerfInfo", "DPC");
    assert_eq!((&dpc["process"], &dpc["process_name"]), (&7.into(), &"app.exe".into()));
    let (table, _) = etl(&["dump", "--names"]);
    assert!(table.contains("process 7 app.exe, thread 9 worker"), "{table}");
    assert!(table.contains("ntoskrnl.exe+0x10 app.exe+0x20"), "{table}");
    assert!(table.contains("Stacks   1 joined with their events, 1 unmatched"), "{table}");
    let (csv, messages) = etl(&["dump", "--names", "--format", "csv"]);
    let (header, _) = csv.split_once('\n').unwrap();
    assert!(header.contains(",fields,process name,thread name,"), "{header}");
    assert!(csv.contains(",ProcessId=7,app.exe,worker,"), "{csv}");
    let about_the_file = messages.lines().map(|line| line.split_once("kernel.etl: ").unwrap().1);
    assert_eq!(
        about_the_file.collect::<Vec<_>>(),
        [
            "stacks: 1 joined with their events, 1 unmatched",
            "no loaded TMF file or PDB describes 1 WPP messages; name one with --tmf or --pdb",
        ]
    );
}

#[test]
fn only_events_that_say_something_about_others_need_another_pass() {
    let can_complete = |records: Vec<(i64, EncodedRecord)>| {
        let mut file = TraceFile::new(Cursor::new(bytes_of(records))).unwrap();
        FirstPass::read(&mut file).unwrap().can_complete
    };
    let event = || (600, EncodedRecord::new(&EventRecord::default()).unwrap());
    // Every Windows trace has records about the trace itself.
    assert!(!can_complete(vec![(1, kernel(0x0050, 2, 1, vec![0; 56])), event()]));
    let image_of = image(1, 4, NTOSKRNL, "ntoskrnl.exe");
    assert!(can_complete(vec![(1, image_of), event()]));
    assert!(can_complete(vec![event(), (700, perfinfo(0x0524, 700, vec![0; 24]))]));
    // A stack key waits for its definition, which can be missing.
    assert!(can_complete(vec![with_item(600, 18, &[0, 5])]));
    assert!(!can_complete(vec![with_item(600, 6, &[0, APP])]));
}

#[test]
fn a_selection_keeps_the_stacks_of_its_events() {
    let lines = json(&["--provider", "Process", "--event", "Terminate"]);
    assert_eq!(lines.len(), 3, "header, event, end");
    assert_eq!(lines[1]["stack"].as_array().unwrap().len(), 2);
}

#[test]
fn stats_count_kernel_events_by_class_and_event() {
    let (text, _) = etl(&["stats", "--names"]);
    for words in ["Process", "Terminate", "CSwitch", "DPC", "WPP", "Message12"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    assert!(text.contains("Stacks: 1 joined with their events, 1 unmatched"), "{text}");
    let row = text.lines().find(|line| line.contains("app.exe (7)"));
    let cells: Vec<&str> = row.unwrap().split(['│', '┆']).map(str::trim).collect();
    assert_eq!(cells[1..3], ["app.exe (7)", "10"], "{text}");
}

#[test]
fn a_perfetto_timeline_has_the_places_of_stacks_and_their_counts() {
    let folder = file();
    let arguments = ["--format", "perfetto", "--names", "kernel.etl", "--out", "out.pftrace"];
    let messages = folder.etl(&[&["dump"][..], &arguments].concat()).ok().said;
    let count = "stacks: 1 joined with their events, 1 unmatched";
    assert!(messages.contains(count), "{messages}");
    let bytes = folder.read("out.pftrace");
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    for text in ["ntoskrnl.exe+0x10", "app.exe+0x20", "etl.stacks_unmatched"] {
        assert!(has(text), "{text}");
    }
}

#[test]
fn a_report_has_kernel_events_with_their_stacks_and_names() {
    let folder = file();
    folder.etl(&["report", "kernel.etl", "-o", "out.html"]).ok();
    let page = String::from_utf8(folder.read("out.html")).unwrap();
    insta::assert_snapshot!(page::data(&page));
}

#[test]
fn fields_of_kernel_events_have_columns() {
    let (csv, _) = etl(&["dump", "--format", "csv", "--fields"]);
    let (header, _) = csv.split_once('\n').unwrap();
    for column in [",NewThreadId,", ",InitialTime,", ",Arguments,"] {
        assert!(header.contains(column), "{column} in {header}");
    }
}

#[test]
fn a_file_without_symbols_is_named_in_the_error() {
    let folder = file();
    for (option, file, said) in [
        ("--pdb", "missing.pdb", "cannot read missing.pdb"),
        ("--symbols", "missing.pdb", "cannot read missing.pdb"),
        ("--pdb", "kernel.etl", "it is a trace (.etl); name it without an option"),
    ] {
        folder.etl(&["dump", "kernel.etl", option, file]).fails(1, &[said]);
    }
}

/// Returns a provider's event with an extended item about its stack.
fn with_item(timestamp: i64, ext_type: u16, words: &[u64]) -> (i64, EncodedRecord) {
    let event = EventRecord {
        thread_id: 9,
        process_id: 7,
        timestamp,
        extended: vec![ExtendedItem {
            ext_type,
            data: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }],
        ..EventRecord::default()
    };
    (timestamp, EncodedRecord::new(&event).unwrap())
}

/// Returns the stacks of providers' events in a file.
fn stacks_in(records: Vec<(i64, EncodedRecord)>) -> (Vec<Json>, Json) {
    let folder = Folder::with("stacks.etl", bytes_of(records));
    let lines = folder.etl(&["dump", "stacks.etl", "--format", "json"]).lines();
    let events = lines.iter().filter(|line| line["kind"] == "event");
    (events.cloned().collect(), lines.last().unwrap().clone())
}

#[test]
fn an_event_with_the_key_of_its_stack_has_the_frames_of_the_definition() {
    let definition = |at, key: u64, frame: u64| {
        let words = [key, frame];
        let payload = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        (at, kernel(0x1822, 2, at, payload))
    };
    let (events, end) = stacks_in(vec![
        (50, image(50, 7, APP, "app.exe")),
        with_item(100, 18, &[0, 5]),
        with_item(110, 17, &[0, 0xFFFF_FFFF_0000_0006]),
        definition(200, 5, APP + 0x30),
        definition(210, 6, APP + 0x31),
        with_item(300, 18, &[0, 5]),
    ]);
    assert_eq!(events[0]["stack"][0], "0x7ff600000030 app.exe+0x30");
    assert_eq!(events[1]["stack"][0], "0x7ff600000031 app.exe+0x31");
    assert_eq!(
        events[2]["problems"][0],
        "no record in the trace defines the stack with the key 0x5"
    );
    assert_eq!((&end["stacks_joined"], &end["stacks_unmatched"]), (&2.into(), &1.into()));
}

#[test]
fn the_halves_of_a_stack_in_two_events_come_together() {
    let (events, end) = stacks_in(vec![
        with_item(100, 6, &[0x77, NTOSKRNL]),
        with_item(110, 6, &[0x77, APP]),
        with_item(120, 6, &[0x78, NTOSKRNL]),
    ]);
    assert_eq!(events[0]["stack"], serde_json::json!(["0xfffff80100000000", "0x7ff600000000"]));
    assert_eq!(events[2]["stack"], serde_json::json!(["0xfffff80100000000"]));
    assert_eq!((&end["stacks_joined"], &end["stacks_unmatched"]), (&1.into(), &1.into()));
}

#[test]
fn the_addresses_of_network_adapters_are_hidden() {
    let class = etl_file::Guid::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
    let payload = kernel_records::network_interface();
    let record = |payload: &[u8]| {
        let payload = payload.to_vec();
        let record = ClassicRecord { class, opcode: 36, payload, ..ClassicRecord::default() };
        (0, EncodedRecord::try_from(&record).unwrap())
    };
    // The second one ends inside an address.
    let bytes = bytes_of(vec![record(&payload), record(&payload[..1070])]);
    let folder = Folder::with("merged.etl", bytes);
    let dump = |options: &[&str]| {
        let ran = folder.etl(&[&["dump", "merged.etl"], options].concat());
        String::from_utf8_lossy(&ran.bytes).into_owned()
    };
    for format in ["table", "csv", "json", "perfetto"] {
        let hidden = dump(&["--format", format]);
        let shown = dump(&["--format", format, "--hardware-addresses"]);
        for address in ["02:00:00:00:00:01", "020000000001", "020000000002"] {
            assert!(!hidden.contains(address), "{format}: {address}");
        }
        assert!(shown.contains("02:00:00:00:00:01"), "{format}");
        assert!(hidden.contains("(hidden)") && hidden.contains("Example GbE Adapter"), "{format}");
    }
}

/// Returns a `TraceLogging` event with a number and, if `with_text`, a string.
fn described(timestamp: i64, with_text: bool, data: &[u8]) -> (i64, EncodedRecord) {
    let mut metadata = b"\0\0\0E\0number\0\x08".to_vec();
    if with_text {
        metadata.extend(b"text\0\x02");
    }
    metadata[0] = u8::try_from(metadata.len()).unwrap();
    let event = EventRecord {
        timestamp,
        extended: vec![ExtendedItem { ext_type: 11, data: metadata }],
        user_data: data.to_vec(),
        ..EventRecord::default()
    };
    (timestamp, EncodedRecord::new(&event).unwrap())
}

#[test]
fn stats_count_the_same_problems_as_the_events_have() {
    let wpp = WppRecord { message: 12, ..WppRecord::default() };
    let unknown = EventRecord { timestamp: 70, user_data: vec![1], ..EventRecord::default() };
    let class = ClassicRecord {
        class: etl_file::Guid::from_u128(7),
        timestamp: 71,
        payload: vec![1],
        ..ClassicRecord::default()
    };
    let records = [
        described(10, false, &[1, 0, 0, 0]),
        described(20, false, &[1, 0, 0, 0, 9]),
        described(30, false, &[1, 0, 0]),
        described(40, true, b"\x01\0\0\0text\0"),
        described(50, true, b"\x01\0\0\0text\0\0"),
        described(60, true, b"\x01\0"),
        (70, EncodedRecord::new(&unknown).unwrap()),
        (71, EncodedRecord::try_from(&class).unwrap()),
        // Kernel events: valid, of an unknown version, with too many and too few bytes, and without
        // a known layout.
        (80, kernel(0x030b, 2, 80, vec![7, 0, 0, 0])),
        (90, kernel(0x0301, 99, 90, vec![0xAB; 3])),
        (100, kernel(0x030b, 2, 100, vec![7, 0, 0, 0, 1])),
        (110, kernel(0x030b, 2, 110, vec![7])),
        (120, kernel(0xFE01, 2, 120, vec![7])),
        (130, EncodedRecord::try_from(&wpp).unwrap()),
    ];
    let mut file = TraceFile::new(Cursor::new(bytes_of(records.into()))).unwrap();
    let catalog = Catalog::new();
    let (_, summary) = trace::events(&mut file, &Pipeline::new(&catalog));
    assert_eq!((summary.with_problems, summary.of_system), (9, 2));
    let (stats, _) = Stats::read(&mut file, &Pipeline::new(&catalog)).unwrap();
    let text = stats.render();
    assert!(text.contains("Partial: 9 events could not be decoded completely\n"), "{text}");
    assert!(text.contains("Of the system: 2 records with a layout"), "{text}");
    assert!(text.contains("Not decoded: 2 events with data"), "of no provider or class: {text}");
    assert!(text.contains("Without format: 1 WPP messages that no loaded"), "{text}");
    let row = text.lines().find(|line| line.contains("Terminate"));
    let cells: Vec<&str> = row.unwrap().split(['│', '┆']).map(str::trim).collect();
    assert_eq!(cells[4], "3", "{text}");
}

#[test]
fn calls_have_their_durations_in_the_table_and_in_csv() {
    // The call starts at reading 390 and ends at 400; a tick is 100 ns.
    let (table, _) = etl(&["dump"]);
    let call = table.lines().find(|line| line.contains("InitialTime=390")).unwrap();
    assert!(call.ends_with("(took 1µs)"), "{call}");
    assert_eq!(table.matches("(took").count(), 1, "{table}");
    let (rows, _) = etl(&["dump", "--format", "csv"]);
    let mut rows = csv::Reader::from_reader(rows.as_bytes());
    let place = |name: &str, headings: &csv::StringRecord| {
        headings.iter().position(|heading| heading == name).unwrap()
    };
    let headings = rows.headers().unwrap().clone();
    let (event, duration) = (place("event", &headings), place("duration in ns", &headings));
    let of: Vec<(String, String)> = rows
        .records()
        .map(|row| row.map(|row| (row[event].to_owned(), row[duration].to_owned())).unwrap())
        .filter(|(_, duration)| !duration.is_empty())
        .collect();
    assert_eq!(of, [("DPC".to_owned(), "1000".to_owned())]);
}

#[test]
fn chosen_integers_of_kernel_events_are_shown_in_hexadecimal() {
    let (table, _) = etl(&["dump", "--hex", "InitialTime", "--hex", "ProcessId"]);
    assert!(table.contains("InitialTime=0x186"), "{table}");
    // A process id is not a plain integer.
    assert!(table.contains("ProcessId=7"), "{table}");
}
