//! The records that a part of a trace needs.
//!
//! A part of a trace has the selected events, and the records without which they say less: the
//! system's configuration, the processes, threads and images, the names of files and keys, the
//! schemas and the stacks. Windows writes many of them at the start or at the end of a trace
//! (rundown), which may be outside the selected time.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use crate::catalog::Catalog;
use crate::decode::{Decoded, Decoder, Kind};
use crate::names::{Names, Running};
use crate::read::RecordRef;
use crate::schemas;
use crate::select::Selection;
use crate::stacks;
use crate::stream::decode_record;

/// Why a record is in a part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is selected.
    Selected,
    /// Selected records need it.
    Needed,
}

/// The classes of the kernel whose events say something about others, and the types of these events;
/// no types stand for all. The first of each pair are of the whole trace, wherever they are in it; the
/// second are of the time after them.
const DESCRIPTIONS: [(&str, &[u8], &[u8]); 13] = [
    ("EventMetadata", &[], &[]),
    ("EventTrace", &[], &[]),
    ("FileIo", &[0x00, 0x24], &[0x20, 0x23]),
    ("Image", &[0x03, 0x04], &[0x02, 0x0A]),
    ("ImageId", &[], &[]),
    ("Object", &[0x24, 0x25], &[]),
    ("PerfInfo", &[0x49, 0x4A], &[0x48]),
    ("Process", &[0x03, 0x04], &[0x01, 0x02, 0x27]),
    ("Registry", &[0x18, 0x19], &[0x16, 0x17]),
    ("StackWalk", &[0x22, 0x23, 0x24], &[]),
    ("SystemConfig", &[], &[]),
    ("SystemConfigEx", &[], &[]),
    ("Thread", &[0x03, 0x04, 0x48], &[0x01, 0x02]),
];

/// The opcodes `win:DC_Start` and `win:DC_Stop` of events that describe what existed already.
const RUNDOWN: [u8; 2] = [3, 4];

/// Chooses the records of a part of a trace, in the order of time.
///
/// Memory is bounded: a stack is kept if it comes soon after its event.
#[derive(Debug)]
pub struct Trimmer<'a> {
    selection: &'a Selection,
    decoder: Decoder<'a>,
    names: Names,
    running: Running,
    /// The times of selected records, to which stacks refer.
    times: Recent<i64>,
    /// The numbers of the stacks of which selected events have one half.
    halves: Recent<u64>,
}

impl<'a> Trimmer<'a> {
    /// Returns a trimmer for a trace. The catalog knows the names of providers; `names` are of the
    /// trace's own events, and are needed for a selection by processes.
    #[must_use]
    pub fn new(selection: &'a Selection, catalog: &'a Catalog, names: Names) -> Self {
        Self {
            selection,
            decoder: Decoder::new(catalog),
            names,
            running: Running::new(),
            times: Recent::default(),
            halves: Recent::default(),
        }
    }

    /// Returns why the next record is in the part, or `None` if it is not.
    pub fn keeps(&mut self, record: &RecordRef<'_>) -> Option<Kept> {
        let Some(mut event) = decode_record(record, &mut self.decoder) else {
            // Nothing but its time is known of the record.
            let is_selected =
                self.selection.is_by_time() && self.selection.wants_time(record.time());
            return is_selected.then_some(Kept::Selected);
        };
        self.running.follow(&mut event);
        self.names.resolve(&mut event);
        if let Some(of) = stacks::event_time(&event) {
            return self.times.contains(of).then_some(Kept::Needed);
        }
        let half = event.stack.as_ref().map(|stack| stack.match_id).filter(|half| *half != 0);
        if self.selection.wants(&event) {
            self.times.add(record.timestamp);
            if let Some(half) = half {
                self.halves.add(half);
            }
            return Some(Kept::Selected);
        }
        let is_needed = half.is_some_and(|half| self.halves.contains(half))
            || self.describes_others(&event)
            || self.is_rundown(&event);
        is_needed.then_some(Kept::Needed)
    }

    /// Returns true if an event of the kernel describes others of the part.
    fn describes_others(&self, event: &Decoded) -> bool {
        let (Kind::Kernel { .. } | Kind::Classic { .. }, Some(class)) =
            (event.kind, event.provider_name.as_deref())
        else {
            return false;
        };
        let Some((_, always, before)) = DESCRIPTIONS.iter().find(|(name, ..)| *name == class)
        else {
            return false;
        };
        let opcode = event.descriptor.opcode;
        always.is_empty()
            || always.contains(&opcode)
            || (before.contains(&opcode) && self.selection.to.is_none_or(|to| event.time <= to))
    }

    /// Returns true if an event of a selected provider describes what existed already, or is a part
    /// of its manifest.
    fn is_rundown(&self, event: &Decoded) -> bool {
        let descriptor = &event.descriptor;
        let is_chunk = schemas::is_chunk(descriptor.id, descriptor.opcode, descriptor.task);
        event.kind == Kind::Event
            && (is_chunk || RUNDOWN.contains(&descriptor.opcode))
            && self.selection.wants_provider(event)
            && (is_chunk || self.selection.wants_process(event))
    }
}

/// The last values that were added.
#[derive(Debug)]
struct Recent<T> {
    order: VecDeque<T>,
    all: HashSet<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), all: HashSet::new() }
    }
}

impl<T: Copy + Eq + Hash> Recent<T> {
    /// As many as events wait for their stacks where these are joined.
    const MAX: usize = stacks::Joiner::<()>::MAX_EVENTS;

    fn add(&mut self, value: T) {
        if !self.all.insert(value) {
            return;
        }
        self.order.push_back(value);
        if self.order.len() > Self::MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    fn contains(&self, value: T) -> bool {
        self.all.contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_events_of_known_classes() {
        for (name, always, before) in DESCRIPTIONS {
            let class = crate::kernel::classes().iter().find(|class| &*class.name == name);
            let class = class.unwrap_or_else(|| panic!("{name} is no class"));
            for opcode in always.iter().chain(before) {
                assert!(class.event(*opcode).is_some(), "{name} has no event {opcode:#x}");
            }
        }
    }

    #[test]
    fn the_oldest_values_are_forgotten() {
        let mut recent = Recent::default();
        for value in 0..Recent::<usize>::MAX {
            recent.add(value);
        }
        recent.add(0);
        assert!(recent.contains(0));
        recent.add(Recent::<usize>::MAX);
        assert!(!recent.contains(0));
        assert!(recent.contains(1));
        assert_eq!(recent.order.len(), recent.all.len());
    }
}
