//! The output of `etl` is the same on any number of threads.

use std::io::Cursor;
use std::num::NonZeroUsize;

use crate::kernel_cli::{APP, NTOSKRNL, image, kernel, perfinfo};
use crate::page;
use crate::run::{Folder, Ran, manifest};
use etl::json;
use etl_file::write::{ClassicRecord, Losses};
use etl_file::{
    Catalog, ClockType, Completion, EncodedRecord, EventRecord, ExtendedItem, Guid, LogFileHeader,
    Pipeline, ReadError, Selection, Trace, TraceFile, decode,
};
use etl_fixtures::{kernel_records, trace};

/// The commands and their arguments.
const OUTPUTS: [&[&str]; 10] = [
    &["dump"],
    &["dump", "--width", "100", "--names"],
    &["dump", "--format", "json"],
    &["dump", "--format", "json", "--names", "--level", "4"],
    &["dump", "--format", "csv"],
    &["dump", "--format", "csv", "--fields"],
    &["dump", "--format", "perfetto"],
    &["dump", "--format", "perfetto", "--names"],
    &["stats"],
    &["stats", "--names"],
];

/// The name of a test's file.
const FILE: &str = "trace.etl";

fn etl(folder: &Folder, arguments: &[&str], file: &str, threads: &str) -> Ran {
    folder.etl(&[arguments, &[file, "--threads", threads, "--man", &manifest()]].concat())
}

/// Checks that a file's outputs are the same on several threads. Returns its JSON lines.
fn assert_same_output(name: &str, file: &[u8], outputs: &[&[&str]]) -> String {
    let folder = Folder::with(FILE, file);
    let mut lines = String::new();
    for arguments in outputs {
        let one = etl(&folder, arguments, FILE, "1");
        for threads in ["2", "5"] {
            let several = etl(&folder, arguments, FILE, threads);
            let difference = one.bytes.iter().zip(&several.bytes).position(|(a, b)| a != b);
            assert_eq!(difference, None, "{name}: {arguments:?} on {threads}");
            assert_eq!(several.bytes.len(), one.bytes.len(), "{name}: {arguments:?}");
            let rest = |ran: &Ran| (ran.code, ran.said.clone());
            assert_eq!(rest(&several), rest(&one), "{name}: {arguments:?} on {threads}");
        }
        if **arguments == ["dump", "--format", "json"] {
            lines = one.text();
        }
    }
    lines
}

/// Returns a file with enough events for several batches per thread.
fn many() -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x4000, 3);
    trace::file(header, 2500, Losses { events_lost: 3, buffers_lost: 1 }).0
}

#[test]
fn events_of_providers_have_the_same_output_as_on_one_thread() {
    let file = many();
    let lines = assert_same_output("events", &file, &OUTPUTS);
    let mut trace = TraceFile::new(Cursor::new(&file)).unwrap();
    let mut catalog = Catalog::new();
    catalog.load(trace::manifest_path()).unwrap();
    let mut expected = Vec::new();
    json::write_lines(&mut trace, &Pipeline::new(&catalog), &mut expected).unwrap();
    assert_eq!(lines.lines().count(), 2502);
    assert!(lines.as_bytes() == expected);
}

/// Returns a file in which other events provide the events' stacks, threads and names.
fn completed() -> Vec<u8> {
    let mut records: Vec<(i64, EncodedRecord)> = vec![
        (100, kernel(0x0303, 2, 100, kernel_records::process(7, "app.exe"))),
        (110, kernel(0x0503, 3, 110, kernel_records::thread(7, 9, "worker"))),
        (120, image(120, 4, NTOSKRNL, r"\SystemRoot\system32\ntoskrnl.exe")),
        (130, image(130, 7, APP, r"\Device\HarddiskVolume3\app.exe")),
    ];
    for n in 0..1000_i64 {
        let time = 1000 + 10 * n;
        let mut dpc = time.to_le_bytes().to_vec();
        dpc.extend((NTOSKRNL + 0x50).to_le_bytes());
        // Every hundredth stack belongs to no event.
        let of = if n % 100 == 0 { 1 } else { time - 29 };
        let stack = kernel_records::stack(of, 7, 9, &[NTOSKRNL + 0x10, APP + 0x20]);
        records.push((time, perfinfo(0x0524, time, kernel_records::switch(9))));
        records.push((time + 1, kernel(0x030b, 2, time + 1, vec![7, 0, 0, 0])));
        records.push((time + 2, perfinfo(0x0f44, time + 2, dpc)));
        records.push((time + 3, kernel(0x1820, 2, time + 3, stack)));
        records.push((time + 4, kernel(0x7777, 1, time + 4, vec![1; 5])));
    }
    trace::of_records(LogFileHeader::default(), 50_000, records)
}

