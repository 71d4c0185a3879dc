//! Timers, DPCs and work items.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed},
};

use etw_driver_support::{at_irql, made, sized};
use wdk_sys::{
    _WDF_EXECUTION_LEVEL::WdfExecutionLevelPassive, NTSTATUS, STATUS_INFO_LENGTH_MISMATCH,
    STATUS_INVALID_DEVICE_REQUEST, STATUS_NOT_SUPPORTED, STATUS_SUCCESS, WDF_DPC_CONFIG,
    WDF_OBJECT_ATTRIBUTES, WDF_TIMER_CONFIG, WDF_WORKITEM_CONFIG, WDFDEVICE, WDFDPC, WDFOBJECT,
    WDFTIMER, WDFWORKITEM,
};

use super::common::{
    INVALID_PARAMETER, STATUS_WDF_EXECUTION_LEVEL_INVALID, STATUS_WDF_PARENT_NOT_SPECIFIED,
    dereference, letters, log, logged, reference, same, wait,
};
use crate::framework::{attributes, child_of, irql, wdf};

const DISPATCH: u8 = 2;
const MILLISECOND: i64 = 10_000;

/// The number of calls of a callback since the last check.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// The object on which the next callback acts.
static TARGET: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

fn calls() -> u32 {
    CALLS.swap(0, Relaxed)
}

/// Takes the object on which a callback acts.
fn target<T>() -> *mut T {
    TARGET.swap(ptr::null_mut(), Relaxed).cast()
}

extern "C" fn timer(_timer: WDFTIMER) {
    CALLS.fetch_add(1, Relaxed);
    log(b'0' + irql());
}

/// Stops its own timer, and logs the result.
extern "C" fn stop_own(timer: WDFTIMER) {
    let stopped = wdf!(WdfTimerStop, timer, 1);
    log(b'0' + stopped);
}

extern "C" fn dpc(_dpc: WDFDPC) {
    CALLS.fetch_add(1, Relaxed);
}

extern "C" fn work(_item: WDFWORKITEM) {
    CALLS.fetch_add(1, Relaxed);
    let again: WDFWORKITEM = target();
    if !again.is_null() {
        wdf!(WdfWorkItemEnqueue, again);
    }
}

extern "C" fn flush_own(item: WDFWORKITEM) {
    wdf!(WdfWorkItemFlush, item);
    log(b'f');
}

extern "C" fn delete_own(item: WDFWORKITEM) {
    wdf!(WdfObjectDelete, item.cast());
    log(b'r');
}

extern "C" fn cleanup(_object: WDFOBJECT) {
    log(b'c');
}

extern "C" fn destroy(_object: WDFOBJECT) {
    log(b'd');
}

type TimerConfig = WDF_TIMER_CONFIG;

/// Creates a timer with a changed configuration and changed attributes.
fn timer_with(
    device: WDFDEVICE,
    change: impl FnOnce(&mut TimerConfig, &mut WDF_OBJECT_ATTRIBUTES),
) -> (NTSTATUS, WDFTIMER) {
    let mut config = sized!(WDF_TIMER_CONFIG { EvtTimerFunc: Some(timer) });
    let mut attributes = child_of(device.cast());
    change(&mut config, &mut attributes);
    made(|handle| wdf!(WdfTimerCreate, &raw mut config, &raw mut attributes, handle))
}

fn dpc_with(
    device: WDFDEVICE,
    change: impl FnOnce(&mut WDF_DPC_CONFIG, &mut WDF_OBJECT_ATTRIBUTES),
) -> (NTSTATUS, WDFDPC) {
    let mut config = sized!(WDF_DPC_CONFIG { EvtDpcFunc: Some(dpc) });
    let mut attributes = child_of(device.cast());
    change(&mut config, &mut attributes);
    made(|handle| wdf!(WdfDpcCreate, &raw mut config, &raw mut attributes, handle))
}

