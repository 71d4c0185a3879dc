//! Bugchecks and violations: the reports of broken rules.

use std::fmt;

use super::{irql::Irql, rule::Rule};

/// A bugcheck: a fault after which the kernel cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bugcheck 0x{code:X}: {message}")]
pub struct BugCheck {
    /// The stop code.
    pub code: u32,
    /// The stop code's four parameters.
    pub parameters: [u64; 4],
    /// The fault, in a sentence.
    pub message: String,
    /// The IRQL at the time of the fault.
    pub irql: Irql,
    /// The thread's last calls into the kernel, newest first.
    pub calls: Vec<String>,
}

/// A violation of a rule that did not bugcheck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// The violation, in a sentence.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.rule
            .number()
            .map_or(Ok(()), |number| write!(f, " [{number}]"))
    }
}

/// The violations found when a driver was unloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, violation) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}
