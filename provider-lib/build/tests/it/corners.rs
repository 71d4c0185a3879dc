//! Tests unusual but valid manifests and declarations.

use std::fs;

use etw_manifest::{
    self as manifest, InType, Manifest, Node, PropertyKind, Size, compare, res,
    resources::{EncodeError, resources},
};
use wdk_etw_build::import;

use crate::helpers::{self, FILES, declared, man};

/// Reads a manifest whose provider contains these parts, with these strings.
fn read(inside: &str, texts: &str) -> Manifest {
    helpers::read(&man(inside, texts))
}

/// Returns a manifest with one event that uses `template`.
fn with_template(template: &str) -> Manifest {
    read(
        &format!(
            "<templates><template tid='T'>{template}</template></templates>\
             <events><event value='1' template='T' level='win:Error'/></events>"
        ),
        "",
    )
}

/// Imports a manifest, and checks that the declaration is valid and agrees with the manifest.
/// Returns the declaration's source and the number of notes.
fn imported(manifest: &Manifest) -> (String, usize) {
    let imported = import::declaration(manifest, None);
    let declared = declared(&imported.source);
    let wrong = compare::disagreements(&declared, manifest);
    assert_eq!(wrong, [], "{}", imported.source);
    (imported.source, imported.notes.len())
}

#[test]
fn a_different_layout_disagrees() {
    let two = with_template("<data name='A' inType='win:Binary' length='16' count='3'/>");
    let one = with_template("<data name='A' inType='win:Binary' length='16'/>");
    assert_eq!(compare::disagreements(&one, &two).len(), 1);
    let counted = |count| {
        with_template(&format!(
            "<data name='L' inType='win:UInt16'/><data name='A' inType='win:Binary' length='L' {count}/>"
        ))
    };
    assert_eq!(compare::disagreements(&counted(""), &counted("")), []);
    assert_eq!(compare::disagreements(&counted(""), &counted("count='3'")).len(), 1);
}

#[test]
fn a_log_of_windows_is_imported_with_its_keyword_bit() {
    let manifest = read(
        "<channels><importChannel name='System' chid='S'/>\
         <channel name='P/Op' chid='OP' type='Operational' value='16'/></channels>\
         <events><event value='1' channel='OP' level='win:Error'/>\
         <event value='2' channel='S' level='win:Error' message='$(string.E)'/></events>",
        "<string id='E' value='An error'/>",
    );
    let (source, notes) = imported(&manifest);
    assert!(source.contains("#[channel(Import)]"), "{source}");
    assert_eq!(notes, 0);
    let made = declared(&source);
    let masks = |manifest: &Manifest| {
        let provider = &manifest.providers[0];
        let events = provider.events.iter();
        events.map(|event| provider.keyword_mask(event)).collect::<Vec<_>>()
    };
    assert_eq!(masks(&made), [1 << 62, 1 << 63]);
    assert_eq!(masks(&made), masks(&manifest));
    let templates = |manifest: &Manifest| resources(manifest).unwrap().remove(0);
    let again = manifest::read(&manifest::write(&made, "")).unwrap();
    assert_eq!(templates(&again), templates(&made));
}

#[test]
fn a_channel_after_one_that_is_not_imported_has_a_different_keyword_bit() {
    let manifest = read(
        "<channels><importChannel name='TraceLogging' chid='S'/>\
         <channel name='P/Op' chid='OP' type='Operational' value='16'/></channels>\
         <events><event value='1' channel='OP' level='win:Error'/></events>",
        "",
    );
    let alone = "#[provider(name = \"P\", guid = \"11111111-2222-3333-4444-555555555555\", encoding = \
                 manifest)]\nmod t {\n #[channels]\n enum Channel { #[channel(Operational)] Op = 16 }\n \
                 #[event(id = 1, level = Error, keyword = none, channel = Op)]\n fn x();\n}";
    let wrong = compare::disagreements(&declared(alone), &manifest);
    let text = wrong[0].to_string();
    assert!(text.contains("the channel keyword is"), "{text}");
}

#[test]
fn texts_cannot_end_their_comments() {
    let text = man("", "<string id='A' value='x&#13;&#10;y \u{202e} z'/>")
        .replace("symbol='P'", "symbol='P' message='$(string.A)'");
    let manifest = manifest::read(&text).unwrap();
    let (source, _) = imported(&manifest);
    assert!(source.starts_with("/// x  y \\u{202e} z\n#["), "{source}");
}

