//! Tests that reports of bugs name the author's line first, followed by the call stack.

use crate::common;
use std::time::Duration;

use standin_kernel::{
    EnableParameters, Fault, Identity, Kernel, KernelConfig, KernelError, NtStatus, SessionConfig,
    Target, Violation,
};

fn config() -> KernelConfig {
    KernelConfig {
        special_pool: true,
        time_limit: Duration::from_millis(200),
        ..KernelConfig::default()
    }
}

/// Loads the rules driver as a service, lets it run, and unloads it. Returns the report.
fn report(service: &str) -> String {
    let kernel = Kernel::with_config(config());
    let result = kernel.load_as(&common::rules_driver(), service).and_then(|driver| {
        if service == "double-completion" {
            let device = driver.add_device()?;
            device.open(Identity::SYSTEM)?.write(b"x")?;
            device.remove()?;
        }
        driver.unload()
    });
    let error: KernelError = match result {
        Ok(()) => panic!("{service} was not caught"),
        Err(error) => error,
    };
    error.to_string()
}

#[test]
fn the_first_line_of_each_report_has_the_authors_line() {
    let rows: [(&str, &str); 16] = [
        (
            "not-canonical",
            "write to 0x8000000000001230, which is not a canonical address, at PASSIVE_LEVEL (0), in ",
        ),
        (
            "privileged",
            ", cr3`, which a driver may execute on Windows, but which the stand-in kernel does not \
             provide, at PASSIVE_LEVEL (0), in ",
        ),
        ("leak", "unloaded without freeing 128 bytes"),
        ("forgotten-unregister", "without EtwUnregister"),
        ("pageable-data", "is in pageable memory"),
        ("user-pointer", "which is not in system space"),
        ("double-completion", "which is already completed"),
        ("wait-at-dispatch", "KeDelayExecutionThread was called at DISPATCH_LEVEL"),
        ("lock-held", "WdfSpinLockAcquire raised the IRQL from"),
        ("lock-then-irql", "KfRaiseIrql raised the IRQL from"),
        ("unload-fault", "read from 0x0000000000000000"),
        ("use-after-free", "that ExFreePool freed"),
        ("overrun", "write to 0x"),
        ("stack-overflow", "the kernel stack of 24 KiB overflowed"),
        ("endless-loop", "neither returned nor called the kernel"),
        ("fast-fail", "FAST_FAIL_STACK_COOKIE_CHECK_FAILURE (2)"),
    ];
    for (service, what) in rows {
        let report = report(service);
        let (first, stack) = report.split_once('\n').unwrap_or((&report, ""));
        let line = common::line_of(service);
        assert!(first.contains(what), "{service}: {report}");
        assert!(first.contains(&format!("{line} (")), "{service}, {line}: {report}");
        // The stack follows, from the same line to the entry point.
        assert!(stack.contains(&format!("({line})")), "{service}: {report}");
        let outermost = match service {
            "double-completion" => "etw_rules_driver::findings::complete_twice",
            "unload-fault" => "etw_rules_driver::unload",
            _ => "wdk_sys::driver_entry::FxDriverEntry",
        };
        assert!(stack.contains(outermost), "{service}: {report}");
    }
}

#[test]
fn a_general_protection_fault_has_the_parameters_of_windows() {
    for (service, status, address) in [
        ("not-canonical", 0xC000_0005, u64::MAX),
        ("not-canonical-at-dispatch", 0xC000_0005, u64::MAX),
        ("privileged", 0xC000_0096, 0),
    ] {
        let kernel = Kernel::with_config(config());
        let bugcheck = common::bugcheck(kernel.load_as(&common::rules_driver(), service));
        // KMODE_EXCEPTION_NOT_HANDLED.
        assert_eq!(bugcheck.code, 0x1E, "{bugcheck}");
        let [code, _, _, of] = bugcheck.parameters;
        assert_eq!((code, of), (status, address), "{bugcheck}");
    }
}

#[test]
fn a_forgotten_unregister_names_the_unload_routine() {
    let report = report("forgotten-unregister");
    let first = report.lines().next().unwrap();
    let unload =
        "; its unload routine is etw_rules_driver::unload (tests/drivers/rules/src/lib.rs:";
    assert!(first.contains(unload), "{report}");
}

