//! Tests Plug and Play WDM drivers: the requests that the Plug and Play manager and the power
//! manager send, and mistakes in handling them.

use crate::{
    common::{self, CLIENT},
    wdm_pnp_commands as commands,
};
use std::fs;

use crate::wdm_pnp_commands::{COUNTS, MINORS, POWER, STATES};
use standin_kernel::{
    Completion, Device, DeviceConfig, Driver, File, Kernel, KernelError, NtStatus, RegistryValue,
};

/// The minor functions of `IRP_MJ_PNP`.
const START: usize = 0x00;
const QUERY_REMOVE: usize = 0x01;
const CANCEL_REMOVE: usize = 0x03;
const STOP: usize = 0x04;
const QUERY_STOP: usize = 0x05;
const CANCEL_STOP: usize = 0x06;
const QUERY_RELATIONS: usize = 0x07;
const QUERY_CAPABILITIES: usize = 0x09;
const QUERY_STATE: usize = 0x14;

/// Loads the driver as a service and adds a device.
fn load(service: &str) -> (Kernel, Driver) {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::wdm_pnp(), service).unwrap();
    (kernel, driver)
}

/// Loads the driver as a service and adds its device.
fn added(service: &str) -> (Kernel, Driver, Device) {
    let (kernel, driver) = load(service);
    let device = driver.add_device().unwrap();
    (kernel, driver, device)
}

/// Fails unless the driver's call is a bugcheck with a part of this message.
#[track_caller]
fn assert_stops<T>(result: Result<T, KernelError>, part: &str) {
    let said = common::bugcheck(result).message;
    assert!(said.contains(part), "{part:?} is not in: {said}");
}

/// Fails unless an error's message has this part.
#[track_caller]
fn assert_fails<T>(result: Result<T, KernelError>, part: &str) {
    let error = result.err().unwrap().to_string();
    assert!(error.contains(part), "{part:?} is not in: {error}");
}

/// Removes the device and unloads the driver, which must not have caused a warning.
fn leave(kernel: &Kernel, driver: Driver, device: &Device) {
    common::leave(driver, device);
    assert_eq!(kernel.warnings(), []);
}

/// A kernel with the driver, its device, and an open file.
struct Bench {
    kernel: Kernel,
    driver: Driver,
    device: Device,
    file: File,
}

impl Bench {
    fn new() -> Self {
        let (kernel, driver, device) = added("wdm-pnp");
        let file = device.open(CLIENT).unwrap();
        Self { kernel, driver, device, file }
    }

    fn leave(self) {
        self.file.close().unwrap();
        leave(&self.kernel, self.driver, &self.device);
    }
}

fn control(file: &File, code: u32, room: usize) -> Vec<u8> {
    let completion = file.device_control(code, &[], room).unwrap();
    assert_eq!(completion.status, NtStatus::SUCCESS);
    completion.output
}

/// Returns the minor functions that the driver has received, with their counts.
fn counts(file: &File) -> Vec<(usize, u8)> {
    let all = control(file, COUNTS, MINORS).into_iter().enumerate();
    all.filter(|(_, count)| *count > 0).collect()
}

/// Opens the device, and returns the minor functions that the driver has received.
fn counts_of(device: &Device) -> Vec<(usize, u8)> {
    let file = device.open(CLIENT).unwrap();
    let counts = counts(&file);
    file.close().unwrap();
    counts
}

