//! The state of a timeline, and the packets that all kinds of events share.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use etw_wire::Guid;

use super::activities::{ActivityLanes, Places, Set};
use super::annotations::Annotations;
use super::intern::Interned;
use super::lanes::Intervals;
use super::properties::{add_properties, name};
use super::rates::Rates;
use super::schema::{clock, defaults, event as slot, interned, packet, system, timebase};
use super::summary::Summary;
use super::tracks::{Track, Tracks};
use super::wire::Message;
use etl_file::decode::Problem;
use etl_file::internals::show::Hex;
use etl_file::internals::spans::OpenSpans;
use etl_file::{Clock, Decoded, FileTime, LogFileHeader};

/// The maximum number of activity slices that are open at the same time.
const MAX_OPEN: usize = 65_536;
/// The maximum number of event kinds whose encoded properties are cached.
const MAX_KINDS: usize = 4096;

/// The state of a timeline.
pub struct Core {
    pub(super) session: Session,
    /// The time of timestamp 0, once it is known.
    pub(super) origin: Option<FileTime>,
    pub(super) interned: Interned,
    /// True if the next packet must state that interned data was cleared.
    pub(super) cleared: bool,
    pub(super) tracks: Tracks,
    pub(super) intervals: Intervals,
    pub(super) lanes: ActivityLanes,
    pub(super) open: OpenSpans<Slice>,
    pub(super) places: Places,
    pub(super) rates: Rates,
    /// The running threads, by processor.
    pub(super) running: HashMap<u16, u32>,
    pub(super) kinds: HashMap<u64, EventKind>,
    pub(super) last_flow: u64,
    pub(super) summary: Summary,
    /// The encoded track event; its memory is reused.
    pub(super) body: Vec<u8>,
}

/// The session properties that a timeline shows.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) clock: Clock,
    pub(super) start: FileTime,
    pub(super) name: String,
    pub(super) release: String,
    pub(super) processors: u32,
}

/// An open slice of an activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) set: Set,
    pub(super) track: u64,
}

/// The encoded properties that all events of a kind share.
#[derive(Clone, Debug)]
pub(super) struct EventKind {
    provider: Guid,
    provider_name: Option<Arc<str>>,
    descriptor: etl_file::EventDescriptor,
    event_name: Option<Arc<str>>,
    pub(super) category: u64,
    pub(super) name: u64,
    annotations: Vec<u8>,
    /// The index of the provider's counter.
    pub(super) rate: usize,
}

impl EventKind {
    fn is_of(&self, event: &Decoded) -> bool {
        self.provider == event.provider
            && self.descriptor == event.descriptor
            && self.event_name.as_deref() == event.event_name.as_deref()
            && self.provider_name.as_deref() == event.provider_name.as_deref()
    }
}

/// The links of a track event to other things.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    /// The flow that ends at the event.
    pub(super) flow: Option<u64>,
    /// True if the track does not belong to the event's thread.
    pub(super) elsewhere: bool,
}

impl Core {
    /// Returns the state of an empty timeline.
    pub fn new(header: &LogFileHeader) -> Self {
        Self {
            session: Session {
                clock: header.session_clock(),
                start: header.start_time,
                name: header.session_name.clone(),
                release: format!("{}.{}.{}", header.os_major, header.os_minor, header.os_build),
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

    /// Writes the packets before the first event.
    pub(super) fn begin(&mut self, origin: FileTime) -> FileTime {
        self.origin = Some(origin);
        let utc = u64::try_from(origin.unix_nanos()).unwrap_or_default();
        let start = self.session.start.to_string();
        let Session { name, release, processors, .. } = &self.session;
        let packets = &mut self.tracks.packets;
        packets.add(None, |packet| {
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, time) in [(clock::BOOTTIME, 0), (clock::REALTIME, utc)] {
                    snapshot.message(clock::CLOCKS, |reading| {
                        reading.uint(clock::CLOCK_ID, id);
                        reading.uint(clock::TIMESTAMP, time);
                    });
                }
                snapshot.uint(clock::PRIMARY_TRACE_CLOCK, clock::BOOTTIME);
            });
        });
        packets.add(None, |packet| {
            packet.message(packet::SYSTEM_INFO, |info| {
                info.message(system::UTSNAME, |names| {
                    names.text(system::SYSNAME, "Windows");
                    names.text(system::RELEASE, release);
                });
                info.uint(system::NUM_CPUS, u64::from(*processors));
            });
        });
        packets.attributes(&[], &[("etl.session", name), ("etl.start", &start)]);
        origin
    }

    /// Returns the timestamp for `time`. Times before the origin become 0.
    pub(super) fn since(&mut self, origin: FileTime, time: FileTime) -> u64 {
        let nanos = time.unix_nanos() - origin.unix_nanos();
        // Perfetto's times are signed numbers.
        let within = nanos.clamp(0, i128::from(i64::MAX));
        if within != nanos {
            self.summary.clamped += 1;
        }
        u64::try_from(within).unwrap_or_default()
    }

