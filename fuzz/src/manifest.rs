//! Reads arbitrary bytes as a manifest.

use etl_file::{Catalog, Guid};
use etw_manifest::{self as manifest, ManifestError};

use crate::{
    payload,
    text::{assert_sentence, sentence},
};

/// The user data that every event of the manifest is decoded with: small counts and lengths, text
/// and zeros.
const USER_DATA: &[u8] = b"\x02\0\0\0\x01\0\0\0a\0b\0\0\0text\0\x04\0\0\0\0\0\0\0\x03\x00\xFF\xFE\x01\x02\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The numbers of a manifest's providers, events and decodable events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The number of GUIDs in the text that identify a provider, as its GUID or its control GUID.
    pub providers: usize,
    /// The number of the providers' events.
    pub events: usize,
    /// The number of events that decode completely with `USER_DATA`.
    pub decoded: usize,
}

/// Checks that each error gives a location in the text, that the location does not depend on the
/// text's encoding, and that the events can be decoded.
///
/// # Errors
/// Fails with the text of the error if the manifest is rejected.
pub fn check(data: &[u8]) -> Result<Known, String> {
    let Some(text) = manifest::text(data) else {
        return Err("the bytes are not text".to_owned());
    };
    let mut utf16 = vec![0xFF, 0xFE];
    utf16.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(manifest::text(&utf16).as_ref(), Some(&text));
    let mut catalog = Catalog::new();
    match catalog.add(&text) {
        Ok(skipped) => {
            for one in &skipped {
                assert_sentence(one);
                check_place(&one.why, &text);
            }
            let mut again = catalog.clone();
            assert_eq!(again.add(&text), Ok(skipped), "it replaces what is known");
            let mut known = Known::default();
            for guid in guids(&text) {
                decode_events(&catalog, guid, &mut known);
            }
            Ok(known)
        }
        Err(error) => {
            check_place(&error, &text);
            for guid in guids(&text) {
                assert!(catalog.provider(guid).is_none(), "{guid} is half read");
            }
            Err(sentence(&error))
        }
    }
}

/// Checks that the location of an error is in the text.
fn check_place(error: &ManifestError, text: &str) {
    let row = error.at.line.checked_sub(1).expect("lines count from 1");
    let line = text.split('\n').nth(row).expect("the text has the line");
    assert!(
        (1..=line.chars().count() + 1).contains(&error.at.column),
        "{error} is not in {line:?}"
    );
}

/// Returns all parts of the text that could be a provider's GUID.
fn guids(text: &str) -> Vec<Guid> {
    let quoted = text.split(['"', '\'']);
    quoted.filter_map(|text| text.parse().ok()).collect()
}

/// Decodes a provider's events with low ids.
fn decode_events(catalog: &Catalog, guid: Guid, known: &mut Known) {
    let Some(provider) = catalog.provider(guid) else {
        return;
    };
    known.providers += 1;
    assert!(provider.guid == guid || provider.control_guid == Some(guid));
    for (id, version) in (0..64).flat_map(|id| [(id, 0), (id, 1)]) {
        let definition = provider.event(id, version);
        let schema = definition.map(|definition| &definition.schema);
        assert_eq!(schema, catalog.schema(guid, id, version));
        if let Some(schema) = schema {
            known.events += 1;
            known.decoded += usize::from(payload::check(schema, USER_DATA));
            payload::check(schema, &[]);
        }
    }
}
