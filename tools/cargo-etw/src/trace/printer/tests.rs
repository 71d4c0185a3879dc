use std::{cell::RefCell, convert::Infallible};

use etl_file::{EventDescriptor, ExtendedItem, FileTime};

use super::*;

const PROVIDER: Guid = Guid::from_u128(0x802b_686a_519d_5416_5280_4c0e_ad58_5fbb);

fn event(id: u16, extended: Vec<ExtendedItem>, user_data: Vec<u8>) -> Event {
    let descriptor = EventDescriptor { id, level: 4, ..EventDescriptor::default() };
    let record = EventRecord {
        provider: PROVIDER,
        descriptor,
        extended,
        user_data,
        ..EventRecord::default()
    };
    let time = FileTime::from_raw(133_000_000_000_000_000);
    Event { record, time, ..Event::default() }
}

/// Returns a `TraceLogging` event with a single field, a number.
fn self_describing() -> Event {
    let mut metadata = vec![0, 0, 0];
    metadata.extend(b"Ticked\0count\0");
    // The field's type: UInt8.
    metadata.push(4);
    metadata[0] = u8::try_from(metadata.len()).unwrap();
    let traits = b"\x0a\0Contoso\0".to_vec();
    let item = |ext_type, data| ExtendedItem { ext_type, data };
    let items =
        vec![item(ext_type::EVENT_SCHEMA_TL, metadata), item(ext_type::PROV_TRAITS, traits)];
    event(0, items, vec![7])
}

fn printed(is_json: bool, events: &[Event]) -> (String, usize) {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, Catalog::new(), is_json);
    let mut asked = 0;
    for event in events {
        let schema = || {
            asked += 1;
            Ok::<_, Infallible>(Vec::new())
        };
        printer.event(event, schema).unwrap();
    }
    assert_eq!(printer.printed(), events.len() as u64);
    (String::from_utf8(out).unwrap(), asked)
}

#[test]
fn events_have_the_form_of_cargo_etw_run() {
    let one = self_describing();
    let decoded = decode(&one, &Catalog::new());
    let (text, asked) = printed(false, std::slice::from_ref(&one));
    assert_eq!(text, format!("{}\n", lines::line(&decoded)));
    assert!(text.contains("Contoso Ticked [") && text.contains("count=7"), "{text}");
    assert_eq!(asked, 0, "it describes itself");
    let (text, _) = printed(true, &[one.clone(), one]);
    for line in text.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["reason"], "event");
        assert_eq!(value["record"], "event");
        assert_eq!(value["event"], "Ticked");
        assert_eq!(value["fields"]["count"], 7);
    }
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn the_system_is_asked_once_for_each_unknown_kind() {
    let unknown = |id| event(id, Vec::new(), vec![1, 2]);
    let (text, asked) = printed(false, &[unknown(1), unknown(1), unknown(2)]);
    assert_eq!(asked, 2);
    assert_eq!(text.lines().count(), 3);
    assert!(text.contains("no loaded manifest or image describes this event"), "{text}");
}

#[test]
fn a_failure_of_the_system_to_describe_an_event_is_shown_once_for_each_kind() {
    thread_local!(static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });
    let mut printer = Printer::new(Vec::new(), Catalog::new(), false);
    printer.warn = |text| WARNINGS.with_borrow_mut(|all| all.push(text.to_owned()));
    for id in [7, 7, 8] {
        let refused = || Err("TdhGetEventInformation failed with error 5");
        printer.event(&event(id, Vec::new(), vec![1]), refused).unwrap();
    }
    let warnings = WARNINGS.take();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let start = format!("event 7, version 0, of provider {PROVIDER} is shown as bytes: TdhGet");
    assert!(warnings[0].starts_with(&start), "{warnings:?}");
}

#[test]
fn an_error_of_the_output_is_returned() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut printer = Printer::new(Full, Catalog::new(), false);
    let error = printer.event(&self_describing(), || Ok::<_, Infallible>(Vec::new())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_sessions_own_records_are_known() {
    assert!(OF_SESSIONS.into_iter().all(is_of_session) && !is_of_session(PROVIDER));
}

#[test]
fn a_line_that_was_formatted_elsewhere_is_counted() {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, Catalog::new(), false);
    printer.line("formatted by TDH").unwrap();
    assert_eq!(printer.printed(), 1);
    assert_eq!(out, b"formatted by TDH\n");
}
