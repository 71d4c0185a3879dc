//! Creates a page from a stream of events.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};

use etw_wire::Guid;
use serde::Serialize;

use super::columns::{Columns, write_part};
use super::density::Density;
use super::details::Shapes;
use super::page;
use super::sample::{Class, FIRST_OF_KIND, Sample};
use super::session::Session;
use super::spill::{Row, Spill};
use etl_file::decode::Kind as Form;
use etl_file::{Decoded, EventDescriptor, FileTime};

/// The default number of events on a page.
pub const DEFAULT_LIMIT: u32 = 1_000_000;

/// The maximum number of kinds of events; rows refer to them with 16 bits.
const MAX_KINDS: usize = 65_535;
/// The maximum number of threads.
const MAX_THREADS: usize = 1 << 20;
/// The maximum number of separately counted problems; the last number counts all others.
const MAX_PROBLEMS: usize = 1000;
/// The maximum number of damaged parts that a page lists for a file.
const MAX_DAMAGES: usize = 100;

/// Writes a page that shows events.
///
/// Memory use does not depend on the number of events, which are stored in a temporary file. If
/// there are too many, the page shows a sample: as far as they fit, all critical events, errors,
/// warnings and events with problems, then the first events of each kind, starts and stops of
/// activities, and evenly spaced others. Counts and densities always include all events.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let (events, mut file): (Vec<etl_file::Decoded>, Vec<u8>) = (Vec::new(), Vec::new());
/// use etl::report::Writer;
///
/// let mut page = Writer::new("My driver", 100_000)?;
/// for event in &events {
///     page.push(event)?;
/// }
/// let written = page.finish(&mut file)?;
/// assert_eq!(written.shown, written.events);
/// # Ok(())
/// # }
/// ```
pub struct Writer {
    title: String,
    limit: u64,
    sessions: Vec<Session>,
    processes: BTreeMap<u32, String>,
    kinds: Kinds,
    threads: Threads,
    processors: BTreeMap<u16, u64>,
    shapes: Shapes,
    problems: Problems,
    density: Density,
    sample: Sample,
    spill: Spill,
    times: Option<(i64, i64)>,
    events: u64,
    /// The number of events of kinds or threads beyond the limits.
    unlisted: u64,
}

/// The contents of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of events that were pushed.
    pub events: u64,
    /// The number of events in the page's table.
    pub shown: u64,
}

/// A kind of event: events that differ only in time, location and data.
#[derive(Serialize)]
struct Kind {
    provider: usize,
    name: Option<String>,
    id: u16,
    version: u8,
    channel: u8,
    level: u8,
    opcode: u8,
    task: u16,
    keyword: String,
    channel_name: Option<String>,
    level_name: Option<String>,
    opcode_name: Option<String>,
    task_name: Option<String>,
    keywords: Vec<String>,
    form: Option<String>,
    count: u64,
    #[serde(skip)]
    guid: Guid,
    #[serde(skip)]
    descriptor: EventDescriptor,
    #[serde(skip)]
    of: Form,
}

/// Returns the name of a record's form, unless it is an event record.
fn form_text(form: Form) -> Option<String> {
    match form {
        Form::Event => None,
        Form::Kernel { hook } => Some(format!("kernel event {hook:#06x}")),
        Form::Classic { opcode, .. } => Some(format!("classic event of type {opcode}")),
        Form::Wpp => Some("WPP message".to_owned()),
    }
}

#[derive(PartialEq, Eq, Serialize)]
struct Provider {
    guid: String,
    name: Option<String>,
    group: Option<String>,
}

#[derive(Default)]
struct Kinds {
    list: Vec<Kind>,
    providers: Vec<Provider>,
    provider_numbers: HashMap<(Guid, Option<String>), usize>,
    /// The numbers of kinds, by hash.
    numbers: HashMap<u64, Vec<u16>>,
}

impl Kinds {
    fn provider(&mut self, event: &Decoded) -> usize {
        let name = event.provider_name.as_deref();
        let key = (event.provider, name.map(str::to_owned));
        *self.provider_numbers.entry(key).or_insert_with(|| {
            self.providers.push(Provider {
                guid: event.provider.to_string(),
                name: name.map(str::to_owned),
                group: event.group.map(|group| group.to_string()),
            });
            self.providers.len() - 1
        })
    }

    /// Returns the index of an event's kind, or `None` if there are too many kinds.
    fn number(&mut self, event: &Decoded) -> Option<u16> {
        let mut hasher = DefaultHasher::new();
        let descriptor = event.descriptor;
        let parts = (event.provider, event.provider_name.as_deref(), event.event_name.as_deref());
        let numbers = (descriptor.id, descriptor.version, descriptor.channel);
        let more = (descriptor.level, descriptor.opcode, descriptor.task);
        (parts, numbers, more, descriptor.keyword, event.kind).hash(&mut hasher);
        self.number_of(event, hasher.finish())
    }

