//! `install` and `uninstall`.

use std::path::Path;

use crate::{
    error::Failure,
    install::{self, Restart},
};

/// Installs the driver package and creates the device.
pub fn install(inf: &Path) -> Result<(), Failure> {
    let restart = install::install(inf)?;
    println!("the sample driver and its device are installed");
    report_restart(restart);
    Ok(())
}

/// Removes the device and the driver package.
pub fn uninstall(inf: &Path) -> Result<(), Failure> {
    let restart = install::uninstall(inf)?;
    println!("the sample driver and its device are removed");
    report_restart(restart);
    Ok(())
}

fn report_restart(Restart(needed): Restart) {
    if needed {
        println!("restart Windows to complete the change");
    }
}
