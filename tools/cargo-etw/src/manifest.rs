//! `cargo etw manifest`: writes, checks, compiles and imports manifests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use etw_manifest::{
    self as manifest, Manifest, compare, res,
    resources::{self, Version},
};
use wdk_etw_build::{BuildError, declaration::Files, import, manifest_of, package_folder};
use wdk_etw_schema::Provider;

/// The image name for a manifest whose image name does not matter.
const ANY_IMAGE: &str = r"%SystemRoot%\System32\drivers\driver.sys";

/// A manifest to write, and its source.
#[derive(Debug)]
pub struct Written {
    /// The source file with the declaration.
    pub declaration: PathBuf,
    /// The manifest.
    pub out: PathBuf,
    /// The path of the installed image.
    pub image: String,
    /// The command that the file names as its generator.
    pub command: String,
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    // Manifests from Windows are often in UTF-16.
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

/// Reads a manifest, or converts a declaration to one.
fn read(path: &Path, image: &str) -> Result<Manifest> {
    if path.extension().is_some_and(|extension| extension == "rs") {
        let files = Files {
            resources: image,
            messages: image,
        };
        return match manifest_of(path, &files) {
            Ok((manifest, _)) => Ok(manifest),
            // A source file without providers has empty resources.
            Err(BuildError::NoProvider(_)) => Ok(Manifest::default()),
            Err(error) => Err(error.into()),
        };
    }
    read_manifest(path)
}

/// Reads the only provider that a source file declares.
pub fn provider(path: &Path) -> Result<Provider> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut providers = wdk_etw_schema::parse::source(&text)
        .with_context(|| format!("{} is not a valid declaration", path.display()))?;
    ensure!(
        providers.len() == 1,
        "{} declares {} providers; expected exactly one",
        path.display(),
        providers.len()
    );
    Ok(providers.remove(0))
}

/// `manifest write`: writes a driver's manifest from its declaration.
pub fn write(written: &Written, only_check: bool) -> Result<()> {
    let Written {
        declaration,
        out,
        image,
        command,
    } = written;
    let comment = format!(
        "Written by `{command}` from {}. The provider's other events are self-describing \
         TraceLogging events.",
        declaration.display()
    );
    let wanted = manifest::write(&read(declaration, image)?, &comment);
    if !only_check {
        fs::write(out, wanted).with_context(|| format!("cannot write {}", out.display()))?;
        println!("{}", out.display());
        return Ok(());
    }
    if read_text(out)? != wanted {
        bail!(
            "{} is stale: run `{command}` and commit what it writes",
            out.display()
        );
    }
    Ok(())
}

/// `manifest check`: checks that older events can still be decoded.
pub fn check(base: &Path, now: &Path) -> Result<()> {
    let breaks = compare::breaks(&read(base, ANY_IMAGE)?, &read(now, ANY_IMAGE)?);
    if breaks.is_empty() {
        println!(
            "{} decodes every event of {}",
            now.display(),
            base.display()
        );
        return Ok(());
    }
    let lines: Vec<String> = breaks
        .iter()
        .map(|one| format!("{}:{one}", now.display()))
        .collect();
    bail!(
        "{} does not decode every event of {}:\n{}",
        now.display(),
        base.display(),
        lines.join("\n")
    );
}

/// `manifest compile`: compiles a manifest or a declaration to resources.
pub fn compile(path: &Path, out: &Path, version: Version) -> Result<()> {
    let manifest = read(path, ANY_IMAGE)?;
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
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
    // The file of the manifest's first language has no language number in its name.
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

/// `manifest import`: writes a declaration with the events of a manifest.
pub fn import(path: &Path, out: Option<&Path>) -> Result<()> {
    // A declaration names its manifest relative to its package's folder.
    let declaration = out.unwrap_or(path);
    let package = package_folder(declaration);
    let whole = std::path::absolute(path)
        .with_context(|| format!("cannot find the folder of {}", path.display()))?;
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
