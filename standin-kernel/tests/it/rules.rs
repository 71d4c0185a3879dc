//! Tests that the verifier detects violations of each rule.
//!
//! The rules driver's services are named after the rules that they break.

use crate::common;
use std::collections::BTreeSet;

use standin_kernel::{
    BugCheck, EnableParameters, Fault, FilterData, Guid, Kernel, KernelConfig, KernelError,
    NtStatus, Rule, SessionConfig, Severity, Target, UnspecifiedBehaviour, Violation,
};

/// The bugcheck and the warnings of a run.
#[derive(Debug)]
struct Found {
    bugcheck: Option<BugCheck>,
    warnings: Vec<Violation>,
}

fn provider() -> Target {
    let guid: Guid = "7c1a1b2e-0e5f-4b7c-9c62-5d0a7a3f10c4".parse().unwrap();
    Target::Provider(guid)
}

/// Runs the rules driver as a service. Its provider is enabled before the driver is loaded, and
/// again while it runs.
fn run(service: &str, config: KernelConfig) -> Found {
    let kernel = Kernel::with_config(config);
    let folder = tempfile::tempdir().unwrap();
    let bugcheck = match drive(&kernel, service, &folder.path().join("rules.etl")) {
        Ok(()) => None,
        Err(KernelError::BugCheck(bugcheck)) => Some(bugcheck),
        Err(error) => panic!("{service}: {error}"),
    };
    Found { bugcheck, warnings: [kernel.warnings(), kernel.notes()].concat() }
}

/// A kernel whose threads have activity ids although they have no TEB.
fn with_activities() -> KernelConfig {
    KernelConfig {
        unspecified_behaviour: UnspecifiedBehaviour {
            activity_without_teb: NtStatus::SUCCESS,
            ..UnspecifiedBehaviour::default()
        },
        ..KernelConfig::default()
    }
}

fn drive(kernel: &Kernel, service: &str, file: &std::path::Path) -> Result<(), KernelError> {
    let session = kernel
        .start_session(SessionConfig { buffer_kb: 4, ..SessionConfig::to_file("rules", file) })?;
    let mut parameters = EnableParameters {
        filter: Some(FilterData { id: 1, version: 0, data: vec![1, 2, 3] }),
        ..EnableParameters::default()
    };
    if service == "v11" {
        kernel.inject(Fault::next("EtwRegister", NtStatus::NO_MEMORY))?;
    }
    kernel.forbid_page_faults(service.starts_with("v51"));
    kernel.enable(session, provider(), parameters.clone())?;
    let driver = kernel.load_as(&common::rules_driver(), service)?;
    parameters.level = 4;
    kernel.enable(session, provider(), parameters)?;
    driver.unload()?;
    kernel.stop_session(session)?;
    Ok(())
}

/// The services that cause a bugcheck, with the rule and part of the message.
const STOPS: &[(&str, Rule, &str)] = &[
    ("registered-at-dispatch", Rule::EtwRegisterIrql, "EtwRegister was called at DISPATCH_LEVEL"),
    ("v02", Rule::EtwUnregisterIrql, "EtwUnregister was called at DISPATCH_LEVEL"),
    ("v03", Rule::EtwSetInformationIrql, "EtwSetInformation was called at DISPATCH_LEVEL"),
    ("stale-handle", Rule::HandleReleased, "which EtwUnregister had released"),
    ("v06", Rule::UnregisterInCallback, "where it would wait for itself"),
    ("v08", Rule::RegisterPointer, "which is not in system space"),
    ("v09", Rule::DiscardedCode, "discarded after the driver started"),
    ("v09-context", Rule::DiscardedCode, "that ExFreePool freed"),
    ("v12", Rule::HandleNeverIssued, "which EtwRegister never returned"),
    ("v20", Rule::EnableCallbackIrql, "was called at PASSIVE_LEVEL (0) and returned at DISPATCH"),
    ("v21", Rule::EnableCallbackBlocks, "KeDelayExecutionThread"),
    ("v21-lock", Rule::EnableCallbackBlocks, "a wait lock that an enable callback acquires"),
    ("v22", Rule::BorrowedDataKept, "was borrowed by an enable callback that has returned"),
    ("v27-garbage", Rule::HandleNotYetStored, "inside EtwRegister"),
    ("v28", Rule::FilterOverrun, "past the end of the filter data"),
    ("v40", Rule::PageableData, "is in paged pool"),
    ("v40-section", Rule::PageableData, "is in a pageable section"),
    ("v41", Rule::UserSpaceData, "event data at 0x000000007FFE0000"),
    ("v43", Rule::NullData, "8 bytes of data at address 0"),
    ("v54", Rule::FreedData, "that ExFreePool freed"),
    ("v54-stack", Rule::FreedData, "below the stack pointer"),
    ("v60", Rule::ActivityIrql, "with code 1 at DISPATCH_LEVEL"),
    ("v61", Rule::ActivityPointer, "which is not in system space"),
    ("v61-paged", Rule::PageableData, "is in paged pool"),
];

