//! The fuzzer's initial inputs, created with the project's own encoders and fixtures.
//!
//! `cargo run --example seeds` writes them to `fuzz/seeds`. `tests/seeds.rs` checks that each seed
//! serves its purpose.

pub(crate) mod compare;
mod etl;
mod manifests;
mod metadata;
mod seed;

use std::{fs, io, path::Path};

use etl_fixtures::kernel_records;
use etw_test_support::small_image::Image;

pub use self::seed::Seed;

/// A target's name and the function that returns its seeds.
pub type Target = (&'static str, fn() -> Vec<Seed>);

/// The targets that have seeds.
pub const TARGETS: &[Target] = &[
    ("compare", compare::seeds),
    ("compression", etl::compression),
    ("etl_read", etl::etl_read),
    ("etl_round_trip", etl::etl_round_trip),
    ("filter_data", filter_data),
    ("kernel", kernel),
    ("manifest", manifests::manifest),
    ("manifest_compile", manifests::manifest_compile),
    ("pe_load", pe_load),
    ("resources", manifests::resources),
    ("schemas", metadata::schemas),
    ("script", script),
    ("tmf", tmf),
    ("tracelogging", metadata::tracelogging),
    ("traits", metadata::traits),
    ("unwind", unwind),
];

/// Writes each target's seeds to a separate folder, replacing its contents.
///
/// # Errors
/// Fails with the file system's error.
pub fn write(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    for (target, seeds) in TARGETS {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for seed in seeds() {
            fs::write(folder.join(seed.name), seed.bytes)?;
        }
    }
    Ok(())
}

/// Returns one record for each known record layout, with 64-bit pointers.
fn kernel() -> Vec<Seed> {
    let mut seeds: Vec<Seed> = Vec::new();
    for (name, bytes) in kernel_records::generated() {
        let name = name.replace(['/', ' '], "_");
        let known = seeds.iter().any(|seed| seed.name == name);
        if !name.ends_with("_Four") && !known && bytes.len() <= seed::MAX_BYTES {
            seeds.push(Seed::new(String::leak(name), bytes));
        }
    }
    seeds
}

fn pe_load() -> Vec<Seed> {
    let alone = Image { relocations: false, imports: &[], ..Image::default() };
    let unknown = Image {
        imports: &[("ntoskrnl.exe", &["NoSuchRoutine"]), ("other.sys", &["x"])],
        ..Image::default()
    };
    vec![
        Seed::new("driver.sys", Image::default().build()),
        Seed::new("alone.sys", alone.build()),
        Seed::new("unknown_imports.sys", unknown.build()),
    ]
}

/// Returns the formats of the test driver's messages, and additional ones, with arguments.
fn tmf() -> Vec<Seed> {
    const DRIVER: &str =
        include_str!("../../../tests/drivers/wpp/formats/0c3f5e7a-91d2-3b64-a105-5c2e77109d4f.tmf");
    const GUID: &str = "15a8d173-19ed-3627-3053-66bb3b198115";
    let seed = |name, text: &str, arguments: &[u8]| {
        Seed::new(name, [text.as_bytes(), &[0], arguments].concat())
    };
    let counted = format!(
        "{GUID} driver // SRC=a.c MJ= MN=\n#typev a_c1 1 \"%0%10!-8.3s! %11!s! %12!#010x! %13!g!\"\n\
         {{\na, ItemPString -- 10\nb, ItemSid -- 11\nc, ItemLongLongX -- 12\nd, ItemDouble -- 13\n}}\n"
    );
    let mut of_counted = vec![2, 0, b'a', b'b', 1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0];
    of_counted.extend([7; 16]);
    let lists = format!(
        "{GUID} driver\n#typev a_c1 1 \"%10!s! %11!s! %12!s! %12\nof two lines\" // LEVEL=2\n{{\n\
         a, ItemListByte(x,y=4,z) -- 10\nb, ItemSetLong(1,2,3) -- 11\nc, ItemHEXDump -- 12\n}}\n"
    );
    let defects = format!(
        "#typev early 1 \"\"\n{GUID}\n#typev no number\nodd\n#typev a_c9 9 \"%10!s!\"\n{{\nx\n}}\n"
    );
    vec![
        seed("driver", DRIVER, b"\x02first\0"),
        seed("counted", &counted, &of_counted),
        seed("lists", &lists, &[5, 3, 0, 0, 0, 2, 0, 0xAB, 0xCD]),
        seed("defects", &defects, &[]),
    ]
}

/// Returns one filter of a session: its id, instance and data, and the offset of the next filter.
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

fn filter_data() -> Vec<Seed> {
    let one = filter(1, 2, b"filter", 0);
    let mut two = filter(1, 2, b"ab", 32);
    two.resize(32, 0);
    two.extend(filter(3, 4, b"", 0));
    let mut far = filter(9, 1 << 40, &[7; 80], 104);
    far.extend(filter(10, 8, &[8; 8], 24));
    let seed = |name, kind: u8, data: &[u8]| Seed::new(name, [&[kind], data].concat());
    vec![
        seed("one", 1, &one),
        seed("two", 1, &two),
        seed("far", 1, &far),
        seed("event_ids", 0, &[1, 0, 2, 0, 1, 0, 2, 0]),
    ]
}

/// A script that contains every kind of step.
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

fn script() -> Vec<Seed> {
    vec![
        Seed::new("every_step", SCRIPT),
        Seed::new("bad_second_line", "add-device\nwrit \"x\"\n"),
        Seed::new("windows_lines", "add-device\r\nwrite hex:\r\nremove\r\n"),
    ]
}

/// Returns a stack and an image of functions, each given by its first byte, its end and its unwind
/// information; `rip` is the instruction pointer.
fn stack(rip: u16, words: &[u64], functions: &[[u32; 3]], infos: &[(usize, &[u8])]) -> Vec<u8> {
    const DIRECTORY: usize = 0x40;
    let mut image = vec![0x90; 0x400];
    for (number, function) in functions.iter().enumerate() {
        let entry = function.map(u32::to_le_bytes).concat();
        image[DIRECTORY + 12 * number..][..12].copy_from_slice(&entry);
    }
    for (at, info) in infos {
        image[*at..*at + info.len()].copy_from_slice(info);
    }
    let count = u8::try_from(words.len()).expect("it is small");
    let size = u16::try_from(12 * functions.len()).expect("it is small");
    let mut bytes = rip.to_le_bytes().to_vec();
    bytes.extend([count, 0]);
    bytes.extend(0x40_u16.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend(image);
    bytes
}

fn unwind() -> Vec<Seed> {
    const IMAGE: u64 = 0x1_4000_0000;
    // push rbx; sub rsp, 0x20
    let pushes: &[u8] = &[1, 5, 2, 0, 5, 0x32, 1, 0x30];
    // Sets the frame register rbp to rsp + 0x10.
    let framed: &[u8] = &[1, 8, 3, 0x15, 8, 0x03, 5, 0x52, 1, 0x50, 0, 0];
    // push rsi, in an entry chained to the first function.
    let mut chained = vec![0x21, 2, 1, 0, 2, 0x60, 0, 0];
    chained.extend([0x100_u32, 0x140, 0x80].map(u32::to_le_bytes).concat());
    let mut endless = vec![0x21, 0, 0, 0];
    endless.extend([0x140_u32, 0x180, 0xA0].map(u32::to_le_bytes).concat());
    let first = [0x100, 0x140, 0x80];
    let second = [0x140, 0x180, 0xA0];
    let words = [0, 0, 0, 0, 7, IMAGE + 0x1F0, 0];
    vec![
        Seed::new("leaf", stack(0x200, &[IMAGE + 0x208, 0], &[], &[])),
        Seed::new("pushes", stack(0x110, &words, &[first], &[(0x80, pushes)])),
        Seed::new("frame", stack(0x110, &[9; 32], &[first], &[(0x80, framed)])),
        Seed::new(
            "chained",
            stack(
                0x150,
                &[6, 0, 0, 0, 0, 7, IMAGE + 0x1F0, 0],
                &[first, second],
                &[(0x80, pushes), (0xA0, &chained)],
            ),
        ),
        Seed::new("endless", stack(0x150, &words, &[first, second], &[(0xA0, &endless)])),
        Seed::new("version_3", stack(0x110, &words, &[first], &[(0x80, &[3, 0, 0, 0])])),
        Seed::new("outside", stack(0x110, &words, &[[0x100, 0x140, 0x8000]], &[])),
        Seed::new("short_stack", stack(0x110, &[1], &[first], &[(0x80, pushes)])),
    ]
}
