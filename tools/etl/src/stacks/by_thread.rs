//! The call stacks of a trace, by thread.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek};
use std::sync::Arc;

use etl_file::decode::{Frame, Kind, Value};
use etl_file::internals::kernel::hook::SAMPLED_PROFILE;
use etl_file::{Decoded, Pipeline, ReadError, Selection, Summary, TraceFile};

/// The kernel events that state the interval between samples: `SetInterval`, `CollectionStart` and
/// `CollectionEnd`.
const INTERVALS: [u16; 3] = [0x0F48, 0x0F49, 0x0F4A];
/// The maximum size of the names and frames of different stacks, in bytes.
const MAX_BYTES: usize = 256 << 20;
/// The frame of stacks that do not fit.
const OTHERS: &str = "(other stacks)";

/// The stacks of a trace, by thread.
#[derive(Debug, Default)]
pub struct Stacks {
    /// The names of different frames, and the number of each.
    pub(super) frames: Vec<Arc<str>>,
    frame_numbers: HashMap<Arc<str>, u32>,
    /// The different stacks as numbers of frames, outermost first, and the number of each.
    pub(super) different: Vec<Arc<[u32]>>,
    numbers: HashMap<Arc<[u32]>, u32>,
    /// The samples by process and thread, in time order.
    pub(super) threads: BTreeMap<[String; 2], Vec<Sample>>,
    /// The size of names and frames.
    bytes: usize,
    /// The first known interval between samples, and the current one, in 100 ns; 0 if unknown.
    pub(super) first_interval: u32,
    interval: u32,
    /// True if events other than samples have stacks here.
    pub(super) has_other_events: bool,
    /// The number of samples whose only frame is the sampled code.
    pub without_walk: u64,
    /// The number of selected events without a stack.
    pub without_stack: u64,
    /// The number of stacks that do not fit in memory.
    pub dropped: u64,
}

/// A stack of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) stack: u32,
    /// The interval between samples at the time of the sample, in 100 ns; 0 if unknown.
    pub(super) interval: u32,
}

/// The part of an event that the output shows or uses.
enum Part {
    Interval(u32),
    Stack { thread: [String; 2], frames: Vec<Arc<str>>, is_sample: bool, is_walked: bool },
    WithoutStack,
}

impl Stacks {
    /// Reads a trace's stacks. The pipeline's completion joins them with their events.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek + Send>(
        file: &mut TraceFile<R>,
        pipeline: &Pipeline<'_>,
    ) -> Result<(Self, Summary), ReadError> {
        let mut stacks = Self::default();
        // The interval between samples applies to all processes.
        let all = Pipeline { selection: Selection::ALL, ..*pipeline };
        let summary = all.run(
            file,
            || (),
            |(), _, event, batch: &mut Vec<Part>| {
                batch.extend(Part::from_event(&event, pipeline.selection));
                Ok::<_, ReadError>(())
            },
            |batch| {
                batch.drain(..).for_each(|part| stacks.add(part));
                Ok(())
            },
        )?;
        Ok((stacks, summary))
    }

    /// Returns true if there are no stacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    fn add(&mut self, part: Part) {
        match part {
            Part::WithoutStack => self.without_stack += 1,
            Part::Interval(interval) => {
                self.interval = interval;
                if self.first_interval == 0 {
                    self.first_interval = interval;
                }
            }
            Part::Stack { thread, frames, is_sample, is_walked } => {
                self.has_other_events |= !is_sample;
                self.without_walk += u64::from(!is_walked);
                let stack = self.stack(&frames);
                let sample = Sample { stack, interval: self.interval };
                self.threads.entry(thread).or_default().push(sample);
            }
        }
    }

    /// Returns the number of a stack.
    fn stack(&mut self, frames: &[Arc<str>]) -> u32 {
        if self.bytes >= MAX_BYTES {
            let known: Option<Arc<[u32]>> =
                frames.iter().map(|frame| self.frame_numbers.get(frame).copied()).collect();
            if let Some(number) = known.and_then(|stack| self.numbers.get(&stack)) {
                return *number;
            }
            self.dropped += 1;
            return self.intern(&[OTHERS.into()]);
        }
        self.intern(frames)
    }

    fn intern(&mut self, frames: &[Arc<str>]) -> u32 {
        let stack: Arc<[u32]> = frames.iter().map(|frame| self.frame(frame)).collect();
        if let Some(number) = self.numbers.get(&stack) {
            return *number;
        }
        self.bytes += size_of_val(&*stack);
        push(&mut self.different, &mut self.numbers, stack)
    }

    fn frame(&mut self, name: &Arc<str>) -> u32 {
        if let Some(number) = self.frame_numbers.get(name) {
            return *number;
        }
        self.bytes += name.len();
        push(&mut self.frames, &mut self.frame_numbers, Arc::clone(name))
    }
}

