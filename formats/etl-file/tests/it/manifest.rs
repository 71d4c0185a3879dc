//! Tests manifests, and the events that are decoded with them.

use std::fs;

use etl_file::decode::{LoadError, Problem, Value};
use etl_file::write::Losses;
use etl_file::{
    Catalog, ClockType, Decoded, EventDescriptor, EventRecord, ExtendedItem, Guid, Trace, decode,
    ext_type,
};
use etl_fixtures::trace::{self, MANIFEST};

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    assert_eq!(catalog.add(MANIFEST).unwrap(), []);
    catalog
}

/// Writes an event to a log file, reads it back, and decodes it.
fn decoded(record: &EventRecord, catalog: &Catalog) -> Decoded {
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    let trace = Trace::parse(&trace::of_records(header, 0, [record])).unwrap();
    decode(trace.events().next().unwrap(), catalog)
}

#[test]
fn a_provider_has_the_names_of_its_own_levels_tasks_and_opcodes() {
    let catalog = catalog();
    let provider = catalog.provider(trace::MANIFEST_PROVIDER).unwrap();
    assert_eq!(provider.level(17), Some("Very chatty"));
    assert_eq!(provider.level(4), None);
    assert_eq!(provider.task(7), Some("Transfer"));
    assert_eq!(provider.task(8), None);
    // A task's own opcode takes precedence over an opcode for all tasks.
    assert_eq!(provider.opcode(7, 20), Some("Pause"));
    assert_eq!(provider.opcode(8, 20), Some("Halt"));
    assert_eq!(provider.opcode(7, 21), None);
}

// R-O5 R-K4
#[test]
fn manifest_gives_an_event_its_names_and_fields() {
    let event = decoded(&trace::manifest_event(4, 0), &catalog());
    assert_eq!(event.provider_name.as_deref(), Some("Fixture.Device"));
    assert_eq!(event.event_name.as_deref(), Some("RequestStart"));
    assert_eq!(event.level_name.as_deref(), Some("Information"));
    assert_eq!(event.opcode_name.as_deref(), Some("Start"));
    assert_eq!(event.task_name.as_deref(), Some("Transfer"));
    assert_eq!(*event.keywords.names, ["A request".into(), "Power".into()]);
    assert_eq!(event.keywords.unnamed, 0, "bit 63 is the channel's");
    assert_eq!(event.channel_name.as_deref(), Some("Fixture.Device/Analytic"));
    assert_eq!(event.activity, Guid::from_bytes([0xB2; 16]));
    assert_eq!(event.related_activity, Some(Guid::from_bytes([0xA1; 16])));
    let kind = Value::Named { value: 1, signed: false, name: "Write".into() };
    assert_eq!(
        event.fields,
        [
            ("request".into(), Value::UInt(4)),
            ("kind".into(), kind),
            ("path".into(), Value::Text("path".to_owned())),
        ]
    );
    assert_eq!(event.message.as_deref(), Some("Request 4 to Write path begins"));
    assert_eq!(event.problems, []);
    assert_eq!(event.leftover, [0_u8; 0]);
}

#[test]
fn all_events_of_a_trace_decode() {
    let header = trace::header(ClockType::SystemTime, 0x1000, 2);
    let (file, written) = trace::file(header, 30, Losses::default());
    let trace = Trace::parse(&file).unwrap();
    let catalog = catalog();
    let decoded: Vec<Decoded> = trace.events().map(|e| decode(e, &catalog)).collect();
    assert_eq!(decoded.len(), written.len());
    for event in decoded {
        assert_eq!(event.problems, []);
        assert_eq!(event.leftover, [0_u8; 0]);
        assert!(!event.fields.is_empty());
    }
}