/// The services that cause a warning, with the rule and part of the message.
const WARNINGS: &[(&str, Rule, &str)] = &[
    ("v07", Rule::HandleOverwritten, "the old handle is lost"),
    ("v08-null", Rule::RegisterPointer, "with a null pointer for the provider id"),
    ("v10", Rule::RegistrationChurn, "register the provider once per driver load"),
    ("v11", Rule::HandleOfFailure, "EtwRegister had failed"),
    ("v27", Rule::HandleNotYetStored, "before EtwRegister stored the registration handle"),
    ("v30", Rule::MalformedTraits, "of 4 bytes whose size field is 5"),
    ("v31", Rule::TraitsSetTwice, "already has traits"),
    ("v32", Rule::LargeTraits, "of 300 bytes"),
    ("v33", Rule::ReservedTrait, "of type 5"),
    ("v34", Rule::GroupTrait, "is 2 bytes long, not 16"),
    ("v35", Rule::DescriptorTypeSwitch, "[01, 00]"),
    ("v36", Rule::InformationClass, "the unknown information class 7"),
    ("v39", Rule::EmptyInformation, "0 bytes at 0x8"),
    ("v37", Rule::TypeTooEarly, "data descriptor 0 of type 1"),
    ("v38", Rule::Channel, "channel 12"),
    ("v38-described", Rule::Channel, "channel 11"),
    ("v42", Rule::TooManyDescriptors, "129 data descriptors"),
    ("v43-array", Rule::NullData, "1 data descriptors that are null"),
    ("v44", Rule::LargeEvent, "the maximum is 65,535"),
    ("v44-buffer", Rule::LargeEvent, "does not fit in a session's buffer"),
    ("v45", Rule::ReservedBytes, "reserved bytes in data descriptor 0"),
    ("v46", Rule::UnknownType, "of the unknown type 9"),
    ("v47", Rule::UnknownFlags, "the flags 0x8"),
    ("v48", Rule::UnknownFilterBits, "the filter bits 0x10000000000"),
    ("v49", Rule::NoLevel, "level 0"),
    ("v49-keyword", Rule::NoKeyword, "no keyword"),
    ("v49-high", Rule::ReservedDescriptorValue, "keyword bits 0x1000000000000000"),
    ("v49-level", Rule::ReservedDescriptorValue, "level 9"),
    ("v49-opcode", Rule::ReservedDescriptorValue, "opcode 250"),
    ("v49-channel", Rule::ReservedDescriptorValue, "channel 5"),
    ("v51", Rule::FaultingWrite, "without EVENT_WRITE_FLAG_NO_FAULTING"),
    ("v52", Rule::ImplicitActivity, "without an activity id"),
    ("v53", Rule::Description, "7 bytes of event metadata"),
    ("v53-order", Rule::Description, "metadata out of order"),
    ("v53-payload", Rule::Description, "2 bytes of event data after the last field"),
    ("v55", Rule::LeakingData, "uninitialized or freed memory"),
    ("v55-address", Rule::LeakingData, "at offset 0 of the event data"),
    ("v61-null", Rule::ActivityPointer, "with a null pointer for the activity id"),
    ("v62", Rule::ActivityCode, "the unknown control code 9"),
    ("v63", Rule::ActivityNotRestored, "a different activity id than at its call"),
    ("v64", Rule::OldActivityUsed, "which is the thread's previous id"),
];

#[test]
fn each_violation_bugchecks_with_its_rule() {
    for (service, rule, part) in STOPS {
        let config = KernelConfig { hostile_filters: *service == "v28", ..KernelConfig::default() };
        let found = run(service, config);
        let Some(bugcheck) = &found.bugcheck else {
            panic!("{service} was not caught: {found:?}");
        };
        let tag = format!("[{}]", rule.number().expect("a number"));
        assert!(bugcheck.message.contains(&tag), "{service}: {bugcheck}");
        assert!(bugcheck.message.contains(part), "{service}: {bugcheck}");
        assert!(
            bugcheck.message.contains("etw_rules_driver")
                || *service == "v09-context"
                || *service == "v20",
            "{service}: {bugcheck} has no place"
        );
    }
}

