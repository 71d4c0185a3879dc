//! A driver of a device with registers and an interrupt. It sends the device's reports to another
//! device.
//!
//! Tests check that the driver compiles without the WDK, and that the stand-in kernel names the
//! routines that it does not provide.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

use core::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use etw_driver_support::{Service, check, config, create_driver, nt, sized, wdf};
use wdk_sys::{
    _WDF_IO_TARGET_OPEN_TYPE::WdfIoTargetOpenByName,
    _WDF_MEMORY_DESCRIPTOR_TYPE::WdfMemoryDescriptorTypeBuffer, _WDF_TRI_STATE::WdfUseDefault,
    BOOLEAN, CmResourceTypeMemory, DRIVER_OBJECT, FILE_DEVICE_UNKNOWN, GENERIC_WRITE, NT_SUCCESS,
    NTSTATUS, PAGE_NOCACHE, PAGE_READWRITE, PWDFDEVICE_INIT, STATUS_DEVICE_CONFIGURATION_ERROR,
    STATUS_INSUFFICIENT_RESOURCES, STATUS_SUCCESS, ULONG, UNICODE_STRING, WDF_DRIVER_CONFIG,
    WDF_INTERRUPT_CONFIG, WDF_IO_TARGET_OPEN_PARAMS, WDF_MEMORY_DESCRIPTOR,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_PNPPOWER_EVENT_CALLBACKS, WDFCMRESLIST, WDFDEVICE, WDFDRIVER,
    WDFINTERRUPT, WDFIOTARGET, WDFOBJECT,
};

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let config = WDF_DRIVER_CONFIG { EvtDriverDeviceAdd: Some(add_device), ..config() };
    create_driver(driver, service, config, None)
}

