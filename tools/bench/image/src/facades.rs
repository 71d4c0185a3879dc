//! The reference event, written through facade crates and as a declared event.

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    fmt::{self, Display, Formatter},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use wdk_etw::{Notification, Provider, emit};
use wdk_etw_log::EtwLogger;
use wdk_etw_tracing::EtwSubscriber;

use crate::callers;

#[wdk_etw::provider(
    name = "Contoso.Driver",
    on_enable = super::sessions_changed,
    on_disable = super::sessions_changed,
)]
mod trace {
    #[keyword]
    pub const READ: Keyword = Keyword::bit(1);

    #[event(level = Info, keyword = READ)]
    pub fn read_complete(status: u32, bytes: u64, name: &str);
}

static LOGGER: EtwLogger = EtwLogger::new(&trace::PROVIDER, trace::READ).following_sessions();

static SUBSCRIBER: EtwSubscriber =
    EtwSubscriber::new(&trace::PROVIDER, trace::READ).following_sessions();

fn sessions_changed(_provider: &Provider, _notification: &Notification<'_>) {
    LOGGER.sessions_changed();
    SUBSCRIBER.sessions_changed();
}

/// The linker requires this C runtime symbol if the code uses floating-point registers. wdk-sys
/// defines it for drivers.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the linker looks for this name")]
static _fltused: i32 = 0;

/// An allocator for `tracing-core`'s only allocation, and for the earlier allocation that requests
/// memory.
struct Memory {
    bytes: UnsafeCell<[u64; 64]>,
    used: AtomicUsize,
}

// SAFETY: no two allocations have the same bytes.
unsafe impl Sync for Memory {}

// SAFETY: the blocks are in the array, aligned for its elements, and do not overlap.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let words = layout.size().div_ceil(8);
        let start = self.used.fetch_add(words, Ordering::Relaxed);
        if layout.align() > 8 || start.saturating_add(words) > 64 {
            return ptr::null_mut();
        }
        self.bytes.get().cast::<u8>().wrapping_add(start.wrapping_mul(8))
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static MEMORY: Memory = Memory { bytes: UnsafeCell::new([0; 64]), used: AtomicUsize::new(0) };

macro_rules! native {
    ($status:expr, $bytes:expr, $text:expr) => {
        emit!(trace::read_complete($status, $bytes, $text))
    };
}
callers!(native: native_five, native_four, native_request, native_leaf, native_evaluated);

macro_rules! formatted {
    ($status:expr, $bytes:expr, $text:expr) => {
        log::info!("read complete: {:#x} {} {}", $status, $bytes, $text)
    };
}
callers!(formatted: log_five, log_four, log_request, log_leaf, log_evaluated);

macro_rules! pairs {
    ($status:expr, $bytes:expr, $text:expr) => {
        log::info!(status = $status, bytes = $bytes, name = $text; "read complete")
    };
}
callers!(pairs: pairs_five, pairs_four, pairs_request, pairs_leaf, pairs_evaluated);

macro_rules! fields {
    ($status:expr, $bytes:expr, $text:expr) => {
        tracing::info!(status = $status, bytes = $bytes, name = $text, "read complete")
    };
}
callers!(fields: tracing_five, tracing_four, tracing_request, tracing_leaf, tracing_evaluated);

/// Creates and drops a span.
macro_rules! span {
    ($status:expr, $bytes:expr, $text:expr) => {
        drop(tracing::info_span!("read", status = $status, bytes = $bytes, name = $text))
    };
}
callers!(span: span_five, span_four, span_request, span_leaf, span_evaluated);

/// A value whose text is 1 MiB long, too long for an event.
struct Long;

impl Display for Long {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        (0..1 << 17).try_for_each(|_| f.write_str("8 bytes "))
    }
}

#[unsafe(no_mangle)]
pub extern "system" fn log_long() {
    log::info!("{Long}");
}

#[unsafe(no_mangle)]
pub extern "system" fn tracing_long() {
    tracing::info!("{Long}");
}

#[unsafe(no_mangle)]
pub extern "system" fn facades_register() -> bool {
    let installed = LOGGER.install().is_ok() && SUBSCRIBER.install().is_ok();
    // SAFETY: the benchmark never unmaps the image.
    unsafe { trace::register() }.is_ok() && installed
}
