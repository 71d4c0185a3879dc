//! Writes the spans and events of the [`tracing`](https://docs.rs/tracing) crate as ETW activities
//! and events of a kernel-mode driver.
//!
//! ```no_run
//! use wdk_etw::{Notification, Provider};
//! use wdk_etw_tracing::EtwSubscriber;
//!
//! #[wdk_etw::provider(
//!     name = "Contoso.Driver",
//!     on_enable = super::sessions_changed,
//!     on_disable = super::sessions_changed,
//! )]
//! mod trace {
//!     /// Spans and events of `tracing`.
//!     #[keyword]
//!     pub const TRACING: Keyword = Keyword::bit(14);
//! }
//!
//! static SUBSCRIBER: EtwSubscriber =
//!     EtwSubscriber::new(&trace::PROVIDER, trace::TRACING).following_sessions();
//!
//! fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
//!     SUBSCRIBER.sessions_changed();
//! }
//!
//! fn driver_entry() {
//!     // Without the subscriber the driver still works: print the error and continue.
//!     let _result = SUBSCRIBER.install();
//!     // SAFETY: `unload` unregisters the provider.
//!     let _result = unsafe { trace::register() };
//! }
//!
//! fn read(request: u64, length: u32) {
//!     let span = tracing::info_span!("read", request, length);
//!     let _entered = span.enter();
//!     tracing::debug!(cached = false, "looking up the block");
//! }
//!
//! fn unload() {
//!     match trace::unregister() {
//!         // SAFETY: no hook runs, and the driver has no spans and no longer uses `tracing`.
//!         Ok(()) => unsafe { SUBSCRIBER.uninstall() },
//!         Err(error) => wdk_etw::debug_print(format_args!("contoso_driver: {error}")),
//!     }
//! }
//! # fn main() { driver_entry(); read(1, 2); unload(); }
//! ```
//!
//! # Events
//!
//! | `tracing` | `TraceLogging` event |
//! |---|---|
//! | an event | its name, or `Event` if the author gave none |
//! | a span is created | the span's name, opcode `Start` |
//! | the last handle of a span is dropped | the span's name, opcode `Stop` |
//! | values are recorded in a span later | the span's name, opcode `Info`, with these values |
//! | a span follows from another | `FollowsFrom`, with the other span as the related activity |
//!
//! The events have the keyword that [`EtwSubscriber::new`] received, and these fields:
//!
//! | field | type | contents |
//! |---|---|---|
//! | `Level` | text | `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE` |
//! | `Target` | text | the target, which is the module unless the call names another |
//! | `Module` | text | the module |
//! | `File` | text | the source file, with [`EtwSubscriber::with_file`] |
//! | `Line` | number | the source line |
//! | `Message` | text | the message of an event |
//! | the other fields | as recorded | 64-bit numbers, `f64` and `bool` as such, bytes as bytes, everything else as the text that `Display` or `Debug` writes |
//!
//! This table lists the corresponding ETW levels. `DEBUG` and `TRACE` are both `Verbose`; the field
//! `Level` distinguishes them. The keyword also does so if [`EtwSubscriber::with_trace_keyword`]
//! sets another one for `TRACE`.
//!
//! | `tracing` | ETW |
//! |---|---|
//! | `ERROR` | 2, `Error` |
//! | `WARN` | 3, `Warning` |
//! | `INFO` | 4, `Information` |
//! | `DEBUG`, `TRACE` | 5, `Verbose` |
//!
//! # Spans are activities
//!
//! A span has its own activity id, which is in its `Start` and `Stop` events and in the events
//! inside the span. The `Start` event's related activity is the parent's activity. Decoders and
//! timelines pair both events by the activity.
//!
//! A kernel has no thread-local storage for drivers. What "inside a span" means depends on the
//! IRQL:
//!
//! - **At `APC_LEVEL` and below,** entering a span makes its activity the thread's
//!   (`EtwActivityIdControl`), and leaving it restores the previous one. So the driver's declared
//!   events inside the span belong to it too, and a span without an explicit parent has the
//!   thread's activity as its parent, even if it comes from the client that sent the request. ETW
//!   may keep no id for a thread of the system process, such as one that runs a work item: there,
//!   only the subscriber knows the span, and adds its activity to `tracing`'s events and spans.
//! - **Above `APC_LEVEL`,** the current thread may be one that was interrupted, so entering a span
//!   has no effect ([`EtwSubscriber::ignored_enters`] counts it), and events and spans without an
//!   explicit parent belong to no activity. Name the parent there: `parent: &span`.
//!   On ARM64 the crate cannot read the IRQL, and this applies at every IRQL.
//! - This also applies to a thread that raised its IRQL inside a span: name the parent, or write
//!   the event before raising the IRQL.
//!
//! Drop the guard that [`Span::enter`](https://docs.rs/tracing/latest/tracing/struct.Span.html)
//! returns at `APC_LEVEL` or below. If a thread drops such a guard at `DISPATCH_LEVEL`, it stays in
//! the span until it next enters or leaves one at `APC_LEVEL` or below. If it drops the guard above
//! `DISPATCH_LEVEL`, it stays in the span. A thread that has two guards of a span, the first from
//! `DISPATCH_LEVEL` and the second from a lower IRQL, must drop the second first: whichever it drops
//! first leaves the span, because `tracing` does not tell which guard is dropped.
//!
//! The table of existing spans and the table of entered spans have a fixed size:
//! `EtwSubscriber<256>` has space for 256 of each instead of 64. If there is no space for a span,
//! the span is disabled and [`EtwSubscriber::refused_spans`] counts it; its events are written
//! without it.
//!
//! # IRQL
//! and memory
//!
//! Spans and events can be written, cloned and dropped at any IRQL at which the caller can format
//! its values: above `APC_LEVEL`, the values must be in non-pageable memory. These operations do
//! not allocate, lock or wait, and panic only if the `Display` or `Debug` implementation of a value
//! panics. An event is assembled on the stack, in less than [`MAX_STACK`] bytes. A string longer
//! than [`MAX_TEXT`] bytes is cut, between characters, and its formatting ends there with an error
//! that implementations of `Display` and `Debug` must propagate; fields that do not fit in
//! [`MAX_DATA`] bytes are left out. [`Failures::cut`](wdk_etw::Failures::cut) of the provider
//! counts both, and an event `FieldCut` before the event describes the first string that was cut.
//!
//! The crate is for kernel mode; it does not compile with the feature `user-mode` of `wdk-etw`.
//!
//! `tracing-core` needs a global allocator, such as wdk-alloc's. It allocates once, in
//! [`EtwSubscriber::install`], and [`EtwSubscriber::uninstall`] frees that memory. Use `tracing`
//! with `default-features = false` and no feature other than `attributes`.
//!
//! # What a facade cannot do
//!
//! - **Laziness.** `tracing` evaluates the values of an event if the subscriber enables its level.
//!   With [`EtwSubscriber::following_sessions`], an event above the highest level that a session
//!   enables for the subscriber's keywords costs one comparison; for other events, `tracing` asks
//!   the subscriber. A session that listens receives the events of all targets.
//! - **Metadata at compile time.** The names and types of the fields are assembled for each event,
//!   and values that have no dedicated type are formatted in the driver. A declared event has
//!   constant metadata, and its values are formatted by the decoder, if at all. `docs/benchmark.md`
//!   in the repository compares both.
//! - **Keywords for each event.** All spans and events have the subscriber's keyword. Filter by
//!   `Target` and `Level` in the decoder.

