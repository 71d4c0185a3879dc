//! Breaks each rule in an otherwise valid manifest, and checks the message and its place.

use etw_manifest as manifest;

use crate::SOUND;

#[test]
fn the_unmodified_manifest_is_valid() {
    let manifest = manifest::read(SOUND).unwrap();
    assert_eq!(manifest.providers.len(), 1);
    assert_eq!(manifest.translations.len(), 1);
}

#[test]
fn a_written_manifest_compiles_to_the_same_resources() {
    use etw_manifest::resources::{Version, message_table, wevt_template};
    for (from, to) in [
        ("", ""),
        // White space at the end of a template's own XML is part of the template's GUID.
        ("</Code></Own>", "</Code>\n  </Own>"),
        ("<Code>%1</Code>", "<Code> %1 </Code>"),
        ("<Code>%1</Code>", "<In a=\"1&lt;\"><Code>%1</Code> and </In>"),
        ("<Code>%1</Code>", ""),
        ("<Code>%1</Code>", "\n"),
    ] {
        let manifest = manifest::read(&SOUND.replacen(from, to, 1)).unwrap();
        let text = manifest::write(&manifest, "");
        let again = manifest::read(&text).unwrap();
        let same = wevt_template(&again, Version::V5) == wevt_template(&manifest, Version::V5)
            && message_table(&again) == message_table(&manifest);
        assert!(same, "{to}: {text}");
    }
}

/// Returns the errors for the manifest with a replacement, and the place of the replacement.
fn broken(from: &str, to: &str) -> (Vec<String>, (usize, usize)) {
    assert!(SOUND.contains(from), "{from} is not in the manifest");
    let text = SOUND.replacen(from, to, 1);
    let at = SOUND.find(from).unwrap();
    let line = text[..at].matches('\n').count() + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1;
    let Err(failures) = manifest::read(&text) else {
        panic!("{to} is accepted");
    };
    let errors = failures.0.iter().map(ToString::to_string).collect();
    (errors, (line, column))
}

/// Returns the concatenated strings for the numbers below `count`.
fn repeat(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<String>>().concat()
}

