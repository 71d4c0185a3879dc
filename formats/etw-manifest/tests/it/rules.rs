//! Violates each rule in an otherwise valid manifest, and checks the message and its location.

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
        // White space at the end of the XML in a template affects the template's GUID.
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

/// Returns the errors for the manifest with a replacement, and the location of the replacement.
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
    let cases = include_str!("../fixture/broken.txt").split("\n\n").filter_map(|case| {
        let mut lines = case.lines();
        let mut next = |sign| lines.next()?.strip_prefix(sign).map(str::trim_start);
        Some((next('-')?, next('+')?, next('=')?))
    });
    let generated = [
        ("<importChannel name=\"System\" chid=\"S\"/>", long, "channel name "),
        (
            "<importChannel name=\"System\" chid=\"S\"/>",
            &many_channels,
            "a provider can declare at most 8 channels",
        ),
        ("<template tid=\"T1\">", &many_fields, "template \"T3\" has more than 99 fields"),
    ];
    let mut missed = Vec::new();
    let mut count = 0;
    for (from, to, message) in cases.chain(generated) {
        count += 1;
        let (errors, _) = broken(from, to);
        if !errors.iter().any(|error| error.contains(message)) {
            missed.push(format!("{from} -> {to}: {errors:#?} instead of {message}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert_eq!(count, 104);
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
    // `win:None` has the same number as this task.
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
        ("<a/>", "line 1, column 1: the root element is `a`; expected"),
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
            "isolation=\"System\" enabled=\"true\"><publishing><level>4</level></publishing></channel>",
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

#[test]
fn elements_and_attributes_of_other_namespaces_are_left_out_and_counted() {
    let root = "<instrumentationManifest ";
    let of_xml = "xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" i:schemaLocation=\"a b\" ";
    let foreign = "xmlns:o=\"urn:o\" o:x=\"1\" ";
    let counters = "<counters xmlns=\"http://schemas.microsoft.com/win/2005/12/counters\"/>";
    let text = SOUND.replacen(root, &format!("{root}{of_xml}{foreign}"), 1).replacen(
        "<instrumentation>",
        &format!("<instrumentation>{counters}{counters}"),
        1,
    );
    let notes: Vec<String> =
        manifest::read(&text).unwrap().left_out.iter().map(|one| one.rule.to_string()).collect();
    let expected = [
        "omitting 1 attribute `x` of `instrumentationManifest` (namespace urn:o)",
        "omitting 2 elements `counters` of `instrumentation` (namespace \
         http://schemas.microsoft.com/win/2005/12/counters)",
    ];
    assert_eq!(notes, expected);
    assert!(manifest::read(SOUND).unwrap().left_out.is_empty());
    let lenient = |text: &str| {
        let skipped = manifest::read_lenient(text).unwrap().skipped;
        skipped.iter().map(|one| one.why.rule.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(lenient(&text), expected);
    // Decoders also ignore elements that compilers reject.
    let text = SOUND.replacen("<instrumentation>", "<instrumentation><more/>", 1);
    assert_eq!(lenient(&text), ["omitting 1 element `more` of `instrumentation`"]);
    // Manifests of Windows components do so, too.
    let assembly = "<assembly xmlns='urn:schemas-microsoft-com:asm.v3'><instrumentation><more/>\
                    <events/></instrumentation></assembly>";
    let more = "omitting 1 element `more` of `instrumentation` (namespace \
                urn:schemas-microsoft-com:asm.v3)";
    assert_eq!(lenient(assembly)[0], more);
}

#[test]
fn the_properties_of_a_log_file_are_read_and_written() {
    let with = |inside: &str| {
        let from = "isolation=\"System\" enabled=\"true\"/>";
        let to = format!("isolation=\"System\" enabled=\"true\">{inside}</channel>");
        SOUND.replacen(from, &to, 1)
    };
    let inside = "<logging><autoBackup> 1 </autoBackup><retention>true</retention>\
                  <maxSize>0x400000</maxSize></logging><publishing><level>4</level></publishing>";
    let read = manifest::read(&with(inside)).unwrap();
    let again = manifest::read(&manifest::write(&read, "")).unwrap();
    for manifest in [&read, &again] {
        let mut channels = manifest.providers[0].channels.iter();
        let channel = channels.find(|one| one.enabled == Some(true)).unwrap();
        assert_eq!(
            channel.logging,
            manifest::Logging {
                auto_backup: Some(true),
                retention: Some(true),
                max_size: Some(4 << 20)
            }
        );
        assert_eq!(channel.inside, "<publishing><level>4</level></publishing>");
    }
    for (inside, message) in [
        ("<retention>maybe</retention>", "`retention` is \"maybe\"; it must be one of true, false"),
        ("<maxSize>1 MB</maxSize>", "`maxSize` is \"1 MB\"; it must be a number"),
        ("<maxSize/>", "`maxSize` is \"\"; it must be a number"),
    ] {
        let text = with(&format!("<logging>{inside}</logging>"));
        let failures = manifest::read(&text).unwrap_err().to_string();
        assert!(failures.contains(message), "{failures}");
        // Decoders do not need it.
        let read = manifest::read_lenient(&text).unwrap();
        assert!(read.manifest.providers[0].channels.iter().any(|one| one.enabled == Some(true)));
    }
}

/// Manifests of performance counters, which ctrpp compiles, have this form.
#[test]
fn a_manifest_without_events_is_refused() {
    let counters = "<counters xmlns=\"http://schemas.microsoft.com/win/2005/12/counters\"/>";
    let of = |inside: &str| {
        format!(
            "<instrumentationManifest xmlns=\"http://schemas.microsoft.com/win/2004/08/events\">\
             {inside}</instrumentationManifest>"
        )
    };
    let of_counters = format!("<instrumentation>{counters}</instrumentation>");
    for inside in ["", "<instrumentation/>", &of_counters] {
        let error = etw_manifest::read(&of(inside)).unwrap_err().to_string();
        assert_eq!(error, "line 1, column 1: the manifest contains no provider", "{inside}");
    }
    // The message compiler accepts this manifest.
    let empty = etw_manifest::read(&of("<instrumentation><events/></instrumentation>")).unwrap();
    assert_eq!(empty.providers.len(), 0);
}
