//! Sessions that Windows starts while it boots.

use driver_package::inf::{AutoLogger, Driver, Inf, Mode, New, NewError, Provider, check};

use crate::helpers::{FRAMEWORK, found, has_one, new, provider, stamp};

const SENSOR: &str = "0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8";
const IO: &str = "1f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8";

fn session() -> AutoLogger {
    AutoLogger {
        session: "Contoso-Boot".to_owned(),
        guid: "2f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8".to_owned(),
        file: Some(r"Contoso\boot.etl".to_owned()),
        values: vec![("Start", 1), ("LogFileMode", 2), ("MaxFileSize", 16)],
        provider_values: vec![("Enabled", 1), ("EnableLevel", 0xFF)],
    }
}

/// Returns two providers in one session. The first has manifest-based events.
fn providers() -> [Provider; 2] {
    let mut second = session();
    second.provider_values = vec![("Enabled", 1), ("EnableLevel", 4), ("MatchAnyKeyword", 3)];
    [
        Provider { autologger: Some(session()), ..provider("Contoso.Sensor", SENSOR, true) },
        Provider { autologger: Some(second), ..provider("Contoso.Io", IO, false) },
    ]
}

fn driver() -> Driver {
    Driver {
        image: "contoso_sensor.sys".to_owned(),
        framework: Some(FRAMEWORK),
        providers: Some(providers().to_vec()),
        ..Driver::default()
    }
}

fn file() -> String {
    stamp(&new(&providers()).text().unwrap(), "1.31")
}

