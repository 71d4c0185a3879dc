//! Writing events.

use core::{fmt, ptr};

use etw_wire::limits::MAX_DATA_DESCRIPTORS;

use crate::{
    Activity, ActivityId, EventDataDescriptor, EventDescriptor, Guid, Keyword, Level, NtStatus,
    Provider, ffi, irql, rundown::Guard,
};

/// Flags of a write (`EVENT_WRITE_FLAG_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct WriteFlags(u32);

impl WriteFlags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// Informs ETW that the caller cannot take a page fault, even though it runs below
    /// `DISPATCH_LEVEL`.
    pub const NO_FAULTING: Self = Self(1);
    /// Marks the event as private (`EVENT_WRITE_FLAG_INPRIVATE`). Sessions that enabled the
    /// provider with `EVENT_ENABLE_PROPERTY_EXCLUDE_INPRIVATE` do not receive it.
    pub const IN_PRIVATE: Self = Self(2);

    /// Returns the union of both sets of flags.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The options of a write: activity ids, flags and sessions to exclude.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    activity: Option<ActivityId>,
    related: Option<ActivityId>,
    flags: WriteFlags,
    except: u64,
}

impl WriteOptions {
    /// Returns the default options: the thread's activity, no related activity, no flags, all
    /// sessions.
    ///
    /// Set the activity at `DISPATCH_LEVEL` and above: otherwise the event gets the activity of the
    /// current thread, which is the interrupted one. [`emit!`](macro@crate::emit) and
    /// [`event!`](macro@crate::event) begin with these options.
    #[must_use]
    pub const fn new() -> Self {
        Self { activity: None, related: None, flags: WriteFlags::NONE, except: 0 }
    }

    /// Returns the options for code that does not know its IRQL, such as a facade that any code
    /// calls: the default options at `APC_LEVEL` or below. At a higher IRQL the event has no
    /// activity, because the current thread may be one that was interrupted. In kernel mode on ARM64,
    /// where the crate does not read the IRQL, the event never has the thread's activity.
    #[must_use]
    pub fn at_current_irql() -> Self {
        let options = Self::new();
        if irql::current().is_some_and(|irql| irql <= ffi::APC_LEVEL) {
            options
        } else {
            options.activity(ActivityId::NONE)
        }
    }

    /// Sets the event's activity.
    #[must_use]
    pub const fn activity(mut self, activity: ActivityId) -> Self {
        self.activity = Some(activity);
        self
    }

    /// Sets the related activity that the event's activity originates from.
    #[must_use]
    pub const fn related(mut self, related: ActivityId) -> Self {
        self.related = Some(related);
        self
    }

    /// Makes the event start an activity: sets the event's activity and its related activity.
    #[must_use]
    pub const fn starts(mut self, activity: Activity) -> Self {
        self.activity = Some(activity.id());
        self.related = activity.related();
        self
    }

    /// Sets the flags.
    #[must_use]
    pub const fn flags(mut self, flags: WriteFlags) -> Self {
        self.flags = flags;
        self
    }

    /// A rate limit after other options, which is an error.
    #[doc(hidden)]
    #[must_use]
    pub fn every(self, _count: impl crate::limit::FirstOption) -> Self {
        self
    }

    /// A rate limit after other options, which is an error.
    #[doc(hidden)]
    #[must_use]
    pub fn limit(self, _limit: impl crate::limit::FirstOption) -> Self {
        self
    }

    /// Excludes the sessions with these bits, which the sessions' filter data contains
    /// ([`FilterHeader::instance_id`](crate::FilterHeader)).
    #[must_use]
    pub const fn except_sessions(mut self, bits: u64) -> Self {
        self.except = bits;
        self
    }
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for Plain {}
impl sealed::Sealed for &WriteOptions {}
impl<O: sealed::Sealed> sealed::Sealed for About<'_, O> {}
impl<O: sealed::Sealed> sealed::Sealed for Runtime<O> {}

/// The options of a write. Their methods run while the write is in progress, so only the library's
/// types may implement them.
pub trait Options: sealed::Sealed {
    /// Returns the bits of the sessions to exclude.
    fn except(&self) -> u64;
    /// Returns the flags (`EVENT_WRITE_FLAG_*`).
    fn flags(&self) -> u32;
    /// Returns the activity, or `None` to use the thread's activity.
    fn activity(&self) -> Option<&Guid>;
    /// Returns the related activity.
    fn related(&self) -> Option<&Guid>;
    /// Returns the event's descriptor with the level and the keywords of this write, or `None` to
    /// use the event's own.
    fn descriptor(&self, _event: &EventDescriptor) -> Option<EventDescriptor> {
        None
    }
}

/// Options with a level and keywords that are known at run time.
pub struct Runtime<O> {
    /// The other options.
    pub options: O,
    /// The level.
    pub level: Level,
    /// The keywords.
    pub keyword: Keyword,
}

impl<O: Options> Options for Runtime<O> {
    fn except(&self) -> u64 {
        self.options.except()
    }

