//! Providers.

mod notifications;
mod outcome;
mod registration;

use core::{cell::UnsafeCell, ops::Deref};

use crate::{
    EnableInfo, EventDataDescriptor, EventDescriptor, Failures, Guid, Keyword, Level, Traits,
    counters::{Counters, WrittenCounts},
    ffi,
    notification::Notification,
    pool::PoolCopy,
    rundown::{Guard, Rundown, Stripe},
    state::EnableState,
    sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, const_unless_loom},
};

pub use outcome::{Refusals, RegisterError, Registered, UnregisterError};

/// The phases of a registration.
const UNREGISTERED: u8 = 0;
const CHANGING: u8 = 1;
const REGISTERED: u8 = 2;
/// `EtwUnregister` failed: the handle is kept for another attempt, and the rundown is closed.
const CLOSED: u8 = 3;

/// The reasons why writes cannot take the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The provider is not registered, or is being unregistered.
    Closed = 1,
    /// ETW refused the registration's traits, so manifest events must not use channel 12, which
    /// requires traits.
    TraitsRefused = 2,
}

/// A notification hook. It runs at `PASSIVE_LEVEL` and must return soon; see [`Notification`].
pub type Hook = fn(&Provider, &Notification<'_>);

/// A provider's notification hooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hooks {
    /// Called when a session enables the provider or changes its enable info, after the enable
    /// state has been updated.
    pub on_enable: Option<Hook>,
    /// Called when the last session disables the provider, after the enable state has been
    /// updated.
    pub on_disable: Option<Hook>,
    /// Called when a session requests events that describe the provider's state.
    pub on_capture_state: Option<Hook>,
}

impl Hooks {
    /// No hooks.
    pub const NONE: Self = Self { on_enable: None, on_disable: None, on_capture_state: None };
}

/// The traits of a registration: the data descriptor that `TraceLogging` writes copy, and the pool
/// block that it points to, if it does not point to the provider's constant.
struct Registration {
    descriptor: EventDataDescriptor<'static>,
    copy: Option<PoolCopy>,
}

/// The counts of a provider that counts its written events, and the function that writes the event
/// with its counters. Only such a provider refers to the function, so that the linker can omit it
/// for others.
#[derive(Clone, Copy)]
pub struct Counting {
    pub written: &'static WrittenCounts,
    pub write_statistics: fn(&Provider),
}

/// A registration's traits, shared with writes.
struct Shared(UnsafeCell<Registration>);

// SAFETY: only the thread that set `phase` to `CHANGING` modifies it, and only while no guard
// exists (because the rundown is closed or, without a rundown, by the provider's contract). Only
// holders of a guard read it.
unsafe impl Sync for Shared {}

/// An ETW provider, which a driver registers and writes events to.
///
/// The macro [`provider`](macro@crate::provider) creates a provider: the `static` `PROVIDER` of the
/// declared module. An empty module declares a provider whose events are all declared where they
/// are written. Functions that receive a provider take a `&Provider`. The type parameter belongs to
/// the declaration, whose `static` becomes a `Provider` wherever one is expected.
///
/// Code on all processors and at all IRQLs can share a provider. Only a `static` can be
/// registered, because ETW keeps the provider's address until it is unregistered.
// Rarely changed data is kept out of the cache lines that writes change.
#[repr(C)]
#[cfg_attr(not(target_arch = "aarch64"), repr(align(64)))]
#[cfg_attr(target_arch = "aarch64", repr(align(128)))]
pub struct Provider<S: ?Sized = [Stripe]> {
    state: EnableState,
    handle: AtomicU64,
    registration: Shared,
    /// The [`Reason`]s that currently apply to writes.
    reasons: AtomicU32,
    phase: AtomicU8,
    sets_traits: bool,
    binary_tracking: bool,
    /// True if the provider prints its events in the debugger.
    pub(crate) prints: bool,
    /// The counts of the events that the provider writes, if it counts them.
    pub(crate) counting: Option<Counting>,
    /// The number of stripes.
    stripes: usize,
    id: Guid,
    traits: &'static Traits,
    hooks: Hooks,
    /// The thread that runs a hook, or 0. Only this thread relies on the value, so it is not an
    /// atomic of the model checker.
    hook_thread: core::sync::atomic::AtomicU64,
    pub(crate) counters: Counters,
    rundown: Rundown<S>,
}

/// The `static` of a declaration: a [`Provider`] with `N` stripes, a power of two up to 64, or 0 for a
/// provider without a rundown.
///
/// Each write in progress uses the stripe of its stack, so that writes on different processors
/// usually change different cache lines. A stripe takes 64 bytes, or 128 on ARM64. Two threads use
/// the same stripe with a probability of about 1 in `N`.
pub type StaticProvider<const N: usize = DEFAULT_STRIPES> = Provider<[Stripe; N]>;

