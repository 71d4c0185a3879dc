//! Tests the command `merge`.

use std::fs;

use etl_file::write::Losses;
use etl_file::{ClockType, Trace};
use etl_fixtures::sessions::{driver_trace, kernel_trace};
use etl_fixtures::trace;

/// Runs the command and returns its exit code and output.
fn etl(arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_etl")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn the_command_names_the_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, two, out) = (path("one.etl"), path("two.etl"), path("out.etl"));
    let header = || trace::header(ClockType::Qpc, 0x1000, 1);
    let (file, _) = trace::file(header(), 20, Losses::default());
    fs::write(&one, &file).unwrap();
    fs::write(&two, &file[..file.len() - 8]).unwrap();
    let (code, said) = etl(&["merge", &one, &two, "-o", &out]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("two.etl: at offset 0x1ff8"), "{said}");
    assert!(said.contains("40 events of 2 files"), "{said}");
    assert_eq!(Trace::open(&out).unwrap().events().count(), 40);
    fs::remove_file(&out).unwrap();
    fs::write(&two, b"no trace").unwrap();
    let (code, said) = etl(&["merge", &one, &two, "-o", &out]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("two.etl: "), "{said}");
    assert!(!fs::exists(&out).unwrap());
    fs::write(&two, &file).unwrap();
    let (code, said) = etl(&["merge", &one, &two, "--out", &out]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said, format!("40 events of 2 files in {out}\n"));
    assert_eq!(Trace::open(&out).unwrap().events().count(), 40);
    let (code, said) = etl(&["merge", &one, &path("none.etl"), "-o", &out]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("none.etl"), "{said}");
}

#[test]
fn the_command_compresses_and_says_what_it_leaves_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, two, out) = (path("one.etl"), path("two.etl"), path("out.etl"));
    fs::write(&one, driver_trace(ClockType::SystemTime, 0, 400, Losses::default())).unwrap();
    fs::write(&two, kernel_trace()).unwrap();
    let (code, said) = etl(&["merge", "--compress", &one, &two, "-o", &out]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("401 events and 7 other records of 2 files"), "{said}");
    assert!(said.contains("omitted 2 records"), "{said}");
    assert!(fs::metadata(&out).unwrap().len() * 3 < fs::metadata(&one).unwrap().len());
    assert!(!fs::exists(path("out.etl.part")).unwrap());
}

#[test]
fn the_command_counts_records_that_it_cannot_sort() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, out) = (path("one.etl"), path("out.etl"));
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let start = header.start_clock;
    // The last record is earlier than the first record of its buffer.
    let buffers = [[10, 15], [20, 12]].map(|times| {
        let events = times.map(|time| trace::manifest_event(0, start + time));
        trace::buffer(0x1000, 0, events)
    });
    fs::write(&one, trace::of_buffers(header, start + 100, buffers)).unwrap();
    let (code, said) = etl(&["merge", &one, "-o", &out]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        format!(
            "4 events of 1 files in {out}\nwarning: 1 records were out of order and could not be \
             sorted\n"
        )
    );
}
