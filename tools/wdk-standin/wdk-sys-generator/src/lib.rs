//! Generates the bindings of the wdk-sys stand-in from the data in `tools/wdk-standin/data`, in the
//! stand-in's build scripts.
//!
//! The data describes the bindings that the published wdk-sys 0.5.2 generates from the WDK headers.
//! The generated sources contain the same items in a shorter form: the stand-in's macros
//! (`wdk-sys/src/bindings.rs`) expand to layout assertions, bit field accessors and zeroed
//! defaults.

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

/// The source files' contents, by file name.
pub type Sources = BTreeMap<&'static str, String>;

/// Returns the sources of wdk-sys with the enabled features; the data spells features with
/// underscores.
///
/// # Errors
///
/// Fails if an entry in the data is invalid.
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

/// Returns the source of the framework's functions, which wdk-macros also reads.
///
/// # Errors
///
/// Fails if an entry in the data is invalid.
pub fn framework(data: &Data) -> Result<Sources, Error> {
    Ok([("framework.rs", types::framework(data)?)].into())
}

/// Writes sources to the output folder of the calling build script, and returns the folder.
///
/// The script's package must be in the same folder as the data. cargo reruns the script if the data
/// changes.
///
/// # Errors
///
/// Fails if the data cannot be read, if an entry is invalid, or if a source cannot be written.
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

/// Returns the folder in one of the build script's environment variables.
fn folder(variable: &str) -> PathBuf {
    env::var_os(variable).map(PathBuf::from).unwrap_or_default()
}

/// Returns the data's folder, which is next to the folder of the build script's package.
fn data_folder() -> PathBuf {
    folder("CARGO_MANIFEST_DIR").join("../data")
}

/// Writes the import libraries of the modules whose exports the data contains, such as
/// `ntoskrnl.lib`, to a folder.
///
/// # Errors
///
/// Fails if the data cannot be read or a library cannot be written.
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