#[test]
fn a_recursion_is_one_line_of_the_stack() {
    let report = report("stack-overflow");
    assert!(report.lines().count() < 12 && report.contains(" times)"), "{report}");
}

/// Runs the sample driver where page faults are not allowed, although its writes do not set the
/// flag for this.
fn warnings_of_the_sample() -> Vec<Violation> {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("diagnostics.etl");
    let session = kernel.start_session(SessionConfig::to_file("findings", file)).unwrap();
    let everything = EnableParameters { level: 5, ..EnableParameters::default() };
    let target = Target::Provider(etw_scenarios::provider());
    kernel.enable(session, target, everything).unwrap();
    let (driver, device) = common::started(&kernel, &common::sample());
    let file = device.open(Identity::SYSTEM).unwrap();
    kernel.forbid_page_faults(true);
    for _ in 0..3 {
        file.write(b"x").unwrap();
    }
    kernel.forbid_page_faults(false);
    file.close().unwrap();
    common::leave(driver, &device);
    kernel.warnings()
}

#[test]
fn a_warning_names_the_event_and_is_counted_for_it() {
    let warnings = warnings_of_the_sample();
    let rows = [
        ("WriteData", "driver/src/trace.rs:", "etw_sample_driver::trace::write_data"),
        ("Write", "driver/src/trace.rs:", "etw_sample_driver::trace::write"),
    ];
    assert_eq!(warnings.len(), rows.len(), "{warnings:#?}");
    for (warning, (event, file, function)) in warnings.iter().zip(rows) {
        let text = warning.to_string();
        let first = text.lines().next().unwrap();
        let event = format!("event `{event}` of WdkEtw.SampleDriver: EtwWriteEx was called");
        assert!(first.starts_with(&event), "{text}");
        // The reported location is neither in the library nor in the code that its macros generate,
        // but in the function that uses the macro.
        assert!(first.contains(&format!(" from {file}")), "{text}");
        assert!(first.contains(&format!(" ({function}, etw_sample_driver.sys+0x")), "{text}");
        assert!(first.ends_with("[V51] (3 times)") && warning.count == 3, "{text}");
        assert!(text.contains("at wdk_etw::"), "{text}");
        assert!(
            text.contains("at etw_sample_driver::queue::write (driver/src/queue.rs:"),
            "{text}"
        );
    }
}

#[test]
fn the_trace_until_a_bugcheck_is_written_and_handed_out() {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("until.etl");
    let session = kernel.start_session(SessionConfig::to_file("until", &file)).unwrap();
    let target = Target::Provider(etw_scenarios::provider());
    let everything = EnableParameters { level: 5, ..EnableParameters::default() };
    kernel.enable(session, target, everything).unwrap();
    let driver = kernel.load(&common::sample()).unwrap();
    driver.add_device().unwrap();
    // Another driver makes the kernel bugcheck.
    let bugcheck = common::bugcheck(kernel.load_as(&common::rules_driver(), "fast-fail"));
    assert_eq!((bugcheck.code, bugcheck.parameters[0]), (0x139, 2));
    let report = kernel.stop_session(session).unwrap();
    let trace = etl_file::Trace::open(&file).unwrap();
    assert_eq!(trace.damages(), []);
    let events = u64::try_from(trace.events().count()).unwrap();
    assert_eq!((report.events, report.file), (events, file));
    assert!(events > 1);
    // The session can be stopped only once.
    assert!(matches!(kernel.stop_session(session), Err(KernelError::Control(_))));
}

#[test]
fn a_fault_in_a_memory_routine_names_it_and_its_caller() {
    let report = report("copy-from-nowhere");
    let first = report.lines().next().unwrap();
    assert!(first.contains(" in memcpy, called from tests/drivers/rules/src/lib.rs:"), "{report}");
    assert!(first.contains("(etw_rules_driver::copy_from_nowhere, "), "{report}");
    assert!(!first.contains("code at 0x"), "{report}");
}

#[test]
fn a_return_through_an_overwritten_stack_is_guessed_at() {
    let report = report("smashed-stack");
    let first = report.lines().next().unwrap();
    assert!(
        first.contains("code at 0x0000004141414141, which no driver code called; "),
        "{report}"
    );
    assert!(first.contains("(a guess from the rest of the stack)"), "{report}");
    assert!(report.contains("FxDriverEntry"), "{report}");
}

