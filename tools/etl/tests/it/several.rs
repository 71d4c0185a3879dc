//! Tests commands on several files, and times since the start of a file.

use crate::run::{Folder, manifest};
use etl_file::write::Losses;
use etl_file::{ClockType, FileTime, LogFileHeader};
use etl_fixtures::trace;

/// Writes two files with 20 and 4 events, of which every second has the manifest's provider. The session
/// of the second file starts an hour later.
fn folder() -> Folder {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let folder = Folder::with("a.etl", trace::file(header.clone(), 20, Losses::default()).0);
    let start_time = FileTime::from_raw(header.start_time.raw() + 36_000_000_000);
    let losses = Losses { events_lost: 3, buffers_lost: 1 };
    folder.write("b.etl", trace::file(LogFileHeader { start_time, ..header }, 4, losses).0);
    folder
}

#[test]
fn a_table_of_several_files_has_a_heading_for_each() {
    let folder = folder();
    let table = folder.etl(&["dump", "a.etl", "b.etl"]).ok().text();
    let (first, second) = table.split_once("\n\nTrace    b.etl\nSession  ").unwrap();
    assert!(first.starts_with("Trace    a.etl\nSession  "), "{first}");
    assert!(first.contains("Holds    20 events"), "{first}");
    assert!(second.contains("Holds    4 events"), "{second}");
    let only = folder.etl(&["dump", "b.etl"]).ok().text();
    assert!(only.ends_with(second), "{only}");
}

#[test]
fn json_of_several_files_names_each_in_its_header() {
    let folder = folder();
    let lines = folder.etl(&["dump", "--format", "json", "a.etl", "b.etl"]).ok().lines();
    let headers: Vec<_> = lines.iter().filter(|line| line["record"] == "header").collect();
    assert_eq!(headers.len(), 2);
    assert_eq!((&headers[0]["path"], &headers[1]["path"]), (&"a.etl".into(), &"b.etl".into()));
    assert_eq!((lines.len(), &lines[22]["path"]), (28, &"b.etl".into()));
    let only = folder.etl(&["dump", "--format", "json", "a.etl"]).ok().lines();
    assert!(only[0].get("path").is_none(), "{only:?}");
}

/// Returns the cells of a column of CSV, with its heading, which contains no quoted line feeds.
fn column(text: &str, name: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let rows: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
    let at = rows[0].iter().position(|cell| cell == name).unwrap();
    rows.iter().map(|row| row[at].to_owned()).collect()
}

#[test]
fn csv_of_several_files_has_their_names_and_one_set_of_columns() {
    let folder = folder();
    let fields = ["dump", "--format", "csv", "--fields", "a.etl", "b.etl"];
    let manifest = manifest();
    for arguments in
        [&fields[..], &["dump", "--format", "csv", "a.etl", "b.etl", "--man", &manifest]]
    {
        let files = column(&folder.etl(arguments).ok().text(), "file");
        let expected = [&["file"][..], &["a.etl"; 20], &["b.etl"; 4]].concat();
        assert_eq!(files, expected);
    }
    let only = folder.etl(&["dump", "--format", "csv", "a.etl"]).ok().text();
    assert!(only.lines().next().unwrap().ends_with("channel"), "{only}");
    // No event of b.etl is in this time, so that it has no fields.
    let limits = ["--man", &manifest, "--to", "2026-01-02T03:30:00Z"];
    let ran = folder.etl(&[&fields[..], &limits].concat());
    ran.fails(1, &["b.etl has other fields than a.etl", "one command for each file"]);
}

#[test]
fn other_formats_refuse_several_files_and_relative_times() {
    let folder = folder();
    for format in ["perfetto", "pcapng", "folded", "speedscope"] {
        let ran = folder.etl(&["dump", "--format", format, "--out", "out", "a.etl", "b.etl"]);
        ran.fails(1, &[&format!("{format} output shows one file, and 2 are named")]);
        let ran = folder.etl(&["dump", "--format", format, "--relative", "--out", "out", "a.etl"]);
        ran.fails(1, &[&format!("{format} output has no relative times")]);
        assert!(!folder.path("out").exists());
    }
}

#[test]
fn counts_of_several_files_are_added_up() {
    let folder = folder();
    let counts = folder.etl(&["stats", "--names", "a.etl", "b.etl"]).ok().text();
    // The hour between the files is no time in which events were written.
    assert!(counts.contains("24 events, 4500 bytes\nLost: 3 events, 1 buffers\n"), "{counts}");
    assert!(counts.contains("┆ Progress ┆ Verbose     ┆     12 ┆"), "{counts}");
    let mut damaged = folder.read("b.etl");
    damaged.pop();
    folder.write("b.etl", damaged);
    let ran = folder.etl(&["stats", "b.etl", "a.etl", "b.etl"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.said.matches("etl: b.etl: at offset ").count(), 2, "{}", ran.said);
    assert!(ran.text().contains("Damaged: 2 parts"), "{}", ran.text());
}

#[test]
fn relative_times_are_seconds_since_the_start() {
    let folder = folder();
    let relative = |format| folder.etl(&["dump", "--relative", "--format", format, "b.etl"]).ok();
    let table = relative("table").text();
    assert!(table.contains("\nTime (s)      CPU"), "{table}");
    assert!(table.contains("\n   0.0010000  0 "), "{table}");
    let lines = relative("json").lines();
    let times: Vec<_> = lines[1..5].iter().map(|line| line["time"].as_f64().unwrap()).collect();
    assert_eq!(times, [0.001, 0.002, 0.003, 0.004]);
    let times = column(&relative("csv").text(), "time in s");
    assert_eq!(times, ["time in s", "0.0010000", "0.0020000", "0.0030000", "0.0040000"]);
}

#[test]
fn events_are_selected_by_times_since_the_start_of_their_file() {
    let folder = folder();
    let lines = |options: &[&str]| {
        let arguments = [&["dump", "--format", "json", "--relative", "a.etl", "b.etl"], options];
        let lines = folder.etl(&arguments.concat()).ok().lines();
        let times = lines.iter().filter_map(|line| line["time"].as_f64());
        times.collect::<Vec<_>>()
    };
    for options in [
        ["--from", "+2ms", "--to", "+0.003s"],
        ["--from", "+1000.1us", "--to", "+3ms"],
        ["--from", "+2000us", "--to", "+3.0ms"],
    ] {
        assert_eq!(lines(&options), [0.002, 0.003, 0.002, 0.003], "{options:?}");
    }
    // The files of a merged trace have one start.
    let merged =
        ["merge", "a.etl", "b.etl", "--from", "+19ms", "--to", "+1h 1500us", "-o", "c.etl"];
    let said = folder.etl(&merged).ok().text();
    assert!(said.starts_with("3 events of 2 files"), "{said}");
    for time in ["+2", "+", "+-2s", "+2 parsecs", "2s"] {
        let ran = folder.etl(&["dump", "a.etl", "--from", time]);
        assert_eq!(ran.code, Some(2), "{time}: {}", ran.said);
        assert!(ran.said.contains("since the start of the trace such as +1.5s"), "{}", ran.said);
    }
}
