//! Compares events that the tests create, without a file from another decoder.

use std::io::Cursor;

use super::*;
use etl_file::decode::{Kind, Problem, Value};
use etl_file::write::{Buffer, WppRecord};
use etl_file::{
    Catalog, Decoded, EncodedRecord, EventRecord, FileTime, LogFileHeader, Selection, TraceFile,
};
use etl_fixtures::{decoded, trace};

/// Returns an event at a number of seconds after the Unix epoch.
fn own(second: u8) -> Decoded {
    Decoded {
        time: FileTime::from_unix_nanos(i128::from(second) * 1_000_000_000),
        ..decoded(EventRecord::default())
    }
}

/// Returns another decoder's event with the same contents as [`own`].
fn other(second: u8) -> OtherEvent {
    let event = own(second);
    let properties = [
        (Property::Provider, event.provider.to_string()),
        (Property::Id, "0".to_owned()),
        (Property::Time, format!("1970-01-01T00:00:{second:02}.0000000Z")),
        (Property::Process, "0".to_owned()),
        (Property::Thread, "0".to_owned()),
    ];
    OtherEvent { properties: properties.into(), has_data: true, ..OtherEvent::default() }
}

fn compare(own: Decoded, other: OtherEvent) -> Comparison {
    let ours = Ours { events: vec![own], left_out: 0 };
    let others = Other { form: Form::Lines, events: vec![other], left_out: 0 };
    let result = Comparison::new(&ours, &others, 100);
    assert_eq!(result.compared, 1);
    result
}

/// A difference: the field, our value and the other decoder's value.
type Found = (String, Option<String>, Option<String>);

fn found(result: &Comparison) -> Vec<Found> {
    let listed = result.listed.iter();
    listed.map(|one| (one.field.clone(), one.ours.clone(), one.theirs.clone())).collect()
}

fn difference(field: &str, ours: Option<&str>, theirs: Option<&str>) -> Found {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    (field.to_owned(), owned(ours), owned(theirs))
}

#[test]
fn events_are_paired_by_their_times_in_any_order() {
    let ours = [own(1), own(2), own(3)];
    let theirs = [other(3), other(1)];
    assert_eq!(pair::pair(&ours, &theirs), [Some(1), None, Some(0)]);
    let theirs = [other(2), other(0), other(3)];
    assert_eq!(pair::pair(&ours[1..], &theirs), [Some(0), Some(2)]);
}

#[test]
fn an_event_that_one_decoder_cannot_decode_is_a_difference_except_for_bytes_after_it() {
    let problem = |problems: Vec<Problem>, theirs: Option<&str>| {
        let own = Decoded { problems, ..own(1) };
        let other = OtherEvent { problem: theirs.map(str::to_owned), ..other(1) };
        found(&compare(own, other))
    };
    let surplus = Problem::Surplus { bytes: 1 };
    let text = Problem::NoSchema.to_string();
    assert_eq!(problem(vec![], None), []);
    assert_eq!(problem(vec![surplus.clone()], None), []);
    assert_eq!(problem(vec![Problem::NoSchema], Some("x")), []);
    assert_eq!(
        problem(vec![surplus.clone(), Problem::NoSchema], None),
        [difference("problem", Some(&text), None)]
    );
    assert_eq!(problem(vec![surplus], Some("x")), [difference("problem", None, Some("x"))]);
}

#[test]
fn the_texts_of_status_codes_are_counted_and_each_code_has_one() {
    let code = |name: &str, code| (name.into(), Value::NtStatus(code));
    let text = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let own = Decoded { fields: vec![code("a", 5), code("b", 5), code("c", 6)], ..own(1) };
    let result = |texts: [&str; 3]| {
        let fields = ["a", "b", "c"].into_iter().zip(texts);
        let fields = fields.map(|(name, value)| text(name, value)).collect();
        let result = compare(own.clone(), OtherEvent { fields, ..other(1) });
        (result.fields, result.described, found(&result))
    };
    assert_eq!(result(["Not found.\r\n", "Not found.\r\n", "No access."]), (3, 3, vec![]));
    let b = difference("b", Some("0x00000005"), Some("No access."));
    assert_eq!(result(["Not found.", "No access.", "0x6"]), (3, 1, vec![b]));
}

