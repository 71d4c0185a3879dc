//! The tools with which the `cc` crate compiles a driver's C code on systems other than Windows,
//! where it would look for Microsoft's.

use std::{env, path::Path, process::Command};

use anyhow::Result;

use crate::{link, packages::Program};

/// The compilers that `cc` can use for this target.
const COMPILERS: Program = Program {
    names: &["clang-cl", "clang", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17"],
    package: "clang",
};

/// Sets the environment variables that select the tools, unless the author sets them. Returns
/// whether there is a compiler. `folder` is for the librarian.
///
/// # Errors
///
/// Fails if the librarian cannot be written.
pub fn set(cargo: &mut Command, target: &str, folder: &Path) -> Result<bool> {
    let is_set = |tool: &str| {
        let own = format!("{tool}_{target}");
        let names = [own.replace('-', "_"), own, format!("TARGET_{tool}"), tool.to_owned()];
        names.iter().any(|name| env::var_os(name).is_some())
    };
    let mut set = |tool: &str, program: &Path| {
        if !is_set(tool) {
            cargo.env(format!("{tool}_{}", target.replace('-', "_")), program);
        }
    };
    if cfg!(windows) {
        return Ok(true);
    }
    set("AR", &link::program(folder, link::LIBRARIAN)?);
    let compiler = COMPILERS.path();
    if let Some(path) = &compiler {
        set("CC", path);
        set("CXX", path);
    }
    Ok(compiler.is_some() || is_set("CC"))
}

/// Returns a sentence about the tools that are missing.
pub fn missing() -> String {
    format!(
        "a build script of the driver compiles C code with the `cc` crate, which needs clang: install \
         the package {} (`apt-get install {}`), or set CC to a C compiler for Windows",
        COMPILERS.package, COMPILERS.package
    )
}
