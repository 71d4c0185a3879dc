//! The notifications that a provider receives from ETW.

use core::{ffi::c_void, ptr};

use super::Provider;
use crate::{
    EnableInfo, FilterData, Guid,
    ffi::{self, FilterDescriptor},
    filter::guid_from_raw,
    notification::{Control, Notification, RawNotification},
    rundown::Stripe,
    sync::Ordering,
};

/// `EVENT_CONTROL_CODE_*`.
const DISABLE: u32 = 0;
const ENABLE: u32 = 1;
const CAPTURE_STATE: u32 = 2;

impl Provider {
    /// Returns the provider at the address that [`Self::complete`] passes to ETW.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a static [`StaticProvider`](super::StaticProvider), or null.
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
pub unsafe extern "system" fn enable_callback(
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
