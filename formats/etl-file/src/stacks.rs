//! Joins the kernel's stack records with the events that they belong to.
//!
//! The stack of a kernel event is in a separate record (`StackWalk`), which repeats the event's raw
//! time and thread. It follows the event, sometimes from another processor. It contains either the
//! frames or a key, whose frames another record defines. A definition follows the references to it,
//! keys are reused, and kernel and user stacks have separate keys (ETL-15.2).
//!
//! A provider's event has its stack in an extended item. The item can also contain a key, or only
//! half of the stack; another event with the same match id then has the other half (ETL-15.6).
//!
//! A first pass over the trace collects the [`Definitions`]. In a second pass, a [`Joiner`] keeps a
//! window of events that wait for their stacks. Both are limited; entries that do not fit, and
//! stacks that match no event in the window, are counted.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use crate::decode::kernel::hook;
use crate::decode::{Decoded, Frame, Kind, Problem, Stack, Value};

/// The stacks that keys refer to.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// The definitions, sorted by part, key and time before lookup.
    all: Vec<Definition>,
    /// The concatenated frames of all definitions.
    frames: Vec<u64>,
    has_stacks: bool,
    dropped: u64,
}

/// The part of a stack: kernel mode or user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Kernel,
    User,
}

impl Part {
    /// Returns the part that a stack starts with, or `None` if the stack is empty. Kernel addresses
    /// have the highest bit set: bit 31 if every frame fits in 32 bits, otherwise bit 63, because
    /// 32-bit processes can use all 32 bits.
    fn from_addresses(mut stack: impl Iterator<Item = u64>) -> Option<Self> {
        let first = stack.next()?;
        let narrow = first <= 0xFFFF_FFFF && stack.all(|frame| frame <= 0xFFFF_FFFF);
        let kernel = if narrow { first >= 0x8000_0000 } else { first >> 63 != 0 };
        Some(if kernel { Self::Kernel } else { Self::User })
    }
}

/// The definition of a key's stack.
#[derive(Clone, Copy, Debug)]
struct Definition {
    part: Part,
    key: u64,
    time: i64,
    /// The index of the first frame among all frames.
    start: u32,
    count: u16,
}

impl Definitions {
    /// The maximum memory for definitions in bytes: 8 for each frame, and 24 for each definition.
    pub const MAX_BYTES: usize = 8 << 20;

    /// Returns an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a definition, or that the trace has stacks to join. Ignores other events. Events
    /// should be passed in time order.
    pub fn observe(&mut self, event: &Decoded) {
        let Kind::Kernel { hook } = event.kind else {
            return;
        };
        if StackRecord::is_one(hook) {
            self.expect_stacks();
        }
        if !hook::STACK_DEFINITIONS.contains(&hook) {
            return;
        }
        let (Some(key), Some(frames)) = (pointer(event, "StackKey"), list(event, "StackFrame"))
        else {
            return;
        };
        let Some(part) = Part::from_addresses(frames.iter().copied()) else {
            return;
        };
        let bytes = (self.frames.len() + frames.len()) * size_of::<u64>()
            + (self.all.len() + 1) * size_of::<Definition>();
        let place = (u32::try_from(self.frames.len()), u16::try_from(frames.len()));
        // A record is at most 65,535 bytes long, so only the limit can drop definitions.
        let (true, Ok(start), Ok(count)) = (bytes <= Self::MAX_BYTES, place.0, place.1) else {
            self.dropped += 1;
            return;
        };
        self.frames.extend(frames);
        self.all.push(Definition { part, key, time: event.timestamp, start, count });
    }

    /// Sorts the definitions for lookup.
    fn sort(&mut self) {
        self.all
            .sort_unstable_by_key(|definition| (definition.part, definition.key, definition.time));
    }

    /// Records that events of the trace must wait for their stacks.
    pub const fn expect_stacks(&mut self) {
        self.has_stacks = true;
    }

    /// Returns true if events must wait for stack records or half stacks of the trace.
    #[must_use]
    pub const fn has_stacks(&self) -> bool {
        self.has_stacks
    }

    /// Returns the number of definitions that were dropped because the table was full.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the first definition of a key at or after a time.
    fn find(&self, part: Part, key: u64, time: i64) -> Option<&Definition> {
        let first = self.all.partition_point(|definition| {
            (definition.part, definition.key, definition.time) < (part, key, time)
        });
        let found = self.all.get(first)?;
        ((found.part, found.key) == (part, key)).then_some(found)
    }

