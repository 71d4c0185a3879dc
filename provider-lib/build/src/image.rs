//! Creates the manifests of declarations.

use std::{
    env, fmt, fs, io,
    num::{ParseIntError, TryFromIntError},
    path::{Path, PathBuf},
};

use wdk_etw_schema::{Configuration, Provider};

use etw_manifest::{
    self as manifest, Failures, Manifest, ManifestError, Position, Rule,
    compare::{self, Break},
    printable, resources,
};

use crate::{
    configuration,
    declaration::{self, Files},
};

/// The reasons why resources could not be generated.
///
/// `Debug` shows the same text as `Display`, because Rust uses `Debug` to print an error that a
/// build script's `main` returns.
#[derive(thiserror::Error)]
pub enum BuildError {
    /// The function was called outside a build script.
    #[error("the environment variable {0} is not set; call this function from a build script")]
    NoBuildScript(&'static str),
    /// The package's version does not fit in a version resource.
    #[error(
        "cannot use package version {version} for the image: each part must be a number from 0 to \
         65,535: {error}"
    )]
    Version {
        /// The version.
        version: String,
        /// The cause.
        error: ParseIntError,
    },
    /// A file could not be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A declaration has errors.
    #[error("{}", in_source(path, failures))]
    Declaration {
        /// The file.
        path: PathBuf,
        /// The errors, with their positions.
        failures: Failures,
    },
    /// A manifest has errors.
    #[error("{}", in_manifest(path, failures))]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The errors, with their positions.
        failures: Failures,
    },
    /// The providers of a file name different manifests, or only some name one.
    #[error("{}: the providers of a file must all name the same manifest, or none", .0.display())]
    Manifests(PathBuf),
    /// Two files declare providers with the same name or GUID.
    #[error(
        "two providers in the image have the {what}: in {first} and in {second}; give one of them \
         another name or GUID"
    )]
    Meeting {
        /// The part that they share: the name or the GUID.
        what: String,
        /// The file and the line of the first provider.
        first: String,
        /// The file and the line of the second provider.
        second: String,
    },
    /// The manifests of two files have different primary languages.
    #[error(
        "the messages of {} are in {second}, but the image's other providers' are in {first}; an \
         image has one primary language: add a translation to one of the manifests",
        path.display()
    )]
    Cultures {
        /// The file.
        path: PathBuf,
        /// The language of the previous files.
        first: String,
        /// The file's language.
        second: String,
    },
    /// The declarations are valid, but do not fit in one image.
    #[error("cannot fit the image's providers in one set of resources: {}", .0.join("; "))]
    Together(Vec<String>),
    /// A library's package has no `links` key.
    #[error(
        "the package {0} has no `links` key, so cargo does not pass its declaration to the driver's \
         build script; add `links = \"{0}-etw\"` to [package] in its Cargo.toml"
    )]
    NoLinks(String),
    /// A path cannot be passed to another build script.
    #[error(
        "cannot pass the declarations to the driver's build script: a path is not UTF-8, or contains \
         the separator of path lists: {0:?}"
    )]
    Path(Vec<PathBuf>),
    /// A declaration disagrees with its manifest.
    #[error("{}", disagreeing(path, manifest, disagreements))]
    Disagreement {
        /// The declaration's file.
        path: PathBuf,
        /// The manifest.
        manifest: PathBuf,
        /// The differences.
        disagreements: Vec<Break>,
    },
    /// A file declares no provider.
    #[error(
        "{} has no `#[wdk_etw::provider]` module that a build script can read; name the file that contains \
         it, outside macros and functions",
        .0.display()
    )]
    NoProvider(PathBuf),
    /// A resource is too large for its format.
    #[error(transparent)]
    Encode(#[from] resources::EncodeError),
    /// The strings of the version resource are too long.
    #[error("a resource is too large for its format: {0}")]
    TooLarge(#[from] TryFromIntError),
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl fmt::Debug for BuildError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl BuildError {
    /// Prints each line of the error as a `cargo::error` directive, which cargo shows as an error
    /// of the package. Only build scripts may call this function.
    pub(crate) fn tell_cargo(&self) {
        for line in self.to_string().lines() {
            println!("cargo::error={line}");
        }
    }
}

/// Formats errors with their positions, in the form of rustc's messages.
fn in_source(path: &Path, failures: &Failures) -> String {
    let lines = failures.0.iter();
    let lines: Vec<String> = lines
        .map(|ManifestError { at, rule }| {
            let what = printable(&rule.to_string());
            format!("{}:{}:{}: {what}", path.display(), at.line, at.column)
        })
        .collect();
    lines.join("\n")
}

fn in_manifest(path: &Path, failures: &Failures) -> String {
    let lines = failures.0.iter();
    let lines: Vec<String> =
        lines.map(|error| format!("cannot read {}: {error}", path.display())).collect();
    lines.join("\n")
}

fn disagreeing(path: &Path, manifest: &Path, disagreements: &[Break]) -> String {
    let (path, manifest) = (path.display(), manifest.display());
    let lines = disagreements.iter();
    let lines: Vec<String> =
        lines.map(|one| format!("{path}:{one} (the manifest is {manifest})")).collect();
    lines.join("\n")
}

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, BuildError> {
    let failed = |error| BuildError::Read { path: path.to_owned(), error };
    let bytes = fs::read(path).map_err(failed)?;
    manifest::text(&bytes).ok_or_else(|| {
        failed(io::Error::new(io::ErrorKind::InvalidData, "it is neither UTF-8 nor UTF-16 text"))
    })
}

/// Returns the folder of a file's package: the nearest folder above the file with a `Cargo.toml`
/// or, without one, the file's folder.
#[must_use]
pub fn package_folder(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut above = whole.ancestors().skip(1);
    let package = above.find(|folder| folder.join("Cargo.toml").is_file());
    let own = whole.parent().unwrap_or_else(|| Path::new("."));
    package.unwrap_or(own).to_owned()
}

/// Returns the manifest that decodes a source file's providers, and the files that were read.
///
/// This is the manifest that the providers name and must agree with or, without one, the
/// manifest of their declaration.
///
/// # Errors
///
/// Fails with [`BuildError`], which contains the line and column of each mistake.
pub fn manifest_of(path: &Path, files: &Files<'_>) -> Result<(Manifest, Vec<PathBuf>), BuildError> {
    manifest_in(path, files, &configuration::of_build_script())
}

/// Returns the manifest that decodes a source file's providers in this configuration, and the files
/// that were read; see [`manifest_of`].
///
/// # Errors
///
/// Fails with [`BuildError`], which contains the line and column of each mistake.
pub fn manifest_in(
    path: &Path,
    files: &Files<'_>,
    configuration: &Configuration,
) -> Result<(Manifest, Vec<PathBuf>), BuildError> {
    let providers = declared_in(path, configuration)?;
    let made = declaration::manifest(&providers, files);
    let mut named = providers.iter().map(|provider| &provider.manifest);
    let Some(Some(file)) = named.next() else {
        return if named.any(Option::is_some) {
            Err(BuildError::Manifests(path.to_owned()))
        } else {
            Ok((made, vec![path.to_owned()]))
        };
    };
    if named.any(|other| other.as_ref() != Some(file)) {
        return Err(BuildError::Manifests(path.to_owned()));
    }
    let file = package_folder(path).join(file);
    let text = read_text(&file)?;
    let kept = manifest::read(&text)
        .map_err(|failures| BuildError::Manifest { path: file.clone(), failures })?;
    let disagreements = compare::disagreements(&made, &kept);
    if disagreements.is_empty() {
        Ok((kept, vec![path.to_owned(), file]))
    } else {
        Err(BuildError::Disagreement { path: path.to_owned(), manifest: file, disagreements })
    }
}

/// Reads the providers that a source file declares, and checks that they have a manifest.
///
/// # Errors
///
/// Fails with [`BuildError::Read`], [`BuildError::Declaration`] or [`BuildError::NoProvider`].
pub fn declared(path: &Path) -> Result<Vec<Provider>, BuildError> {
    declared_in(path, &configuration::of_build_script())
}

/// Reads the providers that a source file declares in this configuration; see [`declared`].
///
/// # Errors
///
/// Fails as [`declared`] does.
pub fn declared_in(
    path: &Path,
    configuration: &Configuration,
) -> Result<Vec<Provider>, BuildError> {
    let text = read_text(path)?;
    let wrong = |failures| BuildError::Declaration { path: path.to_owned(), failures };
    let providers = wdk_etw_schema::parse::source_in(&text, configuration).map_err(|errors| {
        let errors = errors.into_iter().map(|error| {
            let start = error.span().start();
            ManifestError {
                at: Position { line: start.line, column: start.column + 1 },
                rule: Rule::Declaration(error.to_string()),
            }
        });
        wrong(Failures(errors.collect()))
    })?;
    if providers.is_empty() {
        return Err(BuildError::NoProvider(path.to_owned()));
    }
    let files = Files { resources: "driver.sys", messages: "driver.sys" };
    let errors = manifest::check(&declaration::manifest(&providers, &files));
    if errors.is_empty() { Ok(providers) } else { Err(wrong(Failures(errors))) }
}

pub(crate) fn variable(name: &'static str) -> Result<String, BuildError> {
    env::var(name).map_err(|_| BuildError::NoBuildScript(name))
}
