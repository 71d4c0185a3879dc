//! Kernel events as relogging writes them: with an `EVENT_HEADER`, and with the header of classic
//! events.

use std::io::Cursor;

use etl_file::decode::Kind;
use etl_file::write::ClassicRecord;
use etl_file::{
    Catalog, ClockType, Completion, Decoded, EventDescriptor, EventRecord, ExtendedItem, FirstPass,
    Guid, Pipeline, TraceFile, ext_type,
};
use etl_fixtures::trace;

const THREAD: Guid = Guid::from_u128(0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c);
const STACK_WALK: Guid = Guid::from_u128(0xdef2_fe46_7bd6_4b80_bd94_f57f_e20d_0ce3);
/// The process and thread ids of a record whose process and thread are unknown.
const NOBODY: u32 = u32::MAX;

/// Returns an event with an `EVENT_HEADER`.
fn relogged(class: Guid, opcode: u8, version: u8, timestamp: i64, payload: Vec<u8>) -> Vec<u8> {
    let event = EventRecord {
        thread_id: NOBODY,
        process_id: NOBODY,
        timestamp,
        provider: class,
        descriptor: EventDescriptor { version, opcode, ..EventDescriptor::default() },
        user_data: payload,
        ..EventRecord::default()
    };
    let mut bytes = event.encode().unwrap();
    bytes[5] |= 1; // EVENT_HEADER_FLAG_CLASSIC_HEADER
    bytes
}

/// Returns an event with an `EVENT_TRACE_HEADER`.
fn classic(class: Guid, opcode: u8, version: u8, timestamp: i64, payload: Vec<u8>) -> Vec<u8> {
    let record = ClassicRecord {
        class,
        opcode,
        version: version.into(),
        thread_id: NOBODY,
        process_id: NOBODY,
        timestamp,
        payload,
        ..ClassicRecord::default()
    };
    record.encode().unwrap()
}

type Form = fn(Guid, u8, u8, i64, Vec<u8>) -> Vec<u8>;

/// Returns the events of a trace with a context switch to thread 8, a readied thread 9 and the
/// readied thread's stack.
fn events(form: Form) -> Vec<Decoded> {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let at = |ticks: i64| header.start_clock + ticks;
    let mut switch = [8_u32, 7].map(u32::to_le_bytes).concat();
    switch.extend([0; 16]);
    let mut stack = at(200).to_le_bytes().to_vec();
    stack.extend([0x55_u32, 8].map(u32::to_le_bytes).concat());
    stack.extend([0xFFFF_F800_0000_1000_u64, 0x7FF6_0000_2000].map(u64::to_le_bytes).concat());
    let records = [
        (100, form(THREAD, 0x24, 2, at(100), switch)),
        (200, form(THREAD, 0x32, 2, at(200), vec![9, 0, 0, 0, 1, 0, 0, 0])),
        (300, form(STACK_WALK, 0x20, 2, at(300), stack)),
        (400, form(Guid::from_u128(5), 1, 0, at(400), vec![1])),
    ];
    let mut file = file(&records);
    assert!(FirstPass::read(&mut file).unwrap().can_complete);
    let (catalog, completion) = (Catalog::new(), Completion::default());
    let pipeline = Pipeline { completion: Some(&completion), ..Pipeline::new(&catalog) };
    let (events, _) = trace::events(&mut file, &pipeline);
    events.into_iter().map(|(_, event)| event).collect()
}

/// Returns a trace with records, each at a time in ticks.
fn file(records: &[(i64, Vec<u8>)]) -> TraceFile<Cursor<Vec<u8>>> {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let start = header.start_clock;
    let records = records.iter().map(|(ticks, bytes)| (start + ticks, bytes.clone()));
    let file = trace::of_records(header, start + 1000, records);
    TraceFile::new(Cursor::new(file)).unwrap()
}

fn assert_recognised(form: Form, of_others: Kind) {
    let all = events(form);
    let found: Vec<_> = all.iter().map(|event| (event.kind, event.problems.len())).collect();
    let kernel = |hook| (Kind::Kernel { hook }, 0);
    assert_eq!(found, [kernel(0x0524), kernel(0x0532), (of_others, 1)]);
    let [switch, ready, _] = &all[..] else {
        panic!("{all:?}");
    };
    assert_eq!(switch.provider_name.as_deref(), Some("Thread"));
    assert_eq!(switch.event_name.as_deref(), Some("CSwitch"));
    // The context switch determines the running thread, which readied the other thread.
    assert_eq!((switch.thread_id, ready.thread_id), (8, 8));
    let stack = ready.stack.as_ref().unwrap();
    let frames: Vec<u64> = stack.frames.iter().map(|frame| frame.address).collect();
    assert_eq!(frames, [0xFFFF_F800_0000_1000, 0x7FF6_0000_2000]);
}

#[test]
fn kernel_events_in_event_records_are_recognised() {
    assert_recognised(relogged, Kind::Event);
}

#[test]
fn kernel_events_in_classic_records_are_recognised() {
    let of_others = Kind::Classic { class: Guid::from_u128(5), opcode: 1 };
    assert_recognised(classic, of_others);
}

/// Returns the only event in a trace with one event record.
fn only(event: &EventRecord, catalog: &Catalog) -> Decoded {
    let mut file = file(&[(100, event.encode().unwrap())]);
    let (mut events, _) = trace::events(&mut file, &Pipeline::new(catalog));
    events.remove(0).1
}

