//! Interned data: strings and call stacks that packets refer to by number.
//!
//! The tables are limited. Full tables are cleared, and the next packet states this
//! (`SEQ_INCREMENTAL_STATE_CLEARED`). Numbers are never reused, because readers cache their
//! meaning.

use std::collections::HashMap;

use super::schema::interned;
use super::wire::Message;
use etl_file::decode::Stack;

/// The total number of entries at which the tables are cleared.
const MAX_ENTRIES: usize = 32_768;
/// The total size of strings and stacks, in bytes, at which the tables are cleared.
const MAX_BYTES: usize = 4 << 20;

/// The interned data of a sequence.
#[derive(Debug, Default)]
pub struct Interned {
    /// Strings, by the field of their table (see [`interned`]).
    texts: HashMap<u32, HashMap<Box<str>, u64>>,
    /// Mappings, by the number of their path.
    mappings: HashMap<u64, u64>,
    /// Frames, by mapping, function and offset.
    frames: HashMap<(u64, u64, u64), u64>,
    /// Call stacks, by the numbers of their frames.
    stacks: HashMap<Box<[u64]>, u64>,
    entries: Entries,
}

/// The numbers and the size of all entries.
#[derive(Debug, Default)]
struct Entries {
    last: u64,
    count: usize,
    bytes: usize,
    /// The encoded entries that no packet contains yet.
    new: Vec<u8>,
}

impl Entries {
    /// Adds an entry to a table, and returns its number. `bytes` is the size of its string or stack.
    fn add(&mut self, field: u32, bytes: usize, content: impl FnOnce(&mut Message<'_>)) -> u64 {
        self.last += 1;
        self.count += 1;
        self.bytes += bytes;
        let iid = self.last;
        Message::new(&mut self.new).message(field, |entry| {
            entry.uint(interned::IID, iid);
            content(entry);
        });
        iid
    }
}

impl Interned {
    /// Returns true if the tables should be cleared before the next packet.
    pub const fn is_full(&self) -> bool {
        self.entries.count >= MAX_ENTRIES || self.entries.bytes >= MAX_BYTES
    }

    /// Removes all entries, but remembers which numbers were used.
    pub fn clear(&mut self) {
        let entries = Entries { last: self.entries.last, ..Entries::default() };
        *self = Self { entries, ..Self::default() };
    }

    /// Returns the encoded entries since the last call.
    pub fn take_new(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.entries.new)
    }

    /// Returns the number of a string in the table `field` (see [`interned`]).
    pub fn text(&mut self, field: u32, text: &str) -> u64 {
        let known = self.texts.entry(field).or_default();
        if let Some(iid) = known.get(text) {
            return *iid;
        }
        let content = |entry: &mut Message<'_>| entry.text(interned::TEXT, text);
        let iid = self.entries.add(field, text.len(), content);
        known.insert(text.into(), iid);
        iid
    }

    /// Returns the number of a stack, or `None` if the stack has no frames.
    pub fn stack(&mut self, stack: &Stack) -> Option<u64> {
        // Perfetto expects the outermost frame first.
        let frames = stack.frames.iter().rev();
        let frames = frames.map(|frame| self.frame(frame.address, frame.place.as_deref()));
        let frames: Box<[u64]> = frames.collect();
        if frames.is_empty() {
            return None;
        }
        let known = self.stacks.entry(frames);
        Some(*known.or_insert_with_key(|frames| {
            self.entries.add(interned::CALLSTACKS, size_of_val(&**frames), |entry| {
                for frame in frames {
                    entry.uint(interned::CALLSTACK_FRAME_IDS, *frame);
                }
            })
        }))
    }

    /// Returns the number of a frame. `place` is the image and the offset, such as
    /// `driver.sys+0x1a2c`.
    fn frame(&mut self, address: u64, place: Option<&str>) -> u64 {
        let (image, offset) =
            place.and_then(split).unwrap_or_else(|| (place.unwrap_or("(no image)"), address));
        // A function name follows the image name; the offset is then relative to the function.
        let (image, offset) = match image.split_once('!') {
            Some((image, _)) => (image, address),
            None => (image, offset),
        };
        let path = self.text(interned::MAPPING_PATHS, image);
        let function = match place {
            Some(place) => self.text(interned::FUNCTION_NAMES, place),
            None => self.text(interned::FUNCTION_NAMES, &format!("{address:#x}")),
        };
        let mapping = *self.mappings.entry(path).or_insert_with(|| {
            let content = |entry: &mut Message<'_>| {
                entry.uint(interned::MAPPING_PATH_STRING_IDS, path);
            };
            self.entries.add(interned::MAPPINGS, 0, content)
        });
        *self.frames.entry((mapping, function, offset)).or_insert_with(|| {
            self.entries.add(interned::FRAMES, 0, |entry| {
                entry.uint(interned::FRAME_FUNCTION_NAME_ID, function);
                entry.uint(interned::FRAME_MAPPING_ID, mapping);
                entry.uint(interned::FRAME_REL_PC, offset);
            })
        })
    }
}

/// Splits a location into image and offset.
fn split(place: &str) -> Option<(&str, u64)> {
    let (image, offset) = place.rsplit_once("+0x")?;
    Some((image, u64::from_str_radix(offset, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::decode::Frame;

    #[test]
    fn tables_are_full_by_their_entries_or_their_bytes() {
        let full = |entries, bytes| {
            let entries = Entries { count: entries, bytes, ..Entries::default() };
            Interned { entries, ..Interned::default() }.is_full()
        };
        assert!(!full(0, 0));
        assert!(!full(MAX_ENTRIES - 1, MAX_BYTES - 1));
        assert!(full(MAX_ENTRIES, 0));
        assert!(full(0, MAX_BYTES));
        assert!(!full(0, 1 << 20), "a MiB fits");
    }

    #[test]
    fn entries_and_their_bytes_are_counted_and_numbers_are_not_used_again() {
        let mut tables = Interned::default();
        assert!(tables.take_new().is_empty());
        assert_eq!(tables.text(interned::EVENT_CATEGORIES, "abc"), 1);
        assert_eq!(tables.text(interned::EVENT_CATEGORIES, "abc"), 1);
        assert_eq!(tables.text(interned::EVENT_NAMES, "abc"), 2);
        assert_eq!((tables.entries.count, tables.entries.bytes), (2, 6));
        assert!(!tables.take_new().is_empty());
        assert!(tables.take_new().is_empty());
        let stack = |addresses: &[u64]| Stack {
            frames: addresses.iter().map(|&address| Frame { address, place: None }).collect(),
            ..Stack::default()
        };
        assert_eq!(tables.stack(&stack(&[])), None);
        let mut add = |addresses: &[u64]| {
            let before = (tables.entries.last, tables.entries.count, tables.entries.bytes);
            let number = tables.stack(&stack(addresses)).unwrap();
            let entries = tables.entries.count - before.1;
            // Each entry has a number.
            assert_eq!(tables.entries.last - before.0, entries as u64);
            (number, entries, tables.entries.bytes - before.2)
        };
        let (first, entries, bytes) = add(&[1, 2]);
        assert!(entries >= 3 && bytes >= 16, "{entries} {bytes}");
        assert_eq!(add(&[1, 2]), (first, 0, 0));
        // The frames are already interned.
        assert_eq!(add(&[2, 1]), (first + 1, 1, 16));
        let last = tables.entries.last;
        tables.clear();
        assert_eq!((tables.entries.count, tables.entries.bytes), (0, 0));
        assert_eq!(tables.text(interned::EVENT_CATEGORIES, "abc"), last + 1);
    }
}
