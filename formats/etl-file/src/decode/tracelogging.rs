//! `TraceLogging` event metadata, extended item type 11.
//!
//! The encoder in `wdk-etw-schema` (`provider-lib/schema/src/tracelogging.rs`) shares no code with
//! this decoder, so that tests can compare the two.

use std::sync::Arc;

use super::error::{MetadataError, sized_block};
use etw_wire::InType;

use super::schema::{Count, Encoding, Field, Length, Presentation, Schema};
use crate::cursor::Cursor;

/// The maximum nesting of structures; deeper metadata is treated as damaged.
const MAX_DEPTH: usize = 32;

/// `InMeta`: an `OutMeta` byte follows.
const CHAIN: u8 = 0x80;
/// `InMeta`: the kind of array.
const COUNT_MASK: u8 = 0x60;
/// `InMeta`: an array whose count follows in the metadata.
const COUNT_FIXED: u8 = 0x20;
/// `InMeta`: an array whose count precedes the values in the data.
const COUNT_VARIABLE: u8 = 0x40;
/// `InMeta`: the encoding.
const TYPE_MASK: u8 = 0x1F;

impl Schema {
    /// Reads event metadata: size, tags, event name, fields.
    ///
    /// # Errors
    /// Fails with [`MetadataError`] if the block or one of its parts is damaged.
    pub fn parse_trace_logging(blob: &[u8]) -> Result<Self, MetadataError> {
        match Self::read_trace_logging(blob) {
            (Some(schema), None) => Ok(schema),
            (_, error) => Err(error.unwrap_or(MetadataError::Size { size: 0, present: 0 })),
        }
    }

    /// Reads event metadata, and also returns any damage. There is a schema if the event's name can
    /// be read; in damaged metadata, it has no fields.
    pub(super) fn read_trace_logging(blob: &[u8]) -> (Option<Self>, Option<MetadataError>) {
        let (blob, mut error) = match sized_block(blob) {
            Ok(block) => (block, None),
            Err(error) => (blob, Some(error)),
        };
        let mut c = Cursor::new(blob);
        c.take(2);
        let (tags, event_name) = match tags(&mut c).and_then(|tags| Ok((tags, name(&mut c)?))) {
            Ok(read) => read,
            Err(damage) => return (None, error.or(Some(damage))),
        };
        let mut fields = Vec::new();
        while !c.is_empty() {
            match field(&mut c, 0) {
                Ok(field) => fields.push(field),
                Err(damage) => {
                    error.get_or_insert(damage);
                    break;
                }
            }
        }
        if error.is_some() {
            fields.clear();
        }
        (Some(Self { event_name: event_name.to_string(), tags, fields: fields.into() }), error)
    }
}

/// Reads tags: seven bits in each byte, most significant first; the top bit means that another byte
/// follows. Tags are 28 bits wide; bytes after the fourth are ignored.
fn tags(c: &mut Cursor<'_>) -> Result<u32, MetadataError> {
    let offset = c.position();
    let mut tags = 0;
    let mut shift = 21_u32;
    let mut room = true;
    loop {
        let byte = c.u8().ok_or(MetadataError::Overrun { offset, what: "tag" })?;
        if room {
            tags |= u32::from(byte & !CHAIN) << shift;
        }
        if byte & CHAIN == 0 {
            return Ok(tags);
        }
        (shift, room) = shift.checked_sub(7).map_or((0, false), |s| (s, room));
    }
}

fn name(c: &mut Cursor<'_>) -> Result<Arc<str>, MetadataError> {
    let offset = c.position();
    c.until_nul()
        .map(|bytes| String::from_utf8_lossy(bytes).into())
        .ok_or(MetadataError::UnterminatedName { offset })
}

