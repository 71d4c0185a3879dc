//! Writing events.

use core::{fmt, ptr};

use etw_wire::limits::MAX_DATA_DESCRIPTORS;

use crate::{
    Activity, ActivityId, EventDataDescriptor, EventDescriptor, Guid, NtStatus, Provider,
    event::Options, ffi, rundown::Pass,
};

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

    /// The event starts this activity: it carries its id, and names what it comes from.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn starts(mut self, activity: Activity) -> Self {
        self.activity = Some(activity.id());
        self.related = activity.related();
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

/// An event was not written: `EtwWriteEx` returned this. The event is lost; the next one
/// may well be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteError(pub NtStatus);

impl WriteError {
    #[doc(hidden)]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one comparison")]
    pub const fn check(status: NtStatus) -> Result<(), Self> {
        if status.is_success() {
            Ok(())
        } else {
            Err(Self(status))
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EtwWriteEx returned {}", self.0)
    }
}

impl core::error::Error for WriteError {}

impl Provider {
    /// Writes an event whose content is put together at run time (`EtwWriteEx`), whether
    /// or not anybody listens; [`Self::is_enabled`] says.
    ///
    /// Events that are known when the driver is compiled are better declared
    /// ([`provider`](macro@crate::provider)) or written with
    /// [`event!`](macro@crate::event). The layout of what is written here must be in a
    /// manifest.
    ///
    /// A write before registration and after unregistration does nothing and succeeds.
    ///
    /// # IRQL
    ///
    /// Any. Above `APC_LEVEL` the pieces must lie in memory that cannot be paged out.
    ///
    /// # Errors
    ///
    /// [`WriteError`]; the failure is also counted in [`Provider::failures`].
    pub fn write<const N: usize>(
        &self,
        event: &EventDescriptor,
        options: &WriteOptions,
        pieces: &[EventDataDescriptor<'_>; N],
    ) -> Result<(), WriteError> {
        self.rundown().enter().map_or(Ok(()), |pass| {
            WriteError::check(self.hand_over(&pass, event, &options, pieces))
        })
    }

    /// Calls `EtwWriteEx`, and counts it if that fails.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        clippy::cast_possible_truncation,
        reason = "it is the end of one function; the number is 128 at most"
    )]
    pub(crate) fn hand_over<O: Options, const N: usize>(
        &self,
        _pass: &Pass<'_>,
        event: &EventDescriptor,
        options: &O,
        pieces: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        const {
            assert!(
                N <= MAX_DATA_DESCRIPTORS,
                "an event has 128 data descriptors at most; put several fields into one"
            );
        }
        // SAFETY: the pass keeps the handle registered; everything else is borrowed for
        // the call.
        let status = NtStatus(unsafe {
            ffi::EtwWriteEx(
                self.handle(),
                event,
                options.except(),
                options.flags(),
                options.activity(),
                options.related(),
                N as u32,
                if N == 0 { ptr::null() } else { pieces.as_ptr() },
            )
        });
        if !status.is_success() {
            self.failures().count(status);
        }
        status
    }
}

/// Writes a declared event if somebody listens: `emit!(trace::event(fields))`.
///
/// The arguments are evaluated only then. After the event may come what goes with it:
/// `activity`, `related`, `starts`, `flags` and `except_sessions`, as the methods of
/// [`WriteOptions`] have them.
///
/// ```
/// # #[wdk_etw::provider(name = "Contoso.Driver")]
/// # mod trace {
/// #     #[keyword]
/// #     pub const REQUEST: Keyword = Keyword::bit(0);
/// #     #[event(level = Info, keyword = REQUEST)]
/// #     pub fn read_complete(offset: u64, name: &str);
/// # }
/// use wdk_etw::{ActivityId, emit};
///
/// # fn example(offset: u64, request: ActivityId) {
/// emit!(trace::read_complete(offset, "disk0"));
/// emit!(trace::read_complete(offset, "disk0"), activity = request);
/// # }
/// ```
///
/// The check at the call site is of the level and the match-any keywords. What is filtered
/// by the match-all keywords alone, which hardly any session has, is found out after the
/// arguments' evaluation.
///
/// A failed write is counted in [`Provider::failures`]; for
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
