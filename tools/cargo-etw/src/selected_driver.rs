//! The current driver: the package that a command works on, with information from its Cargo
//! metadata, source and image.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Command};
use driver_build::{
    driver::{Driver, plain},
    files,
};
use driver_package::inf::Mode;
use etl_file::internals;
use etw_manifest::{Manifest, resources::DecodeError};
use serde_json::Value;
use wdk_etw_build::declared_in;
use wdk_etw_schema::{Encoding, Provider};

use crate::{configuration, options, source};

/// The keys of `[package.metadata.etw]`.
const KEYS: [&str; 6] = ["declaration", "inf", "inf-mode", "manifest", "profile", "recipes"];

/// The settings of a driver: the paths of files that are not in their default locations, relative
/// to the package's folder, and the requirements for its INF file.
#[derive(Debug, Default)]
struct Settings {
    declarations: Vec<PathBuf>,
    inf: Option<PathBuf>,
    inf_mode: Option<Mode>,
    manifest: Option<PathBuf>,
    profile: Option<PathBuf>,
    recipes: Option<PathBuf>,
}

impl Settings {
    /// Reads `[package.metadata.etw]`, and makes the paths absolute.
    fn read(metadata: &Value, folder: &Path, owner: &str) -> Result<Self> {
        let section = match &metadata["etw"] {
            Value::Null => return Ok(Self::default()),
            Value::Object(section) => section,
            _ => bail!("[package.metadata.etw] of {owner} is not a table"),
        };
        if let Some(key) = section.keys().find(|key| !KEYS.contains(&key.as_str())) {
            bail!(
                "[package.metadata.etw] of {owner} has an unknown key {key:?}; known: {}",
                KEYS.join(", ")
            );
        }
        let path = |value: &Value, key: &str| {
            let text = value.as_str().with_context(|| {
                format!("{key} in [package.metadata.etw] of {owner} is not a string: {value}")
            })?;
            Ok::<_, anyhow::Error>(plain(&folder.join(text)))
        };
        let one = |key: &str| {
            let value = section.get(key);
            value.map(|value| path(value, key)).transpose()
        };
        let declarations = match section.get("declaration") {
            None => Vec::new(),
            Some(Value::Array(several)) => {
                several.iter().map(|value| path(value, "declaration")).collect::<Result<_>>()?
            }
            Some(value) => vec![path(value, "declaration")?],
        };
        let mode = section.get("inf-mode").map(|value| {
            value.as_str().and_then(Mode::named).with_context(|| {
                let known = Mode::ALL.map(Mode::name).join(", ");
                format!(
                    "inf-mode in [package.metadata.etw] of {owner} is {value}; expected one of {known}"
                )
            })
        });
        Ok(Self {
            declarations,
            inf: one("inf")?,
            inf_mode: mode.transpose()?,
            manifest: one("manifest")?,
            profile: one("profile")?,
            recipes: one("recipes")?,
        })
    }
}

/// The driver that a command works on.
#[derive(Debug)]
pub struct SelectedDriver {
    /// The package.
    pub driver: Driver,
    settings: Settings,
}

/// A source file that declares providers.
#[derive(Debug)]
pub struct Declaration {
    /// The file.
    pub path: PathBuf,
    /// The providers that it declares.
    pub providers: Vec<Provider>,
}

/// Returns whether a driver has events that can only be decoded with a manifest or resources.
pub fn has_manifest_events(declarations: &[Declaration]) -> bool {
    let providers = declarations.iter().flat_map(|one| &one.providers);
    let mut events = providers.flat_map(|provider| &provider.events);
    events.any(|event| event.encoding == Encoding::Manifest)
}

/// Adds the arguments that select the current driver.
pub fn arguments(command: Command) -> Command {
    command
        .arg(
            options::text(
                "package",
                "NAME",
                "The driver's package; needed if the workspace has several drivers",
            )
            .short('p'),
        )
        .arg(options::path(
            "manifest-path",
            "FILE",
            "The Cargo.toml of the driver or of its workspace",
        ))
        .arg(options::path(
            "target-dir",
            "FOLDER",
            "The folder for build output [default: cargo's]",
        ))
}

impl SelectedDriver {
    /// Finds the driver that the arguments added by [`arguments`] select.
    pub fn select(matches: &ArgMatches) -> Result<Self> {
        let manifest: Option<PathBuf> = options::optional(matches, "manifest-path")?;
        let package: Option<String> = options::optional(matches, "package")?;
        let mut found = Self::find(manifest.as_deref(), package.as_deref())?;
        if let Some(folder) = options::optional::<PathBuf>(matches, "target-dir")? {
            found.driver = found.driver.with_target(&folder)?;
        }
        Ok(found)
    }

