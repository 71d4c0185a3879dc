//! Names of processes, threads and images, from generated kernel events.

use etl_file::decode::{Frame, Kind, Problem, Stack, Value};
use etl_file::internals::kernel;
use etl_file::internals::names::{Names, Running};
use etl_file::internals::stacks::{Definitions, Joiner};
use etl_file::symbols::Symbols;
use etl_file::write::{ClassicRecord, KernelRecord};
use etl_file::{Clock, ClockType, Decoded, FileTime, Guid, StackCounts};
use etl_fixtures::kernel_records::{self, perfinfo};

const CLOCK: Clock = Clock {
    kind: ClockType::Qpc,
    perf_frequency: 10_000_000,
    cpu_mhz: 3000,
    start_clock: 0,
    start_time: FileTime::from_raw(134_117_966_450_000_000),
};

const NTOSKRNL: u64 = 0xFFFF_F801_0000_0000;
const APP: u64 = 0x7FF6_0000_0000;

fn decoded(record: &KernelRecord, processor: u16) -> Decoded {
    kernel::decode(&record.encode().unwrap()).unwrap().into_decoded(&CLOCK, processor, 0)
}

fn event(hook: u16, version: u8, time: i64, payload: Vec<u8>) -> Decoded {
    let event = decoded(&kernel_records::event(hook, version, time, payload), 0);
    assert_eq!(event.problems, [], "{event:?}");
    event
}

fn process(opcode: u16, time: i64, id: u32, image: &str) -> Decoded {
    event(0x0300 + opcode, 2, time, kernel_records::process(id, image))
}

fn thread(opcode: u16, time: i64, process: u32, id: u32, name: &str) -> Decoded {
    event(0x0500 + opcode, 3, time, kernel_records::thread(process, id, name))
}

fn image(hook: u16, time: i64, process: u32, base: u64, path: &str) -> Decoded {
    event(hook, 1, time, kernel_records::image(base, process, path))
}

fn observed(events: &[Decoded]) -> Names {
    let mut names = Names::new();
    for event in events {
        names.observe(event);
    }
    names
}

fn image_name(names: &Names, id: u32, time: i64) -> Option<&str> {
    names.process(id, time).map(|process| &*process.image)
}

#[test]
fn a_process_id_is_reused_after_its_process_has_ended() {
    let names = observed(&[
        process(3, 100, 4, "System"),
        process(1, 200, 50, "first.exe"),
        process(2, 300, 50, "first.exe"),
        process(1, 400, 50, "second.exe"),
        process(4, 900, 4, "System"),
        process(4, 900, 60, "never_seen_before.exe"),
        process(2, 950, 70, "ended_only.exe"),
    ]);
    assert_eq!(image_name(&names, 4, 1), Some("System"));
    assert_eq!(image_name(&names, 4, 1000), Some("System"));
    assert_eq!(image_name(&names, 50, 199), None);
    assert_eq!(image_name(&names, 50, 250), Some("first.exe"));
    assert_eq!(image_name(&names, 50, 350), None);
    assert_eq!(image_name(&names, 50, 450), Some("second.exe"));
    assert_eq!(image_name(&names, 60, 5), Some("never_seen_before.exe"));
    assert_eq!(image_name(&names, 70, 5), Some("ended_only.exe"));
    assert_eq!(image_name(&names, 70, 951), None);
    let first = names.process(50, 250).unwrap();
    assert_eq!(&*first.command_line, "first.exe /run");
    assert!(!names.is_empty());
    assert!(Names::new().is_empty());
    assert_eq!(names.dropped(), 0);
}

#[test]
fn a_start_without_the_end_before_it_ends_the_older_process() {
    let names = observed(&[process(1, 200, 50, "old.exe"), process(1, 400, 50, "new.exe")]);
    assert_eq!(image_name(&names, 50, 399), Some("old.exe"));
    assert_eq!(image_name(&names, 50, 400), Some("new.exe"));
}

