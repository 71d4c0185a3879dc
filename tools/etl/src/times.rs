//! Where the time of a trace went: on the processors, waiting, and in requests to disks and files, by process,
//! thread, image or function.
//!
//! Times on and off the processors come from context switches, and those of images and functions from samples of
//! the instruction pointer. A thread that was ready when a thread readied it, or that was preempted, is ready
//! until it runs; a thread that waits is waiting until it is readied.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{Read, Seek};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use etl_file::decode::{Frame, Kind, Value};
use etl_file::internals::kernel::hook;
use etl_file::internals::show::Escaped;
use etl_file::{Damages, Decoded, FileTime, Pipeline, ReadError, Selection, TraceFile};
use serde::{Serialize, Serializer};

use crate::perfetto::kernel::{Fact, Form, Reader, form};
use crate::stacks::{frame_name, interval_of, label};

/// The maximum number of separate rows; all others share one.
const MAX_ROWS: usize = 50_000;

/// `Waiting` and `Terminated`, states of a thread.
const WAITING: u64 = 5;
const TERMINATED: u64 = 4;

/// The subject of a row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A process.
    Process,
    /// A thread.
    Thread,
    /// An image.
    Image,
    /// A function or, without symbols, a place in an image.
    Function,
}

/// The times and counts of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Times {
    running_ns: u64,
    ready_ns: u64,
    waiting_ns: u64,
    switches: u64,
    samples: u64,
    sampled_ns: u64,
    disk_operations: u64,
    disk_bytes: u64,
    disk_ns: u64,
    file_operations: u64,
    file_bytes: u64,
}

impl Times {
    fn add(&mut self, other: &Self) {
        for (sum, value) in [
            (&mut self.running_ns, other.running_ns),
            (&mut self.ready_ns, other.ready_ns),
            (&mut self.waiting_ns, other.waiting_ns),
            (&mut self.switches, other.switches),
            (&mut self.samples, other.samples),
            (&mut self.sampled_ns, other.sampled_ns),
            (&mut self.disk_operations, other.disk_operations),
            (&mut self.disk_bytes, other.disk_bytes),
            (&mut self.disk_ns, other.disk_ns),
            (&mut self.file_operations, other.file_operations),
            (&mut self.file_bytes, other.file_bytes),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    /// Returns what the rows are sorted by: time on the processor, then samples, then requests.
    const fn rank(&self) -> (u64, u64, u64) {
        (self.running_ns, self.samples, self.disk_ns.saturating_add(self.file_operations))
    }
}

/// The times of files.
#[derive(Debug)]
pub struct TimeTable {
    by: By,
    rows: BTreeMap<[String; 2], Times>,
    counts: Counts,
}

/// The counts of what has no row, and of what a pass omitted.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    context_switches: u64,
    samples: u64,
    samples_without_code: u64,
    disk_without_thread: u64,
    events_lost: u64,
    buffers_lost: u64,
    skipped_records: u64,
    late_records: u64,
    damaged_parts: u64,
}

/// Why a thread does not run, and since when.
#[derive(Clone, Copy, Debug)]
enum Off {
    Waiting(FileTime),
    Ready(FileTime),
}

/// A thread of the trace.
#[derive(Debug, Default)]
struct Thread {
    process: Option<u32>,
    name: String,
    off: Option<Off>,
    times: Times,
}

/// A part of a batch.
enum Part {
    Fact(Fact),
    Switch { processor: u16, new: u32, old: u32, state: u64 },
    Ready { thread: u32 },
    Interval(u32),
    Sample { thread: u32, code: Option<String> },
    Disk { thread: u32, bytes: u64, ticks: u64 },
    File { thread: u32, bytes: u64 },
}

/// The state of a pass over a file.
struct Pass<'a> {
    selection: &'a Selection,
    frequency: u64,
    processes: HashMap<u32, String>,
    threads: HashMap<u32, Thread>,
    /// The running thread of each processor, and since when.
    running: HashMap<u16, (u32, FileTime)>,
    start: FileTime,
    last: FileTime,
    /// The interval between samples, in 100 ns; 0 if unknown.
    interval: u32,
}

