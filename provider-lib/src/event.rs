//! The types and functions that generated code uses to write events.
//!
//! An event's constant part is one blob, so that a write site passes a single address. A write site
//! checks whether a session enables the event, and passes the fields' values to a function that all
//! events with the same field types share. That function assembles the data descriptors; see
//! `layout.rs` of `wdk-etw-schema`.

use core::{ffi::CStr, net::SocketAddr, ptr, slice};

use crate::{
    Channel, EventDataDescriptor, EventDescriptor, NtStatus, PlainData, Provider,
    rundown::Guard,
    text::{self, Formatted},
    write::{About, Options},
};

/// An event's constant part: its event descriptor and, for a `TraceLogging` event, its metadata.
#[repr(C)]
pub struct EventBlob<const N: usize> {
    descriptor: EventDescriptor,
    metadata: [u8; N],
}

impl<const N: usize> EventBlob<N> {
    /// Creates the blob of an event. The metadata is empty for a manifest event; otherwise its
    /// first two bytes are its size.
    ///
    /// # Panics
    ///
    /// Panics, at compile time, if the first two bytes are not the metadata's size.
    #[must_use]
    pub const fn new(descriptor: EventDescriptor, metadata: [u8; N]) -> Self {
        let size = match metadata.as_slice() {
            [low, high, ..] => u16::from_le_bytes([*low, *high]) as usize,
            _ => 0,
        };
        assert!(size == N, "event metadata begins with its size");
        Self { descriptor, metadata }
    }

    /// Returns a reference to a manifest event.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function only takes an address")]
    pub const fn manifest(&'static self) -> EventRef<false> {
        EventRef(ptr::from_ref(self).cast())
    }

    /// Returns a reference to a `TraceLogging` event.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function only takes an address")]
    pub const fn tracelogging(&'static self) -> EventRef<true> {
        const {
            assert!(N >= 2, "a TraceLogging event must have metadata");
        }
        EventRef(ptr::from_ref(self).cast())
    }
}

/// A reference to an [`EventBlob`] of any size, which contains metadata if `HAS_METADATA`.
#[derive(Clone, Copy)]
pub struct EventRef<const HAS_METADATA: bool>(*const EventBlob<0>);

// SAFETY: the pointer was created from a reference to a static, which any thread may read.
unsafe impl<const HAS_METADATA: bool> Send for EventRef<HAS_METADATA> {}

impl<const HAS_METADATA: bool> EventRef<HAS_METADATA> {
    pub(crate) const fn descriptor(self) -> &'static EventDescriptor {
        // SAFETY: `EventBlob` created the pointer from a `&'static` blob.
        let blob = unsafe { &*self.0 };
        &blob.descriptor
    }

    /// Returns the name of a `TraceLogging` event, or an empty string for a manifest event.
    fn name(self) -> &'static CStr {
        if HAS_METADATA { name_in(EventRef::<true>(self.0).metadata()) } else { c"" }
    }
}

impl EventRef<true> {
    /// Returns the event metadata.
    const fn metadata(self) -> &'static [u8] {
        // SAFETY: the pointer is to a whole blob, whose metadata follows the descriptor.
        let start = unsafe { self.0.cast::<u8>().add(size_of::<EventDescriptor>()) };
        // SAFETY: `EventBlob::tracelogging` checked that the metadata is at least two bytes long.
        let size = unsafe { start.cast::<[u8; 2]>().read() };
        // SAFETY: `EventBlob::new` checked that the size is right.
        unsafe { slice::from_raw_parts(start, u16::from_le_bytes(size) as usize) }
    }
}

/// Two values without padding between them, as in an event's data.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub struct Packed<A: Copy, B: Copy>(pub A, pub B);

// SAFETY: the structure is packed, and its parts have no padding.
unsafe impl<A: PlainData, B: PlainData> PlainData for Packed<A, B> {}

/// The positions at which a string or an array can be cut.
#[derive(Clone, Copy)]
pub enum Cut {
    /// Between UTF-8 characters.
    Characters,
    /// Between UTF-16 characters: not between the halves of a surrogate pair.
    Utf16,
    /// Between units of this size in bytes.
    Units(usize),
}

impl Cut {
    /// Returns the largest size, up to `room` bytes, at which a longer value can be cut.
    fn end(self, bytes: &[u8], room: usize) -> usize {
        match self {
            Self::Characters => text::end_of_utf8(bytes, room),
            Self::Utf16 => text::end_of_utf16(bytes, room),
            Self::Units(size) => room.checked_rem(size).map_or(0, |rest| room.wrapping_sub(rest)),
        }
    }

