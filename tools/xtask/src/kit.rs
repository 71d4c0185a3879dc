//! `cargo xtask kit`: creates the folder from which a Windows machine runs the sample driver's
//! stages.
//!
//! The folder contains the plan, the stages' scripts (`tests/windows`), the driver's packages, the
//! client, the trace reader, and the guides' recipes with the number of events that each must
//! record.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use driver_build::files::{self, read};
use serde_json::{Value, json};

use crate::{
    build::PROBES,
    cargo_etw, client,
    package::{self, PROBES_HARDWARE_ID},
    process::{root, run_quietly, target},
    progress::step,
    sample::{DRIVER, HARDWARE_ID, PROVIDER},
};

/// A program that writes the files of a .zip archive into one folder.
const UNPACK: &str = "import os, sys, zipfile\n\
                      _, archive, to = sys.argv\n\
                      os.makedirs(to, exist_ok=True)\n\
                      with zipfile.ZipFile(archive) as all:\n \
                      for one in all.infolist():\n  \
                      if not one.is_dir():\n   \
                      with open(os.path.join(to, os.path.basename(one.filename)), 'wb') as out:\n    \
                      out.write(all.read(one))";

/// The plan's file, in the root of the kit.
const PLAN: &str = "wdk-etw-kit.json";

/// The path of the trace reader in the kit. The `decode` stage compares other decoders' output with
/// the reader's.
const READER: &str = "tools/etl.exe";

/// The table of stages, which explains their order.
const STAGES: &str = "tests/windows/stages.txt";

/// The list of differences that were looked at: `STAGE | CHECK | GOT`, one per line. While it does not
/// exist, no difference fails a run; once it exists, every other difference does.
pub const LOOKED_AT: &str = "tests/windows/looked-at.txt";

/// A stage for machines that do not restart, such as hosted runners.
#[derive(Debug, PartialEq, Eq)]
pub struct Stage {
    /// Without Driver Verifier (`plain`), or with it (`verifier`).
    pub leg: String,
    /// The name.
    pub name: String,
    minutes: u32,
    is_risky: bool,
    /// True if the run fails with this stage; false if the stage gives evidence.
    pub is_path: bool,
}

/// Returns the stages in the table that need no restart.
pub fn stages() -> Result<Vec<Stage>> {
    let text = String::from_utf8(read(root().join(STAGES))?)
        .with_context(|| format!("{STAGES} is not UTF-8"))?;
    let mut stages = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [leg, name, minutes, risky, _, restarts, kind] = words.as_slice() else {
            bail!("{STAGES}:{}: expected seven words", number + 1);
        };
        ensure!(
            ["path", "evidence"].contains(kind),
            "{STAGES}:{}: {kind} is not a kind; expected path or evidence",
            number + 1
        );
        let minutes = minutes.parse().with_context(|| {
            format!("{STAGES}:{}: expected the minutes as a number", number + 1)
        })?;
        if *restarts == "0" {
            stages.push(Stage {
                leg: (*leg).to_owned(),
                name: (*name).to_owned(),
                minutes,
                is_risky: *risky == "1",
                is_path: *kind == "path",
            });
        }
    }
    Ok(stages)
}

/// The contents of a kit. A package is an archive or a folder.
#[derive(Debug, Default, clap::Args)]
pub struct Contents {
    /// The folder to create.
    #[arg(long, value_name = "FOLDER", default_value = "target/kit")]
    out: PathBuf,
    /// The driver's package, a .zip file or a folder [default: from `cargo xtask package`].
    #[arg(long)]
    package: Option<PathBuf>,
    /// The same driver's package with a version 2 catalog [default: from `cargo xtask package`, if
    /// `--package` is not given].
    #[arg(long, value_name = "PACKAGE")]
    catalog_2: Option<PathBuf>,
    /// The same driver, packaged by the WDK.
    #[arg(long, value_name = "PACKAGE")]
    wdk: Option<PathBuf>,
    /// The package of the probes' driver [default: from `cargo xtask package`, if `--package` is not given].
    #[arg(long, value_name = "PACKAGE")]
    probe: Option<PathBuf>,
    /// The user-mode client [default: from the package].
    #[arg(long, value_name = "FILE")]
    client: Option<PathBuf>,
    /// The program `etl` for Windows [default: from `cargo xtask package`, if `--package` is not given].
    #[arg(long = "etl", value_name = "FILE")]
    reader: Option<PathBuf>,
}

/// Runs `cargo xtask kit`.
pub fn run(contents: &Contents) -> Result<()> {
    let data = target().join("kit-recipes.json");
    cargo_etw::write_recipe_data(&data)?;
    step("Creating the kit", || make(contents, &read(&data)?))?;
    println!("{}", contents.out.display());
    Ok(())
}

