//! Routines that watch the system: processes, threads, images, the registry, and handles of processes
//! and threads.
//!
//! When a test starts and ends processes (`Kernel::start_process`), the routines for processes,
//! threads and images are called. The routines for the registry and for handles are called for the
//! operations of drivers.

use std::collections::HashMap;

use zerocopy::FromZeros;

use super::processes;
use crate::services::ntoskrnl::ob::filters;
use crate::{
    execution::identity::Identity,
    ground::{
        NtStatus,
        abi::{ClientId, CreateNotifyInfo, FileObject, ImageInfo, UnicodeString},
        arena::Block,
        memory,
    },
    services::ntoskrnl::{context::Context, ke::thread_objects},
};

/// The form of a process notification routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The routine receives only ids.
    Plain,
    /// The routine receives the process object and further information, and may refuse the process.
    Extended,
}

/// The routines, grouped by the kind of notification, in the order of registration.
#[derive(Default)]
pub struct Watchers {
    /// Routines for processes.
    pub processes: Vec<(u64, Form)>,
    /// Routines for threads.
    pub threads: Vec<u64>,
    /// Routines for images.
    pub images: Vec<u64>,
    /// The places of the calls that registered the routines.
    pub places: HashMap<u64, String>,
}

/// Removes the routines that `belongs` selects. Returns a description of each.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> Vec<String> {
    let left = context.with_state(|all: &mut Watchers| {
        let processes = all.processes.extract_if(.., |(one, _)| belongs(*one)).map(|(one, _)| one);
        let mut left: Vec<(&str, u64)> = processes.map(|one| ("processes", one)).collect();
        for (what, of_kind) in [("threads", &mut all.threads), ("images", &mut all.images)] {
            left.extend(of_kind.extract_if(.., |one| belongs(*one)).map(|one| (what, one)));
        }
        let place = |routine| all.places.get(&routine).cloned().unwrap_or_default();
        left.into_iter().map(|(what, one)| (what, one, place(one))).collect::<Vec<_>>()
    });
    let filters = filters::take_left(context, belongs);
    let describe = |(what, routine, place): (&str, u64, String)| {
        let routine = context.place(routine);
        format!("its routine for {what} {routine}, registered at {place}, is registered")
    };
    left.into_iter().chain(filters).map(describe).collect()
}

/// A process that a test starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProcess {
    /// The process and its first thread.
    pub identity: Identity,
    /// The path of its image.
    pub image: String,
    /// Its command line.
    pub command_line: String,
}

/// A counted string in memory that drivers can read.
struct Text {
    string: Block,
    _units: Block,
}

impl Text {
    fn new(text: &str) -> Self {
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX - 1);
        let units = Block::zeroed(bytes.len() + 2);
        let string = Block::zeroed(size_of::<UnicodeString>());
        let value = UnicodeString {
            length,
            maximum_length: length,
            buffer: units.address(),
            ..Default::default()
        };
        store(units.address(), &bytes);
        let written = memory::write(string.address(), &value);
        debug_assert!(written.is_ok(), "the block was allocated above");
        Self { string, _units: units }
    }

    const fn address(&self) -> u64 {
        self.string.address()
    }
}

fn store(at: u64, bytes: &[u8]) {
    let written = memory::write_bytes(at, bytes);
    debug_assert!(written.is_ok(), "the caller has allocated the block");
}

fn routines<T: Clone>(context: &Context, of: fn(&Watchers) -> &Vec<T>) -> Vec<T> {
    let mut state = context.state();
    of(state.get::<Watchers>()).clone()
}

/// Notifies drivers that a process starts, on a thread of its parent. Returns the status with which
/// the last routine refused the process, if any. The other routines are then notified that the
/// process has ended.
pub fn start_process(context: &Context, process: &NewProcess) -> NtStatus {
    const NAME_IS_EXACT: u32 = 1;
    /// `IO_TYPE_FILE`.
    const FILE: i16 = 5;
    let parent = context.identity();
    let id = process.identity.process;
    let object = thread_objects::process_object(context.ntoskrnl(), id);
    thread_objects::note_image(context, id, &process.image);
    let [image, command_line] = [&process.image, &process.command_line].map(|text| Text::new(text));
    let file = Block::zeroed(size_of::<FileObject>());
    let value = FileObject {
        kind: FILE,
        size: i16::try_from(size_of::<FileObject>()).unwrap_or(i16::MAX),
        file_name: context.read(image.address()),
        ..FileObject::new_zeroed()
    };
    context.write(file.address(), &value);
    let info = Block::zeroed(size_of::<CreateNotifyInfo>());
    let value = CreateNotifyInfo {
        size: size_of::<CreateNotifyInfo>() as u64,
        flags: NAME_IS_EXACT,
        parent_process_id: u64::from(parent.process),
        creating_thread_id: ClientId {
            unique_process: u64::from(parent.process),
            unique_thread: u64::from(parent.thread),
        },
        file_object: file.address(),
        image_file_name: image.address(),
        command_line: command_line.address(),
        ..CreateNotifyInfo::new_zeroed()
    };
    context.write(info.address(), &value);
    let what = "the routine for processes";
    for (routine, form) in routines(context, |all| &all.processes) {
        let arguments = match form {
            Form::Plain => [u64::from(parent.process), u64::from(id), 1],
            Form::Extended => [object, u64::from(id), info.address()],
        };
        context.call_driver(what, routine, arguments);
    }
    let told: CreateNotifyInfo = context.read(info.address());
    let status = NtStatus::from_bits(told.creation_status);
    if status.is_success() {
        tell_of_thread(context, process.identity, true);
        thread_objects::object_of(context, process.identity);
    } else {
        end_process(context, process.identity, parent.process, false);
    }
    status
}

/// Notifies drivers that a thread starts or ends.
pub fn tell_of_thread(context: &Context, thread: Identity, starts: bool) {
    let arguments = [u64::from(thread.process), u64::from(thread.thread), u64::from(starts)];
    for routine in routines(context, |all| &all.threads) {
        context.call_driver("the routine for threads", routine, arguments);
    }
}

/// Notifies drivers that a process maps an image, on a thread of the process.
pub fn load_image(context: &Context, path: &str, base: u64, size: u64) {
    /// `IMAGE_ADDRESSING_MODE_32BIT`, which is also set for 64-bit images.
    const ADDRESSING_MODE: u32 = 3;
    let name = Text::new(path);
    let info = Block::zeroed(size_of::<ImageInfo>());
    let value = ImageInfo {
        properties: ADDRESSING_MODE,
        image_base: base,
        image_size: size,
        ..ImageInfo::new_zeroed()
    };
    context.write(info.address(), &value);
    let process = u64::from(context.identity().process);
    for routine in routines(context, |all| &all.images) {
        let arguments = [name.address(), process, info.address()];
        context.call_driver("the routine for images", routine, arguments);
    }
}

/// Notifies drivers that a process ends, on its last thread.
pub fn end_process(context: &Context, process: Identity, parent: u32, has_thread: bool) {
    let id = process.process;
    if has_thread {
        tell_of_thread(context, process, false);
    }
    let object = thread_objects::process_object(context.ntoskrnl(), id);
    for (routine, form) in routines(context, |all| &all.processes) {
        let arguments = match form {
            Form::Plain => [u64::from(parent), u64::from(id), 0],
            Form::Extended => [object, u64::from(id), 0],
        };
        context.call_driver("the routine for processes", routine, arguments);
    }
    processes::end(context, id);
}
