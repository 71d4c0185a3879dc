//! The state of the reader of one provider, and the kinds of entries that are common to all lists.
//!
//! All offsets count from the resource's start.

use std::collections::HashMap;

use etw_wire::{Guid, winmeta};

use super::{bytes::Bytes, error::DecodeError, limits::Limits};
use crate::model::{Provider, QName, TextRef};

/// The maximum number of skipped parts to report for a provider.
const MAX_REPORTS: usize = 16;

/// The indexes of a list's items, by offset.
pub type Places = HashMap<usize, usize>;

/// Reads one provider.
pub struct Reader<'a> {
    pub bytes: Bytes<'a>,
    texts: &'a HashMap<u32, TextRef>,
    pub limits: &'a mut Limits,
    pub provider: Provider,
    /// The reasons why parts were skipped.
    pub skipped: Vec<DecodeError>,
    pub channels: Places,
    pub levels: Places,
    pub tasks: Places,
    pub opcodes: Places,
    pub keywords: Places,
    pub maps: Places,
    pub templates: Places,
}

impl<'a> Reader<'a> {
    pub fn new(
        bytes: Bytes<'a>,
        texts: &'a HashMap<u32, TextRef>,
        limits: &'a mut Limits,
        guid: Guid,
    ) -> Self {
        Self {
            bytes,
            texts,
            limits,
            provider: Provider { guid, ..Provider::default() },
            skipped: Vec::new(),
            channels: Places::new(),
            levels: Places::new(),
            tasks: Places::new(),
            opcodes: Places::new(),
            keywords: Places::new(),
            maps: Places::new(),
            templates: Places::new(),
        }
    }

    /// Reports damage in a part that is not needed to decode events, and returns `None`. Exceeded
    /// limits are errors even in such parts.
    pub fn tolerate<T>(&mut self, part: Result<T, DecodeError>) -> Result<Option<T>, DecodeError> {
        match part {
            Ok(part) => Ok(Some(part)),
            Err(error) if error.is_limit() => Err(error),
            Err(error) => {
                if self.skipped.len() < MAX_REPORTS && !self.skipped.contains(&error) {
                    self.skipped.push(error);
                }
                Ok(None)
            }
        }
    }

    /// Returns the offsets of a list's entries, and deducts their size from the limits.
    pub fn list(
        &mut self,
        at: usize,
        tag: [u8; 4],
        size: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = usize> + use<>, DecodeError> {
        self.bytes.tag(at, tag)?;
        let count = self.bytes.place(at + 8, what)?;
        self.entries(at + 12, count, size, what)
    }

    /// Returns the offsets of fixed-size entries, and deducts their size from the limits.
    pub fn entries(
        &mut self,
        start: usize,
        count: usize,
        size: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = usize> + use<>, DecodeError> {
        let entries = self.bytes.entries(start, count, size, what)?;
        // The entries are inside the resource, so the product cannot overflow.
        self.limits.list(count * size)?;
        Ok(entries)
    }

    /// Returns the string for the message id at `offset`, if there is one.
    pub fn message(
        &self,
        offset: usize,
        what: &'static str,
    ) -> Result<Option<TextRef>, DecodeError> {
        let id = self.bytes.u32(offset, what)?;
        Ok(self.texts.get(&id).copied())
    }

    /// Reads the name whose offset is stored at this offset.
    pub fn name(&mut self, offset: usize, what: &'static str) -> Result<String, DecodeError> {
        let place = self.bytes.place(offset, what)?;
        let name = self.bytes.sized_text(place, what)?;
        self.limits.text(name)
    }

    /// Reads a name; names from winmeta.xml start with `win:`.
    pub fn qualified(&mut self, offset: usize, what: &'static str) -> Result<QName, DecodeError> {
        let written = self.name(offset, what)?;
        let namespace = if written.starts_with("win:") { winmeta::NAMESPACE } else { "" };
        Ok(QName { written, namespace: namespace.to_owned() })
    }
}
