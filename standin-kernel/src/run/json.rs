//! Output for programs: one JSON object per line.
//!
//! The member `reason` identifies the kind of line, as in cargo's messages: `step`, `event` (with
//! the members that `etl dump --format json` writes), `driver-output`, `finding` or `run-summary`.

use std::io::{self, Write};

use etl_file::lines::Members;
use serde::Serialize;
use serde_json::json;

use super::{
    diagnostic::Diagnostic,
    human::{check, keep},
    report::{Report, Summary},
};
use crate::{
    ground::rule::Rule,
    harness::{
        recording::RecordedEvent,
        script::{Done, Observer},
    },
};

/// Writes a run as JSON, one object per line.
pub struct Json<O> {
    out: O,
    members: Members,
    error: Option<io::Error>,
    /// The number of notes that were reported earlier.
    earlier_notes: usize,
}

impl<O: Write> Json<O> {
    /// Creates a report that writes to `out`.
    pub fn new(out: O) -> Self {
        Self { out, members: Members::default(), error: None, earlier_notes: 0 }
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

    fn line(&mut self, message: &impl Serialize) {
        let written = serde_json::to_string(message)
            .map_err(io::Error::from)
            .and_then(|text| writeln!(self.out, "{text}"));
        keep(&mut self.error, written);
    }
}

/// Returns a script's line number, or null for a step that does not come from a file.
fn line_number(line: usize) -> Option<usize> {
    Some(line).filter(|line| *line != 0)
}

impl<O: Write> Observer for Json<O> {
    fn starts(&mut self, _line: usize, _step: &str) {}

    fn done(&mut self, done: &Done) {
        let completion = done.completion.as_ref().map(|completion| {
            json!({
                "status": format!("0x{:08x}", completion.status.0.cast_unsigned()),
                "status_name": completion.status.to_string(),
                "information": completion.information,
                "output": etl_file::internals::show::Hex(&completion.output).to_string(),
            })
        });
        self.line(&json!({
            "reason": "step",
            "line": line_number(done.line),
            "client": Some(done.client).filter(|client| *client != 0),
            "step": done.step,
            "completion": completion,
        }));
    }

    fn event(&mut self, event: &RecordedEvent) {
        let mut line = br#"{"reason":"event","#.to_vec();
        let view = event.event.view();
        let written = self.members.append(&view, &event.decoded, &mut line).and_then(|()| {
            line.extend_from_slice(b"}\n");
            self.out.write_all(&line)
        });
        keep(&mut self.error, written);
    }
}

impl<O: Write> Report for Json<O> {
    fn output(&mut self, line: &str) {
        self.line(&json!({ "reason": "driver-output", "text": line }));
    }

    fn diagnostic(&mut self, diagnostic: &Diagnostic) {
        let code = diagnostic.code.map(|(code, parameters)| {
            json!({
                "code": format!("0x{code:x}"),
                "parameters": parameters.map(|one| format!("0x{one:x}")),
            })
        });
        self.line(&json!({
            "reason": "finding",
            "kind": diagnostic.kind.name(),
            "line": diagnostic.line,
            "message": diagnostic.message,
            "rule": diagnostic.rule.map(|rule| format!("{rule:?}")),
            "rule_number": diagnostic.rule.and_then(Rule::number),
            "count": diagnostic.count,
            "stack": diagnostic.stack,
            "bugcheck": code,
            "calls": diagnostic.calls,
        }));
    }

    fn summary(&mut self, summary: &Summary) {
        let stack = summary.peak_stack.as_ref();
        let statistics = summary.statistics.as_ref();
        self.line(&json!({
            "reason": "run-summary",
            "success": summary.is_clean(),
            "image": summary.image,
            "etl": summary.file,
            "events": summary.events,
            "events_lost": summary.events_lost,
            "errors": summary.errors,
            "warnings": summary.warnings,
            "notes": summary.notes + self.earlier_notes,
            "kernel_calls": summary.calls,
            "pool_blocks_allocated": statistics.map(|all| all.allocations),
            "pool_blocks_freed": statistics.map(|all| all.frees),
            "notifications": statistics.map(|all| all.notifications),
            "peak_stack": stack.map(|(_, bytes)| bytes),
            "peak_stack_routine": stack.map(|(what, _)| what),
        }));
    }
}
