//! Requests and files: what a device's users send, and what they get back.

use super::{
    Entries, Routine,
    device::{self, DeviceData, device_of, queue_for, queue_of},
    lock_framework,
    object::{self, Framework, Kind, create},
    queue::{self, QueueData},
    registry::TextData,
    wait,
};
use crate::{
    abi::{FileObjectConfig, RequestParameters, UnicodeString},
    memory,
    pool::Block,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// The low bits of a control code: how its buffers reach the driver.
const METHOD_MASK: u32 = 3;
/// One system buffer for input and output.
const METHOD_BUFFERED: u32 = 0;
/// The sender's own addresses, which the framework hands out to `EvtIoInCallerContext` alone.
const METHOD_NEITHER: u32 = 3;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A file is being opened.
    Create,
    /// `ReadFile`.
    Read,
    /// `WriteFile`.
    Write,
    /// `DeviceIoControl`.
    DeviceControl {
        /// The control code.
        code: u32,
    },
}

/// A request as its sender makes it.
pub struct IoRequest {
    /// What it asks for.
    pub kind: RequestKind,
    /// The bytes to write, or the control code's input.
    pub input: Vec<u8>,
    /// How many bytes the sender has room for.
    pub output_length: usize,
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The status that the driver completed it with.
    pub status: NtStatus,
    /// The driver's count of bytes.
    pub information: u64,
    /// The bytes that reach the sender: as many as the count says, if the status
    /// is no error.
    pub output: Vec<u8>,
}

/// A request.
pub struct RequestData {
    kind: RequestKind,
    queue: Option<u64>,
    file: Option<u64>,
    buffer: Block,
    /// What `METHOD_IN_DIRECT` and `METHOD_OUT_DIRECT` map beside the system buffer.
    mapped: Option<Block>,
    input_length: usize,
    output_length: usize,
    information: u64,
    /// `EvtRequestCancel`, while the request is cancelable; else 0.
    cancel_routine: u64,
    /// Whether its sender, or a purge, cancelled it.
    cancelled: bool,
    /// Whether the driver was told so.
    told_of_cancellation: bool,
    /// Whether the driver has ever had it.
    presented: bool,
    /// What became of a notification that its queue stops.
    pub stop: Stop,
}

/// A request's part in its queue's stop for power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The queue does not stop.
    None,
    /// The driver was told, or would have been if it had a callback.
    Told,
    /// The driver holds it while the device is out of its working state.
    Acknowledged,
}

/// A request that is over.
pub struct Ended {
    description: String,
    completion: Option<Completion>,
}

impl RequestData {
    /// What it asks for.
    pub const fn kind(&self) -> RequestKind {
        self.kind
    }

    /// The input's length in bytes.
    pub const fn input_length(&self) -> u64 {
        self.input_length as u64
    }

    /// The output's length in bytes.
    pub const fn output_length(&self) -> u64 {
        self.output_length as u64
    }

    /// The queue it went to.
    pub const fn queue(&self) -> Option<u64> {
        self.queue
    }

    /// Puts it in a queue's keeping.
    pub const fn set_queue(&mut self, queue: u64) {
        self.queue = Some(queue);
    }

    /// The file that it was sent by.
    pub const fn file(&self) -> Option<u64> {
        self.file
    }

    /// Where its input is, and how long it is.
    pub const fn input(&self) -> (u64, u64) {
        (self.buffer.address(), self.input_length())
    }

    /// Where its output goes, and how long that may be.
    pub fn output(&self) -> (u64, u64) {
        let block = self.mapped.as_ref().unwrap_or(&self.buffer);
        (block.address(), self.output_length())
    }

    /// Whether the driver gets its buffers from the framework, as it does not with
    /// `METHOD_NEITHER`.
    const fn has_buffers(&self) -> bool {
        !matches!(self.kind, RequestKind::DeviceControl { code } if code & METHOD_MASK == METHOD_NEITHER)
    }

    /// Whether the driver has made it cancelable and not been called for it.
    pub const fn is_cancelable(&self) -> bool {
        self.cancel_routine != 0 && !self.told_of_cancellation
    }

    /// Whether it was cancelled.
    pub const fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Cancels it.
    pub const fn set_cancelled(&mut self) {
        self.cancelled = true;
    }

