//! Generates the sources in `wdk-sys/src/generated` from the data in `tools/wdk-standin/data`.
//!
//! The data describe the bindings that the published wdk-sys 0.5.2 generates from the WDK's
//! headers. [`sources`] returns the same items in a shorter form: macros of the stand-in
//! (`wdk-sys/src/bindings.rs`) expand to the layout assertions, the accessors of bit fields and the
//! zeroed defaults. The sources are checked in; a test compares them with what this crate
//! generates.

mod bindings;
pub mod data;
mod error;
mod text;
mod types;

use std::collections::BTreeMap;

use data::Data;
pub use error::Error;
use text::{BASE, FEATURES};

/// The text of a file of sources by its path from `wdk-sys/src/generated`.
pub type Sources = BTreeMap<String, String>;

/// Returns the sources.
///
/// # Errors
///
/// Returns an error if an entry of the data is invalid.
pub fn sources(data: &Data) -> Result<Sources, Error> {
    let mut types = text::heading("Types");
    let mut constants = text::heading("Constants and variables");
    let mut functions = text::heading("Functions");
    for set in std::iter::once(BASE).chain(FEATURES) {
        types += &text::in_set(set, &types::types(data, set)?);
        constants += &text::in_set(set, &bindings::constants(data, set)?);
        functions += &bindings::functions(data, set);
    }
    let sources = [
        ("framework.rs", types::framework(data)?),
        ("types.rs", types),
        ("constants.rs", constants),
        ("functions.rs", functions),
    ];
    Ok(sources.map(|(name, text)| (name.to_owned(), text)).into())
}
