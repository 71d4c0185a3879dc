//! `cargo foreign --suite wine`: builds the test drivers of Wine's ntoskrnl.exe from a checkout, runs them in the
//! stand-in kernel, and compares the verdicts of their checks with a list.
//!
//! Wine's tests pass on Windows, so a check that fails in the stand-in kernel is a difference from
//! Windows, unless the list says otherwise. The repository contains none of their text: `wine.json`
//! names the drivers, the steps that run their tests, and the checks that are expected to fail, by
//! hashes. Each test function runs in its own image and kernel, so that a call that the kernel does
//! not provide ends only that function.

mod build;
mod expected;
mod output;
mod source;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use driver_build::files;
use serde::Deserialize;

use crate::compile::{REGISTRY_FILE, target};
use build::Object;
use expected::{Driver, Outcome, Seen, compare};
use output::{NOT_PROVIDED, Run};
use source::{Source, hash, instrument};

/// The drivers, and what is expected of them.
const WINE: &str = include_str!("../../wine.json");

/// The list of a suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    drivers: Vec<Driver>,
}

/// Runs a checkout's suite, or the test functions whose names contain `only`, and returns whether
/// the results are the expected ones.
///
/// # Errors
///
/// Fails if the folder is not a checkout, if an image cannot be linked or run, or if no test
/// function is found.
pub fn run(
    from: &Path,
    only: Option<&str>,
    kernel: impl FnOnce() -> Result<PathBuf>,
) -> Result<bool> {
    let suite: Suite = serde_json::from_str(WINE).context("wine.json cannot be read")?;
    let present = |one: &&Driver| from.join(&one.source).is_file();
    ensure!(
        suite.drivers.iter().any(|one| present(&one)),
        "{} has no {}: name a checkout of Wine's source with --from",
        from.display(),
        suite.drivers.first().map_or("test drivers", |one| &one.source)
    );
    let kernel = kernel()?;
    let mut problems = 0;
    let mut functions = 0;
    for driver in &suite.drivers {
        if !present(&driver) {
            println!("{}: the checkout does not have it", driver.source);
            problems += 1;
            continue;
        }
        let (count, seen) = run_driver(driver, from, only, &kernel)?;
        problems += count;
        functions += seen;
    }
    ensure!(functions + problems > 0, "no test function has the text of --only in its name");
    println!(
        "{}",
        match problems {
            0 => "all results are as expected".to_owned(),
            _ => format!("not as expected: {problems}"),
        }
    );
    Ok(problems == 0)
}

/// Runs a driver's test functions, and returns the number of problems and of functions.
fn run_driver(
    driver: &Driver,
    from: &Path,
    only: Option<&str>,
    kernel: &Path,
) -> Result<(usize, usize)> {
    let path = from.join(&driver.source);
    let text = String::from_utf8_lossy(&files::read(&path)?).into_owned();
    let version = format!("{:016x}", hash([text.as_str()]));
    let known = driver.versions.get(&version).copied();
    println!(
        "{}{}",
        driver.source,
        if known.is_some() {
            String::new()
        } else {
            format!(": version {version}; the list was written for others, and may not hold for it")
        }
    );
    let out = target().join("foreign/wine").join(&driver.image);
    let runner = match Runner::new(driver, &text, from, kernel, out) {
        Ok(runner) => runner,
        Err(error) => {
            println!("    not built: {error:#}");
            return Ok((1, 0));
        }
    };
    let seen = runner.run_all(&Source::new(&text), only)?;
    println!("    {}", summary(driver, &seen));
    let differences = compare(driver, &seen, known, only.is_none());
    for one in &differences.expected {
        println!("    as expected: {one}");
    }
    for note in &differences.notes {
        println!("    note: {note}");
    }
    for problem in &differences.problems {
        println!("    {problem}");
    }
    Ok((differences.problems.len(), seen.functions.len()))
}

/// Returns the counts of checks and functions as text.
fn summary(driver: &Driver, seen: &Seen) -> String {
    let sum = |count: fn(&Outcome) -> usize| seen.checks.values().map(count).sum::<usize>();
    let listed = driver.checks.iter().filter_map(|one| seen.checks.get(&one.check));
    let expected: usize = listed.map(|one| one.failed).sum();
    let ends: Vec<&String> = seen.functions.values().flatten().collect();
    let unprovided = ends.iter().filter(|end| end.contains(NOT_PROVIDED)).count();
    format!(
        "{} checks passed, {} failed, {expected} of them as expected, {} omitted by the driver; \
         {} of {} functions ran to their end, {unprovided} ended with a call that the kernel does \
         not provide",
        sum(|one| one.passed),
        sum(|one| one.failed),
        seen.skips,
        seen.functions.len() - ends.len(),
        seen.functions.len(),
    )
}

