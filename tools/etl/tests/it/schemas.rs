//! Tests that the commands decode by schemas in traces, and by MOF files.

use std::io::Read as _;

use crate::page;
use crate::run::Folder;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use etl_file::{EncodedRecord, EventRecord, LogFileHeader};
use etl_fixtures::mof::{self, MOF, payload};
use etl_fixtures::schema_events::{
    EventInfo, PROVIDER, Property, chunk, file, manifest, metadata, sample,
};
use etl_fixtures::trace::{self, Recorded};

#[test]
fn the_program_decodes_events_by_the_schemas_in_the_file() {
    let folder = Folder::with("merged.etl", file());
    let dump = |more: &[&str]| {
        folder.etl(&[&["dump", "--format", "json", "merged.etl"], more].concat()).ok().lines()
    };
    let of_event = |lines: &[serde_json::Value], timestamp: i64| {
        let line = lines.iter().find(|line| line["timestamp"] == timestamp);
        line.expect("the event").clone()
    };
    let lines = dump(&[]);
    let merged = of_event(&lines, 1);
    assert_eq!(merged["fields"]["Bytes"], 4096);
    assert_eq!(merged["fields"]["Kind"]["name"], "Network");
    assert_eq!(merged["message"], "4096 bytes by Network");
    assert_eq!(of_event(&lines, 3)["fields"]["Value"], 77);
    folder.write("own.man", manifest("Own"));
    let lines = dump(&["--man", "own.man"]);
    assert_eq!(of_event(&lines, 1)["fields"]["Own"], 4096);
    assert_eq!(of_event(&lines, 3)["fields"]["Value"], 77);
}

#[test]
fn the_events_of_a_process_are_decoded_by_its_own_manifest() {
    let part = |process, xml: &str| chunk(PROVIDER, process, xml.as_bytes(), 1, 0);
    let event = |process_id: u32| EventRecord {
        provider: PROVIDER,
        descriptor: sample().descriptor,
        process_id,
        user_data: process_id.to_le_bytes().to_vec(),
        ..EventRecord::default()
    };
    let [first, second] = ["First", "Second"].map(manifest);
    let records = [
        part(100, &first),
        part(101, &second),
        part(103, &first),
        part(103, &second),
        event(100),
        event(101),
        event(102),
        event(103),
        event(100),
    ];
    let records = (1..).zip(records).map(|(at, event)| EventRecord { timestamp: at, ..event });
    let file = trace::of_records(LogFileHeader::default(), 50, records);
    let folder = Folder::with("two.etl", file);
    for threads in ["1", "3"] {
        let ran = folder.etl(&["dump", "two.etl", "--format", "json", "--threads", threads]).ok();
        let shown: Vec<(String, usize)> = ran
            .lines()
            .iter()
            .filter(|line| line["id"] == sample().descriptor.id)
            .map(|line| (line["fields"].to_string(), line["problems"].as_array().unwrap().len()))
            .collect();
        let expected =
            [("First", 100, 0), ("Second", 101, 0), ("Second", 102, 1), ("Second", 103, 1)];
        let of = |(name, value, problems)| (format!("{{\"{name}\":{value}}}"), problems);
        let expected = expected.into_iter().chain([("First", 100, 0)]).map(of);
        assert_eq!(shown, expected.collect::<Vec<_>>());
        assert!(ran.said.contains("describe event 5 version 2 differently"), "{}", ran.said);
    }
    // Every output marks what may be wrong.
    let marked = "which one process 102 uses is unknown";
    folder.etl(&["report", "two.etl", "--out", "page.html"]).ok();
    assert!(page::data(str::from_utf8(&folder.read("page.html")).unwrap()).contains(marked));
    for format in ["table", "csv", "perfetto"] {
        let ran = folder.etl(&["dump", "two.etl", "--format", format]).ok();
        assert!(String::from_utf8_lossy(&ran.bytes).contains(marked), "{format}");
    }
    // A manifest that the user names describes the events of all processes.
    folder.write("own.man", manifest("Own"));
    let lines =
        folder.etl(&["dump", "two.etl", "--format", "json", "--man", "own.man"]).ok().lines();
    let of_own = lines.iter().filter(|line| line["fields"]["Own"].is_u64());
    assert_eq!(of_own.filter(|line| line["problems"] == serde_json::json!([])).count(), 5);
}

