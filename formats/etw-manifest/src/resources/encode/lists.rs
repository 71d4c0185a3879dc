//! Writes the lists of a provider.

use std::num::TryFromIntError;

use super::{
    bytes::{Bytes, prefixed_size},
    messages::NONE,
    template,
};
use crate::model::{Map, Provider, Query, TextRef};

/// The offsets of items to which other items refer.
#[derive(Default)]
pub struct Offsets {
    pub channels: Vec<u32>,
    pub levels: Vec<u32>,
    pub tasks: Vec<u32>,
    pub opcodes: Vec<u32>,
    pub keywords: Vec<u32>,
    pub maps: Vec<u32>,
    pub templates: Vec<u32>,
}

pub struct Writer<'a> {
    pub out: Bytes,
    pub ids: &'a [u32],
    pub provider: &'a Provider,
    pub offsets: Offsets,
}

/// An entry of a list: the parts before and after the offset of the entry's name.
struct Entry<'a> {
    before: Vec<u8>,
    name: &'a str,
    after: Vec<u8>,
}

/// Returns two numbers as bytes.
fn words(first: u32, second: u32) -> Vec<u8> {
    [first, second].map(u32::to_le_bytes).concat()
}

/// Returns the indexes of items, sorted stably by a key.
pub fn sorted<T, K: Ord>(items: &[T], key: impl Fn(&T) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| key(&items[*at]));
    order
}

impl<'a> Writer<'a> {
    pub fn id(&self, text: Option<TextRef>) -> u32 {
        text.and_then(|text| self.ids.get(text).copied()).unwrap_or(NONE)
    }

    /// Writes a list of entries followed by their names, and returns the entries' offsets.
    fn list(&mut self, tag: [u8; 4], entries: &[Entry<'_>]) -> Result<Vec<u32>, TryFromIntError> {
        let start = self.out.0.len();
        self.out.slice(&tag);
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(entries.len())?);
        if entries.is_empty() {
            // An empty list has the length 0.
            return Ok(Vec::new());
        }
        let size: usize =
            entries.iter().map(|entry| entry.before.len() + 4 + entry.after.len()).sum();
        let mut name = self.out.0.len() + size;
        let mut offsets = Vec::new();
        for entry in entries {
            offsets.push(self.out.offset()?);
            self.out.slice(&entry.before);
            self.out.u32(u32::try_from(name)?);
            self.out.slice(&entry.after);
            name += prefixed_size(entry.name);
        }
        for entry in entries {
            self.out.prefixed(entry.name)?;
        }
        self.out.put_length(length, start)?;
        Ok(offsets)
    }

    /// Writes a list in a given order, and returns the offsets by item index.
    fn ordered<T>(
        &mut self,
        tag: [u8; 4],
        items: &'a [T],
        order: &[usize],
        entry: impl Fn(&Self, &'a T) -> Entry<'a>,
    ) -> Result<Vec<u32>, TryFromIntError> {
        let entries: Vec<Entry<'a>> = order.iter().map(|at| entry(self, &items[*at])).collect();
        let written = self.list(tag, &entries)?;
        let mut offsets = vec![0; items.len()];
        for (at, offset) in order.iter().zip(written) {
            offsets[*at] = offset;
        }
        Ok(offsets)
    }

    pub fn channels(&mut self) -> Result<(), TryFromIntError> {
        let channels = &self.provider.channels;
        let order = sorted(channels, |_| ());
        self.offsets.channels =
            self.ordered(*b"CHAN", channels, &order, |writer, channel| Entry {
                before: u32::from(channel.imported).to_le_bytes().to_vec(),
                name: &channel.name,
                after: words(channel.value.into(), writer.id(channel.message)),
            })?;
        Ok(())
    }

    pub fn opcodes(&mut self) -> Result<(), TryFromIntError> {
        let provider = self.provider;
        let task = |task: Option<usize>| task.map_or(0, |task| provider.tasks[task].value);
        let order = sorted(&provider.opcodes, |opcode| (opcode.value, task(opcode.task)));
        self.offsets.opcodes =
            self.ordered(*b"OPCO", &provider.opcodes, &order, |writer, opcode| {
                let value = u32::from(task(opcode.task)) | u32::from(opcode.value) << 16;
                let before = words(value, writer.id(opcode.message));
                Entry { before, name: &opcode.name.written, after: Vec::new() }
            })?;
        Ok(())
    }

    pub fn levels(&mut self) -> Result<(), TryFromIntError> {
        let levels = &self.provider.levels;
        let order = sorted(levels, |level| level.value);
        self.offsets.levels = self.ordered(*b"LEVL", levels, &order, |writer, level| {
            let before = words(level.value.into(), writer.id(level.message));
            Entry { before, name: &level.name.written, after: Vec::new() }
        })?;
        Ok(())
    }

    pub fn tasks(&mut self) -> Result<(), TryFromIntError> {
        let tasks = &self.provider.tasks;
        let order = sorted(tasks, |_| ());
        self.offsets.tasks = self.ordered(*b"TASK", tasks, &order, |writer, task| {
            let mut before = words(task.value.into(), writer.id(task.message));
            before.extend(task.event_guid.unwrap_or_default().to_bytes());
            Entry { before, name: &task.name.written, after: Vec::new() }
        })?;
        Ok(())
    }

    pub fn keywords(&mut self) -> Result<(), TryFromIntError> {
        let keywords = &self.provider.keywords;
        let order = sorted(keywords, |keyword| keyword.mask);
        self.offsets.keywords = self.ordered(*b"KEYW", keywords, &order, |writer, keyword| {
            let mut before = Bytes::default();
            before.u64(keyword.mask);
            before.u32(writer.id(keyword.message));
            Entry { before: before.0, name: &keyword.name.written, after: Vec::new() }
        })?;
        Ok(())
    }

    /// Writes the maps. Their offsets and names are sorted by name for lookup, but the maps are
    /// stored in the manifest's order.
    pub fn maps(&mut self) -> Result<(), TryFromIntError> {
        let maps = &self.provider.maps;
        let by_name = sorted(maps, |map| map.name.encode_utf16().collect::<Vec<u16>>());
        let start = self.out.0.len();
        self.out.slice(b"MAPS");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(maps.len())?);
        let mut place = self.out.reserve(maps.len() * 4);
        let size: usize = maps.iter().map(map_size).sum();
        let mut name = self.out.0.len() + size;
        let mut names = vec![0; maps.len()];
        for at in &by_name {
            names[*at] = u32::try_from(name)?;
            name += prefixed_size(&maps[*at].name);
        }
        let mut offsets = Vec::new();
        for (map, name) in maps.iter().zip(names) {
            offsets.push(self.out.offset()?);
            self.map(map, name)?;
        }
        for at in &by_name {
            self.out.prefixed(&maps[*at].name)?;
            self.out.put_u32(place, offsets[*at]);
            place += 4;
        }
        self.offsets.maps = offsets;
        self.out.put_length(length, start)
    }

