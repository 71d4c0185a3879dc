//! Tests the framework: the order of a driver's callbacks, and the results of its calls.

use crate::bench::{Bench, CLIENT, assert_says, is_pending, lines, numbers, status_of};
use crate::{common, kmdf_commands as commands};
use standin_kernel::{Kernel, KernelError, NtStatus, RegistryValue};

#[test]
fn a_request_that_is_never_completed_stops_the_removal() {
    let bench = Bench::new();
    let _write = bench.file.start_write(b"one").unwrap();
    drop(bench.file);
    let bugcheck = common::bugcheck(bench.device.remove());
    assert_says(&bugcheck, &["was removed", "a write of 3 bytes", "neither completed"]);
}

// A process's request to remove the device must not remove it while another process has a file
// open.
#[test]
fn a_device_with_an_open_file_is_not_removed_in_an_orderly_way() {
    let bench = Bench::new();
    let Err(KernelError::Vetoed(why)) = bench.device.remove() else {
        panic!("the device was removed");
    };
    assert!(why.contains("a file is open on it"), "{why}");
    // The device still works.
    bench.assert_news(&[]);
    bench.command(commands::WORK);
    bench.leave();
}

#[test]
fn a_file_that_nobody_closes_is_closed_before_its_device_is_removed() {
    let bench = Bench::new();
    drop(bench.file);
    bench.device.remove().unwrap();
    let closed = lines(&bench.kernel);
    let at = |what: &str| closed.iter().position(|line| line.contains(what));
    let (cleanup, close, exit) = (at("file_cleanup"), at("file_close"), at("d0_exit to"));
    assert!(cleanup.is_some() && cleanup < close && close < exit, "{closed:#?}");
    bench.driver.unload().unwrap();
}

