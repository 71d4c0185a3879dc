//! The interface through which a run reports, and the summary of a run.

use std::path::PathBuf;

use super::diagnostic::Diagnostic;
use crate::harness::{kernel::Statistics, script::Observer};

/// Observes a run as it happens.
pub trait Report: Observer {
    /// Called for each line that the driver prints with `DbgPrint`.
    fn output(&mut self, line: &str);

    /// Called for each diagnostic, errors first, then warnings and notes.
    fn diagnostic(&mut self, diagnostic: &Diagnostic);

    /// Called at the end of the run.
    fn summary(&mut self, summary: &Summary);
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The driver's image.
    pub image: PathBuf,
    /// Set if the image's resources describe events, so that decoders need the image.
    pub describes_events: bool,
    /// The trace file.
    pub file: PathBuf,
    /// The number of events in the trace file.
    pub events: u64,
    /// The number of lost events.
    pub events_lost: u32,
    /// The number of calls to the kernel.
    pub calls: u64,
    /// The kernel's counters, unless the driver ended the process.
    pub statistics: Option<Statistics>,
    /// The peak use of the kernel stack in bytes, and the routine that caused it.
    pub peak_stack: Option<(String, usize)>,
    /// The number of bugchecks, violations and failures.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of notes.
    pub notes: usize,
}

impl Summary {
    /// Returns whether the run reported nothing except notes.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.errors == 0 && self.warnings == 0
    }
}
