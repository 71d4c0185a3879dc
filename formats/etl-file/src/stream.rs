//! The decoded events of a trace of any length, in time order.
//!
//! All outputs consume this stream. Event records are decoded with their own metadata or with a
//! catalog; kernel events, classic events and WPP messages are decoded with their classes' layouts.
//! Records that this crate cannot decode are counted.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use crate::analysis::{Enricher, FirstPass};
use crate::decode::catalog::Catalog;
use crate::decode::kernel;
use crate::decode::schemas::{Collector, Schemas};
use crate::decode::{Decoded, Decoder, Kind, Problem, Value};
use crate::read::{Damages, EventRef, Other, ReadError, RecordBuf, RecordRef, Records, TraceFile};
use crate::record::EventDescriptor;
use crate::select::Selection;
use crate::stacks::StackCounts;
use crate::symbols::Symbols;

/// The process or thread id that Windows reports for records whose header contains none.
const UNKNOWN_ID: u32 = u32::MAX;

/// Decodes a record of any form. Returns `None` if its form is unknown, or if it is shorter than
/// its header.
#[must_use]
pub fn decode_record(record: &RecordRef<'_>, decoder: &mut Decoder<'_>) -> Option<Decoded> {
    if let Some(event) = record.event() {
        let own = decoder.decode(&event);
        let found = kernel::or_by_class(own, &event, record.clock(), decoder.catalog().classes());
        Some(if found.kind == Kind::Event {
            found
        } else {
            in_hex(found, decoder.catalog().in_hex())
        })
    } else {
        let found = kernel::decode_record(record)?;
        let catalog = decoder.catalog();
        let found = found.described_by(catalog.formats()).described_by_classes(catalog.classes());
        let found = found.into_decoded(record.clock(), record.processor, record.timestamp);
        Some(in_hex(found, catalog.in_hex()))
    }
}

/// Changes the integers in fields with these names to hexadecimal. The size of a negative number is
/// unknown in the kernel's layouts; it is assumed to be 32 bits if the number fits.
fn in_hex(mut event: Decoded, names: &[String]) -> Decoded {
    let fields = event.fields.iter_mut();
    for (_, value) in fields.filter(|(field, _)| names.iter().any(|name| **name == **field)) {
        *value =
            match *value {
                Value::UInt(number) => Value::Hex(number),
                Value::Int(number) => Value::Hex(i32::try_from(number).map_or_else(
                    |_| number.cast_unsigned(),
                    |number| number.cast_unsigned().into(),
                )),
                _ => continue,
            };
    }
    event
}

/// Returns the common parts of a record of any form. Returns `None` if its form is unknown, or if
/// it is shorter than its header.
#[must_use]
pub fn view<'a>(record: &RecordRef<'a>) -> Option<EventRef<'a>> {
    record.event().or_else(|| {
        let header = kernel::RecordHeader::of(record)?;
        Some(view_of(record, &header))
    })
}

/// Hides network adapter addresses, which could identify a machine, in a decoded record. Returns
/// the record's user data with zeros in their place, or `None` if it has no such address.
#[must_use]
pub fn hide_hardware_addresses(record: &RecordRef<'_>, decoded: &mut Decoded) -> Option<Vec<u8>> {
    kernel::hide_hardware_addresses(record, decoded)
}

/// Returns the common parts of a record with a kernel header.
fn view_of<'a>(record: &RecordRef<'a>, header: &kernel::RecordHeader) -> EventRef<'a> {
    let [version, _] = header.version.to_le_bytes();
    EventRef {
        thread_id: header.thread_id.unwrap_or(UNKNOWN_ID),
        process_id: header.process_id.unwrap_or(UNKNOWN_ID),
        timestamp: record.timestamp,
        provider: header.guid.unwrap_or_default(),
        descriptor: EventDescriptor {
            id: header.hook.unwrap_or(header.message),
            version,
            level: header.level,
            opcode: header.opcode,
            ..EventDescriptor::default()
        },
        activity_id: etw_wire::Guid::default(),
        kernel_time: header.kernel_time,
        user_time: header.user_time,
        event_property: 0,
        items: crate::read::Items::default(),
        user_data: record.bytes.get(header.payload..).unwrap_or_default(),
        time: record.time(),
        processor: record.processor,
        buffer: record.buffer,
        offset: record.offset,
        pointer_size: header.pointer_size,
        flags: 0,
    }
}

