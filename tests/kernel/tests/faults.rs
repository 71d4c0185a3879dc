//! Tests the sample driver while routines fail.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod common;

use etl_file::Trace;
use etw_sample_interface::{IOCTL_GET_STATISTICS, Statistics};
use etw_testkernel::{
    Device, EnableParameters, Fault, Identity, Kernel, NtStatus, SessionConfig, Target,
};
use zerocopy::FromBytes;

const CLIENT: Identity = Identity {
    process: 10,
    thread: 11,
};

/// Loads the driver under a fault and uses its device. Returns the driver's output, the number of
/// events that a session received, and the number that the driver counted as failed.
fn with_fault(fault: Fault) -> (String, usize, u64) {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.etl");
    let session = kernel
        .start_session(SessionConfig::to_file("Faults", file))
        .unwrap();
    let parameters = EnableParameters {
        level: 5,
        ..EnableParameters::default()
    };
    let target = Target::Provider(etw_scenarios::provider());
    kernel.enable(session, target, parameters).unwrap();
    kernel.inject(fault).unwrap();
    let driver = kernel.load(&common::sample()).unwrap();
    let device = driver.add_device().unwrap();
    let failed = use_device(&device);
    device.remove().unwrap();
    driver.unload().unwrap();
    let report = kernel.stop_session(session).unwrap();
    let events = Trace::open(&report.file).unwrap().events().count();
    (kernel.debug_output().concat(), events, failed)
}

fn use_device(device: &Device) -> u64 {
    let file = device.open(CLIENT).unwrap();
    assert_eq!(file.write(b"abc").unwrap().status, NtStatus::SUCCESS);
    assert_eq!(file.read(3).unwrap().output, b"abc");
    let statistics = file
        .device_control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>())
        .unwrap();
    file.close().unwrap();
    Statistics::read_from_bytes(&statistics.output)
        .unwrap()
        .events_failed
}

#[test]
fn a_driver_that_cannot_be_traced_does_its_work() {
    let (output, events, failed) = with_fault(Fault::next("EtwRegister", NtStatus::NO_MEMORY));
    assert!(
        output.contains("EtwRegister returned STATUS_NO_MEMORY (0xC0000017)"),
        "{output}"
    );
    assert_eq!((events, failed), (0, 0));
}

// R-C4
#[test]
fn a_driver_without_pool_for_its_traits_registers_with_the_declared_ones() {
    let (output, events, failed) = with_fault(Fault::next("ExAllocatePool2", NtStatus::NO_MEMORY));
    assert!(
        output.contains("ExAllocatePool2 could not allocate 87 bytes"),
        "{output}"
    );
    assert!(events > 10, "{events}");
    assert_eq!(failed, 0);
}

// R-O11
#[test]
fn failed_writes_are_counted_and_later_ones_succeed() {
    let good = with_fault(Fault::next("ExAllocatePool2", NtStatus::NO_MEMORY)).1;
    let fault = Fault {
        routine: "EtwWriteEx",
        status: NtStatus::NO_MEMORY,
        after: 3,
        times: 2,
    };
    let (_, events, failed) = with_fault(fault);
    assert_eq!((events, failed), (good - 2, 2));
}

#[test]
fn only_known_routines_can_be_made_to_fail() {
    let error = Kernel::new().inject(Fault::next("EtwWrote", NtStatus::NO_MEMORY));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("fault injection does not support `EtwWrote`")
    );
}
