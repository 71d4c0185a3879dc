//! Writes the types of the framework's functions for wdk-macros.

use std::{error::Error, fs, io};

use wdk_sys_generator::{framework, write_for_build};

/// The folder and file in which wdk-macros caches these types. It never updates them.
const CACHE: (&str, &str) = ("wdk_macros_ast_fragments", "cached_function_info_map.json");

fn main() -> Result<(), Box<dyn Error>> {
    write_for_build(|data| framework(data))?;
    let (folder, file) = CACHE;
    match fs::remove_file(scratch::path(folder).join(file)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