/// Creates a kit from the packages that were last built, for `cargo xtask test`.
pub fn check() -> Result<()> {
    let out = target().join("kit-test");
    files::remove_dir_all(&out)?;
    run(&Contents { out, ..Contents::default() })
}

/// Writes the guides' recipes with the number of events that each must record, and returns the
/// file's path.
pub fn write_recipes() -> Result<PathBuf> {
    let data = target().join("kit-recipes.json");
    cargo_etw::write_recipe_data(&data)?;
    let out = target().join("recipes.json");
    write(&out, text(&with_counts(&read(&data)?)?).as_bytes())?;
    Ok(out)
}

/// Adds the number of events that each recipe must record to the recipes that `cargo etw recipes
/// --data` wrote.
fn with_counts(recipes: &[u8]) -> Result<Value> {
    let traffic = read(root().join("tests/windows/traffic.json"))?;
    let traffic: Value = parse(&traffic, "traffic.json")?;
    expected(&parse(recipes, "the recipes")?, &traffic)
}

/// Creates the kit; `recipes` is the output of `cargo etw recipes --data`.
fn make(contents: &Contents, recipes: &[u8]) -> Result<()> {
    let out = &contents.out;
    let is_free = fs::read_dir(out).map_or(true, |mut files| files.next().is_none());
    ensure!(
        is_free,
        "{} is not empty; name a folder that does not exist, or empty it",
        out.display()
    );
    let (_, name) = DRIVER;
    let archive = contents.package.clone().unwrap_or_else(package::archive);
    let folder = out.join("package");
    put_package(&archive, &folder).with_context(|| {
        format!(
            "cannot read the driver's package {}; build it with `cargo xtask package`",
            archive.display()
        )
    })?;
    // `cargo xtask package` builds all packages for x64. A package from the user can be for another
    // processor.
    let or_built = |given: &Option<PathBuf>, built: PathBuf| {
        given.clone().or_else(|| (contents.package.is_none() && built.exists()).then_some(built))
    };
    let catalog_2 = or_built(&contents.catalog_2, package::archive_with_catalog_2());
    for (from, to) in [(&catalog_2, "package-catalog-2"), (&contents.wdk, "package-wdk")] {
        if let Some(from) = from {
            put_package(from, &out.join(to))?;
        }
    }
    let probe = match or_built(&contents.probe, package::archive_of_probes()) {
        Some(from) => {
            let folder = out.join("probe");
            put_package(&from, &folder)?;
            driver(PROBES.1, PROBES_HARDWARE_ID, &folder)?
        }
        None => Value::Null,
    };
    let client = put_client(contents, &folder)?;
    // Windows on ARM64 also runs x64 programs.
    if let Some(reader) = or_built(&contents.reader, client::reader()) {
        write(&out.join(READER), &read(&reader)?)?;
    }
    let stages = stages()?;
    put_scripts(out, &stages)?;
    let recipes = with_counts(recipes)?;
    write(&out.join("recipes.json"), text(&recipes).as_bytes())?;
    let plan = json!({
        "version": 1,
        "driver": driver(name, HARDWARE_ID, &folder)?,
        "provider": { "name": PROVIDER.0, "guid": PROVIDER.1 },
        "client": client,
        "probe": probe,
        "stages": stages.iter().map(|stage| json!({
            "leg": stage.leg,
            "name": stage.name,
            "script": format!("stages/{}.ps1", stage.name),
            "timeout_minutes": stage.minutes,
            "risky": stage.is_risky,
            "kind": if stage.is_path { "path" } else { "evidence" },
        })).collect::<Vec<_>>(),
        "evidence": { "strict": root().join(LOOKED_AT).exists(), "looked_at": looked_at()? },
    });
    write(&out.join(PLAN), text(&plan).as_bytes())
}

/// Returns the differences that were looked at, as `STAGE | CHECK | GOT`.
pub fn looked_at() -> Result<Vec<String>> {
    let path = root().join(LOOKED_AT);
    let text = if path.exists() { files::read_to_string(&path)? } else { String::new() };
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let trimmed = |line: &str| line.split('|').map(str::trim).collect::<Vec<_>>().join(" | ");
    Ok(lines.map(trimmed).collect())
}

/// Copies the stages' scripts to the kit, and the scripts that WDK packages lack.
fn put_scripts(out: &Path, stages: &[Stage]) -> Result<()> {
    let names = stages.iter().map(|stage| stage.name.as_str());
    let own = names
        .chain(["common"])
        .map(|name| (format!("tests/windows/{name}.ps1"), format!("{name}.ps1")));
    let of_packages = ["device", "service", "uninstall"].map(|name| {
        (format!("tools/driver-package/src/scripts/{name}.ps1"), format!("package-{name}.ps1"))
    });
    for (from, to) in own.chain(of_packages) {
        // Windows PowerShell accepts both kinds of line endings, but users edit these files on
        // Windows.
        let text = String::from_utf8(read(root().join(&from))?)
            .with_context(|| format!("{from} is not UTF-8"))?;
        let text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        write(&out.join("stages").join(to), text.as_bytes())?;
    }
    Ok(())
}

