//! Names for the numbers in events: processes, threads, and the images that contain addresses.
//!
//! A first pass over a trace fills [`Names`] from the kernel's process, thread and image events.
//! Ids are reused after their owner has ended, so every entry is valid for an interval of the
//! session's clock.
//!
//! The tables are limited: entries beyond [`Names::MAX_ENTRIES`] are only counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use etw_wire::Guid;

use crate::cursor::{Cursor, utf16_until_nul};
use crate::decode::kernel;
use crate::decode::{Decoded, Kind, Value};
use crate::read::EventRef;
use crate::record::EventDescriptor;
use crate::symbols::{SymbolId, Symbols};

/// The process that owns the kernel's images; the idle process has some of them as well.
const SYSTEM: u32 = 4;
const IDLE: u32 = 0;

/// The interval during which an id belongs to an owner, as readings of the session's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first reading of the interval.
    pub from: i64,
    /// The last reading of the interval.
    pub to: i64,
}

impl Interval {
    const ALWAYS: Self = Self { from: i64::MIN, to: i64::MAX };

    const fn contains(self, time: i64) -> bool {
        self.from <= time && time <= self.to
    }
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The interval during which the process owns its id.
    pub interval: Interval,
    /// The image's file name, such as `sample.exe`.
    pub image: Arc<str>,
    /// The command line; empty if the event does not contain it.
    pub command_line: Arc<str>,
    /// The id of the parent process.
    pub parent: u32,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The interval during which the thread owns its id.
    pub interval: Interval,
    /// The thread's process.
    pub process: u32,
    /// The thread's name, if it has one.
    pub name: Option<Arc<str>>,
}

/// An image in the memory of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The interval during which the image is loaded.
    pub interval: Interval,
    /// The address of the image's first byte.
    pub base: u64,
    /// The image's size in bytes.
    pub size: u64,
    /// The image's path.
    pub path: Arc<str>,
    /// The `TimeDateStamp` in the image's header.
    pub time_date_stamp: u32,
}

impl Image {
    /// Returns the part of the path after the last backslash.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.path.rsplit(['\\', '/']).next().unwrap_or(&self.path)
    }
}

/// A method that a .NET runtime compiled at run time, or that it uses from an image.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Method {
    /// The interval during which the method is loaded.
    interval: Interval,
    size: u64,
    /// The type and the method.
    name: Arc<str>,
}

/// Microsoft-Windows-DotNETRuntime, and its provider for methods that are already loaded.
const RUNTIME: Guid = Guid::from_u128(0xe13c_0d23_ccbc_4e12_931b_d9cc_2eee_27e4);
const RUNDOWN: Guid = Guid::from_u128(0xa669_021c_c450_4609_a035_5af5_9af4_df18);
/// The ids of the events that name a method: its load, and its unload.
const LOAD: u16 = 143;
const UNLOAD: u16 = 144;

/// Returns true if an event of this provider names a method of .NET.
pub fn names_method(provider: Guid, descriptor: &EventDescriptor) -> bool {
    matches!(descriptor.id, LOAD | UNLOAD) && [RUNTIME, RUNDOWN].contains(&provider)
}

/// Names by process id, thread id and address.
#[derive(Clone, Debug, Default)]
pub struct Names {
    processes: HashMap<u32, Vec<Process>>,
    threads: HashMap<u32, Vec<Thread>>,
    images: HashMap<u32, Space>,
    symbols: HashMap<(u32, u64), SymbolId>,
    /// The methods of each process, by their first address.
    methods: HashMap<u32, BTreeMap<u64, Vec<Method>>>,
    entries: usize,
    dropped: u64,
}

/// The images of a process.
#[derive(Clone, Debug, Default)]
struct Space {
    by_base: BTreeMap<u64, Vec<Image>>,
    /// The size of the largest image.
    largest: u64,
}

impl Space {
    /// Ends all images that are loaded at `time`, because their process has ended.
    fn end(&mut self, time: i64) {
        for image in self.by_base.values_mut().flatten() {
            if image.interval.contains(time) {
                image.interval.to = time;
            }
        }
    }
}

/// The events that mark the lifetime of an object. Processes and threads use the same opcodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Begin,
    End,
    /// The object exists at the start or end of the trace.
    Exists,
}

impl Change {
    const fn from_opcode(opcode: u8) -> Option<Self> {
        match opcode {
            1 => Some(Self::Begin),
            2 | 0x27 => Some(Self::End),
            3 | 4 => Some(Self::Exists),
            _ => None,
        }
    }
}

