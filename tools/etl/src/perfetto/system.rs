//! The kernel events that have their own timeline form.

use std::sync::Arc;

use super::core::{Core, Links};
use super::kernel::{self, Begin, Fact};
use super::lanes::Lanes;
use super::properties::name;
use super::schema::{etw, event as slot, packet, sample};
use super::tracks::Track;
use super::wire::Message;

use etl_file::decode::{Frame, Stack, Value};
use etl_file::{Decoded, FileTime};

impl Core {
    /// Adds an event of Perfetto's ETW schema.
    pub(super) fn kernel(&mut self, event: &Decoded, time: u64, number: u32, message: &[u8]) {
        let thread = match number {
            etw::C_SWITCH => None,
            // The running thread readies the other thread.
            etw::READY_THREAD => self.running.get(&event.processor).copied(),
            _ => Some(event.thread_id),
        };
        let thread = thread.filter(|thread| *thread != u32::MAX);
        if number == etw::C_SWITCH {
            self.summary.scheduling += 1;
            if let Some(new) = kernel::thread_field(event, "NewThreadId") {
                self.running.insert(event.processor, new);
            }
        } else if number == etw::READY_THREAD {
            self.summary.scheduling += 1;
        } else {
            self.summary.file_operations += 1;
        }
        self.etw_event(event, time, thread, |to| to.bytes(number, message));
        if let Some(iid) = event.stack.as_ref().and_then(|stack| self.interned.stack(stack)) {
            let trigger = name(event);
            self.etw_event(event, time, thread, |to| {
                to.message(etw::STACK_WALK, |to| {
                    to.text(etw::TRIGGER, &trigger);
                    to.uint(etw::WALK_CALLSTACK_IID, iid);
                });
            });
        }
    }

