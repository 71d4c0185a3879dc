//! A run with output on standard output and standard error.

use std::io::{self, Write};

use anyhow::{Result, bail};
use nix::unistd::getpid;

use super::{
    child::{self, End},
    confine::Confinement,
    diagnostic::{Diagnostic, Kind},
    human::Human,
    json::Json,
    options::{Confine, Format, Run},
    runner::Report,
};
use crate::ground::flight;

/// Runs a driver and writes the course of the run to standard output. Returns `true` if the run
/// reported nothing except notes.
///
/// The driver runs in a child process, because it can corrupt or end its process; this process then
/// reports what happened. This process must have only one thread.
///
/// # Errors
///
/// Returns an error if the process cannot be started, or if the output cannot be written.
pub fn execute(run: &Run, format: Format) -> Result<bool> {
    let confinement = (run.confine != Confine::None).then(Confinement::of_this_system);
    let missing: Vec<&str> = confinement.into_iter().flat_map(Confinement::missing).collect();
    if run.confine == Confine::Required && !missing.is_empty() {
        bail!("cannot confine the driver, and it does not run: {}", missing.join("; "));
    }
    let parent = getpid();
    let confined = |notes, body: &dyn Fn(&mut dyn Report) -> Result<bool>| {
        let confine = |confinement: Confinement| confinement.apply(parent, run.into());
        let confine = confinement.map_or(Ok(()), confine);
        flight::note_progress();
        let result = confine.and_then(|()| with_report(format, notes, body));
        result.unwrap_or_else(|error| {
            let message = format!("error: {error:#}\n");
            // If nobody reads the message, the exit code still conveys the failure.
            let _unread = Patient(io::stderr()).write_all(message.as_bytes());
            false
        })
    };
    let work =
        |notes| confined(notes, &|report| run.execute(report).map(|summary| summary.is_clean()));
    let mut runner = Runner { run, format, notes: 0 };
    for sentence in missing {
        runner.note(sentence.to_owned())?;
    }
    let ended = match runner.in_child("the driver runs again without them", work)? {
        End::Done(is_clean) => return Ok(is_clean),
        End::Ended(ended) => ended,
    };
    let report = |report: &mut dyn Report| {
        ended.report(run, report);
        Ok(true)
    };
    // The report also uses the symbols in the image's PDB.
    let next = "the report follows without them";
    match runner.in_child(next, |notes| confined(notes, &report))? {
        End::Done(_) => {}
        End::Ended(_) => {
            with_report(format, runner.notes, report)?;
        }
    }
    Ok(false)
}

/// Runs work in child processes.
struct Runner<'a> {
    run: &'a Run,
    format: Format,
    /// The number of notes so far.
    notes: usize,
}

impl Runner<'_> {
    /// Runs `work` in a child process, and repeats it without symbols if reading them ended the
    /// process. `next` completes the message in that case. `work` receives the number of notes so
    /// far, and returns whether the run was clean.
    fn in_child(&mut self, next: &str, work: impl Fn(usize) -> bool) -> Result<End> {
        let limit = self.run.max_silence;
        let end = child::run_in_child(limit, || work(self.notes))?;
        let End::Ended(ended) = &end else {
            return Ok(end);
        };
        let Some(sentence) = ended.give_up_symbols() else {
            return Ok(end);
        };
        self.note(format!("{sentence}; {next}"))?;
        child::run_in_child(limit, || work(self.notes))
    }

    fn note(&mut self, message: String) -> Result<()> {
        with_report(self.format, 0, |report| {
            report.diagnostic(&Diagnostic::sentence(Kind::Note, message));
            Ok(())
        })?;
        self.notes += 1;
        Ok(())
    }
}

/// Calls `body` with a report in the given format. The summary includes the number of earlier
/// notes, `notes`.
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

/// An output whose reader may be slow. The time spent waiting does not count against the driver.
struct Patient<W>(W);

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        flight::writing(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        flight::writing(|| self.0.flush())
    }
}
