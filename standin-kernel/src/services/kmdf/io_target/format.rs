//! The formatting of requests for a target.

use super::buffers::{keep, of_memory};
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{NtResult, NtStatus, abi::MemoryOffset},
    services::kmdf::{
        io::ending::{must_not_be_under_way, release_format},
        object::memory::MemoryData,
        state::{
            framework::{Context, Entries},
            outgoing::{Buffer, Format},
            request::{RequestData, RequestKind},
            target::{State, TargetData},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfIoTargetFormatRequestForRead", format_read),
    routine("WdfIoTargetFormatRequestForWrite", format_write),
    routine("WdfIoTargetFormatRequestForIoctl", format_ioctl::<false>),
    routine("WdfIoTargetFormatRequestForInternalIoctl", format_ioctl::<true>),
    routine("WdfIoTargetFormatRequestForInternalIoctlOthers", format_others),
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
        request.outgoing.is_spent = false;
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
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    output: Handle<MemoryData>,
    part: At<MemoryOffset>,
    offset: At<i64>,
) -> NtResult {
    let output = of_memory(context, output.0, part.0);
    let buffers = [Ok(Buffer::default()), output];
    let offset = read_offset(context, offset.0);
    format(context, target.0, request.0, RequestKind::Read, buffers, offset)
}

fn format_write(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    input: Handle<MemoryData>,
    part: At<MemoryOffset>,
    offset: At<i64>,
) -> NtResult {
    let input = of_memory(context, input.0, part.0);
    let buffers = [input, Ok(Buffer::default())];
    let offset = read_offset(context, offset.0);
    format(context, target.0, request.0, RequestKind::Write, buffers, offset)
}

fn format_ioctl<const INTERNAL: bool>(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    code: u32,
    input: Handle<MemoryData>,
    input_part: At<MemoryOffset>,
    output: Handle<MemoryData>,
    output_part: At<MemoryOffset>,
) -> NtResult {
    let input = of_memory(context, input.0, input_part.0);
    let output = of_memory(context, output.0, output_part.0);
    let kind = if INTERNAL {
        RequestKind::InternalDeviceControl { code }
    } else {
        RequestKind::DeviceControl { code }
    };
    format(context, target.0, request.0, kind, [input, output], 0)
}

fn format_others(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    code: u32,
    first: Handle<MemoryData>,
    first_part: At<MemoryOffset>,
    second: Handle<MemoryData>,
    second_part: At<MemoryOffset>,
    fourth: Handle<MemoryData>,
    fourth_part: At<MemoryOffset>,
) -> NtResult {
    request.check(context);
    let others = [
        of_memory(context, first.0, first_part.0)?,
        of_memory(context, second.0, second_part.0)?,
        of_memory(context, fourth.0, fourth_part.0)?,
    ];
    must_be_open(context, target.0)?;
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
