//! Completion of events with data from other events of the trace: names, locations and stacks.
//!
//! A pass over the trace collects the [`Tables`]. In the next pass, a [`Completer`] completes the
//! events: it joins stacks and, on request, fills in names.

use std::io::{Read, Seek};
use std::sync::LazyLock;

use etw_wire::Guid;

use crate::code_page::CodePage;
use crate::decode::Decoded;
use crate::decode::kernel::{self, Classes, hook::CSWITCH};
use crate::names::{Names, Running, names_method};
use crate::read::{EventRef, OtherKind, ReadError, RecordRef, TraceFile};
use crate::record::ext_type;
use crate::stacks::{Definitions, Joiner, StackCounts};
use crate::symbols::Symbols;

/// The data that completion adds to events. Stacks are always joined with their events.
#[derive(Clone, Debug, Default)]
pub struct Completion {
    /// True to add process and thread names, from the trace's own kernel events.
    pub names: bool,
    /// The symbols that provide the function names of stack frames.
    pub symbols: Symbols,
}

/// The tables that completion needs, from a pass over the trace.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The processes, threads and images.
    pub names: Names,
    /// The stacks that keys refer to.
    pub definitions: Definitions,
}

impl Tables {
    /// Reads a trace. Decodes only kernel and classic events.
    ///
    /// # Errors
    /// Returns [`ReadError::Io`] if the source cannot be read.
    pub fn collect<R: Read + Seek>(file: &mut TraceFile<R>) -> Result<Self, ReadError> {
        let clock = file.clock();
        let mut tables = Self::default();
        let mut records = file.records();
        while let Some(record) = records.next()? {
            let event = record.event();
            if event.is_some_and(|event| waits(&event)) {
                tables.definitions.expect_stacks();
            }
            if let Some(event) = &event
                && names_method(event.provider, &event.descriptor)
            {
                tables.names.observe_method(event);
            }
            if !Self::describes_others(&record, event.as_ref()) {
                continue;
            }
            let decoded = event.map_or_else(
                || kernel::decode_record(&record),
                |event| kernel::decode_event(&event, &Classes::default(), CodePage::default()),
            );
            if let Some(decoded) = decoded {
                tables.observe(&decoded.into_decoded(&clock, record.processor, record.timestamp));
            }
        }
        Ok(tables)
    }

    /// Returns the number of entries that were dropped because the tables were full.
    pub const fn dropped(&self) -> u64 {
        self.names.dropped() + self.definitions.dropped()
    }

    /// Returns true if a record can contain data about other events. `event` is its event, if it is
    /// an event record.
    fn describes_others(record: &RecordRef<'_>, event: Option<&EventRef<'_>>) -> bool {
        if let Some(event) = event {
            return event.descriptor.id == 0 && Self::is_of_tables(event.provider);
        }
        match record.kind() {
            Some(
                OtherKind::System { hook }
                | OtherKind::CompactSystem { hook }
                | OtherKind::PerfInfo { hook },
            ) => Self::are_filled_by(hook),
            Some(OtherKind::Classic { class }) => Self::is_of_tables(class),
            _ => false,
        }
    }

    /// Returns true if a class can contain events that fill the tables, or context switches.
    fn is_of_tables(class: Guid) -> bool {
        const CLASSES: [&str; 5] = ["Process", "Thread", "Image", "ImageId", "StackWalk"];
        static GUIDS: LazyLock<Vec<Guid>> = LazyLock::new(|| {
            let classes = kernel::classes();
            let known = classes.iter().filter(|class| CLASSES.contains(&&*class.name));
            known.map(|class| class.guid).collect()
        });
        GUIDS.contains(&class)
    }

    /// Returns true if completion needs a record: it describes a process, a thread, an image, a
    /// stack or a context switch, or part of its stack is in another record. Every Windows trace
    /// has other kernel records, which describe the trace itself.
    pub fn need(record: &RecordRef<'_>) -> bool {
        let event = record.event_without_time();
        let switch = match record.kind() {
            Some(
                OtherKind::System { hook }
                | OtherKind::CompactSystem { hook }
                | OtherKind::PerfInfo { hook },
            ) => hook == CSWITCH,
            _ => false,
        };
        switch
            || Self::describes_others(record, event.as_ref())
            || event.is_some_and(|event| {
                waits(&event) || names_method(event.provider, &event.descriptor)
            })
    }

