//! The list of expected failures, and its comparison with the results of a driver's runs.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

/// The kind of reason why a check fails, or why a function does not run to its end.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The stand-in kernel differs from Windows.
    Wrong,
    /// The check needs a part of a whole system, such as a program's process.
    NotApplicable,
    /// The stand-in kernel deliberately refuses something that Windows accepts.
    Stricter,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Wrong => "wrong",
            Self::NotApplicable => "not applicable",
            Self::Stricter => "stricter",
        })
    }
}

/// A check that is expected to fail.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCheck {
    /// The function that contains the check, for readers: the hash includes the name.
    pub function: String,
    /// The check's [hash](super::source::Check::hash).
    pub check: String,
    pub reason: Reason,
    pub why: String,
}

/// A test function that is expected to end early.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedEnd {
    pub function: String,
    /// A part of the message with which the function ends.
    pub with: String,
    pub reason: Reason,
    pub why: String,
}

/// A driver of the suite.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Driver {
    /// The path of its only source file in the checkout.
    pub source: String,
    /// The name of its service and, without `.sys`, of its image.
    pub image: String,
    /// The steps of its script.
    pub steps: Vec<String>,
    /// The folders that the driver expects on its volume.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Lines of a file of the Registry Editor.
    #[serde(default)]
    pub registry: Vec<String>,
    /// The hashes of the versions of the source for which the lists below were written, with the number of
    /// checks that are evaluated.
    pub versions: BTreeMap<String, usize>,
    #[serde(default)]
    pub checks: Vec<ExpectedCheck>,
    #[serde(default)]
    pub ends: Vec<ExpectedEnd>,
}

/// The evaluations of a check.
#[derive(Debug, Default)]
pub struct Outcome {
    pub function: String,
    pub line: usize,
    pub passed: usize,
    pub failed: usize,
    /// The message of the first failure.
    pub message: String,
}

/// The results of a driver's runs.
#[derive(Debug, Default)]
pub struct Seen {
    /// By hash.
    pub checks: BTreeMap<String, Outcome>,
    /// The test functions: the message with which one ended early.
    pub functions: BTreeMap<String, Option<String>>,
    pub skips: usize,
}

/// The differences from the list.
#[derive(Debug, Default)]
pub struct Differences {
    /// Sentences, each of which makes the command fail.
    pub problems: Vec<String>,
    /// Sentences about failures that are expected, with the reasons.
    pub expected: Vec<String>,
    /// Sentences about entries that concern another version of the source.
    pub notes: Vec<String>,
}

