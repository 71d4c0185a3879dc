//! Reads arbitrary bytes as an image's resources: `WEVT_TEMPLATE`, then a message table.

use etl_file::internals::schema::{Count, Field, Length};
use etl_file::{Catalog, Guid, PointerSize};

use crate::text::sentence;

/// The contents of the first provider's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// True if the resources name the provider.
    pub named: bool,
    /// The number of the provider's events with low ids.
    pub events: usize,
    /// The number of the events' fields, including members of structures.
    pub fields: usize,
    /// The number of these fields with a map.
    pub maps: usize,
    /// The number of events with a message.
    pub messages: usize,
}

/// Checks that schemas from resources can decode user data, and that errors are sentences. The
/// first two bytes are the length of the first resource.
///
/// # Errors
/// Fails with the text of the error if the resources are rejected.
pub fn check(data: &[u8]) -> Result<Resources, String> {
    let Some((length, rest)) = data.split_first_chunk::<2>() else {
        return Err("there is no length".to_owned());
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (templates, messages) = rest.split_at(length);
    let mut catalog = Catalog::new();
    if let Err(error) = catalog.add_resources(templates, messages) {
        return Err(sentence(&error));
    }
    let mut known = Resources::default();
    // The GUID of the first provider, even if it is invalid.
    let guid = templates.get(16..32).and_then(|guid| guid.try_into().ok());
    let Some(provider) = guid.and_then(|guid| catalog.provider(Guid::from_bytes(guid))) else {
        return Ok(known);
    };
    known.named = !provider.name.is_empty();
    for (id, version) in (0..16).flat_map(|id| [(id, 0), (id, 1)]) {
        let Some(definition) = provider.event(id, version) else {
            continue;
        };
        let schema = &definition.schema;
        known.events += 1;
        known.messages += usize::from(definition.message.is_some());
        let names: Vec<&str> = schema.fields.iter().map(|field| &*field.name).collect();
        for field in &*schema.fields {
            check_sizes(field, &names);
            known.fields += 1 + field.fields.len();
            known.maps += usize::from(field.map.is_some());
        }
        let decoded = schema.decode(messages, PointerSize::Eight);
        assert!(decoded.fields.len() <= schema.fields.len());
        assert!(decoded.leftover.len() <= messages.len());
    }
    Ok(known)
}

/// Checks that counts and lengths refer to fields that exist.
fn check_sizes(field: &Field, names: &[&str]) {
    if let Count::Field(name) = &field.count {
        assert!(names.contains(&&**name) || !field.fields.is_empty() || !name.is_empty());
    }
    if let Length::Field(name) = &field.length {
        assert!(!names.is_empty() || name.is_empty());
    }
    for member in &field.fields {
        assert!(member.fields.is_empty(), "structures are not nested");
    }
}
