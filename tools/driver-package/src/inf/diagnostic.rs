//! Diagnostics about INF files.

use std::fmt;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Windows or `infverif` can reject the file, or the file does not install the driver.
    Error,
    /// The file works, but is unusual.
    Warning,
}

/// A violation of a rule in an INF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The line, counting from 1; `None` if something is missing from the file.
    pub line: Option<usize>,
    /// The message.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        formatter.write_str(&self.message)
    }
}
