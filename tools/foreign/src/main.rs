//! `cargo foreign`: builds other publishers' drivers, runs them in the stand-in kernel, and
//! compares the results with the expected ones.
//!
//! The drivers come from checkouts of Microsoft's sample repositories and of a book's repository.
//! This repository contains none of their text: `samples.json` lists the projects, the steps to run
//! and the expected results. C drivers are compiled with clang and the headers of a WDK or of
//! packages that contain them; the entry code is from this project's C driver. WDK tools that only
//! run on Windows are not used: WPP macros expand to nothing, and the headers for WMI classes and
//! events are generated from MOF files and manifests.
//!
//! `cargo foreign --suite wine` runs Wine's tests of the kernel's routines; see the module `suite`.

mod compile;
mod events;
mod link;
mod mof;
mod project;
mod sources;
mod suite;

use std::{
    fmt::Write as _,
    path::{self, Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use driver_build::{
    files,
    process::{output_of, run_quietly},
    progress::step,
};
use serde::Deserialize;
use serde_json::Value;

use compile::{Compiler, REGISTRY_FILE, root, target};

/// The projects and their expected results.
const SAMPLES: &str = include_str!("../samples.json");

/// A project in a repository.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    /// The project's path in its repository: a `.vcxproj`, or the folder of a Rust driver.
    project: String,
    /// The steps to run; by default, a device is started and removed.
    #[serde(default)]
    script: Vec<String>,
    /// The folders that the driver expects on its volume. If there are none, it gets no volume.
    #[serde(default)]
    folders: Vec<String>,
    /// Lines of a Registry Editor file, for values that the driver's INF file sets.
    #[serde(default)]
    registry: Vec<String>,
    /// The macros that clang needs in addition to the project's.
    #[serde(default)]
    definitions: Vec<String>,
    /// The projects of static libraries to link with the driver.
    #[serde(default)]
    libraries: Vec<String>,
    /// The expected result.
    expect: Expected,
    /// The reason, if the driver is not expected to run without findings.
    #[serde(default)]
    why: String,
}

/// The expected result of a project.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Expected {
    /// The project builds, and runs without findings.
    Passes,
    /// The project builds, and running it yields a finding with this text.
    Finds(String),
    /// The project does not build with clang, Linux and the published headers; the error contains
    /// this text.
    DoesNotBuild(String),
}

/// A repository of samples.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repository {
    /// The owner on github.com.
    owner: String,
    /// The name, which is also the folder's name.
    name: String,
    /// The commit for which the expectations were written.
    commit: String,
    samples: Vec<Sample>,
}

/// The observed result of a project.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Passed,
    Found(Vec<String>),
    NotBuilt(String),
    /// The project was built, but the program that ran it ended without a summary.
    Broken(String),
    /// The checkout is at the expected commit, but lacks the file.
    Missing,
    /// The checkout is at another commit and lacks the file, or tools are missing.
    NotTried(String),
}

