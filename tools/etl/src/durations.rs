//! The times between start events and the stop events that end them.
//!
//! Events are paired as in [`spans`](etl_file::internals::spans). An operation is selected by its
//! start event; its stop event can be outside the selection.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Seek};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use etl_file::internals::serialize_fields;
use etl_file::internals::show::Escaped;
use etl_file::internals::spans::{OpenSpans, Part};
use etl_file::lines::Cells;
use etl_file::{Clock, Damages, Decoded, Pipeline, ReadError, Selection, TraceFile};
use serde::{Serialize, Serializer};

/// The maximum number of operations that are open at the same time.
const MAX_OPEN: usize = 65_536;
/// The maximum size of the start events of open operations, and of the events of the slowest ones, as
/// recorded, in bytes.
const MAX_BYTES: usize = 8 << 20;
/// The maximum number of separate rows; all other operations share one.
const MAX_ROWS: usize = 50_000;

/// The durations of the operations of files, by provider and start event.
#[derive(Debug)]
pub struct Durations {
    rows: BTreeMap<[String; 2], Row>,
    /// The names of the files.
    files: Vec<String>,
    /// The number of slowest operations to keep in each row.
    limit: usize,
    /// The size of the kept events.
    kept: usize,
    counts: Counts,
}

/// The counts of what has no duration, and of what a pass omitted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    operations: u64,
    starts_without_stop: u64,
    abandoned_starts: u64,
    stops_without_start: u64,
    without_activity: u64,
    without_duration: u64,
    without_fields: u64,
    events_lost: u64,
    buffers_lost: u64,
    skipped_records: u64,
    late_records: u64,
    damaged_parts: u64,
}

impl Counts {
    /// Returns the counts that the table shows only if they are not 0.
    const fn omissions(&self) -> [(u64, &'static str); 9] {
        [
            (self.starts_without_stop, "start events have no stop event"),
            (
                self.abandoned_starts,
                "start events were given up, because too many operations were open",
            ),
            (self.stops_without_start, "stop events have no start event"),
            (self.without_activity, "start and stop events have no activity, and cannot be paired"),
            (self.without_duration, "operations have no duration, because their times are unknown"),
            (
                self.without_fields,
                "of the slowest operations have events that do not fit in memory",
            ),
            (self.skipped_records, "records were skipped, because they cannot be decoded"),
            (self.late_records, "records are out of order"),
            (self.damaged_parts, "parts of the files are damaged"),
        ]
    }
}

/// The operations of one provider and start event.
#[derive(Debug, Default)]
struct Row {
    /// The durations in nanoseconds, sorted once a file is complete.
    nanos: Vec<u64>,
    /// The slowest operations, slowest first.
    slowest: Vec<Operation>,
}

impl Row {
    /// Returns the duration that `percent` of the operations do not exceed.
    fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.nanos.len() * percent).div_ceil(100);
        self.nanos.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    fn total(&self) -> u128 {
        self.nanos.iter().map(|nanos| u128::from(*nanos)).sum()
    }
}

/// One of the slowest operations.
#[derive(Debug)]
struct Operation {
    nanos: u64,
    start: Decoded,
    stop: Decoded,
    /// The size of the events as recorded; 0 if their fields were not kept.
    size: usize,
    /// The file, as an index.
    file: usize,
}

/// A start event without a stop event so far, and its size as recorded.
#[derive(Debug)]
struct Started {
    event: Decoded,
    size: usize,
}

/// The state of a pass over a file.
struct Pass<'a> {
    clock: Clock,
    selection: &'a Selection,
    open: OpenSpans<Started>,
    /// The size of the open operations' events.
    size: usize,
}

/// The start and stop events of a batch, with their sizes.
#[derive(Default)]
struct Batch {
    parts: Vec<(Part, Decoded, usize)>,
    without_activity: u64,
}

