//! Tests the results and checks of routines of ntoskrnl.exe with a driver in C.

use standin_kernel::{Kernel, Rule};

use crate::{
    bench::{CLIENT, lines},
    common,
};

const EXPECTED: &[&str] = &[
    "section 1", "database 5a", "upper 83 e0 A", "append 0", "append 0", "append 0", "kept 63",
    "ansi 80000005", "ansi 4 abcd", "duplicate c000000d", "part c0000023", "part 6", "odd 0",
    "odd 0", "utf8 3", "utf8 0", "wide 2c", "wide 9", "wide e0", "overflow 7fffffffffffffff",
    "waited 1", "precise 1", "waited 1", "precise 1", "large pages c00000f2", "section 0",
    "view c00000f1", "close 0", "pages 1", "thread 1", "hash 0", "zeroed 0", "null c0000008",
    "event 0", "event 0",
];

/// The lines for a request, which arrives in the process of a program.
const OF_REQUEST: &[&str] = &[
    "of the system c0000008", "kernel 0", "event 0", "own is positive 1", "own 0", "close 0",
    "close kernel c0000008", "reference kernel c0000008", "duplicate 0", "query 0",
    "access 100000", "write c0000022", "close 0",
];

#[test]
fn routines_return_what_they_return_on_windows() {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::c_statuses()).unwrap();
    assert_eq!(lines(&kernel), EXPECTED);
    let file = kernel.open(r"\Device\Statuses", CLIENT).unwrap();
    file.device_control(0x0022_2000, &[], 0).unwrap();
    assert_eq!(&lines(&kernel)[EXPECTED.len()..], OF_REQUEST);
    file.close().unwrap();
    driver.unload().unwrap();
    let rules: Vec<Rule> = kernel.warnings().iter().map(|warning| warning.rule).collect();
    assert_eq!(rules, [Rule::UninitializedEvent, Rule::NullHandle, Rule::HandleOfOtherProcess]);
    let notes: Vec<String> = kernel.notes().iter().map(|note| note.message.clone()).collect();
    let limits = [
        "although its annotation in the header allows IRQL <= DISPATCH_LEVEL (2); its documentation \
         allows IRQL <= HIGH_LEVEL (15)",
        "although its annotation in the header allows IRQL <= PASSIVE_LEVEL (0); its documentation \
         allows IRQL <= APC_LEVEL (1)",
    ];
    assert_eq!(notes.len(), limits.len(), "{notes:?}");
    for (note, limit) in notes.iter().zip(limits) {
        assert!(note.ends_with(limit), "{note}");
    }
}
