//! The existing spans: a table of fixed size.
//!
//! A span has a slot of the table from its creation until its last handle is dropped. A slot's
//! state is one word: a handle count, and a generation, which increases when the slot is freed. A
//! span's id contains both the slot and the generation, so that an old id never finds the slot's
//! next span.
//!
//! No operation waits for another thread. Code at a higher IRQL that uses the same slots can
//! interrupt a thread on its processor. So creating a span looks at each slot once, and the other
//! operations repeat only if another operation succeeded in between.

use core::num::NonZeroU64;

use wdk_etw::{ActivityId, Guid};

use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, array_of, const_unless_loom, fence};

/// The number of handles of a slot whose span is being closed.
const CLOSING: u32 = u32::MAX;
/// The maximum number of handles. A span with more handles is never closed.
const MAX_HANDLES: u32 = u32::MAX - 1;

/// A span's slot, and the slot's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    slot: u16,
    generation: u32,
}

impl Key {
    /// Returns the key as a number that is not zero.
    #[must_use]
    pub const fn to_bits(self) -> NonZeroU64 {
        let slot = (self.slot as u64).saturating_add(1);
        match NonZeroU64::new((self.generation as u64) << 32 | slot) {
            Some(bits) => bits,
            // `slot` is at least 1.
            None => NonZeroU64::MIN,
        }
    }

    /// Returns the key for a number that [`Self::to_bits`] returned, or `None` for any other
    /// number.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        let [slot, generation] = halves(bits);
        Some(Self { slot: u16::try_from(slot.checked_sub(1)?).ok()?, generation })
    }
}

/// Returns the lower and the upper half of a word.
#[expect(clippy::cast_possible_truncation, reason = "the halves of a word are 32 bits wide")]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Returns a slot's state.
const fn state(generation: u32, handles: u32) -> u64 {
    (generation as u64) << 32 | handles as u64
}

/// An activity id in two words.
pub struct AtomicId([AtomicU64; 2]);

impl AtomicId {
    const_unless_loom! {
        /// Creates a null id.
        pub const fn new() -> Self {
            Self([AtomicU64::new(0), AtomicU64::new(0)])
        }
    }

    /// Stores an id, without ordering.
    pub fn store(&self, id: ActivityId) {
        let words = id.guid().to_bytes();
        let (words, _) = words.as_chunks::<8>();
        for (word, bytes) in self.0.iter().zip(words) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }

    /// Loads an id, without ordering.
    pub fn load(&self) -> ActivityId {
        let mut bytes = [0; 16];
        for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(&self.0) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        ActivityId::from_guid(Guid::from_bytes(bytes))
    }
}

/// A slot for a span.
struct Slot<T: 'static> {
    /// The generation and the number of handles; 0 handles if the slot is free.
    state: AtomicU64,
    activity: AtomicId,
    /// A `&'static T`, or null before the slot's first span.
    data: AtomicPtr<T>,
}

impl<T> Slot<T> {
    const_unless_loom! {
        const fn new() -> Self {
            Self {
                state: AtomicU64::new(0),
                activity: AtomicId::new(),
                data: AtomicPtr::new(core::ptr::null_mut()),
            }
        }
    }

    /// Reads the span in the slot, which may change during the read.
    fn read(&self) -> Option<Span<T>> {
        let data = self.data.load(Ordering::Relaxed);
        // SAFETY: `SpanTable::open` stores only references to statics, which stay valid.
        let data = unsafe { data.as_ref() }?;
        Some(Span { activity: self.activity.load(), data })
    }
}

/// A span's data: its activity and its metadata.
#[derive(Debug)]
pub struct Span<T: 'static> {
    /// The activity.
    pub activity: ActivityId,
    /// The metadata.
    pub data: &'static T,
}

/// The existing spans, at most `N`.
pub struct SpanTable<T: 'static, const N: usize> {
    slots: [Slot<T>; N],
    /// Counts the created spans, so that slots are used in turn.
    created: AtomicU32,
}

