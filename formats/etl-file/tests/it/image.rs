//! Compares providers from images' resources with the manifests from which the resources were
//! compiled.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use etl_file::internals::schema::{Count, Encoding, Field, InType, Length, Presentation};
use etl_file::{Catalog, Guid};
use etl_fixtures::resources::{Builder, PROVIDER, image, resource, tag};
use etw_manifest::resources::DecodeError;
use proptest::prelude::*;

/// Returns the folder of resources that mc.exe compiled from manifests.
fn compiled() -> PathBuf {
    etw_test_support::sample("mc")
}

fn read(name: &str) -> Vec<u8> {
    let path = compiled().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the presentation that the compiler uses for a field without an `outType`.
const fn usual(encoding: Encoding) -> Presentation {
    let Encoding::Known(in_type) = encoding else {
        return Presentation::Default;
    };
    match in_type {
        InType::UnicodeString
        | InType::AnsiString
        | InType::CountedUnicodeString
        | InType::CountedAnsiString
        | InType::Sid => Presentation::String,
        InType::Int8 | InType::Int16 | InType::Int32 | InType::Int64 => Presentation::Signed,
        InType::UInt8 | InType::UInt16 | InType::UInt32 | InType::UInt64 => Presentation::Unsigned,
        InType::Boolean => Presentation::Boolean,
        InType::HexInt32 | InType::HexInt64 | InType::Pointer => Presentation::Hex,
        InType::FileTime | InType::SystemTime => Presentation::DateTime,
        _ => Presentation::Default,
    }
}

/// Returns fields whose default presentation is replaced with the explicit one.
fn spelled_out(fields: &[Field]) -> Vec<Field> {
    fields
        .iter()
        .map(|field| Field {
            out_type: match field.out_type {
                Presentation::Default => usual(field.in_type),
                other => other,
            },
            fields: spelled_out(&field.fields),
            ..field.clone()
        })
        .collect()
}

/// Returns the GUIDs of a manifest's providers, as written in its text.
fn guids(manifest: &str) -> Vec<Guid> {
    manifest
        .split("<provider")
        .skip(1)
        .map(|provider| {
            let (_, rest) = provider.split_once("guid=\"").unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        })
        .collect()
}

/// Compares a manifest's catalog with its resources' catalog. Returns the number of events.
fn compare(name: &str, version: &str) -> usize {
    let manifest = String::from_utf8(read(&format!("{name}.man"))).unwrap();
    let manifest = manifest.trim_start_matches('\u{FEFF}');
    let mut by_manifest = Catalog::new();
    by_manifest.add(manifest).unwrap();
    let messages = format!("{name}.msg.bin");
    let messages = if compiled().join(&messages).exists() { read(&messages) } else { Vec::new() };
    let templates = read(&format!("{name}.wevt.{version}.bin"));
    let mut by_resource = Catalog::new();
    by_resource.add_resources(&templates, &messages).unwrap();
    let mut events = 0;
    for guid in guids(manifest) {
        let expected = by_manifest.provider(guid).unwrap();
        let found = by_resource.provider(guid).unwrap();
        if version == "v5" {
            assert_eq!(found.name, expected.name);
            assert_eq!(found.control_guid, expected.control_guid);
        }
        let by_mask = |keywords: &[(u64, String)]| -> BTreeMap<u64, String> {
            keywords.iter().cloned().collect()
        };
        assert_eq!(by_mask(found.keywords()), by_mask(expected.keywords()));
        for value in 0..=u8::MAX {
            assert_eq!(found.level(value), expected.level(value), "level {value}");
            for task in 0..64 {
                let of = (task, value);
                assert_eq!(found.opcode(task, value), expected.opcode(task, value), "{of:?}");
            }
        }
        for task in 0..=u16::MAX {
            assert_eq!(found.task(task), expected.task(task), "task {task}");
            for version in 0..4 {
                let (found, expected) = (found.event(task, version), expected.event(task, version));
                assert_eq!(found.is_some(), expected.is_some(), "event {task}");
                let Some((found, expected)) = found.zip(expected) else {
                    continue;
                };
                events += 1;
                assert_eq!(found.message, expected.message, "event {task}");
                assert_eq!(
                    spelled_out(&found.schema.fields),
                    spelled_out(&expected.schema.fields),
                    "event {task}"
                );
            }
        }
    }
    events
}

mod samples {
    use super::*;

    #[test]
    #[ignore = "needs WDK_ETW_SAMPLES, a folder of samples that must not be published"]
    fn resources_match_their_manifests() {
        let mut compared = 0;
        for entry in fs::read_dir(compiled()).unwrap() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let mut parts = file.split('.');
            if let (Some(name), Some("wevt"), Some(version)) =
                (parts.next(), parts.next(), parts.next())
            {
                println!("{name} {version}: {} events", compare(name, version));
                compared += 1;
            }
        }
        assert!(compared >= 5, "there are {compared} resources");
    }
}

