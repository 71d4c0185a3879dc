//! `cargo xtask fresh-machine`: runs the README's two commands on newly installed machines, which
//! `fresh-machine.sh` describes.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use driver_build::toolchain::Rust;

use crate::{
    packages,
    process::{find_program, output_of, pass_on, root, target},
    progress::step,
};

/// The script that creates the machines.
const SCRIPT: &str = "tools/xtask/fresh-machine.sh";

/// Tries the machines with these names, or all machines.
pub fn run(machines: &[String]) -> Result<()> {
    ensure!(
        output_of(Command::new("id").arg("-u")).is_some_and(|id| id == "0"),
        "cannot create machines without root, which debootstrap and chroot need; run the command as root"
    );
    step("Finding debootstrap", || match find_program("debootstrap") {
        Some(_) => Ok(()),
        None => packages::install(&["debootstrap"]),
    })?;
    let sysroot = Rust::Current.sysroot().context("`rustc --print sysroot` fails")?;
    let mut script = Command::new(root().join(SCRIPT));
    pass_on(script.arg(target()).arg(sysroot).args(machines))
}