#[test]
fn events_that_others_complete_have_the_same_output_as_on_one_thread() {
    let file = completed();
    let lines = assert_same_output("completed", &file, &OUTPUTS);
    assert!(lines.contains("app.exe+0x20"), "stacks have images");
    let mut trace = TraceFile::new(Cursor::new(&file)).unwrap();
    let mut expected = Vec::new();
    let (catalog, completion) = (Catalog::new(), Completion::default());
    let pipeline = Pipeline { completion: Some(&completion), ..Pipeline::new(&catalog) };
    json::write_lines(&mut trace, &pipeline, &mut expected).unwrap();
    assert!(lines.as_bytes() == expected);
}

#[test]
fn records_of_every_form_have_the_same_output() {
    let records = kernel_records::generated().into_iter();
    let records = (100..).zip(records).map(|(time, (_, record))| (time, record));
    let header = LogFileHeader { buffer_size: 0x1_0000, ..LogFileHeader::default() };
    assert_same_output("forms", &trace::of_records(header, 50_000, records), &OUTPUTS);
}

/// Returns a file with enough network adapter addresses for several batches, in records of both
/// forms, complete and truncated.
fn with_hardware_addresses(records: Vec<(i64, EncodedRecord)>) -> Vec<u8> {
    let class = Guid::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
    let whole = kernel_records::network_interface();
    let adapters = (60_000..60_300).map(|time| {
        let user_data = if time % 3 == 0 { whole[..1070].to_vec() } else { whole.clone() };
        let record = if time % 2 == 0 {
            let mut event = EventRecord {
                provider: class,
                timestamp: time,
                user_data,
                ..EventRecord::default()
            };
            event.descriptor.opcode = 36;
            EncodedRecord::new(&event).unwrap()
        } else {
            EncodedRecord::try_from(&ClassicRecord {
                class,
                opcode: 36,
                timestamp: time,
                payload: user_data,
                ..ClassicRecord::default()
            })
            .unwrap()
        };
        (time, record)
    });
    let records = records.into_iter().chain(adapters);
    let header = LogFileHeader { buffer_size: 0x1_0000, ..LogFileHeader::default() };
    trace::of_records(header, 100_000, records)
}

#[test]
fn the_addresses_of_network_adapters_are_hidden_on_any_number_of_threads() {
    let process = kernel(0x0303, 2, 100, kernel_records::process(7, "app.exe"));
    // Events of the first file are completed; the second file's events are not.
    for records in [vec![(100, process)], vec![]] {
        let folder = Folder::with(FILE, with_hardware_addresses(records));
        let part = ["merge", FILE, "--level", "5", "--hardware-addresses", "--out", "part.etl"];
        folder.etl(&part).ok();
        for file in [FILE, "part.etl"] {
            folder.etl(&["report", file, "--out", "page.html"]).ok();
            let data = page::data(std::str::from_utf8(&folder.read("page.html")).unwrap());
            assert!(data.contains("(hidden)"), "the page shows adapters");
            for address in ["02:00:00:00:00:0", "02000000000"] {
                let (_, details) = data.split_once("details:").unwrap();
                let (details, _) = details.split_once("\nrows:").unwrap();
                assert!(!details.contains(address), "the page: {address}");
            }
            for arguments in OUTPUTS.iter().filter(|arguments| arguments[0] == "dump") {
                let [one, three] = ["1", "3"].map(|threads| etl(&folder, arguments, file, threads));
                assert!(one.bytes == three.bytes, "{arguments:?}");
                let one = one.ok();
                let text = String::from_utf8_lossy(&one.bytes);
                if !arguments.contains(&"--level") {
                    assert!(text.matches("(hidden)").count() >= 200, "{arguments:?}");
                }
                for address in ["02:00:00:00:00:0", "02000000000"] {
                    assert!(!text.contains(address), "{arguments:?}: {address}");
                }
                let arguments = [arguments, &["--hardware-addresses"][..]].concat();
                let shown = etl(&folder, &arguments, file, "3").bytes;
                let shown = String::from_utf8_lossy(&shown);
                assert!(shown.contains("02:00:00:00:00:01"), "{arguments:?}");
                assert!(!shown.contains("(hidden)"), "{arguments:?}");
            }
        }
    }
}

