//! The ids of strings, and the message table (`RT_MESSAGETABLE`, documented as
//! `MESSAGE_RESOURCE_DATA`).

use std::{collections::HashMap, iter, num::TryFromIntError};

use super::{bytes::Bytes, error::EncodeError};
use crate::model::{Manifest, Provider, TextRef, Translation};

/// The id of a message without references.
pub const NONE: u32 = u32::MAX;

/// The highest four bits of a message id, by the kind of item that owns the message.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Tag {
    /// Events in winmeta.xml's channels; older viewers look up their strings without a tag.
    GlobalEvent = 0x0,
    Keyword = 0x1,
    Opcode = 0x3,
    LevelOrFilter = 0x5,
    Task = 0x7,
    ProviderOrChannel = 0x9,
    Event = 0xB,
    ValueMap = 0xD,
    BitMap = 0xF,
}

struct Ids {
    ids: Vec<u32>,
    provider: u32,
}

impl Ids {
    /// Assigns an id to a message that has none.
    fn give(&mut self, text: Option<TextRef>, tag: Tag, value: u32) -> bool {
        const VALUE: u32 = 0x00FF_FFFF;
        let Some(id) = text.and_then(|text| self.ids.get_mut(text)) else {
            return false;
        };
        if *id != NONE {
            return false;
        }
        *id = (tag as u32) << 28 | (self.provider & 0xF) << 24 | value & VALUE;
        true
    }
}

/// Returns the ids of a manifest's messages as mc.exe assigns them: the first reference to a
/// message determines its id.
#[must_use]
pub fn message_ids(manifest: &Manifest) -> Vec<u32> {
    let mut ids = Ids {
        ids: manifest.texts.iter().map(|text| text.message_id.unwrap_or(NONE)).collect(),
        provider: 0,
    };
    for (number, provider) in (0..).zip(&manifest.providers) {
        ids.provider = number;
        give_provider(&mut ids, provider);
    }
    ids.ids
}

fn give_provider(ids: &mut Ids, provider: &Provider) {
    // Providers and channels have no values from which to derive ids.
    let mut next = 1;
    let names = provider.channels.iter().map(|channel| channel.message);
    for text in iter::once(provider.message).chain(names) {
        if ids.give(text, Tag::ProviderOrChannel, next) {
            next += 1;
        }
    }
    for level in &provider.levels {
        ids.give(level.message, Tag::LevelOrFilter, u32::from(level.value));
    }
    for task in &provider.tasks {
        ids.give(task.message, Tag::Task, u32::from(task.value));
    }
    for opcode in &provider.opcodes {
        let task = opcode.task.map_or(0, |task| provider.tasks[task].value);
        let value = u32::from(task & 0xFF) << 16 | u32::from(opcode.value);
        ids.give(opcode.message, Tag::Opcode, value);
    }
    for keyword in &provider.keywords {
        let bits = u64::BITS - keyword.mask.leading_zeros();
        ids.give(keyword.message, Tag::Keyword, bits);
    }
    for event in &provider.events {
        let channel = event.channel.map(|channel| &provider.channels[channel]);
        // The channels System, Application and Security.
        let is_global =
            channel.is_some_and(|channel| channel.imported && (8..=10).contains(&channel.value));
        let tag = if is_global { Tag::GlobalEvent } else { Tag::Event };
        let value = u32::from(event.version) << 16 | u32::from(event.id);
        ids.give(event.message, tag, value);
    }
    let (mut next_value, mut next_bit) = (1, 1);
    for map in &provider.maps {
        let (tag, next) = if map.is_bits {
            (Tag::BitMap, &mut next_bit)
        } else {
            (Tag::ValueMap, &mut next_value)
        };
        for item in &map.items {
            if ids.give(item.message, tag, *next) {
                *next += 1;
            }
        }
    }
    for filter in &provider.filters {
        const FILTER: u32 = 0x0080_0000;
        let value = FILTER | u32::from(filter.version) << 8 | u32::from(filter.value);
        ids.give(filter.message, Tag::LevelOrFilter, value);
    }
}

/// The size of a block's header in the table, in bytes.
const BLOCK: usize = 12;

/// Returns the table of strings that have ids.
pub fn table(manifest: &Manifest, ids: &[u32]) -> Result<Option<Vec<u8>>, EncodeError> {
    of_texts(ids, manifest.texts.iter().map(|text| text.value.as_str()))
}

/// Returns the table of a translation. Untranslated strings are included in the first language,
/// because a viewer looks in only one table.
pub fn translated(
    manifest: &Manifest,
    translation: &Translation,
    ids: &[u32],
) -> Result<Option<Vec<u8>>, EncodeError> {
    let texts: HashMap<&str, &str> =
        translation.texts.iter().map(|(id, value)| (id.as_str(), value.as_str())).collect();
    let translated = manifest.texts.iter().map(|text| {
        let found = texts.get(text.id.as_str()).filter(|_| !text.standard);
        found.copied().unwrap_or(&text.value)
    });
    of_texts(ids, translated)
}

fn of_texts<'a>(
    ids: &[u32],
    texts: impl Iterator<Item = &'a str>,
) -> Result<Option<Vec<u8>>, EncodeError> {
    let mut entries: Vec<(u32, &str)> = ids
        .iter()
        .zip(texts)
        .filter(|(id, _)| **id != NONE)
        .map(|(id, text)| (*id, text))
        .collect();
    entries.sort_by_key(|(id, _)| *id);
    if entries.is_empty() {
        return Ok(None);
    }
    // Consecutive ids form a block.
    let mut blocks: Vec<&[(u32, &str)]> = Vec::new();
    let mut start = 0;
    for at in 1..=entries.len() {
        let ends =
            entries.get(at).is_none_or(|(id, _)| entries[at - 1].0.checked_add(1) != Some(*id));
        if ends {
            blocks.push(&entries[start..at]);
            start = at;
        }
    }
    let mut out = Bytes::default();
    out.u32(u32::try_from(blocks.len())?);
    let mut place = out.reserve(blocks.len() * BLOCK);
    for block in blocks {
        let (first, last) = (block[0].0, block[block.len() - 1].0);
        out.put_u32(place, first);
        out.put_u32(place + 4, last);
        let offset = out.offset()?;
        out.put_u32(place + 8, offset);
        place += BLOCK;
        for (_, text) in block {
            entry(&mut out, text)?;
        }
    }
    Ok(Some(out.0))
}

/// Writes a `MESSAGE_RESOURCE_ENTRY`. mc.exe writes a line feed of the manifest as a carriage return
/// and a line feed; what it does with other control characters is unknown, and they stay as they are.
fn entry(out: &mut Bytes, text: &str) -> Result<(), TryFromIntError> {
    const UNICODE: u16 = 1;
    const HEAD: usize = 4;
    let text = &text.replace("\r\n", "\n").replace('\n', "\r\n");
    let units = text.encode_utf16().count() + "\r\n\0".len();
    let size = (HEAD + units * 2).next_multiple_of(4);
    out.u16(u16::try_from(size)?);
    out.u16(UNICODE);
    let start = out.0.len() - HEAD;
    out.utf16(text);
    out.zero_terminated("\r\n");
    out.0.resize(start + size, 0);
    Ok(())
}
