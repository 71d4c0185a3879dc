//! The device's interrupt, if the test provides one, and its other resources.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{made, nt, sized};
use wdk_sys::{
    BOOLEAN, NTSTATUS, STATUS_SUCCESS, ULONG, WDF_INTERRUPT_CONFIG, WDF_INTERRUPT_INFO,
    WDF_NO_OBJECT_ATTRIBUTES, WDFCMRESLIST, WDFCONTEXT, WDFDEVICE, WDFINTERRUPT, WDFOBJECT,
    WDFREQUEST,
};

use crate::{
    commands,
    framework::{complete, irql, wdf},
    mode::{self, Mode},
};

/// The device's interrupt.
static INTERRUPT: AtomicPtr<wdk_sys::WDFINTERRUPT__> = AtomicPtr::new(ptr::null_mut());

/// Creates the interrupt.
pub fn create(device: WDFDEVICE) -> NTSTATUS {
    let mut config = sized!(WDF_INTERRUPT_CONFIG {
        ShareVector: 2,
        EvtInterruptIsr: Some(service),
        EvtInterruptDpc: Some(dpc),
        EvtInterruptEnable: Some(enable),
        EvtInterruptDisable: Some(disable),
        ReportInactiveOnPowerDown: 2
    });
    if mode::is(Mode::PassiveInterrupt) {
        config.PassiveHandling = 1;
        config.EvtInterruptIsr = Some(service_at_passive);
        config.EvtInterruptDpc = None;
        config.EvtInterruptWorkItem = Some(work);
    }
    let (status, interrupt) = made(|handle| {
        wdf!(WdfInterruptCreate, device, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES, handle)
    });
    INTERRUPT.store(interrupt, Ordering::Relaxed);
    status
}

/// The list of the device's resources.
static RESOURCES: AtomicPtr<wdk_sys::WDFCMRESLIST__> = AtomicPtr::new(ptr::null_mut());

/// Tries to change the list of resources. The driver is only allowed to read it.
pub fn change_resources() {
    let list = RESOURCES.load(Ordering::Relaxed);
    let mut descriptor = wdk_sys::CM_PARTIAL_RESOURCE_DESCRIPTOR::default();
    let appended = wdf!(WdfCmResourceListAppendDescriptor, list, &raw mut descriptor);
    let inserted = wdf!(WdfCmResourceListInsertDescriptor, list, &raw mut descriptor, 0);
    wdf!(WdfCmResourceListRemove, list, 0);
    wdf!(WdfCmResourceListRemoveByDescriptor, list, &raw mut descriptor);
    let count = wdf!(WdfCmResourceListGetCount, list);
    wdk::println!("resources {appended:x} {inserted:x} {count}");
}

/// Prints whether the interrupt has a kernel object, if the device has an interrupt.
pub fn print_object() {
    let interrupt = INTERRUPT.load(Ordering::Relaxed);
    if !interrupt.is_null() {
        let object = wdf!(WdfInterruptWdmGetInterrupt, interrupt);
        let again = wdf!(WdfInterruptWdmGetInterrupt, interrupt);
        wdk::println!("interrupt object {} {}", !object.is_null(), object == again);
    }
}

/// Prints the resources of the device.
pub fn print_resources(list: WDFCMRESLIST) {
    RESOURCES.store(list, Ordering::Relaxed);
    let count = wdf!(WdfCmResourceListGetCount, list);
    for index in 0..count {
        let descriptor = wdf!(WdfCmResourceListGetDescriptor, list, index);
        // SAFETY: the framework returns descriptors for indices below the count.
        let descriptor = unsafe { *descriptor };
        // SAFETY: in memory and interrupt descriptors, these members contain numbers.
        let words = unsafe { descriptor.u.DevicePrivate.Data };
        wdk::println!("resource {} {:x?}", descriptor.Type, words);
    }
    if count > 0 {
        let past = wdf!(WdfCmResourceListGetDescriptor, list, count);
        wdk::println!("past the end {}", past.is_null());
    }
}

