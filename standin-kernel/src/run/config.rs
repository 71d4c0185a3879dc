//! The configuration of a run.

use std::{path::PathBuf, time::Duration};

use super::enable::Enabled;
use crate::{
    harness::{
        registry_file::RegistryFile,
        script::{Clients, Script},
    },
    services::managers::registry::value::RegistryValue,
};

/// The configuration of a run: the driver, and what surrounds and limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunConfig {
    /// The driver's image. A .pdb file beside it provides function names and lines.
    pub image: PathBuf,
    /// The driver's service name.
    pub service: String,
    /// The folder that the driver finds at `\??\C:`, or `None` for no volume.
    pub folder: Option<PathBuf>,
    /// Registry changes to make before the driver is loaded.
    pub registry: Vec<RegistryFile>,
    /// Values of the service's parameters key, by name. They are set after the registry changes.
    pub parameters: Vec<(String, RegistryValue)>,
    /// The script to run, or `None` for a default script.
    pub script: Option<Script>,
    /// The trace file to write.
    pub etl: PathBuf,
    /// The session's name.
    pub session: String,
    /// The providers and groups to enable with their own parameters.
    pub enabled: Vec<Enabled>,
    /// Set to enable every provider that the driver registers.
    pub every_provider: bool,
    /// TMF files and folders of TMF files, which contain the formats of WPP messages. The .pdb file
    /// beside the image also provides formats.
    pub formats: Vec<PathBuf>,
    /// The clients that run the script on an open device.
    pub clients: Clients,
    /// Set to guard every pool block.
    pub special_pool: bool,
    /// Set to report notes about style.
    pub notes: bool,
    /// The time without progress after which [`run_in_child`](Self::run_in_child) ends a driver's process. A
    /// process that waits for the reader of its output does not count as idle.
    pub max_silence: Duration,
    /// The processor time that driver code may use without calling the kernel (see
    /// [`KernelConfig::time_limit`](crate::KernelConfig::time_limit)).
    pub time_limit: Duration,
    /// The confinement of the process in which [`run_in_child`](Self::run_in_child) runs the driver.
    pub confine: Confine,
}

/// The confinement of a driver's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confine {
    /// Confines the process as far as the system can, and notes the limitations.
    Available,
    /// Confines the process, and does not run the driver if that is impossible.
    Required,
    /// Leaves the process all rights of its user.
    None,
}

/// The output format of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: steps and events on standard output, diagnostics on standard error.
    Human,
    /// One JSON object per line, on standard output.
    Json,
}
