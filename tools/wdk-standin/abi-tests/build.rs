//! Names the folder of the sources that the build script of wdk-sys wrote.

use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-env=WDK_SYS_SOURCES={}", env::var("DEP_WDK_SOURCES")?);
    Ok(())
}
