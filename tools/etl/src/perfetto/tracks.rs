//! A timeline's tracks; each is described before its first event.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::packets::Packets;
use super::schema::{packet, track};

/// The maximum number of tracks that get small numbers and are remembered.
const MAX_TRACKS: usize = 65_536;
/// The maximum number of process and thread names that are remembered.
const MAX_NAMES: usize = 65_536;
/// The bit that marks track numbers that are computed instead of remembered.
const COMPUTED: u64 = 1 << 63;

/// A track with a fixed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Track {
    /// A process.
    Process(u32),
    /// A thread of a process.
    Thread { process: u32, thread: u32 },
    /// A group of tracks.
    Group(Group),
    /// The events of a processor that do not belong to a process.
    Processor(u16),
}

/// A group of tracks that do not belong to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    Processors,
    Disks,
    Rates,
}

impl Group {
    const fn name(self) -> &'static str {
        match self {
            Self::Processors => "Processors",
            Self::Disks => "Disks",
            Self::Rates => "Events per second",
        }
    }
}

/// A process's name and command line, or a thread's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Name {
    name: Box<str>,
    command_line: Box<str>,
}

/// The numbers and names of tracks, and the packets that describe them.
#[derive(Debug, Default)]
pub struct Tracks {
    last: u64,
    known: HashMap<Track, u64>,
    /// The tracks with computed numbers that were described recently.
    computed: HashSet<Track>,
    names: HashMap<Track, Name>,
    /// The processes and threads that have ended, whose ids can be reused.
    ended: HashSet<Track>,
    /// All packets of the timeline.
    pub packets: Packets,
}

impl Tracks {
    /// Returns the number of a track, and describes the track if it is new.
    pub fn number_of(&mut self, wanted: Track) -> u64 {
        if let Some(uuid) = self.known.get(&wanted) {
            return *uuid;
        }
        if self.known.len() < MAX_TRACKS {
            self.last += 1;
            let uuid = self.last;
            self.known.insert(wanted, uuid);
            self.describe(wanted, uuid);
            return uuid;
        }
        let mut hasher = DefaultHasher::new();
        wanted.hash(&mut hasher);
        let uuid = hasher.finish() | COMPUTED;
        if self.computed.len() >= MAX_TRACKS {
            // Describing a track again is harmless, because its number stays the same.
            self.computed.clear();
        }
        if self.computed.insert(wanted) {
            self.describe(wanted, uuid);
        }
        uuid
    }

    /// Returns the track of a thread, or of the processor if no thread is known.
    pub fn of_thread(&mut self, process: u32, thread: u32, processor: u16) -> u64 {
        let wanted = match (process, thread) {
            (u32::MAX, _) => Track::Processor(processor),
            (process, u32::MAX) => Track::Process(process),
            (process, thread) => Track::Thread { process, thread },
        };
        self.number_of(wanted)
    }

    /// Describes a new track with the same name as others; a timeline shows them as one track.
    pub fn add(&mut self, parent: u64, name: &str, unit: Option<&str>) -> u64 {
        self.last += 1;
        let uuid = self.last;
        self.packets.add(None, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, uuid);
                descriptor.uint(track::PARENT_UUID, parent);
                descriptor.text(track::NAME, name);
                if let Some(unit) = unit {
                    descriptor.message(track::COUNTER, |counter| {
                        counter.text(track::COUNTER_UNIT_NAME, unit);
                    });
                }
            });
        });
        uuid
    }

    /// Sets the name of a process or thread; describes the track again if the name is new.
    pub fn name(&mut self, named: Track, name: &str, command_line: &str) {
        let name = Name { name: name.into(), command_line: command_line.into() };
        if self.names.get(&named) == Some(&name) {
            return;
        }
        if self.names.len() >= MAX_NAMES {
            self.names.clear();
        }
        self.names.insert(named, name);
        match self.known.get(&named).copied() {
            Some(uuid) => self.describe(named, uuid),
            None => drop(self.number_of(named)),
        }
    }

    /// Sets the name of a process or thread that has none.
    pub fn suggest(&mut self, named: Track, name: &str) {
        if self.names.contains_key(&named) {
            return;
        }
        self.name(named, name, "");
    }

    /// Records the end of a process or thread.
    pub fn end(&mut self, ended: Track) {
        if self.ended.len() >= MAX_TRACKS {
            self.ended.clear();
        }
        self.ended.insert(ended);
    }

    /// Records the start of a process or thread: if an earlier one with the same id has ended, the
    /// new one gets a new track.
    pub fn start(&mut self, started: Track) {
        if self.ended.remove(&started) {
            self.known.remove(&started);
            self.computed.remove(&started);
            self.names.remove(&started);
        }
    }

    fn describe(&mut self, described: Track, uuid: u64) {
        let parent = match described {
            Track::Process(_) | Track::Group(_) => None,
            Track::Thread { process, .. } => Some(self.number_of(Track::Process(process))),
            Track::Processor(_) => Some(self.number_of(Track::Group(Group::Processors))),
        };
        let name = self.names.get(&described);
        self.packets.add(None, |packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(track::UUID, uuid);
                if let Some(parent) = parent {
                    descriptor.uint(track::PARENT_UUID, parent);
                }
                match described {
                    Track::Process(id) => descriptor.message(track::PROCESS, |process| {
                        process.int(track::PROCESS_PID, i64::from(id.cast_signed()));
                        if let Some(name) = name {
                            if !name.command_line.is_empty() {
                                process.text(track::PROCESS_CMDLINE, &name.command_line);
                            }
                            process.text(track::PROCESS_NAME, &name.name);
                        } else if let Some(name) = fixed_name(id) {
                            process.text(track::PROCESS_NAME, name);
                        }
                    }),
                    Track::Thread { process, thread } => {
                        descriptor.message(track::THREAD, |descriptor| {
                            descriptor.int(track::THREAD_PID, i64::from(process.cast_signed()));
                            descriptor.int(track::THREAD_TID, i64::from(thread));
                            if let Some(name) = name {
                                descriptor.text(track::THREAD_NAME, &name.name);
                            }
                        });
                    }
                    Track::Group(group) => descriptor.text(track::NAME, group.name()),
                    Track::Processor(processor) => {
                        descriptor.text(track::NAME, &format!("CPU {processor}"));
                    }
                }
            });
        });
    }
}

