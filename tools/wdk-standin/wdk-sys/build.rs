//! Selects the driver model and the version of the framework.

use wdk_build::{ConfigError, DriverConfig};

fn main() -> Result<(), ConfigError> {
    println!("cargo::rustc-check-cfg=cfg(kmdf_1_33)");
    wdk_build::configure_wdk_library_build_and_then(|config| {
        let DriverConfig::Kmdf(kmdf) = config.driver_config else {
            return Ok(());
        };
        let target = kmdf.target_kmdf_version_minor;
        if target == 33 {
            println!("cargo::rustc-cfg=kmdf_1_33");
        }
        let minimum = kmdf.minimum_kmdf_version_minor.unwrap_or(target);
        println!("cargo::rustc-env=WDK_STANDIN_KMDF_MINIMUM={minimum}");
        Ok(())
    })
}
