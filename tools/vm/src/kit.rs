//! The kit: the files on the CD that a virtual machine runs its stages from.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    error::{Error, Result, file},
    iso::Files,
    protocol::StageId,
};

/// The file that identifies the CD to the guest; it contains the plan.
pub const TAG: &str = "wdk-etw-kit.json";

/// The agent, which executes the plan inside Windows.
const AGENT: &[u8] = include_bytes!("../../../tests/windows/agent.cmd");

/// The stages' scripts: names and contents.
const SCRIPTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

/// A planned stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The stage's leg and name.
    pub id: StageId,
    /// The time limit with virtualization, in minutes.
    pub minutes: u32,
    /// True if the stage can crash Windows; the agent flushes the disks before it runs.
    pub is_risky: bool,
    /// The name of the stage's script, without extension.
    pub script: String,
    /// `path` or `evidence`; see [`Contents::evidence`].
    pub kind: String,
}

/// The leg without Driver Verifier.
pub const PLAIN: &str = "plain";
/// The leg under Driver Verifier.
pub const VERIFIER: &str = "verifier";

/// A row of the table of stages.
struct Line {
    leg: &'static str,
    name: &'static str,
    minutes: u32,
    is_risky: bool,
    script: &'static str,
    kind: &'static str,
}

/// The stages of both legs, from `tests/windows/stages.txt`, which explains their order.
const STAGES: &[Line] = include!(concat!(env!("OUT_DIR"), "/stages.rs"));

/// The stages that need the driver, which the `install` stage installs.
const NEED_DRIVER: [&str; 10] = [
    "trace", "scenarios", "recipes", "boot", "booted", "decode", "probe", "probe-2", "probe-3",
    "probe-4",
];

/// Returns the names of all stages.
#[must_use]
pub fn stage_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for line in STAGES {
        if !names.contains(&line.name) {
            names.push(line.name);
        }
    }
    names
}

/// Returns the plan: all stages, or the named ones, preceded by `install` if any of them needs the
/// driver.
///
/// If a leg is named, the plan contains only the stages of that leg; `verifier` precedes the stages
/// of the verifier leg.
///
/// # Errors
///
/// Fails with [`Error::Plan`] if the leg lacks a named stage.
pub fn plan(only: &[String], leg: Option<&str>) -> Result<Vec<Stage>> {
    let is_named = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let needs_driver = only.iter().any(|one| NEED_DRIVER.contains(&one.as_str()));
    let has_any_leg = only.is_empty() || leg.is_some();
    let chosen: Vec<Stage> = STAGES
        .iter()
        .filter(|line| leg.is_none_or(|leg| leg == line.leg))
        .filter(|line| {
            is_named(line.name)
                || (line.name == "install" && needs_driver)
                || (line.name == VERIFIER && leg.is_some())
        })
        // If no leg is named, a named stage runs in the plain leg.
        .filter(|line| has_any_leg || line.leg == PLAIN || line.name == VERIFIER)
        .map(|line| Stage {
            id: StageId { leg: line.leg.to_owned(), stage: line.name.to_owned() },
            minutes: line.minutes,
            is_risky: line.is_risky,
            script: line.script.to_owned(),
            kind: line.kind.to_owned(),
        })
        .collect();
    if let Some(missing) =
        only.iter().find(|one| chosen.iter().all(|stage| stage.id.stage != **one))
    {
        return Err(Error::Plan(format!(
            "the leg {} has no stage {missing}; the stages are: {}",
            leg.unwrap_or(PLAIN),
            stage_names().join(", ")
        )));
    }
    Ok(chosen)
}

/// A driver package.
#[derive(Clone, Debug, Default)]
pub struct Package {
    /// The folder that contains its files.
    pub folder: PathBuf,
    /// The driver's name.
    pub name: String,
    /// The service's name.
    pub service: String,
    /// The device's hardware ID; empty for a driver without a device, a primitive driver.
    pub hardware_id: String,
    /// The INF file's name.
    pub inf: String,
    /// The image's file name.
    pub sys: String,
    /// The certificate's file name, if the package has one.
    pub certificate: Option<String>,
}

