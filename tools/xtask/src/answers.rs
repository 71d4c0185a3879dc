//! `cargo xtask answers`: reads the results of a run on Windows, an archive or a folder, and writes its page:
//! the path, which must succeed, and the evidence, which is compared with what was expected.
//!
//! The results of a leg are in a folder with the leg's name, in folders with the stages' names. Anything can
//! be missing or damaged there, because a crash or a time limit can end a run anywhere.

use std::{
    fmt::Write as _,
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use driver_build::files;
use serde_json::Value;

use crate::{
    kit::{self, Stage},
    process::{printed, program, root, run_quietly, target},
    progress::step,
};

/// The folder of the answers of measured systems.
const ANSWERS: &str = "standin-kernel/answers";

/// Runs `cargo xtask answers`.
pub fn run(results: &Path, page: Option<&Path>) -> Result<()> {
    let folder = unpacked(results)?;
    let (stages, looked_at) = (kit::stages()?, kit::looked_at()?);
    let runs = runs(&folder);
    ensure!(
        !runs.is_empty(),
        "{} has no results of a run: no folder is named after a leg, `plain` or `verifier`",
        results.display()
    );
    let mut text = String::new();
    for run in runs {
        let results = Results::read(&run, &stages, &looked_at);
        text += &results.page(&run);
        if let Some(answers) = results.answers {
            text += &keep_and_compare(&answers)?;
        }
    }
    print!("{text}");
    if let Some(page) = page {
        let file = OpenOptions::new().create(true).append(true).open(page);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", page.display()))?;
    }
    Ok(())
}

/// Returns the folder of the results, in which an archive is unpacked.
fn unpacked(results: &Path) -> Result<PathBuf> {
    if results.is_dir() {
        return Ok(results.to_owned());
    }
    ensure!(results.is_file(), "{} does not exist", results.display());
    let folder = target().join("answers").join(results.file_stem().unwrap_or_default());
    files::remove_dir_all(&folder)?;
    files::create_dir_all(&folder)?;
    let mut unpack = Command::new(if cfg!(windows) { "python" } else { "python3" });
    unpack.args(["-m", "zipfile", "-e"]).args([results, &folder]);
    run_quietly(&mut unpack)
        .with_context(|| format!("cannot unpack {} with Python", results.display()))?;
    Ok(folder)
}

/// Returns the folders that have legs: the folder, or those in it, such as artifacts.
fn runs(folder: &Path) -> Vec<PathBuf> {
    let has_leg = |folder: &Path| ["plain", "verifier"].iter().any(|leg| folder.join(leg).is_dir());
    if has_leg(folder) {
        return vec![folder.to_owned()];
    }
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| has_leg(path))
        .collect();
    found.sort();
    found
}

/// A step of the path.
struct Step {
    leg: String,
    stage: String,
    /// `passed`, or what happened instead.
    outcome: String,
    reason: String,
}

/// A check whose result differs from the expected one.
struct Difference {
    place: String,
    check: String,
    expected: String,
    got: String,
    was_looked_at: bool,
}

/// The results of a run.
#[derive(Default)]
struct Results {
    /// The system's name and build.
    system: Option<String>,
    path: Vec<Step>,
    agreed: usize,
    differences: Vec<Difference>,
    /// The checks that were not made, each with the reason.
    not_asked: Vec<(String, String)>,
    /// The answers to the probes.
    answers: Option<PathBuf>,
}