    /// Finds the driver in the same way as `cargo etw build`.
    pub fn find(manifest: Option<&Path>, package: Option<&str>) -> Result<Self> {
        Self::new(Driver::find(manifest, package)?)
    }

    fn new(driver: Driver) -> Result<Self> {
        let folder = driver.manifest.parent().unwrap_or(&driver.workspace);
        let settings = Settings::read(&driver.metadata, folder, &driver.package)?;
        Ok(Self { driver, settings })
    }

    /// Returns the package's folder.
    pub fn folder(&self) -> &Path {
        let folder = self.driver.manifest.parent();
        folder.unwrap_or(&self.driver.workspace)
    }

    /// Returns a path in the form for committed files: relative to the workspace, with slashes.
    pub fn named(&self, path: &Path) -> String {
        let workspace = &self.driver.workspace;
        let path = path.strip_prefix(workspace).unwrap_or(path);
        path.display().to_string().replace('\\', "/")
    }

    /// Returns the driver's declarations: from the files that the settings name, or otherwise from
    /// the sources of the driver's library and of the workspace libraries that it uses.
    ///
    /// The list is empty if the driver declares no providers.
    pub fn declarations(&self) -> Result<Vec<Declaration>> {
        let mut paths = self.settings.declarations.clone();
        if paths.is_empty() {
            paths = source::declarations(&self.driver.library)?;
            for library in &self.driver.used_libraries {
                paths.extend(source::declarations(library)?);
            }
        }
        let mut found = Vec::new();
        for path in paths {
            let providers = declared_in(&path, &configuration::read(&path)?)?;
            found.push(Declaration { path, providers });
        }
        let mut names: Vec<_> = found
            .iter()
            .flat_map(|one| one.providers.iter().map(|provider| (provider.guid, &one.path)))
            .collect();
        names.sort();
        if let Some([one, other]) =
            names.windows(2).find(|pair| matches!(pair, [a, b] if a.0 == b.0))
        {
            bail!(
                "two providers have the GUID {}: in {} and in {}; give one of them another name or GUID",
                one.0,
                self.named(one.1),
                self.named(other.1)
            );
        }
        Ok(found)
    }

    /// Returns the driver's declarations.
    ///
    /// # Errors
    ///
    /// Fails if there are none.
    pub fn some_declarations(&self) -> Result<Vec<Declaration>> {
        let found = self.declarations()?;
        ensure!(
            !found.is_empty(),
            "{} declares no provider: no module in {} and its modules has #[wdk_etw::provider]; if \
             it is elsewhere, name the file with `declaration` in [package.metadata.etw]",
            self.driver.package,
            self.named(&self.driver.library)
        );
        Ok(found)
    }

    /// Returns the error in a driver whose build script does not add the resources with which Windows
    /// decodes its events with ids.
    ///
    /// # Errors
    ///
    /// Fails if the declarations cannot be read.
    pub fn missing_resources(&self) -> Result<Option<String>> {
        let declarations = self.declarations()?;
        let script = self.driver.script.as_deref().map(fs::read_to_string);
        let is_compiled =
            script.is_some_and(|text| text.is_ok_and(|text| text.contains("wdk_etw_build")));
        if is_compiled || !has_manifest_events(&declarations) {
            return Ok(None);
        }
        Ok(Some(self.no_resources(&declarations)))
    }

    /// Returns the error message for an image without resources.
    pub fn no_resources(&self, declarations: &[Declaration]) -> String {
        let file = declarations.first().map(|one| self.named(&one.path)).unwrap_or_default();
        format!(
            "{} has events with ids, which Windows decodes with resources in the image; call \
             `wdk_etw_build::compile(…)` in the driver's build.rs for {file}",
            self.driver.package
        )
    }

    /// Returns the driver's INF file, stamped (`.inf`) or not (`.inx`), if it has one.
    pub fn inf(&self) -> Result<Option<PathBuf>> {
        if let Some(named) = &self.settings.inf {
            return Ok(named.is_file().then(|| named.clone()));
        }
        let folders = [self.folder().to_owned(), self.folder().join("inf")];
        let image = &self.driver.image;
        for extension in ["inx", "inf"] {
            for folder in &folders {
                let own = folder.join(format!("{image}.{extension}"));
                if own.is_file() {
                    return Ok(Some(own));
                }
                let mut others = if folder.is_dir() {
                    files::with_extension(folder, extension)?
                } else {
                    Vec::new()
                };
                match others.len() {
                    0 => {}
                    1 => return Ok(others.pop()),
                    _ => bail!(
                        "{} has several .{extension} files but no {image}.{extension}; name the \
                         driver's with `inf` in [package.metadata.etw]",
                        folder.display()
                    ),
                }
            }
        }
        Ok(None)
    }