/// Records that a number's owner starts, ends or exists. Returns true if this creates a new entry.
fn note<T>(
    owners: &mut Vec<T>,
    change: Change,
    time: i64,
    mut new: T,
    interval: fn(&mut T) -> &mut Interval,
) -> bool {
    let current = owners.iter_mut().rev().map(interval).find(|interval| interval.contains(time));
    match (change, current) {
        (Change::Begin, current) => {
            // The end of the previous owner was lost.
            if let Some(current) = current {
                current.to = time.saturating_sub(1).max(current.from);
            }
            *interval(&mut new) = Interval { from: time, to: i64::MAX };
        }
        (Change::End, Some(current)) => {
            current.to = time;
            return false;
        }
        (Change::Exists, Some(_)) => return false,
        (Change::End | Change::Exists, None) => {
            let before = owners.last_mut().map(|last| interval(last).to);
            *interval(&mut new) = Interval {
                from: before.map_or(i64::MIN, |before| before.saturating_add(1)),
                to: if change == Change::End { time } else { i64::MAX },
            };
        }
    }
    owners.push(new);
    true
}

/// Returns the number in a field.
fn number(event: &Decoded, name: &str) -> Option<u64> {
    match event.field(name)? {
        Value::UInt(value)
        | Value::Hex(value)
        | Value::Pointer(value)
        | Value::ProcessId(value)
        | Value::ThreadId(value) => Some(*value),
        _ => None,
    }
}

/// Returns true for the processes that own the kernel's images.
pub const fn is_of_kernel(process: u32) -> bool {
    matches!(process, SYSTEM | IDLE)
}

/// Returns the process or thread id in a field.
pub fn id(event: &Decoded, name: &str) -> Option<u32> {
    number(event, name)?.try_into().ok()
}

/// Returns the text in a field.
fn text(event: &Decoded, name: &str) -> Option<Arc<str>> {
    match event.field(name)? {
        Value::Text(text) => Some(text.as_str().into()),
        _ => None,
    }
}

impl Names {
    /// The maximum number of stored processes, threads, images and symbol identities.
    pub const MAX_ENTRIES: usize = 400_000;

    /// Returns empty tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of entries that were dropped because the tables were full.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns true if there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Collects an event's data about processes, threads and images. Ignores other events. Events
    /// should be passed in time order.
    pub fn observe(&mut self, event: &Decoded) {
        let opcode = event.descriptor.opcode;
        let class = match event.kind {
            Kind::Kernel { .. } | Kind::Classic { .. } => event.provider_name.as_deref(),
            Kind::Event | Kind::Wpp => None,
        };
        let noted = match class {
            Some("Process") => self.process_event(event, opcode),
            Some("Thread") => self.thread_event(event, opcode),
            Some("Image") => self.image_event(event, opcode),
            Some("ImageId") if opcode == 36 => self.symbol_event(event),
            _ => None,
        };
        if noted == Some(true) {
            self.entries += 1;
        }
    }

    /// Collects the method that an event of a .NET runtime names. The payload's layout is published:
    /// the ids of method and module, the address, the size, a token and flags; then the names of the
    /// type and the method.
    pub fn observe_method(&mut self, event: &EventRef<'_>) {
        let change = match (event.provider, event.descriptor.id) {
            (RUNTIME, LOAD) => Change::Begin,
            (RUNTIME, UNLOAD) => Change::End,
            _ => Change::Exists,
        };
        let mut c = Cursor::new(event.user_data);
        let mut read = || {
            c.skip(16)?;
            let (address, size) = (c.u64()?, c.u32()?);
            c.skip(8)?;
            let mut text = || {
                let text = utf16_until_nul(c.rest());
                c.skip(2 * text.encode_utf16().count() + 2)?;
                Some(text)
            };
            let (namespace, name) = (text()?, text()?);
            let separator = if namespace.is_empty() { "" } else { "." };
            Some((address, size, format!("{namespace}{separator}{name}").into()))
        };
        let Some((address, size, name)) = read() else {
            return;
        };
        if !self.has_room() {
            return;
        }
        let new = Method { interval: Interval::ALWAYS, size: size.into(), name };
        let of_process = self.methods.entry(event.process_id).or_default();
        let owners = of_process.entry(address).or_default();
        if note(owners, change, event.timestamp, new, |owner| &mut owner.interval) {
            self.entries += 1;
        }
    }

    /// Returns the method that contains an address, and the address in it.
    fn method(&self, process: u32, address: u64, time: i64) -> Option<String> {
        let (start, owners) = self.methods.get(&process)?.range(..=address).next_back()?;
        let offset = address - start;
        let mut owners = owners.iter().rev();
        let method = owners.find(|one| offset < one.size && one.interval.contains(time))?;
        Some(format!("{}+{offset:#x}", method.name))
    }

    /// Returns true if another entry fits; otherwise counts the entry as dropped.
    fn has_room(&mut self) -> bool {
        let fits = self.entries < Self::MAX_ENTRIES;
        self.dropped += u64::from(!fits);
        fits
    }

