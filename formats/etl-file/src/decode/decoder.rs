//! Decodes events, and caches the data that events of the same kind share.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use etw_wire::Guid;

use super::catalog::Catalog;
use super::description::{Description, Own};
use super::event::Decoded;
use crate::read::{Event, EventRef};
use crate::record::EventDescriptor;

/// Decodes an event with its own metadata or with the catalog. For many events, a [`Decoder`] is
/// faster.
#[must_use]
pub fn decode(event: &Event, catalog: &Catalog) -> Decoded {
    let (own, event) = own_of(&event.view());
    Description::new(&event, own, catalog).decode(&event, true)
}

/// Returns what an event says about itself, and the event without what its user data says.
fn own_of<'a>(event: &EventRef<'a>) -> (Own<'a>, EventRef<'a>) {
    let own = Own::of_items(event);
    if own.metadata.is_none()
        && let Some(found) = Own::of_user_data(event)
    {
        return found;
    }
    (own, *event)
}

/// Decodes the events of a trace.
///
/// A decoder reads the metadata of each kind of event once. The memory that it uses for this is
/// limited, whatever a trace contains.
#[derive(Debug)]
pub struct Decoder<'c> {
    catalog: &'c Catalog,
    /// False to decode only the names of provider, event and level, and the problems.
    details: bool,
    known: HashMap<u64, Known, BuildHasherDefault<Unchanged>>,
    /// The total size of the metadata of all known kinds.
    size: usize,
    next: u64,
}

/// A known kind of event.
#[derive(Debug)]
struct Known {
    provider: Guid,
    descriptor: EventDescriptor,
    metadata: Option<Box<[u8]>>,
    traits: Option<Box<[u8]>>,
    process: Option<u32>,
    string_only: bool,
    number: u64,
    description: Description,
}

/// The maximum total size of the metadata of all known kinds, in bytes. A parsed schema is at most
/// about 50 times as large as its metadata.
const MAX_SIZE: usize = 128 << 10;
/// The size in bytes that a kind adds to the total besides its metadata.
const KIND: usize = 64;

impl<'c> Decoder<'c> {
    /// Returns a decoder that uses the manifests and images of a catalog.
    #[must_use]
    pub fn new(catalog: &'c Catalog) -> Self {
        Self { catalog, details: true, known: HashMap::default(), size: 0, next: 0 }
    }

    /// Returns a decoder whose events are only complete in the names of provider, event and level,
    /// and in their problems.
    pub(crate) fn without_details(self) -> Self {
        Self { details: false, ..self }
    }

    /// Returns the catalog.
    #[must_use]
    pub const fn catalog(&self) -> &'c Catalog {
        self.catalog
    }

    /// Decodes an event with its own metadata or with the catalog.
    #[must_use]
    pub fn decode(&mut self, event: &EventRef<'_>) -> Decoded {
        let details = self.details;
        let (own, event) = own_of(event);
        let (_, description) = self.describe(&event, own);
        description.decode(&event, details)
    }

    /// Returns the data that all events of the same kind share, and the kind's number. A kind can
    /// get a new number later, but a number always identifies one kind.
    fn describe(&mut self, event: &EventRef<'_>, own: Own<'_>) -> (u64, &Description) {
        let Own { traits, metadata } = own;
        let is_by_process = self.catalog.is_by_process(event.provider);
        let process = is_by_process.then_some(event.process_id);
        let string_only = event.is_string_only();
        let hash = hash(event, process, metadata, traits);
        let is_same = |known: &Known| {
            known.provider == event.provider
                && known.process == process
                && known.string_only == string_only
                && known.descriptor == event.descriptor
                && known.metadata.as_deref() == metadata
                && known.traits.as_deref() == traits
        };
        if !self.known.get(&hash).is_some_and(is_same) {
            let length = |data: Option<&[u8]>| data.map_or(0, <[u8]>::len);
            let size = length(metadata) + length(traits) + KIND;
            if self.size + size > MAX_SIZE {
                self.known.clear();
                self.size = 0;
            }
            self.size += size;
            self.next += 1;
            self.known.remove(&hash);
        }
        let known = self.known.entry(hash).or_insert_with(|| Known {
            provider: event.provider,
            descriptor: event.descriptor,
            metadata: metadata.map(Box::from),
            traits: traits.map(Box::from),
            process,
            string_only,
            number: self.next,
            description: Description::new(event, own, self.catalog),
        });
        (known.number, &known.description)
    }
}

