//! Tests that sessions receive the messages of a driver that traces with WPP: both ways of
//! registration, level and flags, messages and their format in the file, and faults.

use crate::common::{self, CLIENT, lines};
use std::{
    fs,
    path::{Path, PathBuf},
};

use etl_file::internals::kernel;
use etl_file::{Catalog, Decoded, EventRecord, OtherKind, Pipeline, Trace, symbols};
use serde_json::{Value, json};
use standin_kernel::{
    BugCheck, EnableParameters, Fault, Guid, Kernel, KernelError, NtStatus, Recording, Rule,
    Sequence, SessionConfig, SessionHandle, Target, Violation,
};

/// The control GUIDs of the driver's two sets of flags.
const SETS: [&str; 2] =
    ["6d2c1f80-4a57-4f0c-9b3e-112233445501", "6d2c1f80-4a57-4f0c-9b3e-112233445502"];

fn set(number: usize) -> Target {
    Target::Provider(SETS[number].parse::<Guid>().unwrap())
}

fn parameters(level: u8, flags: u64) -> EnableParameters {
    EnableParameters { level, match_any: flags, ..EnableParameters::default() }
}

/// Returns the formats of the driver's messages.
fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let folder = etw_test_support::root().join("tests/drivers/wpp/formats");
    assert_eq!(catalog.load_formats(folder).unwrap(), []);
    catalog
}

/// A kernel with a session.
struct Bench {
    kernel: Kernel,
    folder: tempfile::TempDir,
    session: SessionHandle,
}

