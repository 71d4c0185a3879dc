//! The kernel objects below the framework's timers and DPCs, and devices that are removed together
//! with other devices.

use core::ptr;

use etw_driver_support::{nt, sized};
use wdk_sys::{
    NTSTATUS, PDEVICE_OBJECT, STATUS_SUCCESS, ULONG, WDF_DPC_CONFIG, WDF_TIMER_CONFIG, WDFDEVICE,
    WDFDPC, WDFREQUEST, WDFTIMER,
};

use crate::{
    commands,
    framework::{child_of, complete, wdf},
    interrupt,
};

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    if code != commands::BELOW {
        return false;
    }
    relate(device);
    use_timers(device);
    use_dpc(device);
    interrupt::print_object();
    complete(request, STATUS_SUCCESS);
    true
}

fn relate(device: WDFDEVICE) {
    let physical: PDEVICE_OBJECT = wdf!(WdfDeviceWdmGetPhysicalDevice, device);
    let add = || -> NTSTATUS { wdf!(WdfDeviceAddRemovalRelationsPhysicalDevice, device, physical) };
    let (first, second) = (add(), add());
    wdf!(WdfDeviceRemoveRemovalRelationsPhysicalDevice, device, physical);
    let third = add();
    wdf!(WdfDeviceClearRemovalRelationsDevices, device);
    let fourth = add();
    wdk::println!("relations {first:x} {second:x} {third:x} {fourth:x}");
}

/// Creates a timer that has a tolerable delay but must be exact, and a timer without a function.
fn use_timers(device: WDFDEVICE) {
    let mut attributes = child_of(device.cast());
    let mut timer: WDFTIMER = ptr::null_mut();
    let mut create = |config: &mut WDF_TIMER_CONFIG| -> NTSTATUS {
        wdf!(WdfTimerCreate, config, &raw mut attributes, &raw mut timer)
    };
    let mut config = sized!(WDF_TIMER_CONFIG { TolerableDelay: 10, UseHighResolutionTimer: 1 });
    let both = create(&mut config);
    config.TolerableDelay = 0;
    let exact = create(&mut config);
    let was_set = wdf!(WdfTimerStart, timer, -1);
    wdk::println!("timers {both:x} {exact:x} {was_set}");
}

extern "C" fn dpc(_dpc: WDFDPC) {
    wdk::println!("dpc runs");
}

/// Changes the settings of a DPC, and queues it.
fn use_dpc(device: WDFDEVICE) {
    let mut attributes = child_of(device.cast());
    let mut config = sized!(WDF_DPC_CONFIG { EvtDpcFunc: Some(dpc) });
    let mut handle: WDFDPC = ptr::null_mut();
    let status = wdf!(WdfDpcCreate, &raw mut config, &raw mut attributes, &raw mut handle);
    let object = wdf!(WdfDpcWdmGetDpc, handle);
    nt!(KeSetImportanceDpc, object, wdk_sys::_KDPC_IMPORTANCE::HighImportance);
    nt!(KeSetTargetProcessorDpc, object, 0);
    let again = wdf!(WdfDpcWdmGetDpc, handle);
    wdk::println!("dpc {status:x} {}", object == again);
    let _was_idle = wdf!(WdfDpcEnqueue, handle);
}
