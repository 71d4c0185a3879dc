//! `cargo etw build`: builds a driver without the WDK.

use std::path::PathBuf;

use anyhow::{Result, bail};
use driver_build::{
    driver::{Driver, Image, Messages, Profile, machine},
    toolchain::Toolchain,
};

/// The arguments of the command.
pub struct Build {
    /// The driver's package.
    pub package: Option<String>,
    /// The manifest of the driver or of its workspace.
    pub manifest: Option<PathBuf>,
    /// The processor's name.
    pub machine: String,
    /// True for the release profile.
    pub is_release: bool,
}

/// Builds the driver, and prints the paths of its files. `message_format` is `human` or `json`.
pub fn run(arguments: &Build, message_format: &str) -> Result<()> {
    let messages = match message_format {
        "human" => Messages::Human,
        "json" => Messages::Json,
        other => bail!("`{other}` is not a message format; expected human or json"),
    };
    let image = build(arguments, messages)?;
    if messages == Messages::Human {
        println!("{}", image.sys.display());
        println!("{}", image.pdb.display());
    }
    Ok(())
}

/// Builds the driver, and returns its files.
pub fn build(arguments: &Build, messages: Messages) -> Result<Image> {
    let machine = machine(&arguments.machine)?;
    let driver = Driver::find(arguments.manifest.as_deref(), arguments.package.as_deref())?;
    let toolchain = Toolchain::find_or_install(machine)?;
    let profile = if arguments.is_release {
        Profile::Release
    } else {
        Profile::Debug
    };
    eprintln!(
        "Building {} for {} with {}",
        driver.package,
        machine.target(),
        toolchain.describe()
    );
    driver.build(&toolchain, profile, messages)
}
