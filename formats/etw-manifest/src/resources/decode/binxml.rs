//! Reads binary XML, in the variant with inline names.

use super::{bytes::Bytes, error::DecodeError, limits::Limits};
use crate::model::{Element, Node};

/// The maximum nesting of elements.
const MAX_DEPTH: usize = 32;
const FRAGMENT: [u8; 4] = [0x0F, 1, 1, 0];
/// The flag of an element with attributes, or of an attribute that is not the last.
const MORE: u8 = 0x40;
const WHAT: &str = "template's XML";

/// Reads the element of the fragment at `at`, if there is one. Drops white space; `%1` stands for
/// the first field.
pub fn read(
    bytes: Bytes<'_>,
    at: usize,
    limits: &mut Limits,
) -> Result<Option<Element>, DecodeError> {
    if bytes.tag(at, FRAGMENT).is_err() {
        return Ok(None);
    }
    let mut cursor = Cursor { bytes, at: at + FRAGMENT.len(), limits };
    cursor.element(MAX_DEPTH).map(Some)
}

struct Cursor<'a> {
    bytes: Bytes<'a>,
    at: usize,
    limits: &'a mut Limits,
}

impl Cursor<'_> {
    const fn bad(&self) -> DecodeError {
        DecodeError::Reference { what: WHAT, offset: self.at }
    }

    fn token(&mut self) -> Result<u8, DecodeError> {
        let token = self.bytes.u8(self.at, WHAT)?;
        self.at += 1;
        Ok(token)
    }

    /// Reads a token, which must be of a given kind, and returns whether more follows.
    fn expect(&mut self, wanted: u8) -> Result<bool, DecodeError> {
        let bad = self.bad();
        let token = self.token()?;
        if token & !MORE == wanted { Ok(token & MORE != 0) } else { Err(bad) }
    }

    fn units(&mut self) -> Result<String, DecodeError> {
        let count = usize::from(self.bytes.u16(self.at, WHAT)?);
        let text = self.bytes.text(self.at + 2, count * 2, WHAT)?;
        self.at += 2 + count * 2;
        self.limits.text(text)
    }

    /// Reads a name: a hash, the characters and a NUL.
    fn name(&mut self) -> Result<String, DecodeError> {
        self.at += 2;
        let name = self.units()?;
        self.at += 2;
        Ok(name)
    }

    fn element(&mut self, depth: usize) -> Result<Element, DecodeError> {
        const OPEN: u8 = 1;
        const CLOSE_START: u8 = 2;
        const END: u8 = 4;
        const SUBSTITUTION: u8 = 0x0D;
        const SUBSTITUTION_SIZE: usize = 4;
        const SIZE: usize = 4;
        let deeper = depth.checked_sub(1).ok_or_else(|| self.bad())?;
        self.limits.fields(1)?;
        let has_attributes = self.expect(OPEN)?;
        self.at += 2 + SIZE;
        let mut element = Element { name: self.name()?, ..Element::default() };
        if has_attributes {
            self.at += SIZE;
            while self.attribute(&mut element)? {}
        }
        self.expect(CLOSE_START)?;
        loop {
            match self.bytes.u8(self.at, WHAT)? {
                END => break,
                SUBSTITUTION => {
                    self.limits.list(SUBSTITUTION_SIZE)?;
                    let field = u32::from(self.bytes.u16(self.at + 1, WHAT)?) + 1;
                    element.nodes.push(Node::Text(format!("%{field}")));
                    self.at += SUBSTITUTION_SIZE;
                }
                _ => element.nodes.push(Node::Element(self.element(deeper)?)),
            }
        }
        self.at += 1;
        Ok(element)
    }

    /// Reads an attribute, and returns whether another one follows.
    fn attribute(&mut self, element: &mut Element) -> Result<bool, DecodeError> {
        const ATTRIBUTE: u8 = 6;
        const VALUE: [u8; 2] = [5, 1];
        const LEAST_SIZE: usize = 11;
        self.limits.list(LEAST_SIZE)?;
        let more = self.expect(ATTRIBUTE)?;
        let key = self.name()?;
        if self.bytes.slice(self.at, VALUE.len(), WHAT)? != VALUE {
            return Err(self.bad());
        }
        self.at += VALUE.len();
        let value = self.units()?;
        element.attributes.push((key, value));
        Ok(more)
    }
}