/// Compares the observed results with the list.
///
/// `known` is the number of checks in this version of the source if the list was written for it; an
/// entry that no run evaluated is then a problem, as is a smaller number of checks. `is_whole` is
/// false if only some functions were run, so that nothing is known about the others.
pub fn compare(driver: &Driver, seen: &Seen, known: Option<usize>, is_whole: bool) -> Differences {
    let file = driver.source.rsplit('/').next().unwrap_or(&driver.source);
    let mut out = Differences::default();
    let expected: BTreeMap<&str, &ExpectedCheck> =
        driver.checks.iter().map(|one| (one.check.as_str(), one)).collect();
    let mut checks: Vec<_> = seen.checks.iter().collect();
    checks.sort_by_key(|(_, outcome)| outcome.line);
    for (check, outcome) in checks {
        let Outcome { function, line, message, .. } = outcome;
        let place = format!("{file}:{line}: {function}: check {check}");
        match (outcome.failed > 0, expected.get(check.as_str())) {
            (true, None) => out.problems.push(format!(
                "new failure: {place} fails: {message}\n    mend the kernel, or add to the driver's `checks`: \
                 {{ \"function\": \"{function}\", \"check\": \"{check}\", \"reason\": \"…\", \"why\": \"…\" }}"
            )),
            (true, Some(one)) => {
                out.expected.push(format!("{file}:{line}: {function}: {}: {}", one.reason, one.why));
            }
            (false, Some(_)) => out.problems.push(format!(
                "new pass: {place} is expected to fail, and passes; remove it from the driver's `checks`"
            )),
            (false, None) => {}
        }
    }
    let mut missing: Vec<String> = Vec::new();
    for one in driver.checks.iter().filter(|one| !seen.checks.contains_key(&one.check)) {
        missing.push(format!(
            "missing check: {file}: {}: check {} is expected to fail, and was not evaluated",
            one.function, one.check
        ));
    }
    for (function, end) in &seen.functions {
        let expected = driver.ends.iter().find(|one| one.function == *function);
        match (end, expected) {
            (Some(end), None) => out.problems.push(format!(
                "new failure: {file}: {function} does not run to its end: {end}"
            )),
            (Some(end), Some(one)) if !end.contains(&one.with) => out.problems.push(format!(
                "new failure: {file}: {function} ends with another message than `{}`: {end}",
                one.with
            )),
            (Some(_), Some(one)) => {
                out.expected.push(format!("{file}: {function}: {}: {}", one.reason, one.why));
            }
            (None, Some(_)) => out.problems.push(format!(
                "new pass: {file}: {function} is expected to end early, and runs to its end; remove it from the \
                 driver's `ends`"
            )),
            (None, None) => {}
        }
    }
    for one in driver.ends.iter().filter(|one| !seen.functions.contains_key(&one.function)) {
        missing.push(format!(
            "missing function: {file}: {} is expected to end early, and was not called",
            one.function
        ));
    }
    if is_whole {
        if let Some(count) = known.filter(|count| seen.checks.len() < *count) {
            missing.push(format!(
                "missing checks: {file}: {} different checks were evaluated, and {count} when the list was written",
                seen.checks.len()
            ));
        }
        let list = if known.is_some() { &mut out.problems } else { &mut out.notes };
        list.append(&mut missing);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver() -> Driver {
        serde_json::from_value(serde_json::json!({
            "source": "tests/driver.c", "image": "Test", "steps": ["open"], "versions": {},
            "checks": [{ "function": "test_a", "check": "aa", "reason": "wrong", "why": "A." }],
            "ends": [{ "function": "test_b", "with": "KeB", "reason": "not-applicable", "why": "B." }],
        }))
        .unwrap()
    }

    fn seen(checks: &[(&str, usize, usize)], functions: &[(&str, Option<&str>)]) -> Seen {
        let outcome = |passed, failed| Outcome {
            function: "test_a".to_owned(),
            line: 7,
            passed,
            failed,
            message: "got 3".to_owned(),
        };
        Seen {
            checks: checks
                .iter()
                .map(|(hash, passed, failed)| ((*hash).to_owned(), outcome(*passed, *failed)))
                .collect(),
            functions: functions
                .iter()
                .map(|(name, end)| ((*name).to_owned(), end.map(str::to_owned)))
                .collect(),
            skips: 0,
        }
    }

    const END: (&str, Option<&str>) = ("test_b", Some("ntoskrnl.exe!KeB was called"));

    #[track_caller]
    fn problems(seen: &Seen, starts: &[&str]) {
        let all = compare(&driver(), seen, Some(0), true).problems;
        let fits = all.iter().zip(starts).all(|(one, start)| one.starts_with(start));
        assert!(fits && all.len() == starts.len(), "{all:#?}");
    }

    #[test]
    fn what_is_expected_is_no_problem() {
        let seen = seen(&[("aa", 1, 1), ("bb", 2, 0)], &[END, ("test_a", None)]);
        problems(&seen, &[]);
        let expected = ["driver.c:7: test_a: wrong: A.", "driver.c: test_b: not applicable: B."];
        assert_eq!(compare(&driver(), &seen, Some(0), true).expected, expected);
    }

    #[test]
    fn a_new_failure_is_told_with_its_entry() {
        let start = "new failure: driver.c:7: test_a: check bb fails: got 3";
        problems(&seen(&[("aa", 0, 1), ("bb", 5, 1)], &[END]), &[start]);
        let all = compare(&driver(), &seen(&[("bb", 0, 1)], &[]), None, true).problems;
        assert!(all[0].contains(r#"{ "function": "test_a", "check": "bb", "#), "{all:?}");
    }

    #[test]
    fn a_new_pass_is_told() {
        problems(&seen(&[("aa", 3, 0)], &[END]), &["new pass: driver.c:7: test_a: check aa"]);
        let ends = seen(&[("aa", 0, 1)], &[("test_b", None)]);
        problems(&ends, &["new pass: driver.c: test_b is expected to end early"]);
    }

    #[test]
    fn an_end_must_be_the_expected_one() {
        let other = [END, ("test_a", Some("bugcheck 0xA"))];
        let start = "new failure: driver.c: test_a does not run to its end: bugcheck 0xA";
        problems(&seen(&[("aa", 0, 1)], &other), &[start]);
        let other = [("test_b", Some("bugcheck 0xA"))];
        let start =
            "new failure: driver.c: test_b ends with another message than `KeB`: bugcheck 0xA";
        problems(&seen(&[("aa", 0, 1)], &other), &[start]);
    }

    #[test]
    fn what_the_list_names_and_nobody_saw_is_a_problem_of_the_same_version() {
        let none = seen(&[], &[]);
        problems(&none, &["missing check: driver.c: test_a", "missing function: driver.c: test_b"]);
        let other = compare(&driver(), &none, None, true);
        assert_eq!((other.problems.len(), other.notes.len()), (0, 2), "{other:?}");
        let some = compare(&driver(), &none, Some(9), false);
        assert_eq!((some.problems.len(), some.notes.len()), (0, 0), "{some:?}");
    }
}