fn work_with(
    device: WDFDEVICE,
    change: impl FnOnce(&mut WDF_WORKITEM_CONFIG, &mut WDF_OBJECT_ATTRIBUTES),
) -> (NTSTATUS, WDFWORKITEM) {
    let mut config = sized!(WDF_WORKITEM_CONFIG { EvtWorkItemFunc: Some(work) });
    let mut attributes = child_of(device.cast());
    change(&mut config, &mut attributes);
    made(|handle| wdf!(WdfWorkItemCreate, &raw mut config, &raw mut attributes, handle))
}

fn start(timer: WDFTIMER, milliseconds: i64) -> u8 {
    wdf!(WdfTimerStart, timer, -MILLISECOND * milliseconds)
}

fn stop(timer: WDFTIMER, wait: u8) -> u8 {
    wdf!(WdfTimerStop, timer, wait)
}

pub fn check(device: WDFDEVICE) {
    check_configurations(device);
    check_timers(device);
    check_passive_timers(device);
    check_dpcs(device);
    check_work_items(device);
}

fn check_configurations(device: WDFDEVICE) {
    let driver = wdf!(WdfDeviceGetDriver, device);
    let no_parent = timer_with(device, |_, set| *set = attributes()).0;
    same!("timer-no-parent", no_parent, STATUS_WDF_PARENT_NOT_SPECIFIED);
    let of_driver = timer_with(device, |_, set| set.ParentObject = driver.cast()).0;
    same!("timer-of-driver", of_driver, STATUS_INVALID_DEVICE_REQUEST);
    let size = timer_with(device, |config, _| config.Size -= 1).0;
    same!("timer-size", size, STATUS_INFO_LENGTH_MISMATCH);
    let long = timer_with(device, |config, _| config.Period = 0x8000_0000).0;
    same!("timer-period", long, INVALID_PARAMETER);
    let passive = timer_with(device, |config, set| {
        config.Period = 1;
        set.ExecutionLevel = WdfExecutionLevelPassive;
    });
    same!("timer-passive-periodic", passive.0, STATUS_NOT_SUPPORTED);
    let size = dpc_with(device, |config, _| config.Size -= 1).0;
    same!("dpc-size", size, STATUS_INFO_LENGTH_MISMATCH);
    let no_parent = dpc_with(device, |config, set| {
        config.Size -= 1;
        *set = attributes();
    });
    same!("dpc-no-parent", no_parent.0, STATUS_WDF_PARENT_NOT_SPECIFIED);
    let level = dpc_with(device, |_, set| set.ExecutionLevel = WdfExecutionLevelPassive).0;
    same!("dpc-level", level, STATUS_WDF_EXECUTION_LEVEL_INVALID);
    let no_function = work_with(device, |config, _| config.EvtWorkItemFunc = None).0;
    same!("work-item-no-function", no_function, INVALID_PARAMETER);
    let of_driver = work_with(device, |_, set| set.ParentObject = driver.cast()).0;
    same!("work-item-of-driver", of_driver, STATUS_INVALID_DEVICE_REQUEST);
    let level = work_with(device, |_, set| set.ExecutionLevel = WdfExecutionLevelPassive).0;
    same!("work-item-level", level, STATUS_WDF_EXECUTION_LEVEL_INVALID);
}

fn check_timers(device: WDFDEVICE) {
    let (_, once) = timer_with(device, |_, _| ());
    same!("timer-start-twice", [start(once, 5), start(once, 1)], [0, 1]);
    wait(3);
    same!("timer-restarted", calls(), 1);
    same!("timer-stop-fired", stop(once, 0), 0);
    let _started = start(once, 5);
    same!("timer-stop", [stop(once, 0), stop(once, 0)], [1, 0]);
    let _log = logged();
    let started = wdf!(WdfTimerStart, once, 0);
    same!("timer-due-now", (started, calls(), logged()), (0, 1, letters(b"2")));
    reference(once.cast());
    wdf!(WdfObjectDelete, once.cast());
    same!("timer-start-deleted", (start(once, 1), wait(3), calls()), (0, (), 0));
    dereference(once.cast());
    let (_, periodic) = timer_with(device, |config, _| config.Period = 2);
    let _started = start(periodic, 1);
    wait(8);
    same!("timer-periodic", calls(), 4);
    same!("timer-stop-periodic", [stop(periodic, 1), stop(periodic, 1)], [1, 0]);
    let _log = logged();
    wdf!(WdfObjectDelete, periodic.cast());
}

