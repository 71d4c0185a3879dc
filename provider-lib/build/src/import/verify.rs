//! Checks an imported declaration: the declaration parser must accept it, and its differences from
//! the manifest are noted.

use std::collections::{BTreeMap, HashSet};

use etw_manifest::{Manifest, Presentation, Provider, check};

use super::{source::Part, writer::Note};
use crate::declaration::{self, Files};

/// Arbitrary image names, which do not affect the check.
const FILES: Files<'_> = Files { resources: "x.sys", messages: "x.sys" };

/// The parts of events that the declaration omits, by the event's index.
pub type LeftOut = BTreeMap<usize, Missing>;

/// A part of an event that the declaration omits.
#[derive(Clone, Debug)]
pub enum Missing {
    /// The message, for this reason.
    Message(String),
    /// The whole event, for this reason.
    Event(String),
}

/// Parses the declaration. Returns its providers, or adds the parts that must be omitted to
/// `left_out`. Returns `Err` with the reason if omitting events does not help.
pub fn accepted(
    source: &str,
    parts: &[Part],
    left_out: &mut LeftOut,
) -> Result<Option<Vec<wdk_etw_schema::Provider>>, String> {
    // A build script reads the declaration in the same way.
    let mut errors = Vec::new();
    match wdk_etw_schema::parse::source(source) {
        Ok(providers) => {
            for error in check(&declaration::manifest(&providers, &FILES)) {
                errors.push((error.at.line, error.rule.to_string()));
            }
            if errors.is_empty() {
                return Ok(Some(providers));
            }
        }
        Err(error) => {
            let all = error.into_iter();
            errors.extend(all.map(|one| (one.span().start().line, one.to_string())));
        }
    }
    let mut is_progress = false;
    let mut first = None;
    let mut seen = HashSet::new();
    for (line, reason) in errors {
        let part = parts.iter().find(|part| part.lines.contains(&line));
        let Some(event) = part.and_then(|part| part.event) else {
            first.get_or_insert_with(|| format!("line {line}: {reason}"));
            continue;
        };
        if !seen.insert(event) {
            continue;
        }
        // The error may be in the message, so the message is omitted first.
        let next = match left_out.get(&event) {
            None => Missing::Message(reason),
            Some(Missing::Message(_)) => Missing::Event(reason),
            // The event has already been omitted.
            Some(Missing::Event(_)) => continue,
        };
        is_progress = true;
        left_out.insert(event, next);
    }
    if is_progress {
        return Ok(None);
    }
    Err(first.unwrap_or_default())
}

/// Returns a note for each difference of an event between the declaration and the manifest, with
/// the event's index.
pub fn differences(
    manifest: &Manifest,
    provider: &Provider,
    declared: &[wdk_etw_schema::Provider],
) -> Vec<(usize, Note)> {
    let declared = declaration::manifest(declared, &FILES);
    let mut notes = Vec::new();
    for other in &declared.providers {
        for (at, event) in provider.events.iter().enumerate() {
            let mut events = other.events.iter();
            let same = events.find(|one| (one.id, one.version) == (event.id, event.version));
            let Some(same) = same else { continue };
            let wanted = Presentation::for_event(manifest, provider, event);
            let found = Presentation::for_event(&declared, other, same);
            for difference in found.differences(&wanted) {
                let what =
                    format!("event {} version {} changes: {difference}", event.id, event.version);
                notes.push((at, Note { at: event.at, what }));
            }
        }
    }
    notes
}
