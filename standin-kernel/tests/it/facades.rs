//! Tests the driver in driver/examples/facades: `log` records from a third-party crate, `tracing`
//! spans and events, and declared events in one trace.

use crate::common;
use std::path::PathBuf;

use etl_file::decode::Value;
use etl_file::internals::spans::spans;
use etl_file::{Catalog, Decoded, Guid, Trace};
use etl_fixtures::decoders;
use standin_kernel::{
    EnableParameters, Fault, Identity, Kernel, NtStatus, SessionConfig, SessionHandle, Target,
};

/// The GUID of "Contoso.Facades".
const PROVIDER: &str = "489cf859-c9c9-58af-260f-ff1135db92e6";

/// The keywords of the declared events, of `tracing` and of `log`.
const REQUEST: u64 = 1;
const TRACING: u64 = 1 << 14;
const LOG: u64 = 1 << 15;

/// A request that writes one register, with its checksum.
const FRAME: &[u8] = &[0x12, 0x06, 0x22, 0x22, 0xAB, 0xCD, 0x9F, 0xBE];

/// Bytes that do not contain a frame.
const DAMAGED: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// The activity id of the client's thread.
const CLIENTS: Guid = Guid::from_bytes([0xC1; 16]);

/// The additional stack in bytes that a request uses if its events are written: `MAX_STACK` of the
/// facades, and the formatting of the values.
const FACADES_STACK: usize = 3072 + 512;

/// A kernel with the driver, and a session that enables its provider.
struct Fixture {
    kernel: Kernel,
    session: SessionHandle,
    _folder: tempfile::TempDir,
}

impl Fixture {
    fn new(level: u8, keywords: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Kernel::new();
        let file = folder.path().join("facades.etl");
        let session = kernel.start_session(SessionConfig::to_file("Facades", file)).unwrap();
        let parameters =
            EnableParameters { level, match_any: keywords, ..EnableParameters::default() };
        let provider = Target::Provider(PROVIDER.parse().unwrap());
        kernel.enable(session, provider, parameters).unwrap();
        Self { kernel, session, _folder: folder }
    }

    /// Loads the driver, writes to its device, and unloads it. Returns the trace file.
    fn run(&self, writes: &[&[u8]]) -> PathBuf {
        let client = Identity { process: 0x1234, thread: 0x40 };
        self.kernel.set_thread_activity(client, CLIENTS);
        let driver =
            self.kernel.load(&common::driver("release", "etw_facades_driver.sys")).unwrap();
        let device = driver.add_device().unwrap();
        let file = device.open(client).unwrap();
        for bytes in writes {
            file.write(bytes).unwrap();
        }
        file.close().unwrap();
        device.remove().unwrap();
        // Fails if the driver leaves pool blocks or its registered provider behind.
        driver.unload().unwrap();
        self.kernel.stop_session(self.session).unwrap().file
    }
}

fn decoded(file: &PathBuf) -> Vec<Decoded> {
    let trace = Trace::open(file).unwrap();
    let catalog = Catalog::default();
    trace.events().map(|event| etl_file::decode(event, &catalog)).collect()
}

fn field(event: &Decoded, name: &str) -> String {
    let found = event.fields.iter().find(|(of, _)| &**of == name);
    match found {
        Some((_, Value::Text(text))) => text.clone(),
        Some((_, value)) => value.to_string(),
        None => String::new(),
    }
}

/// Formats an event as a line: level, opcode, name, target, message.
fn line(event: &Decoded) -> String {
    let parts = [
        event.descriptor.level.to_string(),
        event.descriptor.opcode.to_string(),
        event.event_name.as_deref().unwrap_or_default().to_owned(),
        field(event, "Level"),
        field(event, "Target"),
        field(event, "Message"),
    ];
    parts.join(" ").trim_end().to_owned()
}

/// Numbers the activities in the order of their first events; 0 for no activity and `client` for the
/// client's activity.
fn activities(events: &[Decoded]) -> Vec<String> {
    let mut known = Vec::new();
    let mut number = |id: Guid| {
        if id.is_null() {
            return "-".to_owned();
        }
        if id == CLIENTS {
            return "client".to_owned();
        }
        let at = known.iter().position(|of| *of == id).unwrap_or(known.len());
        if at == known.len() {
            known.push(id);
        }
        at.to_string()
    };
    events
        .iter()
        .map(|event| {
            let own = number(event.activity);
            let related = event.related_activity.map(&mut number);
            match related {
                Some(related) => format!("{own} from {related}"),
                None => own,
            }
        })
        .collect()
}