#![cfg_attr(not(loom), no_std)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing,
        clippy::panic, clippy::unwrap_used
    )
)]

extern crate alloc;

mod entered;
mod ffi;
mod fields;
mod install;
mod spans;
mod sync;

use tracing_core::{
    Dispatch, Event, Interest, LevelFilter, Metadata, Subscriber, callsite,
    span::{Attributes, Current, Id, Record},
};
use wdk_etw::{
    __facade::{current_irql, settle},
    ActivityId, EventDescriptor, Keyword, Level, Opcode, Provider, WriteOptions,
};

use crate::{
    entered::{Entered, Left},
    fields::{Fields, event_name},
    install::Installation,
    spans::{Key, Span, SpanTable},
    sync::{AtomicBool, AtomicU64, Ordering, const_unless_loom},
};

/// Returns whether the IRQL is, or on ARM64 may be, above `APC_LEVEL`. There the current thread may
/// be one that was interrupted, and ETW keeps no activity id for it.
fn may_be_above_apc() -> bool {
    current_irql().is_none_or(|irql| irql > ffi::APC_LEVEL)
}

pub use crate::install::InstallError;
pub use wdk_etw::__facade::{MAX_DATA, MAX_METADATA, MAX_STACK, MAX_TEXT};

/// The types that the model checker tests.
#[cfg(loom)]
pub mod model {
    pub use crate::{
        entered::{Entered, Left},
        spans::{Key, Span, SpanTable},
    };
}