    /// Returns the number of an event's kind, given its hash, which other kinds can share.
    fn number_of(&mut self, event: &Decoded, hash: u64) -> Option<u16> {
        let descriptor = event.descriptor;
        let known = self.numbers.get(&hash).into_iter().flatten().copied();
        for number in known {
            let same = self.list.get(usize::from(number)).is_some_and(|kind| {
                kind.guid == event.provider
                    && kind.descriptor == descriptor
                    && kind.of == event.kind
                    && kind.name.as_deref() == event.event_name.as_deref()
                    && self.providers.get(kind.provider).is_some_and(|provider| {
                        provider.name.as_deref() == event.provider_name.as_deref()
                    })
            });
            if same {
                return Some(number);
            }
        }
        let number = u16::try_from(self.list.len()).ok()?;
        if self.list.len() >= MAX_KINDS {
            return None;
        }
        let provider = self.provider(event);
        let mut keywords: Vec<String> =
            event.keywords.names.iter().map(|name| name.as_ref().to_owned()).collect();
        if event.keywords.unnamed != 0 {
            keywords.push(format!("{:#x}", event.keywords.unnamed));
        }
        let text = |text: Option<&str>| text.map(str::to_owned);
        self.list.push(Kind {
            provider,
            name: text(event.event_name.as_deref()),
            id: descriptor.id,
            version: descriptor.version,
            channel: descriptor.channel,
            level: descriptor.level,
            opcode: descriptor.opcode,
            task: descriptor.task,
            keyword: format!("{:#x}", descriptor.keyword),
            channel_name: text(event.channel_name.as_deref()),
            level_name: text(event.level_name.as_deref()),
            opcode_name: text(event.opcode_name.as_deref()),
            task_name: text(event.task_name.as_deref()),
            keywords,
            form: form_text(event.kind),
            count: 0,
            guid: event.provider,
            descriptor,
            of: event.kind,
        });
        self.numbers.entry(hash).or_default().push(number);
        Some(number)
    }
}

/// A process, one of its threads, the thread's number of events, and its name.
type Thread = (u32, u32, u64, Option<String>);

/// The numbered threads.
#[derive(Default)]
struct Threads {
    list: Vec<Thread>,
    numbers: HashMap<(u32, u32), u32>,
}

impl Threads {
    fn number(&mut self, event: &Decoded) -> Option<u32> {
        let key = (event.process_id, event.thread_id);
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let number = u32::try_from(self.list.len()).ok()?;
        (self.list.len() < MAX_THREADS).then(|| {
            self.list.push((key.0, key.1, 0, None));
            self.numbers.insert(key, number);
            number
        })
    }

    fn count(&mut self, number: u32, event: &Decoded) {
        let thread = usize::try_from(number).ok();
        if let Some(thread) = thread.and_then(|at| self.list.get_mut(at)) {
            thread.2 += 1;
            if let Some(name) = &event.thread_name
                && thread.3.as_deref() != Some(name)
            {
                thread.3 = Some(name.as_ref().to_owned());
            }
        }
    }
}

/// The descriptions of problems and their counts. Number 0 means no problem.
#[derive(Default)]
struct Problems {
    list: Vec<(String, u64)>,
    numbers: HashMap<String, u16>,
}

impl Problems {
    /// Counts an event's first problem, and returns the problem's number.
    fn number(&mut self, event: &Decoded) -> u16 {
        let Some(problem) = event.problems.first() else {
            return 0;
        };
        let mut text = problem.to_string();
        if self.list.len() + 1 >= MAX_PROBLEMS && !self.numbers.contains_key(&text) {
            "other problems".clone_into(&mut text);
        }
        let next = u16::try_from(self.list.len() + 1).unwrap_or(u16::MAX);
        let number = *self.numbers.entry(text).or_insert_with_key(|text| {
            self.list.push((text.clone(), 0));
            next
        });
        let known = self.list.get_mut(usize::from(number).saturating_sub(1));
        if let Some((_, count)) = known {
            *count += 1;
        }
        number
    }
}

const START: u8 = 1;
const STOP: u8 = 2;

/// Returns the class of an event that is the `nth` of its kind.
const fn class(event: &Decoded, nth: u64) -> Class {
    let descriptor = &event.descriptor;
    if matches!(descriptor.level, 1..=3) || !event.problems.is_empty() {
        Class::Alarm
    } else if matches!(descriptor.opcode, START | STOP) && !event.activity.is_null() {
        // Starts and stops are not among the first of their kind, so that they stay together.
        Class::Activity
    } else if nth < FIRST_OF_KIND {
        Class::First
    } else {
        Class::Other
    }
}

/// The description of a page's data, which its script reads first.
#[derive(Serialize)]
struct Description<'a> {
    title: &'a str,
    sessions: &'a [Session],
    /// The time to which other times are relative.
    start: FileTime,
    /// `start` in units of 100 ns since 1601.
    origin: String,
    /// The time from the first to the last event, in units of 100 ns.
    span: i64,
    events: u64,
    shown: u64,
    unlisted: u64,
    /// For each class, the number of events and the number of events shown.
    classes: Vec<(u64, u64)>,
    first_of_kind: u64,
    providers: &'a [Provider],
    kinds: &'a [Kind],
    threads: &'a [Thread],
    processors: Vec<(u16, u64)>,
    processes: &'a BTreeMap<u32, String>,
    problems: &'a [(String, u64)],
    shapes: Vec<Vec<&'a str>>,
    blocks: u32,
    chunks: &'a [u64],
    /// The start and width of the density's first interval, in units of 100 ns.
    bins: (i64, i64),
}

