//! Runs the program in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use etl_fixtures::trace;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with the files of a test. The program runs in it, so that its arguments and messages
/// have only the files' names.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns a folder with a file.
    pub fn with(name: &str, contents: impl AsRef<[u8]>) -> Self {
        let folder = Self::new();
        folder.write(name, contents);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), contents).unwrap();
        self
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_etl"));
        command.current_dir(self.0.path()).args(arguments);
        command
    }

    pub fn etl(&self, arguments: &[&str]) -> Ran {
        Ran::run(&mut self.command(arguments))
    }
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: Option<i32>,
    /// The standard output.
    pub bytes: Vec<u8>,
    /// The standard error.
    pub said: String,
}

impl Ran {
    pub fn run(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        Self { code: output.status.code(), bytes: output.stdout, said }
    }

    /// Panics unless the program succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.said);
        self
    }

    /// Panics unless the program failed with one line that contains these texts.
    #[track_caller]
    pub fn fails(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.said);
        assert_eq!(self.said.lines().count(), 1, "{}", self.said);
        for text in texts {
            assert!(self.said.contains(text), "{text}: {}", self.said);
        }
    }

    /// Returns the standard output.
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }

    /// Returns the standard output's lines, which are JSON.
    pub fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Returns the path of the fixtures' manifest.
pub fn manifest() -> String {
    trace::manifest_path().to_str().unwrap().to_owned()
}
