//! Installing a subscriber for the driver's image, and removing it.

use core::{
    alloc::Layout,
    cell::UnsafeCell,
    fmt,
    mem::ManuallyDrop,
    ptr,
    sync::atomic::{AtomicU8, Ordering, fence},
};

use tracing_core::{Dispatch, callsite, dispatcher};

/// The phases of a subscriber.
const NEW: u8 = 0;
const CHANGING: u8 = 1;
const INSTALLED: u8 = 2;
const REMOVED: u8 = 3;

/// More memory than `tracing-core` allocates for a subscriber that is a reference.
const ALLOCATION: Layout = Layout::new::<[u64; 8]>();

/// The error of [`EtwSubscriber::install`](crate::EtwSubscriber::install).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallError {
    /// A subscriber is or was installed. `tracing` accepts only one for each image.
    AlreadyInstalled,
    /// There is not enough memory for the reference to the subscriber, which `tracing-core`
    /// allocates. The driver can try again later.
    NoMemory,
    /// The function was called at this IRQL, above `PASSIVE_LEVEL`, and changed nothing.
    ///
    /// Kernel-mode drivers for ARM64 cannot read the IRQL, so there the caller must keep the limit: the
    /// function does not check it.
    TooHighIrql(u8),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooHighIrql(irql) => {
                return write!(
                    f,
                    "cannot install the subscriber at IRQL {irql}: call `install` at PASSIVE_LEVEL (0)"
                );
            }
            Self::AlreadyInstalled => {
                "cannot install the subscriber: a subscriber is or was installed, and an \
                 image can have only one"
            }
            Self::NoMemory => {
                "cannot install the subscriber: the global allocator has no memory for the \
                 reference to it"
            }
        })
    }
}

impl core::error::Error for InstallError {}

/// The state of a subscriber's installation.
pub struct Installation {
    phase: AtomicU8,
    dispatch: UnsafeCell<Option<Dispatch>>,
}

// SAFETY: only the thread that set `phase` to `CHANGING` accesses the cell.
unsafe impl Sync for Installation {}

impl Installation {
    pub const fn new() -> Self {
        Self { phase: AtomicU8::new(NEW), dispatch: UnsafeCell::new(None) }
    }

    fn change(&self, from: u8) -> bool {
        self.phase.compare_exchange(from, CHANGING, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the subscriber is installed.
    ///
    /// Because of the fence, if a caller that has changed the enable state sees that the subscriber
    /// is not yet installed, the thread that installs it reads the new state afterwards.
    pub fn is_installed(&self) -> bool {
        fence(Ordering::SeqCst);
        self.phase.load(Ordering::Relaxed) == INSTALLED
    }

    /// Returns whether the subscriber was removed.
    pub fn is_removed(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == REMOVED
    }

    /// Makes a dispatcher of the subscriber that `new` creates the image's default. Out of line, so
    /// that the panic check can distinguish the panic of `Dispatch::new` from others.
    #[inline(never)]
    pub fn install(&self, new: impl FnOnce() -> Dispatch) -> Result<(), InstallError> {
        if !self.change(NEW) {
            return Err(InstallError::AlreadyInstalled);
        }
        // `Dispatch::new` panics if there is no memory, so check first.
        if !is_available(ALLOCATION) {
            self.phase.store(NEW, Ordering::Release);
            return Err(InstallError::NoMemory);
        }
        let dispatch = new();
        if dispatcher::set_global_default(dispatch.clone()).is_err() {
            drop(dispatch);
            self.phase.store(NEW, Ordering::Release);
            // `new` cached the previous subscriber's interest in each event.
            callsite::rebuild_interest_cache();
            return Err(InstallError::AlreadyInstalled);
        }
        // SAFETY: this thread changed the phase.
        let kept = unsafe { &mut *self.dispatch.get() };
        *kept = Some(dispatch);
        self.phase.store(INSTALLED, Ordering::Release);
        Ok(())
    }

    /// Frees the memory of the dispatcher.
    ///
    /// # Safety
    ///
    /// No code uses the default dispatcher of the image during this call or later.
    #[inline(never)]
    pub unsafe fn remove(&self) {
        if !self.change(INSTALLED) {
            return;
        }
        self.phase.store(REMOVED, Ordering::Release);
        // Events and spans no longer call the subscriber, because it no longer enables any.
        callsite::rebuild_interest_cache();
        // SAFETY: this thread changed the phase, and only the phase `REMOVED` follows.
        let kept = unsafe { &mut *self.dispatch.get() };
        let Some(dispatch) = kept.take() else {
            return;
        };
        let weak = dispatch.downgrade();
        // `tracing-core` has kept one more reference, which it never drops. This copy stands for
        // it.
        // SAFETY: the copy is dropped only if there is a reference that nothing else drops.
        let leaked = ManuallyDrop::new(unsafe { ptr::read(&raw const dispatch) });
        drop(dispatch);
        if weak.upgrade().is_some() {
            drop(ManuallyDrop::into_inner(leaked));
        }
    }
}

/// Returns whether the global allocator has memory for a layout.
fn is_available(layout: Layout) -> bool {
    // SAFETY: the layout's size is not zero.
    let block = unsafe { alloc::alloc::alloc(layout) };
    // The compiler may remove an allocation that is freed immediately, and assume that it succeeds.
    let block = core::hint::black_box(block);
    if block.is_null() {
        return false;
    }
    // SAFETY: the allocator returned the block for this layout.
    unsafe { alloc::alloc::dealloc(block, layout) };
    true
}