/// The results of a pass over the buffers of a trace.
#[derive(Debug)]
pub struct Contents {
    /// The schemas that the trace itself contains.
    pub schemas: Schemas,
    /// True if the trace has events that can complete other events; see [`Events::complete`].
    pub completes: bool,
}

impl Contents {
    /// Examines all records of a trace, buffer by buffer.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn scan<R: Read + Seek>(file: &mut TraceFile<R>) -> Result<Self, ReadError> {
        let mut collector = Collector::new();
        let mut completes = false;
        file.each_record(|record| {
            collector.record(record.bytes);
            completes = completes || FirstPass::matters(record);
        })?;
        Ok(Self { schemas: collector.finish(), completes })
    }
}

/// The reason why a trace could not be converted.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] std::io::Error),
}

/// The number and total size of the records of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCount {
    /// The number of records.
    pub records: u64,
    /// The total size in bytes, without padding.
    pub bytes: u64,
}

/// Counts of records by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// The counts by kind name. Kinds beyond [`MAX_KINDS`](Self::MAX_KINDS) are counted together.
    kinds: BTreeMap<String, RecordCount>,
}

impl RecordCounts {
    /// The maximum number of separately counted kinds.
    pub const MAX_KINDS: usize = 1000;

    /// Counts a record.
    pub fn add(&mut self, record: &Other) {
        let one = RecordCount { records: 1, bytes: record.size.into() };
        self.add_all(record.kind.to_string(), one);
    }

    /// Adds other counts.
    pub fn absorb(&mut self, others: Self) {
        for (kind, other) in others.kinds {
            self.add_all(kind, other);
        }
    }

    fn add_all(&mut self, mut kind: String, other: RecordCount) {
        if self.kinds.len() >= Self::MAX_KINDS && !self.kinds.contains_key(&kind) {
            "other kinds".clone_into(&mut kind);
        }
        let count = self.kinds.entry(kind).or_default();
        count.records += other.records;
        count.bytes += other.bytes;
    }

    /// Returns the counts by kind name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, RecordCount)> {
        let kinds = self.kinds.iter();
        kinds.map(|(kind, count)| (kind.as_str(), *count))
    }

    /// Returns true if no records were counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// The numbers of records that a stream decoded, selected and skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of decoded records.
    pub decoded: u64,
    /// The number of decoded records that were selected.
    pub selected: u64,
    /// The number of selected records that could not be decoded completely, not including system
    /// records.
    pub with_problems: u64,
    /// The number of selected system records with an unknown layout.
    pub of_system: u64,
    /// The number of selected WPP messages without a loaded format.
    pub without_format: u64,
    /// The records that were not decoded.
    pub skipped: RecordCounts,
    /// The number of records that followed a record with a later time; see [`Records`].
    pub late: u64,
    /// The damaged parts of the file.
    pub damages: Damages,
    /// The counts of stack records.
    pub stacks: StackCounts,
    /// The number of entries for names and stacks that were dropped because the tables were full.
    pub dropped: u64,
}

impl Summary {
    /// Counts a selected event.
    pub(crate) fn count(&mut self, decoded: &Decoded) {
        self.selected += 1;
        let of_system = decoded.problems.iter().any(Problem::is_of_system);
        self.of_system += u64::from(of_system);
        self.with_problems += u64::from(!of_system && !decoded.problems.is_empty());
        self.without_format += u64::from(decoded.problems.contains(&Problem::NoFormat));
    }

    /// Adds the counts of other events and records, except for the values that exist only for a
    /// whole trace.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.decoded += other.decoded;
        self.selected += other.selected;
        self.with_problems += other.with_problems;
        self.of_system += other.of_system;
        self.without_format += other.without_format;
        self.skipped.absorb(other.skipped);
    }
}

/// The data that a stream adds to events. Stacks are always joined with their events.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// True to add process and thread names, from the trace's own kernel events.
    pub names: bool,
    /// The symbols that provide the function names of stack frames.
    pub symbols: Symbols,
}

/// A trace's decoded events, in time order.
#[derive(Debug)]
pub struct Events<'a, R> {
    records: Records<'a, R>,
    decoder: Decoder<'a>,
    selection: &'a Selection,
    summary: Summary,
    /// Completes events, if the trace has kernel events.
    enricher: Option<Enricher<RecordBuf>>,
    /// The record of the event that was last returned, if it came from the enricher.
    held: Option<RecordBuf>,
}