extern "C" fn enable(_interrupt: WDFINTERRUPT, _device: WDFDEVICE) -> NTSTATUS {
    wdk::println!("enable at {}", irql());
    STATUS_SUCCESS
}

extern "C" fn disable(_interrupt: WDFINTERRUPT, _device: WDFDEVICE) -> NTSTATUS {
    wdk::println!("disable at {}", irql());
    STATUS_SUCCESS
}

extern "C" fn service(interrupt: WDFINTERRUPT, message: ULONG) -> BOOLEAN {
    let first = wdf!(WdfInterruptQueueDpcForIsr, interrupt);
    let second = wdf!(WdfInterruptQueueDpcForIsr, interrupt);
    wdk::println!("isr {message} at {}, queued {first} {second}", irql());
    1
}

extern "C" fn service_at_passive(interrupt: WDFINTERRUPT, message: ULONG) -> BOOLEAN {
    let taken = wdf!(WdfInterruptTryToAcquireLock, interrupt);
    let first = wdf!(WdfInterruptQueueWorkItemForIsr, interrupt);
    let second = wdf!(WdfInterruptQueueWorkItemForIsr, interrupt);
    let dpc = wdf!(WdfInterruptQueueDpcForIsr, interrupt);
    wdk::println!("isr {message} at {}, lock {taken}, queued {first} {second}, dpc {dpc}", irql());
    1
}

extern "C" fn work(interrupt: WDFINTERRUPT, object: WDFOBJECT) {
    let same = wdf!(WdfInterruptGetDevice, interrupt).cast() == object;
    wdf!(WdfInterruptAcquireLock, interrupt);
    wdk::println!("interrupt work at {}, {same}", irql());
    wdf!(WdfInterruptReleaseLock, interrupt);
}

extern "C" fn dpc(interrupt: WDFINTERRUPT, object: WDFOBJECT) {
    let same = wdf!(WdfInterruptGetDevice, interrupt).cast() == object;
    wdk::println!("dpc at {}, {same}", irql());
}

extern "C" fn synchronized(_interrupt: WDFINTERRUPT, _context: WDFCONTEXT) -> BOOLEAN {
    wdk::println!("synchronized at {}", irql());
    1
}

/// A routine for `KeSynchronizeExecution`.
unsafe extern "C" fn synchronized_by_kernel(context: *mut c_void) -> BOOLEAN {
    wdk::println!("synchronized with {} at {}", context as usize, irql());
    1
}

/// Calls `KeSynchronizeExecution` for the interrupt's kernel object.
fn synchronize_by_kernel(interrupt: WDFINTERRUPT) {
    let object = wdf!(WdfInterruptWdmGetInterrupt, interrupt);
    let context = ptr::without_provenance_mut(7);
    let result = nt!(KeSynchronizeExecution, object, Some(synchronized_by_kernel), context);
    wdk::println!("{result} at {}", irql());
}

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(request: WDFREQUEST, code: ULONG) -> bool {
    if code != commands::LOCK {
        return false;
    }
    let interrupt = INTERRUPT.load(Ordering::Relaxed);
    wdf!(WdfInterruptAcquireLock, interrupt);
    wdk::println!("locked at {}", irql());
    wdf!(WdfInterruptReleaseLock, interrupt);
    let result = wdf!(
        WdfInterruptSynchronize,
        interrupt,
        Some(synchronized),
        ptr::null_mut::<core::ffi::c_void>()
    );
    let mut info = sized!(WDF_INTERRUPT_INFO {});
    wdf!(WdfInterruptGetInfo, interrupt, &raw mut info);
    wdk::println!("{result} vector {} level {} at {}", info.Vector, info.Irql, irql());
    synchronize_by_kernel(interrupt);
    complete(request, STATUS_SUCCESS);
    true
}
