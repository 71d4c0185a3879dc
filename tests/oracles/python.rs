//! The Python that has the foreign readers. Tests of several packages include this file.

#![allow(dead_code, reason = "some tests run the interpreter in their own way")]

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

/// The interpreter: `WDK_ETW_PYTHON`, or the one that `cargo xtask doctor --install` makes.
pub fn interpreter(workspace: &Path) -> PathBuf {
    let path = env::var_os("WDK_ETW_PYTHON").map_or_else(
        || workspace.join("target/oracles/bin/python"),
        PathBuf::from,
    );
    assert!(
        path.exists(),
        "{} is not there: run `cargo xtask doctor --install`, or set WDK_ETW_PYTHON",
        path.display()
    );
    path
}

/// What Python prints when it is run with these arguments, which must succeed.
pub fn run<A: AsRef<OsStr>>(workspace: &Path, arguments: impl IntoIterator<Item = A>) -> Vec<u8> {
    let output = Command::new(interpreter(workspace))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}
