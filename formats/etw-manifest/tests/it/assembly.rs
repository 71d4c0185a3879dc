//! Reads manifests inside an assembly, as Windows components ship them.

use etw_manifest::{Lenient, Rule, read, read_lenient};

use crate::SOUND;

const EVENTS: &str = "http://schemas.microsoft.com/win/2004/08/events";
const ASSEMBLY: &str = "urn:schemas-microsoft-com:asm.v3";

/// Returns the manifest's root element, without the XML declaration.
fn element() -> &'static str {
    &SOUND[SOUND.find("<instrumentationManifest").unwrap()..]
}

/// Returns an assembly that contains a whole manifest.
fn below() -> String {
    let element = element();
    format!(
        "<assembly xmlns='{ASSEMBLY}' manifestVersion='1.0'><assemblyIdentity name='x'/>\
         {element}</assembly>"
    )
}

/// Returns an assembly with the manifest's parts. Only `events` is in the manifests' namespace.
fn spread() -> String {
    let text = element().replacen("<instrumentationManifest", "<assembly", 1);
    let text = text.replace("</instrumentationManifest>", "</assembly>");
    let text = text.replacen(&format!("xmlns=\"{EVENTS}\""), &format!("xmlns=\"{ASSEMBLY}\""), 1);
    let text = text.replacen("<events>", &format!("<events xmlns=\"{EVENTS}\">"), 1);
    assert!(text.contains(ASSEMBLY) && text.contains(EVENTS), "{text}");
    text.replacen("<instrumentation>", "<file name=\"c.sys\"/><instrumentation>", 1)
}

/// Returns a model's text without locations, which differ.
fn placeless(model: &impl std::fmt::Debug) -> String {
    let text = format!("{model:?}");
    let mut parts = text.split("Position {");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| all + part.split_once('}').unwrap().1)
}

#[test]
fn an_assembly_contains_a_manifest_or_its_parts() {
    let expected = placeless(&read(SOUND).unwrap());
    for text in [below(), spread()] {
        let strict = match read(&text) {
            Ok(manifest) => manifest,
            Err(failures) => panic!("{failures}: {text}"),
        };
        assert_eq!(placeless(&strict), expected, "{text}");
        let Lenient { manifest, skipped } = read_lenient(&text).unwrap();
        assert_eq!(skipped, []);
        assert_eq!(placeless(&manifest), expected, "{text}");
    }
}

#[test]
fn the_form_of_an_assemblys_manifest_is_checked() {
    for text in [below(), spread()] {
        for (from, to) in
            [("<levels>", "<lovels/><levels>"), ("<stringTable>", "<strongTable/><stringTable>")]
        {
            let text = text.replacen(from, to, 1);
            let failures = read(&text).unwrap_err();
            assert!(matches!(failures.0[0].rule, Rule::Element { .. }), "{failures}");
        }
    }
}

#[test]
fn an_assembly_without_providers_is_not_a_manifest() {
    let text = "<assembly xmlns='urn:schemas-microsoft-com:asm.v1' manifestVersion='1.0'>\
                <trustInfo/></assembly>";
    let failures = read(text).unwrap_err();
    assert_eq!(failures.0[0].rule, Rule::NoProvider);
    let lenient = read_lenient(text).unwrap();
    assert_eq!(lenient.skipped[0].why.rule, Rule::NoProvider);
    assert!(lenient.manifest.providers.is_empty());
}