/// Returns the program's standard error for a file with event schemas, one for each payload.
fn warnings(payloads: impl IntoIterator<Item = Vec<u8>>) -> Vec<String> {
    let records = payloads.into_iter().map(|one| (2, metadata(32, one, 2).encode().unwrap()));
    let file = trace::of_records(LogFileHeader::default(), 5, records);
    let said = Folder::with("merged.etl", file).etl(&["stats", "merged.etl"]).ok().said;
    let about_the_file = |line: &str| line.split_once("merged.etl: ").unwrap().1.to_owned();
    said.lines().map(about_the_file).collect()
}

/// Returns the schema of an event with this id.
fn with_id(id: u16) -> Vec<u8> {
    let mut payload = sample().encode();
    payload[32..34].copy_from_slice(&id.to_le_bytes());
    payload
}

#[test]
fn the_program_names_the_first_defects_and_counts_schemas_that_it_does_not_use() {
    let damaged = |id| with_id(id)[..100].to_vec();
    assert_eq!(warnings([with_id(1)]), [""; 0]);
    let one = warnings([damaged(1)]);
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(one[0].starts_with("cannot use the trace's schema of provider "), "{one:?}");
    let many = warnings((1..=33).map(damaged));
    assert_eq!(many.len(), 33, "{many:?}");
    assert_eq!(many[32], "schemas in the trace: 0 events, 0 maps, 0 manifests, 33 defective");
    let large = |id| {
        let mut payload = with_id(id);
        payload.resize(60_000, 0);
        payload
    };
    assert_eq!(
        warnings((0..300).map(large)),
        ["schemas in the trace: 279 events, 0 maps, 0 manifests, 21 omitted"]
    );
}

/// Returns all compressed data in a report page.
fn page_data(page: &str) -> Vec<u8> {
    let parts = page.split("data-part=\"").skip(1);
    let parts = parts.filter_map(|part| part.split_once('>')?.1.split_once('<'));
    let mut data = Vec::new();
    for (part, _) in parts {
        let part = STANDARD.decode(part.trim()).unwrap();
        let mut part = flate2::read::DeflateDecoder::new(part.as_slice());
        part.read_to_end(&mut data).unwrap();
    }
    data
}

#[test]
fn a_report_decodes_the_events_of_each_file_by_its_own_schemas() {
    let folder = Folder::new();
    for (name, message) in [("before", "%1 before"), ("after", "%1 after")] {
        let event = EventRecord {
            provider: PROVIDER,
            descriptor: sample().descriptor,
            user_data: vec![1, 0, 0, 0],
            timestamp: 1,
            ..EventRecord::default()
        };
        let info = EventInfo {
            message,
            properties: vec![Property {
                name,
                in_type: 8, // UInt32
                ..Property::default()
            }],
            top_level: 1,
            ..sample()
        };
        let info = (2, metadata(32, info.encode(), 2).encode().unwrap());
        let records = [event.record(), info.record()];
        folder.write(name, trace::of_records(LogFileHeader::default(), 5, records));
    }
    folder.etl(&["report", "before", "after", "-o", "page.html"]).ok();
    let data = page_data(std::str::from_utf8(&folder.read("page.html")).unwrap());
    let data = String::from_utf8_lossy(&data);
    for message in ["1 before", "1 after"] {
        assert!(data.contains(message), "{message} is not in {data:?}");
    }
}

#[test]
fn the_command_decodes_by_mof_files() {
    let classic = EncodedRecord::try_from(&mof::record(1, 2)).unwrap();
    let mut relogged =
        EventRecord { provider: mof::CLASS, user_data: payload(), ..EventRecord::default() };
    relogged.descriptor.opcode = 2;
    relogged.descriptor.version = 2;
    let relogged = EncodedRecord::new(&relogged).unwrap();
    let bytes =
        trace::of_records(LogFileHeader::default(), 1000, vec![(1, classic), (2, relogged)]);
    let folder = Folder::with("a.etl", bytes);
    let wide = MOF.encode_utf16().flat_map(u16::to_le_bytes);
    folder.write("a.mof", [0xFF, 0xFE].into_iter().chain(wide).collect::<Vec<u8>>());
    folder.write("b.mof", "class");
    let etl = |command: &str, mof: &str| folder.etl(&[command, "a.etl", "--mof", mof]);
    let out = etl("dump", "a.mof").ok().text();
    for name in ["Contoso", "Start", "End"] {
        assert!(out.contains(name), "{out}");
    }
    assert_eq!(out.matches("Client=\"pc\" Kind=6").count(), 2, "{out}");
    assert!(!out.contains("Partial"), "{out}");
    let out = etl("stats", "a.mof").text();
    assert!(out.contains("Start") && !out.contains("Not decoded"), "{out}");
    etl("dump", "b.mof").fails(1, &["b.mof: line 1: expected the name of a class"]);
}
