//! Starts that fail at a step, and structures with the sizes of older headers, selected by the
//! service name.

use core::sync::atomic::{AtomicUsize, Ordering};

use etw_driver_support::Service;
use wdk_sys::{NTSTATUS, STATUS_DEVICE_CONFIGURATION_ERROR, STATUS_SUCCESS};

/// The services, and the step that fails for each.
const SERVICES: [(&str, &str); 11] = [
    ("fail-prepare", "prepare_hardware"),
    ("fail-entry", "d0_entry"),
    ("fail-post", "d0_entry_post_interrupts"),
    ("fail-init", "io_init"),
    ("fail-restart", "io_restart"),
    ("fail-suspend", "io_suspend"),
    ("fail-pre", "d0_exit_pre_interrupts"),
    ("fail-exit", "d0_exit"),
    ("fail-query-stop", "query_stop"),
    (OLD, ""),
    (CALLERS, ""),
];
const OLD: &str = "old-headers";
const CALLERS: &str = "callers";

/// The index of the selected service in the list, or a larger number.
static SELECTED: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Selects the variant that the service name specifies.
pub fn select(service: Service<'_>) {
    let selected = SERVICES.iter().position(|(name, _)| service.is(name));
    SELECTED.store(selected.unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// Returns the selected service and the step that fails for it.
fn selected() -> (&'static str, &'static str) {
    SERVICES.get(SELECTED.load(Ordering::Relaxed)).copied().unwrap_or_default()
}

/// Returns a step's status: an error for the selected step.
pub fn result_of(step: &str) -> NTSTATUS {
    if selected().1 == step { STATUS_DEVICE_CONFIGURATION_ERROR } else { STATUS_SUCCESS }
}

/// Returns whether the driver uses the structures of KMDF 1.7.
pub fn is_old() -> bool {
    selected().0 == OLD
}

/// Returns whether the driver registers a callback for the sender's context.
pub fn has_callers() -> bool {
    selected().0 == CALLERS
}
