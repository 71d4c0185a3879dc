//! Checks timelines by reading them with Perfetto's published protocol buffers.
//!
//! `perfetto_dump.py` reads the timelines, and checks and lists the properties that all timelines
//! share.

use std::collections::HashSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use crate::run::{Folder, Ran};
use etl::perfetto::{Summary, Writer};
use etl_file::decode::{Frame, Kind, Problem, Stack, Value as Field};
use etl_file::write::{KernelForm, KernelRecord, Losses};
use etl_file::{ClockType, Decoded, EventDescriptor, FileTime, Guid, LogFileHeader};
use etl_fixtures::{decoders, trace};
use proptest::prelude::*;
use serde_json::{Value, json};

/// 2026-01-02 03:04:05 UTC.
const START: FileTime = FileTime::from_raw(134_117_966_450_000_000);
const START_NANOS: u64 = 1_767_323_045_000_000_000;
const PROVIDER: Guid = Guid::from_u128(0x2f4c_8a60_7d1b_4c35_9e02_51a6_0b7c_d8e9);
/// The clock's reading at the start, and its ticks per second.
const START_CLOCK: i64 = 1_000_000;
const FREQUENCY: i64 = 3_000_000;

fn header() -> LogFileHeader {
    LogFileHeader {
        start_time: START,
        start_clock: START_CLOCK,
        perf_frequency: FREQUENCY,
        session_name: "Test".to_owned(),
        processors: 4,
        ..LogFileHeader::default()
    }
}

/// Returns a provider's event at a number of microseconds after the session's start.
fn event(micros: i64, name: &str) -> Decoded {
    Decoded {
        time: FileTime::from_raw(START.raw() + micros * 10),
        timestamp: START_CLOCK + micros * 3,
        processor: 1,
        process_id: 100,
        thread_id: 200,
        provider: PROVIDER,
        provider_name: Some("Contoso.Sample".into()),
        descriptor: EventDescriptor { level: 4, ..EventDescriptor::default() },
        event_name: Some(name.into()),
        ..Decoded::default()
    }
}

/// Returns a kernel event on a processor, without a process or thread.
fn kernel(micros: i64, hook: u16, name: &str, fields: &[(&str, Field)]) -> Decoded {
    let [opcode, _] = hook.to_le_bytes();
    Decoded {
        kind: Kind::Kernel { hook },
        process_id: u32::MAX,
        thread_id: u32::MAX,
        provider: Guid::from_u128(u128::from(hook >> 8)),
        provider_name: Some("Kernel".into()),
        descriptor: EventDescriptor { opcode, version: 2, ..EventDescriptor::default() },
        fields: named(fields),
        ..event(micros, name)
    }
}

fn named(fields: &[(&str, Field)]) -> Vec<(Arc<str>, Field)> {
    let fields = fields.iter().cloned();
    fields.map(|(name, value)| (name.into(), value)).collect()
}

/// Returns fields from words such as `Size=5`: a number with a sign is signed, a number after `0x`
/// is an address, and anything else is text.
fn fields(words: &str) -> Vec<(&str, Field)> {
    let value = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => Field::Pointer(u64::from_str_radix(digits, 16).unwrap()),
        None if text.starts_with(['+', '-']) => Field::Int(text.parse().unwrap()),
        None => text.parse().map_or_else(|_| Field::Text(text.to_owned()), Field::UInt),
    };
    let words = words.split(' ').map(|word| word.split_once('=').unwrap());
    words.map(|(name, text)| (name, value(text))).collect()
}

const fn activity(n: u128) -> Guid {
    Guid::from_u128(0xA000 + n)
}

/// Returns an activity's start event (opcode 1) or stop event (opcode 2).
fn part(micros: i64, opcode: u8, n: u128) -> Decoded {
    let mut event = event(micros, "Request");
    event.descriptor.opcode = opcode;
    event.activity = activity(n);
    event
}

fn written(events: &[Decoded]) -> (Vec<u8>, Summary) {
    let mut writer = Writer::new(Vec::new(), &header());
    for event in events {
        writer.event(event).unwrap();
    }
    writer.finish().unwrap()
}

/// A timeline that was read back.
struct Timeline {
    lines: Vec<Value>,
    summary: Summary,
}

impl Timeline {
    fn from_events(events: &[Decoded]) -> Self {
        let (bytes, summary) = written(events);
        let timeline = Self { lines: read(&bytes), summary };
        // The timeline also contains the summary.
        assert_eq!(timeline.attribute("etl.events"), json!(timeline.summary.events));
        timeline
    }

    fn all(&self, kind: &str) -> Vec<&Value> {
        let lines = self.lines.iter();
        lines.filter(|line| line["kind"] == kind).collect()
    }

    fn attribute(&self, key: &str) -> Value {
        let attributes = self.all("attribute");
        let found = attributes.iter().find(|line| line["key"] == key);
        found.unwrap_or_else(|| panic!("no attribute {key}"))["value"].clone()
    }

    /// Returns the last description of a line's track.
    fn track(&self, line: &Value) -> &Value {
        let tracks = self.all("track").into_iter().rev();
        let mut tracks = tracks.filter(|track| track["uuid"] == line["track"]);
        tracks.next().expect("the track is described")
    }

    /// Returns the name of a line's track.
    fn track_name(&self, line: &Value) -> &str {
        self.track(line)["name"].as_str().expect("a named track")
    }