#[test]
fn values_are_counted_and_those_of_a_list_are_numbered() {
    let fields = |own_fields: Vec<(&str, Value)>, theirs: &[(&str, &str)]| {
        let own_fields = own_fields.into_iter();
        let own = Decoded {
            fields: own_fields.map(|(name, value)| (name.into(), value)).collect(),
            ..own(1)
        };
        let theirs = theirs.iter();
        let other = OtherEvent {
            fields: theirs.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
            ..other(1)
        };
        let result = compare(own, other);
        (result.fields, found(&result))
    };
    let list = |numbers: [u64; 2]| Value::Array(numbers.map(Value::UInt).into());
    assert_eq!(
        fields(vec![("a", Value::UInt(1))], &[("a", "2")]),
        (1, vec![difference("a", Some("1"), Some("2"))])
    );
    assert_eq!(
        fields(vec![("a", list([1, 2]))], &[("a", "1"), ("a", "3")]),
        (2, vec![difference("a[1]", Some("2"), Some("3"))])
    );
    assert_eq!(
        fields(vec![("a", list([1, 2]))], &[("a", "1")]),
        (2, vec![difference("a[1]", Some("2"), None)])
    );
    assert_eq!(
        fields(vec![("a", Value::UInt(1))], &[("a", "1"), ("a", "3")]),
        (2, vec![difference("a[1]", None, Some("3"))])
    );
    assert_eq!(
        fields(vec![("a", Value::UInt(1))], &[("a", "1"), ("b", "3"), ("b", "4")]),
        (3, vec![difference("b", None, Some("3")), difference("b", None, Some("4"))])
    );
}

#[test]
fn properties_are_counted_if_they_are_stated() {
    let result = compare(own(1), other(1));
    // A missing activity means the null GUID.
    assert_eq!((result.properties, found(&result)), (7, vec![]));
    let mut silent = other(1);
    silent.properties.remove(&Property::Thread);
    let result = compare(own(1), silent);
    assert_eq!(result.properties, 6);
    let thread = Silence { property: Property::Thread, events: 1 };
    assert!(result.unstated.contains(&thread), "{:?}", result.unstated);
}

#[test]
fn records_other_than_events_are_left_out_and_counted() {
    let mut ours = Ours::default();
    for kind in [Kind::Kernel { hook: 1 }, Kind::Event, Kind::Wpp] {
        ours.add(Decoded { kind, ..own(1) }).unwrap();
    }
    assert_eq!((ours.events.len(), ours.left_out), (1, 2));

    let header = LogFileHeader { buffer_size: 0x1000, ..LogFileHeader::default() };
    let mut buffer = Buffer::new(0x1000, 0);
    let wpp = EncodedRecord::try_from(&WppRecord::default()).unwrap();
    for _ in 0..2 {
        buffer.try_append_record(&wpp, 1).unwrap();
        buffer.try_append(&EventRecord::default()).unwrap();
    }
    buffer.try_append(&EventRecord::default()).unwrap();
    let bytes = trace::of_buffers(header, 5, [buffer]);
    let mut file = TraceFile::new(Cursor::new(bytes)).unwrap();
    let ours = Ours::read(&mut file, &Catalog::new(), &Selection::default()).unwrap();
    assert_eq!((ours.events.len(), ours.left_out), (3, 2));
}

#[test]
fn classic_events_of_another_decoder_are_left_out_and_counted() {
    let event = "<Event><System><EventID>1</EventID></System></Event>";
    let classic = "<Event><System/><ExtendedTracingInfo><EventGuid>x</EventGuid>\
                   </ExtendedTracingInfo></Event>";
    let described = "<Event><System/><ExtendedTracingInfo/></Event>";
    let text = format!("<Events>{event}{classic}{described}{classic}</Events>");
    let other = Other::parse(text.as_bytes()).unwrap();
    assert_eq!((other.events.len(), other.left_out), (2, 2));
    assert_eq!(other.events[0].properties[&Property::Id], "1");
}

#[test]
fn events_of_selected_providers_stay() {
    let event = |provider: Option<&str>, name: Option<&str>| OtherEvent {
        properties: [(Property::Provider, provider), (Property::ProviderName, name)]
            .into_iter()
            .filter_map(|(property, text)| Some((property, text?.to_owned())))
            .collect(),
        ..OtherEvent::default()
    };
    let guid = "00000000-0000-0000-0000-000000000007";
    let braces = format!("{{{guid}}}");
    let events = [
        event(Some(&braces), None),
        event(Some("00000000-0000-0000-0000-000000000008"), None),
        event(Some(&braces), Some("Other")),
        event(None, Some("named")),
        event(None, Some("Other")),
        event(None, None),
    ];
    let mut other = Other { form: Form::Xml, events: events.to_vec(), left_out: 0 };
    let [first, _, third, fourth, _, last] = events;
    let providers = [guid.to_owned(), "Named".to_owned()];
    other.select(&providers, &Ours::default());
    assert_eq!(other.events, [first, third, fourth, last]);
}