#[test]
fn an_event_without_a_process_in_its_header_is_of_the_first_one_in_its_payload() {
    let of_process = |opcode: u16, payload| decoded(&perfinfo(0x0300 + opcode, 5, payload), 0);
    let mut payload = kernel_records::process(50, "a.exe");
    payload[12..16].copy_from_slice(&4_u32.to_le_bytes()); // the parent process
    let start = of_process(1, payload);
    assert_eq!(start.problems, []);
    assert_eq!(start.process_id, 50);
    // The type is unknown; without data, nothing is missing.
    let unknown = of_process(0xFE, Vec::new());
    assert_eq!((unknown.problems, unknown.process_id), (vec![], u32::MAX));
}

#[test]
fn a_thread_has_its_process_and_its_last_name() {
    let ids = [50_u32, 9].map(u32::to_le_bytes).concat();
    let set_name = [ids, kernel_records::utf16("renamed")].concat();
    let names = observed(&[
        process(1, 100, 50, "app.exe"),
        thread(1, 110, 50, 9, "worker"),
        thread(2, 200, 50, 9, ""),
        thread(1, 300, 50, 9, ""),
        event(0x0548, 2, 310, set_name),
    ]);
    let name = |time| names.thread(9, time).and_then(|thread| thread.name.as_deref());
    assert_eq!((name(150), name(250), name(350)), (Some("worker"), None, Some("renamed")));
    let mut sample = event(0x030b, 2, 150, vec![1, 0, 0, 0]);
    sample.process_id = u32::MAX;
    names.resolve(&mut sample);
    assert_eq!(sample.process_id, 50, "the thread's process");
    assert_eq!(sample.process_name.as_deref(), Some("app.exe"));
    assert_eq!(sample.thread_name.as_deref(), Some("worker"));
}

#[test]
fn an_address_is_in_an_image_while_it_is_loaded() {
    let names = observed(&[
        image(0x1403, 100, 4, NTOSKRNL, r"\SystemRoot\system32\ntoskrnl.exe"),
        image(0x030a, 200, 50, APP, r"\Device\HarddiskVolume3\app.exe"),
        image(0x1402, 300, 50, APP, r"\Device\HarddiskVolume3\app.exe"),
        image(0x030a, 400, 50, APP, r"\Device\HarddiskVolume3\plugin.dll"),
    ]);
    let place = |process, address, time| names.place(process, address, time);
    assert_eq!(place(50, APP + 0x1234, 250).as_deref(), Some("app.exe+0x1234"));
    assert_eq!(place(50, APP, 450).as_deref(), Some("plugin.dll+0x0"));
    assert_eq!(place(50, APP, 350), None, "nothing is loaded in between");
    assert_eq!(place(50, APP + 0x10_000, 450), None, "the end");
    assert_eq!(place(50, APP - 1, 450), None);
    assert_eq!(place(51, APP, 450), None, "another process");
    let kernel = "ntoskrnl.exe+0xff";
    assert_eq!(place(50, NTOSKRNL + 0xFF, 1).as_deref(), Some(kernel));
    assert_eq!(place(0, NTOSKRNL + 0xFF, 999).as_deref(), Some(kernel));
}

#[test]
fn the_images_of_a_process_end_with_it() {
    let names = observed(&[
        process(1, 100, 50, "old.exe"),
        image(0x030a, 200, 50, APP, "old.exe"),
        process(2, 300, 50, "old.exe"),
        process(1, 400, 50, "new.exe"),
    ]);
    assert_eq!(names.place(50, APP, 250).as_deref(), Some("old.exe+0x0"));
    assert_eq!(names.place(50, APP, 450), None);
}

#[test]
fn the_symbols_of_an_image_have_an_identity() {
    let symbols = |opcode, guid, name: &[u8]| {
        let record = ClassicRecord {
            class: Guid::from_u128(0xb3e6_75d7_2554_4f18_830b_2762_7325_60de),
            opcode,
            payload: {
                let mut payload = NTOSKRNL.to_le_bytes().to_vec();
                payload.extend(0_u32.to_le_bytes());
                payload.extend(Guid::from_u128(guid).to_bytes());
                payload.extend(3_u32.to_le_bytes());
                payload.extend(name);
                payload
            },
            ..ClassicRecord::default()
        };
        kernel::decode(&record.encode().unwrap()).unwrap().into_decoded(&CLOCK, 0, 0)
    };
    let names = observed(&[
        image(0x1403, 100, 4, NTOSKRNL, "ntoskrnl.exe"),
        symbols(36, 0x99, b"ntkrnlmp.pdb\0"),
        // The PDB of the intermediate language does not describe machine code.
        symbols(37, 0x98, b"intermediate.pdb\0"),
    ]);
    let found = names.symbols(50, NTOSKRNL + 5, 100).unwrap();
    assert_eq!((found.guid, found.age, &*found.pdb), (Guid::from_u128(0x99), 3, "ntkrnlmp.pdb"));
    assert_eq!(names.symbols(50, APP, 100), None);
}