    /// Returns the slices' names, start and end in nanoseconds, by track name.
    fn slices(&self) -> Vec<(&str, &str, u64, Option<u64>)> {
        let slices = self.all("slice").into_iter();
        let mut slices: Vec<_> = slices
            .map(|line| {
                (
                    self.track_name(line),
                    line["name"].as_str().unwrap(),
                    line["start"].as_u64().unwrap(),
                    line["end"].as_u64(),
                )
            })
            .collect();
        slices.sort_unstable();
        slices
    }
}

/// Reads a timeline with Perfetto's protocol buffers.
fn read(bytes: &[u8]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.pftrace");
    fs::write(&path, bytes).unwrap();
    decoders::dump("perfetto_dump.py", &path)
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn a_timeline_without_events_has_its_clock_and_its_system() {
    let timeline = Timeline::from_events(&[]);
    let clocks = json!({"6": 0, "1": START_NANOS});
    assert_eq!(timeline.all("clock")[0]["clocks"], clocks);
    assert_eq!(timeline.all("clock")[0]["primary"], 6);
    assert_eq!(timeline.all("system")[0]["num_cpus"], 4);
    assert_eq!(timeline.attribute("etl.session"), "Test");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn an_event_is_an_instant_with_all_its_properties() {
    let mut one = event(7, "Progress");
    one.descriptor = EventDescriptor {
        id: 12,
        version: 3,
        channel: 16,
        level: 2,
        opcode: 10,
        task: 7,
        keyword: 0x8000_0000_0000_0003,
    };
    one.keywords.names = Arc::new(["Request".into(), "Power".into()]);
    one.task_name = Some("Store".into());
    one.message = Some("Stored 5".to_owned());
    one.leftover = vec![0xAB, 0xCD];
    one.problems = vec![Problem::NoSchema];
    let timeline = Timeline::from_events(&[one]);
    let instants = timeline.all("instant");
    let [line] = instants.as_slice() else {
        panic!("{instants:?}");
    };
    assert_eq!(line["time"], 7_000);
    assert_eq!(line["name"], "Progress");
    assert_eq!(line["category"], json!(["Contoso.Sample"]));
    let expected = json!({
        "etw_level": 2,
        "etw_id": 12,
        "etw_keyword": "0x8000000000000003",
        "etw_about": "keyword Request|Power, opcode 10, task Store (7), version 3, channel 16",
        "etw_message": "Stored 5",
        "etw_leftover": "abcd",
        "etw_problem": "no loaded manifest or image describes this event",
    });
    assert_eq!(line["args"], expected);
    let track = timeline.track(line);
    assert_eq!(track["thread"], json!({"pid": 100, "tid": "200"}));
    assert_eq!(timeline.summary.instants, 1);
    assert_eq!(timeline.summary.problems, 1);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn fields_keep_their_types() {
    let mut deep = Field::UInt(1);
    for _ in 0..200 {
        deep = Field::Array(vec![deep]);
    }
    let members =
        [("a", Field::UInt(1)), ("a", Field::Int(-1)), ("none", Field::Struct(Vec::new()))];
    let array = vec![Field::UInt(1), Field::Text("x".to_owned())];
    let two = Field::Named { signed: false, value: 2, name: "Two".into() };
    let socket = SocketAddr::from(([127, 0, 0, 1], 80));
    let rows = [
        ("null", Field::Null, json!("null")),
        ("int", Field::Int(-5), json!(-5)),
        ("uint", Field::UInt(u64::MAX), json!(u64::MAX)),
        ("hex", Field::Hex(0xBEEF), json!("0xbeef")),
        ("float", Field::Float(0.5), json!("0.5")),
        ("double", Field::Double(-1.25), json!("-1.25")),
        ("bool", Field::Bool(true), json!(true)),
        ("text", Field::Text("é\n".to_owned()), json!("é\n")),
        ("binary", Field::Binary(vec![1, 2]), json!("hex:0102")),
        ("guid", Field::Guid(PROVIDER), json!(PROVIDER.to_string())),
        ("time", Field::FileTime(START), json!("2026-01-02T03:04:05.0000000Z")),
        ("ipv4", Field::Ipv4(Ipv4Addr::LOCALHOST), json!("127.0.0.1")),
        ("port", Field::Port(80), json!(80)),
        ("socket", Field::SocketAddress(socket), json!("127.0.0.1:80")),
        ("status", Field::NtStatus(0xC000_0001), json!("0xc0000001")),
        ("win32", Field::Win32Error(5), json!(5)),
        ("process", Field::ProcessId(4), json!(4)),
        ("pointer", Field::Pointer(0xFFFF_8000_0000_0000), json!("0xffff800000000000")),
        ("named", two, json!({"value": 2, "name": "Two"})),
        ("array", Field::Array(array), json!([1, "x"])),
        ("empty", Field::Array(Vec::new()), json!("[]")),
        ("struct", Field::Struct(named(&members)), json!({"a": 1, "a#2": -1, "none": "{}"})),
    ];
    let mut one = event(0, "Types");
    // Names that repeat are numbered.
    let mut expected = json!({"etw_level": 4, "uint#3": 7, "uint#2": 8});
    for (name, value, shown) in rows {
        one.fields.push((name.into(), value));
        expected[name] = shown;
    }
    let more = [("uint", Field::UInt(7)), ("uint#2", Field::UInt(8)), ("deep", deep)];
    one.fields.extend(named(&more));
    let timeline = Timeline::from_events(&[one]);
    let mut found = timeline.all("instant")[0]["args"].clone();
    let deep = found.as_object_mut().unwrap().remove("deep").unwrap();
    assert!(deep.to_string().contains("[[[[1]]]]"), "{deep}");
    assert_eq!(found, expected);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn events_without_names_have_their_ids() {
    let mut plain = event(0, "");
    plain.provider_name = None;
    plain.event_name = None;
    plain.descriptor.id = 9;
    let mut hook = kernel(1, 0x0F99, "", &[]);
    hook.event_name = None;
    let timeline = Timeline::from_events(&[plain, hook]);
    let instants = timeline.all("instant");
    assert_eq!(instants[0]["name"], "event 9");
    assert_eq!(instants[0]["category"], json!([PROVIDER.to_string()]));
    assert_eq!(instants[1]["name"], "hook 0x0f99");
    assert_eq!(timeline.track_name(instants[1]), "CPU 1");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn activities_are_slices_that_do_not_cross() {
    let mut stop = part(50, 2, 1);
    stop.fields = named(&[("status", Field::NtStatus(0))]);
    let mut start = part(10, 1, 1);
    start.fields = named(&[("status", Field::UInt(1))]);
    let timeline = Timeline::from_events(&[
        start,
        // Start the activity again, inside the first slice.
        part(20, 1, 1),
        // Another activity, which ends after the first one.
        part(30, 1, 2),
        part(40, 2, 1),
        stop,
        part(60, 2, 2),
        // Without a start, and without a stop.
        part(70, 2, 3),
        part(80, 1, 4),
    ]);
    let track = "Contoso.Sample activities";
    let expected = [
        (track, "Request", 10_000, Some(50_000)),
        (track, "Request", 20_000, Some(40_000)),
        (track, "Request", 30_000, Some(60_000)),
        (track, "Request", 80_000, None),
    ];
    assert_eq!(timeline.slices(), expected);
    let slices = timeline.all("slice");
    assert_eq!(slices[0]["track"], slices[1]["track"], "they are nested");
    assert_ne!(slices[0]["track"], slices[2]["track"], "they overlap");
    assert_eq!(slices[0]["activity"], activity(1).to_string());
    assert_eq!(slices[0]["args"]["status"], 1);
    let stop = json!({
        "etw_level": 4, "etw_about": "opcode 2", "etw_name": "Request", "etw_thread": 200,
        "status": "0x0",
    });
    assert_eq!(slices[0]["args"]["stop"], stop);
    assert_eq!(slices[0]["args"]["etw_thread"], 200);
    let parent = timeline.track(slices[0])["parent_uuid"].clone();
    let process = timeline.track(&json!({ "track": parent }));
    assert_eq!(process["process"], json!({"pid": 100}));
    let instants = timeline.all("instant");
    assert_eq!(instants.len(), 1);
    assert_eq!(instants[0]["time"], 70_000);
    let summary = &timeline.summary;
    assert_eq!(summary.slices, 3);
    assert_eq!(summary.open_slices, 1);
    assert_eq!(summary.unmatched_stops, 1);
    assert_eq!(timeline.attribute("etl.open_slices"), 1);
    assert_eq!(
        summary.to_string(),
        "1 activities have no end: no stop event follows\n\
         1 stop events without a start event are shown as instants"
    );
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn lanes_of_activities_are_used_again() {
    let events: Vec<Decoded> = (0..20)
        .zip(0..20)
        .flat_map(|(n, id)| [part(2 * n, 1, id), part(2 * n + 2, 2, id)])
        .collect();
    let timeline = Timeline::from_events(&events);
    let slices = timeline.all("slice");
    assert_eq!(slices.len(), 20);
    assert!(slices.iter().all(|slice| slice["track"] == slices[0]["track"]));
}

#[test]
fn too_many_open_activities_give_up_the_oldest() {
    const LIMIT: usize = 65_536;
    let mut events: Vec<Decoded> = (0..=LIMIT).map(|n| part(0, 1, n as u128)).collect();
    events.push(part(1, 2, 0));
    events.push(part(1, 2, 1));
    let (_, summary) = written(&events);
    assert_eq!(summary.unmatched_stops, 1, "of the first activity");
    assert_eq!(summary.slices, 1);
    assert_eq!(summary.open_slices, LIMIT as u64);
}

/// Encodes and decodes a kernel record, and returns its event.
fn recorded(micros: i64, hook: u16, version: u8, payload: &[&[u8]]) -> Decoded {
    let record = KernelRecord {
        form: KernelForm::PerfInfo,
        hook,
        version,
        payload: payload.concat(),
        ..KernelRecord::default()
    };
    let record = etl_file::internals::kernel::decode(&record.encode().unwrap()).unwrap();
    assert_eq!(record.problems, [], "{hook:#06x}");
    Decoded {
        process_id: record.process_id.unwrap_or(u32::MAX),
        thread_id: record.thread_id.unwrap_or(u32::MAX),
        provider: record.class,
        provider_name: record.class_name,
        event_name: record.event_name,
        fields: record.fields,
        leftover: record.leftover,
        ..kernel(micros, hook, "", &[])
    }
}

// The timeline finds fields by the names that the decoder gives them.
#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn decoded_records_of_the_kernel_have_their_forms() {
    let [p, long, n] = [0xFFFF_F800_0000_1000_u64, 3, 0].map(u64::to_le_bytes);
    let number = |n: u32| n.to_le_bytes();
    let entry = (START_CLOCK + 3).to_le_bytes();
    let (one, two) = (&number(1), &number(2));
    let (p, n, long) = (p.as_slice(), n.as_slice(), long.as_slice());
    let path = &[b'a', 0, 0, 0];
    let file = [p, p, p, one];
    let timeline = Timeline::from_events(&[
        recorded(10, 0x0524, 4, &[two, one, &[8, 9, 0, 0, 6, 0, 5, 1], &number(7), &number(0)]),
        recorded(11, 0x0532, 2, &[one, &[1, 2, 1, 0]]),
        recorded(12, 0x0F44, 2, &[&entry, p]),
        recorded(13, 0x0F45, 2, &[&entry, p]),
        recorded(14, 0x0F42, 2, &[&entry, p]),
        recorded(15, 0x0F43, 2, &[&entry, p, &[0, 1, 0, 0]]),
        recorded(16, 0x0F32, 2, &[&entry, p, &[0, 1, 0, 0], one]),
        recorded(17, 0x0F2E, 2, &[p, two, &number(1)]),
        recorded(18, 0x010A, 3, &[one, one, one, one, long, p, p, long, two]),
        recorded(19, 0x010B, 3, &[one, one, one, one, long, p, p, long, two]),
        recorded(20, 0x010E, 3, &[one, one, long, p, two]),
        recorded(21, 0x0440, 3, &[p, p, one, one, one, one, path]),
        recorded(22, 0x0443, 3, &[long, p, p, p, one, two, one]),
        recorded(23, 0x0441, 3, &file),
        recorded(24, 0x044A, 3, &[p, p, p, n, one, two]),
        recorded(25, 0x0448, 3, &[p, p, p, one, two, two, one, path]),
        recorded(26, 0x044C, 3, &[p, n, one]),
        recorded(27, 0x044F, 3, &[p, p, p, n, one, two, path]),
        recorded(28, 0x0548, 2, &[one, two, path]),
    ]);
    let summary = &timeline.summary;
    assert_eq!(summary.incomplete, 0, "{summary:?}");
    assert_eq!(summary.scheduling, 2);
    assert_eq!(summary.intervals, 8);
    assert_eq!(summary.samples, 1);
    assert_eq!(summary.file_operations, 7);
    let switch = &timeline.all("etw")[0]["event"];
    assert_eq!(switch["new_thread_id"], 2);
    assert_eq!(switch["old_thread_wait_reason_int"], 6);
    assert_eq!(switch["old_thread_state"], "WAITING");
    assert_eq!(timeline.all("sample")[0]["tid"], 2);
    let named = timeline.all("track").into_iter();
    let mut named = named.filter(|track| track["thread"]["thread_name"] == "a");
    assert!(named.next().is_some());
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn related_activities_are_flows() {
    let related = |mut event: Decoded, n| {
        event.related_activity = Some(activity(n));
        event
    };
    let mut plain = event(15, "Plain");
    plain.activity = activity(9);
    plain.thread_id = 201;
    let timeline = Timeline::from_events(&[
        part(10, 1, 1),
        plain,
        // From an open slice, two flows.
        related(part(20, 1, 2), 1),
        related(part(30, 1, 3), 1),
        // From an instant, to a stop event.
        related(part(40, 2, 3), 9),
        part(50, 2, 2),
        part(60, 2, 1),
        // From a slice that has ended.
        related(event(70, "After"), 1),
        // From an activity that the trace does not contain.
        related(event(80, "Stranger"), 77),
    ]);
    let flows = timeline.all("flow");
    let ends: Vec<(&Value, &Value, u64)> = flows
        .iter()
        .map(|flow| {
            assert_eq!(flow["source"]["time"], flow["target"]["time"]);
            let time = flow["target"]["time"].as_u64().unwrap();
            (&flow["source"]["activity"], &flow["source"]["name"], time)
        })
        .collect();
    let guid = |n| json!(activity(n).to_string());
    let expected = [
        (&guid(1), &json!("flow to Request"), 20_000),
        (&guid(1), &json!("flow to Request"), 30_000),
        (&guid(9), &json!("flow to Request"), 40_000),
        (&guid(1), &json!("flow to After"), 70_000),
    ];
    assert_eq!(ends, expected);
    for flow in &flows {
        let args = &flow["target"]["args"];
        let args = args.get("stop").unwrap_or(args);
        assert_eq!(args["etw_related_activity"], flow["source"]["activity"]);
    }
    let slices = timeline.all("slice");
    assert_eq!(flows[0]["source"]["track"], slices[0]["track"]);
    assert_eq!(flows[0]["target"]["track"], slices[1]["track"]);
    let thread = timeline.track(&flows[2]["source"]);
    assert_eq!(thread["thread"]["tid"], "201");
    let thread = timeline.track(&flows[3]["source"]);
    assert_eq!(thread["thread"]["tid"], "200", "the thread of the stop event");
    assert_eq!(timeline.summary.flows, 4);
    assert_eq!(timeline.summary.unknown_related, 1);
}

fn switch(micros: i64, processor: u16, old: u32, new: u32, state: i64) -> Decoded {
    let words = format!(
        "NewThreadId={new} OldThreadId={old} NewThreadPriority=+15 OldThreadPriority=-1 \
         PreviousCState=2 SpareByte=0 OldThreadWaitReason=+7 OldThreadWaitMode=+1 \
         OldThreadState={state:+} OldThreadWaitIdealProcessor=+3 NewThreadWaitTime=55 Reserved=0"
    );
    Decoded { processor, ..kernel(micros, 0x0524, "CSwitch", &fields(&words)) }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn scheduling_is_in_etw_events() {
    let words = "TThreadId=30 AdjustReason=+1 AdjustIncrement=-2 Flag=+1";
    let ready = Decoded { processor: 2, ..kernel(20, 0x0532, "ReadyThread", &fields(words)) };
    let stack = stack(&[(0xFFFF_F800_0000_1234, Some("ntoskrnl.exe+0x1234"))]);
    let mut with_stack = switch(30, 2, 11, 0, 300);
    with_stack.stack = Some(stack);
    let timeline = Timeline::from_events(&[switch(10, 2, 0, 11, 5), ready, with_stack]);
    let events = timeline.all("etw");
    let first = json!({
        "new_thread_id": 11,
        "old_thread_id": 0,
        "new_thread_priority": 15,
        "old_thread_priority": -1,
        "previous_c_state": 2,
        "old_thread_wait_reason_int": 7,
        "old_thread_wait_mode_int": 1,
        "old_thread_state": "WAITING",
        "old_thread_wait_ideal_processor": 3,
        "new_thread_wait_time": 55,
    });
    assert_eq!(events[0]["event"], first);
    assert_eq!(events[0]["form"], "c_switch");
    assert_eq!(events[0]["cpu"], 2);
    assert_eq!(events[0]["time"], 10_000);
    let second = json!({
        "t_thread_id": 30,
        "adjust_reason_int": 1,
        "adjust_increment": -2,
        "flag_int": 1,
    });
    assert_eq!(events[1]["event"], second);
    assert_eq!(events[1]["thread"], 11, "the thread that runs there wakes it");
    assert_eq!(events[2]["event"]["old_thread_state_int"], 300);
    assert_eq!(events[2]["event"]["new_thread_id"], 0);
    assert_eq!(events[3]["form"], "stack_walk");
    assert_eq!(events[3]["event"]["trigger"], "CSwitch");
    let frame = json!(["ntoskrnl.exe+0x1234", "ntoskrnl.exe", 0x1234]);
    assert_eq!(events[3]["event"]["stack"], json!([frame]));
    assert_eq!(events.len(), 4);
    assert_eq!(timeline.all("instant").len(), 0);
    assert_eq!(timeline.summary.scheduling, 3);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn kernel_events_without_their_fields_are_instants() {
    let mut far = switch(3, 1024, 1, 2, 5);
    far.process_id = 4;
    let mut damaged = switch(4, 0, 1, 2, 5);
    damaged.leftover = vec![1];
    let timeline = Timeline::from_events(&[
        kernel(0, 0x0524, "CSwitch", &[("NewThreadId", Field::ThreadId(1))]),
        kernel(1, 0x0F44, "DPC", &[]),
        // The interval would end before it starts.
        kernel(2, 0x0F44, "DPC", &[("InitialTime", Field::Int(START_CLOCK + 1_000_000))]),
        far,
        damaged,
    ]);
    assert_eq!(timeline.all("instant").len(), 5);
    assert_eq!(timeline.all("etw").len(), 0);
    assert_eq!(timeline.summary.incomplete, 5);
    assert!(timeline.summary.to_string().starts_with("5 kernel events"));
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn interrupts_are_slices_of_their_processors() {
    let routine = |micros, hook, name, start_micros: i64, processor| {
        let start = START_CLOCK + 3 * start_micros;
        let words = format!("InitialTime=+{start} Routine=0xfffff80100001000");
        Decoded { processor, ..kernel(micros, hook, name, &fields(&words)) }
    };
    let timeline = Timeline::from_events(&[
        // An interval ends at its event's time.
        routine(30, 0x0F43, "ISR", 20, 0),
        routine(40, 0x0F44, "DPC", 10, 0),
        routine(41, 0x0F44, "DPC", 11, 1),
        // The interval overlaps the previous interval on the same processor.
        routine(50, 0x0F45, "TimerDPC", 35, 0),
        routine(60, 0x0F42, "ThreadDPC", 50, 0),
        routine(70, 0x0F32, "ISR-MSI", 65, 0),
    ]);
    let expected = [
        ("CPU 0 DPCs", "DPC", 10_000, Some(40_000)),
        ("CPU 0 DPCs", "ThreadDPC", 50_000, Some(60_000)),
        ("CPU 0 DPCs", "TimerDPC", 35_000, Some(50_000)),
        ("CPU 0 ISRs", "ISR", 20_000, Some(30_000)),
        ("CPU 0 ISRs", "ISR-MSI", 65_000, Some(70_000)),
        ("CPU 1 DPCs", "DPC", 11_000, Some(41_000)),
    ];
    assert_eq!(timeline.slices(), expected);
    let slices = timeline.all("slice");
    assert_eq!(slices[0]["args"]["Routine"], "0xfffff80100001000");
    let parent = timeline.track(slices[0])["parent_uuid"].clone();
    let group = timeline.track(&json!({ "track": parent }));
    assert_eq!(group["name"], "Processors");
    assert_eq!(timeline.summary.intervals, 6);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn requests_of_disks_are_slices_from_their_response_time() {
    let request = |micros, hook, name, ticks: i32, disk: i32| {
        let words = format!("DiskNumber={disk} TransferSize=4096 HighResResponseTime={ticks}");
        Decoded { process_id: 100, thread_id: 200, ..kernel(micros, hook, name, &fields(&words)) }
    };
    let timeline = Timeline::from_events(&[
        // A microsecond is three ticks.
        request(100, 0x010A, "Read", 30, 0),
        request(105, 0x010A, "Read", 60, 0),
        request(110, 0x010B, "Write", 1, 0),
        request(120, 0x010E, "FlushBuffers", 3, 1),
        // The interval started before the session.
        request(130, 0x010A, "Read", 3_000_000, 2),
    ]);
    let expected = [
        ("Disk 0 reads", "Read", 85_000, Some(105_000)),
        ("Disk 0 reads", "Read", 90_000, Some(100_000)),
        ("Disk 0 writes", "Write", 109_667, Some(110_000)),
        ("Disk 1 flushes", "FlushBuffers", 119_000, Some(120_000)),
        ("Disk 2 reads", "Read", 0, Some(130_000)),
    ];
    assert_eq!(timeline.slices(), expected);
    assert_eq!(timeline.summary.clamped, 1);
    assert_eq!(timeline.all("slice")[0]["args"]["etw_thread"], 200);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn operations_on_files_are_etw_events() {
    // The hook, the fields besides those of (nearly) all operations, and the message.
    let operations = [
        (
            0x0440,
            r"CreateOptions=5 FileAttributes=6 ShareAccess=7 OpenPath=C:\a",
            "file_io_create",
            json!({"create_options": 5, "file_attributes": 6, "share_access": 7,
                "open_path": r"C:\a"}),
        ),
        (
            0x0443,
            "FileKey=0xffff0003 Offset=8 IoSize=9 IoFlags=10",
            "file_io_read_write",
            json!({"offset": "8", "io_size": 9, "io_flags": 10, "opcode": 67}),
        ),
        (0x0442, "FileKey=0xffff0003", "file_io_simple_op", json!({"opcode": 66})),
        (
            0x044A,
            "FileKey=0xffff0003 ExtraInfo=11 InfoClass=12",
            "file_io_info",
            json!({"extra_info": "11", "info_class": 12, "opcode": 74}),
        ),
        (
            0x0448,
            "FileKey=0xffff0003 Length=13 InfoClass=14 FileIndex=15 FileName=*",
            "file_io_dir_enum",
            json!({"length": 13, "info_class": 14, "file_index": 15, "file_name": "*",
                "opcode": 72}),
        ),
        (
            0x0450,
            "FileKey=0xffff0003 ExtraInfo=17 InfoClass=18 FileName=to",
            "file_io_path_operation",
            json!({"extra_info": "17", "info_class": 18, "file_name": "to", "opcode": 80}),
        ),
    ];
    let mut events = Vec::new();
    let mut expected = Vec::new();
    for (micros, (hook, words, form, message)) in (1..).zip(operations) {
        let words = format!("IrpPtr=0xffff0001 FileObject=0xffff0002 TTID=200 {words}");
        let event = kernel(micros, hook, "FileIo", &fields(&words));
        events.push(Decoded { thread_id: 200, process_id: 100, ..event });
        let mut whole = json!({"irp_ptr": "4294901761", "file_object": "4294901762", "ttid": 200});
        if words.contains("FileKey") {
            whole["file_key"] = "4294901763".into();
        }
        for (key, value) in message.as_object().unwrap() {
            whole[key] = value.clone();
        }
        expected.push((json!(form), whole));
    }
    let mut end = kernel(7, 0x044C, "OperationEnd", &fields("IrpPtr=0xffff0001 ExtraInfo=16"));
    end.fields.push(("NtStatus".into(), Field::NtStatus(0xC000_0034)));
    events.push(end);
    let message =
        json!({"irp_ptr": "4294901761", "extra_info": "16", "nt_status": 0xC000_0034_u32});
    expected.push((json!("file_io_op_end"), message));
    let timeline = Timeline::from_events(&events);
    let found = timeline.all("etw").into_iter();
    let found: Vec<_> = found.map(|line| (line["form"].clone(), line["event"].clone())).collect();
    assert_eq!(found, expected);
    assert_eq!(timeline.all("etw")[1]["thread"], 200);
    assert_eq!(timeline.summary.file_operations, 7);
}

fn stack(frames: &[(u64, Option<&str>)]) -> Stack {
    let frames = frames
        .iter()
        .map(|(address, place)| Frame { address: *address, place: place.map(Arc::from) });
    Stack { frames: frames.collect(), ..Stack::default() }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn samples_and_events_have_their_stacks() {
    let kernel_code = 0xFFFF_F800_1234_5678;
    let mut sampled =
        kernel(1, 0x0F2E, "SampledProfile", &[("InstructionPointer", Field::Pointer(kernel_code))]);
    sampled.process_id = 100;
    sampled.thread_id = 200;
    sampled.stack =
        Some(stack(&[(kernel_code, Some("driver.sys+0x5678")), (0x7FF6_0000_1000, None)]));
    let alone =
        kernel(2, 0x0F2E, "SampledProfile", &[("InstructionPointer", Field::Pointer(0x1000))]);
    let mut with_stack = event(3, "Deep");
    with_stack.stack = sampled.stack.clone();
    let timeline = Timeline::from_events(&[sampled, alone, with_stack]);
    let found = timeline.all("sample");
    // The outermost frame comes first.
    let frames = json!([
        ["0x7ff600001000", "(no image)", 0x7FF6_0000_1000_u64],
        ["driver.sys+0x5678", "driver.sys", 0x5678],
    ]);
    assert_eq!(found[0]["stack"], frames);
    assert_eq!(found[0]["cpu"], 1);
    assert_eq!(found[0]["pid"], 100);
    assert_eq!(found[0]["tid"], 200);
    assert_eq!(found[0]["cpu_mode"], "MODE_KERNEL");
    assert_eq!(found[1]["stack"], json!([["0x1000", "(no image)", 0x1000]]));
    assert_eq!(found[1]["cpu_mode"], "MODE_USER");
    assert_eq!(found[1].get("pid"), None);
    assert_eq!(timeline.all("instant")[0]["stack"], frames);
    assert_eq!(timeline.summary.samples, 2);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn processes_and_threads_have_their_names() {
    let process = |micros, hook, name: &str| {
        let words = format!("ProcessId=100 ImageFileName={name}");
        let command_line = ("CommandLine", Field::Text(format!("{name} /x")));
        kernel(micros, hook, "Process", &[&fields(&words)[..], &[command_line]].concat())
    };
    let words = "ProcessId=100 TThreadId=200 ThreadName=worker";
    let thread = kernel(5, 0x0503, "Thread", &fields(words));
    let mut system = event(30, "System");
    system.process_id = 4;
    let timeline = Timeline::from_events(&[
        event(0, "Early"),
        process(1, 0x0303, "one.exe"),
        thread,
        process(10, 0x0302, "one.exe"),
        process(20, 0x0301, "two.exe"),
        event(21, "Late"),
        system,
    ]);
    let processes: Vec<(&Value, &Value)> = timeline
        .all("track")
        .into_iter()
        .filter_map(|track| Some((track.get("process")?, &track["uuid"])))
        .collect();
    let name = |at: usize| processes[at].0["process_name"].as_str();
    assert_eq!(name(0), None, "it is still unknown");
    assert_eq!(name(1), Some("one.exe"));
    assert_eq!(processes[1].0["cmdline"], json!(["one.exe /x"]));
    assert_eq!(processes[0].1, processes[1].1);
    assert_eq!(name(2), Some("two.exe"));
    assert_ne!(processes[1].1, processes[2].1, "the id is used again");
    assert_eq!(name(3), Some("System"));
    let instants = timeline.all("instant");
    let early = instants.iter().find(|line| line["name"] == "Early");
    let track = timeline.track(early.unwrap());
    assert_eq!(track["thread"]["thread_name"], "worker");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn names_that_events_have_are_those_of_their_tracks() {
    let mut one = event(0, "A");
    one.process_name = Some("app.exe".into());
    one.thread_name = Some("worker".into());
    let timeline = Timeline::from_events(&[event(0, "Before"), one]);
    let line = timeline.all("instant")[1];
    let thread = timeline.track(line);
    assert_eq!(thread["thread"]["thread_name"], "worker");
    let process = timeline.track(&json!({ "track": thread["parent_uuid"] }));
    assert_eq!(process["process"]["process_name"], "app.exe");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn each_provider_has_a_counter_of_its_events_per_second() {
    let mut other = event(150_000, "Other");
    other.provider = Guid::from_u128(5);
    other.provider_name = Some("Other".into());
    let timeline = Timeline::from_events(&[
        event(0, "A"),
        event(50_000, "B"),
        event(110_000, "A"),
        other,
        event(550_000, "A"),
    ]);
    let values = |name: &str| -> Vec<(u64, i64)> {
        let lines = timeline.all("counter").into_iter();
        let lines = lines.filter(|line| timeline.track_name(line) == name);
        lines
            .map(|line| {
                let time = line["time"].as_u64().unwrap() / 1_000_000;
                (time, line["value"].as_i64().unwrap())
            })
            .collect()
    };
    let expected = [(0, 20), (100, 10), (200, 0), (500, 10), (600, 0)];
    assert_eq!(values("Contoso.Sample"), expected);
    assert_eq!(values("Other"), [(100, 10), (200, 0)]);
    let counter = timeline.all("counter")[0];
    assert_eq!(timeline.track(counter)["counter"], json!({"unit_name": "events/s"}));
    assert_eq!(
        timeline.attribute("etl.provider.Other"),
        "00000000-0000-0000-0000-000000000005, 1 events"
    );
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn interned_data_is_cleared_when_there_is_too_much() {
    // One kind of event, whose properties are cached, with new strings in each event.
    let events: Vec<Decoded> = (0..33_500)
        .map(|n| {
            let mut event = event(n, "A");
            event.fields = named(&[(&format!("field {n}"), Field::Int(n))]);
            event
        })
        .collect();
    let timeline = Timeline::from_events(&events);
    let instants = timeline.all("instant");
    assert_eq!(instants.len(), events.len());
    for (line, n) in instants.iter().zip(0..) {
        assert_eq!(line["name"], "A");
        assert_eq!(line["args"][format!("field {n}")], n);
    }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn more_threads_than_are_remembered_keep_their_tracks() {
    const LIMIT: u32 = 65_536;
    const MORE: u32 = 200;
    let threads = (0..LIMIT + MORE).chain(LIMIT..LIMIT + MORE);
    let events: Vec<Decoded> = threads
        .map(|thread| {
            let mut event = event(0, "A");
            event.thread_id = thread;
            event
        })
        .collect();
    let timeline = Timeline::from_events(&events);
    let instants = timeline.all("instant");
    let (first, second) = instants.split_at((LIMIT + MORE) as usize);
    for (first, second) in first[LIMIT as usize..].iter().zip(second) {
        assert_eq!(first["track"], second["track"]);
    }
    let tracks: HashSet<u64> = first.iter().filter_map(|line| line["track"].as_u64()).collect();
    assert_eq!(tracks.len(), first.len(), "no two threads share a track");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn times_outside_of_the_timeline_are_counted() {
    let mut early = event(0, "Early");
    early.time = FileTime::from_raw(START.raw() - 50);
    let mut never = event(0, "Never");
    never.time = FileTime::from_raw(i64::MAX);
    let timeline = Timeline::from_events(&[early, event(0, "Start"), never]);
    let instants = timeline.all("instant");
    assert_eq!(instants[0]["time"], 0);
    assert_eq!(instants[1]["time"], 5_000);
    assert_eq!(instants[2]["time"], i64::MAX);
    let clock = &timeline.all("clock")[0]["clocks"];
    assert_eq!(clock["1"], START_NANOS - 5_000);
    assert_eq!(timeline.summary.clamped, 1);
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn the_command_writes_a_timeline_and_says_what_it_lacks() {
    let losses = Losses { events_lost: 3, buffers_lost: 1 };
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let folder = Folder::with("trace.etl", trace::file(header, 7, losses).0);
    let dump = ["dump", "--format", "perfetto", "trace.etl"];
    let Ran { bytes, said, .. } =
        folder.etl(&[&dump[..], &["--out", "trace.pftrace"]].concat()).ok();
    assert_eq!(bytes, b"");
    let problems =
        "3 events could not be decoded completely; their annotation etw_problem says why";
    assert!(said.contains(problems), "{said}");
    let bytes = folder.read("trace.pftrace");
    let files = fs::read_dir(folder.path("")).unwrap();
    assert_eq!(files.count(), 2, "no temporary file is left");
    let lines = read(&bytes);
    let count = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    // A start and stop event, and a start event without a stop event.
    assert_eq!((count("instant"), count("slice")), (4, 2));
    let attribute = |key: &str| {
        let mut lines = lines.iter();
        lines.find(|line| line["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(attribute("etl.events"), 7);
    assert_eq!(attribute("etl.lost_events"), "3");
    assert_eq!(attribute("etl.lost_buffers"), "1");
    assert_eq!(folder.etl(&dump).bytes, bytes, "standard output has the same");
}

/// Returns an arbitrary value with few levels.
fn any_value() -> impl Strategy<Value = Field> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Field::Int),
        any::<u64>().prop_map(Field::UInt),
        any::<u64>().prop_map(Field::Pointer),
        any::<f64>().prop_map(Field::Double),
        any::<bool>().prop_map(Field::Bool),
        ".{0,200}".prop_map(Field::Text),
        any::<u32>().prop_map(Field::NtStatus),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Field::Binary),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Field::Array),
            proptest::collection::vec(("[ab]?".prop_map(Arc::from), inner), 0..4)
                .prop_map(Field::Struct),
        ]
    })
}

/// The names that the timeline looks for in kernel events, and other names.
const NAMES: &[&str] = &[
    "NewThreadId", "OldThreadId", "OldThreadState", "TThreadId", "InitialTime", "DiskNumber",
    "HighResResponseTime", "InstructionPointer", "IrpPtr", "ProcessId", "ImageFileName",
    "ThreadName", "x", "x", "",
];

/// The hooks of kernel events with a separate timeline form, and other hooks.
const HOOKS: &[u16] = &[
    0x0524, 0x0532, 0x0F2E, 0x0F44, 0x0F43, 0x010A, 0x010E, 0x0440, 0x0443, 0x044C, 0x0301, 0x0302,
    0x0501, 0x0502, 0x0F99,
];

prop_compose! {
    fn any_event()(
        kind in prop_oneof![
            3 => Just(Kind::Event),
            3 => proptest::sample::select(HOOKS).prop_map(|hook| Kind::Kernel { hook }),
            1 => Just(Kind::Wpp),
        ],
        later in 0..2_000_000_i64,
        processor in prop_oneof![0..3_u16, any::<u16>()],
        process_id in prop_oneof![0..3_u32, Just(u32::MAX), any::<u32>()],
        thread_id in prop_oneof![0..3_u32, Just(u32::MAX), any::<u32>()],
        names in proptest::option::of(("[ab]?", "[ab]?")),
        numbers in (any::<u16>(), 0..4_u8, 0..2_u16, any::<u64>()),
        activities in (0..4_u128, proptest::option::of(0..4_u128)),
        fields in proptest::collection::vec(
            (proptest::sample::select(NAMES).prop_map(Arc::from), any_value()),
            0..6,
        ),
        message in proptest::option::of(".{0,300}"),
        leftover in proptest::collection::vec(any::<u8>(), 0..3),
        frames in proptest::option::of(proptest::collection::vec(any::<u64>(), 0..4)),
    ) -> (i64, Decoded) {
        let (id, opcode, task, keyword) = numbers;
        let (own, related) = activities;
        let guid = |n| if n == 0 { Guid::default() } else { activity(n) };
        let mut event = event(0, "");
        event.kind = kind;
        event.processor = processor;
        event.process_id = process_id;
        event.thread_id = thread_id;
        event.provider_name = names.as_ref().map(|(name, _)| name.as_str().into());
        event.event_name = names.map(|(_, name)| name.into());
        event.descriptor = EventDescriptor {
            id, opcode, task, keyword, ..EventDescriptor::default()
        };
        event.activity = guid(own);
        event.related_activity = related.map(guid);
        event.fields = fields;
        event.message = message;
        event.leftover = leftover;
        event.stack = frames.map(|frames| {
            stack(&frames.iter().map(|address| (*address, None)).collect::<Vec<_>>())
        });
        (later, event)
    }
}

proptest! {
    // Each case starts an interpreter, so there are few cases with many events.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    #[ignore = "needs third-party readers; `cargo xtask test` runs it"]
    fn any_events_are_a_timeline(
        steps in proptest::collection::vec(any_event(), 0..200),
    ) {
        let mut now = START.raw();
        let events: Vec<Decoded> = steps
            .into_iter()
            .map(|(later, mut event)| {
                now += later;
                event.time = FileTime::from_raw(now);
                event
            })
            .collect();
        let timeline = Timeline::from_events(&events);
        let summary = &timeline.summary;
        // Each event appears once.
        let shown = summary.instants
            + 2 * summary.slices
            + summary.open_slices
            + summary.scheduling
            + summary.file_operations
            + summary.intervals
            + summary.samples;
        prop_assert_eq!(shown, events.len() as u64);
        let instants = timeline.all("instant").len() as u64;
        prop_assert_eq!(instants, summary.instants + summary.flows);
        prop_assert_eq!(timeline.all("flow").len() as u64, summary.flows);
        let slices = summary.slices + summary.open_slices + summary.intervals;
        prop_assert_eq!(timeline.all("slice").len() as u64, slices);
    }
}