    fn map(&mut self, map: &Map, name: u32) -> Result<(), TryFromIntError> {
        self.out.slice(if map.is_bits { b"BMAP" } else { b"VMAP" });
        self.out.u32(u32::try_from(map_size(map))?);
        self.out.u32(name);
        self.out.u32(u32::from(map.is_bits));
        self.out.u32(u32::try_from(map.items.len())?);
        for at in sorted(&map.items, |item| item.value) {
            let item = &map.items[at];
            self.out.u32(item.value);
            let id = self.id(item.message);
            self.out.u32(id);
        }
        Ok(())
    }

    pub fn templates(&mut self) -> Result<(), TryFromIntError> {
        let start = self.out.0.len();
        self.out.slice(b"TTBL");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(self.provider.templates.len())?);
        for one in &self.provider.templates {
            let offset = self.out.offset()?;
            self.offsets.templates.push(offset);
            template::write(one, &self.offsets.maps, &mut self.out)?;
        }
        self.out.put_length(length, start)
    }

    pub fn template(&self, at: Option<usize>) -> u32 {
        at.and_then(|at| self.offsets.templates.get(at).copied()).unwrap_or(0)
    }

    /// Writes the named queries. Each query's length reaches to the end of its strings and so
    /// includes the queries in between.
    pub fn queries(&mut self) -> Result<(), TryFromIntError> {
        const HEAD: usize = 20;
        const ITEM: usize = 8;
        let queries: &'a [Query] = &self.provider.queries;
        let start = self.out.0.len();
        self.out.slice(b"QTAB");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(queries.len())?);
        let mut place = self.out.reserve(queries.len() * 4);
        let size: usize = queries.iter().map(|query| HEAD + query.items.len() * ITEM).sum();
        let mut text = self.out.0.len() + size;
        let mut texts: Vec<&'a str> = Vec::new();
        let mut add = |name: &'a str| {
            let offset = u32::try_from(text);
            text += prefixed_size(name);
            texts.push(name);
            offset.map(|offset| (offset, text))
        };
        for query in queries {
            let offset = self.out.offset()?;
            self.out.put_u32(place, offset);
            place += 4;
            let from = self.out.0.len();
            self.out.slice(b"QUER");
            let whole = self.out.reserve(4);
            let (name, _) = add(&query.name)?;
            let (format, mut end) = add(&query.format)?;
            self.out.u32(name);
            self.out.u32(format);
            self.out.u32(u32::try_from(query.items.len())?);
            for (name, value) in &query.items {
                let (name, _) = add(name)?;
                let (value, here) = add(value)?;
                end = here;
                self.out.u32(name);
                self.out.u32(value);
            }
            self.out.put_u32(whole, u32::try_from(end - from)?);
        }
        for text in texts {
            self.out.prefixed(text)?;
        }
        self.out.put_length(length, start)
    }

    pub fn filters(&mut self) -> Result<(), TryFromIntError> {
        const ENTRY: usize = 16;
        let filters = &self.provider.filters;
        let start = self.out.0.len();
        self.out.slice(b"FLTR");
        let length = self.out.reserve(4);
        self.out.u32(u32::try_from(filters.len())?);
        // Like mc.exe, repeat the last filter's value.
        let last = filters.last().and_then(|filter| filter.template);
        let junk = self.template(last);
        self.out.u32(junk);
        let mut name = self.out.0.len() + filters.len() * ENTRY;
        for filter in filters {
            self.out.u8(filter.value);
            self.out.u8(filter.version);
            self.out.u16(0);
            let id = self.id(filter.message);
            self.out.u32(id);
            self.out.u32(u32::try_from(name)?);
            name += prefixed_size(&filter.name.written);
            let template = self.template(filter.template);
            self.out.u32(template);
        }
        for filter in filters {
            self.out.prefixed(&filter.name.written)?;
        }
        self.out.put_length(length, start)
    }
}

const fn map_size(map: &Map) -> usize {
    const HEAD: usize = 20;
    const ITEM: usize = 8;
    HEAD + map.items.len() * ITEM
}
