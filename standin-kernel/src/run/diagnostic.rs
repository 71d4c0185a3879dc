//! The diagnostics of a run.

use std::fmt;

use crate::{
    ground::{
        bugcheck::{BugCheck, Violation},
        host,
        rule::{Rule, Severity},
    },
    harness::{
        error::KernelError,
        script::{Problem, ScriptError},
    },
};

/// A kind of diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel bugchecked.
    BugCheck,
    /// The driver left something behind when it was unloaded.
    Violation,
    /// The driver ended the process that it ran in, or corrupted it.
    Ended,
    /// A step failed, or the driver could not be loaded.
    Failure,
    /// The driver broke a rule, and the kernel continued.
    Warning,
    /// A note about style, or other information.
    Note,
}

impl Kind {
    /// Returns the name of this kind in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BugCheck => "bugcheck",
            Self::Violation => "violation",
            Self::Ended => "process-ended",
            Self::Failure => "failure",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    /// Returns the label of this kind in text output.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::BugCheck | Self::Violation | Self::Ended | Self::Failure => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A problem or fact that a run reports.
///
/// `Display` writes the sentence on the first line, then the call stack, one frame per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind.
    pub kind: Kind,
    /// The script line that was running, if it is known and the step comes from a file.
    pub line: Option<usize>,
    /// A sentence that describes the diagnostic.
    pub message: String,
    /// The verifier rule that was broken, if any.
    pub rule: Option<Rule>,
    /// The number of occurrences.
    pub count: u64,
    /// The driver's call stack, innermost first.
    pub stack: Vec<String>,
    /// A bugcheck's stop code and its parameters.
    pub code: Option<(u32, [u64; 4])>,
    /// The last calls into the kernel before a bugcheck, newest first.
    pub calls: Vec<String>,
}

impl Diagnostic {
    /// Returns a diagnostic that consists of a sentence.
    #[must_use]
    pub const fn sentence(kind: Kind, message: String) -> Self {
        Self {
            kind,
            line: None,
            message,
            rule: None,
            count: 1,
            stack: Vec::new(),
            code: None,
            calls: Vec::new(),
        }
    }

    /// Returns a diagnostic about the system calls that the confinement refused, if there are any.
    pub(super) fn of_refused(numbers: &[u64]) -> Option<Self> {
        let names: Vec<String> = numbers.iter().copied().map(host::call_name).collect();
        let message = format!(
            "the confinement refused system calls that code outside the driver's stack made: {}; if the \
             driver is trusted, `--confinement none` allows them",
            names.join(", ")
        );
        (!names.is_empty()).then(|| Self::sentence(Kind::Warning, message))
    }

    /// Returns whether a run with this diagnostic has failed.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.kind != Kind::Note
    }

    /// Returns the diagnostic for a violation.
    pub(super) fn of_violation(violation: Violation) -> Self {
        let kind = match violation.rule.severity() {
            Severity::BugCheck => Kind::Violation,
            Severity::Warning => Kind::Warning,
            Severity::Note => Kind::Note,
        };
        Self {
            rule: Some(violation.rule),
            count: violation.count,
            stack: violation.stack,
            ..Self::sentence(kind, violation.message)
        }
    }

    /// Returns a warning if a routine used three quarters of the kernel stack or more.
    pub(super) fn of_stack(routine: &str, bytes: usize) -> Option<Self> {
        /// The size of a thread's kernel stack on x64.
        const STACK: usize = 24 * 1024;
        (bytes >= STACK / 4 * 3).then(|| {
            let message = format!(
                "{routine} used {bytes} of the {STACK} bytes of the kernel stack, and Windows' own \
                 routines and interrupts need some: move large variables elsewhere, or split the \
                 function; a debug build uses more than a release build"
            );
            Self::sentence(Kind::Warning, message)
        })
    }

    fn of_bugcheck(bugcheck: BugCheck) -> Self {
        Self {
            stack: bugcheck.stack,
            code: Some((bugcheck.code, bugcheck.parameters)),
            calls: bugcheck.calls,
            ..Self::sentence(Kind::BugCheck, bugcheck.message)
        }
    }

    /// Returns the diagnostics for a kernel error.
    pub(super) fn of_error(error: KernelError) -> Vec<Self> {
        match error {
            KernelError::BugCheck(bugcheck) => vec![Self::of_bugcheck(bugcheck)],
            KernelError::Violations(violations) => {
                violations.0.into_iter().map(Self::of_violation).collect()
            }
            // The status is the cause; the violations are omissions of the failing path.
            KernelError::FailedEntry { status, violations } => {
                let entry = KernelError::Status { routine: "DriverEntry", status };
                let failure = Self::sentence(Kind::Failure, entry.to_string());
                let missed = violations.0.into_iter().map(Self::of_violation);
                std::iter::once(failure).chain(missed).collect()
            }
            other => vec![Self::sentence(Kind::Failure, other.to_string())],
        }
    }

    /// Returns the diagnostics for a step that failed.
    pub(super) fn of_step(error: ScriptError) -> Vec<Self> {
        let mut diagnostics = match error.problem {
            Problem::Kernel(error) => Self::of_error(error),
            other => vec![Self::sentence(Kind::Failure, other.to_string())],
        };
        let line = Some(error.line).filter(|line| *line != 0);
        for diagnostic in &mut diagnostics {
            diagnostic.line = line;
        }
        diagnostics
    }
}

/// Sorts diagnostics: errors first, then warnings and notes.
pub(super) fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| match diagnostic.kind {
        Kind::BugCheck | Kind::Violation | Kind::Ended | Kind::Failure => 0,
        Kind::Warning => 1,
        Kind::Note => 2,
    });
}

/// Returns the number of diagnostics that share a kind's label.
pub(super) fn count(diagnostics: &[Diagnostic], kind: Kind) -> usize {
    let of_kind = diagnostics.iter().filter(|one| one.kind.label() == kind.label());
    of_kind.count()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some((code, _)) = self.code {
            write!(f, "bugcheck 0x{code:X}: ")?;
        }
        f.write_str(&self.message)?;
        // A bugcheck's message already contains the number of its rule.
        if let Some(number) = self.rule.and_then(Rule::number) {
            write!(f, " [{number}]")?;
        }
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        for line in &self.stack {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_comes_from_three_quarters_of_the_stack_on() {
        assert!(Diagnostic::of_stack("DriverEntry", 18_431).is_none());
        let warning = Diagnostic::of_stack("DriverEntry", 18_432).unwrap();
        assert_eq!(warning.kind, Kind::Warning);
        assert!(warning.message.starts_with("DriverEntry used 18432 of the 24576 bytes"));
    }
}
