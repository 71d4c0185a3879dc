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

pub use session::{Session, Skipped};
pub use sources::{Source, SourceError};
pub use writer::{DEFAULT_LIMIT, Writer, Written};
