//! Tests the routines of ntoskrnl.exe. A driver calls them, and prints the errors that it finds.

use crate::common::{self, lines};
use std::{fs, path::Path, time::Duration};

use standin_kernel::{
    BugCheck, DeviceConfig, Fault, Guid, Identity, Kernel, KernelError, NtStatus, RegistryFile,
    RegistryValue,
};

/// Runs a service of the driver, which checks the results itself. Returns the output before its final
/// line.
fn passes(service: &str) -> Vec<String> {
    passes_in(service, None)
}

/// Runs a service, with a folder for files. See [`passes`].
fn passes_in(service: &str, folder: Option<&Path>) -> Vec<String> {
    let kernel = Kernel::new();
    if let Some(folder) = folder {
        kernel.set_folder(folder);
    }
    passes_on(&kernel, service)
}

/// Runs a service on a kernel that the test has prepared. See [`passes`].
fn passes_on(kernel: &Kernel, service: &str) -> Vec<String> {
    let driver = kernel.load_as(&common::kernel(), service).unwrap();
    let lines = passed(kernel, service);
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), [], "{service}");
    lines
}

/// Returns the output of a service before its final line.
fn passed(kernel: &Kernel, service: &str) -> Vec<String> {
    let mut lines = lines(kernel);
    let done = lines.pop().unwrap_or_default();
    let failed: Vec<&String> = lines.iter().filter(|line| line.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{service}: {failed:#?}");
    let checks: u32 = done.strip_prefix("done ").unwrap_or("?").parse().unwrap();
    println!("{service}: {checks} checks");
    lines
}

/// Runs a service that breaks a rule. Returns the bugcheck.
fn stops(service: &str) -> BugCheck {
    common::kernel_service_stops(&Kernel::new(), service)
}

/// Runs services that break a rule, each with a part of its bugcheck's message.
fn all_stop(services: &[(&str, &str)]) {
    for (service, part) in services {
        let bugcheck = stops(service);
        assert!(bugcheck.message.contains(part), "{service}: {bugcheck}");
    }
}

/// Declares tests that run services, which check the results themselves.
macro_rules! services {
    ($($test:ident: $($service:literal),+;)+) => {
        $(
            #[test]
            fn $test() {
                $(passes($service);)+
            }
        )+
    };
}

services! {
    what_others_established_on_windows_holds: "truths";
    objects_are_found_by_their_names_and_name_themselves: "namespace";
    apcs_run_on_their_threads_outside_of_regions_and_in_waits: "apcs";
    counted_strings_are_those_of_windows: "strings";
    threads_wait_for_events_mutexes_and_semaphores: "objects";
    system_threads_block_and_take_turns: "threads";
    dpcs_timers_and_work_items_run: "queues";
    initializations_identifiers_and_facts_about_threads_are_those_of_windows: "once";
    locks_exclude_each_other: "locks";
    pool_times_versions_and_objects_are_those_of_windows: "system";
    memory_is_described_and_kept_in_lists: "memory";
    variables_have_the_values_of_windows: "variables";
    addresses_are_probed_and_have_physical_pages: "addresses";
    locks_are_shared_and_queues_have_their_order: "shared";
    security_descriptors_have_their_forms: "security";
    objects_have_descriptors_by_which_access_is_checked: "object-security";
    resources_are_shared_and_bits_are_found: "resources";
    tables_keep_elements_in_order: "tables";
    characters_numbers_and_arrays_are_those_of_c: "characters";
    requests_and_threads_have_activity_ids: "activities";
    a_driver_gets_the_wmi_events_that_it_asked_for: "wmi";
    components_of_a_device_idle_and_become_active: "power-framework";
    registry_callbacks_are_notified_of_operations_on_keys: "registry-callbacks", "registry-callbacks-refer";
    registry_callbacks_are_notified_of_the_keys_of_drivers: "registry-callbacks-driver";
    an_operation_by_a_registry_callback_notifies_lower_callbacks: "registry-callbacks-nest";
    registry_callbacks_change_the_results_of_creations: "registry-callbacks-fail";
    registry_callbacks_provide_keys: "registry-callbacks-provide";
    the_removal_of_a_registry_callback_waits_for_it: "registry-callbacks-wait";
    events_have_handles_and_names: "named-events";
}

#[test]
fn a_thread_must_not_end_with_apcs_disabled() {
    for (service, count) in [
        ("fault-exit-critical", 0xFFFE),
        ("fault-exit-guarded", 0xFFFF_0000),
        ("fault-exit-mutex", 0xFFFF),
    ] {
        let bugcheck = stops(service);
        assert_eq!((bugcheck.code, bugcheck.parameters), (0x20, [0, count, 0, 1]), "{bugcheck}");
        assert!(bugcheck.message.contains("of a system thread ended in a "), "{bugcheck}");
    }
}

#[test]
fn text_is_compared_copied_and_printed() {
    let printed = passes("text");
    assert_eq!(
        printed,
        [
            "name=-5 123456789 0000000000001234 wide wid ab     7|ab   |-0042 %",
            "-1 2345 3",
            "1 y two",
            "list 9",
            "prefix: list 9",
        ]
    );
}

#[test]
fn what_must_not_be_done_with_regions_and_initializations_is_reported() {
    all_stop(&[
        ("fault-critical", "without a critical region"),
        ("fault-guarded", "without a guarded region"),
        ("fault-once", "an initialization that never completes"),
        ("fault-once-context", "for etw_kernel_driver::run_once::low_bits"),
        ("fault-guarded-unsafe", "outside a guarded region and below APC_LEVEL"),
        ("fault-rundown-freed", "that ExFreePool had freed from"),
        ("fault-rundown", "did not return"),
        ("fault-small-rundown", "for rundown protection of 8 bytes"),
    ]);
}

fn with_process(image: &str) -> Kernel {
    let kernel = Kernel::new();
    let identity = Identity { process: 40, thread: 44 };
    kernel.start_process(identity, image, "").unwrap();
    kernel
}

#[test]
fn a_process_has_an_image() {
    let kernel = with_process(r"\??\c:\Windows\a long name.exe");
    let printed = passes_on(&kernel, "images");
    let path = r"\Device\HarddiskVolume1\Windows\a long name.exe";
    assert_eq!(printed, ["System |".to_owned(), format!("a long name.ex {path}|")]);
    let kernel = with_process(r"\SystemRoot\System32\smss.exe");
    let printed = passes_on(&kernel, "images");
    assert_eq!(printed[1], r"smss.exe \SystemRoot\System32\smss.exe|");
}

#[test]
fn a_thread_attaches_to_one_process_at_a_time() {
    let other = || with_process(r"\??\C:\Windows\other.exe");
    passes_on(&other(), "attach");
    for (service, part) in [
        ("fault-attached", "attached to another process"),
        ("fault-ended-attached", "ended while the thread was attached to a process"),
    ] {
        let bugcheck = common::kernel_service_stops(&other(), service);
        assert!(bugcheck.message.contains(part), "{service}: {bugcheck}");
    }
}

#[test]
fn every_allocation_of_pool_can_be_made_to_fail() {
    let kernel = Kernel::new();
    let fault =
        Fault { routine: "ExAllocatePool2", status: NtStatus::NO_MEMORY, after: 0, times: 3 };
    kernel.inject(fault).unwrap();
    passes_on(&kernel, "no-memory");
}

#[test]
fn files_are_in_the_folder_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let windows = folder.path().join("Windows");
    std::fs::create_dir(&windows).unwrap();
    common::link("/", folder.path().join("link")).unwrap();
    passes_in("files", Some(folder.path()));
    assert!(windows.join("log.txt").exists());
    assert!(!folder.path().join("Sub/File.txt").exists());
}

#[test]
fn a_driver_opens_devices_and_sends_requests_with_handles() {
    passes("device-files");
}

#[test]
fn a_work_item_ends_its_impersonation() {
    let service = "fault-work-item-impersonates";
    let bugcheck = common::kernel_service_stops(&Kernel::new(), service);
    assert_eq!(bugcheck.code, 0xDF);
    assert!(bugcheck.message.contains("ended while it impersonated a client"), "{bugcheck}");
}

#[test]
fn routines_that_watch_the_system_are_registered() {
    let folder = tempfile::tempdir().unwrap();
    let path = without_integrity_check(folder.path());
    let kernel = Kernel::new();
    let driver = kernel.load_as(&path, "watchers").unwrap();
    passed(&kernel, "watchers");
    driver.unload().unwrap();
}

#[test]
fn a_driver_is_told_of_power_settings() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "power-settings").unwrap();
    assert_eq!(passed(&kernel, "power-settings"), ["setting 5d3e9a59 4 0 1"]);
    let source = "5d3e9a59-e9d5-4b00-a6bd-ff34ff516548".parse().unwrap();
    kernel.set_power_setting(source, &[1, 0, 0, 0]).unwrap();
    let other = Guid::from_bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
    kernel.set_power_setting(other, &[9, 0, 0, 0]).unwrap();
    // Only the registration for the other setting remains.
    assert_eq!(lines(&kernel).last().unwrap(), "setting 1 4 9 2");
    assert_eq!(lines(&kernel).len(), 3);
    driver.unload().unwrap();
    kernel.set_power_setting(other, &[8, 0, 0, 0]).unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn the_recorder_keeps_messages_until_it_stops() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "fault-recorder-left").unwrap();
    let said = lines(&kernel);
    assert!(!said.iter().any(|line| line.starts_with("FAILED")), "{said:#?}");
    let messages = kernel.recorder_messages();
    let seen: Vec<(u16, &[u8])> =
        messages.iter().map(|message| (message.number, message.data.as_slice())).collect();
    let values = [0_u64, 1, 2].map(u64::to_le_bytes);
    assert_eq!(seen, [(0, &values[0][..]), (1, &values[1]), (2, &values[2])]);
    assert_eq!((messages[0].level, messages[0].flag), (2, 1));
    assert_eq!(messages[0].guid.to_bytes(), [9; 16]);
    let error = driver.unload().expect_err("the log is left").to_string();
    assert!(error.contains("without WppAutoLogStop for its recorder log"), "{error}");
    kernel.leave_behind();
    passes("recorder");
}

