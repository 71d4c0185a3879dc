//! The step that expects an event.

use etl_file::decode::Value;
use etl_file::internals::show::Escaped;
use etl_file::{Decoded, lines};

use super::words::quoted;
use crate::{ground::nearest::nearest, harness::recording::RecordedEvent};

/// The maximum number of events that an error shows.
const SHOWN: usize = 3;

/// An event that a script expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The event's name or id.
    name: String,
    /// The fields and their values, as written in the script.
    fields: Vec<(String, String)>,
}

impl Expectation {
    /// Parses a name and the fields, such as `Length=5`.
    pub fn parse(name: &str, words: &[&str]) -> Result<Self, String> {
        let fields = words.iter().map(|word| {
            let (field, value) = word.split_once('=').ok_or_else(|| {
                format!("`{word}` is not a field and its value; write FIELD=VALUE")
            })?;
            Ok((field.to_owned(), quoted(value).unwrap_or(value).to_owned()))
        });
        Ok(Self {
            name: quoted(name).unwrap_or(name).to_owned(),
            fields: fields.collect::<Result<_, String>>()?,
        })
    }

    /// Returns the index of the first event that matches.
    pub fn find(&self, events: &[RecordedEvent]) -> Option<usize> {
        events.iter().position(|event| {
            self.is_named(&event.decoded) && self.equal_fields(&event.decoded) == self.fields.len()
        })
    }

    /// Returns an error that lists the most similar events.
    pub fn complaint(&self, events: &[RecordedEvent]) -> String {
        let wanted: Vec<String> = std::iter::once(self.name.clone())
            .chain(self.fields.iter().map(|(field, value)| format!("{field}={value}")))
            .collect();
        let what = format!(
            "no event {} was written since the last expected one",
            Escaped(&wanted.join(" "))
        );
        if events.is_empty() {
            return format!("{what}; no events were written at all");
        }
        let mut near: Vec<&Decoded> = events
            .iter()
            .map(|event| &event.decoded)
            .filter(|event| self.is_named(event))
            .collect();
        if near.is_empty() {
            let names = events.iter().filter_map(|event| event.decoded.event_name.as_deref());
            let name = nearest(&self.name, names);
            near.extend(
                events
                    .iter()
                    .map(|event| &event.decoded)
                    .filter(|event| name.is_none() || event.event_name.as_deref() == name),
            );
        }
        let count = near.len();
        near.sort_by_key(|event| std::cmp::Reverse(self.equal_fields(event)));
        let mut lines = vec![format!("{what}; the nearest:")];
        let shown = near.iter().take(SHOWN);
        lines.extend(shown.map(|event| format!("    {}", lines::line(event))));
        if count > SHOWN {
            lines.push(format!("    and {} more", count - SHOWN));
        }
        lines.join("\n")
    }

    fn is_named(&self, event: &Decoded) -> bool {
        event.event_name.as_deref() == Some(self.name.as_str())
            || self.name.parse() == Ok(event.descriptor.id)
    }

    /// Returns the number of an event's fields that have the expected values.
    fn equal_fields(&self, event: &Decoded) -> usize {
        let has = |(field, wanted): &&(String, String)| {
            let mut fields = event.fields.iter();
            fields.any(|(name, value)| **name == **field && is_equal(value, wanted))
        };
        self.fields.iter().filter(has).count()
    }
}

/// Returns whether a value matches the script: the same number in any notation, or the string that
/// `etl dump` prints.
fn is_equal(value: &Value, wanted: &str) -> bool {
    match value {
        Value::Text(text) => text == wanted,
        Value::Named { value, name, signed } => {
            let is_number = number(wanted)
                == Some(if *signed { value.cast_signed().into() } else { (*value).into() });
            **name == *wanted || is_number
        }
        Value::Int(value) => number(wanted) == Some((*value).into()),
        Value::UInt(value)
        | Value::Hex(value)
        | Value::Pointer(value)
        | Value::ProcessId(value)
        | Value::ThreadId(value) => number(wanted) == Some((*value).into()),
        Value::NtStatus(value) | Value::HResult(value) | Value::Win32Error(value) => {
            number(wanted) == Some((*value).into()) || is_status(*value, wanted)
        }
        other => other.to_string().eq_ignore_ascii_case(wanted),
    }
}

/// Returns whether a status has the given name.
fn is_status(value: u32, name: &str) -> bool {
    crate::ground::NtStatus::from_bits(value).name() == Some(name)
}

/// Parses a number, which may be negative or hexadecimal.
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let digits = digits
        .strip_prefix("0x")
        .map_or_else(|| digits.parse().ok(), |digits| i128::from_str_radix(digits, 16).ok());
    digits.and_then(|number: i128| number.checked_mul(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_name_is_equal_to_either_and_may_be_negative() {
        let named = |signed| Value::Named { value: u64::MAX, name: "None".into(), signed };
        assert!(is_equal(&named(true), "None") && is_equal(&named(true), "-1"));
        assert!(!is_equal(&named(true), "18446744073709551615"));
        assert!(is_equal(&named(false), "18446744073709551615"));
        assert!(!is_equal(&named(false), "-1"));
    }
}
