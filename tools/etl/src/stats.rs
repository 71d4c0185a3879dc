//! Counts a trace's events.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{Read, Seek};
use std::sync::Arc;

use comfy_table::{CellAlignment, Table, presets};
use etw_wire::Guid;

use etl_file::decode::Problem;
use etl_file::internals::show::Escaped;
use etl_file::{
    Damages, Decoded, EventRef, FileTime, Pipeline, ReadError, StackCounts, Summary, TraceFile,
};

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
    part: Part,
    summary: Summary,
    /// The number of damaged parts.
    damaged: u64,
    /// The number of other traces whose counts were added.
    others: u32,
    events_lost: u32,
    buffers_lost: u32,
    /// The number of events by process and process name, if names are requested.
    processes: Processes,
}

/// The counts of consecutive events.
#[derive(Debug, Default)]
struct Part {
    counts: BTreeMap<Names, Count>,
    /// The counts that have not been added to the counts by name yet, by a hash of their kind.
    recent: HashMap<u64, (Kind, Count)>,
    first: Option<FileTime>,
    last: Option<FileTime>,
    /// The number of events with user data but without a schema.
    unknown: u64,
}

/// Everything that determines the names of an event.
#[derive(Debug, PartialEq)]
struct Kind {
    provider: Guid,
    id: u16,
    level: u8,
    /// The names of provider, event and level.
    names: [Option<Arc<str>>; 3],
}

impl Kind {
    fn from_event(event: &Decoded) -> Self {
        Self {
            provider: event.provider,
            id: event.descriptor.id,
            level: event.descriptor.level,
            names: Self::names_of(event).map(Clone::clone),
        }
    }

    const fn names_of(event: &Decoded) -> [&Option<Arc<str>>; 3] {
        [&event.provider_name, &event.event_name, &event.level_name]
    }

    /// Returns true if an event is of this kind.
    fn is_of(&self, event: &Decoded) -> bool {
        let is_same = |(one, other): (&Option<Arc<str>>, &Option<Arc<str>>)| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
            (one, other) => one.is_none() && other.is_none(),
        };
        self.provider == event.provider
            && self.id == event.descriptor.id
            && self.level == event.descriptor.level
            && self.names.iter().zip(Self::names_of(event)).all(is_same)
    }

    /// Returns a hash. Events of a kind whose names are different copies can have different hashes.
    fn hash(event: &Decoded) -> u64 {
        let [provider, name, _] = Self::names_of(event).map(|name| {
            let name = name.as_ref().map(Arc::as_ptr);
            name.map_or(0, |name| name.cast::<u8>().addr() as u64)
        });
        provider.rotate_left(32)
            ^ name
            ^ u64::from(event.descriptor.id) << 48
            ^ u64::from(event.descriptor.level) << 40
    }

    fn into_names(self) -> Names {
        let [provider, event, level] = self.names;
        let or =
            |name: Option<Arc<str>>, other: String| name.as_deref().map_or(other, str::to_owned);
        [
            or(provider, self.provider.to_string()),
            or(event, format!("id {}", self.id)),
            or(level, self.level.to_string()),
        ]
    }
}

impl Part {
    fn add(&mut self, record: &EventRef<'_>, event: &Decoded) {
        self.unknown += u64::from(is_unknown(event));
        let count = Count { events: 1, bytes: record.size as u64 };
        match self.recent.entry(Kind::hash(event)) {
            Entry::Occupied(mut known) if known.get().0.is_of(event) => {
                known.get_mut().1.add(count);
            }
            Entry::Occupied(mut other) => {
                let (other, counted) = other.insert((Kind::from_event(event), count));
                Self::count(&mut self.counts, other.into_names()).add(counted);
            }
            Entry::Vacant(new) => {
                new.insert((Kind::from_event(event), count));
            }
        }
        self.first.get_or_insert(event.time);
        self.last = Some(event.time);
    }

    /// Adds the counts of other events.
    fn absorb(&mut self, other: Self) {
        let recent = other.recent.into_values().map(|(kind, count)| (kind.into_names(), count));
        for (names, count) in other.counts.into_iter().chain(recent) {
            Self::count(&mut self.counts, names).add(count);
        }
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        self.unknown += other.unknown;
    }

