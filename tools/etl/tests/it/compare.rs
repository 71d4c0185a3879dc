//! `etl compare`: comparisons with files whose form follows Microsoft's documentation of the
//! decoders. None of these files comes from a Windows machine.

use std::path::Path;

use crate::run::{Folder, Ran, manifest};
use etl_file::ClockType;
use etl_file::write::Losses;
use etl_fixtures::trace;
use etw_test_support as support;
use serde_json::{Value, json};

const EVENTS: u32 = 40;

struct Trace {
    folder: Folder,
}

impl Trace {
    fn new() -> Self {
        let header = trace::header(ClockType::Qpc, 0x1000, 2);
        let (file, _) = trace::file(header, EVENTS, Losses::default());
        Self { folder: Folder::with("fixture.etl", file) }
    }

    /// Returns an independent decoder's output in a Windows decoder's form.
    fn foreign(&self, form: &str) -> Vec<u8> {
        let script = support::oracle("event_xml.py");
        let file = self.folder.path("fixture.etl");
        support::run_python([&script, Path::new(form), &file, Path::new(&manifest())])
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> &Self {
        self.folder.write(name, contents);
        self
    }

    fn compare(&self, arguments: &[&str]) -> Ran {
        let all = ["compare", "fixture.etl", "--man", &manifest()];
        self.folder.etl(&[&all, arguments].concat())
    }

    /// Compares with one file, and returns the exit code and the report about the file.
    fn json(&self, name: &str, more: &[&str]) -> (i32, Value) {
        let ran = self.compare(&[&["--json", name], more].concat());
        let said: Value = serde_json::from_slice(&ran.bytes).unwrap();
        (ran.code.unwrap(), said["files"][0].clone())
    }
}

/// Returns the listed differences.
fn listed(said: &Value) -> &[Value] {
    said["listed"].as_array().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> =
        bytes[2..].chunks(2).map(|pair| u16::from_le_bytes(pair.try_into().unwrap())).collect();
    String::from_utf16(&units).unwrap()
}

/// Returns a UTF-8 file in each form.
fn files(trace: &Trace) -> [(&'static str, String); 3] {
    [
        ("tracerpt.xml", utf16(&trace.foreign("tracerpt"))),
        ("winevent.json", text(&trace.foreign("winevent"))),
        ("tdh.jsonl", text(&trace.foreign("tdh"))),
    ]
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn an_independent_decoder_agrees_in_every_form() {
    let trace = Trace::new();
    trace
        .write("tracerpt.xml", trace.foreign("tracerpt"))
        .write("winevent.json", trace.foreign("winevent"))
        .write("tdh.jsonl", trace.foreign("tdh"));
    let ran = trace.compare(&["tracerpt.xml", "winevent.json", "tdh.jsonl"]).ok();
    assert_eq!(ran.said, "");
    // 14 properties for each event; 3 fields for each manifest event and 10 values for each other
    // event.
    let counts = format!(
        "40 events compared, 0 only in the trace, 0 only in the file, {} properties and {} fields \
         compared",
        EVENTS * 14,
        EVENTS / 2 * (3 + 10)
    );
    assert_eq!(
        ran.text(),
        format!(
            "fixture.etl: 40 events\n\
             tracerpt.xml (event XML): {counts}, 1 classic or kernel events omitted: equal\n\
             winevent.json (event XML in JSON): {counts}: equal\n\
             tdh.jsonl (JSON of TDH): {counts}: equal\n"
        )
    );
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn each_changed_value_is_found_in_every_form() {
    let trace = Trace::new();
    // Each change: the event's time in each form, and the name of the expected difference.
    let changes = [
        ("provider", "29d5a000-45bd", "29d5a001-45bd"),
        ("provider name", "Contoso.Sample", "Contoso.Simple"),
        ("id", "<EventID>1<|\"id\": 1,", "<EventID>9<|\"id\": 9,"),
        ("version", "<Version>1<|\"version\": 1,", "<Version>2<|\"version\": 2,"),
        ("level", "<Level>4<|\"level\": 4,", "<Level>3<|\"level\": 3,"),
        ("task", "<Task>7<|\"task\": 7,", "<Task>8<|\"task\": 8,"),
        ("opcode", "<Opcode>2<|\"opcode\": 2,", "<Opcode>3<|\"opcode\": 3,"),
        ("keywords", "0x2<|\"0x2\"", "0x3<|\"0x3\""),
        ("time", ":05.0050000", ":05.0050001"),
        ("process", "ProcessID=\"119\"|\"process\": 119,", "ProcessID=\"120\"|\"process\": 120,"),
        ("thread", "ThreadID=\"102\"|\"thread\": 102,", "ThreadID=\"103\"|\"thread\": 103,"),
        ("processor", "ProcessorID=\"1\"|\"processor\": 1,", "ProcessorID=\"0\"|\"processor\": 0,"),
        (
            "activity",
            "ActivityID=\"{b2b2|\"activity\": \"b2b2",
            "ActivityID=\"{b2b3|\"activity\": \"b2b3",
        ),
        (
            "related activity",
            "RelatedActivityID=\"{a1|\"related_activity\": \"a1",
            "RelatedActivityID=\"{a2|\"related_activity\": \"a2",
        ),
        ("path", ">path<|\"path\", \"path\"", ">Path<|\"path\", \"Path\""),
        ("ratio", ">0.5<|\"ratio\", \"0.5\"", ">0.6<|\"ratio\", \"0.6\""),
        ("delta", ">-2<|\"delta\", \"-2\"", ">2<|\"delta\", \"2\""),
        ("mask", "0xBEEF", "0xBEEE"),
        ("bytes[2]", ">9</Data>|[\"bytes[2]\", \"9\"]", ">8</Data>|[\"bytes[2]\", \"8\"]"),
    ];
    for (name, whole) in files(&trace) {
        let own = |words: &str| {
            let (xml, json) = words.split_once('|').unwrap_or((words, words));
            let word = if name == "tdh.jsonl" { json } else { xml };
            if name == "winevent.json" { word.replace('"', "\\\"") } else { word.to_owned() }
        };
        for (field, from, to) in changes {
            let (from, to) = (own(from), own(to));
            assert!(whole.contains(&from), "{name}: {from}");
            trace.write(name, whole.replacen(&from, &to, 1));
            let (code, said) = trace.json(name, &[]);
            let found: Vec<_> = listed(&said).iter().map(|one| &one["field"]).collect();
            assert_eq!(found, [field], "{name}: {from} to {to}: {said:#}");
            assert_eq!(code, 1, "{name}: {field}");
            assert_eq!(said["compared"], EVENTS, "{name}: {field}");
        }
    }
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn missing_and_additional_events_are_found() {
    let trace = Trace::new();
    let whole = text(&trace.foreign("tdh"));
    let lines: Vec<&str> = whole.lines().collect();
    let without = [&lines[..7], &lines[8..]].concat().join("\n");
    let (code, said) = trace.write("tdh.jsonl", without).json("tdh.jsonl", &[]);
    assert_eq!((code, &said["only_ours"], &said["only_theirs"]), (1, &json!(1), &json!(0)));
    assert_eq!(said["listed"][0]["field"], "event");
    let event = said["listed"][0]["event"].as_str().unwrap();
    assert!(event.starts_with("2026-01-02T03:04:05.0080000Z Fixture.Device 2"), "{event}");
    let with = [&lines[..7], &lines[6..]].concat().join("\n");
    let (code, said) = trace.write("tdh.jsonl", with).json("tdh.jsonl", &[]);
    assert_eq!((code, &said["only_ours"], &said["only_theirs"]), (1, &json!(0), &json!(1)));
    // The other decoder's file can contain the events of one provider only.
    let (code, said) = trace
        .write("tdh.jsonl", lines.iter().step_by(2).copied().collect::<Vec<_>>().join("\n"))
        .json("tdh.jsonl", &["--provider", "contoso.sample"]);
    assert_eq!((code, &said["compared"]), (0, &json!(20)));
    let (code, said) = trace
        .write("tdh.jsonl", &whole)
        .json("tdh.jsonl", &["--provider", "29d5a000-45bd-558a-9252-950010cc7465"]);
    assert_eq!((code, &said["compared"]), (0, &json!(20)));
}

/// Returns an event of the fixture as XML from Get-WinEvent: the first manifest event.
fn event(system: &str, data: &str) -> String {
    format!(
        "<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>\
         <Provider Name='Fixture.Device' Guid='{{2F4C8A60-7D1B-4C35-9E02-51A60B7CD8E9}}'/>\
         <EventID>1</EventID><Version>1</Version><Level>4</Level><Task>7</Task><Opcode>1</Opcode>\
         <Keywords>0x8000000000000003</Keywords>{system}</System>{data}</Event>"
    )
}

const SYSTEM: &str = "<TimeCreated SystemTime='2026-01-02T03:04:05.0020000Z'/>\
    <Correlation ActivityID='{b2b2b2b2-b2b2-b2b2-b2b2-b2b2b2b2b2b2}' \
    RelatedActivityID='{a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1}'/>\
    <Execution ProcessID='85' ThreadID='68'/>";
const DATA: &str = "<EventData><Data Name='request'>0</Data><Data Name='kind'>Read </Data>\
    <Data Name='path'>path</Data></EventData>";

/// Compares one event with a file, and returns the exit code and the differences, except for events
/// that the file lacks.
fn differences(contents: &[u8]) -> (i32, Vec<Value>) {
    let trace = Trace::new();
    let (code, said) = trace.write("other", contents).json("other", &[]);
    let theirs = |one: &&Value| one["theirs"] != Value::Null || one["field"] != "event";
    assert_eq!(said["compared"], 1, "{said:#}");
    (code, listed(&said).iter().filter(theirs).cloned().collect())
}

#[test]
fn an_event_written_by_hand_is_equal_in_every_container() {
    let xml = event(SYSTEM, DATA);
    let with_root = format!("<?xml version=\"1.0\"?>\r\n<Events>{xml}</Events>");
    let utf16 = |text: &str| -> Vec<u8> {
        let units = text.encode_utf16().flat_map(u16::to_be_bytes);
        [0xFE, 0xFF].into_iter().chain(units).collect()
    };
    let objects = json!({ "events": [{ "id": 1, "xml": xml }] });
    // ConvertTo-Json can unwrap a list with one member.
    let unwrapped = json!({ "events": { "id": 1, "xml": xml } });
    let containers = [
        xml.clone().into_bytes(),
        with_root.clone().into_bytes(),
        [b"\xEF\xBB\xBF", with_root.as_bytes()].concat(),
        utf16(&with_root),
        objects.to_string().into_bytes(),
        utf16(&format!("{objects:#}")),
        unwrapped.to_string().into_bytes(),
        json!([xml]).to_string().into_bytes(),
        json!([{ "xml": xml }]).to_string().into_bytes(),
        format!("{}\r\n\r\n", json!({ "xml": xml })).into_bytes(),
    ];
    for contents in containers {
        assert_eq!(differences(&contents).1, Vec::<Value>::new());
    }
}

#[test]
fn get_win_event_states_no_fields_of_trace_logging_events() {
    let trace = Trace::new();
    let (_, said) = trace.write("none", "[]").json("none", &["--limit", "40"]);
    let mut names = listed(&said).iter().map(|one| one["event"].as_str().unwrap());
    // The other events come from the manifest's provider.
    let name = names.find(|name| !name.contains("Fixture.Device"));
    let time = name.unwrap().split(' ').next().unwrap();
    let error = "<ProcessingErrorData><ErrorCode>15003</ErrorCode></ProcessingErrorData>";
    for data in ["", "<EventData/>", error] {
        let xml = format!(
            "<Event><System><Provider Guid='{{29d5a000-45bd-558a-9252-950010cc7465}}'/>\
             <EventID>0</EventID><TimeCreated SystemTime='{time}'/></System>{data}</Event>"
        );
        let contents = json!({ "events": [{ "xml": xml }] }).to_string();
        let (_, said) = trace.write("winevent.json", contents).json("winevent.json", &[]);
        let others =
            |said: &Value| listed(said).iter().filter(|one| one["field"] != "event").count();
        assert_eq!(said["compared"], 1, "{said:#}");
        assert_eq!(said["undecoded"], 1, "{said:#}");
        assert_eq!(said["unstated"]["provider name"], 1, "{said:#}");
        assert_eq!((&said["fields"], others(&said)), (&json!(0), 0), "{said:#}");
        let shown = trace.compare(&["winevent.json"]).text();
        let line = "the fields are not stated for 1 TraceLogging events";
        assert!(shown.contains(line), "{shown}");
        // tracerpt can decode such events, so a missing field is a difference.
        let (_, said) = trace
            .write("tracerpt.xml", format!("<Events>{xml}</Events>"))
            .json("tracerpt.xml", &["--limit", "100"]);
        assert_eq!(said["undecoded"], 0, "{said:#}");
        assert_ne!(others(&said), 0, "{said:#}");
    }
    // A manifest event has fields.
    let xml = event(SYSTEM, "");
    let contents = json!({ "events": [{ "xml": xml }] }).to_string();
    let (_, said) = trace.write("winevent.json", contents).json("winevent.json", &[]);
    assert_eq!(said["undecoded"], 0, "{said:#}");
}

#[test]
fn what_an_event_lacks_or_has_too_much_is_a_difference() {
    let fields = |data: &str| -> Vec<(String, Value, Value)> {
        let (code, found) = differences(event(SYSTEM, data).as_bytes());
        assert_eq!(code, 1);
        found
            .iter()
            .map(|one| {
                let field = one["field"].as_str().unwrap().to_owned();
                (field, one["ours"].clone(), one["theirs"].clone())
            })
            .collect()
    };
    let one = |field: &str, ours: Value, theirs: Value| vec![(field.to_owned(), ours, theirs)];
    assert_eq!(fields(DATA), []);
    assert_eq!(
        fields(&DATA.replace("<Data Name='kind'>Read </Data>", "")),
        one("kind", json!("Read(0)"), Value::Null)
    );
    assert_eq!(
        fields(&DATA.replace("</EventData>", "<Data Name='more'>1</Data></EventData>")),
        one("more", Value::Null, json!("1"))
    );
    assert_eq!(
        fields(&DATA.replace("</EventData>", "<Data Name='kind'>1</Data></EventData>")),
        one("kind[1]", Value::Null, json!("1"))
    );
    assert_eq!(
        fields(&DATA.replace("Name='path'", "")),
        [
            ("path".to_owned(), json!("\"path\""), Value::Null),
            (String::new(), Value::Null, json!("path"))
        ]
    );
    let error = "<ProcessingErrorData><ErrorCode>15005</ErrorCode><DataItemName>kind</DataItemName>\
                 <EventPayload>00</EventPayload></ProcessingErrorData>";
    assert_eq!(
        fields(&format!("{DATA}{error}")),
        one("problem", Value::Null, json!("error 15005 at kind"))
    );
    for kind in ["BinaryEventData", "DebugData"] {
        assert_eq!(
            fields(&format!("{DATA}<{kind}>00</{kind}>")),
            one("problem", Value::Null, json!(format!("the event has {kind}")))
        );
    }
    let user_data = "<UserData><Request xmlns='x'><request>0x0</request><kind>0</kind>\
                     <path>path</path></Request></UserData>";
    assert_eq!(fields(user_data), []);
}

#[test]
fn what_is_not_stated_is_not_compared_and_said() {
    let trace = Trace::new();
    let system = "<TimeCreated SystemTime='2026-01-02T03:04:05.002Z'/>";
    let said = trace.write("other.xml", event(system, DATA)).json("other.xml", &[]).1;
    assert_eq!(said["unstated"], json!({ "process": 1, "thread": 1, "processor": 1 }));
    // The null GUID can be omitted, but no other GUID.
    let fields = listed(&said).iter().map(|one| &one["field"]);
    let fields: Vec<_> = fields.filter(|field| **field != "event").collect();
    assert_eq!(fields, ["activity", "related activity"]);
}

#[test]
fn a_file_without_events_does_not_agree() {
    let trace = Trace::new();
    for contents in ["", "<Events/>", "[]", "{\"events\": null}"] {
        let (code, said) = trace.write("other", contents).json("other", &["--limit", "3"]);
        assert_eq!(code, 1, "{contents}");
        assert_eq!(said["only_ours"], EVENTS);
        assert_eq!(listed(&said).len(), 3);
    }
    // Neither side has events from this provider, so nothing was compared.
    let ran = trace.compare(&["other", "--provider", "No.Such"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.text().contains("nothing was compared"), "{}", ran.text());
}

#[test]
fn files_that_cannot_be_read_cause_one_clear_error() {
    let trace = Trace::new();
    let xml = event(SYSTEM, DATA);
    let mixed = format!("{}\n{{\"fields\": []}}", json!({ "xml": xml }));
    let deep = format!(
        "<Event><System/><EventData>{}{}</EventData></Event>",
        "<ComplexData Name='a'>".repeat(20),
        "</ComplexData>".repeat(20)
    );
    let cut = &xml[..xml.len() - 9];
    let in_json = json!([{ "xml": cut }]).to_string();
    for (contents, expected) in [
        (cut.as_bytes(), "the XML is not well-formed: "),
        (b"<html></html>", "the XML's root element is \"html\"; expected Events or Event"),
        (b"<Events><Event/></Events>", "event 1 has no element System"),
        (deep.as_bytes(), "event 1 has structures nested more than 16 levels deep"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><Events/>", "the XML is not well-formed: "),
        (b"{\"events\": [", "the JSON is not well-formed: "),
        (b"{\"events\": [1]}", "event 1 has an unknown form"),
        (b"[null]", "event 1 has an unknown form"),
        (b"{\"xml\": \"<Event><System/></Event>\"}\n{", "line 2 is not well-formed JSON"),
        (mixed.as_bytes(), "event 2 is not an event of the client's"),
        (in_json.as_bytes(), "cannot read the XML of event 1: the XML is not well-formed"),
        (b"\x80\x80", "it is neither UTF-8 nor UTF-16"),
        (b"\xFF\xFE<", "it is neither UTF-8 nor UTF-16"),
        (b"time,id", "it is neither XML nor JSON"),
    ] {
        let ran = trace.write("other", contents).compare(&["other"]);
        ran.fails(2, &["etl: cannot read other: ", expected]);
    }
    trace.compare(&["missing"]).fails(2, &["cannot read missing: "]);
}

#[test]
fn elements_that_are_nested_without_end_are_an_error() {
    let trace = Trace::new();
    let deep = "<Events>".repeat(100_000);
    let closed = format!("{deep}{}", "</Events>".repeat(100_000));
    for contents in [deep, closed] {
        let code = trace.write("other", contents).compare(&["other"]).code;
        assert!(matches!(code, Some(1 | 2)), "{code:?}");
    }
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let trace = Trace::new();
    let data = DATA.replace("Read ", "\u{202E}&#x9;x");
    trace.write("other", event(SYSTEM, &data));
    let said = trace.compare(&["other"]).text();
    assert!(said.contains("\\u{202e}\\tx"), "{said}");
    assert!(!said.contains('\u{202E}'), "{said}");
}

#[test]
fn events_of_the_other_file_alone_are_named_and_left_out_by_their_providers() {
    let trace = Trace::new();
    let own = event(SYSTEM, DATA);
    let more = own.replace("<EventID>1<", "<EventID>9<");
    let foreign = own.replace("Fixture.Device", "Other").replace("2F4C8A60", "00000000");
    let file = format!("<Events>{own}{more}{foreign}</Events>");
    let written = trace.write("other.xml", file);
    let named = |said: &Value| -> Vec<String> {
        let listed = listed(said).iter().filter(|one| one["theirs"] == "present");
        listed.map(|one| one["event"].as_str().unwrap().to_owned()).collect()
    };
    let (_, said) = written.json("other.xml", &[]);
    let time = "2026-01-02T03:04:05.0020000Z";
    assert_eq!(named(&said), [format!("{time} Fixture.Device 9"), format!("{time} Other 1")]);
    for provider in ["fixture.device", "2f4c8a60-7d1b-4c35-9e02-51a60b7cd8e9"] {
        let (_, said) = written.json("other.xml", &["--provider", provider]);
        assert_eq!(named(&said), [format!("{time} Fixture.Device 9")]);
    }
}