// When a test uses a file that was deleted with its device, the driver is not at fault.
#[test]
fn a_file_that_is_gone_with_its_device_fails_its_requests() {
    let Bench { kernel, driver, device, file, .. } = Bench::new();
    driver.unload().unwrap();
    let Err(KernelError::Status { status, .. }) = file.read(1) else {
        panic!("the file is still there");
    };
    assert_eq!(status, NtStatus::NO_SUCH_DEVICE);
    file.close().unwrap();
    assert_eq!(device.sddl().unwrap(), None);
    device.remove().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn work_items_run_after_the_step_that_queued_them() {
    let bench = Bench::new();
    let request = bench.send(commands::WORK);
    // The work item was queued twice and ran once.
    bench.assert_news(&["queued", "work at 0, true"]);
    assert_eq!(status_of(request), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn memory_objects_carry_a_requests_buffers() {
    let bench = Bench::new();
    let completion = bench.file.device_control(commands::MEMORY, b"stressed", 8).unwrap();
    assert_eq!(completion.output, b"desserts");
    bench.assert_news(&["past the end c0000023"]);
    let empty = bench.file.device_control(commands::MEMORY, b"", 8).unwrap();
    assert_eq!(empty.status, NtStatus::BUFFER_TOO_SMALL);
    bench.leave();
}

#[test]
fn the_control_code_selects_the_buffering_method() {
    const IN_DIRECT: u32 = 1;
    const OUT_DIRECT: u32 = 2;
    const NEITHER: u32 = 3;
    let bench = Bench::new();
    let send = |method, input: &[u8]| {
        bench.file.device_control(commands::MEMORY | method, input, 8).unwrap()
    };
    for method in [IN_DIRECT, OUT_DIRECT] {
        assert_eq!(send(method, b"stressed").output, b"desserts");
        assert_eq!(send(method, b"").status, NtStatus::BUFFER_TOO_SMALL);
    }
    let neither = send(NEITHER, b"stressed");
    assert_eq!(neither.status, NtStatus::INVALID_DEVICE_REQUEST);
    assert_eq!(neither.output, b"");
    bench.leave();
}

#[test]
fn a_driver_reads_its_parameters() {
    let kernel = Kernel::new();
    kernel.set_parameter("parameters", "Number", 42_u32);
    kernel.set_parameter("parameters", "text", "hello");
    let driver = kernel.load_as(&common::kmdf(), "parameters").unwrap();
    assert_eq!(lines(&kernel), ["number 0 42", "string 0 hello"]);
    let seen = kernel.parameter("parameters", "seen");
    assert_eq!(seen, Some(RegistryValue::Dword(1)));
    driver.unload().unwrap();
}

#[test]
fn a_device_starts_and_is_removed_in_the_documented_order() {
    let kernel = Kernel::new();
    let (driver, device) = common::started(&kernel, &common::kmdf());
    common::leave(driver, &device);
    assert_eq!(
        lines(&kernel),
        [
            "prepare_hardware", "d0_entry from 5", "d0_entry_post_interrupts", "io_init",
            "query_remove", "io_suspend", "d0_exit_pre_interrupts", "d0_exit to 5",
            "release_hardware", "io_flush", "io_cleanup", "device_cleanup", "device_destroy",
            "unload",
        ]
    );
}

#[test]
fn power_managed_queues_hold_their_requests_outside_d0() {
    let bench = Bench::new();
    let kept = bench.send(commands::KEEP);
    bench.skip();
    bench.device.power_cycle().unwrap();
    bench.assert_news(&[
        "io_suspend", "io_stop 1", "d0_exit_pre_interrupts", "d0_exit to 4", "d0_entry from 4",
        "d0_entry_post_interrupts", "io_resume", "io_restart",
    ]);
    bench.command(commands::COMPLETE);
    assert_eq!(status_of(kept), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn a_request_that_is_returned_when_its_queue_stops_is_presented_again() {
    let bench = Bench::new();
    let kept = bench.file.start_device_control(commands::KEEP, b"back", 64).unwrap();
    bench.device.power_cycle().unwrap();
    bench.assert_news(&[
        "keep", "io_suspend", "io_stop 1", "d0_exit_pre_interrupts", "d0_exit to 4",
        "d0_entry from 4", "d0_entry_post_interrupts", "keep", "io_restart",
    ]);
    bench.command(commands::COMPLETE);
    assert_eq!(status_of(kept), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn a_cancelable_request_is_cancelled_when_its_device_is_removed() {
    let bench = Bench::new();
    let kept = bench.send(commands::KEEP_CANCELABLE);
    bench.file.close().unwrap();
    let before = lines(&bench.kernel).len();
    bench.device.remove().unwrap();
    assert_eq!(
        lines(&bench.kernel)[before..],
        [
            "query_remove", "io_suspend",
            // WdfRequestStopActionSuspend | WdfRequestStopRequestCancelable
            "io_stop 10000001", "d0_exit_pre_interrupts", "d0_exit to 5", "release_hardware",
            "canceled", // Closing the file waited for the request.
            "file_close", "io_flush", "io_cleanup", "device_cleanup", "device_destroy",
        ]
    );
    assert_eq!(status_of(kept), NtStatus::CANCELLED);
    bench.driver.unload().unwrap();
}

#[test]
fn a_removed_device_is_deleted_with_its_last_file() {
    let bench = Bench::new();
    let kept = bench.send(commands::KEEP);
    bench.skip();
    bench.device.surprise_remove().unwrap();
    let printed = lines(&bench.kernel);
    assert_eq!(
        printed[bench.seen.get()..],
        [
            "surprise_removal", "io_suspend", "io_stop 1", "d0_exit_pre_interrupts",
            "d0_exit to 5", "release_hardware", "io_stop 2", "io_flush",
        ]
    );
    assert_eq!(status_of(kept), NtStatus::CANCELLED);
    let refused = bench.file.device_control(commands::STATE, &[], 64).unwrap();
    assert_eq!(refused.status, NtStatus::INVALID_DEVICE_STATE);
    bench.file.close().unwrap();
    assert_eq!(
        lines(&bench.kernel)[printed.len()..],
        ["file_cleanup", "file_close", "io_cleanup", "device_cleanup", "device_destroy",]
    );
    bench.driver.unload().unwrap();
}

#[test]
fn a_device_that_its_driver_declares_failed_is_removed() {
    let bench = Bench::new();
    bench.command(commands::FAIL);
    bench.assert_news(&[
        "set failed", "surprise_removal", "io_suspend", "d0_exit_pre_interrupts", "d0_exit to 5",
        "release_hardware", "io_flush",
    ]);
    let opened = bench.device.open(CLIENT);
    let error = opened.err().unwrap().to_string();
    let said = "cannot open the device: it was removed (STATUS_";
    assert!(error.starts_with(said), "{error}");
    bench.file.close().unwrap();
    bench.device.remove().unwrap();
    bench.driver.unload().unwrap();
    assert_eq!(lines(&bench.kernel).last().map(String::as_str), Some("unload"));
}

#[test]
fn closing_a_file_cancels_its_waiting_requests() {
    let bench = Bench::new();
    let read = bench.file.start_read(1).unwrap();
    let other = bench.device.open(CLIENT).unwrap();
    let others = other.start_read(2).unwrap();
    bench.skip();
    bench.file.close().unwrap();
    let printed = lines(&bench.kernel);
    assert_eq!(printed[bench.seen.get()..], ["file_cleanup", "canceled_on_queue", "file_close"]);
    assert_eq!(status_of(read), NtStatus::CANCELLED);
    assert!(is_pending(&others));
    other.close().unwrap();
    bench.device.remove().unwrap();
    bench.driver.unload().unwrap();
}

#[test]
fn files_have_names_and_a_device() {
    let bench = Bench::new();
    bench.assert_status(commands::FILE, NtStatus::SUCCESS);
    let named = bench.device.open_file(r"\channel", CLIENT).unwrap();
    assert_eq!(numbers(&named, commands::FILE), [0]);
    let linked = bench.kernel.open(r"\\.\kmdftest\two", CLIENT).unwrap();
    assert_eq!(numbers(&linked, commands::FILE), [0]);
    bench.assert_news(&[
        "file of 0 with -, true", "file_create", "file of 8 with c, true", "file_create",
        "file of 4 with t, true",
    ]);
    let missing = bench.kernel.open(r"\\.\KmdfTests", CLIENT);
    assert!(matches!(
        missing,
        Err(KernelError::CannotOpen { status: NtStatus::OBJECT_NAME_NOT_FOUND, .. })
    ));
    named.close().unwrap();
    linked.close().unwrap();
    bench.leave();
}

#[test]
fn a_driver_without_hardware_has_a_control_device() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), "control").unwrap();
    assert!(driver.add_device().is_err());
    for path in [r"\\.\KmdfControl", r"\Device\KmdfControl\x"] {
        let file = kernel.open(path, CLIENT).unwrap();
        let write = file.start_write(b"one").unwrap();
        assert_eq!(numbers(&file, commands::COMPLETE), [0; 0]);
        assert_eq!(status_of(write), NtStatus::SUCCESS);
        file.close().unwrap();
    }
    driver.unload().unwrap();
    assert_eq!(
        lines(&kernel),
        [
            "file_create", "write 3", "file_cleanup", "file_close", "file_create", "write 3",
            "file_cleanup", "file_close", "unload",
        ]
    );
}
