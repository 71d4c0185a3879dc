//! What the macros make of an event, and what they call to write it.
//!
//! Everything here is for generated code. An event's constant part is one blob, so that
//! a write site passes one address. A write site checks whether anybody listens, and
//! passes the fields' values to a function that all events with the same types of
//! fields share. That function puts the pieces together; see `wdk-etw-schema`'s layout.

use core::{ffi::CStr, net::SocketAddr, ptr, slice};

use crate::{
    Channel, EventDataDescriptor, EventDescriptor, Guid, NtStatus, PlainData, Provider,
    rundown::Pass,
};

/// An event's constant part: its descriptor, and the description of itself that a
/// `TraceLogging` event has.
#[repr(C)]
pub struct EventBlob<const N: usize> {
    descriptor: EventDescriptor,
    description: [u8; N],
}

impl<const N: usize> EventBlob<N> {
    /// An event with this description, whose first two bytes are its size; or none, for
    /// an event in a manifest.
    ///
    /// # Panics
    ///
    /// At compile time, for a description whose size is not its own.
    #[must_use]
    pub const fn new(descriptor: EventDescriptor, description: [u8; N]) -> Self {
        let described = match description.as_slice() {
            [low, high, ..] => u16::from_le_bytes([*low, *high]) as usize,
            _ => 0,
        };
        assert!(described == N, "a description starts with its size");
        Self {
            descriptor,
            description,
        }
    }

    /// An event in a manifest, for a write.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is an address")]
    pub const fn in_manifest(&'static self) -> EventRef<false> {
        EventRef(ptr::from_ref(self).cast())
    }

    /// An event that describes itself, for a write.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is an address")]
    pub const fn described(&'static self) -> EventRef<true> {
        const {
            assert!(N >= 2, "the event has no description");
        }
        EventRef(ptr::from_ref(self).cast())
    }
}

/// A whole [`EventBlob`], with a description if it is `DESCRIBED`.
#[derive(Clone, Copy)]
pub struct EventRef<const DESCRIBED: bool>(*const EventBlob<0>);

impl<const DESCRIBED: bool> EventRef<DESCRIBED> {
    const fn descriptor(self) -> &'static EventDescriptor {
        // SAFETY: `EventBlob` made the pointer from a blob in a static.
        let blob = unsafe { &*self.0 };
        &blob.descriptor
    }

    /// The name of an event that describes itself; none of one in a manifest.
    fn name(self) -> &'static CStr {
        if DESCRIBED {
            name_in(EventRef::<true>(self.0).description())
        } else {
            c""
        }
    }
}

impl EventRef<true> {
    /// The description.
    const fn description(self) -> &'static [u8] {
        // SAFETY: the pointer is to a whole blob, in which the description comes after the
        // descriptor.
        let start = unsafe { self.0.cast::<u8>().add(size_of::<EventDescriptor>()) };
        // SAFETY: `EventBlob::described` saw that there are two bytes.
        let size = unsafe { start.cast::<[u8; 2]>().read() };
        // SAFETY: `EventBlob::new` saw that the size is right.
        unsafe { slice::from_raw_parts(start, u16::from_le_bytes(size) as usize) }
    }
}

/// Values that follow one another without padding, as they do in an event.
#[derive(Clone, Copy)]
#[repr(C, packed)]
pub struct Packed<A: Copy, B: Copy>(pub A, pub B);

// SAFETY: the structure is packed, and its parts have no padding.
unsafe impl<A: PlainData + Copy, B: PlainData + Copy> PlainData for Packed<A, B> {}

/// What goes with a write besides the event.
pub trait Options {
    /// The sessions to leave out.
    fn except(&self) -> u64;
    /// `EVENT_WRITE_FLAG_*`.
    fn flags(&self) -> u32;
    /// The activity, or null for the thread's.
    fn activity(&self) -> *const Guid;
    /// The related activity, or null.
    fn related(&self) -> *const Guid;
}

/// Nothing but the thread's activity.
#[derive(Clone, Copy)]
pub struct Plain;

impl Options for Plain {
    fn except(&self) -> u64 {
        0
    }

    fn flags(&self) -> u32 {
        0
    }

    fn activity(&self) -> *const Guid {
        ptr::null()
    }

    fn related(&self) -> *const Guid {
        ptr::null()
    }
}

/// Where a text or a blob may be cut.
#[derive(Clone, Copy)]
pub enum Cut {
    /// Between characters of UTF-8.
    Characters,
    /// Between units of so many bytes.
    Units(usize),
}

/// A write that ETW will get: the registration lasts as long as this.
pub struct Write<'a, const DESCRIBED: bool> {
    provider: &'a Provider,
    event: EventRef<DESCRIBED>,
    pass: Pass<'a>,
}

impl Provider {
    /// Whether a write must look at more than the masks: [`Self::begin`] does.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one load")]
    pub fn needs_care(&self) -> bool {
        self.state().needs_care()
    }

    /// Starts a write of an event that passed the masks, if the provider is registered.
    #[doc(hidden)]
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is the start of one function")]
    pub fn enter<const DESCRIBED: bool>(
        &self,
        event: EventRef<DESCRIBED>,
    ) -> Option<Write<'_, DESCRIBED>> {
        let pass = self.rundown().enter()?;
        Some(Write {
            provider: self,
            event,
            pass,
        })
    }

    /// Starts a write, if some session wants the event and the provider is registered.
    #[doc(hidden)]
    #[must_use]
    pub fn begin<const DESCRIBED: bool>(
        &self,
        event: EventRef<DESCRIBED>,
    ) -> Option<Write<'_, DESCRIBED>> {
        let descriptor = event.descriptor();
        if self.is_enabled(descriptor.level(), descriptor.keyword()) {
            self.enter(event)
        } else {
            None
        }
    }
}

