//! `cargo etw new`: creates the folder of a new driver.

mod names;
mod source;
mod template;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::{
    files,
    process::{line, output_of},
};

use self::names::Names;

pub use self::source::{Source, Version, Wanted};

/// The arguments of the command.
#[derive(Debug)]
pub struct New {
    /// The folder to create.
    pub folder: PathBuf,
    /// The package's name, if it differs from the folder's name.
    pub name: Option<String>,
    /// The provider's name, if it is not derived from the package's name.
    pub provider: Option<String>,
    /// The requested source of wdk-etw.
    pub source: Wanted,
}

/// Creates the folder, and prints the next steps.
pub fn run(new: &New) -> Result<()> {
    let names = names(new)?;
    let source = Source::find(&new.source)?;
    ensure!(
        fs::symlink_metadata(&new.folder).is_err(),
        "{} already exists; choose another folder, or remove this one",
        new.folder.display()
    );
    files::create_dir_all(&new.folder)?;
    let folder = fs::canonicalize(&new.folder)
        .with_context(|| format!("cannot find {}", new.folder.display()))?;
    for (path, contents) in template::files(&names, &source.relative_to(&folder))? {
        write(&folder.join(path), &contents)?;
    }
    // The folder now exists, so the search starts at its parent.
    let parent = folder.parent().unwrap_or(&folder);
    start_repository(&folder, parent);
    if let Some(outer) = workspace_of(parent) {
        eprintln!(
            "note: {} is a workspace of its own inside the workspace of {}; if that one lists it \
             among its members, list it in `exclude` instead",
            new.folder.display(),
            outer.display()
        );
    }
    eprintln!(
        "Created the KMDF driver {} with the ETW provider {} {{{}}}, from {source}",
        names.package, names.provider, names.guid
    );
    eprintln!(
        "Next: `cargo etw build`, `cargo etw run` and `cargo test`, in {}",
        new.folder.display()
    );
    Ok(())
}

/// Returns the new driver's names, or an error about the invalid name.
fn names(new: &New) -> Result<Names> {
    let name = if let Some(name) = &new.name {
        name.clone()
    } else {
        // `.` and `..` exist but are not names.
        let name = new.folder.file_name().with_context(|| {
            format!(
                "{} does not name a new folder; name one, such as `cargo etw new contoso-sensor`",
                new.folder.display()
            )
        })?;
        let name = name.to_str();
        name.map(str::to_owned).with_context(|| {
            format!(
                "the folder's name {} is not UTF-8; name the package with `--name`",
                new.folder.display()
            )
        })?
    };
    match Names::new(&name, new.provider.as_deref()) {
        Ok(names) => Ok(names),
        Err(error) if new.name.is_none() => {
            bail!(
                "{error}\nTo keep the folder's name, name the package with `--name`, such as `cargo \
                 etw new {} --name contoso-sensor`",
                new.folder.display()
            )
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes a new file, and creates missing folders.
fn write(path: &Path, contents: &str) -> Result<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, contents))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Like `cargo new`, makes the folder a git repository, unless it is already in one.
fn start_repository(folder: &Path, parent: &Path) {
    let mut inside = Command::new("git");
    inside.current_dir(parent).args(["rev-parse", "--is-inside-work-tree"]);
    if output_of(Command::new("git").arg("--version")).is_none() {
        eprintln!("note: git is not installed, so the folder is not a repository");
        return;
    }
    if output_of(&mut inside).is_some_and(|answer| answer == "true") {
        return;
    }
    let mut init = Command::new("git");
    init.current_dir(folder).args(["init", "--quiet"]);
    match init.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => eprintln!(
            "note: cannot make the folder a repository: `{}` failed: {}",
            line(&init),
            String::from_utf8_lossy(&output.stderr).trim()
        ),
        Err(error) => eprintln!("note: cannot start `{}`: {error}", line(&init)),
    }
}

/// Returns the manifest of the cargo workspace that contains a folder.
fn workspace_of(folder: &Path) -> Option<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(folder)
        .args(["locate-project", "--workspace"])
        .args(["--message-format", "plain"]);
    output_of(&mut cargo).map(PathBuf::from)
}
