//! Providers and their registration.

use core::{cell::UnsafeCell, ffi::c_void, fmt, ptr};

use crate::{
    Composite, EventDataDescriptor, EventDescriptor, Failures, FilterData, Guid, Keyword, Level,
    NtStatus, Traits, TraitsBuffer,
    ffi::{self, FilterDescriptor},
    filter::guid_from_raw,
    notification::{Control, Notification},
    pool::PoolCopy,
    rundown::{Pass, Rundown},
    state::EnableState,
    sync::{AtomicU8, AtomicU64, Ordering, const_unless_loom},
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

/// Where a registration stands.
const UNREGISTERED: u8 = 0;
const CHANGING: u8 = 1;
const REGISTERED: u8 = 2;

/// A handler of notifications. It gets the provider by shared reference, runs at
/// `PASSIVE_LEVEL`, and must return soon; see [`Notification`].
pub type Hook = fn(&Provider, &Notification<'_>);

/// The handlers of a provider's notifications.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hooks {
    /// Called after the enable state has been updated, when sessions want events.
    pub on_enable: Option<Hook>,
    /// Called after the enable state has been updated, when no session does any more.
    pub on_disable: Option<Hook>,
    /// Called when the provider is to write events that describe its state.
    pub on_capture_state: Option<Hook>,
}

impl Hooks {
    /// No handlers.
    pub const NONE: Self = Self {
        on_enable: None,
        on_disable: None,
        on_capture_state: None,
    };
}

/// What came of a registration that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the provider may work without its traits, and so outside its group"]
pub enum Registered {
    /// The provider is registered with all that it asks for.
    Complete,
    /// The provider is registered and works, but ETW refused something.
    Incomplete(Refusals),
}

/// What `EtwSetInformation` refused for a registration, each with its status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// `EventProviderSetTraits`, for instance for lack of permission to join the group:
    /// the provider works outside its group, and its name travels with `TraceLogging`
    /// events only.
    pub traits: Option<NtStatus>,
    /// `EventProviderUseDescriptorType`, which is asked for where there are no traits:
    /// `TraceLogging` events cannot be decoded.
    pub descriptor_types: Option<NtStatus>,
    /// `EventProviderBinaryTrackInfo`: the image is not noted in traces.
    pub binary_tracking: Option<NtStatus>,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusals = [
            (
                "SetTraits",
                self.traits,
                "the provider works, but outside its group",
            ),
            (
                "UseDescriptorType",
                self.descriptor_types,
                "TraceLogging events cannot be decoded",
            ),
            (
                "BinaryTrackInfo",
                self.binary_tracking,
                "the image is not noted in traces",
            ),
        ];
        let mut separator = "";
        for (class, status, consequence) in refusals {
            if let Some(status) = status {
                write!(
                    f,
                    "{separator}EtwSetInformation(EventProvider{class}) returned {status}: \
                     {consequence}"
                )?;
                separator = "; ";
            }
        }
        Ok(())
    }
}

/// Why a provider was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// It is registered already.
    AlreadyRegistered,
    /// Another thread is registering or unregistering it.
    Busy,
    /// `EtwRegister` failed. The provider may be registered again later.
    Refused(NtStatus),
    /// `ExAllocatePool2` had no non-paged pool for traits of so many bytes. The provider
    /// may be registered again later, or without them.
    NoPool(usize),
    /// It was called at this IRQL, above `PASSIVE_LEVEL`; only debug builds look.
    TooHighIrql(u8),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRegistered => f.write_str("the provider is registered already"),
            Self::Busy => {
                f.write_str("another thread is registering or unregistering the provider")
            }
            Self::Refused(status) => write!(f, "EtwRegister returned {status}"),
            Self::NoPool(bytes) => write!(
                f,
                "ExAllocatePool2 had no {bytes} bytes of non-paged pool for the traits"
            ),
            Self::TooHighIrql(irql) => write!(
                f,
                "EtwRegister may be called at PASSIVE_LEVEL only, and the IRQL is {irql}"
            ),
        }
    }
}

impl core::error::Error for RegisterError {}

/// Why a provider was not unregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnregisterError {
    /// Another thread is registering or unregistering it.
    Busy,
    /// `EtwUnregister` failed. Whether the handle is good any more is not known, so writes
    /// stay without effect; unregistering can be tried again.
    Refused(NtStatus),
    /// It was called at this IRQL, above `PASSIVE_LEVEL`; only debug builds look.
    TooHighIrql(u8),
}

