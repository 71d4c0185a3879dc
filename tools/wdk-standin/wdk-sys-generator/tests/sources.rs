//! Tests that sources from wrong data do not compile, and that only enabled features are generated.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use wdk_sys_generator::{data::Data, sources};

fn standin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A structure that contains a bit field and a union, in the data's notation.
const TYPES: &str = r#"{
    "struct": {
        "_PIECE": {
            "size": 24, "align": 8, "derive": ["Copy", "Clone"], "default": "zeroed",
            "fields": [
                ["Kind", "u16", 0],
                ["_bitfield_1", "__BindgenBitfieldUnit<[u8; 1]>", 2],
                ["Next", "*mut _PIECE", 8],
                ["Value", "_VALUE", 16]
            ],
            "bits": [["Last", "_bitfield_1", 0, 1, "u8", "u8"]]
        }
    },
    "union": {
        "_VALUE": {
            "size": 8, "align": 8, "derive": ["Copy", "Clone"], "default": "zeroed",
            "fields": [["Number", "u64", 0], ["Word", "c_ulong", 0]]
        }
    },
    "enum": { "_WDFFUNCENUM": { "type": "c_int", "values": { "WdfFirstTableIndex": 0 } } },
    "alias": {}, "fnptr": {}, "kmdf_1_33": {}
}"#;

/// Generates sources from these types, and compiles them with the stand-in's macros. Returns the
/// compiler's messages if that fails.
fn compile(name: &str, types: &str) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    for (file, text) in [
        ("types.json", types),
        ("constants.json", r#"{ "constants": {} }"#),
        ("statics.json", r#"{ "statics": {} }"#),
        ("functions.json", r#"{ "kmdf": {}, "nt": {}, "feature": {} }"#),
        ("exports.json", r#"{ "functions": {}, "variables": [] }"#),
    ] {
        fs::write(folder.join(file), text).expect("a file");
    }
    let data = Data::read(&folder).expect("the data are readable");
    let made = sources(&data, |_| true).expect("the data are valid");
    let sys = standin().join("wdk-sys/src");
    let read = |name: &str| fs::read_to_string(sys.join(name)).expect("a source");
    let macros = read("bindings.rs");
    // Inner doc comments are allowed only at the start of a module.
    let macros = macros.replace("//!", "//");
    let support = read("support.rs").replace("//!", "//").replace("#![", "#[");
    let (attribute, support) = support.split_once(")]").expect("an attribute");
    let types = &made["types.rs"];
    let crate_source = format!(
        "#![no_std]\n#![allow(warnings)]\n{attribute})]\nmod support {{ {support} }}\n\
         #[macro_use] mod bindings {{ {macros} }}\n\
         mod types {{ pub use crate::support::*; {types} }}\n"
    );
    let source = folder.join("lib.rs");
    fs::write(&source, crate_source).expect("a source");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata"])
        .args(["--cfg", "feature=\"check-layouts\""])
        .arg("--out-dir")
        .arg(&folder)
        .arg(&source)
        .output()
        .expect("the compiler runs");
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn correct_data_compile() {
    assert_eq!(compile("correct", TYPES), Ok(()));
}

#[test]
fn every_wrong_size_alignment_or_offset_is_a_compile_error() {
    for (case, (correct, wrong, message)) in [
        ("\"size\": 24", "\"size\": 32", "the size of _PIECE"),
        ("\"size\": 24, \"align\": 8", "\"size\": 24, \"align\": 4", "the alignment of _PIECE"),
        ("[\"Next\", \"*mut _PIECE\", 8]", "[\"Next\", \"*mut _PIECE\", 4]", "_PIECE.Next"),
        ("[\"Kind\", \"u16\", 0]", "[\"Kind\", \"u64\", 0]", "the size of _PIECE"),
        ("[\"Number\", \"u64\", 0]", "[\"Number\", \"u32\", 0]", "the size of _VALUE"),
        ("[\"Word\", \"c_ulong\", 0]", "[\"Word\", \"c_ulong\", 4]", "_VALUE.Word"),
        ("*mut _PIECE", "*mut _PEICE", "_PEICE"),
    ]
    .into_iter()
    .enumerate()
    {
        let corrupted = TYPES.replace(correct, wrong);
        assert_ne!(corrupted, TYPES, "{correct} is in the data");
        let error = compile(&format!("corrupted-{case}"), &corrupted).expect_err(wrong);
        assert!(error.contains(message), "{wrong}: {error}");
    }
}

#[test]
fn data_that_are_not_as_described_are_refused_by_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-as-described");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("constants.json"), r#"{ "constants": { "X": 5 } }"#).expect("a file");
    let error = Data::read(&folder).expect_err("a constant is a list").to_string();
    assert!(error.contains("constants.json"), "{error}");
}

#[test]
fn only_the_enabled_features_are_generated() {
    let data = Data::read(&standin().join("data")).expect("the data are readable");
    let made = |enabled: &[&str]| {
        let made =
            sources(&data, |feature| enabled.contains(&feature)).expect("the data are valid");
        let has = |file, item| made[file].contains(item);
        [
            has("functions.rs", "pub mod ntddk "),
            has("functions.rs", "pub mod usb "),
            has("types.rs", "pub struct _USB_DEVICE_DESCRIPTOR "),
            has("functions.rs", "pub mod hid "),
            has("constants.rs", "pub const HID_REVISION: "),
        ]
    };
    assert_eq!(made(&[]), [true, false, false, false, false]);
    assert_eq!(made(&["usb"]), [true, true, true, false, false]);
    assert_eq!(made(&["hid"]), [true, false, false, true, true]);
}
