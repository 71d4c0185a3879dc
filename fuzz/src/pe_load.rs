//! Loads arbitrary bytes as a driver image.

use std::path::Path;

use standin_kernel::{LoadError, check_image_bytes};

use crate::text::sentence;

/// The maximum `SizeOfImage`. Larger images are skipped: mapping them takes time and finds no
/// additional bugs.
const LARGEST: u32 = 1 << 20;

/// Checks that an image is rejected with a message that names the file, and that a second attempt
/// fails in the same way, which proves that the first attempt's mappings were removed.
///
/// If an image is accepted, both attempts must report the same imports that the kernel does not
/// provide.
///
/// # Errors
/// Fails with the text of the error if the image is rejected.
pub fn check(data: &[u8]) -> Result<(), String> {
    if size_of_image(data).is_some_and(|size| size > LARGEST) {
        return Err("the image is too large for this target".to_owned());
    }
    let name = Path::new("fuzzed.sys");
    let first = check_image_bytes(name, data).map_err(|error| explained(&error));
    let second = check_image_bytes(name, data).map_err(|error| error.to_string());
    assert_eq!(first, second);
    // An accepted image has the parts that every driver must have.
    if first.is_ok() {
        assert_eq!(data.first_chunk(), Some(b"MZ"));
        assert!(size_of_image(data).is_some_and(|size| size > 0));
    }
    first.map(drop)
}

/// Checks an error's text, and returns it.
fn explained(error: &LoadError) -> String {
    let text = sentence(error);
    assert!(text.starts_with("fuzzed.sys: "), "{text}");
    match error {
        LoadError::File { .. } => panic!("no file is read: {text}"),
        LoadError::Map { size, .. } => assert!(*size > 0, "{text}"),
        LoadError::Malformed { what, .. } | LoadError::NotADriver { what, .. } => {
            assert!(!what.is_empty(), "{text}");
        }
    }
    text
}

/// Returns the optional header's `SizeOfImage`.
fn size_of_image(data: &[u8]) -> Option<u32> {
    let dword = |at: usize| {
        let bytes = data.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let headers = usize::try_from(dword(0x3C)?).ok()?;
    dword(headers.checked_add(0x50)?)
}
