//! Output for timelines: the trace event format of Chrome's tracing page, which Perfetto reads as
//! well. [`perfetto`](crate::perfetto) shows more.
//!
//! A start event and the stop event of the same provider and activity are a span; every
//! other event is an instant. Times are microseconds since the first event. Call stacks are shown,
//! and the names of processes and threads where the events have them.
//!
//! A [`Writer`] needs bounded memory. Entries are in the order of time as far as they fit into 8 MiB:
//! those after a start event wait, because only its stop event makes it the beginning of a span. The
//! beginning of a longer span comes right before its end, which the format allows. A start event
//! whose stop event comes after 65,536 others, or 16 MiB of others, is an instant.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;

use crate::decode::{Decoded, Fields, Frame, Stack, serialize_fields};
use crate::spans::{OpenSpans, Part};

/// The most start events that wait for their stop events.
const MAX_OPEN: usize = 65_536;
/// The most bytes of the entries of waiting start events.
const MAX_BYTES: usize = 16 << 20;
/// The most bytes of entries that wait behind a start event.
const MAX_QUEUED: usize = 8 << 20;
/// The most names of processes and threads that are remembered so that they are not repeated.
const MAX_NAMES: usize = 65_536;

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'static str,
    ts: f64,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<String>>,
    args: Arguments<'a>,
}

/// The name of a process or of a thread.
#[derive(Serialize)]
struct NameEntry<'a> {
    name: &'static str,
    ph: &'static str,
    pid: u32,
    tid: u32,
    args: NameArguments<'a>,
}

#[derive(Serialize)]
struct NameArguments<'a> {
    name: &'a str,
}

struct Arguments<'a>(&'a Fields);

impl Serialize for Arguments<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_fields(self.0, serializer)
    }
}

/// A start event that waits for its stop event.
struct Waiting {
    event: Box<Decoded>,
    size: usize,
    /// The number of the event's entry among those that were in the queue.
    entry: u64,
}

/// Writes events as they come.
pub struct Writer<W> {
    out: W,
    /// The time of the first event, in nanoseconds.
    first: Option<i128>,
    open: OpenSpans<Waiting>,
    bytes: usize,
    /// The entries from the first one that waits. `None` stands for a start event.
    queue: VecDeque<Option<Vec<u8>>>,
    queued: usize,
    /// The number of entries that have left the queue.
    before: u64,
    /// True if an entry was written.
    any: bool,
    /// The names of processes and threads that were written, at most
    /// [`MAX_NAMES`].
    names: HashMap<(u32, Option<u32>), Arc<str>>,
}

