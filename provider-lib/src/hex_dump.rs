//! Ranges of bytes in events.

/// A range of bytes with its offset, as an event field.
///
/// The field is a structure of three fields: `Offset`, where the range begins, in hexadecimal;
/// `Size`, the number of bytes in the whole buffer; and `Bytes`. Events of both encodings, declared
/// or written by `event!`, can use the type without declaring it:
///
/// ```
/// #[wdk_etw::provider(name = "Contoso.Driver")]
/// mod trace {
///     #[event(level = Verbose, keyword = none)]
///     pub fn transfer_descriptor(device: u32, descriptor: HexDump<'_>);
/// }
///
/// use wdk_etw::{HexDump, emit};
///
/// # fn example(descriptor: &[u8]) {
/// // 64 bytes from offset 0x100, or fewer if the buffer ends before.
/// emit!(trace::transfer_descriptor(7, HexDump::window(descriptor, 0x100, 64)));
/// # }
/// ```
///
/// The bytes are borrowed, so they must not change while the event is written. Copy them first if
/// a device or a program can change them, as in the mapped buffer of a request.
///
/// Bytes that do not fit in the event are cut and counted, as in every field
/// ([`Failures::cut`](crate::Failures::cut)).
///
/// # IRQL
///
/// Any. The bytes must be in system space and, above `APC_LEVEL`, in non-pageable memory; see
/// [`EventDataDescriptor`](crate::EventDataDescriptor).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexDump<'a> {
    /// The offset of the first byte.
    pub offset: u64,
    /// The size of the whole buffer in bytes.
    pub size: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> HexDump<'a> {
    /// Returns the dump of a whole buffer.
    #[must_use]
    pub const fn of(buffer: &'a [u8]) -> Self {
        Self { offset: 0, size: buffer.len() as u64, bytes: buffer }
    }

    /// Returns the dump of at most `length` bytes of a buffer, from an offset. It is shorter if the
    /// buffer ends earlier, and empty if the buffer ends before the offset.
    #[must_use]
    pub fn window(buffer: &'a [u8], offset: usize, length: usize) -> Self {
        let (_, rest) = buffer.split_at(offset.min(buffer.len()));
        let (bytes, _) = rest.split_at(length.min(rest.len()));
        Self { offset: offset as u64, size: buffer.len() as u64, bytes }
    }

    /// Replaces the offset, for example with one that is relative to a register's base address.
    #[must_use]
    pub const fn based_at(mut self, base: u64) -> Self {
        self.offset = self.offset.wrapping_add(base);
        self
    }
}
