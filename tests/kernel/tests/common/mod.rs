//! What the tests share: where drivers that were built lie.

#![allow(dead_code, reason = "each test uses a part")]

use std::{
    env,
    path::{Path, PathBuf},
};

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the crate lies in the workspace")
}

/// A driver's image that was built in a profile, `debug` or `release`.
pub fn driver(profile: &str, name: &str) -> PathBuf {
    let folder =
        env::var_os("WDK_ETW_DRIVERS").map_or_else(|| root().join("target/drivers"), PathBuf::from);
    let path = folder.join(profile).join(name);
    assert!(
        path.exists(),
        "{} is not there; `cargo xtask test` builds it before it runs the tests",
        path.display()
    );
    path
}

/// The sample driver, as it would be shipped.
pub fn sample() -> PathBuf {
    driver("release", "etw_sample_driver.sys")
}

/// The driver of the guide.
pub fn minimal() -> PathBuf {
    driver("release", "etw_minimal_driver.sys")
}

/// The driver that does what its service name says.
pub fn probe() -> PathBuf {
    driver("release", "etw_probe_driver.sys")
}

/// The driver that uses the framework as its device controls say.
pub fn kmdf() -> PathBuf {
    driver("release", "etw_kmdf_driver.sys")
}

/// A Python interpreter with the foreign decoders.
pub fn python() -> PathBuf {
    let path = env::var_os("WDK_ETW_PYTHON")
        .map_or_else(|| root().join("target/oracles/bin/python"), PathBuf::from);
    assert!(
        path.exists(),
        "{} is not there; `cargo xtask doctor --install` makes it",
        path.display()
    );
    path
}