/// Runs a driver's images.
struct Runner<'a> {
    object: Object,
    driver: &'a Driver,
    kernel: &'a Path,
    out: PathBuf,
}

impl<'a> Runner<'a> {
    /// Compiles a driver of a checkout.
    fn new(
        driver: &'a Driver,
        text: &str,
        from: &Path,
        kernel: &'a Path,
        out: PathBuf,
    ) -> Result<Self> {
        files::create_dir_all(&out)?;
        let source = from.join(&driver.source);
        let folder = source.parent().unwrap_or(from);
        let object = build::compile(&instrument(text), folder, &from.join("include"), &out)?;
        Ok(Self { object, driver, kernel, out })
    }

    /// Runs the driver without its test functions, and then each of them.
    fn run_all(&self, source: &Source, only: Option<&str>) -> Result<Seen> {
        let mut seen = Seen::default();
        let alone = self.run("")?;
        let functions = alone.found.clone();
        let add = |run: &Run, seen: &mut Seen, is_new: &dyn Fn(&str) -> bool| {
            for one in &run.checks {
                let check = source.check(one.line, &one.arguments);
                if one.is_right && !is_new(&check.hash) {
                    continue;
                }
                let outcome = seen.checks.entry(check.hash).or_default();
                (outcome.function, outcome.line) = (check.function, one.line);
                if one.is_right {
                    outcome.passed += 1;
                } else {
                    outcome.failed += 1;
                    if outcome.message.is_empty() {
                        outcome.message.clone_from(&one.message);
                    }
                }
            }
            seen.skips += run.skips;
        };
        add(&alone, &mut seen, &|_| true);
        // The checks outside of test functions are evaluated in each run, and count once if they pass.
        let known: Vec<String> = seen.checks.keys().cloned().collect();
        if let Some(end) = &alone.ended {
            seen.functions.insert("DriverEntry".to_owned(), Some(end.clone()));
        }
        for function in functions.iter().filter(|one| only.is_none_or(|only| one.contains(only))) {
            let run = self.run(function)?;
            add(&run, &mut seen, &|hash| !known.iter().any(|one| one == hash));
            let is_whole = run.is_entered && run.is_left;
            // If the driver also ends in this way without the function, the function is not the
            // cause.
            let end = run.ended.filter(|end| !is_whole || alone.ended.as_ref() != Some(end));
            let end = end.or_else(|| (!is_whole).then(|| "its thread ended".to_owned()));
            seen.functions.insert(function.clone(), end);
        }
        Ok(seen)
    }

