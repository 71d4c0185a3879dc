//! A child process that a driver may corrupt or end, and the report of its end.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use etl_file::Trace;
use etl_file::internals::show::Escaped;

use super::{
    config::RunConfig,
    diagnostic::{self, Diagnostic, Kind},
    human::counted,
    report::{Report, Summary},
    salvage,
};
use crate::{
    ground::{
        backtrace::{Explained, Step},
        flight::{self, Flight, LastCall, Recorded},
        host::{self, Process, Shared, Task},
        image::Image,
        images::Images,
        loader, symbols,
        unwind::{self, Frame, MAX_FRAMES, Registers},
    },
    services::composition::exports::address_of,
};

/// The time between two checks of the process.
const PERIOD: Duration = Duration::from_millis(5);

/// The outcome of a process.
pub enum End {
    /// The process has finished its work, with this result.
    Done(bool),
    /// The process ended before it finished.
    Ended(Box<Ended>),
}

/// The unexpected end of a process.
pub struct Ended {
    how: String,
    recorded: Recorded,
}

/// Runs `work` in a child process, and waits for its end. `work` returns whether the run was clean.
/// A process that makes no progress for the time `max_silence` of the run is ended, unless it waits for the reader of its output. The
/// watchdog inside the process ends a driver that loops much sooner.
///
/// The calling process must have only one thread.
pub fn start_and_watch(run: &RunConfig, task: Task, work: impl FnOnce() -> bool) -> Result<End> {
    // SAFETY: all zeros are an empty recorder, whose fields are atomic.
    let shared: Shared<Flight> = unsafe { Shared::new() }.context("cannot map shared memory")?;
    let flight = shared.value();
    let process = host::start(&shared, task, &run.image, || work_here(flight, work));
    watch(process.context("cannot start a process for the driver")?, flight, run.max_silence)
}

/// If the host started this process for a task of [`start_and_watch`], runs the task's work and ends
/// the process.
pub fn work_if_started(work: impl FnOnce(Task) -> bool) -> Result<()> {
    // SAFETY: as in `start_and_watch`.
    let inherited: Option<(Shared<Flight>, Task)> =
        unsafe { Shared::inherited() }.context("cannot map the memory of the parent process")?;
    if let Some((shared, task)) = inherited {
        if task.without_symbols {
            symbols::disable();
        }
        std::process::exit(work_here(shared.value(), || work(task)));
    }
    Ok(())
}

/// Runs `work` in this process, and returns the exit code.
fn work_here(flight: &'static Flight, work: impl FnOnce() -> bool) -> i32 {
    flight::install(flight);
    abort_on_panic();
    let code = i32::from(!work());
    flight.finish();
    code
}

/// Makes a panic end the process, in every thread and profile: unwinding would pass through frames
/// of the driver's machine code. The parent process reports what was recorded.
fn abort_on_panic() {
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        show(panic);
        std::process::abort();
    }));
}

fn watch(mut process: Process, flight: &Flight, max_silence: Duration) -> Result<End> {
    let mut progress = flight.progress();
    let mut since = Instant::now();
    let mut is_silent = false;
    loop {
        let end = process.end().context("cannot wait for the driver's process")?;
        let how = match end {
            Some(host::End::Code(code)) if flight.is_finished() => return Ok(End::Done(code == 0)),
            Some(_) if is_silent => format!(
                "did not call the kernel for {} s, and the process was ended",
                max_silence.as_secs()
            ),
            Some(host::End::Code(code)) => format!("ended the process with the exit code {code}"),
            Some(host::End::By(how)) => format!("ended the process {how}"),
            None => {
                let now = flight.progress();
                if now != progress || flight.is_writing() {
                    (progress, since) = (now, Instant::now());
                }
                if !is_silent && since.elapsed() > max_silence {
                    is_silent = true;
                    // The process may already have ended by itself. It is reported in either case.
                    process.kill();
                }
                std::thread::sleep(PERIOD);
                continue;
            }
        };
        return Ok(End::Ended(Box::new(Ended { how, recorded: flight.recorded() })));
    }
}

impl Ended {
    /// If the process ended while it read symbols, disables reading more symbols, and returns a
    /// sentence about it.
    pub fn give_up_symbols(&self) -> Option<String> {
        let file = self.recorded.symbols.as_ref()?;
        symbols::disable();
        Some(format!(
            "the symbols in {} cannot be read: the reader {}; remove the file or build it again",
            etl_file::internals::show::Escaped(file),
            self.how
        ))
    }

