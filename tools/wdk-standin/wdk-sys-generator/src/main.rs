//! Writes the bindings of the wdk-sys stand-in:
//! `cargo run --manifest-path tools/wdk-standin/Cargo.toml --package wdk-sys-generator`.

use std::{fs, path::Path, process::ExitCode};

use wdk_sys_generator::{Error, data::Data, sources};

fn main() -> ExitCode {
    match write() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write() -> Result<(), Error> {
    let standin = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = standin.join("wdk-sys/src/generated");
    for (name, text) in sources(&Data::read(&standin.join("data"))?)? {
        let path = folder.join(&name);
        fs::write(&path, text).map_err(|source| Error::File { path, source })?;
        println!("{name}");
    }
    Ok(())
}
