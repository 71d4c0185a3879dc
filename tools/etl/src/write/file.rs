//! The log file of a session.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Seek, SeekFrom, Write};

use super::buffer::Buffer;
use crate::header::{HeaderError, LogFileHeader};
use crate::layout::{self, file_offset};
use crate::read::{DamageKind, Trace};
use crate::time::FileTime;

/// A log file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The header does not describe a valid file.
    #[error("the log file's header is invalid: {0}")]
    Header(#[from] HeaderError),
    /// A buffer without records is never written.
    #[error("a buffer without records cannot be written")]
    EmptyBuffer,
    /// The buffer's size differs from that of the file's buffers.
    #[error("a buffer of {buffer} bytes cannot be written to a file with {file}-byte buffers")]
    BufferSize {
        /// Size of the buffer.
        buffer: u32,
        /// Size of the file's buffers.
        file: u32,
    },
    /// The processor index of the buffer is not below the number of processors in the header.
    #[error(
        "a buffer of processor {processor} cannot be written to a trace of {processors} processors"
    )]
    Processor {
        /// Processor index of the buffer.
        processor: u16,
        /// Number of processors in the header.
        processors: u32,
    },
    /// There is no data buffer to overwrite.
    #[error("the file has no data buffer to overwrite yet")]
    NothingToReplace,
    /// The file already contains as many buffers as its header can count.
    #[error("the file cannot contain more buffers: its header cannot count them")]
    TooManyBuffers,
    /// The recording of the file cannot be continued.
    #[error(
        "the file cannot be continued: {0}; write the events that can be read to a new file, as `etl \
         merge` does"
    )]
    NotContinuable(Obstacle),
    /// The output failed.
    #[error("cannot write the log file: {0}")]
    Io(#[from] io::Error),
}

/// The reason that the recording of a file cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The file ends within a buffer.
    #[error(
        "its last buffer is cut: the file ends at offset 0x{end:X}, within a buffer of {size} bytes"
    )]
    Cut {
        /// Size of the file.
        end: u64,
        /// Size of the file's buffers.
        size: u32,
    },
    /// A buffer is not where the buffers before it end.
    #[error("expected a buffer at offset 0x{expected:X}; the next buffer is at 0x{found:X}")]
    Place {
        /// Offset of the place without a buffer.
        expected: u64,
        /// Offset of the next buffer.
        found: u64,
    },
    /// A buffer has another size than the first one.
    #[error(
        "the buffer at offset 0x{offset:X} has {found} bytes; the file's buffers have {expected}"
    )]
    Size {
        /// Offset of the buffer.
        offset: u64,
        /// Size of the buffer.
        found: u32,
        /// Size of the file's first buffer.
        expected: u32,
    },
    /// No buffer can follow in the sequence.
    #[error(
        "the buffer at offset 0x{offset:X} has the sequence number {sequence}, which is the last one"
    )]
    Sequence {
        /// Offset of the buffer.
        offset: u64,
        /// Sequence number of the buffer.
        sequence: i64,
    },
    /// The file has no buffer.
    #[error("it has no buffer")]
    Empty,
}

/// Losses of a session since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that were not recorded.
    pub events_lost: u32,
    /// Buffers that were not written.
    pub buffers_lost: u32,
}

/// The totals of a session when it stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// The time at which the session stopped.
    pub end_time: FileTime,
    /// Events that were not recorded since the session's start.
    pub events_lost: u32,
    /// Buffers that were not written since the session's start.
    pub buffers_lost: u32,
}

/// A log file being written.
///
/// The header is updated after every buffer, so that a recording that is cut short stays readable.
/// [`finish`](Self::finish) completes it.
///
/// Each call seeks to its position from the start of `W`, so a call that failed can be repeated.
#[derive(Debug)]
pub struct LogFile<W> {
    out: W,
    header: LogFileHeader,
    /// Buffers in the file, the first one included.
    buffers: u32,
    /// Sequence number of the next buffer.
    next_sequence: i64,
    /// The slot that was written last and its flags.
    last: (u32, u16),
    /// The data slots, the oldest first.
    by_age: VecDeque<u32>,
    losses: Losses,
    pending_flags: u16,
    /// What fills the buffers after their records.
    filler: Vec<u8>,
}

