//! Manifests and their resources.

use etw_manifest::{
    self as manifest, InType, Manifest, OutType,
    resources::{Version, message_table, wevt_template},
};

use super::seed::Seed;

/// The manifest that etl-file's tests decode with.
const SAMPLE: &str = etl_fixtures::trace::MANIFEST;
/// The manifest that the tests of etw-manifest modify.
const SOUND: &str = include_str!("../../../formats/etw-manifest/tests/fixture/sound.man");

/// A manifest with features that the other two lack.
const ODD_MANIFEST: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events"
 xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events">
 <instrumentation><events>
  <provider name="Fuzz-0f1e2d3c4b5a69788796a5b4c3d2e1f0" symbol="F"
   guid="{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}" controlGuid="{11111111-2222-3333-4444-555555555555}"
   resourceFileName="f" messageFileName="f">
   <levels><level name="Chatty" value="16" message="$(string.l)"/></levels>
   <tasks><task name="T" value="3"><opcodes><opcode name="O" value="11"/></opcodes></task></tasks>
   <opcodes><opcode name="P" value="12" message="$(string.l)"/></opcodes>
   <keywords><keyword name="K" mask="0x10"/></keywords>
   <maps>
    <valueMap name="V"><map value="1" message="$(string.l)"/></valueMap>
    <bitMap name="B"><map value="0x2" message="$(string.l)"/></bitMap>
   </maps>
   <templates><template tid="t">
    <data name="n" inType="win:UInt16" map="V"/>
    <data name="b" inType="win:Binary" length="n" outType="win:IPv6"/>
    <data name="s" inType="win:UnicodeString" length="2" tags="0x1"/>
    <struct name="S" count="n"><data name="x" inType="win:HexInt32" map="B"/>
     <data name="i" inType="win:SID"/></struct>
    <data name="a" inType="win:UInt8" outType="xs:string" count="4"/>
    <UserData><E xmlns="u"/></UserData>
   </template></templates>
   <events><event value="7" version="1" symbol="E" level="Chatty" task="T" opcode="O"
    keywords="K win:EventlogClassic" template="t" message="$(string.m)"/></events>
  </provider>
 </events></instrumentation>
 <localization><resources culture="en-US"><stringTable>
  <string id="l" value="label"/><string id="m" value="%1!d! of %2 &amp; %%%n"/>
 </stringTable></resources></localization>
</instrumentationManifest>
"#;

/// Returns a manifest without insignificant white space.
fn joined(text: &str) -> String {
    text.lines().map(str::trim).collect()
}

/// Returns the sound manifest as two smaller ones: without and with named queries and translations.
fn sound() -> [String; 2] {
    let text = joined(SOUND);
    let (before, after) = text.split_once("<namedQueries>").expect("it has queries");
    let (_, after) = after.split_once("</namedQueries>").expect("they end");
    let (middle, _) = after.split_once("<resources culture=\"de-DE\">").expect("it is translated");
    let plain = format!("{before}{middle}</localization></instrumentationManifest>");
    let (before, after) = text.split_once("<templates>").expect("it has templates");
    let (_, after) = after.split_once("</provider>").expect("it ends");
    let rest = format!("{before}</provider>{after}");
    [plain, rest]
}

pub fn manifest_compile() -> Vec<Seed> {
    let [plain, translated] = sound();
    vec![
        Seed::new("sound.man", plain),
        Seed::new("translated.man", translated),
        Seed::new("odd.man", ODD_MANIFEST),
    ]
}

pub fn manifest() -> Vec<Seed> {
    let lines: Vec<&str> = SAMPLE.lines().map(str::trim_start).collect();
    let short = "<instrumentationManifest><instrumentation><events><provider name='P' \
                 guid='{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}'/></events></instrumentation>\
                 </instrumentationManifest>";
    let utf16 = |mark: [u8; 2], order: fn(u16) -> [u8; 2]| -> Vec<u8> {
        mark.into_iter().chain(short.encode_utf16().flat_map(order)).collect()
    };
    vec![
        Seed::new("fixture.man", lines.join("\n")),
        Seed::new("odd.man", ODD_MANIFEST),
        Seed::new("little_endian.man", utf16([0xFF, 0xFE], u16::to_le_bytes)),
        Seed::new("big_endian.man", utf16([0xFE, 0xFF], u16::to_be_bytes)),
    ]
}

/// Returns the length of a template resource, the resource, and a message table.
fn pair(templates: &[u8], messages: &[u8]) -> Vec<u8> {
    let length = u16::try_from(templates.len()).expect("seeds are small");
    [&length.to_le_bytes(), templates, messages].concat()
}

/// Returns the resources of a manifest.
fn compiled(text: &str, version: Version) -> Vec<u8> {
    let manifest: Manifest = manifest::read(text).expect("the manifests of the seeds are sound");
    let templates = wevt_template(&manifest, version).expect("they fit their resource");
    let messages = message_table(&manifest).expect("they fit their table");
    pair(&templates, &messages.unwrap_or_default())
}

