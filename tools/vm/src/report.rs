//! The result of a run, as a table and as JSON.

use std::{fmt::Write as _, time::Duration};

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use crate::protocol::StageId;

/// The outcome of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All checks passed.
    Passed,
    /// The stage ended, and a check failed.
    Failed,
    /// The stage ended, and its evidence differs from what was expected.
    Differs,
    /// The stage had nothing to do.
    Skipped,
    /// Windows stopped with a bugcheck.
    Bugcheck,
    /// The virtual machine stopped sending messages.
    Hung,
    /// The stage exceeded its time limit and was stopped.
    TimedOut,
    /// The machine restarted for an unknown reason.
    Restarted,
    /// The run ended during the stage.
    Unfinished,
    /// The run ended before the stage started.
    NotRun,
}

impl Outcome {
    /// Returns the word for reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Differs => "differs",
            Self::Skipped => "skipped",
            Self::Bugcheck => "bugcheck",
            Self::Hung => "hung",
            Self::TimedOut => "timed out",
            Self::Restarted => "restarted",
            Self::Unfinished => "unfinished",
            Self::NotRun => "not run",
        }
    }

    /// Returns whether a run with this outcome can succeed.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Passed | Self::Differs | Self::Skipped)
    }
}

/// The result of a stage.
#[derive(Clone, Debug)]
pub struct Row {
    /// The stage.
    pub id: StageId,
    /// The outcome.
    pub outcome: Outcome,
    /// The duration measured by the host.
    pub time: Option<Duration>,
    /// The reason why the stage did not pass.
    pub reason: Option<String>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// A row for each planned stage, in order.
    pub rows: Vec<Row>,
    /// The reason if the run ended before the plan was complete.
    pub ended_early: Option<String>,
    /// Additional notes: files that could not be copied, and messages from the agent.
    pub notes: Vec<String>,
}

impl Report {
    /// Returns the exit code: 0 if every stage passed, was skipped or only gave evidence, 1 if a stage failed, 3
    /// if the run ended before its plan was complete.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.ended_early.is_some() {
            3
        } else {
            u8::from(!self.rows.iter().all(|row| row.outcome.is_good()))
        }
    }

    /// Returns the table, followed by the notes.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(["Stage", "Leg", "Result", "Time", "Reason"]);
        for row in &self.rows {
            let time = row.time.map_or_else(String::new, |time| format!("{} s", time.as_secs()));
            let reason = row.reason.clone().unwrap_or_default();
            table.add_row([&row.id.stage, &row.id.leg, row.outcome.word(), &time, &reason]);
        }
        let mut text = String::new();
        for line in table.lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        if let Some(reason) = &self.ended_early {
            let _ = writeln!(text, "the run ended early: {reason}");
        }
        text
    }

    /// Returns the report as JSON, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "stage": row.id.stage,
                    "leg": row.id.leg,
                    "result": row.outcome.word(),
                    "seconds": row.time.map(|time| time.as_secs_f64()),
                    "reason": row.reason,
                })
            })
            .collect();
        json!({
            "version": 1,
            "stages": rows,
            "ended_early": self.ended_early,
            "notes": self.notes,
            "exit_code": self.exit_code(),
        })
    }
}
