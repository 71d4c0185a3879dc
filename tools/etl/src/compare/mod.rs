//! Comparison of decoded events with the output of other decoders for the same trace.
//!
//! [`Other`] holds the events of another decoder's file: tracerpt's XML, JSON with the XML of
//! Get-WinEvent's events, or the JSON lines of the sample driver's client, which decodes with TDH.
//! [`Ours`] holds the events that this crate decodes. A [`Comparison`] pairs the two and lists the
//! differing properties and fields.
//!
//! Values are compared by meaning: a number may be decimal or hexadecimal, and a GUID may have
//! braces. The package's README lists the accepted forms. A value in any other form counts as a
//! difference, so that an unknown form never counts as equal.

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
