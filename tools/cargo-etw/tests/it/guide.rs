//! Executes docs/your-own-driver.md, command by command, in a fresh folder outside the checkout.
//!
//! The info strings of the guide's fenced blocks control the test:
//!
//! - `sh`: a script that must succeed. A `text` block after it contains lines that the script's
//!   output must contain in this order; `…` matches anything.
//! - `file=NAME` after the language: a new file. In a `diff` block: changes to a file, separated by
//!   `@@`.
//! - `new`, `existing`, `path`, `git`: the block belongs only to this route.
//!
//! To save time and to be repeatable, the test deviates from the guide: it builds everything in the
//! checkout's target folder with the drivers' kind of debug information, uses the package versions in
//! the checkout's lock file, and copies the cargo-etw that the tests use instead of installing it. If
//! the variable `WDK_ETW_INSTALL` is set, as by `cargo xtask test --deep`, it installs cargo-etw,
//! without optimizations.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use etw_test_support::root;
use tempfile::TempDir;

use crate::common;

/// A fenced block in the guide.
#[derive(Debug)]
struct Block {
    line: usize,
    language: String,
    /// The words after the language.
    tags: Vec<String>,
    text: String,
}

impl Block {
    fn file(&self) -> Option<&str> {
        self.tags.iter().find_map(|tag| tag.strip_prefix("file="))
    }

    /// Returns whether the block belongs to a route, given by its tags.
    fn is_on(&self, route: &[&str]) -> bool {
        const ALL: [&str; 4] = ["new", "existing", "path", "git"];
        self.tags
            .iter()
            .filter(|tag| ALL.contains(&tag.as_str()))
            .all(|tag| route.contains(&tag.as_str()))
    }
}

