//! A session's log file.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Seek, SeekFrom, Write};

use super::buffer::Buffer;
use crate::compression;
use crate::header::{HeaderError, LogFileHeader};
use crate::layout::{self, file_offset};
use crate::read::{DamageKind, Trace};
use crate::time::FileTime;

/// The reason why a log file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The header does not describe a valid file.
    #[error("the log file's header is invalid: {0}")]
    Header(#[from] HeaderError),
    /// The buffer has no records; such buffers are never written.
    #[error("a buffer without records cannot be written")]
    EmptyBuffer,
    /// The buffer's size differs from the size of the file's buffers.
    #[error("a buffer of {buffer} bytes cannot be written to a file with {file}-byte buffers")]
    BufferSize {
        /// The size of the buffer.
        buffer: u32,
        /// The size of the file's buffers.
        file: u32,
    },
    /// The buffer's processor index is not less than the number of processors in the header.
    #[error(
        "a buffer of processor {processor} cannot be written to a trace of {processors} processors"
    )]
    Processor {
        /// The processor index of the buffer.
        processor: u16,
        /// The number of processors in the header.
        processors: u32,
    },
    /// The buffers of a compressed file differ in size, so none can replace another.
    #[error("a buffer of a compressed file cannot be overwritten; a circular file is uncompressed")]
    Compressed,
    /// There is no data buffer to overwrite.
    #[error("the file has no data buffer to overwrite yet")]
    NothingToReplace,
    /// The file already contains as many buffers as its header can count.
    #[error("the file cannot contain more buffers: its header cannot count them")]
    TooManyBuffers,
    /// The file cannot be continued.
    #[error(
        "the file cannot be continued: {0}; write the events that can be read to a new file, as `etl \
         merge` does"
    )]
    NotContinuable(Obstacle),
    /// The output failed.
    #[error("cannot write the log file: {0}")]
    Io(#[from] io::Error),
}

/// The reason why a file cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// The file ends inside a buffer.
    #[error(
        "its last buffer is truncated: the file ends at offset 0x{end:X}, inside a buffer of \
         {size} bytes"
    )]
    Cut {
        /// The size of the file.
        end: u64,
        /// The size of the file's buffers.
        size: u32,
    },
    /// There is a gap before a buffer.
    #[error("expected a buffer at offset 0x{expected:X}; the next buffer is at 0x{found:X}")]
    Place {
        /// The offset at which the buffer was expected.
        expected: u64,
        /// The offset of the buffer.
        found: u64,
    },
    /// A buffer's size differs from the first buffer's size.
    #[error(
        "the buffer at offset 0x{offset:X} is {found} bytes long; the file's buffers are {expected}"
    )]
    Size {
        /// The offset of the buffer.
        offset: u64,
        /// The size of the buffer.
        found: u32,
        /// The size of the file's first buffer.
        expected: u32,
    },
    /// No sequence number is left for the next buffer.
    #[error(
        "the buffer at offset 0x{offset:X} has the sequence number {sequence}, which is the last one"
    )]
    Sequence {
        /// The offset of the buffer.
        offset: u64,
        /// The sequence number of the buffer.
        sequence: i64,
    },
    /// The file has no buffers.
    #[error("it has no buffer")]
    Empty,
    /// The file's buffers are compressed.
    #[error("its buffers are compressed")]
    Compressed,
}

/// A session's losses since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The number of events that were not recorded.
    pub events_lost: u32,
    /// The number of buffers that were not written.
    pub buffers_lost: u32,
}

/// A session's totals when it stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// The time at which the session stopped.
    pub end_time: FileTime,
    /// The number of events that were not recorded since the session's start.
    pub events_lost: u32,
    /// The number of buffers that were not written since the session's start.
    pub buffers_lost: u32,
}

/// A log file being written.
///
/// The header is updated after every buffer, so that an interrupted recording stays readable.
/// [`finish`](Self::finish) completes it.
///
/// If the header's mode includes
/// [`log_file_mode::COMPRESSED`](crate::header::log_file_mode::COMPRESSED), buffers are compressed
/// unless that would not make them smaller.
///
/// Each call seeks to its position from the start of `W`, so a failed call can be repeated.
#[derive(Debug)]
pub struct LogFile<W> {
    out: W,
    header: LogFileHeader,
    /// The number of buffers in the file, including the first.
    buffers: u32,
    /// The sequence number of the next buffer.
    next_sequence: i64,
    /// The size of the file.
    end: u64,
    /// The offset and flags of the buffer that was written last.
    last: (u64, u16),
    /// The offsets of the data buffers, oldest first.
    by_age: VecDeque<u64>,
    losses: Losses,
    pending_flags: u16,
    /// The bytes that fill buffers after their records.
    filler: Vec<u8>,
}

