//! The list of mutants that behave as the original code does, each with its reason.
//!
//! An entry matches by the file, the change, which names the function, and, where a function has several
//! such changes, a part of the line of code. Line numbers are not in the list: they change too often.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::outcome::{End, Mutant, Outcome, Summary};

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entries {
    #[serde(default)]
    equivalent: Vec<Entry>,
}

/// Mutants that no test can tell from the original.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The file, relative to the workspace's root.
    file: String,
    /// The function, as cargo-mutants names it.
    function: String,
    /// The change, as cargo-mutants prints it behind the place.
    change: String,
    /// A part of the line of code in which the change begins; needed if the function has several such
    /// changes.
    #[serde(default)]
    code: String,
    /// The reason why nobody can observe the change.
    reason: String,
}

impl Entry {
    fn matches(&self, mutant: &Mutant) -> bool {
        self.file == mutant.file
            && self.function == mutant.function
            && self.change == mutant.change
            && mutant.code.contains(&self.code)
    }

    fn describe(&self) -> String {
        let of = if self.code.is_empty() { String::new() } else { format!(" (`{}`)", self.code) };
        format!("{}: {}{of}", self.file, self.change)
    }
}

impl Entries {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// Fails if an entry is not complete.
    pub fn read(text: &str) -> Result<Self> {
        let entries: Self = toml::from_str(text).context("it is not as expected")?;
        for entry in &entries.equivalent {
            ensure!(
                !entry.reason.trim().is_empty(),
                "the entry {} has no reason; say why nobody can observe the change",
                entry.describe()
            );
        }
        Ok(entries)
    }

    /// Compares the list with all mutants of the code.
    ///
    /// # Errors
    ///
    /// Fails with all entries that match no mutant, or mutants in several lines of code.
    pub fn check(&self, all: &[Mutant]) -> Result<()> {
        let mut wrong = Vec::new();
        for entry in &self.equivalent {
            let mut codes: Vec<&str> = all
                .iter()
                .filter(|mutant| entry.matches(mutant))
                .map(|mutant| mutant.code.as_str())
                .collect();
            codes.dedup();
            match codes.as_slice() {
                [] => wrong.push(format!(
                    "{} matches no mutant; remove or correct the entry",
                    entry.describe()
                )),
                [_] => {}
                [first, second, ..] => wrong.push(format!(
                    "{} matches several mutants, in `{first}` and in `{second}`; choose one by a part of \
                     its line, as in `code = \"{first}\"`",
                    entry.describe()
                )),
            }
        }
        if !wrong.is_empty() {
            bail!("the list of equivalent mutants is wrong:\n- {}", wrong.join("\n- "));
        }
        Ok(())
    }

    /// Returns whether the list has a mutant.
    pub fn lists(&self, mutant: &Mutant) -> bool {
        self.equivalent.iter().any(|entry| entry.matches(mutant))
    }

    /// Returns the numbers of mutants, and a sentence for each missed mutant that the list does not have.
    pub fn explain(&self, outcomes: &[Outcome]) -> (Summary, Vec<String>) {
        let mut summary = Summary::default();
        let mut failures = Vec::new();
        for Outcome { mutant, end } in outcomes {
            match end {
                End::Unviable => summary.unviable += 1,
                End::Caught => summary.caught += 1,
                End::Missed if self.lists(mutant) => summary.explained += 1,
                End::Missed => {
                    summary.missed += 1;
                    failures.push(format!("missed: {mutant}"));
                }
            }
        }
        (summary, failures)
    }

