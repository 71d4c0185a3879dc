//! Tests a WDM driver: its device, its requests, and its violations.

use crate::{
    bench::numbers,
    common::{self, CLIENT},
    wdm_commands as commands,
};
use std::fs;

use standin_kernel::{Driver, ErrorLogEntry, File, Kernel, NtStatus, RequestAction};

const PATH: &str = r"\\.\WdmTest";

/// Loads the driver and opens its device.
fn open() -> (Kernel, Driver, File) {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::wdm()).unwrap();
    let file = kernel.open(PATH, CLIENT).unwrap();
    (kernel, driver, file)
}

fn close(kernel: &Kernel, driver: Driver, file: File) {
    file.close().unwrap();
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
    assert!(kernel.open(PATH, CLIENT).is_err());
}

#[test]
fn a_device_is_written_read_and_controlled() {
    let (kernel, driver, file) = open();
    let written = file.write(b"hello").unwrap();
    assert_eq!((written.status, written.information), (NtStatus::SUCCESS, 5));
    let read = file.read(64).unwrap();
    assert_eq!((read.information, &read.output[..]), (5, &b"hello"[..]));
    assert_eq!(file.read(2).unwrap().output, b"he");
    let large = file.write(&[0; 65]).unwrap();
    assert_eq!(large.status, NtStatus::BUFFER_TOO_SMALL);
    for command in [commands::REVERSE_DIRECT, commands::REVERSE_NEITHER] {
        let reversed = file.device_control(command, b"abc", 8).unwrap();
        assert_eq!(reversed.output, b"cba");
    }
    // The driver sends its own request to its device.
    let forwarded = file.device_control(commands::FORWARD, &[], 8).unwrap();
    assert_eq!(forwarded.output, b"hello");
    let read = file.device_control(commands::READ_ASYNCHRONOUS, &[], 8).unwrap();
    assert_eq!(read.output, b"hello");
    let other = kernel.open(PATH, CLIENT).unwrap();
    assert_eq!(file.device_control(commands::REFERENCES, &[], 8).unwrap().information, 2);
    other.close().unwrap();
    assert_eq!(file.device_control(commands::REFERENCES, &[], 8).unwrap().information, 1);
    for command in [commands::UNKNOWN, commands::DEFAULT_ROUTINE] {
        let refused = file.device_control(command, &[], 0).unwrap();
        assert_eq!(refused.status, NtStatus::INVALID_DEVICE_REQUEST);
    }
    close(&kernel, driver, file);
}

#[test]
fn the_lock_of_a_synchronous_file_disables_apcs() {
    let (kernel, driver, file) = open();
    let apcs = |file: &File| file.device_control(commands::APCS, &[], 8).unwrap().information;
    assert_eq!(apcs(&file), 0);
    kernel.open_synchronous(true);
    let synchronous = kernel.open(PATH, CLIENT).unwrap();
    assert_eq!(apcs(&synchronous), 1 | 4);
    let opened = file.device_control(commands::OPENED, &[], 12).unwrap();
    let options = u32::from_le_bytes(opened.output[4..8].try_into().unwrap());
    assert_eq!(options, 0x0100_0060);
    kernel.open_synchronous(false);
    assert_eq!(apcs(&file), 0);
    synchronous.close().unwrap();
    close(&kernel, driver, file);
}

#[test]
fn a_pending_request_is_completed_later_or_cancelled() {
    let (kernel, driver, file) = open();
    let kept = file.start_device_control(commands::KEEP, &[], 0).unwrap();
    assert_eq!(kept.try_finish().unwrap(), None);
    file.device_control(commands::RELEASE, &[], 0).unwrap();
    assert_eq!(kept.finish().unwrap().status, NtStatus::SUCCESS);
    let kept = file.start_device_control(commands::KEEP, &[], 0).unwrap();
    kept.cancel().unwrap();
    assert_eq!(kept.finish().unwrap().status, NtStatus::CANCELLED);
    close(&kernel, driver, file);
}

#[test]
fn faults_with_requests_are_reported() {
    for (command, part) in [
        (commands::COMPLETE_TWICE, "which is not a request or was already completed"),
        (commands::FORGET, "and did not complete the request"),
        (commands::INITIALIZE_SENT, "for a request that another driver owns and has not completed"),
        (commands::FREE_SENT, "for a block with a request that another driver owns"),
        (commands::INITIALIZE_ALLOCATED, "which only IoReuseIrp can prepare for reuse"),
        (commands::ATTACH_ROUND, "to attach a device to a device that is attached above it"),
        (commands::STACK_ROUND, "form a cycle by AttachedDevice"),
        (commands::DESCRIPTORS_ROUND, "whose memory descriptor lists form a cycle"),
        (commands::TOO_MUCH, "with 9 bytes, but its output buffer is only 8 bytes long"),
    ] {
        let (_kernel, _driver, file) = open();
        let bugcheck = common::bugcheck(file.device_control(command, &[], 8));
        assert!(bugcheck.message.contains(part), "{bugcheck}");
    }
}