#[test]
fn a_panic_of_a_debug_build_is_called_one() {
    let driver = common::driver("debug", "etw_rules_driver.sys");
    let kernel = Kernel::with_config(config());
    let error = kernel.load_as(&driver, "panic").err().unwrap().to_string();
    let first = error.lines().next().unwrap();
    let said = "bugcheck 0x1E: the driver panicked at PASSIVE_LEVEL (0), in \
                tests/drivers/rules/src/lib.rs:";
    assert!(first.starts_with(said), "{error}");
    assert!(first.ends_with("; its panic handler stopped at a breakpoint"), "{error}");
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    let kernel = Kernel::new();
    let error = kernel.open(r"\\.\Nothing", Identity::SYSTEM).err().unwrap();
    let said = r"cannot open `\\.\Nothing`: no device has this name or symbolic link (STATUS_";
    assert!(error.to_string().starts_with(said), "{error}");
}

#[test]
fn the_framework_fails_where_a_fault_says_so() {
    let kernel = Kernel::new();
    kernel.inject(Fault::next("WdfDeviceCreate", NtStatus::NO_MEMORY)).unwrap();
    let driver = kernel.load(&common::sample()).unwrap();
    let error = driver.add_device().err().unwrap();
    assert!(error.to_string().contains("STATUS_NO_MEMORY"), "{error}");
    driver.add_device().unwrap().remove().unwrap();
    driver.unload().unwrap();
    let unknown = Fault::next("WdfDeviceCrate", NtStatus::NO_MEMORY);
    let error = kernel.inject(unknown).err().unwrap().to_string();
    let said = "fault injection does not support `WdfDeviceCrate`; did you mean \
                `WdfDeviceCreate`? It supports most provided routines that return an NTSTATUS";
    assert!(error.starts_with(said), "{error}");
}

#[test]
fn providers_that_registered_are_known_by_name() {
    let kernel = Kernel::new();
    assert_eq!(kernel.providers(), []);
    kernel.load(&common::sample()).unwrap().unload().unwrap();
    let name = "WdkEtw.SampleDriver".to_owned();
    assert_eq!(kernel.providers(), [(etw_scenarios::provider(), Some(name))]);
}

#[test]
fn a_session_can_enable_every_provider_that_registers() {
    let kernel = Kernel::new();
    let folder = tempfile::tempdir().unwrap();
    let start = |name: &str| {
        let file = folder.path().join(format!("{name}.etl"));
        let config = SessionConfig::to_file(name, file);
        kernel.start_session(config).unwrap()
    };
    let everything = EnableParameters { level: 5, ..EnableParameters::default() };
    let before = start("before");
    kernel.enable_every_provider(before, everything.clone()).unwrap();
    assert_eq!(kernel.targets_of(before), []);
    // Targets that the session enables explicitly keep their parameters.
    let lower = start("lower");
    let target = Target::Provider(etw_scenarios::provider());
    let informational = EnableParameters { level: 4, ..EnableParameters::default() };
    kernel.enable(lower, target, informational).unwrap();
    kernel.enable_every_provider(lower, everything.clone()).unwrap();
    let driver = kernel.load(&common::sample()).unwrap();
    assert_eq!(kernel.targets_of(before), [target]);
    // A provider that is already registered is enabled immediately.
    let after = start("after");
    kernel.enable_every_provider(after, everything).unwrap();
    assert_eq!(kernel.targets_of(after), [target]);
    let device = driver.add_device().unwrap();
    let file = device.open(Identity::SYSTEM).unwrap();
    file.write(b"x").unwrap();
    file.close().unwrap();
    common::leave(driver, &device);
    let [before, after, lower] =
        [before, after, lower].map(|session| kernel.stop_session(session).unwrap().events);
    // Only the first session contains the event from the load.
    assert_eq!(before, after + 1);
    assert!(lower < after && lower > 0, "{lower} of {after}");
    // A session that has ended enables no providers.
    kernel.load(&common::sample()).unwrap().unload().unwrap();
}
