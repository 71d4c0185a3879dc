//! Compares routines of the stand-in kernel with another implementation: the same source runs in
//! the stand-in kernel as a driver, and under Wine as a program that calls Wine's ntdll.dll.

use crate::common;
use std::{env, process::Command};

use standin_kernel::Kernel;

/// Returns the driver's output in the stand-in kernel.
fn said_here() -> Vec<String> {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::c_routines()).unwrap();
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
    let output = kernel.debug_output();
    output.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Returns the program's output under Wine.
fn said_by_wine() -> Vec<String> {
    let wine = env::var_os("WDK_ETW_WINE").filter(|path| !path.is_empty());
    let wine = wine.expect("WDK_ETW_WINE does not name Wine; `cargo xtask test` sets it");
    let prefix = tempfile::tempdir().unwrap();
    let output = Command::new(wine)
        .arg(common::c_routines().with_extension("exe"))
        .env("WINEPREFIX", prefix.path())
        .env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The lines in which Wine 8 deviates from the documentation: the start of each line, and the part
/// that differs.
const WRONG_IN_WINE: [(&str, &str); 5] = [
    // According to the C standard, an empty string is found at the start.
    ("unicode a=0x0 b=0x0", " wcsstr=0x1"),
    ("ansi a=0x0 b=0x0", " strstr=0x1"),
    // RtlCopySid returns a status; Wine's RtlCopySid returns a Boolean value.
    ("sid valid=0x1 length=0x14", " copied=0x0 "),
    ("sid valid=0x1 length=0xc", " copied=0xc0000023 "),
    // wcsncpy writes exactly the given number of characters; Wine's wcsncpy writes one more.
    ("wcsncpy", "'abc##ab\\0000\\0000\\0000##'"),
];

/// The driver's output line about 29 February 2001, which does not exist. Wine treats it as 1 March.
const NO_DAY: &str = "RtlTimeFieldsToTime valid=0x0";

fn is_wrong_in_wine(here: &str, wine: &str) -> bool {
    let mut known = WRONG_IN_WINE.iter();
    known.any(|(start, part)| {
        here.starts_with(start) && wine.starts_with(start) && here.contains(part)
    }) || here == NO_DAY && wine == "RtlTimeFieldsToTime valid=0x1 time=0x1c0a1e28efd0000"
}

#[test]
#[ignore = "needs Wine: cargo xtask doctor --install"]
fn routines_do_what_those_of_another_implementation_do() {
    let (here, wine) = (said_here(), said_by_wine());
    assert_eq!(here.len(), wine.len());
    assert!(here.len() > 1000, "{} lines", here.len());
    let different: Vec<_> = here
        .iter()
        .zip(&wine)
        .filter(|(here, wine)| here != wine && !is_wrong_in_wine(here, wine))
        .collect();
    for (here, wine) in &different {
        println!("here: {here}\nWine: {wine}\n");
    }
    assert_eq!(different.len(), 0, "of {} lines", here.len());
}
