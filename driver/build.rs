//! Sets the linker options of the WDK and links the resources that decode the driver's events.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    wdk_build::configure_wdk_binary_build()?;
    wdk_etw_build::compile("src/trace.rs")?;
    Ok(())
}
