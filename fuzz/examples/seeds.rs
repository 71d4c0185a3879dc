//! Writes the seeds that the targets start from: `cargo run --example seeds` in `fuzz/`.

#[path = "../../tools/etl/tests/fixture/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod fixture;
#[path = "../../tests/kernel/tests/small_image/mod.rs"]
mod small_image;

use std::{fs, io, path::Path};

use etl_file::{ClockType, EventRecord, record::ext_type, write::Losses};
use small_image::Image;

/// Bytes per buffer of the files among the seeds; the writer makes none so small.
const SMALL: usize = 1024;

fn main() -> io::Result<()> {
    etl_read()?;
    etl_round_trip()?;
    manifest()?;
    manifest_compile()?;
    pe_load()?;
    filter_data()?;
    traits()?;
    script()?;
    tracelogging()
}

/// Keeps a seed of a target.
fn put(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    /// Larger seeds would make the fuzzer slow.
    const LARGEST: usize = 4096;
    assert!(bytes.len() < LARGEST, "{target}/{name} is too large");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("seeds")
        .join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// A file with its buffers cut down to what they use.
fn small(file: &[u8]) -> Vec<u8> {
    let size = u32::try_from(SMALL).expect("it is small").to_le_bytes();
    let mut out = Vec::new();
    for buffer in file.chunks(0x1000) {
        let used = u32::from_le_bytes(buffer[0x30..0x34].try_into().expect("4 bytes"));
        assert!(used as usize <= SMALL, "{used} bytes are used");
        let start = out.len();
        out.extend(&buffer[..SMALL]);
        out[start..start + 4].copy_from_slice(&size);
    }
    // BufferSize of the trace's header.
    out[0x68..0x6C].copy_from_slice(&size);
    out
}

fn etl_read() -> io::Result<()> {
    let clocks = [
        ("qpc.etl", ClockType::Qpc),
        ("system_time.etl", ClockType::SystemTime),
        ("cycles.etl", ClockType::CpuCycles),
    ];
    for (name, clock) in clocks {
        let header = fixture::header(clock, 0x1000, 1);
        let (file, _) = fixture::file(header, 4, Losses::default());
        put("etl_read", name, &small(&file))?;
    }
    let losses = Losses {
        events_lost: 3,
        buffers_lost: 1,
    };
    let header = fixture::header(ClockType::Qpc, 0x1000, 2);
    let (file, _) = fixture::file(header, 6, losses);
    let mut file = small(&file);
    put("etl_read", "processors_and_losses.etl", &file)?;
    // The same of 32-bit code, and cut short.
    file[SMALL + 74] = 0x12;
    file.truncate(3 * SMALL - 700);
    put("etl_read", "cut_short.etl", &file)?;
    // Records of the kernel's, of classic providers and of WPP.
    let header = fixture::header(ClockType::Qpc, 0x1000, 1);
    let (file, _) = fixture::file(header, 1, Losses::default());
    let mut file = small(&file);
    let mut at = SMALL + 72;
    for first in [
        [2, 0, 2, 0xC0, 40, 0, 0x24, 3],
        [2, 0, 4, 0xC0, 24, 0, 1, 2],
        [2, 0, 0x11, 0xC0, 16, 0, 0x2E, 15],
        [48, 0, 0x14, 0xC0, 1, 0, 0, 0],
        [56, 0, 0x15, 0xC0, 1, 0, 0, 0],
        [16, 0, 1, 0x90, 0, 0, 0, 0],
    ] {
        let size = match first[3] {
            0xC0 if first[0] == 2 => first[4],
            _ => first[0],
        };
        file[at..at + 8].copy_from_slice(&first);
        at += usize::from(size);
    }
    for used in [4, 8, 0x30] {
        let bytes = u32::try_from(at - SMALL).expect("small").to_le_bytes();
        file[SMALL + used..SMALL + used + 4].copy_from_slice(&bytes);
    }
    put("etl_read", "other_records.etl", &file)
}

/// What these mean is up to `arbitrary`; that they differ is what counts.
fn etl_round_trip() -> io::Result<()> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    for length in [64_usize, 256, 1024, 3072] {
        let bytes: Vec<u8> = (0..length)
            .map(|at| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                // Bytes of texts and of small numbers among others.
                match at % 4 {
                    0 => 1,
                    1 => b'a' + state.to_le_bytes()[1] % 26,
                    2 => state.to_le_bytes()[2] & 3,
                    _ => state.to_le_bytes()[3],
                }
            })
            .collect();
        put("etl_round_trip", &format!("{length}_bytes"), &bytes)?;
    }
    Ok(())
}

/// A manifest with one of everything, without what only people need.
fn manifest_compile() -> io::Result<()> {
    let sound = include_str!("../../provider-lib/build/tests/fixture/sound.man");
    let lines: Vec<&str> = sound.lines().map(str::trim).collect();
    // Named queries, filters and translations are left to the other seed, to stay small.
    let text = lines.concat();
    let (before, after) = text.split_once("<namedQueries>").expect("it has queries");
    let (_, after) = after.split_once("</namedQueries>").expect("they end");
    let (middle, _) = after
        .split_once("<resources culture=\"de-DE\">")
        .expect("it is translated");
    let text = format!("{before}{middle}</localization></instrumentationManifest>");
    put("manifest_compile", "sound.man", text.as_bytes())?;
    put("manifest_compile", "odd.man", ODD_MANIFEST.as_bytes())
}

/// A manifest with what the fixture's lacks.
const ODD_MANIFEST: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation><events>
  <provider name="Fuzz-0f1e2d3c4b5a69788796a5b4c3d2e1f0" symbol="F"
   guid="{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}" controlGuid="{11111111-2222-3333-4444-555555555555}">
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

