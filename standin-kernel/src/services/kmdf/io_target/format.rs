//! The formatting of requests for a target.

use super::buffers::{keep, of_memory};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus},
    services::kmdf::{
        io::ending::{must_not_be_under_way, release_format},
        state::{
            framework::{Context, Entries},
            outgoing::{Buffer, Format},
            request::{RequestData, RequestKind},
            target::{State, TargetData},
        },
    },
};

pub const ENTRIES: Entries = &[
    ("WdfIoTargetFormatRequestForRead", Routine::after_globals(format_read)),
    ("WdfIoTargetFormatRequestForWrite", Routine::after_globals(format_write)),
    ("WdfIoTargetFormatRequestForIoctl", Routine::after_globals(format_ioctl::<false>)),
    ("WdfIoTargetFormatRequestForInternalIoctl", Routine::after_globals(format_ioctl::<true>)),
    ("WdfIoTargetFormatRequestForInternalIoctlOthers", Routine::after_globals(format_others)),
];

/// Sets a request's format, replacing any previous format.
pub fn set_format(context: &Context, request: u64, format: Format) {
    must_not_be_under_way(context, request);
    let others = format.others.unwrap_or_default();
    for buffer in [format.input, format.output].iter().chain(&others) {
        keep(context, buffer);
    }
    release_format(context, request);
    context.with::<RequestData, _>(request, |request| {
        request.outgoing.format = Some(format);
    });
}

/// Returns an error if the target is closed. Requests cannot be formatted for a closed target.
pub fn must_be_open(context: &Context, target: u64) -> NtResult {
    context.with::<TargetData, _>(target, |target| match target.state {
        State::Started | State::Stopped | State::Purged if target.to.is_some() => Ok(()),
        _ => Err(NtStatus::INVALID_DEVICE_STATE),
    })
}

/// Formats a request with an input and an output.
fn format(
    context: &Context,
    target: u64,
    request: u64,
    kind: RequestKind,
    [input, output]: [NtResult<Buffer>; 2],
    offset: u64,
) -> NtResult {
    context.with::<RequestData, _>(request, |_| ());
    let (input, output) = (input?, output?);
    must_be_open(context, target)?;
    let format = Format { kind, input, output, offset, others: None, is_current_type: false };
    set_format(context, request, format);
    Ok(())
}

/// Returns the position on the device from the optional parameter at `address`.
pub fn read_offset(context: &Context, address: u64) -> u64 {
    if address == 0 { 0 } else { context.read(address) }
}

fn format_read(
    context: &Context,
    target: u64,
    request: u64,
    output: u64,
    part: u64,
    offset: u64,
) -> NtResult {
    let output = of_memory(context, output, part);
    let buffers = [Ok(Buffer::default()), output];
    let offset = read_offset(context, offset);
    format(context, target, request, RequestKind::Read, buffers, offset)
}

fn format_write(
    context: &Context,
    target: u64,
    request: u64,
    input: u64,
    part: u64,
    offset: u64,
) -> NtResult {
    let input = of_memory(context, input, part);
    let buffers = [input, Ok(Buffer::default())];
    let offset = read_offset(context, offset);
    format(context, target, request, RequestKind::Write, buffers, offset)
}

fn format_ioctl<const INTERNAL: bool>(
    context: &Context,
    target: u64,
    request: u64,
    code: u32,
    input: u64,
    input_part: u64,
    output: u64,
    output_part: u64,
) -> NtResult {
    let input = of_memory(context, input, input_part);
    let output = of_memory(context, output, output_part);
    let kind = if INTERNAL {
        RequestKind::InternalDeviceControl { code }
    } else {
        RequestKind::DeviceControl { code }
    };
    format(context, target, request, kind, [input, output], 0)
}

fn format_others(
    context: &Context,
    target: u64,
    request: Handle<RequestData>,
    code: u32,
    first: u64,
    first_part: u64,
    second: u64,
    second_part: u64,
    fourth: u64,
    fourth_part: u64,
) -> NtResult {
    request.check(context);
    let others = [
        of_memory(context, first, first_part)?,
        of_memory(context, second, second_part)?,
        of_memory(context, fourth, fourth_part)?,
    ];
    must_be_open(context, target)?;
    set_format(context, request.0, others_format(code, others));
    Ok(())
}

/// Returns the format of an internal device control that passes pointers.
pub fn others_format(code: u32, others: [Buffer; 3]) -> Format {
    Format {
        kind: RequestKind::InternalDeviceControl { code },
        input: Buffer::default(),
        output: Buffer::default(),
        offset: 0,
        others: Some(others),
        is_current_type: false,
    }
}
