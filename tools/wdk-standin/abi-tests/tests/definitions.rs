//! Compares every definition of the stand-in with the WDK's headers.

use std::path::Path;

use serde_json::Value;
use wdk_standin_abi_tests::{ALIASES, CONSTANTS, ENUMERATORS, ROUTINES, TYPES};

fn facts(name: &str) -> Value {
    let text = etw_test_support::read_data(Path::new("abi").join(name));
    serde_json::from_str(&text).expect("the reference data is JSON")
}

/// Normalizes the notation of a type or signature.
fn normal(text: &str) -> String {
    let mut text: String = text.split_whitespace().collect();
    for (from, to) in [
        // `long` has 32 bits on Windows; the stand-in uses this size on every system.
        ("::core::ffi::c_ulong", "u32"),
        ("::core::ffi::c_long,", "i32,"),
        (",)", ")"),
        (",>", ">"),
        ("pubfn", "fn"),
    ] {
        text = text.replace(from, to);
    }
    if text == "::core::ffi::c_long" {
        "i32".clone_into(&mut text);
    }
    text
}

/// Opaque types, which drivers only pass along.
fn is_opaque(name: &str) -> bool {
    name.ends_with("__")
        || [
            "WDFDEVICE_INIT",
            "_DEVICE_OBJECT",
            "_EPROCESS",
            "_FAST_IO_DISPATCH",
            "_FILE_OBJECT",
            "_IO_SECURITY_CONTEXT",
            "_IRP",
            "_KTHREAD",
            "_MDL",
            "_ETHREAD",
            "_DEVOBJ_EXTENSION",
        ]
        .contains(&name)
}

#[test]
fn structures_have_the_headers_layout() {
    let layout = facts("layout.json");
    let mut compared = 0;
    for (name, size, align, fields) in TYPES {
        if is_opaque(name) {
            assert_eq!(*size, 0, "{name} is opaque");
            continue;
        }
        let theirs = &layout["types"][name];
        assert!(!theirs.is_null(), "{name} is not in the reference data");
        assert_eq!(theirs["size"], *size, "size of {name}");
        assert_eq!(theirs["align"], *align, "alignment of {name}");
        let listed = theirs["fields"].as_array().expect("fields");
        for (field, offset, size) in *fields {
            let theirs = listed
                .iter()
                .find(|theirs| theirs["name"] == *field)
                .unwrap_or_else(|| panic!("{name}.{field} is not in the reference data"));
            assert_eq!(theirs["offset"], *offset, "offset of {name}.{field}");
            assert_eq!(theirs["size"], *size, "size of {name}.{field}");
        }
        let public = listed
            .iter()
            .filter(|field| field["private"] != true)
            .count();
        assert_eq!(fields.len(), public, "fields of {name}");
        compared += 1;
    }
    assert!(compared >= 30, "{compared} structures");
}

#[test]
fn enumerations_have_the_headers_values() {
    let layout = facts("layout.json");
    let functions = facts("functions.json");
    let mut compared = 0;
    for (module, name, value) in ENUMERATORS {
        if *module == "_WDFFUNCENUM" {
            let Some(function) = name.strip_suffix("TableIndex") else {
                assert_eq!((*name, *value), ("WdfFunctionTableNumEntries", 458));
                continue;
            };
            assert_eq!(
                functions["functions"][function]["index"], *value,
                "index of {function}"
            );
        } else {
            assert_eq!(
                layout["enums"][module]["values"][name], *value,
                "{module}::{name}"
            );
        }
        compared += 1;
    }
    assert!(compared >= 458 + 50, "{compared} values");
}

#[test]
fn constants_have_the_headers_values() {
    let constants = facts("constants.json");
    for (name, value) in CONSTANTS {
        let theirs = &constants["constants"][name]["value"];
        let theirs = theirs
            .as_i64()
            .or_else(|| theirs.as_u64().map(u64::cast_signed))
            .unwrap_or_else(|| panic!("{name} is not in the reference data"));
        // A status can be an unsigned or a negative number.
        let same = theirs == *value
            || (name.starts_with("STATUS_") && theirs & 0xFFFF_FFFF == *value & 0xFFFF_FFFF);
        assert!(same, "{name} is {value}, not {theirs}");
    }
    assert!(
        CONSTANTS
            .iter()
            .any(|(name, _)| *name == "POOL_FLAG_NON_PAGED")
    );
    assert!(CONSTANTS.len() >= 250, "{} constants", CONSTANTS.len());
}

/// Returns the target of an alias in the reference data.
fn alias_in(layout: &Value, functions: &Value, name: &str) -> Option<String> {
    if let Some(target) = layout["typedefs"][name].as_str() {
        return Some(target.to_owned());
    }
    for group in ["types", "enums"] {
        for (owner, item) in layout[group].as_object()? {
            for alias in item["aliases"].as_array().into_iter().flatten() {
                let alias = alias.as_str()?;
                let (alias, target) = alias.split_once('=').unwrap_or((alias, owner));
                if alias == name {
                    return Some(target.to_owned());
                }
            }
        }
    }
    for group in ["functions", "callbacks"] {
        for (owner, item) in functions[group].as_object()? {
            if item["pfn"] == name || owner == name {
                return item["rust_type"].as_str().map(str::to_owned);
            }
        }
    }
    None
}

/// Aliases of the bindings that are not in the reference data: plain pointers, and driver routines
/// that the framework replaces.
const NOT_LISTED: &[&str] = &[
    "DRIVER_DISPATCH",
    "LPCSTR",
    "PCCH",
    "PDRIVER_ADD_DEVICE",
    "PDRIVER_STARTIO",
    "PEPROCESS",
    "PFN_GET_UNIQUE_CONTEXT_TYPE",
    "PIO_SECURITY_CONTEXT",
    "PLONGLONG",
    "PSECURITY_DESCRIPTOR",
    "PULONG",
    "PUSHORT",
    "PWCH",
    "wchar_t",
];

#[test]
fn aliases_and_function_types_are_the_headers() {
    let (layout, functions) = (facts("layout.json"), facts("functions.json"));
    let mut framework = 0;
    for (name, target) in ALIASES {
        if name.is_empty() || NOT_LISTED.contains(name) {
            continue;
        }
        let theirs = alias_in(&layout, &functions, name)
            .unwrap_or_else(|| panic!("{name} is not in the reference data"));
        assert_eq!(normal(target), normal(&theirs), "{name}");
        framework += usize::from(name.starts_with("PFN_WDF"));
    }
    assert!(framework >= 90, "{framework} function types");
}

#[test]
fn routines_have_the_headers_signatures() {
    let functions = facts("functions.json");
    for (name, signature) in ROUTINES {
        if *name == "KeGetCurrentIrql" {
            // The headers define it inline, so the bindings do not contain it.
            assert_eq!(normal(signature), "fnKeGetCurrentIrql()->KIRQL");
            continue;
        }
        let theirs = functions["kernel_functions"][name]["rust_signature"]
            .as_str()
            .unwrap_or_else(|| panic!("{name} is not in the reference data"));
        assert_eq!(normal(signature), normal(theirs), "{name}");
    }
    assert!(ROUTINES.len() >= 20, "{} routines", ROUTINES.len());
}
