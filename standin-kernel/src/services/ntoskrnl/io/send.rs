//! The requests of processes to devices of WDM drivers: open, read, write, control and close. Drivers
//! also open and close devices.

use std::{
    collections::{HashMap, HashSet},
    mem::offset_of,
};

use super::{
    cancel::cancel_request,
    devices::{self, flag},
    irp::{self, FILE, THREAD, call_driver},
    stacks,
};
use crate::{
    execution::{coroutine::wait_until, routine::At},
    ground::{
        NtResult, NtStatus,
        abi::{DeviceObject, DispatcherHeader, FileObject, Irp, UnicodeString},
        arena::Block,
        memory,
        rule::Rule,
    },
    services::{
        managers::create_parameters::{CreateParameters, SYNCHRONOUS_IO, SecurityContext},
        ntoskrnl::{
            context::{Context, Ntoskrnl},
            ke::{apcs, header::kind, thread_objects},
            mm::mdl,
            ob::handles,
        },
    },
};

/// The major functions of the requests.
const CREATE: u8 = 0;
const CLOSE: u8 = 2;
const READ: u8 = 3;
const WRITE: u8 = 4;
const DEVICE_CONTROL: u8 = 14;
const CLEANUP: u8 = 18;

/// A process's operation on a file.
pub enum Operation {
    /// Reads up to this number of bytes.
    Read(usize),
    /// Writes bytes.
    Write(Vec<u8>),
    /// Sends a control code, with an input buffer and the initial contents of the output buffer.
    Control(u32, Vec<u8>, Vec<u8>),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status with which the driver completed it.
    pub status: NtStatus,
    /// The number of bytes that the driver reported.
    pub information: u64,
    /// The output.
    pub output: Vec<u8>,
}

/// The open files, by object address, and processes' requests, by number.
#[derive(Default)]
struct Files {
    /// Set if processes open files for synchronous requests.
    opens_synchronous: bool,
    open: HashMap<u64, File>,
    issued: u64,
    pending: HashMap<u64, Pending>,
    ended: HashMap<u64, Outcome>,
}

/// The opener of a file, and the parameters of the open.
#[derive(Clone, Copy)]
pub struct Opener {
    /// The parameters of the create request.
    pub create: CreateParameters,
    /// The mode of the file's requests: `KernelMode` (0) for a driver, or `UserMode` (1) for a
    /// process.
    pub mode: u8,
    /// The return address of the driver's call that opened the file, or 0.
    pub by: u64,
}

impl Opener {
    /// A process as the opener.
    const PROCESS: Self = Self { create: CreateParameters::OF_PROCESS, mode: 1, by: 0 };
}

/// Sets whether processes open files for synchronous requests.
pub fn open_synchronous(nt: &Ntoskrnl, is_synchronous: bool) {
    nt.state().get::<Files>().opens_synchronous = is_synchronous;
}

/// Returns the parameters with which processes open files.
pub fn process_parameters(nt: &Ntoskrnl) -> CreateParameters {
    if nt.state().get::<Files>().opens_synchronous {
        CreateParameters::OF_SYNCHRONOUS_PROCESS
    } else {
        CreateParameters::OF_PROCESS
    }
}

struct File {
    device: u64,
    opener: Opener,
    /// Set if the process has ended without closing the file.
    is_abandoned: bool,
    _memory: Block,
    _name: Block,
}

/// A request that its driver has not completed yet.
struct Pending {
    irp: u64,
    /// The buffer for the output.
    output: Option<(u64, usize)>,
    mdl: u64,
    /// The memory that the request uses.
    _buffers: Vec<Block>,
    _security: Option<SecurityContext>,
}

/// Opens a file on a device on behalf of a process.
pub fn open(context: &Context, device: u64, name: &str) -> NtResult<u64> {
    let create = process_parameters(context.ntoskrnl());
    open_as(context, device, name, Opener { create, ..Opener::PROCESS }).map(|(file, _)| file)
}