/// Build and run the drivers of Microsoft's repositories of samples.
#[derive(Debug, Parser)]
#[command(name = "foreign", bin_name = "cargo foreign")]
struct Options {
    /// The folder with the checkouts of the sample repositories or, with --suite, the suite's checkout.
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// A folder with the WDK's headers; can be repeated. Without one, C drivers are skipped.
    #[arg(long, value_name = "FOLDER")]
    headers: Vec<PathBuf>,
    /// Run the projects with this text in their path, or the test functions in their name.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Run the tests of Wine's ntoskrnl.exe, from the checkout that --from names.
    #[arg(long, value_name = "NAME", value_parser = ["wine"], conflicts_with = "headers")]
    suite: Option<String>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the drivers, and returns whether the results match the expected ones.
///
/// # Errors
///
/// Fails if there are no checkouts, if tools are missing, or if no driver was tried.
fn run(options: &Options) -> Result<bool> {
    if options.suite.is_some() {
        let kernel = || Ok(Programs::build(&["standin-kernel"])?.kernel);
        return suite::run(&options.from, options.only.as_deref(), kernel);
    }
    let repositories: Vec<Repository> =
        serde_json::from_str(SAMPLES).context("samples.json cannot be read")?;
    let present: Vec<(&Repository, PathBuf)> = repositories
        .iter()
        .filter_map(|one| Some((one, checkout(&options.from, &one.name)?)))
        .collect();
    ensure!(
        !present.is_empty(),
        "{} contains none of the repositories: clone {} there, or name their folder with --from",
        options.from.display(),
        repositories
            .iter()
            .map(|one| format!("github.com/{}/{}", one.owner, one.name))
            .collect::<Vec<_>>()
            .join(" or ")
    );
    let programs = Programs::build(&["standin-kernel", "cargo-etw"])?;
    let compiler = Compiler::new(&options.headers);
    if let Err(error) = &compiler {
        println!("Skipping C drivers: {error:#}");
    }
    let mut rows = Vec::new();
    for (repository, folder) in &present {
        let commit = commit_of(folder);
        println!("{}{}", repository.name, age_of(repository, commit.as_deref()));
        let is_same_commit = commit.as_deref() == Some(&repository.commit);
        let chosen = repository.samples.iter().filter(|sample| {
            let only = options.only.as_deref();
            only.is_none_or(|only| sample.project.contains(only))
        });
        for sample in chosen {
            let compiler = compiler.as_ref().ok();
            let seen = try_sample(sample, folder, is_same_commit, compiler, &programs)?;
            let is_right = agrees(&sample.expect, &seen);
            println!("{}", line(sample, &seen, is_right));
            rows.push(is_right);
        }
    }
    conclude(&rows)
}

/// Prints the number of projects with the expected result, and returns whether all projects have
/// it. Fails if no project was tried.
fn conclude(rows: &[Option<bool>]) -> Result<bool> {
    ensure!(!rows.is_empty(), "no project has the text of --only in its name");
    let wrong = rows.iter().filter(|right| **right == Some(false)).count();
    let tried = rows.iter().flatten().count();
    println!("{tried} of {} tried, {wrong} not as expected", rows.len());
    ensure!(
        tried > 0,
        "no project was tried, for the reasons above: name the folders with the WDK's headers with \
         --headers, and check out the commits that the expectations were written for"
    );
    Ok(wrong == 0)
}

/// Returns the folder of a repository: a subfolder of `from`, or `from` itself.
fn checkout(from: &Path, name: &str) -> Option<PathBuf> {
    let is_itself = from.file_name().is_some_and(|last| last == name);
    let folder = if is_itself { from.to_owned() } else { from.join(name) };
    folder.is_dir().then_some(folder)
}

/// The programs that run drivers.
struct Programs {
    /// `standin-kernel`, for images.
    kernel: PathBuf,
    /// `cargo-etw`, for crates.
    cargo_etw: PathBuf,
}

impl Programs {
    /// Builds the programs of `packages`, and returns the programs' paths.
    fn build(packages: &[&str]) -> Result<Self> {
        step("Building the stand-in kernel", || {
            let mut command = Command::new("cargo");
            command.current_dir(root()).args(["build", "--locked", "--bins"]);
            command.args(["--features", "standin-kernel/run"]);
            for package in packages {
                command.args(["--package", package]);
            }
            run_quietly(&mut command)
        })?;
        let folder = target().join("debug");
        Ok(Self { kernel: folder.join("standin-kernel"), cargo_etw: folder.join("cargo-etw") })
    }
}

/// Builds and runs a project.
fn try_sample(
    sample: &Sample,
    repository: &Path,
    is_same_commit: bool,
    compiler: Option<&Compiler>,
    programs: &Programs,
) -> Result<Seen> {
    let path = repository.join(&sample.project);
    if !path.exists() {
        return Ok(if is_same_commit {
            Seen::Missing
        } else {
            Seen::NotTried("the checkout does not have it".to_owned())
        });
    }
    let out = target()
        .join("foreign")
        .join(sample.project.replace(['/', '\\'], "_").trim_end_matches(".vcxproj"));
    files::create_dir_all(&out)?;
    let script = if sample.script.is_empty() {
        None
    } else {
        let file = out.join("steps.txt");
        files::write(&file, sample.script.join("\n"))?;
        Some(file)
    };
    let is_crate = path.is_dir();
    let mut command = if is_crate {
        // The driver is a member of the repository's workspace. Building it leaves nothing in the
        // checkout.
        let name = repository.file_name().unwrap_or_default();
        let mut command = Command::new(&programs.cargo_etw);
        command.current_dir(&path).args(["etw", "run", "--target-dir"]);
        command.arg(path::absolute(target().join("foreign").join(name))?);
        command
    } else {
        let Some(compiler) = compiler else {
            return Ok(Seen::NotTried("no headers".to_owned()));
        };
        let mut project = project::read(&path)?;
        project.definitions.extend(sample.definitions.clone());
        for library in &sample.libraries {
            project.absorb(project::read(&repository.join(library))?);
        }
        let image = match compiler.build(&project, repository, &out) {
            Ok(image) => image,
            Err(error) => {
                return Ok(Seen::NotBuilt(format!("{error:#}")));
            }
        };
        let mut command = Command::new(&programs.kernel);
        command.arg("run").arg(image);
        command
    };
    command
        .args(["--no-notes", "--message-format", "json", "--etl"])
        .arg(out.join("trace.etl"))
        .stdin(Stdio::null());
    if let Some(script) = script {
        command.arg("--script").arg(script);
    }
    if !sample.registry.is_empty() {
        let file = out.join("values.reg");
        let text = format!("{REGISTRY_FILE}\n\n{}\n", sample.registry.join("\n"));
        files::write(&file, text)?;
        command.arg("--registry").arg(file);
    }
    if !sample.folders.is_empty() {
        let volume = out.join("volume");
        for folder in &sample.folders {
            let folder = volume.join(folder);
            files::create_dir_all(&folder)?;
        }
        command.arg("--folder").arg(volume);
    }
    let output = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let log = out.join("output.jsonl");
    files::write(&log, lines.as_bytes())?;
    Ok(seen(&lines, &String::from_utf8_lossy(&output.stderr), output.status.success(), is_crate))
}

/// If a checkout is at another commit, returns a note with the commit for which the expectations
/// were written.
fn age_of(repository: &Repository, commit: Option<&str>) -> String {
    let expected = repository.commit.as_str();
    match commit {
        Some(found) if found == expected => format!(" at {found}"),
        Some(found) => format!(
            " at {found}; the expectations were written for {expected}, and may not hold for it"
        ),
        None => format!("; it has no commit, and the expectations were written for {expected}"),
    }
}

/// Returns a checkout's commit.
fn commit_of(folder: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["rev-parse", "HEAD"]);
    Some(output_of(&mut git)?.trim().to_owned())
}

