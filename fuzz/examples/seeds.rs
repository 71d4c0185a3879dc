//! Writes the seeds that each fuzz target starts from: `cargo run --example seeds` in `fuzz/`.

use std::{io, path::Path};

fn main() -> io::Result<()> {
    etw_fuzz::seeds::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds"))
}
