//! Parses arbitrary bytes as a TMF file and expands messages with arbitrary arguments.
//!
//! The input consists of text and arguments, separated by a zero byte.

use etl_file::decode::wpp::{Formats, Header};

/// Checks that parsing ends, that each format can be found by its GUID and number, that each defect
/// refers to a line of the text, and that expansion uses each byte at most once.
///
/// Returns the number of formats.
///
/// # Errors
/// Fails with the first defect if the text contains no format.
pub fn check(data: &[u8]) -> Result<usize, String> {
    let end = data.iter().position(|byte| *byte == 0);
    let (text, arguments) = match end.and_then(|end| data.split_at_checked(end)) {
        Some((text, rest)) => (text, rest.get(1..).unwrap_or_default()),
        None => (data, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().count();
    let mut formats = Formats::new();
    let defects = formats.add_text(&text);
    assert!(defects.len() <= Formats::MAX_DEFECTS);
    for defect in &defects {
        assert!((1..=lines).contains(&defect.line), "{defect}");
    }
    let before = formats.clone();
    formats.add_text(&text);
    assert_eq!(formats, before, "the first format of a message counts");
    for format in formats.iter() {
        let found = formats.find(format.guid, format.number);
        assert_eq!(found.map(|found| &**found), Some(format));
        let whole = format.expand(arguments, Header::default());
        assert!(whole.leftover.len() <= arguments.len());
        assert!(arguments.ends_with(&whole.leftover));
        if arguments.is_empty() {
            continue;
        }
        // Truncated arguments do not change the text before the truncation.
        let cut = format.expand(&arguments[..arguments.len() - 1], Header::default());
        for (one, other) in cut.fields.iter().zip(&whole.fields) {
            assert_eq!(one.0, other.0);
        }
        assert!(cut.fields.len() <= whole.fields.len());
    }
    // Each line is also parsed as the string of an annotation.
    let strings: Vec<&str> = text.lines().collect();
    let _ = Formats::new().add_annotation(&strings);
    match defects.first() {
        Some(defect) if formats.is_empty() => Err(defect.to_string()),
        _ => Ok(formats.len()),
    }
}