    /// Returns the count for names, or the count for all other names.
    fn count(counts: &mut BTreeMap<Names, Count>, names: Names) -> &mut Count {
        if counts.len() >= MAX_COUNTS && !counts.contains_key(&names) {
            let others = ["(others)".to_owned(), String::new(), String::new()];
            return counts.entry(others).or_default();
        }
        counts.entry(names).or_default()
    }
}

/// Returns true if an event has user data, but no schema.
fn is_unknown(event: &Decoded) -> bool {
    event.problems.iter().any(|problem| match problem {
        Problem::NoSchema | Problem::NoClass => true,
        // Damaged metadata can still have a name and fields.
        Problem::Schema(_) => event.event_name.is_none() && !event.leftover.is_empty(),
        _ => false,
    })
}

/// The maximum number of separately counted combinations of provider, event and level; all others
/// are counted together.
const MAX_COUNTS: usize = 50_000;

impl Stats {
    /// Counts a trace's events. The pipeline's completion also counts the stacks that belong to
    /// other events and, if it adds names, the events of each process; this requires more passes
    /// over the trace.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek + Send>(
        file: &mut TraceFile<R>,
        pipeline: &Pipeline<'_>,
    ) -> Result<(Self, Damages), ReadError> {
        let header = file.header();
        let (events_lost, buffers_lost) = (header.events_lost, header.buffers_lost);
        let mut stats = Self { events_lost, buffers_lost, ..Self::default() };
        // Completion removes the records of stacks, which also count.
        let all = Pipeline { completion: None, details: false, ..*pipeline };
        stats.summary = all.run(
            file,
            || (),
            |(), record, event, part: &mut Part| {
                part.add(record, &event);
                Ok(())
            },
            |part| {
                stats.part.absorb(std::mem::take(part));
                Ok::<_, ReadError>(())
            },
        )?;
        if let Some(completion) = pipeline.completion {
            let completed = stats.count_processes(file, pipeline, completion.names)?;
            stats.summary.stacks = completed.stacks;
        }
        let damages = std::mem::take(&mut stats.summary.damages);
        stats.damaged = damages.count();
        Ok((stats, damages))
    }

    /// Adds the counts of another trace.
    pub fn absorb(&mut self, other: Self) {
        self.others += u32::from(self.part.first.is_some()) + other.others;
        self.part.absorb(other.part);
        self.damaged += other.damaged;
        self.events_lost = self.events_lost.saturating_add(other.events_lost);
        self.buffers_lost = self.buffers_lost.saturating_add(other.buffers_lost);
        self.summary.late += other.summary.late;
        self.summary.stacks.joined += other.summary.stacks.joined;
        self.summary.stacks.unmatched += other.summary.stacks.unmatched;
        self.summary.absorb(other.summary);
        for (process, events) in other.processes {
            self.count_process(process, events);
        }
    }

    /// Counts the events of each process, if completion adds names. Returns the counts of the pass.
    fn count_processes<R: Read + Seek + Send>(
        &mut self,
        file: &mut TraceFile<R>,
        pipeline: &Pipeline<'_>,
        with_names: bool,
    ) -> Result<Summary, ReadError> {
        pipeline.run(
            file,
            || (),
            |(), _, event, part: &mut Processes| {
                if with_names {
                    let process = match (&event.process_name, event.process_id) {
                        (Some(name), id) => format!("{name} ({id})"),
                        (None, u32::MAX) => "(unknown)".to_owned(),
                        (None, id) => format!("({id})"),
                    };
                    *part.entry(process).or_default() += 1;
                }
                Ok(())
            },
            |part| {
                for (process, events) in std::mem::take(part) {
                    self.count_process(process, events);
                }
                Ok(())
            },
        )
    }

    /// Counts events for a process, or for all other processes.
    fn count_process(&mut self, mut process: String, events: u64) {
        if self.processes.len() >= MAX_COUNTS && !self.processes.contains_key(&process) {
            "(others)".clone_into(&mut process);
        }
        *self.processes.entry(process).or_default() += events;
    }

    /// Returns the number of counted events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.part.counts.values().map(|count| count.events).sum()
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
        for ([provider, event, level], count) in &self.part.counts {
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
        let bytes: u64 = self.part.counts.values().map(|count| count.bytes).sum();
        // Between several traces, there can be days.
        let times = self.part.first.zip(self.part.last).filter(|_| self.others == 0);
        let span = times.map(|(first, last)| {
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
        let summary = &self.summary;
        for (what, count, of) in [
            (
                "Not decoded",
                self.part.unknown,
                "events with data that no loaded manifest, image or MOF file describes",
            ),
            ("Of the system", summary.of_system, "records with a layout that no source describes"),
            (
                "Without format",
                summary.without_format,
                "WPP messages that no loaded TMF file or PDB describes",
            ),
            ("Partial", summary.with_problems, "events could not be decoded completely"),
        ] {
            if count != 0 {
                let _infallible = writeln!(text, "{what}: {count} {of}");
            }
        }
        if self.summary.stacks != StackCounts::default() {
            let _infallible = writeln!(text, "Stacks: {}", self.summary.stacks);
        }
        for (kind, count) in self.summary.skipped.iter() {
            let _infallible = writeln!(
                text,
                "Skipped: {} {} records, {} bytes",
                count.records,
                Escaped(kind),
                count.bytes
            );
        }
        if self.summary.late != 0 {
            let _infallible = writeln!(text, "Out of order: {} records", self.summary.late);
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
    use etl_file::write::{Buffer, KernelRecord};
    use etl_file::{Catalog, EncodedRecord, EventDescriptor, EventRecord, LogFileHeader};

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let names = |n: usize| [n.to_string(), String::new(), String::new()];
        let mut counts = BTreeMap::new();
        for n in 0..MAX_COUNTS {
            Part::count(&mut counts, names(n)).events += 1;
        }
        assert_eq!(counts.len(), MAX_COUNTS);
        // Names that are already counted stay separate.
        Part::count(&mut counts, names(7)).events += 1;
        assert_eq!(counts[&names(7)].events, 2);
        for n in 0..2 {
            Part::count(&mut counts, names(MAX_COUNTS + n)).events += 1;
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
        let part = Part {
            counts: [(names, count)].into(),
            first: at(0),
            last: at(25_000_000),
            ..Part::default()
        };
        let mut stats = Stats { part, ..Stats::default() };
        let last_lines = |stats: &Stats| {
            let text = stats.render();
            let (_, lines) = text.rsplit_once("\n\n").unwrap();
            lines.to_owned()
        };
        assert_eq!(
            last_lines(&stats),
            "10 events, 400 bytes, in 2.500000 s: 4 events a second\nLost: 0 events, 0 buffers\n"
        );
        stats.part.last = at(0);
        stats.events_lost = 3;
        stats.buffers_lost = 2;
        stats.part.unknown = 4;
        stats.summary.without_format = 5;
        stats.summary.with_problems = 6;
        stats.summary.late = 7;
        assert_eq!(
            last_lines(&stats),
            "10 events, 400 bytes\n\
             Lost: 3 events, 2 buffers\n\
             Not decoded: 4 events with data that no loaded manifest, image or MOF file describes\n\
             Without format: 5 WPP messages that no loaded TMF file or PDB describes\n\
             Partial: 6 events could not be decoded completely\n\
             Out of order: 7 records\n"
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
        let file = etl_fixtures::trace::of_buffers(header, 5, [buffer]);
        let mut file = TraceFile::new(Cursor::new(file)).unwrap();
        let (stats, _) = Stats::read(&mut file, &Pipeline::new(&Catalog::new())).unwrap();
        // The event of an unknown version, and the trace's two header events (hook 0) without a
        // payload.
        assert_eq!(
            (stats.events(), stats.summary.with_problems, stats.summary.of_system),
            (6, 2, 1)
        );
        let kernel = stats.part.counts.iter();
        let kernel = kernel.filter(|([provider, ..], _)| provider != "Process");
        assert_eq!(kernel.clone().map(|(_, count)| count.events).sum::<u64>(), 3);
        assert_eq!(kernel.map(|(_, count)| count.bytes).sum::<u64>(), bytes);
    }
}
