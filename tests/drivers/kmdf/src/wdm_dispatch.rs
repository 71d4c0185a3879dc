//! IRPs that the driver dispatches itself.

use core::ptr;

use wdk_sys::{
    IRP_MJ_CREATE, IRP_MJ_DEVICE_CONTROL, IRP_MJ_WRITE, NT_SUCCESS, NTSTATUS, PIRP, STATUS_SUCCESS,
    UCHAR, ULONG, WDFCONTEXT, WDFDEVICE, WDFDRIVER,
};

use crate::{
    commands,
    framework::wdf,
    mode::{self, Mode},
    queues,
};

/// The context of the callbacks.
const CONTEXT: usize = 7;

/// Requests the IRPs of writes and device controls, if the mode selects it.
pub fn configure(device: WDFDEVICE) -> NTSTATUS {
    if !mode::is(Mode::Directs) {
        return STATUS_SUCCESS;
    }
    let set = |major: u32| -> NTSTATUS {
        let none: WDFDRIVER = ptr::null_mut();
        wdf!(
            WdfDeviceConfigureWdmIrpDispatchCallback,
            device,
            none,
            major as UCHAR,
            Some(direct),
            CONTEXT as WDFCONTEXT
        )
    };
    let of_create = set(IRP_MJ_CREATE);
    let of_write = set(IRP_MJ_WRITE);
    let of_control = set(IRP_MJ_DEVICE_CONTROL);
    wdk::println!("directs {of_create:x} {of_write:x} {of_control:x}");
    if NT_SUCCESS(of_write) { of_control } else { of_write }
}

/// `EvtDeviceWdmIrpDispatch`: puts writes in the manual queue, and leaves other requests to the
/// framework.
extern "C" fn direct(
    device: WDFDEVICE,
    major: UCHAR,
    minor: UCHAR,
    code: ULONG,
    context: WDFCONTEXT,
    irp: PIRP,
    dispatch: WDFCONTEXT,
) -> NTSTATUS {
    let is_own = context as usize == CONTEXT;
    if u32::from(major) == IRP_MJ_WRITE {
        let status = wdf!(WdfDeviceWdmDispatchIrpToIoQueue, device, irp, queues::manual(), 0);
        wdk::println!("to the queue {minor} {code} {is_own} {status:x}");
        return status;
    }
    let context = if code == commands::IRP_BUFFERS {
        // The value differs from the value that the callback received.
        CONTEXT as WDFCONTEXT
    } else {
        dispatch
    };
    let status = wdf!(WdfDeviceWdmDispatchIrp, device, irp, context);
    wdk::println!("to the framework {} {status:x}", code == commands::STATE);
    status
}