impl<T, const N: usize> SpanTable<T, N> {
    const_unless_loom! {
        /// Creates an empty table.
        pub const fn new() -> Self {
            const {
                assert!(N > 0 && N < u16::MAX as usize, "a span table must have 1 to 65,534 slots");
            }
            Self {
                slots: array_of!(Slot::new()),
                created: AtomicU32::new(0),
            }
        }
    }

    /// Creates a span with one handle, or returns `None` if the table is full.
    pub fn open(&self, activity: ActivityId, data: &'static T) -> Option<Key> {
        let first = self.created.fetch_add(1, Ordering::Relaxed) as usize;
        let (behind, before) = self.slots.split_at_checked(first.checked_rem(N)?)?;
        let (behind, before) =
            ((0_u16..).zip(behind), (u16::try_from(behind.len()).ok()?..).zip(before));
        before.chain(behind).find_map(|(slot, place)| Self::claim(slot, place, activity, data))
    }

    fn claim(slot: u16, place: &Slot<T>, activity: ActivityId, data: &'static T) -> Option<Key> {
        let free = place.state.load(Ordering::Relaxed);
        let [handles, generation] = halves(free);
        if handles != 0 {
            return None;
        }
        // Acquire: the stores below follow all accesses of the slot's previous span.
        place
            .state
            .compare_exchange(free, state(generation, 1), Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        // A reader with an old key that sees the stores below also sees the new state.
        fence(Ordering::Release);
        place.activity.store(activity);
        place.data.store(core::ptr::from_ref(data).cast_mut(), Ordering::Relaxed);
        Some(Key { slot, generation })
    }

    fn slot(&self, key: Key) -> Option<&Slot<T>> {
        self.slots.get(usize::from(key.slot))
    }

    /// Returns a span, or `None` if it is closed.
    pub fn get(&self, key: Key) -> Option<Span<T>> {
        let slot = self.slot(key)?;
        let [handles, generation] = halves(slot.state.load(Ordering::Acquire));
        if generation != key.generation || handles == 0 {
            return None;
        }
        let span = slot.read();
        fence(Ordering::Acquire);
        let [_, generation] = halves(slot.state.load(Ordering::Relaxed));
        span.filter(|_| generation == key.generation)
    }

    /// Adds a handle to a span. Returns false if the span is closed.
    pub fn share(&self, key: Key) -> bool {
        let more = |handles: u32| (handles < MAX_HANDLES).then(|| handles.saturating_add(1));
        self.slot(key).is_some_and(|slot| Self::change(slot, key, more).is_some())
    }

    /// Removes a handle from a span. If it was the last, returns the span, which the caller must
    /// then free ([`Self::free`]).
    pub fn release(&self, key: Key) -> Option<Span<T>> {
        let slot = self.slot(key)?;
        let fewer = |handles: u32| match handles {
            1 => Some(CLOSING),
            CLOSING | MAX_HANDLES => None,
            more => more.checked_sub(1),
        };
        if Self::change(slot, key, fewer)? == 1 { slot.read() } else { None }
    }

    /// Frees the slot of a span that [`Self::release`] returned.
    pub fn free(&self, key: Key) {
        if let Some(slot) = self.slot(key) {
            let next = state(key.generation.wrapping_add(1), 0);
            // Release: accesses of the span happen before accesses of the slot's next span.
            slot.state.store(next, Ordering::Release);
        }
    }

    /// Changes the handle count of an open span. Returns the previous count.
    fn change(slot: &Slot<T>, key: Key, change: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        // Most spans have one handle.
        let mut before = 1;
        loop {
            let after = change(before)?;
            let Err(found) = slot.state.compare_exchange(
                state(key.generation, before),
                state(key.generation, after),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) else {
                return Some(before);
            };
            let [handles, generation] = halves(found);
            if generation != key.generation || handles == 0 {
                return None;
            }
            before = handles;
        }
    }
}
