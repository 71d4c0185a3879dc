//! Tests documents that repeat part of another file.

use std::{fs, path::Path};

#[test]
fn the_guide_has_the_table_of_encodings() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/instrument-your-driver.md");
    let guide = fs::read_to_string(guide).unwrap();
    assert!(
        guide.contains(include_str!("../../src/encodings.md")),
        "docs/instrument-your-driver.md does not contain provider-lib/src/encodings.md"
    );
}
