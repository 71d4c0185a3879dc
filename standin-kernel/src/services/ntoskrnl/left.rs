//! What a driver leaves behind in the kernel when it is unloaded.

use super::{
    context::Context,
    ex::{callbacks, resources},
    io::{devices, error_log, lifetime, notifications, send},
    ke::{bugchecks, dpc, threads, timers},
    mm::pages,
    ob::handles,
    po::{power_framework, power_settings},
    ps::watchers,
    wmi,
};
use crate::ground::{bugcheck::Violation, rule::Rule};

/// Reports and removes the threads, timers, DPCs and callback registrations that lead to a driver's
/// image. `belongs` selects its addresses.
pub fn take_left(
    context: &Context,
    driver: &str,
    driver_object: u64,
    belongs: impl Fn(u64) -> bool,
) -> Vec<Violation> {
    handles::finish_deletions(context);
    let mut violations = threads::take_left(context, driver, &belongs);
    // The threads that the driver waits for can have released objects.
    handles::finish_deletions(context);
    let timers = timers::take_set(context, &belongs);
    let dpcs = dpc::take_queued(context, |dpc, routine| belongs(dpc) || belongs(routine));
    let counts = [
        (timers.len(), "timer is set"),
        (dpcs.len(), "DPC is queued"),
        (callbacks::take_left(context, &belongs), "callback's registration is left"),
        (notifications::take_left(context, &belongs), "registration for notifications is left"),
        (watchers::take_left(context, &belongs), "routine that watches the system is registered"),
        (
            power_settings::take_left(context, &belongs),
            "callback for a power setting is registered",
        ),
        (
            power_framework::routines::take_left(context, &belongs),
            "device is registered with the power management framework",
        ),
        (wmi::take_left(context, &belongs), "WMI data block object is open"),
        (resources::forget_inside(context, &belongs), "resource (ERESOURCE) is not deleted"),
        (
            bugchecks::take_left(context, &belongs),
            "routine for bugchecks or interrupts is registered",
        ),
    ];
    for (count, what) in counts {
        if count > 0 {
            let message = format!("{driver} was unloaded while its {what} ({count} in all)");
            violations.push(Violation::new(Rule::LeftQueued, message, Vec::new()));
        }
    }
    let pages = pages::take_left(context, &belongs);
    if pages > 0 {
        let message = format!(
            "{driver} was unloaded without freeing pages or contiguous memory ({pages} in all)"
        );
        violations.push(Violation::new(Rule::PoolLeak, message, Vec::new()));
    }
    let entries = error_log::take_left(context, &belongs);
    if entries > 0 {
        let message = format!(
            "{driver} was unloaded without writing or freeing entries of the event log ({entries} in all)"
        );
        violations.push(Violation::new(Rule::PoolLeak, message, Vec::new()));
    }
    let files = send::take_left(context, driver_object, &belongs);
    if !files.is_empty() {
        let message =
            format!("{driver} was unloaded without releasing its files: {}", files.join(", "));
        violations.push(Violation::new(Rule::LeftQueued, message, Vec::new()));
    }
    lifetime::driver_gone(context, driver_object);
    let left = devices::take_left(context, driver_object, &send::of_processes(context));
    if !left.is_empty() {
        let message =
            format!("{driver} was unloaded without deleting its devices: {}", left.join(", "));
        violations.push(Violation::new(Rule::LeftQueued, message, Vec::new()));
    }
    violations
}
