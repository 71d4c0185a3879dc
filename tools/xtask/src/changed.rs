//! Finds the packages that a change can affect: packages with changed files, packages whose sources
//! name a changed file outside all packages, and packages that depend on either. Also records the
//! inputs of the last run that passed.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    build,
    process::{cargo, output_of, printed, root, target},
};

/// The packages whose tests load the drivers' images.
pub const IMAGE_USERS: [&str; 5] =
    ["standin-kernel", "etw-scenarios", "etw-probes", "etw-third-party", "cargo-etw"];
/// The workspace of the stand-ins, which all driver builds use.
const STANDINS: &str = "tools/wdk-standin";

/// A workspace package.
struct Package {
    folder: String,
    /// The workspace packages on which the package depends, including those for its tests and build
    /// script.
    uses: BTreeSet<String>,
}

/// A change and the packages that it can affect.
#[derive(Debug)]
pub struct Change {
    /// The changed files' paths, relative to the repository's root.
    pub files: Vec<String>,
    /// The affected packages' names, with the paths of their manifests.
    pub packages: BTreeMap<String, String>,
    /// The number of packages in the workspace.
    pub of: usize,
    /// True if the WDK stand-ins changed.
    pub has_standins: bool,
}

impl Change {
    /// Returns whether at least one of these packages is affected.
    pub fn affects(&self, packages: &[&str]) -> bool {
        packages.iter().any(|package| self.packages.contains_key(*package))
    }
}

/// Returns the changes since a commit, including untracked files. The default is the commit at
/// which the current branch diverged from its upstream, or otherwise the last commit.
pub fn since(base: Option<&str>) -> Result<Change> {
    let base = base.map_or_else(
        || {
            let left = git(&["merge-base", "HEAD", "@{upstream}"]);
            left.map_or_else(|_| "HEAD".to_owned(), |found| found.trim().to_owned())
        },
        str::to_owned,
    );
    let mut files = git(&["diff", "--name-only", &base])?;
    files += &git(&["ls-files", "--others", "--exclude-standard"])?;
    let files: Vec<String> = files.lines().map(str::to_owned).collect();
    let packages = workspace()?;
    let named = |file: &str| {
        // Sources name a file by its path relative to a package, or name the file's folder.
        let path = Path::new(file);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().map_or_else(String::new, |folder| folder.display().to_string());
        let mut arguments = vec!["grep", "-lF", "-e", &name];
        if folder.contains('/') {
            arguments.extend(["-e", &folder]);
        }
        arguments.extend(["--", "*.rs", "*/Cargo.toml"]);
        git(&arguments).unwrap_or_default()
    };
    Ok(affected(files, &packages, named))
}

/// Returns the packages that these files affect; `named` lists the source files that name a file.
fn affected(
    files: Vec<String>,
    packages: &BTreeMap<String, Package>,
    named: impl Fn(&str) -> String,
) -> Change {
    let owner = |file: &str| {
        let inside = |package: &&String| {
            let folder = &packages[*package].folder;
            file.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        packages.keys().filter(inside).max_by_key(|name| packages[*name].folder.len())
    };
    let mut found = BTreeSet::new();
    for file in &files {
        let is_of_all =
            |file: &str| matches!(file, "Cargo.toml" | "Cargo.lock" | ".cargo/config.toml");
        if is_of_all(file) {
            found.extend(packages.keys());
        } else if let Some(package) = owner(file) {
            found.insert(package);
        } else {
            found.extend(named(file).lines().filter_map(owner));
        }
    }
    let has_standins = files.iter().any(|file| file.starts_with(STANDINS));
    let is_driver = |name: &str| {
        build::DRIVERS.iter().any(|(driver, _)| *driver == name) || name == "etw-c-driver"
    };
    if has_standins {
        found.extend(packages.keys().filter(|name| is_driver(name)));
    }
    loop {
        let before = found.len();
        if found.iter().any(|name| is_driver(name)) {
            found.extend(packages.keys().filter(|name| IMAGE_USERS.contains(&name.as_str())));
        }
        let users = packages
            .iter()
            .filter(|(_, package)| found.iter().any(|name| package.uses.contains(*name)))
            .map(|(name, _)| name)
            .collect::<Vec<_>>();
        found.extend(users);
        if found.len() == before {
            break;
        }
    }
    let manifest = |name: &String| {
        let path = root().join(&packages[name].folder).join("Cargo.toml");
        (name.clone(), path.display().to_string())
    };
    let of = packages.len();
    Change { packages: found.into_iter().map(manifest).collect(), files, of, has_standins }
}

/// The inputs of a run of all checks: the repository's files, the compiler and the samples.
#[derive(PartialEq, Eq)]
pub struct Inputs(String);

impl Inputs {
    /// Reads the current inputs, or returns `None` if there is no git repository. Includes all
    /// files that git does not ignore, committed or not.
    pub fn read() -> Option<Self> {
        // A separate index leaves the author's index unchanged.
        let index = target().join("inputs.index");
        fs::create_dir_all(target()).ok()?;
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            output_of(git.current_dir(root()).args(arguments).env("GIT_INDEX_FILE", &index))
        };
        git(&["add", "--all"])?;
        let files = git(&["write-tree"])?;
        let compiler = output_of(Command::new("rustc").current_dir(root()).arg("-vV"))?;
        Some(Self(format!("{files}{compiler}{:?}", env::var_os("WDK_ETW_SAMPLES"))))
    }

    /// Records that all checks passed with these inputs, except for `not_run`.
    pub fn record(&self, not_run: &[String]) -> Result<()> {
        Ok(fs::write(target().join("passed"), format!("{}\n\n{}", self.0, not_run.join("\n")))?)
    }

    /// If the last run that passed had these inputs, returns the checks that it did not run;
    /// otherwise returns `None`.
    pub fn passed(&self) -> Option<Vec<String>> {
        let recorded = fs::read_to_string(target().join("passed")).ok()?;
        let (inputs, not_run) = recorded.split_once("\n\n")?;
        (inputs == self.0).then(|| not_run.lines().map(str::to_owned).collect())
    }
}

