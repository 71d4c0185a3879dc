//! Writes the resources of a driver's image.

use std::{
    env, fs, io,
    num::{ParseIntError, TryFromIntError},
    path::{Path, PathBuf},
};

use wdk_etw_schema::{Configuration, Provider};

use etw_manifest::{
    self as manifest, Failures, Manifest, ManifestError, Position, Rule,
    compare::{self, Break},
    printable, res, resources,
};

use crate::{
    configuration,
    declaration::{self, Files},
    version::Version,
};

/// Reasons why the resources could not be made.
#[derive(Debug, thiserror::Error)]
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
        /// The errors, with their places.
        failures: Failures,
    },
    /// A manifest has errors.
    #[error("{}", in_manifest(path, failures))]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The errors, with their places.
        failures: Failures,
    },
    /// The providers of a file do not all name the same manifest, or none.
    #[error("{}: the providers of a file must all name the same manifest, or none", .0.display())]
    Manifests(PathBuf),
    /// A declaration disagrees with its manifest.
    #[error("{}", disagreeing(path, disagreements))]
    Disagreement {
        /// The declaration's file.
        path: PathBuf,
        /// The differences.
        disagreements: Vec<Break>,
    },
    /// A file declares no provider.
    #[error("{} has no `#[wdk_etw::provider]` module", .0.display())]
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

/// Returns errors with their places, in the form of rustc's messages.
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
    let lines: Vec<String> = lines
        .map(|error| format!("cannot read {}: {error}", path.display()))
        .collect();
    lines.join("\n")
}

fn disagreeing(path: &Path, disagreements: &[Break]) -> String {
    let lines = disagreements.iter();
    let lines: Vec<String> = lines
        .map(|one| format!("{}:{one}", path.display()))
        .collect();
    lines.join("\n")
}

