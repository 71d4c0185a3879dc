//! Compares every definition in the stand-in's generated sources with the data from the WDK
//! headers, in both directions.
//!
//! Each side is a set of lines, one for each definition, in a common notation.

mod data;
mod sources;

use std::collections::BTreeSet;

/// The features that add definitions.
const FEATURES: [&str; 6] = ["gpio", "hid", "parallel_ports", "spb", "storage", "usb"];
/// The set of definitions that every build contains.
const BASE: &str = "base";

/// Removes white space, and abbreviates the paths of C types.
fn compact(text: &str) -> String {
    let text: String = text.split_whitespace().collect();
    text.replace("::core::ffi::", "")
        .replace("::core::option::Option", "Option")
        .replace(",)", ")")
        .replace(",>", ">")
}

/// Fails if the two sets differ, and lists the differences.
fn compare(what: &str, ours: &BTreeSet<String>, theirs: &BTreeSet<String>, least: usize) {
    let list = |lines: Vec<&String>| {
        let count = lines.len();
        let first: Vec<String> =
            lines.into_iter().take(10).map(|line| line.chars().take(600).collect()).collect();
        format!("{count}:\n  {}", first.join("\n  "))
    };
    let extra: Vec<&String> = ours.difference(theirs).collect();
    let missing: Vec<&String> = theirs.difference(ours).collect();
    assert!(
        extra.is_empty() && missing.is_empty(),
        "{what} differ\nin the sources only, {}\nin the data only, {}",
        list(extra),
        list(missing)
    );
    assert!(ours.len() >= least, "{} {what} compared", ours.len());
    println!("{} {what} compared", ours.len());
}

#[test]
fn types_are_those_of_the_bindings() {
    let mut all = 0;
    for set in std::iter::once(BASE).chain(FEATURES) {
        let (ours, theirs) = (sources::types(set), data::types(set));
        compare(&format!("types of {set}"), &ours, &theirs, 10);
        all += ours.len();
    }
    assert!(all >= 12_000, "{all} types");
}

#[test]
fn the_framework_has_the_functions_of_the_bindings() {
    let (ours, theirs) = (sources::framework(), data::framework());
    compare("the framework's definitions", &ours, &theirs, 444);
}

#[test]
fn the_enumeration_of_functions_has_the_indices_of_the_table() {
    assert_eq!(sources::function_indices(), data::function_indices());
}

#[test]
fn constants_are_those_of_the_bindings() {
    let mut all = 0;
    for set in std::iter::once(BASE).chain(FEATURES) {
        let (ours, theirs) = (sources::constants(set), data::constants(set));
        compare(&format!("constants of {set}"), &ours, &theirs, 10);
        all += ours.len();
    }
    assert!(all >= 11_379, "{all} constants");
}

#[test]
fn variables_are_those_of_the_bindings() {
    let mut all = 0;
    for set in std::iter::once(BASE).chain(FEATURES) {
        let (ours, theirs) = (sources::variables(set), data::variables(set));
        compare(&format!("variables of {set}"), &ours, &theirs, 0);
        all += ours.len();
    }
    assert_eq!(all, 787 + 1, "WdfFunctions has two symbols");
}

#[test]
fn the_entry_codes_variables_are_those_of_the_library() {
    assert_eq!(sources::entry_variables(), data::entry_variables());
}

#[test]
fn functions_are_those_of_the_bindings() {
    let mut all = 0;
    for set in std::iter::once(BASE).chain(FEATURES) {
        let (ours, theirs) = (sources::functions(set), data::functions(set));
        compare(&format!("functions of {set}"), &ours, &theirs, 0);
        all += ours.len();
    }
    assert_eq!(all, 2413 + 108);
}

/// The data does not name a module for every routine, and one routine is an exception.
#[test]
fn routines_are_imported_from_the_modules_in_the_data() {
    let data = data::modules();
    let mut named = 0;
    for (name, module) in sources::modules() {
        let (header, theirs) = &data[&name];
        match theirs {
            // Windows 10 2004 and later also export it from ntoskrnl.exe.
            _ if name == "KeQueryPerformanceCounter" => assert_eq!(module, "ntoskrnl.exe"),
            Some(theirs) => {
                assert!(module.eq_ignore_ascii_case(theirs), "{name}: {module}");
                named += 1;
            }
            // The data names no module: the routine is a kernel routine, belongs to Storport, or is
            // only declared.
            None => assert!(
                module.is_empty()
                    || (module == "storport.sys" && header == "storport.h")
                    // Static libraries whose routines are linked as if from modules.
                    || (module == "usbdex.lib" && header == "usbdlib.h")
                    || (module == "vhfkm.lib" && header == "vhf.h")
                    || (module == "ntoskrnl.exe"
                        && ["ntddk.h", "ntifs.h", "wdm.h"].contains(&header.as_str())),
                "{name} of {header}: {module}"
            ),
        }
    }
    assert_eq!(named, 1852 + 38 - 1, "routines with a module");
}

#[test]
fn as_many_layout_assertions_are_compiled_as_in_the_bindings() {
    let base = sources::assertions(BASE);
    assert_eq!(base, 10_722);
    let features: usize = FEATURES.into_iter().map(sources::assertions).sum();
    assert_eq!(base + features, 22_564);
}
