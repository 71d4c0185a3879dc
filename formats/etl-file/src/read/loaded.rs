//! A buffer in memory.

use super::buffer::BufferInfo;
use super::error::{Damage, DamageKind};
use super::event::{PointerSize, items_end};
use super::header::TraceHeader;
use super::record::RecordRef;
use super::to_u64;
use crate::layout::{self, Form};
use crate::time::Clock;

/// A buffer in memory and the locations of its records.
#[derive(Clone, Debug)]
pub struct LoadedBuffer {
    info: BufferInfo,
    number: u32,
    clock: Clock,
    /// The pointer size of the machine that recorded the trace.
    pointer_size: PointerSize,
    /// The used part, uncompressed, to the extent that the file contains it.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    damages: Vec<Damage>,
}

/// The location of a record in its buffer.
#[derive(Clone, Copy, Debug)]
struct Entry {
    timestamp: i64,
    at: u32,
    size: u16,
    user_data: u16,
    form: Form,
}

impl LoadedBuffer {
    /// Finds the records of a buffer. If `part.cut` is true, the last record can be missing. Reuses
    /// the memory of `reused`.
    pub(super) fn new(part: Part, reused: Reused, clock: Clock) -> Self {
        let Reused { mut entries, .. } = reused;
        entries.clear();
        let mut loaded = Self {
            info: part.info,
            number: part.number,
            clock,
            pointer_size: part.pointer_size,
            bytes: part.bytes,
            entries,
            damages: part.damages,
        };
        loaded.walk(part.cut);
        loaded
    }

    /// Returns the buffer's header.
    #[must_use]
    pub const fn info(&self) -> &BufferInfo {
        &self.info
    }

    /// Returns the number of the buffer, in file order.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the buffer's damaged parts, in file order.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Returns the number of records, not counting the trace's header event.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the buffer has no records.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the record at a position in the list of records.
    #[must_use]
    pub fn record(&self, position: usize) -> Option<RecordRef<'_>> {
        let entry = self.entries.get(position)?;
        let at = entry.at as usize;
        Some(RecordRef {
            bytes: self.bytes.get(at..at + usize::from(entry.size))?,
            processor: self.info.processor,
            buffer: self.number,
            offset: self.info.offset + u64::from(entry.at),
            timestamp: entry.timestamp,
            clock: &self.clock,
            form: entry.form,
            of_trace: self.pointer_size,
            user_data: entry.user_data.into(),
        })
    }

    /// Returns the records, in buffer order.
    pub fn records(&self) -> impl Iterator<Item = RecordRef<'_>> {
        (0..self.entries.len()).filter_map(|position| self.record(position))
    }

    /// Returns the memory size of the buffer in bytes.
    pub(super) const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns a record's timestamp.
    pub(super) fn timestamp(&self, position: usize) -> Option<i64> {
        self.entries.get(position).map(|entry| entry.timestamp)
    }

    /// Sorts the records by time; records with equal times keep their order.
    pub(super) fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.timestamp);
    }

    /// Returns the buffer's memory for reuse.
    pub(super) fn recycle(self) -> Reused {
        Reused { bytes: self.bytes, entries: self.entries }
    }

    /// Finds the records, up to the end of the buffer or to bytes that are not the start of a
    /// record.
    fn walk(&mut self, cut: bool) {
        let (number, start) = (self.number, self.info.offset);
        let damages = &mut self.damages;
        let mut damage = |at: usize, kind| {
            damages.push(Damage { offset: start + to_u64(at), buffer: number, kind });
        };
        let mut timestamp = None;
        let of_buffer = self.clock.reading_of_buffer(self.info.timestamp);
        // The number of records without a timestamp before the first record with one.
        let mut undated = 0;
        let mut at = layout::BUFFER_HEADER;
        loop {
            let left = self.bytes.get(at..).unwrap_or_default();
            let Some(&first) = left.first_chunk::<4>() else {
                break;
            };
            if first == [layout::FILLER; 4] {
                break;
            }
            let Some(form) = Form::recognize(&first) else {
                let marker = u32::from_le_bytes(first);
                damage(at, DamageKind::NotARecord { marker });
                break;
            };
            let size = form.record_size(left).unwrap_or(0);
            let minimum = form.header_size();
            let record = left.get(..usize::from(size)).filter(|record| record.len() >= minimum);
            let Some(record) = record else {
                // A record truncated by the end of the file is already listed.
                if !cut || usize::from(size) <= left.len() {
                    let kind = DamageKind::RecordSize {
                        size: usize::from(size),
                        minimum,
                        room: left.len(),
                    };
                    damage(at, kind);
                }
                break;
            };
            let here = at;
            at = at.saturating_add(layout::align8(record.len()));
            if number == 0 && here == layout::BUFFER_HEADER {
                continue; // the header event, which was read first
            }
            if form.hook(record) == Some(0) && TraceHeader::is_header(record) {
                damage(here, DamageKind::SecondHeader);
            }
            let own = form.timestamp(record);
            if own.is_some() {
                timestamp = own;
            } else if timestamp.is_none() {
                undated += 1;
            }
            let mut user_data = record.len();
            if form.is_event() {
                let (end, bad_item) = items_end(record);
                user_data = end;
                if bad_item {
                    damage(here + end, DamageKind::ItemOverrun);
                }
            }
            let (Ok(position), Ok(user_data)) = (u32::try_from(here), u16::try_from(user_data))
            else {
                break; // unreachable: a buffer and a record have these sizes
            };
            self.entries.push(Entry {
                timestamp: timestamp.unwrap_or(of_buffer),
                at: position,
                size,
                user_data,
                form,
            });
        }
        // The first timestamp is the best estimate for the records before it.
        let first = self.entries.get(undated).map(|entry| entry.timestamp);
        if let Some(first) = first {
            for entry in self.entries.iter_mut().take(undated) {
                entry.timestamp = first;
            }
        }
    }
}

/// The used part of a buffer, read from the file.
pub(super) struct Part {
    pub info: BufferInfo,
    pub number: u32,
    /// The pointer size of the machine that recorded the trace.
    pub pointer_size: PointerSize,
    pub bytes: Vec<u8>,
    /// True if the file ends inside the used part.
    pub cut: bool,
    /// The damage to the buffer itself.
    pub damages: Vec<Damage>,
}

/// The memory of a buffer that is no longer needed.
#[derive(Debug, Default)]
pub(super) struct Reused {
    pub bytes: Vec<u8>,
    entries: Vec<Entry>,
}
