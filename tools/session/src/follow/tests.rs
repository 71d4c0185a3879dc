#![allow(clippy::significant_drop_tightening, reason = "a test holds the mock until its end")]

use std::{sync::mpsc, time::Duration};

use etl_file::decode::schemas::Collector;
use etl_file::{Catalog, EventDescriptor, EventRecord, ExtendedItem, Guid, decode, ext_type};
use windows_sys::Win32::{
    Foundation::{ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS},
    System::Diagnostics::Etw::{
        EVENT_CONTROL_CODE_CAPTURE_STATE, EVENT_CONTROL_CODE_ENABLE_PROVIDER,
    },
};

use super::*;
use crate::{
    mock::{self, Call, Mock},
    record, tdh,
};

const PROVIDER: Guid = Guid::from_u128(1);
const GROUP: Guid = Guid::from_u128(2);
const SESSION: &str = "wdk-etw test";

fn event(id: u16) -> EventRecord {
    EventRecord {
        process_id: 4,
        thread_id: 8,
        timestamp: 133_000_000_000_000_000,
        provider: PROVIDER,
        descriptor: EventDescriptor {
            id,
            level: 4,
            keyword: 1 << 47,
            ..EventDescriptor::default()
        },
        activity_id: Guid::from_u128(7),
        extended: vec![
            ExtendedItem { ext_type: ext_type::PROV_TRAITS, data: vec![5, 0, b'P', b'Q', 0] },
            ExtendedItem::related_activity(Guid::from_u128(9)),
        ],
        user_data: vec![1, 2, 3],
        ..EventRecord::default()
    }
}

fn filter() -> Filter {
    Filter { level: 5, any: 3, all: 1, ids: None }
}

/// Follows a session for at most a second, and returns the result and the events.
fn followed(live: Live<'_>) -> (Result<Option<Counts>, SessionError>, Vec<etl_file::Event>) {
    let (sender, events) = mpsc::channel();
    let result = follow(
        &live,
        || {},
        move |record| sender.send(record::event(record)).map_err(io::Error::other),
    );
    (result, events.into_iter().collect())
}

fn live<'a>(enables: &'a [(Source, Filter)], file: Option<&'a Path>) -> Live<'a> {
    Live { session: SESSION, file, enables, capture_state: false, seconds: Some(1) }
}

#[test]
fn a_session_is_started_followed_and_stopped() {
    let mock = Mock::new();
    mock.writes(vec![event(1), event(2)]);
    let enables = [(Source::Provider(PROVIDER), filter()), (Source::Group(GROUP), filter())];
    let live = Live { capture_state: true, ..live(&enables, Some(Path::new(r"C:\x.etl"))) };
    let (result, events) = followed(live);
    assert_eq!(result.unwrap().map(|counts| counts.events_lost), Some(3));
    let records: Vec<EventRecord> = events.into_iter().map(|event| event.record).collect();
    assert_eq!(records, [event(1), event(2)]);
    let enable = |guid, code, property| {
        let (level, any, all) =
            if code == EVENT_CONTROL_CODE_ENABLE_PROVIDER { (5, 3, 1) } else { (0, 0, 0) };
        Call::Enable(guid, code, level, any, all, property)
    };
    assert_eq!(
        mock.calls(),
        [
            // Sequential and real-time.
            Call::Start(SESSION.to_owned(), 0x101, r"C:\x.etl".to_owned()),
            Call::Open(SESSION.to_owned()),
            enable(PROVIDER, EVENT_CONTROL_CODE_ENABLE_PROVIDER, 0),
            enable(GROUP, EVENT_CONTROL_CODE_ENABLE_PROVIDER, 0x20),
            enable(PROVIDER, EVENT_CONTROL_CODE_CAPTURE_STATE, 0),
            enable(GROUP, EVENT_CONTROL_CODE_CAPTURE_STATE, 0x20),
            Call::Stop(SESSION.to_owned()),
            Call::Close,
        ]
    );
    assert_eq!(mock::running(), [""; 0]);
}

#[test]
fn the_last_events_are_waited_for_but_not_forever() {
    for (after, expected) in [(300, vec![event(1), event(2)]), (60_000, vec![event(1)])] {
        let mock = Mock::new();
        mock.writes(vec![event(1)]);
        mock.writes_late(Duration::from_millis(after), vec![event(2)]);
        let enables = [(Source::Provider(PROVIDER), filter())];
        let (result, events) = followed(live(&enables, None));
        result.unwrap();
        let records: Vec<EventRecord> = events.into_iter().map(|event| event.record).collect();
        assert_eq!(records, expected, "{after} ms");
        assert_eq!(mock.calls().last(), Some(&Call::Close));
    }
}

#[test]
fn a_file_is_recorded_in_the_current_folder() {
    let mock = Mock::new();
    followed(live(&[], Some(Path::new("x.etl")))).0.unwrap();
    let expected = std::env::current_dir().unwrap().join("x.etl").display().to_string();
    assert_eq!(mock.calls()[0], Call::Start(SESSION.to_owned(), 0x101, expected));
}

