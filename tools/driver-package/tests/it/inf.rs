//! Tests the rules for INF files with the sample driver's INF file.

use std::fs;

use driver_package::inf::{
    self, Channel, ChannelKind, ChannelSettings, Diagnostic, Driver, Framework, Inf, Mode, New,
    NewError, OwnChannel, Severity, Stamp,
};

use crate::helpers::{FRAMEWORK, new, provider, sample as driver, sample_inf as stamped, stamp};

fn check(inf: &Inf, driver: &Driver) -> Vec<Diagnostic> {
    inf::check(inf, driver, Mode::Windows)
}

#[test]
fn the_sample_drivers_file_is_sound() {
    let inf = Inf::read(&stamped()).unwrap();
    assert_eq!(check(&inf, &driver()), []);
}

#[test]
fn the_file_of_the_probes_driver_is_sound() {
    let stamp =
        Stamp { architecture: "amd64", framework: "1.31", date: "11/21/2026", version: "0.1.0.0" };
    let path = "tests/drivers/probes/etw_probes_driver.inx";
    let text = fs::read_to_string(etw_test_support::root().join(path)).unwrap();
    let inf = Inf::read(&stamp.apply(&text)).unwrap();
    let driver = Driver {
        image: "etw_probes_driver.sys".to_owned(),
        hardware_id: Some(r"Root\EtwProbesDriver".to_owned()),
        providers: Some(Vec::new()),
        ..driver()
    };
    assert_eq!(check(&inf, &driver), []);
}

#[test]
fn comments_outside_ascii_are_one_warning() {
    let text = stamped().replace("[Files]", "; \u{2013}\r\n[Files] ; \u{fc}\r\n; \u{e9}");
    let line = text.lines().position(|line| line == "; \u{2013}").unwrap() + 1;
    let diagnostics = check(&Inf::read(&text).unwrap(), &driver());
    let [diagnostic] = diagnostics.as_slice() else {
        panic!("{diagnostics:?}");
    };
    assert_eq!((diagnostic.severity, diagnostic.line), (Severity::Warning, Some(line)));
    assert!(diagnostic.message.ends_with("comments on 2 other lines"), "{diagnostic:?}");
}

#[test]
fn every_mistake_is_found() {
    for (from, to, diagnostic) in [
        ("$WINDOWS NT$", "$CHICAGO$", "Signature is $CHICAGO$"),
        ("Class       = System", "Class = Sample", "Class is Sample"),
        ("[Strings]", "[ClassInstall32]\n[Strings]", "infverif 1285"),
        ("Provider               = \"wdk-etw\"", "Provider = \"Microsoft\"", "infverif 1204"),
        ("CatalogFile = etw_sample_driver.cat", "", "has no CatalogFile"),
        ("11/21/2026", "21/11/2026", "DriverVer is not"),
        ("3.1.4.0", "3.1.4", "DriverVer is not"),
        ("PnpLockdown = 1", "PnpLockdown = 0", "PnpLockdown is 0"),
        ("DefaultDestDir = 13", "DefaultDestDir = 12", "DefaultDestDir is 12"),
        ("sys = 1,,", "sys = 2,,", "has no disk 2"),
        ("NTamd64.10.0...19041", "NTamd64.10.0...17763", "the oldest supported build is"),
        ("NTamd64.10.0...19041", "NTx86.10.0...19041", "NTx86 is not a supported architecture"),
        (r"Root\EtwSampleDriver", r"Root\Other", "the hardware ID is"),
        ("[Files]", "[Others]", "the section [Files] is missing"),
        ("(A;;GA;;;BA)", "(A;;GA;;;WD)", "the device's security descriptor is"),
        ("0x00000002\r\nProvider", "0x00000000\r\nProvider", "AddService has the flags"),
        ("ServiceType   = 1", "ServiceType = 0x2", "ServiceType is \"0x2\"; expected 1"),
        (
            "AddService = etw",
            "AddService = other,2,Service\r\nAddService = etw",
            "exactly one AddService with the flag 0x00000002 (infverif 1296)",
        ),
        ("StartType     = 3", "StartType = 0", "StartType is 0"),
        (r"%13%\etw_sample_driver.sys", r"%12%\x.sys", "ServiceBinary is"),
        ("KmdfLibraryVersion = 1.31", "KmdfLibraryVersion = 1.33", "expected 1.31"),
        ("{802b686a", "{802b686b", "names the ETW provider {802b686b"),
        ("= WdkEtw.SampleDriver", "= WdkEtw.Sample", "ProviderName is"),
        ("HKR,,Security", "HKLM,,Security", "infverif 1321"),
        ("HKR,,Security,,", "HKLM,Software\\Key\r\nHKR,,Security,,", "infverif 1320"),
        ("[Strings]", "[Unused]\r\n[Strings]", "nothing refers to [Unused]"),
        ("= 1.31", "= $KMDFVERSION$", "has not been stamped"),
        ("AddService = etw_sample_driver", "AddService = other", "the service is other"),
        (
            "[EtwSampleDriver.NTamd64.Wdf]",
            "[EtwSampleDriver.NTamd64.CoInstallers]\r\n[EtwSampleDriver.NTamd64.Wdf]",
            "infverif 1303",
        ),
    ] {
        let text = stamped();
        assert!(text.contains(from), "{from}");
        let inf = Inf::read(&text.replace(from, to)).unwrap();
        let diagnostics = check(&inf, &driver());
        assert!(
            diagnostics.iter().any(|found| found.to_string().contains(diagnostic)),
            "{to}: {diagnostics:?}"
        );
    }
}

