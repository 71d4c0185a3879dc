//! Tests the command `times`.

use crate::kernel_cli::{kernel, perfinfo};
use crate::run::Folder;
use etl_file::ClockType;
use etl_fixtures::{kernel_records, trace};
use serde_json::Value;

/// The ticks in a microsecond of the fixtures' clock.
const MICROSECOND: i64 = 10;

/// Returns a file in which thread 9 of process 7 runs from 1 to 3 ms, and waits until 4 ms.
fn file() -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let start = header.start_clock;
    let at = |micros: i64| start + micros * MICROSECOND;
    // The old thread's state is at offset 14.
    let mut back = kernel_records::switch(0);
    (back[4], back[14]) = (9, 5);
    let mut again = kernel_records::switch(9);
    again[14] = 2;
    let records = vec![
        (at(0), kernel(0x0303, 2, at(0), kernel_records::process(7, "app.exe"))),
        (at(1), kernel(0x0503, 3, at(1), kernel_records::thread(7, 9, "worker"))),
        (at(1000), perfinfo(0x0524, at(1000), kernel_records::switch(9))),
        (at(3000), perfinfo(0x0524, at(3000), back)),
        (at(4000), perfinfo(0x0524, at(4000), again)),
    ];
    trace::of_records(header, start, records)
}

fn json(folder: &Folder, options: &[&str]) -> Value {
    let arguments = [&["times", "--format", "json"], options].concat();
    serde_json::from_slice(&folder.etl(&arguments).ok().bytes).unwrap()
}

#[test]
fn recorded_switches_give_the_times_of_processes_and_threads() {
    let folder = Folder::with("a.etl", file());
    for (by, thread) in [("process", Value::Null), ("thread", "worker (9)".into())] {
        let all = json(&folder, &["--by", by, "a.etl"]);
        let rows = all["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == "app.exe (7)").unwrap();
        assert_eq!(row["running_ns"], 2_000_000, "{row}");
        assert_eq!((&row["waiting_ns"], &row["switches"]), (&1_000_000.into(), &2.into()));
        assert_eq!(row["thread"], thread);
        assert_eq!(all["counts"]["context_switches"], 3);
    }
    let part = json(&folder, &["--from", "+0.002s", "--to", "+0.0035s", "a.etl"]);
    let row = part["rows"].as_array().unwrap().iter().find(|row| row["name"] == "app.exe (7)");
    assert_eq!(row.unwrap()["waiting_ns"], 500_000);
}