fn switch(processor: u16, time: i64, new: u32) -> Decoded {
    decoded(&perfinfo(0x0524, time, kernel_records::switch(new)), processor)
}

fn interrupt(processor: u16, time: i64) -> Decoded {
    decoded(&perfinfo(0x0f44, time, vec![0; 16]), processor)
}

#[test]
fn a_record_without_a_thread_has_the_one_that_runs_on_its_processor() {
    let mut running = Running::new();
    let mut before = interrupt(0, 1);
    running.follow(&mut before);
    assert_eq!(before.thread_id, u32::MAX);
    running.follow(&mut switch(0, 2, 77));
    running.follow(&mut switch(1, 3, 88));
    let mut after = [interrupt(0, 4), interrupt(1, 5), interrupt(2, 6)];
    for event in &mut after {
        running.follow(event);
    }
    assert_eq!(after.map(|event| event.thread_id), [77, 88, u32::MAX]);
}

fn stack(at: i64, time: i64, thread: u32, frames: &[u64]) -> Decoded {
    event(0x1820, 2, at, kernel_records::stack(time, 7, thread, frames))
}

fn keyed(hook: u16, at: i64, time: i64, thread: u32, key: u64) -> Decoded {
    event(hook, 2, at, kernel_records::stack(time, 7, thread, &[key]))
}

fn definition(hook: u16, at: i64, key: u64, frames: &[u64]) -> Decoded {
    let all = [&[key][..], frames].concat();
    event(hook, 2, at, all.into_iter().flat_map(u64::to_le_bytes).collect())
}

/// Joins events with their stacks, and returns the events and the counts.
fn joined(events: &[Decoded]) -> (Vec<Decoded>, StackCounts) {
    let mut definitions = Definitions::new();
    for event in events {
        definitions.observe(event);
    }
    let mut joiner = Joiner::new(definitions);
    let mut out = Vec::new();
    for event in events {
        joiner.push(event.clone(), (), 0);
        while let Some((event, ())) = joiner.pop() {
            out.push(event);
        }
    }
    while let Some((event, ())) = joiner.drain() {
        out.push(event);
    }
    (out, joiner.counts())
}

fn frames(event: &Decoded) -> Vec<u64> {
    let stack = event.stack.iter();
    stack.flat_map(|stack| stack.frames.iter().map(|frame| frame.address)).collect()
}

/// Returns an event of thread 9 at `time`.
fn plain(time: i64) -> Decoded {
    event(0x030b, 2, time, vec![1, 0, 0, 0])
}

#[test]
fn a_stack_joins_the_event_with_its_time_and_thread() {
    let mut other_thread = plain(100);
    other_thread.thread_id = 10;
    let (out, counts) = joined(&[
        other_thread,
        plain(100),
        plain(101),
        stack(5000, 100, 9, &[APP + 1, APP + 2]),
        // The kernel half comes later, but is shown first.
        stack(5001, 100, 9, &[NTOSKRNL + 1]),
        stack(5002, 102, 9, &[1]),
        // Two events have the same time.
        stack(5003, 100, 11, &[1]),
    ]);
    assert_eq!(counts, StackCounts { joined: 2, unmatched: 2 });
    assert_eq!(out.len(), 5, "the stacks without an event stay");
    assert_eq!(frames(&out[0]), [0; 0]);
    assert_eq!(frames(&out[1]), [NTOSKRNL + 1, APP + 1, APP + 2]);
    assert_eq!(frames(&out[2]), [0; 0]);
}