    /// Returns a sentence for each entry all of whose mutants a test catches, given the outcomes of all
    /// mutants of some files.
    pub fn superfluous(&self, outcomes: &[Outcome]) -> Vec<String> {
        let is_superfluous = |entry: &&Entry| {
            let mut ran =
                outcomes.iter().filter(|outcome| entry.matches(&outcome.mutant)).peekable();
            ran.peek().is_some() && ran.all(|outcome| outcome.end == End::Caught)
        };
        self.equivalent
            .iter()
            .filter(is_superfluous)
            .map(|entry| {
                format!("listed as equivalent, but a test catches it: {}", entry.describe())
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(code: &str, line: u32) -> Mutant {
        Mutant {
            file: "src/a.rs".to_owned(),
            function: "is_small".to_owned(),
            change: "replace < with <= in is_small".to_owned(),
            code: code.to_owned(),
            place: format!("src/a.rs:{line}:7"),
        }
    }

    fn entries(rest: &str) -> Result<Entries> {
        Entries::read(&format!(
            "[[equivalent]]\nfile = \"src/a.rs\"\nfunction = \"is_small\"\n\
             change = \"replace < with <= in is_small\"\n{rest}"
        ))
    }

    const REASON: &str = "reason = \"3 never occurs\"\n";

    #[test]
    fn an_entry_has_a_reason() {
        for (rest, part) in [
            ("", "missing field `reason`"),
            ("reason = \" \"", "has no reason"),
            ("reason = \"x\"\nline = 7", "unknown field `line`"),
        ] {
            let error = format!("{:#}", entries(rest).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        assert!(Entries::read("").unwrap().equivalent.is_empty());
    }

    #[test]
    fn an_entry_matches_wherever_its_line_is() {
        let entries = entries(REASON).unwrap();
        entries.check(&[mutant("n < 3", 2)]).unwrap();
        entries.check(&[mutant("n < 3", 900)]).unwrap();
        // Two changes in one line of code have one reason.
        entries.check(&[mutant("n < 3 || m < 3", 2), mutant("n < 3 || m < 3", 2)]).unwrap();
    }

    #[test]
    fn an_entry_that_matches_nothing_or_several_lines_is_an_error() {
        let error = |entries: &Entries, all: &[Mutant]| entries.check(all).unwrap_err().to_string();
        let whole = entries(REASON).unwrap();
        let mut other = mutant("n < 3", 2);
        other.function = "is_large".to_owned();
        let text = error(&whole, &[other]);
        assert!(text.contains("matches no mutant"), "{text}");
        let two = [mutant("n < 3", 2), mutant("m < 3", 3)];
        let text = error(&whole, &two);
        assert!(text.contains("in `n < 3` and in `m < 3`"), "{text}");
        let one = entries(&format!("code = \"m <\"\n{REASON}")).unwrap();
        one.check(&two).unwrap();
        let text = error(&one, &two[..1]);
        assert!(text.contains("(`m <`) matches no mutant"), "{text}");
    }

    #[test]
    fn missed_mutants_are_explained_by_the_list() {
        let outcome = |code: &str, end| Outcome { mutant: mutant(code, 2), end };
        let entries = entries(&format!("code = \"n <\"\n{REASON}")).unwrap();
        let (summary, failures) = entries.explain(&[
            outcome("n < 3", End::Missed),
            outcome("m < 3", End::Missed),
            outcome("m < 3", End::Caught),
            outcome("n < 3", End::Unviable),
        ]);
        assert_eq!(failures, ["missed: src/a.rs:2:7: replace < with <= in is_small\n    m < 3"]);
        assert_eq!(
            summary.to_string(),
            "1 mutants caught, 1 equivalent, 1 missed; 1 did not compile"
        );
        assert_eq!(summary.all(), 4);
        // One of two changes in the line can be caught.
        let caught = outcome("n < 3", End::Caught);
        let both = [caught.clone(), outcome("n < 3", End::Missed)];
        assert!(entries.superfluous(&both).is_empty());
        assert!(entries.superfluous(&[outcome("m < 3", End::Caught)]).is_empty());
        let [sentence] = &entries.superfluous(&[caught])[..] else {
            panic!();
        };
        assert!(sentence.contains("a test catches it: src/a.rs"), "{sentence}");
    }
}