impl Durations {
    /// Returns an empty table that keeps the events of at most `limit` slowest operations in each row.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { rows: BTreeMap::new(), files: Vec::new(), limit, kept: 0, counts: Counts::default() }
    }

    /// Returns the counts, with those of the operations that are still the slowest.
    fn counts(&self) -> Counts {
        let slowest = self.rows.values().flat_map(|row| &row.slowest);
        let without_fields = slowest.filter(|operation| operation.size == 0).count() as u64;
        Counts { without_fields, ..self.counts }
    }

    /// Returns the name of an operation's file, if there are several files.
    fn file_of(&self, operation: &Operation) -> Option<&str> {
        self.files.get(operation.file).filter(|_| self.files.len() > 1).map(String::as_str)
    }

    /// Adds the operations of a file with this name. Returns the damaged parts of the file.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn add_file<R: Read + Seek + Send>(
        &mut self,
        file: &mut TraceFile<R>,
        name: &str,
        pipeline: &Pipeline<'_>,
    ) -> Result<Damages, ReadError> {
        self.files.push(name.to_owned());
        let selection = pipeline.selection;
        let (clock, open) = (file.clock(), OpenSpans::new(MAX_OPEN));
        let mut pass = Pass { clock, selection, open, size: 0 };
        let all = Pipeline { selection: Selection::ALL, ..*pipeline };
        let summary = all.run(
            file,
            || (),
            |(), record, event, batch: &mut Batch| {
                if let Some(part) = Part::from_event(&event) {
                    batch.parts.push((part, event, record.size));
                } else if Part::lacks_activity(&event) && selection.wants(&event) {
                    batch.without_activity += 1;
                }
                Ok::<_, ReadError>(())
            },
            |batch| {
                self.counts.without_activity += batch.without_activity;
                for (part, event, size) in batch.parts.drain(..) {
                    self.add(&mut pass, part, event, size);
                }
                Ok(())
            },
        )?;
        let counts = &mut self.counts;
        while !pass.open.is_empty() {
            let given_up = pass.open.give_up();
            counts.starts_without_stop += pass.selected(&given_up);
        }
        let header = file.header();
        counts.events_lost += u64::from(header.events_lost);
        counts.buffers_lost += u64::from(header.buffers_lost);
        counts.skipped_records += summary.skipped.iter().map(|(_, kind)| kind.records).sum::<u64>();
        counts.late_records += summary.late;
        counts.damaged_parts += summary.damages.count();
        self.rows.values_mut().for_each(|row| row.nanos.sort_unstable());
        Ok(summary.damages)
    }

    /// Adds a start or stop event.
    fn add(&mut self, pass: &mut Pass<'_>, part: Part, event: Decoded, size: usize) {
        match part {
            Part::Start(key) => {
                pass.size += size;
                let given_up = pass.open.start(key, Started { event, size });
                self.counts.abandoned_starts += pass.selected(&given_up);
                while pass.size > MAX_BYTES && !pass.open.is_empty() {
                    let given_up = pass.open.give_up();
                    self.counts.abandoned_starts += pass.selected(&given_up);
                }
            }
            Part::Stop(key) => {
                let Some(started) = pass.open.stop(&key) else {
                    self.counts.stops_without_start += u64::from(pass.selection.wants(&event));
                    return;
                };
                pass.size -= started.size;
                if !pass.selection.wants(&started.event) {
                    return;
                }
                let Some(duration) = pass.clock.between(started.event.timestamp, event.timestamp)
                else {
                    self.counts.without_duration += 1;
                    return;
                };
                let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                let size = started.size + size;
                let file = self.files.len().saturating_sub(1);
                self.operation(Operation { nanos, start: started.event, stop: event, size, file });
            }
        }
    }

    /// Adds an operation.
    fn operation(&mut self, mut operation: Operation) {
        self.counts.operations += 1;
        let start = &operation.start;
        let provider = start.provider_name.as_deref();
        let event = start.event_name.as_deref();
        let mut names = [
            provider.map_or_else(|| start.provider.to_string(), str::to_owned),
            event.map_or_else(|| format!("id {}", start.descriptor.id), str::to_owned),
        ];
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&names) {
            names = ["(others)".to_owned(), String::new()];
        }
        let row = self.rows.entry(names).or_default();
        row.nanos.push(operation.nanos);
        let place = row.slowest.partition_point(|slower| slower.nanos >= operation.nanos);
        if place >= self.limit {
            return;
        }
        if row.slowest.len() == self.limit
            && let Some(fastest) = row.slowest.pop()
        {
            self.kept -= fastest.size;
        }
        if self.kept + operation.size > MAX_BYTES {
            operation.size = 0;
            for event in [&mut operation.start, &mut operation.stop] {
                (event.fields, event.leftover, event.message) = Default::default();
            }
        }
        self.kept += operation.size;
        row.slowest.insert(place, operation);
    }

    /// Formats the durations as a table, the slowest operations of each row with their events, and
    /// the counts.
    #[must_use]
    pub fn render(&self) -> String {
        let mut table = Table::new();
        table
            .load_preset(presets::UTF8_FULL_CONDENSED)
            .set_header(["Provider", "Event", "Count", "Total", "Min", "p50", "p90", "p99", "Max"]);
        table.column_iter_mut().skip(2).for_each(|column| {
            column.set_cell_alignment(CellAlignment::Right);
        });
        let shown = |nanos| format!("{:.3?}", Duration::from_nanos(nanos));
        for ([provider, event], row) in &self.rows {
            let total = u64::try_from(row.total()).unwrap_or(u64::MAX);
            let names = [provider, event].map(|name| Escaped(name).to_string());
            let percentiles = [0, 50, 90, 99, 100].map(|percent| shown(row.percentile(percent)));
            let count = [row.nanos.len().to_string(), shown(total)];
            table.add_row(names.into_iter().chain(count).chain(percentiles));
        }
        let mut text = format!("{}\n\n", table.trim_fmt());
        for ([provider, event], row) in &self.rows {
            if !row.slowest.is_empty() {
                let (provider, event) = (Escaped(provider), Escaped(event));
                let _infallible = writeln!(text, "Slowest of {provider} {event}");
            }
            for operation in &row.slowest {
                operation.render(self.file_of(operation), &mut text);
            }
        }
        if self.rows.values().any(|row| !row.slowest.is_empty()) {
            text.push('\n');
        }
        let counts = self.counts();
        let Counts { operations, events_lost, buffers_lost, .. } = counts;
        let _infallible = writeln!(text, "{operations} operations");
        let _infallible = writeln!(text, "Lost: {events_lost} events, {buffers_lost} buffers");
        for (count, what) in counts.omissions().into_iter().filter(|(count, _)| *count != 0) {
            let _infallible = writeln!(text, "{count} {what}");
        }
        text
    }
}

