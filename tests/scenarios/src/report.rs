//! Results of scenarios, as text, JSON and `JUnit` XML.

use std::{fmt::Write as _, io};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;

/// The result of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The scenario's name.
    pub name: &'static str,
    /// The statement that the scenario proves when it passes.
    pub proves: &'static str,
    /// The ids of the requirements that the scenario covers.
    pub requirements: &'static [&'static str],
    /// The reason for the failure, if the scenario failed.
    pub failure: Option<String>,
    /// The steps that were taken and the events that were recorded.
    pub log: Vec<String>,
}

impl Outcome {
    /// Returns true if the scenario passed.
    #[must_use]
    pub const fn passed(&self) -> bool {
        self.failure.is_none()
    }

    /// Formats the outcome: one line if the scenario passed, and otherwise also the reason and the
    /// log.
    #[must_use]
    pub fn describe(&self) -> String {
        let Some(failure) = &self.failure else {
            return format!("pass   {}: {}", self.name, self.proves);
        };
        let mut text = format!("FAIL   {}: {failure}\n", self.name);
        // Writing to a string does not fail.
        _ = writeln!(text, "       The scenario proves that {}.", self.proves);
        for line in &self.log {
            _ = writeln!(text, "       | {line}");
        }
        text
    }
}

/// The results of all scenarios in a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The outcome of each scenario, in the order in which they ran.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Returns true if at least one scenario ran and all passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.outcomes.is_empty() && self.outcomes.iter().all(Outcome::passed)
    }

    /// Returns the number of scenarios that failed.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.outcomes.iter().filter(|outcome| !outcome.passed()).count()
    }

    /// Writes the report as JSON.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer.
    pub fn write_json(&self, mut writer: impl io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut writer, self)?;
        writeln!(writer)
    }

    /// Writes the report as `JUnit` XML.
    ///
    /// # Errors
    ///
    /// Returns the error of the writer.
    pub fn write_junit(&self, writer: impl io::Write) -> io::Result<()> {
        let mut suite = TestSuite::new("etw-scenarios");
        for outcome in &self.outcomes {
            let status = outcome.failure.as_ref().map_or_else(TestCaseStatus::success, |failure| {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(failure);
                status
            });
            let mut case = TestCase::new(outcome.name, status);
            case.set_classname("scenarios");
            case.set_system_out(outcome.log.join("\n"));
            suite.add_test_case(case);
        }
        let mut report = quick_junit::Report::new("etw-scenarios");
        report.add_test_suite(suite);
        report.serialize(writer).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let outcome = |name, failure: Option<&str>| Outcome {
            name,
            proves: "<this> & that hold",
            requirements: &["R-O1"],
            failure: failure.map(str::to_owned),
            log: vec!["start".to_owned(), "stop".to_owned()],
        };
        Report { outcomes: vec![outcome("good", None), outcome("bad", Some("1 < 2"))] }
    }

    #[test]
    fn junit_contains_each_failure_with_its_cause() {
        let mut bytes = Vec::new();
        report().write_junit(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let suites = document.root_element();
        assert_eq!(suites.attribute("tests"), Some("2"));
        assert_eq!(suites.attribute("failures"), Some("1"));
        let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
        assert_eq!(failure.attribute("message"), Some("1 < 2"));
        assert_eq!(failure.parent().unwrap().attribute("name"), Some("bad"));
    }

    #[test]
    fn json_contains_every_outcome() {
        let mut bytes = Vec::new();
        report().write_json(&mut bytes).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["outcomes"][1]["failure"], "1 < 2");
        assert_eq!(value["outcomes"][0]["failure"], serde_json::Value::Null);
        assert_eq!(value["outcomes"][0]["log"][1], "stop");
    }

    #[test]
    fn a_report_without_scenarios_does_not_pass() {
        let report = Report { outcomes: Vec::new() };
        assert!(!report.passed());
        assert_eq!(report.failures(), 0);
    }
}
