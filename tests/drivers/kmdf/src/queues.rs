//! The queues and the device controls.
//!
//! Reads go to a manual queue. Writes have their own sequential queue. Device controls arrive in
//! the default queue, which is parallel and power-managed.

use core::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use etw_driver_support::made;
use wdk_sys::{
    NT_SUCCESS, NTSTATUS, STATUS_CANCELLED, STATUS_SUCCESS, ULONG, WDF_IO_QUEUE_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE, WDFQUEUE, WDFREQUEST,
};

use crate::{
    commands, failing_starts,
    framework::{answer, answer_status, complete, device_of, wdf},
    objects,
};

/// The manual queue.
static MANUAL: AtomicPtr<wdk_sys::WDFQUEUE__> = AtomicPtr::new(ptr::null_mut());
/// The driver's pending request, or null.
static KEPT: AtomicPtr<wdk_sys::WDFREQUEST__> = AtomicPtr::new(ptr::null_mut());
/// True if the pending request returns to its queue when the queue stops.
static GOES_BACK: AtomicBool = AtomicBool::new(false);

const SUSPEND: ULONG = 1;

fn config(dispatch: i32, power_managed: i32) -> WDF_IO_QUEUE_CONFIG {
    // The size up to KMDF 1.7, without the number of presented requests.
    const OLD: u32 = 80;
    WDF_IO_QUEUE_CONFIG {
        Size: if failing_starts::is_old() { OLD } else { size_of::<WDF_IO_QUEUE_CONFIG>() as u32 },
        DispatchType: dispatch,
        PowerManaged: power_managed,
        ..WDF_IO_QUEUE_CONFIG::default()
    }
}

fn create_queue(device: WDFDEVICE, mut config: WDF_IO_QUEUE_CONFIG) -> Result<WDFQUEUE, NTSTATUS> {
    let (status, queue) = made(|handle| {
        wdf!(WdfIoQueueCreate, device, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES, handle)
    });
    if NT_SUCCESS(status) { Ok(queue) } else { Err(status) }
}

/// Returns the manual queue.
pub fn manual() -> WDFQUEUE {
    MANUAL.load(Ordering::Relaxed)
}

/// Creates the device's queues.
pub fn create(device: WDFDEVICE) -> NTSTATUS {
    use wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE as dispatch;
    use wdk_sys::_WDF_TRI_STATE as state;
    let mut default = config(dispatch::WdfIoQueueDispatchParallel, state::WdfUseDefault);
    default.DefaultQueue = 1;
    // The framework ignores this number in the configuration of older headers.
    default.Settings.Parallel.NumberOfPresentedRequests =
        if failing_starts::is_old() { 0 } else { ULONG::MAX };
    default.EvtIoRead = Some(read);
    default.EvtIoDeviceControl = Some(device_control);
    default.EvtIoStop = Some(stop);
    default.EvtIoResume = Some(resume);
    let mut manual = config(dispatch::WdfIoQueueDispatchManual, state::WdfFalse);
    manual.EvtIoCanceledOnQueue = Some(canceled_on_queue);
    let mut writes = config(dispatch::WdfIoQueueDispatchSequential, state::WdfFalse);
    writes.EvtIoWrite = Some(write);
    let queues = create_queue(device, default)
        .and_then(|_| Ok((create_queue(device, manual)?, create_queue(device, writes)?)));
    match queues {
        Ok((manual, writes)) => {
            MANUAL.store(manual, Ordering::Relaxed);
            wdf!(
                WdfDeviceConfigureRequestDispatching,
                device,
                writes,
                wdk_sys::_WDF_REQUEST_TYPE::WdfRequestTypeWrite
            )
        }
        Err(status) => status,
    }
}

extern "C" fn read(_queue: WDFQUEUE, request: WDFREQUEST, length: usize) {
    wdk::println!("read {length}");
    forward(request);
}

/// Forwards a request to the manual queue.
fn forward(request: WDFREQUEST) {
    let manual = MANUAL.load(Ordering::Relaxed);
    let status = wdf!(WdfRequestForwardToIoQueue, request, manual);
    if !NT_SUCCESS(status) {
        complete(request, status);
    }
}

extern "C" fn write(_queue: WDFQUEUE, request: WDFREQUEST, length: usize) {
    wdk::println!("write {length}");
    KEPT.store(request, Ordering::Relaxed);
}

extern "C" fn stop(_queue: WDFQUEUE, request: WDFREQUEST, flags: ULONG) {
    wdk::println!("io_stop {flags:x}");
    if flags & SUSPEND == 0 {
        KEPT.store(ptr::null_mut(), Ordering::Relaxed);
        complete(request, STATUS_CANCELLED);
    } else {
        let requeue = GOES_BACK.load(Ordering::Relaxed);
        wdf!(WdfRequestStopAcknowledge, request, u8::from(requeue));
    }
}

extern "C" fn resume(_queue: WDFQUEUE, _request: WDFREQUEST) {
    wdk::println!("io_resume");
}

extern "C" fn canceled_on_queue(_queue: WDFQUEUE, request: WDFREQUEST) {
    wdk::println!("canceled_on_queue");
    complete(request, STATUS_CANCELLED);
}

extern "C" fn canceled(request: WDFREQUEST) {
    wdk::println!("canceled");
    KEPT.store(ptr::null_mut(), Ordering::Relaxed);
    complete(request, STATUS_CANCELLED);
}

/// Retrieves the next request of the manual queue.
fn retrieve() -> Result<WDFREQUEST, NTSTATUS> {
    let manual = MANUAL.load(Ordering::Relaxed);
    let (status, next) = made(|handle| wdf!(WdfIoQueueRetrieveNextRequest, manual, handle));
    if NT_SUCCESS(status) { Ok(next) } else { Err(status) }
}

/// The bits of a control code that contain the buffering method.
const METHOD_MASK: ULONG = 3;

extern "C" fn device_control(
    queue: WDFQUEUE,
    request: WDFREQUEST,
    _output: usize,
    input: usize,
    code: ULONG,
) {
    let manual = MANUAL.load(Ordering::Relaxed);
    // A command has the same number for every buffering method.
    let code = code & !METHOD_MASK;
    match code {
        commands::RETRIEVE => {
            let status = retrieve().map_or_else(
                |status| status,
                |next| {
                    complete(next, STATUS_SUCCESS);
                    STATUS_SUCCESS
                },
            );
            answer_status(request, status);
        }
        commands::STATE => {
            let mut counts = [0; 2];
            let [waiting, held] = &mut counts;
            let state = wdf!(WdfIoQueueGetState, manual, waiting, held);
            let [waiting, held] = counts;
            answer(request, &[state.cast_unsigned(), waiting, held]);
        }
        commands::KEEP => {
            wdk::println!("keep");
            GOES_BACK.store(input > 0, Ordering::Relaxed);
            KEPT.store(request, Ordering::Relaxed);
        }
        commands::KEEP_CANCELABLE => {
            KEPT.store(request, Ordering::Relaxed);
            wdf!(WdfRequestMarkCancelable, request, Some(canceled));
        }
        commands::COMPLETE => {
            complete(KEPT.swap(ptr::null_mut(), Ordering::Relaxed), STATUS_SUCCESS);
            complete(request, STATUS_SUCCESS);
        }
        _ => objects::device_control(device_of(queue), request, code),
    }
}