    /// Returns true if events with a hook id fill the tables: events of processes, threads, images
    /// and stacks.
    const fn are_filled_by(hook: u16) -> bool {
        let [opcode, group] = hook.to_le_bytes();
        match group {
            0x03 | 0x14 | 0x18 => true,
            0x05 => matches!(opcode, 1..=4 | 0x48),
            _ => false,
        }
    }

    /// Collects the data of an event. Only kernel and classic events have such data. Events should
    /// be passed in time order.
    pub fn observe(&mut self, event: &Decoded) {
        self.names.observe(event);
        self.definitions.observe(event);
    }
}

/// Returns true if part of an event's stack is in another event: a key refers to its frames, or the
/// other half follows.
fn waits(event: &EventRef<'_>) -> bool {
    event.items.iter().any(|(kind, item)| match kind {
        ext_type::STACK_KEY32 | ext_type::STACK_KEY64 => true,
        ext_type::STACK_TRACE32 | ext_type::STACK_TRACE64 => !item.starts_with(&[0; 8]),
        _ => false,
    })
}

/// Completes events. `T` is the caller's data for each event.
#[derive(Debug)]
pub struct Completer<'a, T> {
    names: Names,
    completion: &'a Completion,
    running: Running,
    joiner: Joiner<T>,
}

impl<'a, T> Completer<'a, T> {
    /// Returns a completer for the events of the trace that `tables` comes from.
    pub fn new(tables: Tables, completion: &'a Completion) -> Self {
        Self {
            names: tables.names,
            completion,
            running: Running::new(),
            joiner: Joiner::new(tables.definitions),
        }
    }

    /// Takes the next event in time order. [`pop`](Self::pop) then returns the events that are
    /// complete. `size` is the memory size of `beside` in bytes.
    pub fn push(&mut self, mut event: Decoded, beside: T, size: usize) {
        self.running.follow(&mut event);
        self.joiner.push(event, beside, size);
    }

    /// Returns the oldest event, if its stack is complete or no longer expected.
    pub fn pop(&mut self) -> Option<(Decoded, T)> {
        let next = self.joiner.pop()?;
        Some(self.complete(next))
    }

    /// Returns the oldest event, complete or not; call this after the last event.
    pub fn drain(&mut self) -> Option<(Decoded, T)> {
        let next = self.joiner.drain()?;
        Some(self.complete(next))
    }

    /// Returns the stack counts so far.
    pub const fn stacks(&self) -> StackCounts {
        self.joiner.counts()
    }

    fn complete(&self, (mut event, beside): (Decoded, T)) -> (Decoded, T) {
        if self.completion.names {
            self.names.resolve(&mut event);
        }
        self.names.place_frames(&mut event, &self.completion.symbols);
        self.names.place_fields(&mut event, &self.completion.symbols);
        (event, beside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Kind, Value, decoded};
    use crate::record::EventRecord;

    #[test]
    fn events_leave_at_once_unless_they_wait_for_stacks() {
        let completion = Completion::default();
        let mut completer = Completer::new(Tables::default(), &completion);
        completer.push(decoded(EventRecord::default()), 5, 0);
        assert_eq!(completer.pop().map(|(_, beside)| beside), Some(5));
        let mut tables = Tables::default();
        tables.definitions.expect_stacks();
        let mut completer = Completer::new(tables, &completion);
        completer.push(decoded(EventRecord::default()), 5, 0);
        assert!(completer.pop().is_none());
        assert_eq!(completer.drain().map(|(_, beside)| beside), Some(5));
    }

    #[test]
    fn definitions_of_stacks_that_do_not_fit_are_counted() {
        let frames = Value::Array(vec![Value::Pointer(0x1000); 60_000]);
        let definition = Decoded {
            kind: Kind::Kernel { hook: kernel::hook::STACK_DEFINITIONS[0] },
            fields: vec![("StackKey".into(), Value::Pointer(7)), ("StackFrame".into(), frames)],
            ..decoded(EventRecord::default())
        };
        let mut tables = Tables::default();
        let fitting = (8 << 20) / (60_000 * 8);
        for _ in 0..fitting {
            tables.observe(&definition);
            assert_eq!(tables.dropped(), 0);
        }
        tables.observe(&definition);
        tables.observe(&definition);
        assert_eq!(tables.dropped(), 2);
    }
}
