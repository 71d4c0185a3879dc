//! Output for timelines: Perfetto's own format, for <https://ui.perfetto.dev>.
//!
//! A [`Writer`] takes events in the order of time and needs bounded memory. Each event appears once:
//!
//! - An event of a provider is an instant on the track of its thread.
//! - A start event and its stop event, paired as in [`spans`](crate::spans), are a slice on a track
//!   of the process that started it. The stop event's fields are in the dictionary `stop`. A slice
//!   whose stop event is missing stays open.
//! - An event with a related activity ends a flow from that activity: from an instant `flow to …` that
//!   the writer adds to the track of the activity's open slice or last event.
//! - Context switches and readied threads are packets of Perfetto's ETW schema, from which it shows
//!   scheduling, thread states and wakers. So are the operations on files.
//! - DPCs and ISRs are slices on tracks of their processors, and the requests of disks are slices on
//!   tracks of the disks: from the initial time in the event, or from the response time, to the time
//!   of the event.
//! - Samples of the program counter are profile samples with their call stacks. The call stacks of
//!   other events belong to the events.
//! - All other events of the kernel are instants.
//!
//! In addition, a counter shows each provider's events per second, in windows of 100 ms. Fields are
//! not shown as counters: nothing in an event says which of its numbers are levels of something.
//!
//! Fields are debug annotations with their types. The event's own properties are annotations as well:
//! `etw_level`, `etw_id`, `etw_keyword`, `etw_about` (the names of the keyword, opcode and task, and
//! the version and channel), `etw_message`, `etw_leftover`, `etw_problem`, and `etw_thread` where the
//! track is not the thread's. The category is the provider's name. The activity id is the correlation
//! id.
//!
//! Times are nanoseconds since the session's start, or since the first event if that is earlier. Their
//! clock is Perfetto's `BOOTTIME`, the clock in which it expects kernel events; a clock snapshot
//! relates it to UTC.

mod activities;
mod annotations;
mod intern;
mod kernel;
mod lanes;
mod packets;
mod rates;
mod schema;
mod summary;
mod tracks;
mod wire;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::sync::Arc;

use etw_wire::Guid;

use self::activities::{ActivityLanes, Place, Places, Set};
use self::intern::{Interned, Table};
use self::kernel::{Begin, Fact, Form};
use self::lanes::{Intervals, Lanes};
use self::packets::Packets;
use self::rates::Rates;
use self::schema::{
    annotation, attributes, clock, defaults, etw, event as slot, packet, sample, system, timebase,
};
pub use self::summary::Summary;
use self::tracks::{Track, Tracks};
use self::wire::Message;
use crate::decode::{Decoded, Frame, Kind, Problem, Stack};
use crate::header::LogFileHeader;
use crate::show::Hex;
use crate::spans::{OpenSpans, Part, SpanKey};
use crate::time::{Clock, FileTime};

/// The most slices of activities that are open at the same time.
const MAX_OPEN: usize = 65_536;
/// The most kinds of events whose properties are kept in encoded form.
const MAX_KINDS: usize = 4096;
/// The most providers in the trace's attributes.
const MAX_ATTRIBUTES: usize = 256;
/// The channel of `TraceLogging` events, which nothing needs to mention.
const TRACE_LOGGING_CHANNEL: u8 = 11;

/// Writes a timeline in Perfetto's format.
pub struct Writer<W> {
    packets: Packets<W>,
    session: Session,
    /// The time of time stamp 0, once it is known.
    origin: Option<FileTime>,
    interned: Interned,
    /// True if the next packet must say that interned data was cleared.
    cleared: bool,
    tracks: Tracks,
    intervals: Intervals,
    lanes: ActivityLanes,
    open: OpenSpans<Slice>,
    places: Places,
    rates: Rates,
    /// The threads that run, by processor.
    running: HashMap<u16, u32>,
    kinds: HashMap<u64, EventKind>,
    last_flow: u64,
    summary: Summary,
    /// The encoded track event, whose memory is used again.
    body: Vec<u8>,
}

/// The properties of the session that a timeline shows.
#[derive(Clone, Debug)]
struct Session {
    clock: Clock,
    start: FileTime,
    name: String,
    release: String,
    processors: u32,
}