    /// Whether the driver knows that it was cancelled.
    pub const fn was_told_of_cancellation(&self) -> bool {
        self.told_of_cancellation
    }

    /// The driver is being told that it was cancelled.
    pub const fn set_told_of_cancellation(&mut self) {
        self.told_of_cancellation = true;
    }

    /// Whether the driver has ever had it.
    pub const fn was_presented(&self) -> bool {
        self.presented
    }

    /// The driver has it now.
    pub const fn set_presented(&mut self) {
        self.presented = true;
    }

    /// Whether it is a read or write of nothing.
    pub const fn is_empty(&self) -> bool {
        match self.kind {
            RequestKind::Read => self.output_length == 0,
            RequestKind::Write => self.input_length == 0,
            RequestKind::Create | RequestKind::DeviceControl { .. } => false,
        }
    }
}

/// An open file.
pub struct FileData {
    device: u64,
    name: TextData,
    /// The counted string that says the name to the driver, once it asks.
    name_structure: Option<Block>,
    /// Whether its last handle is closed: it goes with its last request.
    closing: bool,
}

impl FileData {
    /// The device that it is open on.
    pub const fn device(&self) -> u64 {
        self.device
    }
}

pub const ENTRIES: Entries = &[
    ("WdfRequestComplete", Routine::Three(request_complete)),
    (
        "WdfRequestCompleteWithInformation",
        Routine::Four(complete_with_information),
    ),
    (
        "WdfRequestCompleteWithPriorityBoost",
        Routine::Four(complete_with_boost),
    ),
    ("WdfRequestSetInformation", Routine::Three(set_information)),
    ("WdfRequestGetInformation", Routine::Two(get_information)),
    ("WdfRequestGetParameters", Routine::Three(get_parameters)),
    (
        "WdfRequestRetrieveInputBuffer",
        Routine::Five(retrieve_input),
    ),
    (
        "WdfRequestRetrieveOutputBuffer",
        Routine::Five(retrieve_output),
    ),
    ("WdfRequestGetFileObject", Routine::Two(get_file_object)),
    ("WdfRequestGetIoQueue", Routine::Two(get_io_queue)),
    ("WdfFileObjectGetDevice", Routine::Two(file_get_device)),
    ("WdfFileObjectGetFileName", Routine::Two(file_get_name)),
    ("WdfRequestMarkCancelable", Routine::Three(mark_cancelable)),
    (
        "WdfRequestMarkCancelableEx",
        Routine::Three(mark_cancelable_ex),
    ),
    (
        "WdfRequestUnmarkCancelable",
        Routine::Two(unmark_cancelable),
    ),
    ("WdfRequestIsCanceled", Routine::Two(is_canceled)),
    ("WdfRequestForwardToIoQueue", Routine::Three(queue::forward)),
    ("WdfRequestRequeue", Routine::Two(queue::requeue)),
    (
        "WdfRequestStopAcknowledge",
        Routine::Three(queue::stop_acknowledge),
    ),
];

/// A request in words.
pub fn describe(request: &RequestData) -> String {
    match request.kind {
        RequestKind::Create => "a create request".to_owned(),
        RequestKind::Read => format!("a read of {} bytes", request.output_length),
        RequestKind::Write => format!("a write of {} bytes", request.input_length),
        RequestKind::DeviceControl { code } => format!("device control 0x{code:08X}"),
    }
}

/// Makes a request object with its system buffer.
fn make(
    thread: &Thread,
    device: u64,
    file: Option<u64>,
    request: &IoRequest,
) -> Result<u64, NtStatus> {
    let method = match request.kind {
        RequestKind::DeviceControl { code } => code & METHOD_MASK,
        _ => METHOD_BUFFERED,
    };
    let mapped = (method != METHOD_BUFFERED).then(|| Block::zeroed(request.output_length));
    let shared = if mapped.is_some() {
        request.input.len()
    } else {
        request.input.len().max(request.output_length)
    };
    let buffer = Block::zeroed(shared);
    memory::write_bytes(buffer.address(), &request.input)
        .map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    let attributes = thread.with::<DeviceData, _>(device, |device| device.request_attributes());
    let kind = Kind::Request(Box::new(RequestData {
        kind: request.kind,
        queue: None,
        file,
        buffer,
        mapped,
        input_length: request.input.len(),
        output_length: request.output_length,
        information: 0,
        cancel_routine: 0,
        cancelled: false,
        told_of_cancellation: false,
        presented: false,
        stop: Stop::None,
    }));
    create(thread, kind, attributes.as_ref(), Some(device))
}

