//! Writes the resources that decoders read.
//!
//! This encoder deliberately shares no code with the decoder of these formats, so that tests can
//! check one against the other. Both follow `docs/reference/decoding-resources.md`.

mod attributes;
mod binxml;
mod bytes;
mod error;
mod events;
mod language;
mod lists;
mod messages;
mod template;
mod wevt;

use super::version::Version;
use crate::{
    model::Manifest,
    res::{ENGLISH, MESSAGE_TABLE, Name, Resource, WEVT_TEMPLATE},
};

pub use attributes::attributes;
pub use binxml::field_of;
pub use error::EncodeError;
pub use messages::{NONE as NO_MESSAGE, message_ids};

/// Returns the bytes of a manifest's `WEVT_TEMPLATE` resource in a version of the format.
///
/// # Errors
///
/// Fails with [`EncodeError::TooLarge`] if a size does not fit in the format.
pub fn wevt_template(manifest: &Manifest, version: Version) -> Result<Vec<u8>, EncodeError> {
    wevt::encode(manifest, &message_ids(manifest), version)
}

/// Returns the bytes of the message table (`MESSAGE_RESOURCE_DATA`) in the manifest's first
/// language, or `None` if there are no strings.
///
/// # Errors
///
/// Fails with [`EncodeError::TooLarge`] if a size does not fit in the format.
pub fn message_table(manifest: &Manifest) -> Result<Option<Vec<u8>>, EncodeError> {
    messages::table(manifest, &message_ids(manifest))
}

/// Returns both resources for an image, with a message table for each language.
///
/// # Errors
///
/// Fails with [`EncodeError`] if a size does not fit in the format or a language is unknown.
pub fn resources(manifest: &Manifest) -> Result<Vec<Resource>, EncodeError> {
    let ids = message_ids(manifest);
    let table = |culture: &str, data: Option<Vec<u8>>| {
        let unknown = || EncodeError::Language(culture.to_owned());
        data.map(|data| {
            Ok::<_, EncodeError>(Resource {
                kind: MESSAGE_TABLE,
                name: Name::Id(1),
                language: language::number(culture).ok_or_else(unknown)?,
                data,
            })
        })
        .transpose()
    };
    // A manifest without strings has only winmeta.xml's strings, which are English.
    let first = if manifest.culture.is_empty() { "en-US" } else { &manifest.culture };
    let mut resources = Vec::new();
    resources.extend(table(first, message_table(manifest)?)?);
    for translation in &manifest.translations {
        let data = messages::translated(manifest, translation, &ids)?;
        resources.extend(table(&translation.culture, data)?);
    }
    resources.push(Resource {
        kind: WEVT_TEMPLATE,
        name: Name::Id(1),
        language: ENGLISH,
        data: wevt_template(manifest, Version::V5)?,
    });
    Ok(resources)
}
