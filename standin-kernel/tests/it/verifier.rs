//! Tests that the verifier detects faulty drivers, with a message that contains the fault, its
//! location and the IRQL.

use crate::common;
use std::fs;

use standin_kernel::{BugCheck, Kernel, KernelError, Rule, Violations};

/// Loads the rules driver as a service, and expects a bugcheck.
fn stops(service: &str) -> BugCheck {
    common::bugcheck(Kernel::new().load_as(&common::rules_driver(), service))
}

/// Loads and unloads the rules driver as a service, and expects violations.
fn complains(service: &str) -> Violations {
    let driver = Kernel::new()
        .load_as(&common::rules_driver(), service)
        .unwrap_or_else(|error| panic!("{service}: {error}"));
    match driver.unload() {
        Err(KernelError::Violations(violations)) => violations,
        Err(error) => panic!("{service}: {error}"),
        Ok(()) => panic!("{service} was not caught"),
    }
}

fn assert_says(sentence: &str, parts: &[&str]) {
    for part in parts {
        assert!(sentence.contains(part), "{part:?} is not in: {sentence}");
    }
    let (_, offset) = sentence
        .split_once("etw_rules_driver.sys+0x")
        .unwrap_or_else(|| panic!("no image offset in: {sentence}"));
    let digits = offset.chars().take_while(char::is_ascii_hexdigit).count();
    assert!((3..=6).contains(&digits), "no image offset in: {sentence}");
}

#[test]
fn a_well_behaved_driver_is_clean() {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::rules_driver(), "well-behaved").unwrap();
    assert_eq!(kernel.statistics().registrations, 1);
    driver.unload().unwrap();
    assert_eq!(kernel.statistics().registrations, 0);
}

#[test]
fn leaked_pool_is_reported_with_tag_and_place() {
    let violations = complains("leaked-pool");
    assert_eq!(violations.0.len(), 1);
    assert_eq!(violations.0[0].rule, Rule::PoolLeak);
    assert_says(
        &violations.to_string(),
        &["64 bytes", "'Leak'", "ExAllocatePool2", "PASSIVE_LEVEL", "etw_rules_driver::allocate"],
    );
}

#[test]
fn a_provider_left_registered_is_reported_with_its_place() {
    let violations = complains("left-registered");
    assert_eq!(violations.0.len(), 1);
    assert_eq!(violations.0[0].rule, Rule::ProviderLeftRegistered);
    assert_says(
        &violations.to_string(),
        &[
            "without EtwUnregister", "{7c1a1b2e-0e5f-4b7c-9c62-5d0a7a3f10c4}",
            "EtwRegister, called at PASSIVE_LEVEL", "V04",
        ],
    );
}

#[test]
fn registering_at_dispatch_level_is_a_bugcheck() {
    let bugcheck = stops("registered-at-dispatch");
    assert_eq!(bugcheck.code, 0xC4);
    assert_says(
        &bugcheck.message,
        &["EtwRegister", "DISPATCH_LEVEL (2)", "PASSIVE_LEVEL (0)", "V01"],
    );
    assert_eq!(bugcheck.irql, standin_kernel::Irql::DISPATCH_LEVEL);
    assert_says(&bugcheck.calls.join("\n"), &["WdfSpinLockAcquire", "EtwRegister"]);
}

#[test]
fn a_deleted_object_is_named_as_such() {
    assert_says(
        &stops("deleted-object").message,
        &[
            "WdfSpinLockAcquire",
            "is the handle of an object that was deleted",
            "expected a WDFSPINLOCK",
        ],
    );
}

#[test]
fn a_double_free_is_a_bugcheck() {
    let bugcheck = stops("freed-twice");
    assert_eq!(bugcheck.code, 0xC2);
    assert_says(&bugcheck.message, &["ExFreePool", "'Leak'", "had freed"]);
}

#[test]
fn a_handle_of_another_kind_is_a_bugcheck() {
    let bugcheck = stops("wrong-handle");
    assert_says(&bugcheck.message, &["WdfTimerStart", "is a WDFSPINLOCK", "expected a WDFTIMER"]);
}