/// Returns the fenced blocks in a Markdown text.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let mut words = info.split(',').map(str::to_owned);
                open = Some(Block {
                    line: number + 1,
                    language: words.next().unwrap_or_default(),
                    tags: words.collect(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Returns whether a line contains the parts of a pattern, separated by `…`, in order.
fn matches(pattern: &str, line: &str) -> bool {
    let mut rest = line;
    pattern.split('…').map(str::trim).all(|part| {
        let found = rest.find(part);
        if let Some(at) = found {
            rest = &rest[at + part.len()..];
        }
        found.is_some()
    })
}

/// Returns the first expected line that does not follow the earlier ones in the output.
fn missing<'a>(expected: &'a str, output: &str) -> Option<&'a str> {
    let mut lines = output.lines();
    expected.lines().find(|pattern| !lines.any(|line| matches(pattern, line)))
}

/// Applies the changes of a `diff` block to a file's text.
fn apply(diff: &str, text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    for change in diff.split("@@\n") {
        let side = |left_out: char| -> String {
            let lines = change.lines().filter(|line| !line.starts_with(left_out));
            lines.map(|line| line.get(1..).unwrap_or_default().to_owned() + "\n").collect()
        };
        let (old, new) = (side('+'), side('-'));
        if text.matches(&old).count() != 1 {
            return Err(format!("expected exactly one occurrence in the text of:\n{old}"));
        }
        text = text.replace(&old, &new);
    }
    Ok(text)
}

/// The folders in which the guide is followed.
struct Machine {
    folder: TempDir,
    /// The current folder.
    here: PathBuf,
    /// The checkout's target folder.
    target: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { here: folder.path().to_owned(), folder, target: common::target() }
    }

    /// Returns a shell with an author's environment.
    fn shell(&self) -> Command {
        let mut shell = Command::new("sh");
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            let is_cargos = text == "CARGO"
                || ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
                    .iter()
                    .any(|prefix| text.starts_with(prefix));
            if is_cargos {
                shell.env_remove(name);
            }
        }
        let installed = self.folder.path().join("cargo");
        let mut path = vec![installed.join("bin")];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        shell
            .current_dir(&self.here)
            .env("CARGO_INSTALL_ROOT", installed)
            .env("PATH", env::join_paths(path).unwrap())
            .envs(common::shared())
            .envs([common::DEBUG])
            .envs(common::WITHOUT_DEBUG)
            .env("CARGO_TERM_COLOR", "never")
            .env("WDK_ETW", root())
            .env("WDK_ETW_URL", self.url());
        shell
    }

    /// Returns the URL of the repository that [`Self::make_repository`] creates.
    fn url(&self) -> String {
        format!("file://{}", self.repository().display())
    }

    fn repository(&self) -> PathBuf {
        self.target.join("guide/wdk-etw")
    }

    /// Creates a repository from the checkout's current files. Its path is fixed, and identical
    /// files result in an identical commit, so that cargo does not accumulate copies.
    fn make_repository(&self) {
        const DATE: &str = "2026-01-01T00:00:00Z";
        let repository = self.repository();
        let _ = fs::remove_dir_all(&repository);
        let git = |folder: &Path, arguments: &[&str]| {
            let output = Command::new("git")
                .current_dir(folder)
                .args(["-c", "user.name=guide", "-c", "user.email=guide@localhost"])
                // The checkout can belong to another user.
                .args(["-c", "safe.directory=*"])
                .args(arguments)
                .env("GIT_AUTHOR_DATE", DATE)
                .env("GIT_COMMITTER_DATE", DATE)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "git {arguments:?}: {said}");
            String::from_utf8(output.stdout).unwrap()
        };
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        for name in git(&root(), &list).split_terminator('\0') {
            let (from, to) = (root().join(name), repository.join(name));
            // git also lists files that have been removed.
            if from.exists() {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(from, to).unwrap();
            }
        }
        git(&repository, &["init", "--quiet", "--initial-branch=main"]);
        git(&repository, &["add", "--all", "--force"]);
        git(&repository, &["commit", "--quiet", "--message=guide"]);
    }

    /// Runs a script, and returns its output.
    fn run(&mut self, script: &str) -> String {
        let place = self.folder.path().join("place");
        // These commands can share packages with other tests' builds only with the checkout's profile.
        let profile = "--config 'profile.dev.package.\"*\".debug=false'";
        // The tests share third-party packages with the checkout's tests. In the drivers' build folder, cargo
        // would compile some of them again, and afterwards again for the driver, because `cargo etw` sets
        // the variable `RUSTC_BOOTSTRAP`.
        let folder = format!("--config 'build.build-dir=\"{}\"'", self.target.display());
        let mut script = script.replace("cargo test", &format!("cargo test {folder} {profile}"));
        if env::var_os("WDK_ETW_INSTALL").is_some() {
            script = script.replace("cargo install ", &format!("cargo install --debug {profile} "));
        } else if let Some(line) = script.lines().find(|line| line.starts_with("cargo install ")) {
            let folder = self.folder.path().join("cargo/bin");
            fs::create_dir_all(&folder).unwrap();
            fs::copy(env!("CARGO_BIN_EXE_cargo-etw"), folder.join("cargo-etw")).unwrap();
            script = script.replace(line, "true");
        }
        let output = self
            .shell()
            .arg("-ec")
            .arg(format!("exec 2>&1\n{script}\npwd > \"$PLACE\""))
            .env("PLACE", &place)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}\n{said}");
        let here = fs::read_to_string(place).unwrap();
        self.here = PathBuf::from(here.trim_end());
        // A new driver, here or in a folder below, has no lock file yet. The checkout's lock file contains
        // versions that are present on this machine.
        let below = fs::read_dir(&self.here).unwrap().map(|entry| entry.unwrap().path());
        for folder in below.chain([self.here.clone()]) {
            let lock = folder.join("Cargo.lock");
            if folder.join("Cargo.toml").exists() && !lock.exists() {
                fs::copy(root().join("Cargo.lock"), lock).unwrap();
            }
        }
        said
    }
}

