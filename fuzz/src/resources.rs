//! Any bytes as the resources of an image: `WEVT_TEMPLATE`, and then a message table.

use etl_file::{
    Catalog, Guid,
    decode::{Count, Field, Length},
    read::PointerSize,
};

use crate::text::assert_sentence;

/// The first two bytes say how long the first resource is. What a resource says can be used
/// to decode, and what it cannot say is told.
pub fn check(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (templates, messages) = rest.split_at(length);
    let mut catalog = Catalog::new();
    if let Err(error) = catalog.add_resources(templates, messages) {
        assert_sentence(&error);
        return;
    }
    // The GUID of the first provider, whatever it is.
    let guid = templates.get(16..32).and_then(|guid| guid.try_into().ok());
    let Some(guid) = guid.map(Guid::from_bytes) else {
        return;
    };
    for id in 0..16 {
        let Some(schema) = catalog.schema(guid, id, 0) else {
            continue;
        };
        let names: Vec<&str> = schema.fields.iter().map(|field| &*field.name).collect();
        for field in &*schema.fields {
            check_sizes(field, &names);
        }
        let decoded = schema.decode(messages, PointerSize::Eight);
        assert!(decoded.fields.len() <= schema.fields.len());
        assert!(decoded.leftover.len() <= messages.len());
    }
}

/// Sizes are those of fields that have names.
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
