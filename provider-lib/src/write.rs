//! Writing events.

use core::{fmt, ptr, slice};

use crate::{
    ActivityId, Channel, EventDataDescriptor, EventDescriptor, Guid, Keyword, Level, NtStatus,
    Opcode, Provider, event::Options, ffi,
};

/// More pieces than this ETW does not take.
pub const MAX_DATA_DESCRIPTORS: usize = 128;

/// Pieces before a `TraceLogging` event's fields: the provider's traits and the
/// event's description.
const LEADING: usize = 2;

/// Flags of a write (`EVENT_WRITE_FLAG_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct WriteFlags(u32);

impl WriteFlags {
    /// None.
    pub const NONE: Self = Self(0);
    /// The caller cannot take a page fault although it runs below `DISPATCH_LEVEL`.
    pub const NO_FAULTING: Self = Self(1);
    /// For sessions that take private events only if they say so.
    pub const IN_PRIVATE: Self = Self(2);

    /// Both.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What goes with an event besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    activity: Option<ActivityId>,
    related: Option<ActivityId>,
    flags: WriteFlags,
    except: u64,
}

impl WriteOptions {
    /// The thread's activity, no related one, for every session.
    ///
    /// At `DISPATCH_LEVEL` and above, the thread is whichever was interrupted: name the
    /// activity there.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            activity: None,
            related: None,
            flags: WriteFlags::NONE,
            except: 0,
        }
    }

    /// The event belongs to this activity.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn activity(mut self, activity: ActivityId) -> Self {
        self.activity = Some(activity);
        self
    }

    /// The event's activity comes from this one.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn related(mut self, related: ActivityId) -> Self {
        self.related = Some(related);
        self
    }

    /// Flags of the write.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn flags(mut self, flags: WriteFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Keeps the event from the sessions with these bits, which their filters carry
    /// ([`FilterHeader::instance_id`](crate::FilterHeader)).
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn except_sessions(mut self, bits: u64) -> Self {
        self.except = bits;
        self
    }
}

impl Options for &WriteOptions {
    fn except(&self) -> u64 {
        self.except
    }

    fn flags(&self) -> u32 {
        self.flags.0
    }

    fn activity(&self) -> *const Guid {
        pointer(self.activity.as_ref())
    }

    fn related(&self) -> *const Guid {
        pointer(self.related.as_ref())
    }
}

fn pointer(id: Option<&ActivityId>) -> *const Guid {
    id.map_or(ptr::null(), |id| ptr::from_ref(id.as_guid()))
}

/// Why an event was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// It has more than [`MAX_DATA_DESCRIPTORS`] pieces.
    TooManyPieces(usize),
    /// `EtwWriteEx` failed. The event is lost; the next one may well be recorded.
    Refused(NtStatus),
}

impl WriteError {
    #[doc(hidden)]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one comparison")]
    pub const fn check(status: NtStatus) -> Result<(), Self> {
        if status.is_success() {
            Ok(())
        } else {
            Err(Self::Refused(status))
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyPieces(count) => write!(
                f,
                "an event has {MAX_DATA_DESCRIPTORS} pieces at most, not {count}"
            ),
            Self::Refused(status) => write!(f, "EtwWriteEx returned {status}"),
        }
    }
}

impl core::error::Error for WriteError {}

/// An event's constant part: what identifies and classifies it, and, for a
/// `TraceLogging` event, its description of itself.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    descriptor: EventDescriptor,
    metadata: Option<&'static [u8]>,
}

impl Event {
    /// An event whose layout is in a manifest.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn manifest(descriptor: EventDescriptor) -> Self {
        Self {
            descriptor,
            metadata: None,
        }
    }

    /// An event that describes itself; the description comes from
    /// [`tracelogging!`](crate::tracelogging).
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn tracelogging(level: Level, keyword: Keyword, metadata: &'static [u8]) -> Self {
        Self {
            descriptor: EventDescriptor::new(0, 0, level, keyword)
                .with_channel(Channel::TRACELOGGING),
            metadata: Some(metadata),
        }
    }

    /// The same with an opcode.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn with_opcode(mut self, opcode: Opcode) -> Self {
        self.descriptor = self.descriptor.with_opcode(opcode);
        self
    }

    /// What identifies and classifies the event.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn descriptor(&self) -> &EventDescriptor {
        &self.descriptor
    }

    /// The pieces that come before a `TraceLogging` event's fields: the provider's
    /// traits, then the event's description.
    #[doc(hidden)]
    #[must_use]
    pub fn leading(&self, provider: &Provider) -> [EventDataDescriptor<'static>; LEADING] {
        [
            EventDataDescriptor::provider_metadata(provider.traits().as_bytes()),
            EventDataDescriptor::event_metadata(self.metadata.unwrap_or_default()),
        ]
    }

    /// All the pieces for a `TraceLogging` event, those after the leading ones for a
    /// manifest event.
    #[doc(hidden)]
    #[must_use]
    pub fn pieces<'a, 'b>(
        &self,
        all: &'a [EventDataDescriptor<'b>],
    ) -> &'a [EventDataDescriptor<'b>] {
        if self.metadata.is_some() {
            all
        } else {
            all.get(LEADING..).unwrap_or_default()
        }
    }
}

