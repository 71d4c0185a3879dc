//! Tests which changes a newer version of a declaration may make.

use etw_manifest::compare::{breaks, disagreements};

use crate::helpers::declared;

const BEFORE: &str = r#"
#[wdk_etw::provider(name = "Contoso.Driver", encoding = manifest)]
mod trace {
    #[keyword]
    const IO: Keyword = Keyword::bit(0);
    #[tasks]
    enum Task { Transfer = 1 }
    #[map]
    enum State { On = 1, Off = 2 }
    /// A read.
    #[event(id = 1, level = Info, keyword = IO, task = Transfer)]
    fn read(offset: u64, data: &[u8], state: State);
    /// A write.
    #[event(id = 2, level = Info, keyword = IO)]
    fn write(offset: u64);
}
"#;

/// Returns the diagnostics for the declaration with a replacement.
fn changed(from: &str, to: &str) -> Vec<String> {
    assert!(BEFORE.contains(from), "{from}");
    breaks(&declared(BEFORE), &declared(&BEFORE.replace(from, to)))
        .iter()
        .map(ToString::to_string)
        .collect()
}

// R-O5
#[test]
fn a_changed_layout_under_the_same_version_is_refused() {
    for (from, to, message) in [
        (
            "offset: u64, data",
            "offset: u32, data",
            "12:8: Contoso.Driver: event 1 version 0 has a different layout: field 1 is `Offset: \
             win:UInt32 as xs:unsignedInt` and was `Offset: win:UInt64 as xs:unsignedLong`; give \
             the event with the new layout version 1, and keep the old one",
        ),
        (
            "fn write(offset: u64)", "fn write(offset: u64, length: u32)",
            "the field `Length: win:UInt32",
        ),
        (
            "fn write(offset: u64)",
            "fn write()",
            "the field `Offset: win:UInt64 as xs:unsignedLong` is missing",
        ),
        ("data: &[u8]", "data: [u8; 4]", "field 2 is"),
        ("data: &[u8]", "data: &str", "field 2 is"),
        ("fn read(offset", "fn read(#[hex] offset", "as win:HexInt64` and was"),
        ("fn read(offset", "fn read(#[name = \"At\"] offset", "`At: win:UInt64"),
        ("state: State", "state: u32", "with a value map"),
        ("id = 2", "id = 3", "event 2 version 0 is missing"),
        ("id = 2", "id = 2, version = 1", "event 2 version 0 is missing"),
        ("Driver\"", "Driver2\"", "is missing; its older traces can no longer be decoded"),
        (", task = Transfer)", ")", "event 1 version 0: the task is 0x0; expected 0x1"),
    ] {
        let found = changed(from, to);
        assert!(found.iter().any(|one| one.contains(message)), "{from} -> {to}: {found:#?}");
    }
}

#[test]
fn everything_else_may_change() {
    for (from, to) in [
        ("A read.", "A read has ended."),
        ("level = Info", "level = Verbose"),
        ("bit(0)", "bit(5)"),
        ("On = 1,", "On = 1, Broken = 3,"),
        (
            "/// A write.",
            "#[event(id = 2, version = 1, level = Info, keyword = IO)] fn write_1(offset: u64, \
             length: u32);\n/// A write.",
        ),
        ("fn write(", "fn r#write("),
    ] {
        assert_eq!(changed(from, to), [""; 0], "{from} -> {to}");
    }
}

