//! Reads the same manifests for compilers and for decoders.

use etw_manifest::{Lenient, Manifest, Part, Rule, Size, read, read_lenient};

use crate::SOUND;

/// Returns the manifest and its skipped parts with their names.
fn skipped(text: &str) -> (Manifest, Vec<(Part, String)>) {
    let Lenient { manifest, skipped } = read_lenient(text).unwrap();
    let parts = skipped.into_iter().map(|one| (one.part, one.name));
    (manifest, parts.collect())
}

fn replaced(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    SOUND.replacen(from, to, 1)
}

#[test]
fn decoders_read_what_compilers_accept() {
    let strict = read(SOUND).unwrap();
    let (lenient, parts) = skipped(SOUND);
    assert_eq!(parts, []);
    assert_eq!(format!("{lenient:?}"), format!("{strict:?}"));
}

#[test]
fn decoders_ignore_rules_that_only_compilers_need() {
    for (from, to) in [
        ("resourceFileName=\"c.sys\" ", ""),
        ("symbol=\"CONTOSO\" ", ""),
        ("symbol=\"CONTOSO\"", "symbol=\"1CONTOSO\" unknown=\"1\""),
        ("value=\"20\"", "value=\"5\""),
        ("mask=\"0x2\"", "mask=\"2\""),
        ("isolation=\"System\"", "isolation=\"None\""),
        ("<levels>", "<lovels/><levels>"),
        ("%2!s!%n%3", "%11"),
    ] {
        let text = replaced(from, to);
        assert!(read(&text).is_err(), "{to}");
        let (manifest, parts) = skipped(&text);
        assert_eq!(parts, [], "{to}");
        let events = manifest.providers[0].events.len();
        assert_eq!(events, read(SOUND).unwrap().providers[0].events.len());
    }
}

/// PHP's `wincache_etw.man` contains such comments.
#[test]
fn decoders_skip_comments_with_two_hyphens() {
    let banner = "<!--\n  +------+\n--><instrumentationManifest ";
    let text = replaced("<instrumentationManifest ", banner);
    let (manifest, parts) = skipped(&text);
    assert_eq!(parts, [(Part::Comment, String::new())]);
    assert_eq!(manifest.providers[0].events.len(), read(SOUND).unwrap().providers[0].events.len());
    let place = text.find("------").unwrap();
    let line = text[..place].matches('\n').count() + 1;
    let column = place - text[..place].rfind('\n').unwrap();
    let reason =
        format!("line {line}, column {column}: a comment must not contain `--` before its end");
    let skipped = read_lenient(&text).unwrap().skipped;
    assert!(skipped[0].to_string().starts_with(&reason), "{}", skipped[0]);
    assert!(skipped[0].to_string().ends_with("; skipping the comment"), "{}", skipped[0]);
    let refused = read(&text).unwrap_err().to_string();
    assert!(refused.starts_with(&reason), "{refused}");
}

#[test]
fn skipping_a_template_skips_only_its_events() {
    let text = replaced("inType=\"win:UInt64\"", "inType=\"win:UInt128\"");
    let (manifest, parts) = skipped(&text);
    let (kind, name) = &parts[0];
    assert_eq!((*kind, name.as_str()), (Part::Template, "T1"));
    assert!(parts[1..].iter().all(|(part, _)| *part == Part::Event));
    let all = read(SOUND).unwrap();
    let events = |manifest: &Manifest| manifest.providers[0].events.len();
    assert_eq!(events(&manifest), events(&all) - (parts.len() - 1));
    assert!(events(&manifest) > 0);
}

#[test]
fn parts_are_counted_and_listed_in_the_order_of_the_file() {
    let text = replaced("value=\"21\"", "value=\"many\"")
        .replace("mask=\"0x2\"", "mask=\"two\"")
        .replace("<event value=\"3\" ", "<event ");
    let read = read_lenient(&text).unwrap();
    let places: Vec<_> = read.skipped.iter().map(|one| one.why.at).collect();
    assert!(places.is_sorted(), "{places:?}");
    let count = |part| read.skipped.iter().filter(|one| one.part == part).count();
    assert_eq!(count(Part::Level), 1);
    assert_eq!(count(Part::Keyword), 1);
    assert_eq!(count(Part::Event), 1);
    let loud = read.skipped.iter().find(|one| one.part == Part::Level);
    let loud = loud.unwrap().to_string();
    assert!(loud.ends_with("must be a number from 16 to 255; skipping level \"Loud\""), "{loud}");
}

