//! Bugchecks and violations: the reports of broken rules.

use std::fmt;

use super::{irql::Irql, rule::Rule};

/// A bugcheck: a fault after which the kernel cannot continue.
///
/// `Display` writes the sentence on the first line, then the call stack, one frame per line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bugcheck 0x{code:X}: {message}{}", Indented(stack))]
pub struct BugCheck {
    /// The stop code.
    pub code: u32,
    /// The stop code's four parameters.
    pub parameters: [u64; 4],
    /// A sentence that describes the fault.
    pub message: String,
    /// The IRQL at the time of the fault.
    pub irql: Irql,
    /// The driver's call stack, innermost first, such as
    /// `at my_driver::queue::read (src/queue.rs:42) [my_driver.sys+0x12a0]`.
    pub stack: Vec<String>,
    /// The thread's last calls into the kernel, newest first.
    pub calls: Vec<String>,
}

/// A violation of a rule that did not bugcheck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule that was broken.
    pub rule: Rule,
    /// A sentence that describes the violation.
    pub message: String,
    /// The driver's call stack, innermost first, if the location of the violation is known.
    pub stack: Vec<String>,
    /// The number of times that this event or call site broke the rule.
    pub count: u64,
}

impl Violation {
    /// Creates a violation that occurred once.
    pub(crate) const fn new(rule: Rule, message: String, stack: Vec<String>) -> Self {
        Self { rule, message, stack, count: 1 }
    }
}

/// Formats each line on a line of its own, indented.
struct Indented<'a>(&'a [String]);

impl fmt::Display for Indented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.rule.number().map_or(Ok(()), |number| write!(f, " [{number}]"))?;
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Indented(&self.stack).fmt(f)
    }
}

/// The violations that were found when a driver was unloaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, violation) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            violation.fmt(f)?;
        }
        Ok(())
    }
}
