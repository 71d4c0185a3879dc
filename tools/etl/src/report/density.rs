//! The number of events in each interval of a trace, by level.

/// The maximum number of intervals. Screens are narrower, so a view can be enlarged several times
/// before intervals become visible.
const MAX_BINS: usize = 8192;

/// Levels 0 to 4, and one for 5 and above.
pub const LEVELS: usize = 6;

/// The number of events by interval and level.
///
/// All intervals have the same width. The width doubles when an event lies after the last possible
/// interval, so that any trace fits in the same memory.
pub struct Density {
    /// The time at which the first interval starts, in units of 100 ns.
    origin: i64,
    /// The width of an interval, in units of 100 ns.
    width: i64,
    bins: Vec<[u32; LEVELS]>,
}

impl Density {
    pub const fn new() -> Self {
        Self { origin: 0, width: 1, bins: Vec::new() }
    }

    /// Counts an event. Events before the first one count in the first interval.
    pub fn add(&mut self, time: i64, level: u8) {
        if self.bins.is_empty() {
            self.origin = time;
        }
        let since = time.saturating_sub(self.origin).max(0);
        let bin = loop {
            let bin = usize::try_from(since / self.width).unwrap_or(usize::MAX);
            if bin < MAX_BINS {
                break bin;
            }
            self.widen();
        };
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, [0; LEVELS]);
        }
        let level = usize::from(level).min(LEVELS - 1);
        let count = self.bins.get_mut(bin).and_then(|bin| bin.get_mut(level));
        if let Some(count) = count {
            *count = count.saturating_add(1);
        }
    }

    /// Merges each pair of intervals.
    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        let joined = self.bins.chunks(2).map(|pair| {
            let mut sum = [0_u32; LEVELS];
            for bin in pair {
                for (sum, count) in sum.iter_mut().zip(bin) {
                    *sum = sum.saturating_add(*count);
                }
            }
            sum
        });
        self.bins = joined.collect();
    }

    /// Returns the time at which the first interval starts.
    pub const fn origin(&self) -> i64 {
        self.origin
    }

    /// Returns the width of an interval.
    pub const fn width(&self) -> i64 {
        self.width
    }

    /// Returns the counts as little-endian 32-bit numbers, interval by interval.
    pub fn to_bytes(&self) -> Vec<u8> {
        let counts = self.bins.iter().flatten();
        counts.flat_map(|count| count.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(density: &Density) -> u32 {
        density.bins.iter().flatten().sum()
    }

    #[test]
    fn no_event_is_lost_when_intervals_widen() {
        let mut density = Density::new();
        for n in 0..100_000 {
            density.add(1_000 + n * 37, 4);
        }
        assert_eq!(total(&density), 100_000);
        assert!(density.bins.len() <= MAX_BINS);
        assert!(density.bins.len() > MAX_BINS / 2 - 1);
        let bin = usize::try_from(50_000 * 37 / density.width()).unwrap();
        let expected = u32::try_from(density.width() / 37).unwrap();
        assert!(density.bins[bin][4].abs_diff(expected) <= 1);
    }

    #[test]
    fn any_time_and_level_is_counted() {
        let mut density = Density::new();
        density.add(0, 0);
        density.add(i64::MAX, 255);
        density.add(i64::MIN, 2);
        assert_eq!(total(&density), 3);
        assert_eq!(density.bins[0], [1, 0, 1, 0, 0, 0]);
        assert_eq!(density.bins.last().unwrap()[5], 1);
    }

    #[test]
    fn intervals_widen_when_there_would_be_too_many() {
        let mut density = Density::new();
        density.add(0, 0);
        density.add(8191, 0);
        assert_eq!((density.width(), density.bins.len()), (1, 8192));
        density.add(8192, 0);
        assert_eq!((density.width(), density.bins.len()), (2, 4097));
    }
}