impl TimeTable {
    /// Returns an empty table.
    #[must_use]
    pub fn new(by: By) -> Self {
        Self { by, rows: BTreeMap::new(), counts: Counts::default() }
    }

    /// Adds the times of a file. Returns the damaged parts of the file.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn add_file<R: Read + Seek + Send>(
        &mut self,
        file: &mut TraceFile<R>,
        pipeline: &Pipeline<'_>,
    ) -> Result<Damages, ReadError> {
        let header = file.header();
        self.counts.events_lost += u64::from(header.events_lost);
        self.counts.buffers_lost += u64::from(header.buffers_lost);
        let mut pass = Pass {
            selection: pipeline.selection,
            frequency: u64::try_from(header.session.perf_frequency).unwrap_or(0).max(1),
            processes: HashMap::new(),
            threads: HashMap::new(),
            running: HashMap::new(),
            start: header.session.start_time,
            last: header.session.start_time,
            interval: 0,
        };
        // Intervals can begin before the selected time.
        let all = Pipeline { selection: Selection::ALL, ..*pipeline };
        let by = self.by;
        let summary = all.run(
            file,
            || (),
            |(), _, event, batch: &mut Vec<(FileTime, Option<Part>)>| {
                batch.push((event.time, Part::from_event(&event, by)));
                Ok::<_, ReadError>(())
            },
            |batch| {
                for (time, part) in batch.drain(..) {
                    pass.last = pass.last.max(time);
                    if let Some(part) = part {
                        self.add(&mut pass, time, part);
                    }
                }
                Ok(())
            },
        )?;
        self.finish(&mut pass);
        let counts = &mut self.counts;
        counts.skipped_records += summary.skipped.iter().map(|(_, kind)| kind.records).sum::<u64>();
        counts.late_records += summary.late;
        counts.damaged_parts += summary.damages.count();
        Ok(summary.damages)
    }

    fn add(&mut self, pass: &mut Pass<'_>, time: FileTime, part: Part) {
        match part {
            Part::Fact(fact) => self.fact(pass, fact),
            Part::Switch { processor, new, old, state } => {
                self.counts.context_switches += 1;
                pass.switch(time, processor, new, old, state);
            }
            Part::Ready { thread } => pass.ready(time, thread),
            Part::Interval(interval) => pass.interval = interval,
            Part::Sample { thread, code } => {
                if !pass.selects(time) {
                    return;
                }
                self.counts.samples += 1;
                let sampled_ns = u64::from(pass.interval) * 100;
                let times = Times { samples: 1, sampled_ns, ..Times::default() };
                match (self.by, code) {
                    (By::Process | By::Thread, _) => pass.thread(thread).times.add(&times),
                    (_, Some(code)) => {
                        if pass.selects_thread(thread) {
                            self.row([code, String::new()], &times);
                        }
                    }
                    (_, None) => self.counts.samples_without_code += 1,
                }
            }
            Part::Disk { thread, bytes, ticks } => {
                if pass.selects(time) {
                    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(pass.frequency);
                    let disk_ns = u64::try_from(nanos).unwrap_or(u64::MAX);
                    self.counts.disk_without_thread += u64::from(thread == u32::MAX);
                    let (disk_operations, disk_bytes) = (1, bytes);
                    let times = Times { disk_operations, disk_bytes, disk_ns, ..Times::default() };
                    pass.thread(thread).times.add(&times);
                }
            }
            Part::File { thread, bytes } => {
                if pass.selects(time) {
                    let (file_operations, file_bytes) = (1, bytes);
                    let times = Times { file_operations, file_bytes, ..Times::default() };
                    pass.thread(thread).times.add(&times);
                }
            }
        }
    }

    /// Takes note of a process or a thread.
    fn fact(&mut self, pass: &mut Pass<'_>, fact: Fact) {
        match fact {
            Fact::Process { id, name, started, .. } => {
                if started {
                    // Its threads are those of an ended process with the same id.
                    pass.processes.remove(&id);
                }
                pass.processes.insert(id, name);
            }
            Fact::Thread { process, id, name, started } => {
                if started {
                    self.end_thread(pass, id);
                }
                let thread = pass.threads.entry(id).or_default();
                thread.process = Some(process);
                if !name.is_empty() {
                    thread.name = name;
                }
            }
            Fact::ThreadEnded { process, id } => {
                pass.threads.entry(id).or_default().process = Some(process);
            }
            Fact::ProcessEnded(_) => {}
        }
    }

    /// Adds the times of a thread that has ended to its row.
    fn end_thread(&mut self, pass: &mut Pass<'_>, id: u32) {
        if let Some(thread) = pass.threads.remove(&id) {
            self.thread_row(pass, id, &thread);
        }
    }

    fn thread_row(&mut self, pass: &Pass<'_>, id: u32, thread: &Thread) {
        if thread.times == Times::default() || !pass.selects_process(thread.process) {
            return;
        }
        let process = thread.process.unwrap_or(u32::MAX);
        let process_name = pass.processes.get(&process).map(String::as_str);
        let process =
            if id == 0 { "Idle".to_owned() } else { label("process", process, process_name) };
        match self.by {
            By::Process => self.row([process, String::new()], &thread.times),
            By::Thread => {
                self.row([process, label("thread", id, Some(&thread.name))], &thread.times);
            }
            By::Image | By::Function => {}
        }
    }

    /// Adds times to a row.
    fn row(&mut self, mut key: [String; 2], times: &Times) {
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&key) {
            key = ["(others)".to_owned(), String::new()];
        }
        self.rows.entry(key).or_default().add(times);
    }

    /// Ends what threads do at the end of a file.
    fn finish(&mut self, pass: &mut Pass<'_>) {
        for (thread, since) in std::mem::take(&mut pass.running).into_values() {
            let ran = pass.clipped(since, pass.last);
            pass.thread(thread).times.running_ns += ran;
        }
        let mut threads: Vec<_> = std::mem::take(&mut pass.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(id, _)| *id);
        for (id, mut thread) in threads {
            pass.end_off(&mut thread, pass.last);
            self.thread_row(pass, id, &thread);
        }
    }

    /// Returns the rows, the largest first.
    fn sorted(&self) -> Vec<(&[String; 2], &Times)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|(_, times)| std::cmp::Reverse(times.rank()));
        rows
    }

    /// Formats the times as a table, of which columns without values are left out, and the counts.
    #[must_use]
    pub fn render(&self) -> String {
        /// A column, and its text in a row.
        type Column = (&'static str, fn(&Times) -> String);
        const COLUMNS: [Column; 11] = [
            ("On processor", |times| shown(times.running_ns)),
            ("Ready", |times| shown(times.ready_ns)),
            ("Waiting", |times| shown(times.waiting_ns)),
            ("Switches", |times| times.switches.to_string()),
            ("Samples", |times| times.samples.to_string()),
            ("Sampled", |times| shown(times.sampled_ns)),
            ("Disk requests", |times| times.disk_operations.to_string()),
            ("Disk bytes", |times| times.disk_bytes.to_string()),
            ("Disk time", |times| shown(times.disk_ns)),
            ("File requests", |times| times.file_operations.to_string()),
            ("File bytes", |times| times.file_bytes.to_string()),
        ];
        let rows = self.sorted();
        let columns: Vec<_> = COLUMNS
            .iter()
            .filter(|(_, text)| {
                rows.iter().any(|(_, times)| text(times) != text(&Times::default()))
            })
            .collect();
        let names: &[&str] = match self.by {
            By::Process => &["Process"],
            By::Thread => &["Process", "Thread"],
            By::Image => &["Image"],
            By::Function => &["Function"],
        };
        let mut table = Table::new();
        let heads = names.iter().copied().chain(columns.iter().map(|(name, _)| *name));
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(heads);
        table.column_iter_mut().skip(names.len()).for_each(|column| {
            column.set_cell_alignment(CellAlignment::Right);
        });
        for (key, times) in rows {
            let keys = key.iter().take(names.len()).map(|name| Escaped(name).to_string());
            table.add_row(keys.chain(columns.iter().map(|(_, text)| text(times))));
        }
        let mut text = format!("{}\n\n", table.trim_fmt());
        let Counts { context_switches, samples, events_lost, buffers_lost, .. } = self.counts;
        let _infallible = writeln!(text, "{context_switches} context switches, {samples} samples");
        let _infallible = writeln!(text, "Lost: {events_lost} events, {buffers_lost} buffers");
        for (count, what) in [
            (self.counts.samples_without_code, "samples have no code"),
            (self.counts.disk_without_thread, "disk requests have no thread"),
            (self.counts.skipped_records, "records were skipped, because they cannot be decoded"),
            (self.counts.late_records, "records are out of order"),
            (self.counts.damaged_parts, "parts of the files are damaged"),
        ] {
            if count != 0 {
                let _infallible = writeln!(text, "{count} {what}");
            }
        }
        text
    }
}

