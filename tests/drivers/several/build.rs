//! Links the driver as the WDK does, with the resources of all its providers.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    wdk_build::configure_wdk_binary_build()?;
    // The library passes on its own declaration.
    wdk_etw_build::Image::of_package()?
        .declaration("src/trace.rs")
        .declaration("src/devices.rs")
        .embed()?;
    Ok(())
}