/// Returns the last ID in a message table, which belongs to an event.
fn last_id(table: &[u8]) -> u32 {
    let dword = |at: usize| u32::from_le_bytes(table[at..at + 4].try_into().expect("4 bytes"));
    let blocks = usize::try_from(dword(0)).expect("blocks are few");
    // A block entry holds its first id, its last id and the offset of its strings.
    dword(12 * blocks - 4)
}

/// Returns a message table with strings in both encodings, in two blocks; the last string's id is
/// `id`.
fn two_blocks(id: u32) -> Vec<u8> {
    let texts: [(u16, &[u8]); 3] = [(0, b"8-bit\r\n\0"), (0, b"\xFFlatin\0"), (1, b"u\0\0\0")];
    let entries = texts.map(|(flags, text)| {
        let size = (4 + text.len()).next_multiple_of(4);
        let length = u16::try_from(size).expect("strings are short");
        let mut entry = [length.to_le_bytes(), flags.to_le_bytes()].concat();
        entry.extend(text);
        entry.resize(size, 0);
        entry
    });
    let first = 4 + 2 * 12;
    let second = first + entries[0].len() + entries[1].len();
    let place = |at| u32::try_from(at).expect("tables are small");
    let blocks = [2, 1, 2, place(first), id, id, place(second)];
    let mut table: Vec<u8> = blocks.into_iter().flat_map(u32::to_le_bytes).collect();
    table.extend(entries.concat());
    table
}

/// Returns the manifest of etl-file's tests without its incomplete translation.
fn sample() -> String {
    let (before, after) =
        SAMPLE.split_once("<resources culture=\"de-DE\">").expect("it is translated");
    let (_, after) = after.split_once("</resources>").expect("it ends");
    before.to_owned() + after
}

/// Returns a manifest with many events, and with a field for each pair of types.
fn types(pairs: &[(InType, OutType)]) -> String {
    let field = |(number, (in_type, out_type)): (usize, &(InType, OutType))| {
        let name = in_type.name().expect("what is shown has a name");
        let shown = out_type.name();
        let length = match name {
            "win:Binary" => "length='n'",
            _ if in_type.has_length() => "length='2'",
            _ => "",
        };
        format!("<data name='{number}_' inType='{name}' outType='{shown}' {length}/>")
    };
    let fields: Vec<String> = pairs.iter().enumerate().map(field).collect();
    let fields = fields.concat();
    let event = |id| format!("<event value='{id}' template='t{}'/>", id % 2);
    let events: Vec<String> = (0..16).map(event).collect();
    let events = events.concat();
    format!(
        "<instrumentationManifest xmlns='http://schemas.microsoft.com/win/2004/08/events' \
         xmlns:win='http://manifests.microsoft.com/win/2004/08/windows/events'>\
         <instrumentation><events><provider name='T' resourceFileName='t' messageFileName='t' \
         guid='{{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1}}' symbol='T'>\
         <templates><template tid='t0'><data name='n' inType='win:UInt16'/>{fields}</template>\
         <template tid='t1'><struct name='s' count='2'><data name='b' inType='win:UInt8'/>\
         </struct></template></templates><events>{events}</events></provider></events>\
         </instrumentation></instrumentationManifest>"
    )
}

pub fn resources() -> Vec<Seed> {
    let [plain, _] = sound();
    let odd = manifest::read(ODD_MANIFEST).expect("the manifests of the seeds are sound");
    let templates = wevt_template(&odd, Version::V5).expect("they fit their resource");
    let messages = message_table(&odd).expect("they fit their table");
    let id = last_id(&messages.expect("it has messages"));
    let changed = |at: usize, bytes: &[u8]| {
        let mut templates = templates.clone();
        templates[at..at + bytes.len()].copy_from_slice(bytes);
        pair(&templates, &[])
    };
    let cut = &templates[..templates.len() / 2];
    let mut seeds = vec![
        Seed::new("sound", compiled(&plain, Version::V5)),
        Seed::new("sound_version_3", compiled(&plain, Version::V3)),
        Seed::new("fixture", compiled(&sample(), Version::V5)),
        Seed::new("odd", compiled(ODD_MANIFEST, Version::V5)),
        Seed::new("two_blocks_of_messages", pair(&templates, &two_blocks(id))),
        Seed::new("cut", pair(cut, &[])),
        Seed::new("no_tag", changed(0, b"X")),
        Seed::new("version_4", changed(8, &[4])),
        Seed::new("no_messages", pair(&templates, &[1, 0, 0, 0])),
    ];
    let pairs: Vec<(InType, OutType)> = InType::ALL
        .iter()
        .flat_map(|in_type| in_type.out_types().iter().map(|out| (*in_type, *out)))
        .collect();
    let names = ["types_1", "types_2", "types_3"];
    let parts = pairs.chunks(pairs.len().div_ceil(names.len()));
    seeds.extend(names.into_iter().zip(parts).map(|(name, part)| {
        // The bytes after the messages serve as user data.
        let mut seed = compiled(&types(part), Version::V5);
        seed.extend(two_blocks(id));
        seed.resize(seed.len() + 400, 0);
        Seed::new(name, seed)
    }));
    seeds
}