/// Adds a value to a list, and its index to a table. The limit of memory is below that of indexes.
fn push<T: Clone + Eq + std::hash::Hash>(
    list: &mut Vec<T>,
    numbers: &mut HashMap<T, u32>,
    value: T,
) -> u32 {
    let number = u32::try_from(list.len()).unwrap_or(u32::MAX);
    list.push(value.clone());
    numbers.insert(value, number);
    number
}

impl Part {
    fn from_event(event: &Decoded, selection: &Selection) -> Option<Self> {
        let hook = match event.kind {
            Kind::Kernel { hook } => Some(hook),
            _ => None,
        };
        if let Some(interval) = interval_of(event) {
            return Some(Self::Interval(interval));
        }
        let is_sample = hook == Some(SAMPLED_PROFILE);
        let by_name = !selection.providers.is_empty() || !selection.events.is_empty();
        if !(is_sample || by_name) || !selection.wants(event) {
            return None;
        }
        let stack = event.stack.as_ref().filter(|stack| !stack.frames.is_empty());
        let walked = stack.map(|stack| stack.frames.iter().rev().map(name).collect());
        let is_walked = walked.is_some();
        let code = || match event.field("InstructionPointer")? {
            Value::Pointer(address) => Some(Frame { address: *address, place: None }),
            Value::Code { address, place } => {
                Some(Frame { address: *address, place: Some(Arc::clone(place)) })
            }
            _ => None,
        };
        let alone = || code().filter(|_| is_sample).map(|frame| vec![name(&frame)]);
        let Some(frames) = walked.or_else(alone) else {
            return Some(Self::WithoutStack);
        };
        let thread = [
            label("process", event.process_id, event.process_name.as_deref()),
            label("thread", event.thread_id, event.thread_name.as_deref()),
        ];
        Some(Self::Stack { thread, frames, is_sample, is_walked })
    }
}

/// Returns the interval between samples that an event states, in 100 ns.
pub fn interval_of(event: &Decoded) -> Option<u32> {
    let number = |name| match event.field(name) {
        Some(Value::UInt(number)) => u32::try_from(*number).ok(),
        _ => None,
    };
    let states = matches!(event.kind, Kind::Kernel { hook } if INTERVALS.contains(&hook));
    if states && number("Source") == Some(0) { number("NewInterval") } else { None }
}

/// Returns the function of a frame or, if it is unknown, the image and the offset, or the address.
pub fn name(frame: &Frame) -> Arc<str> {
    let Some(place) = &frame.place else {
        return format!("{:#x}", frame.address).into();
    };
    match place.rsplit_once("+0x") {
        // All addresses in a function are one frame.
        Some((function, _)) if function.contains('!') => function.into(),
        _ => Arc::clone(place),
    }
}

/// Returns the name of a process or thread.
pub fn label(what: &str, id: u32, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{name} ({id})"),
        None if id == u32::MAX => format!("(unknown {what})"),
        None => format!("{what} {id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_function_or_a_place_in_an_image() {
        for (place, expected) in [
            (Some("a.sys!Read+0x1a"), "a.sys!Read"),
            (Some("a.sys!operator+"), "a.sys!operator+"),
            (Some("a.sys+0x1a"), "a.sys+0x1a"),
            (None, "0x12"),
        ] {
            let frame = Frame { address: 0x12, place: place.map(Into::into) };
            assert_eq!(&*name(&frame), expected);
        }
    }

    #[test]
    fn stacks_that_do_not_fit_are_counted_and_shown_together() {
        let mut stacks = Stacks::default();
        let frames = |names: &[&str]| names.iter().map(|&name| name.into()).collect::<Vec<_>>();
        let known = stacks.stack(&frames(&["a", "b"]));
        assert_eq!(stacks.bytes, 10);
        stacks.bytes = MAX_BYTES;
        assert_eq!(stacks.stack(&frames(&["a", "b"])), known);
        assert_eq!(stacks.dropped, 0);
        for new in [&["b"][..], &["c"]] {
            assert_eq!(stacks.stack(&frames(new)), known + 1);
        }
        assert_eq!((stacks.dropped, stacks.different.len()), (2, 2));
        assert_eq!(&*stacks.frames[2], OTHERS);
    }
}