    /// Reports the end of the process, and the trace up to its end.
    pub fn report(&self, run: &RunConfig, report: &mut dyn Report) {
        let recorded = &self.recorded;
        let mut diagnostics = vec![self.diagnostic(run)];
        diagnostics.extend(Diagnostic::of_refused(&recorded.refused));
        for line in recorded.output.lines() {
            report.output(line);
        }
        let mut note = |message| diagnostics.push(Diagnostic::sentence(Kind::Note, message));
        if recorded.output_lost > 0 {
            note(format!(
                "{} of the driver's output are lost: it printed more than is kept for a process that \
                 ends",
                counted(recorded.output_lost, "byte")
            ));
        }
        let trace = salvage::complete(&run.etl, recorded).map(|completed| {
            if completed.corrupted > 0 {
                let (count, them) = match completed.corrupted {
                    1 => ("1 event is".to_owned(), "it"),
                    count => (format!("{count} events are"), "them"),
                };
                note(format!("{count} lost, because the driver corrupted {them}"));
            }
            if completed.missing > 0 {
                let count = match completed.missing {
                    1 => "1 event is".to_owned(),
                    count => format!("{count} events are"),
                };
                note(format!(
                    "{count} lost: they were not written to the file, and more events followed than \
                     are kept for a process that ends"
                ));
            }
            completed.trace
        });
        if let Err(error) = &trace {
            let trace = run.etl.display();
            note(format!("the trace {trace} is incomplete: {error:#}"));
        }
        let trace = trace.or_else(|_| Trace::open(&run.etl)).ok();
        // The process would have reported these diagnostics only at its end.
        let catalog = run.catalog(&mut diagnostics);
        if let Some(trace) = &trace {
            for event in salvage::unshown(trace, &run.etl, recorded.shown_events, &catalog) {
                report.event(&event);
            }
        }
        diagnostic::sort(&mut diagnostics);
        for diagnostic in &diagnostics {
            report.diagnostic(diagnostic);
        }
        let events = trace.as_ref().map_or(0, |trace| trace.records().len());
        report.summary(&Summary {
            image: run.image.clone(),
            describes_events: catalog.providers().next().is_some(),
            file: run.etl.clone(),
            events: u64::try_from(events).unwrap_or(u64::MAX),
            events_lost: trace.map_or(0, |trace| trace.header().events_lost),
            calls: recorded.calls,
            statistics: None,
            peak_stack: None,
            errors: diagnostic::count(&diagnostics, Kind::Failure),
            warnings: diagnostic::count(&diagnostics, Kind::Warning),
            notes: diagnostic::count(&diagnostics, Kind::Note),
        });
    }

    /// Returns a diagnostic that reports the end of the process and names the driver's last known call.
    fn diagnostic(&self, run: &RunConfig) -> Diagnostic {
        let Self { how, recorded } = self;
        let ended = EndedImage::load(run, recorded);
        let image = run.image.file_name().unwrap_or_default();
        let fault = recorded.fault.and_then(|address| {
            let place = ended.as_ref()?.place(address)?;
            Some(format!(", in {place}"))
        });
        let fault = fault.unwrap_or_default();
        let mut parts = vec![format!("{} {how}{fault}", image.to_string_lossy())];
        let stack = if let Some(call) = &recorded.last_call {
            let explained = ended.map(|ended| ended.explain(call)).unwrap_or_default();
            let place = Some(explained.place).filter(|place| !place.is_empty());
            let place = place.unwrap_or_else(|| format!("0x{:016X}", call.caller.rip));
            parts.push(format!("its last call is {} from {place}", Escaped(&call.routine)));
            explained.lines
        } else {
            parts.push("it never called the kernel".to_owned());
            Vec::new()
        };
        if !recorded.step.is_empty() {
            parts.push(format!("the step is `{}`", Escaped(&recorded.step)));
        }
        Diagnostic { stack, ..Diagnostic::sentence(Kind::Ended, parts.join("; ")) }
    }
}

/// The driver's image. It was at another address in the process that ended.
struct EndedImage {
    image: Arc<Image>,
    images: Images,
    /// The image's address in the process that ended.
    base: u64,
}

impl EndedImage {
    fn load(run: &RunConfig, recorded: &Recorded) -> Option<Self> {
        let image = Arc::new(loader::load(&run.image, &address_of).ok()?);
        let images = Images::default();
        images.add(&image);
        let base = Some(recorded.image).filter(|base| *base != 0)?;
        Some(Self { image, images, base })
    }

    /// Converts an address in the image in the ended process to an address in this process.
    fn here(&self, address: u64) -> Option<u64> {
        let here = address.checked_sub(self.base)?.checked_add(self.image.base())?;
        Some(here).filter(|here| self.image.contains(*here))
    }

    fn place(&self, address: u64) -> Option<String> {
        let frame = Frame { address: self.here(address)?, is_return: false };
        Some(self.images.explain(&vec![Step::Code(frame)]).place)
    }

    /// Describes the driver's call stack at the last call.
    fn explain(&self, call: &LastCall) -> Explained {
        let unwind = |registers: &mut Registers, is_return| {
            let at = registers.rip;
            self.here(at).ok_or(unwind::End::Left(at))?;
            let read = |address| call.word(address);
            self.image.unwind_at(self.base, registers, is_return, read)
        };
        let (frames, end) = unwind::walk(call.caller, true, MAX_FRAMES, unwind);
        let frames = frames.into_iter().filter_map(|frame| {
            let address = self.here(frame.address)?;
            Some(Step::Code(Frame { address, ..frame }))
        });
        let mut explained = self.images.explain(&frames.collect());
        if matches!(end, unwind::End::Unreadable(_)) {
            explained.lines.push("… the rest of the stack was not kept".to_owned());
        }
        explained
    }
}