#[test]
fn a_performance_record_gets_its_stack_by_time() {
    let (out, counts) = joined(&[switch(0, 100, 77), stack(200, 100, 78, &[NTOSKRNL])]);
    assert_eq!(counts, StackCounts { joined: 1, unmatched: 0 });
    assert_eq!(frames(&out[0]), [NTOSKRNL]);
}

// Events about a thread, such as that it becomes ready, can name it in the header.
#[test]
fn the_only_event_of_a_time_gets_its_stack_whatever_thread_it_names() {
    let (out, counts) = joined(&[plain(101), stack(5003, 101, 11, &[NTOSKRNL])]);
    assert_eq!((counts.joined, counts.unmatched), (1, 0));
    assert_eq!(frames(&out[0]), [NTOSKRNL]);
}

#[test]
fn addresses_of_32_bit_code_among_wider_ones_are_of_user_mode() {
    let wow64: &[u64] = &[0x9000_0000, APP];
    let (out, counts) = joined(&[
        plain(100),
        keyed(0x1826, 111, 100, 9, 5),
        definition(0x1823, 120, 5, wow64),
        plain(200),
        stack(210, 200, 9, wow64),
        stack(211, 200, 9, &[NTOSKRNL]),
    ]);
    assert_eq!((counts.joined, counts.unmatched), (3, 0));
    let events: Vec<Vec<u64>> = out
        .iter()
        .filter(|event| event.event_name.as_deref() == Some("Terminate"))
        .map(frames)
        .collect();
    assert_eq!(events, [wow64, &[NTOSKRNL, 0x9000_0000, APP]]);
}

#[test]
fn a_stack_of_32_bit_code_alone_is_found_by_its_key() {
    let (out, counts) = joined(&[
        plain(100),
        keyed(0x1826, 111, 100, 9, 5),
        definition(0x1823, 120, 5, &[0x9000_1111]),
    ]);
    assert_eq!((counts.joined, counts.unmatched), (1, 0));
    assert_eq!(frames(&out[0]), [0x9000_1111]);
}

#[test]
fn a_key_stands_for_its_first_definition_at_or_after_the_reference() {
    let (out, counts) = joined(&[
        definition(0x1822, 50, 5, &[NTOSKRNL + 1]),
        plain(100),
        keyed(0x1825, 110, 100, 9, 5),
        keyed(0x1826, 111, 100, 9, 5),
        definition(0x1823, 120, 5, &[NTOSKRNL + 2]),
        definition(0x1823, 121, 5, &[APP + 3]),
        plain(200),
        keyed(0x1825, 210, 200, 9, 5),
        keyed(0x1826, 211, 200, 9, 6),
        definition(0x1824, 300, 5, &[NTOSKRNL + 4]),
    ]);
    // Key 6 has no definition.
    assert_eq!(counts, StackCounts { joined: 3, unmatched: 1 });
    let events: Vec<&Decoded> =
        out.iter().filter(|event| event.event_name.as_deref() == Some("Terminate")).collect();
    assert_eq!(frames(events[0]), [NTOSKRNL + 2, APP + 3]);
    assert_eq!(frames(events[1]), [NTOSKRNL + 4]);
}

#[test]
fn the_window_is_bounded_and_keeps_the_order() {
    let count = Joiner::<()>::MAX_EVENTS + 100;
    let mut events: Vec<Decoded> = (0..count).map(|n| plain(i64::try_from(n).unwrap())).collect();
    // The first event has left the window; the last one has not.
    let last = i64::try_from(count - 1).unwrap();
    events.push(stack(1 << 40, 0, 9, &[APP]));
    events.push(stack(1 << 40, last, 9, &[APP]));
    let (out, counts) = joined(&events);
    assert_eq!(counts, StackCounts { joined: 1, unmatched: 1 });
    assert_eq!(out.len(), count + 1);
    assert!(out.is_sorted_by_key(|event| event.timestamp));
    assert_eq!(frames(&out[count - 1]), [APP]);
}

#[test]
fn what_is_kept_beside_an_event_counts_for_the_window() {
    let definitions = {
        let mut definitions = Definitions::new();
        definitions.observe(&stack(1, 0, 9, &[APP]));
        definitions
    };
    let mut joiner = Joiner::new(definitions);
    let size = Joiner::<()>::MAX_BYTES / 4;
    for time in 1..=3 {
        joiner.push(plain(time), (), size);
        assert!(joiner.pop().is_none(), "{time}");
    }
    joiner.push(plain(4), (), size);
    let times = std::iter::from_fn(|| joiner.pop()).map(|(event, ())| event.timestamp);
    assert_eq!(times.collect::<Vec<_>>(), [1]);
}