#[test]
fn a_driver_is_called_again_after_its_entry() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "lifetime").unwrap();
    let mut said = lines(&kernel);
    let again = said.split_off(said.len() - 3);
    // The routine for boot drivers comes first; the second routine registers itself again.
    assert_eq!(again, ["reinitialized 1 1", "reinitialized 2 2", "reinitialized 3 3"]);
    assert!(said.pop().unwrap().starts_with("done "));
    assert_eq!(said, [""; 0]);
    driver.unload().unwrap();
}

#[test]
fn a_request_has_its_process() {
    /// A device control with the caller's own buffers.
    const NEITHER: u32 = 0x0022_2003;
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "serve").unwrap();
    let identity = Identity { process: 0x2000, thread: 0x2004 };
    let file = driver.open_own_device(identity).unwrap();
    let input = 41_u64.to_le_bytes();
    let answer = file.device_control(NEITHER, &input, 16).unwrap();
    assert_eq!(answer.status, NtStatus::SUCCESS);
    let expected = [42_u64.to_le_bytes(), 0x2000_u64.to_le_bytes()].concat();
    assert_eq!(answer.output, expected);
    file.close().unwrap();
    kernel.shut_down().unwrap();
    assert!(lines(&kernel).contains(&"shutdown".to_owned()));
    driver.unload().unwrap();
    let said = lines(&kernel);
    assert!(!said.iter().any(|line| line.starts_with("FAILED")), "{said:#?}");
}

