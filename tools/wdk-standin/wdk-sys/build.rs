//! Selects the driver model and the framework version, and generates the bindings.

use std::{env, error::Error, path::Path};

use wdk_build::{ConfigError, DriverConfig, KmdfConfig};
use wdk_sys_generator::{Machine, sources, write_for_build, write_import_libraries};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-check-cfg=cfg(kmdf_1_33)");
    let mut target = KmdfConfig::default().target_kmdf_version_minor;
    wdk_build::configure_wdk_library_build_and_then(|config| {
        let DriverConfig::Kmdf(kmdf) = config.driver_config else {
            return Ok(());
        };
        target = kmdf.target_kmdf_version_minor;
        // The headers of 1.35 are not public. It extends 1.33.
        target = target.min(33);
        if target == 33 {
            println!("cargo::rustc-cfg=kmdf_1_33");
        }
        let minimum = kmdf.minimum_kmdf_version_minor.unwrap_or(target).min(target);
        println!("cargo::rustc-env=WDK_STANDIN_KMDF_TARGET={target}");
        println!("cargo::rustc-env=WDK_STANDIN_KMDF_MINIMUM={minimum}");
        Ok::<(), ConfigError>(())
    })?;
    let is_enabled = |feature: &str| {
        let variable = format!("CARGO_FEATURE_{}", feature.to_uppercase());
        env::var_os(variable).is_some()
    };
    let folder = write_for_build(|data| {
        data.set_kmdf(target)?;
        sources(data, is_enabled)
    })?;
    // The tests of the definitions read these sources.
    println!("cargo::metadata=sources={}", folder.display());
    if env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|found| found == "msvc")
        && !is_enabled("suppress_wdk_linking")
    {
        link_kernel(&folder.join("libraries"))?;
    }
    Ok(())
}

/// Links the libraries that every driver links, which resolve the driver's own declarations of
/// kernel routines. The linker also finds the other modules' libraries.
fn link_kernel(folder: &Path) -> Result<(), Box<dyn Error>> {
    let is_arm = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|found| found == "aarch64");
    write_import_libraries(folder, if is_arm { Machine::Arm64 } else { Machine::X64 })?;
    println!("cargo::rustc-link-search=native={}", folder.display());
    for library in ["ntoskrnl", "hal", "wmilib"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    Ok(())
}
