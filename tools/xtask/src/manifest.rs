//! `cargo xtask manifest`: manifests and the resources that are made of them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use etw_manifest::{
    self as manifest, Manifest, compare, res,
    resources::{self, Version},
};
use wdk_etw_build::{BuildError, declaration::Files, import, manifest_of, package_folder};

use crate::process::root;

/// The sample driver's declaration, and the manifest that is made of it.
const DECLARATION: &str = "driver/src/trace.rs";
const MANIFEST: &str = "inf/etw_sample_driver.man";

/// Where the sample driver's image is, for tools that take a manifest.
const IMAGE: &str = r"%SystemRoot%\System32\drivers\etw_sample_driver.sys";

/// What stands at the head of the manifest.
const COMMENT: &str = "Written by `cargo xtask manifest write` from driver/src/trace.rs. The \
                       provider's other events are TraceLogging events, which describe themselves.";

fn read_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Manifests made on Windows are often in UTF-16.
    let text = manifest::text(&bytes);
    text.with_context(|| format!("{} is neither UTF-8 nor UTF-16 text", path.display()))
}

/// Reads a manifest file.
fn read_manifest(path: &Path) -> Result<Manifest> {
    manifest::read(&read_text(path)?).map_err(|failures| {
        let lines: Vec<String> = failures
            .0
            .iter()
            .map(|error| format!("cannot read {}: {error}", path.display()))
            .collect();
        anyhow::anyhow!("{}", lines.join("\n"))
    })
}

/// Reads a manifest, or the declaration of one.
fn read(path: &Path) -> Result<Manifest> {
    if path.extension().is_some_and(|extension| extension == "rs") {
        let files = Files {
            resources: IMAGE,
            messages: IMAGE,
        };
        return match manifest_of(path, &files) {
            Ok((manifest, _)) => Ok(manifest),
            // What declares nothing has resources with nothing in them.
            Err(BuildError::NoProvider(_)) => Ok(Manifest::default()),
            Err(error) => Err(error.into()),
        };
    }
    read_manifest(path)
}

/// The sample driver's manifest.
pub fn sample() -> Result<String> {
    Ok(manifest::write(&read(&root().join(DECLARATION))?, COMMENT))
}

/// `manifest write`: the sample driver's manifest, from its declaration.
pub fn write(only_check: bool) -> Result<()> {
    let wanted = sample()?;
    let path = root().join(MANIFEST);
    if !only_check {
        fs::write(&path, wanted).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
        return Ok(());
    }
    if read_text(&path).ok().as_deref() != Some(wanted.as_str()) {
        bail!(
            "{} is stale: run `cargo xtask manifest write` and commit what it writes",
            path.display()
        );
    }
    Ok(())
}

/// `manifest check`: whether what was written before is still decoded.
pub fn check(base: &Path, now: Option<&PathBuf>) -> Result<()> {
    let sample = root().join(DECLARATION);
    let now = now.map_or(sample.as_path(), PathBuf::as_path);
    let breaks = compare::breaks(&read(base)?, &read(now)?);
    if breaks.is_empty() {
        println!("{} decodes what {} does", now.display(), base.display());
        return Ok(());
    }
    let lines: Vec<String> = breaks
        .iter()
        .map(|one| format!("{}:{one}", now.display()))
        .collect();
    bail!(
        "{} does not decode what {} does:\n{}",
        now.display(),
        base.display(),
        lines.join("\n")
    );
}

/// `manifest compile`: the resources of a manifest or a declaration.
pub fn compile(path: &Path, out: &Path, version: Version) -> Result<()> {
    let manifest = read(path)?;
    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let stem = path
        .file_stem()
        .map_or_else(|| "manifest".into(), |stem| stem.to_string_lossy());
    let put = |name: String, data: Vec<u8>| {
        let path = out.join(name);
        fs::write(&path, data).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
        Ok::<(), anyhow::Error>(())
    };
    let template = resources::wevt_template(&manifest, version)?;
    put(format!("{stem}.wevt.bin"), template.clone())?;
    let mut all = resources::resources(&manifest)?;
    // The manifest's first language is the one without a number in its name.
    let first = all.first().map_or(res::ENGLISH, |first| first.language);
    for resource in &mut all {
        if resource.kind == res::WEVT_TEMPLATE {
            resource.data.clone_from(&template);
        } else if resource.language == first {
            put(format!("{stem}.msg.bin"), resource.data.clone())?;
        } else {
            let name = format!("{stem}.msg.{:04x}.bin", resource.language);
            put(name, resource.data.clone())?;
        }
    }
    put(format!("{stem}.res"), res::file(&all)?)
}

/// `manifest import`: a declaration with the events of a manifest.
pub fn import(path: &Path, out: Option<&PathBuf>) -> Result<()> {
    // A declaration names its manifest from its package's folder.
    let declaration = out.map_or(path, PathBuf::as_path);
    let package = package_folder(declaration);
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let named = whole.strip_prefix(&package).unwrap_or(&whole);
    let imported = import::declaration(&read_manifest(path)?, named.to_str());
    for note in &imported.notes {
        eprintln!("note: {}:{note}", path.display());
    }
    match out {
        Some(out) => {
            fs::write(out, imported.source)
                .with_context(|| format!("cannot write {}", out.display()))?;
            println!("{}", out.display());
        }
        None => print!("{}", imported.source),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_what_the_declaration_makes() {
        write(true).unwrap();
    }

    #[test]
    fn the_sample_still_decodes_what_it_wrote() {
        check(&root().join(MANIFEST), None).unwrap();
    }

    #[test]
    fn a_break_is_refused_with_its_place() {
        let folder = std::env::temp_dir().join(format!("wdk-etw-break-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("older.man");
        let older = sample().unwrap().replace(
            "name=\"Status\" inType=\"win:UInt32\" outType=\"win:NTSTATUS\"",
            "name=\"Status\" inType=\"win:UInt64\"",
        );
        fs::write(&path, older).unwrap();
        let error = check(&path, None).unwrap_err().to_string();
        assert!(
            error.contains("trace.rs:") && error.contains("event 3 of version 0"),
            "{error}"
        );
        // In the other encoding of Windows' texts it is the same.
        let units = sample().unwrap();
        let units = std::iter::once(0xFEFF).chain(units.encode_utf16());
        let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        fs::write(&path, bytes).unwrap();
        check(&path, None).unwrap();
        fs::write(&path, [0xFF, 0x80, 0]).unwrap();
        let error = check(&path, None).unwrap_err().to_string();
        assert!(error.contains("neither UTF-8 nor UTF-16"), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn resources_are_compiled_and_imported() {
        let folder = std::env::temp_dir().join(format!("wdk-etw-made-{}", std::process::id()));
        let man = root().join(MANIFEST);
        compile(&man, &folder, Version::V3).unwrap();
        for name in ["wevt.bin", "msg.bin", "res"] {
            let path = folder.join(format!("etw_sample_driver.{name}"));
            assert!(
                fs::metadata(&path).unwrap().len() > 100,
                "{}",
                path.display()
            );
        }
        let source = folder.join("trace.rs");
        import(&man, Some(&source)).unwrap();
        // What is imported agrees with what it was imported from.
        assert_eq!(read(&source).unwrap().providers.len(), 1);
        let broken = folder.join("broken.man");
        fs::write(&broken, "<instrumentationManifest>").unwrap();
        let error = read(&broken).unwrap_err().to_string();
        assert!(error.contains("broken.man: line 1, "), "{error}");
        fs::remove_dir_all(folder).unwrap();
    }
}
