//! Providers and their registration.

use core::{cell::UnsafeCell, ffi::c_void, fmt, ops::Deref, ptr};

use crate::{
    EnableInfo, EventDataDescriptor, EventDescriptor, Failures, FilterData, Guid, Keyword, Level,
    NtStatus, Traits, TraitsBuffer,
    counters::{Counters, WrittenCounts},
    ffi::{self, FilterDescriptor},
    filter::guid_from_raw,
    irql,
    notification::{Control, Notification, RawNotification},
    pool::PoolCopy,
    rundown::{Guard, Rundown, Stripe},
    state::EnableState,
    sync::{AtomicU8, AtomicU32, AtomicU64, Ordering, const_unless_loom},
};

/// `EVENT_CONTROL_CODE_*`.
const DISABLE: u32 = 0;
const ENABLE: u32 = 1;
const CAPTURE_STATE: u32 = 2;

/// `EventProviderBinaryTrackInfo` of `EVENT_INFO_CLASS`, which takes no information.
const BINARY_TRACK_INFO: i32 = 0;
/// `EventProviderSetTraits` of `EVENT_INFO_CLASS`.
const SET_TRAITS: i32 = 2;
/// `EventProviderUseDescriptorType` of `EVENT_INFO_CLASS`.
const USE_DESCRIPTOR_TYPE: i32 = 3;

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

/// The result of a successful registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "if ETW refused the traits, the provider is not in its group"]
pub enum Registered {
    /// ETW accepted the provider and all its settings.
    Complete,
    /// The provider is registered and works, but ETW refused some of its settings.
    Incomplete(Refusals),
}

/// The settings of a registration that `EtwSetInformation` refused, with its status for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// `EventProviderSetTraits`, for example because the provider is not permitted to join its
    /// group. The provider is not in its group, and only `TraceLogging` events contain its name.
    pub traits: Option<NtStatus>,
    /// `EventProviderUseDescriptorType`, which is set on registrations without traits.
    /// `TraceLogging` events cannot be decoded.
    pub descriptor_types: Option<NtStatus>,
    /// `EventProviderBinaryTrackInfo`. Traces do not record the driver's image.
    pub binary_tracking: Option<NtStatus>,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusals = [
            ("SetTraits", self.traits, "the provider works, but it is not in its group"),
            ("UseDescriptorType", self.descriptor_types, "TraceLogging events cannot be decoded"),
            ("BinaryTrackInfo", self.binary_tracking, "traces do not record the driver's image"),
        ];
        let mut separator = "";
        for (class, status, consequence) in refusals {
            if let Some(status) = status {
                write!(
                    f,
                    "{separator}{}(EventProvider{class}) returned {status}: {consequence}",
                    ffi::NAMES.set_information
                )?;
                separator = "; ";
            }
        }
        Ok(())
    }
}

/// The error of [`Provider::register`] and [`Provider::register_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// The provider is already registered.
    AlreadyRegistered,
    /// Another thread is registering or unregistering the provider.
    Busy,
    /// `EtwRegister` failed. The driver can try again later.
    Refused(NtStatus),
    /// `ExAllocatePool2` could not allocate this number of bytes for the traits. The driver can try
    /// again later, or call [`Provider::register`], which needs no pool.
    NoPool(usize),
    /// The function was called at this IRQL, above `PASSIVE_LEVEL`, and changed nothing.
    TooHighIrql(u8),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRegistered => f.write_str(
                "cannot register the provider: it is already registered; unregister it first",
            ),
            Self::Busy => f.write_str(
                "cannot register the provider: another thread is registering or unregistering it",
            ),
            Self::Refused(status) => {
                write!(f, "cannot register the provider: {} returned {status}", ffi::NAMES.register)
            }
            Self::NoPool(bytes) => write!(
                f,
                "cannot register the provider: ExAllocatePool2 could not allocate {bytes} bytes of \
                 non-paged pool for its traits"
            ),
            Self::TooHighIrql(irql) => write!(
                f,
                "cannot register the provider at IRQL {irql}: call EtwRegister at PASSIVE_LEVEL (0)"
            ),
        }
    }
}

impl core::error::Error for RegisterError {}

