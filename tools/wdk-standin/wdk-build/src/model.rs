//! Driver models.

use std::fmt;

/// The minor versions of KMDF 1 that the stand-ins support: those from the oldest for Windows 10's
/// WDKs to the newest.
pub const VERSIONS: [u8; 14] = [9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35];

/// The version for libraries built without a driver.
const DEFAULT: u8 = 31;

/// The KMDF version for which a driver is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KmdfConfig {
    /// The major version.
    pub kmdf_version_major: u8,
    /// The minor version.
    pub target_kmdf_version_minor: u8,
    /// The oldest minor version with which the driver works, if it is not the target.
    pub minimum_kmdf_version_minor: Option<u8>,
}

impl Default for KmdfConfig {
    /// Returns the configuration for libraries built without a driver.
    fn default() -> Self {
        Self {
            kmdf_version_major: 1,
            target_kmdf_version_minor: DEFAULT,
            minimum_kmdf_version_minor: None,
        }
    }
}

impl fmt::Display for KmdfConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = (self.kmdf_version_major, self.target_kmdf_version_minor);
        write!(formatter, "KMDF {major}.{minor}")?;
        if let Some(minimum) = self.minimum_kmdf_version_minor {
            write!(formatter, " (minimum {major}.{minimum})")?;
        }
        Ok(())
    }
}

/// The driver model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DriverConfig {
    /// The Windows driver model, without a framework.
    Wdm,
    /// The kernel-mode driver framework.
    Kmdf(KmdfConfig),
}

impl fmt::Display for DriverConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wdm => formatter.write_str("WDM"),
            Self::Kmdf(kmdf) => kmdf.fmt(formatter),
        }
    }
}
