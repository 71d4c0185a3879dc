//! Selects the driver model and the version of the framework.

use wdk_build::{ConfigError, DriverConfig};

fn main() -> Result<(), ConfigError> {
    println!("cargo::rustc-check-cfg=cfg(kmdf_1_33)");
    wdk_build::configure_wdk_library_build_and_then(|config| {
        if let DriverConfig::Kmdf(kmdf) = config.driver_config
            && kmdf.target_kmdf_version_minor == 33
        {
            println!("cargo::rustc-cfg=kmdf_1_33");
        }
        Ok(())
    })
}
