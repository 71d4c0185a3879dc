//! The errors of this crate.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The reason why a virtual machine cannot be created, started or read.
///
/// A stage that fails in a virtual machine is not an error; the [report](crate::Report) contains
/// its result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation on the host failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The operation, as an infinitive.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A required program is not installed.
    #[error(
        "cannot find {program}; install the Debian package {package}, or name the program's path with {option}"
    )]
    MissingProgram {
        /// The program's name.
        program: String,
        /// The Debian package that contains it.
        package: &'static str,
        /// The command-line option that overrides the path.
        option: &'static str,
    },
    /// UEFI firmware for virtual machines is not installed.
    #[error(
        "cannot find UEFI firmware (OVMF_CODE_4M.fd and OVMF_VARS_4M.fd in {folders}); install the Debian package ovmf, or use `--firmware bios`"
    )]
    MissingFirmware {
        /// The folders that were searched.
        folders: String,
    },
    /// QEMU ended, or did not respond, before it could be controlled.
    #[error("QEMU did not start ({status}): {output}; the command was: {command}")]
    NotStarted {
        /// QEMU's exit status, or a note that it did not respond.
        status: String,
        /// QEMU's output.
        output: String,
        /// The command line.
        command: String,
    },
    /// QEMU rejected a command or did not respond.
    #[error("QEMU's command {command} failed: {reason}")]
    Control {
        /// The QMP command.
        command: String,
        /// QEMU's reason, or a note that it did not respond.
        reason: String,
    },
    /// No accelerator can run a guest.
    #[error("QEMU cannot run a guest on this machine:\n{tried}")]
    NoAccelerator {
        /// The result of each accelerator, one per line.
        tried: String,
    },
    /// A file cannot be added to a CD image.
    #[error("cannot put {name} on a CD image: {reason}")]
    Iso {
        /// The file's path on the image.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The program that writes CD images cannot be run.
    #[error("cannot run xorriso, which writes CD images: {0}; install the Debian package xorriso")]
    NoXorriso(io::Error),
    /// A results disk cannot be created or read.
    #[error("cannot {action} the results disk {}: {reason}", path.display())]
    Disk {
        /// The operation, as an infinitive.
        action: &'static str,
        /// The image.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The available files do not suffice for the plan.
    #[error("{0}")]
    Plan(String),
    /// The installation image contains an unknown version of Windows.
    #[error("cannot tell which Windows {} installs; name it with `--windows`: {known}", path.display())]
    UnknownWindows {
        /// The installation image.
        path: PathBuf,
        /// The names of the supported systems.
        known: String,
    },
    /// Windows was not installed.
    #[error("the installation did not finish: {reason}; {} has the serial log and screenshots", folder.display())]
    Installation {
        /// The reason.
        reason: String,
        /// The folder that contains the installation's logs.
        folder: PathBuf,
    },
    /// Nothing started in the virtual machine during an installation.
    #[error("nothing started in the virtual machine within {} s", limit.as_secs())]
    SaidNothing {
        /// The time for which the host waited.
        limit: Duration,
    },
    /// Another process is using the base image's folder.
    #[error(
        "another process has been using {} for {} s; wait until it ends, or stop it",
        path.display(),
        waited.as_secs()
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// The time for which this process waited.
        waited: Duration,
    },
    /// The user interrupted the command.
    #[error("interrupted; the virtual machine was stopped")]
    Interrupted,
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Returns a function that converts the I/O error of a file operation to [`Error::File`].
pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}