impl fmt::Display for UnregisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => {
                f.write_str("another thread is registering or unregistering the provider")
            }
            Self::Refused(status) => write!(f, "EtwUnregister returned {status}"),
            Self::TooHighIrql(irql) => write!(
                f,
                "EtwUnregister may be called at PASSIVE_LEVEL only, and the IRQL is {irql}"
            ),
        }
    }
}

impl core::error::Error for UnregisterError {}

/// The traits that a registration has: the piece that is copied into a write, and what it
/// points at if that is not the provider's own constant.
struct Registration {
    piece: EventDataDescriptor<'static>,
    copy: Option<PoolCopy>,
}

/// A registration's traits, shared with writes.
struct Shared(UnsafeCell<Registration>);

// SAFETY: it is changed only by who has made `phase` `CHANGING`, and while the rundown is
// closed and nobody has a pass; it is read only by those who have one.
unsafe impl Sync for Shared {}

/// An ETW provider: a `static` that a driver registers once and writes events to.
///
/// Everything in it that changes is atomic, so it is shared freely between
/// processors and IRQLs. ETW keeps its address while it is registered, which is why
/// only a `static` can be registered.
pub struct Provider {
    state: EnableState,
    rundown: Rundown,
    phase: AtomicU8,
    handle: AtomicU64,
    failures: Failures,
    registration: Shared,
    sets_traits: bool,
    binary_tracking: bool,
    id: Guid,
    traits: &'static Traits,
    hooks: Hooks,
}

impl Provider {
    const_unless_loom! {
        /// A provider with this GUID and these traits; [`guid_of_name!`](crate::guid_of_name!)
        /// and [`traits!`](crate::traits!) make them.
        ///
        /// # IRQL
        ///
        /// Any.
        #[must_use]
        pub const fn new(id: Guid, traits: &'static Traits) -> Self {
            Self {
                state: EnableState::new(),
                rundown: Rundown::new(),
                phase: AtomicU8::new(UNREGISTERED),
                handle: AtomicU64::new(0),
                failures: Failures::new(),
                registration: Shared(UnsafeCell::new(Registration {
                    piece: EventDataDescriptor::EMPTY,
                    copy: None,
                })),
                sets_traits: true,
                binary_tracking: false,
                id,
                traits,
                hooks: Hooks::NONE,
            }
        }
    }