    fn process_event(&mut self, event: &Decoded, opcode: u8) -> Option<bool> {
        let change = Change::from_opcode(opcode)?;
        let process = id(event, "ProcessId")?;
        let new = Process {
            interval: Interval::ALWAYS,
            image: text(event, "ImageFileName")?,
            command_line: text(event, "CommandLine").unwrap_or_default(),
            parent: id(event, "ParentId").unwrap_or_default(),
        };
        if !self.has_room() {
            return None;
        }
        if change == Change::End
            && ![SYSTEM, IDLE].contains(&process)
            && let Some(space) = self.images.get_mut(&process)
        {
            space.end(event.timestamp);
        }
        let owners = self.processes.entry(process).or_default();
        Some(note(owners, change, event.timestamp, new, |owner| &mut owner.interval))
    }

    fn thread_event(&mut self, event: &Decoded, opcode: u8) -> Option<bool> {
        if opcode == 0x48 {
            let thread = id(event, "ThreadId")?;
            let name = text(event, "ThreadName");
            let mut owners = self.threads.get_mut(&thread)?.iter_mut().rev();
            let owner = owners.find(|owner| owner.interval.contains(event.timestamp))?;
            owner.name = name;
            return None;
        }
        let change = Change::from_opcode(opcode)?;
        let thread = id(event, "TThreadId")?;
        let new = Thread {
            interval: Interval::ALWAYS,
            process: id(event, "ProcessId")?,
            name: text(event, "ThreadName").filter(|name| !name.is_empty()),
        };
        if !self.has_room() {
            return None;
        }
        let owners = self.threads.entry(thread).or_default();
        Some(note(owners, change, event.timestamp, new, |owner| &mut owner.interval))
    }

    fn image_event(&mut self, event: &Decoded, opcode: u8) -> Option<bool> {
        let change = match opcode {
            0x0a => Change::Begin,
            2 => Change::End,
            3 | 4 => Change::Exists,
            _ => return None,
        };
        let base = number(event, "ImageBase")?;
        let size = number(event, "ImageSize")?;
        let new = Image {
            interval: Interval::ALWAYS,
            base,
            size,
            path: text(event, "FileName")?,
            time_date_stamp: id(event, "TimeDateStamp").unwrap_or_default(),
        };
        let process = id(event, "ProcessId").unwrap_or(event.process_id);
        if !self.has_room() {
            return None;
        }
        let space = self.images.entry(process).or_default();
        space.largest = space.largest.max(size);
        let owners = space.by_base.entry(base).or_default();
        Some(note(owners, change, event.timestamp, new, |owner| &mut owner.interval))
    }

    fn symbol_event(&mut self, event: &Decoded) -> Option<bool> {
        let base = number(event, "ImageBase")?;
        let process = id(event, "ProcessId")?;
        let Value::Guid(guid) = event.field("GuidSig")? else {
            return None;
        };
        let symbols =
            SymbolId { guid: *guid, age: id(event, "Age")?, pdb: text(event, "PdbFileName")? };
        if !self.has_room() {
            return None;
        }
        Some(self.symbols.insert((process, base), symbols).is_none())
    }

    /// Returns the process that had this id at `time`.
    #[must_use]
    pub fn process(&self, id: u32, time: i64) -> Option<&Process> {
        let mut owners = self.processes.get(&id)?.iter().rev();
        owners.find(|owner| owner.interval.contains(time))
    }

    /// Returns the thread that had this id at `time`.
    #[must_use]
    pub fn thread(&self, id: u32, time: i64) -> Option<&Thread> {
        let mut owners = self.threads.get(&id)?.iter().rev();
        owners.find(|owner| owner.interval.contains(time))
    }

    /// Returns the image that contained this address in the process at `time`. The kernel's images
    /// are visible to all processes.
    #[must_use]
    pub fn image(&self, process: u32, address: u64, time: i64) -> Option<&Image> {
        self.image_of(process, address, time).map(|(_, image)| image)
    }

    /// Returns the identity of the symbols of the image that contains an address.
    #[must_use]
    pub fn symbols(&self, process: u32, address: u64, time: i64) -> Option<&SymbolId> {
        let (owner, image) = self.image_of(process, address, time)?;
        [owner, process, IDLE, SYSTEM]
            .iter()
            .find_map(|process| self.symbols.get(&(*process, image.base)))
    }

    fn image_of(&self, process: u32, address: u64, time: i64) -> Option<(u32, &Image)> {
        [process, SYSTEM, IDLE].into_iter().find_map(|owner| {
            let space = self.images.get(&owner)?;
            let lowest = address.saturating_sub(space.largest);
            let image = space
                .by_base
                .range(lowest..=address)
                .rev()
                .flat_map(|(_, images)| images.iter().rev())
                .find(|image| address - image.base < image.size && image.interval.contains(time))?;
            Some((owner, image))
        })
    }

