//! Writes a template's XML as binary XML, in the variant with inline names.

use std::num::TryFromIntError;

use super::bytes::Bytes;
use crate::model::{Element, Node};

const FRAGMENT: [u8; 4] = [0x0F, 1, 1, 0];
const OPEN_ELEMENT: u8 = 0x01;
const CLOSE_START: u8 = 0x02;
const END_ELEMENT: u8 = 0x04;
const VALUE: u8 = 0x05;
const ATTRIBUTE: u8 = 0x06;
const SUBSTITUTION: u8 = 0x0D;
const END: u8 = 0x00;
/// The flag of an element with attributes, or of an attribute that is not the last.
const MORE: u8 = 0x40;
const STRING: u8 = 1;
const NO_DEPENDENCY: u16 = 0xFFFF;

/// Writes the fragment of an element; `types` holds the types of the template's fields.
pub fn fragment(root: &Element, types: &[u8]) -> Result<Vec<u8>, TryFromIntError> {
    let mut out = Bytes::default();
    out.slice(&FRAGMENT);
    element(root, types, &mut out)?;
    out.u8(END);
    out.align(4);
    Ok(out.0)
}

fn element(node: &Element, types: &[u8], out: &mut Bytes) -> Result<(), TryFromIntError> {
    let has_attributes = !node.attributes.is_empty();
    out.u8(OPEN_ELEMENT | if has_attributes { MORE } else { 0 });
    out.u16(NO_DEPENDENCY);
    let size = out.reserve(4);
    name(&node.name, out)?;
    if has_attributes {
        let list = out.reserve(4);
        let end = node.attributes.len() - 1;
        for (at, (key, value)) in node.attributes.iter().enumerate() {
            out.u8(ATTRIBUTE | if at == end { 0 } else { MORE });
            // Names in binary XML have no prefix.
            let local = key.split_once(':').map_or(key.as_str(), |(_, local)| local);
            name(local, out)?;
            out.u8(VALUE);
            out.u8(STRING);
            out.u16(u16::try_from(value.encode_utf16().count())?);
            out.utf16(value);
        }
        out.put_length(list, list + 4)?;
    }
    out.u8(CLOSE_START);
    for inner in &node.nodes {
        match inner {
            Node::Element(inner) => element(inner, types, out)?,
            Node::Text(text) => {
                if let Some(field) = field_of(text)
                    && let Some(kind) = types.get(usize::from(field))
                {
                    out.u8(SUBSTITUTION);
                    out.u16(field);
                    out.u8(*kind);
                }
            }
        }
    }
    out.u8(END_ELEMENT);
    out.put_length(size, size + 4)
}

/// Returns the index of the field that a string such as `%1` stands for, counting from 0.
#[must_use]
pub fn field_of(text: &str) -> Option<u16> {
    let (_, after) = text.split_once('%')?;
    let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    after[..digits].parse::<u16>().ok()?.checked_sub(1)
}

fn name(text: &str, out: &mut Bytes) -> Result<(), TryFromIntError> {
    out.u16(hash(text));
    out.u16(u16::try_from(text.encode_utf16().count())?);
    out.zero_terminated(text);
    Ok(())
}

/// Returns the hash that readers use to find names.
fn hash(text: &str) -> u16 {
    const FACTOR: u32 = 65599;
    let whole = text
        .encode_utf16()
        .fold(0_u32, |hash, unit| hash.wrapping_mul(FACTOR).wrapping_add(u32::from(unit)));
    u16::try_from(whole & 0xFFFF).unwrap_or_default()
}

/// Returns the XML in the textual form that is hashed for a template's GUID.
pub fn text(root: &Element) -> String {
    let mut out = String::new();
    write(root, true, &mut out);
    out
}

fn escape(text: &str, in_attribute: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' if in_attribute => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
}

fn write(node: &Element, is_root: bool, out: &mut String) {
    out.push('<');
    out.push_str(&node.name);
    for (key, value) in &node.attributes {
        out.push(' ');
        out.push_str(key);
        out.push_str("=\"");
        escape(value, true, out);
        out.push('"');
    }
    if node.nodes.is_empty() {
        out.push_str(if is_root { "/>" } else { " />" });
        return;
    }
    out.push('>');
    for inner in &node.nodes {
        match inner {
            Node::Element(inner) => write(inner, false, out),
            Node::Text(text) => escape(text, false, out),
        }
    }
    out.push_str("</");
    out.push_str(&node.name);
    out.push('>');
}
