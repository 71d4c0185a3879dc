//! The schemas that a trace itself contains.
//!
//! When xperf and `PerfView` merge a trace, they add the system's schemas for its events
//! (`TRACE_EVENT_INFO`, `EVENT_MAP_INFO`); .NET event sources write their manifests. A
//! [`Collector`] takes a trace's records, in any order, and collects these schemas for a
//! [`Catalog`]. Memory use is limited: schemas beyond the limit are only counted.

mod envelope;
mod event_info;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read, Seek};
use std::sync::Arc;

use etw_manifest::{ManifestError, Skipped};
use etw_wire::{Guid, winmeta};

use super::catalog::{self, Catalog, Channel, EventDefinition, Provider};
use super::payload::Fields;
use super::schema::{Schema, ValueMap};
use super::value::Value;
use crate::addresses::Addresses;
use crate::cursor::Cursor;
use crate::layout::{self, Form};
use crate::read::{ReadError, TraceFile, parse_event};
use crate::record::EventDescriptor;

pub(crate) use envelope::is_chunk;
use envelope::{Assembly, Chunk};
pub use event_info::SchemaError;
use event_info::{EventInfo, Key};

/// The class of classic events that contain schemas.
#[doc(hidden)]
pub const METADATA_CLASS: Guid = Guid::from_u128(0xbbcc_f6c1_6cd1_48c4_80ff_8394_82e3_7671);
/// The type of an event that contains a `TRACE_EVENT_INFO`.
const EVENT_INFO: u8 = 32;
/// The type of an event that contains a provider's GUID and an `EVENT_MAP_INFO`.
const MAP_INFO: u8 = 33;

/// The maximum total size in bytes of a trace's schemas.
const MAX_BYTES: usize = 16 << 20;
/// The maximum number of different sets of manifests that processes can write for an event source. The
/// events of the other processes are decoded as if these had written none, and marked.
const MAX_COMBINATIONS: usize = 256;
/// The maximum number of defects to list.
const MAX_DEFECTS: usize = 32;

/// Returns the fields of an event that contains a chunk of an event source's manifest.
pub(super) fn chunk_fields(descriptor: &EventDescriptor, user_data: &[u8]) -> Option<Fields> {
    if !is_chunk(descriptor.id, descriptor.opcode, descriptor.task) {
        return None;
    }
    let chunk = Chunk::parse(user_data)?;
    let text = String::from_utf8_lossy(chunk.bytes).into_owned();
    Some(vec![
        ("MajorVersion".into(), Value::UInt(chunk.version.0.into())),
        ("MinorVersion".into(), Value::UInt(chunk.version.1.into())),
        ("TotalChunks".into(), Value::UInt(chunk.total.into())),
        ("ChunkNumber".into(), Value::UInt(chunk.number.into())),
        ("Data".into(), Value::Text(text)),
    ])
}

/// The name of an event that contains a chunk of an event source's manifest.
pub(super) const CHUNK_NAME: &str = "ManifestData";

/// A schema in a trace that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The schema of an event is damaged.
    #[error(
        "cannot use the trace's schema of provider {provider}, event {id} version {version}: \
         {why}"
    )]
    Event {
        /// The provider.
        provider: Guid,
        /// The event's id.
        id: u16,
        /// The event's version.
        version: u8,
        /// The damage.
        why: SchemaError,
    },
    /// A map is damaged.
    #[error("cannot use a map in the trace: {0}")]
    Map(SchemaError),
    /// The manifest of an event source is damaged.
    #[error("cannot use the manifest that process {process} wrote for provider {provider}: {why}")]
    Manifest {
        /// The provider.
        provider: Guid,
        /// The process that wrote the manifest.
        process: u32,
        /// The damage.
        why: ManifestError,
    },
    /// A part of an event source's manifest that is skipped.
    #[error(
        "the manifest that process {process} wrote for provider {provider} is used in part: {why}"
    )]
    Part {
        /// The provider.
        provider: Guid,
        /// The process that wrote the manifest.
        process: u32,
        /// The part.
        why: Skipped,
    },
    /// The manifests of an event source contradict each other about an event. The events of each
    /// process are decoded by its own manifest.
    #[error(
        "the trace's manifests of provider {provider} describe event {id} version {version} \
         differently; the manifest of its process is used, and events of processes without one are \
         marked"
    )]
    Contradiction {
        /// The provider.
        provider: Guid,
        /// The event's id.
        id: u16,
        /// The event's version.
        version: u8,
    },
    /// Chunks of an event source's manifest are missing.
    #[error(
        "the manifest that process {process} wrote for provider {provider} is incomplete: chunks \
         are missing"
    )]
    Incomplete {
        /// The provider.
        provider: Guid,
        /// The process that wrote the manifest.
        process: u32,
    },
}

