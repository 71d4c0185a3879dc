//! Presentation locks, and the callbacks that they synchronize.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{made, sized};
use wdk_sys::{
    LARGE_INTEGER, NTSTATUS, STATUS_SUCCESS, ULONG, WDF_DPC_CONFIG, WDF_IO_QUEUE_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_OBJECT_ATTRIBUTES, WDF_TIMER_CONFIG, WDF_WORKITEM_CONFIG,
    WDFDEVICE, WDFDPC, WDFQUEUE, WDFREQUEST, WDFTIMER, WDFWORKITEM,
};

use crate::{
    commands,
    framework::{attributes, child_of, complete, irql, wdf},
    mode::{self, Mode},
};

/// The queue for requests that other callbacks forward.
static SECOND: AtomicPtr<wdk_sys::WDFQUEUE__> = AtomicPtr::new(ptr::null_mut());
/// The lock for which the work item waits.
static LOCK: AtomicPtr<wdk_sys::WDFWAITLOCK__> = AtomicPtr::new(ptr::null_mut());

/// Returns the attributes of the device.
pub fn of_device() -> WDF_OBJECT_ATTRIBUTES {
    use wdk_sys::{_WDF_EXECUTION_LEVEL as level, _WDF_SYNCHRONIZATION_SCOPE as scope};
    let mut attributes = attributes();
    if mode::is(Mode::Serial) || mode::is(Mode::SerialPassive) {
        attributes.SynchronizationScope = scope::WdfSynchronizationScopeDevice;
    }
    if mode::is(Mode::SerialPassive) {
        attributes.ExecutionLevel = level::WdfExecutionLevelPassive;
    }
    if mode::is(Mode::SerialQueues) {
        attributes.SynchronizationScope = scope::WdfSynchronizationScopeQueue;
    }
    attributes
}

/// Creates the second queue.
pub fn create_queue(device: WDFDEVICE) -> NTSTATUS {
    let mut config = sized!(WDF_IO_QUEUE_CONFIG {
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchSequential,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfFalse,
        EvtIoDefault: Some(second)
    });
    let (status, queue) = made(|handle| {
        wdf!(WdfIoQueueCreate, device, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES, handle)
    });
    SECOND.store(queue, Ordering::Relaxed);
    status
}

/// Returns the second queue.
pub fn second_queue() -> WDFQUEUE {
    SECOND.load(Ordering::Relaxed)
}

extern "C" fn second(_queue: WDFQUEUE, request: WDFREQUEST) {
    wdk::println!("second queue at {}", irql());
    complete(request, STATUS_SUCCESS);
}

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::ACQUIRE_LOCK => {
            let before = irql();
            wdf!(WdfObjectAcquireLock, device.cast());
            let inside = irql();
            wdf!(WdfObjectReleaseLock, device.cast());
            wdk::println!("lock {before} {inside} {}", irql());
        }
        commands::ACQUIRE_LOCK_TWICE => {
            wdf!(WdfObjectAcquireLock, device.cast());
            wdf!(WdfObjectAcquireLock, device.cast());
        }
        commands::ACQUIRE_OTHER_LOCK => {
            let mut attributes = child_of(device.cast());
            let (_status, object) =
                made(|handle| wdf!(WdfObjectCreate, &raw mut attributes, handle));
            wdf!(WdfObjectAcquireLock, object);
        }
        commands::FORWARD_SECOND => {
            let status = wdf!(WdfRequestForwardToIoQueue, request, second_queue());
            wdk::println!("forwarded {status:x} at {}", irql());
            return true;
        }
        commands::SERIALIZE => serialize(device),
        commands::WAITING_WORK => wait_in_work(device),
        _ => return false,
    }
    complete(request, STATUS_SUCCESS);
    true
}

extern "C" fn dpc(_dpc: WDFDPC) {
    wdk::println!("serialized dpc at {}", irql());
}