#[test]
fn a_device_can_have_services_besides_the_associated_one() {
    let text = stamped()
        .replace("ServiceType   = 1", "ServiceType   = 0x00000001")
        .replace("AddService = etw", "AddService = filter,,Service\r\nAddService = etw");
    assert_eq!(check(&Inf::read(&text).unwrap(), &driver()), []);
}

#[test]
fn a_new_file_is_sound_and_says_what_it_was_given() {
    let providers = [
        provider("Contoso.Sensor", "0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8", true),
        provider("Contoso.Sensor-Io", "1f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8", true),
    ];
    for framework in [
        FRAMEWORK,
        Framework { target: 33, ..FRAMEWORK },
        Framework { minimum: 33, target: 33, ..FRAMEWORK },
    ] {
        let new = New { framework: Some(framework), ..new(&providers) };
        let inf = Inf::read(&stamp(&new.text().unwrap(), &framework.to_string())).unwrap();
        let driver = Driver {
            image: "contoso_sensor.sys".to_owned(),
            hardware_id: new.hardware_id.map(str::to_owned),
            framework: Some(framework),
            providers: Some(providers.to_vec()),
            sddl: Some(new.sddl.to_owned()),
            ..Driver::default()
        };
        assert_eq!(check(&inf, &driver), []);
        assert_eq!(inf.value("Version", "Provider"), Some("Contoso \"first\" GmbH"));
        let decoration = format!("Devices.NTarm64.10.0...{}", framework.oldest_build());
        assert!(inf.section(&decoration).is_some(), "{decoration}");
    }
}

#[test]
fn a_provider_that_decoders_need_must_be_registered() {
    let text = stamp(&new(&[]).text().unwrap(), "1.31");
    let inf = Inf::read(&text).unwrap();
    let mut driver = Driver {
        image: "contoso_sensor.sys".to_owned(),
        providers: Some(vec![provider("Contoso.Sensor", "0f6fd5b8", false)]),
        ..Driver::default()
    };
    // TraceLogging events are self-describing.
    assert_eq!(check(&inf, &driver), []);
    let of_events = [provider("Contoso.Sensor", "0f6fd5b8", false)];
    let text_of = |providers| stamp(&new(providers).text().unwrap(), "1.31");
    assert_eq!(text_of(&of_events), text);
    let needless = text_of(&[provider("Contoso.Sensor", "0f6fd5b8", true)]);
    let diagnostics = check(&Inf::read(&needless).unwrap(), &driver);
    let [diagnostic] = diagnostics.as_slice() else {
        panic!("{diagnostics:?}");
    };
    assert_eq!(diagnostic.severity, Severity::Warning);
    let sentence = "AddEventProvider registers the ETW provider Contoso.Sensor, whose events are \
                    self-describing";
    assert!(diagnostic.message.starts_with(sentence), "{diagnostic:?}");
    driver.providers = Some(vec![provider("Contoso.Sensor", "0f6fd5b8", true)]);
    let diagnostics = check(&inf, &driver);
    assert!(diagnostics[0].message.contains("Contoso.Sensor is not registered"), "{diagnostics:?}");
    assert!(diagnostics[0].message.contains("AddEventProvider = {0f6fd5b8}"), "{diagnostics:?}");
}

