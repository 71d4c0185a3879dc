//! The routines that format a request, send it and wait for it.

use super::{
    buffers::of_descriptor,
    format::{others_format, read_offset, set_format},
    requests::created,
    submit::{SEND_AND_FORGET, read_options, submit, wait_for},
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::status::NtStatus,
    services::kmdf::{
        io::{ending::must_not_be_under_way, pass::release_format},
        object::{self, create},
        state::{
            framework::{Context, Entries},
            outgoing::{Buffer, Format},
            request::{RequestData, RequestKind},
            target::TargetData,
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfIoTargetSendReadSynchronously", Routine::Seven(read)),
    ("WdfIoTargetSendWriteSynchronously", Routine::Seven(write)),
    ("WdfIoTargetSendIoctlSynchronously", Routine::Eight(ioctl)),
    ("WdfIoTargetSendInternalIoctlSynchronously", Routine::Eight(internal_ioctl)),
    ("WdfIoTargetSendInternalIoctlOthersSynchronously", Routine::Nine(others)),
];

/// Sends a request of the driver's, or one of the framework's own, and waits for it. `transferred` is
/// the address for the number of bytes, or 0.
fn send(
    context: &Context,
    [target, request, options, transferred]: [u64; 4],
    format: Result<Format, NtStatus>,
) -> u64 {
    context.with::<TargetData, _>(target, |_| ());
    if transferred != 0 {
        context.write(transferred, &0_u64);
    }
    if request != 0 {
        context.with::<RequestData, _>(request, |_| ());
        must_not_be_under_way(context, request);
    }
    let options = read_options(context, options).and_then(|options| {
        if options.flags & SEND_AND_FORGET == 0 {
            Ok(options)
        } else {
            Err(NtStatus::INVALID_PARAMETER)
        }
    });
    let (format, options) = match (format, options) {
        (Ok(format), Ok(options)) => (format, options),
        (Err(status), _) | (_, Err(status)) => return status.to_register(),
    };
    let own = if request == 0 {
        match create(context, created(context), None, Some(target)) {
            Ok(own) => own,
            Err(status) => return status.to_register(),
        }
    } else {
        request
    };
    set_format(context, own, format);
    let sent = submit(context, own, target, options, true).map(|()| {
        wait_for(context, own, options.deadline);
        context
            .with::<RequestData, _>(own, |request| (request.outgoing.status, request.information))
    });
    if request == 0 {
        object::delete(context, own);
    } else {
        release_format(context, own);
    }
    match sent {
        Ok((status, information)) => {
            let status = status.unwrap_or(NtStatus::SUCCESS);
            if transferred != 0 && status.is_success() {
                context.write(transferred, &information);
            }
            status.to_register()
        }
        Err(status) => {
            if request != 0 {
                context.with::<RequestData, _>(request, |request| {
                    request.outgoing.status = Some(status);
                });
            }
            status.to_register()
        }
    }
}

/// Returns a format from descriptors, as the caller's `read` makes it.
fn with_descriptors(
    context: &Context,
    kind: RequestKind,
    input: u64,
    output: u64,
    offset: u64,
) -> Result<Format, NtStatus> {
    Ok(Format {
        kind,
        input: of_descriptor(context, input)?,
        output: of_descriptor(context, output)?,
        offset,
        others: None,
        is_current_type: false,
    })
}

fn read(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, target, request, output, offset, options, bytes] = arguments;
    let offset = read_offset(context, offset);
    let format = with_descriptors(context, RequestKind::Read, 0, output, offset);
    send(context, [target, request, options, bytes], format)
}

fn write(context: &Context, arguments: [u64; 7]) -> u64 {
    let [_globals, target, request, input, offset, options, bytes] = arguments;
    let offset = read_offset(context, offset);
    let format = with_descriptors(context, RequestKind::Write, input, 0, offset);
    send(context, [target, request, options, bytes], format)
}

fn ioctl(context: &Context, arguments: [u64; 8]) -> u64 {
    let [_globals, target, request, code, input, output, options, bytes] = arguments;
    let code = low_half(code);
    let kind = RequestKind::DeviceControl { code };
    let format = with_descriptors(context, kind, input, output, 0);
    send(context, [target, request, options, bytes], format)
}

fn internal_ioctl(context: &Context, arguments: [u64; 8]) -> u64 {
    let [_globals, target, request, code, input, output, options, bytes] = arguments;
    let code = low_half(code);
    let kind = RequestKind::InternalDeviceControl { code };
    let format = with_descriptors(context, kind, input, output, 0);
    send(context, [target, request, options, bytes], format)
}

fn others(context: &Context, arguments: [u64; 9]) -> u64 {
    let [_globals, target, request, code, first, second, fourth, options, bytes] = arguments;
    let buffer = |descriptor| -> Result<Buffer, NtStatus> { of_descriptor(context, descriptor) };
    let format = buffer(first).and_then(|first| {
        let others = [first, buffer(second)?, buffer(fourth)?];
        Ok(others_format(low_half(code), others))
    });
    send(context, [target, request, options, bytes], format)
}