/// A summary of a trace's schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Individual event schemas.
    pub events: usize,
    /// Maps.
    pub maps: usize,
    /// Manifests of event sources.
    pub manifests: usize,
    /// Schemas of WBEM, WPP and `TraceLogging` events. They are not used: such events need no
    /// schemas or are not decoded.
    pub other_sources: usize,
    /// Schemas dropped because the total size exceeds the limit.
    pub dropped: usize,
    /// Schemas that are damaged or contain unusable parts.
    pub defective: usize,
}

/// Collects a file's schemas, in a pass over all of its records.
///
/// # Errors
/// Fails with [`ReadError::Io`] if the file cannot be read.
#[doc(hidden)]
pub fn collect<R: Read + Seek>(file: &mut TraceFile<R>) -> Result<Schemas, ReadError> {
    let mut collector = Collector::new();
    file.each_record(|record| collector.record(record.bytes))?;
    Ok(collector.finish())
}

/// The identity of a manifest that a process wrote: provider and process, version and number of
/// chunks.
type Written = ((Guid, u32), ((u8, u8), usize));

/// The origin of a complete manifest.
#[derive(Clone, Debug)]
struct Source {
    /// The position of the manifest among the trace's manifests.
    number: usize,
    /// The provider, and the process that wrote it first.
    writer: (Guid, u32),
    /// The processes that wrote it.
    processes: BTreeSet<u32>,
}

/// Collects the schemas of a trace.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Collector {
    /// The first `TRACE_EVENT_INFO` of each event.
    events: BTreeMap<Key, Vec<u8>>,
    /// The keys of the schemas of events without a manifest.
    other_sources: BTreeSet<[u8; event_info::IDENTITY]>,
    /// The position in the trace of each `EVENT_MAP_INFO`, which includes the provider's GUID if
    /// one precedes it.
    maps: BTreeMap<Vec<u8>, usize>,
    /// The incomplete manifest of each provider and process.
    pending: BTreeMap<(Guid, u32), Assembly>,
    /// The complete manifests, by provider, process and identity.
    complete: BTreeSet<Written>,
    /// The positions of the complete manifests in the trace, by text.
    manifests: BTreeMap<Vec<u8>, Source>,
    bytes: usize,
    dropped: usize,
}

impl Collector {
    /// Returns an empty collector.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a record: its header and payload, without padding. Ignores records without a schema.
    pub fn record(&mut self, record: &[u8]) {
        match Form::recognize(record) {
            Some(Form::Classic) => self.classic(record),
            Some(Form::Event32 | Form::Event64) => self.event(record),
            _ => {}
        }
    }

    fn classic(&mut self, record: &[u8]) {
        let mut c = Cursor::new(record);
        let (Some(_), Some(opcode), Some(_)) = (c.take(4), c.u8(), c.take(19)) else {
            return;
        };
        if c.array().map(Guid::from_bytes) == Some(METADATA_CLASS) {
            let payload = record.get(layout::CLASSIC_HEADER..).unwrap_or_default();
            self.metadata(opcode, payload);
        }
    }

