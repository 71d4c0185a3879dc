//! Links the driver as the WDK does, with its resources.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    wdk_build::configure_wdk_binary_build()?;
    wdk_etw_build::Image::of_package()?.embed()?;
    Ok(())
}
