//! Embeds the stand-ins for wdk-sys and wdk-build, so that an installed program contains them.

use std::{
    collections::BTreeSet,
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The stand-ins' crates, in the folder of their workspace.
const CRATES: [&str; 3] = ["wdk-build", "wdk-sys", "wdk-sys-macros"];

/// Adds the files in a folder and in the folders within it.
fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files(&entry.path(), found)?;
        } else {
            found.insert(entry.path());
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let workspace = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../wdk-standin");
    let mut found = BTreeSet::from([workspace.join("Cargo.toml")]);
    println!("cargo::rerun-if-changed={}", workspace.join("Cargo.toml").display());
    for name in CRATES {
        let folder = workspace.join(name);
        found.insert(folder.join("Cargo.toml"));
        files(&folder, &mut found)?;
    }
    let mut list = String::from("&[\n");
    for path in &found {
        let name = path.strip_prefix(&workspace)?.to_str().ok_or("a path is not UTF-8")?;
        let name = name.replace('\\', "/");
        let path = path.to_str().ok_or("a path is not UTF-8")?;
        writeln!(list, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    list.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("standin.rs"), list)?;
    Ok(())
}
