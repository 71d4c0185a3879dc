//! `install` and `uninstall`.

use std::path::PathBuf;

use clap::ArgMatches;

use crate::{
    arguments::required,
    error::Failure,
    install::{self, Restart},
};

/// Installs the driver and makes its device, or removes both.
pub fn run(command: &str, arguments: &ArgMatches) -> Result<(), Failure> {
    let inf = required::<PathBuf>(arguments, "inf")?;
    let (what, Restart(restart)) = if command == "install" {
        ("installed", install::install(inf)?)
    } else {
        ("removed", install::uninstall(inf)?)
    };
    println!("the sample driver and its device are {what}");
    if restart {
        println!("Windows must be started anew");
    }
    Ok(())
}
