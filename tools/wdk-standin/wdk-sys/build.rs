//! Selects the driver model and the version of the framework, and generates the bindings.

use std::{env, error::Error};

use wdk_build::{ConfigError, DriverConfig};
use wdk_sys_generator::{sources, write_for_build};

fn main() -> Result<(), Box<dyn Error>> {
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
        Ok::<(), ConfigError>(())
    })?;
    let is_enabled = |feature: &str| {
        let variable = format!("CARGO_FEATURE_{}", feature.to_uppercase());
        env::var_os(variable).is_some()
    };
    let folder = write_for_build(|data| sources(data, is_enabled))?;
    // The tests of the definitions read the sources.
    println!("cargo::metadata=sources={}", folder.display());
    Ok(())
}