impl<'a, R: Read + Seek> Events<'a, R> {
    /// Decodes a trace's records, and selects events.
    #[must_use]
    pub fn new(file: &'a mut TraceFile<R>, catalog: &'a Catalog, selection: &'a Selection) -> Self {
        Self {
            records: file.records(),
            decoder: Decoder::new(catalog),
            selection,
            summary: Summary::default(),
            enricher: None,
            held: None,
        }
    }

    /// Decodes the records of a trace, selects events, and completes them with data from the
    /// trace's own kernel events: stacks, the threads of performance events, and names. This
    /// requires an additional first pass over the trace, which is only necessary for traces with
    /// [`Contents::completes`].
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn complete(
        file: &'a mut TraceFile<R>,
        catalog: &'a Catalog,
        selection: &'a Selection,
        additions: &Additions,
    ) -> Result<Self, ReadError> {
        let first = FirstPass::read(file)?;
        let mut events = Self::new(file, catalog, selection);
        events.summary.dropped = first.dropped();
        let enricher = Enricher::new(first).with_symbols(additions.symbols.clone());
        events.enricher = Some(if additions.names { enricher.with_names() } else { enricher });
        Ok(events)
    }

    /// Returns the next selected event, and the record that it was decoded from.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the iterator")]
    pub fn next(&mut self) -> Result<Option<(RecordRef<'_>, Decoded)>, ReadError> {
        if self.enricher.is_some() {
            return self.next_completed();
        }
        let mut found = None;
        while found.is_none() && self.records.advance()? {
            let Some(record) = self.records.get() else {
                continue;
            };
            let Some(decoded) = decode_record(&record, &mut self.decoder) else {
                if let Some(other) = record.other() {
                    self.summary.skipped.add(&other);
                }
                continue;
            };
            self.summary.decoded += 1;
            if self.selection.wants(&decoded) {
                self.summary.count(&decoded);
                found = Some(decoded);
            }
        }
        Ok(self.records.get().zip(found))
    }

    /// Returns the next selected event once its stack is complete.
    fn next_completed(&mut self) -> Result<Option<(RecordRef<'_>, Decoded)>, ReadError> {
        let Some(enricher) = &mut self.enricher else {
            return Ok(None);
        };
        let (record, decoded) = loop {
            let next = match enricher.pop() {
                Some(next) => Some(next),
                None if self.records.advance()? => {
                    let Some(record) = self.records.get() else {
                        continue;
                    };
                    if let Some(decoded) = decode_record(&record, &mut self.decoder) {
                        self.summary.decoded += 1;
                        let record = RecordBuf::from(&record);
                        let size = record.size();
                        enricher.push(decoded, record, size);
                    } else if let Some(other) = record.other() {
                        self.summary.skipped.add(&other);
                    }
                    continue;
                }
                None => enricher.drain(),
            };
            let Some((decoded, record)) = next else {
                return Ok(None);
            };
            if self.selection.wants(&decoded) {
                break (record, decoded);
            }
        };
        self.summary.count(&decoded);
        let record = self.held.insert(record);
        Ok(Some((record.get(), decoded)))
    }

    /// Returns the trace.
    #[must_use]
    pub const fn file(&self) -> &TraceFile<R> {
        self.records.file()
    }

    /// Returns the stream's counts so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            late: self.records.late(),
            damages: self.records.damages().clone(),
            stacks: self.enricher.as_ref().map_or_else(StackCounts::default, Enricher::stacks),
            ..self.summary.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::OtherKind;

    #[test]
    fn kinds_of_records_beyond_the_limit_are_counted_together() {
        let mut counts = RecordCounts::default();
        assert!(counts.is_empty());
        let mut add = |hook: usize| {
            counts.add(&Other {
                kind: OtherKind::System { hook: hook.try_into().unwrap() },
                offset: 0,
                size: 40,
                buffer: 1,
                processor: 0,
                timestamp: None,
            });
        };
        (0..RecordCounts::MAX_KINDS).for_each(&mut add);
        // Kinds that are already counted stay separate.
        add(1);
        add(RecordCounts::MAX_KINDS);
        add(RecordCounts::MAX_KINDS + 1);
        assert!(!counts.is_empty());
        assert_eq!(counts.iter().count(), RecordCounts::MAX_KINDS + 1);
        let of = |name: &str| {
            let (_, count) = counts.iter().find(|(kind, _)| *kind == name).unwrap();
            (count.records, count.bytes)
        };
        assert_eq!(of("system 0x0000"), (1, 40));
        assert_eq!(of("system 0x0001"), (2, 80));
        assert_eq!(of("other kinds"), (2, 80));
    }
}
