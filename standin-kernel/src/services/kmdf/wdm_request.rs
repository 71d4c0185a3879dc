//! The routines by which a driver looks below the framework's requests: IRPs, MDLs, and the sender's
//! own addresses.

use std::collections::HashMap;

use super::{
    buffer::MemoryData,
    device::init::with_init,
    io::{
        irp::{irp_of, mdl_of, request_of},
        pass::{self, Preprocess},
    },
    object::{create, give},
    state::{
        device::{DeviceData, device_of},
        framework::{BadHandle, Context, Entries},
        request::{RequestData, RequestKind},
    },
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::status::NtStatus,
};

pub const ENTRIES: Entries = &[
    ("WdfRequestWdmGetIrp", Routine::Two(get_irp)),
    ("WdfRequestGetRequestorMode", Routine::Two(get_mode)),
    ("WdfRequestIsFrom32BitProcess", Routine::Two(is_from_32_bit)),
    ("WdfRequestGetRequestorProcessId", Routine::Two(get_process)),
    ("WdfRequestIsReserved", Routine::Two(is_reserved)),
    ("WdfRequestRetrieveInputWdmMdl", Routine::Three(input_mdl)),
    ("WdfRequestRetrieveOutputWdmMdl", Routine::Three(output_mdl)),
    ("WdfRequestRetrieveUnsafeUserInputBuffer", Routine::Five(unsafe_input)),
    ("WdfRequestRetrieveUnsafeUserOutputBuffer", Routine::Five(unsafe_output)),
    ("WdfRequestProbeAndLockUserBufferForRead", Routine::Five(probe_for_read)),
    ("WdfRequestProbeAndLockUserBufferForWrite", Routine::Five(probe_for_write)),
    ("WdfDeviceInitAssignWdmIrpPreprocessCallback", Routine::Six(assign_preprocess)),
    ("WdfDeviceWdmDispatchPreprocessedIrp", Routine::Three(dispatch_preprocessed)),
];

fn get_irp(context: &Context, _globals: u64, request: u64) -> u64 {
    irp_of(context, request)
}

/// Returns `UserMode` for the requests of a test's files, and `KernelMode` for those of drivers.
fn get_mode(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, |request| u64::from(request.is_from_user))
}

fn is_from_32_bit(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, |_| ());
    0
}

/// Returns the process that sent a request, or in which a driver created it.
fn get_process(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, |request| u64::from(request.process))
}

/// Returns `FALSE`: only a queue with a policy for forward progress has reserved requests.
fn is_reserved(context: &Context, _globals: u64, request: u64) -> u64 {
    context.with::<RequestData, _>(request, |_| ());
    0
}

/// Returns the MDL of a buffer, if the framework provides the buffer.
fn retrieve_mdl(
    context: &Context,
    request: u64,
    which: impl FnOnce(&RequestData) -> (u64, u64),
    to: u64,
) -> u64 {
    let found = context.with::<RequestData, _>(request, |request| {
        if !request.has_buffers() {
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        }
        let range = which(request);
        if range.1 == 0 {
            return Err(NtStatus::BUFFER_TOO_SMALL);
        }
        Ok(mdl_of(request, range))
    });
    give(context, found, to)
}

fn input_mdl(context: &Context, _globals: u64, request: u64, mdl: u64) -> u64 {
    retrieve_mdl(context, request, RequestData::input, mdl)
}

fn output_mdl(context: &Context, _globals: u64, request: u64, mdl: u64) -> u64 {
    retrieve_mdl(context, request, RequestData::output, mdl)
}

/// Returns the sender's own address of a buffer, which only `EvtIoInCallerContext` may use. There is
/// none of a request without such a buffer. An empty buffer is none to complain of, if the driver needs
/// no byte of it.
fn retrieve_unsafe(
    context: &Context,
    request: u64,
    range: Option<(u64, u64)>,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    context.write(buffer, &0_u64);
    if length != 0 {
        context.write(length, &0_u64);
    }
    let is_allowed = context.with::<RequestData, _>(request, |request| {
        request.is_neither && request.is_in_caller_context
    });
    let Some((address, available)) = range.filter(|_| is_allowed) else {
        return NtStatus::INVALID_DEVICE_REQUEST.to_register();
    };
    if available < minimum {
        return NtStatus::BUFFER_TOO_SMALL.to_register();
    }
    // An empty buffer has no address.
    let address = if available == 0 { 0 } else { address };
    context.write(buffer, &address);
    if length != 0 {
        context.write(length, &available);
    }
    NtStatus::SUCCESS.to_register()
}

