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
mod import_library;
mod text;
mod types;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use data::{Data, FILES};
pub use error::Error;
pub use import_library::Machine;
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
    sources.extend([
        ("types.rs", types),
        ("constants.rs", constants),
        ("functions.rs", functions),
        ("table.rs", bindings::table(data)),
    ]);
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
    generate: impl FnOnce(&mut Data) -> Result<Sources, Error>,
) -> Result<PathBuf, Error> {
    let data = data_folder();
    for file in FILES {
        println!("cargo::rerun-if-changed={}", data.join(file).display());
    }
    let out = folder("OUT_DIR");
    for (name, text) in generate(&mut Data::read(&data)?)? {
        write(&out.join(name), text)?;
    }
    Ok(out)
}

/// Returns the folder that a variable of the build script names.
fn folder(variable: &str) -> PathBuf {
    env::var_os(variable).map(PathBuf::from).unwrap_or_default()
}

/// Returns the folder of the data, which is beside that of the build script's package.
fn data_folder() -> PathBuf {
    folder("CARGO_MANIFEST_DIR").join("../data")
}

/// Writes the import libraries of the modules whose exports the data name, as `ntoskrnl.lib`, to a
/// folder.
///
/// # Errors
///
/// Returns an error if the data cannot be read, or a library cannot be written.
pub fn write_import_libraries(folder: &Path, machine: Machine) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| Error::File { path: folder.to_owned(), source })?;
    for (name, contents) in import_library::libraries(&Data::read(&data_folder())?, machine) {
        write(&folder.join(name), &contents)?;
    }
    Ok(())
}

fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    fs::write(path, contents).map_err(|source| Error::File { path: path.to_owned(), source })
}