    fn flags(&self) -> u32 {
        self.options.flags()
    }

    fn activity(&self) -> Option<&Guid> {
        self.options.activity()
    }

    fn related(&self) -> Option<&Guid> {
        self.options.related()
    }

    fn descriptor(&self, event: &EventDescriptor) -> Option<EventDescriptor> {
        Some(event.with_level(self.level).with_keyword(self.keyword))
    }
}

/// The default options: the thread's activity, no flags, all sessions.
#[derive(Clone, Copy)]
pub struct Plain;

impl Options for Plain {
    fn except(&self) -> u64 {
        0
    }

    fn flags(&self) -> u32 {
        0
    }

    fn activity(&self) -> Option<&Guid> {
        None
    }

    fn related(&self) -> Option<&Guid> {
        None
    }
}

/// The options of an event, for another event about it: the same activity, flags and sessions, but
/// it starts no activity.
pub struct About<'a, O>(pub &'a O);

impl<O: Options> Options for About<'_, O> {
    fn except(&self) -> u64 {
        self.0.except()
    }

    fn flags(&self) -> u32 {
        self.0.flags()
    }

    fn activity(&self) -> Option<&Guid> {
        self.0.activity()
    }

    fn related(&self) -> Option<&Guid> {
        None
    }

    fn descriptor(&self, event: &EventDescriptor) -> Option<EventDescriptor> {
        self.0.descriptor(event)
    }
}

impl Options for &WriteOptions {
    fn except(&self) -> u64 {
        self.except
    }

    fn flags(&self) -> u32 {
        self.flags.0
    }

    fn activity(&self) -> Option<&Guid> {
        self.activity.as_ref().map(ActivityId::as_guid)
    }

    fn related(&self) -> Option<&Guid> {
        self.related.as_ref().map(ActivityId::as_guid)
    }
}

/// The error of a write: the status that `EtwWriteEx` returned. The event is lost; later writes
/// can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteError(pub NtStatus);

impl WriteError {
    #[doc(hidden)]
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function is a single comparison")]
    pub const fn check(status: NtStatus) -> Result<(), Self> {
        if status.is_success() { Ok(()) } else { Err(Self(status)) }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the event: {} returned {}", ffi::NAMES.write, self.0)
    }
}

impl core::error::Error for WriteError {}

impl Provider {
    /// Writes an event whose data is assembled at run time (`EtwWriteEx`). A manifest must describe
    /// the layout of the data.
    ///
    /// The function calls ETW even if no session enables the event; check [`Self::is_enabled`]
    /// first. Declare events that are known at compile time
    /// ([`provider`](macro@crate::provider)), or write them with [`event!`](macro@crate::event).
    ///
    /// The function does nothing and succeeds while the provider is not registered
    /// ([`Statistics::dropped`](crate::Statistics)).
    ///
    /// # IRQL
    ///
    /// Any. The data must be in system space and, above `APC_LEVEL`, in non-pageable memory; see
    /// [`EventDataDescriptor`].
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] if the event could not be written. The provider also counts the
    /// failure ([`Provider::failures`]).
    pub fn write<const N: usize>(
        &self,
        event: &EventDescriptor,
        options: &WriteOptions,
        data: &[EventDataDescriptor<'_>; N],
    ) -> Result<(), WriteError> {
        let Some(guard) = self.start() else {
            self.counters.count_dropped();
            return Ok(());
        };
        WriteError::check(self.write_counted(&guard, event, &options, data))
    }

    /// Calls `EtwWriteEx`, and counts the event if the provider counts its events.
    #[inline]
    pub(crate) fn write_counted<O: Options, const N: usize>(
        &self,
        guard: &Guard<'_>,
        event: &EventDescriptor,
        options: &O,
        data: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        let status = self.write_ex(guard, event, options, data);
        if status.is_success()
            && let Some(counting) = self.counting
        {
            counting.written.count();
        }
        status
    }

    /// Calls `EtwWriteEx`, and counts the failure if there is one.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        clippy::cast_possible_truncation,
        reason = "the call ends each write function; the number of data descriptors is at most 128"
    )]
    pub(crate) fn write_ex<O: Options, const N: usize>(
        &self,
        _guard: &Guard<'_>,
        event: &EventDescriptor,
        options: &O,
        data: &[EventDataDescriptor<'_>; N],
    ) -> NtStatus {
        const {
            assert!(
                N <= MAX_DATA_DESCRIPTORS,
                "an event can have at most 128 data descriptors; combine several fields into one"
            );
        }
        let of_write = options.descriptor(event);
        let event = of_write.as_ref().unwrap_or(event);
        // SAFETY: the guard keeps the handle registered, and everything else is borrowed for the
        // call.
        let status = NtStatus(unsafe {
            ffi::EtwWriteEx(
                self.handle(),
                event,
                options.except(),
                options.flags(),
                options.activity().map_or(ptr::null(), ptr::from_ref),
                options.related().map_or(ptr::null(), ptr::from_ref),
                N as u32,
                if N == 0 { ptr::null() } else { data.as_ptr() },
            )
        });
        if !status.is_success() {
            self.failures().count(status);
        }
        status
    }
}