    /// Returns whether a cut after `size` bytes is inside a character.
    fn divides(self, bytes: &[u8], size: usize) -> bool {
        size < bytes.len() && self.end(bytes, size) != size
    }
}

/// A write in progress. The provider stays registered while this value exists.
pub struct Write<'a, const HAS_METADATA: bool> {
    provider: &'a Provider,
    event: EventRef<HAS_METADATA>,
    guard: Guard<'a>,
}

impl Provider {
    /// Starts a write of an event that passed its mask. Returns `None` if the provider is not
    /// registered or the write must take the slow path, which begins with [`Self::enter_slow`].
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined once, at the start of each event's write function"
    )]
    pub fn enter<const HAS_METADATA: bool>(
        &self,
        event: EventRef<HAS_METADATA>,
    ) -> Option<Write<'_, HAS_METADATA>> {
        let guard = self.start_fast()?;
        Some(Write { provider: self, event, guard })
    }

    /// Starts a write on the slow path, if the provider is registered.
    #[doc(hidden)]
    #[must_use]
    pub fn enter_slow<const HAS_METADATA: bool>(
        &self,
        event: EventRef<HAS_METADATA>,
    ) -> Option<Write<'_, HAS_METADATA>> {
        let Some(guard) = self.start() else {
            self.counters.count_dropped();
            return None;
        };
        Some(Write { provider: self, event, guard })
    }
}

impl Write<'_, true> {
    /// Returns the data descriptor of the event metadata.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function compiles to a single load")]
    pub fn event_metadata(&self) -> EventDataDescriptor<'static> {
        EventDataDescriptor::event_metadata(self.event.metadata())
    }
}

impl<const HAS_METADATA: bool> Write<'_, HAS_METADATA> {
    /// Returns the data descriptor of the provider's traits.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function compiles to two loads")]
    pub fn traits(&self) -> EventDataDescriptor<'_> {
        self.provider.traits_descriptor(&self.guard)
    }

    /// Returns the part of a string or an array that fits in `room` bytes. `field` is its index
    /// among the event's fields.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the common case is a single comparison")]
    pub fn fit<'b, O: Options>(
        &self,
        options: &O,
        bytes: &'b [u8],
        room: usize,
        field: u16,
        cut: Cut,
    ) -> &'b [u8] {
        if bytes.len() <= room { bytes } else { self.cut(options, bytes, room, field, cut) }
    }

    /// Cuts a string or an array, counts the cut, and writes an event `FieldCut` with the event's
    /// level and keyword, before the event.
    #[cold]
    #[inline(never)]
    fn cut<'b, O: Options>(
        &self,
        options: &O,
        bytes: &'b [u8],
        room: usize,
        field: u16,
        cut: Cut,
    ) -> &'b [u8] {
        let kept = bytes.get(..cut.end(bytes, room)).unwrap_or_default();
        self.report_cut(options, field, bytes.len() as u64, kept.len() as u64);
        kept
    }

    /// Returns the part of a string or an array that is left because another value with the same count
    /// was cut. Counts a cut and writes an event `FieldCut` if it is shorter.
    #[must_use]
    pub fn shorten<'b, O: Options>(
        &self,
        options: &O,
        bytes: &'b [u8],
        end: usize,
        field: u16,
    ) -> &'b [u8] {
        let kept = bytes.get(..end).unwrap_or(bytes);
        self.limited(options, bytes.len() as u64, kept.len() as u64, field);
        kept
    }

    /// Returns the part of a string or an array before the end of the elements that a field counts.
    /// If the end is inside a character, counts a cut and writes an event `FieldCut`.
    #[must_use]
    pub fn first<'b, O: Options>(
        &self,
        options: &O,
        bytes: &'b [u8],
        end: usize,
        field: u16,
        cut: Cut,
    ) -> &'b [u8] {
        if cut.divides(bytes, end) {
            self.report_cut(options, field, bytes.len() as u64, end as u64);
        }
        bytes.get(..end).unwrap_or(bytes)
    }

    /// Compares a number in the event with the caller's. If it had to be limited to fit in the
    /// field's type, counts a cut and writes an event `FieldCut`.
    #[cold]
    #[inline(never)]
    pub fn limited<O: Options>(&self, options: &O, asked: u64, kept: u64, field: u16) {
        if asked != kept {
            self.report_cut(options, field, asked, kept);
        }
    }

    fn report_cut<O: Options>(&self, options: &O, field: u16, length: u64, kept: u64) {
        self.provider.failures().count_cut();
        let cut = CutField { field, length, kept };
        let name = self.event.name();
        self.provider.write_field_cut(&self.guard, self.event.descriptor(), options, name, cut);
    }

    /// Counts a formatted string that did not fit in the event.
    #[inline]
    pub fn count_cut(&self, text: &Formatted) {
        if text.is_cut() {
            self.provider.failures().count_cut();
        }
    }

    /// Writes the event on the slow path. If ETW refused the provider's traits, clears channel 12,
    /// which marks a manifest event of a provider with traits.
    #[inline]
    pub fn finish_slow<O: Options, const N: usize>(
        &self,
        options: &O,
        data: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        let mut descriptor = *self.event.descriptor();
        if descriptor.channel() == Channel::PROVIDER_METADATA && self.provider.traits_refused() {
            descriptor = descriptor.with_channel(Channel::NONE);
        }
        self.provider.write_counted(&self.guard, &descriptor, options, data)
    }

    /// Writes the event, and counts it if the provider counts its events.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined once, at the end of each event's write function"
    )]
    pub fn finish_counted<O: Options, const N: usize>(
        &self,
        options: &O,
        data: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        self.provider.write_counted(&self.guard, self.event.descriptor(), options, data)
    }

    /// Writes an event of a provider that does not count its events.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined once, at the end of each event's write function"
    )]
    pub fn finish<O: Options, const N: usize>(
        &self,
        options: &O,
        data: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        self.provider.write_ex(&self.guard, self.event.descriptor(), options, data)
    }
}

