//! `trace` and `record`.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Mutex},
};

use clap::ArgMatches;
use etl_file::Trace;

use crate::{
    arguments::{filter, required, source},
    consumer::Consumer,
    error::Failure,
    process,
    session::{Buffers, Counts, Delivery, OwnSession},
    tdh,
};

fn name(arguments: &ArgMatches) -> Result<&String, Failure> {
    required(arguments, "session")
}

fn start(arguments: &ArgMatches, delivery: Delivery<'_>) -> Result<OwnSession, Failure> {
    process::catch_interrupts()?;
    let session = OwnSession::start(name(arguments)?, delivery, Buffers::default())?;
    session
        .session()
        .enable(source(arguments), &filter(arguments)?)?;
    Ok(session)
}

/// Says what was lost, if anything was.
fn tell_losses(counts: Counts) {
    let Counts {
        events_lost,
        buffers_lost,
        real_time_buffers_lost,
        ..
    } = counts;
    if events_lost + buffers_lost + real_time_buffers_lost > 0 {
        eprintln!(
            "warning: lost {events_lost} events, {buffers_lost} buffers for the file, \
             {real_time_buffers_lost} buffers for consumers"
        );
    }
}

/// A line of the live table.
fn line(event: &tdh::Event) -> String {
    let fields: Vec<String> = event
        .fields
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let problem = event
        .problem
        .as_ref()
        .map_or_else(String::new, |problem| format!("  [{problem}]"));
    format!(
        "{:<30} {:>6} {:>6} {:>2} {:>5} {:<24} {}{problem}",
        event.time,
        event.process,
        event.thread,
        event.level,
        event.keyword,
        event.name,
        fields.join(" ")
    )
}

/// Shows events as they come.
pub fn trace(arguments: &ArgMatches) -> Result<(), Failure> {
    if let Some(manifest) = arguments.get_one::<PathBuf>("man") {
        tdh::load_manifest(manifest)?;
    }
    let json = arguments.get_flag("json");
    let session = start(arguments, Delivery::RealTime)?;
    let failed: Arc<Mutex<Option<io::Error>>> = Arc::default();
    let failure = Arc::clone(&failed);
    if !json {
        println!(
            "{:<30} {:>6} {:>6} {:>2} {:>5} {:<24} Fields",
            "Time", "PID", "TID", "L", "Key", "Event"
        );
    }
    let consumer = Consumer::attach(name(arguments)?, move |record| {
        let event = tdh::decode(record);
        let text = if json {
            serde_json::to_string(&event).unwrap_or_else(|error| error.to_string())
        } else {
            line(&event)
        };
        if let Err(error) = writeln!(io::stdout(), "{text}")
            && let Ok(mut failure) = failure.lock()
        {
            failure.get_or_insert(error);
        }
    })?;
    let is_over = || consumer.is_over() || failed.lock().is_ok_and(|failed| failed.is_some());
    process::wait(arguments.get_one("seconds").copied(), is_over);
    // The consumer gets what is still in the session's buffers, and then it is over.
    let counts = session.stop()?;
    consumer.close()?;
    tell_losses(counts);
    let failed = failed.lock().ok().and_then(|mut failed| failed.take());
    failed.map_or(Ok(()), |error| Err(Failure::Output(error)))
}

/// Records events to a file.
pub fn record(arguments: &ArgMatches) -> Result<(), Failure> {
    let path = required::<PathBuf>(arguments, "out")?.as_path();
    let session = start(arguments, Delivery::File(path))?;
    eprintln!("recording to {}; Ctrl+C stops it", path.display());
    process::wait(arguments.get_one("seconds").copied(), || false);
    let counts = session.stop()?;
    tell_losses(counts);
    let trace = Trace::open(path).map_err(|error| Failure::NoTrace {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    println!(
        "{}: {} events in {} buffers, {} lost",
        path.display(),
        trace.events().count(),
        counts.buffers_written,
        counts.events_lost
    );
    Ok(())
}