/// An open slice of an activity.
#[derive(Clone, Copy, Debug)]
struct Slice {
    set: Set,
    track: u64,
}

/// The properties that all events of a kind have in common, encoded.
#[derive(Clone, Debug)]
struct EventKind {
    provider: Guid,
    provider_name: Option<Arc<str>>,
    descriptor: crate::record::EventDescriptor,
    event_name: Option<Arc<str>>,
    category: u64,
    name: u64,
    annotations: Vec<u8>,
    /// The counter of the provider.
    rate: usize,
}

impl EventKind {
    fn is_of(&self, event: &Decoded) -> bool {
        self.provider == event.provider
            && self.descriptor == event.descriptor
            && self.event_name.as_deref() == event.event_name.as_deref()
            && self.provider_name.as_deref() == event.provider_name.as_deref()
    }
}

/// The parts of a track event besides its properties.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    /// The flow that the event ends.
    flow: Option<u64>,
    /// True if the track is not the track of the event's thread.
    elsewhere: bool,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `out`, which should not be buffered: the writer has a buffer. `header`
    /// is the header of the trace.
    pub fn new(out: W, header: &LogFileHeader) -> Self {
        Self {
            packets: Packets::new(out),
            session: Session {
                clock: header.session_clock(),
                start: header.start_time,
                name: header.session_name.clone(),
                release: format!(
                    "{}.{}.{}",
                    header.os_major, header.os_minor, header.os_build
                ),
                processors: header.processors,
            },
            origin: None,
            interned: Interned::default(),
            cleared: true,
            tracks: Tracks::default(),
            intervals: Intervals::default(),
            lanes: ActivityLanes::default(),
            open: OpenSpans::new(MAX_OPEN),
            places: Places::default(),
            rates: Rates::default(),
            running: HashMap::new(),
            kinds: HashMap::new(),
            last_flow: 0,
            summary: Summary::default(),
            body: Vec::new(),
        }
    }

    /// Adds an event, which must not be earlier than the events before it.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn event(&mut self, event: &Decoded) -> io::Result<()> {
        let origin = match self.origin {
            Some(origin) => origin,
            None => self.begin(self.session.start.min(event.time))?,
        };
        if self.interned.is_full() {
            self.interned.clear();
            self.kinds.clear();
            self.cleared = true;
        }
        let time = self.since(origin, event.time);
        self.summary.events += 1;
        let hash = self.kind(event);
        if let Some(rate) = self.kinds.get(&hash).map(|kind| kind.rate) {
            self.rates
                .count(rate, time, &mut self.tracks, &mut self.packets)?;
        }
        match kernel::form(event) {
            Some(Form::Etw(number, message)) => self.kernel(event, time, number, &message),
            Some(Form::Interval(lanes, begin)) => {
                self.interval(event, hash, origin, time, lanes, begin)
            }
            Some(Form::Sample { address }) => self.sample(event, time, address),
            Some(Form::Fact(fact)) => {
                self.fact(fact)?;
                self.instant(event, hash, time)
            }
            None => {
                if kernel::is_special(event) {
                    self.summary.incomplete += 1;
                }
                match Part::of(event) {
                    Some(Part::Start(key)) => self.start(event, hash, time, key),
                    Some(Part::Stop(key)) => self.stop(event, hash, time, &key),
                    None => self.instant(event, hash, time),
                }
            }
        }
    }

    /// Adds a property of the trace, which Perfetto shows among its information about the trace.
    /// Attributes that say what a timeline leaves out should be added before [`Writer::finish`].
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn attribute(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.packets.add(None, |packet| {
            packet.message(packet::TRACE_ATTRIBUTES, |to| {
                to.message(attributes::ATTRIBUTE, |to| {
                    to.text(attributes::KEY, key);
                    to.text(attributes::STRING_VALUE, value);
                });
            });
        })
    }

    /// Writes the rest of the timeline. Returns the output and the counts of what the timeline
    /// shows.
    ///
    /// # Errors
    /// Returns the error of the output.
    pub fn finish(mut self) -> io::Result<(W, Summary)> {
        if self.origin.is_none() {
            self.begin(self.session.start)?;
        }
        self.rates.finish(&mut self.tracks, &mut self.packets)?;
        self.summary.open_slices += self.open.len() as u64;
        let numbers = self.summary.attributes();
        let providers = self.rates.providers();
        let texts = providers.iter().take(MAX_ATTRIBUTES).map(|provider| {
            (
                format!("etl.provider.{}", provider.name),
                format!("{}, {} events", provider.guid, provider.events),
            )
        });
        let texts: Vec<(String, String)> = texts.collect();
        self.packets.add(None, |packet| {
            packet.message(packet::TRACE_ATTRIBUTES, |to| {
                for (key, value) in numbers {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.uint(attributes::LONG_VALUE, value);
                    });
                }
                for (key, value) in &texts {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.text(attributes::STRING_VALUE, value);
                    });
                }
            });
        })?;
        self.summary.packets = self.packets.count();
        Ok((self.packets.finish()?, self.summary))
    }

    /// Writes the packets before the first event.
    fn begin(&mut self, origin: FileTime) -> io::Result<FileTime> {
        self.origin = Some(origin);
        let utc = u64::try_from(origin.unix_nanos()).unwrap_or_default();
        let start = self.session.start.to_string();
        let Session {
            name,
            release,
            processors,
            ..
        } = &self.session;
        self.packets.add(None, |packet| {
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, time) in [(clock::BOOTTIME, 0), (clock::REALTIME, utc)] {
                    snapshot.message(clock::CLOCKS, |reading| {
                        reading.uint(clock::CLOCK_ID, id);
                        reading.uint(clock::TIMESTAMP, time);
                    });
                }
                snapshot.uint(clock::PRIMARY_TRACE_CLOCK, clock::BOOTTIME);
            });
        })?;
        self.packets.add(None, |packet| {
            packet.message(packet::SYSTEM_INFO, |info| {
                info.message(system::UTSNAME, |names| {
                    names.text(system::SYSNAME, "Windows");
                    names.text(system::RELEASE, release);
                });
                info.uint(system::NUM_CPUS, u64::from(*processors));
            });
        })?;
        self.packets.add(None, |packet| {
            packet.message(packet::TRACE_ATTRIBUTES, |to| {
                for (key, value) in [("etl.session", name), ("etl.start", &start)] {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.text(attributes::STRING_VALUE, value);
                    });
                }
            });
        })?;
        Ok(origin)
    }

    /// Returns the time stamp of a time. Times before the origin become 0.
    fn since(&mut self, origin: FileTime, time: FileTime) -> u64 {
        let nanos = time.unix_nanos() - origin.unix_nanos();
        // Perfetto's times are signed.
        let within = nanos.clamp(0, i128::from(i64::MAX));
        if within != nanos {
            self.summary.clamped += 1;
        }
        u64::try_from(within).unwrap_or_default()
    }

    /// Returns the hash of the event's kind, which is in the table.
    fn kind(&mut self, event: &Decoded) -> u64 {
        let mut hasher = DefaultHasher::new();
        event.provider.hash(&mut hasher);
        event.descriptor.hash(&mut hasher);
        event.event_name.hash(&mut hasher);
        let hash = hasher.finish();
        if self
            .kinds
            .get(&hash)
            .is_some_and(|known| known.is_of(event))
        {
            return hash;
        }
        if self.kinds.len() >= MAX_KINDS {
            self.kinds.clear();
        }
        let guid = event.provider.to_string();
        let provider = event.provider_name.as_deref().unwrap_or(&guid);
        let mut annotations = Vec::new();
        add_properties(
            &mut Message::new(&mut annotations),
            slot::DEBUG_ANNOTATIONS,
            event,
            &mut self.interned,
        );
        let kind = EventKind {
            provider: event.provider,
            provider_name: event.provider_name.clone(),
            descriptor: event.descriptor,
            event_name: event.event_name.clone(),
            category: self.interned.text(Table::Category, provider),
            name: self.interned.text(Table::EventName, &name(event)),
            annotations,
            rate: self.rates.provider(event.provider, provider),
        };
        self.kinds.insert(hash, kind);
        hash
    }

    /// Adds a packet that can refer to interned data, with all new data.
    fn send(&mut self, time: Option<u64>, field: u32, body: &[u8]) -> io::Result<()> {
        let cleared = std::mem::take(&mut self.cleared);
        let new = if self.interned.has_new() {
            self.interned.take_new()
        } else {
            Vec::new()
        };
        self.packets.add(time, |packet| {
            let flags = packet::NEEDS_INCREMENTAL_STATE;
            if cleared {
                packet.uint(
                    packet::SEQUENCE_FLAGS,
                    flags | packet::INCREMENTAL_STATE_CLEARED,
                );
                packet.message(packet::TRACE_PACKET_DEFAULTS, |to| {
                    to.uint(defaults::TIMESTAMP_CLOCK_ID, clock::BOOTTIME);
                    to.message(defaults::PERF_SAMPLE_DEFAULTS, |to| {
                        to.message(timebase::TIMEBASE, |to| {
                            to.uint(timebase::PERIOD, 1);
                            to.uint(timebase::COUNTER, timebase::SW_CPU_CLOCK);
                            to.text(timebase::NAME, "SampledProfile");
                        });
                    });
                });
            } else {
                packet.uint(packet::SEQUENCE_FLAGS, flags);
            }
            if !new.is_empty() {
                packet.bytes(packet::INTERNED_DATA, &new);
            }
            packet.bytes(field, body);
        })
    }

    /// Adds a track event with the properties and fields of an event.
    fn track_event(
        &mut self,
        event: &Decoded,
        hash: u64,
        time: u64,
        track: u64,
        form: u64,
        links: Links,
    ) -> io::Result<()> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, form);
        to.uint(slot::TRACK_UUID, track);
        if let Some(kind) = self.kinds.get(&hash) {
            to.uint(slot::CATEGORY_IIDS, kind.category);
            to.uint(slot::NAME_IID, kind.name);
            to.fields(&kind.annotations);
        }
        self.add_contents(&mut to, slot::DEBUG_ANNOTATIONS, event, links.elsewhere);
        self.add_links(&mut to, event, links);
        let sent = self.send(Some(time), packet::TRACK_EVENT, &body);
        self.body = body;
        sent
    }

    /// Adds the flow, the activity and the call stack of an event.
    fn add_links(&mut self, to: &mut Message<'_>, event: &Decoded, links: Links) {
        if let Some(flow) = links.flow {
            to.fixed(slot::TERMINATING_FLOW_IDS, flow);
        }
        if !event.activity.is_null() {
            let activity = event.activity.to_string();
            let iid = self.interned.text(Table::Correlation, &activity);
            to.uint(slot::CORRELATION_ID_STR_IID, iid);
        }
        if let Some(iid) = event
            .stack
            .as_ref()
            .and_then(|stack| self.interned.stack(stack))
        {
            to.uint(slot::CALLSTACK_IID, iid);
        }
    }

    /// Adds the parts that differ from event to event of a kind.
    fn add_contents(
        &mut self,
        to: &mut Message<'_>,
        number: u32,
        event: &Decoded,
        elsewhere: bool,
    ) {
        let interned = &mut self.interned;
        annotations::add_fields(to, number, &event.fields, interned);
        if let Some(message) = event.message.as_deref() {
            annotations::add(to, number, "etw_message", interned, |to| {
                to.text(annotation::STRING_VALUE, message);
            });
        }
        if !event.leftover.is_empty() {
            annotations::add(to, number, "etw_leftover", interned, |to| {
                to.text(annotation::STRING_VALUE, &Hex(&event.leftover).to_string());
            });
        }
        if !event.problems.is_empty() {
            self.summary.problems += 1;
            let problems: Vec<String> = event.problems.iter().map(Problem::to_string).collect();
            let problems = problems.join("; ");
            annotations::add(to, number, "etw_problem", interned, |to| {
                to.text(annotation::STRING_VALUE, &problems);
            });
        }
        if let Some(related) = event.related_activity.filter(|related| !related.is_null()) {
            let related = related.to_string();
            annotations::add_repeated(to, number, "etw_related_activity", &related, interned);
        }
        if elsewhere && event.thread_id != u32::MAX {
            annotations::add(to, number, "etw_thread", interned, |to| {
                to.uint(annotation::UINT_VALUE, u64::from(event.thread_id));
            });
        }
    }

    /// Returns the track of the event's thread.
    fn thread(&mut self, event: &Decoded) -> io::Result<u64> {
        self.tracks.of_thread(
            event.process_id,
            event.thread_id,
            event.processor,
            &mut self.packets,
        )
    }

    /// Adds an event as an instant on its thread's track.
    fn instant(&mut self, event: &Decoded, hash: u64, time: u64) -> io::Result<()> {
        let track = self.thread(event)?;
        let flow = self.flow(event, hash, time)?;
        self.summary.instants += 1;
        if !event.activity.is_null() {
            let place = self.places.get(&event.activity).unwrap_or_default();
            if place.open == 0 {
                self.places.set(event.activity, Place { track, open: 0 });
            }
        }
        let links = Links {
            flow,
            elsewhere: false,
        };
        self.track_event(event, hash, time, track, slot::INSTANT, links)
    }

    /// Starts a flow at the related activity of an event, and returns its number.
    fn flow(&mut self, event: &Decoded, hash: u64, time: u64) -> io::Result<Option<u64>> {
        let related = event
            .related_activity
            .filter(|related| !related.is_null() && *related != event.activity);
        let Some(related) = related else {
            return Ok(None);
        };
        let Some(place) = self.places.get(&related) else {
            self.summary.unknown_related += 1;
            return Ok(None);
        };
        self.last_flow += 1;
        self.summary.flows += 1;
        let flow = self.last_flow;
        let category = self.kinds.get(&hash).map(|kind| kind.category);
        let name = format!("flow to {}", name(event));
        let name = self.interned.text(Table::EventName, &name);
        let related = related.to_string();
        let correlation = self.interned.text(Table::Correlation, &related);
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, slot::INSTANT);
        to.uint(slot::TRACK_UUID, place.track);
        if let Some(category) = category {
            to.uint(slot::CATEGORY_IIDS, category);
        }
        to.uint(slot::NAME_IID, name);
        to.fixed(slot::FLOW_IDS, flow);
        to.uint(slot::CORRELATION_ID_STR_IID, correlation);
        self.send(Some(time), packet::TRACK_EVENT, &body)?;
        Ok(Some(flow))
    }

    /// Adds a start event as the beginning of a slice.
    fn start(&mut self, event: &Decoded, hash: u64, time: u64, key: SpanKey) -> io::Result<()> {
        let flow = self.flow(event, hash, time)?;
        let slice = if let Some(slice) = self.open.last(&key) {
            *slice
        } else {
            let set = (event.process_id, event.provider);
            let guid = event.provider.to_string();
            let provider = event.provider_name.as_deref().unwrap_or(&guid);
            let track = self
                .lanes
                .take(set, provider, &mut self.tracks, &mut self.packets)?;
            Slice { set, track }
        };
        // The lanes of slices that are given up stay open, and are not used again.
        self.summary.open_slices += self.open.start(key, slice).len() as u64;
        let place = self.places.get(&event.activity).unwrap_or_default();
        self.places.set(
            event.activity,
            Place {
                track: slice.track,
                open: place.open.saturating_add(1),
            },
        );
        let links = Links {
            flow,
            elsewhere: true,
        };
        self.track_event(event, hash, time, slice.track, slot::SLICE_BEGIN, links)
    }

    /// Adds a stop event as the end of a slice, or as an instant if no slice is open.
    fn stop(&mut self, event: &Decoded, hash: u64, time: u64, key: &SpanKey) -> io::Result<()> {
        let Some(slice) = self.open.stop(key) else {
            self.summary.unmatched_stops += 1;
            return self.instant(event, hash, time);
        };
        let flow = self.flow(event, hash, time)?;
        self.summary.slices += 1;
        let thread = self.thread(event)?;
        let open = self
            .places
            .get(&event.activity)
            .map_or(0, |place| place.open.saturating_sub(1));
        let track = if open == 0 { thread } else { slice.track };
        self.places.set(event.activity, Place { track, open });
        let mut contents = Vec::new();
        let mut to = Message::new(&mut contents);
        let number = annotation::DICT_ENTRIES;
        add_properties(&mut to, number, event, &mut self.interned);
        annotations::add(&mut to, number, "etw_name", &mut self.interned, |to| {
            to.text(annotation::STRING_VALUE, &name(event));
        });
        self.add_contents(&mut to, number, event, true);
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, slot::SLICE_END);
        to.uint(slot::TRACK_UUID, slice.track);
        annotations::add(
            &mut to,
            slot::DEBUG_ANNOTATIONS,
            "stop",
            &mut self.interned,
            |to| to.fields(&contents),
        );
        self.add_links(
            &mut to,
            event,
            Links {
                flow,
                elsewhere: true,
            },
        );
        self.send(Some(time), packet::TRACK_EVENT, &body)?;
        if self.open.last(key).is_none() {
            self.lanes.give_back(slice.set, slice.track);
        }
        Ok(())
    }

    /// Adds an event of Perfetto's ETW schema.
    fn kernel(
        &mut self,
        event: &Decoded,
        time: u64,
        number: u32,
        message: &[u8],
    ) -> io::Result<()> {
        let thread = match number {
            etw::C_SWITCH => None,
            // The thread that makes another one ready is the one that runs.
            etw::READY_THREAD => self.running.get(&event.processor).copied(),
            _ => Some(event.thread_id),
        };
        let thread = thread.filter(|thread| *thread != u32::MAX);
        if number == etw::C_SWITCH {
            self.summary.scheduling += 1;
            if let Some(new) = kernel::thread_field(event, "NewThreadId") {
                self.running.insert(event.processor, new);
            }
        } else if number == etw::READY_THREAD {
            self.summary.scheduling += 1;
        } else {
            self.summary.file_operations += 1;
        }
        self.etw_event(event, time, thread, |to| to.bytes(number, message))?;
        if let Some(iid) = event
            .stack
            .as_ref()
            .and_then(|stack| self.interned.stack(stack))
        {
            let trigger = name(event);
            self.etw_event(event, time, thread, |to| {
                to.message(etw::STACK_WALK, |to| {
                    to.text(etw::TRIGGER, &trigger);
                    to.uint(etw::WALK_CALLSTACK_IID, iid);
                });
            })?;
        }
        Ok(())
    }

    /// Adds an event to Perfetto's ETW events.
    fn etw_event(
        &mut self,
        event: &Decoded,
        time: u64,
        thread: Option<u32>,
        content: impl FnOnce(&mut Message<'_>),
    ) -> io::Result<()> {
        let mut body = Vec::new();
        Message::new(&mut body).message(etw::BUNDLE_EVENT, |to| {
            to.uint(etw::TIMESTAMP, time);
            to.uint(etw::CPU, u64::from(event.processor));
            if let Some(thread) = thread {
                to.uint(etw::THREAD_ID, u64::from(thread));
            }
            content(to);
        });
        self.send(Some(time), packet::ETW_EVENTS, &body)
    }

    /// Adds an interval as a slice.
    fn interval(
        &mut self,
        event: &Decoded,
        hash: u64,
        origin: FileTime,
        time: u64,
        lanes: Lanes,
        begin: Begin,
    ) -> io::Result<()> {
        let start = match begin {
            Begin::Clock(reading) => {
                let start = self.session.clock.to_file_time(reading);
                if start > event.time {
                    None
                } else {
                    Some(self.since(origin, start))
                }
            }
            Begin::Ticks(ticks) => {
                let frequency = i128::from(self.session.clock.perf_frequency).max(1);
                let nanos = i128::from(ticks) * 1_000_000_000 / frequency;
                let start = i128::from(time) - nanos;
                Some(u64::try_from(start).unwrap_or_else(|_| {
                    self.summary.clamped += 1;
                    0
                }))
            }
        };
        let lane = match start {
            Some(start) => {
                self.intervals
                    .lane(lanes, start, time, &mut self.tracks, &mut self.packets)?
            }
            None => None,
        };
        let (Some(start), Some(track)) = (start, lane) else {
            // The interval would end before it starts, or there are too many at the same time.
            self.summary.incomplete += 1;
            return self.instant(event, hash, time);
        };
        self.summary.intervals += 1;
        let links = Links {
            flow: None,
            elsewhere: true,
        };
        self.track_event(event, hash, start, track, slot::SLICE_BEGIN, links)?;
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, slot::SLICE_END);
        to.uint(slot::TRACK_UUID, track);
        self.send(Some(time), packet::TRACK_EVENT, &body)
    }

    /// Adds a sample of the program counter.
    fn sample(&mut self, event: &Decoded, time: u64, address: u64) -> io::Result<()> {
        self.summary.samples += 1;
        let alone = Stack {
            frames: vec![Frame {
                address,
                place: None,
            }],
        };
        let stack = event.stack.as_ref().unwrap_or(&alone);
        let stack = self.interned.stack(stack);
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(sample::CPU, u64::from(event.processor));
        if event.process_id != u32::MAX {
            to.uint(sample::PID, u64::from(event.process_id));
        }
        if event.thread_id != u32::MAX {
            to.uint(sample::TID, u64::from(event.thread_id));
        }
        if let Some(iid) = stack {
            to.uint(sample::CALLSTACK_IID, iid);
        }
        if let Some(mode) = kernel::mode(address) {
            to.uint(sample::CPU_MODE, mode);
        }
        self.send(Some(time), packet::PERF_SAMPLE, &body)
    }

    /// Uses a fact about a process or a thread.
    fn fact(&mut self, fact: Fact) -> io::Result<()> {
        match fact {
            Fact::Process {
                id,
                name,
                command_line,
                started,
            } => {
                let process = Track::Process(id);
                if started {
                    self.tracks.start(process);
                }
                self.tracks
                    .name(process, &name, &command_line, &mut self.packets)
            }
            Fact::ProcessEnded(id) => {
                self.tracks.end(Track::Process(id));
                Ok(())
            }
            Fact::Thread {
                process,
                id,
                name,
                started,
            } => {
                let thread = Track::Thread {
                    process,
                    thread: id,
                };
                if started {
                    self.tracks.start(thread);
                }
                if name.is_empty() {
                    // Perfetto learns which process the thread belongs to.
                    self.tracks.of(thread, &mut self.packets).map(drop)
                } else {
                    self.tracks.name(thread, &name, "", &mut self.packets)
                }
            }
            Fact::ThreadEnded { process, id } => {
                self.tracks.end(Track::Thread {
                    process,
                    thread: id,
                });
                Ok(())
            }
        }
    }
}

