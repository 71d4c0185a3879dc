//! Tests the framework for hardware and bus drivers: resources, interrupts, children, and access below
//! the framework.

use crate::kmdf_commands as commands;
use std::time::Duration;

use crate::bench::{Bench, CLIENT, lines, numbers};
use standin_kernel::{DeviceConfig, Kernel, KernelError, NtStatus, Resource};

/// A kernel with a device that has registers and an interrupt.
fn with_interrupt() -> Bench {
    let config = DeviceConfig::new()
        .resource(Resource::Memory { start: 0xFEDC_0000, length: 0x1000 })
        .resource(Resource::Interrupt { vector: 0x51 });
    Bench::in_kernel(Kernel::new(), config)
}

#[test]
fn a_driver_gets_its_resources_and_its_interrupt_is_enabled() {
    let bench = with_interrupt();
    let printed = lines(&bench.kernel);
    assert_eq!(
        printed[..8],
        [
            "prepare_hardware", "resource 3 [fedc0000, 0, 1000]", "resource 2 [3, 51, 1]",
            "past the end true", "d0_entry from 5", "enable at 3", "d0_entry_post_interrupts",
            "io_init",
        ]
    );
    bench.device.power_cycle().unwrap();
    bench.assert_news(&[
        "io_suspend", "d0_exit_pre_interrupts", "disable at 3", "d0_exit to 4", "d0_entry from 4",
        "enable at 3", "d0_entry_post_interrupts", "io_restart",
    ]);
    bench.leave();
}

#[test]
fn a_raised_interrupt_runs_its_service_routine_and_then_its_dpc() {
    let bench = with_interrupt();
    assert!(bench.device.interrupt(0).unwrap());
    bench.assert_news(&["isr 0 at 3, queued 1 0", "dpc at 2, true"]);
    let missing = bench.device.interrupt(1);
    assert!(
        matches!(missing, Err(KernelError::Status { status: NtStatus::INVALID_PARAMETER, .. })),
        "{missing:?}"
    );
    bench.command(commands::LOCK);
    bench.assert_news(&[
        "locked at 3", "synchronized at 3", "1 vector 81 level 3 at 0", "synchronized with 7 at 3",
        "1 at 0",
    ]);
    bench.leave();
}

#[test]
fn an_interrupt_without_a_resource_is_not_connected() {
    let bench = Bench::new();
    let raised = bench.device.interrupt(0);
    assert!(
        matches!(raised, Err(KernelError::Status { status: NtStatus::INVALID_DEVICE_STATE, .. })),
        "{raised:?}"
    );
    bench.leave();
}

#[test]
fn a_driver_sees_the_irp_and_the_mdls_of_a_request() {
    let bench = Bench::new();
    let completion = bench.file.device_control(commands::LOWER, b"four", 8).unwrap();
    let code = commands::LOWER;
    bench.assert_news(&[&format!("irp 6 major 14 code {code:x} lengths 4 8"), "mdl 0 true mode 1"]);
    // The driver has set the information in the IRP.
    assert_eq!(completion.information, 2);
    bench.leave();
}

#[test]
fn a_wmi_provider_is_told_of_the_interest_in_its_events() {
    let bench = Bench::new();
    bench.command(commands::WMI);
    bench.assert_news(&[
        // The provider is notified that its events are enabled, and then that they are disabled.
        "wmi control 1 1", "enabled 0 1, 0 0 0",
        // The event reaches the driver that registered for it, on a kernel thread.
        "wmi event 67 true 0 [97, 98, 99]", "wmi control 1 0",
        "wmi 0 c000000d true c0000010 c0000301",
    ]);
    bench.leave();
}

#[test]
fn a_driver_uses_what_is_below_timers_and_dpcs() {
    let bench = Bench::new();
    bench.command(commands::BELOW);
    bench.assert_news(&[
        // A device can be listed as related only once.
        "relations 0 c000022a 0 0",
        // A timer without a function expires without effect.
        "timers c000000d 0 0", "dpc 0 true", "dpc runs",
        // Without a resource, the interrupt is not connected.
        "interrupt object false true",
    ]);
    bench.kernel.advance(Duration::from_millis(1)).unwrap();
    bench.assert_news(&[]);
    bench.leave();
    let bench = with_interrupt();
    bench.command(commands::BELOW);
    let last = lines(&bench.kernel).pop().unwrap();
    assert_eq!(last, "interrupt object true true");
    bench.leave();
}

#[test]
fn a_bus_driver_has_children_that_other_drivers_drive() {
    let bench = Bench::new();
    assert!(bench.device.children().unwrap().is_empty());
    bench.command(commands::ADD_CHILDREN);
    let created = "without an id c0000184, then [0, 0, 0, 0, 0] 0";
    bench.assert_news(&["list true 0 40000000", created, "static 0 0 true", "create 7", created]);
    bench.command(commands::CHILDREN);
    bench.assert_news(&["listed 0 7 true", "listed 8000001a 0 false", "static true false"]);
    let children = bench.device.children().unwrap();
    assert_eq!(children.len(), 2);
    assert_eq!(children[0].instance_path().unwrap(), r"KMDF\Child\07");

    // The driver itself drives one of its children.
    let config = DeviceConfig::new().above(&children[0]);
    let function = bench.driver.add_device_with(config).unwrap();
    bench.skip();
    let file = function.open(CLIENT).unwrap();
    assert_eq!(numbers(&file, commands::QUERY), [0; 0]);
    bench.assert_news(&["file_create", "reference", "query 0 c0000206 version 1"]);
    file.close().unwrap();
    bench.skip();
    bench.command(commands::REMOVE_CHILDREN);
    let news = bench.news();
    assert_eq!(news[0], "missing 0 0");
    assert!(news.contains(&"surprise_removal".to_owned()), "{news:?}");
    assert!(bench.device.children().unwrap().is_empty());
    bench.command(commands::CHILDREN);
    bench.assert_news(&["listed 8000001a 0 false", "static false false"]);
    drop(function);
    bench.leave();
}

#[test]
fn the_children_go_with_their_bus() {
    let bench = Bench::new();
    bench.command(commands::ADD_CHILDREN);
    let children = bench.device.children().unwrap();
    let config = DeviceConfig::new().above(&children[1]);
    let _function = bench.driver.add_device_with(config).unwrap();
    bench.file.close().unwrap();
    bench.device.remove().unwrap();
    let printed = lines(&bench.kernel);
    let removed = printed.iter().filter(|line| *line == "device_destroy");
    assert_eq!(removed.count(), 2);
    bench.driver.unload().unwrap();
}
