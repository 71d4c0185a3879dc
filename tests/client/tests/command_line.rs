//! Runs the client as its users do. On systems without ETW and the sample device, such as Wine, the
//! client must report an error. On Windows, the scenarios test the client.

use std::{
    fs,
    process::{Command, Output},
};

/// Runs the client.
fn client(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_etw-sample-client")).args(arguments).output().unwrap()
}

/// Runs a command that must succeed and returns its output.
fn output_of(arguments: &[&str]) -> String {
    let output = client(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail and returns its exit code and error message.
fn failure_of(arguments: &[&str]) -> (Option<i32>, String) {
    let output = client(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("error: "), "{arguments:?}: {errors}");
    (output.status.code(), errors)
}

fn is_wine() -> bool {
    std::env::var_os("WINEPREFIX").is_some()
}

const COMMANDS: [&str; 13] = [
    "install", "uninstall", "scenarios", "probes", "trace", "record", "send", "status", "enable",
    "disable", "capture-state", "group", "disallow",
];

// R-C6
#[test]
fn help_lists_every_command() {
    let help = output_of(&["--help"]);
    for command in COMMANDS {
        assert!(help.contains(command), "{command} is not in: {help}");
        let help = output_of(&[command, "--help"]);
        assert!(help.starts_with(|first: char| first.is_uppercase()), "{help}");
    }
    for request in ["echo", "write", "read", "timer", "burst", "reads", "wait", "wake", "control"] {
        assert!(output_of(&["send", "--help"]).contains(request));
        output_of(&["send", request, "--help"]);
    }
    assert!(output_of(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_scenarios_are_listed() {
    let list = output_of(&["scenarios", "--list"]);
    for scenario in etw_scenarios::scenarios() {
        assert!(list.contains(scenario.name) && list.contains(scenario.proves));
    }
    let one = output_of(&["scenarios", "--list", "bad-requests"]);
    assert_eq!(one.lines().count(), 1);
    let (code, errors) = failure_of(&["scenarios", "no-such"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("no scenario named \"no-such\""), "{errors}");
}

#[test]
fn the_probes_are_listed() {
    let list = output_of(&["probes", "--list"]);
    for probe in etw_probes::probes() {
        assert!(list.contains(probe.id), "{}", probe.id);
    }
    let one = output_of(&["probes", "--list", "traits-again"]);
    assert_eq!(one.lines().count(), 1);
    assert!(one.contains("O3"), "{one}");
    let (code, errors) = failure_of(&["probes", "no-such"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("no probe named \"no-such\""), "{errors}");
}

#[test]
fn without_etw_no_probe_runs_and_no_file_is_written() {
    if !is_wine() {
        return;
    }
    let (code, errors) = failure_of(&["probes", "--out", "no.json"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("Wine, which has no ETW"), "{errors}");
    assert!(!fs::exists("no.json").unwrap());
}

#[test]
fn a_wrong_command_line_is_refused_with_code_2() {
    for arguments in [
        &["nonsense"][..],
        &["enable"],
        &["enable", "S", "--level", "256"],
        &["trace", "--any", "much"],
        &["send", "control", "0x22e000", "abc"],
    ] {
        assert_eq!(failure_of(arguments).0, Some(2), "{arguments:?}");
    }
}

#[test]
fn without_etw_it_reports_an_error() {
    if !is_wine() {
        return;
    }
    let commands: &[&[&str]] = &[
        &["trace", "--seconds", "1"],
        &["record", "--out", "no.etl", "--seconds", "1"],
        &["enable", "S", "--level", "4", "--any", "0x3", "--ids", "1,2"],
        &["disable", "S", "--group"],
        &["install", "some.inf"],
        &["uninstall", "some.inf"],
        &["capture-state", "S"],
        &["group", "S"],
        &["group", "S", "--off"],
        &["disallow", "S"],
        &["disallow", "S", "--none"],
        &["disallow", "S", "802b686a-519d-5416-5280-4c0ead585fbb"],
    ];
    for arguments in commands {
        let (code, errors) = failure_of(arguments);
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(errors.contains("Wine, which has no ETW"), "{arguments:?}: {errors}");
    }
    assert!(!fs::exists("no.etl").unwrap());
}

#[test]
fn without_the_device_it_reports_an_error() {
    if !is_wine() {
        return;
    }
    let commands: &[&[&str]] = &[
        &["scenarios"],
        &["status"],
        &["send", "echo", "text"],
        &["send", "echo", "--dpc", "text"],
        &["send", "write", "text"],
        &["send", "read", "5"],
        &["send", "timer", "on"],
        &["send", "burst", "100"],
        &["send", "burst", "100", "7"],
        &["send", "reads", "1", "2"],
        &["send", "wait"],
        &["send", "wake"],
        &["send", "control", "0x22e000", "616263", "--room", "3"],
    ];
    for arguments in commands {
        let (code, errors) = failure_of(arguments);
        assert_eq!(code, Some(1), "{arguments:?}");
        assert!(errors.contains("the sample device is not present"), "{arguments:?}: {errors}");
    }
}