#[test]
fn a_released_registration_handle_is_a_bugcheck() {
    let bugcheck = stops("stale-handle");
    assert_says(&bugcheck.message, &["EtwUnregister", "had released", "V05"]);
}

#[test]
fn a_framework_function_that_is_not_provided_is_named() {
    let bugcheck = stops("not-provided");
    assert_says(&bugcheck.message, &["WdfIoResourceListGetCount", "does not provide"]);
}

#[test]
fn a_panic_is_reported_with_its_line() {
    let bugcheck = stops("panic");
    assert_eq!(bugcheck.code, u32::from_be_bytes(*b"RPNC"));
    assert_says(&bugcheck.message, &["panicked at", "lib.rs:", "KeBugCheckEx"]);
}

#[test]
fn a_kernel_that_bugchecked_runs_nothing_more() {
    let kernel = Kernel::new();
    let first = common::bugcheck(kernel.load_as(&common::rules_driver(), "freed-twice"));
    assert_eq!(common::bugcheck(kernel.advance(std::time::Duration::from_millis(1))), first);
}

/// Expects a processor exception with a bugcheck code and parts of the message. The process must
/// continue.
fn traps(service: &str, code: u32, first: u64, parts: &[&str]) {
    let bugcheck = stops(service);
    assert_eq!((bugcheck.code, bugcheck.parameters[0]), (code, first), "{bugcheck}");
    assert_says(&bugcheck.message, parts);
}

#[test]
fn access_violations_are_bugchecks_and_do_not_end_the_process() {
    let parts = ["read from 0x0000000000000000", "PASSIVE_LEVEL", "etw_rules_driver::read_null"];
    traps("read-null", 0x1E, 0xC000_0005, &parts);
    let parts =
        ["write to 0x00000000DEAD0000", "DISPATCH_LEVEL", "etw_rules_driver::write_at_dispatch"];
    traps("write-at-dispatch", 0xD1, 0xDEAD_0000, &parts);
}

#[test]
fn a_fault_outside_the_driver_names_its_caller() {
    let parts =
        ["instruction fetch from 0x0000000000000008", "called from", "etw_rules_driver::call_null"];
    traps("call-null", 0x1E, 0xC000_0005, &parts);
    let parts = ["read from 0x000000000000", "called from", "etw_rules_driver::copy_from_nowhere"];
    traps("copy-from-nowhere", 0x1E, 0xC000_0005, &parts);
}

#[test]
fn an_invalid_instruction_or_division_is_a_bugcheck() {
    let parts = ["division by zero", "etw_rules_driver::divide"];
    traps("divide", 0x1E, 0xC000_0094, &parts);
    let parts = ["illegal instruction", "etw_rules_driver::illegal"];
    traps("illegal", 0x1E, 0xC000_001D, &parts);
}

#[test]
fn a_stack_overflow_is_a_bugcheck() {
    let parts = ["kernel stack of 24 KiB", "etw_rules_driver::use_up_the_stack"];
    // UNEXPECTED_KERNEL_MODE_TRAP, for a double fault.
    traps("stack", 0x7F, 8, &parts);
}

/// The driver's builds. Both contain functions with more than a page of local variables.
const BUILDS: [&str; 2] = ["debug", "release"];

#[test]
fn a_frame_of_two_pages_is_probed_and_used() {
    for build in BUILDS {
        let image = common::driver(build, "etw_rules_driver.sys");
        let driver = Kernel::new().load_as(&image, "large-frame").unwrap();
        driver.unload().unwrap();
        let symbols = fs::read(image.with_extension("pdb")).unwrap();
        assert!(
            symbols.windows(8).any(|window| window == b"__chkstk"),
            "the {build} build does not probe its stack"
        );
    }
}

#[test]
fn a_frame_that_is_larger_than_the_stack_ends_at_its_guard_page() {
    for build in BUILDS {
        let image = common::driver(build, "etw_rules_driver.sys");
        let bugcheck = common::bugcheck(Kernel::new().load_as(&image, "frame-beyond-the-stack"));
        assert_says(&bugcheck.to_string(), &["kernel stack of 24 KiB", "__chkstk"]);
    }
}
