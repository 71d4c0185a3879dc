//! The resources of a driver's image.

use std::{
    env, fs, io,
    num::{ParseIntError, TryFromIntError},
    path::PathBuf,
};

use crate::{res, version::Version};

/// Why the resources could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It was called elsewhere than in a build script.
    #[error("{0} is not set: call this from a build script")]
    NoBuildScript(&'static str),
    /// The package's version is none that an image can have.
    #[error(
        "the package's version, {version}, has a part that is none of the numbers 0 to 65,535: {error}"
    )]
    Version {
        /// The version.
        version: String,
        /// What is wrong with it.
        error: ParseIntError,
    },
    /// The texts are too long.
    #[error("a resource would be too large: {0}")]
    TooLarge(#[from] TryFromIntError),
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

fn variable(name: &'static str) -> Result<String, BuildError> {
    env::var(name).map_err(|_| BuildError::NoBuildScript(name))
}

/// The numbers of a package's version; the fourth part is 0.
fn numbers(version: &str) -> Result<[u16; 4], BuildError> {
    let mut numbers = [0; 4];
    // Behind the three parts there may be a pre-release's name and metadata.
    let parts = version.split(['-', '+']).next().unwrap_or_default();
    for (number, part) in numbers.iter_mut().zip(parts.split('.')) {
        *number = part.parse().map_err(|error| BuildError::Version {
            version: version.to_owned(),
            error,
        })?;
    }
    Ok(numbers)
}

/// The resources that a driver's image is to have.
#[derive(Clone, Debug)]
pub struct Image {
    version: Version,
}

impl Image {
    /// An image whose version resource says what the package's `Cargo.toml` says.
    ///
    /// # Errors
    ///
    /// [`BuildError::NoBuildScript`] elsewhere than in a build script;
    /// [`BuildError::Version`] if the version does not fit.
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
        })
    }

    /// What the version resource is to say instead.
    #[must_use]
    pub fn version(mut self, change: impl FnOnce(&mut Version)) -> Self {
        change(&mut self.version);
        self
    }

    /// Writes the resources, and has them linked into the package's image if it is one for
    /// Windows.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says what is wrong.
    pub fn embed(&self) -> Result<(), BuildError> {
        let resources = res::file(&[self.version.resource()?])?;
        let folder = PathBuf::from(variable("OUT_DIR")?);
        let path = folder.join("resources.res");
        fs::write(&path, resources).map_err(|error| BuildError::Write {
            path: path.clone(),
            error,
        })?;
        // Other linkers know nothing of resources, and what is built for another target is
        // checked and not run.
        if variable("CARGO_CFG_TARGET_ENV")? == "msvc" {
            println!("cargo::rustc-link-arg-cdylib={}", path.display());
        }
        Ok(())
    }
}
