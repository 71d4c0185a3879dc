//! Selects the events to show if a page cannot show all of them.
//!
//! Events are divided into classes, each of which gets the space that the classes before it leave.
//! The first events of each kind get a quarter of it, or more if later classes do not need it;
//! starts and stops leave a quarter for all other events. No kind of event is thus displaced by a
//! more frequent one.
//!
//! Each event has a rank in its class, and the page shows the events with ranks below a limit.
//! Ranks are spread evenly over a class, so that any limit leaves events everywhere; an activity's
//! events share a rank, so that a start is not shown without its stop.

use etw_wire::Guid;

/// The number of ranks.
const RANKS: usize = 1 << 16;

/// The number of events of each kind in [`Class::First`].
pub const FIRST_OF_KIND: u64 = 100;

/// The classes of events, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Critical events, errors, warnings, and events that could not be decoded completely.
    Alarm,
    /// The first events of each kind.
    First,
    /// The starts and stops of activities.
    Activity,
    /// All other events.
    Other,
}

impl Class {
    pub const ALL: [Self; 4] = [Self::Alarm, Self::First, Self::Activity, Self::Other];

    /// Returns the class with this number, which is its index in [`ALL`](Self::ALL).
    pub fn from_number(number: u8) -> Self {
        let known = Self::ALL.get(usize::from(number)).copied();
        known.unwrap_or(Self::Other)
    }

    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// The numbers of events by class and rank, and the resulting limits.
pub struct Sample {
    ranks: [Vec<u32>; 4],
    totals: [u64; 4],
    /// For each class, the rank below which events are shown.
    limits: [u32; 4],
}

impl Sample {
    pub fn new() -> Self {
        Self { ranks: std::array::from_fn(|_| vec![0; RANKS]), totals: [0; 4], limits: [65_536; 4] }
    }

    /// Counts an event and returns its rank. The rank of an activity's event depends only on the
    /// activity.
    pub fn add(&mut self, class: Class, activity: Guid) -> u16 {
        let at = class as usize;
        let Some(total) = self.totals.get_mut(at) else {
            return 0;
        };
        // The reversed bits of a counter: each new rank lies in the middle of the widest gap.
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
        let rank = match class {
            Class::Activity => spread(activity),
            _ => (*total as u16).reverse_bits(),
        };
        *total += 1;
        let count = self.ranks.get_mut(at);
        if let Some(count) = count.and_then(|ranks| ranks.get_mut(usize::from(rank))) {
            *count = count.saturating_add(1);
        }
        rank
    }

    /// Returns true if an event of this class and rank is shown, according to the events so far.
    pub fn shows(&self, class: Class, rank: u16) -> bool {
        let limit = self.limits.get(class as usize);
        limit.is_none_or(|limit| u32::from(rank) < *limit)
    }

    /// Lowers the limits so that at most `room` of the previous events are shown.
    pub fn fit(&mut self, room: u64) {
        let mut room = room;
        let [.., activities, others] = self.totals;
        let classes = self.limits.iter_mut().zip(&self.ranks).zip(&self.totals);
        for (((limit, ranks), total), class) in classes.zip(Class::ALL) {
            let quarter = room / 4;
            let own = match class {
                Class::Alarm | Class::Other => room,
                Class::First => quarter.max(room.saturating_sub(activities + others)),
                Class::Activity => room - quarter.min(others),
            };
            if *total <= own {
                room -= total;
                continue;
            }
            let (mut shown, mut fitting) = (0, 0);
            for count in ranks {
                let next = shown + u64::from(*count);
                if next > own {
                    break;
                }
                shown = next;
                fitting += 1;
            }
            // Omitted events cannot return, so a limit never rises.
            *limit = fitting.min(*limit);
            room -= shown;
        }
    }

    /// Returns the number of events of each class.
    pub const fn totals(&self) -> [u64; 4] {
        self.totals
    }
}

/// Returns a rank that depends on all bits of a GUID.
fn spread(guid: Guid) -> u16 {
    let mut hash = 0x9E37_79B9_7F4A_7C15;
    for half in guid.to_bytes().chunks(8) {
        let half = half.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte));
        hash = mix(hash ^ half);
    }
    let [low, high, ..] = hash.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Mixes the bits of a number with the finalizer of `SplitMix64`, so that adjacent numbers, which
