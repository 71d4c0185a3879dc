//! A stand-in for Microsoft's wdk-build, for machines without the WDK.
//!
//! The crate provides the functions that the build scripts of drivers and of the published wdk,
//! wdk-alloc and wdk-panic call: they set the `cfg` that selects the driver model, and the link
//! options of a KMDF or WDM driver. Like the published crate, it reads the model and the KMDF
//! version from the manifests. It neither looks for a WDK nor runs bindgen.

mod error;
mod kit;
mod metadata;
mod model;

use std::{env, fs, path::Path};

pub use error::ConfigError;
pub use kit::{BuilderExt, detect_wdk_build_number};
pub use metadata::MANIFEST;
pub use model::{DriverConfig, KmdfConfig};

/// The configuration of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The driver model.
    pub driver_config: DriverConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self { driver_config: DriverConfig::Kmdf(KmdfConfig::default()) }
    }
}

/// The link options of drivers of each model, in wdk-build's order.
///
/// `/RELEASE` is not in wdk-build's list: Microsoft's linker writes the image's checksum for every
/// `/DRIVER`, but lld-link needs `/RELEASE`. `/Brepro` writes hashes instead of times, and
/// `/PDBALTPATH` keeps the PDB's folder out of the image, so that the same source produces the same
/// image on every machine. `/INTEGRITYCHECK` is also Microsoft's; it only sets a flag in the image.
const LINK_OPTIONS: [&str; 15] = [
    "/DRIVER", "/NODEFAULTLIB", "/SUBSYSTEM:NATIVE", "/KERNEL", "/IGNORE:4257", "/NXCOMPAT",
    "/DYNAMICBASE", "/MAP", "/MAPINFO:EXPORTS", "/OPT:REF,ICF", "/INTEGRITYCHECK", "/MANIFEST:NO",
    "/RELEASE", "/Brepro", "/PDBALTPATH:%_PDB%",
];

/// The user-mode libraries that published crates for drivers link without using them:
/// `tracelogging` links this one even in kernel mode. It is part of the Windows SDK.
const USER_MODE_LIBRARIES: [&str; 1] = ["rpcrt4.lib"];

/// Creates empty libraries in the driver's build folder, where the linker finds them.
fn provide_user_mode_libraries(folder: &Path) -> Result<(), ConfigError> {
    for library in USER_MODE_LIBRARIES {
        let path = folder.join(library);
        fs::write(&path, "!<arch>\n")
            .map_err(|error| ConfigError::Library { path: path.clone(), error })?;
    }
    println!("cargo::rustc-link-search={}", folder.display());
    Ok(())
}

impl Config {
    /// Returns the default configuration, KMDF 1.31.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the configuration from the manifests of the workspace that is being built. cargo
    /// reruns the build script if one of them changes.
    ///
    /// # Errors
    ///
    /// Fails if the manifests cannot be read, if they have no configuration or several, or if the
    /// stand-ins do not support it.
    pub fn from_env_auto() -> Result<Self, ConfigError> {
        let manifest = metadata::manifest().ok_or(ConfigError::NoConfiguration)?;
        Self::from_manifest(&manifest)
    }

    fn from_manifest(manifest: &Path) -> Result<Self, ConfigError> {
        let (driver_config, manifests) = metadata::read(manifest)?;
        for path in manifests {
            println!("cargo::rerun-if-changed={path}");
        }
        Ok(Self { driver_config })
    }

    /// Declares the `cfg` options that a build can set.
    pub fn emit_check_cfg_settings() {
        println!(
            "cargo::rustc-check-cfg=cfg(driver_model__driver_type, values(\"WDM\", \"KMDF\", \
             \"UMDF\"))"
        );
    }

    /// Configures the build of a library that depends on the driver model.
    ///
    /// # Errors
    ///
    /// Never fails, unlike the published crate's method.
    pub fn configure_library_build(&self) -> Result<(), ConfigError> {
        Self::emit_check_cfg_settings();
        let model = match self.driver_config {
            DriverConfig::Wdm => "WDM",
            DriverConfig::Kmdf(_) => "KMDF",
        };
        println!("cargo::rustc-cfg=driver_model__driver_type=\"{model}\"");
        Ok(())
    }

    /// Configures a driver's build like a library's, and sets the driver's link options.
    ///
    /// # Errors
    ///
    /// Fails with [`ConfigError::StaticCrtNotEnabled`] if the target is Windows and the C runtime
    /// would be linked dynamically.
    pub fn configure_binary_build(&self) -> Result<(), ConfigError> {
        self.configure_library_build()?;
        let variable = |name| env::var(name).unwrap_or_default();
        if variable("CARGO_CFG_TARGET_ENV") != "msvc" {
            // Checking the crate for another target links nothing.
            return Ok(());
        }
        if !variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static") {
            return Err(ConfigError::StaticCrtNotEnabled);
        }
        let entry = match self.driver_config {
            DriverConfig::Wdm => "/ENTRY:DriverEntry",
            DriverConfig::Kmdf(_) => "/ENTRY:FxDriverEntry",
        };
        for option in LINK_OPTIONS.iter().chain([&entry]) {
            println!("cargo::rustc-cdylib-link-arg={option}");
        }
        if let Some(folder) = env::var_os("OUT_DIR") {
            provide_user_mode_libraries(Path::new(&folder))?;
        }
        Ok(())
    }

    /// Returns the symbol of the framework's function table.
    #[must_use]
    pub fn compute_wdffunctions_symbol_name(&self) -> Option<String> {
        let DriverConfig::Kmdf(kmdf) = self.driver_config else {
            return None;
        };
        Some(format!(
            "WdfFunctions_{:02}0{:02}",
            kmdf.kmdf_version_major, kmdf.target_kmdf_version_minor
        ))
    }
}

/// Configures the build of a library that depends on the driver model, such as wdk.
///
/// # Errors
///
/// Fails if the manifests have a configuration that the stand-ins do not support.
pub fn configure_wdk_library_build() -> Result<(), ConfigError> {
    configure_wdk_library_build_and_then(|_| Ok(()))
}

/// Configures the build of a library like [`configure_wdk_library_build`], then calls a function
/// with the configuration. A library built without a driver gets the default configuration.
///
/// # Errors
///
/// Fails if the manifests have a configuration that the stand-ins do not support, or with the
/// function's error.
pub fn configure_wdk_library_build_and_then<F, E>(mut then: F) -> Result<(), E>
where
    F: FnMut(Config) -> Result<(), E>,
    E: From<ConfigError>,
{
    let config = match Config::from_env_auto() {
        Err(ConfigError::NoConfiguration) => Config::default(),
        found => found?,
    };
    config.configure_library_build()?;
    then(config)
}

/// Configures a driver's build like a library's, and sets the driver's link options.
///
/// # Errors
///
/// Fails if the driver's manifest has no configuration, or one that the stand-ins do not support,
/// or if the target is Windows and the C runtime would be linked dynamically.
pub fn configure_wdk_binary_build() -> Result<(), ConfigError> {
    Config::from_env_auto()?.configure_binary_build()
}