    fn frames_of(&self, definition: &Definition) -> Option<&[u64]> {
        let start = usize::try_from(definition.start).ok()?;
        self.frames.get(start..start + usize::from(definition.count))
    }

    /// Returns the frames of a key of unknown mode: the frames of its first definition at or after
    /// `time`. If two definitions have the same time, the kernel's takes precedence.
    fn frames_of_any(&self, key: u64, time: i64) -> Option<&[u64]> {
        let parts = [Part::Kernel, Part::User].into_iter();
        let first = parts
            .filter_map(|part| self.find(part, key, time))
            .min_by_key(|definition| definition.time)?;
        self.frames_of(first)
    }

    /// Returns the frames of a key's first definition at or after `time`.
    fn frames(&self, part: Part, key: u64, time: i64) -> Option<&[u64]> {
        let find = |part| self.frames_of(self.find(part, key, time)?);
        let other = match part {
            Part::Kernel => Part::User,
            Part::User => Part::Kernel,
        };
        // In some traces, 32-bit addresses do not determine the mode.
        let is_narrow = |frames: &&[u64]| frames.iter().all(|frame| *frame <= 0xFFFF_FFFF);
        find(part).or_else(|| find(other).filter(is_narrow))
    }
}

/// A record with another event's stack.
struct StackRecord {
    time: i64,
    process: Option<u32>,
    thread: u32,
    frames: Vec<u64>,
}

impl StackRecord {
    const fn is_one(hook: u16) -> bool {
        matches!(hook, hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER)
    }

    /// Reads a stack record. Returns `None` for other events, and for keys without a definition.
    fn from_event(event: &Decoded, definitions: &Definitions) -> Option<Self> {
        let Kind::Kernel { hook } = event.kind else {
            return None;
        };
        let keyed = |part| {
            let key = pointer(event, "StackKey")?;
            let frames = definitions.frames(part, key, event.timestamp)?;
            Some(frames.to_vec())
        };
        let frames = match hook {
            hook::STACK => list(event, "Stack")?,
            hook::STACK_KEY_KERNEL => keyed(Part::Kernel)?,
            hook::STACK_KEY_USER => keyed(Part::User)?,
            _ => return None,
        };
        let (time, thread) = owner(event)?;
        let process = match event.field("StackProcess") {
            Some(Value::ProcessId(process)) => u32::try_from(*process).ok(),
            _ => None,
        };
        Some(Self { time, process, thread, frames })
    }
}

/// Returns the time of the event that a stack record belongs to and the thread that wrote it, or
/// `None` for other events.
pub fn owner(event: &Decoded) -> Option<(i64, u32)> {
    let Kind::Kernel { hook } = event.kind else {
        return None;
    };
    match (event.field("EventTimeStamp")?, event.field("StackThread")?) {
        (Value::Int(time), Value::ThreadId(thread)) if StackRecord::is_one(hook) => {
            Some((*time, u32::try_from(*thread).ok()?))
        }
        _ => None,
    }
}

/// Returns the thread that wrote an event. A kernel event can state another thread or none.
pub fn writer(event: &Decoded) -> Option<u32> {
    (event.kind == Kind::Event).then_some(event.thread_id)
}

fn pointer(event: &Decoded, name: &str) -> Option<u64> {
    match event.field(name)? {
        Value::Pointer(address) => Some(*address),
        _ => None,
    }
}

fn list(event: &Decoded, name: &str) -> Option<Vec<u64>> {
    let Value::Array(addresses) = event.field(name)? else {
        return None;
    };
    let addresses = addresses.iter().filter_map(|address| match address {
        Value::Pointer(address) => Some(*address),
        _ => None,
    });
    Some(addresses.collect())
}

/// The numbers of joined and unmatched stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounts {
    /// The stack records, keys and half stacks whose frames were added to an event.
    pub joined: u64,
    /// The stack records without an event in the window, keys without a definition, and half stacks
    /// without the other half in the window. The records remain separate events.
    pub unmatched: u64,
}

impl fmt::Display for StackCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { joined, unmatched } = self;
        write!(f, "{joined} joined with their events, {unmatched} unmatched")
    }
}

/// Adds stacks to events.
///
/// `T` is the caller's data for each event.
#[derive(Debug)]
pub struct Joiner<T> {
    definitions: Definitions,
    window: VecDeque<Waiting<T>>,
    /// The number of events that have left the window.
    left: u64,
    /// The numbers of the events in the window, by time.
    by_time: HashMap<i64, Vec<u64>>,
    /// The numbers of the events in the window whose stack lacks its other half, by match id.
    by_match: HashMap<u64, u64>,
    cost: usize,
    counts: StackCounts,
}

