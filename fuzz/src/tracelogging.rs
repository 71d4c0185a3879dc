//! Reads arbitrary bytes as `TraceLogging` metadata followed by an event's user data.

use etl_file::internals::schema::{Count, Encoding, Field, InType, Presentation, Schema};
use etl_file::{Catalog, Event, EventRecord, ExtendedItem, decode, ext_type};

use crate::{payload, text::sentence, traits::offset};

/// The chain bit, which marks that another byte follows.
const CHAIN: u8 = 0x80;

/// The amounts of metadata and user data that could be decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The number of fields in the metadata.
    pub fields: usize,
    /// The number of these fields that the user data contains.
    pub decoded: usize,
    /// The number of remaining bytes of user data.
    pub leftover: usize,
}

/// Checks that metadata survives being written and read again, that the decoded user data can be
/// printed, and that errors are at offsets inside the input.
///
/// # Errors
/// Fails with the text of the error if the metadata is rejected.
pub fn check(data: &[u8]) -> Result<Described, String> {
    let schema = match Schema::parse_trace_logging(data) {
        Ok(schema) => schema,
        Err(error) => {
            assert!(offset(&error) <= data.len(), "{error}");
            return Err(sentence(&error));
        }
    };
    let size = usize::from(u16::from_le_bytes([data[0], data[1]]));
    let (metadata, user_data) = data.split_at(size);
    assert_eq!(Schema::parse_trace_logging(metadata).as_ref(), Ok(&schema));
    if let Some(again) = encode(&schema) {
        assert_eq!(Schema::parse_trace_logging(&again), Ok(schema.clone()));
    }
    payload::check(&schema, user_data);
    let event = event(metadata, user_data);
    let decoded = decode(&event, &Catalog::new());
    assert_eq!(decoded.event_name.as_deref(), Some(schema.event_name.as_str()));
    let alone = schema.decode(user_data, event.pointer_size);
    assert_eq!(decoded.leftover, alone.leftover);
    assert_eq!(decoded.fields.len(), alone.fields.len());
    let is_whole = alone.error.is_none() && alone.leftover.is_empty();
    assert_eq!(decoded.problems.is_empty(), is_whole);
    Ok(Described {
        fields: schema.fields.len(),
        decoded: alone.fields.len(),
        leftover: alone.leftover.len(),
    })
}

/// Returns an event with this metadata and user data.
fn event(metadata: &[u8], user_data: &[u8]) -> Event {
    Event {
        record: EventRecord {
            extended: vec![ExtendedItem {
                ext_type: ext_type::EVENT_SCHEMA_TL,
                data: metadata.to_vec(),
            }],
            user_data: user_data.to_vec(),
            ..EventRecord::default()
        },
        ..Event::default()
    }
}

/// Returns a schema's metadata, or `None` if it is too long: replacement characters can lengthen
/// names.
fn encode(schema: &Schema) -> Option<Vec<u8>> {
    let mut blob = vec![0, 0];
    encode_tags(schema.tags, &mut blob);
    blob.extend(schema.event_name.as_bytes());
    blob.push(0);
    for field in &*schema.fields {
        encode_field(field, &mut blob);
    }
    let size = u16::try_from(blob.len()).ok()?;
    blob[..2].copy_from_slice(&size.to_le_bytes());
    Some(blob)
}

/// Writes 28 bits in four bytes, most significant bits first.
fn encode_tags(tags: u32, blob: &mut Vec<u8>) {
    for (shift, more) in [(21, CHAIN), (14, CHAIN), (7, CHAIN), (0, 0)] {
        let bits = u8::try_from(tags >> shift & 0x7F).expect("seven bits");
        blob.push(bits | more);
    }
}

fn encode_field(field: &Field, blob: &mut Vec<u8>) {
    blob.extend(field.name.as_bytes());
    blob.push(0);
    let count = match field.count {
        Count::Scalar => 0,
        Count::Fixed(_) => 0x20,
        Count::Variable => 0x40,
        Count::Custom(_) => 0x60,
        Count::Field(_) => panic!("metadata has no such count"),
    };
    blob.push(in_code(field.in_type) | count | CHAIN);
    let out = if field.in_type == Encoding::Known(InType::Struct) {
        u8::try_from(field.fields.len()).expect("a structure can have at most 127 members")
    } else {
        out_code(field.out_type)
    };
    blob.push(out | CHAIN);
    encode_tags(field.tags, blob);
    match &field.count {
        Count::Fixed(count) => blob.extend(count.to_le_bytes()),
        Count::Custom(bytes) => {
            let size = u16::try_from(bytes.len()).expect("it was read after its size");
            blob.extend(size.to_le_bytes());
            blob.extend(bytes);
        }
        _ => {}
    }
    for member in &field.fields {
        encode_field(member, blob);
    }
}

/// Returns the code of an encoding.
fn in_code(in_type: Encoding) -> u8 {
    (0..32).find(|code| Encoding::from_code(*code) == in_type).expect("it was read from a code")
}

/// Returns a code of a presentation.
fn out_code(out_type: Presentation) -> u8 {
    (0..128)
        .find(|code| Presentation::from_trace_logging(*code) == out_type)
        .expect("it was read from a code")
}
