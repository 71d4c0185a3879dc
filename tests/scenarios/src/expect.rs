//! Compares a trace with the expected events.

use etl_file::{Decoded, Guid};

use crate::describe::{describe, describe_decoded};

/// An event that is expected in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The event's name.
    pub name: &'static str,
    /// The level.
    pub level: u8,
    /// The keyword.
    pub keyword: u64,
    opcode: u8,
    related: Option<Guid>,
    fields: Vec<(&'static str, String)>,
}

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

/// Returns an expected event without fields.
pub const fn event(name: &'static str, level: u8, keyword: u64) -> Expected {
    Expected { name, level, keyword, opcode: 0, related: None, fields: Vec::new() }
}

impl Expected {
    /// Sets the opcode.
    #[must_use]
    pub const fn opcode(mut self, opcode: u8) -> Self {
        self.opcode = opcode;
        self
    }

    /// Sets the related activity.
    #[must_use]
    pub const fn related(mut self, related: Guid) -> Self {
        self.related = Some(related);
        self
    }

    /// Appends a field, with its value as text.
    #[must_use]
    pub fn field(mut self, name: &'static str, value: &impl ToString) -> Self {
        self.fields.push((name, value.to_string()));
        self
    }

    fn describe(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        describe(self.name, self.level, self.keyword, self.opcode, self.related, &fields)
    }
}

/// Compares the events of a trace with the expected ones, in order.
///
/// # Errors
///
/// Returns the first difference.
pub fn check(events: &[Decoded], expected: &[Expected]) -> Result<(), ExpectError> {
    for number in 0..events.len().max(expected.len()) {
        let nothing = || "nothing".to_owned();
        let want = expected.get(number).map_or_else(nothing, Expected::describe);
        let got = events.get(number).map_or_else(nothing, describe_decoded);
        if want != got {
            return Err(ExpectError { number: number + 1, expected: want, got });
        }
    }
    Ok(())
}