fn field(c: &mut Cursor<'_>, depth: usize) -> Result<Field, MetadataError> {
    let offset = c.position();
    let overrun = MetadataError::Overrun { offset, what: "field" };
    let name = name(c)?;
    let in_meta = c.u8().ok_or(overrun)?;
    let mut out_meta = None;
    let mut field_tags = 0;
    if in_meta & CHAIN != 0 {
        let byte = c.u8().ok_or(overrun)?;
        if byte & CHAIN != 0 {
            field_tags = tags(c)?;
        }
        out_meta = Some(byte & !CHAIN);
    }
    let count = match in_meta & COUNT_MASK {
        0 => Count::Scalar,
        COUNT_FIXED => Count::Fixed(c.u16().ok_or(overrun)?),
        COUNT_VARIABLE => Count::Variable,
        _ => {
            let size = c.u16().ok_or(overrun)?;
            Count::Custom(c.take(usize::from(size)).ok_or(overrun)?.to_vec())
        }
    };
    let in_type = Encoding::from_code(in_meta & TYPE_MASK);
    let is_struct = in_type == Encoding::Known(InType::Struct);
    let mut fields = Vec::new();
    if is_struct {
        if depth == MAX_DEPTH {
            return Err(MetadataError::TooDeep { offset });
        }
        let members = out_meta.ok_or(MetadataError::StructWithoutCount { offset })?;
        for _ in 0..members {
            fields.push(field(c, depth + 1)?);
        }
    }
    let out_type = match out_meta {
        Some(code) if !is_struct => Presentation::from_trace_logging(code),
        _ => Presentation::Default,
    };
    Ok(Field {
        name,
        in_type,
        out_type,
        count,
        length: Length::Natural,
        tags: field_tags,
        map: None,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::schema::plain;

    /// The example in the format's documentation: a scalar, an out type, both
    /// kinds of arrays and a structure.
    const EVT: [u8; 46] = *b"\x2E\0\0Evt\0count\0\x08status\0\x88\x0Edata\0\x44\
        S\0\x98\x02a\0\x07b\0\x16fix\0\x26\x03\0";

    // R-O5
    #[test]
    fn every_form_of_a_field_is_read() {
        let schema = Schema::parse_trace_logging(&EVT).unwrap();
        let expected = Schema {
            event_name: "Evt".to_owned(),
            tags: 0,
            fields: vec![
                plain("count", InType::UInt32),
                Field { out_type: Presentation::NtStatus, ..plain("status", InType::UInt32) },
                Field { count: Count::Variable, ..plain("data", InType::UInt8) },
                Field {
                    fields: vec![
                        plain("a", InType::Int32),
                        plain("b", InType::CountedUnicodeString),
                    ],
                    ..plain("S", InType::Struct)
                },
                Field { count: Count::Fixed(3), ..plain("fix", InType::UInt16) },
            ]
            .into(),
        };
        assert_eq!(schema, expected);
    }

    #[test]
    fn every_cut_of_the_metadata_is_refused() {
        for length in 0..EVT.len() {
            let cut = EVT.get(..length).unwrap();
            assert!(Schema::parse_trace_logging(cut).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn tags_have_28_bits_most_significant_first() {
        let event = |tags: &[u8]| {
            let size = u8::try_from(tags.len() + 4).unwrap();
            let blob = [&[size, 0], tags, b"E\0"].concat();
            Schema::parse_trace_logging(&blob).unwrap().tags
        };
        assert_eq!(event(&[0x00]), 0);
        assert_eq!(event(&[0x12]), 0x0240_0000);
        assert_eq!(event(&[0x81, 0x01]), 0x0020_4000);
        assert_eq!(event(&[0xFF, 0xFF, 0xFF, 0x7F]), 0x0FFF_FFFF);
        assert_eq!(event(&[0x80, 0x80, 0x80, 0x81, 0x7F]), 1);
    }

    #[test]
    fn field_tags_and_custom_encodings_are_read() {
        let blob = b"\x11\0\0E\0f\0\x88\x84\x05g\0\x68\x02\0xy";
        let schema = Schema::parse_trace_logging(blob).unwrap();
        let expected = [
            Field { out_type: Presentation::Hex, tags: 5 << 21, ..plain("f", InType::UInt32) },
            Field { count: Count::Custom(b"xy".to_vec()), ..plain("g", InType::UInt32) },
        ];
        assert_eq!(*schema.fields, expected);
    }

    #[test]
    fn structure_without_members_to_come_is_refused() {
        let blob = b"\x0B\0\0E\0S\0\x18a\0\x07";
        assert_eq!(
            Schema::parse_trace_logging(blob),
            Err(MetadataError::StructWithoutCount { offset: 5 })
        );
        let blob = b"\x09\0\0E\0S\0\x98\x01";
        assert_eq!(
            Schema::parse_trace_logging(blob),
            Err(MetadataError::UnterminatedName { offset: 9 })
        );
    }

    #[test]
    fn endless_nesting_is_refused() {
        let nest: Vec<u8> = b"\0\x98\x01".repeat(10_000);
        let size = u16::try_from(nest.len() + 5).unwrap().to_le_bytes();
        let blob = [&size[..], b"\0E\0", &nest].concat();
        assert_eq!(
            Schema::parse_trace_logging(&blob),
            Err(MetadataError::TooDeep { offset: 5 + 3 * MAX_DEPTH })
        );
    }
}
