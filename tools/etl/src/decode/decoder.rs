//! Decodes events, and remembers what events of one kind have in common.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use etw_wire::Guid;

use super::catalog::Catalog;
use super::description::Description;
use super::event::Decoded;
use crate::read::{Event, EventRef};
use crate::record::{EventDescriptor, ext_type};

/// Decodes an event with its own metadata, or with a manifest. For many events, a [`Decoder`] is
/// faster.
#[must_use]
pub fn decode(event: &Event, catalog: &Catalog) -> Decoded {
    let event = event.view();
    Description::new(&event, catalog).decode(&event)
}

/// Decodes the events of a trace.
///
/// A decoder reads the metadata of a kind of events once. The memory for this is limited, whatever
/// a trace contains.
#[derive(Debug)]
pub struct Decoder<'c> {
    catalog: &'c Catalog,
    known: HashMap<u64, Known, BuildHasherDefault<Unchanged>>,
    /// The sizes of the metadata of all known kinds.
    size: usize,
    next: u64,
}

/// A known kind of events.
#[derive(Debug)]
struct Known {
    provider: Guid,
    descriptor: EventDescriptor,
    metadata: Option<Box<[u8]>>,
    traits: Option<Box<[u8]>>,
    number: u64,
    description: Description,
}

/// The limit of the metadata of all known kinds, in bytes. A parsed schema takes at most some 50
/// times as much as its metadata.
const MAX_SIZE: usize = 128 << 10;
/// What a kind counts besides its metadata.
const KIND: usize = 64;

impl<'c> Decoder<'c> {
    /// Returns a decoder that uses the manifests and images of a catalog.
    #[must_use]
    pub fn new(catalog: &'c Catalog) -> Self {
        Self {
            catalog,
            known: HashMap::default(),
            size: 0,
            next: 0,
        }
    }

    /// Returns the catalog.
    #[must_use]
    pub const fn catalog(&self) -> &'c Catalog {
        self.catalog
    }

    /// Decodes an event with its own metadata, or with the catalog.
    #[must_use]
    pub fn decode(&mut self, event: &EventRef<'_>) -> Decoded {
        let (_, description) = self.describe(event);
        description.decode(event)
    }

    /// Returns what all events of the kind of an event have in common, and the number of the kind.
    /// A kind may get another number later, but a number stands for one kind only.
    pub fn describe(&mut self, event: &EventRef<'_>) -> (u64, &Description) {
        let (mut metadata, mut traits) = (None, None);
        for (ext_type, data) in event.items.iter() {
            match ext_type {
                ext_type::EVENT_SCHEMA_TL if metadata.is_none() => metadata = Some(data),
                ext_type::PROV_TRAITS if traits.is_none() => traits = Some(data),
                _ => {}
            }
        }
        let hash = hash(event, metadata, traits);
        let is_same = |known: &Known| {
            known.provider == event.provider
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
            let known = Known {
                provider: event.provider,
                descriptor: event.descriptor,
                metadata: metadata.map(Box::from),
                traits: traits.map(Box::from),
                number: self.next,
                description: Description::new(event, self.catalog),
            };
            self.known.insert(hash, known);
        }
        // The entry was just found or inserted.
        let known = self.known.entry(hash).or_insert_with(|| Known {
            provider: event.provider,
            descriptor: event.descriptor,
            metadata: None,
            traits: None,
            number: 0,
            description: Description::new(event, self.catalog),
        });
        (known.number, &known.description)
    }
}

/// Returns a hash of everything that makes a kind.
fn hash(event: &EventRef<'_>, metadata: Option<&[u8]>, traits: Option<&[u8]>) -> u64 {
    let descriptor = &event.descriptor;
    let mut hash = Mix(0);
    let [low, high] = [0, 8].map(|at| {
        let bytes = event.provider.to_bytes();
        let half = bytes.get(at..).and_then(<[u8]>::first_chunk);
        half.map_or(0, |half| u64::from_le_bytes(*half))
    });
    hash.add(low);
    hash.add(high);
    let numbers = [
        descriptor.version,
        descriptor.channel,
        descriptor.level,
        descriptor.opcode,
    ];
    hash.add(
        u64::from(u32::from_le_bytes(numbers))
            | u64::from(descriptor.id) << 32
            | u64::from(descriptor.task) << 48,
    );
    hash.add(descriptor.keyword);
    for data in [metadata, traits] {
        let data = data.unwrap_or_default();
        let (words, rest) = data.as_chunks::<8>();
        for word in words {
            hash.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        hash.add(u64::from_le_bytes(last) ^ (data.len() as u64) << 56);
    }
    hash.0 ^ hash.0 >> 32
}

/// A hash that is fast on short data. Whoever makes two kinds collide only makes the decoder read
/// their metadata again.
struct Mix(u64);

impl Mix {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

    const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(Self::FACTOR);
    }
}

/// The hasher of keys that are hashes already.
#[derive(Debug, Default)]
struct Unchanged(u64);

impl Hasher for Unchanged {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| {
            hash.rotate_left(8).wrapping_add(u64::from(*byte))
        });
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// Returns an event as it is decoded by what it contains itself.
#[cfg(test)]
pub fn decoded(record: crate::record::EventRecord) -> Decoded {
    let event = Event {
        record,
        time: crate::time::FileTime::default(),
        processor: 0,
        buffer: 1,
        offset: 0,
        pointer_size: crate::read::PointerSize::Eight,
        flags: 0,
    };
    decode(&event, &Catalog::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_own_hash() {
        let mut hasher = Unchanged::default();
        hasher.write_u64(7);
        assert_eq!(hasher.finish(), 7);
        let mut hasher = Unchanged::default();
        hasher.write(&[1, 2]);
        assert_eq!(hasher.finish(), 0x0102);
    }
}