#[test]
fn values_that_an_inf_file_cannot_have_are_refused() {
    let class = New { class: "Sensors", ..new(&[]) };
    assert_eq!(class.text(), Err(NewError::Class("Sensors".to_owned())));
    let company = New { company: "M\u{fc}ller", ..new(&[]) };
    assert!(company.text().unwrap_err().to_string().contains("company"));
    let id = New { hardware_id: Some("Root\\a,b"), ..new(&[]) };
    assert!(id.text().unwrap_err().to_string().contains("hardware ID"));
}

/// Uses the form of Microsoft's samples: a different decoration of the install section, an older
/// Windows version, no security descriptor and no provider.
#[test]
fn a_file_in_the_form_of_the_samples_is_accepted() {
    let text = stamped()
        .replace("EtwSampleDriver.NTamd64", "EtwSampleDriver.NT")
        .replace("AddReg = Device.Registry", "")
        .replace("[Device.Registry]", "")
        .replace("HKR,,Security,,\"D:P(A;;GA;;;SY)(A;;GA;;;BA)\"", "")
        .replace("10.0...19041", "10.0...16299");
    let mut driver = driver();
    driver.hardware_id = None;
    let diagnostics = check(&Inf::read(&text).unwrap(), &driver);
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(diagnostics[0].severity, Severity::Warning);
    assert!(diagnostics[0].message.contains("oldest supported build is 19041"), "{diagnostics:?}");
}

/// Returns a driver with a provider that has its own channels and one of Windows' channels.
fn with_channels() -> Driver {
    let own = |name: &str, value, settings| Channel {
        name: name.to_owned(),
        own: Some(OwnChannel { value, settings: Some(settings) }),
    };
    let admin = ChannelSettings {
        kind: ChannelKind::Admin,
        enabled: Some(true),
        isolation: Some("System".to_owned()),
        ..ChannelSettings::default()
    };
    let operational = ChannelSettings {
        kind: ChannelKind::Operational,
        enabled: Some(false),
        isolation: Some("Custom".to_owned()),
        access: Some("O:BAG:SYD:(A;;0x7;;;BA)".to_owned()),
        max_size: Some(20 << 20),
        retention: Some(true),
        auto_backup: Some(true),
    };
    let debug = ChannelSettings { kind: ChannelKind::Debug, ..ChannelSettings::default() };
    let mut sensor = provider("Contoso.Sensor", "0f6fd5b8", true);
    sensor.channels = vec![
        own("Contoso.Sensor/Admin", 16, admin),
        Channel { name: "System".to_owned(), own: None },
        own("Contoso.Sensor/Operational", 17, operational),
        own("Contoso.Sensor/Debug", 18, debug),
    ];
    Driver {
        image: "contoso_sensor.sys".to_owned(),
        providers: Some(vec![sensor]),
        ..Driver::default()
    }
}

fn inf_of(driver: &Driver) -> String {
    let providers = driver.providers.as_deref().unwrap();
    stamp(&new(providers).text().unwrap(), "1.31")
}

#[test]
fn a_new_file_registers_the_channels() {
    let driver = with_channels();
    let text = inf_of(&driver);
    let from = text.find("[Event_Provider_1]").unwrap();
    let to = text.find("[Strings]").unwrap();
    assert_eq!(
        text[from..to].trim_end(),
        r#"[Event_Provider_1]
ProviderName = Contoso.Sensor
ResourceFile = %13%\contoso_sensor.sys
MessageFile  = %13%\contoso_sensor.sys
AddChannel = Contoso.Sensor/Admin,0x1,Event_Provider_1_Channel_16
ImportChannel = System
AddChannel = Contoso.Sensor/Operational,0x2,Event_Provider_1_Channel_17
AddChannel = Contoso.Sensor/Debug,0x4,Event_Provider_1_Channel_18

[Event_Provider_1_Channel_16]
Isolation         = 2
Enabled           = 1
Value             = 16

[Event_Provider_1_Channel_17]
Isolation         = 3
Access            = "O:BAG:SYD:(A;;0x7;;;BA)"
Enabled           = 0
Value             = 17
LoggingMaxSize    = 20971520
LoggingRetention  = 2
LoggingAutoBackup = 1

[Event_Provider_1_Channel_18]
Value             = 18"#
    );
    assert_eq!(check(&Inf::read(&text).unwrap(), &driver), []);
    // Alternative spellings of the same values.
    let text = text
        .replace("Admin,0x1", "Admin,1")
        .replace("Isolation         = 2", "isolation = 0x2")
        .replace("LoggingMaxSize    = 20971520", "LoggingMaxSize = 0x1400000")
        .replace("Enabled           = 0", "")
        .replace("[Event_Provider_1_Channel_18]", "[Event_Provider_1_Channel_18]\nEnabled = 0");
    assert_eq!(check(&Inf::read(&text).unwrap(), &driver), []);
    // An image's resources contain neither the types nor the settings of channels.
    let mut described = driver;
    for channel in &mut described.providers.as_mut().unwrap()[0].channels {
        channel.own.iter_mut().for_each(|own| own.settings = None);
    }
    assert_eq!(check(&Inf::read(&text).unwrap(), &described), []);
}