#[test]
fn notes_cannot_control_a_terminal() {
    let event = |name: &str, layout: &str| {
        read(
            &format!(
                "<templates><template tid='T'><data name='A' inType='{layout}'/></template>\
                 </templates><events><event value='1' name='{name}' template='T' \
                 level='win:Error'/></events>"
            ),
            "",
        )
    };
    let older = event("E", "win:UInt8");
    let mut newer = event("E", "win:UInt16");
    newer.providers[0].name = "P\u{9b}2J\u{202e}".to_owned();
    let breaks = compare::breaks(&older, &newer);
    let text = breaks[0].to_string();
    assert!(text.contains("P\\u{9b}2J\\u{202e}: event 1"), "{text}");
    let array = "<data name='A\u{9b}\u{202e}' inType='win:UnicodeString' count='2'/>";
    let notes = import::declaration(&with_template(array), None).notes;
    let text = notes[0].to_string();
    assert!(text.contains("`A\\u{9b}\\u{202e}` is an array"), "{text}");
}

#[test]
fn generated_names_avoid_declared_ones() {
    for event in [
        "fn e(data: &[u8], data_length: u32);",
        "fn e(data_length: u32, data: &[u8]);",
        "fn on_line();\n#[event(id = 2, level = Info, keyword = none)]\nfn online();",
        "#[name = \"3rd\"]\nfn e();",
    ] {
        let event = event.replace("#[name = \"3rd\"]\n", "");
        let source = format!(
            "#[provider(name = \"3Com.Driver\", encoding = manifest)]\nmod t {{\n#[keyword]\n#[name = \"Disk \
             IO\"]\nconst IO: Keyword = Keyword::bit(0);\n#[event(id = 1, level = Info, keyword = IO)]\n{event}\n}}"
        );
        let made = declared(&source);
        assert_eq!(manifest::check(&made), [], "{source}");
        let text = manifest::write(&made, "");
        let again = manifest::read(&text).unwrap();
        assert_eq!(resources(&again), resources(&made), "{text}");
        assert!(text.contains("value=\"Disk IO\""), "{text}");
    }
}

#[test]
fn elements_of_other_namespaces_are_ignored() {
    let manifest = read(
        "<events><x:note xmlns:x='urn:x' value='7'>hi</x:note><event value='1'/></events>",
        "",
    );
    assert_eq!(manifest.providers[0].events.len(), 1);
}

#[test]
fn a_templates_own_xml_may_be_a_single_text_but_not_endless() {
    let manifest = with_template(
        "<data name='a' inType='win:UInt32'/><UserData><My xmlns='urn:my'> %1 </My></UserData>",
    );
    let own = manifest.providers[0].templates[0].user_data.as_ref().unwrap();
    assert!(matches!(own.nodes.as_slice(), [Node::Text(text)] if text == " %1 "));
    let again = manifest::read(&manifest::write(&manifest, "")).unwrap();
    assert_eq!(resources(&again), resources(&manifest));
    let deep = "<a xmlns='urn:my'>".repeat(20_000) + &"</a>".repeat(20_000);
    let text = man(
        &format!("<templates><template tid='T'><UserData>{deep}</UserData></template></templates>"),
        "",
    );
    let failures = manifest::read(&text).unwrap_err().to_string();
    assert!(failures.contains("nested at most 32 levels deep"), "{failures}");
}

#[test]
fn there_is_a_message_table_for_each_language() {
    let text = include_str!("../../../../formats/etw-manifest/tests/fixture/sound.man");
    let manifest = manifest::read(text).unwrap();
    let tables: Vec<_> = resources(&manifest)
        .unwrap()
        .into_iter()
        .filter(|one| one.kind == res::MESSAGE_TABLE)
        .collect();
    let languages: Vec<u16> = tables.iter().map(|one| one.language).collect();
    assert_eq!(languages, [0x409, 0x407]);
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let has = |at: usize, text: &str| {
        let text = utf16(text);
        tables[at].data.windows(text.len()).any(|window| window == text)
    };
    assert!(has(0, "Contoso driver") && has(1, "Contoso-Treiber") && !has(1, "Contoso driver"));
    // A string without a translation is unchanged.
    assert!(has(1, "Plug and play"));
    let other = manifest::read(&text.replace("de-DE", "x-None")).unwrap();
    assert_eq!(resources(&other), Err(EncodeError::Language("x-None".to_owned())));
}

#[test]
fn a_manifest_is_named_from_its_packages_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    let manifest = with_template("<data name='a' inType='win:UInt32'/>");
    fs::write(folder.path().join("own.man"), manifest::write(&manifest, "")).unwrap();
    let source = folder.path().join("src/trace.rs");
    fs::write(&source, import::declaration(&manifest, Some("own.man")).source).unwrap();
    let (_, read) = wdk_etw_build::manifest_of(&source, &FILES).unwrap();
    assert!(read[1].ends_with("own.man"), "{read:?}");
    assert_eq!(wdk_etw_build::package_folder(&source), folder.path().to_owned());
}