/// Formats a duration.
fn shown(nanos: u64) -> String {
    format!("{:.3?}", Duration::from_nanos(nanos))
}

impl Pass<'_> {
    fn thread(&mut self, id: u32) -> &mut Thread {
        self.threads.entry(id).or_default()
    }

    /// Returns true if a time is selected.
    fn selects(&self, time: FileTime) -> bool {
        self.selection.from.is_none_or(|from| from <= time)
            && self.selection.to.is_none_or(|to| time <= to)
    }

    /// Returns true if a process is selected.
    fn selects_process(&self, process: Option<u32>) -> bool {
        let wanted = &self.selection.processes;
        let name = process.and_then(|id| self.processes.get(&id));
        wanted.is_empty()
            || wanted.iter().any(|one| {
                name.is_some_and(|name| name.eq_ignore_ascii_case(one))
                    || process.is_some_and(|id| one.parse() == Ok(id))
            })
    }

    fn selects_thread(&self, thread: u32) -> bool {
        self.selects_process(self.threads.get(&thread).and_then(|thread| thread.process))
    }

    /// Returns the selected part of an interval, in nanoseconds.
    fn clipped(&self, from: FileTime, to: FileTime) -> u64 {
        let start = self.selection.from.map_or(from, |first| first.max(from));
        let end = self.selection.to.map_or(to, |last| last.min(to));
        u64::try_from(end.raw().saturating_sub(start.raw())).unwrap_or(0).saturating_mul(100)
    }

    /// Ends the time in which a thread does not run.
    fn end_off(&self, thread: &mut Thread, time: FileTime) {
        match thread.off.take() {
            Some(Off::Waiting(since)) => thread.times.waiting_ns += self.clipped(since, time),
            Some(Off::Ready(since)) => thread.times.ready_ns += self.clipped(since, time),
            None => {}
        }
    }

    fn switch(&mut self, time: FileTime, processor: u16, new: u32, old: u32, state: u64) {
        // The thread that a processor's first switch ends ran from the start.
        let (running, since) =
            self.running.insert(processor, (new, time)).unwrap_or((old, self.start));
        let counts = u64::from(self.selects(time));
        let ran = self.clipped(since, time);
        let thread = self.thread(running);
        thread.times.running_ns += ran;
        // The idle thread of a processor, which has the id 0 as those of all others, is never off.
        if old != 0 {
            self.thread(old).off = match state {
                TERMINATED => None,
                WAITING => Some(Off::Waiting(time)),
                _ => Some(Off::Ready(time)),
            };
        }
        let mut thread = std::mem::take(self.thread(new));
        self.end_off(&mut thread, time);
        thread.times.switches += counts;
        self.threads.insert(new, thread);
    }

    fn ready(&mut self, time: FileTime, id: u32) {
        if let Some(thread) = self.threads.get(&id)
            && let Some(Off::Waiting(since)) = thread.off
        {
            let waited = self.clipped(since, time);
            let thread = self.thread(id);
            thread.times.waiting_ns += waited;
            thread.off = Some(Off::Ready(time));
        }
    }
}