    /// Returns the driver's INF file.
    ///
    /// # Errors
    ///
    /// Fails if the driver has none.
    pub fn some_inf(&self) -> Result<PathBuf> {
        self.inf()?.with_context(|| {
            format!(
                "{} has no INF file: {} does not exist; `cargo etw inf new` writes one",
                self.driver.package,
                self.new_inf().display()
            )
        })
    }

    /// Returns the requirements for the driver's INF file, if the settings name them.
    pub const fn inf_mode(&self) -> Option<Mode> {
        self.settings.inf_mode
    }

    /// Returns the path for a new INF file.
    pub fn new_inf(&self) -> PathBuf {
        let beside = || self.folder().join(format!("{}.inx", self.driver.image));
        self.settings.inf.clone().unwrap_or_else(beside)
    }

    /// Returns the path of a file in the INF file's folder, unless the settings specify another
    /// path.
    fn beside_inf(&self, setting: Option<&PathBuf>, extension: &str) -> Result<PathBuf> {
        if let Some(named) = setting {
            return Ok(named.clone());
        }
        let inf = self.inf()?;
        let folder = inf.as_deref().and_then(Path::parent);
        let folder = folder.unwrap_or_else(|| self.folder());
        Ok(folder.join(format!("{}.{extension}", self.driver.image)))
    }

    /// Returns the path of the driver's manifest (`.man`).
    pub fn manifest(&self) -> Result<PathBuf> {
        self.beside_inf(self.settings.manifest.as_ref(), "man")
    }

    /// Returns the path of the driver's profile for Windows Performance Recorder.
    pub fn profile(&self) -> Result<PathBuf> {
        self.beside_inf(self.settings.profile.as_ref(), "wprp")
    }

    /// Returns the path of the driver's tracing instructions.
    pub fn recipes(&self) -> PathBuf {
        let usual = || self.folder().join("tracing.md");
        self.settings.recipes.clone().unwrap_or_else(usual)
    }

    /// Returns the path of the installed image, as the manifest contains it.
    pub fn installed(&self) -> String {
        format!(r"%SystemRoot%\System32\drivers\{}.sys", self.driver.image)
    }

    /// Returns the image that `cargo etw build` last built, if any.
    pub fn image(&self) -> Option<PathBuf> {
        let folder = self.driver.target.join("etw").join("x64");
        let written =
            |path: &PathBuf| -> Option<SystemTime> { path.metadata().ok()?.modified().ok() };
        ["debug", "release"]
            .map(|profile| folder.join(profile).join(format!("{}.sys", self.driver.image)))
            .into_iter()
            .filter(|path| path.is_file())
            .max_by_key(written)
    }
}

/// Reads the events that an image's resources describe. Skips unreadable parts with a warning.
pub fn described(path: &Path) -> Result<Manifest> {
    let decoded = internals::described(path)?;
    for skipped in &decoded.skipped {
        warn_skipped(path, skipped);
    }
    Ok(decoded.manifest)
}

fn warn_skipped(path: &Path, skipped: &DecodeError) {
    eprintln!("warning: {}: skipping a part of the resources: {skipped}", path.display());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_paths_in_the_packages_folder() {
        let metadata = json!({ "etw": {
            "declaration": ["src/a.rs", "src/b.rs"], "manifest": "../inf/x.man",
        } });
        let settings = Settings::read(&metadata, Path::new("/w/driver"), "d").unwrap();
        assert_eq!(settings.manifest.as_deref(), Some(Path::new("/w/inf/x.man")));
        assert_eq!(
            settings.declarations,
            [Path::new("/w/driver/src/a.rs"), Path::new("/w/driver/src/b.rs")]
        );
        assert!(settings.inf.is_none());
    }

    #[test]
    fn a_wrong_setting_is_named() {
        let read = |section: Value| {
            let metadata = json!({ "etw": section });
            Settings::read(&metadata, Path::new("/w"), "contoso").unwrap_err().to_string()
        };
        let unknown = read(json!({ "manifst": "x.man" }));
        assert!(unknown.contains("contoso has an unknown key \"manifst\"; known: "), "{unknown}");
        let kind = read(json!({ "inf": 3 }));
        assert!(
            kind.contains("inf in [package.metadata.etw] of contoso is not a string"),
            "{kind}"
        );
        let mode = read(json!({ "inf-mode": "legacy" }));
        assert!(mode.contains("is \"legacy\"; expected one of desktop, declarative"), "{mode}");
        assert!(read(json!("x")).contains("is not a table"));
    }
}
