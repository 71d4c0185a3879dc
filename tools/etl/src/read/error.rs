//! What can be wrong with a file.

use std::io;

/// A file that cannot be read at all: it has no usable first buffer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file itself could not be read.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The file ends before the fields that describe it.
    #[error("at offset {offset:#x}: the file ends in the {what}")]
    TooShort {
        /// Where the missing structure starts.
        offset: u64,
        /// The missing structure.
        what: &'static str,
    },
    /// The first buffer's size is not one that a buffer can have.
    #[error("at offset 0x0: this is no trace, a buffer cannot have {size} bytes")]
    BufferSize {
        /// The size in the first buffer header.
        size: u32,
    },
    /// The first buffer is compressed.
    #[error("at offset 0x34: the first buffer is compressed, which is not supported")]
    Compressed,
    /// The first record is not a trace's header event.
    #[error("at offset {offset:#x}: this is no trace, the first record is not a header event")]
    NoHeaderEvent {
        /// Where the record starts.
        offset: u64,
    },
}

/// A part of a file that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset:#x}, in buffer {buffer}: {kind}")]
pub struct Damage {
    /// Offset in the file.
    pub offset: u64,
    /// Number of the buffer, in the order of the file.
    pub buffer: u32,
    /// What is wrong there.
    pub kind: DamageKind,
}

/// What is wrong with a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageKind {
    /// The file ends within a buffer.
    #[error("the file ends {present} bytes into the buffer")]
    Truncated {
        /// Bytes of the buffer that are there.
        present: usize,
    },
    /// The header counts buffers that the file does not hold.
    #[error("the header counts {expected} buffers, the file holds {present}")]
    MissingBuffers {
        /// Buffers that the header counts.
        expected: u32,
        /// Buffers in the file.
        present: u32,
    },
    /// All bytes of a buffer header are zero, though buffers follow.
    #[error("the buffer was never written")]
    NeverWritten,
    /// A buffer gives another size than the first one.
    #[error("the buffer gives its size as {found}, the first one as {expected}")]
    BufferSize {
        /// Size of the first buffer.
        expected: u32,
        /// Size in this buffer.
        found: u32,
    },
    /// The number of used bytes is impossible.
    #[error("the buffer cannot use {used} of its {size} bytes")]
    Used {
        /// Used bytes according to the buffer's header.
        used: u32,
        /// Size of a buffer.
        size: u32,
    },
    /// The buffer is compressed, which is not supported.
    #[error("the buffer is compressed, which is not supported")]
    Compressed,
    /// The bytes where a record should start are none.
    #[error("{marker:#010x} does not start a record; the rest of the buffer is skipped")]
    NotARecord {
        /// The four bytes found.
        marker: u32,
    },
    /// A record's size is below that of its header, or beyond the buffer's
    /// used bytes.
    #[error(
        "a record of {size} bytes does not fit ({minimum} to {room}); \
         the rest of the buffer is skipped"
    )]
    RecordSize {
        /// The size in the record.
        size: usize,
        /// Size of the record's header.
        minimum: usize,
        /// Bytes left in the buffer.
        room: usize,
    },
    /// An extended item runs over its record; it and what follows are kept as
    /// user data.
    #[error("an extended item runs over the end of its record")]
    ItemOverrun,
}