#[test]
fn an_open_has_a_security_context() {
    let (kernel, driver, file) = open();
    let opened = file.device_control(commands::OPENED, &[], 12).unwrap();
    // The values are read and write access, FILE_OPEN of a non-directory file, and sharing for
    // both.
    let expected = [0x0012_019F_u32, 0x0100_0040, 0x0080_0003];
    assert_eq!(opened.output, expected.map(u32::to_le_bytes).concat());
    // Users can read, but not change, the access control list in the device's security descriptor.
    let opened = file.device_control(commands::OPENED, &[], 28).unwrap();
    let expected = [1, 0, 0, 0xC000_0022_u32];
    assert_eq!(opened.output[12..], expected.map(u32::to_le_bytes).concat());
    close(&kernel, driver, file);
}

#[test]
fn the_second_buffer_of_a_direct_request_has_contents() {
    let (kernel, driver, file) = open();
    let compared = file.device_control_with(commands::COMPARE_SECOND, b"abcd", b"dcxa").unwrap();
    assert_eq!((compared.status, compared.information), (NtStatus::SUCCESS, 3));
    close(&kernel, driver, file);
}

#[test]
fn a_request_in_the_drivers_memory_is_initialized_for_each_use() {
    let (kernel, driver, file) = open();
    file.write(b"hello").unwrap();
    let read = file.device_control(commands::INITIALIZE, &[], 16).unwrap();
    assert_eq!((read.status, read.information), (NtStatus::SUCCESS, 15));
    // The walk ends where the list forms a cycle.
    file.device_control(commands::LIST_ROUND, &[], 0).unwrap();
    close(&kernel, driver, file);
}

#[test]
fn the_owner_of_a_request_can_have_a_location_of_it() {
    let (kernel, driver, file) = open();
    file.write(b"hello").unwrap();
    let read = file.device_control(commands::OWN_LOCATION, &[], 16).unwrap();
    assert_eq!((read.status, read.information), (NtStatus::SUCCESS, 15));
    close(&kernel, driver, file);
}

#[test]
fn a_driver_gets_a_device_by_its_name_and_attaches_to_it() {
    const NOT_FOUND: u32 = 0xC000_0034;
    let (kernel, driver, file) = open();
    // An open, a cleanup and, when the reference is released, a close occur; then all three occur
    // again.
    let expected = [0, 1, 0x0001_0100, 0x0001_0101, NOT_FOUND, 0, 1, 1, 0x0002_0202];
    assert_eq!(numbers(&file, commands::BY_NAME), expected);
    // The last open, by IoAttachDevice, was for reading attributes, by a driver that does not share the
    // file.
    let opened = numbers(&file, commands::OPENED);
    assert_eq!(opened[..3], [0x80, 0x0100_0040, 0]);
    // IoGetDeviceObjectPointer opens with the access that its caller requests.
    numbers(&file, commands::RELEASE_RAISED);
    let opened = numbers(&file, commands::OPENED);
    assert_eq!(opened[..3], [0x1, 0x0100_0040, 0]);
    close(&kernel, driver, file);
}

#[test]
fn a_file_that_is_released_while_apcs_are_disabled_is_closed_by_the_system() {
    let (kernel, driver, file) = open();
    // The file is not closed immediately; it is closed once, at PASSIVE_LEVEL, in the system
    // process.
    let expected = [0, 1, 0, 4, 0, 1, 0, 4];
    assert_eq!(numbers(&file, commands::RELEASE_RAISED), expected);
    close(&kernel, driver, file);
}

#[test]
fn only_a_device_control_has_an_access_to_validate() {
    const INVALID_PARAMETER: u32 = 0xC000_000D;
    let (kernel, driver, file) = open();
    let expected = [INVALID_PARAMETER, 0, INVALID_PARAMETER];
    assert_eq!(numbers(&file, commands::ACCESS), expected);
    close(&kernel, driver, file);
}

#[test]
fn the_name_of_a_file_keeps_its_capital_letters() {
    let (kernel, driver, first) = open();
    first.close().unwrap();
    for path in [r"\\.\WDMTest\Some\File", r"\device\wdmTEST\Some\File"] {
        let file = kernel.open(path, CLIENT).unwrap();
        let answer = file.device_control(commands::FILE_NAME, &[], 68).unwrap();
        let units =
            answer.output.chunks_exact(4).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let units: Vec<u16> = units.collect();
        let name = String::from_utf16(&units[1..=usize::from(units[0])]).unwrap();
        assert_eq!(name, r"\Some\File", "{path}");
        file.close().unwrap();
    }
    driver.unload().unwrap();
    drop(kernel);
}

#[test]
fn a_file_that_is_not_released_is_the_fault_of_the_driver_that_opened_it() {
    let kernel = Kernel::new();
    let target = kernel.load(&common::wdm()).unwrap();
    let opener = kernel.load_as(&common::kernel(), "fault-file-left").unwrap();
    let error = opener.unload().unwrap_err().to_string();
    let part = r"etw_kernel_driver.sys was unloaded without releasing its files: \Device\WdmTest";
    assert!(error.contains(part), "{error}");
    target.unload().unwrap();
    // The driver of the deleted device is not at fault either.
    let target = kernel.load(&common::wdm()).unwrap();
    let opener = kernel.load_as(&common::kernel(), "fault-file-left").unwrap();
    target.unload().unwrap();
    let error = opener.unload().unwrap_err().to_string();
    assert!(error.contains("without releasing its files: (a device without a name)"), "{error}");
}