/// Returns the result that a run's output shows. The program that runs a crate also builds it, and
/// reports that before it runs the driver.
fn seen(lines: &str, errors: &str, is_success: bool, is_crate: bool) -> Seen {
    let mut findings = Vec::new();
    let mut has_run = false;
    let mut is_built = !is_crate;
    for line in lines.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        match line["reason"].as_str() {
            Some("finding") => findings.push(line["message"].as_str().unwrap_or("?").to_owned()),
            Some("driver-image") => is_built = true,
            Some("run-summary") => has_run = true,
            _ => {}
        }
    }
    let tail = || {
        let lines: Vec<&str> = errors.lines().collect();
        let first = lines.len().saturating_sub(3);
        lines.get(first..).unwrap_or_default().join(" ")
    };
    match (has_run, is_success) {
        (false, _) if is_built => Seen::Broken(tail()),
        (false, _) => Seen::NotBuilt(tail()),
        (true, true) => Seen::Passed,
        (true, false) if findings.is_empty() => Seen::Found(vec![tail()]),
        (true, false) => Seen::Found(findings),
    }
}

/// Returns whether the observed result is the expected one, or `None` if the project was not tried.
fn agrees(expected: &Expected, seen: &Seen) -> Option<bool> {
    Some(match (expected, seen) {
        (_, Seen::NotTried(_)) => return None,
        (Expected::Passes, seen) => *seen == Seen::Passed,
        (Expected::Finds(text), Seen::Found(all)) => all.iter().any(|one| one.contains(text)),
        (Expected::DoesNotBuild(text), Seen::NotBuilt(error)) => error.contains(text),
        _ => false,
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Returns a line of the table.
fn line(sample: &Sample, seen: &Seen, is_right: Option<bool>) -> String {
    let mark = match is_right {
        None => "-",
        Some(true) => "ok",
        Some(false) => "WRONG",
    };
    let (what, details) = match seen {
        Seen::Passed => ("passed", String::new()),
        Seen::Found(all) => ("found", all.join("; ")),
        Seen::NotBuilt(why) => ("does not build", first_line(why).to_owned()),
        Seen::Missing => ("missing", "the checkout does not have it".to_owned()),
        Seen::Broken(why) => ("does not end", why.clone()),
        Seen::NotTried(why) => ("not tried", why.clone()),
    };
    let mut text = format!("  {mark:<6} {:<14} {}", what, sample.project);
    let why =
        if is_right == Some(true) && !sample.why.is_empty() { sample.why.clone() } else { details };
    if !why.is_empty() {
        text.push_str("\n                        ");
        text.push_str(&why.replace('\n', "\n                        "));
    }
    if is_right == Some(false) {
        let _ = write!(text, "\n                        expected: {:?}", sample.expect);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_list_of_samples_is_valid() {
        let repositories: Vec<Repository> = serde_json::from_str(SAMPLES).unwrap();
        for repository in &repositories {
            assert_eq!(repository.commit.len(), 40, "{}", repository.name);
            for sample in &repository.samples {
                let is_reason_due = sample.expect != Expected::Passes;
                assert_eq!(is_reason_due, !sample.why.is_empty(), "{}", sample.project);
                if let Expected::Finds(text) | Expected::DoesNotBuild(text) = &sample.expect {
                    assert!(!text.is_empty(), "{}", sample.project);
                }
            }
        }
    }

    #[test]
    fn a_run_is_judged_by_its_findings() {
        let ran = r#"{"reason":"run-summary"}"#;
        assert_eq!(seen(ran, "", true, false), Seen::Passed);
        let found = format!("{{\"reason\":\"finding\",\"message\":\"bugcheck 0xD1\"}}\n{ran}");
        let all = seen(&found, "", false, false);
        assert_eq!(all, Seen::Found(vec!["bugcheck 0xD1".to_owned()]));
        assert_eq!(agrees(&Expected::Passes, &all), Some(false));
        assert_eq!(agrees(&Expected::Finds("0xD1".to_owned()), &all), Some(true));
        assert_eq!(agrees(&Expected::Finds("0xD2".to_owned()), &all), Some(false));
        let not_built = seen("", "error: no such thing\n", false, true);
        assert_eq!(not_built, Seen::NotBuilt("error: no such thing".to_owned()));
        let does_not_build = |text: &str| Expected::DoesNotBuild(text.to_owned());
        assert_eq!(agrees(&does_not_build("such thing"), &not_built), Some(true));
        assert_eq!(agrees(&does_not_build("cargo"), &not_built), Some(false));
        assert_eq!(agrees(&does_not_build(""), &Seen::Passed), Some(false));
        // A crash of the program that runs the driver is not a build failure.
        let image = r#"{"reason":"driver-image"}"#;
        for broken in [seen("", "killed\n", false, false), seen(image, "killed\n", false, true)] {
            assert_eq!(broken, Seen::Broken("killed".to_owned()));
            for expected in [does_not_build(""), Expected::Passes] {
                assert_eq!(agrees(&expected, &broken), Some(false));
            }
        }
        let not_tried = Seen::NotTried("no headers".to_owned());
        assert_eq!(agrees(&Expected::Passes, &not_tried), None);
        for expected in [does_not_build(""), Expected::Passes] {
            assert_eq!(agrees(&expected, &Seen::Missing), Some(false));
        }
    }

    #[test]
    fn a_run_that_tried_nothing_fails() {
        let error = conclude(&[None, None]).unwrap_err().to_string();
        assert!(error.contains("no project was tried"), "{error}");
        let error = conclude(&[]).unwrap_err().to_string();
        assert!(error.contains("--only"), "{error}");
        assert!(!conclude(&[Some(true), Some(false)]).unwrap());
        assert!(conclude(&[Some(true), None]).unwrap());
    }

    #[test]
    fn a_project_that_the_commit_should_have_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let sample: Sample =
            serde_json::from_str(r#"{"project": "gone.vcxproj", "expect": "passes"}"#).unwrap();
        let programs = Programs { kernel: PathBuf::new(), cargo_etw: PathBuf::new() };
        let seen = |is_same| try_sample(&sample, folder.path(), is_same, None, &programs).unwrap();
        assert_eq!(seen(true), Seen::Missing);
        assert!(matches!(seen(false), Seen::NotTried(_)));
    }

    #[test]
    fn expectations_for_another_commit_may_not_hold() {
        let repository = Repository {
            owner: "somebody".to_owned(),
            name: "from".to_owned(),
            commit: "0".repeat(40),
            samples: Vec::new(),
        };
        let said = |commit: Option<&str>| age_of(&repository, commit);
        assert_eq!(said(Some(&repository.commit)), format!(" at {}", repository.commit));
        assert!(said(Some("1")).contains("may not hold"));
        let folder = tempfile::tempdir().unwrap();
        assert!(said(commit_of(folder.path()).as_deref()).contains("it has no commit"));
    }

    #[test]
    fn a_folder_without_checkouts_is_told_what_to_clone() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            from: folder.path().to_owned(),
            headers: Vec::new(),
            only: None,
            suite: None,
        };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.contains("Windows-driver-samples"), "{error}");
        fs::create_dir(folder.path().join("a")).unwrap();
        assert_eq!(checkout(folder.path(), "b"), None);
        assert_eq!(checkout(&folder.path().join("a"), "a"), Some(folder.path().join("a")));
    }
}
