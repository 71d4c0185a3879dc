//! `cargo etw trace` on Windows.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, ensure};
use clap::ArgMatches;
use etw_session::{
    AutoLogger, autologger,
    follow::{Live, follow, replay},
    guid::from_windows,
    record,
    session::{self, Counts},
    tdh,
};
use serde_json::json;
use windows_sys::Win32::System::Diagnostics::Etw::EVENT_RECORD;

use super::{
    plan::Plan,
    printer::{Printer, is_of_session},
};
use crate::options::optional;

/// The printer, which the consumer's thread uses.
type Shared = Arc<Mutex<Printer<io::Stdout>>>;

/// Runs the command.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let plan = Plan::from_arguments(matches, &|name| Ok(tdh::providers_named(name)?))?;
    if let Some(state) = optional::<String>(matches, "at-boot")? {
        return if state == "on" { at_boot(matches, plan) } else { not_at_boot(&plan) };
    }
    // The plan's catalog already contains the manifest; TDH needs it loaded for its own text.
    if let (true, Some(manifest)) = (matches.get_flag("tdh"), optional::<PathBuf>(matches, "man")?)
    {
        tdh::load_manifest(&manifest)?;
    }
    let is_json = matches.get_flag("json");
    let printer = Printer::new(io::stdout(), plan.catalog.clone(), is_json);
    let printer = Arc::new(Mutex::new(printer));
    if let Some(file) = optional::<PathBuf>(matches, "file")? {
        let mut show = show(matches, &printer);
        return Ok(replay(&file, move |record| {
            let provider = from_windows(&record.EventHeader.ProviderId);
            if plan.chooses(provider) { show(record) } else { Ok(()) }
        })?);
    }
    let etl: Option<PathBuf> = optional(matches, "etl")?;
    let live = Live {
        session: &plan.session,
        file: etl.as_deref(),
        enables: &plan.enables,
        capture_state: matches.get_flag("capture-state"),
        seconds: optional(matches, "seconds")?,
    };
    let ready = || {
        let names: Vec<String> =
            plan.enables.iter().map(|(source, _)| source.to_string()).collect();
        eprintln!("Tracing {}; press Ctrl+C to stop", names.join(", "));
    };
    let counts = follow(&live, ready, show(matches, &printer))?;
    let events = printer.lock().unwrap_or_else(PoisonError::into_inner).printed();
    finish(is_json, events, counts, etl.as_ref())
}

/// Returns the callback that prints an event.
fn show(
    matches: &ArgMatches,
    printer: &Shared,
) -> impl FnMut(&EVENT_RECORD) -> io::Result<()> + Send + use<> {
    let (is_json, by_tdh) = (matches.get_flag("json"), matches.get_flag("tdh"));
    let printer = Arc::clone(printer);
    move |record| {
        if is_of_session(from_windows(&record.EventHeader.ProviderId)) {
            return Ok(());
        }
        let mut printer = printer.lock().unwrap_or_else(PoisonError::into_inner);
        if by_tdh {
            let event = tdh::decode(record);
            let text = if is_json { serde_json::to_string(&event)? } else { event.to_string() };
            return printer.line(&text);
        }
        printer.event(&record::event(record), || tdh::schema(record))
    }
}

/// Reports the result of a session.
fn finish(is_json: bool, events: u64, counts: Option<Counts>, etl: Option<&PathBuf>) -> Result<()> {
    if is_json {
        let message = json!({
            "reason": "trace-summary",
            "events": events,
            "events_lost": counts.map(|counts| counts.events_lost),
            "buffers_lost": counts.map(|counts| counts.buffers_lost),
            "real_time_buffers_lost": counts.map(|counts| counts.real_time_buffers_lost),
            "etl": etl,
        });
        // The reader of the output can already be gone.
        match writeln!(io::stdout(), "{message}") {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => return Ok(()),
        }
    }
    match counts {
        Some(Counts { events_lost, buffers_lost, real_time_buffers_lost, .. }) => eprintln!(
            "{events} events shown; {events_lost} events, {buffers_lost} buffers of the file and \
             {real_time_buffers_lost} buffers for this program lost"
        ),
        None => eprintln!(
            "{events} events shown; another program stopped the session, so losses are unknown"
        ),
    }
    if let Some(etl) = etl {
        eprintln!("To show them again: cargo etw trace --file {}", etl.display());
    }
    Ok(())
}

/// Configures Windows to start the session at every boot.
fn at_boot(matches: &ArgMatches, plan: Plan) -> Result<()> {
    let session = plan.boot_session();
    let file = if let Some(path) = optional::<PathBuf>(matches, "etl")? {
        session::absolute(&path)?
    } else {
        let root = env::var_os("SystemRoot").context("the variable SystemRoot is not set")?;
        let folder = PathBuf::from(root).join(r"System32\LogFiles\WMI");
        folder.join(format!("{session}.etl"))
    };
    let folder = file.parent();
    ensure!(
        folder.is_some_and(Path::is_dir),
        "the folder of {} does not exist, and the session does not create it",
        file.display()
    );
    let file = file.display().to_string();
    autologger::install(&AutoLogger { session, file: file.clone(), enables: plan.enables })?;
    println!("{file}");
    eprintln!(
        "Windows will start the session at the next boot, and write this file. After that, stop \
         the session with `cargo etw trace --at-boot off` and the same arguments."
    );
    Ok(())
}

/// Stops the session that Windows started, and makes Windows no longer start it at boot.
fn not_at_boot(plan: &Plan) -> Result<()> {
    let session = plan.boot_session();
    let removed = autologger::remove(&session)?;
    let removed = removed.with_context(|| format!("Windows starts no session named {session}"))?;
    println!("{}", removed.file);
    match (removed.stopped, removed.status) {
        (Some(counts), _) => eprintln!(
            "The session is stopped; {} events and {} buffers were lost. To show its events: cargo etw \
             trace --file {}",
            counts.events_lost, counts.buffers_lost, removed.file
        ),
        (None, None) => {
            eprintln!("Windows was not restarted since `--at-boot on`, so there is no trace");
        }
        (None, Some(0)) => eprintln!("The session had been stopped before"),
        (None, Some(code)) => eprintln!(
            "warning: Windows could not start the session at boot: {}",
            io::Error::from_raw_os_error(code.cast_signed())
        ),
    }
    Ok(())
}
