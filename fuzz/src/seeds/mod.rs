//! The inputs that the fuzzer starts from, made by the project's own encoders and fixtures.
//!
//! `cargo run --example seeds` writes them to `fuzz/seeds`. `tests/seeds.rs` checks the purpose of
//! each seed.

mod etl;
#[path = "../../../tools/etl/tests/fixture/mod.rs"]
mod fixture;
mod manifests;
mod metadata;
mod seed;
#[path = "../../../tests/kernel/tests/small_image/mod.rs"]
mod small_image;

use std::{fs, io, path::Path};

pub use self::seed::Seed;
use self::small_image::Image;

/// A target's name and the function that returns its seeds.
pub type Target = (&'static str, fn() -> Vec<Seed>);

/// The targets that have seeds.
pub const TARGETS: &[Target] = &[
    ("etl_read", etl::etl_read),
    ("etl_round_trip", etl::etl_round_trip),
    ("filter_data", filter_data),
    ("manifest", manifests::manifest),
    ("manifest_compile", manifests::manifest_compile),
    ("pe_load", pe_load),
    ("resources", manifests::resources),
    ("script", script),
    ("tracelogging", metadata::tracelogging),
    ("traits", metadata::traits),
];

/// Writes the seeds of each target to a separate folder, and replaces the folder's contents.
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

fn pe_load() -> Vec<Seed> {
    let alone = Image {
        relocations: false,
        imports: &[],
        ..Image::default()
    };
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

/// Returns a session's filter: its id, instance and data, and the offset of the next one.
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

/// Returns a script with every step.
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