/// The error of [`Provider::unregister`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnregisterError {
    /// Another thread is registering or unregistering the provider. The driver can try again.
    Busy,
    /// `EtwUnregister` failed. The handle may or may not be valid, so writes do nothing. The driver
    /// can try again.
    Refused(NtStatus),
    /// The provider has no rundown: only [`Provider::unregister_without_rundown`], whose safety
    /// contract replaces the rundown, unregisters it.
    NoRundown,
    /// A write of a provider without a rundown was in progress. Only debug builds check this. The
    /// handle is still valid, and writes do nothing. The driver can try again.
    WriteInProgress,
    /// The function was called at this IRQL, above `PASSIVE_LEVEL`, and changed nothing.
    TooHighIrql(u8),
    /// One of the provider's hooks called the function, which changed nothing: ETW waits for hooks.
    InHook,
}

impl fmt::Display for UnregisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str(
                "cannot unregister the provider: another thread is registering or unregistering it",
            ),
            Self::Refused(status) => {
                write!(
                    f,
                    "cannot unregister the provider: {} returned {status}",
                    ffi::NAMES.unregister
                )
            }
            Self::NoRundown => f.write_str(
                "cannot unregister the provider: it has no rundown; stop its writes and call \
                 `unregister_without_rundown`",
            ),
            Self::WriteInProgress => f.write_str(
                "cannot unregister the provider: a write is in progress, and the provider has no \
                 rundown that waits for it; stop its writes first",
            ),
            Self::TooHighIrql(irql) => write!(
                f,
                "cannot unregister the provider at IRQL {irql}: call EtwUnregister at \
                 PASSIVE_LEVEL (0)"
            ),
            Self::InHook => f.write_str(
                "cannot unregister the provider in one of its hooks, for which ETW waits; unregister \
                 it when the driver is unloaded",
            ),
        }
    }
}