/// Returns the plan's entry for the driver whose package is in a folder.
fn driver(name: &str, hardware_id: &str, package: &Path) -> Result<Value> {
    Ok(json!({
        "name": name,
        "service": name,
        "hardware_id": hardware_id,
        "inf": format!("{name}.inf"),
        "sys": format!("{name}.sys"),
        "certificate": find(package, "cer")?,
    }))
}

/// Copies the client from the command line, or from the package, to the kit. Returns its path.
fn put_client(contents: &Contents, package: &Path) -> Result<Option<String>> {
    let name = format!("{}.exe", client::PACKAGE);
    let packed = package.join(&name);
    let from = match &contents.client {
        Some(client) => client.clone(),
        None if packed.exists() => packed,
        None => return Ok(None),
    };
    let place = format!("client/{name}");
    write(&contents.out.join(&place), &read(&from)?)?;
    Ok(Some(place))
}

/// Returns the recipes with the number of events that each must record for these requests.
fn expected(recipes: &Value, traffic: &Value) -> Result<Value> {
    let events = list(traffic, "events")?;
    let mut recipes = recipes.clone();
    let all = recipes.get_mut("recipes").and_then(Value::as_array_mut);
    for recipe in all.context("the recipes have no list `recipes`")? {
        let enables = list(recipe, "enables")?.clone();
        let mut number = 0;
        for event in events {
            let mut passes = false;
            for enable in &enables {
                passes |= passes_filter(event, enable)?;
            }
            number += u32::from(passes);
        }
        recipe["expected"] = number.into();
    }
    recipes["traffic"] = list(traffic, "traffic")?.clone().into();
    recipes["traffic_events"] = events.len().into();
    Ok(recipes)
}

/// Returns whether a session that enables the provider with these values records an event.
fn passes_filter(event: &Value, enable: &Value) -> Result<bool> {
    let level = |of: &Value| of["level"].as_u64().context("an entry lacks its level");
    let mask = |of: &Value, name: &str| {
        let text = of[name].as_str().and_then(|text| text.strip_prefix("0x"));
        let mask = text.and_then(|text| u64::from_str_radix(text, 16).ok());
        mask.with_context(|| format!("an entry lacks the hexadecimal mask `{name}`"))
    };
    let (limit, any) = (level(enable)?, mask(enable, "match_any")?);
    let keyword = mask(event, "keyword")?;
    // An event without an id is a TraceLogging event, which has id 0.
    let id = event["id"].as_u64().unwrap_or(0);
    let left_out = enable["except_ids"].as_array();
    if left_out.is_some_and(|ids| ids.iter().any(|one| one.as_u64() == Some(id))) {
        return Ok(false);
    }
    Ok((limit == 0 || level(event)? <= limit) && (any == 0 || keyword == 0 || keyword & any != 0))
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    let list = value.get(name).and_then(Value::as_array);
    list.with_context(|| format!("the list `{name}` is missing"))
}

/// Unpacks an archive whose files are in one folder, or copies a folder's files.
fn put_package(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        let entries = files::read_dir(from)?;
        for entry in entries {
            let path = entry?.path();
            if let (true, Some(name)) = (path.is_file(), path.file_name()) {
                write(&to.join(name), &read(&path)?)?;
            }
        }
        return Ok(());
    }
    ensure!(from.is_file(), "{} does not exist", from.display());
    // Python's installer for Windows has no `python3`.
    let mut unpack = Command::new(if cfg!(windows) { "python" } else { "python3" });
    unpack.args(["-c", UNPACK]).args([from, to]);
    run_quietly(&mut unpack).with_context(|| {
        format!("cannot unpack {} with Python; is it a .zip file?", from.display())
    })
}

/// Returns the name of the file in a folder with this extension, if there is one.
fn find(folder: &Path, extension: &str) -> Result<Option<String>> {
    let mut found = files::with_extension(folder, extension)?;
    if found.len() > 1 {
        bail!("{} has several .{extension} files", folder.display());
    }
    let name = found.pop().and_then(|path| path.file_name().map(ToOwned::to_owned));
    Ok(name.map(|name| name.to_string_lossy().into_owned()))
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

fn parse(data: &[u8], what: &str) -> Result<Value> {
    serde_json::from_slice(data).with_context(|| format!("cannot read {what}"))
}

/// Writes a file, and creates its folder.
fn write(path: &Path, data: &[u8]) -> Result<()> {
    files::create_dir_all(path.parent().unwrap_or_else(|| Path::new(".")))?;
    files::write(path, data)
}

#[cfg(test)]
mod tests;