/// The default number of stripes.
const DEFAULT_STRIPES: usize = 16;

#[doc(hidden)]
impl<const N: usize> Deref for StaticProvider<N> {
    type Target = Provider;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function only adds the number of stripes")]
    fn deref(&self) -> &Provider {
        self
    }
}

#[doc(hidden)]
impl<const N: usize> StaticProvider<N> {
    const_unless_loom! {
        /// Creates a provider with a GUID and traits, which [`guid_of_name!`](crate::guid_of_name!)
        /// and [`traits!`](crate::traits!) create at compile time.
        #[must_use]
        pub const fn new(id: Guid, traits: &'static Traits) -> Self {
            Self {
                state: EnableState::new(),
                handle: AtomicU64::new(0),
                registration: Shared(UnsafeCell::new(Registration {
                    descriptor: EventDataDescriptor::EMPTY,
                    copy: None,
                })),
                reasons: AtomicU32::new(Reason::Closed as u32),
                phase: AtomicU8::new(UNREGISTERED),
                sets_traits: true,
                binary_tracking: false,
                prints: false,
                counting: None,
                stripes: N,
                id,
                traits,
                hooks: Hooks::NONE,
                hook_thread: core::sync::atomic::AtomicU64::new(0),
                counters: Counters::new(),
                rundown: Rundown::new(),
            }
        }
    }

    /// Sets the notification hooks.
    #[must_use]
    pub const fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Registers the provider without traits, so that its manifest events are smaller. Sets
    /// `EventProviderUseDescriptorType` on the registration instead, so that `TraceLogging` events
    /// can contain the provider's name. For providers without a group or custom traits.
    #[must_use]
    pub const fn without_traits(mut self) -> Self {
        self.sets_traits = false;
        self
    }

    /// Makes every session that records the provider's events also record the path of the
    /// driver's image (`EventProviderBinaryTrackInfo`), so that decoders find the decoding
    /// resources in it.
    #[must_use]
    pub const fn with_binary_tracking(mut self) -> Self {
        self.binary_tracking = true;
        self
    }
}

impl Provider {
    /// Returns the provider's GUID.
    #[must_use]
    pub const fn id(&self) -> Guid {
        self.id
    }

