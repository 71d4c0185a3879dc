//! Tests the output formats of traces.

use std::io::Cursor;
use std::num::NonZeroUsize;

use etl::stats::Stats;
use etl::{csv, json, table};
use etl_file::stream::{self, Events};
use etl_file::write::Losses;
use etl_file::{Catalog, ClockType, Decoded, Selection, Trace, TraceFile, decode};
use etl_fixtures::trace;

type Bytes = TraceFile<Cursor<Vec<u8>>>;

fn bytes() -> Vec<u8> {
    let header = trace::header(ClockType::Qpc, 0x1000, 2);
    let losses = Losses { events_lost: 3, buffers_lost: 1 };
    trace::file(header, 6, losses).0
}

fn generated() -> Bytes {
    TraceFile::new(Cursor::new(bytes())).unwrap()
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    catalog.add(trace::MANIFEST).unwrap();
    catalog
}

fn rendered(mut trace: Bytes, catalog: &Catalog, width: Option<u16>) -> String {
    let mut out = Vec::new();
    let mut writer = table::Writer::new(&mut out, width);
    let header = trace.header().clone();
    writer.header(&header, trace.buffers()).unwrap();
    let selection = Selection::default();
    let mut events = Events::new(&mut trace, catalog, &selection);
    while let Some((_, decoded)) = events.next().unwrap() {
        writer.event(&decoded).unwrap();
    }
    writer.end(&header, &events.summary()).unwrap();
    String::from_utf8(out).unwrap()
}

fn lines(mut trace: Bytes, catalog: &Catalog) -> String {
    let mut out = Vec::new();
    json::write_lines(&mut trace, catalog, &Selection::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the CSV rows; `by_field` selects a column for each field.
fn rows(mut trace: Bytes, catalog: &Catalog, by_field: bool) -> Vec<Vec<String>> {
    let selection = Selection::default();
    let mut columns = csv::FieldColumns::default();
    let mut events = Events::new(&mut trace, catalog, &selection);
    while let Some((_, decoded)) = events.next().unwrap() {
        columns.add(&decoded).unwrap();
    }
    let mut out = Vec::new();
    let mut writer = csv::Writer::new(&mut out, by_field.then_some(columns)).unwrap();
    let mut events = Events::new(&mut trace, catalog, &selection);
    while let Some((record, decoded)) = events.next().unwrap() {
        let event = stream::view(&record).unwrap();
        writer.event(&event, &decoded).unwrap();
    }
    writer.end().unwrap();
    drop(writer);
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).from_reader(out.as_slice());
    let rows = reader.records().map(|row| row.unwrap());
    rows.map(|row| row.iter().map(str::to_owned).collect()).collect()
}

/// Returns the cells of a column, including its heading.
fn column<'a>(rows: &'a [Vec<String>], name: &str) -> Vec<&'a str> {
    let at = rows[0].iter().position(|heading| heading == name);
    let at = at.unwrap_or_else(|| panic!("no column {name} in {:?}", rows[0]));
    rows.iter().map(|row| row[at].as_str()).collect()
}

#[test]
fn csv_has_messages_payloads_and_problems() {
    let rows = rows(generated(), &Catalog::new(), false);
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let unknown = "no loaded manifest or image describes this event";
    assert_eq!(column(&rows, "problems")[1..], ["", unknown, "", unknown, "", unknown]);
    assert!(column(&rows, "payload")[1..].iter().all(|hex| hex.len() > 20));
    let rows = self::rows(generated(), &catalog(), false);
    assert_eq!(column(&rows, "problems")[1..], [""; 6]);
    let messages = column(&rows, "message");
    let said = messages[1..].iter().filter(|message| !message.is_empty());
    assert_eq!(said.count(), 2, "{messages:?}");
    assert!(column(&rows, "fields")[1].starts_with("count=0 delta=0 ratio=0 id="));
}

#[test]
fn csv_has_a_column_for_each_field() {
    let rows = rows(generated(), &catalog(), true);
    assert_eq!(column(&rows, "count"), ["count", "0", "", "2", "", "4", ""]);
    assert_eq!(column(&rows, "request"), ["request", "", "0", "", "1", "", "2"]);
    // Text is not additionally quoted.
    assert_eq!(column(&rows, "path"), ["path", "", "path", "", "path", "", "path"]);
    assert!(!rows[0].contains(&"fields".to_owned()));
}

