//! Starts that fail at a step, and structures in the sizes of older headers, as the service name
//! selects.

use core::sync::atomic::{AtomicUsize, Ordering};

use wdk_sys::{NTSTATUS, STATUS_DEVICE_CONFIGURATION_ERROR, STATUS_SUCCESS};

/// The service names, and the steps that fail for them.
const FAILING: [(&str, &str); 5] = [
    ("fail-prepare", "prepare_hardware"),
    ("fail-entry", "d0_entry"),
    ("fail-post", "d0_entry_post_interrupts"),
    ("fail-init", "io_init"),
    ("fail-restart", "io_restart"),
];
const OLD: &str = "old-headers";
const CALLERS: &str = "callers";

/// The number of the failing step from 1, or one of the numbers below, or 0.
static SELECTED: AtomicUsize = AtomicUsize::new(0);
const IS_OLD: usize = 100;
const HAS_CALLERS: usize = 101;

/// Selects the variant that the service name requests. `is_service` compares it.
pub fn select(is_service: impl Fn(&str) -> bool) {
    let step = FAILING.iter().position(|(service, _)| is_service(service));
    let selected = match step {
        Some(step) => step + 1,
        None if is_service(OLD) => IS_OLD,
        None if is_service(CALLERS) => HAS_CALLERS,
        None => 0,
    };
    SELECTED.store(selected, Ordering::Relaxed);
}

/// Returns the status of a step.
pub fn result_of(step: &str) -> NTSTATUS {
    let selected = SELECTED.load(Ordering::Relaxed);
    let failing = selected.checked_sub(1).and_then(|at| FAILING.get(at));
    if failing.is_some_and(|(_, failing)| *failing == step) {
        STATUS_DEVICE_CONFIGURATION_ERROR
    } else {
        STATUS_SUCCESS
    }
}

/// Returns whether the driver uses the structures of KMDF 1.7.
pub fn is_old() -> bool {
    SELECTED.load(Ordering::Relaxed) == IS_OLD
}

/// Returns whether the driver asks to be called in the sender's context.
pub fn has_callers() -> bool {
    SELECTED.load(Ordering::Relaxed) == HAS_CALLERS
}
