//! Tests the command `durations`.

use crate::run::{Folder, manifest};
use etl_file::{ClockType, EventRecord, Guid};
use etl_fixtures::trace;
use serde_json::{Value, json};

/// The ticks in a microsecond of the fixtures' clock.
const MICROSECOND: i64 = 10;

/// Returns a start event (opcode 1) or stop event (opcode 2) of the manifest's provider.
fn part(micros: i64, opcode: u8, activity: u8) -> EventRecord {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let event = trace::manifest_event(
        u32::from(opcode - 1) + 2 * u32::from(activity),
        header.start_clock + micros * MICROSECOND,
    );
    let activity_id = if activity == 0 { Guid::NULL } else { Guid::from_bytes([activity; 16]) };
    EventRecord { activity_id, ..event }
}

/// Returns a file with these events.
fn file(events: &[EventRecord]) -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    trace::of_records(header.clone(), header.start_clock, events)
}

/// Ten operations of 1 to 10 ms, one after the other.
fn ten() -> Vec<EventRecord> {
    let starts = (1..=10).map(|n: u8| (i64::from(n) * 20_000, n));
    starts.flat_map(|(at, n)| [part(at, 1, n), part(at + i64::from(n) * 1000, 2, n)]).collect()
}

fn json(folder: &Folder, options: &[&str]) -> Value {
    let manifest = manifest();
    let arguments = [&["durations", "--format", "json", "--man", &manifest], options].concat();
    serde_json::from_slice(&folder.etl(&arguments).ok().bytes).unwrap()
}

#[test]
fn operations_are_counted_and_the_slowest_have_their_fields() {
    let folder = Folder::with("a.etl", file(&ten()));
    let all = json(&folder, &["a.etl"]);
    let row = &all["operations"][0];
    for (name, expected) in [
        ("event", json!("RequestStart")),
        ("count", json!(10)),
        ("total_ns", json!(55_000_000)),
        ("min_ns", json!(1_000_000)),
        ("p50_ns", json!(5_000_000)),
        ("p90_ns", json!(9_000_000)),
        ("p99_ns", json!(10_000_000)),
        ("max_ns", json!(10_000_000)),
    ] {
        assert_eq!(row[name], expected, "{name}");
    }
    let slowest = row["slowest"].as_array().unwrap();
    let nanos: Vec<_> = slowest.iter().map(|one| one["duration_ns"].as_u64().unwrap()).collect();
    assert_eq!(nanos, [10_000_000, 9_000_000, 8_000_000]);
    assert_eq!(slowest[0]["start"], "2026-01-02T03:04:05.2000000Z");
    assert_eq!(slowest[0]["process"], 0x55);
    assert_eq!(slowest[0]["start_fields"]["request"], 20);
    assert_eq!(slowest[0]["stop_fields"]["request"], 21);
    assert_eq!(all["counts"]["operations"], 10);

    let table = folder.etl(&["durations", "--slowest", "1", "--man", &manifest(), "a.etl"]).ok();
    let table =
        table.text().split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    for text in [
        "10 ┆ 55.000ms ┆ 1.000ms ┆ 5.000ms ┆ 9.000ms ┆ 10.000ms ┆ 10.000ms │",
        "10.000ms from 2026-01-02T03:04:05.2000000Z, process 85, thread 68\n start Request 20",
        "request=20",
        "request=21",
        "\n10 operations\n",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert_eq!(table.matches("\n start ").count(), 1, "{table}");
}

#[test]
fn events_without_a_partner_are_counted() {
    let events = [part(0, 2, 1), part(1, 1, 2), part(2, 1, 3), part(3, 1, 0), part(4, 2, 3)];
    let folder = Folder::with("a.etl", file(&events));
    let all = json(&folder, &["a.etl"]);
    let counts = &all["counts"];
    let found = ["operations", "starts_without_stop", "stops_without_start", "without_activity"]
        .map(|name| counts[name].as_u64().unwrap());
    assert_eq!(found, [1, 1, 1, 1]);
    let table = folder.etl(&["durations", "a.etl"]).ok().text();
    assert!(table.contains("\n1 start events have no stop event\n"), "{table}");
    assert!(table.contains("\n1 stop events have no start event\n"), "{table}");
}

#[test]
fn the_start_event_selects_an_operation() {
    let folder = Folder::with("a.etl", file(&ten()));
    // The stop event of the operation that starts at 200 ms is later.
    let to = ["--from", "2026-01-02T03:04:05.19Z", "--to", "2026-01-02T03:04:05.205Z"];
    for options in [&["--event", "RequestStart", "--process", "85"][..], &to] {
        let all = json(&folder, &[&["a.etl"], options].concat());
        assert_eq!(all["counts"]["starts_without_stop"], 0, "{all}");
        assert_eq!(all["counts"]["stops_without_start"], 0, "{all}");
        let count = if options == to { 1 } else { 10 };
        assert_eq!(all["counts"]["operations"], count, "{all}");
    }
    let none = json(&folder, &["a.etl", "--event", "RequestStop"]);
    assert_eq!(none["operations"], json!([]));
}

#[test]
fn operations_of_several_files_are_added_up_but_not_paired() {
    let folder = Folder::with("a.etl", file(&ten()));
    folder.write("b.etl", file(&[part(0, 2, 9), part(1, 1, 5), part(8, 2, 5), part(9, 1, 7)]));
    folder.write("c.etl", file(&[part(10, 2, 7)]));
    let all = json(&folder, &["a.etl", "b.etl", "c.etl"]);
    assert_eq!(all["operations"][0]["count"], 11);
    assert_eq!(all["operations"][0]["min_ns"], 7000);
    assert_eq!(all["counts"]["stops_without_start"], 2);
    assert_eq!(all["counts"]["starts_without_stop"], 1);
}