/// `strTableRef` of eventman.xsd has two forms; for the second, mc.exe needs a message file. No
/// reader supports it.
#[test]
fn a_text_from_a_message_file_is_not_in_the_manifest() {
    for reference in ["$(mc.CONTOSO_NAME)", "$(MC.CONTOSO_NAME)"] {
        let text = replaced("$(string.Provider)", reference);
        let failures = read(&text).unwrap_err();
        assert_eq!(failures.0.len(), 1, "{failures}");
        let rule = &failures.0[0].rule;
        assert_eq!(*rule, Rule::MessageFile("CONTOSO_NAME".to_owned()));
        assert!(rule.to_string().contains("message file (.mc)"), "{rule}");
        let (manifest, parts) = skipped(&text);
        assert_eq!(parts, [(Part::Reference, "CONTOSO_NAME".to_owned())]);
        assert_eq!(manifest.providers[0].message, None);
    }
    let text = replaced("$(string.Provider)", "Contoso");
    assert!(matches!(read(&text).unwrap_err().0[0].rule, Rule::TextReference(_)));
    let (_, parts) = skipped(&text);
    assert_eq!(parts, [(Part::Reference, "Contoso".to_owned())]);
}

#[test]
fn a_member_may_be_counted_by_a_field_before_its_structure() {
    let text = "<instrumentationManifest \
         xmlns='http://schemas.microsoft.com/win/2004/08/events' \
         xmlns:w='http://manifests.microsoft.com/win/2004/08/windows/events'>\
         <instrumentation><events><provider name='P' \
         guid='{11111111-2222-3333-4444-555555555555}' symbol='P' resourceFileName='a' \
         messageFileName='a'><templates><template tid='T'><data name='n' inType='w:UInt16'/>\
         <struct name='s'><data name='m' inType='w:UInt8' count='n'/></struct></template>\
         </templates><events><event value='1' template='T'/></events></provider></events>\
         </instrumentation></instrumentationManifest>";
    let (manifest, parts) = skipped(text);
    assert_eq!(parts, []);
    let template = &manifest.providers[0].templates[0];
    let etw_manifest::PropertyKind::Struct(members) = &template.properties[1].kind else {
        panic!("{template:?}");
    };
    assert_eq!(members[0].count, Size::Outer(0));
    // No known compiler accepts this reference.
    let failures = read(text).unwrap_err();
    assert_eq!(failures.0.len(), 1, "{failures}");
    assert_eq!(failures.0[0].rule, Rule::SizeField("n".to_owned()));
}

#[test]
fn a_document_that_is_not_a_manifest_is_refused() {
    assert!(matches!(read_lenient("<a>").unwrap_err().rule, Rule::Xml(_)));
    assert!(matches!(read_lenient("<a/>").unwrap_err().rule, Rule::NotAManifest(_)));
}

/// Returns a manifest whose provider contains these parts.
fn around(localization: &str, provider: &str) -> String {
    format!(
        "<instrumentationManifest xmlns='http://schemas.microsoft.com/win/2004/08/events' \
         xmlns:win='http://manifests.microsoft.com/win/2004/08/windows/events'>\
         <instrumentation><events><provider name='P' \
         guid='{{11111111-2222-3333-4444-555555555555}}'>{provider}</provider></events>\
         </instrumentation><localization>{localization}</localization></instrumentationManifest>"
    )
}

#[test]
fn a_skipped_part_does_not_displace_the_next_one() {
    let events = "<event value='1' template='nope'/><event value='1'/>";
    let texts = "<resources culture='en-US'><stringTable>\
         <string id='a'/><string id='a' value='b'/></stringTable></resources>";
    let text = around(texts, &format!("<events>{events}</events>"));
    let (manifest, parts) = skipped(&text);
    assert_eq!(parts, [(Part::Event, "1".to_owned()), (Part::Text, "a".to_owned())]);
    assert_eq!(manifest.providers[0].events.len(), 1);
    assert_eq!(manifest.texts.len(), 1);
    assert_eq!(manifest.texts[0].value, "b");
}

#[test]
fn a_skipped_language_leaves_no_texts() {
    let table = |attribute: &str, value: &str| {
        format!(
            "<resources {attribute}><stringTable><string id='a' value='{value}'/></stringTable>\
             </resources>"
        )
    };
    let languages = table("", "lost") + &table("culture='de-DE'", "kept");
    let (manifest, parts) = skipped(&around(&languages, ""));
    assert_eq!(parts, [(Part::Language, String::new())]);
    assert_eq!(manifest.culture, "de-DE");
    let texts: Vec<&str> = manifest.texts.iter().map(|text| text.value.as_str()).collect();
    assert_eq!(texts, ["kept"]);
}