/// Returns the output of `etl dump` for events with a status code, on one and on three threads.
fn statuses(arguments: &[&str]) -> String {
    let mut metadata = b"\0\0\0E\0status\0\x88\x0E".to_vec();
    metadata[0] = u8::try_from(metadata.len()).unwrap();
    let records = (100..2100).map(|time| {
        let event = EventRecord {
            timestamp: time,
            extended: vec![ExtendedItem { ext_type: 11, data: metadata.clone() }],
            user_data: 0xC000_0022_u32.to_le_bytes().into(),
            ..EventRecord::default()
        };
        (time, EncodedRecord::new(&event).unwrap())
    });
    let file = trace::of_records(LogFileHeader::default(), 50_000, records);
    let folder = Folder::with(FILE, file);
    let arguments = [&["dump"], arguments].concat();
    let [one, three] = ["1", "3"].map(|threads| etl(&folder, &arguments, FILE, threads));
    assert!(one.bytes == three.bytes, "{arguments:?}");
    one.text()
}

#[test]
fn status_codes_have_their_names_on_request_on_any_number_of_threads() {
    let name = "STATUS_ACCESS_DENIED(0xc0000022)";
    for output in [&["--width", "200"][..], &["--format", "csv"], &["--format", "csv", "--fields"]]
    {
        let plain = statuses(output);
        assert_eq!((plain.matches("0xc0000022").count(), plain.contains(name)), (2000, false));
        assert_eq!(statuses(&[output, &["--codes"]].concat()).matches(name).count(), 2000);
    }
}

#[test]
fn damaged_and_truncated_files_have_the_same_output_and_messages() {
    let whole = many();
    let mut cut = Vec::new();
    for length in [0x4000 + 3, whole.len() / 2 + 1, whole.len() - 5000] {
        cut.push((format!("cut after {length}"), whole[..length].to_vec()));
    }
    let mut changed = whole.clone();
    // Changes record sizes, and bytes of metadata and payloads.
    for at in (0x4050..changed.len()).step_by(0x2F1D) {
        changed[at] ^= 0x5A;
    }
    cut.push(("changed".to_owned(), changed));
    let mut gone = whole;
    gone[0x8000..0xC000].fill(0);
    cut.push(("never written".to_owned(), gone));
    for (name, file) in cut {
        let lines = assert_same_output(&name, &file, &[OUTPUTS[0], OUTPUTS[2], OUTPUTS[8]]);
        assert!(!lines.contains("\"damages\":[]"), "{name}");
    }
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn a_trace_of_windows_has_the_same_output() {
        let file = std::fs::read(etw_test_support::sample("etl/AMSITrace.etl")).unwrap();
        assert_same_output("AMSI", &file, &OUTPUTS);
    }
}

#[test]
fn the_number_of_threads_is_positive_and_bounded() {
    for threads in ["0", "257", "two"] {
        let ran = etl(&Folder::new(), &["stats"], "none.etl", threads);
        assert_eq!(ran.code, Some(2), "{}", ran.said);
        assert!(ran.said.contains("--threads <N>"), "{}", ran.said);
    }
}