impl Part {
    fn from_event(event: &Decoded, by: By) -> Option<Self> {
        let Kind::Kernel { hook } = event.kind else {
            return None;
        };
        if let Some(interval) = interval_of(event) {
            return Some(Self::Interval(interval));
        }
        let fields = Reader(event);
        let thread = |name: &str| fields.narrow(name).unwrap_or(event.thread_id);
        match hook {
            hook::CSWITCH => Some(Self::Switch {
                processor: event.processor,
                new: fields.narrow("NewThreadId")?,
                old: fields.narrow("OldThreadId")?,
                state: fields.number("OldThreadState")?,
            }),
            hook::READY_THREAD => Some(Self::Ready { thread: fields.narrow("TThreadId")? }),
            hook::SAMPLED_PROFILE => {
                Some(Self::Sample { thread: event.thread_id, code: code(event, by) })
            }
            0x010A | 0x010B | 0x010E => Some(Self::Disk {
                thread: thread("IssuingThreadId"),
                bytes: fields.number("TransferSize").unwrap_or(0),
                ticks: fields.number("HighResResponseTime")?,
            }),
            0x0443 | 0x0444 => {
                Some(Self::File { thread: thread("TTID"), bytes: fields.number("IoSize")? })
            }
            _ => match form(event)? {
                Form::Fact(fact) => Some(Self::Fact(fact)),
                _ => None,
            },
        }
    }
}

