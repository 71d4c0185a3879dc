//! Writes the seeds that each fuzz target starts from: `cargo run --example seeds` in `fuzz/`.

use std::io;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> io::Result<()> {
    etw_fuzz::seeds::write(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds"))
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> io::Result<()> {
    Err(io::Error::other("the fuzz targets need Linux on x64, and so do their seeds"))
}