/// The number of register bytes, and the number of microseconds that the device needs after
/// power-up.
const REGISTERS: usize = 8;
const POWER_UP: ULONG = 50;

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x900, METHOD_BUFFERED, FILE_ANY_ACCESS)`.
const IOCTL_REPORT: ULONG = (FILE_DEVICE_UNKNOWN << 16) | (0x900 << 2);

/// The device's registers: the state, and the acknowledgement.
static MAPPED: AtomicPtr<u32> = AtomicPtr::new(ptr::null_mut());
/// The state at the last interrupt.
static STATE: AtomicU32 = AtomicU32::new(0);
/// The device that receives the reports.
static TARGET: AtomicPtr<wdk_sys::WDFIOTARGET__> = AtomicPtr::new(ptr::null_mut());

/// `\Device\Reports`.
static NAME: [u16; 15] = {
    let name = b"\\Device\\Reports";
    let mut units = [0; 15];
    let mut at = 0;
    while at < units.len() {
        units[at] = name[at] as u16;
        at += 1;
    }
    units
};

/// `EvtDriverDeviceAdd`.
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut callbacks = sized!(WDF_PNPPOWER_EVENT_CALLBACKS {
        EvtDevicePrepareHardware: Some(prepare_hardware),
        EvtDeviceReleaseHardware: Some(release_hardware)
    });
    wdf!(WdfDeviceInitSetPnpPowerEventCallbacks, init, &raw mut callbacks);
    let mut device: WDFDEVICE = ptr::null_mut();
    wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device)
}

/// `EvtDevicePrepareHardware`: maps the registers, connects the interrupt, and opens the device
/// that receives the reports.
extern "C" fn prepare_hardware(
    device: WDFDEVICE,
    _raw: WDFCMRESLIST,
    translated: WDFCMRESLIST,
) -> NTSTATUS {
    nt!(KeStallExecutionProcessor, POWER_UP);
    check!(map_registers(translated));
    let mut interrupt = sized!(WDF_INTERRUPT_CONFIG {
        ShareVector: WdfUseDefault,
        ReportInactiveOnPowerDown: WdfUseDefault,
        EvtInterruptIsr: Some(isr),
        EvtInterruptWorkItem: Some(report)
    });
    let mut created: WDFINTERRUPT = ptr::null_mut();
    check!(wdf!(
        WdfInterruptCreate, device, &raw mut interrupt, WDF_NO_OBJECT_ATTRIBUTES, &raw mut created
    ));
    let mut target: WDFIOTARGET = ptr::null_mut();
    check!(wdf!(WdfIoTargetCreate, device, WDF_NO_OBJECT_ATTRIBUTES, &raw mut target));
    let length = size_of_val(&NAME) as u16;
    let mut parameters = sized!(WDF_IO_TARGET_OPEN_PARAMS {
        Type: WdfIoTargetOpenByName,
        TargetDeviceName: UNICODE_STRING {
            Length: length,
            MaximumLength: length,
            Buffer: NAME.as_ptr().cast_mut(),
        },
        DesiredAccess: GENERIC_WRITE
    });
    check!(wdf!(WdfIoTargetOpen, target, &raw mut parameters));
    TARGET.store(target, Ordering::Release);
    STATUS_SUCCESS
}

/// Maps the first memory resource.
fn map_registers(resources: WDFCMRESLIST) -> NTSTATUS {
    for index in 0..wdf!(WdfCmResourceListGetCount, resources) {
        let resource = wdf!(WdfCmResourceListGetDescriptor, resources, index);
        // SAFETY: the framework returns a descriptor for each index below the count.
        let resource = unsafe { &*resource };
        if u32::from(resource.Type) == CmResourceTypeMemory {
            // SAFETY: this type has the member for memory.
            let start = unsafe { resource.u.Memory.Start };
            let mapped =
                nt!(MmMapIoSpaceEx, start, REGISTERS as u64, PAGE_READWRITE | PAGE_NOCACHE);
            MAPPED.store(mapped.cast(), Ordering::Release);
            return if mapped.is_null() { STATUS_INSUFFICIENT_RESOURCES } else { STATUS_SUCCESS };
        }
    }
    STATUS_DEVICE_CONFIGURATION_ERROR
}

/// `EvtDeviceReleaseHardware`.
extern "C" fn release_hardware(_device: WDFDEVICE, _translated: WDFCMRESLIST) -> NTSTATUS {
    let target = TARGET.swap(ptr::null_mut(), Ordering::AcqRel);
    if !target.is_null() {
        wdf!(WdfIoTargetClose, target);
    }
    let mapped = MAPPED.swap(ptr::null_mut(), Ordering::AcqRel);
    if !mapped.is_null() {
        nt!(MmUnmapIoSpace, mapped.cast(), REGISTERS as u64);
    }
    STATUS_SUCCESS
}

/// `EvtInterruptIsr`: reads and acknowledges the device's state.
extern "C" fn isr(interrupt: WDFINTERRUPT, _message: ULONG) -> BOOLEAN {
    let registers = MAPPED.load(Ordering::Acquire);
    // SAFETY: the registers are mapped while the interrupt is connected.
    let state = unsafe { registers.read_volatile() };
    if state == 0 {
        return 0;
    }
    // SAFETY: the second register is within the mapping.
    let acknowledge = unsafe { registers.add(1) };
    // SAFETY: as above.
    unsafe { acknowledge.write_volatile(state) };
    nt!(KeFlushWriteBuffer);
    STATE.store(state, Ordering::Release);
    // If the work item is already queued, it is not queued again.
    let _is_queued = wdf!(WdfInterruptQueueWorkItemForIsr, interrupt);
    1
}

/// `EvtInterruptWorkItem`: sends the last state to the other device.
extern "C" fn report(_interrupt: WDFINTERRUPT, _device: WDFOBJECT) {
    let mut state = STATE.load(Ordering::Acquire);
    let mut input = WDF_MEMORY_DESCRIPTOR {
        Type: WdfMemoryDescriptorTypeBuffer,
        ..WDF_MEMORY_DESCRIPTOR::default()
    };
    input.u.BufferType.Buffer = (&raw mut state).cast();
    input.u.BufferType.Length = size_of_val(&state) as u32;
    let status = wdf!(
        WdfIoTargetSendIoctlSynchronously,
        TARGET.load(Ordering::Acquire),
        ptr::null_mut(),
        IOCTL_REPORT,
        &raw mut input,
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut()
    );
    if !NT_SUCCESS(status) {
        wdk::println!("the report failed with 0x{status:08x}");
    }
}
