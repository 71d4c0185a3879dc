//! The table of the enable callbacks that the driver has received.
//!
//! The callback takes no lock and allocates nothing: it reserves the next slot of a fixed table,
//! and writes atomics.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use etw_probes_interface::{Callback, Callbacks, MAX_CALLBACKS};
use wdk_sys::{LPCGUID, PEVENT_FILTER_DESCRIPTOR};

use crate::{phases, system};

/// The number of 64-bit words of a [`Callback`].
const WORDS: usize = size_of::<Callback>() / 8;

/// The slot for one callback.
struct Place {
    words: [AtomicU64; WORDS],
    /// 1 once the words are written.
    written: AtomicU32,
}

impl Place {
    const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; WORDS], written: AtomicU32::new(0) }
    }
}

static PLACES: [Place; MAX_CALLBACKS] = [const { Place::new() }; MAX_CALLBACKS];

/// The number of callbacks since the last reset.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Discards all recorded callbacks. No provider may be registered.
pub fn forget() {
    for place in &PLACES {
        place.written.store(0, Ordering::Relaxed);
    }
    COUNT.store(0, Ordering::Release);
}

/// Returns the number of callbacks.
pub fn count() -> u32 {
    COUNT.load(Ordering::Acquire)
}

/// Copies the table to a buffer that contains zeros.
pub fn copy_to(table: &mut Callbacks) {
    table.version = etw_probes_interface::VERSION;
    table.count = count();
    for (to, from) in table.callbacks.iter_mut().zip(&PLACES) {
        if from.written.load(Ordering::Acquire) == 0 {
            continue;
        }
        let mut words = [0_u64; WORDS];
        for (to, from) in words.iter_mut().zip(&from.words) {
            *to = from.load(Ordering::Relaxed);
        }
        *to = zerocopy::transmute!(words);
    }
}

/// The enable callback of every registration. Its context is the registration's number.
pub extern "C" fn on_enable(
    source: LPCGUID,
    code: u32,
    level: u8,
    match_any: u64,
    match_all: u64,
    filter: PEVENT_FILTER_DESCRIPTOR,
    context: *mut c_void,
) {
    let number = COUNT.fetch_add(1, Ordering::AcqRel);
    let Some(place) = PLACES.get(number as usize) else {
        return;
    };
    // SAFETY: ETW passes null or a GUID that is valid during the callback.
    let source = unsafe { source.as_ref() };
    // SAFETY: ETW passes null or a descriptor that is valid during the callback.
    let filter = unsafe { filter.as_ref() };
    let slot = context.addr() as u32;
    let callback = Callback {
        time: system::counter(),
        match_any,
        match_all,
        source: source.map_or([0; 16], system::bytes_of),
        filter_type: filter.map_or(0, |filter| filter.Type),
        filter_size: filter.map_or(0, |filter| filter.Size),
        code,
        slot,
        thread: system::thread(),
        irql: system::irql(),
        level,
        phase: phases::get(slot),
        flags: u8::from(filter.is_some()) | (u8::from(source.is_none()) << 1),
    };
    let words: [u64; WORDS] = zerocopy::transmute!(callback);
    for (to, from) in place.words.iter().zip(words) {
        to.store(from, Ordering::Relaxed);
    }
    place.written.store(1, Ordering::Release);
}
