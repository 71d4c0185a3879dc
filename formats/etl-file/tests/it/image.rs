//! Compares providers from images' resources with the manifests from which the resources were
//! compiled.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_file::decode::{Count, Encoding, Field, InType, Length, Presentation};
use etl_file::write::Losses;
use etl_file::{Catalog, ClockType, Guid};
use etl_fixtures::trace;
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

/// Assembles a resource from its parts.
struct Builder(Vec<u8>);

impl Builder {
    fn at(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap()
    }

    fn numbers(&mut self, numbers: &[u32]) -> &mut Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        self
    }

    fn patch(&mut self, at: u32, value: u32) {
        let at = at as usize;
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) -> u32 {
        let at = self.at();
        let units: Vec<u8> = text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let size = (4 + units.len()).next_multiple_of(4);
        self.numbers(&[u32::try_from(size).unwrap()]);
        self.0.extend(units);
        self.0.resize(at as usize + size, 0);
        at
    }
}

const PROVIDER: Guid = Guid::from_u128(0x1122_3344_5566_7788_99aa_bbcc_ddee_ff00);

/// Returns a resource with an event that has every kind of field.
fn resource() -> Vec<u8> {
    let mut made = Builder(b"CRIM".to_vec());
    made.numbers(&[0, 0x1_0005, 1]);
    made.0.extend(PROVIDER.to_bytes());
    made.numbers(&[36]);
    made.0.extend(b"WEVT");
    made.numbers(&[0, u32::MAX, 2, 7, 0, 4, 0]);
    let map = made.at();
    made.0.extend(b"VMAP");
    made.numbers(&[28, 0, 0, 1, 5, u32::MAX]);
    let templates = made.at();
    made.0.extend(b"TTBL");
    made.numbers(&[0, 1]);
    let template = made.at();
    made.0.extend(b"TEMP");
    made.numbers(&[40, 4, 5, template + 40, 1, 0, 0, 0, 0]);
    // Flags; types or members; map; count and length; name.
    let fields = made.at();
    made.numbers(&[0, 0x08_08, map, 0, 0]); // number: u32 as unsignedInt, with a map
    made.numbers(&[4, 0x0F_0E, 0, 0, 0]); // data: its length is `number`
    made.numbers(&[0x10, 0x01_01, 0, 0, 0]); // texts: their count is `number`
    made.numbers(&[9, 0x1_0004, 0, 3, 0]); // an array of three structures with one member
    made.numbers(&[2, 0x01_01, 0, 0x10_0000, 0]); // its member, of 16 units
    for (number, name) in ["number", "data", "texts", "all", "inner"].into_iter().enumerate() {
        let at = made.text(name);
        made.patch(fields + 20 * u32::try_from(number).unwrap() + 16, at);
    }
    let events = made.at();
    made.patch(36 + 20 + 8, events);
    made.patch(36 + 16 + 4, templates);
    made.0.extend(b"EVNT");
    made.numbers(&[0, 1, 0, 0x0002_0007, 0, 1, 0, u32::MAX, template, 0, 0, 0, 0, 0, 0]);
    made.0
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

/// Returns the offset of a tag in the resources.
fn tag(resource: &[u8], tag: &[u8]) -> usize {
    let at = resource.windows(tag.len()).position(|bytes| bytes == tag);
    at.expect("the resource has the tag")
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
    // The command reports the skipped records.
    let folder = tempfile::tempdir().unwrap();
    let image = image_with(folder.path(), "x64", damaged);
    let trace = folder.path().join("sample.etl");
    let header = trace::header(ClockType::Qpc, 0x1000, 1);
    fs::write(&trace, trace::file(header, 1, Losses::default()).0).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_etl"))
        .arg("stats")
        .arg(&trace)
        .arg("--image")
        .arg(&image)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        format!(
            "warning: {}: skipping a part of the resources: the resource WEVT_TEMPLATE has no VMAP \
             at offset {map:#x}\n",
            image.display()
        )
    );
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

/// Links an image with the resources, for a machine type.
fn image(folder: &Path, machine: &str) -> PathBuf {
    image_with(folder, machine, resource())
}

/// Links an image with a `WEVT_TEMPLATE` resource, for a machine type.
fn image_with(folder: &Path, machine: &str, data: Vec<u8>) -> PathBuf {
    let mut res = Builder(Vec::new());
    // The empty entry at the start of the `.res` file.
    res.numbers(&[0, 0x20, 0xFFFF, 0xFFFF, 0, 0, 0, 0]);
    let mut kind: Vec<u8> = "WEVT_TEMPLATE\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    kind.extend(0xFFFF_u16.to_le_bytes());
    kind.extend(1_u16.to_le_bytes());
    kind.resize(kind.len().next_multiple_of(4), 0);
    let header = 8 + kind.len() + 16;
    res.numbers(&[u32::try_from(data.len()).unwrap(), u32::try_from(header).unwrap()]);
    res.0.extend(kind);
    res.numbers(&[0, 0x0409_0030, 0, 0]);
    res.0.extend(data);
    let file = folder.join("events.res");
    let image = folder.join("events.dll");
    fs::write(&file, res.0).unwrap();
    let output = etw_test_support::lld_link()
        .args(["/dll", "/noentry"])
        .arg(format!("/machine:{machine}"))
        .arg(format!("/out:{}", image.display()))
        .arg(&file)
        .output()
        .expect("the linker starts; Debian's package lld-19 has one");
    assert!(output.status.success(), "{output:?}");
    image
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