/// Opens a file on a device. Returns it, and the information with which the driver completed the request.
pub fn open_as(context: &Context, device: u64, name: &str, opener: Opener) -> NtResult<(u64, u64)> {
    let value: DeviceObject = context.read(device);
    if value.flags & flag::INITIALIZING != 0 {
        return Err(NtStatus::NO_SUCH_DEVICE);
    }
    if devices::is_taken(context, device) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = u16::try_from(units.len()).map_err(|_| NtStatus::INVALID_PARAMETER)?;
    let text = Block::zeroed(units.len().max(2));
    context.write_bytes(text.address(), &units);
    let memory = Block::zeroed(size_of::<FileObject>());
    let file = memory.address();
    context.update(file, |object: &mut FileObject| {
        object.kind = FileObject::TYPE;
        object.size = FileObject::SIZE;
        object.device_object = device;
        object.flags = if opener.create.is_synchronous() { SYNCHRONOUS_IO } else { 0 };
        object.event = file_event(file, 0);
        object.file_name = UnicodeString {
            length,
            maximum_length: length,
            buffer: text.address(),
            ..Default::default()
        };
    });
    let new = File { device, opener, is_abandoned: false, _memory: memory, _name: text };
    context.state().get::<Files>().open.insert(file, new);
    devices::count_files(context, device, 1);
    let outcome = run(context, file, CREATE);
    if outcome.status.is_success() {
        return Ok((file, outcome.information));
    }
    forget(context, file);
    Err(outcome.status)
}

/// Returns the event of the file object at an address. Waits for the file's handle wait for it.
pub fn file_event(file: u64, state: i32) -> DispatcherHeader {
    DispatcherHeader::new(
        file + FILE_EVENT,
        kind::NOTIFICATION_EVENT,
        size_of::<DispatcherHeader>(),
        state,
    )
}

/// The offset of the event in a file object.
pub const FILE_EVENT: u64 = offset_of!(FileObject, event) as u64;

fn forget(context: &Context, file: u64) {
    if let Some(file) = context.with_state(|files: &mut Files| files.open.remove(&file)) {
        devices::count_files(context, file.device, -1);
    }
}

/// Sends a request without buffers, and waits for its completion.
fn run(context: &Context, file: u64, major: u8) -> Outcome {
    let mut buffers = Buffers::default();
    let mut parameters = [0; 4];
    if major == CREATE {
        let create = opener_of(context, file).create;
        let security = SecurityContext::new(create, context.identity().process);
        parameters = security.words();
        buffers.security = Some(security);
    }
    let number = start(context, file, major, parameters, buffers);
    let has_ended = || context.state().get::<Files>().ended.contains_key(&number);
    wait_until(context, None, has_ended);
    outcome(context, number).unwrap_or_else(|| {
        if major == CREATE {
            context.stop(
                Rule::NotProvided,
                "the driver leaves IRP_MJ_CREATE pending, and no remaining work completes it; the \
                 stand-in kernel does not provide opens that end in a later step, although a driver \
                 may complete the request at any time"
                    .to_owned(),
            );
        }
        context.stop(
            Rule::RequestNotCompleted,
            format!("the driver did not complete {}", irp::major_name(major)),
        )
    })
}

/// Returns whether an object is a file on a device.
pub fn is_open(context: &Context, object: u64) -> bool {
    device_of(context, object).is_some()
}

/// Returns whether a file is open for synchronous requests.
pub fn is_synchronous(context: &Context, file: u64) -> bool {
    opener_of(context, file).create.is_synchronous()
}

fn opener_of(context: &Context, file: u64) -> Opener {
    context.with_state(|files: &mut Files| {
        files.open.get(&file).map_or(Opener::PROCESS, |file| file.opener)
    })
}

/// Returns the device of a file.
pub fn device_of(context: &Context, file: u64) -> Option<u64> {
    context.with_state(|files: &mut Files| Some(files.open.get(&file)?.device))
}

/// Closes a file: sends the cleanup request, ends the file's requests, and sends the close request.
pub fn close(context: &Context, file: u64) {
    clean_up(context, file);
    close_after_cleanup(context, file);
}

/// Notifies a file's device that the file's last handle is closed.
pub fn clean_up(context: &Context, file: u64) {
    if has_driver(context, file) {
        run(context, file, CLEANUP);
    }
}

/// Closes a file that has no references left.
pub fn close_after_cleanup(context: &Context, file: u64) {
    if has_driver(context, file) {
        run(context, file, CLOSE);
    }
    forget(context, file);
}

/// Returns whether the driver of a file's device is loaded.
fn has_driver(context: &Context, file: u64) -> bool {
    device_of(context, file).is_some_and(|device| devices::has_driver(context, device))
}

/// Returns the devices on which processes have open files.
pub fn of_processes(context: &Context) -> HashSet<u64> {
    context.with_state(|files: &mut Files| {
        let open = files.open.values().filter(|file| file.opener.by == 0);
        open.map(|file| file.device).collect()
    })
}