/// Returns the name of a process whose id is the same on every Windows machine.
const fn fixed_name(process: u32) -> Option<&'static str> {
    match process {
        0 => Some("Idle"),
        4 => Some("System"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> impl Iterator<Item = Track> {
        (0..).map(|thread| Track::Thread { process: u32::MAX - 1, thread })
    }

    #[test]
    fn tracks_beyond_the_limit_have_computed_numbers() {
        let mut tracks = Tracks {
            known: threads().zip(1..).take(MAX_TRACKS - 1).collect(),
            last: MAX_TRACKS as u64 - 1,
            ..Tracks::default()
        };
        let last = tracks.number_of(Track::Process(0));
        assert_eq!(last, MAX_TRACKS as u64);
        let mut numbers = HashSet::new();
        for process in 1..=64 {
            let number = tracks.number_of(Track::Process(process));
            assert!(number > 1 << 63, "{number:#x}");
            numbers.insert(number);
        }
        assert_eq!((numbers.len(), tracks.packets.count()), (64, 65));
        for process in 0..=64 {
            let number = tracks.number_of(Track::Process(process));
            assert!(number == last || numbers.contains(&number));
        }
        assert_eq!(tracks.packets.count(), 65, "they are described once");
        assert_eq!(tracks.known.len(), MAX_TRACKS);
    }

    #[test]
    fn computed_tracks_beyond_the_limit_replace_all_others() {
        let mut tracks = Tracks {
            known: threads().zip(1..).take(MAX_TRACKS).collect(),
            computed: threads().take(MAX_TRACKS).collect(),
            ..Tracks::default()
        };
        tracks.number_of(Track::Process(1));
        assert_eq!(tracks.computed, [Track::Process(1)].into());
    }

    #[test]
    fn names_and_ends_beyond_the_limit_replace_all_others() {
        let mut tracks = Tracks::default();
        for process in [1, 2] {
            let process = Track::Process(process);
            tracks.name(process, "Name", "");
            tracks.end(process);
        }
        assert_eq!((tracks.names.len(), tracks.ended.len()), (2, 2));
        let names = threads().take(MAX_NAMES - 3);
        tracks.names.extend(names.map(|thread| (thread, Name::default())));
        tracks.ended.extend(threads().take(MAX_TRACKS - 3));
        for (process, names, ended) in [(3, MAX_NAMES, MAX_TRACKS), (4, 1, 1)] {
            let process = Track::Process(process);
            tracks.name(process, "Name", "");
            tracks.end(process);
            assert_eq!((tracks.names.len(), tracks.ended.len()), (names, ended));
        }
    }

    #[test]
    fn processes_with_fixed_ids_have_fixed_names() {
        let named = |process| {
            let mut tracks = Tracks::default();
            tracks.number_of(Track::Process(process));
            let out = tracks.packets.take();
            ["Idle", "System"].map(|name| out.windows(name.len()).any(|one| one == name.as_bytes()))
        };
        assert_eq!(named(0), [true, false]);
        assert_eq!(named(4), [false, true]);
        assert_eq!(named(8), [false, false]);
    }
}
