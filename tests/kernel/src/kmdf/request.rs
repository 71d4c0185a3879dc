//! Requests and files: what a device's users send, and what they get back.

use super::{
    Entries, Routine,
    device::{DeviceData, device_of, queue_of},
    lock_framework,
    object::{self, Kind, create},
    queue,
};
use crate::{
    abi::{FileObjectConfig, RequestParameters},
    memory,
    pool::Block,
    status::NtStatus,
    thread::{self, Thread},
    verifier::Rule,
};

/// `METHOD_BUFFERED` in the low bits of a control code: one system buffer for
/// input and output.
const METHOD_MASK: u32 = 3;
const METHOD_BUFFERED: u32 = 0;

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
    input_length: usize,
    output_length: usize,
    information: u64,
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

    /// Whether it has not been completed yet.
    pub const fn is_open(&self) -> bool {
        self.completion.is_none()
    }
}

/// An open file.
pub struct FileData {
    device: u64,
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
    if let RequestKind::DeviceControl { code } = request.kind
        && code & METHOD_MASK != METHOD_BUFFERED
    {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    let buffer = Block::zeroed(request.input.len().max(request.output_length));
    memory::write_bytes(buffer.address(), &request.input)
        .map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    let attributes = thread.with::<DeviceData, _>(device, |device| device.request_attributes());
    let kind = Kind::Request(Box::new(RequestData {
        kind: request.kind,
        queue: None,
        file,
        buffer,
        input_length: request.input.len(),
        output_length: request.output_length,
        information: 0,
        completion: None,
    }));
    create(thread, kind, attributes.as_ref(), Some(device))
}

/// Sends a request to an open file's device and returns its handle.
pub fn submit(thread: &Thread, file: u64, request: &IoRequest) -> Result<u64, NtStatus> {
    let device = thread.with::<FileData, _>(file, |file| file.device);
    let handle = make(thread, device, Some(file), request)?;
    if let Some(queue) = queue_of(thread, device) {
        thread.with::<RequestData, _>(handle, |request| request.queue = Some(queue));
        queue::enqueue(thread, queue, handle);
    } else {
        complete(thread, handle, NtStatus::INVALID_DEVICE_REQUEST, None);
    }
    Ok(handle)
}

/// How a request ended, once it has; it is deleted then.
pub fn outcome(thread: &Thread, request: u64) -> Option<Completion> {
    let completion = thread.with::<RequestData, _>(request, |request| request.completion.take())?;
    object::delete(thread, request);
    Some(completion)
}

/// Opens a file on a device: `EvtDeviceFileCreate`, if the driver gave it.
pub fn create_file(thread: &Thread, device: u64) -> Result<u64, NtStatus> {
    let (reachable, busy) = {
        let mut framework = lock_framework(thread.shared());
        let files = framework.all::<FileData>();
        let open = files.into_iter().any(|file| {
            framework
                .get::<FileData>(file)
                .is_ok_and(|file| file.device == device)
        });
        let Ok(data) = framework.get::<DeviceData>(device) else {
            return Err(NtStatus::DEVICE_NOT_READY);
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
    let kind = Kind::File(FileData { device });
    let file = create(thread, kind, attributes.flatten().as_ref(), Some(device))?;
    let callback = callbacks.map_or(0, |config: FileObjectConfig| config.create);
    if callback == 0 {
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
    thread.call_driver("EvtDeviceFileCreate", callback, [device, request, file]);
    let Some(completion) = outcome(thread, request) else {
        thread.stop(
            Rule::RequestNotCompleted,
            "EvtDeviceFileCreate returned without completing its request; the stand-in kernel \
             does not wait for a create request"
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

/// Closes a file: `EvtFileCleanup`, then `EvtFileClose`.
pub fn close_file(thread: &Thread, file: u64) {
    let device = thread.with::<FileData, _>(file, |file| file.device);
    let config = thread.with::<DeviceData, _>(device, |device| device.file_config());
    if let Some((config, _)) = config {
        for (name, callback) in [
            ("EvtFileCleanup", config.cleanup),
            ("EvtFileClose", config.close),
        ] {
            if callback != 0 {
                thread.call_driver(name, callback, [file]);
            }
        }
    }
    object::delete(thread, file);
}

/// Completes a request.
pub fn complete(thread: &Thread, handle: u64, status: NtStatus, information: Option<u64>) {
    let queue = thread.with::<RequestData, _>(handle, |request| {
        if request.completion.is_some() {
            return Err(describe(request));
        }
        let information = information.unwrap_or(request.information);
        // Errors carry no data back; warnings and successes do.
        let returned = if status.0.cast_unsigned() >> 30 == 3 {
            0
        } else {
            usize::try_from(information)
                .unwrap_or(usize::MAX)
                .min(request.output_length)
        };
        request.completion = Some(Completion {
            status,
            information,
            output: memory::read_bytes(request.buffer.address(), returned).unwrap_or_default(),
        });
        Ok(request.queue)
    });
    match queue {
        Ok(Some(queue)) => queue::completed(thread, queue),
        Ok(None) => {}
        Err(description) => {
            let call = thread.call();
            thread.stop(
                Rule::RequestCompletedTwice,
                format!(
                    "{} was called from {} for {description}, which had been completed",
                    call.name(),
                    thread.shared().place(call.return_address)
                ),
            );
        }
    }
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
    /// `WDF_REQUEST_TYPE`.
    const CREATE: u32 = 0;
    const READ: u32 = 3;
    const WRITE: u32 = 4;
    const DEVICE_CONTROL: u32 = 14;
    let thread = thread::current();
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
    0
}

extern "win64" fn retrieve_input(
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let thread = thread::current();
    let (address, available) = thread.with::<RequestData, _>(request, |request| {
        (request.buffer.address(), request.input_length())
    });
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
    let (address, available) = thread.with::<RequestData, _>(request, |request| {
        (request.buffer.address(), request.output_length())
    });
    retrieve(&thread, address, available, minimum, buffer, length).to_register()
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
