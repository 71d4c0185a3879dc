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
    let mut sources = Sources::new();
    sources.insert("framework.rs".to_owned(), types::framework(data)?);
    for set in std::iter::once(BASE).chain(FEATURES) {
        sources.insert(format!("{set}/types.rs"), types::types(data, set)?);
        sources.insert(
            format!("{set}/constants.rs"),
            bindings::constants(data, set)?,
        );
        sources.insert(
            format!("{set}/functions.rs"),
            bindings::functions(data, set),
        );
    }
    Ok(sources)
}