/// All the pieces of a `TraceLogging` event, one after the other.
#[repr(C)]
struct Pieces<'a, const N: usize> {
    leading: [EventDataDescriptor<'a>; LEADING],
    fields: [EventDataDescriptor<'a>; N],
}

impl<'a, const N: usize> Pieces<'a, N> {
    const fn as_slice(&self) -> &[EventDataDescriptor<'a>] {
        let start = ptr::from_ref(self).cast();
        // SAFETY: two arrays of one type in C's layout have no padding between or
        // after them, so they are one array of this length, borrowed with `self`.
        unsafe { slice::from_raw_parts(start, LEADING.saturating_add(N)) }
    }
}

impl Provider {
    /// Writes an event (`EtwWriteEx`), whether or not anybody listens;
    /// [`write_event!`](crate::write_event) looks first.
    ///
    /// `fields` are the event's fields in order. The traits and the description of a
    /// `TraceLogging` event are put before them, which leaves it 126 of the
    /// [`MAX_DATA_DESCRIPTORS`] pieces.
    ///
    /// A write before registration and after unregistration does nothing and succeeds.
    ///
    /// # IRQL
    ///
    /// Any. Above `APC_LEVEL` the fields must lie in memory that cannot be paged out.
    ///
    /// # Errors
    ///
    /// [`WriteError`]; the failure is also counted in [`Provider::failures`].
    pub fn write<const N: usize>(
        &self,
        event: &Event,
        options: &WriteOptions,
        fields: &[EventDataDescriptor<'_>; N],
    ) -> Result<(), WriteError> {
        if event.metadata.is_none() {
            return self.write_pieces(event, options, fields);
        }
        let pieces = Pieces {
            leading: event.leading(self),
            fields: *fields,
        };
        self.write_pieces(event, options, pieces.as_slice())
    }

    /// Writes all the pieces of an event as they are; for a `TraceLogging` event,
    /// those of [`Event::leading`] are the first.
    #[doc(hidden)]
    pub fn write_pieces(
        &self,
        event: &Event,
        options: &WriteOptions,
        pieces: &[EventDataDescriptor<'_>],
    ) -> Result<(), WriteError> {
        let Some(_pass) = self.rundown().enter() else {
            return Ok(());
        };
        let count = match u32::try_from(pieces.len()) {
            Ok(count) if pieces.len() <= MAX_DATA_DESCRIPTORS => count,
            _ => {
                self.failures().count(NtStatus::INVALID_PARAMETER);
                return Err(WriteError::TooManyPieces(pieces.len()));
            }
        };
        let pointer = |id: &Option<ActivityId>| {
            id.as_ref()
                .map_or(ptr::null(), |id| ptr::from_ref(id.as_guid()))
        };
        // SAFETY: the pass keeps the handle registered; everything else is borrowed for
        // the call.
        let status = NtStatus(unsafe {
            ffi::EtwWriteEx(
                self.handle(),
                &raw const event.descriptor,
                options.except,
                options.flags.0,
                pointer(&options.activity),
                pointer(&options.related),
                count,
                if count == 0 {
                    ptr::null()
                } else {
                    pieces.as_ptr()
                },
            )
        });
        if status.is_success() {
            Ok(())
        } else {
            self.failures().count(status);
            Err(WriteError::Refused(status))
        }
    }
}

/// Writes a declared event if somebody listens: `emit!(trace::event(fields))`.
///
/// The arguments are evaluated only then. After the event may come what goes with it:
/// `activity`, `related`, `flags` and `except_sessions`, as the methods of
/// [`WriteOptions`] have them. A failed write is counted in [`Provider::failures`]; for
/// its result call the event's own `write`.
///
/// # IRQL
///
/// Any. Above `APC_LEVEL` the fields must lie in memory that cannot be paged out.
#[macro_export]
macro_rules! emit {
    ($($part:ident)::+ ($($argument:expr),* $(,)?) $(,)?) => {
        if $($part)::+::is_enabled() {
            // The provider counts failures; nobody is here to take them.
            let _result = $($part)::+::write($crate::__macro::Plain, $($argument),*);
        }
    };
    ($($part:ident)::+ ($($argument:expr),* $(,)?), $($option:ident = $value:expr),+ $(,)?) => {
        if $($part)::+::is_enabled() {
            // The provider counts failures; nobody is here to take them.
            let _result = $($part)::+::write(
                &$crate::WriteOptions::new()$(.$option($value))+,
                $($argument),*
            );
        }
    };
}

/// Keeps the code of a write out of the function that contains it.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn cold<R>(body: impl FnOnce() -> R) -> R {
    body()
}

/// Writes an event if somebody listens: `write_event!(PROVIDER, EVENT, options,
/// [fields])`.
///
/// Options and fields are evaluated only then. The check in line is of the level and
/// the match-any keywords; the match-all keywords are looked at out of line, before
/// anything is evaluated. A failed write is counted in [`Provider::failures`]; for its
/// result call [`Provider::write`].
///
/// # IRQL
///
/// Any. Above `APC_LEVEL` the fields must lie in memory that cannot be paged out.
#[macro_export]
macro_rules! write_event {
    ($provider:expr, $event:expr, $options:expr, [$($piece:expr),* $(,)?]) => {{
        let provider: &$crate::Provider = &$provider;
        let event: &$crate::Event = &$event;
        let (level, keyword) = (event.descriptor().level(), event.descriptor().keyword());
        if provider.may_want(level, keyword) {
            $crate::__macro::cold(|| {
                if provider.is_enabled(level, keyword) {
                    let [traits, description] = event.leading(provider);
                    // The provider counts failures; nobody is here to take them.
                    let _result = provider.write_pieces(
                        event,
                        &$options,
                        event.pieces(&[traits, description $(, $piece)*]),
                    );
                }
            });
        }
    }};
}
