//! What a driver leaves behind in the kernel when it is unloaded.

use super::{callbacks, context::Context, dpc, io::devices, notifications, threads, timer};
use crate::ground::{bugcheck::Violation, rule::Rule};

/// Reports and removes the threads, timers, DPCs and callback registrations that lead to a driver's
/// image. `belongs` selects its addresses.
pub fn take_left(
    context: &Context,
    driver: &str,
    driver_object: u64,
    belongs: impl Fn(u64) -> bool,
) -> Vec<Violation> {
    let mut violations = threads::take_left(context, driver, &belongs);
    let timers = timer::take_set(context, &belongs);
    let dpcs = dpc::take_queued(context, |dpc, routine| belongs(dpc) || belongs(routine));
    let counts = [
        (timers.len(), "timer is set"),
        (dpcs.len(), "DPC is queued"),
        (
            callbacks::take_left(context, &belongs),
            "callback's registration is left",
        ),
        (
            notifications::take_left(context, &belongs),
            "registration for notifications is left",
        ),
    ];
    for (count, what) in counts {
        if count > 0 {
            let message = format!("{driver} was unloaded while its {what} ({count} in all)");
            violations.push(Violation::new(Rule::LeftQueued, message, Vec::new()));
        }
    }
    let left = devices::take_left(context, driver_object);
    if !left.is_empty() {
        let message = format!(
            "{driver} was unloaded without deleting its devices: {}",
            left.join(", ")
        );
        violations.push(Violation::new(Rule::LeftQueued, message, Vec::new()));
    }
    violations
}