const fn on(threads: usize, catalog: &Catalog) -> Pipeline<'_> {
    Pipeline { threads: NonZeroUsize::new(threads).unwrap(), ..Pipeline::new(catalog) }
}

#[test]
fn a_pipeline_gives_the_same_events_and_counts_on_any_number_of_threads() {
    let records = kernel_records::generated().into_iter();
    let records = (100..).zip(records).map(|(time, (_, record))| (time, record));
    let header = LogFileHeader { buffer_size: 0x1_0000, ..LogFileHeader::default() };
    let mut damaged = many();
    damaged[0x8000..0xC000].fill(0);
    let files = [
        ("events", many(), false),
        ("damaged", damaged, false),
        ("completed", completed(), true),
        ("forms", trace::of_records(header, 50_000, records), true),
        ("adapters", with_hardware_addresses(vec![]), false),
    ];
    let mut catalog = Catalog::new();
    catalog.load(trace::manifest_path()).unwrap();
    let completion = Completion { names: true, ..Completion::default() };
    let few = Selection { level: Some(3), ..Selection::default() };
    for (name, bytes, can_complete) in files {
        let open = || TraceFile::new(Cursor::new(&bytes)).unwrap();
        for selection in [Selection::ALL, &few] {
            let of = |threads, completion| {
                let pipeline = Pipeline { selection, completion, ..on(threads, &catalog) };
                let (events, summary) = trace::events(&mut open(), &pipeline);
                assert_eq!(summary.selected, events.len() as u64, "{name}");
                (events, summary)
            };
            let [plain, complete] = [None, Some(&completion)].map(|completion| {
                let one = of(1, completion);
                for threads in [2, 5] {
                    assert!(of(threads, completion) == one, "{name} on {threads} threads");
                }
                one
            });
            // Completion changes no other trace.
            assert_eq!(plain != complete, can_complete, "{name}");
        }
    }
}

#[test]
fn a_pipeline_decodes_the_events_of_a_trace_in_time_order() {
    let file = many();
    let mut catalog = Catalog::new();
    catalog.load(trace::manifest_path()).unwrap();
    let whole = Trace::parse(&file).unwrap();
    let expected: Vec<_> = whole
        .events_by_time()
        .into_iter()
        .map(|event| (event.clone(), decode(event, &catalog)))
        .collect();
    let mut file = TraceFile::new(Cursor::new(&file)).unwrap();
    let (events, summary) = trace::events(&mut file, &on(3, &catalog));
    assert!(events == expected);
    let all = (summary.decoded, summary.selected, summary.with_problems, summary.late);
    assert_eq!(all, (2500, 2500, 0, 0));
}

/// The error of a pass, and the events that were taken before it.
#[derive(Debug, PartialEq)]
enum Stopped {
    Read,
    Here,
}

impl From<ReadError> for Stopped {
    fn from(_: ReadError) -> Self {
        Self::Read
    }
}

#[test]
fn the_events_before_an_error_are_taken() {
    let file = many();
    let (catalog, completion) = (Catalog::new(), Completion::default());
    let completions = [None, Some(&completion)];
    for (threads, completion) in [1, 2, 7].into_iter().flat_map(|n| completions.map(|it| (n, it))) {
        let mut trace = TraceFile::new(Cursor::new(&file)).unwrap();
        let pipeline = Pipeline { completion, ..on(threads, &catalog) };
        let mut taken = Vec::new();
        let start = trace.header().session.start_clock;
        let result = pipeline.run(
            &mut trace,
            || (),
            |(), event, _, batch: &mut Vec<i64>| {
                let number = (event.timestamp - start) / 10_000;
                batch.push(number);
                if number == 1333 { Err(Stopped::Here) } else { Ok(()) }
            },
            |batch| {
                taken.append(batch);
                Ok(())
            },
        );
        assert_eq!(result.err(), Some(Stopped::Here));
        assert!(taken.iter().copied().eq(1..=1333), "{threads}: {} events", taken.len());
    }
}