#[test]
fn events_do_not_wait_where_there_are_no_stacks() {
    let mut joiner = Joiner::new(Definitions::new());
    joiner.push(plain(1), "beside", 6);
    let (event, beside) = joiner.pop().unwrap();
    assert_eq!((event.timestamp, beside), (1, "beside"));
}

#[test]
fn frames_get_their_images() {
    let names = observed(&[
        image(0x1403, 100, 4, NTOSKRNL, "ntoskrnl.exe"),
        image(0x1403, 100, 7, APP, "app.exe"),
    ]);
    let (mut out, _) = joined(&[plain(100), stack(101, 100, 9, &[NTOSKRNL + 0x10, APP + 0x20, 5])]);
    names.place_frames(&mut out[0], &Symbols::new());
    let places: Vec<Option<&str>> = out[0]
        .stack
        .iter()
        .flat_map(|stack| stack.frames.iter().map(|frame| frame.place.as_deref()))
        .collect();
    assert_eq!(places, [Some("ntoskrnl.exe+0x10"), Some("app.exe+0x20"), None]);
}

#[test]
fn the_frames_of_a_stack_are_those_of_the_process_that_its_record_names() {
    let names = observed(&[
        image(0x1403, 10, 7, APP, r"\Device\HarddiskVolume3\other.exe"),
        image(0x1403, 11, 50, APP, r"\Device\HarddiskVolume3\app.exe"),
    ]);
    let mut of_50 = stack(110, 100, 9, &[APP + 0x10]);
    for (name, value) in &mut of_50.fields {
        if &**name == "StackProcess" {
            *value = Value::ProcessId(50);
        }
    }
    // The event's header contains process 7.
    let (mut out, _) = joined(&[plain(100), of_50]);
    names.place_frames(&mut out[0], &Symbols::new());
    let found = out[0].stack.as_ref().unwrap();
    assert_eq!(found.process_id, Some(50));
    assert_eq!(found.frames[0].place.as_deref(), Some("app.exe+0x10"));
}

/// Returns an event with a stack given by keys.
fn with_keys(time: i64, keys: &[u64]) -> Decoded {
    Decoded { stack: Some(Stack { keys: keys.to_vec(), ..Stack::default() }), ..plain(time) }
}

#[test]
fn the_keys_of_an_events_own_stack_stand_for_the_next_definitions() {
    let (out, counts) = joined(&[
        definition(0x1822, 50, 5, &[NTOSKRNL + 1]),
        // The user half and the kernel half have different keys.
        with_keys(100, &[6, 5]),
        definition(0x1822, 110, 5, &[NTOSKRNL + 2]),
        definition(0x1822, 111, 6, &[APP + 3]),
        definition(0x1822, 112, 5, &[APP + 4]),
        with_keys(200, &[5]),
    ]);
    assert_eq!((counts.joined, counts.unmatched), (2, 1));
    let events: Vec<&Decoded> = out.iter().filter(|event| event.stack.is_some()).collect();
    assert_eq!(frames(events[0]), [NTOSKRNL + 2, APP + 3]);
    assert_eq!(events[0].problems, []);
    assert_eq!(frames(events[1]), [0; 0], "no definition comes after it");
    assert_eq!(events[1].problems, [Problem::UnknownStack { key: 5 }]);
}

/// Returns an event with half of a stack.
fn half(time: i64, match_id: u64, frames: &[u64]) -> Decoded {
    let frames = frames.iter().map(|&address| Frame { address, place: None });
    Decoded {
        stack: Some(Stack { frames: frames.collect(), match_id, ..Stack::default() }),
        ..plain(time)
    }
}