#[test]
fn every_mistake_in_channels_is_found_once() {
    let driver = with_channels();
    for (from, to, diagnostic) in [
        (
            "AddChannel = Contoso.Sensor/Admin,0x1,Event_Provider_1_Channel_16\n",
            "",
            "add `AddChannel = Contoso.Sensor/Admin,0x1,SECTION` to [Event_Provider_1]",
        ),
        ("ImportChannel = System\n", "", "add `ImportChannel = System` to [Event_Provider_1]"),
        (
            "ImportChannel = System",
            "ImportChannel = System\nImportChannel = Application",
            "names the channel Application, which the provider Contoso.Sensor does not declare so",
        ),
        (
            "AddChannel = Contoso.Sensor/Debug,0x4,Event_Provider_1_Channel_18",
            "AddChannel = Contoso.Sensor/Debug,0x4",
            "Value of the channel Contoso.Sensor/Debug is missing; its declaration says 18",
        ),
        ("Debug,0x4", "Debug,0x3", "is 0x3; its declaration says Debug (0x4)"),
        ("Debug,0x4", "Debug,0x5", "is \"0x5\"; expected 0x1 (Admin)"),
        ("Debug,0x4", "Debug,Debug", "is \"Debug\"; expected 0x1 (Admin)"),
        ("Enabled           = 1", "", "Enabled of the channel Contoso.Sensor/Admin is 0"),
        ("Enabled           = 1", "Enabled = yes", "Enabled is \"yes\"; expected a number from 0"),
        ("Isolation         = 2", "Isolation = 1", "its declaration says 2; write `Isolation = 2`"),
        ("(A;;0x7;;;BA)", "(A;;0x7;;;WD)", "Access of the channel Contoso.Sensor/Operational is"),
        ("Value             = 17", "Value = 19", "is 19; its declaration says 17"),
        ("= 20971520", "= 1048576", "LoggingMaxSize of the channel"),
        ("= 20971520", "= 65536", "expected a number from 1048576"),
        ("LoggingAutoBackup = 1", "LoggingBackup = 1", "has LoggingBackup; known: Isolation"),
        (
            "Value             = 18",
            "Value = 18\nLoggingAutoBackup = 1",
            "has LoggingAutoBackup = 1, which needs LoggingRetention = 2",
        ),
    ] {
        let text = inf_of(&driver);
        assert!(text.contains(from), "{from}");
        let inf = Inf::read(&text.replace(from, to)).unwrap();
        let diagnostics = check(&inf, &driver);
        let has = |found: &&_| ToString::to_string(found).contains(diagnostic);
        assert_eq!(diagnostics.iter().filter(has).count(), 1, "{to}: {diagnostics:?}");
    }
    let text = inf_of(&driver).replace("ImportChannel = System\n", "").replace(
        "[Event_Provider_1_Channel_16]",
        "ImportChannel = System\n\n[Event_Provider_1_Channel_16]",
    );
    let diagnostics = check(&Inf::read(&text).unwrap(), &driver);
    let [diagnostic] = diagnostics.as_slice() else {
        panic!("{diagnostics:?}");
    };
    assert!(diagnostic.message.contains("in a different order"), "{diagnostic:?}");
}

#[test]
fn a_channel_that_nobody_decided_about_is_a_warning() {
    let mut driver = with_channels();
    let channel = &mut driver.providers.as_mut().unwrap()[0].channels[0];
    channel.own.as_mut().unwrap().settings = Some(ChannelSettings::default());
    let diagnostics = check(&Inf::read(&inf_of(&driver)).unwrap(), &driver);
    let [diagnostic] = diagnostics.as_slice() else {
        panic!("{diagnostics:?}");
    };
    assert_eq!(diagnostic.severity, Severity::Warning);
    assert!(diagnostic.message.contains("does not say `enabled = true`"), "{diagnostic:?}");
}
