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

/// The tables of strings.
#[derive(Clone, Copy, Debug)]
pub enum Table {
    Category,
    EventName,
    AnnotationName,
    AnnotationText,
    Correlation,
    Function,
    MappingPath,
}

impl Table {
    const fn field(self) -> u32 {
        match self {
            Self::Category => interned::EVENT_CATEGORIES,
            Self::EventName => interned::EVENT_NAMES,
            Self::AnnotationName => interned::DEBUG_ANNOTATION_NAMES,
            Self::AnnotationText => interned::DEBUG_ANNOTATION_STRING_VALUES,
            Self::Correlation => interned::CORRELATION_ID_STR,
            Self::Function => interned::FUNCTION_NAMES,
            Self::MappingPath => interned::MAPPING_PATHS,
        }
    }
}

/// The number of variants of [`Table`].
const TABLES: usize = 7;

/// The interned data of a sequence.
#[derive(Debug, Default)]
pub struct Interned {
    texts: [HashMap<Box<str>, u64>; TABLES],
    /// Mappings, by the number of their path.
    mappings: HashMap<u64, u64>,
    /// Frames, by mapping, function and offset.
    frames: HashMap<(u64, u64, u64), u64>,
    /// Call stacks, by the numbers of their frames.
    stacks: HashMap<Box<[u64]>, u64>,
    last: u64,
    entries: usize,
    bytes: usize,
    /// The encoded entries that no packet contains yet.
    new: Vec<u8>,
}

impl Interned {
    /// Returns true if the tables should be cleared before the next packet.
    pub const fn is_full(&self) -> bool {
        self.entries >= MAX_ENTRIES || self.bytes >= MAX_BYTES
    }

    /// Removes all entries, but remembers which numbers were used.
    pub fn clear(&mut self) {
        *self = Self { last: self.last, ..Self::default() };
    }

    /// Returns the encoded entries since the last call.
    pub fn take_new(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.new)
    }

    /// Returns true if there are entries that no packet contains yet.
    pub const fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Returns the number of a string.
    pub fn text(&mut self, table: Table, text: &str) -> u64 {
        let [category, event, name, value, correlation, function, path] = &mut self.texts;
        let known = match table {
            Table::Category => category,
            Table::EventName => event,
            Table::AnnotationName => name,
            Table::AnnotationText => value,
            Table::Correlation => correlation,
            Table::Function => function,
            Table::MappingPath => path,
        };
        if let Some(iid) = known.get(text) {
            return *iid;
        }
        self.last += 1;
        let iid = self.last;
        known.insert(text.into(), iid);
        self.entries += 1;
        self.bytes += text.len();
        Message::new(&mut self.new).message(table.field(), |entry| {
            entry.uint(interned::IID, iid);
            entry.text(interned::TEXT, text);
        });
        iid
    }

    /// Returns the number of a stack, or `None` if the stack has no frames.
    pub fn stack(&mut self, stack: &Stack) -> Option<u64> {
        // Perfetto expects the outermost frame first.
        let frames: Box<[u64]> = stack
            .frames
            .iter()
            .rev()
            .map(|frame| self.frame(frame.address, frame.place.as_deref()))
            .collect();
        if frames.is_empty() {
            return None;
        }
        if let Some(iid) = self.stacks.get(&frames) {
            return Some(*iid);
        }
        self.last += 1;
        let iid = self.last;
        self.entries += 1;
        self.bytes += size_of_val(&*frames);
        Message::new(&mut self.new).message(interned::CALLSTACKS, |entry| {
            entry.uint(interned::IID, iid);
            for frame in &frames {
                entry.uint(interned::CALLSTACK_FRAME_IDS, *frame);
            }
        });
        self.stacks.insert(frames, iid);
        Some(iid)
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
        let path = self.text(Table::MappingPath, image);
        let function = match place {
            Some(place) => self.text(Table::Function, place),
            None => self.text(Table::Function, &format!("{address:#x}")),
        };
        let mapping = self.mapping(path);
        let key = (mapping, function, offset);
        if let Some(iid) = self.frames.get(&key) {
            return *iid;
        }
        self.last += 1;
        let iid = self.last;
        self.frames.insert(key, iid);
        self.entries += 1;
        Message::new(&mut self.new).message(interned::FRAMES, |entry| {
            entry.uint(interned::IID, iid);
            entry.uint(interned::FRAME_FUNCTION_NAME_ID, function);
            entry.uint(interned::FRAME_MAPPING_ID, mapping);
            entry.uint(interned::FRAME_REL_PC, offset);
        });
        iid
    }

    /// Returns the number of an image's mapping.
    fn mapping(&mut self, path: u64) -> u64 {
        if let Some(iid) = self.mappings.get(&path) {
            return *iid;
        }
        self.last += 1;
        let iid = self.last;
        self.mappings.insert(path, iid);
        self.entries += 1;
        Message::new(&mut self.new).message(interned::MAPPINGS, |entry| {
            entry.uint(interned::IID, iid);
            entry.uint(interned::MAPPING_PATH_STRING_IDS, path);
        });
        iid
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
            let tables = Interned { entries, bytes, ..Interned::default() };
            tables.is_full()
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
        assert!(!tables.has_new());
        assert_eq!(tables.text(Table::Category, "abc"), 1);
        assert_eq!(tables.text(Table::Category, "abc"), 1);
        assert_eq!(tables.text(Table::EventName, "abc"), 2);
        assert_eq!((tables.entries, tables.bytes), (2, 6));
        assert!(tables.has_new());
        assert!(!tables.take_new().is_empty());
        assert!(!tables.has_new());
        let stack = |addresses: &[u64]| Stack {
            frames: addresses.iter().map(|&address| Frame { address, place: None }).collect(),
            ..Stack::default()
        };
        assert_eq!(tables.stack(&stack(&[])), None);
        let mut add = |addresses: &[u64]| {
            let before = (tables.last, tables.entries, tables.bytes);
            let number = tables.stack(&stack(addresses)).unwrap();
            let entries = tables.entries - before.1;
            // Each entry has a number.
            assert_eq!(tables.last - before.0, entries as u64);
            (number, entries, tables.bytes - before.2)
        };
        let (first, entries, bytes) = add(&[1, 2]);
        assert!(entries >= 3 && bytes >= 16, "{entries} {bytes}");
        assert_eq!(add(&[1, 2]), (first, 0, 0));
        // The frames are already interned.
        assert_eq!(add(&[2, 1]), (first + 1, 1, 16));
        let last = tables.last;
        tables.clear();
        assert_eq!((tables.entries, tables.bytes), (0, 0));
        assert_eq!(tables.text(Table::Category, "abc"), last + 1);
    }
}