/// Reads a text file.
fn read_text(path: &Path) -> Result<String, BuildError> {
    let failed = |error| BuildError::Read {
        path: path.to_owned(),
        error,
    };
    let bytes = fs::read(path).map_err(failed)?;
    manifest::text(&bytes).ok_or_else(|| {
        failed(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is neither UTF-8 nor UTF-16 text",
        ))
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

/// Returns the manifest that decodes a source file's providers in a configuration, and the files
/// that were read, as [`manifest_of`] does.
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
    let kept = manifest::read(&text).map_err(|failures| BuildError::Manifest {
        path: file.clone(),
        failures,
    })?;
    let disagreements = compare::disagreements(&made, &kept);
    if disagreements.is_empty() {
        Ok((kept, vec![path.to_owned(), file]))
    } else {
        Err(BuildError::Disagreement {
            path: path.to_owned(),
            disagreements,
        })
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

/// Reads the providers that a source file declares in a configuration, as [`declared`] does.
///
/// # Errors
///
/// Fails as [`declared`] does.
pub fn declared_in(
    path: &Path,
    configuration: &Configuration,
) -> Result<Vec<Provider>, BuildError> {
    let text = read_text(path)?;
    let wrong = |failures| BuildError::Declaration {
        path: path.to_owned(),
        failures,
    };
    let providers = wdk_etw_schema::parse::source_in(&text, configuration).map_err(|errors| {
        let errors = errors.into_iter().map(|error| {
            let start = error.span().start();
            ManifestError {
                at: Position {
                    line: start.line,
                    column: start.column + 1,
                },
                rule: Rule::Declaration(error.to_string()),
            }
        });
        wrong(Failures(errors.collect()))
    })?;
    if providers.is_empty() {
        return Err(BuildError::NoProvider(path.to_owned()));
    }
    let files = Files {
        resources: "driver.sys",
        messages: "driver.sys",
    };
    let errors = manifest::check(&declaration::manifest(&providers, &files));
    if errors.is_empty() {
        Ok(providers)
    } else {
        Err(wrong(Failures(errors)))
    }
}

fn variable(name: &'static str) -> Result<String, BuildError> {
    env::var(name).map_err(|_| BuildError::NoBuildScript(name))
}

/// Returns the numbers of a package's version; the fourth is 0.
fn numbers(version: &str) -> Result<[u16; 4], BuildError> {
    let mut numbers = [0; 4];
    // A pre-release name and metadata can follow the three parts.
    let parts = version.split(['-', '+']).next().unwrap_or_default();
    for (number, part) in numbers.iter_mut().zip(parts.split('.')) {
        *number = part.parse().map_err(|error| BuildError::Version {
            version: version.to_owned(),
            error,
        })?;
    }
    Ok(numbers)
}

/// The resources of a driver's image.
#[derive(Clone, Debug)]
pub struct Image {
    version: Version,
    declaration: Option<PathBuf>,
    configuration: Configuration,
}

impl Image {
    /// Returns resources with a version resource that is derived from the package's `Cargo.toml`.
    ///
    /// # Errors
    ///
    /// Fails with [`BuildError::NoBuildScript`] outside a build script, and with
    /// [`BuildError::Version`] if the version does not fit in a version resource.
    pub fn of_package() -> Result<Self, BuildError> {
        let version = variable("CARGO_PKG_VERSION")?;
        let package = variable("CARGO_PKG_NAME")?;
        Ok(Self {
            version: Version {
                number: numbers(&version)?,
                version,
                company: variable("CARGO_PKG_AUTHORS")?.replace(':', ", "),
                description: variable("CARGO_PKG_DESCRIPTION")?,
                file: format!("{}.sys", package.replace('-', "_")),
                product: package,
                copyright: variable("CARGO_PKG_LICENSE")?,
                debug: variable("DEBUG")? == "true" && variable("PROFILE")? == "debug",
            },
            declaration: None,
            configuration: configuration::of_build_script(),
        })
    }

    /// Changes the content of the version resource.
    #[must_use]
    pub fn version(mut self, change: impl FnOnce(&mut Version)) -> Self {
        change(&mut self.version);
        self
    }

    /// Sets the source file that declares the provider, relative to the package's folder. Decoders
    /// find the provider's events in the image, which has one such resource.
    #[must_use]
    pub fn declaration(mut self, path: impl Into<PathBuf>) -> Self {
        self.declaration = Some(path.into());
        self
    }

    /// Tells whether an option of `#[cfg(…)]` in the declaration is set that a build script cannot
    /// know, such as one that it sets itself with `cargo::rustc-cfg`.
    ///
    /// The features of the package, the properties of the target and the options in `RUSTFLAGS`
    /// are known; every other option without this call is an error.
    #[must_use]
    pub fn cfg(mut self, name: &str, value: Option<&str>, is_set: bool) -> Self {
        self.configuration.set(name, value, is_set);
        self
    }

    /// Writes the resources, and links them into the package's image if its target is Windows.
    ///
    /// # Errors
    ///
    /// Fails with [`BuildError`], which contains the cause.
    pub fn embed(&self) -> Result<(), BuildError> {
        let mut all = vec![self.version.resource()?];
        if let Some(path) = &self.declaration {
            let image = &self.version.file;
            let files = Files {
                resources: image,
                messages: image,
            };
            let (manifest, read) = manifest_in(path, &files, &self.configuration)?;
            for path in read {
                println!("cargo::rerun-if-changed={}", path.display());
            }
            all.extend(resources::resources(&manifest)?);
        }
        let resources = res::file(&all)?;
        let folder = PathBuf::from(variable("OUT_DIR")?);
        let path = folder.join("resources.res");
        fs::write(&path, resources).map_err(|error| BuildError::Write {
            path: path.clone(),
            error,
        })?;
        // Other linkers do not support resources, and builds for other targets are only checked,
        // not run.
        if variable("CARGO_CFG_TARGET_ENV")? == "msvc" {
            println!("cargo::rustc-link-arg-cdylib={}", path.display());
        }
        Ok(())
    }
}
