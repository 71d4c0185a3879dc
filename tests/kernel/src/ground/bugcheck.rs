//! Bugchecks and violations: the reports of broken rules.

use std::fmt;

use super::{irql::Irql, rule::Rule};

/// A bugcheck: the kernel found a fault after which it cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bugcheck 0x{code:X}: {message}")]
pub struct BugCheck {
    /// The stop code.
    pub code: u32,
    /// Its four parameters.
    pub parameters: [u64; 4],
    /// The event, in a sentence.
    pub message: String,
    /// The IRQL at that moment.
    pub irql: Irql,
    /// The thread's last calls into the kernel, the newest first.
    pub calls: Vec<String>,
}

/// Something wrong that does not bugcheck at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// The event, in a sentence.
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

/// Everything that was found wrong with a driver by the end of its life.
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
