//! Reads what cargo-mutants writes: its list of mutants, and the outcome of each.

use std::{collections::HashMap, fmt, ops::AddAssign};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A mutant: one change of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The file, relative to the workspace's root.
    pub file: String,
    /// The function, or nothing for a mutant outside of functions.
    pub function: String,
    /// The change, as in `replace < with <= in is_pair`.
    pub change: String,
    /// The line of code in which the change begins, without the space around it.
    pub code: String,
    /// The file, the line and the column, as in `src/text.rs:7:5`.
    pub place: String,
}

impl Mutant {
    /// Returns the name that cargo-mutants gives the mutant.
    pub fn name(&self) -> String {
        format!("{}: {}", self.place, self.change)
    }

    /// Returns the line in which the change begins, counted from 1.
    ///
    /// # Errors
    ///
    /// Fails if the place has no line.
    pub fn line(&self) -> Result<usize> {
        let mut parts = self.place.rsplit(':').skip(1);
        let line = parts.next().and_then(|line| line.parse().ok());
        line.filter(|line| *line > 0)
            .with_context(|| format!("cargo-mutants gives a place without a line: {}", self.place))
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\n    {}", self.place, self.change, self.code)
    }
}

/// How the tests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A test failed, or ran into the time limit.
    Caught,
    /// All tests passed.
    Missed,
    /// The mutant does not compile.
    Unviable,
}

/// A mutant that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub mutant: Mutant,
    pub end: End,
}

/// The numbers of mutants by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub caught: usize,
    pub explained: usize,
    pub missed: usize,
    pub unviable: usize,
}

impl Summary {
    /// Returns the number of mutants.
    pub const fn all(self) -> usize {
        self.caught + self.explained + self.missed + self.unviable
    }
}

impl AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.caught += other.caught;
        self.explained += other.explained;
        self.missed += other.missed;
        self.unviable += other.unviable;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} mutants caught, {} equivalent, {} missed; {} did not compile",
            self.caught, self.explained, self.missed, self.unviable
        )
    }
}

/// Reads mutants. Source files are read once each, by `read_file`.
struct Reader<F> {
    read_file: F,
    sources: HashMap<String, Vec<String>>,
}

impl<F: Fn(&str) -> Result<String>> Reader<F> {
    fn new(read_file: F) -> Self {
        Self { read_file, sources: HashMap::new() }
    }

    fn mutant(&mut self, value: &Value) -> Result<Mutant> {
        let file = text(value, "file")?.to_owned();
        let name = text(value, "name")?;
        // The name is the file, the line and the column, then the change.
        let numbers = name.strip_prefix(&file).and_then(|rest| rest.split_once(": "));
        let (numbers, change) = numbers
            .with_context(|| format!("the mutant's name {name} does not begin with its place"))?;
        let line = value["span"]["start"]["line"]
            .as_u64()
            .and_then(|line| usize::try_from(line).ok()?.checked_sub(1))
            .with_context(|| format!("the mutant {name} has no line"))?;
        if !self.sources.contains_key(&file) {
            let source = (self.read_file)(&file)?;
            let lines = source.lines().map(|line| line.trim().to_owned()).collect();
            self.sources.insert(file.clone(), lines);
        }
        let code =
            self.sources.get(&file).and_then(|lines| lines.get(line)).with_context(|| {
                format!("the mutant {name} is behind the file's end; was it edited meanwhile?")
            })?;
        Ok(Mutant {
            function: value["function"]["function_name"].as_str().unwrap_or_default().to_owned(),
            change: change.to_owned(),
            code: code.clone(),
            place: format!("{file}{numbers}"),
            file,
        })
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().with_context(|| format!("a mutant has no {key}: {value}"))
}

/// Reads the list that `cargo mutants --list --json` prints.
pub fn read_list(json: &str, read_file: impl Fn(&str) -> Result<String>) -> Result<Vec<Mutant>> {
    let list: Value = serde_json::from_str(json).context("the list of mutants is not JSON")?;
    let list = list.as_array().context("the list of mutants is no array")?;
    let mut reader = Reader::new(read_file);
    list.iter().map(|value| reader.mutant(value)).collect()
}

/// Reads `outcomes.json`.
pub fn read(json: &str, read_file: impl Fn(&str) -> Result<String>) -> Result<Vec<Outcome>> {
    let all: Value = serde_json::from_str(json).context("the outcomes are not JSON")?;
    let all = all["outcomes"].as_array().context("the file of outcomes has none")?;
    let mut reader = Reader::new(read_file);
    let mut outcomes = Vec::new();
    for outcome in all {
        // The other scenario is the tests without a mutant.
        let Some(mutant) = outcome["scenario"].get("Mutant") else {
            continue;
        };
        let mutant = reader.mutant(mutant)?;
        let end = match text(outcome, "summary")? {
            "CaughtMutant" | "Timeout" => End::Caught,
            "MissedMutant" => End::Missed,
            "Unviable" => End::Unviable,
            other => bail!("the mutant {} has the unknown outcome {other}", mutant.name()),
        };
        outcomes.push(Outcome { mutant, end });
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    const SOURCE: &str = "fn is_small(n: u8) -> bool {\n    n < 3\n}\n";

    fn json(change: &str, column: u32) -> String {
        format!(
            "{{\"file\": \"src/a.rs\", \"name\": \"src/a.rs:2:{column}: {change}\", \
             \"function\": {{\"function_name\": \"is_small\"}}, \
             \"span\": {{\"start\": {{\"line\": 2, \"column\": {column}}}}}}}"
        )
    }

    fn source(file: &str) -> Result<String> {
        ensure!(file == "src/a.rs", "there is no {file}");
        Ok(SOURCE.to_owned())
    }

    #[test]
    fn a_mutant_has_its_function_its_change_and_its_line_of_code() {
        let change = "replace < with <= in is_small";
        let [mutant] = &read_list(&format!("[{}]", json(change, 7)), source).unwrap()[..] else {
            panic!();
        };
        assert_eq!(mutant.function, "is_small");
        assert_eq!(mutant.change, change);
        assert_eq!(mutant.code, "n < 3");
        assert_eq!(mutant.name(), format!("src/a.rs:2:7: {change}"));
    }

    #[test]
    fn outcomes_are_read_without_that_of_the_unchanged_code() {
        let outcome = |summary, column| {
            let mutant = json("replace < with > in is_small", column);
            format!("{{\"scenario\": {{\"Mutant\": {mutant}}}, \"summary\": \"{summary}\"}}")
        };
        let all = [
            "{\"scenario\": \"Baseline\", \"summary\": \"Success\"}".to_owned(),
            outcome("CaughtMutant", 1),
            outcome("Timeout", 2),
            outcome("MissedMutant", 3),
            outcome("Unviable", 4),
        ];
        let read_all =
            |all: &[String]| read(&format!("{{\"outcomes\": [{}]}}", all.join(",")), source);
        let ends: Vec<End> = read_all(&all).unwrap().iter().map(|one| one.end).collect();
        assert_eq!(ends, [End::Caught, End::Caught, End::Missed, End::Unviable]);
        let error = read_all(&[outcome("Failure", 1)]).unwrap_err();
        assert!(error.to_string().contains("outcome Failure"), "{error}");
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let list = format!("[{}]", json("x", 1));
        let error = read_list(&list, |_| Ok(String::new())).unwrap_err();
        assert!(error.to_string().contains("behind the file's end"), "{error}");
    }
}
