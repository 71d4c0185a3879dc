//! Checks that the documentation's table of field types matches the table that the macros use.

use std::{env, fmt::Write as _, fs, path::Path};

use wdk_etw_schema::Scalar;

/// The file that the documentation of `wdk_etw::provider` includes.
const TABLE: &str = "../src/field-types.md";

/// The environment variable that makes the test write the file instead of comparing it.
const RENEW: &str = "WDK_ETW_RENEW";

/// Returns a type as it is written in a declaration, linked to the type of `wdk-etw`.
fn cell(scalar: Scalar) -> String {
    let row = scalar.row();
    if row.rust.starts_with("::wdk_etw::") {
        format!("[`{}`]", row.name)
    } else if row.rust.starts_with('&') {
        format!("`&{}`", row.name)
    } else {
        format!("`{}`", row.name)
    }
}

fn table() -> String {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for scalar in Scalar::ALL {
        let summary = scalar.row().summary;
        match groups.iter_mut().find(|(known, _)| *known == summary) {
            Some((_, cells)) => cells.push(cell(*scalar)),
            None => groups.push((summary, vec![cell(*scalar)])),
        }
    }
    let mut text = "| type | in the event |\n|---|---|\n".to_owned();
    for (summary, cells) in groups {
        writeln!(text, "| {} | {summary} |", cells.join(", ")).unwrap();
    }
    let repeating: Vec<_> = Scalar::ALL
        .iter()
        .filter(|scalar| scalar.row().repeats)
        .map(|scalar| cell(*scalar))
        .collect();
    writeln!(
        text,
        "| `[T; 4]`, `&[T]` | an array of fixed or variable length, where `T` is {}, or [`Pointer`] \
         with `#[address]`; `#[array] &[u8]` is an array of numbers |\n| `[Extent; 4]`, \
         `&[Extent]` | an array of structures, as they are in memory; the members are numbers, `bool`, \
         types of fixed size, [`Pointer`] with `#[address]`, maps and structures, and cannot be borrowed |\n| types with `#[map]`, `#[bitmap]` or `#[structure]` | \
         the number; the members in order |",
        repeating.join(", ")
    )
    .unwrap();
    text
}

#[test]
fn the_documentation_shows_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    if env::var_os(RENEW).is_some() {
        fs::write(&path, table()).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        table(),
        "{} is out of date: `cargo xtask renew field-types` writes it",
        path.display()
    );
}