#[test]
#[expect(clippy::too_many_lines, reason = "there are many rules")]
fn each_broken_rule_is_reported() {
    let many_fields =
        repeat(100, |number| format!("<data name=\"F{number}\" inType=\"win:UInt8\"/>"));
    let many_fields = format!("<template tid=\"T3\">{many_fields}</template><template tid=\"T1\">");
    let many_channels = repeat(7, |number| format!("<channel name=\"C{number}\" type=\"Debug\"/>"));
    let many_channels = format!("{many_channels}<importChannel name=\"System\" chid=\"S\"/>");
    let long = format!(
        "<channel name=\"{}\" type=\"Debug\"/><importChannel name=\"System\" chid=\"S\"/>",
        "x".repeat(256)
    );
    let long = long.as_str();
    let cases: &[(&str, &str, &str)] = &[
        // The XML and its elements.
        ("</channels>", "</channel>", "the XML is malformed"),
        ("<levels>", "<lovels/><levels>", "`provider` cannot contain `lovels`"),
        ("<importChannel ", "<exportChannel ", "`channels` cannot contain `exportChannel`"),
        (
            "<struct name=\"Place\"",
            "<strict/><struct name=\"Place\"",
            "`template` cannot contain `strict`",
        ),
        (
            "<data name=\"X\" inType=\"win:Int32\"/>",
            "<struct name=\"In\"/>",
            "`struct` cannot contain `struct`",
        ),
        (
            "<valueMap name=\"State\"",
            "<map value=\"1\"/><valueMap name=\"State\"",
            "`maps` cannot contain `map`",
        ),
        ("<levels>", "<levels><other/>", "`levels` cannot contain `other`"),
        // Attributes.
        (
            "inType=\"win:Int32\"",
            "intype=\"win:Int32\" inType=\"win:Int32\"",
            "`data` does not take the attribute `intype`",
        ),
        ("symbol=\"CONTOSO\"", "symbol=\"1CONTOSO\"", "\"1CONTOSO\" is not a C identifier"),
        (
            "symbol=\"CONTOSO\"",
            "symbol=\"CONTOSO\" namespace=\"A..B\"",
            "\"A..B\" is not a C identifier",
        ),
        ("mask=\"0x2\"", "mask=\"2\"", "`mask` is \"2\"; write it in hexadecimal"),
        ("value=\"0x80000000\"", "value=\"5\"", "`value` is \"5\"; write it in hexadecimal"),
        (
            "{11111111-2222-3333-4444-555555555555}",
            "11111111-2222-3333-4444-555555555555",
            "which is not a GUID in braces",
        ),
        ("name=\"Contoso-Driver\" guid", "guid", "`provider` has no attribute `name`"),
        (
            " guid=\"{11111111-2222-3333-4444-555555555555}\"",
            "",
            "`provider` has no attribute `guid`",
        ),
        ("resourceFileName=\"c.sys\" ", "", "`provider` has no attribute `resourceFileName`"),
        (
            "messageFileName=\"c.sys\"",
            "messageFileName=\"\"",
            "`provider` has no attribute `messageFileName`",
        ),
        ("symbol=\"CONTOSO\" ", "", "`provider` has no attribute `symbol`"),
        ("chid=\"D\" type=\"Debug\"", "chid=\"D\"", "`channel` has no attribute `type`"),
        (
            "<importChannel name=\"System\" chid=\"S\"/>",
            "<importChannel name=\"System\" chid=\"S\"/><channel name=\"Z\" type=\"Debug\" chid=\"\"/>",
            "`channel` has no attribute `chid`",
        ),
        ("<event value=\"3\" ", "<event ", "`event` has no attribute `value`"),
        (
            "value=\"2\" message=\"$(string.Map.Off)\"",
            "value=\"2\"",
            "`map` has no attribute `message`",
        ),
        ("<template tid=\"T1\">", "<template>", "`template` has no attribute `tid`"),
        ("{11111111-2222-3333-4444-555555555555}", "{1}", "`guid` is \"{1}\", which is not a GUID"),
        ("type=\"Debug\"", "type=\"Loud\"", "must be one of Admin, Operational, Analytic, Debug"),
        (
            "isolation=\"System\"",
            "isolation=\"None\"",
            "must be one of Application, System, Custom",
        ),
        ("enabled=\"true\"", "enabled=\"yes\"", "must be one of true, false"),
        ("value=\"16\"", "value=\"15\"", "must be a number from 16 to 255"),
        ("value=\"20\"", "value=\"5\"", "must be a number from 16 to 255"),
        ("value=\"12\"", "value=\"9\"", "must be a number from 10 to 239"),
        (
            "name=\"Pnp\" value=\"2\"",
            "name=\"Pnp\" value=\"65536\"",
            "must be a number from 0 to 65535",
        ),
        ("<event value=\"3\" ", "<event value=\"many\" ", "must be a number from 0 to 65535"),
        (
            "value=\"1\" version=\"1\" symbol=\"E",
            "value=\"1\" version=\"256\" symbol=\"E",
            "must be a number from 0 to 255",
        ),
        // References.
        ("$(string.Provider)", "$(string.Nobody)", "text \"Nobody\" is not defined"),
        ("$(string.Provider)", "Contoso", "\"Contoso\" is not a string reference"),
        ("channel=\"D\"", "channel=\"X\"", "channel \"X\" is not defined"),
        ("level=\"own:Chatty\"", "level=\"own:Quiet\"", "level \"own:Quiet\" is not defined"),
        (
            "level=\"own:Chatty\"",
            "level=\"win:ReservedLevel6\"",
            "level \"win:ReservedLevel6\" is not defined",
        ),
        (
            "level=\"own:Chatty\"",
            "level=\"other:Chatty\"",
            "the prefix of \"other:Chatty\" is not bound to a namespace",
        ),
        ("task=\"Pnp\"", "task=\"Split\"", "task \"Split\" is not defined"),
        (
            "opcode=\"Merge\" keywords",
            "opcode=\"Split\" keywords",
            "opcode \"Split\" is not defined",
        ),
        ("keywords=\"Read Write\"", "keywords=\"Read Rite\"", "keyword \"Rite\" is not defined"),
        ("template=\"T1\"", "template=\"T9\"", "template \"T9\" is not defined"),
        ("tid=\"T2\" message", "tid=\"T9\" message", "template \"T9\" is not defined"),
        ("map=\"State\"", "map=\"Stat\"", "map \"Stat\" is not defined"),
        (
            "inType=\"win:UInt64\"",
            "inType=\"win:UInt128\"",
            "inType \"win:UInt128\" is not defined",
        ),
        ("outType=\"win:HexInt64\"", "outType=\"win:Hex\"", "outType \"win:Hex\" is not defined"),
        (
            "name=\"System\" chid=\"S\"",
            "name=\"Sistem\" chid=\"S\"",
            "channel to import \"Sistem\" is not defined",
        ),
        // Duplicate names and numbers.
        (
            "<string id=\"Level\"",
            "<string id=\"Task\" value=\"x\"/><string id=\"Level\"",
            "text \"Task\" is defined twice",
        ),
        (
            "</messageTable>",
            "<message value=\"0x10000001\" message=\"$(string.Task)\"/></messageTable>",
            "message id \"0x10000001\" is defined twice",
        ),
        (
            "name=\"Contoso-Driver/Debug\"",
            "name=\"Contoso-Driver/Admin\"",
            "channel \"Contoso-Driver/Admin\" is defined twice",
        ),
        (
            "<importChannel name=\"System\"",
            "<channel name=\"Z\" type=\"Debug\" chid=\"A\"/><importChannel name=\"System\"",
            "chid \"A\" is defined twice",
        ),
        ("symbol=\"CH_D\"", "symbol=\"CH_A\"", "channel symbol \"CH_A\" is defined twice"),
        (
            "chid=\"D\" type",
            "chid=\"D\" value=\"16\" type",
            "channel number \"16\" is defined twice",
        ),
        ("name=\"Loud\"", "name=\"own:Chatty\"", "level \"own:Chatty\" is defined twice"),
        ("value=\"21\"", "value=\"20\"", "level number \"20\" is defined twice"),
        (
            "value=\"21\"",
            "value=\"21\" symbol=\"L_CHATTY\"",
            "level symbol \"L_CHATTY\" is defined twice",
        ),
        ("</tasks>", "<task name=\"Io\" value=\"9\"/></tasks>", "task \"Io\" is defined twice"),
        (
            "name=\"Pnp\" value=\"2\"",
            "name=\"Pnp\" value=\"1\"",
            "task number \"1\" is defined twice",
        ),
        (
            "name=\"Pnp\" value=\"2\"",
            "name=\"Pnp\" value=\"2\" symbol=\"T_IO\"",
            "task symbol \"T_IO\" is defined twice",
        ),
        (
            "name=\"Pnp\" value=\"2\"",
            "name=\"Pnp\" value=\"2\" eventGUID=\"{11111111-2222-3333-4444-666666666666}\"",
            "eventGUID ",
        ),
        ("name=\"Mend\"", "name=\"Merge\"", "opcode \"Merge\" is defined twice"),
        ("value=\"13\"", "value=\"11\"", "opcode number \"11\" is defined twice"),
        (
            "value=\"13\"",
            "value=\"13\" symbol=\"O_MERGE\"",
            "opcode symbol \"O_MERGE\" is defined twice",
        ),
        (
            "</keywords>",
            "<keyword name=\"Read\" mask=\"0x8\"/></keywords>",
            "keyword \"Read\" is defined twice",
        ),
        ("mask=\"0x2\"", "mask=\"0x1\"", "keyword mask \"0x1\" is defined twice"),
        (
            "mask=\"0x2\"",
            "mask=\"0x2\" symbol=\"K_READ\"",
            "keyword symbol \"K_READ\" is defined twice",
        ),
        (
            "</maps>",
            "<valueMap name=\"State\"><map value=\"1\" message=\"$(string.Map.On)\"/></valueMap></maps>",
            "map \"State\" is defined twice",
        ),
        (
            "name=\"Flags\">",
            "name=\"Flags\" symbol=\"M_STATE\">",
            "map symbol \"M_STATE\" is defined twice",
        ),
        ("value=\"0x80000000\"", "value=\"0x1\"", "map entry \"0x1\" is defined twice"),
        (
            "$(string.Map.On)\"/>",
            "$(string.Map.On)\" symbol=\"MI_OFF\"/>",
            "map entry symbol \"MI_OFF\" is defined twice",
        ),
        (
            "</patternMaps>",
            "<patternMap name=\"Patterns\" format=\"f\"/></patternMaps>",
            "named query \"Patterns\" is defined twice",
        ),
        ("</templates>", "<template tid=\"T1\"/></templates>", "template \"T1\" is defined twice"),
        ("name=\"Bytes\"", "name=\"Count\"", "field \"Count\" is defined twice"),
        (
            "</filters>",
            "<filter name=\"Only\" value=\"2\"/></filters>",
            "filter \"Only\" is defined twice",
        ),
        (
            "</filters>",
            "<filter name=\"Other\" value=\"1\" version=\"1\"/></filters>",
            "filter number and version \"1 of version 1\" is defined twice",
        ),
        (
            "</filters>",
            "<filter name=\"Other\" value=\"2\" symbol=\"F_ONLY\"/></filters>",
            "filter symbol \"F_ONLY\" is defined twice",
        ),
        (
            "version=\"1\" symbol=\"E_ONE_1\"",
            "version=\"0\" symbol=\"E_ONE_1\"",
            "event 1 version 0 is defined twice",
        ),
        ("symbol=\"E_ONE_1\"", "symbol=\"E_ONE\"", "event symbol \"E_ONE\" is defined twice"),
        // Values with a fixed form.
        (
            "name=\"Contoso-Driver\" guid",
            "name=\"Contoso:Driver\" guid",
            "provider name \"Contoso:Driver\" is not allowed; a name has 1 to 255 characters",
        ),
        (
            "name=\"Contoso-Driver/Debug\"",
            "name=\"Contoso|Debug\"",
            "channel name \"Contoso|Debug\" is not allowed; a name has 1 to 255 characters",
        ),
        ("<importChannel name=\"System\" chid=\"S\"/>", long, "channel name "),
        (
            "guid=\"{11111111-2222-3333-4444-555555555555}\"",
            "guid=\"{11111111-2222-3333-4444-555555555555}\" controlGuid=\"{11111111-2222-3333-4444-777777777777}\"",
            "has a controlGuid, so its name must end",
        ),
        (
            "<importChannel name=\"System\" chid=\"S\"/>",
            &many_channels,
            "a provider can declare at most 8 channels",
        ),
        (
            "mask=\"0x2\"",
            "mask=\"0x6\"",
            "keyword \"Write\" has the mask 0x6, which is not one bit of 0 to 47",
        ),
        (
            "mask=\"0x2\"",
            "mask=\"0x1000000000000\"",
            "keyword \"Write\" uses bit 48; provider keywords are bits 0 to 47",
        ),
        ("</maps>", "<valueMap name=\"None\"/></maps>", "map \"None\" has no entries"),
        (
            "inType=\"win:UInt32\" map=\"State\"",
            "inType=\"win:GUID\" map=\"State\"",
            "a win:GUID field cannot have a map",
        ),
        (
            "outType=\"win:NTSTATUS\"",
            "outType=\"xs:GUID\"",
            "a win:UInt32 field cannot be shown as xs:GUID; possible: xs:unsignedInt, win:PID",
        ),
        (
            "inType=\"win:Binary\" length=\"Length\"",
            "inType=\"win:Binary\"",
            "a win:Binary field needs a length",
        ),
        (
            "inType=\"win:CountedUnicodeString\"",
            "inType=\"win:CountedUnicodeString\" length=\"4\"",
            "a win:CountedUnicodeString field carries its length in the data",
        ),
        ("count=\"Count\"", "count=\"Text\"", "\"Text\" is not an integer field before this one"),
        (
            "count=\"Count\"",
            "count=\"Length\"",
            "\"Length\" is not an integer field before this one",
        ),
        (
            "count=\"Count\"",
            "count=\"Nothing\"",
            "\"Nothing\" is not an integer field before this one",
        ),
        ("<template tid=\"T1\">", &many_fields, "template \"T3\" has more than 99 fields"),
        (
            "<Code>%1</Code></Own>",
            "<Code>%1</Code></Own><More/>",
            "`UserData` must contain one element",
        ),
        ("<Code>%1</Code>", "<Code>%2</Code>", "\"%2\" in `UserData` does not refer to a field"),
        // Events.
        (
            "template=\"T1\" message=\"$(string.Event.One)\"",
            "template=\"T1\"",
            "an event of an Admin channel needs a message",
        ),
        (
            "level=\"win:Error\"",
            "level=\"win:Verbose\"",
            "needs a level from win:Critical to win:Informational",
        ),
        ("%2!s!%n%3", "%11", "the message refers to %11, but the event has 10 fields"),
        ("%2!s!%n%3", "%2!s", "the format after %2 in the message has no closing exclamation mark"),
        ("%2!s!%n%3", "%\u{e9} %11", "the message refers to %11, but the event has 10 fields"),
        ("A=1;", "A;", "is not a list of `name=value` pairs"),
    ];
    let mut missed = Vec::new();
    for (from, to, message) in cases {
        let (errors, _) = broken(from, to);
        if !errors.iter().any(|error| error.contains(message)) {
            missed.push(format!("{from} -> {to}: {errors:#?} instead of {message}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn errors_have_the_line_and_column() {
    for (from, to, behind) in [
        ("value=\"21\"", "value=\"7\"", "value=\"".len()),
        ("channel=\"D\"", "channel=\"X\"", "channel=\"".len()),
        ("<valueMap name=\"State\"", "<other/><valueMap name=\"State\"", 0),
    ] {
        let (errors, (line, column)) = broken(from, to);
        let place = format!("line {line}, column {}: ", column + behind);
        assert!(errors[0].starts_with(&place), "{place} {errors:?}");
    }
}

#[test]
fn definitions_that_an_event_adds_have_the_events_place() {
    // `win:None` has the number that this task takes.
    let text = SOUND.replace("name=\"Pnp\" value=\"2\"", "name=\"Pnp\" value=\"0\"");
    let line = text.lines().position(|line| line.contains("win:None")).unwrap() + 1;
    let failures = manifest::read(&text).unwrap_err();
    assert_eq!(failures.0[0].at.line, line, "{failures}");
}

#[test]
fn errors_cannot_control_a_terminal() {
    let text = SOUND.replace("channel=\"D\"", "channel=\"\u{9b}D\u{202e}\"");
    let failures = manifest::read(&text).unwrap_err().to_string();
    assert!(failures.contains("\"\\u{9b}D\\u{202e}\""), "{failures}");
}

#[test]
fn all_errors_are_reported_in_order() {
    let text = SOUND.replace("value=\"21\"", "value=\"7\"").replace("mask=\"0x2\"", "mask=\"two\"");
    let failures = manifest::read(&text).unwrap_err();
    assert_eq!(failures.0.len(), 2, "{failures}");
    assert!(failures.0[0].at < failures.0[1].at);
    assert_eq!(failures.to_string().lines().count(), 2);
}

#[test]
fn another_document_is_refused() {
    for (text, message) in [
        ("", "line 1, column 1: the XML is malformed"),
        ("<a/>", "line 1, column 1: the root element is `a`; a manifest's is"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "the XML is malformed"),
    ] {
        let failures = manifest::read(text).unwrap_err().to_string();
        assert!(failures.contains(message), "{failures}");
    }
}

#[test]
fn the_17th_provider_needs_explicit_ids() {
    let providers = repeat(17, |number| {
        format!(
            "<provider name=\"P{number}\" guid=\"{{11111111-2222-3333-4444-{number:012}}}\" \
                 symbol=\"P{number}\" resourceFileName=\"a\" messageFileName=\"a\" \
                 message=\"$(string.P{number})\"/>"
        )
    });
    let texts = repeat(17, |number| format!("<string id=\"P{number}\" value=\"x\"/>"));
    let text = |table: &str| {
        format!(
            "<instrumentationManifest><instrumentation><events>{table}{providers}</events>\
             </instrumentation><localization><resources culture=\"en-US\"><stringTable>{texts}\
             </stringTable></resources></localization></instrumentationManifest>"
        )
    };
    let failures = manifest::read(&text("")).unwrap_err().to_string();
    assert!(failures.contains("16 providers"), "{failures}");
    let table = "<messageTable><message value=\"5\" message=\"$(string.P16)\"/></messageTable>";
    assert!(manifest::read(&text(table)).is_ok());
}

#[test]
fn attributes_without_a_place_in_the_resources_are_kept() {
    for (from, to) in [
        (
            "symbol=\"CONTOSO\"",
            "symbol=\"CONTOSO\" helpLink=\"https://contoso.example/\" source=\"Xml\"",
        ),
        ("value=\"13\"", "value=\"13\" mofValue=\"5\""),
        ("tid=\"T1\"", "tid=\"T1\" tags=\"3\""),
        ("name=\"Text\"", "name=\"Text\" tags=\"0x4\""),
        ("format=\"f1\"", "format=\"f1\" symbol=\"P_1\""),
        ("<event value=\"3\"", "<event suppressProjection=\"true\" value=\"3\""),
        (
            "isolation=\"System\" enabled=\"true\"/>",
            "isolation=\"System\" enabled=\"true\"><logging><maxSize>4096</maxSize></logging></channel>",
        ),
        ("<messageTable>", "<x:y xmlns:x=\"urn:x\" z=\"1\"/><messageTable>"),
    ] {
        let text = SOUND.replacen(from, to, 1);
        assert_ne!(text, SOUND);
        let written = manifest::write(&manifest::read(&text).unwrap(), "");
        let again = manifest::write(&manifest::read(&written).unwrap(), "");
        assert_eq!(written, again);
        let Some(added) = to.split('"').nth(3).filter(|_| !to.contains("x:y")) else {
            continue;
        };
        assert!(written.contains(added), "{to}: {written}");
    }
    let written = manifest::write(&manifest::read(SOUND).unwrap(), "");
    assert!(!written.contains("mofValue"));
}
