//! Reads traces buffer by buffer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::buffer::BufferInfo;
use super::error::{Damage, DamageKind, Damages, ReadError};
use super::event::PointerSize;
use super::format::OtherFormat;
use super::header::TraceHeader;
use super::loaded::{LoadedBuffer, Part, Reused};
use super::record::RecordRef;
use super::to_u64;
use crate::compression;
use crate::header::log_file_mode;
use crate::layout::{self, Form};
use crate::time::Clock;

/// The maximum buffer size, which is the maximum for a Windows session.
const MAX_BUFFER: usize = compression::MAX_SIZE;
/// The minimum buffer size: a buffer header and a record header.
const MIN_BUFFER: usize = layout::BUFFER_HEADER + layout::SYSTEM_HEADER;
/// The size of a buffer without records.
const MIN_SIZE: u64 = 72;
/// The number of bytes of a compressed buffer that are read to decompress its first record.
const COMPRESSED_PROBE: usize = 1024;
/// The number of bytes of a buffer that the index needs: the buffer's header, and the first record
/// up to its timestamp.
const PROBE: usize = layout::BUFFER_HEADER + layout::SYSTEM_HEADER;

/// A trace of any length. Only a few of its buffers are in memory at the same time.
///
/// Opening the file reads the headers of its buffers in one pass. [`records`](Self::records) then
/// reads the buffers and returns their records in time order; it keeps one buffer of each processor
/// in memory. [`buffer`](Self::buffer) reads a single buffer.
///
/// The index uses 12 bytes for each buffer, or 20 if buffers are compressed.
#[derive(Debug)]
pub struct TraceFile<R = File> {
    source: R,
    length: u64,
    header: TraceHeader,
    clock: Clock,
    index: Index,
    damages: Damages,
}

/// The offsets of the buffers, and the times of their first records.
#[derive(Debug, Default)]
struct Index {
    /// The distance between buffers of equal size.
    stride: u64,
    /// The size of every buffer, if the sizes are equal.
    size: u32,
    /// True if each buffer has its own size, as in compressed files.
    by_size: bool,
    /// The offsets of the buffers, if the sizes differ.
    offsets: Vec<u64>,
    /// The timestamp of each buffer's first record.
    first: Vec<i64>,
    /// The buffers with records, by the time of their first record.
    order: Vec<u32>,
    /// The number of processors that have buffers.
    processors: usize,
    /// The size of the largest used part of a buffer.
    largest: usize,
}

impl TraceFile<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read, otherwise with the errors
    /// of [`new`](Self::new).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        Self::new(File::open(path)?)
    }
}

impl<R: Read + Seek> TraceFile<R> {
    /// Opens a trace, and reads the headers of its buffers.
    ///
    /// # Errors
    /// Fails with [`ReadError`] if the source cannot be read, or if the first buffer does
    /// not describe a trace. Other damage is listed.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let length = source.seek(SeekFrom::End(0))?;
        let mut start = Vec::new();
        read_at(&mut source, 0, OtherFormat::PROBE, &mut start)?;
        if let Some(found) =
            OtherFormat::recognize(&start).filter(|found| *found != OtherFormat::TRACE)
        {
            return Err(ReadError::OtherFormat(found));
        }
        let first = BufferInfo::parse(&start, 0)
            .ok_or(ReadError::TooShort { offset: 0, what: "header of the first buffer" })?;
        let size = first.size;
        let stride = match usize::try_from(size) {
            Ok(stride) if size.is_multiple_of(8) && (MIN_BUFFER..=MAX_BUFFER).contains(&stride) => {
                stride
            }
            _ => return Err(ReadError::BufferSize { size }),
        };
        if first.flags & layout::FLAG_COMPRESSED != 0 {
            return Err(ReadError::Compressed);
        }
        // The header event can be up to 65,535 bytes long.
        let wanted = stride.min(layout::BUFFER_HEADER + layout::MAX_RECORD);
        read_at(&mut source, 0, wanted, &mut start)?;
        let event = start.get(layout::BUFFER_HEADER..).unwrap_or_default();
        let offset = to_u64(layout::BUFFER_HEADER);
        let header = TraceHeader::parse(event, offset, first.logger_id)?;
        let clock = header.session.session_clock();
        let mut file = Self {
            source,
            length,
            header,
            clock,
            index: Index { stride: to_u64(stride), size, ..Index::default() },
            damages: Damages::default(),
        };
        if let Some(error) = file.header.session.clock_error() {
            let kind = DamageKind::Clock(error);
            file.damages.push(Damage { offset, buffer: 0, kind });
        }
        file.read_index(stride)?;
        Ok(file)
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the clock, which converts the trace's timestamps to absolute times.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the number of buffers, including damaged ones, but without the preallocated end of
    /// the file.
    #[must_use]
    pub fn buffers(&self) -> u32 {
        u32::try_from(self.index.first.len()).unwrap_or(u32::MAX)
    }

