//! Links the image without libraries, as a driver's.

use std::{env, fs, path::PathBuf};

fn main() {
    // The peer asks the linker for a library of user mode, of which it uses nothing in a
    // driver: an empty one will do.
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(folder.join("rpcrt4.lib"), "!<arch>\n").expect("the folder is cargo's");
    println!("cargo::rustc-link-search={}", folder.display());
    for option in [
        "/NODEFAULTLIB",
        "/NOENTRY",
        "/OPT:REF,ICF",
        "/DYNAMICBASE",
        "/NXCOMPAT",
    ] {
        println!("cargo::rustc-cdylib-link-arg={option}");
    }
}
