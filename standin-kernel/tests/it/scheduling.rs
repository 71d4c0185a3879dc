//! Tests DPCs, timers, waits and locks: a driver uses them, and prints the errors that it finds.

use crate::{bench, common, kmdf_commands as commands};
use std::time::Duration;

use crate::bench::{Bench, assert_says, lines};
use standin_kernel::{DeviceConfig, Identity, Kernel, KernelConfig, NtStatus, Schedule, Work};

/// Runs a service of the driver, which checks the results itself.
fn passes(service: &str) -> Kernel {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), service).unwrap();
    let mut lines = lines(&kernel);
    let done = lines.pop().unwrap_or_default();
    assert_eq!(lines, [""; 0], "{service}");
    assert!(done.starts_with("done "), "{service}: {done}");
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), [], "{service}");
    kernel
}

#[test]
fn a_dpc_that_queues_itself_again_runs_after_it_has_returned() {
    passes("requeue");
}

#[test]
fn dpcs_that_never_end_are_a_bugcheck() {
    for service in ["fault-requeue", "fault-rearm"] {
        let bugcheck = common::kernel_service_stops(&Kernel::new(), service);
        assert_eq!((bugcheck.code, bugcheck.parameters[0]), (0x133, 1));
        assert_says(&bugcheck, &["was queued again in its own routine", "again"]);
    }
}

#[test]
fn a_timer_fires_at_once_or_at_a_later_tick() {
    passes("rearm");
}

#[test]
fn a_wait_lasts_as_long_as_it_takes() {
    passes("patience");
    passes("long-wait");
}

#[test]
fn a_wait_that_only_time_could_end_is_a_deadlock() {
    let kernel = Kernel::with_config(KernelConfig {
        time_limit: Duration::from_millis(300),
        ..KernelConfig::default()
    });
    let bugcheck = common::kernel_service_stops(&kernel, "fault-endless-wait");
    assert_says(&bugcheck, &["would wait forever"]);
}

#[test]
fn work_that_is_never_done_does_not_stop_the_clock() {
    passes("busy-work");
}

#[test]
fn coarse_times_advance_by_ticks() {
    passes("coarse-times");
}

#[test]
fn each_work_item_has_a_thread_of_its_own() {
    passes("many-work-items");
}

#[test]
fn dpcs_have_a_stack_of_their_own() {
    let kernel = passes("dpc-stack");
    let use_of = |routine: &str| kernel.stack_use()[routine];
    let deep = 16 * 1024..20 * 1024;
    assert!(deep.contains(&use_of("the DPC's routine")));
    assert!(deep.contains(&use_of("DriverEntry")));
}

#[test]
fn data_on_the_stack_of_a_waiting_thread_is_in_system_space() {
    passes("other-stack");
    let bugcheck = common::kernel_service_stops(&Kernel::new(), "fault-stack-gone");
    assert_says(&bugcheck, &["V54", "is below the stack pointer of its thread"]);
}

#[test]
fn exhausted_pool_is_a_failed_allocation() {
    passes("large-pool");
}

const THREADS: u32 = 4;

/// Returns the KMDF driver, prepared for several threads that send it a command together.
fn prepared() -> Bench {
    let kernel = Kernel::with_config(KernelConfig { processors: 4, ..KernelConfig::default() });
    let bench = Bench::in_kernel(kernel, DeviceConfig::new());
    bench.command(commands::PREPARE);
    bench
}

/// Sends a command from several threads that run together.
fn together(bench: &Bench, schedule: Schedule, command: u32) {
    let work = (0..THREADS).map(|number| {
        let identity = Identity { process: 40, thread: 44 + 4 * number };
        let file = bench.device.open(identity).unwrap();
        let work: Work = Box::new(move || {
            let answer = file.device_control(command, &[], 0).unwrap();
            assert_eq!(answer.status, NtStatus::SUCCESS);
            file.close().unwrap();
        });
        work
    });
    bench.kernel.together(schedule, work.collect()).unwrap();
}

/// Makes several threads use the locks of the KMDF driver, and checks that no lock was held twice.
fn share_locks(schedule: Schedule) {
    let bench = prepared();
    together(&bench, schedule, commands::TOGETHER);
    let all = THREADS * 60;
    assert_eq!(
        bench.ask(commands::COUNTS),
        [all, all, all, all, all, all, 0, 0, 8],
        "{schedule:?}"
    );
    bench.leave();
}

#[test]
fn locks_and_lists_are_changed_by_one_thread_at_a_time() {
    for _ in 0..3 {
        share_locks(Schedule::Parallel);
    }
    share_locks(Schedule::Seeded(7));
}

#[test]
fn a_removal_waits_for_every_holder_of_the_remove_lock() {
    let schedules = (0..20).map(Schedule::Seeded);
    for schedule in schedules.chain([Schedule::Parallel; 5]) {
        let bench = prepared();
        together(&bench, schedule, commands::REMOVE_TOGETHER);
        // No thread used the memory after the removal, none is still using it, and the removal
        // waited for every user.
        assert_eq!(bench.ask(commands::REMOVED), [0; 3], "{schedule:?}");
        bench.leave();
    }
}

#[test]
fn a_requests_thread_came_from_user_mode() {
    let bench = Bench::new();
    assert_eq!(bench.ask(commands::PREVIOUS_MODE), [1]);
    let system = bench.device.open(Identity::SYSTEM).unwrap();
    assert_eq!(bench::numbers(&system, commands::PREVIOUS_MODE), [0]);
    system.close().unwrap();
    bench.leave();
}
