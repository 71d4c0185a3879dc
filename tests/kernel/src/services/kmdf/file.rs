//! The opening and closing of files.

use super::{
    device::pnp::finish_surprise_removal,
    io::{
        halt::cancel_of_file,
        send::{make, outcome, send},
    },
    object::{self, create},
    state::{
        device::{DeviceData, Unreachable, device_of, queue_for},
        file::{FileData, abandoned, is_open},
        framework::{Context, Data, Entries, ObjectRoutine},
        request::{EndedRequests, IoRequest, RequestData, RequestKind},
        text::TextData,
    },
    wait,
};
use crate::{
    execution::routine::Routine,
    ground::{
        abi::{FileObjectConfig, UnicodeString},
        arena::Block,
        rule::Rule,
        status::NtStatus,
    },
};

pub const ENTRIES: Entries = &[
    ("WdfFileObjectGetDevice", Routine::Two(file_get_device)),
    ("WdfFileObjectGetFileName", Routine::Two(file_get_name)),
];

impl Data for FileData {
    const NAME: &'static str = "WDFFILEOBJECT";
    const REQUEST_ENDED: Option<ObjectRoutine> = Some(finish_close);

    fn is_frameworks(&self) -> bool {
        true
    }
}

/// Returns the reason that nobody can open a device, if there is one.
pub fn why_unreachable(context: &Context, device: u64) -> Option<Unreachable> {
    let mut framework = context.framework();
    let device = framework.get::<DeviceData>(device);
    device.map_or(Some(Unreachable::Removed), |device| {
        device.why_unreachable()
    })
}

/// Opens a file on a device: calls `EvtDeviceFileCreate` if the driver has it, or else sends a
/// create request to the queue for such requests, if there is one. The name is the part of the
/// path after the device.
pub fn create_file(context: &Context, device: u64, name: &str) -> Result<u64, NtStatus> {
    let (reachable, busy) = {
        let mut framework = context.framework();
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
    let config = context.with::<DeviceData, _>(device, |device| device.file_config());
    let (callbacks, attributes) = config.unzip();
    let data = FileData {
        device,
        name: TextData::new(name).ok_or(NtStatus::INVALID_PARAMETER)?,
        name_structure: None,
        closing: false,
        abandoned: false,
    };
    let file = create(context, data, attributes.flatten().as_ref(), Some(device))?;
    let callback = callbacks.map_or(0, |config: FileObjectConfig| config.create);
    if callback == 0 && queue_for(context, device, RequestKind::Create).is_none() {
        return Ok(file);
    }
    let request = make(
        context,
        device,
        Some(file),
        &IoRequest {
            kind: RequestKind::Create,
            input: Vec::new(),
            output_length: 0,
        },
    )?;
    if callback == 0 {
        send(context, device, request, RequestKind::Create);
    } else {
        context.call_driver("EvtDeviceFileCreate", callback, [device, request, file]);
    }
    let mut completion = None;
    wait::wait_until(context, None, |context| {
        completion = outcome(context, request);
        completion.is_some()
    });
    let Some(completion) = completion else {
        context.stop(
            Rule::RequestNotCompleted,
            "the driver did not complete a create request during the open; the stand-in kernel \
             does not support completing it later"
                .to_owned(),
        );
    };
    if completion.status.is_success() {
        Ok(file)
    } else {
        object::delete(context, file);
        Err(completion.status)
    }
}

/// Closes a file's last handle: calls `EvtFileCleanup`, cancels the file's requests that wait
/// in queues, and after the last request has ended, calls `EvtFileClose`. Has no effect on a file that
/// is gone with its device.
pub fn close_file(context: &Context, file: u64) {
    if context.framework().get::<FileData>(file).is_err() {
        return;
    }
    let cleanup = file_config(context, file).map_or(0, |config| config.cleanup);
    if cleanup != 0 {
        context.call_driver("EvtFileCleanup", cleanup, [file]);
    }
    cancel_of_file(context, file);
    context.with::<FileData, _>(file, |file| file.closing = true);
    finish_close(context, file);
}

/// Closes a device's files that nobody else can close any more, as at the end of their process.
pub fn close_abandoned(context: &Context, device: u64) {
    let files = abandoned(&mut context.framework(), device);
    for file in files {
        close_file(context, file);
    }
}

/// Returns the callbacks for the closing of a file.
fn file_config(context: &Context, file: u64) -> Option<FileObjectConfig> {
    let device = context.with::<FileData, _>(file, |file| file.device);
    let config = context.with::<DeviceData, _>(device, |device| device.file_config());
    config.map(|(config, _)| config)
}

/// Deletes a file whose last handle is closed and whose last request has ended.
fn finish_close(context: &Context, file: u64) {
    let is_over = {
        let mut framework = context.framework();
        let is_closing = framework
            .get::<FileData>(file)
            .is_ok_and(|file| file.closing);
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
    let close = file_config(context, file).map_or(0, |config| config.close);
    if close != 0 {
        context.call_driver("EvtFileClose", close, [file]);
    }
    object::delete(context, file);
    finish_surprise_removal(context, device);
}

fn file_get_device(context: &Context, _globals: u64, file: u64) -> u64 {
    context.with::<FileData, _>(file, |_| ());
    device_of(context, file).unwrap_or(0)
}

/// Returns the name as a counted string that lives as long as the file.
fn file_get_name(context: &Context, _globals: u64, file: u64) -> u64 {
    let (address, counted) = context.with::<FileData, _>(file, |file| {
        let structure = file
            .name_structure
            .get_or_insert_with(|| Block::zeroed(size_of::<UnicodeString>()));
        (structure.address(), file.name.counted())
    });
    context.write(address, &counted);
    address
}