#[test]
fn every_form_of_a_template_field_is_decoded() {
    let mut user_data = vec![0x03]; // flags
    user_data.extend([2, 0]); // count
    user_data.extend([0x10, 0, 0, 0, 0x20, 0, 0, 0]); // numbers
    user_data.extend([0xFF, 0xFF, 1, 0]); // pair
    user_data.extend([3, 0, 0, 0, 0xAA, 0xBB, 0xCC]); // length, blob
    user_data.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]); // address
    user_data.extend(b"ab\0\0"); // tag
    user_data.extend([0x22, 0, 0, 0xC0]); // status
    user_data.extend([0x00, 0x10, 0, 0, 0, 0x80, 0xFF, 0xFF]); // owner
    user_data.extend([1, 0, 0, 0]); // on
    user_data.extend([1, 0x11, 2, 0x22, 0x23]); // parts
    user_data.push(0x99);
    let record = EventRecord {
        provider: trace::MANIFEST_PROVIDER,
        descriptor: EventDescriptor {
            id: 3,
            level: 17,
            task: 7,
            opcode: 20,
            ..EventDescriptor::default()
        },
        user_data,
        ..EventRecord::default()
    };
    let event = decoded(&record, &catalog());
    assert_eq!(event.event_name.as_deref(), Some("Everything"));
    assert_eq!(event.level_name.as_deref(), Some("Very chatty"));
    assert_eq!(event.opcode_name.as_deref(), Some("Pause"), "the task's own");
    let shown: Vec<String> =
        event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        shown,
        [
            "flags=Sync|Direct(3)",
            "count=2",
            "numbers=[0x10, 0x20]",
            "pair=[-1, 1]",
            "length=3",
            "blob=hex:aabbcc",
            "address=::1",
            "tag=\"ab\"",
            "status=0xc0000022",
            "owner=0xffff800000001000",
            "on=true",
            "parts=[{size=1, part=hex:11}, {size=2, part=hex:2223}]",
        ]
    );
    assert_eq!(event.leftover, [0x99]);
    assert_eq!(event.problems, [Problem::Surplus { bytes: 1 }]);
}

#[test]
fn event_that_no_manifest_describes_keeps_its_data() {
    let mut record = trace::manifest_event(4, 0);
    record.descriptor.version = 9;
    let event = decoded(&record, &catalog());
    assert_eq!(event.event_name, None);
    assert_eq!(event.problems, [Problem::NoSchema]);
    assert_eq!(event.leftover, record.user_data);
    record.user_data.clear();
    assert_eq!(decoded(&record, &catalog()).problems, []);
}

// R-T5
#[test]
fn traits_name_the_manifest_to_decode_by() {
    let mut record = trace::manifest_event(5, 0);
    record.provider = Guid::from_bytes([0x5A; 16]);
    let mut blob = trace::traits("Fixture.Control", Some(trace::GROUP));
    blob.extend([0x13, 0, 2]);
    blob.extend(trace::MANIFEST_PROVIDER.to_bytes());
    blob[0] += 0x13;
    record.extended = vec![ExtendedItem { ext_type: ext_type::PROV_TRAITS, data: blob }];
    let event = decoded(&record, &catalog());
    assert_eq!(event.provider_name.as_deref(), Some("Fixture.Control"));
    assert_eq!(event.group, Some(trace::GROUP));
    assert_eq!(event.event_name.as_deref(), Some("RequestStop"));
    assert_eq!(event.problems, []);
}

#[test]
fn damaged_traits_and_metadata_are_named_and_keep_the_data() {
    let mut record = trace::trace_logging_event(1, 0);
    record.extended[0].data[0] = 0xFF;
    record.extended[1].data.truncate(20);
    let event = decoded(&record, &catalog());
    assert!(matches!(event.problems[..], [Problem::Traits(_), Problem::Schema(_)]));
    assert_eq!(event.leftover, record.user_data);
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn manifests_of_the_message_compiler_tests_load() {
        let folder = etw_test_support::sample("mc");
        let mut catalog = Catalog::new();
        for name in ["Empty.man", "ProviderTraits.man", "TaskOpcodes.man"] {
            assert_eq!(catalog.load(folder.join(name)).unwrap(), []);
        }
        let first = Guid::from_u128(1);
        assert!(catalog.schema(first, 1, 0).is_some());
        assert!(catalog.schema(first, 3, 0).is_none());
        let provider = catalog.provider(first).unwrap();
        assert_eq!(provider.task(0x12), Some("Task.1.2"));
        assert_eq!(provider.opcode(0x11, 102), Some("Opcode.1.2"));
        assert_eq!(provider.opcode(0x11, 13), Some("Opcode.0.3"));
        assert_eq!(provider.opcode(0x11, 14), None);
        let control = "35919CDE-6E0D-458F-84C1-D8930E18AC57".parse().unwrap();
        let by_control = catalog.provider(control).unwrap();
        let decode_guid: Guid = "646E035B-4651-4D15-BC40-1897CC99E967".parse().unwrap();
        assert_eq!(by_control.guid, decode_guid);
    }
}

