//! Tests the merging of files.

mod common;
mod fixture;

use std::fs;
use std::io::Cursor;

use etl_file::merge::{MergeError, merge};
use etl_file::write::Losses;
use etl_file::{ClockType, EventRecord, FileTime, Trace};

/// Returns the trace of a session that started `later` × 100 ns after the fixture's start.
fn trace(clock: ClockType, later: i64, events: u32, losses: Losses) -> Trace {
    let mut header = fixture::header(clock, 0x1000, 2);
    header.start_time = FileTime::from_raw(fixture::START.raw() + later);
    if clock == ClockType::SystemTime {
        header.start_clock = header.start_time.raw();
    }
    header.session_name = format!("Session {later}");
    let (file, _) = fixture::file(header, events, losses);
    Trace::parse(&file).unwrap()
}

fn merged(traces: &[Trace]) -> Trace {
    let file = merge(traces, "merged.etl", Cursor::new(Vec::new())).unwrap();
    Trace::parse(&file.into_inner()).unwrap()
}

/// Returns the events by time, each with its time instead of its time stamp, which depends on the
/// clock.
fn by_time(trace: &Trace) -> Vec<(FileTime, u16, EventRecord)> {
    let events = trace.events_by_time().into_iter();
    events
        .map(|event| {
            let record = EventRecord {
                timestamp: 0,
                ..event.record.clone()
            };
            (event.time, event.processor, record)
        })
        .collect()
}

#[test]
fn every_event_is_merged_in_order_of_time() {
    let losses = |events_lost, buffers_lost| Losses {
        events_lost,
        buffers_lost,
    };
    let traces = [
        trace(ClockType::Qpc, 0, 100, losses(3, 1)),
        trace(ClockType::SystemTime, 7, 60, losses(4, 0)),
        trace(ClockType::Qpc, 12_345, 80, losses(0, 2)),
    ];
    let all = merged(&traces);
    assert_eq!(all.damages(), []);
    let mut expected: Vec<_> = traces.iter().flat_map(by_time).collect();
    expected.sort_by_key(|(time, ..)| *time);
    let mut found = by_time(&all);
    assert!(found.is_sorted_by_key(|(time, ..)| *time));
    // Events with the same time are in the order of their files, which requires a stable sort.
    let key = |(time, processor, record): &(FileTime, u16, EventRecord)| {
        (*time, *processor, format!("{record:?}"))
    };
    expected.sort_by_key(key);
    found.sort_by_key(key);
    assert_eq!(found, expected);
    let header = all.header();
    assert_eq!((header.events_lost, header.buffers_lost), (7, 3));
    assert_eq!(header.session.clock, ClockType::SystemTime);
    assert_eq!(header.session.start_time, fixture::START);
    assert_eq!(
        header.session.session_name,
        "Session 0 + Session 7 + Session 12345"
    );
}

#[test]
fn third_party_decoders_read_the_same() {
    let traces = [
        trace(ClockType::Qpc, 0, 30, Losses::default()),
        trace(ClockType::Qpc, 50, 30, Losses::default()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("merged.etl");
    let file = merge(&traces, "merged.etl", Cursor::new(Vec::new())).unwrap();
    fs::write(&path, file.into_inner()).unwrap();
    assert_eq!(common::assert_third_party_decoders_agree(&path), 60);
}

#[test]
fn traces_that_cannot_be_merged_completely_are_not_merged() {
    let good = trace(ClockType::Qpc, 0, 10, Losses::default());
    let (mut file, _) = fixture::file(
        fixture::header(ClockType::Qpc, 0x1000, 1),
        20,
        Losses::default(),
    );
    file.truncate(file.len() - 100);
    let damaged = Trace::parse(&file).unwrap();
    let error = merge(&[good, damaged], "x", Cursor::new(Vec::new())).unwrap_err();
    assert!(
        matches!(error, MergeError::Damaged { trace: 1, .. }),
        "{error}"
    );
    assert_eq!(error.trace(), Some(1));
    let error = merge(&[], "x", Cursor::new(Vec::new())).unwrap_err();
    assert!(matches!(error, MergeError::Nothing));
}

/// Runs the command and returns its exit code and output.
fn etl(arguments: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_etl"))
        .args(arguments)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn the_command_writes_a_complete_file_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, two, out) = (path("one.etl"), path("two.etl"), path("out.etl"));
    let header = || fixture::header(ClockType::Qpc, 0x1000, 1);
    let (file, _) = fixture::file(header(), 20, Losses::default());
    fs::write(&one, &file).unwrap();
    fs::write(&two, &file[..file.len() - 8]).unwrap();
    let (code, said) = etl(&["merge", &one, &two, "-o", &out]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("two.etl: at offset 0x1ff8"), "{said}");
    assert!(!fs::exists(&out).unwrap());
    fs::write(&two, &file).unwrap();
    let (code, said) = etl(&["merge", &one, &two, "--out", &out]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("40 events of 2 files"), "{said}");
    assert_eq!(Trace::open(&out).unwrap().events().count(), 40);
    let (code, said) = etl(&["merge", &one, &path("none.etl"), "-o", &out]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("none.etl"), "{said}");
}
