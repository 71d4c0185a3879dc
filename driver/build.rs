//! Links the driver as the WDK does, with resources that its events are decoded by.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    wdk_build::configure_wdk_binary_build()?;
    wdk_etw_build::compile("src/trace.rs")?;
    Ok(())
}
