//! Tests the information about the sender in a framework request, and failing starts.

use crate::bench::{Bench, CLIENT, assert_says, lines};
use crate::{common, kmdf_commands as commands};
use standin_kernel::{DeviceConfig, Kernel, KernelError, NtStatus};

/// `METHOD_IN_DIRECT`, `METHOD_OUT_DIRECT` and `METHOD_NEITHER`.
const IN_DIRECT: u32 = 1;
const OUT_DIRECT: u32 = 2;
const NEITHER: u32 = 3;

/// `STATUS_DEVICE_CONFIGURATION_ERROR`.
const FAILED: NtStatus = NtStatus(0xC000_0182_u32.cast_signed());

#[test]
fn an_open_has_a_security_context() {
    let bench = Bench::new();
    // The access is at both positions; the options, and the attributes with the sharing mode,
    // follow.
    let expected = [0x0012_019F, 0x0012_019F, 0x0100_0040, 0x0080_0003];
    assert_eq!(bench.ask(commands::OPENED), expected);
    bench.leave();
}

#[test]
fn an_irp_has_the_buffers_of_its_method() {
    let bench = Bench::new();
    let seen = |method| {
        bench.file.device_control(commands::IRP_BUFFERS | method, b"input", 64).unwrap();
        bench.news().concat()
    };
    let direct = "system true, mdl its output, user true, input false, status 0, thread true";
    assert_eq!(
        seen(0),
        "method 0: system true, mdl none, user true, input false, status 0, thread true"
    );
    assert_eq!(seen(IN_DIRECT), format!("method 1: {direct}"));
    assert_eq!(seen(OUT_DIRECT), format!("method 2: {direct}"));
    // The process's own addresses are not available to the driver's queues.
    assert_eq!(
        seen(NEITHER),
        "method 3: system false, mdl none, user true, input true, status c0000010, thread true"
    );
    bench.leave();
}

#[test]
fn drivers_pass_each_other_their_own_addresses() {
    let bench = Bench::new();
    bench.command(commands::SEND_NEITHER);
    bench.assert_news(&["past the end c0000023", "own 0 desserts", "open 0 format 0 sent 1"]);
    bench.leave();
}

#[test]
fn the_second_buffer_of_a_direct_request_has_contents() {
    let bench = Bench::new();
    bench.file.device_control_with(commands::SECOND | IN_DIRECT, b"", b"second!").unwrap();
    bench.assert_news(&["second second!"]);
    bench.command(commands::SEND_IN_DIRECT);
    bench.assert_news(&["second ........", "own 0 ........", "open 0 format 0 sent 1"]);
    bench.leave();
}

#[test]
fn more_information_than_the_buffer_has_is_a_bugcheck() {
    let bench = Bench::new();
    // If there is no output buffer, the information can be the number of input bytes used.
    let used = bench.file.device_control(commands::TOO_MUCH, b"", 0).unwrap();
    assert_eq!((used.status, used.information), (NtStatus::SUCCESS, 65));
    let large = bench.file.device_control(commands::TOO_MUCH, b"", 65).unwrap();
    assert_eq!(large.output.len(), 65);
    let bugcheck = bench.stops(commands::TOO_MUCH);
    assert_eq!(bugcheck.code, 0x10D);
    assert_says(
        &bugcheck,
        &[
            "WdfRequestCompleteWithInformation was called from",
            "with 65 bytes as the information, but its buffer is only 64 bytes long",
        ],
    );
}

#[test]
fn statuses_of_the_framework_do_not_reach_processes() {
    let bench = Bench::new();
    let done = bench.file.device_control(commands::FRAMEWORK_STATUS, b"", 0).unwrap();
    assert_eq!(done.status, NtStatus::INVALID_DEVICE_REQUEST);
    bench.leave();
}

#[test]
fn an_empty_buffer_of_the_sender_is_none_to_complain_of() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), "callers").unwrap();
    let device = driver.add_device().unwrap();
    let file = device.open(CLIENT).unwrap();
    let seen = |input: &[u8], output: usize| {
        let before = lines(&kernel).len();
        file.device_control(commands::WMI | NEITHER, input, output).unwrap();
        lines(&kernel)[before].clone()
    };
    assert_eq!(seen(b"", 0), "unsafe 0 0 true, 0 0 true");
    assert_eq!(seen(b"four", 8), "unsafe 0 4 false, 0 8 false");
    // Reads have no input.
    let before = lines(&kernel).len();
    let _read = file.start_read(3).unwrap();
    let read = &lines(&kernel)[before];
    assert_eq!(read, "unsafe c0000010 0 true, c0000010 0 true");
    kernel.leave_behind();
}