#[test]
fn a_driver_that_is_unloaded_while_a_process_has_a_file_is_reported() {
    let (kernel, driver, file) = open();
    let error = driver.unload().unwrap_err().to_string();
    assert!(error.contains("without deleting its devices"), "{error}");
    drop((kernel, file));
}

/// Makes the driver open a device by name. Returns the message of the bugcheck.
fn stops_for(file: &File, name: &str) -> String {
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    common::bugcheck(file.device_control(commands::OPEN, &name, 4)).message
}

#[test]
fn a_device_of_the_framework_that_a_driver_names_is_not_provided() {
    let (kernel, _driver, file) = open();
    let framework = kernel.load_as(&common::kmdf(), "control").unwrap();
    let message = stops_for(&file, r"\Device\KmdfControl");
    let part = r"for \Device\KmdfControl, which is a KMDF or simulated device";
    assert!(message.contains(part), "{message}");
    drop(framework);
}

#[test]
fn an_interface_of_the_framework_that_a_driver_names_is_not_provided() {
    let (kernel, _driver, file) = open();
    let framework = kernel.load(&common::kmdf()).unwrap();
    let device = framework.add_device().unwrap();
    let instance = device.instance_path().unwrap().replace('\\', "#");
    let link = format!(r"\??\{instance}#{{5f8a2f0e-7d1c-4d6e-9a53-0c4b7c8f2a11}}");
    let message = stops_for(&file, &link);
    assert!(message.contains("which is a KMDF or simulated device"), "{message}");
    kernel.leave_behind();
}

#[test]
fn a_device_of_the_test_that_a_driver_names_is_not_provided() {
    let (kernel, _driver, file) = open();
    let _lower = kernel.simulate_device(Some(r"\Device\Lower"), |_| RequestAction::Keep);
    let message = stops_for(&file, r"\Device\Lower\file");
    let part = r"for \Device\Lower\file, which is a KMDF or simulated device";
    assert!(message.contains(part), "{message}");
}

#[test]
fn entries_of_the_event_log_are_kept() {
    let (kernel, driver, file) = open();
    assert_eq!(numbers(&file, commands::ERROR_LOG), [1; 5]);
    let expected = ErrorLogEntry {
        error_code: 0xE004_0001,
        final_status: NtStatus::from_bits(0xC000_009D),
        unique_value: 77,
        category: 0,
        major_function: 3,
        retry_count: 2,
        sequence_number: 5,
        control_code: 6,
        device_offset: 0,
        dump: vec![1, 2, 3, 4],
        strings: vec!["ok".to_owned()],
    };
    assert_eq!(kernel.error_log(), [expected]);
    let bugcheck = common::bugcheck(file.device_control(commands::BAD_ERROR_LOG, &[], 0));
    let part = "strings (1 from byte 200) extend past its end";
    assert!(bugcheck.message.contains(part), "{bugcheck}");
    drop(driver);
}

#[test]
fn dump_data_of_an_entry_are_whole_words() {
    let (_kernel, _driver, file) = open();
    let bugcheck = common::bugcheck(file.device_control(commands::ODD_ERROR_LOG, &[], 0));
    let part = "3 bytes of dump data; the size must be a multiple of 4";
    assert!(bugcheck.message.contains(part), "{bugcheck}");
}

#[test]
fn an_entry_that_is_neither_written_nor_freed_is_a_leak() {
    let (_kernel, driver, file) = open();
    assert_eq!(numbers(&file, commands::LEAVE_ERROR_LOG), [1]);
    file.close().unwrap();
    let error = driver.unload().unwrap_err().to_string();
    let part = "without writing or freeing entries of the event log (1 in all)";
    assert!(error.contains(part), "{error}");
}

#[test]
fn a_request_comes_back_to_each_driver_that_forwards_it() {
    let (kernel, driver, file) = open();
    for _ in 0..10 {
        let step = file.device_control(commands::FORWARD_TWICE, &[], 8).unwrap();
        assert_eq!((step.status, step.information), (NtStatus::SUCCESS, 3));
    }
    close(&kernel, driver, file);
}

#[test]
fn the_command_line_runs_and_traces_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.txt");
    fs::write(
        &script,
        "open 10 11\nwrite \"hello\"\nexpect success\nread 3\nexpect success \"hel\"\nclose\n",
    )
    .unwrap();
    let run = |arguments: &[&str]| {
        let mut command = common::run_command(common::wdm(), folder.path().join("out.etl"));
        common::said(command.args(arguments))
    };
    let (good, said) = run(&["--script", script.to_str().unwrap()]);
    assert!(good, "{said}");
    // The write and the read are events of the driver.
    assert_eq!(said.matches("WdkEtw.WdmTest Request").count(), 2, "{said}");
    let (good, said) = run(&[]);
    assert!(good, "{said}");
    assert!(said.contains("open"), "{said}");
}
