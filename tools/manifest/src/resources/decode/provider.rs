//! Reads a provider of a `WEVT_TEMPLATE` resource: its lists and its events.
//!
//! All offsets count from the resource's start.

use std::collections::{BTreeMap, HashMap};

use etw_wire::{Guid, winmeta};

use super::{bytes::Bytes, error::DecodeError, limits::Limits};
use crate::model::{Event, Provider, QName, TextRef};

/// The parts of a provider, by their types.
const LEVELS: u32 = 0;
const TASKS: u32 = 1;
const OPCODES: u32 = 2;
const KEYWORDS: u32 = 3;
const EVENTS: u32 = 4;
const CHANNELS: u32 = 5;
const MAPS: u32 = 6;
const TEMPLATES: u32 = 7;
const QUERIES: u32 = 8;
const FILTERS: u32 = 9;
const EVENT_ATTRIBUTES: u32 = 12;
const PROVIDER_ATTRIBUTES: u32 = 13;

/// The maximum number of reported skipped parts of a provider.
const MAX_REPORTS: usize = 16;

/// The indexes of a list's items, by their offsets.
pub type Places = HashMap<usize, usize>;

/// Reads the list at an offset.
type ReadList<'a> = fn(&mut Reader<'a>, usize) -> Result<(), DecodeError>;

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
            provider: Provider {
                guid,
                ..Provider::default()
            },
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

    pub fn read(&mut self, at: usize) -> Result<(), DecodeError> {
        let bytes = self.bytes;
        bytes.tag(at, *b"WEVT")?;
        self.provider.message = self.message(at + 8, "provider")?;
        let count = bytes.place(at + 12, "number of parts")?;
        let mut parts = BTreeMap::new();
        for part in self.entries(at + 16, count, 8, "parts")? {
            let kind = bytes.u32(part, "part")?;
            let place = bytes.place(part + 4, "part")?;
            // Version 3 has entries for missing parts.
            if place != 0 {
                parts.insert(kind, place);
            }
        }
        // Items are read before the items that refer to them.
        let order: [(u32, ReadList<'a>); 12] = [
            (LEVELS, Self::levels),
            (TASKS, Self::tasks),
            (OPCODES, Self::opcodes),
            (KEYWORDS, Self::keywords),
            (CHANNELS, Self::channels),
            (MAPS, Self::maps),
            (TEMPLATES, Self::templates),
            (QUERIES, Self::queries),
            (FILTERS, Self::filters),
            (EVENTS, Self::events),
            (EVENT_ATTRIBUTES, Self::event_attributes),
            (PROVIDER_ATTRIBUTES, Self::provider_attributes),
        ];
        for (kind, read) in order {
            let Some(place) = parts.get(&kind) else {
                continue;
            };
            let done = read(self, *place);
            if matches!(kind, CHANNELS | MAPS | QUERIES | FILTERS) {
                // Events can be decoded without these parts.
                self.tolerate(done)?;
            } else {
                done?;
            }
        }
        Ok(())
    }

    /// Returns `None` for damage in a part without which events can be decoded, and reports it.
    /// Exceeded limits are errors even there.
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

    /// Returns the offsets of a list's entries, and charges their size to the limits.
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

    /// Returns the offsets of entries of a fixed size, and charges their size to the limits.
    pub fn entries(
        &mut self,
        start: usize,
        count: usize,
        size: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = usize> + use<>, DecodeError> {
        let entries = self.bytes.entries(start, count, size, what)?;
        // The entries are inside the resource, so the product fits.
        self.limits.list(count * size)?;
        Ok(entries)
    }

    /// Returns the text of the message id at an offset, if there is one.
    pub fn message(
        &self,
        offset: usize,
        what: &'static str,
    ) -> Result<Option<TextRef>, DecodeError> {
        let id = self.bytes.u32(offset, what)?;
        Ok(self.texts.get(&id).copied())
    }

    /// Reads the name whose offset is stored at an offset.
    pub fn name(&mut self, offset: usize, what: &'static str) -> Result<String, DecodeError> {
        let place = self.bytes.place(offset, what)?;
        let name = self.bytes.sized_text(place, what)?;
        self.limits.text(name)
    }

    /// Reads a name that can be one of winmeta.xml's, which start with `win:`.
    pub fn qualified(&mut self, offset: usize, what: &'static str) -> Result<QName, DecodeError> {
        let written = self.name(offset, what)?;
        let namespace = if written.starts_with("win:") {
            winmeta::NAMESPACE
        } else {
            ""
        };
        Ok(QName {
            written,
            namespace: namespace.to_owned(),
        })
    }

    fn events(&mut self, at: usize) -> Result<(), DecodeError> {
        const ENTRY: usize = 48;
        let bytes = self.bytes;
        let what = "event";
        bytes.tag(at, *b"EVNT")?;
        let count = bytes.place(at + 8, "number of events")?;
        for entry in self.entries(at + 16, count, ENTRY, "events")? {
            let find = |places: &Places, offset: usize| -> Result<Option<usize>, DecodeError> {
                let place = bytes.place(entry + offset, what)?;
                Ok(places.get(&place).copied())
            };
            let (opcode, level) = (find(&self.opcodes, 24)?, find(&self.levels, 28)?);
            let (task, channel) = (find(&self.tasks, 32)?, find(&self.channels, 44)?);
            let template = match bytes.place(entry + 20, what)? {
                0 => None,
                place => Some(self.template(place)?),
            };
            let mask = bytes.u64(entry + 8, what)?;
            // Only channels that the provider declares have a bit.
            if let Some(channel) = channel
                && let Some(bit) = 63_usize.checked_sub(channel)
                && let Some(known) = self.provider.channels.get_mut(channel)
            {
                known.declared |= mask & 1 << bit != 0;
            }
            let count = bytes.place(entry + 36, what)?;
            let place = bytes.place(entry + 40, what)?;
            self.limits.fields(count)?;
            let mut keywords = Vec::new();
            for at in bytes.entries(place, count, 4, "event's keywords")? {
                let place = bytes.place(at, "event's keyword")?;
                keywords.extend(self.keywords.get(&place));
            }
            let event = Event {
                id: bytes.u16(entry, what)?,
                version: bytes.u8(entry + 2, what)?,
                channel,
                level,
                task,
                opcode,
                keywords,
                template,
                message: self.message(entry + 16, what)?,
                ..Event::default()
            };
            self.provider.events.push(event);
        }
        Ok(())
    }

    /// Reads the names of events and their attributes that are not localized.
    fn event_attributes(&mut self, at: usize) -> Result<(), DecodeError> {
        const NAME: u8 = 0x11;
        const ATTRIBUTE: u8 = 0x12;
        let bytes = self.bytes;
        let events = self.provider.events.iter().enumerate();
        let events: HashMap<(u16, u8), usize> = events
            .map(|(number, event)| ((event.id, event.version), number))
            .collect();
        for entry in self.list(at, *b"EVTA", 8, "events' attributes")? {
            let version = bytes.u8(entry + 1, "attribute")?;
            let id = bytes.u16(entry + 2, "attribute")?;
            let kind = bytes.u8(entry, "attribute")?;
            let place = bytes.place(entry + 4, "attribute")?;
            let event = events.get(&(id, version));
            let Some(event) = event.and_then(|at| self.provider.events.get_mut(*at)) else {
                continue;
            };
            match kind {
                NAME => {
                    let name = bytes.open_text(place, "event's name")?;
                    event.name = Some(self.limits.text(name)?);
                }
                ATTRIBUTE => {
                    let text = bytes.open_text(place, "event's attribute")?;
                    let text = self.limits.text(text)?;
                    match &mut event.attributes {
                        Some(all) => {
                            all.push(';');
                            all.push_str(&text);
                        }
                        none => *none = Some(text),
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn provider_attributes(&mut self, at: usize) -> Result<(), DecodeError> {
        const NAME: u32 = 0x1000_0001;
        const CONTROL_GUID: u32 = 0x2000_0001;
        const GROUP_GUID: u32 = 0x2000_0002;
        let bytes = self.bytes;
        for entry in self.list(at, *b"PRVA", 8, "provider's attributes")? {
            let place = bytes.place(entry + 4, "attribute")?;
            match bytes.u32(entry, "attribute")? {
                NAME => {
                    let name = bytes.open_text(place, "provider's name")?;
                    self.provider.name = self.limits.text(name)?;
                }
                CONTROL_GUID => {
                    let guid = bytes.guid(place, "control GUID")?;
                    self.provider.control_guid = Some(Guid::from_bytes(guid));
                }
                GROUP_GUID => {
                    let guid = bytes.guid(place, "group GUID")?;
                    self.provider.group_guid = Some(Guid::from_bytes(guid));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