    /// Adds an event to Perfetto's ETW event bundle.
    pub(super) fn etw_event(
        &mut self,
        event: &Decoded,
        time: u64,
        thread: Option<u32>,
        content: impl FnOnce(&mut Message<'_>),
    ) {
        let mut body = Vec::new();
        Message::new(&mut body).message(etw::BUNDLE_EVENT, |to| {
            to.uint(etw::TIMESTAMP, time);
            to.uint(etw::CPU, u64::from(event.processor));
            if let Some(thread) = thread {
                to.uint(etw::THREAD_ID, u64::from(thread));
            }
            content(to);
        });
        self.send(Some(time), packet::ETW_EVENTS, &body);
    }

    /// Adds an interval as a slice.
    pub(super) fn interval(
        &mut self,
        event: &Decoded,
        hash: u64,
        origin: FileTime,
        time: u64,
        lanes: Lanes,
        begin: Begin,
    ) {
        let start = match begin {
            Begin::Clock(reading) => {
                let start = self.session.clock.to_file_time(reading);
                if start > event.time { None } else { Some(self.since(origin, start)) }
            }
            Begin::Ticks(ticks) => {
                let frequency = i128::from(self.session.clock.perf_frequency).max(1);
                let nanos = i128::from(ticks) * 1_000_000_000 / frequency;
                let start = i128::from(time) - nanos;
                Some(u64::try_from(start).unwrap_or_else(|_| {
                    self.summary.clamped += 1;
                    0
                }))
            }
        };
        let lane =
            start.and_then(|start| self.intervals.lane(lanes, start, time, &mut self.tracks));
        let (Some(start), Some(track)) = (start, lane) else {
            // The interval would end before it starts, or too many intervals overlap.
            self.summary.incomplete += 1;
            self.instant(event, hash, time);
            return;
        };
        self.summary.intervals += 1;
        let links = Links { flow: None, elsewhere: true };
        self.track_event(event, hash, start, track, slot::SLICE_BEGIN, links);
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(slot::TYPE, slot::SLICE_END);
        to.uint(slot::TRACK_UUID, track);
        self.send(Some(time), packet::TRACK_EVENT, &body);
    }

    /// Adds an instruction pointer sample.
    pub(super) fn sample(&mut self, event: &Decoded, time: u64, address: u64) {
        self.summary.samples += 1;
        let place = event.fields.iter().find_map(|(_, value)| match value {
            Value::Code { address: of_place, place } if *of_place == address => {
                Some(Arc::clone(place))
            }
            _ => None,
        });
        let alone = Stack { frames: vec![Frame { address, place }], ..Stack::default() };
        let walked = event.stack.as_ref();
        let stack = walked.filter(|stack| !stack.frames.is_empty());
        let stack = self.interned.stack(stack.unwrap_or(&alone));
        let mut body = Vec::new();
        let mut to = Message::new(&mut body);
        to.uint(sample::CPU, u64::from(event.processor));
        if event.process_id != u32::MAX {
            to.uint(sample::PID, u64::from(event.process_id));
        }
        if event.thread_id != u32::MAX {
            to.uint(sample::TID, u64::from(event.thread_id));
        }
        if let Some(iid) = stack {
            to.uint(sample::CALLSTACK_IID, iid);
        }
        if let Some(mode) = kernel::mode(address) {
            to.uint(sample::CPU_MODE, mode);
        }
        self.send(Some(time), packet::PERF_SAMPLE, &body);
    }

    /// Applies a fact about a process or thread.
    pub(super) fn fact(&mut self, fact: Fact) {
        match fact {
            Fact::Process { id, name, command_line, started } => {
                let process = Track::Process(id);
                if started {
                    self.tracks.start(process);
                }
                self.tracks.name(process, &name, &command_line);
            }
            Fact::ProcessEnded(id) => {
                self.tracks.end(Track::Process(id));
            }
            Fact::Thread { process, id, name, started } => {
                let thread = Track::Thread { process, thread: id };
                if started {
                    self.tracks.start(thread);
                }
                if name.is_empty() {
                    // The track's description contains the process that the thread belongs to.
                    self.tracks.number_of(thread);
                } else {
                    self.tracks.name(thread, &name, "");
                }
            }
            Fact::ThreadEnded { process, id } => {
                self.tracks.end(Track::Thread { process, thread: id });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::{EventRecord, LogFileHeader};
    use etl_fixtures::decoded;

    /// Returns the bytes that an operation writes.
    fn written(add: impl FnOnce(&mut Core)) -> Vec<u8> {
        let mut core = Core::new(&LogFileHeader::default());
        add(&mut core);
        core.tracks.packets.take()
    }

    #[test]
    fn a_context_switch_is_of_no_thread() {
        let switch = |thread_id| {
            let event = Decoded { thread_id, ..decoded(EventRecord::default()) };
            written(|core| core.kernel(&event, 0, etw::C_SWITCH, &[]))
        };
        assert_eq!(switch(5), switch(u32::MAX));
        let operation = |thread_id| {
            let event = Decoded { thread_id, ..decoded(EventRecord::default()) };
            written(|core| core.kernel(&event, 0, etw::FILE_IO_CREATE, &[]))
        };
        assert_ne!(operation(5), operation(u32::MAX));
    }

    #[test]
    fn an_interval_may_start_when_it_ends_but_not_later() {
        let mut core = Core::new(&LogFileHeader::default());
        let mut event = decoded(EventRecord::default());
        event.time = core.session.clock.to_file_time(1_000_000);
        let mut add = |reading| {
            let (begin, lanes) = (Begin::Clock(reading), Lanes::Dpc(0));
            let origin = FileTime::default();
            core.interval(&event, 0, origin, 100, lanes, begin);
            (core.summary.intervals, core.summary.incomplete)
        };
        assert_eq!(add(1_000_000), (1, 0));
        assert_eq!(add(999_000), (2, 0));
        assert_eq!(add(1_001_000), (2, 1));
    }

    #[test]
    fn a_sample_has_the_place_of_its_own_address() {
        let code = |address, place: &str| Value::Code { address, place: place.into() };
        let mut event = Decoded {
            fields: vec![
                ("Other".into(), code(1, "a.sys+0x1")),
                ("InstructionPointer".into(), code(2, "b.sys+0x2")),
            ],
            ..decoded(EventRecord::default())
        };
        for stack in [None, Some(Stack::default())] {
            event.stack = stack;
            assert_eq!(places_of(&event), [[true, false], [false, true], [false; 2]]);
        }
    }

    /// Returns which of two images are named in a sample, for each of three addresses.
    fn places_of(event: &Decoded) -> [[bool; 2]; 3] {
        let places = |address| {
            let out = written(|core| core.sample(event, 0, address));
            ["a.sys", "b.sys"].map(|text| out.windows(5).any(|bytes| bytes == text.as_bytes()))
        };
        [1, 2, 3].map(places)
    }
}
