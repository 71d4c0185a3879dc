//! The most recent entries of a log, in memory shared with another process.
//!
//! A process that a driver ends has no time to write its buffers. It therefore also appends to this
//! log the data that it has not written yet, and the parent process reads the entries afterwards.

use std::sync::atomic::{AtomicU64, Ordering};

/// A ring of entries of any length. All zeros represent an empty ring.
///
/// Positions count words since the first entry. The index of the word at a position is the position
/// modulo the number of words.
#[repr(C)]
pub struct Spool<const WORDS: usize> {
    /// The position of the oldest complete entry.
    start: AtomicU64,
    /// The position after the newest entry.
    end: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A number that the writer attaches to the entry.
    pub tag: u64,
    /// The contents.
    pub bytes: Vec<u8>,
}

/// The number of words before the contents: one for the length and its complement, and one for the
/// tag.
const HEADER: u64 = 2;

/// The position after which the ring restarts, so that positions never overflow.
const MAX_POSITION: u64 = u64::MAX / 2;

/// Returns the number of words of an entry with contents of `length` bytes.
fn words_of(length: u32) -> u64 {
    HEADER + u64::from(length).div_ceil(8)
}

const fn low_half(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

impl<const WORDS: usize> Spool<WORDS> {
    /// Appends an entry, overwriting the oldest entries if necessary. An entry that is larger than
    /// the ring is omitted.
    ///
    /// Only one thread at a time may append.
    pub fn append(&self, tag: u64, bytes: &[u8]) {
        let Ok(length) = u32::try_from(bytes.len()) else {
            return;
        };
        let size = words_of(length);
        let capacity = WORDS as u64;
        if size > capacity {
            return;
        }
        let (mut start, mut end) =
            (self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        if start > end || end - start > capacity || end > MAX_POSITION {
            // The positions were corrupted, so the ring restarts empty.
            (start, end) = (0, 0);
            self.end.store(end, Ordering::Release);
        }
        while end + size - start > capacity {
            // If the oldest entry is corrupted, the entries after it cannot be found.
            start = self.length(start).map_or(end, |oldest| end.min(start + words_of(oldest)));
        }
        // If this process ends now, the reader still finds only complete entries.
        self.start.store(start, Ordering::Release);
        self.store(end, u64::from(length) | u64::from(!length) << 32);
        self.store(end + 1, tag);
        for (chunk, at) in bytes.chunks(8).zip(end + HEADER..) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.store(at, u64::from_le_bytes(word));
        }
        self.end.store(end + size, Ordering::Release);
    }

    /// Returns the entries, oldest first. If the ring was corrupted, returns only the entries before
    /// the first invalid one.
    pub fn entries(&self) -> Vec<Entry> {
        let end = self.end.load(Ordering::Acquire);
        let mut at = self.start.load(Ordering::Acquire);
        let mut entries = Vec::new();
        if end.checked_sub(at).is_none_or(|used| used > WORDS as u64) {
            return entries;
        }
        while at < end {
            let Some(length) = self.length(at) else {
                break;
            };
            let size = words_of(length);
            if size > end - at {
                break;
            }
            let mut bytes: Vec<u8> =
                (at + HEADER..at + size).flat_map(|at| self.load(at).to_le_bytes()).collect();
            bytes.truncate(length as usize);
            entries.push(Entry { tag: self.load(at + 1), bytes });
            at += size;
        }
        entries
    }

    /// Returns the length of the entry at a position, or `None` if the entry was corrupted.
    fn length(&self, at: u64) -> Option<u32> {
        let word = self.load(at);
        let (length, complement) = (low_half(word), low_half(word >> 32));
        (length == !complement).then_some(length)
    }

    fn word(&self, at: u64) -> Option<&AtomicU64> {
        let index = usize::try_from(at.checked_rem(WORDS as u64)?).ok()?;
        self.words.get(index)
    }

    fn load(&self, at: u64) -> u64 {
        self.word(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn store(&self, at: u64, value: u64) {
        if let Some(word) = self.word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty<const WORDS: usize>() -> Spool<WORDS> {
        Spool {
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    #[test]
    fn the_newest_entries_that_fit_are_kept_whole() {
        let spool = empty::<16>();
        let mut random = fastrand::Rng::with_seed(7);
        let mut all: Vec<Entry> = Vec::new();
        for tag in 0..200 {
            let bytes: Vec<u8> = (0..random.usize(0..60)).map(|_| random.u8(..)).collect();
            let new = Entry { tag, bytes };
            spool.append(new.tag, &new.bytes);
            all.push(new);
            let kept = spool.entries();
            assert!(!kept.is_empty());
            assert_eq!(kept, all[all.len() - kept.len()..]);
            let words = |entries: &[Entry]| -> usize {
                let sizes = entries.iter().map(|entry| 2 + entry.bytes.len().div_ceil(8));
                sizes.sum()
            };
            assert!(words(&kept) <= 16);
            // No entry was dropped unnecessarily.
            if kept.len() < all.len() {
                assert!(words(&all[all.len() - kept.len() - 1..]) > 16);
            }
        }
    }

    #[test]
    fn an_entry_larger_than_the_ring_is_left_out() {
        let spool = empty::<4>();
        spool.append(1, &[1; 16]);
        spool.append(2, &[2; 17]);
        assert_eq!(spool.entries().len(), 1);
    }

    #[test]
    fn a_corrupted_ring_yields_what_makes_sense() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..2000 {
            let spool = empty::<16>();
            spool.append(1, &[1; 20]);
            spool.append(2, &[2; 20]);
            for _ in 0..random.usize(1..4) {
                let value = match random.u8(0..3) {
                    0 => random.u64(..),
                    1 => random.u64(..40),
                    _ => u64::MAX - random.u64(..40),
                };
                match random.usize(0..18) {
                    16 => spool.start.store(value, Ordering::Relaxed),
                    17 => spool.end.store(value, Ordering::Relaxed),
                    at => spool.words[at].store(value, Ordering::Relaxed),
                }
            }
            assert!(spool.entries().len() <= 8);
            // The process that corrupted the ring may continue to run. New entries replace
            // corrupted ones.
            for tag in 3..20 {
                spool.append(tag, &[3; 20]);
            }
            let kept = spool.entries();
            let newest = kept.last().map(|entry| (entry.tag, entry.bytes.as_slice()));
            assert_eq!(newest, Some((19, [3; 20].as_slice())));
        }
    }

    #[test]
    fn corrupted_positions_are_given_up_at_the_next_entry() {
        for (start, end) in [(0, u64::MAX), (u64::MAX - 3, u64::MAX - 1), (5, 2), (0, 1000)] {
            let spool = empty::<16>();
            spool.start.store(start, Ordering::Relaxed);
            spool.end.store(end, Ordering::Relaxed);
            spool.append(1, &[1; 20]);
            spool.append(2, &[2; 20]);
            let tags: Vec<u64> = spool.entries().iter().map(|entry| entry.tag).collect();
            assert_eq!(tags, [1, 2], "{start} to {end}");
        }
    }
}
