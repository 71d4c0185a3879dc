//! Compares a trace with the expected events.

use etl_file::Decoded;

use crate::describe::describe_decoded;

/// The first difference between a trace and the expected events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {number} is {got}, expected {expected}")]
pub struct ExpectError {
    /// The event's position in the trace, counted from 1.
    pub number: usize,
    /// The expected event.
    pub expected: String,
    /// The actual event.
    pub got: String,
}

/// Compares the events of a trace with the expected events, each on one line, in order.
///
/// # Errors
///
/// Returns the first difference.
pub fn check(events: &[Decoded], expected: &[&str]) -> Result<(), ExpectError> {
    for number in 0..events.len().max(expected.len()) {
        let nothing = || "nothing".to_owned();
        let want = expected.get(number).map_or_else(nothing, |&line| line.to_owned());
        let got = events.get(number).map_or_else(nothing, describe_decoded);
        if want != got {
            return Err(ExpectError { number: number + 1, expected: want, got });
        }
    }
    Ok(())
}