impl Package {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "service": self.service,
            "hardware_id": self.hardware_id,
            "inf": self.inf,
            "sys": self.sys,
            "certificate": self.certificate,
        })
    }
}

/// The contents of a kit.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The driver under test.
    pub driver: Package,
    /// The name and GUID of the provider, if the package declares one.
    pub provider: Option<(String, String)>,
    /// The folder of the same driver's package from the WDK.
    pub package_wdk: Option<PathBuf>,
    /// The folder of the same driver's package with a version 2 catalog.
    pub package_catalog_2: Option<PathBuf>,
    /// The driver for the probes.
    pub probe: Option<Package>,
    /// The client program.
    pub client: Option<PathBuf>,
    /// `cargo-etw.exe`, which traces and decodes events if there is no client.
    pub tracer: Option<PathBuf>,
    /// The guides' recipes, as data.
    pub recipes: Option<PathBuf>,
    /// True if stages of the kind `evidence` report differences instead of failing.
    pub evidence: bool,
    /// A folder with replacement scripts for the stages.
    pub stages: Option<PathBuf>,
}

impl Contents {
    /// Returns the kit's files. The agent's time limits are the plan's, multiplied by `factor`.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::Plan`] if a stage has no script, and with [`Error::File`] if a file
    /// cannot be read.
    pub fn files(&self, plan: &[Stage], factor: u32) -> Result<Files> {
        let mut files = self.packages()?;
        let scripts = self.scripts()?;
        let mut stages = Vec::new();
        let mut lines = String::new();
        for (number, stage) in plan.iter().enumerate() {
            let name = &stage.id.stage;
            let script =
                script(&scripts, &stage.script).ok_or_else(|| self.no_script(&stage.script))?;
            let minutes = stage.minutes.saturating_mul(factor);
            stages.push(json!({
                "name": name,
                "leg": stage.id.leg,
                "script": format!("stages/{script}"),
                "timeout_minutes": minutes,
                "risky": stage.is_risky,
                "kind": stage.kind,
            }));
            // The agent is a batch file and cannot read JSON.
            let _ = write!(
                lines,
                "{:02} {} {name} {minutes} {} stages\\{script}\r\n",
                number + 1,
                stage.id.leg,
                u8::from(stage.is_risky),
            );
        }
        for (name, contents) in scripts {
            files.insert(format!("stages/{name}"), contents);
        }
        let program = |folder: &str, path: &Option<PathBuf>| {
            let name = path.as_deref().and_then(Path::file_name);
            name.map(|name| format!("{folder}/{}", name.to_string_lossy()))
        };
        let plan = json!({
            "version": 1,
            "slowness": factor,
            "driver": self.driver.to_json(),
            "provider": self.provider.as_ref().map(|(name, guid)| json!({ "name": name, "guid": guid })),
            "client": program("client", &self.client),
            "tracer": program("tracer", &self.tracer),
            "probe": self.probe.as_ref().map(Package::to_json),
            "stages": stages,
            "evidence": self.evidence.then(|| json!({ "strict": false, "looked_at": [] })),
        });
        files.insert(TAG.to_owned(), format!("{plan:#}\n").into_bytes());
        files.insert("agent/plan.txt".to_owned(), lines.into_bytes());
        files.insert("agent/slowness.txt".to_owned(), format!("{factor}\r\n").into_bytes());
        files.insert("agent/agent.cmd".to_owned(), windows_lines(AGENT));
        Ok(files)
    }

    /// Returns the files of a kit for manual work, without a plan and an agent.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::File`] if a file cannot be read.
    pub fn files_by_hand(&self) -> Result<Files> {
        let mut files = self.packages()?;
        for (name, contents) in self.scripts()? {
            files.insert(format!("stages/{name}"), contents);
        }
        Ok(files)
    }

