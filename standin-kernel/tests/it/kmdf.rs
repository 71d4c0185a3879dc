//! Tests the framework: the order of a driver's callbacks, and the results of its calls.

use crate::bench::{Bench, CLIENT, assert_says, is_pending, lines, numbers, status_of};
use crate::{common, kmdf_commands as commands};
use standin_kernel::{Kernel, KernelError, NtStatus, RegistryValue};

/// `STATUS_DEVICE_BUSY`.
const DEVICE_BUSY: NtStatus = NtStatus(0x8000_0011_u32.cast_signed());

#[test]
fn a_manual_queue_holds_requests_until_they_are_retrieved() {
    let bench = Bench::new();
    bench.assert_status(commands::RETRIEVE, NtStatus::NO_MORE_ENTRIES);
    let first = bench.file.start_read(1).unwrap();
    let second = bench.file.start_read(2).unwrap();
    bench.assert_news(&["read 1", "read 2"]);
    assert!(is_pending(&first));
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    assert_eq!(status_of(first), NtStatus::SUCCESS);
    assert!(is_pending(&second));
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    assert_eq!(status_of(second), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn a_requeued_request_comes_first_again() {
    let bench = Bench::new();
    let first = bench.file.start_read(1).unwrap();
    let second = bench.file.start_read(2).unwrap();
    bench.assert_status(commands::REQUEUE, NtStatus::SUCCESS);
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    assert_eq!(status_of(first), NtStatus::SUCCESS);
    assert!(is_pending(&second));
    bench.leave();
}

#[test]
fn requests_are_retrieved_by_file() {
    let bench = Bench::new();
    let other = bench.device.open(CLIENT).unwrap();
    let mine = bench.file.start_read(1).unwrap();
    let others = other.start_read(1).unwrap();
    let status = numbers(&other, commands::RETRIEVE_OF_FILE);
    assert_eq!(status, [0]);
    assert!(is_pending(&mine));
    assert_eq!(status_of(others), NtStatus::SUCCESS);
    let no_more = NtStatus::NO_MORE_ENTRIES.0.cast_unsigned();
    assert_eq!(numbers(&other, commands::RETRIEVE_OF_FILE), [no_more]);
    other.close().unwrap();
    bench.leave();
}

#[test]
fn requests_can_be_found_without_being_retrieved() {
    let bench = Bench::new();
    let no_more = NtStatus::NO_MORE_ENTRIES.0.cast_unsigned();
    assert_eq!(bench.ask(commands::FIND), [0, no_more]);
    let first = bench.file.start_read(1).unwrap();
    let second = bench.file.start_read(1).unwrap();
    assert_eq!(bench.ask(commands::FIND), [2, no_more]);
    assert!(is_pending(&first) && is_pending(&second));
    bench.leave();
}

#[test]
fn a_stopped_queue_accepts_and_does_not_dispatch() {
    let bench = Bench::new();
    // The queue accepts and dispatches requests, is empty, and the driver holds no requests.
    assert_eq!(bench.ask(commands::STATE), [15, 0, 0]);
    bench.command(commands::STOP);
    bench.assert_news(&["stopped"]);
    let read = bench.file.start_read(1).unwrap();
    assert_eq!(bench.ask(commands::STATE), [9, 1, 0]);
    bench.assert_status(commands::RETRIEVE, NtStatus::WDF_PAUSED);
    bench.command(commands::START);
    assert_eq!(bench.ask(commands::STATE), [11, 1, 0]);
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    assert_eq!(status_of(read), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn a_purged_queue_cancels_its_requests_and_accepts_none() {
    let bench = Bench::new();
    let read = bench.file.start_read(1).unwrap();
    bench.skip();
    bench.command(commands::PURGE);
    bench.assert_news(&["canceled_on_queue", "purged"]);
    assert_eq!(status_of(read), NtStatus::CANCELLED);
    assert_eq!(bench.ask(commands::STATE), [14, 0, 0]);
    let refused = bench.file.start_read(1).unwrap();
    // The driver completes the request with STATUS_WDF_BUSY, which is unknown to processes.
    assert_eq!(status_of(refused), DEVICE_BUSY);
    bench.command(commands::START);
    let read = bench.file.start_read(1).unwrap();
    assert!(is_pending(&read));
    bench.leave();
}

#[test]
fn a_draining_queue_still_provides_its_requests() {
    let bench = Bench::new();
    let read = bench.file.start_read(1).unwrap();
    bench.skip();
    bench.command(commands::DRAIN);
    bench.assert_news(&[]);
    assert_eq!(bench.ask(commands::STATE), [10, 1, 0]);
    bench.assert_status(commands::RETRIEVE, NtStatus::SUCCESS);
    bench.assert_news(&["drained"]);
    assert_eq!(status_of(read), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn the_driver_is_notified_when_a_manual_queue_is_no_longer_empty() {
    let bench = Bench::new();
    bench.assert_status(commands::READY_NOTIFY, NtStatus::SUCCESS);
    bench.assert_status(commands::READY_NOTIFY, NtStatus::INVALID_DEVICE_REQUEST);
    bench.assert_news(&[]);
    let _first = bench.file.start_read(1).unwrap();
    let _second = bench.file.start_read(2).unwrap();
    bench.assert_news(&["read 1", "ready", "read 2"]);
    bench.leave();
}

#[test]
fn a_sequential_queue_presents_one_request_at_a_time() {
    let bench = Bench::new();
    let first = bench.file.start_write(b"one").unwrap();
    let second = bench.file.start_write(b"second").unwrap();
    bench.assert_news(&["write 3"]);
    bench.command(commands::COMPLETE);
    bench.assert_news(&["write 6"]);
    assert_eq!(status_of(first), NtStatus::SUCCESS);
    assert!(is_pending(&second));
    bench.command(commands::COMPLETE);
    assert_eq!(status_of(second), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn stopping_a_queue_waits_for_the_requests_that_the_driver_holds() {
    let bench = Bench::new();
    let write = bench.file.start_write(b"one").unwrap();
    let next = bench.file.start_write(b"second").unwrap();
    bench.command(commands::STOP_AND_WAIT);
    // The timer completes the write while the stop waits. The next write is presented only after
    // the start.
    bench.assert_news(&["write 3", "timer at 2", "writes stopped", "write 6"]);
    assert_eq!(status_of(write), NtStatus::SUCCESS);
    assert!(is_pending(&next));
    bench.command(commands::COMPLETE);
    bench.leave();
}

#[test]
fn waiting_for_a_request_from_its_own_callback_is_a_bugcheck() {
    let bench = Bench::new();
    let bugcheck = bench.stops(commands::PURGE_AND_WAIT);
    assert_says(
        &bugcheck,
        &[
            "WdfIoQueuePurgeSynchronously", "etw_kmdf_driver",
            "would wait forever for device control", "is never completed",
        ],
    );
}

#[test]
fn a_request_that_waits_can_be_cancelled() {
    let bench = Bench::new();
    let read = bench.file.start_read(1).unwrap();
    // A request that was never presented is completed without the driver.
    let kept = bench.file.start_write(b"one").unwrap();
    let unseen = bench.file.start_write(b"second").unwrap();
    bench.skip();
    read.cancel().unwrap();
    bench.assert_news(&["canceled_on_queue"]);
    unseen.cancel().unwrap();
    kept.cancel().unwrap();
    bench.assert_news(&[]);
    assert_eq!(status_of(read), NtStatus::CANCELLED);
    assert_eq!(status_of(unseen), NtStatus::CANCELLED);
    assert!(is_pending(&kept));
    assert_eq!(bench.ask(commands::IS_CANCELED), [1]);
    bench.command(commands::COMPLETE);
    bench.leave();
}

#[test]
fn the_driver_is_called_for_a_request_that_it_made_cancelable() {
    let bench = Bench::new();
    let kept = bench.send(commands::KEEP_CANCELABLE);
    kept.cancel().unwrap();
    bench.assert_news(&["canceled"]);
    assert_eq!(status_of(kept), NtStatus::CANCELLED);

    let kept = bench.send(commands::KEEP_CANCELABLE);
    bench.assert_status(commands::RELEASE, NtStatus::SUCCESS);
    kept.cancel().unwrap();
    bench.assert_news(&[]);
    assert_eq!(status_of(kept), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn a_cancelled_request_cannot_be_made_cancelable() {
    let bench = Bench::new();
    let kept = bench.send(commands::KEEP);
    bench.skip();
    assert_eq!(bench.ask(commands::IS_CANCELED), [0]);
    kept.cancel().unwrap();
    assert_eq!(bench.ask(commands::IS_CANCELED), [1]);
    bench.assert_status(commands::KEEP_CANCELABLE_EX, NtStatus::CANCELLED);
    bench.assert_news(&[]);
    bench.command(commands::COMPLETE);
    assert_eq!(status_of(kept), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn unmarking_a_request_reports_an_earlier_cancellation() {
    let bench = Bench::new();
    let kept = bench.file.start_device_control(commands::KEEP_CANCELABLE, b"x", 64).unwrap();
    kept.cancel().unwrap();
    bench.assert_news(&["canceled and kept"]);
    bench.assert_status(commands::UNMARK, NtStatus::CANCELLED);
    bench.command(commands::COMPLETE);
    assert_eq!(status_of(kept), NtStatus::SUCCESS);
    bench.leave();
}

#[test]
fn completing_a_cancelable_request_is_a_bugcheck() {
    let bench = Bench::new();
    let _kept = bench.send(commands::KEEP_CANCELABLE);
    let bugcheck = bench.stops(commands::COMPLETE);
    assert_eq!(bugcheck.code, 0x10D);
    assert_says(
        &bugcheck,
        &[
            "WdfRequestComplete was called from", "which is cancelable",
            "call WdfRequestUnmarkCancelable first",
        ],
    );
}

#[test]
fn unmarking_a_request_that_is_not_cancelable_is_a_bugcheck() {
    let bench = Bench::new();
    let _kept = bench.send(commands::KEEP);
    let bugcheck = bench.stops(commands::UNMARK);
    assert_says(&bugcheck, &["WdfRequestUnmarkCancelable", "not cancelable"]);
}

#[test]
fn a_forwarded_request_no_longer_belongs_to_the_driver() {
    let bench = Bench::new();
    let kept = bench.send(commands::KEEP);
    bench.assert_status(commands::FORWARD, NtStatus::SUCCESS);
    assert_eq!(bench.ask(commands::STATE), [11, 1, 0]);
    assert!(is_pending(&kept));
    let bugcheck = bench.stops(commands::COMPLETE);
    assert_says(&bugcheck, &["WdfRequestComplete", "is still in a queue", "does not own it"]);
}

#[test]
fn a_driver_must_not_delete_a_request() {
    let bugcheck = Bench::new().stops(commands::DELETE);
    assert_says(&bugcheck, &["WdfObjectDelete", "WDFREQUEST", "only the framework may delete"]);
}

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
fn flushing_a_work_item_waits_for_it() {
    let bench = Bench::new();
    bench.command(commands::FLUSH_WORK);
    bench.assert_news(&["queued", "work at 0, true", "flushed"]);
    bench.leave();
}

#[test]
fn a_wait_lock_has_one_owner() {
    const TIMEOUT: u32 = 0x102;
    let bench = Bench::new();
    assert_eq!(bench.ask(commands::WAIT_LOCK), [0, TIMEOUT, TIMEOUT, 0]);
    let bugcheck = bench.stops(commands::WAIT_LOCK_TWICE);
    assert_says(&bugcheck, &["WdfWaitLockAcquire", "its caller already holds"]);
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
fn objects_are_cleaned_up_and_destroyed_children_first() {
    let bench = Bench::new();
    bench.command(commands::OBJECTS);
    bench.assert_news(&[
        "context 0 true",
        // A second context of the same type is the first context.
        "context 40000000 true", "cleanup D", "cleanup B", "cleanup C", "cleanup A", "destroy D",
        "destroy B", "destroy C", "destroy A",
    ]);
    bench.leave();
}

#[test]
fn a_reference_keeps_an_object_from_being_destroyed() {
    let bench = Bench::new();
    bench.command(commands::REFERENCES);
    bench.assert_news(&["cleanup A", "deleted", "destroy A", "dereferenced"]);
    let bugcheck = bench.stops(commands::DEREFERENCE);
    assert_says(&bugcheck, &["to which the driver holds no reference"]);
}

#[test]
fn a_driver_reads_its_parameters() {
    let kernel = Kernel::new();
    kernel.set_parameter("parameters", "Number", 42_u32);
    kernel.set_parameter("parameters", "text", "hello");
    kernel.set_parameter("parameters", "Bytes", vec![1, 2, 3]);
    kernel.set_parameter("another", "Missing", 1_u32);
    let driver = kernel.load_as(&common::kmdf(), "parameters").unwrap();
    assert_eq!(
        lines(&kernel),
        [
            "number 0 42", "missing c0000034 0", "text as number c0000024 0", "length 12",
            "text 0 hello", "length 12", "text 80000005 ", "string 0 hello",
            "bytes 0 3 3 [1, 2, 3, 0]",
        ]
    );
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
