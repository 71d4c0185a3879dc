//! The state that the device shares between its queue and timer callbacks.

use alloc::vec::Vec;
use core::{
    cell::UnsafeCell,
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
};

use etw_sample_interface::Statistics;
use wdk::wdf::{SpinLock, Timer};
use wdk_sys::{NT_SUCCESS, NTSTATUS, WDFDEVICE, WDFDPC, WDFQUEUE, WDFREQUEST__};

use crate::{context::ContextType, trace};

pub static CONTEXT: ContextType<Device> = ContextType::new(c"Device", &raw const CONTEXT);

/// The device's shared state.
pub struct Device {
    /// Guards `kept`, and the starting and stopping of the timer according to `timer_wanted`.
    lock: SpinLock,
    kept: UnsafeCell<Vec<u8>>,
    /// The timer, and whether a user has started it.
    pub timer: Timer,
    pub timer_wanted: AtomicBool,
    /// The DPC, and the request that it completes.
    pub dpc: WDFDPC,
    pub deferred: AtomicPtr<WDFREQUEST__>,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub timer_ticks: AtomicU64,
    /// The queue of the requests that wait to be woken, and the number of requests that were woken.
    pub waiting: WDFQUEUE,
    pub woken: AtomicU64,
}

impl Device {
    /// Returns a device's state before its first request; `kept` has room for [`CAPACITY`] bytes.
    ///
    /// [`CAPACITY`]: etw_sample_interface::CAPACITY
    pub const fn new(
        lock: SpinLock,
        kept: Vec<u8>,
        timer: Timer,
        dpc: WDFDPC,
        waiting: WDFQUEUE,
    ) -> Self {
        Self {
            lock,
            kept: UnsafeCell::new(kept),
            timer,
            timer_wanted: AtomicBool::new(false),
            dpc,
            deferred: AtomicPtr::new(ptr::null_mut()),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            timer_ticks: AtomicU64::new(0),
            waiting,
            woken: AtomicU64::new(0),
        }
    }

    /// Returns the state in a device's context.
    ///
    /// # Safety
    ///
    /// `device` must be a live device of this driver whose context has been built: any device that
    /// a callback receives, except in `EvtDriverDeviceAdd`.
    pub unsafe fn from_handle<'a>(device: WDFDEVICE) -> &'a Self {
        // SAFETY: the device is live and was created with this context type.
        let context = unsafe { CONTEXT.address(device.cast()) };
        // SAFETY: the context was built in `device::add`, before any other callback, and lives as
        // long as the device; its mutable fields are atomic or locked.
        unsafe { &*context }
    }

    /// Runs `body` on the bytes that were written last, at `DISPATCH_LEVEL`.
    pub fn with_kept<R>(&self, body: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.lock.acquire();
        // SAFETY: the lock is held, so this is the only reference.
        let result = body(unsafe { &mut *self.kept.get() });
        self.lock.release();
        result
    }

    /// Stores bytes for later reads, truncated to the capacity.
    pub fn keep(&self, bytes: &[u8]) {
        self.with_kept(|kept| {
            // `device::create` reserved the capacity. `Vec::extend` would contain code that grows
            // the vector, which can panic.
            kept.clear();
            let mut length = 0_usize;
            for (to, from) in kept.spare_capacity_mut().iter_mut().zip(bytes) {
                to.write(*from);
                length = length.wrapping_add(1);
            }
            // SAFETY: this number of bytes was written, within the capacity.
            unsafe { kept.set_len(length) };
        });
    }

    /// Runs `body` at `DISPATCH_LEVEL`, under the lock that serializes starting and stopping the
    /// timer.
    pub fn with_timer<R>(&self, body: impl FnOnce(&Timer) -> R) -> R {
        self.lock.acquire();
        let result = body(&self.timer);
        self.lock.release();
        result
    }

    /// Returns the counters.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            timer_ticks: self.timer_ticks.load(Ordering::Relaxed),
            woken: self.woken.load(Ordering::Relaxed),
            ..trace::statistics()
        }
    }
}

/// Converts a failure status to an error.
pub const fn check(status: NTSTATUS) -> Result<(), NTSTATUS> {
    if NT_SUCCESS(status) { Ok(()) } else { Err(status) }
}
