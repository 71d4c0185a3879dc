//! A run in a child process, with output on standard output and standard error.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use anyhow::{Result, bail};

use super::{
    child::{self, End},
    config::{Confine, Format, RunConfig},
    confine::Confinement,
    diagnostic::{Diagnostic, Kind},
    human::Human,
    json::Json,
    report::Report,
};
use crate::ground::{
    flight,
    host::{self, Task},
};

/// Returns the image for whose run [`RunConfig::run_in_child`] started this process, if it did.
///
/// On Windows, the process runs the same program with the same arguments, which then need not build the
/// image again.
#[must_use]
pub fn started_for() -> Option<PathBuf> {
    host::started_for()
}

impl RunConfig {
    /// Runs the driver in a confined child process, and writes the course of the run to standard
    /// output. Returns `true` if the run reported nothing except notes.
    ///
    /// If the driver corrupts or ends its process, this process reports what happened. This process
    /// must have only one thread. On Windows, the child is the same program with the same arguments,
    /// so it must call this method again for the same run.
    ///
    /// # Errors
    ///
    /// Returns an error if the process cannot be started, or if the output cannot be written.
    pub fn run_in_child(&self, format: Format) -> Result<bool> {
        let confinement = (self.confine != Confine::None).then(Confinement::of_this_system);
        let missing: Vec<&str> = confinement.into_iter().flat_map(Confinement::missing).collect();
        if self.confine == Confine::Required && !missing.is_empty() {
            bail!("cannot confine the driver, and it does not run: {}", missing.join("; "));
        }
        let parent = std::process::id();
        let confined = |notes, body: &dyn Fn(&mut dyn Report) -> Result<bool>| {
            let confine = |confinement: Confinement| confinement.apply(parent, self.into());
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
        let work = |notes| {
            confined(notes, &|report| self.run_in_process(report).map(|summary| summary.is_clean()))
        };
        child::work_if_started(|task| work(task.notes))?;
        let mut children = Children { run: self, format, task: Task::default() };
        for sentence in missing {
            children.note(sentence.to_owned())?;
        }
        let ended = match children.work("the driver runs again without them", work)? {
            End::Done(is_clean) => return Ok(is_clean),
            End::Ended(ended) => ended,
        };
        let report = |report: &mut dyn Report| {
            ended.report(self, report);
            Ok(true)
        };
        // The report also uses the symbols in the image's PDB.
        let next = "the report follows without them";
        match children.work(next, |notes| confined(notes, &report))? {
            End::Done(_) => {}
            End::Ended(_) => {
                with_report(format, children.task.notes, report)?;
            }
        }
        Ok(false)
    }
}

/// The child processes of a run, one after another.
struct Children<'a> {
    run: &'a RunConfig,
    format: Format,
    /// The task of the next process, with the number of notes so far.
    task: Task,
}

impl Children<'_> {
    /// Runs `work` in a child process, and repeats it without symbols if reading them ended the
    /// process. `next` completes the message in that case. `work` receives the number of notes so
    /// far, and returns whether the run was clean.
    fn work(&mut self, next: &str, work: impl Fn(usize) -> bool) -> Result<End> {
        let end = child::start_and_watch(self.run, self.task, || work(self.task.notes))?;
        let End::Ended(ended) = &end else {
            return Ok(end);
        };
        let Some(sentence) = ended.give_up_symbols() else {
            return Ok(end);
        };
        self.note(format!("{sentence}; {next}"))?;
        self.task.without_symbols = true;
        child::start_and_watch(self.run, self.task, || work(self.task.notes))
    }

    fn note(&mut self, message: String) -> Result<()> {
        with_report(self.format, 0, |report| {
            report.diagnostic(&Diagnostic::sentence(Kind::Note, message));
            Ok(())
        })?;
        self.task.notes += 1;
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
