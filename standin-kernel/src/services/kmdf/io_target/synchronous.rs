//! Routines that format a request, send it, and wait for its completion.

use super::{
    buffers::of_descriptor,
    format::{must_be_open, others_format, read_offset, set_format},
    requests::created,
    submit::{read_options, submit, wait_for},
};
use crate::{
    execution::routine::{At, Handle, routine},
    ground::{
        NtResult, NtStatus,
        abi::{MemoryDescriptor, SendOptions},
    },
    services::kmdf::{
        io::ending::{must_not_be_under_way, release_format},
        lifetime,
        lifetime::create,
        state::{
            framework::{Context, Entries},
            outgoing::{Buffer, Format},
            request::{RequestData, RequestKind},
            target::TargetData,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfIoTargetSendReadSynchronously", read),
    routine("WdfIoTargetSendWriteSynchronously", write),
    routine("WdfIoTargetSendIoctlSynchronously", ioctl::<false>),
    routine("WdfIoTargetSendInternalIoctlSynchronously", ioctl::<true>),
    routine("WdfIoTargetSendInternalIoctlOthersSynchronously", others),
];

/// Sends a request that the driver or the framework created, and waits for its completion.
/// `transferred` is the address for the number of transferred bytes, or 0.
fn send(
    context: &Context,
    [target, request, options, transferred]: [u64; 4],
    format: NtResult<Format>,
) -> NtResult<NtStatus> {
    context.with::<TargetData, _>(target, |_| ());
    if request != 0 {
        context.with::<RequestData, _>(request, |_| ());
        must_not_be_under_way(context, request);
    }
    let options = read_options(context, options)?;
    let format = format?;
    must_be_open(context, target)?;
    context.write_optional(transferred, &0_u64);
    let own =
        if request == 0 { create(context, created(context), None, Some(target))? } else { request };
    set_format(context, own, format);
    let sent = submit(context, own, target, options, true).map(|()| {
        wait_for(context, own, options.deadline);
        context
            .with::<RequestData, _>(own, |request| (request.outgoing.status, request.information))
    });
    if request == 0 {
        lifetime::delete(context, own);
    } else {
        release_format(context, own);
    }
    if let Err(status) = sent
        && request != 0
    {
        context.with::<RequestData, _>(request, |request| request.outgoing.status = Some(status));
    }
    let (status, information) = sent?;
    context.write_optional(transferred, &information);
    Ok(status.unwrap_or(NtStatus::SUCCESS))
}

/// Returns the format that `read` creates from the descriptors.
fn with_descriptors(
    context: &Context,
    kind: RequestKind,
    input: u64,
    output: u64,
    offset: u64,
) -> NtResult<Format> {
    Ok(Format {
        kind,
        input: of_descriptor(context, input)?,
        output: of_descriptor(context, output)?,
        offset,
        others: None,
        is_current_type: false,
    })
}

fn read(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    output: At<MemoryDescriptor>,
    offset: At<i64>,
    options: At<SendOptions>,
    bytes: At<u64>,
) -> NtResult<NtStatus> {
    let offset = read_offset(context, offset.0);
    let format = with_descriptors(context, RequestKind::Read, 0, output.0, offset);
    send(context, [target.0, request.0, options.0, bytes.0], format)
}

fn write(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    input: At<MemoryDescriptor>,
    offset: At<i64>,
    options: At<SendOptions>,
    bytes: At<u64>,
) -> NtResult<NtStatus> {
    let offset = read_offset(context, offset.0);
    let format = with_descriptors(context, RequestKind::Write, input.0, 0, offset);
    send(context, [target.0, request.0, options.0, bytes.0], format)
}

fn ioctl<const INTERNAL: bool>(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    code: u32,
    input: At<MemoryDescriptor>,
    output: At<MemoryDescriptor>,
    options: At<SendOptions>,
    bytes: At<u64>,
) -> NtResult<NtStatus> {
    let kind = if INTERNAL {
        RequestKind::InternalDeviceControl { code }
    } else {
        RequestKind::DeviceControl { code }
    };
    let format = with_descriptors(context, kind, input.0, output.0, 0);
    send(context, [target.0, request.0, options.0, bytes.0], format)
}

fn others(
    context: &Context,
    target: Handle<TargetData>,
    request: Handle<RequestData>,
    code: u32,
    first: At<MemoryDescriptor>,
    second: At<MemoryDescriptor>,
    fourth: At<MemoryDescriptor>,
    options: At<SendOptions>,
    bytes: At<u64>,
) -> NtResult<NtStatus> {
    let buffer = |descriptor| -> NtResult<Buffer> { of_descriptor(context, descriptor) };
    let format = buffer(first.0).and_then(|first| {
        let others = [first, buffer(second.0)?, buffer(fourth.0)?];
        Ok(others_format(code, others))
    });
    send(context, [target.0, request.0, options.0, bytes.0], format)
}