/// Returns the lines that the driver prints for a device whose start fails.
fn failed_start(service: &str) -> Vec<String> {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), service).unwrap();
    let Err(KernelError::Status { status, .. }) = driver.add_device() else {
        panic!("{service}: the device started");
    };
    // All failures after the hardware is prepared have the same status.
    let is_first = service == "fail-prepare";
    let expected = if is_first { FAILED } else { NtStatus::DEVICE_POWER_FAILURE };
    assert_eq!(status, expected, "{service}");
    let printed = lines(&kernel);
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), [], "{service}");
    printed
}

#[test]
fn a_start_that_fails_is_undone_as_far_as_it_came() {
    const GONE: [&str; 2] = ["device_cleanup", "device_destroy"];
    let begin = ["prepare_hardware", "d0_entry from 5", "d0_entry_post_interrupts"];
    let failed = |service: &str, steps: usize, undone: &[&str]| {
        let printed = failed_start(service);
        let expected = [&begin[..steps], undone, &GONE].concat();
        assert_eq!(printed, expected, "{service}");
    };
    failed("fail-prepare", 1, &["release_hardware"]);
    failed("fail-entry", 2, &["release_hardware"]);
    failed("fail-post", 3, &["d0_exit to 5", "release_hardware"]);
    let undone = [
        "io_init", "d0_exit_pre_interrupts", "d0_exit to 5", "release_hardware", "io_flush",
        "io_cleanup",
    ];
    failed("fail-init", 3, &undone);
}

#[test]
fn a_return_to_d0_that_fails_is_undone_too() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), "fail-restart").unwrap();
    let device = driver.add_device().unwrap();
    let before = lines(&kernel).len();
    assert!(device.power_cycle().is_err());
    let printed = lines(&kernel)[before..].to_vec();
    let expected = [
        "io_suspend", "d0_exit_pre_interrupts", "d0_exit to 4", "d0_entry from 4",
        "d0_entry_post_interrupts", "io_restart", "d0_exit_pre_interrupts", "d0_exit to 5",
        // The device has failed.
        "release_hardware", "io_flush", "surprise_removal", "io_cleanup", "device_cleanup",
        "device_destroy",
    ];
    assert_eq!(printed, expected);
    common::leave(driver, &device);
}

#[test]
fn structures_of_older_headers_are_accepted() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kmdf(), "old-headers").unwrap();
    let device = driver.add_device().unwrap();
    let file = device.open(CLIENT).unwrap();
    // The parallel queue presents any number of requests.
    let kept = file.start_device_control(commands::KEEP, b"", 64).unwrap();
    file.device_control(commands::COMPLETE, b"", 64).unwrap();
    assert_eq!(kept.finish().unwrap().status, NtStatus::SUCCESS);
    file.close().unwrap();
    common::leave(driver, &device);
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn a_driver_directs_irps_to_its_queues() {
    let bench = Bench::of_service(Kernel::new(), "directs", DeviceConfig::new());
    // Create requests cannot be directed.
    let configured = "directs c000000d 0 0".to_owned();
    assert!(lines(&bench.kernel).contains(&configured));
    let write = bench.file.start_write(b"abc").unwrap();
    bench.assert_news(&["to the queue 0 0 true 103"]);
    // The request waits in the manual queue, where the framework would not have put it.
    assert_eq!(bench.ask(commands::STATE), [11, 1, 0]);
    bench.assert_news(&["to the framework true 103"]);
    assert_eq!(write.try_finish().unwrap(), None);
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    assert_eq!(write.finish().unwrap().status, NtStatus::SUCCESS);
    let error = bench.file.device_control(commands::IRP_BUFFERS, &[], 0).unwrap_err().to_string();
    assert!(error.contains("expected a DispatchContext that the callback received"), "{error}");
    bench.kernel.leave_behind();
}
