//! `install` and `uninstall`.

use std::path::{Path, PathBuf};

use clap::ArgMatches;

use crate::{
    error::Failure,
    install::{self, Restart},
};

/// Installs the driver and makes its device, or removes both.
pub fn run(command: &str, arguments: &ArgMatches) -> Result<(), Failure> {
    let inf = arguments
        .get_one::<PathBuf>("inf")
        .map_or_else(|| Path::new(""), PathBuf::as_path);
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