/// Returns the name of an event, or its id.
fn name(event: &Decoded) -> String {
    match (event.event_name.as_deref(), event.kind) {
        (Some(name), _) if !name.is_empty() => name.to_owned(),
        (_, Kind::Kernel { hook }) => format!("hook {hook:#06x}"),
        (_, Kind::Classic { opcode, .. }) => format!("type {opcode}"),
        _ => format!("event {}", event.descriptor.id),
    }
}

/// Adds the properties that all events of a kind have in common.
fn add_properties(to: &mut Message<'_>, number: u32, event: &Decoded, interned: &mut Interned) {
    let descriptor = &event.descriptor;
    annotations::add(to, number, "etw_level", interned, |to| {
        to.uint(annotation::UINT_VALUE, u64::from(descriptor.level));
    });
    if descriptor.id != 0 {
        annotations::add(to, number, "etw_id", interned, |to| {
            to.uint(annotation::UINT_VALUE, u64::from(descriptor.id));
        });
    }
    if descriptor.keyword != 0 {
        annotations::add(to, number, "etw_keyword", interned, |to| {
            to.uint(annotation::POINTER_VALUE, descriptor.keyword);
        });
    }
    let about = about(event);
    if !about.is_empty() {
        annotations::add_repeated(to, number, "etw_about", &about, interned);
    }
}

/// Returns the names of the event's keyword, opcode and task, and the rare numbers.
fn about(event: &Decoded) -> String {
    let descriptor = &event.descriptor;
    let mut parts = Vec::new();
    if !event.keywords.names.is_empty() {
        let names: Vec<&str> = event.keywords.names.iter().map(AsRef::as_ref).collect();
        parts.push(format!("keyword {}", names.join("|")));
    }
    for (what, number, name) in [
        ("opcode", u16::from(descriptor.opcode), &event.opcode_name),
        ("task", descriptor.task, &event.task_name),
    ] {
        match (number, name) {
            (0, _) => {}
            (number, Some(name)) => parts.push(format!("{what} {name} ({number})")),
            (number, None) => parts.push(format!("{what} {number}")),
        }
    }
    if descriptor.version != 0 {
        parts.push(format!("version {}", descriptor.version));
    }
    if descriptor.channel != 0 && descriptor.channel != TRACE_LOGGING_CHANNEL {
        parts.push(format!("channel {}", descriptor.channel));
    }
    if let Some(group) = event.group {
        parts.push(format!("group {group}"));
    }
    parts.join(", ")
}
