//! Reads a provider of a `WEVT_TEMPLATE` resource: its parts in the right order, and its events.

use std::collections::{BTreeMap, HashMap};

use etw_wire::Guid;

use super::{
    error::DecodeError,
    reader::{Places, Reader},
};
use crate::model::Event;

/// The types of a provider's parts.
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

/// A function that reads the list at an offset.
type ReadList<'a> = fn(&mut Reader<'a>, usize) -> Result<(), DecodeError>;

impl<'a> Reader<'a> {
    pub fn read(&mut self, at: usize) -> Result<(), DecodeError> {
        let bytes = self.bytes;
        bytes.tag(at, *b"WEVT")?;
        self.provider.message = self.message(at + 8, "provider")?;
        let count = bytes.place(at + 12, "number of parts")?;
        let mut parts = BTreeMap::new();
        for part in self.entries(at + 16, count, 8, "parts")? {
            let kind = bytes.u32(part, "part")?;
            let place = bytes.place(part + 4, "part")?;
            // Version 3 has directory entries for missing parts.
            if place != 0 {
                parts.insert(kind, place);
            }
        }
        // Lists are read before the lists that refer to them.
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

    /// Reads the names of events and their language-independent attributes.
    fn event_attributes(&mut self, at: usize) -> Result<(), DecodeError> {
        const NAME: u8 = 0x11;
        const ATTRIBUTE: u8 = 0x12;
        let bytes = self.bytes;
        let events = self.provider.events.iter().enumerate();
        let events: HashMap<(u16, u8), usize> =
            events.map(|(number, event)| ((event.id, event.version), number)).collect();
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