/// Writes a copy of the driver without the `/INTEGRITYCHECK` flag, with which the WDK links drivers
/// in Rust.
fn without_integrity_check(folder: &Path) -> std::path::PathBuf {
    let mut bytes = fs::read(common::kernel()).unwrap();
    let headers = u32::from_le_bytes(bytes[0x3C..0x40].try_into().unwrap()) as usize;
    assert_ne!(bytes[headers + 24 + 70] & 0x80, 0);
    bytes[headers + 24 + 70] &= !0x80;
    let path = folder.join("unchecked.sys");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_script_starts_and_ends_processes_and_threads() {
    const SCRIPT: &str = r#"
        start-process 0x3000 "\??\C:\one.exe" "one"
        expect success
        start-thread 0x3000 0x3010
        end-thread 0x3000 0x3010
        end-process 0x3000
        start-process 0x4000 "\??\C:\one.exe"
        expect STATUS_ACCESS_DENIED
    "#;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.txt");
    fs::write(&script, SCRIPT).unwrap();
    let mut command = common::run_command(common::kernel(), folder.path().join("driver.etl"));
    let (good, said) = common::said(command.args(["--service", "watch", "--script"]).arg(script));
    let expected =
        ["process 4 12288 1", "thread 12288 12304 1", "thread 12288 12304 0", "process 4 12288 0"];
    assert!(good && expected.iter().all(|line| said.contains(line)), "{said}");
}

