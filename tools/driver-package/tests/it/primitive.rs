//! Drivers without a framework (WDM), and drivers without a device (primitive drivers).

use driver_package::inf::{Driver, Mode, New, Provider};

use crate::helpers::{found, has_one, new, provider, stamp};

fn wdm() -> Driver {
    Driver { image: "contoso_sensor.sys".to_owned(), is_wdm: true, ..Driver::default() }
}

/// Returns a primitive driver without a framework, and its file.
fn primitive(providers: &[Provider]) -> (Driver, String) {
    let new = New { hardware_id: None, framework: None, class: "System", ..new(providers) };
    let driver = Driver { providers: Some(providers.to_vec()), adds_devices: Some(false), ..wdm() };
    (driver, stamp(&new.text().unwrap(), "1.31"))
}

#[test]
fn the_new_file_of_a_primitive_driver_is_sound() {
    let providers = [provider("Contoso.Sensor", "0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8", true)];
    let (driver, text) = primitive(&providers);
    for mode in Mode::ALL {
        assert_eq!(found(&text, &driver, mode), [""; 0], "{text}");
    }
    for line in [
        "[DefaultInstall.NTarm64]\nCopyFiles = Files\n",
        "[DefaultInstall.NTarm64.Services]\nAddService = contoso_sensor,,Service\n",
        "[DefaultInstall.NTarm64.Events]\nAddEventProvider = {0f6fd5b8-",
    ] {
        assert!(text.contains(line), "no {line:?} in:\n{text}");
    }
    for word in ["Manufacturer", "Wdf", "Kmdf", "HKR", "Device"] {
        assert!(!text.lines().any(|line| !line.starts_with(';') && line.contains(word)), "{text}");
    }
}

#[test]
fn mistakes_in_the_file_of_a_primitive_driver_are_found() {
    let (driver, text) = primitive(&[]);
    for (from, to, message) in [
        (
            "DefaultInstall.NTarm64",
            "DefaultInstall",
            "[DefaultInstall] names no architecture; write [DefaultInstall.NTamd64]",
        ),
        ("DefaultInstall.NTarm64", "DefaultInstall.NT", "(infverif 1421)"),
        ("DefaultInstall.NTarm64", "DefaultInstall.NTx86", "NTx86 is not a supported architecture"),
        ("[Strings]", "[DefaultUninstall.NTarm64]\nx = 1\n[Strings]", "(infverif 1422)"),
        (
            "[Strings]",
            "[DefaultInstall.NTarm64.Wdf]\nKmdfService = contoso_sensor,Framework\n\
             [Framework]\nKmdfLibraryVersion = 1.31\n[Strings]",
            "the driver uses no framework (WDM); remove [DefaultInstall.NTarm64.Wdf]",
        ),
        ("Class       = System", "Class =", "Class is empty"),
    ] {
        has_one(&text, (from, to), &driver, message);
    }
    let legacy = text.replace(
        "[Strings]",
        "[DefaultUninstall.NTarm64]\nLegacyUninstall = 1\nDelFiles = Files\n[Strings]",
    );
    assert_eq!(found(&legacy, &driver, Mode::Windows), [""; 0]);
    let wanted = Driver { hardware_id: Some(r"Root\Sensor".to_owned()), ..driver.clone() };
    let all = found(&text, &wanted, Mode::Windows);
    assert!(all.len() == 1 && all[0].contains("] installs no device; the driver's"), "{all:?}");
    // A driver of devices needs models.
    let adds = Driver { adds_devices: Some(true), ..driver };
    let all = found(&text, &adds, Mode::Windows);
    assert!(all.len() == 1 && all[0].contains("Windows offers it none"), "{all:?}");
}

/// A minifilter with a program, in the form of Microsoft's documentation.
const MINIFILTER: &str = r#"
[Version]
Signature   = "$WINDOWS NT$"
Class       = "AntiVirus"
ClassGuid   = {b1d1a169-c54f-4379-81db-bee7d88d7454}
Provider    = %Company%
DriverVer   = 11/21/2026,3.1.4.0
CatalogFile = contoso_sensor.cat
PnpLockdown = 1

[DestinationDirs]
Driver_Files  = 13
Program_Files = 13

[SourceDisksNames]
1 = %Disk%,,,

[SourceDisksFiles]
contoso_sensor.sys = 1,,
contoso_agent.exe  = 1,,

