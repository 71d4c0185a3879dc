//! The driver's callbacks for IRPs that it dispatches itself.

use std::collections::HashMap;

use super::irp::irp_of;
use crate::services::kmdf::state::{
    device::DeviceData,
    framework::Context,
    request::{RequestData, RequestKind},
};

/// The callbacks of a device and their contexts, by major function.
#[derive(Default)]
pub struct Callbacks(pub HashMap<u8, (u64, u64)>);

/// Calls the device's callback for IRPs of a major function. Returns `false` if the device has no
/// such callback.
pub fn call(context: &Context, device: u64, request: u64, major: u8) -> bool {
    let callback = context
        .with::<DeviceData, _>(device, |device| device.part::<Callbacks>().0.get(&major).copied());
    let Some((routine, driver_context)) = callback else {
        return false;
    };
    let kind = context.with::<RequestData, _>(request, |request| request.kind);
    let code = match kind {
        RequestKind::DeviceControl { code } | RequestKind::InternalDeviceControl { code } => code,
        _ => 0,
    };
    let irp = irp_of(context, request);
    let arguments = [device, u64::from(major), 0, u64::from(code), driver_context, irp, request];
    context.call_driver("EvtDeviceWdmIrpDispatch", routine, arguments);
    true
}