#[test]
fn fields_of_the_table_are_below_the_events_line() {
    let table = rendered(generated(), &catalog(), Some(80));
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
    let with_fields = lines.iter().filter(|line| line.contains("count="));
    let below = with_fields.filter(|line| line.starts_with("    count="));
    assert_eq!(below.count(), 3, "{table}");
    assert!(!lines.iter().any(|line| line.contains("Progress") && line.contains("count")));
}

#[test]
fn table_of_both_kinds_of_events() {
    insta::assert_snapshot!(rendered(generated(), &catalog(), None));
}

#[test]
fn table_without_the_manifest() {
    insta::assert_snapshot!(rendered(generated(), &Catalog::new(), Some(160)));
}

#[test]
fn json_of_both_kinds_of_events() {
    insta::assert_snapshot!(lines(generated(), &catalog()));
}

#[test]
fn events_of_several_days_show_the_day() {
    let trace = Trace::parse(&bytes()).unwrap();
    let mut events: Vec<Decoded> =
        trace.events().map(|event| decode(event, &Catalog::new())).collect();
    let shown = table::render(&events, None);
    let days = |shown: &str| {
        let lines = shown.lines().filter(|line| line.len() == 10);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(shown.starts_with("Time (UTC)"), "{shown}");
    assert_eq!(days(&shown), ["2026-01-02"]);
    assert!(shown.contains("\n03:04:05.0010000 "), "{shown}");
    events[0].time = etl_file::FileTime::from_raw(0);
    let shown = table::render(&events, None);
    assert_eq!(days(&shown), ["1601-01-01", "2026-01-02"]);
    assert!(shown.contains("\n00:00:00.0000000 "), "{shown}");
    // A time outside the calendar.
    events[0].time = etl_file::FileTime::from_raw(i64::MAX);
    let shown = table::render(&events, None);
    assert!(shown.contains("FILETIME 9223372036854775807 "), "{shown}");
}

#[test]
fn names_cannot_control_a_terminal() {
    let trace = Trace::parse(&bytes()).unwrap();
    let mut events: Vec<Decoded> =
        trace.events_by_time().into_iter().map(|event| decode(event, &Catalog::new())).collect();
    for event in &mut events {
        event.provider_name = Some("\u{1b}[2J".into());
        event.event_name = Some("\u{202e}".into());
        event.level_name = Some("\r".into());
    }
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let mut event = trace::trace_logging_event(1, header.start_clock);
    event.extended[0].data = trace::traits("\u{1b}[2J", None);
    event.extended[1].data = trace::Schema::new("\u{202e}\r").finish();
    let file = trace::of_records(header, 0, [event]);
    let mut file = TraceFile::new(Cursor::new(file)).unwrap();
    let (stats, _) = Stats::read(&mut file, &Catalog::new(), NonZeroUsize::MIN).unwrap();
    for shown in [table::render(&events, None), stats.render()] {
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\r']), "{shown:?}");
        assert!(shown.contains(r"\u{1b}[2J"), "{shown}");
    }
}

#[test]
fn table_without_events_has_its_heading() {
    assert!(table::render(&[], None).contains("Provider"));
}

#[test]
fn chosen_integers_are_shown_in_hexadecimal() {
    let mut hex = catalog();
    hex.show_in_hex(["count", "delta", "kind", "path"].map(str::to_owned));
    let [plain, hex] = [catalog(), hex].map(|catalog| rendered(generated(), &catalog, None));
    assert!(plain.contains("count=2 delta=-2 ratio=0.5"), "{plain}");
    assert!(hex.contains("count=0x2 delta=0xfffffffffffffffe ratio=0.5"), "{hex}");
    assert!(plain.contains("request=1 kind=Write(1) path=\"path\""), "{plain}");
    assert!(hex.contains("request=1 kind=0x1 path=\"path\""), "{hex}");
    let line = lines(generated(), &{
        let mut catalog = catalog();
        catalog.show_in_hex(["count".to_owned()]);
        catalog
    });
    assert!(line.contains(r#""count":"0x2""#), "{line}");
}
