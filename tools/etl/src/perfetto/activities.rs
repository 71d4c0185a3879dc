//! Activities: the lanes of their spans, and the tracks that related activities point to.

use std::collections::HashMap;

use etw_wire::Guid;

use super::tracks::{Track, Tracks};

/// The size of a generation of remembered activities; up to twice that number is kept.
const MAX_PLACES: usize = 32_768;
/// The maximum number of sets of lanes.
const MAX_SETS: usize = 4096;

/// The lanes for the activities of one process and provider.
pub type Set = (u32, Guid);

/// The free lanes of activities. A lane belongs to the nested spans of one activity and task until
/// the outermost span ends.
#[derive(Debug, Default)]
pub struct ActivityLanes {
    free: HashMap<Set, Vec<u64>>,
}

impl ActivityLanes {
    /// Returns a free lane.
    pub fn take(&mut self, set: Set, provider: &str, tracks: &mut Tracks) -> u64 {
        if let Some(track) = self.free.get_mut(&set).and_then(Vec::pop) {
            return track;
        }
        let (process, _) = set;
        let process = tracks.number_of(Track::Process(process));
        tracks.add(process, &format!("{provider} activities"), None)
    }

    /// Returns a lane to the set.
    pub fn give_back(&mut self, set: Set, track: u64) {
        if self.free.len() >= MAX_SETS && !self.free.contains_key(&set) {
            // New lanes have the same names, and a timeline shows equal names together.
            self.free.clear();
        }
        self.free.entry(set).or_default().push(track);
    }
}

/// The place of an activity: the track at which flows to related activities start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub track: u64,
    /// The number of the activity's open spans.
    pub open: u32,
}

/// The last place of each activity. Old entries are dropped.
#[derive(Debug, Default)]
pub struct Places {
    new: HashMap<Guid, Place>,
    old: HashMap<Guid, Place>,
}

impl Places {
    /// Returns the place of an activity.
    pub fn get(&self, activity: &Guid) -> Option<Place> {
        self.new.get(activity).or_else(|| self.old.get(activity)).copied()
    }

    /// Sets the place of an activity.
    pub fn set(&mut self, activity: Guid, place: Place) {
        if self.new.len() >= MAX_PLACES {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(activity, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_more_sets_than_the_limit_are_forgotten() {
        let mut lanes = ActivityLanes::default();
        let set = |n: usize| (u32::try_from(n).unwrap(), Guid::NULL);
        for n in 0..MAX_SETS {
            lanes.give_back(set(n), 1);
            assert_eq!(lanes.free.len(), n + 1);
        }
        lanes.give_back(set(7), 2);
        assert_eq!(lanes.free.len(), MAX_SETS);
        assert_eq!(lanes.free[&set(7)], [1, 2]);
        lanes.give_back(set(MAX_SETS), 3);
        assert_eq!(lanes.free.len(), 1);
        assert_eq!(lanes.free[&set(MAX_SETS)], [3]);
    }
}
