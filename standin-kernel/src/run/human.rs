//! Text output for people.

use std::io::{self, Write};

use etl_file::internals::show::Escaped;
use etl_file::lines;

use super::{
    diagnostic::Diagnostic,
    report::{Report, Summary},
};
use crate::{
    ground::host::shell_word,
    harness::{
        recording::RecordedEvent,
        script::{Done, Observer},
    },
};

/// Writes a run as text: steps and events to one output, diagnostics to another.
pub struct Human<O, E> {
    out: O,
    diagnostics: E,
    error: Option<io::Error>,
    /// The number of notes that were reported earlier.
    earlier_notes: usize,
}

impl<O: Write, E: Write> Human<O, E> {
    /// Creates a report that writes steps and events to `out`, and diagnostics to `diagnostics`.
    pub const fn new(out: O, diagnostics: E) -> Self {
        Self { out, diagnostics, error: None, earlier_notes: 0 }
    }

    /// Returns a report whose summary includes notes that were reported earlier.
    pub(super) fn after_notes(self, earlier_notes: usize) -> Self {
        Self { earlier_notes, ..self }
    }

    /// Ends the report.
    ///
    /// # Errors
    ///
    /// Returns the first output error, unless the reader has closed the output.
    pub fn finish(self) -> io::Result<()> {
        check(self.error)
    }

    fn line(&mut self, line: &str) {
        keep(&mut self.error, writeln!(self.out, "{line}"));
    }
}

/// Returns a number with its noun.
pub(super) fn counted(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Stores the first error.
pub(super) fn keep(error: &mut Option<io::Error>, result: io::Result<()>) {
    if let Err(found) = result {
        error.get_or_insert(found);
    }
}

/// Returns an error, unless the reader has closed the output.
pub(super) fn check(error: Option<io::Error>) -> io::Result<()> {
    match error {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

impl<O: Write, E: Write> Observer for Human<O, E> {
    fn starts(&mut self, _line: usize, _step: &str) {}

    fn done(&mut self, done: &Done) {
        self.line(&done.to_string());
    }

    fn event(&mut self, event: &RecordedEvent) {
        self.line(&format!("    {}", lines::line(&event.decoded)));
    }
}

impl<O: Write, E: Write> Report for Human<O, E> {
    fn output(&mut self, line: &str) {
        self.line(&format!("    driver: {}", Escaped(line)));
    }

    fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        let mut lines = vec![format!("{}: {diagnostic}", diagnostic.kind.label())];
        if !diagnostic.calls.is_empty() {
            lines.push("The last calls before the bugcheck, newest first:".to_owned());
            lines.extend(diagnostic.calls.iter().map(|call| format!("    {call}")));
        }
        let text = lines.join("\n") + "\n";
        keep(&mut self.error, self.diagnostics.write_all(text.as_bytes()));
    }

    fn summary(&mut self, summary: &Summary) {
        if let Some(statistics) = &summary.statistics {
            self.line(&format!(
                "{}, {} allocated, {} freed, {}",
                counted(statistics.calls, "kernel call"),
                counted(statistics.allocations, "pool block"),
                statistics.frees,
                counted(statistics.notifications, "enable notification")
            ));
        }
        if let Some((what, bytes)) = &summary.peak_stack {
            self.line(&format!("peak kernel stack use: {bytes} of 24,576 bytes, in {what}"));
        }
        let file = summary.file.display();
        self.line(&format!(
            "{} in {file}, {} lost",
            counted(summary.events, "event"),
            summary.events_lost
        ));
        let mut command = format!("etl dump {}", shell_word(&summary.file));
        if summary.describes_events {
            command = format!("{command} --image {}", shell_word(&summary.image));
        }
        self.line(&format!("To print them: {command}"));
        let timeline = shell_word(&summary.file.with_extension("pftrace"));
        self.line(&format!(
            "As a timeline for https://ui.perfetto.dev: {command} --format perfetto --out {timeline}"
        ));
        self.line(&format!(
            "found: {}, {}, {}",
            counted(summary.errors as u64, "error"),
            counted(summary.warnings as u64, "warning"),
            counted((summary.notes + self.earlier_notes) as u64, "note")
        ));
    }
}