fn unsafe_input(
    context: &Context,
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let range = context.with::<RequestData, _>(request, |request| match request.kind {
        RequestKind::Write | RequestKind::DeviceControl { .. } => Some(request.input()),
        _ => None,
    });
    retrieve_unsafe(context, request, range, minimum, buffer, length)
}

fn unsafe_output(
    context: &Context,
    _globals: u64,
    request: u64,
    minimum: u64,
    buffer: u64,
    length: u64,
) -> u64 {
    let range = context.with::<RequestData, _>(request, |request| match request.kind {
        RequestKind::Read | RequestKind::DeviceControl { .. } => Some(request.output()),
        _ => None,
    });
    retrieve_unsafe(context, request, range, minimum, buffer, length)
}

/// Returns a memory object for a range of the sender's buffers.
fn probe(
    context: &Context,
    request: u64,
    address: u64,
    length: u64,
    memory: u64,
    which: impl Fn(&RequestData) -> (u64, u64),
) -> u64 {
    let checked = context.with::<RequestData, _>(request, |request| {
        if length == 0 {
            return Err(NtStatus::INVALID_USER_BUFFER);
        }
        if !request.is_in_caller_context {
            return Err(NtStatus::INVALID_DEVICE_REQUEST);
        }
        let (start, size) = which(request);
        let end = address.checked_add(length);
        let limit = start.saturating_add(size);
        let is_inside = address >= start && end.is_some_and(|end| end <= limit);
        is_inside.then_some(()).ok_or(NtStatus::ACCESS_VIOLATION)
    });
    let made = checked.and_then(|()| {
        let data = MemoryData::of_others(address, length);
        create(context, data, None, Some(request))
    });
    give(context, made, memory)
}

/// Gives access to what the sender lets the driver read: the input, or the output buffer's old
/// contents.
fn probe_for_read(
    context: &Context,
    _globals: u64,
    request: u64,
    buffer: u64,
    length: u64,
    memory: u64,
) -> u64 {
    let is_input = context.with::<RequestData, _>(request, |request| {
        let (start, size) = request.input();
        (start..start.saturating_add(size)).contains(&buffer)
    });
    if is_input {
        probe(context, request, buffer, length, memory, RequestData::input)
    } else {
        probe(context, request, buffer, length, memory, RequestData::output)
    }
}

fn probe_for_write(
    context: &Context,
    _globals: u64,
    request: u64,
    buffer: u64,
    length: u64,
    memory: u64,
) -> u64 {
    probe(context, request, buffer, length, memory, RequestData::output)
}

/// Sets the routine that sees the IRPs of a major function before the framework. Minor functions are
/// those of plug and play, power and WMI, which the stand-in kernel does not send.
fn assign_preprocess(
    context: &Context,
    _globals: u64,
    init: u64,
    routine: u64,
    major: u64,
    minors: u64,
    count: u64,
) -> u64 {
    /// `IRP_MJ_MAXIMUM_FUNCTION`.
    const MAXIMUM: u8 = 0x1B;
    let [major, ..] = major.to_le_bytes();
    let has_minors = low_half(count) != 0;
    if major > MAXIMUM || routine == 0 || has_minors == (minors == 0) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let is_new = with_init(context, init, |init| {
        let all: &mut HashMap<u8, u64> = &mut init.parts.get::<Preprocess>().0;
        let is_new = has_minors || !all.contains_key(&major);
        if !has_minors {
            all.entry(major).or_insert(routine);
        }
        is_new
    });
    if is_new {
        NtStatus::SUCCESS.to_register()
    } else {
        NtStatus::INVALID_DEVICE_REQUEST.to_register()
    }
}

/// Gives an IRP to the framework after the driver has seen it.
fn dispatch_preprocessed(context: &Context, _globals: u64, device: u64, irp: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let request =
        request_of(context, irp).filter(|request| device_of(context, *request) == Some(device));
    let Some(request) = request else {
        context.stop_for_handle(&BadHandle {
            handle: irp,
            expected: "IRP that the device received",
            found: None,
        });
    };
    pass::enter_preprocessed(context, device, request);
    NtStatus::PENDING.to_register()
}
