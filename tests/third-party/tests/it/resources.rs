//! Tests that third-party readers find everything in the resources, equal to the manifest.

use std::{collections::BTreeMap, fs, path::Path};

use etw_manifest::{
    self as manifest, Event, Manifest, Property, PropertyKind, Provider, Size, res, resources,
};
use etw_test_support::{drivers, lld_link, oracle, root, run_python};
use evtx::wevt_templates::{
    extract_wevt_template_resources,
    manifest::{CrimManifest, MapDefinition, TemplateItem},
};
use serde_json::{Value, json};
use wdk_etw_build::{declaration::Files, manifest_of};

/// The image that declarations are compiled for.
const FILES: Files<'_> = Files { resources: "a.sys", messages: "a.sys" };

/// Reads a valid manifest.
fn read(text: &str) -> Manifest {
    manifest::read(text.trim_start_matches('\u{feff}'))
        .unwrap_or_else(|failures| panic!("{failures}"))
}

fn declared(path: &Path) -> Manifest {
    manifest_of(path, &FILES).unwrap_or_else(|error| panic!("{error}")).0
}

fn everything() -> Manifest {
    declared(&root().join("provider-lib/build/tests/fixture/everything.rs"))
}

/// Returns the manifest with which the rules are tested. Some of its parts cannot be declared.
fn sound() -> Manifest {
    read(include_str!("../../../../formats/etw-manifest/tests/fixture/sound.man"))
}

/// A field's descriptor: its name, types, count and length, and the position of its members.
type Item = (String, u8, u8, u16, u16);

/// Returns the descriptors of a template's fields; the members of structures follow all other
/// fields.
fn items(properties: &[Property]) -> Vec<Item> {
    let number = |size: Size, base: usize| match size {
        Size::None => 0,
        Size::Fixed(number) => number,
        Size::Field(field) => u16::try_from(base + field).unwrap(),
        Size::Outer(field) => u16::try_from(field).unwrap(),
    };
    let mut all = Vec::new();
    let mut members = Vec::new();
    for property in properties {
        let (in_type, out_type) = match &property.kind {
            PropertyKind::Data { in_type, out_type, .. } => (in_type.code(), out_type.code()),
            PropertyKind::Unknown { in_type, out_type, .. } => (*in_type, *out_type),
            PropertyKind::Struct(inner) => {
                let base = properties.len() + members.len();
                let first = u8::try_from(base & 0xFF).unwrap();
                for member in inner {
                    let PropertyKind::Data { in_type, out_type, .. } = &member.kind else {
                        panic!("a structure in a structure");
                    };
                    let [count, length] = [member.count, member.length].map(|it| number(it, base));
                    let name = member.name.clone();
                    members.push((name, in_type.code(), out_type.code(), count, length));
                }
                // For a structure, the index of its first member is stored instead of the types.
                (first, 0)
            }
        };
        let [count, length] = [property.count, property.length].map(|it| number(it, 0));
        all.push((property.name.clone(), in_type, out_type, count, length));
    }
    all.extend(members);
    all
}

/// Returns the fields of an event without the members of structures, which `evtx` does not read.
fn template(event: &Event, provider: &Provider) -> Option<Vec<Item>> {
    event.template.map(|template| {
        let properties = &provider.templates[template].properties;
        let mut items = items(properties);
        items.truncate(properties.len());
        items
    })
}

/// Returns the fields that all element types of `evtx` share.
macro_rules! named {
    ($list:expr) => {
        $list
            .iter()
            .map(|one| (one.identifier, one.message_identifier, one.name.clone()))
            .collect::<Vec<_>>()
    };
}

/// Returns the numbers, messages and names of a manifest's elements.
macro_rules! expected {
    ($list:expr, $id:expr, |$one:ident| $number:expr) => {
        $list
            .iter()
            .map(|$one| ($number, $id($one.message), Some($one.name.written.clone())))
            .collect::<Vec<_>>()
    };
}