    fn event(&mut self, record: &[u8]) {
        let mut c = Cursor::new(record);
        let at = |c: &mut Cursor<'_>| {
            c.take(24)?;
            let provider = Guid::from_bytes(c.array()?);
            Some((provider, EventDescriptor::read(c)?))
        };
        let Some((provider, descriptor)) = at(&mut c) else {
            return;
        };
        let EventDescriptor { id, opcode, task, .. } = descriptor;
        let is_metadata = provider == METADATA_CLASS;
        if !is_metadata && !is_chunk(id, opcode, task) {
            return;
        }
        let Some(record) = parse_event(record) else {
            return;
        };
        if is_metadata {
            self.metadata(opcode, &record.user_data);
        } else if let Some(chunk) = Chunk::parse(&record.user_data) {
            self.chunk((provider, record.process_id), &chunk);
        }
    }

    fn metadata(&mut self, opcode: u8, payload: &[u8]) {
        match opcode {
            EVENT_INFO => {
                let Some(key) = Key::parse(payload) else {
                    return;
                };
                if key.is_of_another_source() {
                    if let Some(identity) = payload.first_chunk()
                        && !self.other_sources.contains(identity)
                        && self.has_room(identity.len())
                    {
                        self.other_sources.insert(*identity);
                    }
                } else if !self.events.contains_key(&key) && self.has_room(payload.len()) {
                    self.events.insert(key, payload.to_vec());
                }
            }
            MAP_INFO if !self.maps.contains_key(payload) && self.has_room(payload.len()) => {
                self.maps.insert(payload.to_vec(), self.maps.len());
            }
            _ => {}
        }
    }

    fn chunk(&mut self, key: (Guid, u32), chunk: &Chunk<'_>) {
        let before = self.pending.get(&key).map_or(0, Assembly::cost);
        let starts = self.pending.get(&key).is_none_or(|pending| pending.contradicts(chunk));
        if starts {
            // A new copy replaces an incomplete manifest.
            self.bytes = self.bytes.saturating_sub(before);
            self.pending.remove(&key);
            let assembly = Assembly::new(chunk);
            if self.has_room(assembly.cost()) {
                self.pending.insert(key, assembly);
            }
        }
        if !self.has_room(chunk.bytes.len()) {
            return;
        }
        let Some(assembly) = self.pending.get_mut(&key) else {
            return;
        };
        assembly.add(chunk);
        if let Some(whole) = assembly.whole() {
            let written = (key, assembly.identity());
            self.bytes = self.bytes.saturating_sub(assembly.cost());
            self.pending.remove(&key);
            if !self.complete.contains(&written) && self.has_room(size_of::<Written>()) {
                self.complete.insert(written);
            }
            if !self.manifests.contains_key(&whole) && self.has_room(whole.len()) {
                let number = self.manifests.len();
                let source = Source { number, writer: key, processes: BTreeSet::new() };
                self.manifests.insert(whole.clone(), source);
            }
            let (_, process) = key;
            let is_new =
                self.manifests.get(&whole).is_some_and(|one| !one.processes.contains(&process));
            if is_new
                && self.has_room(size_of_val(&process))
                && let Some(source) = self.manifests.get_mut(&whole)
            {
                source.processes.insert(process);
            }
        }
    }

    /// Adds to the total size or, if that would exceed the limit, to the dropped schemas.
    const fn has_room(&mut self, bytes: usize) -> bool {
        let total = self.bytes.saturating_add(bytes);
        if total > MAX_BYTES {
            self.dropped = self.dropped.saturating_add(1);
            return false;
        }
        self.bytes = total;
        true
    }

    /// Reads the collected schemas.
    #[must_use]
    pub fn finish(mut self) -> Schemas {
        let mut schemas = Schemas {
            counts: Counts {
                dropped: self.dropped,
                other_sources: self.other_sources.len(),
                ..Counts::default()
            },
            ..Schemas::default()
        };
        let mut maps = Maps::default();
        // The collected data is freed while it is read, so that it does not occupy memory together
        // with the result.
        let mut payloads: Vec<_> = std::mem::take(&mut self.maps).into_iter().collect();
        payloads.sort_unstable_by_key(|(_, number)| *number);
        for (payload, _) in payloads {
            match maps.add(&payload) {
                Ok(added) => schemas.counts.maps += usize::from(added),
                Err(why) => schemas.defect(Defect::Map(why)),
            }
        }
        let mut providers: BTreeMap<Guid, Provider> = BTreeMap::new();
        while let Some((key, payload)) = self.events.pop_first() {
            match event_info::event_info(&payload, &|guid, name| maps.get(guid, name)) {
                Ok(info) => {
                    schemas.counts.events += 1;
                    add_event(providers.entry(info.provider).or_default(), info);
                }
                Err(why) => schemas.defect(Defect::Event {
                    provider: key.provider,
                    id: key.id,
                    version: key.version,
                    why,
                }),
            }
        }
        let mut manifests: Vec<_> = self.manifests.into_iter().collect();
        // The last manifest comes first, because it takes precedence.
        manifests.sort_unstable_by_key(|(_, source)| Reverse(source.number));
        let mut sources: BTreeMap<Guid, Manifests> = BTreeMap::new();
        for (xml, source) in manifests {
            let (provider, process) = source.writer;
            match catalog::read_manifest(&String::from_utf8_lossy(&xml)) {
                Ok(lenient) => {
                    schemas.counts.manifests += 1;
                    for why in lenient.skipped {
                        schemas.defect(Defect::Part { provider, process, why });
                    }
                    for one in catalog::providers(&lenient.manifest) {
                        let all = sources.entry(one.guid).or_default();
                        all.push((Arc::new(one), source.processes.clone()));
                    }
                }
                Err(why) => schemas.defect(Defect::Manifest { provider, process, why }),
            }
        }
        for manifests in sources.values() {
            schemas.add_source(manifests);
        }
        for (key, assembly) in self.pending {
            // Each session gets a copy of the manifest. Copies can be interleaved or truncated.
            if self.complete.contains(&(key, assembly.identity())) {
                continue;
            }
            let (provider, process) = key;
            schemas.defect(Defect::Incomplete { provider, process });
        }
        schemas.defects.sort_by_cached_key(ToString::to_string);
        schemas.providers = providers.into_values().collect();
        schemas
    }
}