    /// Returns an address as an image and an offset, such as `driver.sys+0x1a2c`.
    #[must_use]
    pub fn place(&self, process: u32, address: u64, time: i64) -> Option<String> {
        let image = self.image(process, address, time)?;
        let offset = address - image.base;
        Some(format!("{}+{offset:#x}", image.file_name()))
    }

    /// Fills in the names of an event's process and thread, and the process if only the thread is
    /// known.
    pub fn resolve(&self, event: &mut Decoded) {
        let time = event.timestamp;
        if let Some(thread) = self.thread(event.thread_id, time) {
            if event.process_id == u32::MAX {
                event.process_id = thread.process;
            }
            event.thread_name.clone_from(&thread.name);
        }
        if let Some(process) = self.process(event.process_id, time) {
            event.process_name = Some(Arc::clone(&process.image));
        }
    }

    /// Fills in the locations of an event's stack frames: image and offset, or image, function and
    /// offset, such as `driver.sys!DriverEntry+0x10`.
    pub fn place_frames(&self, event: &mut Decoded, symbols: &Symbols) {
        let owner = self.owner(event);
        let time = event.timestamp;
        let Some(stack) = &mut event.stack else {
            return;
        };
        // An event can concern another process than the running thread's process.
        let process = stack.process_id.unwrap_or(owner);
        for frame in &mut stack.frames {
            frame.place =
                self.code(process, frame.address, time, symbols).or_else(|| frame.place.take());
        }
    }

    /// Adds locations to the code addresses in a kernel event's fields, such as the routine of a
    /// DPC.
    pub fn place_fields(&self, event: &mut Decoded, symbols: &Symbols) {
        let is_code = |(name, value): &(Arc<str>, Value)| {
            matches!(value, Value::Pointer(_)) && CODE_FIELDS.contains(&&**name)
        };
        let is_kernel = matches!(event.kind, Kind::Kernel { .. });
        if !is_kernel || !event.fields.iter().any(is_code) {
            return;
        }
        let time = event.timestamp;
        // If an event starts a thread, a field contains the thread's process.
        let process = id(event, "ProcessId").unwrap_or_else(|| self.owner(event));
        for field in event.fields.iter_mut().filter(|field| is_code(field)) {
            if let (_, Value::Pointer(address)) = field
                && let Some(place) = self.code(process, *address, time, symbols)
            {
                field.1 = Value::Code { address: *address, place };
            }
        }
    }

    /// Returns an event's process; the event may contain only its thread.
    fn owner(&self, event: &Decoded) -> u32 {
        if event.process_id == u32::MAX {
            let thread = self.thread(event.thread_id, event.timestamp);
            thread.map_or(u32::MAX, |thread| thread.process)
        } else {
            event.process_id
        }
    }

    /// Returns an address as image and offset, or as image, function and offset. Code of .NET that is
    /// in no image has only the method's name and the offset.
    fn code(&self, process: u32, address: u64, time: i64, symbols: &Symbols) -> Option<Arc<str>> {
        let method = self.method(process, address, time);
        let Some(image) = self.image(process, address, time) else {
            return method.map(Arc::from);
        };
        let name = image.file_name();
        let offset = address - image.base;
        let function = if method.is_some() {
            method
        } else if symbols.is_empty() {
            None
        } else {
            let id = self.symbols(process, address, time);
            symbols.function(name, id, offset)
        };
        let place = function
            .map_or_else(|| format!("{name}+{offset:#x}"), |function| format!("{name}!{function}"));
        Some(place.into())
    }
}

/// The fields of kernel events that contain code addresses.
const CODE_FIELDS: [&str; 10] = [
    "CallbackRoutine", "InstructionPointer", "ProgramCounter", "Routine", "RoutineAddr",
    "StartAddr", "SysCallAddress", "ThreadRoutine", "TimerRoutine", "Win32StartAddr",
];

/// The threads that run on the processors, for events whose records contain no thread.
///
/// Performance records belong to the thread that runs on their processor, according to the last
/// context switch.
#[derive(Clone, Debug, Default)]
pub struct Running {
    by_processor: HashMap<u16, u32>,
}

impl Running {
    /// Returns a state in which no running threads are known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tracks context switches, and assigns the running thread of its processor to an event without
    /// a thread. Events must be passed in time order.
    pub fn follow(&mut self, event: &mut Decoded) {
        let Kind::Kernel { hook } = event.kind else {
            return;
        };
        if hook == kernel::hook::CSWITCH {
            if let Some(thread) = id(event, "NewThreadId") {
                self.by_processor.insert(event.processor, thread);
            }
        } else if event.thread_id == u32::MAX
            && let Some(thread) = self.by_processor.get(&event.processor)
        {
            event.thread_id = *thread;
        }
    }
}
