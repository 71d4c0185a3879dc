//! A run in a process of its own, which the driver may corrupt or end.

use std::{
    ffi::c_void,
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use etl_file::{Trace, show::Escaped};
use nix::{
    errno::Errno,
    sys::{
        mman::{MapFlags, ProtFlags, mmap_anonymous},
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};

use super::{
    finding::{Finding, Kind},
    options::Run,
    play::{Report, Summary},
    salvage,
};
use crate::{
    ground::{
        flight::{self, Flight, Recorded},
        images::Images,
        loader, symbols,
    },
    services::exports::address_of,
};

/// The time between two looks at the process.
const PERIOD: Duration = Duration::from_millis(5);

/// The time after which a process that neither calls the kernel nor takes a step is ended. The
/// watchdog within the process ends a driver that loops much sooner.
const MAX_SILENCE: Duration = Duration::from_mins(2);

/// The end of a process.
pub enum End {
    /// It has done its work, with this result.
    Done(bool),
    /// It ended on the way.
    Ended(Ended),
}

/// The unexpected end of a process.
pub struct Ended {
    how: String,
    recorded: Recorded,
}

/// Runs `work` in a process of its own. `work` returns whether the run was clean.
///
/// This process must have one thread.
pub fn run_in_child(work: impl FnOnce() -> bool) -> Result<End> {
    let flight = shared()?;
    // SAFETY: this process has one thread, as the caller guarantees, so the child's memory is as
    // consistent as this one's.
    match unsafe { fork() }.context("cannot start a process for the driver")? {
        ForkResult::Child => {
            flight::install(flight);
            let code = i32::from(!work());
            flight.finish();
            std::process::exit(code);
        }
        ForkResult::Parent { child } => watch(child, flight),
    }
}

/// Returns a recorder in memory that is shared with children.
fn shared() -> Result<&'static Flight> {
    let size = NonZeroUsize::new(size_of::<Flight>()).context("the recorder has no size")?;
    // SAFETY: a fresh anonymous mapping aliases nothing.
    let mapping = unsafe {
        mmap_anonymous(
            None,
            size,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_SHARED,
        )
    };
    let mapping: std::ptr::NonNull<c_void> = mapping.context("cannot map shared memory")?;
    // SAFETY: the mapping is as large as a recorder, aligned to a page, zero, which is a valid
    // recorder, and never unmapped.
    Ok(unsafe { mapping.cast::<Flight>().as_ref() })
}

/// Waits for a process to end.
fn watch(child: Pid, flight: &Flight) -> Result<End> {
    let mut progress = flight.progress();
    let mut since = Instant::now();
    let mut is_silent = false;
    loop {
        let how = match waitpid(child, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) if flight.is_finished() => {
                return Ok(End::Done(code == 0));
            }
            Ok(WaitStatus::Exited(_, code)) => {
                format!("ended the process with the exit code {code}")
            }
            Ok(WaitStatus::Signaled(..)) if is_silent => format!(
                "did not call the kernel for {} s, and the process was ended",
                MAX_SILENCE.as_secs()
            ),
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                format!("ended the process by the signal {signal}")
            }
            Ok(_) | Err(Errno::EINTR) => {
                let now = flight.progress();
                if now != progress {
                    (progress, since) = (now, Instant::now());
                }
                if !is_silent && since.elapsed() > MAX_SILENCE {
                    is_silent = true;
                    // It may have ended by itself meanwhile, and is reported in any case.
                    let _ended = kill(child, Signal::SIGKILL);
                }
                std::thread::sleep(PERIOD);
                continue;
            }
            Err(error) => bail!("cannot wait for the driver's process: {error}"),
        };
        return Ok(End::Ended(Ended {
            how,
            recorded: flight.recorded(),
        }));
    }
}

impl Ended {
    /// If the process ended while it read symbols, reads no more of them from now on. Returns a
    /// sentence that says so.
    pub fn give_up_symbols(&self) -> Option<String> {
        let file = self.recorded.symbols.as_ref()?;
        symbols::disable();
        Some(format!(
            "the symbols in {} cannot be read: the reader {}; remove the file or build it again",
            etl_file::show::Escaped(file),
            self.how
        ))
    }

    /// Reports the end of the process, and the trace until then.
    pub fn report(&self, run: &Run, report: &mut dyn Report) {
        let Self { how, recorded } = self;
        let place = |address: u64| place(run, recorded, address);
        let image = run.image.file_name().unwrap_or_default();
        let fault = recorded.fault.and_then(place);
        let fault = fault.map_or_else(String::new, |place| format!(", in {place}"));
        let mut parts = vec![format!("{} {how}{fault}", image.to_string_lossy())];
        parts.push(recorded.last_call.as_ref().map_or_else(
            || "it never called the kernel".to_owned(),
            |(routine, address)| {
                let place = place(*address);
                let place = place.unwrap_or_else(|| format!("0x{address:016X}"));
                format!("its last call is {routine} from {place}")
            },
        ));
        if !recorded.step.is_empty() {
            parts.push(format!("the step is `{}`", Escaped(&recorded.step)));
        }
        for line in recorded.output.lines() {
            report.output(line);
        }
        let trace = salvage::complete(&run.etl, &recorded.events).map(|completed| {
            let salvage::Completed {
                trace,
                first,
                corrupted,
            } = completed;
            // Its findings were reported at the start of the run, or are of no use any more.
            let catalog = run.catalog(&mut Vec::new());
            for event in salvage::events_from(&trace, first, &catalog) {
                report.event(&event);
            }
            if corrupted > 0 {
                let message = format!("{corrupted} events that the driver corrupted are left out");
                report.finding(&Finding::sentence(Kind::Note, message));
            }
            trace
        });
        if let Err(error) = &trace {
            let message = format!("the trace {} is incomplete: {error:#}", run.etl.display());
            report.finding(&Finding::sentence(Kind::Note, message));
        }
        let trace = trace.or_else(|_| Trace::open(&run.etl)).ok();
        let events = trace.as_ref().map_or(0, |trace| trace.events().count());
        let message = parts.join("; ");
        report.finding(&Finding::sentence(Kind::Ended, message));
        report.summary(&Summary {
            image: run.image.clone(),
            file: run.etl.clone(),
            events: u64::try_from(events).unwrap_or(u64::MAX),
            events_lost: trace.map_or(0, |trace| trace.header().events_lost),
            calls: recorded.calls,
            statistics: None,
            peak_stack: None,
            errors: 1,
            warnings: 0,
            notes: 0,
        });
    }
}

/// Describes an address in the driver's image, as it was loaded in the process that has ended.
fn place(run: &Run, recorded: &Recorded, address: u64) -> Option<String> {
    let image = Arc::new(loader::load(&run.image, &address_of).ok()?);
    let here = address
        .checked_sub(recorded.image)?
        .checked_add(image.base())?;
    if recorded.image == 0 || !image.contains(here) {
        return None;
    }
    let images = Images::default();
    images.add(image);
    Some(images.place(here))
}
