//! The queues and the device controls.
//!
//! Reads go to a manual queue. Writes have their own sequential queue. Device controls arrive in
//! the default queue, which is parallel and power-managed.

use core::{
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, Ordering},
};

use etw_driver_support::{made, sized};
use wdk_sys::{
    NT_SUCCESS, NTSTATUS, STATUS_CANCELLED, STATUS_SUCCESS, ULONG, WDF_IO_QUEUE_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_TIMER_CONFIG, WDFCONTEXT, WDFDEVICE, WDFOBJECT, WDFQUEUE,
    WDFREQUEST, WDFTIMER,
};

use crate::{
    commands, failing_starts,
    framework::{answer, answer_status, attributes, complete, device_of, irql, wdf},
    objects,
};

/// The manual queue.
static MANUAL: AtomicPtr<wdk_sys::WDFQUEUE__> = AtomicPtr::new(ptr::null_mut());
/// The queue of write requests.
static WRITES: AtomicPtr<wdk_sys::WDFQUEUE__> = AtomicPtr::new(ptr::null_mut());
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
            WRITES.store(writes, Ordering::Relaxed);
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

/// Leaves the pending request incomplete, even though it was canceled.
extern "C" fn canceled_and_kept(_request: WDFREQUEST) {
    wdk::println!("canceled and kept");
}

/// `EvtIoQueueState`; the context identifies the event.
extern "C" fn state(_queue: WDFQUEUE, context: WDFCONTEXT) {
    let what = match context.addr() {
        1 => "stopped",
        2 => "purged",
        3 => "drained",
        _ => "ready",
    };
    wdk::println!("{what}");
}

const fn context(number: usize) -> WDFCONTEXT {
    ptr::without_provenance_mut(number)
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
        commands::REQUEUE => {
            let status =
                retrieve().map_or_else(|status| status, |next| wdf!(WdfRequestRequeue, next));
            answer_status(request, status);
        }
        commands::RETRIEVE_OF_FILE => retrieve_of_file(request),
        commands::FIND => find(request),
        commands::STOP => {
            wdf!(WdfIoQueueStop, manual, Some(state), context(1));
            complete(request, STATUS_SUCCESS);
        }
        commands::START => {
            wdf!(WdfIoQueueStart, manual);
            complete(request, STATUS_SUCCESS);
        }
        commands::PURGE => {
            wdf!(WdfIoQueuePurge, manual, Some(state), context(2));
            complete(request, STATUS_SUCCESS);
        }
        commands::DRAIN => {
            wdf!(WdfIoQueueDrain, manual, Some(state), context(3));
            complete(request, STATUS_SUCCESS);
        }
        commands::STATE => {
            let mut counts = [0; 2];
            let [waiting, held] = &mut counts;
            let state = wdf!(WdfIoQueueGetState, manual, waiting, held);
            let [waiting, held] = counts;
            answer(request, &[state.cast_unsigned(), waiting, held]);
        }
        commands::READY_NOTIFY => {
            answer_status(request, wdf!(WdfIoQueueReadyNotify, manual, Some(state), context(4)));
        }
        commands::PURGE_AND_WAIT => {
            wdf!(WdfIoQueuePurgeSynchronously, queue);
            complete(request, STATUS_SUCCESS);
        }
        commands::STOP_AND_WAIT => stop_and_wait(queue, request),
        _ => keep_or_release(queue, request, input, code),
    }
}