/// Reads the workspace's packages.
fn workspace() -> Result<BTreeMap<String, Package>> {
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--locked"];
    let metadata: Value = serde_json::from_slice(&printed(&mut cargo(&arguments))?)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut packages = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let name = package["name"].as_str().context("cargo's metadata lacks a package's name")?;
        let manifest =
            package["manifest_path"].as_str().context("cargo's metadata lacks a package's path")?;
        let folder =
            Path::new(manifest).parent().and_then(|folder| folder.strip_prefix(root()).ok());
        let folder = folder.with_context(|| format!("{manifest} is outside the repository"))?;
        let uses = list(&package["dependencies"])
            .iter()
            .filter(|one| one["path"].is_string())
            .filter_map(|one| one["name"].as_str().map(str::to_owned))
            .collect();
        packages.insert(name.to_owned(), Package { folder: folder.display().to_string(), uses });
    }
    Ok(packages)
}

/// Runs git in the repository, and returns its output.
fn git(arguments: &[&str]) -> Result<String> {
    let printed = printed(Command::new("git").current_dir(root()).args(arguments))?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected_packages(files: &[&str], named: &str) -> Vec<String> {
        let packages = workspace().unwrap();
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        affected(files, &packages, |_| named.to_owned()).packages.into_keys().collect()
    }

    #[test]
    fn a_package_affects_those_that_use_it_and_the_tests_that_load_its_image() {
        let found = affected_packages(&["driver/src/lib.rs"], "");
        for expected in ["etw-sample-driver", "standin-kernel", "etw-scenarios", "cargo-etw"] {
            assert!(found.iter().any(|name| name == expected), "{expected}: {found:?}");
        }
        assert!(!found.iter().any(|name| name == "wdk-etw"), "{found:?}");
        assert!(affected_packages(&["formats/etw-wire/src/lib.rs"], "").len() > 20);
        assert_eq!(affected_packages(&["tools/vm/src/lib.rs"], ""), ["cargo-etw", "etw-vm"]);
        // The nested package is affected, but not the enclosing package.
        assert!(
            !affected_packages(&["provider-lib/log/src/lib.rs"], "")
                .iter()
                .any(|name| name == "wdk-etw-build")
        );
    }

    #[test]
    fn a_file_outside_packages_affects_those_that_name_it() {
        assert!(affected_packages(&["docs/tracing.md"], "").is_empty());
        assert_eq!(
            affected_packages(&["docs/x.md"], "tools/vm/src/a.rs\n"),
            ["cargo-etw", "etw-vm"]
        );
        let all = affected_packages(&["Cargo.lock"], "");
        assert_eq!(all.len(), workspace().unwrap().len());
    }
}