/// The manifests of an event source, the last one in the trace first, each with the processes that
/// wrote it.
type Manifests = Vec<(Arc<Provider>, BTreeSet<u32>)>;

/// A trace's maps, by provider and name.
#[derive(Default)]
struct Maps(BTreeMap<(Option<Guid>, Arc<str>), Arc<ValueMap>>);

impl Maps {
    /// Adds a map: an `EVENT_MAP_INFO`, with or without a provider's GUID before it. Returns true
    /// if fields can use it.
    fn add(&mut self, payload: &[u8]) -> Result<bool, SchemaError> {
        let with_provider = payload.split_first_chunk::<16>();
        let with_provider = with_provider.map(|(guid, map)| {
            let guid = Guid::from_bytes(*guid);
            (Some(guid), event_info::map_info(map))
        });
        let (provider, map) = match with_provider {
            Some((guid, Ok(map))) => (guid, Ok(map)),
            other => match (event_info::map_info(payload), other) {
                (Ok(map), _) => (None, Ok(map)),
                (Err(_), Some((guid, error))) => (guid, error),
                (Err(error), None) => (None, Err(error)),
            },
        };
        let Some(info) = map? else {
            return Ok(false);
        };
        // If several maps have the same name, the first is used.
        let map = Arc::new(info.map);
        self.0.entry((provider, info.name)).or_insert(map);
        Ok(true)
    }

    fn get(&self, provider: Guid, name: &str) -> Option<Arc<ValueMap>> {
        let of = |provider| self.0.get(&(provider, name.into())).cloned();
        of(Some(provider)).or_else(|| of(None))
    }
}

