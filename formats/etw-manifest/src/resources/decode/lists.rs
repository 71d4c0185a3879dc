//! Reads the lists to which a provider's events refer, and the queries.

use std::collections::HashMap;

use etw_wire::Guid;

use super::{error::DecodeError, reader::Reader};
use crate::model::{Channel, Keyword, Level, Map, MapItem, Opcode, Query, Task};

/// The sizes in bytes of the header of a map and of a query.
const MAP_HEAD: usize = 20;
const QUERY_HEAD: usize = 20;

impl Reader<'_> {
    pub fn levels(&mut self, at: usize) -> Result<(), DecodeError> {
        for entry in self.list(at, *b"LEVL", 12, "levels")? {
            let [value, ..] = self.bytes.u32(entry, "level")?.to_le_bytes();
            let name = self.qualified(entry + 8, "level")?;
            self.levels.insert(entry, self.provider.levels.len());
            self.provider.levels.push(Level {
                standard: name.is_winmeta(),
                name,
                value,
                message: self.message(entry + 4, "level")?,
                ..Level::default()
            });
        }
        Ok(())
    }

    pub fn tasks(&mut self, at: usize) -> Result<(), DecodeError> {
        for entry in self.list(at, *b"TASK", 28, "tasks")? {
            let guid = Guid::from_bytes(self.bytes.guid(entry + 8, "task")?);
            let name = self.qualified(entry + 24, "task")?;
            self.tasks.insert(entry, self.provider.tasks.len());
            self.provider.tasks.push(Task {
                standard: name.is_winmeta(),
                name,
                value: self.bytes.u16(entry, "task")?,
                event_guid: (guid != Guid::default()).then_some(guid),
                message: self.message(entry + 4, "task")?,
                ..Task::default()
            });
        }
        Ok(())
    }

    pub fn opcodes(&mut self, at: usize) -> Result<(), DecodeError> {
        let mut tasks = HashMap::new();
        for (number, task) in self.provider.tasks.iter().enumerate() {
            tasks.entry(task.value).or_insert(number);
        }
        for entry in self.list(at, *b"OPCO", 12, "opcodes")? {
            let task = self.bytes.u16(entry, "opcode")?;
            let [value, _] = self.bytes.u16(entry + 2, "opcode")?.to_le_bytes();
            let name = self.qualified(entry + 8, "opcode")?;
            let message = self.message(entry + 4, "opcode")?;
            let owner = match task {
                0 => None,
                task => {
                    let Some(owner) = tasks.get(&task) else {
                        // No event can use the opcode.
                        continue;
                    };
                    Some(*owner)
                }
            };
            self.opcodes.insert(entry, self.provider.opcodes.len());
            self.provider.opcodes.push(Opcode {
                standard: name.is_winmeta(),
                name,
                value,
                task: owner,
                message,
                ..Opcode::default()
            });
        }
        Ok(())
    }

    pub fn keywords(&mut self, at: usize) -> Result<(), DecodeError> {
        for entry in self.list(at, *b"KEYW", 16, "keywords")? {
            let name = self.qualified(entry + 12, "keyword")?;
            self.keywords.insert(entry, self.provider.keywords.len());
            self.provider.keywords.push(Keyword {
                standard: name.is_winmeta(),
                name,
                mask: self.bytes.u64(entry, "keyword")?,
                message: self.message(entry + 8, "keyword")?,
                ..Keyword::default()
            });
        }
        Ok(())
    }

    pub fn channels(&mut self, at: usize) -> Result<(), DecodeError> {
        const IMPORTED: u32 = 1;
        for entry in self.list(at, *b"CHAN", 16, "channels")? {
            let [value, ..] = self.bytes.u32(entry + 8, "channel")?.to_le_bytes();
            let flags = self.bytes.u32(entry, "channel")?;
            let channel = Channel {
                name: self.name(entry + 4, "channel")?,
                value,
                explicit_value: true,
                message: self.message(entry + 12, "channel")?,
                imported: flags & IMPORTED != 0,
                ..Channel::default()
            };
            self.channels.insert(entry, self.provider.channels.len());
            self.provider.channels.push(channel);
        }
        Ok(())
    }

    /// Reads the maps. The list is sorted by name, but the maps are stored in the manifest's order.
    pub fn maps(&mut self, at: usize) -> Result<(), DecodeError> {
        let entries = self.list(at, *b"MAPS", 4, "maps")?;
        let mut places = Vec::new();
        for entry in entries {
            places.push(self.bytes.place(entry, "map")?);
        }
        places.sort_unstable();
        for place in places {
            self.map(place)?;
        }
        Ok(())
    }

    /// Returns the index of the map at offset `at`.
    pub fn map(&mut self, at: usize) -> Result<usize, DecodeError> {
        if let Some(known) = self.maps.get(&at) {
            return Ok(*known);
        }
        let bytes = self.bytes;
        let is_bits = bytes.tag(at, *b"BMAP").is_ok();
        if !is_bits {
            bytes.tag(at, *b"VMAP")?;
        }
        self.limits.list(MAP_HEAD)?;
        let name = match bytes.place(at + 8, "map")? {
            0 => String::new(),
            _ => self.name(at + 8, "map")?,
        };
        let count = bytes.place(at + 16, "map")?;
        let entries = self.entries(at + 20, count, 8, "map's values")?;
        self.limits.fields(count)?;
        let mut items = Vec::new();
        for entry in entries {
            items.push(MapItem {
                value: bytes.u32(entry, "map's value")?,
                message: self.message(entry + 4, "map's value")?,
                ..MapItem::default()
            });
        }
        let number = self.provider.maps.len();
        self.maps.insert(at, number);
        self.provider.maps.push(Map { name, is_bits, items, ..Map::default() });
        Ok(number)
    }

    pub fn queries(&mut self, at: usize) -> Result<(), DecodeError> {
        let bytes = self.bytes;
        for entry in self.list(at, *b"QTAB", 4, "queries")? {
            let at = bytes.place(entry, "query")?;
            bytes.tag(at, *b"QUER")?;
            self.limits.list(QUERY_HEAD)?;
            let count = bytes.place(at + 16, "query")?;
            let entries = bytes.entries(at + 20, count, 8, "query's patterns")?;
            self.limits.fields(count)?;
            let mut query = Query {
                name: self.name(at + 8, "query")?,
                format: self.name(at + 12, "query")?,
                ..Query::default()
            };
            for item in entries {
                let name = self.name(item, "pattern")?;
                let value = self.name(item + 4, "pattern")?;
                query.items.push((name, value));
            }
            self.provider.queries.push(query);
        }
        Ok(())
    }
}
