//! IRPs that a driver directs itself: callbacks that see reads, writes and device controls as IRPs, and
//! the queues that they choose.

use super::{
    io::{directed::Callbacks, dispatch, ending, irp::request_of, pass},
    state::{
        device::{DeviceData, device_of},
        framework::{BadHandle, Context, Entries},
        queue::QueueData,
        request::RequestData,
    },
};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{rule::Rule, status::NtStatus},
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceConfigureWdmIrpDispatchCallback", Routine::Six(configure)),
    ("WdfDeviceWdmDispatchIrp", Routine::Four(dispatch_irp)),
    ("WdfDeviceWdmDispatchIrpToIoQueue", Routine::Five(dispatch_to_queue)),
];

/// The major functions that a callback can see: read, write, and the device controls.
const DIRECTED: [u8; 4] = [3, 4, 14, 15];

/// `WDF_DISPATCH_IRP_TO_IO_QUEUE_PREPROCESSED_IRP` and
/// `WDF_DISPATCH_IRP_TO_IO_QUEUE_INVOKE_INCALLERCTX_CALLBACK`.
const PREPROCESSED: u32 = 1;
const IN_CALLER_CONTEXT: u32 = 2;

/// Sets the callback for the IRPs of a major function, while the device is being created.
fn configure(
    context: &Context,
    _globals: u64,
    device: u64,
    _driver: u64,
    major: u64,
    callback: u64,
    its_context: u64,
) -> u64 {
    let [major, ..] = major.to_le_bytes();
    let is_started = context.with::<DeviceData, _>(device, |device| device.is_started);
    if !DIRECTED.contains(&major) {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    if callback == 0 {
        context.stop(
            Rule::BadAddress,
            format!(
                "{} was called from {} without a callback",
                context.call().name,
                context.caller()
            ),
        );
    }
    if is_started {
        return NtStatus::INVALID_DEVICE_STATE.to_register();
    }
    context.with::<DeviceData, _>(device, |device| {
        let all = &mut device.part::<Callbacks>().0;
        all.insert(major, (callback, its_context));
    });
    NtStatus::SUCCESS.to_register()
}

/// Returns the request of an IRP that a device received. Bugchecks for another IRP.
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

/// Gives an IRP to the framework, which queues it as if there were no callback.
fn dispatch_irp(context: &Context, _globals: u64, device: u64, irp: u64, its_context: u64) -> u64 {
    let request = received(context, device, irp);
    if its_context != request {
        context.stop_for_handle(&BadHandle {
            handle: its_context,
            expected: "DispatchContext that the callback received",
            found: None,
        });
    }
    pass::enter_directed(context, device, request);
    NtStatus::PENDING.to_register()
}

/// Puts an IRP in a queue of the device.
fn dispatch_to_queue(
    context: &Context,
    _globals: u64,
    device: u64,
    irp: u64,
    queue: u64,
    flags: u64,
) -> u64 {
    let flags = low_half(flags);
    let request = received(context, device, irp);
    context.with::<QueueData, _>(queue, |_| ());
    if flags & !(PREPROCESSED | IN_CALLER_CONTEXT) != 0 || device_of(context, queue) != Some(device)
    {
        context.warn_of_misuse(|| {
            "with flags that are not valid, or with a queue of another device".to_owned()
        });
        ending::end(context, request, NtStatus::INVALID_PARAMETER, Some(0));
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let in_caller_context =
        context.with::<DeviceData, _>(device, |device| device.init.in_caller_context);
    if flags & IN_CALLER_CONTEXT != 0 && in_caller_context != 0 {
        context.stop(
            Rule::NotProvided,
            format!(
                "{} was called from {} to call EvtIoInCallerContext first, which the stand-in kernel \
                 does not provide",
                context.call().name,
                context.caller()
            ),
        );
    }
    context.with::<RequestData, _>(request, |request| request.queue = Some(queue));
    dispatch::enqueue(context, queue, request);
    NtStatus::PENDING.to_register()
}