#[test]
fn fields_of_every_kind_are_read() {
    let mut catalog = Catalog::new();
    let skipped = catalog.add_resources(&resource(), &[]).unwrap();
    assert_eq!(skipped, []);
    let schema = catalog.schema(PROVIDER, 7, 2).unwrap();
    let [number, data, texts, all] = &*schema.fields else {
        panic!("{:#?}", schema.fields);
    };
    assert_eq!((number.in_type, number.out_type), (InType::UInt32.into(), Presentation::Unsigned));
    assert_eq!(number.map.as_ref().unwrap().entries, [(5, "5".into())]);
    assert_eq!(data.length, Length::Field("number".into()));
    assert_eq!(texts.count, Count::Field("number".into()));
    assert_eq!((all.in_type, &all.count), (InType::Struct.into(), &Count::Fixed(3)));
    assert_eq!(&*all.fields[0].name, "inner");
    assert_eq!(all.fields[0].length, Length::Fixed(16));
}

#[test]
fn errors_contain_their_offset() {
    let refuse = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bad = resource();
        change(&mut bad);
        Catalog::new().add_resources(&bad, &[]).unwrap_err()
    };
    let error = refuse(&|bad| bad[0] = b'X');
    assert_eq!(error, DecodeError::Tag { tag: *b"CRIM", offset: 0 });
    let error = refuse(&|bad| bad[8] = 4);
    assert_eq!(error, DecodeError::Version(4, 1));
    let error = refuse(&|bad| bad[12] = 0xFF);
    assert!(error.to_string().contains("ends inside the providers at offset 0x10"), "{error}");
    let error = refuse(&|bad| bad.truncate(40));
    assert!(error.to_string().contains("at offset 0x"), "{error}");
}

#[test]
fn damaged_maps_are_skipped_and_returned() {
    let mut damaged = resource();
    let map = tag(&damaged, b"VMAP");
    damaged[map] = b'X';
    let mut catalog = Catalog::new();
    let skipped = catalog.add_resources(&damaged, &[]).unwrap();
    let tag = DecodeError::Tag { tag: *b"VMAP", offset: map };
    assert_eq!(skipped, [tag]);
    let schema = catalog.schema(PROVIDER, 7, 2).unwrap();
    assert_eq!(schema.fields[0].map, None);
}

#[test]
fn cut_resources_are_refused() {
    let good = resource();
    for length in 0..good.len() {
        let cut = Catalog::new().add_resources(&good[..length], &[]);
        assert!(cut.is_err(), "{length} of {}", good.len());
    }
}

#[test]
fn a_small_resource_cannot_describe_endless_fields() {
    /// The number of templates that share one list of fields.
    const TEMPLATES: u32 = 600;
    const FIELDS: u32 = 600;
    let described = |templates: u32| {
        let mut made = Builder(b"CRIM".to_vec());
        made.numbers(&[0, 0x1_0005, 1]);
        made.0.extend(PROVIDER.to_bytes());
        made.numbers(&[36]);
        made.0.extend(b"WEVT");
        let events = made.at() + 20;
        made.numbers(&[0, u32::MAX, 1, 4, events]);
        made.0.extend(b"EVNT");
        made.numbers(&[0, templates, 0]);
        let first = made.at() + templates * 48;
        let fields = first + templates * 20;
        for number in 0..templates {
            let template = first + number * 20;
            made.numbers(&[number, 0, 0, 0, u32::MAX, template, 0, 0, 0, 0, 0, 0]);
        }
        for _ in 0..templates {
            made.0.extend(b"TEMP");
            made.numbers(&[0, FIELDS, FIELDS, fields]);
        }
        let name = fields + FIELDS * 20;
        for _ in 0..FIELDS {
            made.numbers(&[0, 4, 0, 0, name]);
        }
        made.text("n");
        Catalog::new().add_resources(&made.0, &[])
    };
    assert_eq!(described(10), Ok(Vec::new()));
    assert_eq!(described(TEMPLATES), Err(DecodeError::TooManyFields(1 << 18)));
}

proptest! {
    #[test]
    fn damaged_resources_are_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let mut bad = resource();
        for (at, value) in damage {
            let at = at.index(bad.len());
            bad[at] = value;
        }
        let _either = Catalog::new().add_resources(&bad, &[]);
    }
}

#[test]
fn images_of_every_machine_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for machine in ["x64", "arm64", "x86"] {
        let mut catalog = Catalog::new();
        catalog.load_image(image(folder.path(), machine)).unwrap();
        assert!(catalog.schema(PROVIDER, 7, 2).is_some(), "{machine}");
    }
}

#[test]
fn an_images_own_resources_decode_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let image = image(folder.path(), "x64");
    let mut catalog = Catalog::new();
    catalog.load_image(&image).unwrap();
    assert!(catalog.schema(PROVIDER, 7, 2).is_some());
    let bytes = fs::read(&image).unwrap();
    for at in (0..bytes.len()).step_by(13) {
        let mut bad = bytes.clone();
        bad[at] ^= 0xFF;
        let path = folder.path().join("bad.dll");
        fs::write(&path, &bad).unwrap();
        let _either = Catalog::new().load_image(&path);
    }
    let none = folder.path().join("none.txt");
    fs::write(&none, "no image").unwrap();
    let error = Catalog::new().load_image(&none).unwrap_err().to_string();
    assert!(error.contains("none.txt: it is not a well-formed PE image"), "{error}");
}
