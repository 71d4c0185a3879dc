//! Drivers and their INF files.

use std::fs;

use driver_package::inf::{Driver, Framework, Inf, Mode, New, Provider, Severity, Stamp, check};

pub const FRAMEWORK: Framework = Framework { major: 1, minimum: 31, target: 31 };

pub fn provider(name: &str, guid: &str, has_resources: bool) -> Provider {
    Provider {
        guid: guid.to_owned(),
        name: name.to_owned(),
        has_resources,
        channels: Vec::new(),
        described_by: "its declaration".to_owned(),
        autologger: None,
    }
}

/// Returns the sample driver.
pub fn sample() -> Driver {
    Driver {
        image: "etw_sample_driver.sys".to_owned(),
        hardware_id: Some(r"Root\EtwSampleDriver".to_owned()),
        framework: Some(FRAMEWORK),
        providers: Some(vec![provider(
            "WdkEtw.SampleDriver", "802b686a-519d-5416-5280-4c0ead585fbb", true,
        )]),
        sddl: Some("D:P(A;;GA;;;SY)(A;;GA;;;BA)".to_owned()),
        ..Driver::default()
    }
}

/// Returns the sample driver's INF file.
pub fn sample_inf() -> String {
    let path = etw_test_support::root().join("inf/etw_sample_driver.inx");
    stamp_for("amd64", &fs::read_to_string(path).unwrap(), "1.31")
}

/// Returns the contents of a new file for a driver of devices.
pub const fn new(providers: &[Provider]) -> New<'_> {
    New {
        image: "contoso_sensor",
        hardware_id: Some(r"USB\VID_0547&PID_1002"),
        class: "USBDevice",
        company: "Contoso \"first\" GmbH",
        description: "Contoso sensor",
        framework: Some(FRAMEWORK),
        providers,
        sddl: "D:P(A;;GA;;;SY)",
    }
}

pub fn stamp(inx: &str, framework: &str) -> String {
    stamp_for("arm64", inx, framework)
}

fn stamp_for(architecture: &str, inx: &str, framework: &str) -> String {
    let stamp = Stamp { architecture, framework, date: "11/21/2026", version: "3.1.4.0" };
    stamp.apply(inx)
}

/// Returns the diagnostics in `mode`, as text after their severity.
pub fn found(text: &str, driver: &Driver, mode: Mode) -> Vec<String> {
    let inf = Inf::read(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
    let diagnostics = check(&inf, driver, mode);
    let severity = |one| if one == Severity::Error { "error" } else { "warning" };
    diagnostics.iter().map(|one| format!("{}: {one}", severity(one.severity))).collect()
}

/// Checks that a changed file has exactly one diagnostic, and that it contains `expected`.
pub fn has_one(text: &str, (from, to): (&str, &str), driver: &Driver, expected: &str) {
    assert!(text.contains(from), "no {from:?} in:\n{text}");
    let all = found(&text.replace(from, to), driver, Mode::Windows);
    assert!(all.len() == 1 && all[0].contains(expected), "{from:?} -> {to:?}: {all:#?}");
}
