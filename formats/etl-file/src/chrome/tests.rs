use super::*;
use crate::decode::{Value, decoded};
use crate::record::{EventDescriptor, EventRecord};
use crate::time::FileTime;
use etw_wire::Guid;

/// Returns an event of an activity: its start (1), its stop (2) or another one (0).
fn event(activity: u128, opcode: u8, micros: i64) -> Decoded {
    Decoded {
        time: FileTime::from_raw(134_117_966_450_000_000 + 10 * micros),
        ..decoded(EventRecord {
            activity_id: Guid::from_u128(activity),
            descriptor: EventDescriptor {
                id: 1 + u16::from(opcode),
                opcode,
                task: 1,
                ..EventDescriptor::default()
            },
            ..EventRecord::default()
        })
    }
}

#[test]
fn an_event_has_the_size_of_what_it_holds() {
    let plain = event(1, 0, 0);
    let base = size(&plain);
    assert_eq!(base, size_of::<Decoded>());
    let of = |change: fn(&mut Decoded)| {
        let mut event = plain.clone();
        change(&mut event);
        size(&event) - base
    };
    let frame = |place: Option<&str>| Frame { address: 1, place: place.map(Into::into) };
    assert_eq!(frame(None).place, None);
    assert_eq!(of(|event| event.leftover = vec![0; 70]), 70);
    assert_eq!(of(|event| event.message = Some("x".repeat(50))), 50);
    let of_frames = of(|event| {
        let frame = |place: Option<&str>| Frame { address: 1, place: place.map(Into::into) };
        event.stack = Some(Stack {
            frames: vec![frame(None), frame(Some("0123456789"))],
            ..Stack::default()
        });
    });
    assert_eq!(of_frames, 2 * size_of::<Frame>() + 10);
    let value = Value::Text("x".repeat(30));
    let of_field = of(|event| event.fields = vec![("name".into(), Value::Text("x".repeat(30)))]);
    assert_eq!(of_field, 4 + value.size());
    let of_all = of(|event| {
        event.leftover = vec![0; 70];
        event.message = Some("x".repeat(50));
        event.fields = vec![("name".into(), Value::Text("x".repeat(30)))];
    });
    assert_eq!(of_all, 120 + of_field);
}

#[test]
fn what_waits_is_counted() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let state = |writer: &Writer<Vec<u8>>| {
        let queued: usize = writer.queue.iter().flatten().map(Vec::len).sum();
        assert_eq!(writer.queued, queued);
        (writer.bytes, writer.queue.len())
    };
    writer.event(&event(9, 0, 0)).unwrap();
    assert_eq!(state(&writer), (0, 0));
    let start = event(1, 1, 10);
    writer.event(&start).unwrap();
    assert_eq!(state(&writer), (size(&start), 1));
    writer.event(&event(9, 0, 20)).unwrap();
    writer.event(&event(9, 0, 30)).unwrap();
    assert_eq!(state(&writer), (size(&start), 3));
    writer.event(&event(2, 1, 40)).unwrap();
    assert_eq!(state(&writer), (2 * size(&start), 4));
    writer.event(&event(1, 2, 50)).unwrap();
    // The second start still waits, and what follows it.
    assert_eq!(state(&writer), (size(&start), 2));
    let given_up = writer.open.give_up();
    writer.give_up(given_up).unwrap();
    assert_eq!(state(&writer), (0, 0));
    let out = writer.finish().unwrap();
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let entries = file["traceEvents"].as_array().unwrap();
    let phases: Vec<&str> = entries.iter().map(|one| one["ph"].as_str().unwrap()).collect();
    assert_eq!(phases, ["i", "b", "i", "i", "i", "e"]);
    for entry in entries {
        let is_instant = entry["ph"] == "i";
        assert_eq!(entry.get("s").is_some_and(|scope| scope == "t"), is_instant);
        assert_eq!(entry.get("id").is_some(), !is_instant);
    }
    let times: Vec<f64> = entries.iter().map(|one| one["ts"].as_f64().unwrap()).collect();
    assert_eq!(times, [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
}

#[test]
fn events_are_written_at_once() {
    let events = [event(9, 0, 0), event(1, 1, 10), event(1, 2, 50)];
    let mut writer = Writer::new(Vec::new()).unwrap();
    for event in &events {
        writer.event(event).unwrap();
    }
    let mut out = Vec::new();
    write_events(&events, &mut out).unwrap();
    assert_eq!(writer.finish().unwrap(), out);
    assert!(out.ends_with(b"]}"));
}

#[test]
fn no_bytes_are_counted_when_nothing_waits() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for micros in [0, 100] {
        writer.event(&event(1, 1, micros)).unwrap();
        writer.event(&event(1, 2, micros + 50)).unwrap();
        assert_eq!((writer.bytes, writer.queued, writer.queue.len()), (0, 0, 0));
    }
}

#[test]
fn start_events_wait_while_they_fit() {
    let start = event(1, 1, 0);
    for (more, waiting) in [(0, 1), (1, 0)] {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.bytes = (16 << 20) - size(&start) + more;
        writer.event(&start).unwrap();
        assert_eq!(writer.open.len(), waiting);
        writer.bytes = if waiting == 0 { 0 } else { size(&start) };
        writer.finish().unwrap();
    }
}

#[test]
fn entries_wait_while_they_fit() {
    let instant = event(9, 0, 10);
    for (more, waiting) in [(0, 2), (1, 0)] {
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.event(&event(1, 1, 0)).unwrap();
        let length = writer.entry(&instant, "i").unwrap().len();
        writer.queued = (8 << 20) - length + more;
        writer.event(&instant).unwrap();
        assert_eq!(writer.queue.len(), waiting);
        writer.queued = if waiting == 0 { 0 } else { length };
        // The entry of the start event is complete, wherever it is.
        let out = writer.finish().unwrap();
        let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(file["traceEvents"].as_array().unwrap().len(), 2);
    }
}