#[test]
fn manifest_files_may_be_utf_16() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wide.man");
    let text = MANIFEST.replace("UTF-8", "UTF-16");
    let units = |order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(order).collect()
    };
    for bytes in [units(u16::to_le_bytes), units(u16::to_be_bytes)] {
        fs::write(&path, bytes).unwrap();
        let mut catalog = Catalog::new();
        assert_eq!(catalog.load(&path).unwrap(), []);
        assert!(catalog.provider(trace::MANIFEST_PROVIDER).is_some());
    }
    fs::write(&path, [0xFF, 0xFE, 0x00]).unwrap();
    let refused = Catalog::new().load(&path);
    assert!(matches!(refused, Err(LoadError::Encoding { .. })));
    let missing = Catalog::new().load(folder.path().join("none.man"));
    assert!(matches!(missing, Err(LoadError::Io { .. })));
}

/// Returns the sample with one part replaced; the part must occur exactly once.
fn replaced(from: &str, to: &str) -> String {
    assert_eq!(MANIFEST.matches(from).count(), 1, "{from}");
    MANIFEST.replace(from, to)
}

/// Parts of the sample with their replacements, and the kinds and error messages of the parts that
/// are skipped as a result.
const MALFORMED: &str = include_str!("../fixture/malformed.txt");

#[test]
fn malformed_parts_are_skipped_with_line_and_column() {
    let cases: Vec<&str> = MALFORMED.split("\n\n").collect();
    assert_eq!(cases.len(), 18);
    for case in cases {
        let mut lines = case.lines();
        let [from, to, part, sentence] = ["-", "+", "?", "="].map(|sign| {
            let text = lines.next().and_then(|line| line.strip_prefix(sign)).unwrap();
            text.strip_prefix(' ').unwrap_or_default()
        });
        let mut catalog = Catalog::new();
        let skipped = catalog.add(&replaced(from, to)).unwrap();
        let first = skipped.first().unwrap();
        assert_eq!(first.part.to_string(), part, "{first}");
        assert!(first.to_string().contains(sentence), "{first}: {sentence}");
        let line =
            MANIFEST.split_once(from).map(|(before, _)| before.matches('\n').count() + 1).unwrap();
        // A missing attribute is reported at the start of its element, and a duplicate at the
        // second definition. Every element except the provider is on a single line.
        let near = line.abs_diff(first.why.at.line) <= 1;
        assert!(near, "{sentence}: line {} for {line}", first.why.at.line);
        assert!(first.why.at.column > 1, "{sentence}");
        // All other parts are read.
        let provider = catalog.provider(trace::MANIFEST_PROVIDER);
        let is_known = provider.is_some_and(|one| one.event(1, 1).is_some());
        assert_eq!(is_known, part != "provider", "{sentence}");
        let event = catalog.schema(trace::MANIFEST_PROVIDER, 3, 0);
        let is_lost =
            matches!(part, "provider" | "template") || part == "event" && to.contains("Nothing");
        assert_eq!(event.is_none(), is_lost, "{sentence}");
    }
}

#[test]
fn malformed_xml_is_refused() {
    let mut catalog = Catalog::new();
    let error = catalog.add(&replaced("</maps>", "</map>")).unwrap_err();
    let text = error.to_string();
    let expected = ": the XML is malformed: expected 'maps' tag, not 'map'";
    assert!(text.ends_with(expected), "{text}");
    assert!(catalog.provider(trace::MANIFEST_PROVIDER).is_none());
}

#[test]
fn position_is_that_of_the_attribute() {
    let skipped = Catalog::new().add(&replaced("map=\"Kind\"", "map=\"Sort\""));
    let why = &skipped.unwrap()[0].why;
    assert_eq!(why.to_string(), "line 43, column 56: map \"Sort\" is not defined");
}

#[test]
fn a_document_of_another_kind_is_refused() {
    let error = Catalog::new().add("<html/>").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 1: the root element is `html`; expected `instrumentationManifest`, or an \
         `assembly` that contains it"
    );
    let error = Catalog::new().add("").unwrap_err();
    assert_eq!((error.at.line, error.at.column), (1, 1));
}

#[test]
fn quoted_text_in_errors_cannot_control_a_terminal() {
    let provider = |guid: &str| {
        let text = format!(
            "<instrumentationManifest><instrumentation><events><provider name='p' guid='{guid}'/>\
             </events></instrumentation></instrumentationManifest>"
        );
        Catalog::new().add(&text).unwrap()[0].to_string()
    };
    assert!(provider("&#x9b;2J").contains(r#""\u{9b}2J", which is not a GUID"#));
    assert!(provider("&#10;").contains(r#""\u{a}", which is not a GUID"#));
    let error = Catalog::new().add("<a \0='b'/>").unwrap_err().to_string();
    assert!(error.contains("the XML is malformed"), "{error}");
    assert!(!error.contains('\0'), "{error:?}");
}