/// Two strings cannot have the same id: a decoder would show one of them for both.
#[test]
fn generated_ids_are_unique() {
    let refused = |text: &str| {
        let Err(failures) = manifest::read(text) else {
            panic!("accepted: {text}");
        };
        failures.to_string()
    };
    // In an opcode's message id, eight bits are for the task's number.
    let task = |number: u32| {
        format!(
            "<task name='T{number}' value='{number}'><opcodes><opcode name='O{number}' \
             value='12' message='$(string.O{number})'/></opcodes></task>"
        )
    };
    let texts = "<string id='O1' value='one'/><string id='O257' value='two'/>\
                 <string id='O2' value='three'/>";
    let tasks = |second| format!("<tasks>{}{}</tasks>", task(1), task(second));
    read(&tasks(2), texts);
    let error = refused(&man(&tasks(257), texts));
    assert!(error.ends_with("message id \"0x3001000c\" is defined twice"), "{error}");

    let event = "<events><event value='1' message='$(string.E)'/></events>";
    let texts = "<string id='E' value='one'/><string id='F' value='two'/>";
    let table = |id: &str| {
        man(event, texts).replace(
            "<events><provider",
            &format!(
                "<events><messageTable><message value='{id}' message='$(string.F)'/>\
                 </messageTable><provider"
            ),
        )
    };
    assert!(manifest::read(&table("0xB0000002")).is_ok());
    let error = refused(&table("0xB0000001"));
    assert!(error.ends_with("message id \"0xb0000001\" is defined twice"), "{error}");
}

#[test]
fn items_and_providers_are_separated_by_one_empty_line() {
    let mut manifest = read(
        "<keywords><keyword name='K' mask='0x1'/></keywords>\
         <events><event value='1' level='win:Error' keywords='K'/>\
         <event value='2' level='win:Error'/></events>",
        "",
    );
    let (source, _) = imported(&manifest);
    let lines: Vec<&str> = source.lines().collect();
    let empty: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].is_empty()).collect();
    let starts: Vec<usize> = (0..lines.len())
        .filter(|at| lines[*at].starts_with("    #[event") || lines[*at] == "    #[keyword]")
        .collect();
    assert_eq!(starts.len(), 3, "{source}");
    let before: Vec<usize> = starts[1..].iter().map(|at| at - 1).collect();
    assert_eq!(empty, before, "{source}");

    // A declaration cannot have such a name, but resources can contain it.
    let other = |name: &str, symbol: &str, byte| {
        let mut other = manifest.providers[0].clone();
        other.name = name.to_owned();
        other.symbol = symbol.to_owned();
        other.guid = etw_wire::Guid::from_bytes([byte; 16]);
        other
    };
    let others =
        [other("A|B", "Faulty", 1), other("Second", "Second", 2), other("C|D", "Faulty2", 3)];
    manifest.providers.extend(others);
    let both = import::declaration(&manifest, None);
    let joints = both.source.matches("\n}\n\n#[wdk_etw::provider(").count();
    assert_eq!(joints, 1, "{}", both.source);
    assert_eq!(both.source.matches("pub mod ").count(), 2);
    assert!(both.source.ends_with("    pub fn event_2();\n}\n"));
    assert_eq!(both.counts, import::Counts { all: 8, left_out: 4, changed: 0 });
    let notes = both.notes.iter().map(|note| note.what.as_str());
    let notes: Vec<&str> = notes.map(|note| note.split(": ").next().unwrap()).collect();
    let refused = |name| {
        format!("the provider {name} was not imported, because a declaration cannot express it")
    };
    assert_eq!(notes, [refused("A|B"), refused("C|D")]);
}

#[test]
fn a_keyword_has_a_bit_of_the_provider() {
    let mut manifest = read(
        "<keywords><keyword name='Low' mask='0x1'/><keyword name='High' mask='0x800000000000'/>\
         <keyword name='Past' mask='0x2'/></keywords>\
         <events><event value='1' level='win:Error' keywords='Low High Past win:EventlogClassic'/>\
         </events>",
        "",
    );
    let keywords = &mut manifest.providers[0].keywords;
    let past = keywords.iter_mut().find(|one| one.mask == 2).unwrap();
    // Only resources can contain this mask.
    past.mask = 1 << 48;
    let imported = import::declaration(&manifest, None);
    for keyword in ["LOW: Keyword = Keyword::bit(0);", "HIGH: Keyword = Keyword::bit(47);"] {
        assert!(imported.source.contains(keyword), "{}", imported.source);
    }
    let notes = helpers::notes(&imported);
    let is_noted = |part: &str| notes.iter().filter(|note| note.contains(part)).count();
    assert_eq!(
        is_noted(
            "the keyword Past has the mask 0x1000000000000, which is not one of the bits 0 to 47"
        ),
        1,
        "{notes:?}"
    );
    assert_eq!(
        is_noted("the keyword win:EventlogClassic is reserved for Microsoft"),
        1,
        "{notes:?}"
    );
    // A Microsoft keyword without a bit causes no removal.
    let mut without = manifest.clone();
    for keyword in &mut without.providers[0].keywords {
        if keyword.standard {
            keyword.mask = 0;
        }
    }
    let imported = import::declaration(&without, None);
    assert!(
        !imported.notes.iter().any(|note| note.what.contains("reserved for Microsoft")),
        "{:?}",
        imported.notes
    );
}

