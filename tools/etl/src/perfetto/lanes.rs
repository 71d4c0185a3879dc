//! Lanes: tracks for intervals that can overlap.
//!
//! Slices on one track must be nested, but intervals that are recorded at their end, such as disk
//! requests, can overlap. Each therefore goes to the first lane that is free at its start. All
//! lanes of a set have the same name, so a timeline shows them as one track.

use std::collections::HashMap;

use super::tracks::{Group, Track, Tracks};

/// The maximum number of lanes in a set.
const MAX_LANES: usize = 256;
/// The maximum number of sets of lanes.
const MAX_KINDS: usize = 16_384;

/// A set of lanes, identified by the properties that its intervals share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// Deferred procedure calls of a processor.
    Dpc(u16),
    /// Interrupt service routines of a processor.
    Isr(u16),
    /// Reads of a disk.
    DiskReads(u32),
    /// Writes of a disk.
    DiskWrites(u32),
    /// Flushes of a disk's cache.
    DiskFlushes(u32),
}

impl Lanes {
    const fn group(self) -> Group {
        match self {
            Self::Dpc(_) | Self::Isr(_) => Group::Processors,
            Self::DiskReads(_) | Self::DiskWrites(_) | Self::DiskFlushes(_) => Group::Disks,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Dpc(processor) => format!("CPU {processor} DPCs"),
            Self::Isr(processor) => format!("CPU {processor} ISRs"),
            Self::DiskReads(disk) => format!("Disk {disk} reads"),
            Self::DiskWrites(disk) => format!("Disk {disk} writes"),
            Self::DiskFlushes(disk) => format!("Disk {disk} flushes"),
        }
    }
}

/// A lane: its track, and the end of its last interval.
#[derive(Clone, Copy, Debug)]
struct Lane {
    track: u64,
    end: u64,
}

/// All lanes.
#[derive(Debug, Default)]
pub struct Intervals {
    lanes: HashMap<Lanes, Vec<Lane>>,
}

impl Intervals {
    /// Returns the track of a lane that is free from `start`, and occupies the lane until `end`.
    /// Returns `None` if there are already too many lanes.
    pub fn lane(&mut self, kind: Lanes, start: u64, end: u64, tracks: &mut Tracks) -> Option<u64> {
        if !self.lanes.contains_key(&kind) && self.lanes.len() >= MAX_KINDS {
            return None;
        }
        let lanes = self.lanes.entry(kind).or_default();
        if let Some(lane) = lanes.iter_mut().find(|lane| lane.end <= start) {
            lane.end = end;
            return Some(lane.track);
        }
        if lanes.len() >= MAX_LANES {
            return None;
        }
        let group = tracks.number_of(Track::Group(kind.group()));
        let track = tracks.add(group, &kind.name(), None);
        lanes.push(Lane { track, end });
        Some(track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_beyond_the_limit_have_no_lane() {
        let mut intervals = Intervals::default();
        let kinds = (0..).map(Lanes::DiskReads).take(MAX_KINDS);
        intervals.lanes = kinds.map(|kind| (kind, Vec::new())).collect();
        let mut tracks = Tracks::default();
        let mut lane = |kind| intervals.lane(kind, 1, 2, &mut tracks);
        assert_eq!(lane(Lanes::DiskWrites(1)), None);
        let known = lane(Lanes::DiskReads(1));
        assert!(known.is_some());
        assert_ne!(lane(Lanes::DiskReads(2)), known);
    }
}