    /// Returns the damage to whole buffers, in file order. Damage inside a buffer is found when its
    /// records are read.
    #[must_use]
    pub const fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Reads a buffer, given its number in file order. Returns `None` if there is no such buffer,
    /// or if its header is damaged.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the source cannot be read.
    pub fn buffer(&mut self, number: u32) -> Result<Option<LoadedBuffer>, ReadError> {
        self.load(number, Reused::default())
    }

    /// Calls `each` for every record except the header event, in file order.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the source cannot be read.
    pub fn each_record(&mut self, mut each: impl FnMut(&RecordRef<'_>)) -> Result<(), ReadError> {
        let mut reused = Reused::default();
        for number in 0..self.buffers() {
            if let Some(buffer) = self.load(number, std::mem::take(&mut reused))? {
                buffer.records().for_each(|record| each(&record));
                reused = buffer.recycle();
            }
        }
        Ok(())
    }

    /// Returns a buffer's header, or `None` if the buffer does not exist, was never written, or is
    /// truncated inside its header.
    pub(crate) fn info(&mut self, number: u32) -> Result<Option<BufferInfo>, ReadError> {
        let Some(offset) = self.offset(number) else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        read_at(&mut self.source, offset, layout::BUFFER_HEADER, &mut bytes)?;
        Ok(BufferInfo::parse(&bytes, offset).filter(|_| !is_blank(&bytes)))
    }

    /// Reads a buffer into memory that is reused.
    pub(super) fn load(
        &mut self,
        number: u32,
        mut reused: Reused,
    ) -> Result<Option<LoadedBuffer>, ReadError> {
        let Some(info) = self.info(number)? else {
            return Ok(None);
        };
        let (used, _) = self.used(&info);
        let Some(used) = used else {
            return Ok(None);
        };
        let mut bytes = std::mem::take(&mut reused.bytes);
        let mut damages = Vec::new();
        if info.flags & layout::FLAG_COMPRESSED == 0 {
            read_at(&mut self.source, info.offset, used, &mut bytes)?;
        } else {
            let size = usize::try_from(info.size).unwrap_or(MAX_BUFFER);
            let mut content = Vec::new();
            read_at(&mut self.source, info.offset, size, &mut content)?;
            let whole = content.len() == size;
            let content = content.get(layout::BUFFER_HEADER..).unwrap_or_default();
            let mut records = Vec::new();
            let wanted = used - layout::BUFFER_HEADER;
            if let Err(error) = compression::decompress_into(content, wanted, &mut records)
                // The end of the file is already listed.
                && whole
            {
                damages.push(Damage {
                    offset: info.offset + to_u64(layout::BUFFER_HEADER),
                    buffer: number,
                    kind: DamageKind::Compression(error),
                });
            }
            // Reserves space for the header, so that offsets count from the buffer's start.
            bytes.clear();
            bytes.resize(layout::BUFFER_HEADER, 0);
            bytes.append(&mut records);
        }
        let part = Part {
            cut: bytes.len() < used,
            info,
            number,
            pointer_size: PointerSize::of_trace(self.header.pointer_size),
            bytes,
            damages,
        };
        Ok(Some(LoadedBuffer::new(part, reused, self.clock)))
    }

    /// Returns the buffer at a position in the order of first records, and the time of its first
    /// record.
    pub(super) fn order(&self, position: usize) -> Option<(i64, u32)> {
        let number = *self.index.order.get(position)?;
        let first = *self.index.first.get(number as usize)?;
        Some((first, number))
    }

    /// Returns the maximum number of bytes of buffers in memory at the same time: one buffer for
    /// each processor, plus two.
    pub(super) const fn working_set(&self) -> usize {
        // A buffer's successor is opened before the buffer is closed.
        self.index.largest.saturating_mul(self.index.processors.saturating_add(2))
    }

    fn offset(&self, number: u32) -> Option<u64> {
        if self.index.first.len() <= number as usize {
            return None;
        }
        let known = self.index.offsets.get(number as usize).copied();
        known.or_else(|| self.index.stride.checked_mul(u64::from(number)))
    }

    /// Returns the number of a buffer's used bytes, if the buffer can be read, and its damage.
    fn used(&self, info: &BufferInfo) -> (Option<usize>, Option<(usize, DamageKind)>) {
        let size = info.size;
        if !self.index.by_size && size != self.index.size {
            let kind = DamageKind::BufferSize { expected: self.index.size, found: size };
            return (None, Some((0, kind)));
        }
        let room = if info.flags & layout::FLAG_COMPRESSED == 0 {
            usize::try_from(size).unwrap_or(MAX_BUFFER)
        } else {
            MAX_BUFFER
        };
        let plausible = |used: u32| {
            let used = usize::try_from(used).ok()?;
            (layout::BUFFER_HEADER..=room).contains(&used).then_some(used)
        };
        if let used @ Some(_) = plausible(info.used) {
            return (used, None);
        }
        let kind = DamageKind::Used { used: info.used, size };
        let damage = Some((layout::USED_OFFSET, kind));
        (plausible(info.saved_offset), damage)
    }

    /// Reads the headers of all buffers.
    fn read_index(&mut self, stride: usize) -> Result<(), ReadError> {
        let mut probe = Vec::new();
        let mut processors = BTreeSet::new();
        let mut never_written: u64 = 0;
        let mut offset = 0;
        let mut distance = self.index.stride;
        read_at(&mut self.source, distance, PROBE, &mut probe)?;
        let second = BufferInfo::parse(&probe, distance);
        // If all buffers have the same size, the header event states it. Otherwise, the header
        // event states the size in memory and the first buffer is smaller; a second buffer of
        // another size is then not damage.
        let smaller = self.header.session.buffer_size != self.index.size;
        self.index.by_size = self.header.session.is_compressed()
            || second.is_some_and(|second| {
                second.flags & layout::FLAG_COMPRESSED != 0
                    || (smaller && second.size != self.index.size)
            });
        for number in 0..u32::MAX {
            if offset >= self.length {
                break;
            }
            read_at(&mut self.source, offset, PROBE.min(stride), &mut probe)?;
            let present = self.length - offset;
            if self.index.by_size {
                // Buffers follow one another without gaps, each with its own size (ETL-12.2).
                let size = probe.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
                let is_whole = layout::BUFFER_HEADER <= probe.len();
                if is_whole && is_blank(&probe) {
                    break; // preallocated
                }
                distance = u64::from(size);
                let valid = MIN_SIZE..=to_u64(MAX_BUFFER);
                if !is_whole {
                    distance = distance.max(MIN_SIZE);
                } else if !valid.contains(&distance) {
                    self.damages.push(Damage {
                        offset,
                        buffer: number,
                        kind: DamageKind::BufferSize {
                            expected: self.header.session.buffer_size,
                            found: size,
                        },
                    });
                    break;
                }
            }
            // The space after the last written buffer was preallocated.
            if is_blank(&probe) {
                never_written += 1;
            } else {
                self.note_never_written(&mut never_written, offset);
                let whole = present >= distance;
                if !whole {
                    let present = usize::try_from(present).unwrap_or(stride);
                    self.damages.push(Damage {
                        offset: offset + to_u64(present),
                        buffer: number,
                        kind: DamageKind::Truncated { present },
                    });
                }
                self.index.first.push(i64::MAX);
                if self.index.by_size {
                    self.index.offsets.push(offset);
                }
                if let Some(info) = BufferInfo::parse(&probe, offset) {
                    self.index_buffer(&info, number, &probe, &mut processors)?;
                }
            }
            offset += distance;
        }
        self.index.processors = processors.len();
        let first = &self.index.first;
        // The sort is stable: buffers with equal times stay in file order.
        self.index.order.sort_by_key(|number| first.get(*number as usize));
        let (expected, present) = (self.header.buffers_written, self.buffers());
        let circular = self.header.session.log_file_mode & log_file_mode::CIRCULAR != 0;
        if expected > present && !circular {
            self.damages.push(Damage {
                offset: self.length,
                buffer: present,
                kind: DamageKind::MissingBuffers { expected, present },
            });
        }
        // Until a session has ended, its header does not count all buffers.
        let is_counted = self.header.end_time.is_some()
            && self.header.session.log_file_mode & log_file_mode::APPEND == 0;
        if expected < present && is_counted && !circular {
            self.damages.push(Damage {
                offset: self.length,
                buffer: expected,
                kind: DamageKind::UncountedBuffers { expected, present },
            });
        }
        self.damages.sort();
        Ok(())
    }

    /// Lists never-written buffers that precede a written one.
    fn note_never_written(&mut self, never_written: &mut u64, offset: u64) {
        for missing in (1..=*never_written).rev() {
            let buffer = self.buffers();
            self.index.first.push(i64::MAX);
            self.damages.push(Damage {
                offset: offset - missing * self.index.stride,
                buffer,
                kind: DamageKind::NeverWritten,
            });
        }
        *never_written = 0;
    }

    fn index_buffer(
        &mut self,
        info: &BufferInfo,
        number: u32,
        probe: &[u8],
        processors: &mut BTreeSet<u16>,
    ) -> Result<(), ReadError> {
        let (used, damage) = self.used(info);
        if let Some((at, kind)) = damage {
            self.damages.push(Damage { offset: info.offset + to_u64(at), buffer: number, kind });
        }
        let Some(used) = used else {
            return Ok(());
        };
        let compressed = info.flags & layout::FLAG_COMPRESSED != 0;
        let first = if compressed {
            self.first_compressed(info, used)?
        } else {
            first_timestamp(probe, used, number)
        };
        let first = if let Some(first) = first {
            first
        } else {
            // The first record has no timestamp, or is the header event.
            let loaded = self.load(number, Reused::default())?;
            let timestamp = loaded.as_ref().and_then(|loaded| loaded.timestamp(0));
            let is_damaged = loaded.is_some_and(|loaded| !loaded.damages().is_empty());
            match timestamp {
                Some(first) => first,
                None if is_damaged => self.clock.reading_of_buffer(info.timestamp),
                None => return Ok(()), // not a record
            }
        };
        if let Some(place) = self.index.first.last_mut() {
            *place = first;
        }
        self.index.order.push(number);
        self.index.largest = self.index.largest.max(used);
        processors.insert(info.processor);
        Ok(())
    }
}

impl<R: Read + Seek> TraceFile<R> {
    /// Returns the timestamp of a compressed buffer's first record, if the start of the buffer
    /// contains it.
    fn first_compressed(
        &mut self,
        info: &BufferInfo,
        used: usize,
    ) -> Result<Option<i64>, ReadError> {
        let size = usize::try_from(info.size).unwrap_or(MAX_BUFFER);
        let mut content = Vec::new();
        let wanted = size.min(COMPRESSED_PROBE);
        read_at(&mut self.source, info.offset, wanted, &mut content)?;
        let content = content.get(layout::BUFFER_HEADER..).unwrap_or_default();
        let mut start = Vec::new();
        // The input is truncated, but everything before the truncation is decompressed.
        let _truncated = compression::decompress_into(content, used, &mut start);
        Ok(Form::recognize(&start).and_then(|form| form.timestamp(&start)))
    }
}

/// Returns the timestamp of a buffer's first record, if the start of the buffer contains it.
fn first_timestamp(probe: &[u8], used: usize, number: u32) -> Option<i64> {
    if number == 0 {
        return None;
    }
    let record = probe.get(layout::BUFFER_HEADER..used.min(probe.len()))?;
    Form::recognize(record)?.timestamp(record)
}

/// Reads `length` bytes at `offset`, or fewer at the end of the source.
fn read_at(
    source: &mut (impl Read + Seek),
    offset: u64,
    length: usize,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    source.seek(SeekFrom::Start(offset))?;
    out.resize(length, 0);
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    out.truncate(filled);
    Ok(())
}

/// Returns true if a buffer was preallocated and never written.
fn is_blank(buffer: &[u8]) -> bool {
    let header = buffer.get(..layout::BUFFER_HEADER).unwrap_or(buffer);
    header.iter().all(|&byte| byte == 0)
}