impl Bench {
    fn new(config: impl FnOnce(SessionConfig) -> SessionConfig) -> Self {
        let kernel = Kernel::new();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("wpp.etl");
        let session = SessionConfig { buffer_kb: 4, ..SessionConfig::to_file("wpp", file) };
        Self { session: kernel.start_session(config(session)).unwrap(), kernel, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("wpp.etl")
    }

    fn second(&self) -> SessionHandle {
        let file = self.folder.path().join("second.etl");
        let config = SessionConfig::to_file("second", file);
        self.kernel.start_session(config).unwrap()
    }

    /// Loads the driver, opens its device, and unloads it.
    fn open_once(&self, service: &str) {
        let driver = self.kernel.load_as(&common::wpp(), service).unwrap();
        let device = driver.add_device().unwrap();
        device.open(CLIENT).unwrap().close().unwrap();
        common::leave(driver, &device);
    }

    /// Stops the session, and returns its decoded events.
    fn events(self) -> Vec<Decoded> {
        self.kernel.stop_session(self.session).unwrap();
        decode_all(&self.file())
    }
}

/// Decodes a file with the formats of the driver's messages.
fn decode_all(file: &Path) -> Vec<Decoded> {
    let catalog = catalog();
    let mut trace = etl_file::TraceFile::open(file).unwrap();
    let (events, _) = etl_fixtures::trace::events(&mut trace, &Pipeline::new(&catalog));
    events.into_iter().map(|(_, decoded)| decoded).collect()
}

fn texts(events: &[Decoded]) -> Vec<&str> {
    let texts = events.iter().map(|event| event.message.as_deref());
    texts.map(Option::unwrap_or_default).collect()
}

/// Returns the expected contents of a message about an opened file, by message number.
fn text(number: u16, irql: u8) -> String {
    match number {
        10 => format!("of_opening at {irql}: first"),
        11 => "TRACE_LEVEL_VERBOSE -5 FFFFFFFF80001234 \"device\" failed with \
               0xc0000022(STATUS_ACCESS_DENIED), DPC"
            .to_owned(),
        12 => "100% of OPENING in messages.rs:103".to_owned(),
        _ => format!("{} is 1.50", SETS[1]),
    }
}

#[test]
fn messages_reach_the_session_in_both_ways_of_registration() {
    for service in ["classic", "wmi"] {
        let bench = Bench::new(|config| config);
        for number in 0..2 {
            let everything = parameters(u8::MAX, u64::MAX);
            bench.kernel.enable(bench.session, set(number), everything).unwrap();
        }
        bench.open_once(service);
        assert_eq!(bench.kernel.warnings(), [], "{service}");
        let lines = lines(&bench.kernel);
        let enabled = "set 0 enabled for session 1, level 255, flags 0xffffffff";
        assert!(lines.iter().any(|line| line == enabled), "{lines:#?}");
        let events = bench.events();
        let expected: Vec<String> = [0, 15]
            .into_iter()
            .flat_map(|irql| (10..=13).map(move |number| text(number, irql)))
            .collect();
        assert_eq!(texts(&events), expected, "{service}");
        for event in &events {
            assert_eq!(event.problems, [], "{event:#?}");
            assert_eq!((event.process_id, event.thread_id), (10, 11));
            assert_eq!(event.provider_name.as_deref(), Some("etw_wpp_driver"));
            assert_eq!(event.task_name.as_deref(), Some("of_opening"));
        }
        let levels: Vec<u8> = events.iter().map(|event| event.descriptor.level).collect();
        assert_eq!(levels[..4], [4, 5, 2, 4]);
        // Timestamps never decrease.
        assert!(events.is_sorted_by_key(|event| event.timestamp));
    }
}

/// The symbol that clang writes for the annotation in `messages.c`. Unlike Microsoft's linker, LLVM's
/// linker keeps its space in the PDB but not its contents.
fn annotation() -> Vec<u8> {
    let strings = [
        "TMF:",
        "b7d01c5e-6a2f-3e94-9c08-44f1d3a85b60 etw_c_driver // SRC=messages.c MJ= MN=",
        "#typev messages_c80 10 \"%0request %10!#x! at %11!u!: %12!s! in %!FUNC!\" //   \
         LEVEL=TRACE_LEVEL_INFORMATION FLAGS=FLAG_REQUEST FUNC=MessageRequest",
        "{",
        "code, ItemLong -- 10",
        "irql, ItemLong -- 11",
        "name, ItemString -- 12",
        "}",
    ];
    let mut symbol = vec![0, 0, 0x19, 0x10, 0, 0, 0, 0, 0, 0];
    symbol.extend(u16::try_from(strings.len()).unwrap().to_le_bytes());
    for string in strings {
        symbol.extend(string.bytes());
        symbol.push(0);
    }
    symbol.resize(symbol.len().next_multiple_of(4), 0);
    let length = u16::try_from(symbol.len() - 2).unwrap();
    symbol[..2].copy_from_slice(&length.to_le_bytes());
    symbol
}

/// Writes a driver's PDB with the annotation's contents, as Microsoft's linker does.
fn annotated(pdb: &Path, to: &Path) {
    let annotation = annotation();
    let mut bytes = fs::read(pdb).unwrap();
    let mut room = vec![0; annotation.len()];
    room[..2].copy_from_slice(&annotation[..2]);
    room[2] = 7; // S_SKIP
    let at = bytes.windows(room.len()).position(|part| part == room);
    let at = at.expect("the room of an annotation");
    bytes[at..at + annotation.len()].copy_from_slice(&annotation);
    fs::write(to, bytes).unwrap();
}

// The formats are annotations in the PDB, as WPP creates them.
#[test]
fn a_driver_in_c_is_traced_by_its_pdb() {
    let control: Guid = "5e0c7a91-3d44-4b1e-8f62-0a9be5d27c14".parse().unwrap();
    for variant in ["od", "o2", "guard", "kernel"] {
        let image = common::c_driver(variant);
        let kernel = Kernel::new();
        let folder = tempfile::tempdir().unwrap();
        let config = SessionConfig::to_file("C", folder.path().join("c.etl"));
        let mut catalog = Catalog::new();
        let pdb = folder.path().join("c.pdb");
        annotated(&image.with_extension("pdb"), &pdb);
        let (formats, _) = symbols::formats_of(&pdb).unwrap();
        assert_eq!(formats.len(), 1, "{variant}");
        catalog.add_formats(&formats);
        let recording = Recording::start(&kernel, config, catalog).unwrap();
        kernel.enable(recording.session(), Target::Provider(control), parameters(4, 1)).unwrap();
        let driver = kernel.load(&image).unwrap();
        let device = driver.add_device().unwrap();
        let file = device.open(CLIENT).unwrap();
        file.device_control(0x22_2004, &[], 0).unwrap();
        file.close().unwrap();
        let events = recording.take().unwrap();
        let texts: Vec<_> = events.iter().map(|event| event.decoded.message.as_deref()).collect();
        let expected = "request 0x222004 at 0: control in MessageRequest";
        assert_eq!(texts, [Some(expected)], "{variant}");
        common::leave(driver, &device);
        recording.stop().unwrap();
        assert_eq!(kernel.warnings(), [], "{variant}");
    }
}

#[test]
fn level_and_flags_reach_the_driver() {
    for service in ["classic", "wmi"] {
        for (level, flags, expected) in [
            (4, 1, vec![10, 12]),
            (2, 1, vec![12]),
            (5, 2, vec![11]),
            (5, 3, vec![10, 11, 12]),
            (0, 3, vec![]),
            (5, 0, vec![]),
        ] {
            let bench = Bench::new(|config| config);
            let enabled = parameters(level, flags);
            bench.kernel.enable(bench.session, set(0), enabled).unwrap();
            bench.open_once(service);
            let events = bench.events();
            let numbers: Vec<u16> = events.iter().map(|event| event.descriptor.id).collect();
            assert_eq!(numbers, [expected.clone(), expected].concat(), "{level}");
        }
    }
}

// ETW-3.6.2
#[test]
fn the_last_session_that_enables_the_driver_has_it() {
    for service in ["classic", "wmi"] {
        let bench = Bench::new(|config| config);
        let kernel = &bench.kernel;
        let second = bench.second();
        let driver = kernel.load_as(&common::wpp(), service).unwrap();
        let device = driver.add_device().unwrap();
        let open = || device.open(CLIENT).unwrap().close().unwrap();
        open();
        kernel.enable(bench.session, set(0), parameters(4, 1)).unwrap();
        open();
        kernel.enable(second, set(0), parameters(2, 1)).unwrap();
        open();
        // The first session neither receives the driver again nor takes it from the other session.
        kernel.disable(bench.session, set(0), None).unwrap();
        open();
        kernel.disable(second, set(0), None).unwrap();
        open();
        kernel.enable(second, set(0), parameters(5, 2)).unwrap();
        kernel.stop_session(second).unwrap();
        open();
        common::leave(driver, &device);
        let lines = lines(&bench.kernel);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(
            lines,
            [
                "set 0 enabled for session 1, level 4, flags 0x1",
                "set 0 enabled for session 2, level 2, flags 0x1",
                "set 0 disabled",
                "set 0 enabled for session 2, level 5, flags 0x2",
                "set 0 disabled",
            ],
            "{service}"
        );
        let of_second = decode_all(&bench.folder.path().join("second.etl"));
        assert_eq!(texts(&of_second), vec![text(12, 0); 4]);
        let of_first = bench.events();
        let expected = [text(10, 0), text(12, 0), text(10, 15), text(12, 15)];
        assert_eq!(texts(&of_first), expected);
    }
}

#[test]
fn the_record_is_as_its_flags_say() {
    for sequence in [None, Some(Sequence::Local), Some(Sequence::Global)] {
        let bench = Bench::new(|config| SessionConfig { sequence, ..config });
        let kernel = &bench.kernel;
        kernel.enable(bench.session, set(0), parameters(5, 3)).unwrap();
        bench.open_once("classic");
        kernel.stop_session(bench.session).unwrap();
        let bytes = fs::read(bench.file()).unwrap();
        let trace = Trace::open(bench.file()).unwrap();
        let mode = trace.header().session.log_file_mode;
        let bit = match sequence {
            None => 0,
            Some(Sequence::Local) => 0x8000,
            Some(Sequence::Global) => 0x4000,
        };
        assert_eq!(mode & 0xC000, bit);
        let records: Vec<&[u8]> = trace
            .others()
            .map(|other| {
                assert_eq!(other.kind, OtherKind::Wpp);
                let start = usize::try_from(other.offset).unwrap();
                &bytes[start..start + usize::from(other.size)]
            })
            .collect();
        assert_eq!(records.len(), 6);
        let message: Guid = "0c3f5e7a-91d2-3b64-a105-5c2e77109d4f".parse().unwrap();
        // Size, marker, number, flags; GUID, time, thread and process; and the arguments.
        let number = u16::from(sequence.is_some());
        let first = records[0];
        let size = 8 + 4 * usize::from(number) + 16 + 8 + 8 + 1 + 6;
        assert_eq!(first.len(), size);
        assert_eq!(first[..2], u16::try_from(size).unwrap().to_le_bytes());
        assert_eq!(first[2..6], [0, 0x90, 10, 0]);
        assert_eq!(first[6..8], (0xAA | number).to_le_bytes());
        let after = if sequence.is_some() {
            assert_eq!(first[8..12], [1, 0, 0, 0]);
            &first[12..]
        } else {
            &first[8..]
        };
        assert_eq!(after[..16], message.to_bytes());
        assert_eq!(after[24..32], [11, 0, 0, 0, 10, 0, 0, 0]);
        assert_eq!(after[32..], *b"\0first\0");
        let numbers: Vec<Option<u32>> = records
            .iter()
            .map(|record| kernel::decode(record).unwrap().header.wpp.sequence)
            .collect();
        let expected: Vec<Option<u32>> = (1..=6).map(|n| sequence.map(|_| n)).collect();
        assert_eq!(numbers, expected);
        assert_dissect_agrees(&bench.file(), &records);
    }
}

/// Compares messages with the messages that dissect.etl, a third-party decoder, reads from their
/// file.
fn assert_dissect_agrees(file: &Path, records: &[&[u8]]) {
    // The decoder is compared on Linux, where it is installed.
    if cfg!(windows) {
        return;
    }
    let script = etw_test_support::oracle("dissect_messages.py");
    let output = etw_test_support::run_python([script.as_path(), file]);
    let theirs: Vec<Value> = output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let decoded = decode_all(file);
    assert_eq!((theirs.len(), decoded.len()), (6, 6));
    for ((theirs, record), event) in theirs.iter().zip(records).zip(&decoded) {
        let sequence = kernel::decode(record).unwrap().header.wpp.sequence;
        let start = if sequence.is_some() { 44 } else { 40 };
        let ours = json!({
            "number": event.descriptor.id,
            "sequence": sequence,
            "guid": event.provider.to_string(),
            "time": event.timestamp,
            "thread": event.thread_id,
            "process": event.process_id,
            "arguments": record[start..],
        });
        assert_eq!(*theirs, ours);
    }
}

#[test]
fn a_full_session_loses_messages_and_counts_them() {
    let bench =
        Bench::new(|config| SessionConfig { minimum_buffers: 2, maximum_buffers: 2, ..config });
    let kernel = &bench.kernel;
    kernel.enable(bench.session, set(0), parameters(5, 3)).unwrap();
    let driver = kernel.load_as(&common::wpp(), "classic").unwrap();
    let device = driver.add_device().unwrap();
    kernel.hold_writer(bench.session, true).unwrap();
    for _ in 0..40 {
        device.open(CLIENT).unwrap().close().unwrap();
    }
    let statistics = kernel.query_session(bench.session).unwrap();
    assert!(statistics.events_lost > 0, "{statistics:?}");
    assert_eq!(statistics.events + u64::from(statistics.events_lost), 240);
    kernel.hold_writer(bench.session, false).unwrap();
    common::leave(driver, &device);
    let report = kernel.stop_session(bench.session).unwrap();
    let trace = Trace::open(bench.file()).unwrap();
    assert_eq!(trace.others().count() as u64, report.events);
    assert_eq!(trace.header().events_lost, statistics.events_lost);
}

#[test]
fn a_recording_has_messages() {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let config = SessionConfig::to_file("WPP", folder.path().join("wpp.etl"));
    let recording = Recording::start(&kernel, config, catalog()).unwrap();
    let everything = parameters(u8::MAX, u64::MAX);
    kernel.enable_every_provider(recording.session(), everything).unwrap();
    let driver = kernel.load_as(&common::wpp(), "classic-events").unwrap();
    let providers: Vec<Guid> = kernel.providers().into_iter().map(|(guid, _)| guid).collect();
    assert_eq!(providers, SETS.map(|guid| guid.parse().unwrap()));
    let events = recording.take().unwrap();
    let types: Vec<(u8, u8, &[u8])> = events
        .iter()
        .map(|event| {
            let EventRecord { descriptor, user_data, .. } = &event.event.record;
            (descriptor.opcode, descriptor.level, user_data.as_slice())
        })
        .collect();
    assert_eq!(types, [(33, 3, &[1, 2, 3, 4][..]), (34, 4, b"field")]);
    assert_eq!(events[0].decoded.provider, SETS[1].parse().unwrap());
    let device = driver.add_device().unwrap();
    device.open(CLIENT).unwrap().close().unwrap();
    device.remove().unwrap();
    let events = recording.take().unwrap();
    assert_eq!(events.len(), 8);
    assert_eq!(events[0].decoded.message, Some(text(10, 0)));
    assert_eq!(events[0].event.record.descriptor.id, 10);
    driver.unload().unwrap();
    recording.stop().unwrap();
}

/// Loads the driver as a service while a session enables its first set, and unloads it. Returns the
/// driver's output and the warnings.
fn says(service: &str) -> (Vec<String>, Vec<Violation>) {
    let bench = Bench::new(|config| config);
    bench.kernel.enable(bench.session, set(0), parameters(4, 0x1F)).unwrap();
    let driver = bench.kernel.load_as(&common::wpp(), service).unwrap();
    driver.unload().unwrap();
    let mut lines = lines(&bench.kernel);
    lines.remove(0);
    (lines, bench.kernel.warnings())
}

#[test]
fn questions_about_sessions_are_answered() {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let config = SessionConfig::to_file("wpp", folder.path().join("wpp.etl"));
    let session = kernel.start_session(config).unwrap();
    kernel.enable(session, set(0), parameters(4, 0x1F)).unwrap();
    let driver = kernel.load_as(&common::wpp(), "query").unwrap();
    driver.unload().unwrap();
    let lines = kernel.debug_output().concat();
    let lines: Vec<&str> = lines.lines().filter(|line| line.contains(" bytes")).collect();
    assert_eq!(
        lines,
        [
            "id: 0x1, 0x0, 4 bytes",
            "flags: 0x1f, 0x0, 4 bytes",
            "level: 0x4, 0x0, 4 bytes",
            "handle: 0x1, 0x0, 8 bytes",
            "handle by name: 0x1, 0x0, 8 bytes",
            "no such name: 0x0, 0xc000000d, 8 bytes",
            "global logger: 0x0, 0xc0000225, 8 bytes",
            "all handles: 0x1, 0x0, 8 bytes",
            "no input: 0x0, 0xc0000030, 4 bytes",
            "too short: 0x0, 0xc0000004, 4 bytes",
            "no such class: 0x0, 0xc0000003, 0 bytes",
            "no such session: 0x0, 0xc0000008, 4 bytes",
        ]
    );
    kernel.stop_session(session).unwrap();
}

#[test]
fn unusual_calls_have_the_documented_status() {
    for (service, expected) in [
        ("by-list", vec!["by list: 0x0"]),
        ("no-session", vec!["no session: 0xc0000008"]),
        (
            "classic-events",
            vec![
                "event: 0x0",
                "event without a session: 0xc0000008",
                "event without a whole header: 0xc000000d",
                "event of fields: 0x0",
            ],
        ),
        (
            "control",
            vec![
                "register: 0x0", "register again: 0xc000000d", "update: 0x0", "reregister: 0x0",
                "block: 0x0", "no action: 0xc000000d", "deregister: 0x0",
                "deregister again: 0xc000000d", "block nothing: 0xc000000d",
            ],
        ),
    ] {
        let (mut lines, warnings) = says(service);
        lines.retain(|line| line.contains(": 0x"));
        assert_eq!(lines, expected, "{service}");
        assert_eq!(warnings, [], "{service}");
    }
}

#[test]
fn doubtful_messages_cause_warnings() {
    for (service, rule, part) in [
        ("unknown-flags", Rule::MessageFlags, "the unknown flags 0x400"),
        ("obsolete-flags", Rule::MessageFlags, "PERFORMANCE_TIMESTAMP"),
        ("no-guid", Rule::MessageFlags, "without TRACE_MESSAGE_GUID"),
        ("large", Rule::LargeEvent, "do not fit in a session's buffer"),
    ] {
        let (lines, warnings) = says(service);
        assert!(!warnings.is_empty(), "{service}");
        for warning in &warnings {
            assert_eq!(warning.rule, rule, "{service}");
            assert!(warning.message.contains(part), "{service}: {warning}");
        }
        let times: u64 = warnings.iter().map(|warning| warning.count).sum();
        let expected = if service == "large" { 2 } else { 1 };
        assert_eq!(times, expected, "{service}");
        if service == "large" {
            assert_eq!(lines[..2], ["large: 0xc0000017", "for a buffer: 0xc0000017"]);
        }
    }
}

/// Loads the driver as a service that bugchecks.
fn stops(service: &str) -> BugCheck {
    let bench = Bench::new(|config| config);
    bench.kernel.enable(bench.session, set(0), parameters(4, 0x1F)).unwrap();
    common::bugcheck(bench.kernel.load_as(&common::wpp(), service))
}

#[test]
fn bad_arguments_are_the_drivers_fault() {
    for (service, id, part) in [
        ("null-guid", "V41", "a message GUID at 0x0000000000000000"),
        ("user-space", "V41", "a message argument at 0x000000007FFE0000"),
        ("paged-at-dispatch", "V40", "is in paged pool"),
    ] {
        let bugcheck = stops(service);
        let message = &bugcheck.message;
        assert!(message.contains(&format!("[{id}]")), "{bugcheck}");
        assert!(message.contains(part), "{bugcheck}");
        assert!(message.contains("WmiTraceMessage was called"), "{bugcheck}");
    }
}

#[test]
fn a_forgotten_cleanup_is_found() {
    for (service, part) in [
        ("classic-forgotten", "without EtwUnregister"),
        ("wmi-forgotten", "without IoWMIRegistrationControl with WMIREG_ACTION_DEREGISTER"),
    ] {
        let kernel = Kernel::new();
        let driver = kernel.load_as(&common::wpp(), service).unwrap();
        let Err(KernelError::Violations(found)) = driver.unload() else {
            panic!("{service} was not caught");
        };
        assert_eq!(found.0.len(), 2, "{found}");
        for (violation, guid) in found.0.iter().zip(SETS) {
            assert_eq!(violation.rule, Rule::ProviderLeftRegistered);
            assert!(violation.message.contains(part), "{violation}");
            assert!(violation.message.contains(guid), "{violation}");
        }
        assert_eq!(kernel.statistics().registrations, 0);
    }
}

#[test]
fn a_failed_registration_leaves_nothing() {
    for (service, routine, left) in
        [("classic", "EtwRegisterClassicProvider", 1), ("wmi", "IoWMIRegistrationControl", 0)]
    {
        let kernel = Kernel::new();
        kernel.inject(Fault::next(routine, NtStatus::INSUFFICIENT_RESOURCES)).unwrap();
        let driver = kernel.load_as(&common::wpp(), service).unwrap();
        assert_eq!(kernel.statistics().registrations, left);
        driver.unload().unwrap();
        assert_eq!(kernel.statistics().registrations, 0);
        let output = kernel.debug_output().concat();
        assert!(output.contains("failed: 0xc000009a"), "{output}");
    }
}
