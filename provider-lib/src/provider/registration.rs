//! Registering and unregistering a provider.

use core::{ffi::c_void, ptr};

use super::{
    CHANGING, CLOSED, Provider, REGISTERED, Reason, Refusals, RegisterError, Registered,
    UNREGISTERED, UnregisterError, notifications::enable_callback,
};
use crate::{
    EventDataDescriptor, NtStatus, TraitsBuffer, ffi, irql, pool::PoolCopy, sync::Ordering,
};

/// `EventProviderBinaryTrackInfo` of `EVENT_INFO_CLASS`, which takes no information.
const BINARY_TRACK_INFO: i32 = 0;
/// `EventProviderSetTraits` of `EVENT_INFO_CLASS`.
const SET_TRAITS: i32 = 2;
/// `EventProviderUseDescriptorType` of `EVENT_INFO_CLASS`.
const USE_DESCRIPTOR_TYPE: i32 = 3;

impl Provider {
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
        let Some(copy) = PoolCopy::allocate(blob) else {
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
}
