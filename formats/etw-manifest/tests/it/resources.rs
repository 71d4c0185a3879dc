//! Reads the encoder's output with the decoder; the two share no code.

use etw_manifest::{
    Manifest, read,
    resources::{DecodeError, Decoded, Version, decode, message_table, wevt_template},
};
use proptest::prelude::*;

use crate::SOUND;

/// The two resources of a manifest.
fn encode(manifest: &Manifest, version: Version) -> (Vec<u8>, Vec<u8>) {
    let templates = wevt_template(manifest, version).unwrap();
    (templates, message_table(manifest).unwrap().unwrap_or_default())
}

#[test]
fn written_resources_are_read_and_compile_to_the_same_resources() {
    // Resources do not contain the white space of `UserData`, but the templates' GUIDs depend on
    // it.
    let manifest = read(&SOUND.replace("<UserData>", "<!--").replace("</UserData>", "-->"));
    let manifest = manifest.unwrap_or_else(|failures| panic!("{failures}"));
    for version in [Version::V3, Version::V5] {
        let (templates, messages) = encode(&manifest, version);
        let Decoded { manifest: again, version: found, skipped } =
            decode(&templates, &messages).unwrap();
        assert_eq!(found, version);
        assert_eq!(skipped, []);
        let (ours, theirs) = (&again.providers[0], &manifest.providers[0]);
        assert_eq!(ours.events.len(), theirs.events.len());
        assert_eq!(ours.filters.len(), theirs.filters.len());
        assert_eq!(ours.queries.len(), theirs.queries.len());
        let (templates_again, messages_again) = encode(&again, version);
        assert!(templates_again == templates, "{version:?}: {again:#?}");
        assert!(messages_again == messages, "{version:?}");
    }
}

#[test]
fn a_line_feed_in_a_message_is_written_as_mc_exe_writes_it() {
    let manifest = |message: &str| {
        let (start, rest) = SOUND.split_once("<string id=").unwrap();
        let (_, rest) = rest.split_once("/>").unwrap();
        let (id, _) = SOUND.split_once("<string id=\"").unwrap().1.split_once('"').unwrap();
        read(&format!("{start}<string id=\"{id}\" value=\"{message}\"/>{rest}")).unwrap()
    };
    let table = |message: &str| encode(&manifest(message), Version::V5).1;
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let expected = wide("1%n\r\n  2\r\n");
    for message in ["1%n&#xA;  2", "1%n&#xD;&#xA;  2"] {
        let table = table(message);
        assert!(table.windows(expected.len()).any(|found| found == expected), "{message}");
    }
}

#[test]
fn own_xml_is_read_without_its_white_space() {
    let manifest = read(SOUND).unwrap();
    let (templates, messages) = encode(&manifest, Version::V5);
    let again = decode(&templates, &messages).unwrap().manifest;
    let own = |manifest: &Manifest| {
        let templates = &manifest.providers[0].templates;
        let own = templates.iter().find_map(|one| one.user_data.as_ref());
        own.map(|element| element.name.clone())
    };
    assert_eq!(own(&again), own(&manifest));
    assert!(own(&again).is_some());
}

#[test]
fn cut_resources_are_refused_or_read_without_the_cut_parts() {
    let (templates, messages) = encode(&read(SOUND).unwrap(), Version::V5);
    // The last two bytes belong to no part.
    for length in 0..templates.len() - 2 {
        let read = decode(&templates[..length], &messages);
        assert!(read.is_err() || !read.unwrap().skipped.is_empty(), "{length}");
    }
}

/// Returns a resource whose providers use the same list of levels, with separate headers or one
/// common header.
fn shared_levels(providers: u32, levels: u32, one_header: bool) -> Vec<u8> {
    let mut bytes = b"CRIM".to_vec();
    let put = |bytes: &mut Vec<u8>, values: &[u32]| {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let headers = 16 + providers * 20;
    let list = headers + providers * 24;
    put(&mut bytes, &[0, 5, providers]);
    for number in 0..providers {
        let own = if one_header { 0 } else { number * 24 };
        put(&mut bytes, &[number, 0, 0, 0, headers + own]);
    }
    for _ in 0..providers {
        bytes.extend(b"WEVT");
        put(&mut bytes, &[0, u32::MAX, 1, 0, list]);
    }
    bytes.extend(b"LEVL");
    put(&mut bytes, &[0, levels]);
    let name = list + 12 + levels * 12;
    for level in 0..levels {
        put(&mut bytes, &[level, u32::MAX, name]);
    }
    put(&mut bytes, &[8, u32::from(b'L')]);
    bytes
}

#[test]
fn providers_cannot_repeat_the_same_list_endlessly() {
    let read = |bytes: &[u8]| decode(bytes, &[]).map(|read| read.manifest.providers.len());
    assert_eq!(read(&shared_levels(1, 100, true)), Ok(1));
    assert_eq!(read(&shared_levels(2, 100, false)), Ok(2));
    assert!(matches!(read(&shared_levels(2, 100, true)), Err(DecodeError::Reference { .. })));
    assert!(matches!(read(&shared_levels(700, 1000, false)), Err(DecodeError::Repetition(_))));
}

/// Other compilers write tokens that the reader does not support.
#[test]
fn damage_that_decoders_can_ignore_is_skipped() {
    let (templates, messages) = encode(&read(SOUND).unwrap(), Version::V5);
    let whole = decode(&templates, &messages).unwrap().manifest;
    let whole = &whole.providers[0];
    // The offsets where elements' content, an attribute's value and parts start.
    let fragment = find(&templates, b"\x0F\x01\x01\0").unwrap();
    for (tag, value) in [
        (fragment + find(&templates[fragment..], b"\x0D").unwrap(), 0x0E),
        (fragment + find(&templates[fragment..], b"\x05\x01").unwrap(), 0x0D),
        (find(&templates, b"QUER").unwrap(), b'X'),
        (find(&templates, b"FLTR").unwrap(), b'X'),
        (find(&templates, b"CHAN").unwrap(), b'X'),
        (find(&templates, b"VMAP").unwrap(), b'X'),
    ] {
        let mut bad = templates.clone();
        bad[tag] = value;
        let read = decode(&bad, &messages).unwrap();
        assert!(!read.skipped.is_empty(), "{tag}");
        let provider = &read.manifest.providers[0];
        assert_eq!(provider.events.len(), whole.events.len());
        assert_eq!(provider.templates.len(), whole.templates.len());
        for (ours, theirs) in provider.templates.iter().zip(&whole.templates) {
            assert_eq!(ours.properties.len(), theirs.properties.len());
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|here| here == wanted)
}

proptest! {
    #[test]
    fn damaged_resources_are_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let (mut templates, messages) = encode(&read(SOUND).unwrap(), Version::V5);
        for (at, value) in damage {
            let at = at.index(templates.len());
            templates[at] = value;
        }
        let _either = decode(&templates, &messages);
    }
}
