//! Links the image without libraries, like a driver.

use std::{env, fs, path::PathBuf};

fn main() {
    // The peer links to a user-mode library that drivers do not use, so an empty library suffices.
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(folder.join("rpcrt4.lib"), "!<arch>\n").expect("the folder is cargo's");
    println!("cargo::rustc-link-search={}", folder.display());
    for option in ["/NOENTRY", "/NODEFAULTLIB", "/OPT:REF,ICF", "/DYNAMICBASE", "/NXCOMPAT"] {
        println!("cargo::rustc-cdylib-link-arg={option}");
    }
}