#[test]
fn the_halves_of_a_stack_come_together_at_the_first_event() {
    let events = [
        half(100, 0x77, &[NTOSKRNL + 1]),
        half(101, 0x78, &[APP + 9]),
        half(102, 0x77, &[APP + 2]),
        half(103, 0x78, &[NTOSKRNL + 8]),
        // The id is reused, but its other half is lost.
        half(104, 0x77, &[NTOSKRNL + 3]),
        half(105, 0, &[APP]),
    ];
    let mut definitions = Definitions::new();
    definitions.expect_stacks();
    let mut joiner = Joiner::new(definitions);
    for event in events {
        joiner.push(event, (), 0);
        assert!(joiner.pop().is_none(), "the other half may come");
    }
    let mut out = Vec::new();
    while let Some((event, ())) = joiner.drain() {
        out.push(frames(&event));
    }
    let expected: [&[u64]; 6] = [
        &[NTOSKRNL + 1, APP + 2],
        &[NTOSKRNL + 8, APP + 9],
        &[APP + 2],
        &[NTOSKRNL + 8],
        &[NTOSKRNL + 3],
        &[APP],
    ];
    assert_eq!(out, expected);
    let counts = joiner.counts();
    assert_eq!((counts.joined, counts.unmatched), (2, 1));
}

#[test]
fn definitions_that_take_too_much_memory_are_counted() {
    for frames in [&[APP][..], &[APP, APP, APP]] {
        let mut definitions = Definitions::new();
        let one = 8 * frames.len() + 24;
        let fit = Definitions::MAX_BYTES / one;
        let mut event = definition(0x1824, 100, 0, frames);
        for key in 0..fit + 3 {
            event.fields[0].1 = Value::Pointer(key as u64);
            definitions.observe(&event);
        }
        assert_eq!(definitions.dropped(), 3);
    }
}

#[test]
fn tables_have_the_entries_that_events_add() {
    assert!(Names::new().is_empty());
    assert!(observed(&[plain(1)]).is_empty());
    assert!(!observed(&[process(1, 100, 50, "one.exe")]).is_empty());
    assert!(!observed(&[thread(1, 100, 50, 7, "")]).is_empty());
}

#[test]
fn entries_have_a_limit() {
    let mut names = Names::new();
    let mut event = process(1, 100, 0, "one.exe");
    let at = event.fields.iter().position(|(name, _)| &**name == "ProcessId");
    for id in 0..u32::try_from(Names::MAX_ENTRIES).unwrap() + 5 {
        event.fields[at.unwrap()].1 = Value::ProcessId(id.into());
        names.observe(&event);
    }
    assert_eq!(names.dropped(), 5);
    let last = u32::try_from(Names::MAX_ENTRIES).unwrap() - 1;
    assert_eq!(image_name(&names, last, 200), Some("one.exe"));
    assert_eq!(image_name(&names, last + 1, 200), None);
}

#[test]
fn only_the_end_of_a_process_unloads_its_images_and_never_those_of_the_kernel() {
    const SYSTEM: u32 = 4;
    for (process_id, opcode, stays) in [
        (50, 2, false),
        // A rundown at the start or end of the session.
        (50, 3, true),
        (50, 4, true),
        (SYSTEM, 2, true),
    ] {
        let names = observed(&[
            process(3, 100, process_id, "one.exe"),
            image(0x030a, 200, process_id, APP, "one.exe"),
            process(opcode, 300, process_id, "one.exe"),
        ]);
        let place = names.place(process_id, APP, 400);
        assert_eq!(place.is_some(), stays, "{process_id} {opcode}");
    }
}

#[test]
fn only_fields_of_kernel_events_are_code() {
    let names = observed(&[
        process(3, 100, 0, "ntoskrnl.exe"),
        image(0x030a, 200, 0, NTOSKRNL, "ntoskrnl.exe"),
    ]);
    let place = |kind, name: &str| {
        let mut event = Decoded {
            kind,
            timestamp: 300,
            fields: vec![(name.into(), Value::Pointer(NTOSKRNL + 5))],
            ..plain(300)
        };
        names.place_fields(&mut event, &Symbols::new());
        matches!(event.fields[0].1, Value::Code { .. })
    };
    let kernel = || plain(300).kind;
    assert!(matches!(kernel(), Kind::Kernel { .. }));
    assert!(place(kernel(), "InstructionPointer"));
    assert!(!place(kernel(), "Other"));
    assert!(!place(Kind::Event, "InstructionPointer"));
}