impl core::error::Error for UnregisterError {}

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

    /// Registers the provider (`EtwRegister`) and sets its traits and other settings
    /// (`EtwSetInformation`).
    ///
    /// ETW may call the hooks before this function returns. Events that the hooks write before then
    /// are not recorded, because the registration is not complete.
    ///
    /// If ETW refuses the traits or another setting, the provider stays registered and works, and the
    /// function returns [`Registered::Incomplete`].
    ///
    /// # Locks
    ///
    /// The caller must hold no lock that the provider's hooks acquire. ETW may run a hook during this
    /// call, on this thread or on another one, and `EtwSetInformation` waits for it (ETW-2.14).
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// Returns a [`RegisterError`] if the provider could not be registered. A driver should then
    /// continue without tracing.
    ///
    /// # Safety
    ///
    /// If this function returns [`Ok`], [`Self::unregister`] (or, without a rundown,
    /// [`Self::unregister_without_rundown`]) must return [`Ok`] before the image that contains the
    /// provider is unloaded, because ETW calls the provider's code until then. An image is unloaded
    ///
    /// - after its unload routine (`EvtDriverUnload`, `DriverUnload`) returns,
    /// - after `DriverEntry` returns an error, without calling the unload routine,
    /// - in user mode, when a program calls `FreeLibrary` for a DLL. (The end of a process ends its
    ///   registrations.)
    ///
    /// A KMDF driver whose `DriverEntry` can fail after the framework's driver object exists can
    /// unregister in the object's `EvtCleanupCallback`, which the framework calls in both cases.
    pub unsafe fn register(&'static self) -> Result<Registered, RegisterError> {
        self.change_phase()?;
        self.complete(None)
    }

    /// Registers the provider as [`Self::register`] does, with traits that were created at run
    /// time. They are copied to non-paged pool with the tag `WEtw`; [`Self::unregister`] frees
    /// the copy.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// Returns a [`RegisterError`] if the provider could not be registered. After
    /// [`RegisterError::NoPool`], [`Self::register`] may still succeed, because it needs no pool.
    ///
    /// # Safety
    ///
    /// As for [`Self::register`].
    pub unsafe fn register_with<const N: usize>(
        &'static self,
        traits: &TraitsBuffer<N>,
    ) -> Result<Registered, RegisterError> {
        self.change_phase()?;
        let blob = traits.as_bytes();
        let Some(copy) = PoolCopy::of(blob) else {
            self.phase.store(UNREGISTERED, Ordering::Release);
            return Err(RegisterError::NoPool(blob.len()));
        };
        self.complete(Some(copy))
    }

    /// Gives the current thread the exclusive right to change the registration.
    fn change_phase(&self) -> Result<(), RegisterError> {
        irql::check(ffi::PASSIVE_LEVEL).map_err(RegisterError::TooHighIrql)?;
        let changed = self.phase.compare_exchange(
            UNREGISTERED,
            CHANGING,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        match changed {
            Ok(_) => Ok(()),
            Err(REGISTERED | CLOSED) => Err(RegisterError::AlreadyRegistered),
            Err(_) => Err(RegisterError::Busy),
        }
    }

    /// Registers the provider, with `copy` as its traits if it is present. The callers promise that
    /// the provider is unregistered before its code is unmapped.
    fn complete(&'static self, copy: Option<PoolCopy>) -> Result<Registered, RegisterError> {
        self.state.open();
        let mut handle = 0;
        let context = ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: the GUID and the context belong to a static, the callback accesses the context
        // by shared reference only, and the handle is a local variable.
        let status = NtStatus(unsafe {
            ffi::EtwRegister(&raw const self.id, Some(enable_callback), context, &raw mut handle)
        });
        if !status.is_success() {
            // The callback may have run even though the registration failed.
            self.state.disable();
            drop(copy);
            self.phase.store(UNREGISTERED, Ordering::Release);
            return Err(RegisterError::Refused(status));
        }
        // SAFETY: no guard exists, and this is the only thread that changes the registration.
        let registration = unsafe { &mut *self.registration.0.get() };
        registration.copy = copy;
        let blob =
            registration.copy.as_ref().map_or_else(|| self.traits.as_bytes(), PoolCopy::as_bytes);
        // SAFETY: the blob is the provider's constant or the pool block, which is freed only after
        // the rundown has been closed.
        let blob: &'static [u8] = unsafe { &*ptr::from_ref(blob) };
        registration.descriptor = EventDataDescriptor::provider_metadata(blob);
        // Traits that were passed to this registration are always set.
        let sets_traits = self.sets_traits || registration.copy.is_some();
        let refusals = self.configure(handle, sets_traits.then_some(blob));
        self.handle.store(handle, Ordering::Relaxed);
        // A write that saw no reason in an earlier registration still sees this one.
        if refusals.traits.is_some() {
            self.reasons.fetch_or(Reason::TraitsRefused as u32, Ordering::SeqCst);
        }
        self.rundown.open(refusals.traits.is_none());
        let reasons = if refusals.traits.is_some() { Reason::TraitsRefused as u32 } else { 0 };
        // Release: without a rundown, this makes the stores above visible to writes.
        self.reasons.store(reasons, Ordering::Release);
        self.phase.store(REGISTERED, Ordering::Release);
        Ok(if refusals == Refusals::default() {
            Registered::Complete
        } else {
            Registered::Incomplete(refusals)
        })
    }

    /// Sets the registration's traits and other settings (`EtwSetInformation`). A setting without
    /// information gets a null pointer, because the pointer of an empty slice is not an address.
    fn configure(&self, handle: u64, traits: Option<&[u8]>) -> Refusals {
        let set = |class, information: &[u8]| {
            // SAFETY: the caller registered the handle, and the information is borrowed for the
            // call. (A blob is at most 255 bytes long.)
            let status = NtStatus(unsafe {
                ffi::EtwSetInformation(
                    handle,
                    class,
                    if information.is_empty() { ptr::null() } else { information.as_ptr().cast() },
                    u32::try_from(information.len()).unwrap_or(u32::MAX),
                )
            });
            (!status.is_success()).then_some(status)
        };
        // Must come before any write: without traits, ETW treats event metadata as user data.
        let refused = traits.and_then(|blob| set(SET_TRAITS, blob));
        Refusals {
            traits: refused,
            // If a registration has traits, ETW evaluates the types of data descriptors. Otherwise
            // this setting makes ETW evaluate them.
            descriptor_types: if traits.is_none() || refused.is_some() {
                set(USE_DESCRIPTOR_TYPE, &[1])
            } else {
                None
            },
            binary_tracking: if self.binary_tracking { set(BINARY_TRACK_INFO, &[]) } else { None },
        }
    }

    /// Unregisters the provider (`EtwUnregister`), or does nothing if it is not registered.
    ///
    /// The function sleeps until the writes in progress have finished (`KeDelayExecutionThread`).
    /// Later writes do nothing.
    ///
    /// A thread that is suspended inside a write, below `APC_LEVEL`, blocks this function until it
    /// is resumed. To prevent this, call `KeEnterCriticalRegion` around writes on threads of
    /// programs.
    ///
    /// # Locks
    ///
    /// The caller must hold no lock that the provider's hooks acquire: ETW waits for running
    /// notifications (ETW-2.12, ETW-2.14), and the two threads would wait for each other. A hook
    /// that calls this function gets [`UnregisterError::InHook`].
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// Returns an [`UnregisterError`] if ETW refuses the call, if another thread is registering or
    /// unregistering the provider, if the provider has no rundown, if a hook of the provider calls
    /// the function, or if the IRQL is too high. The
    /// provider is then still registered (or may be, after [`UnregisterError::Refused`]), so
    /// unloading the driver breaks the promise of [`Self::register`].
    ///
    /// An unload routine cannot fail, and it gets no error in a correct driver: the driver has
    /// stopped the threads that register or unregister the provider, and no document names a status
    /// with which `EtwUnregister` refuses a valid handle at `PASSIVE_LEVEL`. So an error is a
    /// defect: print it ([`debug_print`](crate::debug_print)). A driver may also call
    /// `KeBugCheckEx`, which stops the system immediately and not at ETW's next notification.
    pub fn unregister(&'static self) -> Result<(), UnregisterError> {
        if !self.rundown.protects() {
            return Err(UnregisterError::NoRundown);
        }
        self.close_and_release()
    }

    /// Unregisters the provider as [`Self::unregister`] does, even if it has no rundown (`rundown =
    /// none`). The function does not wait for writes of such a provider.
    ///
    /// Debug builds count the writes. If one is in progress, the function waits for the provider's
    /// hooks to return, as ETW does. If a write is still in progress after that, the function
    /// returns [`UnregisterError::WriteInProgress`] without calling ETW.
    ///
    /// # Safety
    ///
    /// If the provider has no rundown, no write to it may be in progress on any thread, except in
    /// the provider's own hooks, because ETW waits for them: each write happens before the call or
    /// after the function has returned. This includes [`Self::provider_enabled`] and
    /// [`Self::event_enabled`]. In `EvtDriverUnload` this holds once the driver's timers, DPCs,
    /// work items, threads and other callbacks have stopped.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// Returns an [`UnregisterError`].
    pub unsafe fn unregister_without_rundown(&'static self) -> Result<(), UnregisterError> {
        self.close_and_release()
    }

    /// Unregisters the provider. If it has no rundown, the caller upholds the contract of
    /// [`Self::unregister_without_rundown`].
    fn close_and_release(&'static self) -> Result<(), UnregisterError> {
        irql::check(ffi::PASSIVE_LEVEL).map_err(UnregisterError::TooHighIrql)?;
        // ETW-2.13
        if self.hook_thread.load(Ordering::Relaxed) == ffi::current_thread() {
            return Err(UnregisterError::InHook);
        }
        let change = |from| {
            self.phase.compare_exchange(from, CHANGING, Ordering::Acquire, Ordering::Relaxed)
        };
        match change(REGISTERED) {
            Ok(_) => {
                // The masks stay clear from now on, so that a notification does not keep admitting
                // writes to the rundown while it waits for those in progress.
                self.state.close();
                self.reasons.fetch_or(Reason::Closed as u32, Ordering::SeqCst);
                self.rundown.close(!self.traits_refused(), ffi::pause);
            }
            Err(UNREGISTERED) => return Ok(()),
            Err(CLOSED) if change(CLOSED).is_ok() => {}
            Err(_) => return Err(UnregisterError::Busy),
        }
        #[cfg(debug_assertions)]
        if self.counters.is_writing() {
            self.phase.store(CLOSED, Ordering::Release);
            return Err(UnregisterError::WriteInProgress);
        }
        let handle = self.handle.load(Ordering::Relaxed);
        // SAFETY: the handle was registered, no call has released it with success, and no write uses it.
        let status = NtStatus(unsafe { ffi::EtwUnregister(handle) });
        if !status.is_success() {
            self.phase.store(CLOSED, Ordering::Release);
            return Err(UnregisterError::Refused(status));
        }
        self.handle.store(0, Ordering::Relaxed);
        // A notification may have enabled the provider again before `EtwUnregister`.
        self.state.disable();
        // SAFETY: no guard exists, and this is the only thread that changes the registration.
        let registration = unsafe { &mut *self.registration.0.get() };
        registration.descriptor = EventDataDescriptor::EMPTY;
        registration.copy = None;
        self.phase.store(UNREGISTERED, Ordering::Release);
        Ok(())
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

    /// Returns the provider at the address that [`Self::complete`] passes to ETW.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a static [`StaticProvider`], or null.
    const unsafe fn from_context(context: *const c_void) -> Option<&'static Self> {
        if context.is_null() {
            return None;
        }
        // The number of stripes does not change the offsets of the fields before them.
        let head = context.cast::<Provider<[Stripe; 0]>>();
        // SAFETY: the address refers to a provider, as the caller guarantees.
        let stripes = unsafe { &raw const (*head).stripes };
        // SAFETY: the number never changes.
        let stripes = unsafe { stripes.read() };
        let whole = ptr::slice_from_raw_parts(context.cast::<Stripe>(), stripes) as *const Self;
        // SAFETY: the address refers to a static provider with this number of stripes.
        Some(unsafe { &*whole })
    }

    /// Handles a notification.
    fn notify(&self, raw: RawNotification, source: Guid, filter: Option<FilterData<'_>>) {
        #[cfg(debug_assertions)]
        self.counters.notified.fetch_add(1, Ordering::SeqCst);
        self.dispatch(raw, source, filter);
        #[cfg(debug_assertions)]
        self.counters.notified.fetch_sub(1, Ordering::SeqCst);
    }

    /// Updates the enable state and calls the hook.
    fn dispatch(&self, raw: RawNotification, source: Guid, filter: Option<FilterData<'_>>) {
        let delivered = EnableInfo::delivered(raw.level, raw.match_any, raw.match_all);
        let (control, hook) = match raw.control_code {
            DISABLE => {
                self.state.disable();
                (Control::Disable, self.hooks.on_disable)
            }
            ENABLE => {
                self.state.enable(delivered);
                (Control::Enable(delivered), self.hooks.on_enable)
            }
            CAPTURE_STATE => {
                if let Some(counting) = self.counting {
                    (counting.write_statistics)(self);
                }
                (Control::CaptureState(delivered), self.hooks.on_capture_state)
            }
            // Later versions of Windows may send other codes, which do not change the enable state.
            _ => return,
        };
        if let Some(hook) = hook {
            let thread = ffi::current_thread();
            let outer = self.hook_thread.swap(thread, Ordering::Relaxed);
            hook(self, &Notification { control, source, filter, raw });
            // ETW makes one call at a time. If calls overlap nevertheless, the last one's thread counts.
            if outer != thread {
                let _own = self.hook_thread.compare_exchange(
                    thread,
                    0,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
        }
    }
}

/// The enable callback (`PETWENABLECALLBACK`). ETW calls it at `PASSIVE_LEVEL`, one call at a time
/// for each registration.
unsafe extern "system" fn enable_callback(
    source_id: *const Guid,
    control_code: u32,
    level: u8,
    match_any_keyword: u64,
    match_all_keyword: u64,
    filter_data: *const FilterDescriptor,
    context: *mut c_void,
) {
    // SAFETY: the context is the provider that `complete` passed, which is a static.
    let Some(provider) = (unsafe { Provider::from_context(context) }) else {
        return;
    };
    // SAFETY: ETW passes a valid pointer or null.
    let source = unsafe { guid_from_raw(source_id) };
    // SAFETY: ETW passes null or a descriptor that is valid for the call.
    let filter = unsafe { FilterData::from_raw(filter_data) };
    // SAFETY: as above.
    let descriptor = unsafe { filter_data.as_ref() };
    let raw = RawNotification {
        control_code,
        level,
        match_any: match_any_keyword,
        match_all: match_all_keyword,
        filter_kind: descriptor.map_or(0, |descriptor| descriptor.kind),
        filter_size: descriptor.map_or(0, |descriptor| descriptor.size),
    };
    provider.notify(raw, source, filter);
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