/// Sends a request to an open file's device and returns its handle.
pub fn submit(thread: &Thread, file: u64, request: &IoRequest) -> Result<u64, NtStatus> {
    let device = thread.with::<FileData, _>(file, |file| file.device);
    let handle = make(thread, device, Some(file), request)?;
    send(thread, device, handle, request.kind);
    Ok(handle)
}

/// Puts a request in the queue that its kind goes to, or fails it.
fn send(thread: &Thread, device: u64, handle: u64, kind: RequestKind) {
    if let Some(queue) = queue_of(thread, device, kind) {
        thread.with::<RequestData, _>(handle, |request| request.queue = Some(queue));
        queue::enqueue(thread, queue, handle);
    } else {
        end(thread, handle, NtStatus::INVALID_DEVICE_REQUEST, Some(0));
    }
}

/// How a request ended, once it has and the first time that it is asked for.
pub fn outcome(thread: &Thread, request: u64) -> Option<Completion> {
    lock_framework(thread.shared())
        .ended
        .get_mut(&request)?
        .completion
        .take()
}

/// Opens a file on a device: `EvtDeviceFileCreate`, if the driver gave it, or the
/// queue for create requests, if there is one. The name is the part of the path
/// after the device.
pub fn create_file(thread: &Thread, device: u64, name: &str) -> Result<u64, NtStatus> {
    let (reachable, busy) = {
        let mut framework = lock_framework(thread.shared());
        let open = is_open(&mut framework, device);
        let Ok(data) = framework.get::<DeviceData>(device) else {
            return Err(NtStatus::NO_SUCH_DEVICE);
        };
        (data.is_reachable(), open && data.is_exclusive())
    };
    if !reachable {
        return Err(NtStatus::DEVICE_NOT_READY);
    }
    if busy {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let config = thread.with::<DeviceData, _>(device, |device| device.file_config());
    let (callbacks, attributes) = config.unzip();
    let kind = Kind::File(FileData {
        device,
        name: TextData::new(name).ok_or(NtStatus::INVALID_PARAMETER)?,
        name_structure: None,
        closing: false,
    });
    let file = create(thread, kind, attributes.flatten().as_ref(), Some(device))?;
    let callback = callbacks.map_or(0, |config: FileObjectConfig| config.create);
    if callback == 0 && queue_for(thread, device, RequestKind::Create).is_none() {
        return Ok(file);
    }
    let request = make(
        thread,
        device,
        Some(file),
        &IoRequest {
            kind: RequestKind::Create,
            input: Vec::new(),
            output_length: 0,
        },
    )?;
    if callback == 0 {
        send(thread, device, request, RequestKind::Create);
    } else {
        thread.call_driver("EvtDeviceFileCreate", callback, [device, request, file]);
    }
    let mut completion = None;
    wait::wait_until(thread, None, |thread| {
        completion = outcome(thread, request);
        completion.is_some()
    });
    let Some(completion) = completion else {
        thread.stop(
            Rule::RequestNotCompleted,
            "a create request is neither completed nor will it be: the stand-in kernel does not \
             wait for one from step to step"
                .to_owned(),
        );
    };
    if completion.status.is_success() {
        Ok(file)
    } else {
        object::delete(thread, file);
        Err(completion.status)
    }
}

/// Whether a device has an open file.
pub fn is_open(framework: &mut Framework, device: u64) -> bool {
    framework.all::<FileData>().into_iter().any(|file| {
        framework
            .get::<FileData>(file)
            .is_ok_and(|file| file.device == device)
    })
}

/// The callbacks for a file's end.
fn file_config(thread: &Thread, file: u64) -> Option<FileObjectConfig> {
    let device = thread.with::<FileData, _>(file, |file| file.device);
    let config = thread.with::<DeviceData, _>(device, |device| device.file_config());
    config.map(|(config, _)| config)
}

/// Closes a file's last handle: `EvtFileCleanup`; what waits in queues for the file
/// is cancelled, and when its last request is done, `EvtFileClose`.
pub fn close_file(thread: &Thread, file: u64) {
    let cleanup = file_config(thread, file).map_or(0, |config| config.cleanup);
    if cleanup != 0 {
        thread.call_driver("EvtFileCleanup", cleanup, [file]);
    }
    queue::cancel_of_file(thread, file);
    thread.with::<FileData, _>(file, |file| file.closing = true);
    finish_close(thread, file);
}

/// Ends a file whose last handle and last request are gone.
fn finish_close(thread: &Thread, file: u64) {
    let is_over = {
        let mut framework = lock_framework(thread.shared());
        let is_closing = framework
            .get::<FileData>(file)
            .is_ok_and(|file| file.closing);
        is_closing
            && !framework.all::<RequestData>().into_iter().any(|request| {
                !framework.ended.contains_key(&request)
                    && framework
                        .get::<RequestData>(request)
                        .is_ok_and(|request| request.file == Some(file))
            })
    };
    if !is_over {
        return;
    }
    let device = thread.with::<FileData, _>(file, |file| {
        file.closing = false;
        file.device
    });
    let close = file_config(thread, file).map_or(0, |config| config.close);
    if close != 0 {
        thread.call_driver("EvtFileClose", close, [file]);
    }
    object::delete(thread, file);
    device::finish_surprise_removal(thread, device);
}

/// Completes a request, as the driver asks.
fn complete(thread: &Thread, handle: u64, status: NtStatus, information: Option<u64>) {
    let ended = lock_framework(thread.shared())
        .ended
        .get(&handle)
        .map(|ended| ended.description.clone());
    let call = thread.call();
    let place = || thread.shared().place(call.return_address);
    if let Some(description) = ended {
        thread.stop(
            Rule::RequestCompletedTwice,
            format!(
                "{} was called from {} for {description}, which had been completed",
                call.name(),
                place()
            ),
        );
    }
    must_own(thread, handle);
    must_not_be_cancelable(thread, handle);
    end(thread, handle, status, information);
}

/// Stops the machine if the driver names a request that it has given away.
pub fn must_own(thread: &Thread, handle: u64) {
    let (queue, description) =
        thread.with::<RequestData, _>(handle, |request| (request.queue, describe(request)));
    let is_waiting = queue.is_some_and(|queue| {
        lock_framework(thread.shared())
            .get::<QueueData>(queue)
            .is_ok_and(|queue| queue.has_waiting(handle))
    });
    if is_waiting {
        let call = thread.call();
        thread.stop(
            Rule::RequestMisused,
            format!(
                "{} was called from {} for {description}, which waits in a queue: the driver \
                 does not own it",
                call.name(),
                thread.shared().place(call.return_address)
            ),
        );
    }
}

/// Stops the machine if the driver uses a request in a way that a cancelable one
/// cannot be used.
pub fn must_not_be_cancelable(thread: &Thread, handle: u64) {
    let description = thread.with::<RequestData, _>(handle, |request| {
        request.is_cancelable().then(|| describe(request))
    });
    if let Some(description) = description {
        let call = thread.call();
        thread.stop(
            Rule::RequestMisused,
            format!(
                "{} was called from {} for {description}, which is cancelable: \
                 WdfRequestUnmarkCancelable comes first",
                call.name(),
                thread.shared().place(call.return_address)
            ),
        );
    }
}

/// Ends a request: its object goes, its queue moves on, its sender can be told.
pub fn end(thread: &Thread, handle: u64, status: NtStatus, information: Option<u64>) {
    let (ended, queue, file) = thread.with::<RequestData, _>(handle, |request| {
        let information = information.unwrap_or(request.information);
        // Errors carry no data back; warnings and successes do.
        let returned = if status.0.cast_unsigned() >> 30 == 3 {
            0
        } else {
            usize::try_from(information)
                .unwrap_or(usize::MAX)
                .min(request.output_length)
        };
        let completion = Completion {
            status,
            information,
            output: memory::read_bytes(request.output().0, returned).unwrap_or_default(),
        };
        let ended = Ended {
            description: describe(request),
            completion: Some(completion),
        };
        (ended, request.queue, request.file)
    });
    {
        let mut framework = lock_framework(thread.shared());
        framework.ended.insert(handle, ended);
        if let Some(queue) = queue
            && let Ok(queue) = framework.get::<QueueData>(queue)
        {
            queue.forget(handle);
        }
    }
    object::delete(thread, handle);
    if let Some(queue) = queue {
        queue::dispatch(thread, queue);
    }
    if let Some(file) = file {
        finish_close(thread, file);
    }
}

/// Cancels a request, as its sender does (`CancelIoEx`): one that waits in a queue
/// ends, and the driver is called for one that it made cancelable.
pub fn cancel(thread: &Thread, handle: u64) {
    let queue = {
        let mut framework = lock_framework(thread.shared());
        if framework.ended.contains_key(&handle) {
            return;
        }
        let Ok(request) = framework.get::<RequestData>(handle) else {
            return;
        };
        if core::mem::replace(&mut request.cancelled, true) {
            return;
        }
        request.queue
    };
    if queue.is_none_or(|queue| !queue::cancel_waiting(thread, queue, handle)) {
        tell_of_cancellation(thread, handle);
    }
}

/// Calls the driver for a cancelled request that it made cancelable.
pub fn tell_of_cancellation(thread: &Thread, handle: u64) {
    let routine = thread.with::<RequestData, _>(handle, |request| {
        request.is_cancelable().then(|| {
            request.told_of_cancellation = true;
            request.cancel_routine
        })
    });
    if let Some(routine) = routine {
        thread.call_driver("EvtRequestCancel", routine, [handle]);
    }
}

extern "win64" fn mark_cancelable(_globals: u64, request: u64, routine: u64) -> u64 {
    let thread = thread::current();
    if mark(&thread, request, routine) {
        tell_of_cancellation(&thread, request);
    }
    0
}

extern "win64" fn mark_cancelable_ex(_globals: u64, request: u64, routine: u64) -> u64 {
    let thread = thread::current();
    if mark(&thread, request, routine) {
        thread.with::<RequestData, _>(request, |request| request.cancel_routine = 0);
        return NtStatus::CANCELLED.to_register();
    }
    NtStatus::SUCCESS.to_register()
}

/// Makes a request cancelable; whether it is cancelled already.
fn mark(thread: &Thread, request: u64, routine: u64) -> bool {
    must_own(thread, request);
    must_not_be_cancelable(thread, request);
    let queue = thread.with::<RequestData, _>(request, |request| {
        request.cancel_routine = routine;
        request.queue
    });
    let is_purged = queue.is_some_and(|queue| {
        lock_framework(thread.shared())
            .get::<QueueData>(queue)
            .is_ok_and(|queue| queue.cancels_what_comes_back())
    });
    thread.with::<RequestData, _>(request, |request| {
        request.cancelled |= is_purged;
        request.cancelled
    })
}

extern "win64" fn unmark_cancelable(_globals: u64, request: u64) -> u64 {
    let thread = thread::current();
    must_own(&thread, request);
    let (was_marked, told) = thread.with::<RequestData, _>(request, |request| {
        let was_marked = request.cancel_routine != 0;
        if request.is_cancelable() {
            request.cancel_routine = 0;
        }
        (was_marked, request.told_of_cancellation)
    });
    if !was_marked {
        let call = thread.call();
        let description = thread.with::<RequestData, _>(request, |request| describe(request));
        thread.stop(
            Rule::RequestMisused,
            format!(
                "WdfRequestUnmarkCancelable was called from {} for {description}, which is not \
                 cancelable",
                thread.shared().place(call.return_address)
            ),
        );
    }
    if told {
        NtStatus::CANCELLED.to_register()
    } else {
        NtStatus::SUCCESS.to_register()
    }
}

extern "win64" fn is_canceled(_globals: u64, request: u64) -> u64 {
    let thread = thread::current();
    must_own(&thread, request);
    must_not_be_cancelable(&thread, request);
    u64::from(thread.with::<RequestData, _>(request, |request| request.cancelled))
}

extern "win64" fn request_complete(_globals: u64, request: u64, status: u64) -> u64 {
    complete(
        &thread::current(),
        request,
        NtStatus::from_register(status),
        None,
    );
    0
}

extern "win64" fn complete_with_information(
    _globals: u64,
    request: u64,
    status: u64,
    information: u64,
) -> u64 {
    complete(
        &thread::current(),
        request,
        NtStatus::from_register(status),
        Some(information),
    );
    0
}

extern "win64" fn complete_with_boost(
    _globals: u64,
    request: u64,
    status: u64,
    _boost: u64,
) -> u64 {
    complete(
        &thread::current(),
        request,
        NtStatus::from_register(status),
        None,
    );
    0
}

extern "win64" fn set_information(_globals: u64, request: u64, information: u64) -> u64 {
    thread::current().with::<RequestData, _>(request, |request| request.information = information);
    0
}

extern "win64" fn get_information(_globals: u64, request: u64) -> u64 {
    thread::current().with::<RequestData, _>(request, |request| request.information)
}

extern "win64" fn get_parameters(_globals: u64, request: u64, parameters: u64) -> u64 {
    fill_parameters(&thread::current(), request, parameters);
    0
}

/// Describes a request to the driver in a `WDF_REQUEST_PARAMETERS`.
pub fn fill_parameters(thread: &Thread, request: u64, parameters: u64) {
    /// `WDF_REQUEST_TYPE`.
    const CREATE: u32 = 0;
    const READ: u32 = 3;
    const WRITE: u32 = 4;
    const DEVICE_CONTROL: u32 = 14;
    let mut filled: RequestParameters = thread.read(parameters);
    let (kind, words) = thread.with::<RequestData, _>(request, |request| match request.kind {
        RequestKind::Create => (CREATE, [0; 4]),
        RequestKind::Read => (READ, [request.output_length(), 0, 0, 0]),
        RequestKind::Write => (WRITE, [request.input_length(), 0, 0, 0]),
        RequestKind::DeviceControl { code } => (
            DEVICE_CONTROL,
            [
                request.output_length(),
                request.input_length(),
                u64::from(code),
                0,
            ],
        ),
    });
    filled.minor_function = 0;
    filled.kind = kind;
    filled.parameters = words;
    thread.write(parameters, &filled);
}

extern "win64" fn retrieve_input(
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let thread = thread::current();
    let Some((address, available)) = buffer_of(&thread, request, RequestData::input) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    retrieve(&thread, address, available, minimum, buffer, length).to_register()
}

extern "win64" fn retrieve_output(
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let thread = thread::current();
    let Some((address, available)) = buffer_of(&thread, request, RequestData::output) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    retrieve(&thread, address, available, minimum, buffer, length).to_register()
}

/// Where a request's input or output is, if the framework hands it out.
pub fn buffer_of(
    thread: &Thread,
    request: u64,
    which: impl FnOnce(&RequestData) -> (u64, u64),
) -> Option<(u64, u64)> {
    thread.with::<RequestData, _>(request, |request| {
        request.has_buffers().then(|| which(request))
    })
}

/// Hands out a buffer that is neither empty nor shorter than the driver needs.
fn retrieve(
    thread: &Thread,
    address: u64,
    available: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> NtStatus {
    if available == 0 || available < minimum {
        return NtStatus::BUFFER_TOO_SMALL;
    }
    thread.write(buffer, &address);
    if length != 0 {
        thread.write(length, &available);
    }
    NtStatus::SUCCESS
}

extern "win64" fn get_file_object(_globals: u64, request: u64) -> u64 {
    thread::current().with::<RequestData, _>(request, |request| request.file.unwrap_or(0))
}

extern "win64" fn get_io_queue(_globals: u64, request: u64) -> u64 {
    thread::current().with::<RequestData, _>(request, |request| request.queue.unwrap_or(0))
}

extern "win64" fn file_get_device(_globals: u64, file: u64) -> u64 {
    let thread = thread::current();
    thread.with::<FileData, _>(file, |_| ());
    device_of(&thread, file).unwrap_or(0)
}

/// The name is in a counted string that lives as long as the file.
extern "win64" fn file_get_name(_globals: u64, file: u64) -> u64 {
    let thread = thread::current();
    let (address, counted) = thread.with::<FileData, _>(file, |file| {
        let structure = file
            .name_structure
            .get_or_insert_with(|| Block::zeroed(size_of::<UnicodeString>()));
        (structure.address(), file.name.counted())
    });
    thread.write(address, &counted);
    address
}
