//! Tests structured exceptions with a driver in C.

use std::fs;

use standin_kernel::{Kernel, KernelError};

use crate::{bench::lines, common};

const EXPECTED: &[&str] = &[
    "read: c0000005", "write: c0000005", "divide: c0000094", "copy: c0000005",
    "good: no exception", "probe: c0000005", "misaligned: 80000002", "probe for write: c0000005",
    "filter c000000d flags 1", "filter c000000d flags 1", "inner finally 1", "middle finally 1",
    "outer c000000d", "finally 1", "returned 7", "inner: c0000005", "filter c0000005 flags 0 1 10",
    "in the handler: c0000005", "locals 187", "continued", "last 999",
];

#[test]
fn handlers_take_the_exceptions_of_their_blocks() {
    let kernel = Kernel::new();
    let driver = kernel.load(&common::c_exceptions()).unwrap();
    assert_eq!(lines(&kernel), EXPECTED);
    driver.unload().unwrap();
    assert_eq!(kernel.warnings(), []);
}

#[test]
fn some_exceptions_bugcheck_in_spite_of_handlers() {
    for (service, code, expected) in [
        ("exceptions1", 0x1E, &[][..]),
        ("exceptions2", 0xD1, &[]),
        ("exceptions3", 0x1E, &["filter c000000d flags 1"]),
        ("exceptions4", 0x1E, &[]),
    ] {
        let kernel = Kernel::new();
        let Err(KernelError::BugCheck(bugcheck)) = kernel.load_as(&common::c_exceptions(), service)
        else {
            panic!("{service}");
        };
        assert_eq!(bugcheck.code, code, "{service}: {bugcheck:?}");
        assert_eq!(lines(&kernel), expected, "{service}");
    }
}

/// Changes a word of the handler data of each function: 0 is the handler's address, 1 the number of scopes,
/// and 4 and 5 are the handler and the target of the first scope.
fn damaged(word: usize, value: u32) -> Vec<u8> {
    let mut image = fs::read(common::c_exceptions()).unwrap();
    let read = |image: &[u8], at: usize| {
        u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize
    };
    let headers = read(&image, 0x3C);
    let sections = headers + 24 + (read(&image, headers + 20) & 0xFFFF);
    let sections: Vec<_> = (0..usize::from(image[headers + 6]))
        .map(|number| [12, 8, 20].map(|field| read(&image, sections + 40 * number + field)))
        .collect();
    let file = |offset: usize| {
        let inside =
            sections.iter().find(|[start, size, _]| (*start..start + size).contains(&offset));
        let [start, _, raw] = inside.unwrap();
        offset - start + raw
    };
    let directory = headers + 24 + 112 + 8 * 3;
    let (start, size) = (file(read(&image, directory)), read(&image, directory + 4));
    for entry in (start..start + size).step_by(12) {
        let info = file(read(&image, entry + 8));
        if image[info] >> 3 & 3 != 0 {
            let codes = usize::from(image[info + 2]).next_multiple_of(2);
            let at = info + 4 + 2 * codes + 4 * word;
            image[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    image
}

#[test]
fn damaged_unwind_data_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.sys");
    for (word, value) in [
        (0, u32::MAX),
        (0, 0x7FFF_FFF0),
        (1, 0),
        (1, u32::MAX),
        (4, 0x7FFF_FFF0),
        (5, 0x7FFF_FFF0),
        (5, u32::MAX),
    ] {
        fs::write(&path, damaged(word, value)).unwrap();
        let kernel = Kernel::new();
        let loaded = kernel.load(&path).map(drop);
        // The handlers of the first scopes are unchanged if the number of scopes is too large.
        let is_unhandled = matches!(loaded, Err(KernelError::BugCheck(_)));
        assert!(is_unhandled || (word, value) == (1, u32::MAX), "{word} {value:x}: {loaded:?}");
        kernel.leave_behind();
    }
}
