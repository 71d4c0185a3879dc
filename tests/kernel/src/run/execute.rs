//! A run whose output goes to standard output and standard error.

use std::io;

use anyhow::Result;

use super::{
    child::{self, End},
    finding::{Finding, Kind},
    human::Human,
    json::Json,
    options::{Format, Run},
    play::Report,
};

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
    let work = || {
        let result = with_report(format, |report| {
            run.play(report).map(|summary| summary.is_clean())
        });
        result.unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            false
        })
    };
    let ended = match in_child(format, "the driver runs again without them", work)? {
        End::Done(is_clean) => return Ok(is_clean),
        End::Ended(ended) => ended,
    };
    // The report has symbols too.
    let report = || {
        let result = with_report(format, |report| {
            ended.report(run, report);
            Ok(())
        });
        result.is_ok()
    };
    match in_child(format, "the report follows without them", report)? {
        End::Done(_) => {}
        End::Ended(_) => with_report(format, |report| {
            ended.report(run, report);
            Ok(())
        })?,
    }
    Ok(false)
}

/// Does work in a process of its own, and again without symbols if reading them ended the process.
/// `next` says so.
fn in_child(format: Format, next: &str, work: impl Fn() -> bool) -> Result<End> {
    let end = child::run_in_child(&work)?;
    let End::Ended(ended) = &end else {
        return Ok(end);
    };
    let Some(sentence) = ended.give_up_symbols() else {
        return Ok(end);
    };
    with_report(format, |report| {
        let message = format!("{sentence}; {next}");
        report.finding(&Finding::sentence(Kind::Note, message));
        Ok(())
    })?;
    child::run_in_child(&work)
}

/// Calls `body` with a report that writes in a format.
fn with_report<R>(format: Format, body: impl FnOnce(&mut dyn Report) -> Result<R>) -> Result<R> {
    let stdout = io::stdout().lock();
    match format {
        Format::Human => {
            let mut report = Human::new(stdout, io::stderr());
            let result = body(&mut report)?;
            report.finish()?;
            Ok(result)
        }
        Format::Json => {
            let mut report = Json::new(stdout);
            let result = body(&mut report)?;
            report.finish()?;
            Ok(result)
        }
    }
}