#[test]
fn a_device_is_added_started_and_removed() {
    let (kernel, driver) = load("wdm-pnp");
    assert!(driver.adds_devices().unwrap());
    let device = driver.add_device().unwrap();
    assert_eq!(device.instance_path().unwrap(), r"ROOT\WDM-PNP\0000");
    let expected = [(START, 1), (QUERY_RELATIONS, 1), (QUERY_CAPABILITIES, 1), (QUERY_STATE, 1)];
    assert_eq!(counts_of(&device), expected);
    device.remove().unwrap();
    // A second removal has no effect, and the device can no longer be opened.
    device.remove().unwrap();
    assert_fails(device.open(CLIENT), "STATUS_NO_SUCH_DEVICE");
    let again = driver.add_device().unwrap();
    assert_eq!(again.instance_path().unwrap(), r"ROOT\WDM-PNP\0001");
    again.remove().unwrap();
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn an_interface_leads_to_the_started_device() {
    let (kernel, driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    let link = control(&file, commands::LINK, 400);
    let units: Vec<u16> =
        link.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let link = String::from_utf16(&units).unwrap();
    file.close().unwrap();
    let path = link.replacen(r"\??\", r"\\?\", 1);
    let by_link = kernel.open(&path, CLIENT).unwrap();
    assert_eq!(counts(&by_link)[0], (START, 1));
    by_link.close().unwrap();
    device.remove().unwrap();
    assert!(kernel.open(&path, CLIENT).is_err());
    driver.unload().unwrap();
}

#[test]
fn a_device_that_is_in_use_or_wanted_stays() {
    let (kernel, driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    assert_fails(device.remove(), "a file is open on it");
    let counts = counts(&file);
    assert!(counts.contains(&(QUERY_REMOVE, 1)), "{counts:?}");
    assert!(counts.contains(&(CANCEL_REMOVE, 1)), "{counts:?}");
    file.close().unwrap();
    common::leave(driver, &device);
    let (_kernel, driver) = load("refuse");
    kernel.leave_behind();
    let device = driver.add_device().unwrap();
    assert_fails(device.remove(), "completed IRP_MN_QUERY_REMOVE_DEVICE with STATUS_UNSUCCESSFUL");
    assert_fails(device.rebalance(), "completed IRP_MN_QUERY_STOP_DEVICE with STATUS_UNSUCCESSFUL");
    let counts = counts_of(&device);
    for minor in [QUERY_REMOVE, CANCEL_REMOVE, QUERY_STOP, CANCEL_STOP] {
        assert!(counts.contains(&(minor, 1)), "{minor}: {counts:?}");
    }
    // The hardware can be removed nevertheless.
    device.surprise_remove().unwrap();
    driver.unload().unwrap();
}

#[test]
fn a_device_is_stopped_and_started_again() {
    let (kernel, driver, device) = added("wdm-pnp");
    device.rebalance().unwrap();
    let counts = counts_of(&device);
    for (minor, count) in [(START, 2), (QUERY_STOP, 1), (STOP, 1), (CANCEL_STOP, 0)] {
        assert_eq!(counts.contains(&(minor, count)), count > 0, "{counts:?}");
    }
    leave(&kernel, driver, &device);
}

#[test]
fn a_device_that_does_not_start_again_waits_for_its_last_file() {
    let (kernel, driver, device) = added("fault-restart");
    let file = device.open(CLIENT).unwrap();
    assert_fails(device.rebalance(), "STATUS_UNSUCCESSFUL");
    // The device object exists until the file is closed.
    let refused = file.device_control(COUNTS, &[], MINORS).unwrap();
    assert_eq!(refused.status.to_string(), "STATUS_DEVICE_NOT_READY (0xC00000A3)");
    file.close().unwrap();
    assert!(device.open(CLIENT).is_err());
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn a_surprise_removal_waits_for_the_last_file() {
    let (kernel, driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    device.surprise_remove().unwrap();
    // The device object exists, and its driver knows that the hardware is gone.
    let refused = file.device_control(COUNTS, &[], MINORS).unwrap();
    assert_eq!(refused.status.to_string(), "STATUS_DEVICE_NOT_READY (0xC00000A3)");
    file.close().unwrap();
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn a_filter_shares_the_device() {
    let kernel = Kernel::new();
    let lower = kernel.load_as(&common::wdm_pnp(), "wdm-pnp").unwrap();
    let upper = kernel.load_as(&common::wdm_pnp(), "filter").unwrap();
    let device = lower.add_device().unwrap();
    let config = DeviceConfig::new().above(&device);
    let filtered = upper.add_device_with(config).unwrap();
    // The stack was rebuilt: the function driver's new device has been started once.
    let counts = counts_of(&filtered);
    assert_eq!(counts[0], (START, 1));
    assert_eq!(filtered.instance_path().unwrap(), device.instance_path().unwrap());
    filtered.power_cycle().unwrap();
    filtered.remove().unwrap();
    device.remove().unwrap();
    upper.unload().unwrap();
    lower.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn the_drivers_follow_the_systems_power() {
    const SET: usize = POWER + 2;
    const QUERY: usize = POWER + 3;
    let (kernel, driver, device) = added("wdm-pnp");
    device.power_cycle().unwrap();
    let file = device.open(CLIENT).unwrap();
    // The system queries, sleeps and wakes up; each time, the driver requests a device power state.
    let counts = counts(&file);
    assert!(counts.contains(&(QUERY, 2)), "{counts:?}");
    assert!(counts.contains(&(SET, 4)), "{counts:?}");
    // The states are D3, and then D0.
    assert_eq!(control(&file, STATES, 8), [1, 4, 0, 0, 0, 0, 0, 0]);
    file.close().unwrap();
    device.power_cycle().unwrap();
    let file = device.open(CLIENT).unwrap();
    assert_eq!(control(&file, STATES, 8), [1, 4, 1, 4, 0, 0, 0, 0]);
    file.close().unwrap();
    leave(&kernel, driver, &device);
    let (_kernel, driver, device) = added("awake");
    assert_fails(device.power_cycle(), "STATUS_UNSUCCESSFUL");
    common::leave(driver, &device);
}

#[test]
fn what_drivers_do_not_handle_keeps_its_status() {
    const PNP: u8 = 27;
    const POWER: u8 = 22;
    const SYSTEM_CONTROL: u8 = 23;
    let (kernel, driver, device) = added("wdm-pnp");
    let send = |major, minor, first| device.send(major, minor, [first, 0, 0, 0]).unwrap();
    let unsupported =
        Completion { status: NtStatus::NOT_SUPPORTED, information: 0, output: Vec::new() };
    // The requests have a nonexistent minor function, IRP_MN_QUERY_INTERFACE, and a WMI minor
    // function.
    assert_eq!(send(PNP, 0xFF, 0), unsupported);
    assert_eq!(send(PNP, 0x08, 0), unsupported);
    assert_eq!(send(SYSTEM_CONTROL, 0x08, 0), unsupported);
    assert_eq!(send(POWER, 0xFF, 0), unsupported);
    // The request is IRP_MN_DEVICE_USAGE_NOTIFICATION.
    assert_eq!(send(PNP, 0x16, 1).status, NtStatus::SUCCESS);
    // The requests query the device's ids and its description.
    for (minor, kind, text) in [
        (0x13, 0, "ROOT\\WDM-PNP\0"),
        (0x13, 1, "Root\\wdm-pnp\0\0"),
        (0x13, 3, "0000\0"),
        (0x0C, 0, "wdm-pnp\0"),
    ] {
        let answer = send(PNP, minor, kind);
        assert_eq!(answer.status, NtStatus::SUCCESS, "{text}");
        let expected: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(answer.output, expected, "{text}");
    }
    assert_eq!(send(PNP, 0x13, 9), unsupported);
    // The responses are GUID_BUS_TYPE_INTERNAL, PNPBus and the bus number; and one device as the
    // target relation.
    let bus = send(PNP, 0x15, 0).output;
    assert_eq!(bus.len(), 24);
    assert_eq!(bus[16..], [15, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(send(PNP, 0x07, 4).output[..4], [1, 0, 0, 0]);
    device.remove().unwrap();
    let gone = device.send(PNP, 0x14, [0; 4]).unwrap_err();
    assert!(gone.to_string().contains("STATUS_NO_SUCH_DEVICE"), "{gone}");
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn a_device_that_fails_is_removed() {
    let (kernel, driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    control(&file, commands::RELATIONS, 0);
    assert!(counts(&file).contains(&(QUERY_RELATIONS, 2)));
    control(&file, commands::FAIL, 0);
    let refused = file.device_control(COUNTS, &[], MINORS).unwrap();
    assert_eq!(refused.status.to_string(), "STATUS_DEVICE_NOT_READY (0xC00000A3)");
    file.close().unwrap();
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
    for (service, status) in [
        ("failed", "STATUS_UNSUCCESSFUL"),
        ("fault-add", "STATUS_UNSUCCESSFUL"),
        ("fault-start", "STATUS_UNSUCCESSFUL"),
    ] {
        let (kernel, driver) = load(service);
        assert_fails(driver.add_device(), status);
        driver.unload().unwrap();
        assert_eq!(kernel.warnings(), []);
    }
}

#[test]
fn faults_while_a_device_is_added_are_reported() {
    for (service, part) in [
        ("fault-add-attached", "left its device object"),
        ("fault-initializing", "without clearing DO_DEVICE_INITIALIZING"),
        (
            "fault-forgotten",
            "returned STATUS_SUCCESS (0x00000000) for IRP_MN_QUERY_CAPABILITIES, and neither",
        ),
        (
            "fault-unmarked",
            "returned STATUS_PENDING for IRP_MN_QUERY_CAPABILITIES without calling IoMarkIrpPending",
        ),
    ] {
        let (_kernel, driver) = load(service);
        assert_stops(driver.add_device(), part);
    }
}

#[test]
fn faults_of_a_removal_or_of_power_are_reported() {
    for (service, part) in [
        ("fault-attached", "without detaching its device object from the stack"),
        ("fault-deleted", "without deleting its device object"),
        (
            "fault-alone",
            "completed IRP_MN_REMOVE_DEVICE with STATUS_SUCCESS (0x00000000) instead of passing it \
             down the stack",
        ),
    ] {
        let (_kernel, _driver, device) = added(service);
        assert_stops(device.remove(), part);
    }
    let (_kernel, _driver, device) = added("fault-power");
    assert_stops(device.power_cycle(), "returned STATUS_PENDING");
}

#[test]
fn what_a_test_chooses_for_a_device_is_its_drivers() {
    let (kernel, driver) = load("wdm-pnp");
    let config = DeviceConfig::new().hardware_id(r"Contoso\Sample").hardware_value("Speed", 7_u32);
    let device = driver.add_device_with(config).unwrap();
    let path =
        r"\Registry\Machine\System\CurrentControlSet\Enum\ROOT\WDM-PNP\0000\Device Parameters";
    let speed = kernel.registry_value(path, "Speed");
    assert_eq!(speed, Some(RegistryValue::Dword(7)));
    for error in [device.interrupt(0).err(), device.dma_read(0, 1).err()] {
        let error = error.unwrap().to_string();
        assert!(error.contains("does not provide interrupts or DMA"), "{error}");
    }
    common::leave(driver, &device);
}

#[test]
fn scripts_work_as_with_the_framework() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.txt");
    let steps = format!(
        "add-device\nopen\nioctl 0x{COUNTS:x} {MINORS}\nexpect success\nclose\npower-cycle\nremove\n\
         add-device\nsurprise-remove\n"
    );
    fs::write(&script, steps).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = common::run_command(common::wdm_pnp(), folder.path().join("out.etl"));
        common::said(command.args(arguments))
    };
    let (good, said) = run(&["--script", script.to_str().unwrap()]);
    assert!(good, "{said}");
    assert_eq!(said.matches("WdkEtw.WdmPnpTest Added").count(), 2, "{said}");
    assert_eq!(said.matches("PowerState").count(), 2, "{said}");
    // If there is no script, a device is added, power-cycled and removed.
    let (good, said) = run(&[]);
    assert!(good, "{said}");
    assert!(said.contains("power-cycle"), "{said}");
}

#[test]
fn a_request_can_be_forwarded_with_a_routine_of_the_system() {
    let (kernel, driver, device) = added("forward");
    assert_eq!(counts_of(&device)[0], (START, 1));
    leave(&kernel, driver, &device);
}

#[test]
fn queued_requests_are_completed_or_cancelled() {
    let bench = Bench::new();
    let file = &bench.file;
    let keep = |code| file.start_device_control(code, &[], 0).unwrap();
    let complete = |code| {
        let completion = file.device_control(code, &[], 1).unwrap();
        completion.information == 1
    };
    let (first, second, third) =
        (keep(commands::KEEP), keep(commands::KEEP), keep(commands::KEEP_FOUND));
    assert_eq!(first.try_finish().unwrap(), None);
    second.cancel().unwrap();
    assert_eq!(second.finish().unwrap().status, NtStatus::CANCELLED);
    assert!(complete(commands::COMPLETE_FOUND));
    assert_eq!(third.finish().unwrap().status, NtStatus::SUCCESS);
    // That request has been completed, but the oldest request is still queued.
    assert!(!complete(commands::COMPLETE_FOUND));
    assert!(complete(commands::COMPLETE_NEXT));
    assert_eq!(first.finish().unwrap().status, NtStatus::SUCCESS);
    assert!(!complete(commands::COMPLETE_NEXT));
    // The other queue rejects a second request.
    let only = keep(commands::KEEP_ONE);
    let refused = file.device_control(commands::KEEP_ONE, &[], 0).unwrap();
    assert_eq!(refused.status, NtStatus::UNSUCCESSFUL);
    only.cancel().unwrap();
    assert_eq!(only.finish().unwrap().status, NtStatus::CANCELLED);
    let again = keep(commands::KEEP_ONE);
    assert!(complete(commands::COMPLETE_NEXT));
    assert_eq!(again.finish().unwrap().status, NtStatus::SUCCESS);
    // A canceled request can no longer be found.
    let found = keep(commands::KEEP_FOUND);
    found.cancel().unwrap();
    assert!(!complete(commands::COMPLETE_FOUND));
    assert_eq!(found.finish().unwrap().status, NtStatus::CANCELLED);
    bench.leave();
}

#[test]
fn a_driver_sends_requests_that_it_builds() {
    let bench = Bench::new();
    let file = &bench.file;
    // The loop tests each buffer transfer method, in a device control and in an internal device
    // control.
    for method in 0..8_u8 {
        let sent = [method, 1, 2, 3];
        let reversed = file.device_control(commands::REVERSE_OWN, &sent, 8).unwrap();
        assert_eq!(reversed.status, NtStatus::SUCCESS, "{method}");
        assert_eq!(reversed.output, [3, 2, 1], "{method}");
    }
    let reversed = file.device_control(commands::REVERSE, b"abc", 8).unwrap();
    assert_eq!(reversed.output, b"cba");
    let written = *b"0123456789abcdef";
    let read = file.device_control(commands::TRANSFER_OWN, &written, 32).unwrap();
    assert_eq!(read.output, [written, written].concat());
    // While the system sleeps, the state is D3, as the bus reports.
    let asked = file.device_control(commands::CAPABILITY, &[], 8).unwrap();
    assert_eq!((asked.status, asked.information), (NtStatus::SUCCESS, 4));
    bench.leave();
}

#[test]
fn a_request_that_fails_at_once_tells_its_caller_only_by_the_call() {
    let bench = Bench::new();
    let file = &bench.file;
    // At first, neither the status nor the event is set; for a request that was pending, both are
    // set.
    assert_eq!(control(file, commands::FAIL_OWN, 4), [0, 0, 1, 1]);
    bench.leave();
}

#[test]
fn a_device_has_properties() {
    const DESCRIPTION: u8 = 0;
    const HARDWARE_ID: u8 = 1;
    const FRIENDLY_NAME: u8 = 9;
    const ENUMERATOR: u8 = 15;
    let (_kernel, driver) = load("wdm-pnp");
    let config =
        DeviceConfig::new().hardware_id(r"Contoso\Sample").property(DESCRIPTION.into(), "Sample");
    let device = driver.add_device_with(config).unwrap();
    let file = device.open(CLIENT).unwrap();
    let property = |number: u8, room| {
        let found = file.device_control(commands::PROPERTY, &[number], room).unwrap();
        let units = found.output.chunks_exact(2);
        let units = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        (found.status, String::from_utf16(&units.collect::<Vec<_>>()).unwrap())
    };
    let found = |text: &str| (NtStatus::SUCCESS, text.to_owned());
    assert_eq!(property(DESCRIPTION, 100), found("Sample\0"));
    assert_eq!(property(HARDWARE_ID, 100), found("Contoso\\Sample\0\0"));
    assert_eq!(property(ENUMERATOR, 100), found("ROOT\0"));
    assert_eq!(property(ENUMERATOR, 4).0, NtStatus::BUFFER_TOO_SMALL);
    assert_eq!(property(FRIENDLY_NAME, 100).0, NtStatus::OBJECT_NAME_NOT_FOUND);
    file.close().unwrap();
    common::leave(driver, &device);
}

#[test]
fn a_remove_lock_that_is_held_or_not_is_reported() {
    let (_kernel, _driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    control(&file, commands::LEAK_LOCK, 0);
    file.close().unwrap();
    let said = common::bugcheck(device.remove()).message;
    assert!(said.contains("would wait forever for the remove lock"), "{said}");
    assert!(said.contains("and never released (1 in all)"), "{said}");
    let (_kernel, _driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    assert_stops(
        file.device_control(commands::WRONG_TAG, &[], 0),
        "not acquired with the tag 0x0000000000000000",
    );
}

#[test]
fn a_resource_is_acquired_in_a_critical_region() {
    let (_kernel, _driver, device) = added("wdm-pnp");
    let file = device.open(CLIENT).unwrap();
    let good = file.device_control(commands::RESOURCE, &[1], 0).unwrap();
    assert_eq!(good.status, NtStatus::SUCCESS);
    assert_stops(file.device_control(commands::RESOURCE, &[0], 0), "outside a critical region");
}
