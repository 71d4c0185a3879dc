//! Links the driver as the WDK does, with the driver's own entry point instead of the framework's.

fn main() -> Result<(), wdk_build::ConfigError> {
    wdk_build::configure_wdk_binary_build()?;
    // The last entry point takes effect.
    println!("cargo::rustc-cdylib-link-arg=/ENTRY:DriverEntry");
    Ok(())
}
