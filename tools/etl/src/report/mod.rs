//! Reports: HTML pages that show traces in a browser.
//!
//! A page is a single file that loads nothing else. It starts with the trace's problems, and has a
//! timeline of processors, threads and activities, counts, and a table of events that can be
//! filtered, searched and expanded. [`Writer`] creates a page from a stream of events.
//!
//! The contents of a trace are untrusted. The page stores them as data that no browser interprets
//! as markup or script, shows them only as text, and has a policy that permits only its own script
//! and style.

mod columns;
mod density;
mod details;
mod page;
mod sample;
mod session;
mod sources;
mod spill;
mod writer;

use std::io::{self, Write};

pub use session::{Session, Skipped};
pub use sources::{Source, SourceError};
pub use writer::{DEFAULT_LIMIT, Writer, Written};

use etl_file::decode::catalog::Catalog;
use etl_file::decode::decode;
use etl_file::read::{Event, Trace};

/// A trace and its name.
pub struct Input<'a> {
    /// The name, for example the file's name.
    pub name: &'a str,
    /// The trace.
    pub trace: &'a Trace,
}

/// Writes a page for traces in memory, with at most `limit` of their events.
/// [`Writer::add_files`] reads traces of any length.
///
/// # Errors
/// Fails with the error of `out` or of a temporary file.
pub fn write(
    inputs: &[Input<'_>],
    catalog: &Catalog,
    limit: u32,
    out: impl Write,
) -> io::Result<Written> {
    let names: Vec<&str> = inputs.iter().map(|input| input.name).collect();
    let mut page = Writer::new(names.join(", "), limit)?;
    for input in inputs {
        page.add_session(Session::of(input.name, input.trace));
    }
    let mut events: Vec<&Event> = inputs.iter().flat_map(|input| input.trace.events()).collect();
    events.sort_by_key(|event| event.time);
    for event in events {
        page.push(&decode(event, catalog))?;
    }
    page.finish(out)
}