/// Locked while the guide is followed, because the routes share the target folder.
static ONE: Mutex<()> = Mutex::new(());

/// Follows the guide on a route.
fn execute(machine: &mut Machine, route: &[&str]) {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join("docs/your-own-driver.md");
    let blocks = blocks(&fs::read_to_string(path).unwrap());
    let blocks: Vec<&Block> = blocks.iter().filter(|block| block.is_on(route)).collect();
    let mut executed = 0;
    for (number, block) in blocks.iter().enumerate() {
        let place = format!("docs/your-own-driver.md:{}", block.line);
        if let Some(name) = block.file() {
            let path = machine.here.join(name);
            let text = if block.language == "diff" {
                let text = fs::read_to_string(&path).unwrap();
                apply(&block.text, &text).unwrap_or_else(|error| panic!("{place}: {name}: {error}"))
            } else {
                block.text.clone()
            };
            fs::write(path, text).unwrap();
            continue;
        }
        if block.language != "sh" {
            continue;
        }
        let start = Instant::now();
        let output = machine.run(&block.text);
        let seconds = start.elapsed().as_secs_f32();
        println!("{place} ({route:?}, {seconds:.1} s)\n{output}");
        executed += 1;
        let expected =
            blocks.get(number + 1).filter(|next| next.language == "text" && next.file().is_none());
        if let Some(expected) = expected
            && let Some(line) = missing(&expected.text, &output)
        {
            panic!("{place}: the output lacks the line {line:?}:\n{output}");
        }
    }
    assert!(executed > 4, "{executed} blocks were executed");
}

#[test]
fn blocks_patterns_and_changes_are_read() {
    let read = blocks("a\n```sh,new,file=x\nb\n```\nc\n```text\nd\n\n```\n");
    assert_eq!(read.len(), 2);
    assert_eq!((read[0].line, read[0].text.as_str()), (2, "b\n"));
    assert_eq!(read[0].file(), Some("x"));
    assert!(read[0].is_on(&["new", "git"]) && !read[0].is_on(&["existing", "git"]));
    assert_eq!(read[1].text, "d\n\n");
    assert!(matches("load … as x", "load /a b/c as x"));
    assert!(!matches("as … load", "load /a as x"));
    assert_eq!(missing("b\nc\n", "a\nb\nc\n"), None);
    assert_eq!(missing("c\nb\n", "a\nb\nc\n"), Some("b"));
    let changed = apply(" a\n-b\n+c\n@@\n d\n+e\n", "a\nb\nd\n");
    assert_eq!(changed.unwrap(), "a\nc\nd\ne\n");
    assert!(apply(" x\n+y\n", "a\n").is_err());
    assert!(apply(" a\n+y\n", "a\na\n").is_err());
}

/// Tests that build drivers; `cargo xtask test` runs them in parallel with the other tests.
mod built_drivers {
    use super::*;

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn the_guide_is_executed_with_a_new_driver_and_git() {
        let mut machine = Machine::new();
        machine.make_repository();
        execute(&mut machine, &["new", "git"]);
    }

    #[test]
    #[ignore = "needs the cross toolchain; `cargo xtask test` runs it"]
    fn the_guide_is_executed_with_an_existing_driver_and_a_checkout() {
        let mut machine = Machine::new();
        let driver = machine.folder.path().join("fabrikam-meter");
        let from = root().join("tools/cargo-etw/tests/existing");
        fs::create_dir_all(driver.join("src")).unwrap();
        for (name, new) in [
            ("Cargo.toml.in", "Cargo.toml"),
            ("build.rs", "build.rs"),
            ("src/lib.rs", "src/lib.rs"),
        ] {
            fs::copy(from.join(name), driver.join(new)).unwrap();
        }
        fs::copy(root().join("Cargo.lock"), driver.join("Cargo.lock")).unwrap();
        machine.here = driver;
        execute(&mut machine, &["existing", "path"]);
    }
}
