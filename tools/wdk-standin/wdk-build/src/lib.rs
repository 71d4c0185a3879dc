//! A stand-in for Microsoft's wdk-build, for machines without the WDK.
//!
//! It offers what the published wdk, wdk-alloc, wdk-panic and a driver's own
//! build script call: the `cfg` that selects the driver model, and the link
//! options of a KMDF driver. It looks for no WDK, runs no bindgen, and knows one
//! configuration: KMDF 1.31.

use std::env;

/// Why a build was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Drivers link no dynamic C runtime, so `crt-static` must be on.
    #[error(
        "the crt-static target feature is off, but drivers cannot link the dynamic C runtime: add \
         `rustflags = [\"-C\", \"target-feature=+crt-static\"]` for this target to \
         .cargo/config.toml"
    )]
    StaticCrtNotEnabled,
}

/// The link options of a KMDF driver, in wdk-build's order.
///
/// `/RELEASE` is the one that is not wdk-build's: Microsoft's linker writes the
/// image's checksum for every `/DRIVER`, lld-link only for `/RELEASE`.
/// `/Brepro` writes hashes in the place of times, and `/PDBALTPATH` keeps the PDB's folder
/// out of the image, so that the same source makes the same image on every machine.
/// `/INTEGRITYCHECK` is Microsoft's too; it only sets a flag in the image.
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

/// Configures the build of a library that depends on the driver model: wdk and
/// its kin.
///
/// # Errors
///
/// None here; the published crate has some.
pub fn configure_wdk_library_build() -> Result<(), ConfigError> {
    println!(
        "cargo::rustc-check-cfg=cfg(driver_model__driver_type, values(\"WDM\", \"KMDF\", \"UMDF\"))"
    );
    println!("cargo::rustc-cfg=driver_model__driver_type=\"KMDF\"");
    Ok(())
}

/// Configures the build of a driver: as a library's, and its link options.
///
/// # Errors
///
/// [`ConfigError::StaticCrtNotEnabled`] if the target is Windows and the C
/// runtime would be linked dynamically.
pub fn configure_wdk_binary_build() -> Result<(), ConfigError> {
    configure_wdk_library_build()?;
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_ENV") != "msvc" {
        // A check on another target links nothing.
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