/// A field that was cut: its index among the event's fields, and its sizes in bytes before and after.
/// For a number that was limited, these are the numbers before and after.
#[derive(Clone, Copy, Debug)]
pub struct CutField {
    pub field: u16,
    pub length: u64,
    pub kept: u64,
}

impl Provider {
    /// Writes an event `FieldCut` about a field of an event, with the event's level, keyword,
    /// activity, flags and target sessions.
    #[cold]
    #[inline(never)]
    pub(crate) fn write_field_cut<O: Options>(
        &self,
        guard: &Guard<'_>,
        event: &EventDescriptor,
        options: &O,
        name: &CStr,
        cut: CutField,
    ) {
        let notice = EventDescriptor::new(0, 0, event.level(), event.keyword())
            .with_channel(Channel::TRACELOGGING);
        let sizes = Packed(cut.length, cut.kept);
        let place = Packed(event.id(), Packed(event.version(), Packed(cut.field, sizes)));
        let _counted = self.write_counted(
            guard,
            &notice,
            &About(options),
            &[
                self.traits_descriptor(guard),
                EventDataDescriptor::event_metadata(FIELD_CUT),
                EventDataDescriptor::bytes(name.to_bytes_with_nul()),
                EventDataDescriptor::of(&place),
            ],
        );
    }
}

/// The metadata of `FieldCut`: the id, version and name of the event, the index of the field that
/// was cut, and its sizes in bytes before and after.
const FIELD_CUT: &[u8] = b"\x36\0\0FieldCut\0Event\0\x82\x23Id\0\x06Version\0\x04Field\0\x06\
Length\0\x0aKept\0\x0a";

/// Returns the name in event metadata. It follows the size and the tag; in all bytes of the tag
/// except the last, the top bit is set.
pub fn name_in(metadata: &[u8]) -> &CStr {
    let tag = metadata.get(2..).unwrap_or_default();
    let end = tag.iter().position(|byte| byte & 0x80 == 0).unwrap_or(0);
    tag.get(end.wrapping_add(1)..)
        .and_then(|rest| CStr::from_bytes_until_nul(rest).ok())
        .unwrap_or_default()
}

/// Returns the length of bytes that are known to fit in an event.
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    reason = "an event has fewer than 65,536 bytes of data"
)]
pub const fn length(bytes: &[u8]) -> u16 {
    bytes.len() as u16
}

/// Returns the number of elements in bytes that are known to fit in an event.
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    reason = "an event has fewer than 65,536 bytes of data"
)]
pub const fn count<T>(bytes: &[u8]) -> u16 {
    match bytes.len().checked_div(size_of::<T>()) {
        Some(count) => count as u16,
        None => 0,
    }
}

/// Refers to a block of fixed-size fields, whose size the event's layout states. Fails to compile
/// if the target's types have another size, because decoders could not read the event.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to two moves")]
pub fn block_of_size<T: PlainData, const SIZE: usize>(block: &T) -> EventDataDescriptor<'_> {
    const {
        assert!(
            size_of::<T>() == SIZE,
            "the fields have a different size on this target than in the event's layout"
        );
    }
    EventDataDescriptor::of(block)
}

