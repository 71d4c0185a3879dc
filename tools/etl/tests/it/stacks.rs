//! Tests the outputs of call stacks: folded stacks, and profiles for speedscope.

use crate::kernel_cli::{APP, NTOSKRNL, image, kernel, perfinfo};
use crate::run::Folder;
use etl_file::{EncodedRecord, LogFileHeader};
use etl_fixtures::{kernel_records, trace};
use serde_json::{Value, json};

/// Returns the payload of an event that states the interval between samples, in 100 ns.
fn interval(source: u32, new: u32) -> Vec<u8> {
    [source, new, 10_000].into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Returns the records of a sample of thread 9, with its stack if there are frames.
fn sample(at: i64, frames: &[u64]) -> Vec<(i64, EncodedRecord)> {
    let mut payload = (APP + 0x10).to_le_bytes().to_vec();
    payload.extend([9, 0, 0, 0, 1, 0, 0, 0]);
    let mut records = vec![(at, perfinfo(0x0F2E, at, payload))];
    if !frames.is_empty() {
        records.push((at + 1, kernel(0x1820, 2, at + 1, kernel_records::stack(at, 7, 9, frames))));
    }
    records
}

/// Writes a file with four samples: two with the same stack, one with another, one without.
fn folder(intervals: &[(i64, u32, u32)]) -> Folder {
    let mut records = vec![
        (100, kernel(0x0303, 2, 100, kernel_records::process(7, "a;b.exe"))),
        (110, kernel(0x0503, 3, 110, kernel_records::thread(7, 9, "worker"))),
        (120, image(120, 4, NTOSKRNL, r"\SystemRoot\system32\ntoskrnl.exe")),
        (130, image(130, 7, APP, r"\Device\HarddiskVolume3\app.exe")),
        (140, kernel(0x030b, 2, 140, vec![7, 0, 0, 0])),
        (141, kernel(0x1820, 2, 141, kernel_records::stack(140, 7, 9, &[APP + 0x50]))),
    ];
    let stack = [NTOSKRNL + 0x10, APP + 0x20, APP + 0x30];
    records.extend(sample(200, &stack));
    records.extend(sample(300, &stack));
    records.extend(sample(400, &stack[1..]));
    records.extend(sample(500, &[]));
    for (at, source, new) in intervals {
        records.push((*at, perfinfo(0x0F49, *at, interval(*source, *new))));
    }
    records.sort_by_key(|(at, _)| *at);
    Folder::with("a.etl", trace::of_records(LogFileHeader::default(), 1000, records))
}

#[test]
fn folded_stacks_are_counted_by_thread() {
    let ran = folder(&[]).etl(&["dump", "--format", "folded", "a.etl"]).ok();
    let expected = "a:b.exe (7);worker (9);app.exe+0x30;app.exe+0x20;ntoskrnl.exe+0x10 2\n\
                    a:b.exe (7);worker (9);app.exe+0x30;app.exe+0x20 1\n\
                    a:b.exe (7);worker (9);app.exe+0x10 1\n";
    assert_eq!(ran.text(), expected);
    let said = "a.etl: 1 samples have no call stack; their only frame is the sampled code\n";
    assert!(ran.said.contains(said), "{}", ran.said);
}

#[test]
fn the_stacks_of_other_events_are_shown_if_they_are_selected() {
    let folder = folder(&[(150, 0, 10_000)]);
    let ran = folder.etl(&["dump", "--format", "folded", "--provider", "Process", "a.etl"]).ok();
    assert_eq!(ran.text(), "a:b.exe (7);worker (9);app.exe+0x50 1\n");
    assert!(
        ran.said.contains("a.etl: 1 events have no call stack, and are omitted"),
        "{}",
        ran.said
    );
    let arguments = ["dump", "--format", "speedscope", "--event", "Terminate", "a.etl"];
    let file = folder.etl(&arguments).ok().lines().remove(0);
    assert_eq!(file["profiles"][0]["unit"], "none");
    folder
        .etl(&["dump", "--format", "folded", "--process", "77", "a.etl"])
        .fails(1, &["a.etl: ", "no profile samples", "--event"]);
}

/// Checks the rules of speedscope's published schema: the required members, their types, and the
/// limits that its reader relies on.
fn assert_valid(file: &Value) {
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["name"].is_string()), "{frames:?}");
    let profiles = file["profiles"].as_array().unwrap();
    assert!(!profiles.is_empty());
    let units = ["bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"];
    for profile in profiles {
        assert_eq!(profile["type"], "sampled");
        assert!(profile["name"].is_string());
        assert!(units.contains(&profile["unit"].as_str().unwrap()));
        let samples = profile["samples"].as_array().unwrap();
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!(samples.len(), weights.len());
        for frame in samples.iter().flat_map(|sample| sample.as_array().unwrap()) {
            assert!(frame.as_u64().unwrap() < frames.len() as u64);
        }
        let total: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        let (start, end) = (&profile["startValue"], &profile["endValue"]);
        assert_eq!(end.as_u64().unwrap() - start.as_u64().unwrap(), total);
    }
}

#[test]
fn speedscope_has_a_profile_for_each_thread() {
    let profile = |intervals: &[(i64, u32, u32)]| {
        let ran = folder(intervals).etl(&["dump", "--format", "speedscope", "a.etl"]).ok();
        let file: Value = serde_json::from_slice(&ran.bytes).unwrap();
        assert_valid(&file);
        assert_eq!(file["profiles"].as_array().unwrap().len(), 1);
        file
    };
    let file = profile(&[]);
    let names = ["app.exe+0x30", "app.exe+0x20", "ntoskrnl.exe+0x10", "app.exe+0x10"];
    assert_eq!(file["shared"]["frames"], json!(names.map(|name| json!({"name": name}))));
    let only = &file["profiles"][0];
    assert_eq!(only["name"], "a;b.exe (7), worker (9)");
    assert_eq!(only["samples"], json!([[0, 1, 2], [0, 1, 2], [0, 1], [3]]));
    assert_eq!((&only["unit"], &only["weights"]), (&json!("none"), &json!([1, 1, 1, 1])));
    // The interval is stated after the first sample and changes; that of another source is of no
    // concern.
    let file = profile(&[(250, 0, 10_000), (260, 1, 77), (350, 0, 20_000)]);
    let only = &file["profiles"][0];
    assert_eq!(only["unit"], "nanoseconds");
    assert_eq!(only["weights"], json!([1_000_000, 1_000_000, 2_000_000, 2_000_000]));
}