[DefaultInstall.NTamd64]
OptionDesc = %Description%
CopyFiles  = Driver_Files, Program_Files

[Driver_Files]
contoso_sensor.sys

[Program_Files]
contoso_agent.exe

[DefaultInstall.NTamd64.Services]
AddService = ContosoAgent,,Agent_Service
AddService = %Service%,,Filter_Service

[Agent_Service]
ServiceType   = 0x00000010
StartType     = 2
ErrorControl  = 1
ServiceBinary = %13%\contoso_agent.exe

[Filter_Service]
DisplayName    = %Service%
Description    = %Description%
ServiceBinary  = %13%\contoso_sensor.sys
Dependencies   = FltMgr
ServiceType    = 0x00000002
StartType      = 0
ErrorControl   = 1
LoadOrderGroup = "FSFilter Anti-Virus"
AddReg         = Filter_Registry

[Filter_Registry]
HKR,"Parameters","SupportedFeatures",0x00010001,0x3
HKR,"Parameters\Instances","DefaultInstance",0x00000000,%Instance%
HKR,"Parameters\Instances\"%Instance%,"Altitude",0x00000000,"328765"
HKR,"Parameters\Instances\"%Instance%,"Flags",0x00010001,0x0

[Strings]
Company     = "Contoso"
Disk        = "Contoso scanner"
Description = "Contoso scanner of files"
Service     = "ContosoSensor"
Instance    = "Contoso instance"
"#;

#[test]
fn a_minifilter_is_a_primitive_driver() {
    let driver = Driver { adds_devices: Some(false), ..wdm() };
    for mode in Mode::ALL {
        assert_eq!(found(MINIFILTER, &driver, mode), [""; 0], "{mode:?}");
    }
    for kernel_driver in ["1", "0x1", "0x00000001"] {
        let text = MINIFILTER.replace("0x00000002", kernel_driver);
        assert_eq!(found(&text, &driver, Mode::Windows), [""; 0], "{kernel_driver}");
    }
    for (from, to, message) in [
        ("0x00000002", "0x10", "ServiceType is \"0x10\"; expected a number from 1 to 2"),
        ("{b1d1a169", "{b1d1a160", "the class AntiVirus has {b1d1a169-"),
        (
            "= \"AntiVirus\"",
            "= ActivityMonitor",
            "{b1d1a169-c54f-4379-81db-bee7d88d7454} is the class",
        ),
        (",,Filter_Service", ",,Other_Service", "the section [Other_Service] is missing"),
    ] {
        let text = MINIFILTER.replace(from, to);
        let all = found(&text, &driver, Mode::Windows);
        assert!(all.iter().any(|one| one.contains(message)), "{to}: {all:#?}");
    }
    let none = MINIFILTER.replace("AddService", "DisplayName");
    let all = found(&none, &driver, Mode::Windows);
    assert!(all.iter().any(|one| one.contains("expected an AddService")), "{all:#?}");
}

#[test]
fn a_driver_of_devices_without_a_framework_has_no_framework_section() {
    let new = New { framework: None, ..new(&[]) };
    let text = stamp(&new.text().unwrap(), "1.31");
    assert!(!text.contains("Wdf") && !text.contains("Framework"), "{text}");
    let driver = Driver { adds_devices: Some(true), ..wdm() };
    assert_eq!(found(&text, &driver, Mode::Windows), [""; 0]);
    let kmdf = Driver { is_wdm: false, ..driver.clone() };
    let all = found(&text, &kmdf, Mode::Windows);
    assert!(all.len() == 1 && all[0].contains(".Wdf] is missing"), "{all:?}");
    // A device of a driver that adds none does not start.
    let adds_none = Driver { adds_devices: Some(false), ..driver.clone() };
    let all = found(&text, &adds_none, Mode::Windows);
    assert!(all.len() == 1 && all[0].starts_with("warning: "), "{all:?}");
    assert!(all[0].contains("`cargo etw inf new --primitive`"), "{all:?}");
    let both = text.replace("[Strings]", "[DefaultInstall.NTarm64]\nCopyFiles = Files\n[Strings]");
    let all = found(&both, &driver, Mode::Windows);
    assert!(all.iter().any(|one| one.contains("but not both (infverif 1212)")), "{all:?}");
}