/// Returns the number of structures, of `SIZE` bytes each, in bytes that are known to fit in an
/// event.
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    reason = "an event has fewer than 65,536 bytes of data"
)]
pub const fn count_of_size<const SIZE: usize>(bytes: &[u8]) -> u16 {
    match bytes.len().checked_div(SIZE) {
        Some(count) => count as u16,
        None => 0,
    }
}

/// Returns the in-memory bytes of structures whose size the event's layout states. Fails to compile
/// if the target's types have another size.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to nothing")]
pub const fn bytes_of_size<T: PlainData, const SIZE: usize>(values: &[T]) -> &[u8] {
    const {
        assert!(
            size_of::<T>() == SIZE,
            "the structure has a different size on this target than in the event's layout"
        );
    }
    bytes_of(values)
}

/// Returns the largest count, at most `asked`, that every value can supply, up to three less so that
/// it does not cut a value inside a character. The second result is true if all of these counts do.
///
/// Each value is given as its bytes, the size of an element, and the positions of a cut.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the values' number is a constant")]
pub fn least(asked: u64, values: &[(&[u8], usize, Cut)]) -> (usize, bool) {
    let mut least = usize::try_from(asked).unwrap_or(usize::MAX);
    for (bytes, unit, _) in values {
        least = least.min(bytes.len().checked_div(*unit).unwrap_or(0));
    }
    for (bytes, unit, cut) in values {
        if !matches!(cut, Cut::Units(_)) && least.wrapping_mul(*unit) < bytes.len() {
            return between_characters(least, values);
        }
    }
    (least, false)
}

/// Returns the largest count from `most` down to three less at which no value is cut inside a
/// character, or `most` and true if there is none.
#[cold]
#[inline(never)]
fn between_characters(most: usize, values: &[(&[u8], usize, Cut)]) -> (usize, bool) {
    (0..=3)
        .filter_map(|back| most.checked_sub(back))
        .find(|count| {
            !values.iter().any(|(bytes, unit, cut)| cut.divides(bytes, count.wrapping_mul(*unit)))
        })
        .map_or((most, true), |count| (count, false))
}

/// Returns the first `count` elements of a value's bytes.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the size of an element is a constant")]
pub fn first(bytes: &[u8], count: usize, unit: usize) -> &[u8] {
    bytes.get(..count.wrapping_mul(unit)).unwrap_or(bytes)
}

/// Returns an array's elements, given the array or a reference to it.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to nothing")]
pub const fn elements<T, const N: usize>(array: &[T; N]) -> &[T] {
    array
}

/// Returns the in-memory bytes of a slice of values.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "the function compiles to nothing")]
pub const fn bytes_of<T: PlainData>(values: &[T]) -> &[u8] {
    // SAFETY: `PlainData` guarantees that all bytes are initialized, and they stay borrowed.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

// The macros limit the stack of a write by this size (`SOCKET` in the schema's layout).
const _: () = assert!(size_of::<SocketBytes>() == 40);

/// The bytes of a socket address (`SOCKADDR_IN` or `SOCKADDR_IN6`).
pub struct SocketBytes {
    bytes: [u8; Self::SIZE_V6],
    length: usize,
}

impl SocketBytes {
    const SIZE_V4: usize = 16;
    const SIZE_V6: usize = 28;
    /// `AF_INET` and `AF_INET6`.
    const INET: u16 = 2;
    const INET6: u16 = 23;

    /// Encodes an address.
    #[must_use]
    pub fn new(address: &SocketAddr) -> Self {
        let mut bytes = [0; Self::SIZE_V6];
        let port = address.port().to_be_bytes();
        let length = match address {
            SocketAddr::V4(v4) => {
                let head = Packed(Packed(Self::INET.to_le_bytes(), port), v4.ip().octets());
                put(&mut bytes, bytes_of(slice::from_ref(&head)));
                Self::SIZE_V4
            }
            SocketAddr::V6(v6) => {
                let head = Packed(Packed(Self::INET6.to_le_bytes(), port), v6.flowinfo().to_be());
                let all = Packed(head, Packed(v6.ip().octets(), v6.scope_id()));
                put(&mut bytes, bytes_of(slice::from_ref(&all)));
                Self::SIZE_V6
            }
        };
        Self { bytes, length }
    }

    /// Returns the bytes: 16 for IPv4, 28 for IPv6.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Copies bytes to the start of a buffer.
pub fn put(buffer: &mut [u8], bytes: &[u8]) {
    for (place, byte) in buffer.iter_mut().zip(bytes) {
        *place = *byte;
    }
}
