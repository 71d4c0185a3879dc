//! Routines that give a driver access to its requests below the framework: IRPs, MDLs, and the
//! sender's own addresses.

use std::collections::HashMap;

use super::{
    buffer::MemoryData,
    io::{
        irp::{irp_of, mdl_of, request_of},
        pass::{self, Preprocess},
    },
    object::{create, give},
    state::{
        device::{DeviceData, DeviceInit, device_of},
        framework::{BadHandle, Context, Entries},
        request::{RequestData, RequestKind},
    },
};
use crate::{
    execution::routine::{Handle, Routine},
    ground::{NtResult, NtStatus},
};

pub const ENTRIES: Entries = &[
    ("WdfRequestWdmGetIrp", Routine::after_globals(get_irp)),
    ("WdfRequestGetRequestorMode", Routine::after_globals(get_mode)),
    ("WdfRequestIsFrom32BitProcess", Routine::after_globals(is_from_32_bit)),
    ("WdfRequestGetRequestorProcessId", Routine::after_globals(get_process)),
    ("WdfRequestIsReserved", Routine::after_globals(is_reserved)),
    ("WdfRequestRetrieveInputWdmMdl", Routine::after_globals(input_mdl)),
    ("WdfRequestRetrieveOutputWdmMdl", Routine::after_globals(output_mdl)),
    ("WdfRequestRetrieveUnsafeUserInputBuffer", Routine::after_globals(unsafe_buffer::<false>)),
    ("WdfRequestRetrieveUnsafeUserOutputBuffer", Routine::after_globals(unsafe_buffer::<true>)),
    ("WdfRequestProbeAndLockUserBufferForRead", Routine::after_globals(probe_for_read)),
    ("WdfRequestProbeAndLockUserBufferForWrite", Routine::after_globals(probe_for_write)),
    ("WdfDeviceInitAssignWdmIrpPreprocessCallback", Routine::after_globals(assign_preprocess)),
    ("WdfDeviceWdmDispatchPreprocessedIrp", Routine::after_globals(dispatch_preprocessed)),
];

fn get_irp(context: &Context, request: u64) -> u64 {
    irp_of(context, request)
}

/// Returns `UserMode` for requests on a test's files, and `KernelMode` for drivers' requests.
fn get_mode(context: &Context, request: Handle<RequestData>) -> i8 {
    request.with(context, |request| i8::from(request.is_from_user))
}

fn is_from_32_bit(context: &Context, request: Handle<RequestData>) -> bool {
    request.check(context);
    false
}

/// Returns the process that sent a request or, for a driver's request, in which the driver created
/// it.
fn get_process(context: &Context, request: Handle<RequestData>) -> u32 {
    request.with(context, |request| request.process)
}

/// Returns `FALSE`, because only a queue with a forward progress policy has reserved requests.
fn is_reserved(context: &Context, request: Handle<RequestData>) -> bool {
    request.check(context);
    false
}

/// Returns the MDL of a buffer, if the framework provides the buffer.
fn retrieve_mdl(
    context: &Context,
    request: u64,
    which: impl FnOnce(&mut RequestData) -> NtResult<(u64, u64)>,
    to: u64,
) -> NtResult {
    context.write(to, &0_u64);
    let found = context.with::<RequestData, _>(request, |request| {
        if !request.has_data() {
            Err(NtStatus::INVALID_PARAMETER)
        } else if request.is_neither {
            Err(NtStatus::INVALID_DEVICE_REQUEST)
        } else {
            which(request).map(|range| mdl_of(request, range))
        }
    });
    give(context, found, to)
}

fn input_mdl(context: &Context, request: u64, mdl: u64) -> NtResult {
    retrieve_mdl(context, request, RequestData::provided_input, mdl)
}

fn output_mdl(context: &Context, request: u64, mdl: u64) -> NtResult {
    retrieve_mdl(context, request, RequestData::provided_output, mdl)
}

