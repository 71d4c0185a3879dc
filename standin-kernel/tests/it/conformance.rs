//! Tests that the conformance check detects providers that misinterpret notifications.

use crate::common;
use standin_kernel::{
    EnableParameters, Guid, Identity, Kernel, Rule, SessionConfig, Target, Violation,
    conformance::{ConformanceError, check_provider},
};

/// Checks the rules driver as a service. Its second provider writes an event on each notification.
fn check(service: &str) -> Vec<Violation> {
    let kernel = Kernel::new();
    let driver = kernel.load_as(&common::rules_driver(), service).unwrap();
    let prompt: Guid = "5b9c2f60-37d1-4e0a-8e11-903a4c551f02".parse().unwrap();
    let prompter = kernel.start_session(SessionConfig::to_consumers("prompter")).unwrap();
    let provider: Guid = "7c1a1b2e-0e5f-4b7c-9c62-5d0a7a3f10c4".parse().unwrap();
    let mut work = || {
        let target = Target::Provider(prompt);
        kernel.enable(prompter, target, EnableParameters::default())?;
        Ok(Vec::new())
    };
    let found = check_provider(&kernel, provider, &mut work).unwrap();
    driver.unload().unwrap();
    found
}

#[test]
fn a_provider_that_interprets_notifications_correctly_is_clean() {
    assert_eq!(check("keeps-state"), []);
}

#[test]
fn providers_that_misinterpret_notifications_are_detected() {
    for (service, rule, part) in [
        ("v23", Rule::ActsOnUnknownCode, "wrote 0 events after the control codes"),
        ("v24", Rule::DisablesItself, "another session disabled it"),
        ("v25", Rule::LevelZeroTakenLiterally, "enabled with level 0"),
        ("v26", Rule::CaptureChangesState, "while no session enabled it"),
        ("v50", Rule::FailureChangesDriver, "after its writes failed"),
    ] {
        let found = check(service);
        let [violation] = found.as_slice() else {
            panic!("{service}: {found:#?}");
        };
        assert_eq!(violation.rule, rule, "{service}: {violation}");
        assert!(violation.message.contains(part), "{service}: {violation}");
    }
}

// This covers V23 to V26 and V50 for this project's library.
#[test]
fn the_sample_driver_interprets_notifications_correctly() {
    let kernel = Kernel::new();
    let (driver, device) = common::started(&kernel, &common::sample());
    let file = device.open(Identity { process: 7, thread: 8 }).unwrap();
    let mut work = || {
        file.write(b"conformance")?;
        Ok(file.read(5)?.output)
    };
    let found = check_provider(&kernel, etw_scenarios::provider(), &mut work).unwrap();
    assert_eq!(found, []);
    file.close().unwrap();
    common::leave(driver, &device);
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn a_provider_that_writes_nothing_cannot_be_checked() {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::sample()).unwrap();
    let provider = etw_scenarios::provider();
    let result = check_provider(&kernel, provider, &mut || Ok(Vec::new()));
    assert!(matches!(result, Err(ConformanceError::Silent(of)) if of == provider));
    // The check has already stopped its session.
    let again = kernel.start_session(SessionConfig::to_consumers("conformance"));
    assert!(again.is_ok());
    driver.unload().unwrap();
}