impl Write<'_, true> {
    /// The piece with the event's description.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one load")]
    pub fn description(&self) -> EventDataDescriptor<'static> {
        EventDataDescriptor::event_metadata(self.event.description())
    }
}

impl<const DESCRIBED: bool> Write<'_, DESCRIBED> {
    /// The piece with the provider's traits.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is two loads")]
    pub fn traits(&self) -> EventDataDescriptor<'_> {
        self.provider.traits_piece(&self.pass)
    }

    /// As much of a text or blob as there is room for; `field` is its place among the
    /// event's fields.
    #[must_use]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one comparison")]
    pub fn fit<'b>(&self, bytes: &'b [u8], room: usize, field: u16, cut: Cut) -> &'b [u8] {
        if bytes.len() <= room {
            bytes
        } else {
            self.cut(bytes, room, field, cut)
        }
    }

    /// Cuts, and says so: in the provider's counters, and with an event of its own
    /// before the one that is cut, for the same sessions.
    #[cold]
    #[inline(never)]
    fn cut<'b>(&self, bytes: &'b [u8], room: usize, field: u16, cut: Cut) -> &'b [u8] {
        let end = match cut {
            Cut::Characters => {
                let mut end = room;
                // A byte that continues a character is not where one may cut.
                while end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    end = end.wrapping_sub(1);
                }
                end
            }
            Cut::Units(size) => room
                .checked_rem(size)
                .map_or(0, |rest| room.wrapping_sub(rest)),
        };
        let kept = bytes.get(..end).unwrap_or_default();
        self.provider.failures().count_cut();
        let event = self.event.descriptor();
        let name = self.event.name();
        let notice = EventDescriptor::new(0, 0, event.level(), event.keyword())
            .with_channel(Channel::TRACELOGGING);
        let place = Packed(
            event.id(),
            Packed(
                event.version(),
                Packed(field, Packed(bytes.len() as u64, kept.len() as u64)),
            ),
        );
        let _counted = self.provider.hand_over(
            &self.pass,
            &notice,
            &Plain,
            &[
                self.traits(),
                EventDataDescriptor::event_metadata(FIELD_CUT),
                EventDataDescriptor::bytes(name.to_bytes_with_nul()),
                EventDataDescriptor::of(&place),
            ],
        );
        kept
    }

    /// Hands an event over, of which [`Provider::begin`] has begun the write: it says that
    /// its provider has traits (channel 12) only if that is so.
    #[inline]
    pub fn finish_with_care<O: Options, const N: usize>(
        &self,
        options: &O,
        pieces: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        let mut descriptor = *self.event.descriptor();
        if descriptor.channel() == Channel::PROVIDER_METADATA
            && self.provider.state().is_without_traits()
        {
            descriptor = descriptor.with_channel(Channel::NONE);
        }
        self.provider
            .hand_over(&self.pass, &descriptor, options, pieces)
    }

    /// Hands the event over.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is the end of one function")]
    pub fn finish<O: Options, const N: usize>(
        &self,
        options: &O,
        pieces: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        self.provider
            .hand_over(&self.pass, self.event.descriptor(), options, pieces)
    }
}

/// `FieldCut`: which event's field was cut, and to what.
const FIELD_CUT: &[u8] = b"\x36\0\0FieldCut\0Event\0\x82\x23Id\0\x06Version\0\x04Field\0\x06\
Length\0\x0aKept\0\x0a";

/// The name in a description: after the size and the tag's bytes, the last of which has
/// no top bit.
fn name_in(description: &[u8]) -> &CStr {
    let tag = description.get(2..).unwrap_or_default();
    let end = tag.iter().position(|byte| byte & 0x80 == 0).unwrap_or(0);
    tag.get(end.wrapping_add(1)..)
        .and_then(|rest| CStr::from_bytes_until_nul(rest).ok())
        .unwrap_or_default()
}

/// A length that was seen to fit.
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    reason = "an event's content has less than 65,536 bytes"
)]
pub const fn length(bytes: &[u8]) -> u16 {
    bytes.len() as u16
}

/// The number of elements in bytes that were seen to fit.
#[must_use]
#[inline(always)]
#[expect(
    clippy::inline_always,
    clippy::cast_possible_truncation,
    reason = "an event's content has less than 65,536 bytes"
)]
pub const fn count<T>(bytes: &[u8]) -> u16 {
    match bytes.len().checked_div(size_of::<T>()) {
        Some(count) => count as u16,
        None => 0,
    }
}

/// The bytes of values as they lie in memory.
#[must_use]
#[inline(always)]
#[expect(clippy::inline_always, reason = "it does nothing")]
pub const fn bytes_of<T: PlainData>(values: &[T]) -> &[u8] {
    // SAFETY: the trait promises that all the bytes are initialized; they stay borrowed.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A socket's address as Windows has it (`SOCKADDR_IN`, `SOCKADDR_IN6`).
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

    /// The address's bytes.
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
                let head = Packed(
                    Packed(Self::INET6.to_le_bytes(), port),
                    v6.flowinfo().to_be(),
                );
                let all = Packed(head, Packed(v6.ip().octets(), v6.scope_id()));
                put(&mut bytes, bytes_of(slice::from_ref(&all)));
                Self::SIZE_V6
            }
        };
        Self { bytes, length }
    }

    /// The bytes: 16 for IPv4, 28 for IPv6.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

fn put(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}
