//! Tests classic events with MOF classes.

use etl_file::decode::{MofErrorKind, Problem, Value};
use etl_file::internals::kernel::{self, Classes};
use etl_file::write::ClassicRecord;
use etl_fixtures::mof::{MOF, payload, record};

fn classes() -> Classes {
    let mut classes = Classes::default();
    classes.add(MOF).unwrap();
    classes
}

fn decoded(record: &ClassicRecord, classes: &Classes) -> kernel::Record {
    kernel::decode(&record.encode().unwrap()).unwrap().described_by_classes(classes)
}

#[test]
fn a_class_names_the_event_and_its_fields() {
    let event = decoded(&record(2, 2), &classes());
    assert_eq!(event.class_name.as_deref(), Some("Contoso"));
    assert_eq!(event.event_name.as_deref(), Some("End"));
    assert_eq!((event.problems, event.leftover), (vec![], vec![]));
    let shown: Vec<String> =
        event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = "Client=\"pc\" Kind=6 Flags=0x212fffff Address=10.0.0.1 Object=0xffff800000000010 \
                    IsOn=true Ratio=0.5 Tag=\"tag\" Bytes=hex:aabb More=hex:09090909";
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn what_no_class_describes_stays_as_bytes_with_the_reason() {
    let none = decoded(&record(2, 2), &Classes::default());
    assert_eq!((none.problems, none.leftover), (vec![Problem::NoClass], payload()));
    assert!(Problem::NoClass.to_string().contains("--mof"));
    // Another version, and another type.
    let other = decoded(&record(2, 1), &classes());
    assert_eq!(other.event_name.as_deref(), Some("End"));
    assert_eq!(other.problems, [Problem::NoClass]);
    let other = decoded(&record(9, 2), &classes());
    assert_eq!(
        (other.class_name.as_deref(), other.problems),
        (Some("Contoso"), vec![Problem::NoClass])
    );
    // A class without a version describes all versions.
    let old = ClassicRecord { payload: b"abc\0".to_vec(), ..record(3, 77) };
    let old = decoded(&old, &classes());
    assert_eq!(old.field("Name"), Some(&Value::Text("abc".to_owned())));
    // A payload that is too short.
    let mut short = record(2, 2);
    short.payload.truncate(20);
    assert!(matches!(decoded(&short, &classes()).problems[..], [Problem::Payload(_)]));
}

#[test]
fn a_text_that_is_not_mof_is_refused_with_its_place() {
    let refused = |text: &str| Classes::default().add(text).unwrap_err();
    let error = refused("class A { };\n[Guid(\"x\" class").to_string();
    assert!(error.starts_with("line 2: expected the value of a qualifier"), "{error}");
    for text in ["", "class A { };", "[EventType(1)] class A { };", "/* open", "#pragma a(\"b\")"] {
        assert!(matches!(refused(text), MofErrorKind::NoEvents), "{text}");
    }
    for text in
        ["<a/>", "class", "class A", "class A {", "class A : B {} x", "[", "[a", "\"", "[a(\"b"]
    {
        assert!(matches!(refused(text), MofErrorKind::Syntax { .. }), "{text}");
    }
}

const MANY_FIELDS: &str = "[Dynamic, Guid(\"{11111111-2222-3333-4444-555555555555}\")]
class A : EventTrace {};
[Dynamic, EventType{TYPES}] class B : A { FIELDS };";

#[test]
fn classes_with_fields_beyond_measure_are_refused() {
    let types = vec!["1"; 2000].join(",");
    let fields: String = (1..=1000)
        .map(|id| format!("[WmiDataId({id}), read] uint32 F{id};\n"))
        .collect::<Vec<_>>()
        .concat();
    let text = MANY_FIELDS.replace("TYPES", &types).replace("FIELDS", &fields);
    let error = Classes::default().add(&text).unwrap_err().to_string();
    assert_eq!(error, "its events have more than 1048576 fields in all");
}

#[test]
fn a_property_that_a_class_describes_again_replaces_the_inherited_one() {
    let text = "[Dynamic, Guid(\"{11111111-2222-3333-4444-555555555555}\")]
        class A : EventTrace { [WmiDataId(1), read] uint32 Size; [WmiDataId(2), read] uint8 Last; };
        [Dynamic, EventType(1)] class B : A { [WmiDataId(1), read] uint64 SIZE; };";
    let mut classes = Classes::default();
    classes.add(text).unwrap();
    let class = classes.get("11111111-2222-3333-4444-555555555555".parse().unwrap()).unwrap();
    let names: Vec<_> =
        class.events[0].layouts[0].fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["SIZE", "Last"]);
}