impl Writer {
    /// Starts a page that shows at most `limit` events, but at least one.
    ///
    /// # Errors
    /// Fails if a temporary file cannot be created.
    pub fn new(title: impl Into<String>, limit: u32) -> io::Result<Self> {
        Ok(Self {
            title: title.into(),
            limit: u64::from(limit.max(1)),
            sessions: Vec::new(),
            processes: BTreeMap::new(),
            kinds: Kinds::default(),
            threads: Threads::default(),
            processors: BTreeMap::new(),
            shapes: Shapes::default(),
            problems: Problems::default(),
            density: Density::new(),
            sample: Sample::new(),
            spill: Spill::new()?,
            times: None,
            events: 0,
            unlisted: 0,
        })
    }

    /// Adds the description of a session whose events are shown.
    pub fn add_session(&mut self, mut session: Session) {
        session.damages.truncate(MAX_DAMAGES);
        self.sessions.push(session);
    }

    /// Adds an event. Events should be in time order; the page sorts those that are not.
    ///
    /// # Errors
    /// Fails if the temporary file cannot be written.
    pub fn push(&mut self, event: &Decoded) -> io::Result<()> {
        let time = event.time.raw();
        self.events += 1;
        self.times = Some(
            self.times.map_or((time, time), |(first, last)| (first.min(time), last.max(time))),
        );
        self.density.add(time, event.descriptor.level);
        *self.processors.entry(event.processor).or_default() += 1;
        let problem = self.problems.number(event);
        let (Some(kind), Some(thread)) = (self.kinds.number(event), self.threads.number(event))
        else {
            self.unlisted += 1;
            return Ok(());
        };
        self.threads.count(thread, event);
        if let Some(name) = &event.process_name
            && self.processes.get(&event.process_id).map(String::as_str) != Some(name)
        {
            self.processes.insert(event.process_id, name.as_ref().to_owned());
        }
        let nth = self.kinds.list.get_mut(usize::from(kind)).map_or(0, |kind| {
            kind.count += 1;
            kind.count - 1
        });
        let class = class(event, nth);
        let rank = self.sample.add(class, event.activity);
        if !self.sample.shows(class, rank) {
            return Ok(());
        }
        let row = Row {
            class,
            rank,
            time,
            kind,
            thread,
            processor: event.processor,
            activity: event.activity,
            related: event.related_activity.unwrap_or(Guid::NULL),
            problem,
            line: self.shapes.line(event)?,
        };
        self.spill.push(&row)?;
        if self.spill.rows() >= self.limit.saturating_mul(2) {
            self.sample.fit(self.limit);
            let sample = &self.sample;
            let spill = std::mem::replace(&mut self.spill, Spill::new()?);
            self.spill = spill.retain(|row| sample.shows(row.class, row.rank))?;
        }
        Ok(())
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Fails if the temporary file cannot be read or `out` cannot be
    /// written.
    pub fn finish(mut self, mut out: impl Write) -> io::Result<Written> {
        self.sample.fit(self.limit);
        page::write_head(&mut out)?;
        let (first, last) = self.times.unwrap_or_default();
        let mut columns = Columns::new(first);
        let mut shown = [0_u64; 4];
        let sample = &self.sample;
        let visit = |row: Row| {
            if let Some(shown) = shown.get_mut(row.class as usize) {
                *shown += 1;
            }
            columns.push(&row, &mut out)
        };
        let wanted = |row: &Row| sample.shows(row.class, row.rank);
        self.spill.visit_sorted(wanted, visit)?;
        columns.finish(&mut out)?;
        write_part("density", &self.density.to_bytes(), &mut out)?;
        let description = Description {
            title: &self.title,
            sessions: &self.sessions,
            start: FileTime::from_raw(first),
            origin: first.to_string(),
            span: last.saturating_sub(first),
            events: self.events,
            shown: columns.rows(),
            unlisted: self.unlisted,
            classes: self.sample.totals().into_iter().zip(shown).collect(),
            first_of_kind: FIRST_OF_KIND,
            providers: &self.kinds.providers,
            kinds: &self.kinds.list,
            threads: &self.threads.list,
            processors: self.processors.into_iter().collect(),
            processes: &self.processes,
            problems: &self.problems.list,
            shapes: self.shapes.lists(),
            blocks: columns.blocks(),
            chunks: columns.chunks(),
            bins: (self.density.origin().saturating_sub(first), self.density.width()),
        };
        page::write_tail(&description, &mut out)?;
        out.flush()?;
        Ok(Written { events: self.events, shown: columns.rows() })
    }
}

#[cfg(test)]
mod tests;