#[test]
fn processes_are_watched_and_refused() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "watch").unwrap();
    let identity = |process| Identity { process, thread: process + 4 };
    let image = r"\??\C:\one.exe";
    let process = kernel.start_process(identity(0x3000), image, "one").unwrap();
    process.load_image(r"\one.dll", 0x7000_0000, 0x1000).unwrap();
    process.end().unwrap();
    let refused = kernel.start_process(identity(0x4000), image, "");
    let Err(KernelError::Status { status, .. }) = refused else {
        panic!("the process was not refused");
    };
    assert_eq!(status, NtStatus::ACCESS_DENIED);
    driver.unload().unwrap();
    kernel.start_process(identity(0x5000), image, "").unwrap();
    let said = lines(&kernel);
    assert!(said[0].starts_with("done "), "{said:#?}");
    assert_eq!(
        said[1..],
        [
            "process 4 12288 1", "start 12288 of 4 14", "thread 12288 12292 1",
            "image 8 12288 0x70000000", "thread 12288 12292 0", "process 4 12288 0", "end 12288",
            "process 4 16384 1", "start 16384 of 4 14", "process 4 16384 0", "end 16384",
        ]
    );
}

#[test]
fn keys_and_values_are_those_of_the_registry() {
    let kernel = Kernel::new();
    kernel.set_parameter("registry", "Number", 42_u32);
    kernel.set_parameter("registry", "Text", "hello");
    passes_on(&kernel, "registry");
    let seen = kernel.parameter("registry", "seen");
    assert_eq!(seen, Some(RegistryValue::Dword(1)));
    assert_eq!(kernel.parameter("registry", "New"), None);
    // Every service key has these values.
    let path = r"\Registry\Machine\System\ControlSet001\Services\registry";
    assert_eq!(kernel.registry_value(path, "start"), Some(RegistryValue::Dword(3)));
}

#[test]
fn paths_are_relative_to_the_systems_keys() {
    let kernel = Kernel::new();
    passes_on(&kernel, "registry-relative");
    let map = r"\Registry\Machine\Hardware\DeviceMap";
    assert_eq!(kernel.registry_value(map, "Port"), None);
}

#[test]
fn tables_of_values_are_queried() {
    let kernel = Kernel::new();
    for (name, value) in [
        ("Number", RegistryValue::Dword(42)),
        ("Text", "hello".into()),
        ("List", RegistryValue::Texts(vec!["a".to_owned(), "bc".to_owned()])),
        ("Bytes", RegistryValue::Binary(vec![1, 2, 3, 4, 5, 6])),
        ("Expand", RegistryValue::Other(2, b"%\0X\0%\0\0\0".to_vec())),
    ] {
        kernel.set_parameter("registry-table", name, value);
    }
    passes_on(&kernel, "registry-table");
}