    /// Returns the hash of the event's kind, and adds the kind to the table.
    pub(super) fn kind(&mut self, event: &Decoded) -> u64 {
        let mut hasher = DefaultHasher::new();
        event.provider.hash(&mut hasher);
        event.descriptor.hash(&mut hasher);
        event.event_name.hash(&mut hasher);
        let hash = hasher.finish();
        if self.kinds.get(&hash).is_some_and(|known| known.is_of(event)) {
            return hash;
        }
        if self.kinds.len() >= MAX_KINDS {
            self.kinds.clear();
        }
        let guid = event.provider.to_string();
        let provider = event.provider_name.as_deref().unwrap_or(&guid);
        let mut annotations = Vec::new();
        let (number, interned) = (slot::DEBUG_ANNOTATIONS, &mut self.interned);
        let to = &mut Message::new(&mut annotations);
        add_properties(&mut Annotations { to, number, interned }, event);
        let kind = EventKind {
            provider: event.provider,
            provider_name: event.provider_name.clone(),
            descriptor: event.descriptor,
            event_name: event.event_name.clone(),
            category: self.interned.text(interned::EVENT_CATEGORIES, provider),
            name: self.interned.text(interned::EVENT_NAMES, &name(event)),
            annotations,
            rate: self.rates.provider(event.provider, provider),
        };
        self.kinds.insert(hash, kind);
        hash
    }

    /// Adds a packet that can refer to interned data, together with all new interned data.
    pub(super) fn send(&mut self, time: Option<u64>, field: u32, body: &[u8]) {
        let cleared = std::mem::take(&mut self.cleared);
        let new = self.interned.take_new();
        self.tracks.packets.add(time, |packet| {
            let flags = packet::NEEDS_INCREMENTAL_STATE;
            if cleared {
                packet.uint(packet::SEQUENCE_FLAGS, flags | packet::INCREMENTAL_STATE_CLEARED);
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
        });
    }

    /// Adds a track event with the properties and fields of an event.
    pub(super) fn track_event(
        &mut self,
        event: &Decoded,
        hash: u64,
        time: u64,
        track: u64,
        form: u64,
        links: Links,
    ) {
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
        self.send(Some(time), packet::TRACK_EVENT, &body);
        self.body = body;
    }

    /// Adds the flow, the activity and the call stack of an event.
    pub(super) fn add_links(&mut self, to: &mut Message<'_>, event: &Decoded, links: Links) {
        if let Some(flow) = links.flow {
            to.fixed(slot::TERMINATING_FLOW_IDS, flow);
        }
        if !event.activity.is_null() {
            let activity = event.activity.to_string();
            let iid = self.interned.text(interned::CORRELATION_ID_STR, &activity);
            to.uint(slot::CORRELATION_ID_STR_IID, iid);
        }
        if let Some(iid) = event.stack.as_ref().and_then(|stack| self.interned.stack(stack)) {
            to.uint(slot::CALLSTACK_IID, iid);
        }
    }

    /// Adds the parts that differ between events of a kind.
    pub(super) fn add_contents(
        &mut self,
        to: &mut Message<'_>,
        number: u32,
        event: &Decoded,
        elsewhere: bool,
    ) {
        let mut to = Annotations { to, number, interned: &mut self.interned };
        to.fields(&event.fields);
        if let Some(message) = event.message.as_deref() {
            to.text("etw_message", message);
        }
        if !event.leftover.is_empty() {
            to.text("etw_leftover", &Hex(&event.leftover).to_string());
        }
        if !event.problems.is_empty() {
            self.summary.problems += 1;
            let problems: Vec<String> = event.problems.iter().map(Problem::to_string).collect();
            to.text("etw_problem", &problems.join("; "));
        }
        if let Some(related) = event.related_activity.filter(|related| !related.is_null()) {
            to.repeated("etw_related_activity", &related.to_string());
        }
        if elsewhere && event.thread_id != u32::MAX {
            to.uint("etw_thread", event.thread_id.into());
        }
    }

    /// Names the tracks of the event's process and thread.
    pub(super) fn names(&mut self, event: &Decoded) {
        let (process, thread) = (event.process_id, event.thread_id);
        if let Some(name) = &event.process_name {
            self.tracks.suggest(Track::Process(process), name);
        }
        if let Some(name) = &event.thread_name {
            self.tracks.suggest(Track::Thread { process, thread }, name);
        }
    }

    /// Returns the track of the event's thread.
    pub(super) fn thread(&mut self, event: &Decoded) -> u64 {
        self.tracks.of_thread(event.process_id, event.thread_id, event.processor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::EventRecord;
    use etl_fixtures::decoded;

    #[test]
    fn a_kind_is_of_events_that_are_equal_in_all_its_parts() {
        let event = Decoded {
            provider_name: Some("provider".into()),
            event_name: Some("event".into()),
            ..decoded(EventRecord::default())
        };
        let kind = EventKind {
            provider: event.provider,
            provider_name: event.provider_name.clone(),
            descriptor: event.descriptor,
            event_name: event.event_name.clone(),
            category: 1,
            name: 2,
            annotations: Vec::new(),
            rate: 0,
        };
        assert!(kind.is_of(&event));
        let changes: [fn(&mut Decoded); 5] = [
            |event| event.provider = Guid::from_u128(1),
            |event| event.descriptor.level = 7,
            |event| event.event_name = None,
            |event| event.event_name = Some("other".into()),
            |event| event.provider_name = Some("other".into()),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = event.clone();
            change(&mut other);
            assert!(!kind.is_of(&other), "change {number}");
        }
    }

    #[test]
    fn kinds_beyond_the_limit_replace_all_others() {
        let mut core = Core::new(&LogFileHeader::default());
        let event = |n: usize| {
            let mut event = decoded(EventRecord::default());
            event.descriptor.id = u16::try_from(n).unwrap();
            event
        };
        for n in 0..MAX_KINDS {
            core.kind(&event(n));
            assert_eq!(core.kinds.len(), n + 1);
        }
        core.kind(&event(7));
        assert_eq!(core.kinds.len(), MAX_KINDS);
        let hash = core.kind(&event(MAX_KINDS));
        assert_eq!(core.kinds.keys().collect::<Vec<_>>(), [&hash]);
    }
}
