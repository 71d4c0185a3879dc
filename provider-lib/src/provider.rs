//! Providers and their registration.

use core::{cell::UnsafeCell, ffi::c_void, fmt, ptr};

use crate::{
    Composite, EventDataDescriptor, EventDescriptor, Failures, FilterData, Guid, Keyword, Level,
    NtStatus, Traits, TraitsBuffer,
    ffi::{self, FilterDescriptor},
    filter::guid_from_raw,
    notification::{Control, Notification},
    rundown::{Pass, Rundown},
    state::EnableState,
    sync::{AtomicU8, AtomicU64, Ordering, const_unless_loom},
};

/// `EVENT_CONTROL_CODE_*`.
const DISABLE: u32 = 0;
const ENABLE: u32 = 1;
const CAPTURE_STATE: u32 = 2;

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
    /// The provider is registered with its traits.
    Complete,
    /// The provider is registered and works, but outside its group; its name travels
    /// with `TraceLogging` events only.
    WithoutTraits(TraitsFailure),
}

/// `EtwSetInformation` refused the traits, for instance for lack of permission to
/// join the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraitsFailure(pub NtStatus);

impl fmt::Display for TraitsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "EtwSetInformation(EventProviderSetTraits) returned {}; the provider works, but \
             outside its group",
            self.0
        )
    }
}

impl core::error::Error for TraitsFailure {}

/// Why a provider was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterError {
    /// It is registered already.
    AlreadyRegistered,
    /// Another thread is registering or unregistering it.
    Busy,
    /// `EtwRegister` failed. The provider may be registered again later.
    Refused(NtStatus),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyRegistered => f.write_str("the provider is registered already"),
            Self::Busy => {
                f.write_str("another thread is registering or unregistering the provider")
            }
            Self::Refused(status) => write!(f, "EtwRegister returned {status}"),
        }
    }
}

impl core::error::Error for RegisterError {}

/// Why a provider was not unregistered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnregisterError {
    /// Another thread is registering or unregistering it.
    Busy,
    /// `EtwUnregister` failed. The provider is registered still, and writes go on;
    /// unregistering can be tried again.
    Refused(NtStatus),
}

impl fmt::Display for UnregisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => {
                f.write_str("another thread is registering or unregistering the provider")
            }
            Self::Refused(status) => write!(f, "EtwUnregister returned {status}"),
        }
    }
}

impl core::error::Error for UnregisterError {}

/// The piece with the traits that a registration has, ready to be copied into a write.
struct TraitsPiece(UnsafeCell<EventDataDescriptor<'static>>);

// SAFETY: it is changed only while a registration is made, when the rundown is closed and
// nobody has a pass; it is read only by those who have one.
unsafe impl Sync for TraitsPiece {}

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
    traits_piece: TraitsPiece,
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
                traits_piece: TraitsPiece(UnsafeCell::new(EventDataDescriptor::EMPTY)),
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

    /// Registers the provider: `EtwRegister`, then `EtwSetInformation` with the
    /// traits. ETW may call the hooks before this returns; events that they write then
    /// are not recorded yet.
    ///
    /// If the traits are refused the provider stays registered, works, and the result
    /// says so.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]. A driver does its work without tracing, so it should go on.
    pub fn register(&'static self) -> Result<Registered, RegisterError> {
        self.register_with(self.traits)
    }

    /// Registers the provider as [`Self::register`] does, with traits that were made at
    /// run time instead of its own. ETW copies them, so they can go once this returns.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`. The traits must lie in memory that cannot be paged out: a local,
    /// a static or non-paged pool.
    ///
    /// # Errors
    ///
    /// [`RegisterError`].
    pub fn register_with<const N: usize>(
        &'static self,
        traits: &TraitsBuffer<N>,
    ) -> Result<Registered, RegisterError> {
        match self.phase.compare_exchange(
            UNREGISTERED,
            CHANGING,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => {}
            Err(REGISTERED) => return Err(RegisterError::AlreadyRegistered),
            Err(_) => return Err(RegisterError::Busy),
        }
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
            self.phase.store(UNREGISTERED, Ordering::Release);
            return Err(RegisterError::Refused(status));
        }
        // Before any write: without traits, ETW takes events' descriptions for content.
        let blob = traits.as_bytes();
        // SAFETY: the handle was registered above, and the blob is borrowed for the call.
        let status = NtStatus(unsafe {
            ffi::EtwSetInformation(
                handle,
                SET_TRAITS,
                blob.as_ptr().cast(),
                // A blob has 255 bytes at most.
                u32::try_from(blob.len()).unwrap_or(u32::MAX),
            )
        });
        if !status.is_success() {
            // The traits would have made ETW tell an event's description from its
            // fields; without them it must be asked to. If it refuses that too, the
            // result below says what there is to say.
            // SAFETY: the handle was registered above, and the byte is a constant.
            let _status = unsafe {
                ffi::EtwSetInformation(handle, USE_DESCRIPTOR_TYPE, ptr::from_ref(&1_u8).cast(), 1)
            };
        }
        self.state.set_without_traits(!status.is_success());
        let piece = EventDataDescriptor::provider_metadata(self.traits.as_bytes());
        // SAFETY: the rundown is closed, and this is the only thread that changes it.
        unsafe { *self.traits_piece.0.get() = piece };
        self.handle.store(handle, Ordering::Relaxed);
        self.rundown.open();
        self.phase.store(REGISTERED, Ordering::Release);
        Ok(if status.is_success() {
            Registered::Complete
        } else {
            Registered::WithoutTraits(TraitsFailure(status))
        })
    }

    /// Unregisters the provider, if it is registered (`EtwUnregister`). Writes under way
    /// finish first, and this sleeps until they have (`KeDelayExecutionThread`); later
    /// ones do nothing. ETW waits for a notification that is being handled, so a hook
    /// must not call this.
    ///
    /// # IRQL
    ///
    /// `PASSIVE_LEVEL`.
    ///
    /// # Errors
    ///
    /// [`UnregisterError`].
    pub fn unregister(&'static self) -> Result<(), UnregisterError> {
        match self.phase.compare_exchange(
            REGISTERED,
            CHANGING,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
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
            self.rundown.open();
            self.state.reopen();
            self.phase.store(REGISTERED, Ordering::Release);
            return Err(UnregisterError::Refused(status));
        }
        self.handle.store(0, Ordering::Relaxed);
        // A notification between closing and unregistering may have set it again.
        self.state.disable();
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
        unsafe { *self.traits_piece.0.get() }
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
