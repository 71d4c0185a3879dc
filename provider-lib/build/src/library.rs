//! Providers of library crates that are linked into a driver's image.
//!
//! A library's build script cannot add resources to another package's image. Instead, it passes on
//! the path of its declaration, as metadata of its `links` key, and the driver's build script
//! generates the resources of all declarations.

use std::{env, ffi::OsStr, path::PathBuf};

use crate::{
    configuration::features,
    image::{BuildError, declared, variable},
};

/// Separates a path from the names of features.
const SEPARATOR: char = '\u{1f}';

/// A declaration that a library passes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The source file.
    pub path: PathBuf,
    /// The features that the library is built with, which decide its `#[cfg(…)]` conditions.
    pub features: Vec<String>,
}

/// The key of the metadata, which cargo passes to build scripts as `DEP_<links>_<key>`.
const KEY: &str = "WDK_ETW_DECLARATIONS";

/// Passes a library crate's declaration on to the build script of the driver that links the
/// library, so that [`compile`](crate::compile) adds its resources to the driver's image.
///
/// Call this function from the library's build script; the path is relative to the package's
/// folder. The package needs a `links` key, because without it cargo passes nothing on:
///
/// ```toml
/// [package]
/// name = "contoso-usb"
/// links = "contoso-usb-etw"
/// ```
///
/// Cargo passes metadata only to packages that depend on the library directly. An intermediate
/// library passes on the declarations of its own dependencies, with this function or, if it has no
/// provider, with [`export_dependencies`].
///
/// ```no_run
/// // build.rs of the library
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     wdk_etw_build::export("src/trace.rs")?;
///     Ok(())
/// }
/// ```
///
/// # Errors
///
/// Fails with [`BuildError::NoLinks`] if the package has no `links` key, and with any error in the
/// declaration.
pub fn export(declaration: impl Into<PathBuf>) -> Result<(), BuildError> {
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let path = folder.join(declaration.into());
    declared(&path).inspect_err(BuildError::tell_cargo)?;
    println!("cargo::rerun-if-changed={}", path.display());
    pass_on(vec![Declaration { path, features: features() }]).inspect_err(BuildError::tell_cargo)
}

/// Passes the declarations of a library's own dependencies on to the driver's build script; see
/// [`export`].
///
/// # Errors
///
/// Fails with [`BuildError::NoLinks`] if the package has no `links` key.
pub fn export_dependencies() -> Result<(), BuildError> {
    pass_on(Vec::new()).inspect_err(BuildError::tell_cargo)
}

fn pass_on(mut declarations: Vec<Declaration>) -> Result<(), BuildError> {
    let package = variable("CARGO_PKG_NAME")?;
    if env::var_os("CARGO_MANIFEST_LINKS").is_none() {
        return Err(BuildError::NoLinks(package));
    }
    declarations.extend(of_dependencies());
    println!("cargo::metadata={KEY}={}", written(&declarations)?);
    Ok(())
}

/// Encodes the declarations as the value of the `cargo::metadata` key.
fn written(declarations: &[Declaration]) -> Result<String, BuildError> {
    let paths = declarations.iter().map(|one| one.path.clone());
    let unusable = || BuildError::Path(paths.clone().collect());
    let entries = declarations.iter().map(|one| {
        let path = one.path.to_str()?;
        let is_usable = !path.contains(['\n', '\r', SEPARATOR]);
        let mut entry = path.to_owned();
        for feature in &one.features {
            entry.push(SEPARATOR);
            entry.push_str(feature);
        }
        is_usable.then_some(entry)
    });
    let entries: Option<Vec<String>> = entries.collect();
    let joined = env::join_paths(entries.ok_or_else(unusable)?).map_err(|_| unusable())?;
    joined.into_string().map_err(|_| unusable())
}

/// Decodes an entry of a value that [`written`] encoded.
fn read(entry: &str) -> Declaration {
    let mut parts = entry.split(SEPARATOR);
    Declaration {
        path: parts.next().unwrap_or_default().into(),
        features: parts.map(str::to_owned).collect(),
    }
}

/// Returns the declarations that the package's dependencies pass on, without duplicates: two
/// dependencies can pass on the same one.
pub fn of_dependencies() -> Vec<Declaration> {
    let mut values: Vec<_> = env::vars_os().filter(|(name, _)| is_declarations(name)).collect();
    // The order of environment variables is unspecified, but builds must be reproducible.
    values.sort();
    let mut declarations: Vec<Declaration> = Vec::new();
    for entry in values.iter().flat_map(|(_, value)| env::split_paths(value)) {
        // `written` made the value, so it is Unicode.
        let declaration = read(&entry.to_string_lossy());
        if !declarations.contains(&declaration) {
            declarations.push(declaration);
        }
    }
    declarations
}

fn is_declarations(name: &OsStr) -> bool {
    name.to_str()
        .and_then(|name| name.strip_prefix("DEP_"))
        .and_then(|name| name.strip_suffix(KEY))
        .is_some_and(|links| links.ends_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_of_this_key_counts() {
        for (name, expected) in [
            ("DEP_CONTOSO_USB_ETW_WDK_ETW_DECLARATIONS", true),
            ("DEP_WDK_ETW_DECLARATIONS", false),
            ("DEP_CONTOSO_USB_ETW_INCLUDE", false),
            ("WDK_ETW_DECLARATIONS", false),
        ] {
            assert_eq!(is_declarations(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn declarations_survive_the_metadata() {
        let declaration = |path: &str, features: &[&str]| Declaration {
            path: path.into(),
            features: features.iter().map(|&name| name.to_owned()).collect(),
        };
        let all =
            [declaration("a b/trace.rs", &["verbose", "usb"]), declaration("c/trace.rs", &[])];
        let text = written(&all).unwrap();
        let read = env::split_paths(&text).map(|entry| read(entry.to_str().unwrap()));
        assert!(read.eq(all));
        assert!(written(&[declaration("a\nb", &[])]).is_err());
        assert!(written(&[declaration("a\u{1f}b", &[])]).is_err());
    }
}
