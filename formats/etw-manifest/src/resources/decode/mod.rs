//! Reads the resources that decoders use: `WEVT_TEMPLATE` and the message table.
//!
//! This reader deliberately shares neither code nor constants with the encoder, so that tests can
//! check one against the other. Both follow `docs/reference/decoding-resources.md`.
//!
//! The bytes are untrusted. An inconsistency is an error that contains its offset, and the amount
//! of data that a resource can describe is limited.

mod binxml;
mod bytes;
mod error;
mod filters;
mod limits;
mod lists;
mod messages;
mod provider;
mod reader;
mod template;

use std::collections::{HashMap, HashSet};

use etw_wire::Guid;

use super::version::Version;
use crate::model::{Manifest, Text, TextRef};

use bytes::Bytes;
pub use error::DecodeError;
use limits::Limits;
use reader::Reader;

/// The id that means "no message".
const NO_MESSAGE: u32 = u32::MAX;
/// The providers that an image's resources describe.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The providers and their strings. Symbols, template names and languages are empty, because
    /// resources do not contain them.
    pub manifest: Manifest,
    /// The format's version, 3 or 5.
    pub version: Version,
    /// Damage in parts that were skipped because they are not needed to decode events: queries,
    /// filters, channels, maps and the XML of templates.
    pub skipped: Vec<DecodeError>,
}

/// Reads the bytes of a `WEVT_TEMPLATE` resource, and the strings in the bytes of a message table
/// (`MESSAGE_RESOURCE_DATA`), which may be empty.
///
/// References to missing list entries and messages are ignored, because an event can be decoded
/// without its names.
///
/// # Errors
///
/// Fails with a [`DecodeError`] that describes the inconsistency and gives its offset.
pub fn decode(templates: &[u8], message_table: &[u8]) -> Result<Decoded, DecodeError> {
    let mut manifest = Manifest::default();
    let mut texts: HashMap<u32, TextRef> = HashMap::new();
    if !message_table.is_empty() {
        for (id, value) in messages::read(message_table)? {
            texts.insert(id, manifest.texts.len());
            manifest.texts.push(Text {
                id: format!("{id:#010x}"),
                value,
                message_id: Some(id),
                ..Text::default()
            });
        }
    }
    texts.remove(&NO_MESSAGE);
    let bytes = Bytes::new("WEVT_TEMPLATE", templates);
    bytes.tag(0, *b"CRIM")?;
    let version = match (bytes.u16(8, "version")?, bytes.u16(10, "version")?) {
        (3, _) => Version::V3,
        (5, _) => Version::V5,
        (major, minor) => return Err(DecodeError::Version(major, minor)),
    };
    let mut limits = Limits::new(templates.len());
    let mut skipped = Vec::new();
    let mut known = HashSet::new();
    let count = bytes.place(12, "number of providers")?;
    for entry in bytes.entries(16, count, 20, "providers")? {
        let guid = Guid::from_bytes(bytes.guid(entry, "provider")?);
        let at = bytes.place(entry + 16, "provider")?;
        // Providers do not share lists; otherwise, the same lists could be read without limit.
        if !known.insert(at) {
            return Err(DecodeError::Reference { what: "second provider", offset: entry });
        }
        let mut reader = Reader::new(bytes, &texts, &mut limits, guid);
        reader.read(at)?;
        skipped.append(&mut reader.skipped);
        manifest.providers.push(reader.provider);
    }
    Ok(Decoded { manifest, version, skipped })
}