#[test]
fn a_line_of_the_client_states_all_properties() {
    let line = r#"{"time": "t", "process": 1, "thread": 2, "processor": 3, "provider": "Name",
        "guid": "G", "id": 4, "version": 5, "level": 6, "task": 7, "opcode": 8, "keyword": "0x9",
        "activity": "A", "related_activity": "R", "fields": [["a", "1"]], "problem": "P"}"#;
    let other = Other::parse(line.as_bytes()).unwrap();
    let properties = [
        (Property::Provider, "G"),
        (Property::ProviderName, "Name"),
        (Property::Id, "4"),
        (Property::Version, "5"),
        (Property::Level, "6"),
        (Property::Task, "7"),
        (Property::Opcode, "8"),
        (Property::Keywords, "0x9"),
        (Property::Time, "t"),
        (Property::Process, "1"),
        (Property::Thread, "2"),
        (Property::Processor, "3"),
        (Property::Activity, "A"),
        (Property::RelatedActivity, "R"),
    ];
    let expected = OtherEvent {
        properties: properties.map(|(one, text)| (one, text.to_owned())).into(),
        has_data: true,
        fields: vec![("a".to_owned(), "1".to_owned())],
        problem: Some("P".to_owned()),
        is_classic: false,
    };
    assert_eq!((other.form, &other.events[..]), (Form::Lines, &[expected][..]));
    // For a provider without a known name, the client writes the GUID.
    let guid = "00000000-0000-0000-0000-000000000007";
    let unnamed = line.replace("Name", guid).replace(r#""guid": "G","#, "");
    let other = Other::parse(unnamed.as_bytes()).unwrap();
    let properties = &other.events[0].properties;
    assert_eq!(properties.get(&Property::Provider).unwrap(), guid);
    assert_eq!(properties.get(&Property::ProviderName), None);
}

/// Returns an event whose field is nested in `depth` structures.
fn nested(element: &str, depth: usize) -> String {
    let (open, close) = match element {
        "EventData" => ("<ComplexData Name='s'>", "</ComplexData>"),
        _ => ("<s>", "</s>"),
    };
    let field = match element {
        "EventData" => "<Data Name='f'>1</Data>",
        _ => "<f>1</f>",
    };
    let (fragment, end) = match element {
        "EventData" => ("", ""),
        _ => ("<Template>", "</Template>"),
    };
    format!(
        "<Event><System/><{element}>{fragment}{}{field}{}{end}</{element}></Event>",
        open.repeat(depth),
        close.repeat(depth)
    )
}

#[test]
fn structures_are_nested_up_to_a_limit() {
    const DEPTH: usize = event::MAX_DEPTH;
    for element in ["EventData", "UserData"] {
        for depth in [0, 1, DEPTH] {
            let other = Other::parse(nested(element, depth).as_bytes()).unwrap();
            let name = format!("{}f", "s.".repeat(depth));
            assert_eq!(other.events[0].fields, [(name, "1".to_owned())], "{element}");
        }
        for depth in [DEPTH + 1, DEPTH + 2] {
            let error = Other::parse(nested(element, depth).as_bytes()).unwrap_err();
            assert!(matches!(error, Content::Depth { number: 1 }), "{error}");
        }
    }
}

#[test]
fn only_complex_data_with_elements_is_a_structure() {
    let text = "<Event><System/><EventData><Data Name='a'>1<b>2</b></Data>\
                <ComplexData Name='c'>3</ComplexData></EventData></Event>";
    let other = Other::parse(text.as_bytes()).unwrap();
    let field = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(other.events[0].fields, [field("a", "1"), field("c", "3")]);
}

/// Returns the report for a file named "b.xml".
fn rendered(form: Form, result: Comparison) -> String {
    let ours = Ours { events: vec![own(1)], left_out: 0 };
    let other = Other { form, events: Vec::new(), left_out: 2 };
    render("a.etl", &ours, &[("b.xml".to_owned(), other, result)])
}

#[test]
fn a_result_is_shown_with_its_counts_and_differences() {
    let counts = "b.xml (event XML): 1 events compared, 0 only in the trace, 0 only in the file, 0 \
                  properties and 0 fields compared, 2 classic or kernel events omitted";
    let equal = Comparison { compared: 1, ..Comparison::default() };
    assert_eq!(rendered(Form::Xml, equal), format!("a.etl: 1 events\n{counts}: equal\n"));
    let different = Comparison {
        compared: 1,
        differences: 5,
        listed: vec![Difference {
            event: "E".to_owned(),
            field: "f".to_owned(),
            ours: Some("1".to_owned()),
            theirs: None,
        }],
        unstated: vec![Silence { property: Property::RelatedActivity, events: 3 }],
        undecoded: 4,
        ..Comparison::default()
    };
    assert_eq!(
        rendered(Form::Xml, different.clone()),
        format!(
            "a.etl: 1 events\n{counts}: 5 differences\n  the related activity is not stated for 3 \
             events\n  the fields are not stated for 4 TraceLogging events, which Get-WinEvent does \
             not decode\n\n File   Event  Field  Trace  File's\n b.xml  E      f      1      -\n4 more \
             differences are not listed\n"
        )
    );
    let all_listed = Comparison { differences: 1, ..different };
    let text = rendered(Form::Lines, all_listed);
    assert!(text.contains("b.xml (JSON of TDH): "), "{text}");
    assert!(text.contains(": 1 difference\n"), "{text}");
    assert!(!text.contains("more differences"), "{text}");
}

#[test]
fn the_forms_of_files_have_names() {
    let forms = [Form::Xml, Form::XmlInJson, Form::Lines, Form::Empty];
    assert_eq!(
        forms.map(|form| form.to_string()),
        ["event XML", "event XML in JSON", "JSON of TDH", "empty"]
    );
}