fn check_passive_timers(device: WDFDEVICE) {
    let passive = |function| {
        timer_with(device, |config, set| {
            config.EvtTimerFunc = function;
            set.ExecutionLevel = WdfExecutionLevelPassive;
            set.EvtCleanupCallback = Some(cleanup);
        })
    };
    let (_, queued) = passive(Some(timer));
    let _started = wdf!(WdfTimerStart, queued, 0);
    let before = logged();
    let stopped = stop(queued, 1);
    same!("timer-stop-waits", (before, stopped, logged()), (0, 0, letters(b"0")));
    let _started = wdf!(WdfTimerStart, queued, 0);
    wdf!(WdfObjectDelete, queued.cast());
    same!("timer-delete-waits", logged(), letters(b"0c"));
    let (_, own) = passive(Some(stop_own));
    let _started = start(own, 1);
    wait(3);
    same!("timer-stop-own", logged(), letters(b"0"));
    wdf!(WdfObjectDelete, own.cast());
    let _log = logged();
}

fn check_dpcs(device: WDFDEVICE) {
    let (status, silent) = dpc_with(device, |config, _| config.EvtDpcFunc = None);
    same!("dpc-no-function", (status, wdf!(WdfDpcEnqueue, silent)), (STATUS_SUCCESS, 1));
    let (_, queued) = dpc_with(device, |_, _| ());
    let _calls = calls();
    let twice = at_irql(DISPATCH, || [0, 1].map(|_| wdf!(WdfDpcEnqueue, queued)));
    same!("dpc-enqueue", (twice, calls()), ([1, 0], 1));
    let cancelled = at_irql(DISPATCH, || {
        let _queued = wdf!(WdfDpcEnqueue, queued);
        [0, 1].map(|_| wdf!(WdfDpcCancel, queued, 0))
    });
    same!("dpc-cancel", (cancelled, calls()), ([1, 0], 0));
    same!("dpc-cancel-waits", (wdf!(WdfDpcCancel, queued, 1), calls()), (0, 0));
}

fn check_work_items(device: WDFDEVICE) {
    let (_, item) = work_with(device, |_, _| ());
    let _calls = calls();
    for _ in 0..2 {
        wdf!(WdfWorkItemEnqueue, item);
    }
    wdf!(WdfWorkItemFlush, item);
    same!("work-item-enqueue-twice", calls(), 1);
    TARGET.store(item.cast(), Relaxed);
    wdf!(WdfWorkItemEnqueue, item);
    wdf!(WdfWorkItemFlush, item);
    same!("work-item-enqueue-own", calls(), 2);
    wdf!(WdfWorkItemEnqueue, item);
    wdf!(WdfObjectDelete, item.cast());
    same!("work-item-delete-waits", calls(), 1);
    let _log = logged();
    let acting = |function, object: Option<extern "C" fn(WDFOBJECT)>| {
        let (_, item) = work_with(device, |config, set| {
            config.EvtWorkItemFunc = function;
            set.EvtDestroyCallback = object.map(|call| call as _);
        });
        wdf!(WdfWorkItemEnqueue, item);
        wait(1);
        logged()
    };
    same!("work-item-flush-own", acting(Some(flush_own), None), letters(b"f"));
    same!("work-item-delete-own", acting(Some(delete_own), Some(destroy)), letters(b"rd"));
}
