//! Comparison of decoded events with the output of other decoders for the same trace.
//!
//! [`Other`] holds the events of a file that another decoder wrote: the XML of tracerpt, the events of
//! Get-WinEvent as JSON with the XML of each, or the lines of the sample driver's client, which
//! decodes with TDH. [`Ours`] holds the events that this crate decodes. A [`Comparison`] pairs the two
//! and lists the properties and fields that differ.
//!
//! Values are compared by their meaning: a number may be decimal or hexadecimal, a GUID may have
//! braces. The accepted forms are listed in the package's README. Text in any other form is a
//! difference, so that nothing is equal only because it was not understood.

mod comparison;
mod event;
mod json;
mod other;
mod ours;
mod pair;
mod property;
mod render;
#[cfg(test)]
mod tests;
mod time;
mod value;
mod xml;

pub use comparison::{Comparison, Difference, Silence};
pub use event::{Content, Form, MAX_FILE_SIZE, OtherEvent};
pub use other::{Other, OtherError};
pub use ours::{MAX_EVENTS, Ours, OursError};
pub use property::Property;
pub use render::{render, to_json};
