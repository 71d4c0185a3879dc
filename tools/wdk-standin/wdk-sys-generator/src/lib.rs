//! Generates the bindings of the wdk-sys stand-in from the data in `tools/wdk-standin/data`, in its
//! build scripts.
//!
//! The data describe the bindings that the published wdk-sys 0.5.2 generates from the WDK's
//! headers. The sources have the same items in a shorter form: macros of the stand-in
//! (`wdk-sys/src/bindings.rs`) expand to the layout assertions, the accessors of bit fields and the
//! zeroed defaults.

mod bindings;
pub mod data;
mod error;
mod text;
mod types;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use data::{Data, FILES};
pub use error::Error;
use text::{BASE, FEATURES};

/// The text of each file of sources by its name.
pub type Sources = BTreeMap<&'static str, String>;

/// Returns the sources of wdk-sys with the enabled features, which the data spell with underscores.
///
/// # Errors
///
/// Returns an error if an entry of the data is invalid.
pub fn sources(data: &Data, is_enabled: impl Fn(&str) -> bool) -> Result<Sources, Error> {
    let mut types = text::heading("Types");
    let mut constants = text::heading("Constants and variables");
    let mut functions = text::heading("Functions");
    let features = FEATURES.into_iter().filter(|feature| is_enabled(feature));
    for set in std::iter::once(BASE).chain(features) {
        let title = text::title(set);
        types = types + &title + &types::types(data, set)?;
        constants = constants + &title + &bindings::constants(data, set)?;
        functions += &bindings::functions(data, set);
    }
    let mut sources = framework(data)?;
    sources.extend([("types.rs", types), ("constants.rs", constants), ("functions.rs", functions)]);
    Ok(sources)
}

/// Returns the source of the framework's functions, which wdk-macros reads too.
///
/// # Errors
///
/// Returns an error if an entry of the data is invalid.
pub fn framework(data: &Data) -> Result<Sources, Error> {
    Ok([("framework.rs", types::framework(data)?)].into())
}

/// Writes sources to the output folder of the build script that calls this function, and returns the
/// folder.
///
/// The script's package must be in a folder beside the data. Cargo runs the script again after a change
/// of the data.
///
/// # Errors
///
/// Returns an error if the data cannot be read, if an entry is invalid, or if a source cannot be
/// written.
pub fn write_for_build(
    generate: impl FnOnce(&Data) -> Result<Sources, Error>,
) -> Result<PathBuf, Error> {
    let folder = |variable| env::var_os(variable).map(PathBuf::from).unwrap_or_default();
    let data = folder("CARGO_MANIFEST_DIR").join("../data");
    for file in FILES {
        println!("cargo::rerun-if-changed={}", data.join(file).display());
    }
    let out = folder("OUT_DIR");
    for (name, text) in generate(&Data::read(&data)?)? {
        write(&out.join(name), &text)?;
    }
    Ok(out)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::File { path: path.to_owned(), source })
}
