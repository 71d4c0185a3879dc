//! What to run, and how.

use std::{path::PathBuf, time::Duration};

use super::enable::Enabled;
use crate::{
    harness::{
        registry_file::RegistryFile,
        script::{Clients, Script},
    },
    services::managers::registry::value::RegistryValue,
};

/// A driver to run, and how to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The driver's image. A .pdb file beside it provides function names and lines.
    pub image: PathBuf,
    /// The driver's service name.
    pub service: String,
    /// The folder that the driver finds at `\??\C:`, or `None` for no volume.
    pub folder: Option<PathBuf>,
    /// Changes of the registry before the driver is loaded.
    pub registry: Vec<RegistryFile>,
    /// Values of the service's parameters key, by their names, which are set after those changes.
    pub parameters: Vec<(String, RegistryValue)>,
    /// The script to run, or `None` for the life of a device.
    pub script: Option<Script>,
    /// The trace file to write.
    pub etl: PathBuf,
    /// The session's name.
    pub session: String,
    /// The providers and groups to enable with parameters of their own.
    pub enabled: Vec<Enabled>,
    /// True to enable every provider that the driver registers.
    pub every_provider: bool,
    /// TMF files and folders of them, with the formats of WPP messages. The .pdb file beside the image
    /// has formats as well.
    pub formats: Vec<PathBuf>,
    /// The clients that run the script on an open device.
    pub clients: Clients,
    /// True to guard every pool block.
    pub special_pool: bool,
    /// True to report notes about style.
    pub notes: bool,
    /// The time after which [`execute`](super::execute()) ends a driver's process that does nothing.
    /// A process that waits for the reader of its output does not count as one that does nothing.
    pub max_silence: Duration,
    /// The processor time that driver code may use without calling the kernel (see
    /// [`KernelConfig::time_limit`](crate::KernelConfig::time_limit)).
    pub time_limit: Duration,
    /// The confinement of the process in which [`execute`](super::execute()) runs the driver.
    pub confine: Confine,
}

/// The confinement of a driver's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confine {
    /// Confines the process as far as the system can, and notes what it cannot.
    Available,
    /// Confines the process, and does not run the driver if the system cannot.
    Required,
    /// Leaves the process all rights of its user.
    None,
}

/// The form of a command line's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: steps and events on standard output, diagnostics on standard error.
    Human,
    /// One JSON object for each line, on standard output.
    Json,
}
