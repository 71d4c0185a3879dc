//! Selects the records that a part of a trace needs.
//!
//! Besides the selected events, a part of a trace contains the records that help to interpret them:
//! the system's configuration, processes, threads and images, file and key names, schemas and
//! stacks. Windows writes many of these at the start or end of a trace (rundown), possibly outside
//! the selected time.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::io::{Read, Seek};

use etw_wire::Guid;

use crate::completion::Tables;
use crate::decode::catalog::Catalog;
use crate::decode::schemas;
use crate::decode::{Decoded, Decoder, Kind, Value};
use crate::names::{self, Names, Running, names_method};
use crate::pipeline::decode_record;
use crate::read::{ReadError, RecordRef, TraceFile};
use crate::select::Selection;
use crate::stacks;

/// The reason why a record is in a part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The record is selected.
    Selected,
    /// Selected records need the record.
    Needed,
}

/// The kernel classes whose events describe others, with two lists of event types. Events of the
/// first list apply to the whole trace, events of the second to the time after them. An empty list
/// means all types.
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

/// The opcodes `win:DC_Start` and `win:DC_Stop` of events that describe what already exists.
const RUNDOWN: [u8; 2] = [3, 4];

/// Selects the records of a part of a trace, in time order.
///
/// Memory use is limited: a stack is kept only if it follows its event closely.
#[derive(Debug)]
pub struct Trimmer<'a> {
    selection: &'a Selection,
    decoder: Decoder<'a>,
    names: Names,
    running: Running,
    /// The times of selected records, which stacks refer to, with the threads that wrote them, if
    /// known.
    times: Recent<(i64, Option<u32>)>,
    /// The match ids of half stacks in selected events.
    halves: Recent<u64>,
    /// The needs of the selected events, if the part is to have nothing else.
    needs: Option<Needs>,
}

impl<'a> Trimmer<'a> {
    /// Returns a trimmer for a trace. The catalog contains the providers' names. To select by
    /// process, reads the trace for the names of processes.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek>(
        file: &mut TraceFile<R>,
        selection: &'a Selection,
        catalog: &'a Catalog,
    ) -> Result<Self, ReadError> {
        let names = if selection.processes.is_empty() {
            Names::new()
        } else {
            Tables::collect(file)?.names
        };
        Ok(Self {
            selection,
            decoder: Decoder::new(catalog),
            names,
            running: Running::new(),
            times: Recent::default(),
            halves: Recent::default(),
            needs: None,
        })
    }

    /// Limits the part to the selected events and what decoding them needs: the schemas of their
    /// providers, their stacks, and the processes, threads and images of their processes. Reads the trace
    /// for the selected events.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    #[doc(hidden)]
    pub fn minimal<R: Read + Seek>(mut self, file: &mut TraceFile<R>) -> Result<Self, ReadError> {
        if self.names.is_empty() {
            // The records of some events contain only a thread.
            self.names = Tables::collect(file)?.names;
        }
        let mut needs = Needs::default();
        let mut records = file.records();
        while let Some(record) = records.next()? {
            if let Some((_, event)) = decode_record(&record, &mut self.decoder) {
                let (kept, event) = self.kept(&record, event);
                needs.observe(&event, kept);
            }
        }
        let (running, times, halves) = Default::default();
        Ok(Self { running, times, halves, needs: Some(needs), ..self })
    }

    /// Returns the reason why the next record is in the part, or `None` if it is not.
    pub fn keeps(&mut self, record: &RecordRef<'_>) -> Option<Kept> {
        let Some((_, event)) = decode_record(record, &mut self.decoder) else {
            // Only the record's time is known.
            let is_selected =
                self.selection.is_by_time() && self.selection.wants_time(record.time());
            return is_selected.then_some(Kept::Selected);
        };
        self.kept(record, event).0
    }

    /// Returns the reason why a record is in the part, and its event with names.
    fn kept(&mut self, record: &RecordRef<'_>, mut event: Decoded) -> (Option<Kept>, Decoded) {
        self.running.follow(&mut event);
        self.names.resolve(&mut event);
        if let Some((of, thread)) = stacks::owner(&event) {
            let mut writers = [None, Some(thread)].into_iter();
            let is_needed = writers.any(|writer| self.times.contains((of, writer)));
            return (is_needed.then_some(Kept::Needed), event);
        }
        let half = event.stack.as_ref().map(|stack| stack.match_id).filter(|half| *half != 0);
        if self.selection.wants(&event) {
            self.times.add((record.timestamp, stacks::writer(&event)));
            if let Some(half) = half {
                self.halves.add(half);
            }
            return (Some(Kept::Selected), event);
        }
        let is_needed = half.is_some_and(|half| self.halves.contains(half))
            || self.describes_others(&event)
            || self.is_rundown(&event);
        (is_needed.then_some(Kept::Needed), event)
    }

    /// Returns true if a kernel event, or an event of a .NET runtime, describes other events of the
    /// part.
    fn describes_others(&self, event: &Decoded) -> bool {
        let needs = self.needs.as_ref();
        if names_method(event.provider, &event.descriptor) {
            return needs.is_none_or(|needs| needs.has_code && needs.is_of_process(event));
        }
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
        let is_description = always.is_empty()
            || always.contains(&opcode)
            || (before.contains(&opcode) && self.selection.to.is_none_or(|to| event.time <= to));
        is_description && needs.is_none_or(|needs| needs.include(event, class))
    }

    /// Returns true if an event of a selected provider describes what already exists, or contains
    /// part of the provider's manifest.
    fn is_rundown(&self, event: &Decoded) -> bool {
        let descriptor = &event.descriptor;
        let is_chunk = schemas::is_chunk(descriptor.id, descriptor.opcode, descriptor.task);
        if let Some(needs) = &self.needs {
            return is_chunk && needs.providers.contains(&event.provider);
        }
        event.kind == Kind::Event
            && (is_chunk || RUNDOWN.contains(&descriptor.opcode))
            && self.selection.wants_provider(event)
            && (is_chunk || self.selection.wants_process(event))
    }
}