/// Writes a declared event if a session enables it: `emit!(trace::event(fields))`.
///
/// The arguments are evaluated only if a session enables the event: first the options, then the
/// fields from left to right. Options can follow the event: `activity`, `related`, `starts`,
/// `flags` and `except_sessions`, which are the methods of [`WriteOptions`]. A rate limit, which
/// comes before the other options, skips occurrences: `every = 100`, `once` or `limit = …`; see
/// [`RateLimit`](crate::RateLimit).
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
/// emit!(trace::read_complete(offset, "disk0"), every = 100, activity = request);
/// # }
/// ```
///
/// The check at the call site covers the level and the match-any keywords. If only the match-all
/// keywords exclude the event, which is rare, the arguments are evaluated and ETW discards the
/// event.
///
/// [`Provider::failures`] counts failed writes. Call the event's own `write` to get the result. While the
/// provider is not registered, no event is written and none fails.
///
/// # IRQL
///
/// Any. The fields must be in system space and, above `APC_LEVEL`, in non-pageable memory; see
/// [`EventDataDescriptor`]. At `DISPATCH_LEVEL` and above, set the activity: otherwise the event
/// gets the activity of the interrupted thread.
#[macro_export]
macro_rules! emit {
    ($($part:ident)::+ ($($argument:expr),* $(,)?) $($options:tt)*) => {
        $crate::emit!(@event [$($part)::+] ($($argument),*) $($options)*)
    };
    (:: $($part:ident)::+ ($($argument:expr),* $(,)?) $($options:tt)*) => {
        $crate::emit!(@event [:: $($part)::+] ($($argument),*) $($options)*)
    };
    (@event $event:tt $arguments:tt , level = $($rest:tt)*) => {
        $crate::emit!(@declared)
    };
    (@event $event:tt $arguments:tt , keyword = $($rest:tt)*) => {
        $crate::emit!(@declared)
    };
    (@declared) => {
        $crate::__macro::compile_error!(
            "an event of `emit!` has the level and the keyword of its declaration, `#[event(level = Info, \
             keyword = READ)]`; `event!` takes both at the call"
        )
    };
    (@event [$($event:tt)+] $arguments:tt , every = $count:expr $(, $option:ident = $value:expr)* $(,)?) => {
        if $($event)+::is_enabled() {
            static __WDK_ETW_LIMIT: $crate::RateLimit = $crate::RateLimit::__every($count);
            $crate::emit!(@limited (__admits) __WDK_ETW_LIMIT, [$($event)+] $arguments $(, $option = $value)*);
        }
    };
    (@event [$($event:tt)+] $arguments:tt , once $(, $option:ident = $value:expr)* $(,)?) => {
        if $($event)+::is_enabled() {
            static __WDK_ETW_LIMIT: $crate::RateLimit = $crate::RateLimit::once();
            $crate::emit!(@limited (__admits_once) __WDK_ETW_LIMIT, [$($event)+] $arguments $(, $option = $value)*);
        }
    };
    (@event [$($event:tt)+] $arguments:tt , limit = $limit:expr $(, $option:ident = $value:expr)* $(,)?) => {
        if $($event)+::is_enabled() {
            // A temporary value would admit every occurrence; the compiler refuses its address.
            if false {
                let _ = &raw const $limit;
            }
            $crate::emit!(@limited (__admits) $limit, [$($event)+] $arguments $(, $option = $value)*);
        }
    };
    (@event [$($event:tt)+] $arguments:tt $(, $option:ident = $value:expr)* $(,)?) => {
        if $($event)+::is_enabled() {
            $crate::emit!(@write [$($event)+] $arguments $(, $option = $value)*);
        }
    };
    (@limited ($admits:ident) $limit:expr, [$($event:tt)+] $($rest:tt)*) => {
        if $($event)+::$admits(&$limit) {
            $crate::emit!(@write [$($event)+] $($rest)*);
        }
    };
    (@write [$($event:tt)+] ($($argument:expr),*) $(, $option:ident = $value:expr)*) => {
        // The compiler refuses two parameters of one name, and so an option that is given twice.
        let _ = |$($option: ()),*| { $(let () = $option;)* };
        // The provider counts the failure; `emit!` returns no result.
        let __wdk_etw_result = $($event)+::__wdk_etw_with($crate::emit!(@options $($option = $value),*))
            .__wdk_etw_emit($($argument),*);
    };
    (@options) => {
        $crate::__macro::Plain
    };
    (@options $($option:ident = $value:expr),+) => {
        &$crate::WriteOptions::new()$(.$option($value))+
    };
    ($($other:tt)*) => {
        $crate::__macro::compile_error!(
            "`emit!` takes an event with its fields, and then options: `emit!(trace::read(length))` or \
             `emit!(trace::read(length), activity = id)`; the options are `activity`, `related`, \
             `starts`, `flags` and `except_sessions`, after `every`, `once` or `limit`"
        )
    };
}