impl<W: Write + Seek> LogFile<W> {
    /// Creates a file by writing the first buffer, which describes the trace.
    ///
    /// # Errors
    /// Fails with [`WriteError::Header`] if the header is invalid, and with
    /// [`WriteError::Io`] if the output fails.
    pub fn create(mut out: W, header: LogFileHeader) -> Result<Self, WriteError> {
        let mut record = header.encode()?;
        record.resize(layout::align8(record.len()), 0);
        let flags = layout::FLAG_FLUSH_MARKER | layout::FLAG_PROCESSOR_INDEX;
        let first = BufferHeader {
            timestamp: 0,
            sequence: 0,
            processor: 0,
            flags,
            buffer_type: layout::TYPE_HEADER,
        };
        out.seek(SeekFrom::Start(0))?;
        let mut filler = Vec::new();
        let content =
            if header.is_compressed() { Content::Short(&record) } else { Content::Whole(&record) };
        let end = first.write(&mut out, &header, &content, &mut filler)?;
        out.flush()?;
        Ok(Self {
            out,
            header,
            buffers: 1,
            end: u64::from(end),
            next_sequence: 1,
            last: (0, flags),
            by_age: VecDeque::new(),
            losses: Losses::default(),
            pending_flags: 0,
            filler,
        })
    }

    /// Continues a file whose recording was interrupted. `trace` is the result of [`Trace::open`]
    /// for the file, and `out` is the same file.
    ///
    /// # Errors
    /// Fails with [`WriteError::NotContinuable`] if the file ends inside a buffer, or if
    /// this type could not have written its buffers in one session.
    pub fn resume(out: W, trace: &Trace) -> Result<Self, WriteError> {
        let header = trace.header().session.clone();
        let size = header.buffer_size;
        let flags = trace.buffers().iter().fold(0, |all, it| all | it.flags);
        if header.is_compressed() || flags & layout::FLAG_COMPRESSED != 0 {
            return Err(WriteError::NotContinuable(Obstacle::Compressed));
        }
        for damage in trace.damages() {
            if matches!(damage.kind, DamageKind::Truncated { .. }) {
                let end = damage.offset;
                return Err(WriteError::NotContinuable(Obstacle::Cut { end, size }));
            }
        }
        let mut slots = Vec::new();
        for (expected, buffer) in (0..).step_by(size as usize).zip(trace.buffers()) {
            if buffer.offset != expected {
                return Err(WriteError::NotContinuable(Obstacle::Place {
                    expected,
                    found: buffer.offset,
                }));
            }
            if buffer.size != size {
                return Err(WriteError::NotContinuable(Obstacle::Size {
                    offset: buffer.offset,
                    found: buffer.size,
                    expected: size,
                }));
            }
            slots.push((buffer.sequence, buffer.offset, buffer.flags));
        }
        slots.sort_unstable();
        let (&(sequence, last, flags), buffers) = slots
            .last()
            .zip(u32::try_from(slots.len()).ok())
            .ok_or(WriteError::NotContinuable(Obstacle::Empty))?;
        let next_sequence = sequence
            .checked_add(1)
            .ok_or(Obstacle::Sequence { offset: last, sequence })
            .map_err(WriteError::NotContinuable)?;
        Ok(Self {
            out,
            buffers,
            end: u64::from(buffers) * u64::from(size),
            next_sequence,
            last: (last, flags),
            by_age: slots
                .iter()
                .map(|(_, offset, _)| *offset)
                .filter(|offset| *offset != 0)
                .collect(),
            losses: Losses {
                events_lost: trace.header().events_lost,
                buffers_lost: trace.header().buffers_lost,
            },
            pending_flags: 0,
            filler: Vec::new(),
            header,
        })
    }

