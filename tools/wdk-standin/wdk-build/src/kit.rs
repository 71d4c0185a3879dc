//! The interface with which build scripts compile against the WDK's headers and libraries.
//!
//! A driver that has C code, or bindings of its own, uses it. Without the WDK, its build script
//! compiles, and fails with an error that names the function.

use std::{borrow::Borrow, iter::Empty, path::PathBuf};

use crate::{Config, ConfigError, DriverConfig};

/// Creates a `bindgen::Builder` for the WDK's headers. The stand-in implements it for every type,
/// so that it does not depend on bindgen.
pub trait BuilderExt: Sized {
    /// Returns the builder.
    ///
    /// # Errors
    ///
    /// Always fails, because there is no WDK.
    fn wdk_default(_config: impl Borrow<Config>) -> Result<Self, ConfigError> {
        Err(ConfigError::NeedsWdk("BuilderExt::wdk_default"))
    }
}

impl<T> BuilderExt for T {}

impl Config {
    /// Returns the folders of the WDK's headers.
    ///
    /// # Errors
    ///
    /// Always fails, because there is no WDK.
    pub fn include_paths(&self) -> Result<impl Iterator<Item = PathBuf>, ConfigError> {
        Err::<Empty<_>, _>(ConfigError::NeedsWdk("Config::include_paths"))
    }

    /// Returns the folders of the WDK's libraries.
    ///
    /// # Errors
    ///
    /// Always fails, because there is no WDK.
    pub fn library_paths(&self) -> Result<impl Iterator<Item = PathBuf>, ConfigError> {
        Err::<Empty<_>, _>(ConfigError::NeedsWdk("Config::library_paths"))
    }

    /// Returns the macros that the WDK's headers expect.
    pub fn preprocessor_definitions(&self) -> impl Iterator<Item = (String, Option<String>)> {
        let flags = ["_WIN64", "_AMD64_", "AMD64", "_KERNEL_MODE"];
        let mut versions = Vec::new();
        if let DriverConfig::Kmdf(kmdf) = self.driver_config {
            versions.push(("KMDF_VERSION_MAJOR", kmdf.kmdf_version_major));
            versions.push(("KMDF_VERSION_MINOR", kmdf.target_kmdf_version_minor));
            let minimum = kmdf.minimum_kmdf_version_minor;
            versions.extend(minimum.map(|minor| ("KMDF_MINIMUM_VERSION_REQUIRED", minor)));
        }
        flags.into_iter().map(|name| (name.to_owned(), None)).chain(
            versions.into_iter().map(|(name, value)| (name.to_owned(), Some(value.to_string()))),
        )
    }
}

/// Returns the build number of the WDK.
///
/// # Errors
///
/// Always fails, because there is no WDK.
pub const fn detect_wdk_build_number() -> Result<u32, ConfigError> {
    Err(ConfigError::NeedsWdk("detect_wdk_build_number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KmdfConfig;

    #[test]
    fn what_needs_the_wdk_is_named() {
        struct Builder;
        let config = Config::new();
        let errors = [
            config.include_paths().err(),
            config.library_paths().err(),
            Builder::wdk_default(config).err(),
            detect_wdk_build_number().err(),
        ];
        let errors = errors.map(|error| error.unwrap().to_string());
        assert!(errors[0].contains("wdk_build::Config::include_paths"), "{}", errors[0]);
        assert!(errors.iter().all(|error| error.contains("needs the WDK")), "{errors:?}");
    }

    #[test]
    fn the_macros_state_the_driver_model() {
        let names = |config: &Config| {
            config.preprocessor_definitions().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let flags = ["_WIN64", "_AMD64_", "AMD64", "_KERNEL_MODE"];
        assert_eq!(names(&Config { driver_config: DriverConfig::Wdm }), flags);
        let kmdf = KmdfConfig { minimum_kmdf_version_minor: Some(25), ..KmdfConfig::default() };
        let config = Config { driver_config: DriverConfig::Kmdf(kmdf) };
        let versions = config.preprocessor_definitions().skip(flags.len());
        let versions = versions.map(|(name, value)| format!("{name}={}", value.unwrap()));
        let expected =
            ["KMDF_VERSION_MAJOR=1", "KMDF_VERSION_MINOR=31", "KMDF_MINIMUM_VERSION_REQUIRED=25"];
        assert!(versions.eq(expected));
    }
}