/// Compares a manifest with the resources that `evtx` reads.
fn assert_evtx_agrees(manifest: &Manifest, data: &[u8]) {
    let ids = resources::message_ids(manifest);
    let id = |text: Option<usize>| text.map(|text| ids[text]);
    let crim = CrimManifest::parse(data).unwrap();
    assert_eq!(crim.providers.len(), manifest.providers.len());
    for (theirs, ours) in crim.providers.iter().zip(&manifest.providers) {
        assert_eq!(theirs.guid.to_string().to_lowercase(), ours.guid.to_string());
        assert_eq!(theirs.wevt.message_identifier, id(ours.message));
        let found = &theirs.wevt.elements;

        let mut keywords = expected!(ours.keywords, id, |one| one.mask);
        keywords.sort();
        assert_eq!(named!(found.keywords.as_ref().unwrap().keywords), keywords);
        let mut levels = expected!(ours.levels, id, |one| u32::from(one.value));
        levels.sort();
        assert_eq!(named!(found.levels.as_ref().unwrap().levels), levels);
        let mut opcodes = expected!(ours.opcodes, id, |one| {
            let task = one.task.map_or(0, |task| ours.tasks[task].value);
            u32::from(one.value) << 16 | u32::from(task)
        });
        opcodes.sort();
        assert_eq!(named!(found.opcodes.as_ref().unwrap().opcodes), opcodes);
        let tasks = expected!(ours.tasks, id, |one| u32::from(one.value));
        assert_eq!(named!(found.tasks.as_ref().unwrap().tasks), tasks);
        let channels: Vec<_> = ours
            .channels
            .iter()
            .map(|one| {
                // `evtx` reads the flag as the number, and the number as an unknown field.
                (
                    u32::from(one.imported),
                    u32::from(one.value),
                    id(one.message),
                    Some(one.name.clone()),
                )
            })
            .collect();
        let theirs_channels = found.channels.iter().flat_map(|list| &list.channels);
        assert_eq!(
            theirs_channels
                .map(|one| (one.identifier, one.unknown, one.message_identifier, one.name.clone()))
                .collect::<Vec<_>>(),
            channels
        );
        assert_maps(manifest, ours, found, data);
        assert_events(ours, theirs, &ids);
    }
}

/// Compares maps. `evtx` confuses the first map's offset with its name's, and reads no map entries
/// (it reads the flag as their number), so every map is looked up by offset, as in decoders.
fn assert_maps(
    manifest: &Manifest,
    provider: &Provider,
    found: &evtx::wevt_templates::manifest::ProviderElements<'_>,
    data: &[u8],
) {
    let ids = resources::message_ids(manifest);
    let entries = |map: &manifest::Map| -> Vec<(u32, u32)> {
        let mut entries: Vec<(u32, u32)> =
            map.items.iter().map(|item| (item.value, ids[item.message.unwrap()])).collect();
        entries.sort_unstable();
        entries
    };
    let mut by_name: Vec<&manifest::Map> = provider.maps.iter().collect();
    by_name.sort_by(|one, other| one.name.cmp(&other.name));
    let as_the_crate_has_them =
        provider.maps.first().into_iter().chain(by_name.iter().skip(1).copied());
    let theirs = found.maps.iter().flat_map(|maps| &maps.maps);
    assert_eq!(theirs.clone().count(), by_name.len());
    for (theirs, ours) in theirs.zip(as_the_crate_has_them) {
        match theirs {
            MapDefinition::ValueMap(map) => {
                assert!(!ours.is_bits);
                assert_eq!(map.map_string.as_deref(), Some(ours.name.as_str()));
            }
            MapDefinition::Bitmap(_) => assert!(ours.is_bits),
            MapDefinition::Unknown { signature, .. } => panic!("{signature:?}"),
        }
    }
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    for (number, map) in by_name.into_iter().enumerate() {
        let list = found.maps.as_ref().unwrap().offset as usize;
        let at = word(list + 12 + number * 4) as usize;
        assert_eq!(&data[at..at + 4], if map.is_bits { b"BMAP" } else { b"VMAP" });
        let name = word(at + 8) as usize + 4;
        let units: Vec<u16> = data[name..]
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .take_while(|unit| *unit != 0)
            .collect();
        assert_eq!(String::from_utf16_lossy(&units), map.name);
        assert_eq!(word(at + 12), u32::from(map.is_bits));
        let count = word(at + 16) as usize;
        let found: Vec<(u32, u32)> = (0..count)
            .map(|entry| (word(at + 20 + entry * 8), word(at + 24 + entry * 8)))
            .collect();
        assert_eq!(found, entries(map));
    }
}

fn assert_events(
    ours: &Provider,
    theirs: &evtx::wevt_templates::manifest::Provider<'_>,
    ids: &[u32],
) {
    let mut events: Vec<&Event> = ours.events.iter().collect();
    events.sort_by_key(|event| (event.id, event.version));
    let found = &theirs.wevt.elements.events.as_ref().unwrap().events;
    assert_eq!(found.len(), events.len());
    for (found, event) in found.iter().zip(events) {
        let level = event.level.map_or(0, |at| ours.levels[at].value);
        let opcode = event.opcode.map_or(0, |at| ours.opcodes[at].value);
        let task = event.task.map_or(0, |at| ours.tasks[at].value);
        let channel = event.channel.map_or(0, |at| ours.channels[at].value);
        assert_eq!(
            (found.identifier, found.version, found.channel, found.level),
            (event.id, event.version, channel, level)
        );
        assert_eq!((found.opcode, found.task), (opcode, task));
        assert_eq!(found.keywords, ours.keyword_mask(event));
        let message = event.message.map_or(u32::MAX, |text| ids[text]);
        assert_eq!(found.message_identifier, message);
        let described = found.template_offset.map(|offset| {
            let template = theirs.template_by_offset(offset).unwrap();
            let item = |item: &TemplateItem| {
                let name = item.name.clone().unwrap();
                (name, item.input_type, item.output_type, item.count, item.length)
            };
            template.items.iter().map(item).collect::<Vec<Item>>()
        });
        assert_eq!(described, template(event, ours), "event {}", event.id);
    }
}

