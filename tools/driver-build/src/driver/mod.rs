//! A driver in a cargo workspace, and the options of its build.

mod build;
mod find;

use std::path::{self, Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{
    standin::{KMDF_VERSIONS, kmdf_versions},
    toolchain::Machine,
};

pub use self::build::copy_image;
pub use crate::messages::Messages;

/// A build profile of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// With debug assertions.
    Debug,
    /// Optimized.
    Release,
}

impl Profile {
    /// Returns the name of the profile's folder in the target folder.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Release => "release",
        }
    }
}

/// The build options, which cargo defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The name of the profile.
    pub profile: String,
    /// The cargo arguments that select features.
    pub features: Vec<String>,
    /// True if the author's lock file must be up to date.
    pub is_locked: bool,
    /// True if cargo must not use the network.
    pub is_offline: bool,
    /// The cargo arguments for verbosity.
    pub output: Vec<String>,
}

impl From<Profile> for Options {
    fn from(profile: Profile) -> Self {
        let profile = match profile {
            Profile::Debug => "dev",
            Profile::Release => "release",
        };
        Self {
            profile: profile.to_owned(),
            features: Vec::new(),
            is_locked: false,
            is_offline: false,
            output: Vec::new(),
        }
    }
}

/// A driver in a cargo workspace: a package with a `cdylib` library, and with
/// `[package.metadata.wdk]` or a dependency on a WDK crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The package's name.
    pub package: String,
    /// The image's file name without the extension, which is the library's name.
    pub image: String,
    /// The package's manifest.
    pub manifest: PathBuf,
    /// The workspace's folder.
    pub workspace: PathBuf,
    /// The workspace's target folder.
    pub target: PathBuf,
    /// The root source file of the package's library.
    pub library: PathBuf,
    /// The build script, if the package has one.
    pub script: Option<PathBuf>,
    /// The root source files of the workspace libraries that the driver uses directly or
    /// indirectly.
    pub used_libraries: Vec<PathBuf>,
    /// The package's version.
    pub version: String,
    /// The package's description, or an empty string.
    pub description: String,
    /// The package's authors.
    pub authors: Vec<String>,
    /// The framework version in the package's or workspace's metadata, if any.
    pub framework: Option<Framework>,
    /// The driver model in the package's or workspace's metadata, such as `KMDF`, if any.
    pub model: Option<String>,
    /// True if the workspace contains its own wdk-sys package.
    pub has_own_wdk_sys: bool,
    /// The package's metadata for tools: `[package.metadata]`.
    pub metadata: Value,
}

/// A KMDF version, as a driver's metadata specifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framework {
    /// The major version.
    pub major: u32,
    /// The minor version that the driver is built for.
    pub target: u32,
    /// The oldest minor version with which the driver works.
    pub minimum: u32,
}

/// The files of a built driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The driver.
    pub sys: PathBuf,
    /// Its symbols.
    pub pdb: PathBuf,
}

/// The names of the driver models that can be built.
const WDM: &str = "WDM";
const KMDF: &str = "KMDF";

impl Driver {
    /// Returns whether the driver uses no framework, according to the metadata.
    #[must_use]
    pub fn is_wdm(&self) -> bool {
        self.model.as_deref() == Some(WDM)
    }

    /// Checks that the driver's model and framework version can be built without the WDK.
    ///
    /// # Errors
    ///
    /// Fails if the metadata specifies a model other than KMDF or WDM, or a KMDF version that the
    /// stand-ins do not support.
    pub fn check_model(&self) -> Result<()> {
        /// The section to write.
        const SECTION: &str = "[package.metadata.wdk.driver-model] with driver-type = \"KMDF\", \
                               kmdf-version-major = 1 and target-kmdf-version-minor = 33, or with \
                               driver-type = \"WDM\"";
        let package = &self.package;
        match self.model.as_deref() {
            Some(WDM) => Ok(()),
            Some(KMDF) => {
                let Some(Framework { major, target, .. }) = self.framework else {
                    bail!(
                        "the metadata of {package} has no KMDF version: write the numbers \
                         kmdf-version-major = 1 and target-kmdf-version-minor = 33 beside driver-type"
                    );
                };
                ensure!(
                    major == 1 && KMDF_VERSIONS.contains(&target),
                    "{package} is for KMDF {major}.{target}, a version that no WDK for Windows 10 or \
                     newer has; `cargo etw` builds and runs drivers for KMDF {}: set \
                     target-kmdf-version-minor to one of them",
                    kmdf_versions()
                );
                Ok(())
            }
            Some("UMDF") => bail!(
                "{package} has driver-type = \"UMDF\"; `cargo etw` builds and runs KMDF and WDM drivers; \
                 build a user-mode driver on Windows, with the WDK"
            ),
            Some(other) => {
                let meant =
                    [WDM, KMDF].into_iter().find(|name| name.eq_ignore_ascii_case(other.trim()));
                let meant = meant
                    .map_or_else(|| format!("{KMDF:?} or {WDM:?}"), |name| format!("{name:?}"));
                bail!("{package} has driver-type = {other:?}; write driver-type = {meant}")
            }
            None => bail!(
                "{package} has no WDK configuration, which wdk-build requires: add a section {SECTION} \
                 to {}",
                self.manifest.display()
            ),
        }
    }

    /// Returns the driver with another target folder.
    ///
    /// # Errors
    ///
    /// Fails if the path is empty or the current folder is unknown.
    pub fn with_target(mut self, folder: &Path) -> Result<Self> {
        let absolute = path::absolute(folder).with_context(|| {
            format!("cannot make the target folder's path {} absolute", folder.display())
        })?;
        self.target = plain(&absolute);
        Ok(self)
    }
}

/// Returns a path without `.` and `..`, in the form that cargo uses.
#[must_use]
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Returns the machine type with this name on the command line.
///
/// # Errors
///
/// Fails for other names.
pub fn machine(name: &str) -> Result<Machine> {
    let all = [Machine::X64, Machine::Arm64];
    let found = all.into_iter().find(|machine| machine.name() == name);
    found.with_context(|| format!("unknown machine `{name}`; expected x64 or arm64"))
}