impl Pass<'_> {
    /// Returns the number of selected start events among those that were given up.
    fn selected(&mut self, given_up: &[Started]) -> u64 {
        self.size -= given_up.iter().map(|started| started.size).sum::<usize>();
        given_up.iter().filter(|started| self.selection.wants(&started.event)).count() as u64
    }
}

impl Operation {
    /// Formats the operation on three lines.
    fn render(&self, file: Option<&str>, text: &mut String) {
        let Self { nanos, start, stop, size, .. } = self;
        let name = |name: Option<&str>| {
            name.map_or_else(String::new, |name| format!(" {}", Escaped(name)))
        };
        let _infallible = writeln!(
            text,
            "  {:.3?} from {}, process {}{}, thread {}{}{}",
            Duration::from_nanos(*nanos),
            start.time,
            start.process_id,
            name(start.process_name.as_deref()),
            start.thread_id,
            name(start.thread_name.as_deref()),
            file.map_or_else(String::new, |file| format!(", in {}", Escaped(file)))
        );
        if *size == 0 {
            text.push_str("    fields not kept\n");
            return;
        }
        let mut cells = Cells::default();
        for (part, event) in [("start", start), ("stop ", stop)] {
            cells.fill(event, false);
            let fields = String::from_utf8_lossy(&cells.fields);
            let _infallible = writeln!(text, "    {part} {}", fields.replace('\n', " "));
        }
    }
}

/// Serializes the durations, in nanoseconds, with the slowest operations and the counts.
impl Serialize for Durations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct All<'a> {
            operations: Vec<RowLine<'a>>,
            counts: Counts,
        }
        #[derive(Serialize)]
        struct RowLine<'a> {
            provider: &'a str,
            event: &'a str,
            count: usize,
            total_ns: u128,
            min_ns: u64,
            p50_ns: u64,
            p90_ns: u64,
            p99_ns: u64,
            max_ns: u64,
            slowest: Vec<Line<'a>>,
        }
        let rows = self.rows.iter().map(|([provider, event], row)| RowLine {
            provider,
            event,
            count: row.nanos.len(),
            total_ns: row.total(),
            min_ns: row.percentile(0),
            p50_ns: row.percentile(50),
            p90_ns: row.percentile(90),
            p99_ns: row.percentile(99),
            max_ns: row.percentile(100),
            slowest: row.slowest.iter().map(|one| one.line(self.file_of(one))).collect(),
        });
        let operations = rows.collect();
        All { operations, counts: self.counts() }.serialize(serializer)
    }
}

