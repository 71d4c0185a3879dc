//! The errors of this crate.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// A virtual machine cannot be made, started or read.
///
/// A stage that fails inside a machine is not an error: the [report](crate::Report) has it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation of the host failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The operation, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A program that is needed is not installed.
    #[error(
        "cannot find {program}; install the Debian package {package}, or name the program's path with {option}"
    )]
    MissingProgram {
        /// The program's name.
        program: String,
        /// The package of Debian that contains it.
        package: &'static str,
        /// The option of the command line that names another path.
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
    /// QEMU ended or stayed silent before it could be controlled.
    #[error("QEMU did not start ({status}): {output}; the command was: {command}")]
    NotStarted {
        /// How QEMU ended, or that it did not answer.
        status: String,
        /// What QEMU wrote.
        output: String,
        /// The command line.
        command: String,
    },
    /// QEMU refused a command, or did not answer.
    #[error("QEMU's command {command} failed: {reason}")]
    Control {
        /// The QMP command.
        command: String,
        /// QEMU's reason, or that it did not answer.
        reason: String,
    },
    /// QEMU cannot run a guest with any accelerator.
    #[error("QEMU cannot run a guest on this machine:\n{tried}")]
    NoAccelerator {
        /// One line for each accelerator that was tried.
        tried: String,
    },
    /// A file cannot be put on a CD image.
    #[error("cannot put {name} on a CD image: {reason}")]
    Iso {
        /// The file's path on the image.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A disk image for results cannot be made or read.
    #[error("cannot {action} the results disk {}: {reason}", path.display())]
    Disk {
        /// The operation, as a verb.
        action: &'static str,
        /// The image.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The plan cannot be carried out with the files at hand.
    #[error("{0}")]
    Plan(String),
    /// The installation image is of no known Windows.
    #[error("cannot tell which Windows {} installs; name it with `--windows`: {known}", path.display())]
    UnknownWindows {
        /// The installation image.
        path: PathBuf,
        /// The names of the known systems.
        known: String,
    },
    /// Windows was not installed.
    #[error("the installation did not finish: {reason}; {} has the serial log and screenshots", folder.display())]
    Installation {
        /// What happened instead.
        reason: String,
        /// The folder of the installation's logs.
        folder: PathBuf,
    },
    /// Nothing started in the machine of an installation.
    #[error("nothing started in the virtual machine in {} s", limit.as_secs())]
    SaidNothing {
        /// How long that was waited for.
        limit: Duration,
    },
    /// Another process uses the base image's folder.
    #[error("another process has been installing into {} for {} s; wait for it to end, or stop it", path.display(), waited.as_secs())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// The user ended the command.
    #[error("interrupted; the virtual machine was stopped")]
    Interrupted,
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Returns a function that makes an error of an operation on a file.
pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}