#[test]
fn devices_have_keys_and_interfaces() {
    let kernel = Kernel::new();
    kernel.set_parameter("devices", "Number", 42_u32);
    let driver = kernel.load_as(&common::kernel(), "devices").unwrap();
    let config = DeviceConfig::new().hardware_value("Hard", 1_u32).software_value("Soft", 2_u32);
    let device = driver.add_device_with(config).unwrap();
    passed(&kernel, "devices");
    // The interface that the driver enabled refers to the device.
    let identity = Identity { process: 1, thread: 2 };
    device.open(identity).unwrap().close().unwrap();
    common::leave(driver, &device);
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn a_device_with_components_reports_that_it_is_powered_on_after_sleep() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "components").unwrap();
    let device = driver.add_device().unwrap();
    for _ in 0..2 {
        device.power_cycle().unwrap();
    }
    device.remove().unwrap();
    passed(&kernel, "components");
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn what_no_key_can_be_is_refused() {
    let kernel = Kernel::new();
    let set = |path: &str, name: &str| kernel.set_registry_value(path, name, 1_u32);
    for (path, status) in [
        ("Software", NtStatus::OBJECT_PATH_SYNTAX_BAD),
        (r"\Registry\Machine\New", NtStatus::INVALID_PARAMETER),
    ] {
        match set(path, "Value") {
            Err(KernelError::Status { status: found, .. }) => assert_eq!(found, status, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
    let long = "x".repeat(20_000);
    assert!(set(r"\Registry\Machine\Software", &long).is_err());
    let name = "x".repeat(300);
    let error = kernel.load_as(&common::kernel(), &name).err().unwrap();
    assert!(error.to_string().contains("the service's key"), "{error}");
}

#[test]
fn a_file_of_the_registry_editor_changes_the_registry() {
    let file = b"Windows Registry Editor Version 5.00\r\n\r\n\
        [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\registry\\Parameters]\r\n\
        \"Number\"=dword:0000002a\r\n\"Text\"=\"hello\"\r\n\"Gone\"=-\r\n\
        [-HKEY_LOCAL_MACHINE\\SOFTWARE\\Old]\r\n";
    let file = RegistryFile::parse(file).unwrap();
    let kernel = Kernel::new();
    let old = r"\Registry\Machine\Software\Old\Below";
    kernel.set_registry_value(old, "X", 1_u32).unwrap();
    kernel.set_parameter("registry", "Gone", 1_u32);
    kernel.import_registry(&file).unwrap();
    assert_eq!(kernel.registry_value(old, "X"), None);
    passes_on(&kernel, "registry");
}

#[test]
fn a_thread_runs_as_time_passes_and_ends_before_the_unload() {
    let run = || {
        let kernel = Kernel::starting_at(std::time::UNIX_EPOCH);
        let driver = kernel.load_as(&common::kernel(), "together").unwrap();
        kernel.advance(Duration::from_millis(10)).unwrap();
        driver.unload().unwrap();
        lines(&kernel)
    };
    let lines = run();
    let rounds = lines.last().and_then(|line| line.strip_suffix(" rounds"));
    let rounds: u32 = rounds.unwrap().parse().unwrap();
    assert!((9..=11).contains(&rounds), "{rounds}");
    // Identical runs interleave identically.
    for _ in 0..3 {
        assert_eq!(run(), lines);
    }
}

#[test]
fn faults_are_reported() {
    all_stop(&[
        ("fault-wait-forever", "would wait forever: no remaining work can signal"),
        ("fault-wait-raised", "was called to wait at DISPATCH_LEVEL"),
        ("fault-event", "which was not initialized"),
        ("fault-mutex", "for a mutex that its caller does not own"),
        ("fault-mutex-limit", "is acquired too often and raised 0xC0000191"),
        ("fault-executable-pool", "which is not executable: only images are"),
        ("fault-semaphore", "to add 1 to a semaphore's count of 1; its limit is 1"),
        ("fault-spin-lock-twice", "for a spin lock that its caller already holds"),
        ("fault-spin-lock", "for a spin lock that its caller does not hold"),
        ("fault-fast-mutex-twice", "for a mutex that its caller already owns"),
        ("fault-close", "0x0000000000001234, which is not an open handle"),
        ("fault-dereference", "to which the driver holds no reference"),
        ("fault-dpc", "which was not initialized"),
        ("fault-timer-freed", "for a block with a timer that is set"),
        ("fault-work-item-twice", "for a work item that is already queued"),
        ("fault-region", "without a critical region that its thread has entered"),
        ("fault-thread", "with a bad pointer"),
        ("fault-print", "with a directive for wide characters at DISPATCH_LEVEL"),
        ("fault-assert", "assertion `1 == 2` failed at file.c:7"),
        ("fault-break", "no kernel debugger is attached"),
        ("fault-probe-stack", "which is in the driver's stack and not in user space, and raised"),
        ("fault-probe-misaligned", "which is not aligned to 8 bytes"),
        ("fault-probe-end", "which are not in user space"),
        // In a Windows process, the page may be readable.
        ("fault-probe-nothing", if cfg!(windows) { "cannot be " } else { "cannot be read" }),
        (
            "fault-raise",
            "raised STATUS_ACCESS_DENIED (0xC0000022), which no handler of the driver took",
        ),
        ("fault-pageable", "pageable"),
        ("fault-shared-twice", "for a spin lock that its caller already holds"),
        ("fault-shared", "for a spin lock that its caller does not share"),
        ("fault-queue-forever", "would wait forever"),
        ("fault-device-timer", "which is not a device whose timer was initialized"),
        ("fault-detach", "that is not attached to a process"),
        ("fault-watcher-unknown", "which is not a registration from ObRegisterCallbacks"),
        ("fault-registry-irql", "ZwFlushKey was called at DISPATCH_LEVEL"),
        (
            "fault-registry-link",
            "for a symbolic link in the registry, which the stand-in kernel does not provide",
        ),
        (
            "fault-registry-bypass",
            "returned STATUS_CALLBACK_BYPASS for a success without a key in ResultObject",
        ),
        ("fault-registry-unregister", "and would wait for itself"),
        ("fault-registry-name", "with a bad pointer"),
        (
            "fault-registry-unchecked",
            r"without RTL_QUERY_REGISTRY_TYPECHECK for \REGISTRY\USER\.DEFAULT",
        ),
        ("fault-driver-key", "which is not a driver object"),
    ]);
}

#[test]
fn faults_with_resources_and_bitmaps_are_reported() {
    all_stop(&[
        ("fault-resource", "for a resource that the thread has not acquired"),
        ("fault-resource-freed", "for a block with a resource (ERESOURCE) that was not deleted"),
        ("fault-resource-device", "for a device with a resource (ERESOURCE) that was not deleted"),
        ("fault-resource-upgrade", "for a resource that its caller already shares"),
        ("fault-bitmap", "for 8 bits from bit 16 of a bitmap with 20 bits"),
    ]);
}

#[test]
fn faults_with_events_and_components_are_reported() {
    all_stop(&[
        ("fault-activity-request", "which is not a request"),
        ("fault-activity-raised", "without an activity id at DISPATCH_LEVEL"),
        ("fault-wmi-object", "which is not a data block object"),
        ("fault-wmi-no-block", "IoWMIWriteEvent was called from"),
        ("fault-wmi-no-block", "which is not a pool block"),
        ("fault-component-idle", "that was idled more often than it was activated"),
        ("fault-component-answer", "although no callback that it answers was called"),
        ("fault-component-twice", "registered with the power management framework"),
    ]);
}

#[test]
fn an_unchecked_value_of_a_user_is_a_failed_security_check() {
    let bugcheck = stops("fault-registry-unchecked");
    assert_eq!((bugcheck.code, bugcheck.parameters[0]), (0x139, 9));
}

#[test]
fn what_a_driver_left_cannot_be_released_later() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::kernel(), "fault-wmi-left").unwrap();
    let printed = lines(&kernel);
    let object = printed.iter().find_map(|line| line.strip_prefix("left "));
    let object = u64::from_str_radix(object.unwrap(), 16).unwrap();
    driver.unload().expect_err("the object is open");
    let service = "fault-wmi-release";
    for (name, half) in [("Low", object & 0xFFFF_FFFF), ("High", object >> 32)] {
        kernel.set_parameter(service, name, u32::try_from(half).unwrap());
    }
    let bugcheck = common::bugcheck(kernel.load_as(&common::kernel(), service));
    let part = "to which the driver holds no reference";
    assert!(bugcheck.message.contains(part), "{bugcheck}");
}

#[test]
fn what_is_left_at_the_unload_is_reported() {
    for (service, parts) in [
        ("fault-timer-left", &["while its timer is set"][..]),
        (
            "fault-watcher-left",
            &[
                "while its routine for images ", ", registered at ", "watchers.rs:",
                ", is registered",
            ],
        ),
        ("fault-wmi-left", &["while its WMI data block object is open"]),
        ("fault-power-setting-left", &["while its callback for a power setting is registered"]),
        (
            "fault-component-left",
            &["while its device is registered with the power management framework"],
        ),
        ("fault-pages-left", &["without freeing pages or contiguous memory"]),
        (
            "fault-thread-left",
            &["while its system thread with the routine", "sleep_long", "PsCreateSystemThread"],
        ),
    ] {
        let kernel = Kernel::new();
        let driver = kernel.load_as(&common::kernel(), service).unwrap();
        let error = driver.unload().expect_err(service).to_string();
        for part in parts {
            assert!(error.contains(part), "{service}: {error}");
        }
        kernel.leave_behind();
    }
}
