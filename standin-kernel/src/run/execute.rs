//! A run whose output goes to standard output and standard error.

use std::io::{self, Write};

use anyhow::Result;

use super::{
    child::{self, End},
    diagnostic::{Diagnostic, Kind},
    human::Human,
    json::Json,
    options::{Format, Run},
    runner::Report,
};
use crate::ground::flight;

/// Runs a driver and writes what happens to standard output. Returns true if nothing was found but
/// notes.
///
/// The driver runs in a process of its own, a child of this one, because it can corrupt or end it;
/// this process reports what happened then. This process must have one thread.
///
/// # Errors
///
/// Returns an error if the process cannot be started, or if the output cannot be written.
pub fn execute(run: &Run, format: Format) -> Result<bool> {
    let work = |notes: usize| {
        let result = with_report(format, notes, |report| {
            run.execute(report).map(|summary| summary.is_clean())
        });
        result.unwrap_or_else(|error| {
            let message = format!("error: {error:#}\n");
            // The exit code says it too, if nobody reads the message.
            let _unread = Patient(io::stderr()).write_all(message.as_bytes());
            false
        })
    };
    let mut runner = Runner { run, format, notes: 0 };
    let ended = match runner.in_child("the driver runs again without them", work)? {
        End::Done(is_clean) => return Ok(is_clean),
        End::Ended(ended) => ended,
    };
    // The report has symbols too.
    let report = |notes| {
        let result = with_report(format, notes, |report| {
            ended.report(run, report);
            Ok(())
        });
        result.is_ok()
    };
    match runner.in_child("the report follows without them", report)? {
        End::Done(_) => {}
        End::Ended(_) => {
            report(runner.notes);
        }
    }
    Ok(false)
}

/// Does work in processes of its own.
struct Runner<'a> {
    run: &'a Run,
    format: Format,
    /// The number of notes about symbols so far.
    notes: usize,
}

impl Runner<'_> {
    /// Does work in a process of its own, and again without symbols if reading them ended the
    /// process. `next` says so. `work` receives the number of notes so far, and returns whether the
    /// run was clean.
    fn in_child(&mut self, next: &str, work: impl Fn(usize) -> bool) -> Result<End> {
        let limit = self.run.max_silence;
        let end = child::run_in_child(limit, || work(self.notes))?;
        let End::Ended(ended) = &end else {
            return Ok(end);
        };
        let Some(sentence) = ended.give_up_symbols() else {
            return Ok(end);
        };
        with_report(self.format, 0, |report| {
            let message = format!("{sentence}; {next}");
            report.diagnostic(&Diagnostic::sentence(Kind::Note, message));
            Ok(())
        })?;
        self.notes += 1;
        child::run_in_child(limit, || work(self.notes))
    }
}

/// Calls `body` with a report that writes in a format. The summary counts `notes` that were reported
/// before.
fn with_report<R>(
    format: Format,
    notes: usize,
    body: impl FnOnce(&mut dyn Report) -> Result<R>,
) -> Result<R> {
    let stdout = Patient(io::stdout().lock());
    match format {
        Format::Human => {
            let mut report = Human::new(stdout, Patient(io::stderr())).after_notes(notes);
            let result = body(&mut report)?;
            report.finish()?;
            Ok(result)
        }
        Format::Json => {
            let mut report = Json::new(stdout).after_notes(notes);
            let result = body(&mut report)?;
            report.finish()?;
            Ok(result)
        }
    }
}

/// An output whose reader may take any time. The time is not the driver's.
struct Patient<W>(W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        flight::writing(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        flight::writing(|| self.0.flush())
    }
}