impl<W: Write> Writer<W> {
    /// Starts a file. `out` should be buffered.
    ///
    /// # Errors
    /// Returns the error of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(br#"{"displayTimeUnit":"ns","traceEvents":["#)?;
        Ok(Self {
            out,
            first: None,
            open: OpenSpans::new(MAX_OPEN),
            bytes: 0,
            queue: VecDeque::new(),
            queued: 0,
            before: 0,
            any: false,
            names: HashMap::new(),
        })
    }

    /// Adds an event, which must not be earlier than the events before it.
    ///
    /// # Errors
    /// Returns the error of `out`.
    pub fn event(&mut self, event: &Decoded) -> io::Result<()> {
        self.first.get_or_insert_with(|| event.time.unix_nanos());
        self.name(event, None, event.process_name.as_ref())?;
        self.name(event, Some(event.thread_id), event.thread_name.as_ref())?;
        match Part::of(event) {
            Some(Part::Start(key)) => {
                let size = size(event);
                self.bytes += size;
                let waiting = Waiting {
                    event: Box::new(event.clone()),
                    size,
                    entry: self.before + self.queue.len() as u64,
                };
                self.queue.push_back(None);
                let given_up = self.open.start(key, waiting);
                self.give_up(given_up)?;
                while self.bytes > MAX_BYTES {
                    let given_up = self.open.give_up();
                    self.give_up(given_up)?;
                }
                Ok(())
            }
            Some(Part::Stop(key)) => match self.open.stop(&key) {
                Some(start) => {
                    self.bytes -= start.size;
                    self.resolve(&start, "b")?;
                    self.add(event, "e")
                }
                None => self.add(event, "i"),
            },
            None => self.add(event, "i"),
        }
    }

    /// Writes the name of an event's process or thread, if it was not written before.
    fn name(
        &mut self,
        event: &Decoded,
        thread: Option<u32>,
        name: Option<&Arc<str>>,
    ) -> io::Result<()> {
        let key = (event.process_id, thread);
        let Some(name) = name.filter(|name| self.names.get(&key) != Some(name)) else {
            return Ok(());
        };
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(key, Arc::clone(name));
        let entry = NameEntry {
            name: match thread {
                None => "process_name",
                Some(_) => "thread_name",
            },
            ph: "M",
            pid: event.process_id,
            tid: thread.unwrap_or(0),
            args: NameArguments { name },
        };
        self.write(&serde_json::to_vec(&entry)?)
    }

    /// Completes the file, and returns the output.
    ///
    /// # Errors
    /// Returns the error of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        while !self.open.is_empty() {
            let given_up = self.open.give_up();
            self.give_up(given_up)?;
        }
        self.out.write_all(b"]}")?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes start events that have no stop event as instants.
    fn give_up(&mut self, starts: Vec<Waiting>) -> io::Result<()> {
        for start in starts {
            self.bytes -= start.size;
            self.resolve(&start, "i")?;
        }
        Ok(())
    }

    /// Writes the entry of a start event that has waited.
    fn resolve(&mut self, start: &Waiting, phase: &'static str) -> io::Result<()> {
        let place =
            start.entry.checked_sub(self.before).and_then(|place| usize::try_from(place).ok());
        let entry = self.entry(&start.event, phase)?;
        match place.and_then(|place| self.queue.get_mut(place)) {
            Some(place) => {
                self.queued += entry.len();
                *place = Some(entry);
                self.flush()
            }
            // The entries after it are written already.
            None => self.write(&entry),
        }
    }

    /// Adds the entry of an event that need not wait for another one.
    fn add(&mut self, event: &Decoded, phase: &'static str) -> io::Result<()> {
        let entry = self.entry(event, phase)?;
        if self.queue.is_empty() {
            return self.write(&entry);
        }
        self.queued += entry.len();
        self.queue.push_back(Some(entry));
        self.flush()
    }

    /// Writes the entries that do not wait any more.
    fn flush(&mut self) -> io::Result<()> {
        while let Some(first) = self.queue.front()
            && (first.is_some() || self.queued > MAX_QUEUED)
        {
            self.before += 1;
            if let Some(entry) = self.queue.pop_front().flatten() {
                self.queued -= entry.len();
                self.write(&entry)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.any {
            self.out.write_all(b",")?;
        }
        self.any = true;
        self.out.write_all(entry)
    }

    /// Returns the entry of an event.
    fn entry(&self, event: &Decoded, phase: &'static str) -> io::Result<Vec<u8>> {
        let guid;
        let provider = if let Some(name) = event.provider_name.as_deref() {
            name
        } else {
            guid = event.provider.to_string();
            &guid
        };
        let nanos = event.time.unix_nanos() - self.first.unwrap_or_default();
        #[expect(
            clippy::cast_precision_loss,
            reason = "the microseconds of a trace are far below 2^53"
        )]
        let time = nanos as f64 / 1000.0;
        let entry = Entry {
            name: event.event_name.as_deref().unwrap_or("(no name)"),
            cat: provider,
            ph: phase,
            ts: time,
            pid: event.process_id,
            tid: event.thread_id,
            id: (phase != "i").then(|| event.activity.to_string()),
            s: (phase == "i").then_some("t"),
            stack: event.stack.as_ref().map(frames),
            args: Arguments(&event.fields),
        };
        Ok(serde_json::to_vec(&entry)?)
    }
}

/// Returns the frames of a stack, the outermost first as the format has them.
fn frames(stack: &Stack) -> Vec<String> {
    let frames = stack.frames.iter().rev();
    let frames = frames.map(ToString::to_string);
    frames.collect()
}

/// Returns about the number of bytes that an event occupies in memory.
fn size(event: &Decoded) -> usize {
    let fields: usize = event.fields.iter().map(|(name, value)| name.len() + value.size()).sum();
    let message = event.message.as_ref().map_or(0, String::len);
    let stack = event.stack.as_ref().map_or(0, |stack| {
        stack
            .frames
            .iter()
            .map(|frame| size_of::<Frame>() + frame.place.as_ref().map_or(0, |place| place.len()))
            .sum()
    });
    size_of::<Decoded>() + fields + message + event.leftover.len() + stack
}

/// Writes events, which must be sorted by time.
///
/// # Errors
/// Returns the error of `out`.
pub fn write_events(events: &[Decoded], out: impl Write) -> io::Result<()> {
    let mut writer = Writer::new(out)?;
    for event in events {
        writer.event(event)?;
    }
    writer.finish().map(drop)
}

#[cfg(test)]
mod tests;