/// The id of every span that is disabled because there was no space for it. No [`Key`] has this id.
const DISABLED: Id = Id::from_non_zero_u64(core::num::NonZeroU64::MAX);

/// A subscriber that writes spans and events as a provider's events. `SPANS` is the maximum number
/// of spans that exist at the same time, and of spans that threads have entered.
pub struct EtwSubscriber<const SPANS: usize = 64> {
    provider: &'static Provider,
    keyword: Keyword,
    trace_keyword: Keyword,
    has_file: bool,
    follows_sessions: bool,
    installation: Installation,
    spans: SpanTable<Metadata<'static>, SPANS>,
    entered: Entered<SPANS>,
    refused_spans: AtomicU64,
    ignored_enters: AtomicU64,
    /// True if a span was entered on a thread for which ETW keeps no activity id.
    threads_refuse: AtomicBool,
}

impl<const SPANS: usize> EtwSubscriber<SPANS> {
    const_unless_loom! {
        /// Creates a subscriber whose events have this keyword, or no keyword
        /// ([`Keyword::NONE`](wdk_etw::Keyword::NONE)).
        #[must_use]
        pub const fn new(provider: &'static Provider, keyword: Keyword) -> Self {
            Self {
                provider,
                keyword,
                trace_keyword: keyword,
                has_file: false,
                follows_sessions: false,
                installation: Installation::new(),
                spans: SpanTable::new(),
                entered: Entered::new(),
                refused_spans: AtomicU64::new(0),
                ignored_enters: AtomicU64::new(0),
                threads_refuse: AtomicBool::new(false),
            }
        }
    }

    /// Sets another keyword for spans and events of the level `TRACE`, so that sessions can enable
    /// `DEBUG` ones alone.
    #[must_use]
    pub const fn with_trace_keyword(mut self, keyword: Keyword) -> Self {
        self.trace_keyword = keyword;
        self
    }

    /// Adds the field `File`: the path of the source file.
    #[must_use]
    pub const fn with_file(mut self) -> Self {
        self.has_file = true;
        self
    }

    /// Makes `tracing`'s maximum level follow the sessions, so that an event above it costs one
    /// comparison. The provider's hooks `on_enable` and `on_disable` must then call
    /// [`Self::sessions_changed`].
    #[must_use]
    pub const fn following_sessions(mut self) -> Self {
        self.follows_sessions = true;
        self
    }

    /// Makes this the subscriber of the driver's image (`set_global_default`).
    ///
    /// Events before [`Provider::register`] and after [`Provider::unregister`] are not written.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`, because `tracing-core` allocates the reference to the subscriber from the
    /// global allocator. `tracing-core` panics if the allocator fails then, even though it had
    /// memory immediately before.
    ///
    /// # Errors
    ///
    /// Returns an [`InstallError`] if a subscriber was installed before, if there is not enough
    /// memory, or if the IRQL is too high.
    pub fn install(&'static self) -> Result<(), InstallError> {
        const {
            assert!(
                !wdk_etw::__facade::USER_MODE,
                "`wdk-etw-tracing` is for kernel-mode drivers, but `wdk-etw` is compiled with its \
                 feature `user-mode`; build the driver alone: `cargo build --package <driver>`"
            );
        }
        if let Some(irql) = current_irql().filter(|irql| *irql > ffi::PASSIVE_LEVEL) {
            return Err(InstallError::TooHighIrql(irql));
        }
        self.installation.install(|| Dispatch::new(self))?;
        self.sessions_changed();
        Ok(())
    }