    /// Runs one test function, or none.
    fn run(&self, chosen: &str) -> Result<Run> {
        let out = self.out.join(if chosen.is_empty() { "none" } else { chosen });
        // A function that ended early leaves its files behind.
        files::remove_dir_all(&out)?;
        let volume = out.join("volume");
        for folder in self.driver.folders.iter().map(|one| volume.join(one)).chain([volume.clone()])
        {
            files::create_dir_all(folder)?;
        }
        let image = out.join(&self.driver.image).with_extension("sys");
        self.object.link(chosen, &image)?;
        let (script, registry) = (out.join("steps.txt"), out.join("values.reg"));
        files::write(&script, self.driver.steps.join("\n"))?;
        files::write(
            &registry,
            format!("{REGISTRY_FILE}\n\n{}\n", self.driver.registry.join("\n")),
        )?;
        let output = Command::new(self.kernel)
            .arg("run")
            .arg(image)
            .args(["--no-notes", "--message-format", "json", "--etl"])
            .arg(out.join("trace.etl"))
            .arg("--script")
            .arg(script)
            .arg("--registry")
            .arg(registry)
            .arg("--folder")
            .arg(volume)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.kernel.display()))?;
        files::write(out.join("output.jsonl"), &output.stdout)?;
        Ok(output::read(
            &String::from_utf8_lossy(&output.stdout),
            &String::from_utf8_lossy(&output.stderr),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;
    use crate::compile::root;

    const SOURCE: &str = "wine/test_driver.c";

    #[test]
    fn the_list_is_valid() {
        let suite: Suite = serde_json::from_str(WINE).unwrap();
        for driver in &suite.drivers {
            let mut names: Vec<&String> = driver.checks.iter().map(|one| &one.check).collect();
            assert!(names.iter().all(|one| one.len() == 16), "{names:?}");
            names.extend(driver.ends.iter().map(|one| &one.function));
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
            let reasons = driver.checks.iter().map(|one| (&one.function, &one.why));
            let reasons = reasons.chain(driver.ends.iter().map(|one| (&one.with, &one.why)));
            for (name, why) in reasons {
                assert!(why.ends_with('.') && !name.is_empty(), "{name}: {why}");
            }
        }
    }

    #[test]
    fn a_folder_that_is_no_checkout_is_told_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(folder.path(), None, || unreachable!()).unwrap_err().to_string();
        assert!(error.contains("dlls/ntoskrnl.exe/tests/driver.c"), "{error}");
    }

    /// Runs the shim's own driver.
    fn run_own(only: Option<&str>) -> (Driver, Seen) {
        let folder = tempfile::tempdir().unwrap();
        let driver: Driver = serde_json::from_value(serde_json::json!({
            "source": SOURCE, "image": "ShimTest", "steps": ["open", "ioctl 0x222000", "close"],
            "versions": {},
        }))
        .unwrap();
        // `cargo test` builds the programs of the workspace's members beside the folder of the tests.
        let kernel = env::current_exe().unwrap().with_file_name("../standin-kernel");
        assert!(kernel.is_file(), "{} is not built", kernel.display());
        let from = root().join("tools/foreign");
        let text = files::read_to_string(from.join(SOURCE)).unwrap();
        let runner =
            Runner::new(&driver, &text, &from, &kernel, folder.path().join("out")).unwrap();
        let seen = runner.run_all(&Source::new(&text), only).unwrap();
        (driver, seen)
    }

    #[test]
    #[ignore = "needs mingw-w64 and the stand-in kernel's program; `cargo xtask test` runs it"]
    fn the_shim_reports_each_verdict() {
        let (driver, seen) = run_own(None);
        let counts = |function: &str| {
            let all = seen.checks.values().filter(|one| one.function == function);
            all.fold((0, 0), |sum, one| (sum.0 + one.passed, sum.1 + one.failed))
        };
        let expected = [
            ("DriverEntry", (1, 0)),
            // Outside of test functions, it counts once.
            ("dispatch", (1, 0)),
            ("test_passing", (8, 0)),
            ("test_failing", (4, 2)),
            ("test_skipping", (1, 0)),
            ("test_marked", (3, 1)),
            ("test_inner", (1, 0)),
            ("test_outer", (1, 0)),
            ("test_unprovided", (1, 0)),
            ("thread", (1, 1)),
            ("test_thread", (2, 0)),
        ];
        for (function, count) in expected {
            assert_eq!(counts(function), count, "{function}: {:#?}", seen.checks);
        }
        let mut failed: Vec<&str> = seen
            .checks
            .values()
            .filter(|one| one.failed > 0)
            .map(|one| one.message.as_str())
            .collect();
        failed.sort_unstable();
        let messages =
            ["got 1 of wide", "got 3, not below 3", "in a thread", "passes although marked"];
        assert_eq!(failed, messages);
        assert_eq!(seen.skips, 2);
        // The outer function contains the inner function.
        let functions: Vec<&str> = seen.functions.keys().map(String::as_str).collect();
        assert_eq!(
            functions,
            [
                "test_failing", "test_marked", "test_outer", "test_passing", "test_skipping",
                "test_thread", "test_unprovided",
            ]
        );
        let ends: Vec<&String> = seen.functions.values().flatten().collect();
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert!(ends[0].contains("NoKernelHasThisRoutine"), "{ends:?}");
        assert_eq!(
            summary(&driver, &seen),
            "24 checks passed, 4 failed, 0 of them as expected, 2 omitted by the driver; 6 of 7 \
             functions ran to their end, 1 ended with a call that the kernel does not provide"
        );
        assert_eq!(compare(&driver, &seen, Some(0), true).problems.len(), 5);
    }

    #[test]
    #[ignore = "needs mingw-w64 and the stand-in kernel's program; `cargo xtask test` runs it"]
    fn only_some_functions_run() {
        let (_, seen) = run_own(Some("thread"));
        assert_eq!(seen.functions.keys().collect::<Vec<_>>(), ["test_thread"]);
        assert!(seen.checks.values().any(|one| one.function == "thread"));
    }
}