/// Returns the sender's own address of a buffer. Only `EvtIoInCallerContext` can use it. Fails for
/// a request without such a buffer, and for an empty buffer unless the driver requires no bytes.
fn retrieve_unsafe(
    context: &Context,
    request: u64,
    range: Option<(u64, u64)>,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> NtResult {
    context.write(buffer, &0_u64);
    context.write_optional(length, &0_u64);
    let is_allowed = context.with::<RequestData, _>(request, |request| {
        request.is_neither && request.is_in_caller_context
    });
    let Some((address, available)) = range.filter(|_| is_allowed) else {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    };
    if available < minimum {
        return Err(NtStatus::BUFFER_TOO_SMALL);
    }
    // An empty buffer has no address.
    let address = if available == 0 { 0 } else { address };
    context.write(buffer, &address);
    context.write_optional(length, &available);
    Ok(())
}

fn unsafe_buffer<const IS_OUTPUT: bool>(
    context: &Context,
    request: Handle<RequestData>,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> NtResult {
    let range = request.with(context, |request| match request.kind {
        RequestKind::Read | RequestKind::DeviceControl { .. } if IS_OUTPUT => {
            Some(request.output())
        }
        RequestKind::Write | RequestKind::DeviceControl { .. } if !IS_OUTPUT => {
            Some(request.input())
        }
        _ => None,
    });
    retrieve_unsafe(context, request.0, range, minimum, buffer, length)
}

/// Returns a memory object for a range in the sender's buffers.
fn probe(
    context: &Context,
    request: u64,
    address: u64,
    length: u64,
    memory: u64,
    which: impl Fn(&RequestData) -> (u64, u64),
) -> NtResult {
    let thread = context.host().thread_object(context.thread());
    let checked = context.with::<RequestData, _>(request, |request| {
        if length == 0 {
            return Err(NtStatus::INVALID_USER_BUFFER);
        }
        if request.is_from_user && request.thread != thread {
            return Err(NtStatus::ACCESS_VIOLATION);
        }
        let (start, size) = which(request);
        let end = address.checked_add(length);
        let limit = start.saturating_add(size);
        let is_inside = address >= start && end.is_some_and(|end| end <= limit);
        is_inside.then_some(()).ok_or(NtStatus::ACCESS_VIOLATION)
    });
    let made = checked.and_then(|()| {
        let data = MemoryData::of_request(address, length);
        create(context, data, None, Some(request))
    });
    give(context, made, memory)
}

/// Gives the driver access to the memory that it may read: the input, or the previous contents of
/// the output buffer.
fn probe_for_read(
    context: &Context,
    request: Handle<RequestData>,
    buffer: u64,
    length: u64,
    memory: u64,
) -> NtResult {
    let is_input = request.with(context, |request| {
        let (start, size) = request.input();
        (start..start.saturating_add(size)).contains(&buffer)
    });
    if is_input {
        probe(context, request.0, buffer, length, memory, RequestData::input)
    } else {
        probe(context, request.0, buffer, length, memory, RequestData::output)
    }
}

fn probe_for_write(
    context: &Context,
    request: u64,
    buffer: u64,
    length: u64,
    memory: u64,
) -> NtResult {
    probe(context, request, buffer, length, memory, RequestData::output)
}

/// Sets the routine that receives the IRPs of a major function before the framework. Minor
/// functions are only for Plug and Play, power and WMI requests, which the stand-in kernel does not
/// send to KMDF devices.
fn assign_preprocess(
    context: &Context,
    init: Handle<DeviceInit>,
    routine: u64,
    major: u8,
    minors: u64,
    count: u32,
) -> NtStatus {
    /// `IRP_MJ_MAXIMUM_FUNCTION`.
    const MAXIMUM: u8 = 0x1B;
    let has_minors = count != 0;
    if major > MAXIMUM || routine == 0 || has_minors == (minors == 0) {
        return NtStatus::INVALID_PARAMETER;
    }
    let is_new = init.with_init(context, |init| {
        let all: &mut HashMap<u8, u64> = &mut init.parts.get::<Preprocess>().0;
        let is_new = has_minors || !all.contains_key(&major);
        if !has_minors {
            all.entry(major).or_insert(routine);
        }
        is_new
    });
    if is_new { NtStatus::SUCCESS } else { NtStatus::INVALID_DEVICE_REQUEST }
}

/// Passes an IRP to the framework after the driver has preprocessed it.
fn dispatch_preprocessed(context: &Context, device: Handle<DeviceData>, irp: u64) -> NtStatus {
    device.check(context);
    let request =
        request_of(context, irp).filter(|request| device_of(context, *request) == Some(device.0));
    let Some(request) = request else {
        context.stop_for_handle(&BadHandle {
            handle: irp,
            expected: "IRP that the device received",
            found: None,
        });
    };
    pass::enter_preprocessed(context, device.0, request);
    NtStatus::PENDING
}
