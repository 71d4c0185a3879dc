//! Writes the resources of a driver's image.

use std::{fs, path::PathBuf};

use etw_manifest::{printable, res, resources};
use wdk_etw_schema::Configuration;

use crate::{
    configuration,
    declaration::Files,
    image::{BuildError, variable},
    library::of_dependencies,
    several::{Read, read_all},
    version::Version,
};

/// Returns the numbers of a package version; the fourth is 0.
fn numbers(version: &str) -> Result<[u16; 4], BuildError> {
    let mut numbers = [0; 4];
    // A pre-release name and metadata can follow the three parts.
    let parts = version.split(['-', '+']).next().unwrap_or_default();
    for (number, part) in numbers.iter_mut().zip(parts.split('.')) {
        *number = part
            .parse()
            .map_err(|error| BuildError::Version { version: version.to_owned(), error })?;
    }
    Ok(numbers)
}

/// The resources of a driver's image.
#[derive(Clone, Debug)]
pub struct Image {
    version: Version,
    declarations: Vec<PathBuf>,
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
            declarations: Vec::new(),
            configuration: configuration::of_build_script(),
        })
    }

    /// Changes the content of the version resource.
    #[must_use]
    pub fn version(mut self, change: impl FnOnce(&mut Version)) -> Self {
        change(&mut self.version);
        self
    }

    /// Adds a source file that declares providers, relative to the package's folder. Decoders find
    /// the events of all added declarations in the image.
    ///
    /// Declarations that library crates pass on ([`export`](crate::export)) need no such call.
    #[must_use]
    pub fn declaration(mut self, path: impl Into<PathBuf>) -> Self {
        self.declarations.push(path.into());
        self
    }

    /// Sets the value of a `#[cfg(…)]` option in the package's declarations. A build script needs
    /// this for options that cargo does not report to it, such as its own `cargo::rustc-cfg`.
    ///
    /// The features of the package, the properties of the target and the options in `RUSTFLAGS` are
    /// known; any other option without this call is an error. The declarations that libraries pass
    /// on are read with the libraries' features.
    #[must_use]
    pub fn cfg(mut self, name: &str, value: Option<&str>, is_set: bool) -> Self {
        self.configuration.set(name, value, is_set);
        self
    }

    /// Writes the resources, and links them into the package's image if its target is Windows.
    ///
    /// # Errors
    ///
    /// Fails with [`BuildError`], which contains the cause. Cargo also shows the error, because
    /// this function prints each mistake as `cargo::error=FILE:LINE:COLUMN: …`.
    pub fn embed(&self) -> Result<(), BuildError> {
        self.write().inspect_err(BuildError::tell_cargo)
    }

    fn write(&self) -> Result<(), BuildError> {
        let mut all = vec![self.version.resource()?];
        let own = self.declarations.iter();
        let mut declarations: Vec<_> =
            own.map(|path| (path.clone(), self.configuration.clone())).collect();
        declarations.extend(
            of_dependencies()
                .into_iter()
                .map(|one| (one.path, configuration::of_dependency(&one.features))),
        );
        if !declarations.is_empty() {
            let image = &self.version.file;
            let files = Files { resources: image, messages: image };
            let Read { manifest, files, left_out } = read_all(&declarations, &files)?;
            for path in files {
                println!("cargo::rerun-if-changed={}", path.display());
            }
            for (path, note) in left_out {
                let (at, what) = (note.at, printable(&note.rule.to_string()));
                println!("cargo::warning={}:{}:{}: {what}", path.display(), at.line, at.column);
            }
            all.extend(resources::resources(&manifest)?);
        }
        let resources = res::file(&all)?;
        let folder = PathBuf::from(variable("OUT_DIR")?);
        let path = folder.join("resources.res");
        fs::write(&path, resources)
            .map_err(|error| BuildError::Write { path: path.clone(), error })?;
        // Other linkers do not support resources, and builds for other targets are only checked,
        // not run.
        if variable("CARGO_CFG_TARGET_ENV")? == "msvc" {
            println!("cargo::rustc-link-arg-cdylib={}", path.display());
        }
        Ok(())
    }
}