    /// The same with handlers of notifications.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// The same, but its registration has no traits, so that its events in a manifest do not
    /// carry them. (`EventProviderUseDescriptorType` is set instead, so that `TraceLogging`
    /// events can bring the provider's name themselves.) For a provider in no group, without
    /// custom traits.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn without_traits(mut self) -> Self {
        self.sets_traits = false;
        self
    }

    /// The same, but every session that the provider writes to notes the image that it is
    /// in (`EventProviderBinaryTrackInfo`): for images with decoding resources, which
    /// decoders then find.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn with_binary_tracking(mut self) -> Self {
        self.binary_tracking = true;
        self
    }

    /// The provider's GUID.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn id(&self) -> Guid {
        self.id
    }

    /// The provider's traits.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn traits(&self) -> &'static Traits {
        self.traits
    }

    /// Registers the provider: `EtwRegister`, then `EtwSetInformation` with the traits and
    /// what else was asked for. ETW may call the hooks before this returns; events that they
    /// write then are not recorded, since the registration is not complete yet.
    ///
    /// If ETW refuses the traits the provider stays registered, works, and the result says
    /// so.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]. A driver does its work without tracing, so it should go on.
    pub fn register(&'static self) -> Result<Registered, RegisterError> {
        self.change_phase()?;
        self.complete(None)
    }

    /// Registers the provider as [`Self::register`] does, with traits that were made at run
    /// time instead of its own. They are copied to non-paged pool, with the tag `WEtw`,
    /// which [`Self::unregister`] frees.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]. After [`RegisterError::NoPool`] the provider is not registered;
    /// [`Self::register`] needs no pool.
    pub fn register_with<const N: usize>(
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

    /// Makes this the only thread that changes the registration.
    fn change_phase(&self) -> Result<(), RegisterError> {
        ffi::check_irql(ffi::PASSIVE_LEVEL).map_err(RegisterError::TooHighIrql)?;
        let changed = self.phase.compare_exchange(
            UNREGISTERED,
            CHANGING,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        match changed {
            Ok(_) => Ok(()),
            Err(REGISTERED) => Err(RegisterError::AlreadyRegistered),
            Err(_) => Err(RegisterError::Busy),
        }
    }

    /// Makes the registration, with the provider's own traits or others.
    fn complete(&'static self, copy: Option<PoolCopy>) -> Result<Registered, RegisterError> {
        let mut handle = 0;
        let context = ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: the GUID and the context are parts of a static; the callback reads the
        // context by shared reference only; the handle is a local.
        let status = NtStatus(unsafe {
            ffi::EtwRegister(
                &raw const self.id,
                Some(enable_callback),
                context,
                &raw mut handle,
            )
        });
        if !status.is_success() {
            // The callback may have run all the same.
            self.state.disable();
            drop(copy);
            self.phase.store(UNREGISTERED, Ordering::Release);
            return Err(RegisterError::Refused(status));
        }
        // SAFETY: the rundown is closed, and this is the only thread that changes it.
        let registration = unsafe { &mut *self.registration.0.get() };
        registration.copy = copy;
        let blob = registration
            .copy
            .as_ref()
            .map_or_else(|| self.traits.as_bytes(), PoolCopy::as_bytes);
        // SAFETY: the blob is a constant of the provider's, or lies in the pool block that
        // is kept until the rundown has been closed again.
        let blob: &'static [u8] = unsafe { &*ptr::from_ref(blob) };
        registration.piece = EventDataDescriptor::provider_metadata(blob);
        // Traits that were made for this registration are meant to be set.
        let sets_traits = self.sets_traits || registration.copy.is_some();
        let refusals = self.describe(handle, sets_traits.then_some(blob));
        self.state.set_without_traits(refusals.traits.is_some());
        self.handle.store(handle, Ordering::Relaxed);
        self.rundown.open();
        self.phase.store(REGISTERED, Ordering::Release);
        Ok(if refusals == Refusals::default() {
            Registered::Complete
        } else {
            Registered::Incomplete(refusals)
        })
    }

    /// Tells ETW what the registration is like.
    fn describe(&self, handle: u64, traits: Option<&[u8]>) -> Refusals {
        let set = |class, information: &[u8]| {
            // SAFETY: the handle was registered by the caller, and the information is
            // borrowed for the call. (A blob has 255 bytes at most.)
            let status = NtStatus(unsafe {
                ffi::EtwSetInformation(
                    handle,
                    class,
                    information.as_ptr().cast(),
                    u32::try_from(information.len()).unwrap_or(u32::MAX),
                )
            });
            (!status.is_success()).then_some(status)
        };
        // Before any write: without traits, ETW takes events' descriptions for content.
        let refused = traits.and_then(|blob| set(SET_TRAITS, blob));
        Refusals {
            traits: refused,
            // Traits make ETW tell an event's description from its fields; without them it
            // must be asked to.
            descriptor_types: if traits.is_none() || refused.is_some() {
                set(USE_DESCRIPTOR_TYPE, &[1])
            } else {
                None
            },
            binary_tracking: if self.binary_tracking {
                set(BINARY_TRACK_INFO, &[])
            } else {
                None
            },
        }
    }

    /// Unregisters the provider, if it is registered (`EtwUnregister`). Writes under way
    /// finish first, and this sleeps until they have (`KeDelayExecutionThread`); later ones
    /// do nothing. ETW waits for a notification that is being handled, so a hook must not
    /// call this.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// [`UnregisterError`].
    pub fn unregister(&'static self) -> Result<(), UnregisterError> {
        ffi::check_irql(ffi::PASSIVE_LEVEL).map_err(UnregisterError::TooHighIrql)?;
        let changed =
            self.phase
                .compare_exchange(REGISTERED, CHANGING, Ordering::Acquire, Ordering::Relaxed);
        match changed {
            Ok(_) => {}
            Err(UNREGISTERED) => return Ok(()),
            Err(_) => return Err(UnregisterError::Busy),
        }
        self.state.close();
        self.rundown.close(ffi::pause);
        let handle = self.handle.load(Ordering::Relaxed);
        // SAFETY: the handle is registered, and no write uses it any more.
        let status = NtStatus(unsafe { ffi::EtwUnregister(handle) });
        if !status.is_success() {
            self.phase.store(REGISTERED, Ordering::Release);
            return Err(UnregisterError::Refused(status));
        }
        self.handle.store(0, Ordering::Relaxed);
        // A notification between closing and unregistering may have set it again.
        self.state.disable();
        // SAFETY: the rundown is closed, and this is the only thread that changes it.
        let registration = unsafe { &mut *self.registration.0.get() };
        registration.piece = EventDataDescriptor::EMPTY;
        registration.copy = None;
        self.phase.store(UNREGISTERED, Ordering::Release);
        Ok(())
    }

    /// Whether some session may want an event of this level and keyword: the check
    /// that a write site makes.
    ///
    /// # IRQL
    ///
    /// Any.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a call would cost more than the check"
    )]
    #[must_use]
    pub fn may_want(&self, level: Level, keyword: Keyword) -> bool {
        self.state.wants(level, keyword)
    }

    /// Whether some session wants an event of this level and keyword, the keywords
    /// that every session asks for included.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn is_enabled(&self, level: Level, keyword: Keyword) -> bool {
        self.state.wants_detail(level, keyword)
    }

    /// What the sessions want together; nothing while no session enables the provider.
    /// Never waits, and is never torn: while it changes under the reader, the answer is
    /// the old one, the new one, or that everything is wanted.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn composite(&self) -> Option<Composite> {
        self.state.composite()
    }

    /// Whether ETW itself would take such an event (`EtwProviderEnabled`); slower than
    /// [`Self::is_enabled`].
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn etw_wants(&self, level: Level, keyword: Keyword) -> bool {
        let Some(_pass) = self.rundown.enter() else {
            return false;
        };
        // SAFETY: the pass keeps the handle registered.
        unsafe { ffi::EtwProviderEnabled(self.handle(), level.0, keyword.bits()) != 0 }
    }

    /// Whether ETW itself would take this event (`EtwEventEnabled`).
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub fn etw_wants_event(&self, event: &EventDescriptor) -> bool {
        let Some(_pass) = self.rundown.enter() else {
            return false;
        };
        // SAFETY: the pass keeps the handle registered, and the descriptor is borrowed.
        unsafe { ffi::EtwEventEnabled(self.handle(), event) != 0 }
    }

    /// The writes that ETW did not take, by status.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn failures(&self) -> &Failures {
        &self.failures
    }

    pub(crate) const fn state(&self) -> &EnableState {
        &self.state
    }

    pub(crate) const fn rundown(&self) -> &Rundown {
        &self.rundown
    }

    /// The piece with the traits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is one load")]
    pub(crate) fn traits_piece(&self, _pass: &Pass<'_>) -> EventDataDescriptor<'static> {
        // SAFETY: nobody changes it while there is a pass.
        let registration = unsafe { &*self.registration.0.get() };
        registration.piece
    }

    /// The handle; 0 while there is none. Only for who holds a pass of the rundown.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.load(Ordering::Relaxed)
    }

    /// Updates the state and calls the hook.
    fn notify(
        &self,
        code: u32,
        delivered: Composite,
        source: Guid,
        filter: Option<FilterData<'_>>,
    ) {
        let (control, hook) = match code {
            DISABLE => {
                self.state.disable();
                (Control::Disable, self.hooks.on_disable)
            }
            ENABLE => {
                self.state.enable(delivered);
                (Control::Enable(delivered), self.hooks.on_enable)
            }
            CAPTURE_STATE => (
                Control::CaptureState(delivered),
                self.hooks.on_capture_state,
            ),
            // A later Windows may have more; none of them changes what is wanted.
            _ => return,
        };
        if let Some(hook) = hook {
            hook(
                self,
                &Notification {
                    control,
                    source,
                    filter,
                },
            );
        }
    }
}

/// `PETWENABLECALLBACK`: ETW calls it at `PASSIVE_LEVEL`, one call at a time for each
/// registration.
unsafe extern "system" fn enable_callback(
    source_id: *const Guid,
    control_code: u32,
    level: u8,
    match_any_keyword: u64,
    match_all_keyword: u64,
    filter_data: *const FilterDescriptor,
    context: *mut c_void,
) {
    // SAFETY: the context is what `register` passed: a provider in a static.
    let Some(provider) = (unsafe { context.cast::<Provider>().as_ref() }) else {
        return;
    };
    // SAFETY: ETW passes a valid pointer, or none.
    let source = unsafe { guid_from_raw(source_id) };
    // SAFETY: ETW passes none, or a descriptor that is valid for the call.
    let filter = unsafe { FilterData::from_raw(filter_data) };
    let delivered = Composite::delivered(level, match_any_keyword, match_all_keyword);
    provider.notify(control_code, delivered, source, filter);
}