fn manifest() -> io::Result<()> {
    let fixture = include_str!("../../tools/etl/tests/fixture/sample.man");
    let lines: Vec<&str> = fixture.lines().map(str::trim_start).collect();
    put("manifest", "fixture.man", lines.join("\n").as_bytes())?;
    put("manifest", "odd.man", ODD_MANIFEST.as_bytes())?;
    let short = "<instrumentationManifest><instrumentation><events><provider name='P' \
                 guid='{0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0}'/></events></instrumentation>\
                 </instrumentationManifest>";
    for (name, mark, order) in [
        (
            "little_endian.man",
            [0xFF, 0xFE],
            u16::to_le_bytes as fn(u16) -> [u8; 2],
        ),
        ("big_endian.man", [0xFE, 0xFF], u16::to_be_bytes),
    ] {
        let mut bytes = mark.to_vec();
        bytes.extend(short.encode_utf16().flat_map(order));
        put("manifest", name, &bytes)?;
    }
    Ok(())
}

fn pe_load() -> io::Result<()> {
    put("pe_load", "driver.sys", &Image::default().build())?;
    let image = Image {
        relocations: false,
        imports: &[],
        ..Image::default()
    };
    put("pe_load", "alone.sys", &image.build())?;
    let image = Image {
        imports: &[("ntoskrnl.exe", &["NoSuchRoutine"]), ("other.sys", &["x"])],
        ..Image::default()
    };
    put("pe_load", "unknown_imports.sys", &image.build())
}

/// A filter of a session: id, instance and data, and where the next one starts.
fn filter(id: u16, instance: u64, data: &[u8], next: u32) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend([2, 0, 0, 0, 0, 0]);
    bytes.extend(instance.to_le_bytes());
    let size = u32::try_from(24 + data.len()).expect("it is small");
    bytes.extend(size.to_le_bytes());
    bytes.extend(next.to_le_bytes());
    bytes.extend(data);
    bytes
}

fn filter_data() -> io::Result<()> {
    let one = filter(1, 2, b"filter", 0);
    let mut two = filter(1, 2, b"ab", 32);
    two.resize(32, 0);
    two.extend(filter(3, 4, b"", 0));
    let mut far = filter(9, 1 << 40, &[7; 80], 104);
    far.extend(filter(10, 8, &[8; 8], 24));
    for (name, kind, data) in [
        ("one", 1, &one[..]),
        ("two", 1, &two),
        ("far", 1, &far),
        ("event_ids", 0, &[1, 0, 2, 0, 1, 0, 2, 0]),
    ] {
        put("filter_data", name, &[&[kind], data].concat())?;
    }
    Ok(())
}

fn traits() -> io::Result<()> {
    let group = fixture::traits("Contoso.Sample", Some(fixture::GROUP));
    put("traits", "group", &group)?;
    put("traits", "name", &fixture::traits("Contoso.Sample", None))?;
    let mut more = group;
    more.extend([0x13, 0, 2]);
    more.extend([0xDE; 16]);
    more.extend(*b"\x06\0\x80lab");
    let size = u16::try_from(more.len()).expect("it is small");
    more[..2].copy_from_slice(&size.to_le_bytes());
    put("traits", "decode_guid_and_custom", &more)
}

/// Every step of a script.
const SCRIPT: &str = "# a device's life
add-device
open
write \"a b\" # text
expect success
read 5
expect success hex:612062
ioctl 0x22E000 hex:0102 8
ioctl 5 \"x\"
ioctl 6 16
expect 0xC0000010
close

open 4096 0x1004
close
advance 35
power-cycle
capture-state
remove
";

fn script() -> io::Result<()> {
    put("script", "every_step", SCRIPT.as_bytes())?;
    put("script", "bad_second_line", b"add-device\nwrit \"x\"\n")?;
    put(
        "script",
        "windows_lines",
        b"add-device\r\nwrite hex:\r\nremove\r\n",
    )
}

fn tracelogging() -> io::Result<()> {
    let event = fixture::trace_logging_event(7, 0);
    let item = |event: &EventRecord| event.item(ext_type::EVENT_SCHEMA_TL).map(<[u8]>::to_vec);
    let metadata = item(&event).expect("it describes itself");
    let whole = [metadata, event.user_data].concat();
    put("tracelogging", "fixture", &whole)?;
    // A scalar with an out type, arrays of both kinds, a structure with a counted text.
    let every = b"\x2E\0\0Evt\0count\0\x08status\0\x88\x0Edata\0\x44\
        S\0\x98\x02a\0\x07b\0\x16fix\0\x26\x03\0\
        \x01\0\0\0\x22\0\0\xC0\x02\0xy\xFF\xFF\xFF\xFF\x04\0h\0i\0\x01\0\x02\0\x03\0";
    put("tracelogging", "arrays_and_structures", every)?;
    // Tags, a custom encoding, and all types of one byte of metadata each.
    let mut types = b"\0\0\x81\x01E\0f\0\x88\x84\x05g\0\x68\x02\0xy".to_vec();
    let mut plain = b"\0\0\0T\0".to_vec();
    for code in 0..26 {
        if code != 24 {
            plain.extend([b'a' + code, 0, code]);
        }
    }
    for blob in [&mut types, &mut plain] {
        let size = u16::try_from(blob.len()).expect("it is small");
        blob[..2].copy_from_slice(&size.to_le_bytes());
    }
    types.extend([1, 2, 3, 4]);
    plain.extend(*b"a\0\0\0b\0");
    plain.extend([0; 200]);
    put("tracelogging", "tags_and_custom", &types)?;
    put("tracelogging", "every_type", &plain)
}