    /// Frees the memory that [`Self::install`] allocated, or does nothing if the subscriber is not
    /// installed. Call this when the driver is unloaded; otherwise Driver Verifier reports a leak.
    /// No subscriber can be installed afterwards.
    ///
    /// # Safety
    ///
    /// `tracing-core` keeps the address of the memory that this call frees, and uses it without a check.
    /// So, from this call on:
    ///
    /// - No code of the image uses `tracing`, on any thread: there are no spans, not even disabled ones,
    ///   no guards of spans, no further events, and no calls of [`Self::install`] of another
    ///   subscriber. ([`Self::install`] and [`Self::sessions_changed`] of this one do nothing.)
    /// - No call of [`Self::sessions_changed`] is in progress. This is guaranteed once
    ///   [`Provider::unregister`] has returned `Ok`: after an error, hooks can still run.
    ///
    /// In `EvtDriverUnload` both are true if the provider is unregistered, all spans have been dropped,
    /// and no timer, work item or other thread of the driver still runs.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    pub unsafe fn uninstall(&'static self) {
        // SAFETY: the caller guarantees that nothing uses the default dispatcher any more.
        unsafe { self.installation.remove() }
    }

    /// Sets `tracing`'s maximum level to the highest level that a session enables for the
    /// subscriber's keywords, if the subscriber follows the sessions. Call this in the provider's
    /// hooks, and after [`Provider::unregister`], which calls no hook: otherwise, arguments are still
    /// evaluated at the last level.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`. ETW calls hooks at this IRQL.
    pub fn sessions_changed(&self) {
        if self.follows_sessions && self.installation.is_installed() {
            settle(callsite::rebuild_interest_cache, || LevelFilter::current() == self.max_level());
        }
    }

    /// Returns the number of spans that were disabled because the table of spans was full, or
    /// because ETW could not create an activity id.
    pub fn refused_spans(&self) -> u64 {
        self.refused_spans.load(Ordering::Relaxed)
    }

    /// Returns the number of times that entering or leaving a span did not change the thread's
    /// activity, because the IRQL was above `APC_LEVEL` or threads had entered too many spans.
    pub fn ignored_enters(&self) -> u64 {
        self.ignored_enters.load(Ordering::Relaxed)
    }

    /// Returns the highest level that a session enables.
    fn max_level(&self) -> LevelFilter {
        [
            tracing_core::Level::TRACE,
            tracing_core::Level::DEBUG,
            tracing_core::Level::INFO,
            tracing_core::Level::WARN,
            tracing_core::Level::ERROR,
        ]
        .into_iter()
        .find(|level| {
            let (etw, keyword) = self.target_of(*level);
            self.provider.is_enabled(etw, keyword)
        })
        .map_or(LevelFilter::OFF, LevelFilter::from_level)
    }

    /// Returns the ETW level and the keyword for spans and events of this level.
    const fn target_of(&self, level: tracing_core::Level) -> (Level, Keyword) {
        match level {
            tracing_core::Level::ERROR => (Level::ERROR, self.keyword),
            tracing_core::Level::WARN => (Level::WARNING, self.keyword),
            tracing_core::Level::INFO => (Level::INFO, self.keyword),
            tracing_core::Level::DEBUG => (Level::VERBOSE, self.keyword),
            tracing_core::Level::TRACE => (Level::VERBOSE, self.trace_keyword),
        }
    }

    /// Returns whether a session enables spans and events like this one, ignoring the match-all
    /// keywords.
    fn is_enabled(&self, metadata: &Metadata<'_>) -> bool {
        let (level, keyword) = self.target_of(*metadata.level());
        self.provider.is_enabled_fast(level, keyword)
    }

    /// Writes an event, if a session enables it. Out of line, so that only enabled events use stack
    /// space for it.
    #[inline(never)]
    fn write(
        &self,
        name: &str,
        metadata: &Metadata<'_>,
        opcode: Opcode,
        options: &WriteOptions,
        record: &dyn Fn(&mut Fields),
    ) {
        let mut fields = Fields::new();
        fields.start(name, metadata, self.has_file);
        record(&mut fields);
        let (level, keyword) = self.target_of(*metadata.level());
        let event = EventDescriptor::new(0, 0, level, keyword).with_opcode(opcode);
        // The provider counts a failure; `tracing` expects no result.
        let _result = fields.0.write(self.provider, &event, options);
    }

    fn span(&self, id: &Id) -> Option<(Key, Span<Metadata<'static>>)> {
        let key = Key::from_bits(id.into_u64())?;
        Some((key, self.spans.get(key)?))
    }

    /// Returns the activity of a span, or no activity if the span is disabled or closed.
    fn activity(&self, id: &Id) -> ActivityId {
        self.span(id).map_or(ActivityId::NONE, |(_, span)| span.activity)
    }

    /// Creates a span, or returns `None` if there is no space for it.
    fn open(&self, attributes: &Attributes<'_>) -> Option<Id> {
        let metadata = attributes.metadata();
        let parent = match attributes.parent() {
            Some(parent) => self.activity(parent),
            None if attributes.is_contextual() => self.current_activity(),
            None => ActivityId::NONE,
        };
        let activity = ActivityId::create().ok()?;
        let key = self.spans.open(activity, metadata)?;
        if self.is_enabled(metadata) {
            let mut options = WriteOptions::new().activity(activity);
            if parent != ActivityId::NONE {
                options = options.related(parent);
            }
            self.write(metadata.name(), metadata, Opcode::START, &options, &|fields| {
                attributes.record(fields);
            });
        }
        Some(Id::from_non_zero_u64(key.to_bits()))
    }

    /// Sets a span's activity as the thread's activity.
    fn enter_span(&self, id: &Id) {
        let Some((key, span)) = self.span(id) else {
            return;
        };
        if may_be_above_apc() {
            self.ignored_enters.fetch_add(1, Ordering::Relaxed);
            if current_irql() == Some(ffi::DISPATCH_LEVEL) {
                let thread = ffi::current_thread();
                self.entered.enter_in_vain(thread, key.to_bits().get());
            }
            return;
        }
        let thread = ffi::current_thread();
        self.restore(|| self.entered.leave_now(thread));
        let previous = ActivityId::current();
        let entered = self.entered.enter(
            thread,
            key.to_bits().get(),
            span.activity,
            previous.unwrap_or(ActivityId::NONE),
        );
        if previous.is_err() {
            // ETW keeps no id for the thread, so the table of entered spans keeps it.
            self.threads_refuse.store(true, Ordering::Relaxed);
        }
        if !entered || (previous.is_ok() && span.activity.set_for_thread().is_err()) {
            self.ignored_enters.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Restores the activity that the thread had before it entered a span.
    fn exit_span(&self, id: &Id) {
        let Some(key) = Key::from_bits(id.into_u64()) else {
            return;
        };
        if may_be_above_apc() {
            self.ignored_enters.fetch_add(1, Ordering::Relaxed);
            if current_irql() == Some(ffi::DISPATCH_LEVEL) {
                let thread = ffi::current_thread();
                self.entered.leave_later(thread, key.to_bits().get());
            }
            return;
        }
        let thread = ffi::current_thread();
        let mut left = self.entered.leave(thread, key.to_bits().get());
        self.restore(|| left.take().or_else(|| self.entered.leave_now(thread)));
    }

    /// Restores the activities that a thread had before it entered each of its spans.
    fn restore(&self, mut next: impl FnMut() -> Option<Left>) {
        while let Some(left) = next() {
            // If other code has replaced the span's activity, that code restores its own.
            if ActivityId::current() == Ok(left.activity) && left.previous.set_for_thread().is_err()
            {
                self.ignored_enters.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns the span that the thread is in.
    fn current(&self) -> Option<(Id, &'static Metadata<'static>)> {
        if may_be_above_apc() {
            return None;
        }
        let (bits, activity) = self.entered.current(ffi::current_thread())?;
        if ActivityId::current().is_ok_and(|current| current != activity) {
            return None;
        }
        let key = Key::from_bits(bits)?;
        let span = self.spans.get(key)?;
        Some((Id::from_non_zero_u64(key.to_bits()), span.data))
    }

    /// Returns the thread's activity, or no activity above `APC_LEVEL`. If ETW keeps no id for the
    /// thread, returns the id of the span that the thread is in.
    fn current_activity(&self) -> ActivityId {
        if may_be_above_apc() {
            return ActivityId::NONE;
        }
        ActivityId::current().unwrap_or_else(|_| {
            self.entered
                .current(ffi::current_thread())
                .map_or(ActivityId::NONE, |(_, activity)| activity)
        })
    }

    /// Returns the options of an event that belongs to the thread's activity. ETW adds the activity
    /// if it keeps one for the thread.
    fn in_current_activity(&self) -> WriteOptions {
        if !self.threads_refuse.load(Ordering::Relaxed)
            || may_be_above_apc()
            || ActivityId::current().is_ok()
        {
            return WriteOptions::at_current_irql();
        }
        WriteOptions::new().activity(self.current_activity())
    }
}

/// All functions can be called at any IRQL.
impl<const SPANS: usize> Subscriber for &'static EtwSubscriber<SPANS> {
    /// Makes `tracing` ask about each span and event of a level that sessions may enable.
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        if self.installation.is_removed() { Interest::never() } else { Interest::sometimes() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        if self.installation.is_removed() {
            Some(LevelFilter::OFF)
        } else if self.follows_sessions {
            Some(self.max_level())
        } else {
            None
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.is_enabled(metadata)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.open(attributes).unwrap_or_else(|| {
            self.refused_spans.fetch_add(1, Ordering::Relaxed);
            DISABLED
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let Some((_, span)) = self.span(span) else {
            return;
        };
        if self.is_enabled(span.data) {
            let options = WriteOptions::new().activity(span.activity);
            self.write(span.data.name(), span.data, Opcode::INFO, &options, &|fields| {
                values.record(fields);
            });
        }
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        if let (Some((_, span)), Some((_, follows))) = (self.span(span), self.span(follows))
            && self.is_enabled(span.data)
        {
            let options = WriteOptions::new().activity(span.activity).related(follows.activity);
            self.write("FollowsFrom", span.data, Opcode::INFO, &options, &|_| ());
        }
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        if !self.is_enabled(metadata) {
            return;
        }
        let options = match event.parent() {
            Some(parent) => WriteOptions::new().activity(self.activity(parent)),
            None if event.is_contextual() => self.in_current_activity(),
            None => WriteOptions::new().activity(ActivityId::NONE),
        };
        self.write(event_name(metadata), metadata, Opcode::INFO, &options, &|fields| {
            event.record(fields);
        });
    }

    fn enter(&self, span: &Id) {
        self.enter_span(span);
    }

    fn exit(&self, span: &Id) {
        self.exit_span(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(key) = Key::from_bits(id.into_u64()) {
            // A closed span has no handles that could be cloned.
            let _is_open = self.spans.share(key);
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let Some(key) = Key::from_bits(id.into_u64()) else {
            return false;
        };
        let Some(span) = self.spans.release(key) else {
            return false;
        };
        if self.is_enabled(span.data) {
            let options = WriteOptions::new().activity(span.activity);
            self.write(span.data.name(), span.data, Opcode::STOP, &options, &|_| ());
        }
        self.spans.free(key);
        true
    }

    /// Returns the span that the thread is in, or none above `APC_LEVEL`.
    fn current_span(&self) -> Current {
        self.current().map_or_else(Current::none, |(id, metadata)| Current::new(id, metadata))
    }
}
