//! IRPs that a driver dispatches itself: callbacks receive reads, writes and device controls as IRPs,
//! and choose their queues.

use super::{directed::Callbacks, dispatch, ending, irp::request_of, pass};
use crate::{
    execution::routine::{At, Callback, Handle, Memory, routine},
    ground::{NtStatus, abi::Irp, rule::Rule},
    services::kmdf::{
        binding::DriverData,
        state::{
            device::{DeviceData, device_of},
            framework::{BadHandle, Context, Entries},
            queue::QueueData,
            request::RequestData,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceConfigureWdmIrpDispatchCallback", configure),
    routine("WdfDeviceWdmDispatchIrp", dispatch_irp),
    routine("WdfDeviceWdmDispatchIrpToIoQueue", dispatch_to_queue),
];

/// The major functions for which callbacks can be set: read, write, and the device controls.
const DIRECTED: [u8; 4] = [3, 4, 14, 15];

/// `WDF_DISPATCH_IRP_TO_IO_QUEUE_PREPROCESSED_IRP` and
/// `WDF_DISPATCH_IRP_TO_IO_QUEUE_INVOKE_INCALLERCTX_CALLBACK`.
const PREPROCESSED: u32 = 1;
const IN_CALLER_CONTEXT: u32 = 2;

/// Sets the callback for IRPs of a major function, while the device is being created.
fn configure(
    context: &Context,
    device: Handle<DeviceData>,
    _driver: Handle<DriverData>,
    major: u8,
    callback: Callback,
    driver_context: Memory,
) -> NtStatus {
    let is_started = device.with(context, |device| device.is_started);
    if !DIRECTED.contains(&major) {
        return NtStatus::INVALID_PARAMETER;
    }
    if callback == Callback(0) {
        context.stop_call(Rule::BadAddress, "without a callback");
    }
    if is_started {
        return NtStatus::INVALID_DEVICE_STATE;
    }
    device.with(context, |device| {
        let all = &mut device.part::<Callbacks>().0;
        all.insert(major, (callback.0, driver_context.0));
    });
    NtStatus::SUCCESS
}

/// Returns the request for an IRP that a device received. Bugchecks for any other IRP.
fn received(context: &Context, device: u64, irp: u64) -> u64 {
    context.with::<DeviceData, _>(device, |_| ());
    let request =
        request_of(context, irp).filter(|request| device_of(context, *request) == Some(device));
    request.unwrap_or_else(|| {
        context.stop_for_handle(&BadHandle {
            handle: irp,
            expected: "IRP that the device received",
            found: None,
        })
    })
}

/// Passes an IRP to the framework, which queues the IRP as if there were no callback.
fn dispatch_irp(
    context: &Context,
    device: Handle<DeviceData>,
    irp: At<Irp>,
    dispatch_context: Memory,
) -> NtStatus {
    let request = received(context, device.0, irp.0);
    if dispatch_context.0 != request {
        context.stop_for_handle(&BadHandle {
            handle: dispatch_context.0,
            expected: "DispatchContext that the callback received",
            found: None,
        });
    }
    pass::enter_directed(context, device.0, request);
    NtStatus::PENDING
}

/// Puts an IRP in a queue of the device.
fn dispatch_to_queue(
    context: &Context,
    device: Handle<DeviceData>,
    irp: At<Irp>,
    queue: Handle<QueueData>,
    flags: u32,
) -> NtStatus {
    let request = received(context, device.0, irp.0);
    queue.check(context);
    if flags & !(PREPROCESSED | IN_CALLER_CONTEXT) != 0
        || device_of(context, queue.0) != Some(device.0)
    {
        context
            .warn_of_misuse(|| "with invalid flags, or with a queue of another device".to_owned());
        ending::end(context, request, NtStatus::INVALID_PARAMETER, Some(0));
        return NtStatus::INVALID_PARAMETER;
    }
    let in_caller_context = device.with(context, |device| device.init.in_caller_context);
    if flags & IN_CALLER_CONTEXT != 0 && in_caller_context != 0 {
        context.stop_call(
            Rule::NotProvided,
            "to call EvtIoInCallerContext first, which the stand-in kernel does not provide",
        );
    }
    context.with::<RequestData, _>(request, |request| request.queue = Some(queue.0));
    dispatch::enqueue(context, queue.0, request);
    NtStatus::PENDING
}