/// The range of provider-defined opcodes.
const OWN_OPCODES: std::ops::RangeInclusive<u8> = 10..=239;
/// The lowest provider-defined level.
const FIRST_OWN_LEVEL: u8 = 16;

/// Adds an event to its provider.
fn add_event(provider: &mut Provider, info: EventInfo) {
    let event_name = info.name();
    provider.guid = info.provider;
    if let Some(name) = info.provider_name
        && provider.name.is_empty()
    {
        name.as_ref().clone_into(&mut provider.name);
    }
    let descriptor = info.descriptor;
    if let Some(level) = info.level
        && descriptor.level >= FIRST_OWN_LEVEL
    {
        provider.levels.entry(descriptor.level).or_insert(level);
    }
    if let Some(task) = info.task
        && descriptor.task != 0
    {
        provider.tasks.entry(descriptor.task).or_insert(task);
    }
    if let Some(opcode) = info.opcode
        && OWN_OPCODES.contains(&descriptor.opcode)
    {
        let key = (descriptor.task, descriptor.opcode);
        provider.opcodes.entry(key).or_insert(opcode);
    }
    if let Some(name) = info.channel
        && descriptor.channel != 0
    {
        // A schema does not contain the channel's bit, but no other reserved bit is in use.
        let bit = descriptor.keyword & winmeta::RESERVED_KEYWORDS;
        let bit = if bit.is_power_of_two() { bit } else { 0 };
        provider.channels.entry(descriptor.channel).or_insert(Channel { name, bit });
    }
    let definition = EventDefinition {
        schema: Schema { event_name, tags: 0, fields: info.fields.into() },
        symbol: None,
        message: info.message.as_deref().map(str::to_owned),
        keywords: info.keywords.into(),
    };
    provider.events.insert((descriptor.id, descriptor.version), definition);
}

/// The schemas that a trace contains.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    providers: Vec<Provider>,
    /// The providers from manifests.
    sources: BTreeMap<Guid, Provider>,
    /// The providers of some processes, whose manifests differ from those of others.
    by_process: Vec<(Arc<Provider>, Vec<u32>)>,
    addresses: Addresses,
    counts: Counts,
    defects: Vec<Defect>,
}

impl Schemas {
    /// Adds the schemas to a catalog. Manifests and images that are already loaded take precedence.
    pub fn add_to(&self, catalog: &mut Catalog) {
        for provider in &self.providers {
            catalog.complete(provider);
        }
        let guids: BTreeSet<Guid> =
            self.by_process.iter().map(|(provider, _)| provider.guid).collect();
        let loaded: Vec<Provider> =
            guids.iter().filter_map(|guid| catalog.provider(*guid).cloned()).collect();
        for (provider, processes) in &self.by_process {
            let loaded = loaded.iter().find(|loaded| loaded.guid == provider.guid);
            catalog.add_of_processes(loaded, provider, processes);
        }
        for provider in self.sources.values() {
            catalog.complete(provider);
        }
        catalog.add_addresses(&self.addresses);
    }

    /// Returns the numbers of schemas of each kind.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the first defects; [`Counts::defective`] is their number.
    #[must_use]
    pub fn defects(&self) -> &[Defect] {
        &self.defects
    }

    /// Adds an event source. Programs can write different manifests for the same source: each
    /// process's applies to its own events, and all of them together to those of other processes.
    fn add_source(&mut self, manifests: &Manifests) {
        let all = (0..manifests.len()).collect::<Vec<_>>();
        let Some((source, contradictions)) = combined(manifests, &all) else {
            return;
        };
        let guid = source.guid;
        for (id, version) in contradictions {
            self.defect(Defect::Contradiction { provider: guid, id, version });
        }
        if manifests.iter().any(|(one, _)| **one != source) {
            let mut of_process: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
            for (number, (_, processes)) in manifests.iter().enumerate() {
                for process in processes {
                    of_process.entry(*process).or_default().push(number);
                }
            }
            let mut together: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
            for (process, numbers) in of_process {
                together.entry(numbers).or_default().push(process);
            }
            let together = together.into_iter().take(MAX_COMBINATIONS);
            self.by_process.extend(together.filter_map(|(numbers, processes)| {
                let (provider, _) = combined(manifests, &numbers)?;
                Some((Arc::new(provider), processes))
            }));
        }
        self.sources.insert(guid, source);
    }

