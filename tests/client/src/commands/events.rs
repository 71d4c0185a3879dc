//! `trace` and `record`.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use etl_file::Trace;
use etw_scenarios::Source;

use crate::{
    arguments::{LiveSession, RecordOptions, TraceOptions},
    consumer::{Consumer, Feed},
    error::Failure,
    guid::from_windows,
    process,
    session::{Buffers, Counts, Delivery, OwnSession},
    tdh,
};

fn start(live: &LiveSession, delivery: Delivery<'_>) -> Result<OwnSession, Failure> {
    process::catch_interrupts()?;
    let session = OwnSession::start(&live.session, delivery, Buffers::default())?;
    session.session().enable(live.source, &live.filter)?;
    Ok(session)
}

/// Prints a warning if the session lost events or buffers.
fn warn_of_losses(counts: Counts) {
    let Counts { events_lost, buffers_lost, real_time_buffers_lost, .. } = counts;
    if events_lost + buffers_lost + real_time_buffers_lost > 0 {
        eprintln!(
            "warning: the session lost {events_lost} events, {buffers_lost} buffers that could not \
             be written to the file, and {real_time_buffers_lost} buffers that no consumer read \
             in time"
        );
    }
}

/// Formats an event as a line of the live table.
fn line(event: &tdh::Event) -> String {
    let fields: Vec<String> =
        event.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let problem =
        event.problem.as_ref().map_or_else(String::new, |problem| format!("  [{problem}]"));
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

/// Shows events in real time, or those of a recorded file.
pub fn trace(options: &TraceOptions) -> Result<(), Failure> {
    if let Some(manifest) = &options.man {
        tdh::load_manifest(manifest)?;
    }
    let json = options.json;
    let (session, feed, only) = if let Some(file) = &options.file {
        process::catch_interrupts()?;
        let only = match options.live.source {
            Source::Provider(provider) => Some(provider),
            Source::Group(_) => None,
        };
        (None, Feed::File(file), only)
    } else {
        let session = start(&options.live, Delivery::RealTime)?;
        (Some(session), Feed::Session(&options.live.session), None)
    };
    let failed: Arc<Mutex<Option<io::Error>>> = Arc::default();
    let failure = Arc::clone(&failed);
    if !json {
        println!(
            "{:<30} {:>6} {:>6} {:>2} {:>5} {:<24} Fields",
            "Time", "PID", "TID", "L", "Key", "Event"
        );
    }
    let consumer = Consumer::attach(feed, move |record| {
        // A file starts with an event that describes the file.
        let provider = from_windows(&record.EventHeader.ProviderId);
        if only.is_some_and(|only| only != provider) {
            return;
        }
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
    process::wait(options.live.seconds, is_over);
    // Before it ends, the consumer still receives the events in the session's buffers.
    let counts = session.map(OwnSession::stop).transpose()?;
    consumer.close()?;
    counts.into_iter().for_each(warn_of_losses);
    let failed = failed.lock().ok().and_then(|mut failed| failed.take());
    failed.map_or(Ok(()), |error| Err(Failure::Output(error)))
}

/// Records events to a file.
pub fn record(options: &RecordOptions) -> Result<(), Failure> {
    let path = options.out.as_path();
    let session = start(&options.live, Delivery::File(path))?;
    eprintln!("recording to {}; press Ctrl+C to stop", path.display());
    process::wait(options.live.seconds, || false);
    let counts = session.stop()?;
    warn_of_losses(counts);
    let trace = Trace::open(path)
        .map_err(|error| Failure::NoTrace { path: path.to_owned(), why: error.to_string() })?;
    println!(
        "{}: {} events in {} buffers, {} lost",
        path.display(),
        trace.events().count(),
        counts.buffers_written,
        counts.events_lost
    );
    Ok(())
}
