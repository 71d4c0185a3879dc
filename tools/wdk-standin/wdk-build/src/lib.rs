//! A stand-in for Microsoft's wdk-build, for machines without the WDK.
//!
//! The crate provides the functions that the build scripts of the published wdk, wdk-alloc,
//! wdk-panic and of drivers call: they set the `cfg` that selects the driver model, and the link
//! options of a KMDF driver. The crate does not look for a WDK, does not run bindgen, and supports
//! one configuration: KMDF 1.31.

use std::env;

/// The build cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `crt-static` is off, but drivers must not link the dynamic C runtime.
    #[error(
        "the crt-static target feature is off, but drivers cannot link the dynamic C runtime: add \
         `rustflags = [\"-C\", \"target-feature=+crt-static\"]` for this target to \
         .cargo/config.toml"
    )]
    StaticCrtNotEnabled,
}

/// The link options of a KMDF driver, in wdk-build's order.
///
/// `/RELEASE` is not in wdk-build's list: Microsoft's linker writes the image's checksum for every
/// `/DRIVER`, but lld-link only for `/RELEASE`. `/Brepro` writes hashes instead of times, and
/// `/PDBALTPATH` keeps the PDB's folder out of the image, so that the same source produces the same
/// image on every machine. `/INTEGRITYCHECK` is also Microsoft's; it only sets a flag in the image.
const LINK_OPTIONS: [&str; 16] = [
    "/DRIVER",
    "/NODEFAULTLIB",
    "/SUBSYSTEM:NATIVE",
    "/KERNEL",
    "/ENTRY:FxDriverEntry",
    "/IGNORE:4257",
    "/NXCOMPAT",
    "/DYNAMICBASE",
    "/MAP",
    "/MAPINFO:EXPORTS",
    "/OPT:REF,ICF",
    "/INTEGRITYCHECK",
    "/MANIFEST:NO",
    "/RELEASE",
    "/Brepro",
    "/PDBALTPATH:%_PDB%",
];

/// Configures the build of a library that depends on the driver model, such as wdk.
///
/// # Errors
///
/// Never returns an error; the published crate can.
pub fn configure_wdk_library_build() -> Result<(), ConfigError> {
    println!(
        "cargo::rustc-check-cfg=cfg(driver_model__driver_type, values(\"WDM\", \"KMDF\", \"UMDF\"))"
    );
    println!("cargo::rustc-cfg=driver_model__driver_type=\"KMDF\"");
    Ok(())
}

/// Configures the build of a driver like that of a library, and sets its link options.
///
/// # Errors
///
/// Returns [`ConfigError::StaticCrtNotEnabled`] if the target is Windows and the C
/// runtime would be linked dynamically.
pub fn configure_wdk_binary_build() -> Result<(), ConfigError> {
    configure_wdk_library_build()?;
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_ENV") != "msvc" {
        // Nothing is linked when the crate is checked for another target.
        return Ok(());
    }
    if !variable("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static")
    {
        return Err(ConfigError::StaticCrtNotEnabled);
    }
    for option in LINK_OPTIONS {
        println!("cargo::rustc-cdylib-link-arg={option}");
    }
    Ok(())
}