/// Returns a hash of everything that defines a kind.
fn hash(
    event: &EventRef<'_>,
    process: Option<u32>,
    metadata: Option<&[u8]>,
    traits: Option<&[u8]>,
) -> u64 {
    let descriptor = &event.descriptor;
    let process = process.map_or(0, |process| u64::from(process) + 1);
    let mut hash = Mix(process << 1 | u64::from(event.is_string_only()));
    let [low, high] = [0, 8].map(|at| {
        let bytes = event.provider.to_bytes();
        let half = bytes.get(at..).and_then(<[u8]>::first_chunk);
        half.map_or(0, |half| u64::from_le_bytes(*half))
    });
    hash.add(low);
    hash.add(high);
    let [id_low, id_high] = descriptor.id.to_le_bytes();
    let [task_low, task_high] = descriptor.task.to_le_bytes();
    hash.add(u64::from_le_bytes([
        descriptor.version, descriptor.channel, descriptor.level, descriptor.opcode, id_low,
        id_high, task_low, task_high,
    ]));
    hash.add(descriptor.keyword);
    for data in [metadata, traits] {
        let data = data.unwrap_or_default();
        let (words, rest) = data.as_chunks::<8>();
        for word in words {
            hash.add(u64::from_le_bytes(*word));
        }
        // The rest is at most 7 bytes long.
        let [length, ..] = data.len().to_le_bytes();
        let mut last = [0, 0, 0, 0, 0, 0, 0, length];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        hash.add(u64::from_le_bytes(last));
    }
    hash.0 ^ hash.0 >> 32
}

/// A hash that is fast for short data. A collision of two kinds only makes the decoder read their
/// metadata again.
struct Mix(u64);

impl Mix {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(Self::FACTOR);
    }
}

/// A hasher for keys that are already hashes.
#[derive(Debug, Default)]
struct Unchanged(u64);

