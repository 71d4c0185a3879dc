//! Embeds the scripts that run inside Windows, and the table of stages, in the library.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here.ancestors().nth(2).unwrap_or(&here);
    let folder = root.join("tests/windows");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        found.push((name.into_owned(), path));
    }
    found.retain(|(_, path)| is_script(path));
    // WDK packages do not contain these scripts; the uninstall stage's file has a different name.
    for name in ["device", "service", "uninstall"] {
        let path = root.join(format!("tools/driver-package/src/scripts/{name}.ps1"));
        println!("cargo::rerun-if-changed={}", path.display());
        found.push((format!("package-{name}.ps1"), path));
    }
    found.sort();
    let mut table = String::from("&[\n");
    for (name, path) in &found {
        writeln!(table, "    ({name:?}, include_bytes!({:?})),", path.display().to_string())?;
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("scripts.rs"), table)?;
    let stages = folder.join("stages.txt");
    let text = fs::read_to_string(&stages)
        .map_err(|error| format!("cannot read {}: {error}", stages.display()))?;
    fs::write(out.join("stages.rs"), table_of_stages(&text)?)?;
    Ok(())
}

/// Returns the table of stages as Rust source.
fn table_of_stages(text: &str) -> Result<String, Box<dyn Error>> {
    let mut table = String::from("&[\n");
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [leg, name, minutes, risky, script, _, kind] = words.as_slice() else {
            return Err(format!("stages.txt:{}: expected seven words", number + 1).into());
        };
        let (minutes, risky): (u32, u8) = (minutes.parse()?, risky.parse()?);
        writeln!(
            table,
            "    Line {{ leg: {leg:?}, name: {name:?}, minutes: {minutes}, is_risky: {}, script: {script:?}, kind: {kind:?} }},",
            risky == 1
        )?;
    }
    table.push_str("]\n");
    Ok(table)
}

/// Returns whether a file is a PowerShell script or data for a script.
fn is_script(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["json", "ps1", "psm1"].iter().any(|one| extension == *one)
}
