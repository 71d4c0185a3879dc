//! `install` and `uninstall`.

use crate::{
    arguments::PackageOptions,
    error::Failure,
    install::{self, Restart},
};

/// Installs the driver package and creates the device.
pub fn install(options: &PackageOptions) -> Result<(), Failure> {
    let restart = install::install(&options.inf)?;
    println!("the sample driver and its device are installed");
    report_restart(restart);
    Ok(())
}

/// Removes the device and the driver package.
pub fn uninstall(options: &PackageOptions) -> Result<(), Failure> {
    let restart = install::uninstall(&options.inf)?;
    println!("the sample driver and its device are removed");
    report_restart(restart);
    Ok(())
}

fn report_restart(Restart(needed): Restart) {
    if needed {
        println!("restart Windows to complete the change");
    }
}
