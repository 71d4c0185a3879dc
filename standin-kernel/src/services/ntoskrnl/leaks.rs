//! The objects that a driver leaves behind in the kernel when it is unloaded.

use super::{
    cm::changes,
    context::Context,
    ex::{callbacks, resources},
    io::{devices, error_log, lifetime, notifications, send, wmi},
    ke::{apcs, bugchecks, dpc, threads, timers},
    mm::pages,
    ob::{handles, namespace},
    po::{power_framework, power_settings},
    ps::watchers,
    se::{impersonation, logon_sessions},
};
use crate::ground::{bugcheck::Violation, rule::Rule};

/// Reports and removes the threads, timers, DPCs and callback registrations that refer to a
/// driver's image. `belongs` selects the driver's addresses.
pub fn take_left(
    context: &Context,
    driver: &str,
    driver_object: u64,
    belongs: impl Fn(u64) -> bool,
) -> Vec<Violation> {
    namespace::remove(&mut context.state(), driver_object);
    impersonation::release_left(context);
    handles::finish_deletions(context);
    let mut violations = threads::take_left(context, driver, &belongs);
    // Threads for which the driver waits may have released objects.
    handles::finish_deletions(context);
    let timers = timers::take_set(context, &belongs);
    let dpcs = dpc::take_queued(context, |dpc, routine| belongs(dpc) || belongs(routine));
    let mut add = |rule: Rule, message: String| {
        violations.push(Violation::new(rule, message, Vec::new()));
    };
    for what in watchers::take_left(context, &belongs) {
        add(Rule::LeftQueued, format!("{driver} was unloaded while {what}"));
    }
    let counts = [
        (timers.len(), "timer is set"),
        (dpcs.len(), "DPC is queued"),
        (apcs::take_left(context, &belongs), "APC is queued"),
        (callbacks::take_left(context, &belongs), "callback's registration is left"),
        (notifications::take_left(context, &belongs), "registration for notifications is left"),
        (
            power_settings::take_left(context, &belongs),
            "callback for a power setting is registered",
        ),
        (
            power_framework::routines::take_left(context, &belongs),
            "device is registered with the power management framework",
        ),
        (
            logon_sessions::take_left(context, &belongs),
            "routine for the end of logon sessions is registered",
        ),
        (
            changes::take_left(context, &belongs),
            "request for a notification of a key's change is waiting",
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
            add(
                Rule::LeftQueued,
                format!("{driver} was unloaded while its {what} ({count} in all)"),
            );
        }
    }
    for (count, what) in [
        (pages::take_left(context, &belongs), "freeing pages or contiguous memory"),
        (error_log::take_left(context, &belongs), "writing or freeing entries of the event log"),
    ] {
        if count > 0 {
            add(Rule::PoolLeak, format!("{driver} was unloaded without {what} ({count} in all)"));
        }
    }
    let files = send::take_left(context, driver_object, &belongs);
    lifetime::driver_gone(context, driver_object);
    let devices = devices::take_left(context, driver_object, &send::of_processes(context));
    for (names, what) in [(files, "releasing its files"), (devices, "deleting its devices")] {
        if !names.is_empty() {
            add(
                Rule::LeftQueued,
                format!("{driver} was unloaded without {what}: {}", names.join(", ")),
            );
        }
    }
    violations
}
