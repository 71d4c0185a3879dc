//! Traces.

use std::path::Path;

use super::buffer::BufferInfo;
use super::error::{Damage, DamageKind, ReadError};
use super::event::{self, Event, PointerSize};
use super::header::TraceHeader;
use super::other::{Form, Other};
use crate::compression::{self, MAX_SIZE};
use crate::header::log_file_mode;
use crate::layout;
use crate::time::Clock;

/// A record of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An event record.
    Event(Event),
    /// A record of another kind, which is not decoded.
    Other(Other),
}

/// A trace, read from an .etl file.
#[derive(Clone, Debug)]
pub struct Trace {
    header: TraceHeader,
    buffers: Vec<BufferInfo>,
    records: Vec<Record>,
    damages: Vec<Damage>,
}

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    /// Returns [`ReadError::Io`] if the file cannot be read, otherwise the error of
    /// [`parse`](Self::parse).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::parse(&std::fs::read(path)?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Returns [`ReadError`] if the first buffer does not describe a trace. Any other
    /// damage is listed in [`damages`](Self::damages).
    pub fn parse(file: &[u8]) -> Result<Self, ReadError> {
        let too_short = ReadError::TooShort {
            offset: 0,
            what: "header of the first buffer",
        };
        let Some(first) = BufferInfo::parse(file, 0) else {
            return Err(too_short);
        };
        let size = first.size;
        let stride = match usize::try_from(size) {
            Ok(stride) if size.is_multiple_of(8) && MIN_BUFFER <= stride => stride,
            _ => return Err(ReadError::BufferSize { size }),
        };
        if first.flags & layout::FLAG_COMPRESSED != 0 {
            return Err(ReadError::Compressed);
        }
        let buffer_end = stride.min(file.len());
        let header_event = file
            .get(layout::BUFFER_HEADER..buffer_end)
            .unwrap_or_default();
        let offset = to_u64(layout::BUFFER_HEADER);
        let header = TraceHeader::parse(header_event, offset, first.logger_id)?;
        let mut trace = Self {
            header,
            buffers: Vec::new(),
            records: Vec::new(),
            damages: Vec::new(),
        };
        trace.read_buffers(file, size, stride);
        Ok(trace)
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the buffers, in the order of the file.
    #[must_use]
    pub fn buffers(&self) -> &[BufferInfo] {
        &self.buffers
    }

    /// Returns all records except the header event, in the order of the file.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the damaged parts, in the order of the file.
    #[must_use]
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Returns the events, in the order of the file.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.records.iter().filter_map(|record| match record {
            Record::Event(event) => Some(event),
            Record::Other(_) => None,
        })
    }

    /// Returns the records that are not decoded, in the order of the file.
    pub fn others(&self) -> impl Iterator<Item = &Other> {
        self.records.iter().filter_map(|record| match record {
            Record::Event(_) => None,
            Record::Other(other) => Some(other),
        })
    }

    /// Returns the events sorted by time stamp; events with the same time stamp are in the order of
    /// the file.
    #[must_use]
    pub fn events_by_time(&self) -> Vec<&Event> {
        let mut events: Vec<&Event> = self.events().collect();
        events.sort_by_key(|event| event.record.timestamp);
        events
    }

    /// Returns the clock, which converts the trace's time stamps to absolute times.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.header.session.session_clock()
    }

    fn read_buffers(&mut self, file: &[u8], size: u32, stride: usize) {
        let index = if self.is_compressed(file, stride) {
            self.read_by_size(file)
        } else {
            self.read_by_stride(file, size, stride)
        };
        let expected = self.header.buffers_written;
        let circular = self.header.session.log_file_mode & log_file_mode::CIRCULAR != 0;
        if expected > index && !circular {
            self.damages.push(Damage {
                offset: to_u64(file.len()),
                buffer: index,
                kind: DamageKind::MissingBuffers {
                    expected,
                    present: index,
                },
            });
        }
        // A truncated buffer is found before its records are read.
        self.damages
            .sort_by_key(|damage| (damage.buffer, damage.offset));
    }

    /// Returns true if the buffers have different sizes on disk: the header says that they are
    /// compressed, or the second one is.
    fn is_compressed(&self, file: &[u8], stride: usize) -> bool {
        let second = file.get(stride..).unwrap_or_default();
        let second = BufferInfo::parse(second, to_u64(stride));
        self.header.session.is_compressed()
            || second.is_some_and(|second| second.flags & layout::FLAG_COMPRESSED != 0)
    }

    /// Reads buffers of one size, and returns their number.
    fn read_by_stride(&mut self, file: &[u8], size: u32, stride: usize) -> u32 {
        // The space after the last written buffer is preallocated.
        let written = file
            .chunks(stride)
            .rposition(|buffer| !is_blank(buffer))
            .map_or(0, |last| last + 1);
        let mut index = 0;
        for (chunk, start) in file.chunks(stride).zip((0..).step_by(stride)).take(written) {
            self.read_buffer(chunk, index, start, size, stride);
            index += 1;
        }
        index
    }

    /// Reads buffers that follow one another without gaps, each with its own size (ETL-12.2), and
    /// returns their number.
    fn read_by_size(&mut self, file: &[u8]) -> u32 {
        let mut index = 0;
        let mut start = 0;
        while let Some(rest) = file.get(start..).filter(|rest| !rest.is_empty()) {
            let size = rest
                .first_chunk()
                .map_or(0, |size| u32::from_le_bytes(*size));
            let stride = usize::try_from(size).unwrap_or(usize::MAX);
            let header = rest.get(..layout::BUFFER_HEADER);
            match header {
                Some(header) if is_blank(header) => break, // preallocated
                Some(_) if !(layout::BUFFER_HEADER..=MAX_SIZE).contains(&stride) => {
                    self.damages.push(Damage {
                        offset: to_u64(start),
                        buffer: index,
                        kind: DamageKind::BufferSize {
                            expected: self.header.session.buffer_size,
                            found: size,
                        },
                    });
                    break;
                }
                _ => {}
            }
            let chunk = rest.get(..stride).unwrap_or(rest);
            self.read_buffer(chunk, index, to_u64(start), size, stride);
            index += 1;
            start += stride;
        }
        index
    }

    /// Reads one buffer; `chunk` may be truncated by the end of the file.
    fn read_buffer(&mut self, chunk: &[u8], index: u32, start: u64, size: u32, stride: usize) {
        let mut damage = |at: usize, kind| {
            self.damages.push(Damage {
                offset: start + to_u64(at),
                buffer: index,
                kind,
            });
        };
        if chunk.len() < stride {
            let present = chunk.len();
            damage(present, DamageKind::Truncated { present });
        }
        if is_blank(chunk) {
            damage(0, DamageKind::NeverWritten);
            return;
        }
        let Some(info) = BufferInfo::parse(chunk, start) else {
            return; // truncated within its header, which is listed already
        };
        let mut decompressed = Vec::new();
        let compressed = info.flags & layout::FLAG_COMPRESSED != 0;
        let used = if info.size == size {
            let room = if compressed { MAX_SIZE } else { stride };
            let plausible = |used: u32| {
                let used = usize::try_from(used).ok()?;
                (layout::BUFFER_HEADER..=room)
                    .contains(&used)
                    .then_some(used)
            };
            plausible(info.used).or_else(|| {
                damage(
                    layout::USED_OFFSET,
                    DamageKind::Used {
                        used: info.used,
                        size,
                    },
                );
                plausible(info.saved_offset)
            })
        } else {
            damage(
                0,
                DamageKind::BufferSize {
                    expected: size,
                    found: info.size,
                },
            );
            None
        };
        if let Some(used) = used.filter(|_| compressed) {
            // Keeps the place of the header, so that offsets count from the buffer's start.
            decompressed = vec![0; layout::BUFFER_HEADER];
            let content = chunk.get(layout::BUFFER_HEADER..).unwrap_or_default();
            let mut records = Vec::new();
            let wanted = used - layout::BUFFER_HEADER;
            if let Err(error) = compression::decompress_into(content, wanted, &mut records)
                // The end of the file is listed already.
                && chunk.len() == stride
            {
                damage(layout::BUFFER_HEADER, DamageKind::Compression(error));
            }
            decompressed.append(&mut records);
        }
        let processor = info.processor;
        self.buffers.push(info);
        if let Some(used) = used {
            let chunk = if compressed { &decompressed } else { chunk };
            let present = chunk.get(..used).unwrap_or(chunk);
            let cut = present.len() < used;
            let walk = Walk {
                present,
                cut,
                index,
                start,
                processor,
            };
            self.read_records(&walk);
        }
    }

    /// Reads the records of one buffer, up to its end or to bytes that do not start a record.
    fn read_records(&mut self, walk: &Walk<'_>) {
        let clock = self.clock();
        let mut at = layout::BUFFER_HEADER;
        loop {
            let left = walk.present.get(at..).unwrap_or_default();
            let Some(&first) = left.first_chunk::<4>() else {
                return;
            };
            if first == [layout::FILLER; 4] {
                return;
            }
            let offset = walk.start + to_u64(at);
            let damage = |offset, kind| Damage {
                offset,
                buffer: walk.index,
                kind,
            };
            let Some(form) = Form::of(first) else {
                let marker = u32::from_le_bytes(first);
                self.damages
                    .push(damage(offset, DamageKind::NotARecord { marker }));
                return;
            };
            let size = form.record_size(left).unwrap_or(0);
            let minimum = form.header_size();
            let record = left
                .get(..usize::from(size))
                .filter(|record| record.len() >= minimum);
            let Some(record) = record else {
                // A record that is truncated by the end of the file is listed already.
                if !walk.cut || usize::from(size) <= left.len() {
                    let kind = DamageKind::RecordSize {
                        size: usize::from(size),
                        minimum,
                        room: left.len(),
                    };
                    self.damages.push(damage(offset, kind));
                }
                return;
            };
            at = at.saturating_add(layout::align8(record.len()));
            if walk.index == 0 && offset == to_u64(layout::BUFFER_HEADER) {
                continue; // the header event, which was read first
            }
            if let Some((kind, timestamp)) = form.describe(record) {
                self.records.push(Record::Other(Other {
                    kind,
                    offset,
                    size,
                    buffer: walk.index,
                    processor: walk.processor,
                    timestamp,
                }));
            } else if let Some(parsed) = event::parse(record) {
                if let Some(item) = parsed.bad_item {
                    self.damages
                        .push(damage(offset + to_u64(item), DamageKind::ItemOverrun));
                }
                self.records.push(Record::Event(Event {
                    time: clock.to_file_time(parsed.record.timestamp),
                    record: parsed.record,
                    processor: walk.processor,
                    buffer: walk.index,
                    offset,
                    pointer_size: match form {
                        Form::Event32 => PointerSize::Four,
                        _ => PointerSize::Eight,
                    },
                    flags: parsed.flags,
                }));
            }
        }
    }
}

/// The minimum size of a buffer: its header and the header of a record.
const MIN_BUFFER: usize = layout::BUFFER_HEADER + layout::SYSTEM_HEADER;

/// The used part of a buffer and its offset.
struct Walk<'a> {
    present: &'a [u8],
    /// True if the file ends within the used part.
    cut: bool,
    index: u32,
    start: u64,
    processor: u16,
}

/// Returns true if a buffer was preallocated and never written.
fn is_blank(buffer: &[u8]) -> bool {
    let header = buffer.get(..layout::BUFFER_HEADER).unwrap_or(buffer);
    header.iter().all(|&byte| byte == 0)
}

/// Converts an offset within a file, which always fits in 64 bits.
fn to_u64(offset: usize) -> u64 {
    u64::try_from(offset).unwrap_or(u64::MAX)
}