/// Closes the files that a driver has opened and not released. Files on the driver's own devices
/// are closed without notifying the driver. Returns the names of the devices.
pub fn take_left(
    context: &Context,
    driver_object: u64,
    belongs: impl Fn(u64) -> bool,
) -> Vec<String> {
    let mut left: Vec<(u64, u64)> = context.with_state(|files: &mut Files| {
        let open = files.open.iter().filter(|(_, file)| belongs(file.opener.by));
        open.map(|(address, file)| (*address, file.device)).collect()
    });
    left.retain(|(file, _)| handles::is_in_use(context, *file));
    left.sort_unstable();
    let of_file = |(file, device): (u64, u64)| {
        let name = devices::name_of(context, device);
        let has_handles = handles::count(context, file) > 0;
        handles::forget(context, file);
        if devices::driver_of(context, device) == Some(driver_object) {
            forget(context, file);
        } else {
            if has_handles {
                clean_up(context, file);
            }
            close_after_cleanup(context, file);
        }
        name.unwrap_or_else(|| "(a device without a name)".to_owned())
    };
    left.into_iter().map(of_file).collect()
}

/// Records that a process has ended without closing a file.
pub fn abandon(nt: &Ntoskrnl, file: u64) {
    if let Some(file) = nt.state().get::<Files>().open.get_mut(&file) {
        file.is_abandoned = true;
    }
}

/// Closes the files on a device whose processes have ended.
pub fn close_abandoned(context: &Context, device: u64) {
    let mut abandoned: Vec<u64> = context.with_state(|files: &mut Files| {
        let open = files.open.iter();
        let open = open.filter(|(_, file)| file.is_abandoned && file.device == device);
        open.map(|(address, _)| *address).collect()
    });
    abandoned.sort_unstable();
    for file in abandoned {
        close(context, file);
    }
}

#[derive(Default)]
struct Buffers {
    system: u64,
    user: u64,
    mdl: u64,
    output: Option<(u64, usize)>,
    blocks: Vec<Block>,
    security: Option<SecurityContext>,
}

impl Buffers {
    /// Adds a block with this content, of at least `size` bytes. Returns its address.
    fn add(&mut self, context: &Context, bytes: &[u8], size: usize) -> u64 {
        let block = Block::zeroed(size.max(bytes.len()).max(1));
        context.write_bytes(block.address(), bytes);
        let address = block.address();
        self.blocks.push(block);
        address
    }
}

/// Starts a request. Returns its number.
pub fn submit(context: &Context, file: u64, operation: &Operation) -> u64 {
    let top = stacks::top_of(context, device_of(context, file).unwrap_or(0));
    let flags = context.read::<DeviceObject>(top).flags;
    let mut buffers = Buffers::default();
    let (major, parameters) = match operation {
        Operation::Read(length) => {
            let address = buffers.add(context, &[], *length);
            buffers.output = Some((address, *length));
            place(context, &mut buffers, flags, address, *length);
            (READ, [*length as u64, 0, 0, 0])
        }
        Operation::Write(bytes) => {
            let address = buffers.add(context, bytes, bytes.len());
            place(context, &mut buffers, flags, address, bytes.len());
            (WRITE, [bytes.len() as u64, 0, 0, 0])
        }
        Operation::Control(code, input, output) => {
            let lengths = (input.len(), output.len());
            let in_buffer = place_control(context, &mut buffers, *code, input, output);
            let parameters = [lengths.1 as u64, lengths.0 as u64, u64::from(*code), in_buffer];
            (DEVICE_CONTROL, parameters)
        }
    };
    start(context, file, major, parameters, buffers)
}

/// Sets up a buffer according to the device's flags.
fn place(context: &Context, buffers: &mut Buffers, flags: u32, address: u64, length: usize) {
    if length == 0 {
        return;
    }
    if flags & flag::BUFFERED_IO != 0 {
        buffers.system = address;
    } else if flags & flag::DIRECT_IO != 0 {
        buffers.mdl = mdl::locked(context, address, length);
    }
    buffers.user = address;
}

/// Sets up the buffers of a device control according to its code. Returns the address of the input
/// if the driver receives the caller's buffers.
fn place_control(
    context: &Context,
    buffers: &mut Buffers,
    code: u32,
    input: &[u8],
    contents: &[u8],
) -> u64 {
    const BUFFERED: u32 = 0;
    const NEITHER: u32 = 3;
    let length = contents.len();
    match code & 3 {
        BUFFERED => {
            if !input.is_empty() || length > 0 {
                buffers.system = buffers.add(context, input, length);
                buffers.output = Some((buffers.system, length));
            }
            0
        }
        NEITHER => {
            let from = buffers.add(context, input, 0);
            buffers.user = buffers.add(context, contents, length);
            buffers.output = Some((buffers.user, length));
            from
        }
        _ => {
            if !input.is_empty() {
                buffers.system = buffers.add(context, input, 0);
            }
            if length > 0 {
                let output = buffers.add(context, contents, length);
                buffers.output = Some((output, length));
                buffers.mdl = mdl::locked(context, output, length);
            }
            0
        }
    }
}