/// Runs the commands that use the pending request.
fn keep_or_release(queue: WDFQUEUE, request: WDFREQUEST, input: usize, code: ULONG) {
    let kept = KEPT.load(Ordering::Relaxed);
    match code {
        commands::KEEP => {
            wdk::println!("keep");
            GOES_BACK.store(input > 0, Ordering::Relaxed);
            KEPT.store(request, Ordering::Relaxed);
        }
        commands::KEEP_CANCELABLE => {
            KEPT.store(request, Ordering::Relaxed);
            let routine = if input > 0 { canceled_and_kept } else { canceled };
            wdf!(WdfRequestMarkCancelable, request, Some(routine));
        }
        commands::KEEP_CANCELABLE_EX => {
            answer_status(request, wdf!(WdfRequestMarkCancelableEx, kept, Some(canceled)));
        }
        commands::RELEASE => {
            let status = wdf!(WdfRequestUnmarkCancelable, kept);
            KEPT.store(ptr::null_mut(), Ordering::Relaxed);
            complete(kept, STATUS_SUCCESS);
            answer_status(request, status);
        }
        commands::COMPLETE => {
            KEPT.store(ptr::null_mut(), Ordering::Relaxed);
            complete(kept, STATUS_SUCCESS);
            complete(request, STATUS_SUCCESS);
        }
        commands::FORWARD => {
            let manual = MANUAL.load(Ordering::Relaxed);
            answer_status(request, wdf!(WdfRequestForwardToIoQueue, kept, manual));
        }
        commands::DELETE => {
            wdf!(WdfObjectDelete, request.cast());
            complete(request, STATUS_SUCCESS);
        }
        commands::IS_CANCELED => {
            let canceled = wdf!(WdfRequestIsCanceled, kept);
            answer(request, &[u32::from(canceled)]);
        }
        commands::UNMARK => {
            answer_status(request, wdf!(WdfRequestUnmarkCancelable, kept));
        }
        _ => objects::device_control(device_of(queue), request, code),
    }
}

/// Retrieves and completes a request from the same file.
fn retrieve_of_file(request: WDFREQUEST) {
    let manual = MANUAL.load(Ordering::Relaxed);
    let file = wdf!(WdfRequestGetFileObject, request);
    let (status, next) =
        made(|handle| wdf!(WdfIoQueueRetrieveRequestByFileObject, manual, file, handle));
    if NT_SUCCESS(status) {
        complete(next, STATUS_SUCCESS);
    }
    answer_status(request, status);
}

/// Counts the requests in the manual queue.
fn find(request: WDFREQUEST) {
    let manual = MANUAL.load(Ordering::Relaxed);
    let mut found: WDFREQUEST = ptr::null_mut();
    let mut count = 0;
    loop {
        let (status, next) = made(|handle| {
            wdf!(WdfIoQueueFindRequest, manual, found, ptr::null_mut(), ptr::null_mut(), handle)
        });
        if !found.is_null() {
            objects::dereference(found.cast());
        }
        if !NT_SUCCESS(status) {
            answer(request, &[count, status.cast_unsigned()]);
            return;
        }
        count += 1;
        found = next;
    }
}

/// Completes the pending write.
extern "C" fn complete_from_timer(_timer: WDFTIMER) {
    wdk::println!("timer at {}", irql());
    let kept = KEPT.swap(ptr::null_mut(), Ordering::Relaxed);
    if !kept.is_null() {
        complete(kept, STATUS_SUCCESS);
    }
}

/// Stops the queue of writes, and waits for the write that the driver has not completed.
fn stop_and_wait(queue: WDFQUEUE, request: WDFREQUEST) {
    const FIVE_MILLISECONDS: i64 = 50_000;
    let mut config = sized!(WDF_TIMER_CONFIG { EvtTimerFunc: Some(complete_from_timer) });
    let mut attributes = attributes();
    attributes.ParentObject = device_of(queue).cast();
    let (status, timer) =
        made(|handle| wdf!(WdfTimerCreate, &raw mut config, &raw mut attributes, handle));
    if !NT_SUCCESS(status) {
        complete(request, status);
        return;
    }
    let _was_set = wdf!(WdfTimerStart, timer, -FIVE_MILLISECONDS);
    let writes = WRITES.load(Ordering::Relaxed);
    wdf!(WdfIoQueueStopSynchronously, writes);
    wdk::println!("writes stopped");
    wdf!(WdfIoQueueStart, writes);
    wdf!(WdfObjectDelete, timer as WDFOBJECT);
    complete(request, STATUS_SUCCESS);
}
