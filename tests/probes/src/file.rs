//! The file of one system's answers, in JSON.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{
    answers::{Answer, Answers, System, Value, Values},
    list::probes,
};

/// The supported version of the files.
const VERSION: u64 = 1;

/// The key for the reason why a probe was not run.
const NOT_ASKED: &str = "not_asked";

/// The reasons why a string is not a valid answers file.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// The string is not JSON, or does not have the form of an answers file.
    #[error("this is not an answers file: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The file has another version.
    #[error("the answers file has version {0}; expected version {VERSION}")]
    Version(u64),
    /// The file answers a probe that does not exist.
    #[error(
        "the answers file answers `{0}`, which is not a probe; the file belongs to another \
         version of the probes; run the probes again"
    )]
    UnknownProbe(String),
    /// An answer has neither values nor a reason.
    #[error("the answer to `{0}` is empty; expected values, or \"not_asked\" with the reason")]
    Empty(String),
    /// An answer has both values and a reason why it has no values, or the reason is not a string.
    #[error(
        "the answer to `{0}` has an invalid \"not_asked\", which must be its only entry, and text"
    )]
    NotAsked(String),
}

/// The format of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u64,
    system: System,
    answers: BTreeMap<String, Values>,
}

/// The part of the format that is the same in all versions.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

impl Answers {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not an answers file of this version, or if it answers a
    /// probe that does not exist.
    pub fn read(text: &str) -> Result<Self, AnswersError> {
        let Version { version } = serde_json::from_str(text)?;
        if version != VERSION {
            return Err(AnswersError::Version(version));
        }
        let file: File = serde_json::from_str(text)?;
        let mut answers = BTreeMap::new();
        for (id, values) in file.answers {
            if !probes().any(|probe| probe.id == id) {
                return Err(AnswersError::UnknownProbe(id));
            }
            let answer = match values.0.get(NOT_ASKED) {
                None if values.0.is_empty() => return Err(AnswersError::Empty(id)),
                None => Answer::Found(values),
                Some(Value::Text(why)) if values.0.len() == 1 => Answer::NotAsked(why.clone()),
                Some(_) => return Err(AnswersError::NotAsked(id)),
            };
            answers.insert(id, answer);
        }
        Ok(Self { system: file.system, answers })
    }

    /// Writes the file, replacing it atomically: the contents are on disk before they receive the
    /// file's name.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let text = self.write().map_err(io::Error::other)?;
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let new = Path::new(&name);
        let mut file = fs::File::create(new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        drop(file);
        fs::rename(new, path)
    }

    /// Returns the contents of the file.
    ///
    /// # Errors
    ///
    /// Returns an error if serialization fails. Serialization does not fail for any answer.
    pub fn write(&self) -> Result<String, AnswersError> {
        let values = |answer: &Answer| match answer {
            Answer::Found(values) => values.clone(),
            Answer::NotAsked(why) => Values::default().with(NOT_ASKED, why.as_str()),
        };
        let file = File {
            version: VERSION,
            system: self.system.clone(),
            answers: self.answers.iter().map(|(id, answer)| (id.clone(), values(answer))).collect(),
        };
        let mut text = serde_json::to_string_pretty(&file)?;
        text.push('\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(answers: &str) -> String {
        format!(
            r#"{{"version": 1, "system": {{"name": "n", "build": "b", "architecture": "a"}},
                 "answers": {{{answers}}}}}"#
        )
    }

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let answers = Answers {
            system: System {
                name: "Windows".to_owned(),
                build: "10.0.1.2".to_owned(),
                architecture: "x86_64".to_owned(),
            },
            answers: BTreeMap::from([
                (
                    "traits-again".to_owned(),
                    Answer::Found(
                        Values::default()
                            .status("status", 0xC000_000D)
                            .with("kept", true)
                            .with("count", 3_u32),
                    ),
                ),
                ("timer".to_owned(), Answer::NotAsked("no timer".to_owned())),
            ]),
        };
        let text = answers.write().unwrap();
        assert!(text.contains("\"status\": \"0xc000000d\""), "{text}");
        assert_eq!(Answers::read(&text).unwrap(), answers);
    }

    #[test]
    fn malformed_files_are_refused_with_the_reason() {
        let error = |text: &str| Answers::read(text).unwrap_err().to_string();
        assert!(error("[]").starts_with("this is not an answers file: "));
        assert!(error(r#"{"version": 1}"#).contains("missing field `system`"));
        assert_eq!(
            error(r#"{"version": 7, "probes": []}"#),
            "the answers file has version 7; expected version 1"
        );
        assert!(error(&file(r#""what": {"a": 1}"#)).starts_with("the answers file answers `what`"));
        assert!(error(&file(r#""timer": {}"#)).starts_with("the answer to `timer` is empty"));
        for wrong in [r#"{"not_asked": 1}"#, r#"{"not_asked": "x", "y": 1}"#] {
            assert!(
                error(&file(&format!(r#""timer": {wrong}"#))).contains("must be its only entry")
            );
        }
        assert!(error(&file(r#""timer": {"a": null}"#)).starts_with("this is not"));
        assert!(error(&file(r#""timer": {"a": -1}"#)).starts_with("this is not"));
        assert!(Answers::read(&file("")).unwrap().answers.is_empty());
    }
}