/// Returns a Thread event: a thread becomes ready.
fn ready() -> EventRecord {
    let mut stack = 77_u64.to_le_bytes().to_vec();
    stack.extend(0x1000_u64.to_le_bytes());
    EventRecord {
        thread_id: 0x44,
        process_id: 0x55,
        timestamp: trace::header(ClockType::Qpc, 0x1000, 1).start_clock + 100,
        provider: THREAD,
        descriptor: EventDescriptor {
            version: 2,
            opcode: 0x32,
            level: 3,
            task: 11,
            keyword: 0x40,
            ..EventDescriptor::default()
        },
        activity_id: Guid::from_u128(0xA),
        extended: vec![
            ExtendedItem::related_activity(Guid::from_u128(0xB)),
            ExtendedItem { ext_type: ext_type::STACK_TRACE64, data: stack },
        ],
        user_data: vec![9, 0, 0, 0, 1, 0, 0, 0],
        ..EventRecord::default()
    }
}

#[test]
fn a_kernel_event_keeps_what_its_event_record_says() {
    let record = ready();
    let event = only(&record, &Catalog::new());
    assert_eq!(event.event_name.as_deref(), Some("ReadyThread"));
    assert_eq!(event.descriptor, record.descriptor);
    assert_eq!((event.process_id, event.thread_id), (0x55, 0x44));
    assert_eq!(event.timestamp, record.timestamp);
    let clock = trace::header(ClockType::Qpc, 0x1000, 1).session_clock();
    assert_eq!(event.time, clock.to_file_time(record.timestamp));
    assert_eq!(event.level_name.as_deref(), Some("Warning"));
    assert_eq!(event.activity, Guid::from_u128(0xA));
    assert_eq!(event.related_activity, Some(Guid::from_u128(0xB)));
    let frames = event.stack.unwrap().frames;
    assert_eq!(frames[0].address, 0x1000);
}

#[test]
fn a_manifest_is_stronger_than_the_class_of_the_kernel() {
    let mut catalog = Catalog::new();
    let manifest = format!(
        r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
        <instrumentation><events><provider name="Own" guid="{{{THREAD}}}" symbol="OWN">
        <events><event value="0" version="2" level="win:Warning" symbol="Bare"/></events>
        </provider></events></instrumentation></instrumentationManifest>"#
    );
    catalog.add(&manifest).unwrap();
    let mut record = ready();
    record.descriptor.opcode = 0;
    record.descriptor.task = 0;
    record.descriptor.keyword = 0;
    record.user_data.clear();
    let event = only(&record, &catalog);
    assert_eq!(event.event_name.as_deref(), Some("Bare"));
    assert_eq!(event.kind, Kind::Event);
}

#[test]
fn frames_in_code_that_net_compiled_have_the_names_of_methods() {
    const RUNTIME: Guid = Guid::from_u128(0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4);
    const RUNDOWN: Guid = Guid::from_u128(0xa669_021c_c450_4609_a035_5af5_9af4_df18);
    let method = |provider, id, process_id, address: u64, name: &str| {
        let wide = |text: &str| {
            text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<_>>()
        };
        let mut user_data = [7, 8, address].map(u64::to_le_bytes).concat();
        user_data.extend([0x40_u32, 1, 2].into_iter().flat_map(u32::to_le_bytes));
        user_data.extend(["Contoso.Job", name, "void  ()"].into_iter().flat_map(wide));
        let descriptor = EventDescriptor { id, version: 2, ..EventDescriptor::default() };
        EventRecord { provider, process_id, descriptor, user_data, ..EventRecord::default() }
    };
    let stack = |process_id, addresses: [u64; 2]| {
        let data = [&[0; 8][..], &addresses.map(u64::to_le_bytes).concat()].concat();
        EventRecord {
            process_id,
            provider: Guid::from_u128(5),
            extended: vec![ExtendedItem { ext_type: ext_type::STACK_TRACE64, data }],
            ..EventRecord::default()
        }
    };
    let events = [
        method(RUNTIME, 143, 7, 0x1000, "Run"),
        stack(7, [0x1010, 0x1040]),
        stack(8, [0x1010, 0x2000]),
        method(RUNTIME, 144, 7, 0x1000, "Run"),
        method(RUNTIME, 143, 7, 0x1000, "Again"),
        stack(7, [0x103F, 0x2008]),
        // The rundown at the end names what was loaded before the trace.
        method(RUNDOWN, 144, 7, 0x2000, "Old"),
    ];
    let records: Vec<(i64, Vec<u8>)> = (1..)
        .map(|nth| 100 * nth)
        .zip(&events)
        .map(|(ticks, event)| (ticks, event.encode().unwrap()))
        .collect();
    let mut file = file(&records);
    assert!(FirstPass::read(&mut file).unwrap().can_complete);
    let (catalog, completion) = (Catalog::new(), Completion::default());
    let pipeline = Pipeline { completion: Some(&completion), ..Pipeline::new(&catalog) };
    let (events, _) = trace::events(&mut file, &pipeline);
    let frames: Vec<Vec<String>> = events
        .iter()
        .filter_map(|(_, event)| event.stack.as_ref())
        .map(|stack| stack.frames.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(
        frames,
        [
            ["0x1010 Contoso.Job.Run+0x10", "0x1040"],
            ["0x1010", "0x2000"],
            ["0x103f Contoso.Job.Again+0x3f", "0x2008 Contoso.Job.Old+0x8"],
        ]
    );
}