impl Hasher for Unchanged {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes
            .iter()
            .fold(self.0, |hash, byte| hash.rotate_left(8).wrapping_add(u64::from(*byte)));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Decodes an event with its own metadata only.
#[cfg(test)]
pub fn decoded(record: crate::record::EventRecord) -> Decoded {
    let event = Event { record, ..Event::default() };
    decode(&event, &Catalog::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ext_type;

    #[test]
    fn a_key_is_its_own_hash() {
        let mut hasher = Unchanged::default();
        hasher.write_u64(7);
        assert_eq!(hasher.finish(), 7);
        let mut hasher = Unchanged::default();
        hasher.write(&[1, 2]);
        assert_eq!(hasher.finish(), 0x0102);
    }

    /// Returns an event of a kind: its number, and its extended items.
    fn event(id: u16, items: &[(u16, Vec<u8>)]) -> Event {
        let items = items.iter().cloned();
        let record = crate::record::EventRecord {
            provider: Guid::from_u128(7),
            descriptor: EventDescriptor { id, ..EventDescriptor::default() },
            extended: items
                .map(|(ext_type, data)| crate::record::ExtendedItem { ext_type, data })
                .collect(),
            ..crate::record::EventRecord::default()
        };
        Event { record, ..Event::default() }
    }

    const SCHEMA: u16 = ext_type::EVENT_SCHEMA_TL;
    const TRAITS: u16 = ext_type::PROV_TRAITS;

    fn number(decoder: &mut Decoder<'_>, event: &Event) -> u64 {
        let (own, event) = own_of(&event.view());
        decoder.describe(&event, own).0
    }

    #[test]
    fn events_of_a_kind_have_one_number() {
        let catalog = Catalog::new();
        let mut decoder = Decoder::new(&catalog);
        assert!(std::ptr::eq(decoder.catalog(), &raw const catalog));
        let mut numbers = Vec::new();
        let items = |schema: u8, traits: u8| [(SCHEMA, vec![schema; 9]), (TRAITS, vec![traits; 9])];
        // Only the first item of each type counts.
        let mut more = items(1, 1).to_vec();
        more.extend(items(2, 2));
        for event in [
            event(1, &[]),
            event(2, &[]),
            event(1, &[]),
            event(1, &items(1, 1)),
            event(1, &items(2, 1)),
            event(1, &items(1, 2)),
            event(1, &more),
        ] {
            numbers.push(number(&mut decoder, &event));
        }
        assert_eq!(numbers, [1, 2, 1, 3, 4, 5, 3]);
    }

    #[test]
    fn kinds_with_the_same_hash_are_told_apart() {
        let catalog = Catalog::new();
        let items = [(SCHEMA, vec![1]), (TRAITS, vec![2])];
        let event = event(1, &items);
        let changes: [fn(&mut Known); 6] = [
            |known| known.process = Some(5),
            |known| known.string_only = true,
            |known| known.provider = Guid::from_u128(8),
            |known| known.descriptor.keyword = 1,
            |known| known.metadata = None,
            |known| known.traits = None,
        ];
        for change in changes {
            let mut decoder = Decoder::new(&catalog);
            assert_eq!(number(&mut decoder, &event), 1);
            change(decoder.known.values_mut().next().unwrap());
            assert_eq!(number(&mut decoder, &event), 2);
            assert_eq!(number(&mut decoder, &event), 2);
        }
    }

    #[test]
    fn kinds_are_forgotten_when_they_take_too_much_memory() {
        let catalog = Catalog::new();
        let half = MAX_SIZE / 2 - KIND;
        let of_schema = |length, id| event(id, &[(SCHEMA, vec![0; length])]);
        let of_traits = |length, id| event(id, &[(TRAITS, vec![0; length])]);
        let of_both = |length: usize, id| {
            let (schema, traits) = (length - length / 3, length / 3);
            event(id, &[(SCHEMA, vec![0; schema]), (TRAITS, vec![0; traits])])
        };
        let makers: [&dyn Fn(usize, u16) -> Event; 3] = [&of_schema, &of_traits, &of_both];
        for make in makers {
            let mut decoder = Decoder::new(&catalog);
            let (one, two) = (make(half, 1), make(half, 2));
            let numbers = [&one, &two, &one, &two].map(|event| number(&mut decoder, event));
            assert_eq!(numbers, [1, 2, 1, 2], "both fit exactly");
            assert_eq!(number(&mut decoder, &make(0, 3)), 3);
            assert_eq!(number(&mut decoder, &one), 4, "the first was forgotten");
            let mut decoder = Decoder::new(&catalog);
            let numbers = [&one, &make(half + 1, 2), &one].map(|event| number(&mut decoder, event));
            assert_eq!(numbers, [1, 2, 3]);
        }
    }

    #[test]
    fn every_part_of_a_kind_changes_its_hash_evenly() {
        let descriptor = |bit: u32| {
            let part = |at: u32| u8::try_from(u128::from(bit < 128) * (1 << bit >> at & 0xFF));
            EventDescriptor {
                id: u16::from(part(0).unwrap()) | u16::from(part(8).unwrap()) << 8,
                version: part(16).unwrap(),
                channel: part(24).unwrap(),
                level: part(32).unwrap(),
                opcode: part(40).unwrap(),
                task: u16::from(part(48).unwrap()) | u16::from(part(56).unwrap()) << 8,
                keyword: if bit < 64 { 0 } else { 1 << (bit - 64) },
            }
        };
        let mut hashes = Vec::new();
        let mut add = |provider: u128, bit: Option<u32>, schema: &[u8], traits: &[u8]| {
            let mut event = event(0, &[]);
            event.record.provider = Guid::from_u128(provider);
            if let Some(bit) = bit {
                event.record.descriptor = descriptor(bit);
            }
            hashes.push(hash(&event.view(), None, Some(schema), Some(traits)));
        };
        for bit in 0..128 {
            add(1 << bit, None, &[], &[]);
            add(0, Some(bit), &[], &[]);
        }
        for length in 1..100 {
            add(0, None, &vec![0; length], &[1]);
            add(0, None, &[1], &vec![0; length]);
            let mut data = vec![0; length + 1];
            data[length] = 1;
            add(0, None, &data, &[]);
            add(0, None, &[], &data);
        }
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        // A word whose only set bit is the highest resembles one with a set bit in the next word.
        assert!(hashes.len() * 100 > count * 98, "{} of {count}", hashes.len());
        // The hash table uses the low bits of a hash.
        let mut low: Vec<u32> = hashes
            .iter()
            .map(|hash| {
                let [a, b, c, d, ..] = hash.to_le_bytes();
                u32::from_le_bytes([a, b, c, d])
            })
            .collect();
        low.sort_unstable();
        low.dedup();
        assert!(low.len() * 100 > count * 98, "{} of {count}", low.len());
        for bit in 0..32 {
            let set = low.iter().filter(|hash| *hash >> bit & 1 != 0).count();
            let percent = 100 * set / low.len();
            assert!((40..60).contains(&percent), "bit {bit}: {percent} %");
        }
    }
}
