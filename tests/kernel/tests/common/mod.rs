//! What the tests share: where drivers that were built lie.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;

/// A driver's image that was built in a profile, `debug` or `release`.
pub fn driver(profile: &str, name: &str) -> PathBuf {
    let path = etw_test_support::drivers(profile).join(name);
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
