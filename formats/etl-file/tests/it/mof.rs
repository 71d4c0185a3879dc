//! Tests classic events with MOF classes.

use std::fs;
use std::process::Command;

use etl_file::decode::{Problem, Value};
use etl_file::kernel::{self, Classes, MofErrorKind};
use etl_file::write::ClassicRecord;
use etl_file::{EncodedRecord, EventRecord, Guid, LogFileHeader};
use etl_fixtures::trace;

const CLASS: Guid = Guid::from_u128(0x3f2a_11c0_0dbe_11d2_895b_00c0_4f79_ab01);

/// Classes as a Windows 2000 provider publishes them, and as the WMI repository exports them.
const MOF: &str = r#"
#pragma autorecover
#pragma namespace("\\\\.\\root\\wmi")
// The provider.
[Dynamic, Description("Contoso" " trace") : amended,
 guid("{3f2a11c0-0dbe-11d2-895b-00c04f79ab01}") : ToSubclass, locale("MS\\0x409")]
class Contoso : EventTrace { };

[Dynamic: ToInstance, EventVersion(2): DisableOverride] class Contoso_V2 : Contoso { };

/* Two events with
   the same fields. */
[Dynamic, EventType{1, 0x2}, EventTypeName{"Start", "End"}]
class Contoso_Type : Contoso_V2
{
    [WmiDataId(2), read] uint32 Kind;
    [WmiDataId(1), StringTermination("NullTerminated"), format("w"), read] string Client;
    [WmiDataId(3), format("x"), read] uint32 Flags = 5;
    [WmiDataId(4), extension("IPAddr"), read] object Address;
    [WmiDataId(5), pointer, read] uint32 Object;
    [WmiDataId(6), read] boolean IsOn;
    [WmiDataId(7), read] real32 Ratio;
    [WmiDataId(8), StringTermination("Counted"), read] string Tag;
    [WmiDataId(9), read] uint8 Bytes[2];
    [WmiDataId(10), extension("Variant"), read] object More;
    [WmiDataId(11), read] uint32 Never;
    [Implemented] uint32 Method([in] uint32 a);
};
[EventType(3)] class Contoso_Old : Contoso { [WmiDataId(1)] string Name; };
instance of __Win32Provider { Name = "x"; };
"#;

fn classes() -> Classes {
    let mut classes = Classes::default();
    classes.add(MOF).unwrap();
    classes
}

fn payload() -> Vec<u8> {
    let mut data: Vec<u8> = "pc\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    data.extend([6, 0, 0, 0, 0xff, 0xff, 0x2f, 0x21, 10, 0, 0, 1]);
    data.extend([0x10, 0, 0, 0, 0, 0x80, 0xFF, 0xFF, 1, 0, 0, 0]);
    data.extend(0.5_f32.to_le_bytes());
    data.extend([3, 0, b't', b'a', b'g', 0xAA, 0xBB, 9, 9, 9, 9]);
    data
}

fn record(opcode: u8, version: u16) -> ClassicRecord {
    ClassicRecord { class: CLASS, opcode, version, payload: payload(), ..ClassicRecord::default() }
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

#[test]
fn the_command_decodes_by_mof_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let classic = EncodedRecord::try_from(&record(1, 2)).unwrap();
    let mut relogged =
        EventRecord { provider: CLASS, user_data: payload(), ..EventRecord::default() };
    relogged.descriptor.opcode = 2;
    relogged.descriptor.version = 2;
    let relogged = EncodedRecord::new(&relogged).unwrap();
    let bytes =
        trace::of_records(LogFileHeader::default(), 1000, vec![(1, classic), (2, relogged)]);
    fs::write(path("a.etl"), bytes).unwrap();
    let wide = MOF.encode_utf16().flat_map(u16::to_le_bytes);
    fs::write(path("a.mof"), [0xFF, 0xFE].into_iter().chain(wide).collect::<Vec<u8>>()).unwrap();
    fs::write(path("b.mof"), "class").unwrap();
    let etl = |command: &str, mof: &str| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_etl"));
        let output =
            run.arg(command).arg(path("a.etl")).arg("--mof").arg(path(mof)).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, out, _) = etl("dump", "a.mof");
    assert_eq!(code, Some(0));
    for name in ["Contoso", "Start", "End"] {
        assert!(out.contains(name), "{out}");
    }
    assert_eq!(out.matches("Client=\"pc\" Kind=6").count(), 2, "{out}");
    assert!(!out.contains("Partial"), "{out}");
    let (_, out, _) = etl("stats", "a.mof");
    assert!(out.contains("Start") && !out.contains("Not decoded"), "{out}");
    let (code, _, error) = etl("dump", "b.mof");
    assert_eq!(code, Some(1));
    assert!(error.contains("b.mof: line 1: expected the name of a class"), "{error}");
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