#[test]
fn a_new_file_adds_the_session_on_windows_11() {
    let text = file();
    assert_eq!(found(&text, &driver(), Mode::Windows), [""; 0], "{text}");
    for part in [
        "%Company% = Devices,NTarm64.10.0...19041,NTarm64.10.0...22000\n",
        "[Devices.NTarm64.10.0...19041]\n%Device% = Device_Install,USB",
        "[Devices.NTarm64.10.0...22000]\n%Device% = Device_Install_Windows_11,USB",
        "[Device_Install.NTarm64.Events]\n\
         AddEventProvider = {0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},Event_Provider_1\n\
         AddEventProvider = {1f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},Event_Provider_2\n\n",
        "Event_Provider_2\n\
         AddAutoLogger = Contoso-Boot,{2f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1\n\n",
        "[AutoLogger_1]\nStart = 1\nLogFileMode = 0x2\nMaxFileSize = 16\n\
         FileName = \"%%DriverData%%\\Contoso\\boot.etl\"\n\
         AddAutoLoggerProvider = {0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1_Provider_1\n\
         AddAutoLoggerProvider = {1f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1_Provider_2\n\n\
         [AutoLogger_1_Provider_1]\nEnabled = 1\nEnableLevel = 0xff\n\n\
         [AutoLogger_1_Provider_2]\nEnabled = 1\nEnableLevel = 0x4\nMatchAnyKeyword = 0x3\n",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert_eq!(text.matches("AddAutoLogger =").count(), 1);
}

#[test]
fn other_spellings_and_defaults_mean_the_same() {
    let text = file()
        .replace("MaxFileSize = 16", "MaxFileSize = 0x10\nClockType = 1\nFlushTimer = 0")
        .replace("EnableLevel = 0xff", "enablelevel = 255\nMatchAllKeyword = 0\nEnableFlags = 7")
        .replace("{2f6fd5b8", "{2F6FD5B8");
    assert_eq!(found(&text, &driver(), Mode::Windows), [""; 0], "{text}");
}

#[test]
fn a_provider_with_self_describing_events_only_has_a_session_too() {
    let [_, io] = providers();
    let providers = [io];
    let text = stamp(&new(&providers).text().unwrap(), "1.31");
    let driver = Driver { providers: Some(providers.to_vec()), ..driver() };
    assert_eq!(found(&text, &driver, Mode::Windows), [""; 0], "{text}");
    assert!(
        !text.contains("AddEventProvider") && !text.contains("[Device_Install.NTarm64.Events]")
    );
    // A primitive driver has one install section, for every Windows.
    let primitive = New { hardware_id: None, ..new(&providers) };
    let text = stamp(&primitive.text().unwrap(), "1.31");
    assert_eq!(found(&text, &driver, Mode::Windows), [""; 0], "{text}");
    assert!(text.contains("[DefaultInstall.NTarm64.Events]\nAddAutoLogger = "), "{text}");
}

#[test]
fn providers_must_agree_on_their_session() {
    let [sensor, mut io] = providers();
    io.autologger.as_mut().unwrap().values.pop();
    let error = new(&[sensor, io]).text().unwrap_err();
    assert!(matches!(error, NewError::Session { .. }));
    let message = "the providers Contoso.Sensor and Contoso.Io describe the session Contoso-Boot";
    assert!(error.to_string().starts_with(message), "{error}");
}

#[test]
fn every_mistake_in_a_session_is_found() {
    let text = file();
    let line = "AddAutoLogger = Contoso-Boot,{2f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1";
    for (from, to, message) in [
        ("= Contoso-Boot,", "= Contoso\\Boot,", "\"Contoso\\\\Boot\" cannot be the name"),
        ("Boot,{2f6fd5b8-", "Boot,{2f6fd5b8", "the GUID of the session is \"{2f6fd5b8ac6b-"),
        ("Boot,{2f6fd5b8-", "Boot,{3f6fd5b8-", "the declaration says {2f6fd5b8-"),
        ("Start = 1\n", "", "[AutoLogger_1] has no Start; add `Start = 1`"),
        ("Start = 1\n", "Start = 2\n", "Start is \"2\"; expected a number from 0 to 1"),
        ("Start = 1\n", "Start = 0\n", "Start of the session Contoso-Boot is 0; the declaration"),
        ("Start = 1\n", "Start = 1\nBuffers = 4\n", "has Buffers; known: Start, BufferSize"),
        ("Start = 1\n", "Start = 1\nBufferSize = 1024\n", "expected a number from 1 to 1023"),
        ("Start = 1\n", "Start = 1\nBufferSize = 64\n", "says nothing; remove the line"),
        ("Start = 1\n", "Start = 1\nClockType = 4\n", "expected a number from 1 to 3"),
        ("MaxFileSize = 16\n", "", "MaxFileSize of the session Contoso-Boot is missing"),
        ("MaxFileSize = 16", "MaxFileSize = 8", "write `MaxFileSize = 16`"),
        (r"%%DriverData%%\Contoso", r"%%DriverData%%\Other", r"says %DriverData%\Contoso\boot.etl"),
        ("EnableLevel = 0x4", "EnableLevel = 256", "EnableLevel is \"256\"; expected a number"),
        ("EnableLevel = 0x4", "EnableLevel = 5", "the provider Contoso.Io in the session"),
        ("EnableLevel = 0x4", "EnablePropety = 4\nEnableLevel = 4", "has EnablePropety; known"),
        (
            "AddAutoLoggerProvider = {1f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1_Provider_2\n",
            "AddAutoLoggerProvider = {4f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1_Provider_2\n",
            "the session Contoso-Boot does not enable the provider Contoso.Io",
        ),
        (",AutoLogger_1\n", ",AutoLogger_2\n", "the section [AutoLogger_2] is missing"),
    ] {
        assert!(text.contains(from), "no {from:?} in:\n{text}");
        let all = found(&text.replace(from, to), &driver(), Mode::Windows);
        assert!(all.iter().any(|one| one.contains(message)), "{from:?} -> {to:?}: {all:#?}");
    }
    let missing = "the file does not add the session Contoso-Boot";
    let all = found(&text.replace(line, ""), &driver(), Mode::Windows);
    assert!(all.iter().any(|one| one.contains(missing)), "{all:#?}");
    for (from, to, message) in [
        (
            "MaxFileSize = 16\n",
            "MaxFileSize = 16\nMinimumBuffers = 8\nMaximumBuffers = 4\n",
            "MaximumBuffers is less than MinimumBuffers",
        ),
        ("LogFileMode = 0x2", "LogFileMode = 0x8\nFileMax = 4", "FileMax cannot be used"),
        ("LogFileMode = 0x2", "LogFileMode = 0x8", "needs %d in FileName"),
        ("LogFileMode = 0x2", "LogFileMode = 0x402", "which excludes the modes of files"),
        ("LogFileMode = 0x2", "LogFileMode = 0x400", "remove FileName"),
        ("MaxFileSize = 16", "MaxFileSize = 0", "need a MaxFileSize that is not 0"),
    ] {
        let all = found(&text.replace(from, to), &driver(), Mode::Windows);
        assert!(all.iter().any(|one| one.contains(message)), "{all:#?}");
    }
}

#[test]
fn a_session_needs_windows_11() {
    let text = file();
    // The install section for all builds adds the session too.
    let line = "AddAutoLogger = Contoso-Boot,{2f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},AutoLogger_1\n";
    let both = text.replace(line, "").replace(
        "[AutoLogger_1]",
        &format!(
            "[Device_Install.NTarm64.Events]\n{line}[Device_Install_Windows_11.NTarm64.Events]\n\
             {line}[AutoLogger_1]"
        ),
    );
    let all = found(&both, &driver(), Mode::Windows);
    assert!(all.len() == 1 && all[0].contains("(infverif 1199)"), "{all:#?}");
    assert!(
        all[0].contains("Windows uses [Device_Install.NTarm64] from build 19041 on"),
        "{all:?}"
    );
    // No install section is for Windows 11 only.
    let none = stamp(
        &new(&providers().map(|one| Provider { autologger: None, ..one })).text().unwrap(),
        "1.31",
    );
    let all = found(&none, &driver(), Mode::Windows);
    let message = "the declaration asks for the session Contoso-Boot, which only Windows 11 adds";
    assert!(all.len() == 1 && all[0].contains(message), "{all:#?}");
}

#[test]
fn a_file_outside_the_drivers_data_depends_on_the_mode() {
    let mut providers = providers();
    for one in &mut providers {
        one.autologger = None;
    }
    let driver = Driver { providers: Some(providers.to_vec()), ..driver() };
    let text = file().replace(r#""%%DriverData%%\Contoso\boot.etl""#, r"C:\boot.etl");
    for (mode, severity) in
        [(Mode::Windows, "error"), (Mode::Desktop, "error"), (Mode::Declarative, "warning")]
    {
        let all = found(&text, &driver, mode);
        assert!(all.len() == 1 && all[0].starts_with(severity), "{mode:?}: {all:?}");
        assert!(all[0].contains(r"such as `%%DriverData%%\FILE` (infverif 1326)"), "{all:?}");
    }
}

#[test]
fn updated_sessions_are_checked_too() {
    let text = file().replace(
        "[AutoLogger_1]",
        "[Device_Install_Windows_11.NTarm64.Events]\nUpdateAutoLogger = Contoso-Other,Updated\n\
         [Updated]\nAddAutoLoggerProvider = {0f6fd5b8-ac6b-5b8e-0de2-a35ba38fa4c8},Updated_Provider\n\
         [Updated_Provider]\nEnabled = 1\n[AutoLogger_1]",
    );
    let driver = driver();
    assert_eq!(check(&Inf::read(&text).unwrap(), &driver, Mode::Windows), []);
    has_one(&text, ("[Updated]\n", "[Updated]\nStart = 1\n"), &driver, "of an updated session");
    has_one(
        &text,
        ("[Updated_Provider]\nEnabled = 1", "[Updated_Provider]\nEnabled = 2"),
        &driver,
        "Enabled is \"2\"",
    );
}