/// The time must not grow quadratically with the size, even if everything is on one line.
#[test]
fn long_manifests_are_read_in_proportionate_time() {
    const COUNT: usize = 30_000;
    let each = |part: &dyn Fn(usize) -> String| (0..COUNT).map(part).collect::<String>();
    let texts = each(&|at| format!("<string id='t{at}' value='v'/>"));
    let texts =
        format!("<resources culture='en-US'><stringTable>{texts}</stringTable></resources>");
    let maps = each(&|at| format!("<valueMap name='m{at}'/>"));
    let templates = each(&|at| {
        format!("<template tid='t{at}'><data name='d' inType='win:Int8' map='m{at}'/></template>")
    });
    let keywords = each(&|at| format!("<keyword name='k{at}' mask='1'/>"));
    let events = each(&|at| {
        format!("<event value='{at}' template='t{at}' keywords='k{at}' message='$(string.t{at})'/>")
    });
    let text = around(
        &texts,
        &format!(
            "<keywords>{keywords}</keywords><maps>{maps}</maps>\
             <templates>{templates}</templates><events>{events}</events>"
        ),
    );
    let start = std::time::Instant::now();
    let (manifest, parts) = skipped(&text);
    assert_eq!(parts, []);
    assert_eq!(manifest.providers[0].events.len(), COUNT);
    // Searching whole lists took minutes.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn decoders_ignore_where_the_namespace_starts() {
    const NAMESPACE: &str = " xmlns=\"http://schemas.microsoft.com/win/2004/08/events\"";
    let text = replaced(NAMESPACE, "").replacen("<events>", &format!("<events{NAMESPACE}>"), 1);
    let (manifest, parts) = skipped(&text);
    assert_eq!(parts, []);
    let events = read(SOUND).unwrap().providers[0].events.len();
    assert_eq!(manifest.providers[0].events.len(), events);
    let (_, parts) = skipped("<instrumentationManifest/>");
    assert_eq!(parts, [(Part::Provider, String::new())]);
}

#[test]
fn a_provider_that_is_not_read_is_reported_and_an_empty_manifest_is_not() {
    let around = |inner: &str| {
        format!(
            "<instrumentationManifest><instrumentation>{inner}</instrumentation></instrumentationManifest>"
        )
    };
    let missing = [(Part::Provider, String::new())];
    assert_eq!(skipped(&around("<events></events>")).1, []);
    assert_eq!(skipped(&around("")).1, missing);
    let misplaced = "<events><group><provider name='P'/></group></events>";
    assert_eq!(skipped(&around(misplaced)).1, missing);
}

#[test]
fn decoders_accept_types_without_a_prefix() {
    let text = replaced("inType=\"win:UInt64\"", "inType=\"UInt64\"")
        .replacen("outType=\"win:HexInt64\"", "outType=\"HexInt64\"", 1);
    assert!(read(&text).is_err());
    let (manifest, parts) = skipped(&text);
    assert_eq!(parts, []);
    let kinds = |manifest: &Manifest| {
        let properties = &manifest.providers[0].templates[0].properties;
        format!("{:?}", properties.iter().map(|one| &one.kind).collect::<Vec<_>>())
    };
    assert_eq!(kinds(&manifest), kinds(&read(SOUND).unwrap()));
}

/// A manifest as export tools write it: with unescaped values, `win:Always` for level 0, names that
/// lose their spaces at one occurrence, and repeated strings.
const EXPORTED: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events">
  <events><provider name="Contoso-Exported" guid="{1d5f8a60-7d1b-4c35-9e02-51a60b7c0003}"
    resourceFileName="x" messageFileName="x" symbol="X">
   <maps><valueMap name="M">
    <map value="0x1" message="$(string.m"Not <all>" & more)"/>
   </valueMap></maps>
   <templates><template tid="T">
    <data name="HashSize" inType="win:UInt32"/>
    <data name="Hash" inType="win:Binary" length="Hash Size"/>
   </template></templates>
   <events><event value="1" version="0" level="win:Always" template="T"/></events>
  </provider></events>
 </instrumentation>
 <localization><resources culture="en-US"><stringTable>
  <string id="m"Not <all>" & more" value="Not "all""/>
  <string id="m"Not <all>" & more" value="Not "all""/>
 </stringTable></resources></localization>
</instrumentationManifest>
"#;

#[test]
fn an_exported_manifest_is_read_with_its_characters() {
    let Lenient { manifest, skipped } = read_lenient(EXPORTED).unwrap();
    let provider = &manifest.providers[0];
    assert_eq!(provider.events.len(), 1);
    assert_eq!(provider.events[0].level.map(|at| provider.levels[at].value), Some(0));
    assert_eq!(provider.templates[0].properties.len(), 2);
    let text = provider.maps[0].items[0].message.unwrap();
    assert_eq!(manifest.texts[text].value, "Not \"all\"");
    assert!(skipped.iter().all(|one| one.part == Part::Character), "{skipped:?}");
    assert_eq!(
        skipped[0].to_string(),
        "line 6, column 1: `\"` has to be escaped in XML; taking it literally"
    );
    assert!(etw_manifest::read(EXPORTED).is_err(), "compilers refuse it");
}

#[test]
fn utf_16_is_recognised_without_a_byte_order_mark() {
    let units = EXPORTED.encode_utf16();
    let little: Vec<u8> = units.clone().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units.flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        assert_eq!(etw_manifest::text(&bytes).as_deref(), Some(EXPORTED));
    }
}
