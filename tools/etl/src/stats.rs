//! Counts a trace's events.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{Read, Seek};
use std::num::NonZeroUsize;
use std::sync::Arc;

use comfy_table::{CellAlignment, Table, presets};

use etl_file::decode::catalog::Catalog;
use etl_file::decode::kernel;
use etl_file::decode::{Decoded, Decoder, Problem};
use etl_file::ordered::ordered;
use etl_file::pass::Pass;
use etl_file::read::{
    Damages, EventRef, ReadError, RecordBatch, RecordRef, TraceFile, TraceHeader,
};
use etl_file::select::Selection;
use etl_file::show::Escaped;
use etl_file::stacks::StackCounts;
use etl_file::stream::{Additions, RecordCounts};
use etl_file::time::FileTime;

/// The counts of one kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    events: u64,
    bytes: u64,
}

impl Count {
    const fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }
}

/// The number of events of each process.
type Processes = BTreeMap<String, u64>;

/// The names by which events are grouped: provider, event and level.
type Names = [String; 3];

/// The numbers of a trace's events by provider, event and level, its time span, and its lost and
/// skipped records.
#[derive(Debug, Default)]
pub struct Stats {
    counts: BTreeMap<Names, Count>,
    /// The names and counts, by the decoder's number for the kind.
    recent: HashMap<u64, (Names, Count)>,
    first: Option<FileTime>,
    last: Option<FileTime>,
    /// The number of events with user data but without a schema.
    unknown: u64,
    /// The number of events of all forms that could not be decoded completely, including those
    /// without a schema.
    with_problems: u64,
    /// The number of system records with an unknown layout; no other count includes them.
    of_system: u64,
    /// The number of WPP messages without a loaded format.
    without_format: u64,
    skipped: RecordCounts,
    late: u64,
    damaged: u64,
    events_lost: u32,
    buffers_lost: u32,
    /// The number of events by process and process name, if names are requested.
    processes: Processes,
    stacks: StackCounts,
}

/// Returns the names for an event that is not an event record.
fn names(event: &Decoded) -> Names {
    let or = |name: &Option<Arc<str>>, other: String| name.as_deref().map_or(other, str::to_owned);
    let level = event.descriptor.level.to_string();
    [
        or(&event.provider_name, event.provider.to_string()),
        or(&event.event_name, format!("id {}", event.descriptor.id)),
        or(&event.level_name, level),
    ]
}

/// The maximum number of separately counted combinations of provider, event and level; all others
/// are counted together.
const MAX_COUNTS: usize = 50_000;