/// An event in the window.
#[derive(Debug)]
struct Waiting<T> {
    event: Decoded,
    beside: T,
    /// The size of `beside` in bytes.
    size: usize,
}

impl<T> Joiner<T> {
    /// The maximum number of events in the window.
    pub const MAX_EVENTS: usize = 131_072;
    /// The approximate maximum size of the events in the window, in bytes.
    pub const MAX_BYTES: usize = 24 << 20;

    /// Returns a joiner with the definitions from the first pass.
    #[must_use]
    pub fn new(mut definitions: Definitions) -> Self {
        definitions.sort();
        Self {
            definitions,
            window: VecDeque::new(),
            left: 0,
            by_time: HashMap::new(),
            by_match: HashMap::new(),
            cost: 0,
            counts: StackCounts::default(),
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn counts(&self) -> StackCounts {
        self.counts
    }

    /// Takes the next event in time order. If it is the stack record of an event in the window,
    /// adds its frames to that event. [`pop`](Self::pop) then returns the events that no longer
    /// need to wait. `size` is the memory size of `beside` in bytes.
    ///
    /// Also replaces the keys in an event's stack with the frames that they refer to. If two events
    /// each have half of a stack, adds the frames of the second event to the first.
    pub fn push(&mut self, mut event: Decoded, beside: T, size: usize) {
        self.resolve_keys(&mut event);
        if let Kind::Kernel { hook } = event.kind
            && StackRecord::is_one(hook)
        {
            let joined = StackRecord::from_event(&event, &self.definitions)
                .is_some_and(|stack| self.join(&stack));
            if joined {
                self.counts.joined += 1;
                return;
            }
            self.counts.unmatched += 1;
        }
        let number = self.left + u64::try_from(self.window.len()).unwrap_or(u64::MAX);
        if self.definitions.has_stacks() {
            self.by_time.entry(event.timestamp).or_default().push(number);
        }
        self.join_half(&event, number);
        self.cost += cost(&event) + size;
        self.window.push_back(Waiting { event, beside, size });
    }

    /// Returns the oldest event, if the window is full.
    pub fn pop(&mut self) -> Option<(Decoded, T)> {
        let waits = self.definitions.has_stacks()
            && self.window.len() <= Self::MAX_EVENTS
            && self.cost <= Self::MAX_BYTES;
        if waits { None } else { self.drain() }
    }

    /// Returns the oldest event; call this after the last event.
    pub fn drain(&mut self) -> Option<(Decoded, T)> {
        let Waiting { event, beside, size } = self.window.pop_front()?;
        if let Some(numbers) = self.by_time.get_mut(&event.timestamp) {
            numbers.retain(|number| *number != self.left);
            if numbers.is_empty() {
                self.by_time.remove(&event.timestamp);
            }
        }
        if let Some(id) = match_id(&event)
            && self.by_match.get(&id) == Some(&self.left)
        {
            self.by_match.remove(&id);
            self.counts.unmatched += 1;
        }
        self.left += 1;
        // An event that has received a stack is larger than before.
        self.cost = self.cost.saturating_sub(cost(&event) + size);
        Some((event, beside))
    }

    /// Replaces the keys in an event's stack with their frames.
    fn resolve_keys(&mut self, event: &mut Decoded) {
        let time = event.timestamp;
        let Some(stack) = &mut event.stack else {
            return;
        };
        let definitions = &self.definitions;
        let mut unknown = Vec::new();
        for key in std::mem::take(&mut stack.keys) {
            if let Some(frames) = definitions.frames_of_any(key, time) {
                add(stack, frames);
                self.counts.joined += 1;
            } else {
                unknown.push(key);
            }
        }
        let problems = unknown.iter().map(|&key| Problem::UnknownStack { key });
        event.problems.extend(problems);
        self.counts.unmatched += unknown.len() as u64;
        stack.keys = unknown;
    }

    /// Adds an event's half stack to the event in the window with the other half, or records that
    /// it waits for the other half.
    fn join_half(&mut self, event: &Decoded, number: u64) {
        let (Some(id), Some(half)) = (match_id(event), &event.stack) else {
            return;
        };
        let Some(first) = self.by_match.remove(&id) else {
            self.by_match.insert(id, number);
            return;
        };
        let at = usize::try_from(first - self.left).ok();
        let Some(Waiting { event, .. }) = at.and_then(|at| self.window.get_mut(at)) else {
            return; // unreachable: events that leave the window are removed
        };
        let before = cost(event);
        let frames: Vec<u64> = half.frames.iter().map(|frame| frame.address).collect();
        add(event.stack.get_or_insert_default(), &frames);
        self.cost += cost(event) - before;
        self.counts.joined += 1;
    }

    /// Adds a stack to its event.
    fn join(&mut self, stack: &StackRecord) -> bool {
        let Some(numbers) = self.by_time.get(&stack.time) else {
            return false;
        };
        let mut best = None;
        let mut others = Vec::new();
        for number in numbers {
            let Some(Waiting { event, .. }) =
                usize::try_from(number - self.left).ok().and_then(|at| self.window.get(at))
            else {
                continue;
            };
            if matches!(event.kind, Kind::Kernel { hook } if StackRecord::is_one(hook)) {
                continue;
            }
            if event.thread_id == stack.thread {
                best = Some(*number);
                break;
            }
            if writer(event).is_none() {
                // A performance record does not contain the thread that wrote it.
                if event.process_id == u32::MAX && best.is_none() {
                    best = Some(*number);
                }
                others.push(*number);
            }
        }
        // The time alone nearly always identifies a kernel event; its record can contain the
        // affected thread instead of the thread that wrote it.
        let best = match (best, others.as_slice()) {
            (None, [only]) => Some(*only),
            _ => best,
        };
        let event = best
            .and_then(|number| usize::try_from(number - self.left).ok())
            .and_then(|at| self.window.get_mut(at));
        let Some(Waiting { event, .. }) = event else {
            return false;
        };
        let before = cost(event);
        let joined = event.stack.get_or_insert_default();
        add(joined, &stack.frames);
        joined.process_id = stack.process.or(joined.process_id);
        self.cost += cost(event) - before;
        true
    }
}

/// Returns the number that links an event's half stack to the other half.
fn match_id(event: &Decoded) -> Option<u64> {
    let stack = event.stack.as_ref()?;
    (stack.match_id != 0).then_some(stack.match_id)
}

/// Adds frames to a stack; kernel frames precede user-mode frames.
fn add(stack: &mut Stack, addresses: &[u64]) {
    let part = |stack: &[Frame]| Part::from_addresses(stack.iter().map(|frame| frame.address));
    let new: Vec<Frame> = addresses.iter().map(|&address| Frame { address, place: None }).collect();
    let kernel_after_user =
        part(&new) == Some(Part::Kernel) && part(&stack.frames) == Some(Part::User);
    if kernel_after_user {
        stack.frames.splice(0..0, new);
    } else {
        stack.frames.extend(new);
    }
}

/// The memory that an event in the window uses besides itself, in bytes: entries in the queue and
/// in the time index, and the allocator's overhead.
const WAITING: usize = 192;

/// Returns the approximate memory size of an event in bytes.
fn cost(event: &Decoded) -> usize {
    let frames = event.stack.as_ref().map_or(0, |stack| stack.frames.len());
    WAITING
        + size_of::<Decoded>()
        + event.leftover.len()
        + event.fields.iter().map(|(_, value)| value.size()).sum::<usize>()
        + frames * size_of::<Frame>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::decoded;
    use crate::record::EventRecord;

    fn frames(addresses: &[u64]) -> Stack {
        let mut stack = Stack::default();
        add(&mut stack, addresses);
        stack
    }

    fn addresses(stack: &Stack) -> Vec<u64> {
        stack.frames.iter().map(|frame| frame.address).collect()
    }

    fn event(timestamp: i64) -> Decoded {
        Decoded { timestamp, ..decoded(EventRecord::default()) }
    }

    #[test]
    fn addresses_of_the_upper_half_are_of_the_kernel() {
        let part = |addresses: &[u64]| Part::from_addresses(addresses.iter().copied());
        assert_eq!(part(&[]), None);
        assert_eq!(part(&[0x7FFF_FFFF]), Some(Part::User));
        assert_eq!(part(&[0x8000_0000, 1]), Some(Part::Kernel));
        assert_eq!(part(&[0xFFFF_FFFF]), Some(Part::Kernel));
        // Among wider frames, this is 32-bit code of a process.
        assert_eq!(part(&[0x8000_0000, 0x1_0000_0000]), Some(Part::User));
        assert_eq!(part(&[0x7FFF_FFFF_FFFF]), Some(Part::User));
        assert_eq!(part(&[1 << 63]), Some(Part::Kernel));
    }

    #[test]
    fn frames_of_the_kernel_come_first() {
        const KERNEL: u64 = 0xFFFF_F800_0000_0001;
        const USER: u64 = 0x7FF6_0000_0001;
        let added = |first: &[u64], second: &[u64]| {
            let mut stack = frames(first);
            add(&mut stack, second);
            addresses(&stack)
        };
        assert_eq!(added(&[USER], &[KERNEL]), [KERNEL, USER]);
        assert_eq!(added(&[KERNEL], &[USER]), [KERNEL, USER]);
        assert_eq!(added(&[USER], &[USER + 1]), [USER, USER + 1]);
        assert_eq!(added(&[KERNEL], &[KERNEL + 1]), [KERNEL, KERNEL + 1]);
        assert_eq!(added(&[], &[KERNEL]), [KERNEL]);
        assert_eq!(added(&[USER], &[]), [USER]);
    }

    #[test]
    fn a_definition_serves_the_references_up_to_its_own_time() {
        let mut definitions = Definitions::new();
        for (number, time) in (0..).zip([10, 20]) {
            definitions.all.push(Definition {
                part: Part::User,
                key: 7,
                time,
                start: number,
                count: 1,
            });
        }
        definitions.sort();
        let found = |part, key, time| definitions.find(part, key, time).map(|one| one.start);
        assert_eq!(found(Part::User, 7, 9), Some(0));
        assert_eq!(found(Part::User, 7, 10), Some(0));
        assert_eq!(found(Part::User, 7, 11), Some(1));
        assert_eq!(found(Part::User, 7, 20), Some(1));
        assert_eq!(found(Part::User, 7, 21), None);
        assert_eq!(found(Part::Kernel, 7, 10), None);
        assert_eq!(found(Part::User, 8, 10), None);
    }

    #[test]
    fn an_event_costs_what_it_holds() {
        let plain = event(0);
        let base = cost(&plain);
        assert_eq!(base, WAITING + size_of::<Decoded>());
        let of = |change: fn(&mut Decoded)| {
            let mut event = plain.clone();
            change(&mut event);
            cost(&event) - base
        };
        assert_eq!(of(|event| event.leftover = vec![0; 100]), 100);
        let of_frames = of(|event| event.stack = Some(frames(&[1, 2, 3])));
        assert_eq!(of_frames, 3 * size_of::<Frame>());
        let text = Value::Text("x".repeat(50));
        let of_text = text.size();
        assert!(of_text >= 50);
        let of_fields = of(|event| {
            let text = Value::Text("x".repeat(50));
            event.fields = vec![("a".into(), text.clone()), ("b".into(), text)];
        });
        assert_eq!(of_fields, 2 * of_text);
        let of_both = of(|event| {
            event.leftover = vec![0; 100];
            event.stack = Some(frames(&[1, 2, 3]));
        });
        assert_eq!(of_both, 100 + of_frames);
    }

    #[test]
    fn the_cost_of_the_window_follows_the_stacks_that_its_events_get() {
        let mut definitions = Definitions::new();
        definitions.expect_stacks();
        let mut joiner = Joiner::new(definitions);
        let total = |joiner: &Joiner<()>| -> usize {
            let window = joiner.window.iter();
            window.map(|one| cost(&one.event) + one.size).sum()
        };
        // The first events leave the window, so that event numbers and positions differ.
        for time in 0..3 {
            joiner.push(event(time), (), 5);
        }
        assert_eq!(joiner.cost, total(&joiner));
        for _ in 0..2 {
            joiner.drain().unwrap();
        }
        assert_eq!(joiner.cost, total(&joiner));
        // Two events that each have half of a stack.
        for (time, address) in [(10, 0x7FF6_0000_0001), (11, 0x7FF6_0000_0002)] {
            let mut half = event(time);
            half.stack = Some(Stack { match_id: 9, ..frames(&[address]) });
            joiner.push(half, (), 7);
        }
        assert_eq!(joiner.cost, total(&joiner));
        let whole = joiner.window[1].event.stack.as_ref().unwrap();
        assert_eq!(addresses(whole), [0x7FF6_0000_0001, 0x7FF6_0000_0002]);
        // A stack record, matched to its event by time.
        let record = StackRecord {
            time: 2,
            thread: joiner.window[0].event.thread_id,
            process: None,
            frames: vec![1, 2, 3],
        };
        assert!(joiner.join(&record));
        assert_eq!(joiner.cost, total(&joiner));
        assert_eq!(joiner.window[0].event.stack.as_ref().unwrap().frames.len(), 3);
        while joiner.drain().is_some() {}
        assert_eq!(joiner.cost, 0);
    }
}