#[test]
fn violations_that_do_not_bugcheck_are_kept_as_warnings() {
    for (service, rule, part) in WARNINGS {
        let found = run(service, with_activities());
        assert_eq!(found.bugcheck, None, "{service}");
        let [warning] = found.warnings.as_slice() else {
            panic!("{service} has not one warning: {:#?}", found.warnings);
        };
        assert_eq!(warning.rule, *rule, "{service}: {warning}");
        assert!(warning.message.contains(part), "{service}: {warning}");
        let mut tag = format!("[{}]", rule.number().expect("a number"));
        if warning.count > 1 {
            tag = format!("{tag} ({} times)", warning.count);
        }
        let shown = warning.to_string();
        let first = shown.lines().next().unwrap_or_default();
        assert!(first.ends_with(&tag), "{service}: {warning}");
    }
}

#[test]
fn a_correct_driver_is_clean() {
    for service in [
        "well-behaved", "v51-good", "paged-at-passive",
        // In these services, the driver does what correct third-party drivers do.
        "tracelogging", "global-channels", "common-keywords", "uninitialized-handle",
    ] {
        let found = run(service, KernelConfig::default());
        assert_eq!(found.bugcheck, None, "{service}");
        assert_eq!(found.warnings, [], "{service}");
    }
}

/// The rules that other tests break, and their test files.
const ELSEWHERE: &[(Rule, &str)] = &[
    (Rule::ProviderLeftRegistered, "verifier.rs"),
    (Rule::ActsOnUnknownCode, "conformance.rs"),
    (Rule::DisablesItself, "conformance.rs"),
    (Rule::LevelZeroTakenLiterally, "conformance.rs"),
    (Rule::CaptureChangesState, "conformance.rs"),
    (Rule::FailureChangesDriver, "conformance.rs"),
    // Only a defect in the stand-in kernel could break this rule.
    (Rule::CallbackAfterUnregister, "stress.rs"),
    (Rule::MessageFlags, "wpp.rs"),
];

#[test]
fn every_numbered_rule_is_broken_by_some_test() {
    let tables = STOPS.iter().chain(WARNINGS).map(|(_, rule, _)| *rule);
    let tested: BTreeSet<&str> =
        tables.chain(ELSEWHERE.iter().map(|(rule, _)| *rule)).filter_map(Rule::number).collect();
    for rule in Rule::ALL {
        assert!(
            rule.number().is_none_or(|number| tested.contains(number)),
            "{rule:?} has no driver that breaks it"
        );
    }
    for (service, rule, _) in WARNINGS {
        // The stand-in kernel fails these calls, as documented, and reports a warning.
        let refused = ["v08-null", "v27", "v43-array", "v61-null"].contains(service);
        let expected = if matches!(rule, Rule::NoKeyword | Rule::NoLevel | Rule::ImplicitActivity) {
            Severity::Note
        } else {
            Severity::Warning
        };
        assert!(refused || rule.severity() == expected, "{service}");
    }
}

/// Expects a processor exception with a bugcheck code and parts of the message.
fn traps(service: &str, config: KernelConfig, code: u32, parts: &[&str]) {
    let found = run(service, config);
    let bugcheck = found.bugcheck.unwrap_or_else(|| panic!("{service} was not caught"));
    assert_eq!(bugcheck.code, code, "{service}: {bugcheck}");
    for part in parts {
        assert!(bugcheck.message.contains(part), "{service}: {bugcheck}");
    }
}

#[test]
fn pageable_memory_is_inaccessible_at_dispatch_level() {
    let parts = ["read from", "pageable memory", "DISPATCH_LEVEL (2)"];
    traps("paged-pool-at-dispatch", KernelConfig::default(), 0xD1, &parts);
    let parts = ["instruction fetch from", "pageable memory", "pageable_code"];
    traps("page-code-at-dispatch", KernelConfig::default(), 0xD1, &parts);
}

#[test]
fn special_pool_detects_what_plain_pool_does_not() {
    let special = KernelConfig { special_pool: true, ..KernelConfig::default() };
    let parts = ["read from", "'Leak'", "that ExFreePool freed", "reads_freed_pool"];
    traps("freed-pool-read", special, 0x1E, &parts);
    let parts = ["write to", "writes_behind_a_block"];
    traps("past-a-block", special, 0x1E, &parts);
    let plain = run("freed-pool-read", KernelConfig::default());
    assert_eq!(plain.bugcheck, None, "plain pool hides it");
}

#[test]
fn notes_are_not_warnings_and_can_be_turned_off() {
    for notes in [true, false] {
        let kernel = Kernel::with_config(KernelConfig { notes, ..KernelConfig::default() });
        let folder = tempfile::tempdir().unwrap();
        drive(&kernel, "v49-keyword", &folder.path().join("notes.etl")).unwrap();
        assert_eq!(kernel.warnings(), []);
        let found: Vec<Rule> = kernel.notes().iter().map(|note| note.rule).collect();
        let expected: &[Rule] = if notes { &[Rule::NoKeyword] } else { &[] };
        assert_eq!(found, expected);
    }
}
