//! `cargo xtask vm`: runs the sample driver's stages on Windows with `cargo etw vm`.

use std::{ffi::OsString, path::PathBuf};

use anyhow::Result;

use crate::{
    cargo_etw, client, kit, package, packages,
    process::{pass_on, target},
    progress::step,
};

/// Builds the contents of the sample driver's kit, and passes on the other arguments.
pub fn run(arguments: &[OsString]) -> Result<()> {
    step("Installing QEMU", || packages::install(&crate::guest::missing_packages()))?;
    package::run()?;
    let client: PathBuf = target().join("client").join(format!("{}.exe", client::PACKAGE));
    let mut command = cargo_etw::command(["vm", "--driver"])?;
    command.arg(package::archive()).arg("--client").arg(client);
    command.arg("--package-catalog-2").arg(package::archive_with_catalog_2());
    command.arg("--probe").arg(package::archive_of_probes());
    command.arg("--recipes").arg(kit::write_recipes()?);
    pass_on(command.args(arguments))
}
