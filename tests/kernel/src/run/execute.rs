//! A run whose output goes to standard output and standard error.

use std::io;

use anyhow::Result;

use super::{
    child::{self, End},
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
    match child::run_in_child(work)? {
        End::Done(is_clean) => Ok(is_clean),
        End::Ended(ended) => {
            with_report(format, |report| {
                ended.report(run, report);
                Ok(())
            })?;
            Ok(false)
        }
    }
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
