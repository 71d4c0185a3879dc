//! Routines that give a driver access to its requests below the framework: IRPs, MDLs, and the
//! sender's own addresses.

use std::collections::HashMap;

use crate::{
    execution::routine::{At, Callback, Handle, Memory, Out, routine},
    ground::{NtResult, NtStatus, abi::Irp},
    services::kmdf::{
        io::{
            irp::{irp_of, mdl_of, request_of},
            pass,
            pass::Preprocess,
        },
        lifetime::{create, give},
        object::memory::MemoryData,
        state::{
            device::{DeviceData, DeviceInit, device_of},
            framework::{BadHandle, Context, Entries},
            request::{RequestData, RequestKind},
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfRequestWdmGetIrp", get_irp),
    routine("WdfRequestGetRequestorMode", get_mode),
    routine("WdfRequestIsFrom32BitProcess", is_from_32_bit),
    routine("WdfRequestGetRequestorProcessId", get_process),
    routine("WdfRequestIsReserved", is_reserved),
    routine("WdfRequestRetrieveInputWdmMdl", input_mdl),
    routine("WdfRequestRetrieveOutputWdmMdl", output_mdl),
    routine("WdfRequestRetrieveUnsafeUserInputBuffer", unsafe_buffer::<false>),
    routine("WdfRequestRetrieveUnsafeUserOutputBuffer", unsafe_buffer::<true>),
    routine("WdfRequestProbeAndLockUserBufferForRead", probe_for_read),
    routine("WdfRequestProbeAndLockUserBufferForWrite", probe_for_write),
    routine("WdfDeviceInitAssignWdmIrpPreprocessCallback", assign_preprocess),
    routine("WdfDeviceWdmDispatchPreprocessedIrp", dispatch_preprocessed),
];

fn get_irp(context: &Context, request: Handle<RequestData>) -> At<Irp> {
    At::new(irp_of(context, request.0))
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
    mdl: u64,
) -> NtResult {
    context.write(mdl, &0_u64);
    let found = context.with::<RequestData, _>(request, |request| {
        if !request.has_data() {
            Err(NtStatus::INVALID_PARAMETER)
        } else if request.is_neither {
            Err(NtStatus::INVALID_DEVICE_REQUEST)
        } else {
            which(request).map(|range| mdl_of(request, range))
        }
    });
    give(context, found, mdl)
}

fn input_mdl(context: &Context, request: Handle<RequestData>, mdl: At<u64>) -> NtResult {
    retrieve_mdl(context, request.0, RequestData::provided_input, mdl.0)
}

fn output_mdl(context: &Context, request: Handle<RequestData>, mdl: At<u64>) -> NtResult {
    retrieve_mdl(context, request.0, RequestData::provided_output, mdl.0)
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
    buffer: At<u64>,
    length: At<u64>,
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
    retrieve_unsafe(context, request.0, range, minimum, buffer.0, length.0)
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
    buffer: Memory,
    length: u64,
    memory: Out<MemoryData>,
) -> NtResult {
    let is_input = request.with(context, |request| {
        let (start, size) = request.input();
        (start..start.saturating_add(size)).contains(&buffer.0)
    });
    if is_input {
        probe(context, request.0, buffer.0, length, memory.0, RequestData::input)
    } else {
        probe(context, request.0, buffer.0, length, memory.0, RequestData::output)
    }
}

fn probe_for_write(
    context: &Context,
    request: Handle<RequestData>,
    buffer: Memory,
    length: u64,
    memory: Out<MemoryData>,
) -> NtResult {
    probe(context, request.0, buffer.0, length, memory.0, RequestData::output)
}

/// Sets the routine that receives the IRPs of a major function before the framework. Minor
/// functions are only for Plug and Play, power and WMI requests, which the stand-in kernel does not
/// send to KMDF devices.
fn assign_preprocess(
    context: &Context,
    init: Handle<DeviceInit>,
    routine: Callback,
    major: u8,
    minors: At<u8>,
    count: u32,
) -> NtStatus {
    /// `IRP_MJ_MAXIMUM_FUNCTION`.
    const MAXIMUM: u8 = 0x1B;
    let has_minors = count != 0;
    if major > MAXIMUM || routine == Callback(0) || has_minors == (minors.is_null()) {
        return NtStatus::INVALID_PARAMETER;
    }
    let is_new = init.with_init(context, |init| {
        let all: &mut HashMap<u8, u64> = &mut init.parts.get::<Preprocess>().0;
        let is_new = !all.contains_key(&major);
        if !has_minors {
            all.entry(major).or_insert(routine.0);
        }
        is_new
    });
    if is_new { NtStatus::SUCCESS } else { NtStatus::INVALID_DEVICE_REQUEST }
}

/// Passes an IRP to the framework after the driver has preprocessed it.
fn dispatch_preprocessed(context: &Context, device: Handle<DeviceData>, irp: At<Irp>) -> NtStatus {
    device.check(context);
    let request =
        request_of(context, irp.0).filter(|request| device_of(context, *request) == Some(device.0));
    let Some(request) = request else {
        context.stop_for_handle(&BadHandle {
            handle: irp.0,
            expected: "IRP that the device received",
            found: None,
        });
    };
    pass::enter_preprocessed(context, device.0, request);
    NtStatus::PENDING
}
