//! The header of a buffer on disk.

use crate::cursor::Cursor;
use crate::layout;

/// The header of a buffer (`WMI_BUFFER_HEADER`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferInfo {
    /// The offset of the buffer in the file.
    pub offset: u64,
    /// `BufferSize`.
    pub size: u32,
    /// `SavedOffset`: the number of used bytes, including the header.
    pub saved_offset: u32,
    /// `CurrentOffset`; meaningless on disk.
    pub current_offset: u32,
    /// `ReferenceCount`.
    pub reference_count: i32,
    /// `TimeStamp`: the clock's reading at the flush or, in merged files, the time as a FILETIME.
    pub timestamp: i64,
    /// `SequenceNumber`: the order in which the buffers were handed out.
    pub sequence: i64,
    /// The processor that the buffer belongs to.
    pub processor: u16,
    /// The session's logger id.
    pub logger_id: u16,
    /// `State`; 3 on disk.
    pub state: u32,
    /// `Offset`: the number of used bytes, including the header.
    pub used: u32,
    /// `BufferFlag`.
    pub flags: u16,
    /// `BufferType`; 4 for the first buffer, 0 for ordinary ones.
    pub buffer_type: u16,
}

impl BufferInfo {
    /// Reads the 72 bytes of a buffer header.
    pub(super) fn parse(bytes: &[u8], offset: u64) -> Option<Self> {
        let mut c = Cursor::new(bytes);
        let mut info = Self {
            offset,
            size: c.u32()?,
            saved_offset: c.u32()?,
            current_offset: c.u32()?,
            reference_count: c.i32()?,
            timestamp: c.i64()?,
            sequence: c.i64()?,
            // After the clock's type and frequency, or a pointer.
            processor: c.skip(8)?.u16()?,
            logger_id: c.u16()?,
            state: c.u32()?,
            used: c.u32()?,
            flags: c.u16()?,
            buffer_type: c.u16()?,
        };
        c.skip(16)?; // list links
        if info.flags & layout::FLAG_PROCESSOR_INDEX == 0 {
            info.processor &= 0xFF;
        }
        Some(info)
    }
}
