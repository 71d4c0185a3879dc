//! The language-independent attributes of events.

use crate::model::Event;

/// Splits an event's attributes into pairs; a semicolon in quotation marks does not end a pair.
#[must_use]
pub fn attributes(event: &Event) -> Vec<String> {
    let mut pairs = Vec::new();
    let mut pair = String::new();
    let mut quoted = false;
    for character in event.attributes.as_deref().unwrap_or_default().chars() {
        match character {
            ';' if !quoted => pairs.push(std::mem::take(&mut pair)),
            other => {
                quoted ^= other == '"';
                pair.push(other);
            }
        }
    }
    pairs.push(pair);
    pairs.retain(|pair| !pair.is_empty());
    pairs
}