    /// Returns the provider's traits.
    #[must_use]
    pub const fn traits(&self) -> &'static Traits {
        self.traits
    }

    /// Returns whether a session enables events of this level and keyword, ignoring the match-all
    /// keywords.
    ///
    /// Write sites make this check: for a constant level from 0 to 5 it is one load and one test.
    /// It returns `true` for every event that [`Self::is_enabled`] reports, and also for events
    /// that only the match-all keywords exclude, which ETW discards. After
    /// [`UnregisterError::Refused`] and [`UnregisterError::WriteInProgress`] it returns `false`
    /// until the provider is registered again.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call would cost more than the check")]
    #[must_use]
    pub fn is_enabled_fast(&self, level: Level, keyword: Keyword) -> bool {
        self.state.is_enabled_fast(level, keyword)
    }

    /// Returns whether a session enables events of this level and keyword, as ETW computes it: from
    /// the level, match-any and match-all keywords of all sessions combined.
    #[must_use]
    pub fn is_enabled(&self, level: Level, keyword: Keyword) -> bool {
        self.state.is_enabled_slow(level, keyword)
    }

    /// Returns the combined enable info of all sessions, or `None` while no session enables
    /// the provider.
    ///
    /// The function never waits. During an update it returns the old enable info, the new one, or
    /// [`EnableInfo::EVERYTHING`], but never a mixture.
    #[must_use]
    pub fn enable_info(&self) -> Option<EnableInfo> {
        self.state.enable_info()
    }

    /// Asks ETW whether a session enables events of this level and keyword
    /// (`EtwProviderEnabled`). [`Self::is_enabled`] is faster.
    ///
    /// Returns `false` while the provider is not registered.
    #[must_use]
    pub fn provider_enabled(&self, level: Level, keyword: Keyword) -> bool {
        let Some(_guard) = self.start() else {
            return false;
        };
        // SAFETY: the guard keeps the handle registered.
        unsafe { ffi::EtwProviderEnabled(self.handle(), level.0, keyword.bits()) != 0 }
    }

    /// Asks ETW whether a session enables an event (`EtwEventEnabled`).
    ///
    /// Returns `false` while the provider is not registered.
    #[must_use]
    pub fn event_enabled(&self, event: &EventDescriptor) -> bool {
        let Some(_guard) = self.start() else {
            return false;
        };
        // SAFETY: the guard keeps the handle registered, and the descriptor is borrowed.
        unsafe { ffi::EtwEventEnabled(self.handle(), event) != 0 }
    }

    /// Returns the counters of failed writes.
    #[must_use]
    pub const fn failures(&self) -> &Failures {
        &self.counters.failures
    }

    /// Starts a write on the fast path. Returns `None` if a [`Reason`] requires the slow path, or
    /// if the slot of the stack is taken.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlined once, at the start of each event's write function"
    )]
    pub(crate) fn start_fast(&self) -> Option<Guard<'_>> {
        if !self.rundown.protects() {
            return self.start_unprotected(u32::MAX);
        }
        self.rundown.enter_fast()
    }

    /// Starts a write, or returns `None` while the provider is not registered.
    pub(crate) fn start(&self) -> Option<Guard<'_>> {
        if !self.rundown.protects() {
            return self.start_unprotected(Reason::Closed as u32);
        }
        if self.has_reason(Reason::Closed) {
            return None;
        }
        self.rundown.enter()
    }

    /// Starts a write of a provider without a rundown, unless one of these reasons applies.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function is one comparison in release builds")]
    fn start_unprotected(&self, reasons: u32) -> Option<Guard<'_>> {
        // Acquire: all stores before the reason was removed happen before the write.
        #[cfg(not(debug_assertions))]
        let (guard, order) = (Guard::Unprotected, Ordering::Acquire);
        #[cfg(debug_assertions)]
        let (guard, order) = (Guard::counted(&self.counters.unprotected), Ordering::SeqCst);
        (self.reasons.load(order) & reasons == 0).then_some(guard)
    }

    /// Returns the data descriptor of the traits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the function only loads the descriptor")]
    pub(crate) fn traits_descriptor(&self, _guard: &Guard<'_>) -> EventDataDescriptor<'static> {
        // SAFETY: the registration does not change while a guard exists.
        let registration = unsafe { &*self.registration.0.get() };
        registration.descriptor
    }

    /// Returns the handle, or 0 while the provider is not registered. The caller must hold a guard
    /// of the rundown.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.load(Ordering::Relaxed)
    }

    /// Returns whether a write that was not admitted by a mask may begin; if not, counts it as
    /// dropped. Otherwise, many such writes could keep the closing thread from finding a free slot.
    #[doc(hidden)]
    #[must_use]
    pub fn is_open(&self) -> bool {
        let is_open = !self.has_reason(Reason::Closed);
        if !is_open {
            self.counters.count_dropped();
        }
        is_open
    }

    /// Returns whether ETW refused the registration's traits.
    pub(crate) fn traits_refused(&self) -> bool {
        self.has_reason(Reason::TraitsRefused)
    }

    fn has_reason(&self, reason: Reason) -> bool {
        self.reasons.load(Ordering::Relaxed) & reason as u32 != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::mem::offset_of;

    use super::*;
    use crate::rundown::LINE;

    type One = StaticProvider<1>;

    #[test]
    fn what_writes_change_shares_no_cache_line_with_what_they_only_read() {
        // In the order of the fields.
        let ends_of_what_is_read = [
            offset_of!(One, state) + size_of::<EnableState>(),
            offset_of!(One, handle) + size_of::<AtomicU64>(),
            offset_of!(One, registration) + size_of::<Shared>(),
            offset_of!(One, reasons) + size_of::<AtomicU32>(),
            offset_of!(One, traits) + size_of::<&Traits>(),
            offset_of!(One, hooks) + size_of::<Hooks>(),
            offset_of!(One, hook_thread) + size_of::<u64>(),
        ];
        let counters = offset_of!(One, counters);
        for end in ends_of_what_is_read {
            assert!(end <= counters);
        }
        let rundown = offset_of!(One, rundown);
        assert_eq!((counters % LINE, rundown % LINE, align_of::<One>()), (0, 0, LINE));
        assert!(counters + size_of::<Counters>() <= rundown);
        assert_eq!(size_of::<Stripe>(), LINE);
        assert_eq!(size_of::<StaticProvider>(), rundown + 16 * LINE);
    }

    #[test]
    fn a_write_reads_at_most_two_lines_besides_its_stripe() {
        // The masks must share a cache line, as must the handle and the traits' descriptor. On
        // ARM64 all are in one line.
        assert_eq!(offset_of!(One, state), 0);
        let registration = offset_of!(One, registration) + size_of::<EventDataDescriptor<'_>>();
        let line = offset_of!(One, handle) / LINE;
        assert!(line <= 1);
        assert_eq!((registration - 1) / LINE, line);
    }
}