    /// Adds the addresses of the trace's network adapters.
    pub(crate) fn with_addresses(self, addresses: Addresses) -> Self {
        Self { addresses, ..self }
    }

    fn defect(&mut self, defect: Defect) {
        self.counts.defective += 1;
        if self.defects.len() < MAX_DEFECTS {
            self.defects.push(defect);
        }
    }
}

/// Returns what some of the manifests of an event source define together, and the ids and versions
/// of the events that they define differently.
fn combined(manifests: &Manifests, numbers: &[usize]) -> Option<(Provider, Vec<(u16, u8)>)> {
    let mut parts = numbers.iter().filter_map(|number| manifests.get(*number));
    let (first, _) = parts.next()?;
    let mut all = Provider::clone(first);
    let contradictions = parts.flat_map(|(part, _)| all.combine(part)).collect();
    Some((all, contradictions))
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} events, {} maps, {} manifests", self.events, self.maps, self.manifests)?;
        for (count, what) in [
            (self.other_sources, "of other sources"),
            (self.dropped, "omitted"),
            (self.defective, "defective"),
        ] {
            if count != 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_may_fill_their_limit() {
        let mut collector = Collector { bytes: MAX_BYTES - 10, ..Collector::default() };
        assert!(collector.has_room(10));
        assert_eq!((collector.bytes, collector.dropped), (MAX_BYTES, 0));
        assert!(!collector.has_room(1));
        assert_eq!((collector.bytes, collector.dropped), (MAX_BYTES, 1));
    }

    #[test]
    fn maps_are_kept_once_and_within_the_limit() {
        let mut collector = Collector::default();
        for map in [&[1; 30], &[2; 30], &[1; 30], &[2; 30]] {
            collector.metadata(MAP_INFO, map);
        }
        let numbers: Vec<usize> = collector.maps.values().copied().collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!((collector.bytes, collector.dropped), (60, 0));
        collector.bytes = MAX_BYTES;
        collector.metadata(MAP_INFO, &[3; 30]);
        assert_eq!((collector.maps.len(), collector.dropped), (2, 1));
        collector.metadata(MAP_INFO, &[1; 30]);
        assert_eq!((collector.maps.len(), collector.dropped), (2, 1));
    }

    #[test]
    fn manifests_are_kept_once_and_within_the_limit() {
        let chunk = |version, bytes| Chunk { version, total: 1, number: 0, bytes };
        let writer = |process| (Guid::from_u128(7), process);
        let mut collector = Collector::default();
        collector.chunk(writer(1), &chunk((1, 0), b"one"));
        let bytes = collector.bytes;
        collector.chunk(writer(1), &chunk((1, 0), b"one"));
        assert_eq!(collector.bytes, bytes, "nothing new");
        assert_eq!((collector.manifests.len(), collector.complete.len()), (1, 1));
        collector.chunk(writer(2), &chunk((1, 0), b"one"));
        assert_eq!(collector.bytes, bytes + size_of::<Written>() + size_of::<u32>());
        assert_eq!((collector.manifests.len(), collector.complete.len()), (1, 2));
        collector.chunk(writer(2), &chunk((1, 1), b"two"));
        assert_eq!((collector.manifests.len(), collector.complete.len()), (2, 3));
        let numbers: Vec<usize> = collector.manifests.values().map(|one| one.number).collect();
        assert_eq!(numbers, [0, 1]);
        assert_eq!(collector.dropped, 0);
    }
}
