//! The modes of `infverif`.

use driver_package::inf::Mode::{self, Declarative, Desktop, Universal, Windows};

use crate::helpers::{found, sample, sample_inf};

/// Checks which modes accept a changed file, which warn, and which have an error.
fn in_modes(changes: &[(&str, &str)], expected: &[(Mode, &str)]) {
    let mut text = sample_inf();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    for &(mode, expected) in expected {
        let all = found(&text, &sample(), mode);
        match expected {
            "" => assert_eq!(all, [""; 0], "{mode:?}: {changes:?}"),
            expected => {
                let (severity, number) = expected.split_once(' ').unwrap();
                let is_expected = all.len() == 1
                    && all[0].starts_with(&format!("{severity}: "))
                    && all[0].ends_with(&format!("(infverif {number})"));
                assert!(is_expected, "{mode:?}: {changes:?}: {all:#?}");
            }
        }
    }
}

#[test]
fn every_mode_accepts_the_sample_drivers_file() {
    in_modes(&[], &Mode::ALL.map(|mode| (mode, "")));
}

/// The errors of a value outside the keys that a mode accepts.
const OUTSIDE: [(Mode, &str); 4] = [
    (Windows, "error 1321"),
    (Desktop, "error 1321"),
    (Universal, "error 1304"),
    (Declarative, "warning 1304"),
];

#[test]
fn a_value_outside_the_devices_key_depends_on_the_mode() {
    let mut of_desktop = OUTSIDE;
    of_desktop[1].1 = "";
    for (value, expected) in [
        (r"HKLM,Software\Contoso", OUTSIDE),
        // A key whose name only begins in the same way.
        (r"HKLM,SOFTWARE\ClassesOfContoso", OUTSIDE),
        (r"HKU,SYSTEM\CurrentControlSet", OUTSIDE),
        (r"HKLM,SYSTEM\CurrentControlSet\Control\WMI\Autologger\Contoso", of_desktop),
        (
            r"HKLM,software\classes\clsid\{1}",
            [(Windows, "error 1321"), (Desktop, ""), (Universal, ""), (Declarative, "")],
        ),
        (
            r"HKCR,clsid\{1}",
            [(Windows, "error 1321"), (Desktop, ""), (Universal, ""), (Declarative, "")],
        ),
    ] {
        let value = format!("{value},Name,,x\r\nHKR,,Security");
        in_modes(&[("HKR,,Security", &value)], &expected);
    }
    let key = "HKLM,Software\\Contoso\r\nHKR,,Security";
    let mut of_key = OUTSIDE;
    (of_key[0].1, of_key[1].1) = ("error 1320", "error 1320");
    in_modes(&[("HKR,,Security", key)], &of_key);
}

#[test]
fn a_folder_outside_the_driver_store_depends_on_the_mode() {
    let system = ("DefaultDestDir = 13", "DefaultDestDir = 12");
    in_modes(&[system], &[(Windows, "error 1322")]);
    let others = [(Desktop, ""), (Universal, ""), (Declarative, "")];
    let binary = r"%13%\etw_sample_driver.sys";
    in_modes(&[system, (binary, r"%12%\etw_sample_driver.sys")], &others);
    let own = ("DefaultDestDir = 13", r"DefaultDestDir = 10,Contoso");
    in_modes(&[own, (binary, r"%10%\Contoso\etw_sample_driver.sys")], &others);
    in_modes(
        &[("DefaultDestDir = 13", "DefaultDestDir = 24"), (binary, r"%24%\etw_sample_driver.sys")],
        &[(Desktop, "error 1322"), (Universal, "error 1306"), (Declarative, "warning 1306")],
    );
    // The service's binary must be where the file is copied to.
    let all = found(&sample_inf().replace(system.0, system.1), &sample(), Desktop);
    let wanted =
        r"ServiceBinary is %13%\etw_sample_driver.sys; expected %12%\etw_sample_driver.sys";
    assert!(all.iter().any(|one| one.contains(wanted)), "{all:#?}");
}

#[test]
fn other_rules_depend_on_the_mode() {
    let lockdown = [
        (Windows, "error 1324"),
        (Desktop, "error 1324"),
        (Universal, "warning 1324"),
        (Declarative, "warning 1324"),
    ];
    in_modes(&[("PnpLockdown = 1", "PnpLockdown = 0")], &lockdown);
    in_modes(&[("PnpLockdown = 1", "")], &lockdown);
    in_modes(
        &[("CopyFiles = Files", "CopyFiles = Files\r\nDelReg = Device.Registry")],
        &[
            (Windows, "error 1309"),
            (Desktop, "error 1309"),
            (Universal, "error 1309"),
            (Declarative, "warning 1309"),
        ],
    );
    for (section, entry) in [
        ("[EtwSampleDriver.NTamd64.HW]", "DelReg = Device.Registry"),
        ("[EtwSampleDriver.NTamd64.Services]", "DelService = other"),
        ("[Service]", "BitReg = Service.Registry"),
    ] {
        let changed = format!("{section}\r\n{entry}");
        in_modes(&[(section, &changed)], &[(Windows, "error 1309"), (Declarative, "warning 1309")]);
    }
    // The name of a string, and of a list of files.
    in_modes(&[("[Strings]", "[Strings]\r\nLogConfig = \"x\"")], &Mode::ALL.map(|mode| (mode, "")));
    in_modes(
        &[("= Files", "= DelFiles"), ("[Files]", "[DelFiles]"), ("DefaultDestDir", "DelFiles")],
        &Mode::ALL.map(|mode| (mode, "")),
    );
    let of_service = "HKR,Parameters,TraceTag";
    in_modes(
        &[(of_service, "HKR,,TraceTag")],
        &[(Windows, "error 1323"), (Desktop, "error 1323"), (Universal, ""), (Declarative, "")],
    );
    in_modes(&[(of_service, "HKR,parameters\\Text,TraceTag")], &Mode::ALL.map(|mode| (mode, "")));
}

#[test]
fn modes_have_names() {
    for mode in Mode::ALL {
        assert_eq!(Mode::named(mode.name()), Some(mode));
    }
    assert_eq!(Mode::named("w"), None);
    assert_eq!(Mode::default(), Windows);
}
