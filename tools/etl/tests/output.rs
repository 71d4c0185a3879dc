//! Tests the output formats of traces.

mod fixture;

use etl_file::write::Losses;
use etl_file::{Catalog, ClockType, Decoded, Selection, Trace, decode, json, stats, table};

fn generated() -> Trace {
    let header = fixture::header(ClockType::Qpc, 0x1000, 2);
    let losses = Losses {
        events_lost: 3,
        buffers_lost: 1,
    };
    Trace::parse(&fixture::file(header, 6, losses).0).unwrap()
}

fn genuine() -> Trace {
    Trace::open(etw_test_support::sample("etl/AMSITrace.etl")).unwrap()
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    catalog.add(include_str!("fixture/sample.man")).unwrap();
    catalog
}

fn rendered(trace: &Trace, catalog: &Catalog, width: Option<u16>) -> String {
    let events: Vec<Decoded> = trace
        .events_by_time()
        .into_iter()
        .map(|event| decode(event, catalog))
        .collect();
    table::summary(trace) + &table::render(&events, width)
}

fn lines(trace: &Trace, catalog: &Catalog) -> String {
    let mut out = Vec::new();
    json::write_lines(trace, catalog, &Selection::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns JSON lines with long strings truncated.
fn shortened(lines: &str) -> String {
    fn cut(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) if text.chars().count() > 60 => {
                let kept: String = text.chars().take(40).collect();
                *text = format!("{kept}... {} in all", text.chars().count());
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(cut),
            serde_json::Value::Object(members) => members.values_mut().for_each(cut),
            _ => {}
        }
    }
    let values: Vec<String> = lines
        .lines()
        .map(|line| {
            let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
            cut(&mut value);
            // The order depends on the features that other packages enable in the library.
            value.sort_all_objects();
            value.to_string()
        })
        .collect();
    values.join("\n")
}

#[test]
fn table_of_both_kinds_of_events() {
    insta::assert_snapshot!(rendered(&generated(), &catalog(), None));
}

#[test]
fn table_without_the_manifest() {
    insta::assert_snapshot!(rendered(&generated(), &Catalog::new(), Some(160)));
}

#[test]
fn json_of_both_kinds_of_events() {
    insta::assert_snapshot!(lines(&generated(), &catalog()));
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn table_of_a_genuine_trace() {
        insta::assert_snapshot!(rendered(&genuine(), &Catalog::new(), None));
    }

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn json_of_a_genuine_trace() {
        insta::assert_snapshot!(shortened(&lines(&genuine(), &Catalog::new())));
    }
}

#[test]
fn events_of_several_days_show_the_day() {
    let trace = generated();
    let mut events: Vec<Decoded> = trace
        .events()
        .map(|event| decode(event, &Catalog::new()))
        .collect();
    let shown = table::render(&events, None);
    assert!(shown.contains("2026-01-02 (UTC)"), "{shown}");
    assert!(shown.contains(" 03:04:05.0010000 "), "{shown}");
    events[0].time = etl_file::FileTime::from_raw(0);
    let shown = table::render(&events, None);
    assert!(shown.contains("Time (UTC)"), "{shown}");
    assert!(shown.contains("1601-01-01T00:00:00.0000000Z"), "{shown}");
}

#[test]
fn names_cannot_control_a_terminal() {
    let trace = generated();
    let mut events: Vec<Decoded> = trace
        .events_by_time()
        .into_iter()
        .map(|event| decode(event, &Catalog::new()))
        .collect();
    for event in &mut events {
        event.provider_name = Some("\u{1b}[2J".into());
        event.event_name = Some("\u{202e}".into());
        event.level_name = Some("\r".into());
    }
    for shown in [table::render(&events, None), stats::render(&trace, &events)] {
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\r']), "{shown:?}");
        assert!(shown.contains(r"\u{1b}[2J"), "{shown}");
    }
}

#[test]
fn table_without_events_has_its_heading() {
    assert!(table::render(&[], None).contains("Provider"));
}
