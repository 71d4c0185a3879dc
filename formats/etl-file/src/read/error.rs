//! Errors of files, and damage in files.

use std::io;

use super::format::OtherFormat;
use crate::compression::CompressionError;
use crate::header::HeaderError;

/// The reason why a file cannot be read at all: it has no usable first buffer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file itself could not be read.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The file ends within its header.
    #[error("at offset {offset:#x}: the file ends within the {what}")]
    TooShort {
        /// The offset of the truncated structure.
        offset: u64,
        /// The truncated structure.
        what: &'static str,
    },
    /// The file has another format.
    #[error("not an .etl file, but {0}")]
    OtherFormat(OtherFormat),
    /// The first buffer's size is not a valid buffer size.
    #[error("at offset 0x0: not an .etl file: a buffer cannot be {size} bytes long")]
    BufferSize {
        /// The size in the first buffer header.
        size: u32,
    },
    /// The first buffer is compressed.
    #[error(
        "at offset 0x34: the first buffer is compressed, but it has to describe the trace; the file \
         is damaged or has an unknown layout"
    )]
    Compressed,
    /// The first record is not a trace's header event.
    #[error("at offset {offset:#x}: not an .etl file: the first record is not a header event")]
    NoHeaderEvent {
        /// The offset of the record.
        offset: u64,
    },
}

/// A part of a file that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset:#x}, in buffer {buffer}: {kind}")]
pub struct Damage {
    /// The offset in the file.
    pub offset: u64,
    /// The number of the buffer, in file order.
    pub buffer: u32,
    /// The kind of damage.
    pub kind: DamageKind,
}

/// The damaged parts of a file: the first ones, and the total number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damages {
    listed: Vec<Damage>,
    count: u64,
}

impl Damages {
    /// The maximum number of listed parts.
    #[doc(hidden)]
    pub const MAX_LISTED: usize = 1000;

    /// Adds a part. If the list is full, only counts it.
    pub(super) fn push(&mut self, damage: Damage) {
        self.count += 1;
        if self.listed.len() < Self::MAX_LISTED {
            self.listed.push(damage);
        }
    }

    /// Sorts the listed parts by buffer and offset.
    pub(super) fn sort(&mut self) {
        self.listed.sort_by_key(|damage| (damage.buffer, damage.offset));
    }

    /// Returns the listed parts, at most [`MAX_LISTED`](Self::MAX_LISTED).
    #[must_use]
    pub fn listed(&self) -> &[Damage] {
        &self.listed
    }

    /// Returns the number of damaged parts, including those that are not listed.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of damaged parts that are not listed.
    #[must_use]
    pub fn unlisted(&self) -> u64 {
        let listed = u64::try_from(self.listed.len()).unwrap_or(u64::MAX);
        self.count.saturating_sub(listed)
    }

    /// Returns true if there are no damaged parts.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends inside a buffer.
    #[error("the file ends {present} bytes into the buffer")]
    Truncated {
        /// The number of bytes that are present.
        present: usize,
    },
    /// The header states more buffers than the file contains.
    #[error("the header counts {expected} buffers, but the file contains {present}")]
    MissingBuffers {
        /// The number of buffers that the header states.
        expected: u32,
        /// The number of buffers in the file.
        present: u32,
    },
    /// The session has ended, and its header states fewer buffers than the file contains.
    #[error(
        "the header counts {expected} buffers, but the file contains {present}; buffers of another \
         session may be among them"
    )]
    UncountedBuffers {
        /// The number of buffers that the header states.
        expected: u32,
        /// The number of buffers in the file.
        present: u32,
    },
    /// A second header event.
    #[error(
        "this is a second header event; later timestamps are converted with the first header's \
         clock, and are wrong if the clock differs"
    )]
    SecondHeader,
    /// The header event does not define how to convert timestamps.
    #[error("times are unknown, and all are shown as the start of the session: {0}")]
    Clock(HeaderError),
    /// A buffer header is all zeros, but other buffers follow.
    #[error("the buffer was never written")]
    NeverWritten,
    /// A buffer's size differs from the first buffer's size.
    #[error("the buffer's size is {found}, but the first buffer's size is {expected}")]
    BufferSize {
        /// The size of the first buffer.
        expected: u32,
        /// The size of this buffer.
        found: u32,
    },
    /// The number of used bytes is impossible.
    #[error("the buffer claims to use {used} bytes, but it has {size}")]
    Used {
        /// The number of used bytes that the buffer's header states.
        used: u32,
        /// The size of the buffer.
        size: u32,
    },
    /// The content of a compressed buffer is damaged. The bytes before the damage are read.
    #[error("cannot decompress the buffer: {0}")]
    Compression(CompressionError),
    /// The bytes are not the start of a record, but a record is expected.
    #[error("{marker:#010x} does not start a record; skipping the rest of the buffer")]
    NotARecord {
        /// The four bytes that were found.
        marker: u32,
    },
    /// A record is smaller than its header, or extends past the buffer's used bytes.
    #[error(
        "invalid record size {size}; expected {minimum} to {room} bytes; skipping the rest of the \
         buffer"
    )]
    RecordSize {
        /// The size that the record states.
        size: usize,
        /// The size of the record's header.
        minimum: usize,
        /// The number of bytes left in the buffer.
        room: usize,
    },
    /// An extended item ends beyond its record. The item and the bytes after it are kept as user
    /// data.
    #[error("an extended item ends beyond its record")]
    ItemOverrun,
}