/// Returns the sampled code's function or image.
fn code(event: &Decoded, by: By) -> Option<String> {
    let frame = match event.field("InstructionPointer")? {
        Value::Pointer(address) => Frame { address: *address, place: None },
        Value::Code { address, place } => Frame { address: *address, place: Some(place.clone()) },
        _ => return None,
    };
    let function = frame_name(&frame);
    if by == By::Function {
        return Some(function.to_string());
    }
    frame.place.as_ref()?;
    let image = function.split(['!', '+']).next().unwrap_or_default();
    Some(image.to_owned())
}

/// Serializes the rows, the largest first, and the counts.
impl Serialize for TimeTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct All<'a> {
            rows: Vec<Line<'a>>,
            counts: Counts,
        }
        #[derive(Serialize)]
        struct Line<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            thread: Option<&'a str>,
            #[serde(flatten)]
            times: &'a Times,
        }
        let thread = |name| (self.by == By::Thread).then_some(name);
        let rows = self.sorted().into_iter();
        let rows =
            rows.map(|([name, of], times)| Line { name, thread: thread(of.as_str()), times });
        All { rows: rows.collect(), counts: self.counts }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::EventRecord;
    use etl_fixtures::decoded;

    /// Returns a kernel event at a number of milliseconds.
    fn event(millis: i64, hook: u16, fields: &[(&str, Value)]) -> Decoded {
        let mut event = decoded(EventRecord::default());
        event.kind = Kind::Kernel { hook };
        event.time = FileTime::from_raw(millis * 10_000);
        event.thread_id = 7;
        event.fields = fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        event
    }

    /// Returns the table of a trace from 0 to 100 ms on one processor: thread 7 of process 70 runs from 10 to 30
    /// ms, waits until 50 ms, is ready until 60 ms, and runs to the end; the idle thread runs otherwise.
    fn table(by: By, selection: &Selection) -> TimeTable {
        let thread = |id| Value::ThreadId(id);
        let switch = |millis, new, old, state| {
            let fields = [
                ("NewThreadId", thread(new)),
                ("OldThreadId", thread(old)),
                ("OldThreadState", Value::Int(state)),
            ];
            event(millis, hook::CSWITCH, &fields)
        };
        let process = [
            ("ProcessId", Value::ProcessId(70)),
            ("ImageFileName", Value::Text("a.exe".to_owned())),
        ];
        let of_process = [("ProcessId", Value::ProcessId(70)), ("TThreadId", thread(7))];
        let code = Value::Code { address: 0x1234, place: "b.sys!f+0x4".into() };
        let disk = [
            ("IssuingThreadId", thread(7)),
            ("TransferSize", Value::UInt(512)),
            ("HighResResponseTime", Value::UInt(3)),
        ];
        let mut end = decoded(EventRecord::default());
        end.time = FileTime::from_raw(100 * 10_000);
        let interval = [("Source", Value::UInt(0)), ("NewInterval", Value::UInt(10_000))];
        let events = [
            event(0, 0x0303, &process),
            event(0, 0x0503, &of_process),
            event(0, 0x0F49, &interval),
            switch(10, 7, 0, 2),
            event(20, hook::SAMPLED_PROFILE, &[("InstructionPointer", code)]),
            switch(30, 0, 7, 5),
            event(50, hook::READY_THREAD, &[("TThreadId", thread(7))]),
            switch(60, 7, 0, 2),
            event(70, 0x010A, &disk),
            event(80, 0x0443, &[("TTID", thread(7)), ("IoSize", Value::UInt(100))]),
            end,
        ];
        let mut table = TimeTable::new(by);
        let mut pass = Pass {
            selection,
            frequency: 1000,
            processes: HashMap::new(),
            threads: HashMap::new(),
            running: HashMap::new(),
            start: FileTime::from_raw(0),
            last: FileTime::from_raw(0),
            interval: 0,
        };
        for event in events {
            pass.last = event.time;
            if let Some(part) = Part::from_event(&event, by) {
                table.add(&mut pass, event.time, part);
            }
        }
        table.finish(&mut pass);
        table
    }

    fn row(table: &TimeTable, name: &str, thread: &str) -> Times {
        table.rows.get(&[name.to_owned(), thread.to_owned()]).copied().unwrap_or_default()
    }

    const MILLI: u64 = 1_000_000;

    #[test]
    fn a_thread_runs_waits_and_is_ready() {
        let all = table(By::Process, Selection::ALL);
        let expected = Times {
            running_ns: 60 * MILLI,
            ready_ns: 10 * MILLI,
            waiting_ns: 20 * MILLI,
            switches: 2,
            samples: 1,
            sampled_ns: MILLI,
            disk_operations: 1,
            disk_bytes: 512,
            disk_ns: 3 * MILLI,
            file_operations: 1,
            file_bytes: 100,
        };
        assert_eq!(row(&all, "a.exe (70)", ""), expected);
        // All time of the processor is in a row.
        assert_eq!(row(&all, "Idle", "").running_ns, 40 * MILLI);
        let threads = table(By::Thread, Selection::ALL);
        assert_eq!(row(&threads, "a.exe (70)", "thread 7"), expected);
        assert!(all.render().contains("a.exe (70)"));
        assert_eq!(serde_json::to_value(&threads).unwrap()["rows"][0]["running_ns"], 60 * MILLI);
    }

    #[test]
    fn times_are_those_in_the_selected_time_and_processes() {
        let millis = |millis: i64| Some(FileTime::from_raw(millis * 10_000));
        let selection = Selection { from: millis(20), to: millis(55), ..Selection::default() };
        let times = row(&table(By::Process, &selection), "a.exe (70)", "");
        let shown = [times.running_ns, times.waiting_ns, times.ready_ns].map(|ns| ns / MILLI);
        assert_eq!(shown, [10, 20, 5]);
        assert_eq!((times.samples, times.disk_operations, times.switches), (1, 0, 0));
        for (wanted, count) in [("A.EXE", 1), ("70", 1), ("71", 0)] {
            let selection =
                Selection { processes: vec![wanted.to_owned()], ..Selection::default() };
            assert_eq!(table(By::Process, &selection).rows.len(), count, "{wanted}");
        }
    }

    #[test]
    fn samples_have_an_image_and_a_function() {
        for (by, name) in [(By::Image, "b.sys"), (By::Function, "b.sys!f")] {
            let found = table(by, Selection::ALL);
            assert_eq!(found.rows.len(), 1);
            assert_eq!(row(&found, name, "").samples, 1);
        }
    }
}
