//! Writes events, and the attributes of events and providers.

use std::{collections::BTreeMap, num::TryFromIntError};

use super::{
    attributes::attributes,
    lists::{Writer, sorted},
};
use crate::model::Event;

impl Writer<'_> {
    pub fn events(&mut self) -> Result<(), TryFromIntError> {
        const ENTRY: usize = 48;
        let events = &self.provider.events;
        let order = sorted(events, |event| (event.id, event.version));
        let start = self.out.0.len();
        self.out.slice(b"EVNT");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(events.len())?);
        self.out.u32(0);
        let mut keywords = self.out.0.len() + events.len() * ENTRY;
        for at in &order {
            let event = &events[*at];
            self.event(event, keywords)?;
            keywords += event.keywords.len() * 4;
        }
        for at in order {
            let event = &events[at];
            let mut list = event.keywords.clone();
            list.sort_by_key(|keyword| self.provider.keywords[*keyword].mask);
            for keyword in list {
                self.out.u32(self.offsets.keywords[keyword]);
            }
        }
        self.out.put_length(length, start)
    }

    fn event(&mut self, event: &Event, keywords: usize) -> Result<(), TryFromIntError> {
        let provider = self.provider;
        let channel = event.channel.map_or(0, |at| provider.channels[at].value);
        let level = event.level.map_or(0, |at| provider.levels[at].value);
        let opcode = event.opcode.map_or(0, |at| provider.opcodes[at].value);
        let task = event.task.map_or(0, |at| provider.tasks[at].value);
        self.out.u16(event.id);
        self.out.u8(event.version);
        self.out.u8(channel);
        self.out.u8(level);
        self.out.u8(opcode);
        self.out.u16(task);
        self.out.u64(provider.keyword_mask(event));
        let id = self.id(event.message);
        self.out.u32(id);
        let offset = |at: Option<usize>, offsets: &[u32]| {
            at.and_then(|at| offsets.get(at).copied()).unwrap_or(0)
        };
        let template = self.template(event.template);
        self.out.u32(template);
        self.out.u32(offset(event.opcode, &self.offsets.opcodes));
        self.out.u32(offset(event.level, &self.offsets.levels));
        self.out.u32(offset(event.task, &self.offsets.tasks));
        self.out.u32(u32::try_from(event.keywords.len())?);
        self.out.u32(if event.keywords.is_empty() { 0 } else { u32::try_from(keywords)? });
        self.out.u32(offset(event.channel, &self.offsets.channels));
        Ok(())
    }

    pub fn provider_attributes(&mut self) -> Result<(), TryFromIntError> {
        const NAME: u32 = 0x1000_0001;
        const CONTROL_GUID: u32 = 0x2000_0001;
        const GROUP_GUID: u32 = 0x2000_0002;
        const ENTRY: usize = 8;
        let provider = self.provider;
        let guids: Vec<_> =
            [(CONTROL_GUID, provider.control_guid), (GROUP_GUID, provider.group_guid)]
                .into_iter()
                .filter_map(|(key, guid)| Some((key, guid?)))
                .collect();
        let start = self.out.0.len();
        self.out.slice(b"PRVA");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(1 + guids.len())?);
        let mut place = self.out.reserve((1 + guids.len()) * ENTRY);
        let offset = self.out.offset()?;
        self.out.put_u32(place, NAME);
        self.out.put_u32(place + 4, offset);
        self.out.zero_terminated(&provider.name);
        for (key, guid) in guids {
            place += ENTRY;
            self.out.align(4);
            let offset = self.out.offset()?;
            self.out.put_u32(place, key);
            self.out.put_u32(place + 4, offset);
            self.out.slice(&guid.to_bytes());
        }
        self.align_block(start);
        self.out.put_length(length, start)
    }

    /// Appends zeros up to a multiple of four bytes from the start of a block.
    fn align_block(&mut self, start: usize) {
        let length = (self.out.0.len() - start).next_multiple_of(4);
        self.out.0.resize(start + length, 0);
    }

    pub fn event_attributes(&mut self) -> Result<(), TryFromIntError> {
        const NAME: u8 = 0x11;
        const ATTRIBUTES: u8 = 0x12;
        const ENTRY: usize = 8;
        let events = &self.provider.events;
        let entries: Vec<(u8, &Event, String)> = sorted(events, |event| (event.id, event.version))
            .into_iter()
            .flat_map(|at| {
                let event = &events[at];
                let name = event.name.iter().map(move |name| (NAME, event, name.clone()));
                let attributes = attributes(event)
                    .into_iter()
                    .map(move |attribute| (ATTRIBUTES, event, attribute));
                name.chain(attributes).collect::<Vec<_>>()
            })
            .collect();
        let start = self.out.0.len();
        self.out.slice(b"EVTA");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(entries.len())?);
        let mut place = self.out.reserve(entries.len() * ENTRY);
        // Each string is written once, sorted by UTF-16 code units.
        let mut texts: BTreeMap<Vec<u16>, u32> =
            entries.iter().map(|(_, _, text)| (text.encode_utf16().collect(), 0)).collect();
        for (units, offset) in &mut texts {
            *offset = self.out.offset()?;
            for unit in units.iter().chain(&[0]) {
                self.out.u16(*unit);
            }
        }
        for (kind, event, text) in &entries {
            let [low, high] = event.id.to_le_bytes();
            self.out.0[place..place + 4].copy_from_slice(&[*kind, event.version, low, high]);
            let units: Vec<u16> = text.encode_utf16().collect();
            let offset = texts.get(&units).copied().unwrap_or(0);
            self.out.put_u32(place + 4, offset);
            place += ENTRY;
        }
        self.align_block(start);
        self.out.put_length(length, start)
    }
}