#[test]
fn differences_between_a_declaration_and_its_manifest_are_reported() {
    let declared = declared(BEFORE);
    let text = etw_manifest::write(&declared, "");
    let same = etw_manifest::read(&text).unwrap();
    assert_eq!(disagreements(&declared, &same), []);
    for (from, to, message) in [
        ("inType=\"win:UInt64\" outType=\"xs:unsignedLong\"", "inType=\"win:HexInt64\"", None),
        ("name=\"Offset\"", "name=\"At\"", None),
        ("outType=\"xs:unsignedLong\"", "", None),
        (
            "inType=\"win:UInt64\" outType=\"xs:unsignedLong\"",
            "inType=\"win:UInt32\"",
            Some(
                "event 1 version 0 does not have the layout of the manifest: field 1 is `8 bytes` and was `4 bytes`",
            ),
        ),
        ("event value=\"2\"", "event value=\"3\"", Some("the manifest has no event 2 version 0")),
        (
            "level=\"win:Informational\"",
            "level=\"win:Error\"",
            Some("event 1 version 0: the level is 0x4; expected 0x2"),
        ),
        (
            "guid=\"{",
            "guid=\"{00000000-0000-0000-0000-000000000001}\" controlGuid=\"{",
            Some("the manifest has no provider with the GUID"),
        ),
    ] {
        let mut text = text.replacen(from, to, 1);
        if to.contains("controlGuid") {
            text = text.replacen(
                "name=\"Contoso.Driver\"",
                "name=\"C.00000000000000000000000000000001\"",
                1,
            );
        }
        let other = etw_manifest::read(&text).unwrap();
        let found: Vec<String> =
            disagreements(&declared, &other).iter().map(ToString::to_string).collect();
        match message {
            None => assert_eq!(found, [""; 0], "{from} -> {to}"),
            Some(message) => {
                assert!(
                    found.iter().any(|one| one.contains(message)),
                    "{from} -> {to}: {found:#?}"
                );
            }
        }
    }
}

/// The declaration of a provider whose manifest has channels.
const CHANNELS: &str = r#"
#[wdk_etw::provider(name = "Contoso.Driver", encoding = manifest)]
mod trace {
    #[channels]
    enum Channel {
        #[channel(Admin, enabled = true, isolation = System, max_size = 2097152)]
        Admin = 16,
        #[channel(Debug)]
        Debug = 17,
        #[channel(Import)]
        System = 8,
    }
}
"#;

#[test]
fn settings_of_channels_must_be_those_of_the_manifest() {
    let file = etw_manifest::read(&etw_manifest::write(&declared(CHANNELS), "")).unwrap();
    let found = |from: &str, to: &str| -> Vec<String> {
        assert!(CHANNELS.contains(from), "{from}");
        let declared = declared(&CHANNELS.replace(from, to));
        disagreements(&declared, &file).iter().map(ToString::to_string).collect()
    };
    // The manifest supplies settings that a declaration omits; a declaration may also write a default.
    for (from, to) in [
        ("", ""),
        (", enabled = true, isolation = System, max_size = 2097152", ""),
        ("Admin, enabled", "Admin, retention = false, auto_backup = false, enabled"),
        (
            "(Debug)",
            "(Debug, enabled = false, isolation = Application, retention = true, max_size = 1 << 20)",
        ),
        ("Admin = 16", "#[name = \"CONTOSO.driver/ADMIN\"] Admin = 16"),
    ] {
        assert_eq!(found(from, to), [""; 0], "{from} -> {to}");
    }
    for (from, to, message) in [
        (
            "enabled = true",
            "enabled = false",
            "7:9: Contoso.Driver: the channel 16: its enabled is false; the manifest specifies true (line ",
        ),
        (
            "isolation = System",
            "isolation = Custom",
            "its isolation is Custom; the manifest specifies System",
        ),
        (
            "max_size = 2097152",
            "max_size = 1 << 20",
            "its max_size is 1048576; the manifest specifies 2097152",
        ),
        (
            "(Debug)",
            "(Debug, enabled = true)",
            "the channel 17: its enabled is true; the manifest specifies false",
        ),
        (
            "(Debug)",
            "(Debug, retention = false)",
            "its retention is false; the manifest specifies true",
        ),
        (
            "(Debug)",
            "(Debug, access = \"D:(A;;0x1;;;BA)\")",
            "its access is D:(A;;0x1;;;BA); the manifest specifies nothing",
        ),
        ("(Debug)", "(Analytic)", "its type is Analytic; the manifest specifies Debug"),
        (
            "Admin = 16",
            "#[name = \"Contoso.Driver/Other\"] Admin = 16",
            "its name is Contoso.Driver/Other; the manifest specifies Contoso.Driver/Admin (line ",
        ),
        ("System = 8", "Application = 9", "the manifest does not import the channel Application"),
        (
            "Debug = 17",
            "Debug = 18",
            "the manifest has no channel of the provider with the number 18",
        ),
    ] {
        let found = found(from, to);
        assert!(found.len() == 1 && found[0].contains(message), "{from} -> {to}: {found:#?}");
    }
}
