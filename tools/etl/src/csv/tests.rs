use super::*;
use etl_file::decode::Value;
use etl_file::{Event, EventRecord};
use etl_fixtures::decoded;

fn event() -> Event {
    Event { record: EventRecord::default(), ..Event::default() }
}

/// Returns an event's cells by column name.
fn cells(decoded: &Decoded, columns: Option<FieldColumns>) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, columns).unwrap();
    writer.event(&event().view(), decoded).unwrap();
    writer.end().unwrap();
    drop(writer);
    let text = String::from_utf8(out).unwrap();
    let [names, values] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{text}");
    };
    let texts = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    texts(names).into_iter().zip(texts(values)).collect()
}

#[test]
fn a_name_that_repeats_has_a_column_for_each_repetition() {
    let fields = ["x", "y", "x", "x"];
    let fields = (1..).zip(fields);
    let event = Decoded {
        fields: fields.map(|(number, name)| (name.into(), Value::UInt(number))).collect(),
        ..decoded(EventRecord::default())
    };
    let mut columns = FieldColumns::default();
    assert!(columns.is_empty());
    columns.add(&event).unwrap();
    columns.add(&event).unwrap();
    assert!(!columns.is_empty());
    assert_eq!(columns.len(), 4);
    let cells = cells(&event, Some(columns));
    let found: Vec<(&str, &str)> = cells[COLUMNS.len()..][..4]
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(found, [("x", "1"), ("y", "2"), ("x#2", "3"), ("x#3", "4")]);
}

#[test]
fn the_null_activity_is_an_empty_cell() {
    let activity = |activity: u128| {
        let event = Decoded {
            activity: etw_wire::Guid::from_u128(activity),
            ..decoded(EventRecord::default())
        };
        let cells = cells(&event, None);
        let cell = cells.into_iter().find(|(name, _)| name == "activity");
        cell.unwrap().1
    };
    assert_eq!(activity(0), "");
    assert!(activity(7).contains("000000000007"), "{}", activity(7));
}

#[test]
fn the_duration_and_the_channel_are_the_last_columns() {
    let last = |event: &Decoded| {
        let cells = cells(event, None);
        let [.., duration, channel] = &cells[..] else { panic!("{cells:?}") };
        assert_eq!((&*duration.0, &*channel.0), ("duration in ns", "channel"));
        (duration.1.clone(), channel.1.clone())
    };
    let mut event = decoded(EventRecord::default());
    assert_eq!(last(&event), (String::new(), String::new()));
    event.duration = Some(std::time::Duration::from_micros(3));
    event.descriptor.channel = 17;
    assert_eq!(last(&event), ("3000".to_owned(), "17".to_owned()));
    event.channel_name = Some("Contoso/Debug".into());
    assert_eq!(last(&event), ("3000".to_owned(), "Contoso/Debug".to_owned()));
}

/// An output that cannot be flushed.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

#[test]
fn the_end_says_that_the_output_failed() {
    let mut writer = Writer::new(Full, None).unwrap();
    let error = writer.end().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn columns_of_parts_are_those_of_the_whole() {
    let of = |names: &[&str]| Decoded {
        fields: names.iter().map(|name| ((*name).into(), Value::UInt(1))).collect(),
        ..decoded(EventRecord::default())
    };
    let events = [of(&["x", "y", "x"]), of(&["z"]), of(&["y", "a", "y"]), of(&["z", "b"])];
    let columns = |events: &[Decoded]| {
        let mut columns = FieldColumns::default();
        events.iter().try_for_each(|event| columns.add(event)).unwrap();
        columns
    };
    let whole = columns(&events);
    let names: Vec<&str> = whole.names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["x", "y", "x#2", "z", "a", "y#2", "b"]);
    for at in 0..events.len() {
        let (first, second) = events.split_at(at);
        let mut merged = columns(first);
        merged.merge(&columns(second)).unwrap();
        assert_eq!(merged, whole, "split at {at}");
    }
}