impl Stats {
    /// Counts a trace's events on several threads.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek + Send>(
        file: &mut TraceFile<R>,
        catalog: &Catalog,
        threads: NonZeroUsize,
    ) -> Result<(Self, Damages), ReadError> {
        let mut stats = Self::default();
        stats.note_losses(file.header());
        let mut records = file.records();
        ordered(
            threads,
            |push| records.in_batches(push),
            || Decoder::new(catalog),
            |decoder, batch: RecordBatch| {
                let mut part = Self::default();
                for record in batch.iter() {
                    part.add(&record, decoder);
                }
                part.fold();
                part
            },
            |part| {
                stats.absorb(std::mem::take(part));
                Ok(())
            },
        )?;
        stats.late = records.late();
        let damages = records.damages().clone();
        stats.damaged = damages.count();
        Ok((stats, damages))
    }

    /// Adds the counts of later records.
    fn absorb(&mut self, part: Self) {
        for (names, count) in part.counts {
            Self::count(&mut self.counts, names).add(count);
        }
        self.first = self.first.or(part.first);
        self.last = part.last.or(self.last);
        self.unknown += part.unknown;
        self.with_problems += part.with_problems;
        self.of_system += part.of_system;
        self.without_format += part.without_format;
        self.skipped.absorb(part.skipped);
    }

    /// Also counts the stacks that belong to other events and, if names are requested, the events
    /// of each process. Reads the trace again, which is only necessary for traces with
    /// [`Contents::completes`](etl_file::stream::Contents::completes).
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn complete<R: Read + Seek + Send>(
        &mut self,
        file: &mut TraceFile<R>,
        catalog: &Catalog,
        additions: &Additions,
        threads: NonZeroUsize,
    ) -> Result<(), ReadError> {
        let selection = &Selection::default();
        let pass = Pass {
            catalog,
            selection,
            additions: Some(additions),
            hardware_addresses: false,
            threads,
        };
        let counted = |(): &mut (), _: &EventRef<'_>, event: Decoded, part: &mut Processes| {
            if additions.names {
                let process = match (&event.process_name, event.process_id) {
                    (Some(name), id) => format!("{name} ({id})"),
                    (None, u32::MAX) => "(unknown)".to_owned(),
                    (None, id) => format!("({id})"),
                };
                *part.entry(process).or_default() += 1;
            }
            Ok(())
        };
        let summary = pass.run(
            file,
            || (),
            counted,
            |part| {
                for (process, events) in std::mem::take(part) {
                    self.count_process(process, events);
                }
                Ok::<_, ReadError>(())
            },
        )?;
        self.stacks = summary.stacks;
        Ok(())
    }

    /// Counts events for a process, or for all other processes.
    fn count_process(&mut self, mut process: String, events: u64) {
        if self.processes.len() >= MAX_COUNTS && !self.processes.contains_key(&process) {
            "(others)".clone_into(&mut process);
        }
        *self.processes.entry(process).or_default() += events;
    }

    const fn note_losses(&mut self, header: &TraceHeader) {
        self.events_lost = header.events_lost;
        self.buffers_lost = header.buffers_lost;
    }

    fn add(&mut self, record: &RecordRef<'_>, decoder: &mut Decoder<'_>) {
        let size = u64::try_from(record.bytes.len()).unwrap_or(u64::MAX);
        if let Some(event) = record.event() {
            let classes = decoder.catalog().classes();
            let (number, kind) = decoder.describe(&event);
            let of_class = if kind.event_name.is_none() {
                kernel::names_of_event(&event, classes)
            } else {
                None
            };
            let has_problems = if of_class.is_some() {
                let found = kernel::decode_event(&event, classes);
                let problems = found.map(|event| event.problems).unwrap_or_default();
                let of_system = problems.iter().any(Problem::is_of_system);
                self.of_system += u64::from(of_system);
                !of_system && !problems.is_empty()
            } else {
                self.unknown += u64::from(kind.is_unknown(&event));
                kind.has_problems(&event)
            };
            self.with_problems += u64::from(has_problems);
            let (_, count) = self.recent.entry(number).or_insert_with(|| {
                let descriptor = &event.descriptor;
                let or = |name: &Option<Arc<str>>, other: String| {
                    name.as_deref().map_or(other, str::to_owned)
                };
                let (provider, name) = match of_class {
                    Some((class, name)) => {
                        let name = or(&name, format!("Opcode({})", descriptor.opcode));
                        (class.to_string(), name)
                    }
                    None => (event.provider.to_string(), format!("id {}", descriptor.id)),
                };
                let names = [
                    or(&kind.provider_name, provider),
                    or(&kind.event_name, name),
                    or(&kind.level_name, descriptor.level.to_string()),
                ];
                (names, Count::default())
            });
            count.events += 1;
            count.bytes += size;
        } else if let Some(found) = kernel::decode_record(record) {
            let catalog = decoder.catalog();
            let found =
                found.described_by(catalog.formats()).described_by_classes(catalog.classes());
            let without_format = found.problems.contains(&Problem::NoFormat);
            self.without_format += u64::from(without_format);
            self.unknown += u64::from(found.problems.contains(&Problem::NoClass));
            let of_system = found.problems.iter().any(Problem::is_of_system);
            self.of_system += u64::from(of_system);
            self.with_problems += u64::from(!of_system && !found.problems.is_empty());
            // The decoder's numbers of kinds do not reach this range.
            let number = found.header.hook.map(|hook| u64::MAX - u64::from(hook));
            let names =
                || names(&found.into_decoded(record.clock(), record.processor, record.timestamp));
            let count = match number {
                Some(number) => {
                    let entry = self.recent.entry(number);
                    &mut entry.or_insert_with(|| (names(), Count::default())).1
                }
                None => Self::count(&mut self.counts, names()),
            };
            count.events += 1;
            count.bytes += size;
        } else {
            if let Some(other) = record.other() {
                self.skipped.add(&other);
            }
            return;
        }
        let time = record.time();
        self.first.get_or_insert(time);
        self.last = Some(time);
    }

    /// Returns the count for names, or the count for all other names.
    fn count(counts: &mut BTreeMap<Names, Count>, names: Names) -> &mut Count {
        if counts.len() >= MAX_COUNTS && !counts.contains_key(&names) {
            let others = ["(others)".to_owned(), String::new(), String::new()];
            return counts.entry(others).or_default();
        }
        counts.entry(names).or_default()
    }

    /// Moves the recent counts to the counts by name.
    fn fold(&mut self) {
        for (names, recent) in self.recent.drain().map(|(_, recent)| recent) {
            Self::count(&mut self.counts, names).add(recent);
        }
    }

    /// Returns the number of counted events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.counts.values().map(|count| count.events).sum()
    }

    /// Formats the counts, the event rate, the losses and the skipped records.
    #[must_use]
    pub fn render(&self) -> String {
        let mut table = Table::new();
        table
            .load_preset(presets::UTF8_FULL_CONDENSED)
            .set_header(["Provider", "Event", "Level", "Events", "Bytes"]);
        for column in [3, 4] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for ([provider, event, level], count) in &self.counts {
            table.add_row([
                Escaped(provider).to_string(),
                Escaped(event).to_string(),
                Escaped(level).to_string(),
                count.events.to_string(),
                count.bytes.to_string(),
            ]);
        }
        let mut text = format!("{}\n\n", table.trim_fmt());
        if !self.processes.is_empty() {
            let mut table = Table::new();
            table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(["Process", "Events"]);
            if let Some(column) = table.column_mut(1) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            for (process, events) in &self.processes {
                table.add_row([Escaped(process).to_string(), events.to_string()]);
            }
            text = format!("{text}{}\n\n", table.trim_fmt());
        }
        let total = self.events();
        let bytes: u64 = self.counts.values().map(|count| count.bytes).sum();
        let span = self.first.zip(self.last).map(|(first, last)| {
            #[expect(clippy::cast_precision_loss, reason = "the number is only displayed")]
            let seconds = (last.unix_nanos() - first.unix_nanos()) as f64 / 1e9;
            seconds
        });
        #[expect(clippy::cast_precision_loss, reason = "the number is only displayed")]
        let rate = span.filter(|seconds| *seconds > 0.0).map(|seconds| total as f64 / seconds);
        let _infallible = write!(text, "{total} events, {bytes} bytes");
        if let (Some(seconds), Some(rate)) = (span, rate) {
            let _infallible = write!(text, ", in {seconds:.6} s: {rate:.0} events a second");
        }
        let _infallible =
            write!(text, "\nLost: {} events, {} buffers\n", self.events_lost, self.buffers_lost);
        if self.unknown != 0 {
            let _infallible = writeln!(
                text,
                "Not decoded: {} events with data that no loaded manifest, image or MOF file describes",
                self.unknown
            );
        }
        if self.of_system != 0 {
            let _infallible = writeln!(
                text,
                "Of the system: {} records with a layout that no source describes",
                self.of_system
            );
        }
        if self.without_format != 0 {
            let _infallible = writeln!(
                text,
                "Without format: {} WPP messages that no loaded TMF file or PDB describes",
                self.without_format
            );
        }
        if self.with_problems != 0 {
            let _infallible = writeln!(
                text,
                "Partial: {} events could not be decoded completely",
                self.with_problems
            );
        }
        if self.stacks != StackCounts::default() {
            let _infallible = writeln!(text, "Stacks: {}", self.stacks);
        }
        for (kind, count) in self.skipped.iter() {
            let _infallible = writeln!(
                text,
                "Skipped: {} {} records, {} bytes",
                count.records,
                Escaped(kind),
                count.bytes
            );
        }
        if self.late != 0 {
            let _infallible = writeln!(text, "Out of order: {} records", self.late);
        }
        if self.damaged != 0 {
            let _infallible = writeln!(text, "Damaged: {} parts of the file", self.damaged);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use etl_file::header::LogFileHeader;
    use etl_file::record::{EncodedRecord, EventDescriptor, EventRecord};
    use etl_file::write::{Buffer, Finish, KernelRecord, LogFile};

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let names = |n: usize| [n.to_string(), String::new(), String::new()];
        let mut counts = BTreeMap::new();
        for n in 0..MAX_COUNTS {
            Stats::count(&mut counts, names(n)).events += 1;
        }
        assert_eq!(counts.len(), MAX_COUNTS);
        // Names that are already counted stay separate.
        Stats::count(&mut counts, names(7)).events += 1;
        assert_eq!(counts[&names(7)].events, 2);
        for n in 0..2 {
            Stats::count(&mut counts, names(MAX_COUNTS + n)).events += 1;
        }
        assert_eq!(counts.len(), MAX_COUNTS + 1);
        let others = ["(others)".to_owned(), String::new(), String::new()];
        assert_eq!(counts[&others].events, 2);
    }

    #[test]
    fn counts_are_shown_with_what_is_missing() {
        let at = |raw: i64| Some(FileTime::from_raw(134_117_966_450_000_000 + raw));
        let names = ["P", "E", "4"].map(str::to_owned);
        let count = Count { events: 10, bytes: 400 };
        let mut stats = Stats {
            counts: [(names, count)].into(),
            first: at(0),
            last: at(25_000_000),
            ..Stats::default()
        };
        let last_lines = |stats: &Stats| {
            let text = stats.render();
            let (_, lines) = text.rsplit_once("\n\n").unwrap();
            lines.to_owned()
        };
        assert_eq!(
            last_lines(&stats),
            "10 events, 400 bytes, in 2.500000 s: 4 events a second\nLost: 0 events, 0 buffers\n"
        );
        stats.last = at(0);
        stats.events_lost = 3;
        stats.buffers_lost = 2;
        stats.unknown = 4;
        stats.without_format = 5;
        stats.with_problems = 6;
        stats.late = 7;
        stats.damaged = 8;
        assert_eq!(
            last_lines(&stats),
            "10 events, 400 bytes\n\
             Lost: 3 events, 2 buffers\n\
             Not decoded: 4 events with data that no loaded manifest, image or MOF file describes\n\
             Without format: 5 WPP messages that no loaded TMF file or PDB describes\n\
             Partial: 6 events could not be decoded completely\n\
             Out of order: 7 records\n\
             Damaged: 8 parts of the file\n"
        );
    }

    #[test]
    fn processes_beyond_the_limit_are_counted_together() {
        let mut stats = Stats::default();
        for process in 0..MAX_COUNTS {
            stats.count_process(process.to_string(), 1);
        }
        stats.count_process("7".to_owned(), 1);
        for process in ["x", "y"] {
            stats.count_process(process.to_owned(), 1);
        }
        assert_eq!(stats.processes.len(), MAX_COUNTS + 1);
        assert_eq!((stats.processes["6"], stats.processes["7"]), (1, 2));
        assert_eq!(stats.processes["(others)"], 2);
    }

    #[test]
    fn events_of_classes_and_kernel_records_are_counted_with_their_bytes_and_problems() {
        let header = LogFileHeader { buffer_size: 0x1000, ..LogFileHeader::default() };
        let of_class = |opcode, version, user_data| EventRecord {
            provider: "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c".parse().unwrap(),
            descriptor: EventDescriptor { version, opcode, ..EventDescriptor::default() },
            user_data,
            ..EventRecord::default()
        };
        let unknown_version = of_class(1, 99, vec![1]);
        let empty = of_class(200, 0, vec![]);
        let mut buffer = Buffer::new(0x1000, 0);
        for event in [&unknown_version, &empty, &empty] {
            buffer.try_append(event).unwrap();
        }
        let mut bytes = 0;
        for hook in [0, 1, 0] {
            let record = KernelRecord { hook, ..KernelRecord::default() };
            let record = EncodedRecord::try_from(&record).unwrap();
            bytes += record.size() as u64;
            buffer.try_append_record(&record, 1).unwrap();
        }
        let mut log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
        log.append(&buffer, 5).unwrap();
        let file = log.finish(Finish::default()).unwrap().into_inner();
        let mut file = TraceFile::new(Cursor::new(file)).unwrap();
        let (stats, _) = Stats::read(&mut file, &Catalog::new(), NonZeroUsize::MIN).unwrap();
        // The event of an unknown version, and the trace's two header events (hook 0) without a
        // payload.
        assert_eq!((stats.events(), stats.with_problems, stats.of_system), (6, 2, 1));
        let kernel = stats.counts.iter();
        let kernel = kernel.filter(|([provider, ..], _)| provider != "Process");
        assert_eq!(kernel.clone().map(|(_, count)| count.events).sum::<u64>(), 3);
        assert_eq!(kernel.map(|(_, count)| count.bytes).sum::<u64>(), bytes);
    }
}
