//! `trace` and `record`.

use std::io::{self, Write};

use etl_file::Trace;
use etw_scenarios::Source;
use etw_session::{
    follow::{self, Live},
    guid::from_windows,
    process,
    session::{Buffers, Counts, Delivery, OwnSession},
    tdh,
};
use windows_sys::Win32::System::Diagnostics::Etw::EVENT_RECORD;

use crate::{
    arguments::{RecordOptions, TraceOptions},
    error::Failure,
};

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

/// Shows events in real time, or the events of a recorded file.
pub fn trace(options: &TraceOptions) -> Result<(), Failure> {
    if let Some(manifest) = &options.man {
        tdh::load_manifest(manifest)?;
    }
    let json = options.json;
    let live = &options.live;
    // A file starts with an event that describes the file.
    let source = live.target.source();
    let only = match source {
        Source::Provider(provider) if options.file.is_some() => Some(provider),
        _ => None,
    };
    if !json {
        println!(
            "{:<30} {:>6} {:>6} {:>2} {:>5} {:<24} Fields",
            "Time", "PID", "TID", "L", "Key", "Event"
        );
    }
    let show = move |record: &EVENT_RECORD| {
        if only.is_some_and(|only| only != from_windows(&record.EventHeader.ProviderId)) {
            return Ok(());
        }
        let event = tdh::decode(record);
        let text = if json { serde_json::to_string(&event)? } else { event.to_string() };
        writeln!(io::stdout(), "{text}")
    };
    if let Some(file) = &options.file {
        return Ok(follow::replay(file, show)?);
    }
    let session = Live {
        session: &options.session,
        file: None,
        enables: &[(source, live.filter.filter())],
        capture_state: false,
        seconds: live.seconds,
    };
    follow::follow(&session, || {}, show)?.into_iter().for_each(warn_of_losses);
    Ok(())
}

/// Records events to a file.
pub fn record(options: &RecordOptions) -> Result<(), Failure> {
    let path = options.out.as_path();
    let live = &options.live;
    let _interrupts = process::catch_interrupts()?;
    let session = OwnSession::start(&options.session, Delivery::File(path), Buffers::default())?;
    session.session().enable(live.target.source(), &live.filter.filter())?;
    eprintln!("recording to {}; press Ctrl+C to stop", path.display());
    process::wait(live.seconds, || false);
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