extern "C" fn timer(_timer: WDFTIMER) {
    wdk::println!("serialized timer at {}", irql());
}

extern "C" fn work(_item: WDFWORKITEM) {
    wdk::println!("serialized work at {}", irql());
}

/// Creates objects whose callbacks are serialized with the device's callbacks, and queues them.
fn serialize(device: WDFDEVICE) {
    let mut attributes = child_of(device.cast());
    let mut config = sized!(WDF_DPC_CONFIG { EvtDpcFunc: Some(dpc), AutomaticSerialization: 1 });
    let (of_dpc, deferred) =
        made(|handle| wdf!(WdfDpcCreate, &raw mut config, &raw mut attributes, handle));
    if !deferred.is_null() {
        let queued = wdf!(WdfDpcEnqueue, deferred);
        wdk::println!("queued dpc {queued}");
    }
    let mut config =
        sized!(WDF_WORKITEM_CONFIG { EvtWorkItemFunc: Some(work), AutomaticSerialization: 1 });
    let (of_work, item) =
        made(|handle| wdf!(WdfWorkItemCreate, &raw mut config, &raw mut attributes, handle));
    if !item.is_null() {
        wdf!(WdfWorkItemEnqueue, item);
    }
    let mut config =
        sized!(WDF_TIMER_CONFIG { EvtTimerFunc: Some(timer), AutomaticSerialization: 1 });
    let (of_timer, at_dispatch) =
        made(|handle| wdf!(WdfTimerCreate, &raw mut config, &raw mut attributes, handle));
    attributes.ExecutionLevel = wdk_sys::_WDF_EXECUTION_LEVEL::WdfExecutionLevelPassive;
    let (of_passive, passive) =
        made(|handle| wdf!(WdfTimerCreate, &raw mut config, &raw mut attributes, handle));
    for timer in [at_dispatch, passive] {
        if !timer.is_null() {
            let _was_set = wdf!(WdfTimerStart, timer, -10_000);
        }
    }
    wdk::println!("dpc {of_dpc:x} work {of_work:x} timers {of_timer:x} {of_passive:x}");
}

extern "C" fn waiting_work(_item: WDFWORKITEM) {
    wdk::println!("work waits");
    let lock = LOCK.load(Ordering::Relaxed);
    let status = wdf!(WdfWaitLockAcquire, lock, ptr::null_mut());
    wdk::println!("work has the lock {status:x}");
    wdf!(WdfWaitLockRelease, lock);
}

/// Holds a lock for which a work item waits, and lets time pass in the meantime.
fn wait_in_work(device: WDFDEVICE) {
    let (_status, lock) = made(|handle| wdf!(WdfWaitLockCreate, WDF_NO_OBJECT_ATTRIBUTES, handle));
    LOCK.store(lock, Ordering::Relaxed);
    let mut config = sized!(WDF_WORKITEM_CONFIG {
        EvtWorkItemFunc: Some(waiting_work),
        AutomaticSerialization: 0
    });
    let mut attributes = child_of(device.cast());
    let (_status, item) =
        made(|handle| wdf!(WdfWorkItemCreate, &raw mut config, &raw mut attributes, handle));
    let _status = wdf!(WdfWaitLockAcquire, lock, ptr::null_mut());
    wdf!(WdfWorkItemEnqueue, item);
    let mut interval = LARGE_INTEGER { QuadPart: -10_000 };
    // SAFETY: the interval is a local, and the IRQL is PASSIVE_LEVEL.
    let _status = unsafe { wdk_sys::ntddk::KeDelayExecutionThread(0, 0, &raw mut interval) };
    wdk::println!("the callback releases the lock");
    wdf!(WdfWaitLockRelease, lock);
    wdf!(WdfWorkItemFlush, item);
    wdk::println!("flushed");
    wdf!(WdfObjectDelete, item.cast());
    wdf!(WdfObjectDelete, lock.cast());
}