#[test]
fn the_evtx_crate_reads_what_is_declared() {
    for manifest in [everything(), sound()] {
        for version in [resources::Version::V3, resources::Version::V5] {
            let data = resources::wevt_template(&manifest, version).unwrap();
            assert_evtx_agrees(&manifest, &data);
        }
    }
}

/// Links an image that contains only resources.
fn link(manifest: &Manifest, folder: &Path) -> std::path::PathBuf {
    let file = folder.join("x.res");
    let data = res::file(&resources::resources(manifest).unwrap()).unwrap();
    fs::write(&file, data).unwrap();
    let image = folder.join("x.sys");
    let output = lld_link()
        .args(["/dll", "/noentry", "/machine:x64"])
        .arg(format!("/out:{}", image.display()))
        .arg(&file)
        .output()
        .expect("the linker starts; Debian's package lld-19 has one");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    image
}

/// Returns the resources that the Python libraries find in an image.
fn dump(image: &Path) -> Value {
    let script = oracle("resources_dump.py");
    serde_json::from_slice(&run_python([&script, image])).unwrap()
}

/// Compares a manifest with the resources that the Python libraries find in an image.
fn assert_image_has(manifest: &Manifest, image: &Path) {
    let data = fs::read(image).unwrap();
    let extracted = extract_wevt_template_resources(&data).unwrap();
    assert_eq!(extracted.len(), 1);
    assert_eq!(extracted[0].lang_id, 0x409);
    assert_evtx_agrees(manifest, &extracted[0].data);

    let found = dump(image);
    let kinds = found["resources"].as_array().unwrap();
    for kind in [json!("WEVT_TEMPLATE"), json!(11)] {
        let wanted = json!({"kind": kind, "name": 1, "language": 0x409});
        assert!(kinds.contains(&wanted), "{kinds:?}");
    }
    let providers = found["providers"].as_array().unwrap();
    assert_eq!(providers.len(), manifest.providers.len());
    let ids = resources::message_ids(manifest);
    for (theirs, ours) in providers.iter().zip(&manifest.providers) {
        assert_eq!(theirs["guid"], ours.guid.to_string());
        for (list, length) in [
            ("channels", ours.channels.len()),
            ("keywords", ours.keywords.len()),
            ("levels", ours.levels.len()),
            ("maps", ours.maps.len()),
            ("opcodes", ours.opcodes.len()),
            ("tasks", ours.tasks.len()),
        ] {
            assert_eq!(theirs[list], length, "{list}");
        }
        let mut events: Vec<&Event> = ours.events.iter().collect();
        events.sort_by_key(|event| (event.id, event.version));
        for (theirs, event) in theirs["events"].as_array().unwrap().iter().zip(events) {
            assert_eq!(theirs["id"], event.id);
            assert_eq!(theirs["version"], event.version);
            let message = event.message.map_or(u32::MAX, |text| ids[text]);
            assert_eq!(theirs["message"], message);
            let fields = event.template.map(|template| items(&ours.templates[template].properties));
            assert_eq!(theirs["template"], json!(fields), "event {}", event.id);
        }
    }
    // The message strings.
    let texts: BTreeMap<String, String> = ids
        .iter()
        .zip(&manifest.texts)
        .filter(|(id, _)| **id != u32::MAX)
        .map(|(id, text)| (id.to_string(), format!("{}\r\n", text.value)))
        .collect();
    assert_eq!(found["messages"], json!(texts));
}

#[test]
#[ignore = "needs lld-link and the third-party readers; `cargo xtask test` runs it"]
fn third_party_readers_find_everything_in_a_linked_image() {
    for manifest in [everything(), sound()] {
        let folder = tempfile::tempdir().unwrap();
        assert_image_has(&manifest, &link(&manifest, folder.path()));
    }
}

#[test]
#[ignore = "needs the sample driver and the third-party readers; `cargo xtask test` runs it"]
fn third_party_readers_find_the_sample_drivers_events_in_its_image() {
    let manifest = declared(&root().join("driver/src/trace.rs"));
    for profile in ["debug", "release", "arm64/release"] {
        let image = drivers(profile).join("etw_sample_driver.sys");
        assert_image_has(&manifest, &image);
    }
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn third_party_readers_find_the_contents_of_published_manifests() {
        let folder = etw_test_support::sample("mc");
        let mut count = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_manifest = path.extension().is_some_and(|extension| extension == "man");
            if !is_manifest {
                continue;
            }
            let manifest = read(&fs::read_to_string(&path).unwrap());
            // The imported declaration, written as a manifest, has the same meaning.
            let again = read(&manifest::write(&manifest, ""));
            count += 1;
            if manifest.providers.is_empty() {
                continue;
            }
            let out = tempfile::tempdir().unwrap();
            assert_image_has(&manifest, &link(&again, out.path()));
        }
        assert!(count >= 3);
    }
}