/// activity ids often are, become unrelated.
const fn mix(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_mixed_as_by_split_mix_64() {
        // The first numbers that the generator produces from the seed 0.
        let expected = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        let mut state = 0_u64;
        for number in expected {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            assert_eq!(mix(state), number);
        }
    }

    fn shown(sample: &Sample, class: Class, ranks: &[u16]) -> usize {
        ranks.iter().filter(|&&rank| sample.shows(class, rank)).count()
    }

    #[test]
    fn important_classes_get_the_room_first() {
        let mut sample = Sample::new();
        let other: Vec<u16> = (0..10_000).map(|_| sample.add(Class::Other, Guid::NULL)).collect();
        let alarm: Vec<u16> = (0..900).map(|_| sample.add(Class::Alarm, Guid::NULL)).collect();
        sample.fit(1_000);
        assert_eq!(shown(&sample, Class::Alarm, &alarm), 900);
        let others = shown(&sample, Class::Other, &other);
        assert!((99..=100).contains(&others), "{others}");
        sample.fit(500);
        assert_eq!(shown(&sample, Class::Alarm, &alarm), 500);
        assert_eq!(shown(&sample, Class::Other, &other), 0);
    }

    #[test]
    fn all_are_shown_if_there_is_room_for_all() {
        for (first, activity, other) in [(22, 0, 0), (40, 20, 4), (10, 50, 0), (0, 0, 64)] {
            let mut sample = Sample::new();
            let counts =
                [(Class::First, first), (Class::Activity, activity), (Class::Other, other)];
            let mut added = Vec::new();
            for (class, count) in counts {
                for n in 0..count {
                    added.push((class, sample.add(class, Guid::from_u128(n))));
                    sample.fit(64);
                }
            }
            assert!(added.iter().all(|&(class, rank)| sample.shows(class, rank)), "{counts:?}");
        }
    }

    #[test]
    fn no_class_takes_all_the_room() {
        let mut sample = Sample::new();
        let mut add = |class, n: u128| -> Vec<u16> {
            (0..n).map(|n| sample.add(class, Guid::from_u128(n))).collect()
        };
        let first = add(Class::First, 10_000);
        let activity = add(Class::Activity, 10_000);
        let other = add(Class::Other, 10_000);
        sample.fit(4_000);
        for (class, ranks, expected) in [
            (Class::First, first, 950..=1_000),
            (Class::Activity, activity, 2_150..=2_250),
            (Class::Other, other, 750..=900),
        ] {
            let shown = shown(&sample, class, &ranks);
            assert!(expected.contains(&shown), "{class:?}: {shown}");
        }
    }

    #[test]
    fn a_sample_is_spread_evenly() {
        let mut sample = Sample::new();
        let ranks: Vec<u16> = (0..300_000).map(|_| sample.add(Class::Other, Guid::NULL)).collect();
        sample.fit(70_000);
        for part in ranks.chunks(3_000) {
            let shown = shown(&sample, Class::Other, part);
            assert!((695..=705).contains(&shown), "{shown}");
        }
    }

    #[test]
    fn activities_are_shown_completely_or_not_at_all() {
        let mut sample = Sample::new();
        let ranks: Vec<(u16, u16)> = (0..10_000_u128)
            .map(|n| {
                let activity = Guid::from_u128(n << 70);
                let start = sample.add(Class::Activity, activity);
                (start, sample.add(Class::Activity, activity))
            })
            .collect();
        sample.fit(5_000);
        let shown = ranks.iter().filter(|(start, stop)| {
            assert_eq!(start, stop);
            sample.shows(Class::Activity, *start)
        });
        let shown = shown.count();
        assert!((2_350..=2_500).contains(&shown), "{shown}");
    }

    #[test]
    fn activities_that_differ_little_have_ranks_all_over() {
        let evenly = |ranks: &[u16]| {
            let mut shares = [0; 16];
            for rank in ranks {
                shares[usize::from(rank >> 12)] += 1;
            }
            let expected = ranks.len() / 16;
            let is_even = |&share: &usize| (expected / 2..expected * 2).contains(&share);
            assert!(shares.iter().all(is_even), "{shares:?}");
            let mut low = [0; 16];
            for rank in ranks {
                low[usize::from(rank & 15)] += 1;
            }
            assert!(low.iter().all(is_even), "{low:?}");
        };
        let ranks = |numbers: &mut dyn Iterator<Item = u128>| -> Vec<u16> {
            numbers.map(|number| spread(Guid::from_u128(number))).collect()
        };
        evenly(&ranks(&mut (0..4096)));
        // An activity's counter can be anywhere in its GUID.
        for shift in [12, 40, 64, 80, 104, 116] {
            evenly(&ranks(&mut (0..4096).map(|number| number << shift)));
        }
        let mut distinct = ranks(&mut (0..128).map(|bit| 1 << bit));
        distinct.sort_unstable();
        distinct.dedup();
        assert!(distinct.len() >= 126, "{}", distinct.len());
    }
}