    /// Returns the files of the packages, the client and the recipes.
    fn packages(&self) -> Result<Files> {
        let mut files = Files::new();
        add_folder(&mut files, "package", &self.driver.folder)?;
        for (name, folder) in
            [("package-wdk", &self.package_wdk), ("package-catalog-2", &self.package_catalog_2)]
        {
            if let Some(folder) = folder {
                add_folder(&mut files, name, folder)?;
            }
        }
        if let Some(probe) = &self.probe {
            add_folder(&mut files, "probe", &probe.folder)?;
        }
        for (folder, program) in [("client", &self.client), ("tracer", &self.tracer)] {
            if let Some(program) = program {
                let name = program.file_name().unwrap_or_default().to_string_lossy();
                files.insert(format!("{folder}/{name}"), read(program)?);
            }
        }
        if let Some(recipes) = &self.recipes {
            files.insert("recipes.json".to_owned(), read(recipes)?);
        }
        Ok(files)
    }

    /// Returns the names and contents of the scripts.
    fn scripts(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let Some(folder) = &self.stages else {
            let contained = SCRIPTS.iter();
            return Ok(contained
                .map(|(name, contents)| ((*name).to_owned(), windows_lines(contents)))
                .collect());
        };
        let mut files = Files::new();
        add_folder(&mut files, "", folder)?;
        Ok(files
            .into_iter()
            .map(|(name, contents)| {
                let is_powershell = Path::new(&name)
                    .extension()
                    .is_some_and(|extension| extension == "ps1" || extension == "psm1");
                let contents = if is_powershell { windows_lines(&contents) } else { contents };
                (name, contents)
            })
            .collect())
    }

    fn no_script(&self, stage: &str) -> Error {
        let place = self.stages.as_ref().map_or_else(
            || "this program does not contain one".to_owned(),
            |folder| format!("{} has no {stage}.ps1", folder.display()),
        );
        Error::Plan(format!(
            "the stage {stage} has no script: {place}; omit the stage with `--only`, or pass a \
             folder that contains the script with `--stages`"
        ))
    }
}

/// Returns the name of a stage's script.
fn script<'a>(scripts: &'a [(String, Vec<u8>)], stage: &str) -> Option<&'a str> {
    let of_stage = |name: &&str| Path::new(name).file_stem().is_some_and(|stem| stem == stage);
    let mut names: Vec<&str> = scripts.iter().map(|(name, _)| name.as_str()).collect();
    names.retain(|name| of_stage(name));
    names
        .sort_by_key(|name| Path::new(name).extension().is_none_or(|extension| extension != "ps1"));
    names.first().copied()
}

/// Returns text with Windows line endings, without which cmd does not find labels in batch files.
#[must_use]
pub fn windows_lines(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text.iter().filter(|byte| **byte != b'\r') {
        if *byte == b'\n' {
            out.push(b'\r');
        }
        out.push(*byte);
    }
    out
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(file("read", path))
}

/// Adds the files of a folder and its subfolders.
fn add_folder(files: &mut Files, to: &str, folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(file("read", folder))?;
    for entry in entries {
        let path = entry.map_err(file("read", folder))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::Iso {
                name: path.display().to_string(),
                reason: "its name is not UTF-8".to_owned(),
            });
        };
        let to = if to.is_empty() { name.to_owned() } else { format!("{to}/{name}") };
        if path.is_dir() {
            add_folder(files, &to, &path)?;
        } else {
            files.insert(to, read(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_client_is_in_the_kit_and_in_its_plan() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package");
        fs::create_dir(&package).unwrap();
        fs::write(package.join("contoso.sys"), "MZ").unwrap();
        let tracer = folder.path().join("cargo-etw.exe");
        fs::write(&tracer, "MZ tracer").unwrap();
        let driver = Package { folder: package, ..Package::default() };
        let contents = Contents { driver, tracer: Some(tracer), ..Contents::default() };
        let files = contents.files(&plan(&["decode".to_owned()], None).unwrap(), 1).unwrap();
        assert_eq!(files["tracer/cargo-etw.exe"], b"MZ tracer");
        let plan: Value = serde_json::from_slice(&files[TAG]).unwrap();
        assert_eq!(plan["tracer"], "tracer/cargo-etw.exe");
        assert_eq!(plan["client"], Value::Null);
    }
}
