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

/// The stand-ins' crates, as folders in their workspace.
const CRATES: [&str; 4] = ["wdk-build", "wdk-sys", "wdk-sys-generator", "wdk-sys-macros"];

/// The data that the bindings are generated from.
const DATA: [&str; 5] =
    ["constants.json", "exports.json", "functions.json", "statics.json", "types.json"];

/// Adds the files in a folder and its subfolders, except for tests.
fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == "tests" {
            continue;
        }
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
    let data = DATA.map(|name| workspace.join("data").join(name));
    let mut found = BTreeSet::from_iter(data);
    found.insert(workspace.join("Cargo.toml"));
    for path in &found {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    for name in CRATES {
        files(&workspace.join(name), &mut found)?;
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