#[test]
fn a_third_party_crates_records_spans_and_declared_events_are_in_one_trace() {
    let fixture = Fixture::new(5, 0);
    let file = fixture.run(&[FRAME, DAMAGED]);
    let events = decoded(&file);
    let driver = "etw_facades_driver";
    let frames = "etw_facades_driver::frames";
    let modbus = "modbus_core::codec::rtu Failed to decode request frame: Invalid CRC: expected =";
    let expected = [
        format!("4 0 Log INFO {driver} loading"),
        format!("4 1 add device INFO {driver}"),
        format!("4 2 add device INFO {driver}"),
        format!("4 1 write INFO {frames}"),
        "4 0 FrameReceived".to_owned(),
        format!("5 0 Event DEBUG {frames} decoded a frame"),
        format!("5 0 Event TRACE {frames} counted"),
        format!("5 0 Log DEBUG {frames} 1 frames so far"),
        "4 0 RequestCompleted".to_owned(),
        format!("4 2 write INFO {frames}"),
        format!("4 1 write INFO {frames}"),
        "4 0 FrameReceived".to_owned(),
        format!("3 0 Log WARN {modbus} 0x0708, actual = 0xBADD"),
        format!("3 0 Log WARN {modbus} 0x0809, actual = 0x16AA"),
        format!("3 0 Log WARN {modbus} 0x090A, actual = 0x12D3"),
        format!("5 0 Event DEBUG {frames} no whole frame"),
        "4 0 RequestCompleted".to_owned(),
        format!("4 2 write INFO {frames}"),
        format!("4 0 Log INFO {driver} unloading"),
    ];
    assert_eq!(events.iter().map(line).collect::<Vec<_>>(), expected);
    // A record at DISPATCH_LEVEL has no activity. An event that names its span has the span's
    // activity.
    let expected = [
        "-", "0", "0", "1 from client", "1", "1", "1", "-", "client", "1", "2 from client", "2",
        "2", "2", "2", "2", "client", "2", "-",
    ];
    assert_eq!(activities(&events), expected);
    // The fields keep their types.
    assert_eq!(field(&events[3], "length"), "8");
    let decoded_frame = &events[5];
    let typed: Vec<_> = decoded_frame.fields.iter().skip(5).collect();
    assert_eq!(format!("{typed:?}"), r#"[("slave", UInt(18)), ("function", UInt(6))]"#);
    assert_eq!(field(decoded_frame, "Module"), frames);
    let keywords: Vec<_> = [0, 3, 4].map(|at| events[at].descriptor.keyword).to_vec();
    assert_eq!(keywords, [LOG, TRACING, REQUEST]);
    for event in &events {
        assert_eq!(event.provider_name.as_deref(), Some("Contoso.Facades"));
        assert_eq!(event.problems, [], "{}", line(event));
    }
    assert_eq!(fixture.kernel.warnings(), []);
}

#[test]
fn spans_are_activities() {
    let fixture = Fixture::new(5, 0);
    let file = fixture.run(&[FRAME, FRAME]);
    let events = decoded(&file);
    let names: Vec<_> = spans(&events)
        .iter()
        .map(|span| events[span.start].event_name.as_deref().unwrap_or_default())
        .collect();
    assert_eq!(names, ["add device", "write", "write"]);
}

// R-O1, R-O5
#[test]
fn dissect_and_etl_parser_agree_on_the_events_of_the_facades() {
    let fixture = Fixture::new(5, 0);
    let file = fixture.run(&[FRAME, DAMAGED]);
    assert_eq!(decoders::assert_third_party_decoders_agree(&file), 19);
}

#[test]
fn sessions_select_the_facades_events_by_level_and_keyword() {
    let lines = |level, keywords| {
        let fixture = Fixture::new(level, keywords);
        let names = decoded(&fixture.run(&[FRAME, DAMAGED]));
        let names = names.iter().map(|event| {
            let name = event.event_name.clone().unwrap_or_default();
            format!("{name} {}", field(event, "Level")).trim_end().to_owned()
        });
        names.collect::<Vec<_>>()
    };
    assert_eq!(lines(3, 0), ["Log WARN", "Log WARN", "Log WARN"]);
    assert_eq!(lines(4, LOG).len(), 5);
    let spans = ["add device INFO", "add device INFO", "write INFO", "write INFO"];
    assert_eq!(lines(4, TRACING)[..4], spans);
    assert_eq!(lines(4, TRACING).len(), 6);
    assert_eq!(lines(5, REQUEST).len(), 4);
}

/// The driver's stack use for a request is limited, including the facades' events and the
/// formatting of their values.
#[test]
fn the_facades_use_no_more_stack_than_they_say() {
    let stack = |level| {
        let fixture = Fixture::new(level, 0);
        fixture.run(&[FRAME, DAMAGED]);
        fixture.kernel.stack_use()["EvtIoWrite"]
    };
    let without = stack(1);
    let with = stack(5);
    assert!(with > without);
    let facades = with - without;
    assert!(facades <= FACADES_STACK, "{facades} = {with} - {without}");
}

/// Without pool, requests, their records and their spans work as before.
#[test]
fn nothing_is_allocated_for_a_record_a_span_or_an_event() {
    let fixture = Fixture::new(5, 0);
    // Installing the subscriber allocates twice: to check that memory is available, and to use it.
    fixture.kernel.inject(no_pool(2)).unwrap();
    let events = decoded(&fixture.run(&[FRAME, DAMAGED]));
    assert_eq!(events.len(), 19);
}

#[test]
fn without_pool_for_the_subscriber_the_driver_and_its_records_work() {
    let fixture = Fixture::new(5, 0);
    fixture.kernel.inject(no_pool(0)).unwrap();
    let events = decoded(&fixture.run(&[FRAME, DAMAGED]));
    let names: Vec<_> =
        events.iter().map(|event| event.event_name.as_deref().unwrap_or_default()).collect();
    let expected = [
        "Log", "FrameReceived", "Log", "RequestCompleted", "FrameReceived", "Log", "Log", "Log",
        "RequestCompleted", "Log",
    ];
    assert_eq!(names, expected);
}

/// Makes all allocations fail after the first `after` allocations.
const fn no_pool(after: u32) -> Fault {
    Fault { routine: "ExAllocatePool2", status: NtStatus::NO_MEMORY, after, times: u32::MAX }
}