/// The providers, processes and stacks that the selected events of a part need to be decoded.
#[derive(Debug, Default)]
struct Needs {
    /// The providers and processes of the selected events.
    providers: HashSet<Guid>,
    processes: HashSet<u32>,
    /// The keys of their stacks.
    keys: HashSet<u64>,
    /// True if they can contain addresses of code: a kernel event is selected, or an event has a stack.
    has_code: bool,
    /// All providers with schemas in the trace.
    described: HashSet<Guid>,
}

impl Needs {
    /// Collects the needs of an event of the trace.
    fn observe(&mut self, event: &Decoded, kept: Option<Kept>) {
        if let (Some(METADATA), Some(Value::Guid(provider))) =
            (event.provider_name.as_deref(), event.field("ProviderGuid"))
        {
            self.described.insert(*provider);
        }
        let is_stack = stacks::owner(event).is_some();
        // The other half of a selected event's stack belongs to an event that is not selected.
        let has_half = event.stack.as_ref().is_some_and(|stack| stack.match_id != 0);
        if kept.is_none() || (kept == Some(Kept::Needed) && !is_stack && !has_half) {
            return;
        }
        self.providers.insert(event.provider);
        self.has_code |= is_stack || event.stack.is_some() || event.kind != Kind::Event;
        self.keys.extend(key(event));
        self.processes.extend(event.stack.iter().filter_map(|stack| stack.process_id));
        self.keys.extend(event.stack.iter().flat_map(|stack| &stack.keys));
        let of_stack = names::id(event, "StackProcess");
        self.processes.extend([Some(event.process_id), of_stack].into_iter().flatten());
    }

    /// Returns true if an event concerns one of the processes.
    fn is_of_process(&self, event: &Decoded) -> bool {
        let process = names::id(event, "ProcessId").unwrap_or(event.process_id);
        self.processes.contains(&process)
    }

    /// Returns true if the selected events need an event of a class in [`DESCRIPTIONS`].
    fn include(&self, event: &Decoded, class: &str) -> bool {
        match class {
            METADATA => match (event.field("ProviderGuid"), event.field("Data")) {
                (Some(Value::Guid(provider)), _) => self.providers.contains(provider),
                // Some maps start with their provider; the others can belong to any provider.
                (_, Some(Value::Binary(data))) => {
                    let start = data.first_chunk().map(|start| Guid::from_bytes(*start));
                    start.is_none_or(|provider| {
                        self.providers.contains(&provider) || !self.described.contains(&provider)
                    })
                }
                _ => true,
            },
            "EventTrace" => true,
            "Process" | "Thread" => self.is_of_process(event),
            "Image" | "ImageId" => {
                let is_kernel = names::id(event, "ProcessId").is_some_and(names::is_of_kernel);
                self.is_of_process(event) || (is_kernel && self.has_code)
            }
            "PerfInfo" => self.has_code,
            "StackWalk" => key(event).is_some_and(|key| self.keys.contains(&key)),
            _ => false,
        }
    }
}

/// The class of the events that contain schemas.
const METADATA: &str = "EventMetadata";

/// Returns the key of a stack.
fn key(event: &Decoded) -> Option<u64> {
    match event.field("StackKey")? {
        Value::Pointer(key) => Some(*key),
        _ => None,
    }
}

/// The most recently added values.
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
    /// The same number as events that wait for their stacks when these are joined.
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
            let class = crate::decode::kernel::classes().iter().find(|class| &*class.name == name);
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