/// Sends a request to the top of the device stack of a file.
fn start(context: &Context, file: u64, major: u8, parameters: [u64; 4], buffers: Buffers) -> u64 {
    let top = stacks::top_of(context, device_of(context, file).unwrap_or(0));
    let stack_size = context.read::<DeviceObject>(top).stack_size;
    let request = irp::create(context, stack_size, Some(ended));
    context.update(request, |value: &mut Irp| {
        value.mdl_address = buffers.mdl;
        value.associated_irp = buffers.system;
        value.user_buffer = buffers.user;
        value.requestor_mode = opener_of(context, file).mode;
        value.tail[THREAD] = thread_objects::current(context).0;
        value.tail[FILE] = file;
    });
    irp::update_next(context, request, |location| {
        location.major_function = major;
        location.parameters = parameters;
        location.device_object = top;
        location.file_object = file;
    });
    let number = context.with_state(|files: &mut Files| {
        files.issued += 1;
        let pending = Pending {
            irp: request,
            output: buffers.output,
            mdl: buffers.mdl,
            _buffers: buffers.blocks,
            _security: buffers.security,
        };
        files.pending.insert(files.issued, pending);
        files.issued
    });
    // The I/O manager holds a synchronous file's lock in a critical region, except during an open
    // and the last close.
    let is_locked =
        ![CREATE, CLOSE].contains(&major) && opener_of(context, file).create.is_synchronous();
    let status = apcs::in_region(context, is_locked, || {
        call_driver(context, At::new(top), At::new(request))
    });
    let is_pending = context.state().get::<Files>().pending.contains_key(&number);
    if is_pending && status != NtStatus::PENDING {
        context.stop(
            Rule::RequestNotCompleted,
            format!(
                "the driver returned {status} for {} and did not complete the request",
                irp::major_name(major)
            ),
        );
    }
    number
}

/// Stores the result of a completed request.
fn ended(context: &Context, request: u64) {
    let value: Irp = context.read(request);
    let status = NtStatus::from_bits(value.io_status.status);
    let mut state = context.state();
    let files = state.get::<Files>();
    let Some((number, pending)) = files.pending.extract_if(|_, one| one.irp == request).next()
    else {
        return;
    };
    // The output is copied after a warning, but not after an error.
    let is_error = status.bits() >> 30 == 3;
    let output = pending.output.filter(|_| !is_error).map(|(address, length)| {
        let count = usize::try_from(value.io_status.information).unwrap_or(usize::MAX).min(length);
        memory::read_bytes(address, count).unwrap_or_default()
    });
    let information = value.io_status.information;
    files.ended.insert(number, Outcome { status, information, output: output.unwrap_or_default() });
    drop(state);
    must_fit(context, status, &value, pending.output);
    if pending.mdl != 0 {
        mdl::discard(context, pending.mdl);
    }
}

/// Bugchecks if a request was completed with more bytes than its output buffer holds. The I/O manager
/// copies that many bytes from the system buffer, unless the status is an error.
fn must_fit(context: &Context, status: NtStatus, irp: &Irp, output: Option<(u64, usize)>) {
    let count = irp.io_status.information;
    let Some((address, length)) = output.filter(|(_, length)| *length > 0) else {
        return;
    };
    let is_copied = address == irp.associated_irp && status.bits() >> 30 != 3;
    if count > length as u64 && (is_copied || status.is_success()) {
        context.stop(
            Rule::RequestMisused,
            format!(
                "a driver completed a request with {count} bytes, but its output buffer is only \
                 {length} bytes long"
            ),
        );
    }
}

/// Removes and returns the result of a request, if the request is complete.
pub fn outcome(context: &Context, number: u64) -> Option<Outcome> {
    context.state().get::<Files>().ended.remove(&number)
}

/// Cancels a request.
pub fn cancel(context: &Context, number: u64) {
    let request =
        context.with_state(|files: &mut Files| files.pending.get(&number).map(|one| one.irp));
    if let Some(request) = request {
        cancel_request(context, request);
    }
}