    /// Appends a buffer. `flush_time` is the clock's reading at the flush.
    ///
    /// # Errors
    /// Fails with [`WriteError`]. On error, the file contains the same buffers as before.
    pub fn append(&mut self, buffer: &Buffer, flush_time: i64) -> Result<(), WriteError> {
        self.check(buffer)?;
        let offset = self.end;
        let buffers = self.buffers.checked_add(1);
        let buffers = buffers.ok_or(WriteError::TooManyBuffers)?;
        let size = self.write_at(offset, buffer, flush_time)?;
        self.patch_u32(file_offset::BUFFERS_WRITTEN, buffers)?;
        self.out.flush()?;
        self.buffers = buffers;
        self.end = offset.saturating_add(u64::from(size));
        self.by_age.push_back(offset);
        Ok(())
    }

    /// Overwrites the oldest data buffer, like a circular log file at its maximum size. Keeps the
    /// first buffer.
    ///
    /// # Errors
    /// Fails with [`WriteError::NothingToReplace`] if the file has no data buffer yet,
    /// with [`WriteError::Compressed`] if the file is compressed, and otherwise with the errors of
    /// [`append`](Self::append). If the output fails, the overwritten buffer can be lost.
    pub fn replace_oldest(&mut self, buffer: &Buffer, flush_time: i64) -> Result<(), WriteError> {
        self.check(buffer)?;
        if self.header.is_compressed() {
            return Err(WriteError::Compressed);
        }
        let offset = *self.by_age.front().ok_or(WriteError::NothingToReplace)?;
        self.write_at(offset, buffer, flush_time)?;
        self.out.flush()?;
        self.by_age.rotate_left(1);
        Ok(())
    }

    /// Sets the losses since the session's start. Writing the next buffer marks it and updates the
    /// losses in the header.
    pub const fn note_losses(&mut self, losses: Losses) {
        if losses.events_lost != self.losses.events_lost {
            self.pending_flags |= layout::FLAG_EVENTS_LOST;
        }
        if losses.buffers_lost != self.losses.buffers_lost {
            self.pending_flags |= layout::FLAG_BUFFER_LOST;
        }
        self.losses = losses;
    }

    /// Returns the number of buffers in the file, including the first.
    #[must_use]
    pub const fn buffers_written(&self) -> u32 {
        self.buffers
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.end
    }

    /// Returns true if the file contains no data buffers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.buffers == 1
    }

    /// Completes the header, marks the last buffer, and returns the output.
    ///
    /// # Errors
    /// Fails with [`WriteError::Io`] if the output fails.
    pub fn finish(mut self, finish: Finish) -> Result<W, WriteError> {
        let (offset, flags) = self.last;
        let flag_at = offset.saturating_add(file_offset::BUFFER_FLAG);
        self.patch(flag_at, &(flags | layout::FLAG_FLUSH_MARKER).to_le_bytes())?;
        self.patch_u32(file_offset::BUFFERS_WRITTEN, self.buffers)?;
        self.patch_u32(file_offset::EVENTS_LOST, finish.events_lost)?;
        self.patch_u32(file_offset::BUFFERS_LOST, finish.buffers_lost)?;
        let end_time = finish.end_time.raw().to_le_bytes();
        self.patch(file_offset::END_TIME, &end_time)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Checks that a buffer can be written to this file.
    fn check(&self, buffer: &Buffer) -> Result<(), WriteError> {
        if buffer.is_empty() {
            return Err(WriteError::EmptyBuffer);
        }
        if buffer.size() != self.header.buffer_size {
            return Err(WriteError::BufferSize {
                buffer: buffer.size(),
                file: self.header.buffer_size,
            });
        }
        if u32::from(buffer.processor()) >= self.header.processors {
            return Err(WriteError::Processor {
                processor: buffer.processor(),
                processors: self.header.processors,
            });
        }
        Ok(())
    }

    /// Writes a buffer, remembers its offset, and returns its size on disk.
    fn write_at(&mut self, offset: u64, buffer: &Buffer, time: i64) -> Result<u32, WriteError> {
        let records = buffer.records();
        let compressed = self.header.is_compressed();
        let compressed = compressed.then(|| compression::compress(records));
        let content = match &compressed {
            None => Content::Whole(records),
            Some(bytes) if bytes.len() < records.len() => {
                Content::Compressed { bytes, size: records.len() }
            }
            Some(_) => Content::Short(records),
        };
        let mut flags = layout::FLAG_PROCESSOR_INDEX | self.pending_flags;
        if matches!(content, Content::Compressed { .. }) {
            flags |= layout::FLAG_COMPRESSED;
        }
        let header = BufferHeader {
            timestamp: time,
            sequence: self.next_sequence,
            processor: buffer.processor(),
            flags,
            buffer_type: layout::TYPE_GENERIC,
        };
        self.out.seek(SeekFrom::Start(offset))?;
        let size = header.write(&mut self.out, &self.header, &content, &mut self.filler)?;
        if self.pending_flags != 0 {
            self.patch_u32(file_offset::EVENTS_LOST, self.losses.events_lost)?;
            self.patch_u32(file_offset::BUFFERS_LOST, self.losses.buffers_lost)?;
        }
        self.next_sequence += 1;
        self.last = (offset, flags);
        self.pending_flags = 0;
        Ok(size)
    }

    fn patch_u32(&mut self, offset: u64, value: u32) -> io::Result<()> {
        self.patch(offset, &value.to_le_bytes())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(offset))?;
        self.out.write_all(bytes)
    }
}

