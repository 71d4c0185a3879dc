//! Tests the framework's synchronization of callbacks, and the requests that drivers receive before
//! queues.

use crate::{bench, common, kmdf_commands as commands};
use std::time::Duration;

use crate::bench::{Bench, CLIENT, assert_says, lines};
use standin_kernel::{DeviceConfig, Kernel, KernelError, NtStatus, Resource};

/// A kernel with the driver under a service name, which selects its behavior.
fn with_service(service: &str) -> Bench {
    Bench::of_service(Kernel::new(), service, DeviceConfig::new())
}

#[test]
fn an_object_has_the_lock_of_its_execution_level() {
    for (service, inside) in [("kmdf", 2), ("serial-queues", 2)] {
        let bench = with_service(service);
        bench.command(commands::ACQUIRE_LOCK);
        let outside = if service == "kmdf" { 0 } else { 2 };
        bench.assert_news(&[&format!("lock {outside} {inside} {outside}")]);
        bench.leave();
    }
}

#[test]
fn misuse_of_presentation_locks_is_a_bugcheck() {
    let twice = with_service("kmdf").stops(commands::ACQUIRE_LOCK_TWICE);
    assert_says(
        &twice,
        &[
            "WdfObjectAcquireLock was called from",
            "presentation::device_control",
            "by a thread that already holds the presentation lock",
        ],
    );
    let none = with_service("kmdf").stops(commands::ACQUIRE_OTHER_LOCK);
    assert_says(&none, &["a WDFOBJECT without a presentation lock"]);
    // The framework already holds the lock.
    let held = with_service("serial").stops(commands::ACQUIRE_LOCK);
    assert_says(&held, &["by a thread that already holds the presentation lock"]);
}

#[test]
fn synchronized_callbacks_do_not_run_inside_each_other() {
    let free = with_service("kmdf");
    free.command(commands::FORWARD_SECOND);
    free.assert_news(&["second queue at 0", "forwarded 0 at 0"]);
    free.leave();
    // The lock is a spin lock, at DISPATCH_LEVEL.
    let serial = with_service("serial");
    serial.command(commands::FORWARD_SECOND);
    serial.assert_news(&["forwarded 0 at 2", "second queue at 2"]);
    serial.leave();
    // The lock is a mutex, at PASSIVE_LEVEL.
    let passive = with_service("serial-passive");
    passive.command(commands::FORWARD_SECOND);
    passive.assert_news(&["forwarded 0 at 0", "second queue at 0"]);
    passive.leave();
    // Each queue has its own lock.
    let queues = with_service("serial-queues");
    queues.command(commands::FORWARD_SECOND);
    queues.assert_news(&["second queue at 2", "forwarded 0 at 2"]);
    queues.leave();
}

#[test]
fn timers_dpcs_and_work_items_are_serialized_with_their_parent() {
    let serial = with_service("serial");
    serial.command(commands::SERIALIZE);
    serial.kernel.advance(Duration::from_millis(2)).unwrap();
    serial.assert_news(&[
        "queued dpc 1", "dpc 0 work c020020c timers 0 c020020c", "serialized dpc at 2",
        "serialized timer at 2",
    ]);
    serial.leave();
    let passive = with_service("serial-passive");
    passive.command(commands::SERIALIZE);
    passive.kernel.advance(Duration::from_millis(2)).unwrap();
    passive.assert_news(&[
        "dpc c020020c work 0 timers c020020c 0", "serialized work at 0", "serialized timer at 0",
    ]);
    passive.leave();
}

#[test]
fn a_work_item_waits_on_its_own_thread() {
    let bench = with_service("kmdf");
    bench.command(commands::WAITING_WORK);
    bench.assert_news(&[
        "work waits", "the callback releases the lock", "work has the lock 0", "flushed",
    ]);
    bench.leave();
}

#[test]
fn a_driver_sees_irps_before_the_framework() {
    let bench = with_service("preprocess");
    // The first error is for a second routine for the same function, the second for a function that
    // does not exist.
    assert_eq!(lines(&bench.kernel)[0], "preprocess [0, c0000010, c000000d]");
    let read = bench.file.start_read(3).unwrap();
    bench.assert_news(&["preprocess major 3 of 3 with file true", "read 3", "dispatched 103"]);
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    assert_eq!(bench::status_of(read), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn a_driver_sees_requests_in_their_senders_context() {
    let bench = with_service("caller");
    let neither = bench.file.device_control(commands::ACQUIRE_LOCK | 3, b"abc", 0).unwrap();
    // The code with a different method is not a command.
    assert_eq!(neither.status, NtStatus::SUCCESS);
    bench.assert_news(&["caller 0 3 0 at 0", "locked 3, first 97", "lock 0 2 0", "enqueued 0"]);
    // With other methods, the sender's addresses are not available.
    bench.command(commands::ACQUIRE_LOCK);
    bench.assert_news(&["caller c0000010 0 c0000023 at 0", "lock 0 2 0", "enqueued 0"]);
    bench.leave();
}

#[test]
fn a_child_forwards_requests_to_its_parents_queue() {
    let bench = with_service("kmdf");
    bench.command(commands::ADD_CHILDREN);
    bench.skip();
    let children = bench.device.children().unwrap();
    let file = children[0].open(CLIENT).unwrap();
    let sent = file.device_control(0x0022_2000, b"up", 0).unwrap();
    assert_eq!(sent.status, NtStatus::SUCCESS);
    bench.assert_news(&[
        "second queue at 0",
        "to the child's own queue c0000010, to the parent's 0",
    ]);
    file.close().unwrap();
    bench.leave();
}

#[test]
fn a_driver_refuses_an_orderly_removal_once() {
    let bench = with_service("kmdf");
    bench.command(commands::VETO);
    let Bench { kernel, driver, device, file, .. } = bench;
    file.close().unwrap();
    let refused = device.remove();
    assert!(
        matches!(&refused, Err(KernelError::Vetoed(reason)) if reason.contains("EvtDeviceQueryRemove")),
        "{refused:?}"
    );
    assert_eq!(lines(&kernel).last().unwrap(), "query_remove");
    // The device still works.
    let file = device.open(CLIENT).unwrap();
    file.close().unwrap();
    common::leave(driver, &device);
}

#[test]
fn a_passive_interrupt_has_a_work_item_instead_of_a_dpc() {
    let config = DeviceConfig::new().resource(Resource::Interrupt { vector: 0x51 });
    let bench = Bench::of_service(Kernel::new(), "passive-interrupt", config);
    let printed = lines(&bench.kernel);
    assert!(printed.contains(&"enable at 0".to_owned()), "{printed:?}");
    assert!(bench.device.interrupt(0).unwrap());
    bench.assert_news(&["isr 0 at 0, lock 0, queued 1 0, dpc 0", "interrupt work at 0, true"]);
    bench.leave();
}
