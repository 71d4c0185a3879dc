//! The folder beside the checkout that tests take facts and samples from.

use std::path::{Path, PathBuf};

/// The folder of facts, samples and decoder scripts beside the checkout.
pub fn folder() -> PathBuf {
    let shared = workspace().join("../shared");
    assert!(
        shared.is_dir(),
        "this test needs the folder `shared` beside the checkout, which is not there: {}",
        shared.display()
    );
    shared
}

/// The root of the workspace that the test is built in.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .filter(|folder| {
            std::fs::read_to_string(folder.join("Cargo.toml"))
                .is_ok_and(|manifest| manifest.contains("[workspace]"))
        })
        .last()
        .expect("the test is in a workspace")
}