#[test]
fn nothing_is_left_after_a_failure() {
    let enables = [(Source::Provider(PROVIDER), filter())];
    for routine in ["StartTrace", "OpenTrace", "EnableTraceEx2"] {
        let mock = Mock::new();
        mock.fails(routine, ERROR_ACCESS_DENIED);
        let (result, events) = followed(live(&enables, None));
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{routine} failed")), "{error}");
        assert!(error.contains("elevated prompt"), "{error}");
        assert_eq!(events, []);
        assert_eq!(mock::running(), [""; 0], "{routine}");
    }
    // A session that another program started is not touched.
    let mock = Mock::new();
    mock::start_at_boot(SESSION);
    let (result, _) = followed(live(&enables, None));
    let error = result.unwrap_err();
    assert!(
        matches!(&error, SessionError::Win32(error) if error.code == ERROR_ALREADY_EXISTS),
        "{error}"
    );
    assert!(error.to_string().contains("logman stop"), "{error}");
    assert_eq!(mock::running(), [SESSION]);
    assert!(mock.calls().is_empty());
}

#[test]
fn a_session_that_cannot_be_stopped_is_an_error() {
    let mock = Mock::new();
    mock.fails("ControlTrace", ERROR_ACCESS_DENIED);
    let (result, _) = followed(live(&[], None));
    assert!(result.unwrap_err().to_string().starts_with("ControlTrace failed"));
}

#[test]
fn the_end_of_the_output_stops_the_session() {
    for (kind, is_error) in [(io::ErrorKind::StorageFull, true), (io::ErrorKind::BrokenPipe, false)]
    {
        let mock = Mock::new();
        mock.writes(vec![event(1), event(2)]);
        let enables = [(Source::Provider(PROVIDER), filter())];
        let (sender, calls) = mpsc::channel();
        let live = Live { seconds: None, ..live(&enables, None) };
        let result = follow(
            &live,
            || {},
            move |_| {
                sender.send(()).map_err(io::Error::other)?;
                Err(kind.into())
            },
        );
        assert_eq!(result.is_err(), is_error, "{kind}");
        assert_eq!(calls.into_iter().count(), 1, "no event follows the error");
        assert_eq!(mock::running(), [""; 0]);
    }
}

#[test]
fn another_program_may_stop_the_session() {
    let mock = Mock::new();
    let live = Live { seconds: None, ..live(&[], None) };
    let counts = follow(&live, || mock::stop_from_outside(SESSION), |_| Ok(())).unwrap();
    assert!(counts.is_none());
    assert_eq!(mock.calls().last(), Some(&Call::Close));
}

/// Appends a NUL-terminated UTF-16 string, and returns its offset.
fn append(bytes: &mut Vec<u8>, text: &str) -> u32 {
    let offset = u32::try_from(bytes.len()).unwrap();
    bytes.extend(crate::wide::wide(text).iter().flat_map(|unit| unit.to_le_bytes()));
    offset
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Returns the `TRACE_EVENT_INFO` of an event with one field, a byte with a map.
fn event_info() -> Vec<u8> {
    const PROPERTIES: usize = 112;
    const UINT8: u8 = 4;
    let mut bytes = vec![0; PROPERTIES + 24];
    bytes[..16].copy_from_slice(&PROVIDER.to_bytes());
    bytes[32..34].copy_from_slice(&5_u16.to_le_bytes());
    bytes[36] = 4;
    let provider = append(&mut bytes, "Contoso");
    let task = append(&mut bytes, "Started");
    let field = append(&mut bytes, "state");
    let map = append(&mut bytes, "States");
    put(&mut bytes, 52, provider);
    put(&mut bytes, 68, task);
    // PropertyCount and TopLevelPropertyCount.
    put(&mut bytes, 100, 1);
    put(&mut bytes, 104, 1);
    put(&mut bytes, PROPERTIES + 4, field);
    bytes[PROPERTIES + 8] = UINT8;
    put(&mut bytes, PROPERTIES + 12, map);
    bytes[PROPERTIES + 16] = 1;
    bytes[PROPERTIES + 18] = 1;
    bytes
}

/// Returns the `EVENT_MAP_INFO` of the field.
fn map_info() -> Vec<u8> {
    let mut bytes = vec![0; 24];
    let name = append(&mut bytes, "States");
    let value = append(&mut bytes, "Running");
    put(&mut bytes, 0, name);
    put(&mut bytes, 4, 1);
    put(&mut bytes, 8, 1);
    put(&mut bytes, 16, value);
    put(&mut bytes, 20, 2);
    bytes
}

#[test]
fn the_schemas_of_tdh_decode_events() {
    let mock = Mock::new();
    mock.knows(PROVIDER, 5, event_info());
    mock.knows_map("States", map_info());
    let mut of_five = event(5);
    of_five.user_data = vec![2];
    let (schema, copied) =
        mock::with_record(&of_five, |record| (tdh::schema(record).unwrap(), record::event(record)));
    let mut collector = Collector::new();
    for record in &schema {
        collector.record(&record.encode().unwrap());
    }
    let schemas = collector.finish();
    assert!(schemas.defects().is_empty(), "{:?}", schemas.defects());
    let mut catalog = Catalog::new();
    schemas.add_to(&mut catalog);
    let decoded = decode(&copied, &catalog);
    assert_eq!(decoded.problems, []);
    assert_eq!(decoded.event_name.as_deref(), Some("Started"));
    let line = etl_file::lines::line(&decoded);
    assert!(line.contains("Started") && line.contains("Running"), "{line}");
    // Windows has no schema for other events.
    assert!(mock::with_record(&event(6), |record| tdh::schema(record)).is_err());
}