/// One of the slowest operations in JSON.
#[derive(Serialize)]
struct Line<'a> {
    duration_ns: u64,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    process: u32,
    process_name: Option<&'a str>,
    thread: u32,
    thread_name: Option<&'a str>,
    /// Null if the fields were not kept.
    start_fields: Option<Members<'a>>,
    stop_fields: Option<Members<'a>>,
}

impl Operation {
    fn line<'a>(&'a self, file: Option<&'a str>) -> Line<'a> {
        let Self { nanos, start, stop, size, .. } = self;
        let fields = |event: &'a Decoded| (*size != 0).then_some(Members(event));
        Line {
            duration_ns: *nanos,
            start: start.time.to_string(),
            file,
            process: start.process_id,
            process_name: start.process_name.as_deref(),
            thread: start.thread_id,
            thread_name: start.thread_name.as_deref(),
            start_fields: fields(start),
            stop_fields: fields(stop),
        }
    }
}

/// The fields of an event as an object.
struct Members<'a>(&'a Decoded);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_fields(&self.0.fields, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::{EventRecord, Guid};
    use etl_fixtures::decoded;

    #[test]
    fn events_that_do_not_fit_are_omitted_and_counted() {
        let mut durations = Durations::new(2);
        let event = || {
            let mut event = decoded(EventRecord::default());
            event.message = Some("message".to_owned());
            event
        };
        for nanos in [5, 7, 6, 1] {
            let (start, stop, size) = (event(), event(), MAX_BYTES / 2);
            durations.operation(Operation { nanos, start, stop, size, file: 0 });
            assert!(durations.kept <= MAX_BYTES);
        }
        assert_eq!((durations.counts.operations, durations.counts().without_fields), (4, 0));
        let (start, stop, size) = (event(), event(), MAX_BYTES / 2 + 1);
        durations.operation(Operation { nanos: 9, start, stop, size, file: 0 });
        assert_eq!(durations.counts().without_fields, 1);
        let row = durations.rows.values().next().unwrap();
        let slowest: Vec<_> = row.slowest.iter().map(|one| (one.nanos, one.size)).collect();
        assert_eq!(slowest, [(9, 0), (7, MAX_BYTES / 2)]);
        assert_eq!(row.slowest[0].start.message, None);
        assert_eq!(durations.kept, MAX_BYTES / 2);
        // An operation that is no longer among the slowest is not counted.
        for nanos in [10, 11] {
            let (start, stop) = (event(), event());
            durations.operation(Operation { nanos, start, stop, size: 1, file: 0 });
        }
        assert_eq!(durations.counts().without_fields, 0);
    }

    #[test]
    fn a_percentile_is_the_duration_of_its_rank() {
        let row = Row { nanos: (1..=200).collect(), ..Row::default() };
        let found = [0, 1, 50, 90, 99, 100].map(|percent| row.percentile(percent));
        assert_eq!(found, [1, 2, 100, 180, 198, 200]);
        assert_eq!(Row::default().percentile(50), 0);
    }

    #[test]
    fn the_oldest_operations_are_given_up_if_their_events_are_too_large() {
        let clock = etl_file::LogFileHeader::default().session_clock();
        let (selection, open) = (Selection::ALL, OpenSpans::new(MAX_OPEN));
        let mut pass = Pass { clock, selection, open, size: 0 };
        let mut durations = Durations::new(1);
        for activity in 1..=3 {
            let mut event = decoded(EventRecord::default());
            (event.activity, event.descriptor.opcode) = (Guid::from_u128(activity), 1);
            let part = Part::from_event(&event).unwrap();
            durations.add(&mut pass, part, event, MAX_BYTES / 2);
        }
        assert_eq!(durations.counts.abandoned_starts, 1);
        assert_eq!((pass.open.len(), pass.size), (2, MAX_BYTES));
    }
}
