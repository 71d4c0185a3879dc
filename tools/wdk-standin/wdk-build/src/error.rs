//! The crate's errors.

use std::{fmt, io, path::PathBuf};

/// The reason why the build cannot be configured.
#[derive(thiserror::Error)]
pub enum ConfigError {
    /// `crt-static` is off, but drivers must not link the dynamic C runtime.
    #[error(
        "the crt-static target feature is off, but drivers cannot link the dynamic C runtime: add \
         `rustflags = [\"-C\", \"target-feature=+crt-static\"]` for this target to \
         .cargo/config.toml"
    )]
    StaticCrtNotEnabled,
    /// cargo cannot read the manifests.
    #[error("cannot read the WDK configuration of {}: {what}", manifest.display())]
    CargoMetadata {
        /// The manifest.
        manifest: PathBuf,
        /// The cause.
        what: String,
    },
    /// No manifest in the workspace has a configuration.
    #[error(
        "no WDK configuration: add a section [package.metadata.wdk.driver-model] with driver-type = \
         \"KMDF\", kmdf-version-major = 1 and target-kmdf-version-minor = 31 to the driver's \
         Cargo.toml"
    )]
    NoConfiguration,
    /// The manifests have different configurations.
    #[error("a workspace can have only one WDK configuration, but its manifests have several: {0}")]
    SeveralConfigurations(String),
    /// A section that wdk-build does not recognize.
    #[error("metadata.wdk of {owner}: {what}")]
    Metadata {
        /// The package, or the workspace.
        owner: String,
        /// The problem.
        what: String,
    },
    /// An empty library cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Library {
        /// The library.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The build script reads the WDK's headers or libraries.
    #[error(
        "the build script calls wdk_build::{0}, which needs the WDK, and this build uses stand-ins \
         for it: take the bindings from wdk-sys, declare what it lacks in the driver, or build with \
         the WDK on Windows"
    )]
    NeedsWdk(&'static str),
    /// The stand-ins do not support the driver model or its version.
    #[error(
        "{owner} is configured for {found}; without the WDK, WDM and KMDF {} are supported",
        crate::model::VERSIONS.map(|minor| format!("1.{minor}")).join(", ")
    )]
    Unsupported {
        /// The package, or the workspace.
        owner: String,
        /// The driver model and version.
        found: String,
    },
}

/// A build script that returns an error prints the error's `Debug` form, so both forms are the same
/// message.
impl fmt::Debug for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