/// Writes consecutive slices without first copying them into one buffer.
fn write_all(to: &mut impl Write, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Skips empty slices at the start.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match to.write_vectored(pieces) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut pieces, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The content of a buffer on disk. The records are padded, and they fit in the file's buffers.
enum Content<'a> {
    /// Records, with filler up to the size of the file's buffers.
    Whole(&'a [u8]),
    /// Records, with filler up to the next sector: a plain buffer in a compressed file.
    Short(&'a [u8]),
    /// Compressed records, whose uncompressed size is `size`.
    Compressed { bytes: &'a [u8], size: usize },
}

impl Content<'_> {
    /// Returns the bytes on disk, the number of used bytes, and the buffer's size; both numbers
    /// include the buffer header.
    fn layout(&self, buffer_size: u32) -> (&[u8], u32, u32) {
        // A buffer is at most 1 MiB large, so the numbers fit.
        let with_header = |size: usize| {
            let whole = layout::BUFFER_HEADER.saturating_add(size);
            u32::try_from(whole).unwrap_or(u32::MAX)
        };
        match self {
            Self::Whole(records) => (records, with_header(records.len()), buffer_size),
            Self::Short(records) => {
                let used = with_header(records.len());
                let sector = u32::try_from(layout::SECTOR).unwrap_or(1);
                (records, used, used.next_multiple_of(sector))
            }
            Self::Compressed { bytes, size } => {
                (bytes, with_header(*size), with_header(bytes.len()))
            }
        }
    }
}

/// The fields of a buffer header that differ from buffer to buffer.
struct BufferHeader {
    timestamp: i64,
    sequence: i64,
    processor: u16,
    flags: u16,
    buffer_type: u16,
}

impl BufferHeader {
    /// Writes a whole buffer: header, content and filler. `filler` must be long enough for every
    /// buffer. Returns the buffer's size on disk.
    fn write(
        &self,
        to: &mut impl Write,
        file: &LogFileHeader,
        content: &Content<'_>,
        filler: &mut Vec<u8>,
    ) -> io::Result<u32> {
        let (content, used, size) = content.layout(file.buffer_size);
        let used = used.to_le_bytes();
        let mut out = Vec::with_capacity(layout::BUFFER_HEADER);
        out.extend(size.to_le_bytes());
        out.extend(used); // SavedOffset
        out.extend(used); // CurrentOffset
        out.extend([0; 4]); // ReferenceCount
        out.extend(self.timestamp.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend([0; 8]); // clock type and frequency, only used in memory
        out.extend(self.processor.to_le_bytes());
        out.extend(file.logger_id.to_le_bytes());
        out.extend(layout::STATE_FLUSH.to_le_bytes());
        out.extend(used); // Offset
        out.extend(self.flags.to_le_bytes());
        out.extend(self.buffer_type.to_le_bytes());
        out.extend([0; 16]); // list links, only used in memory
        let rest = (size as usize).saturating_sub(out.len() + content.len());
        filler.resize(filler.len().max(rest), layout::FILLER);
        let filler = filler.get(..rest).unwrap_or_default();
        write_all(to, &mut [&out, content, filler].map(IoSlice::new))?;
        Ok(size)
    }
}