impl<W: Write + Seek> LogFile<W> {
    /// Starts a file by writing the first buffer, which describes the trace.
    ///
    /// # Errors
    /// Returns [`WriteError::Header`] if the header is invalid, and [`WriteError::Io`] if the
    /// output fails.
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
        first.write(&mut out, &header, &record, &mut filler)?;
        out.flush()?;
        Ok(Self {
            out,
            header,
            buffers: 1,
            next_sequence: 1,
            last: (0, flags),
            by_age: VecDeque::new(),
            losses: Losses::default(),
            pending_flags: 0,
            filler,
        })
    }

    /// Continues a file whose recording was cut short. `trace` is what [`Trace::open`] reads from
    /// the file, and `out` is the same file.
    ///
    /// # Errors
    /// Returns [`WriteError::NotContinuable`] if the file ends within a buffer, or if its buffers are
    /// not those of one session that this type could have written.
    pub fn resume(out: W, trace: &Trace) -> Result<Self, WriteError> {
        let header = trace.header().session.clone();
        let size = header.buffer_size;
        for damage in trace.damages() {
            if matches!(damage.kind, DamageKind::Truncated { .. }) {
                let end = damage.offset;
                return Err(WriteError::NotContinuable(Obstacle::Cut { end, size }));
            }
        }
        let mut slots = Vec::new();
        for (slot, buffer) in (0_u32..).zip(trace.buffers()) {
            let expected = u64::from(slot) * u64::from(size);
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
            slots.push((buffer.sequence, slot, buffer.flags));
        }
        slots.sort_unstable();
        let (&(sequence, last, flags), buffers) = slots
            .last()
            .zip(u32::try_from(slots.len()).ok())
            .ok_or(WriteError::NotContinuable(Obstacle::Empty))?;
        let next_sequence = sequence
            .checked_add(1)
            .ok_or_else(|| Obstacle::Sequence {
                offset: u64::from(last) * u64::from(size),
                sequence,
            })
            .map_err(WriteError::NotContinuable)?;
        Ok(Self {
            out,
            buffers,
            next_sequence,
            last: (last, flags),
            by_age: slots
                .iter()
                .map(|(_, slot, _)| *slot)
                .filter(|slot| *slot != 0)
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
    /// Returns [`WriteError`]. On error, the file contains the same buffers as before.
    pub fn append(&mut self, buffer: &Buffer, flush_time: i64) -> Result<(), WriteError> {
        self.check(buffer)?;
        let slot = self.buffers;
        let buffers = slot.checked_add(1).ok_or(WriteError::TooManyBuffers)?;
        self.write_slot(slot, buffer, flush_time)?;
        self.patch_u32(file_offset::BUFFERS_WRITTEN, buffers)?;
        self.out.flush()?;
        self.buffers = buffers;
        self.by_age.push_back(slot);
        Ok(())
    }

    /// Overwrites the oldest data buffer, as a circular log file does at its maximum size. The
    /// first buffer is kept.
    ///
    /// # Errors
    /// Returns [`WriteError::NothingToReplace`] if the file has no data buffer yet, and otherwise
    /// the errors of [`append`](Self::append). If the output fails, the overwritten buffer may be
    /// lost.
    pub fn replace_oldest(&mut self, buffer: &Buffer, flush_time: i64) -> Result<(), WriteError> {
        self.check(buffer)?;
        let slot = *self.by_age.front().ok_or(WriteError::NothingToReplace)?;
        self.write_slot(slot, buffer, flush_time)?;
        self.out.flush()?;
        self.by_age.rotate_left(1);
        Ok(())
    }

    /// Sets the losses since the session's start. The next buffer that is written is marked, and
    /// the header then counts the losses.
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
    pub fn len(&self) -> u64 {
        u64::from(self.buffers) * u64::from(self.header.buffer_size)
    }

    /// Returns true if the file contains no data buffer.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.buffers == 1
    }

    /// Completes the header, marks the last buffer, and returns the output.
    ///
    /// # Errors
    /// Returns [`WriteError::Io`] if the output fails.
    pub fn finish(mut self, finish: Finish) -> Result<W, WriteError> {
        let (slot, flags) = self.last;
        let flag_at = self.slot_offset(slot) + file_offset::BUFFER_FLAG;
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

    /// Writes a buffer into a slot and records the slot.
    fn write_slot(&mut self, slot: u32, buffer: &Buffer, time: i64) -> Result<(), WriteError> {
        let flags = layout::FLAG_PROCESSOR_INDEX | self.pending_flags;
        let offset = self.slot_offset(slot);
        let header = BufferHeader {
            timestamp: time,
            sequence: self.next_sequence,
            processor: buffer.processor(),
            flags,
            buffer_type: layout::TYPE_GENERIC,
        };
        self.out.seek(SeekFrom::Start(offset))?;
        let records = buffer.records();
        header.write(&mut self.out, &self.header, records, &mut self.filler)?;
        if self.pending_flags != 0 {
            self.patch_u32(file_offset::EVENTS_LOST, self.losses.events_lost)?;
            self.patch_u32(file_offset::BUFFERS_LOST, self.losses.buffers_lost)?;
        }
        self.next_sequence += 1;
        self.last = (slot, flags);
        self.pending_flags = 0;
        Ok(())
    }

    /// Returns the offset of a slot in the file.
    fn slot_offset(&self, slot: u32) -> u64 {
        u64::from(slot) * u64::from(self.header.buffer_size)
    }

    fn patch_u32(&mut self, offset: u64, value: u32) -> io::Result<()> {
        self.patch(offset, &value.to_le_bytes())
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(offset))?;
        self.out.write_all(bytes)
    }
}

/// Writes several pieces as if they were one, without copying them together.
fn write_all(to: &mut impl Write, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Leaves out empty pieces at the start.
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

/// The fields of a buffer header that differ between buffers.
struct BufferHeader {
    timestamp: i64,
    sequence: i64,
    processor: u16,
    flags: u16,
    buffer_type: u16,
}

impl BufferHeader {
    /// Writes the whole buffer: header, records and filler, of which `filler` keeps enough for all
    /// buffers. The records must be padded and must fit.
    fn write(
        &self,
        to: &mut impl Write,
        file: &LogFileHeader,
        records: &[u8],
        filler: &mut Vec<u8>,
    ) -> io::Result<()> {
        let size = file.buffer_size;
        // A buffer has at most 1 MiB, so the number of used bytes fits.
        let used = u32::try_from(layout::BUFFER_HEADER + records.len())
            .map_or(size, |used| used.min(size))
            .to_le_bytes();
        let mut out = Vec::with_capacity(layout::BUFFER_HEADER);
        out.extend(size.to_le_bytes());
        out.extend(used); // SavedOffset
        out.extend(used); // CurrentOffset
        out.extend([0; 4]); // ReferenceCount
        out.extend(self.timestamp.to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend([0; 8]); // clock type and frequency, in memory only
        out.extend(self.processor.to_le_bytes());
        out.extend(file.logger_id.to_le_bytes());
        out.extend(layout::STATE_FLUSH.to_le_bytes());
        out.extend(used); // Offset
        out.extend(self.flags.to_le_bytes());
        out.extend(self.buffer_type.to_le_bytes());
        out.extend([0; 16]); // list links, in memory only
        let rest = (size as usize).saturating_sub(out.len() + records.len());
        if filler.len() < rest {
            filler.resize(rest, layout::FILLER);
        }
        let filler = filler.get(..rest).unwrap_or_default();
        write_all(to, &mut [&out, records, filler].map(IoSlice::new))
    }
}