/// Reads a JSON file that PowerShell wrote, or returns the reason why it cannot be read.
fn read_json(path: &Path) -> Result<Value, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// Returns a member as text; a member that is missing or null is empty.
fn text(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the entries of a member that is a list.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

impl Results {
    /// Reads the results of a run of these stages.
    fn read(folder: &Path, stages: &[Stage], looked_at: &[String]) -> Self {
        let mut results = Self::default();
        for leg in ["plain", "verifier"] {
            let leg_folder = folder.join(leg);
            if !leg_folder.is_dir() {
                continue;
            }
            if let Ok(machine) = read_json(&leg_folder.join("machine/machine.json")) {
                let (name, build) = (text(&machine, "caption"), text(&machine, "build"));
                results.system =
                    Some(format!("{name}, build {build}.{}", text(&machine, "revision")));
            }
            let planned = stages.iter().filter(|stage| stage.leg == leg);
            let mut names: Vec<(String, bool)> =
                planned.map(|stage| (stage.name.clone(), stage.is_path)).collect();
            // Stages that the table does not have, such as `minimal`, give evidence.
            let mut others: Vec<String> = fs::read_dir(&leg_folder)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok().filter(|entry| entry.path().is_dir()))
                .filter_map(|entry| entry.file_name().into_string().ok())
                .filter(|name| names.iter().all(|(known, _)| known != name))
                .collect();
            others.sort();
            names.extend(others.into_iter().map(|name| (name, false)));
            // A run of the leg `verifier` alone checks the machine in the folder `plain`, and nothing else.
            let has_path = leg_folder.join("install").is_dir() || !folder.join("verifier").is_dir();
            if !has_path {
                names.retain(|(name, _)| leg_folder.join(name).is_dir());
            }
            for (name, is_path) in names {
                results.add_stage(&leg_folder, leg, &name, is_path && has_path, looked_at);
            }
        }
        // Driver Verifier changes the system's behavior, so only the answers without it count.
        results.answers =
            Some(folder.join("plain/probe/answers.json")).filter(|path| path.is_file());
        results
    }

    fn add_stage(
        &mut self,
        leg_folder: &Path,
        leg: &str,
        name: &str,
        is_path: bool,
        looked_at: &[String],
    ) {
        let folder = leg_folder.join(name);
        let place = format!("{leg}, {name}");
        let is_there = folder.is_dir();
        let result = match read_json(&folder.join("result.json")) {
            Ok(result) => result,
            Err(reason) => {
                let reason = if is_there {
                    format!("the stage was ended before it wrote its result ({reason})")
                } else {
                    "the stage was not run".to_owned()
                };
                if is_path {
                    self.add_step(leg, name, "no result", &reason);
                } else {
                    self.not_asked.push((place, reason));
                }
                return;
            }
        };
        if is_path {
            self.add_step(leg, name, &text(&result, "status"), &text(&result, "reason"));
        } else if result["status"] == "skipped" {
            self.not_asked.push((place.clone(), text(&result, "reason")));
        } else if !result["error"].is_null() {
            self.not_asked.push((format!("{place}, the rest"), text(&result, "error")));
        }
        for check in list(&result, "checks") {
            self.add_check(&place, name, check, looked_at);
        }
        if let Ok(recipes) = read_json(&folder.join("recipes.json")) {
            for recipe in list(&recipes, "recipes").iter().filter(|recipe| recipe["ran"] == false) {
                let what = format!("{place}, {}", text(recipe, "name"));
                self.not_asked.push((what, text(recipe, "why")));
            }
        }
    }

    fn add_step(&mut self, leg: &str, stage: &str, outcome: &str, reason: &str) {
        self.path.push(Step {
            leg: leg.to_owned(),
            stage: stage.to_owned(),
            outcome: outcome.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn add_check(&mut self, place: &str, stage: &str, check: &Value, looked_at: &[String]) {
        let (name, got) = (text(check, "name"), text(check, "got"));
        if check["passed"] == true {
            self.agreed += 1;
        } else if let Some(why) = got.strip_prefix("not asked: ") {
            self.not_asked.push((format!("{place}, {name}"), why.to_owned()));
        } else {
            let was_looked_at = looked_at.contains(&format!("{stage} | {name} | {got}"));
            let expected = text(check, "expected");
            let place = place.to_owned();
            self.differences.push(Difference { place, check: name, expected, got, was_looked_at });
        }
    }

    /// Returns true if each step of the path passed.
    fn path_succeeded(&self) -> bool {
        !self.path.is_empty() && self.path.iter().all(|step| step.outcome == "passed")
    }

    /// Returns the page, in Markdown.
    fn page(&self, folder: &Path) -> String {
        let title = self.system.clone().unwrap_or_else(|| folder.display().to_string());
        let mut page = format!("# {title}\n\n");
        if self.path.is_empty() {
            page += "This leg has no path: it gives evidence only.\n";
        } else {
            let word = if self.path_succeeded() { "succeeded" } else { "**failed**" };
            let _ = write!(
                page,
                "The path {word}.\n\n| leg | step | result | reason |\n|---|---|---|---|\n"
            );
            for step in &self.path {
                let Step { leg, stage, outcome, reason } = step;
                let _ = writeln!(page, "| {leg} | {stage} | {outcome} | {} |", cell(reason));
            }
        }
        let _ = write!(
            page,
            "\n## Evidence\n\n{} checks agree, {} differ, {} could not be made.\n",
            self.agreed,
            self.differences.len(),
            self.not_asked.len()
        );
        if !self.differences.is_empty() {
            page += "\n| stage | check | expected | got | looked at |\n|---|---|---|---|---|\n";
            for one in &self.differences {
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {} | {} |",
                    one.place,
                    cell(&one.check),
                    cell(&one.expected),
                    cell(&one.got),
                    if one.was_looked_at { "yes" } else { "no" }
                );
            }
        }
        if !self.not_asked.is_empty() {
            page += "\n### What could not be asked\n\n";
            for (what, why) in &self.not_asked {
                let _ = writeln!(page, "- {what}: {}", cell(why));
            }
        }
        page.push('\n');
        page
    }
}

/// Returns text for a cell of a table: one line, in which no bar ends the cell.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Keeps a system's answers among those of the stand-in kernel's crate, and returns their comparison.
fn keep_and_compare(answers: &Path) -> Result<String> {
    let name = match name_of(answers) {
        Ok(name) => name,
        Err(reason) => {
            return Ok(format!("The answers to the probes cannot be read: {reason}\n\n"));
        }
    };
    let kept = root().join(ANSWERS).join(name);
    files::copy(answers, &kept)?;
    eprintln!("kept as {}; `cargo xtask renew probes` adds it to the page", kept.display());
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok("On x86-64 Linux, `cargo xtask answers` compares the answers to the probes.\n"
            .to_owned());
    }
    let program = step("Building the probes", || program("etw-probes", "probes", false))?;
    let text = printed(Command::new(program).arg("--compare").arg(&kept))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the name of an answers file: the system's build and architecture.
fn name_of(answers: &Path) -> Result<String, String> {
    let file = read_json(answers)?;
    let part = |name: &str| {
        let part = text(&file["system"], name);
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "._-".contains(one);
        if part.is_empty() || part.starts_with('.') || !part.chars().all(is_plain) {
            return Err(format!("its system has the {name} {part:?}"));
        }
        Ok(part)
    };
    Ok(format!("{}-{}.json", part("build")?, part("architecture")?))
}

#[cfg(test)]
mod tests;
