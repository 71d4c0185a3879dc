//! Passes on the folder of the sources that wdk-sys's build script wrote.

use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-env=WDK_SYS_SOURCES={}", env::var("DEP_WDK_SOURCES")?);
    Ok(())
}
