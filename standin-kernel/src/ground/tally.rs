//! Counters for events that occur on several processors at the same time.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// A counter with a separate cache line for each processor, like the counters in kernels for
/// frequent events.
pub struct Tally(Box<[CachePadded<AtomicU64>]>);

impl Tally {
    /// Creates a counter with the value 0 for this number of processors.
    pub fn new(processors: u16) -> Self {
        Self((0..processors.max(1)).map(|_| CachePadded::default()).collect())
    }

    /// Adds 1 to the counter of a processor.
    pub fn increment(&self, processor: u16) {
        let lane = usize::from(processor).checked_rem(self.0.len());
        if let Some(count) = lane.and_then(|lane| self.0.get(lane)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the sum over all processors.
    pub fn sum(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_increment_of_every_processor_is_counted() {
        const EACH: u64 = 10_000;
        let tally = Tally::new(3);
        std::thread::scope(|scope| {
            for processor in 0..5 {
                let tally = &tally;
                scope.spawn(move || (0..EACH).for_each(|_| tally.increment(processor)));
            }
        });
        assert_eq!(tally.sum(), 5 * EACH);
    }

    #[test]
    fn processors_count_in_different_cache_lines() {
        let tally = Tally::new(2);
        let [one, other] = [&tally.0[0], &tally.0[1]].map(|lane| (&raw const **lane).addr());
        assert!(one.abs_diff(other) >= 64);
    }
}
