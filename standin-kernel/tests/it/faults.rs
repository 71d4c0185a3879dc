//! Tests the sample driver with failing routines.

use crate::common::{self, CLIENT};
use etl_file::Trace;
use etw_sample_interface::{IOCTL_GET_STATISTICS, Registration, Statistics, outcome};
use standin_kernel::{Device, EnableParameters, Fault, Kernel, NtStatus, SessionConfig, Target};
use zerocopy::FromBytes;

/// Loads the driver with a fault and uses its device. Returns the driver's output, the number of
/// events that a session received, and the statistics that the driver reports to its users.
fn with_fault(fault: Fault) -> (String, usize, Statistics) {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faults.etl");
    let session = kernel.start_session(SessionConfig::to_file("Faults", file)).unwrap();
    let parameters = EnableParameters { level: 5, ..EnableParameters::default() };
    let target = Target::Provider(etw_scenarios::provider());
    kernel.enable(session, target, parameters).unwrap();
    kernel.inject(fault).unwrap();
    let (driver, device) = common::started(&kernel, &common::sample());
    let told = use_device(&device);
    common::leave(driver, &device);
    let report = kernel.stop_session(session).unwrap();
    let events = Trace::open(&report.file).unwrap().events().count();
    (kernel.debug_output().concat(), events, told)
}

fn use_device(device: &Device) -> Statistics {
    let file = device.open(CLIENT).unwrap();
    assert_eq!(file.write(b"abc").unwrap().status, NtStatus::SUCCESS);
    assert_eq!(file.read(3).unwrap().output, b"abc");
    let statistics =
        file.device_control(IOCTL_GET_STATISTICS, &[], size_of::<Statistics>()).unwrap();
    file.close().unwrap();
    Statistics::read_from_bytes(&statistics.output).unwrap()
}

#[test]
fn a_driver_that_cannot_be_traced_does_its_work() {
    let (output, events, told) = with_fault(Fault::next("EtwRegister", NtStatus::NO_MEMORY));
    assert!(output.contains("EtwRegister returned STATUS_NO_MEMORY (0xC0000017)"), "{output}");
    assert_eq!((events, told.events_failed), (0, 0));
    // The driver's users see the failure without a debugger.
    let refused = Registration {
        outcome: outcome::REFUSED,
        status: NtStatus::NO_MEMORY.0.cast_unsigned(),
        ..Registration::default()
    };
    assert_eq!(told.registration, refused);
}

// R-G2
#[test]
fn a_refused_setting_is_visible_to_users() {
    let denied = NtStatus(0xC000_0022_u32.cast_signed());
    let (output, events, told) = with_fault(Fault::next("EtwSetInformation", denied));
    assert!(output.contains("EventProviderSetTraits"), "{output}");
    assert!(events > 10, "{events}");
    let refused = Registration {
        outcome: outcome::INCOMPLETE,
        traits: 0xC000_0022,
        ..Registration::default()
    };
    assert_eq!(told.registration, refused);
    // The session enabled the provider before the driver was loaded.
    let [first, ..] = &told.first_notifications;
    let seen = (first.recorded, first.during_registration, first.level);
    assert_eq!(seen, (1, 1, 5));
}

// R-C4
#[test]
fn a_driver_without_pool_for_its_traits_registers_with_the_declared_ones() {
    let (output, events, told) = with_fault(Fault::next("ExAllocatePool2", NtStatus::NO_MEMORY));
    assert!(output.contains("ExAllocatePool2 could not allocate 87 bytes"), "{output}");
    assert!(events > 10, "{events}");
    assert_eq!(told.events_failed, 0);
    let registered =
        Registration { outcome: outcome::COMPLETE, traits_left_out: 1, ..Registration::default() };
    assert_eq!(told.registration, registered);
}

// R-O11
#[test]
fn failed_writes_are_counted_and_later_ones_succeed() {
    let good = with_fault(Fault::next("ExAllocatePool2", NtStatus::NO_MEMORY)).1;
    let fault = Fault { routine: "EtwWriteEx", status: NtStatus::NO_MEMORY, after: 3, times: 2 };
    let (_, events, told) = with_fault(fault);
    assert_eq!((events, told.events_failed), (good - 2, 2));
}

#[test]
fn only_known_routines_can_be_made_to_fail() {
    let error = Kernel::new().inject(Fault::next("EtwWrote", NtStatus::NO_MEMORY));
    assert!(error.unwrap_err().to_string().contains("fault injection does not support `EtwWrote`"));
}

#[test]
fn every_routine_that_returns_a_status_can_be_made_to_fail() {
    for (routine, image) in [
        ("IoCreateDevice", common::wdm()),
        ("IoCreateSymbolicLink", common::wdm()),
        ("WdfVersionBind", common::sample()),
    ] {
        let kernel = Kernel::new();
        kernel.inject(Fault::next(routine, NtStatus::NO_MEMORY)).unwrap();
        let error = kernel.load(&image).err().unwrap().to_string();
        assert!(error.contains("STATUS_NO_MEMORY"), "{routine}: {error}");
        kernel.load(&image).unwrap().unload().unwrap();
    }
}