#[test]
fn a_count_of_several_values_is_not_part_of_the_next_field() {
    let mut manifest = with_template(
        "<data name='N' inType='win:UInt16'/><data name='A' inType='win:UInt32' count='N'/>\
         <data name='B' inType='win:UInt32' count='N'/>",
    );
    // Only in resources can a count consist of several values.
    let properties = &mut manifest.providers[0].templates[0].properties;
    properties.pop();
    properties[0].count = Size::Fixed(2);
    let imported = import::declaration(&manifest, None);
    assert_eq!(
        helpers::notes(&imported),
        ["event 1 version 0 was not imported: `N` is the count or length of `A`, but it is not a \
             single integer"]
    );
}

#[test]
fn a_count_that_a_declaration_cannot_have_is_named() {
    let notes = |manifest: &Manifest| {
        let notes = import::declaration(manifest, None).notes;
        notes.into_iter().map(|note| note.what).collect::<Vec<_>>()
    };
    let mut manifest = with_template(
        "<data name='N' inType='win:UInt16'/><data name='A' inType='win:UInt32' count='N'/>\
         <data name='B' inType='win:UInt32' count='N'/>",
    );
    let properties = &mut manifest.providers[0].templates[0].properties;
    let PropertyKind::Data { in_type, out_type, .. } = &mut properties[0].kind else { panic!() };
    (*in_type, *out_type) = (InType::Int16, InType::Int16.out_types()[0]);
    assert_eq!(
        notes(&manifest),
        ["event 1 version 0 was not imported: `N`, the count or length of `A`, is not a single \
             unsigned integer"]
    );

    // Unlike XML, resources can refer to a count outside a structure.
    for is_count in [false, true] {
        let mut manifest = with_template(
            "<data name='N' inType='win:UInt16'/><struct name='S'>\
             <data name='A' inType='win:UnicodeString'/></struct>",
        );
        let properties = &mut manifest.providers[0].templates[0].properties;
        let PropertyKind::Struct(members) = &mut properties[1].kind else { panic!() };
        let size = if is_count { &mut members[0].count } else { &mut members[0].length };
        *size = Size::Outer(0);
        assert_eq!(
            notes(&manifest),
            ["event 1 version 0 was not imported: the count or length of the member `A` is not a \
                 member of its structure"]
        );
    }
}

#[test]
fn an_opcode_with_a_number_of_microsofts_becomes_that_one() {
    let mut manifest = read(
        "<opcodes><opcode name='Mine' value='10'/></opcodes>\
         <events><event value='1' level='win:Error' opcode='Mine'/></events>",
        "",
    );
    // Only resources can contain this value.
    manifest.providers[0].opcodes[0].value = 2;
    let imported = import::declaration(&manifest, None);
    assert!(imported.source.contains("opcode = Stop"), "{}", imported.source);
    let notes = helpers::notes(&imported);
    assert!(
        notes.contains(&"the opcode Mine has the number 2, which is reserved for Microsoft"),
        "{notes:?}"
    );
}

#[test]
fn an_event_keeps_a_name_that_its_function_does_not_have() {
    let mut manifest = read(
        "<events><event value='1' level='win:Error' symbol='First'/>\
         <event value='2' level='win:Error' symbol='Second'/>\
         <event value='3' level='win:Error' symbol='Third'/></events>",
        "",
    );
    let names = ["Odd name", "Second", ""];
    for (event, name) in manifest.providers[0].events.iter_mut().zip(names) {
        event.name = Some(name.to_owned());
    }
    let imported = import::declaration(&manifest, None);
    assert_eq!(imported.counts.left_out, 0, "{:?}", imported.notes);
    let (_, events) = imported.source.split_once("mod trace").unwrap();
    assert!(events.contains("name = \"Odd name\""), "{events}");
    assert_eq!(events.matches("name = ").count(), 1, "{events}");
}

#[test]
fn only_an_imported_channel_is_a_log_of_windows() {
    let mut manifest = read(
        "<channels><channel name='P/Op' chid='OP' type='Operational' value='16'/></channels>\
         <events><event value='1' level='win:Error'/></events>",
        "",
    );
    // Only resources can contain this value.
    manifest.providers[0].channels[0].value = 8;
    let imported = import::declaration(&manifest, None);
    assert!(!imported.source.contains("#[channel"), "{}", imported.source);
}
