//! Tests the command `merge`.

use crate::run::Folder;
use etl_file::write::Losses;
use etl_file::{ClockType, Trace};
use etl_fixtures::sessions::{driver_trace, kernel_trace};
use etl_fixtures::trace;

#[test]
fn the_command_names_the_damage() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let (file, _) = trace::file(header, 20, Losses::default());
    let folder = Folder::with("one.etl", &file);
    let merge = |two: &[u8]| {
        folder.write("two.etl", two);
        folder.etl(&["merge", "one.etl", "two.etl", "-o", "out.etl"])
    };
    let ran = merge(&file[..file.len() - 8]);
    ran.fails(1, &["two.etl: at offset 0x1ff8"]);
    assert!(ran.text().contains("40 events of 2 files"), "{}", ran.text());
    assert_eq!(Trace::parse(&folder.read("out.etl")).unwrap().events().count(), 40);
    std::fs::remove_file(folder.path("out.etl")).unwrap();
    merge(b"no trace").fails(1, &["two.etl: "]);
    assert!(!folder.path("out.etl").exists());
    assert_eq!(merge(&file).ok().text(), "40 events of 2 files in out.etl\n");
    assert_eq!(Trace::parse(&folder.read("out.etl")).unwrap().events().count(), 40);
    folder.etl(&["merge", "one.etl", "none.etl", "-o", "out.etl"]).fails(1, &["none.etl"]);
}

#[test]
fn the_command_compresses_and_says_what_it_leaves_out() {
    let driver = driver_trace(ClockType::SystemTime, 0, 400, Losses::default());
    let folder = Folder::with("one.etl", &driver);
    folder.write("two.etl", kernel_trace());
    let ran = folder.etl(&["merge", "--compress", "one.etl", "two.etl", "-o", "out.etl"]).ok();
    let said = ran.text();
    assert!(said.contains("401 events and 7 other records of 2 files"), "{said}");
    assert!(said.contains("omitted 2 records"), "{said}");
    assert!(folder.read("out.etl").len() * 3 < driver.len());
    assert!(!folder.path("out.etl.part").exists());
}

#[test]
fn the_command_counts_records_that_it_cannot_sort() {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let start = header.start_clock;
    // The last record is earlier than the first record of its buffer.
    let buffers = [[10, 15], [20, 12]].map(|times| {
        let events = times.map(|time| trace::manifest_event(0, start + time));
        trace::buffer(0x1000, 0, events)
    });
    let folder = Folder::with("one.etl", trace::of_buffers(header, start + 100, buffers));
    let ran = folder.etl(&["merge", "one.etl", "-o", "out.etl"]).ok();
    assert_eq!(ran.text(), "4 events of 1 files in out.etl\n");
    assert_eq!(ran.said, "warning: 1 records were out of order and could not be sorted\n");
}
