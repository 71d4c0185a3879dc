//! The opening and closing of files.

use crate::{
    execution::routine::{At, Handle, routine},
    ground::{
        NtResult, NtStatus,
        abi::{FileObjectConfig, UnicodeString},
        arena::Block,
        rule::Rule,
    },
    services::{
        kmdf::{
            device::pnp::finish_surprise_removal,
            io::{
                halt::cancel_of_file,
                pass::{enter, is_filter},
                send::{make, make_file, outcome},
            },
            lifetime,
            state::{
                device::{Below, DeviceData, Presence, Unreachable, get_device, queue_for},
                file::{FileData, abandoned, is_open},
                framework::{Choices, Context, Data, Entries, ObjectRoutine},
                request::{EndedRequests, IoRequest, RequestData, RequestKind},
                simulated,
            },
            synchronization::{presentation, wait},
        },
        managers::create_parameters::CreateParameters,
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfFileObjectGetDevice", get_device::<FileData>),
    routine("WdfFileObjectGetFileName", file_get_name),
];

impl Data for FileData {
    const NAME: &'static str = "WDFFILEOBJECT";
    const CHOICES: Choices = Choices::SYNCHRONIZED;
    const REQUEST_ENDED: Option<ObjectRoutine> = Some(finish_close);

    fn is_frameworks(&self) -> bool {
        true
    }
}

/// Returns the reason that a device cannot be opened, if any.
pub fn why_unreachable(context: &Context, device: u64) -> Option<Unreachable> {
    if is_stack_reachable(context, top_of_stack(context, device)) {
        return None;
    }
    let mut framework = context.framework();
    let device = framework.get::<DeviceData>(device);
    device.map_or(Some(Unreachable::Removed), |device| device.why_unreachable())
}

/// Returns the highest device in the stack of a device.
fn top_of_stack(context: &Context, device: u64) -> u64 {
    let mut framework = context.framework();
    let devices = framework.all::<DeviceData>();
    let mut top = device;
    loop {
        let above = devices.iter().copied().find(|above| {
            framework
                .get::<DeviceData>(*above)
                .is_ok_and(|above| !above.is_control() && above.init.below == Below::Device(top))
        });
        match above {
            Some(above) => top = above,
            None => return top,
        }
    }
}

/// Returns whether any device in a stack can be opened. In a filter's stack, a device below the
/// filter has the name.
fn is_stack_reachable(context: &Context, top: u64) -> bool {
    let mut framework = context.framework();
    let mut at = top;
    loop {
        let Ok(device) = framework.get::<DeviceData>(at) else {
            return false;
        };
        match device.init.below {
            _ if device.presence != Presence::Present => return false,
            _ if device.is_reachable() => return true,
            Below::Device(lower) => at = lower,
            Below::Simulated(_) => return true,
            Below::Bus => return device.init.is_filter,
        }
    }
}

/// Opens a file on a device, at the top of the device's stack. Calls `EvtDeviceFileCreate` if the
/// driver has it. Otherwise, sends a create request to the queue for such requests. A filter that
/// has neither passes the request down. `name` is the part of the path after the device.
pub fn create_file(
    context: &Context,
    device: u64,
    name: &str,
    create: CreateParameters,
) -> NtResult<u64> {
    let request = IoRequest { create, ..IoRequest::new(RequestKind::Create, Vec::new(), 0) };
    create_file_by(context, device, name, &request)
}

/// Opens a file with the opener's create request. See [`create_file`].
pub fn create_file_by(
    context: &Context,
    device: u64,
    name: &str,
    request: &IoRequest,
) -> NtResult<u64> {
    if !context.framework().exists(device) {
        return Err(NtStatus::NO_SUCH_DEVICE);
    }
    let device = top_of_stack(context, device);
    let (open, exclusive) = {
        let mut framework = context.framework();
        let open = is_open(&mut framework, device);
        let Ok(data) = framework.get::<DeviceData>(device) else {
            return Err(NtStatus::NO_SUCH_DEVICE);
        };
        (open, data.is_exclusive())
    };
    if !is_stack_reachable(context, device) {
        return Err(NtStatus::DEVICE_NOT_READY);
    }
    if open && exclusive {
        return Err(NtStatus::ACCESS_DENIED);
    }
    let file = make_file(context, device, name)?;
    context.with::<FileData, _>(file, |file| file.create = request.create);
    let config = context.with::<DeviceData, _>(device, |device| device.file_config());
    if config.is_none_or(|(config, _)| config.evt_device_file_create == 0)
        && queue_for(context, device, RequestKind::Create).is_none()
        && !is_filter(context, device)
    {
        context.with::<FileData, _>(file, |file| file.is_opened = true);
        return Ok(file);
    }
    let request = make(context, device, Some(file), request)?;
    enter(context, device, request);
    let mut completion = None;
    wait::wait_until(context, None, |context| {
        completion = outcome(context, request);
        completion.is_some()
    });
    let Some(completion) = completion else {
        context.stop(
            Rule::NotProvided,
            "the driver leaves a create request pending, and no remaining work completes it; the \
             stand-in kernel does not provide opens that end in a later step, although a driver may \
             complete the request at any time"
                .to_owned(),
        );
    };
    if completion.status.is_success() {
        context.with::<FileData, _>(file, |file| file.is_opened = true);
        Ok(file)
    } else {
        lifetime::delete(context, file);
        Err(completion.status)
    }
}

/// Closes a file's last handle: calls `EvtFileCleanup`, cancels the file's queued requests and,
/// after the last request has ended, calls `EvtFileClose`. If the driver passes cleanup and close
/// down, the lower device is also notified. Does nothing if the file was deleted with its device.
pub fn close_file(context: &Context, file: u64) {
    if context.framework().get::<FileData>(file).is_err() {
        return;
    }
    clean_up(context, file);
    context.with::<FileData, _>(file, |file| file.closing = true);
    finish_close(context, file);
}

fn clean_up(context: &Context, file: u64) {
    let cleanup = file_config(context, file).map_or(0, |config| config.evt_file_cleanup);
    if cleanup != 0 {
        presentation::call(context, file, "EvtFileCleanup", cleanup, [handle_of(context, file)]);
    }
    cancel_of_file(context, file);
    match passes_to(context, file) {
        Below::Bus => {}
        Below::Simulated(device) => tell_simulated(context, device, RequestKind::Cleanup),
        Below::Device(lower) => clean_up(context, lower),
    }
}

/// Returns a file's handle for the driver of its device.
fn handle_of(context: &Context, file: u64) -> u64 {
    let device = context.with::<FileData, _>(file, |file| file.device);
    context.with::<DeviceData, _>(device, |device| device.handle_of(file))
}

/// Notifies a simulated device that a file is being closed. The device's answer has no effect.
fn tell_simulated(context: &Context, device: u64, kind: RequestKind) {
    let _ = simulated::give(context, device, 0, IoRequest::new(kind, Vec::new(), 0));
}

/// Returns the lower file or device that is notified of a file's cleanup and close.
fn passes_to(context: &Context, file: u64) -> Below {
    const FALSE: u32 = 0;
    const TRUE: u32 = 1;
    let (device, below) = context.with::<FileData, _>(file, |file| (file.device, file.below));
    let passes = match file_config(context, file).map(|config| config.auto_forward_cleanup_close) {
        Some(FALSE) => false,
        Some(TRUE) => true,
        _ => is_filter(context, device),
    };
    match below {
        Below::Device(lower) if !context.framework().exists(lower) => Below::Bus,
        below if passes => below,
        _ => Below::Bus,
    }
}

/// Closes a device's open files that their owners can no longer close, as if their processes had
/// ended.
pub fn close_abandoned(context: &Context, device: u64) {
    let files = abandoned(&mut context.framework(), device);
    for file in files {
        close_file(context, file);
    }
}

/// Returns the callbacks for closing a file.
fn file_config(context: &Context, file: u64) -> Option<FileObjectConfig> {
    let device = context.with::<FileData, _>(file, |file| file.device);
    let config = context.with::<DeviceData, _>(device, |device| device.file_config());
    config.map(|(config, _)| config)
}

/// Deletes a file whose last handle is closed and whose last request has ended.
fn finish_close(context: &Context, file: u64) {
    let is_over = {
        let mut framework = context.framework();
        let is_closing = framework.get::<FileData>(file).is_ok_and(|file| file.closing);
        is_closing
            && !framework.all::<RequestData>().into_iter().any(|request| {
                !framework.part::<EndedRequests>().0.contains_key(&request)
                    && framework
                        .get::<RequestData>(request)
                        .is_ok_and(|request| request.file == Some(file))
            })
    };
    if !is_over {
        return;
    }
    let device = context.with::<FileData, _>(file, |file| {
        file.closing = false;
        file.device
    });
    let close = file_config(context, file).map_or(0, |config| config.evt_file_close);
    let below = passes_to(context, file);
    if close != 0 {
        presentation::call(context, file, "EvtFileClose", close, [handle_of(context, file)]);
    }
    lifetime::delete(context, file);
    match below {
        Below::Bus => {}
        Below::Simulated(device) => tell_simulated(context, device, RequestKind::Close),
        Below::Device(lower) => {
            context.with::<FileData, _>(lower, |lower| lower.closing = true);
            finish_close(context, lower);
        }
    }
    finish_surprise_removal(context, device);
}

/// Returns the name as a counted string that is valid as long as the file exists.
fn file_get_name(context: &Context, file: Handle<FileData>) -> At<UnicodeString> {
    let (address, counted) = file.with(context, |file| {
        let structure =
            file.name_structure.get_or_insert_with(|| Block::zeroed(size_of::<UnicodeString>()));
        (structure.address(), file.name.counted())
    });
    context.write(address, &counted);
    At::new(address)
}
