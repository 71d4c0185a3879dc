//! A driver of a USB device. It selects the device's configuration, and reads from the device's
//! first pipe.
//!
//! Tests check that the driver compiles without the WDK, and that the stand-in kernel names the
//! routines that it does not provide.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

use core::ptr;

use etw_driver_support::{Service, check, config, create_driver, sized, wdf};
use wdk_sys::{
    _WdfUsbTargetDeviceSelectConfigType::WdfUsbTargetDeviceSelectConfigTypeSingleInterface,
    DRIVER_OBJECT, NTSTATUS, PWDFDEVICE_INIT, STATUS_DEVICE_CONFIGURATION_ERROR,
    STATUS_INSUFFICIENT_RESOURCES, STATUS_SUCCESS, USB_CONFIGURATION_DESCRIPTOR,
    USB_DEVICE_DESCRIPTOR, USBD_CLIENT_CONTRACT_VERSION_602, USHORT, WDF_DRIVER_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_OBJECT_ATTRIBUTES, WDF_PNPPOWER_EVENT_CALLBACKS,
    WDF_USB_CONTINUOUS_READER_CONFIG, WDF_USB_DEVICE_CREATE_CONFIG,
    WDF_USB_DEVICE_SELECT_CONFIG_PARAMS, WDF_USB_PIPE_INFORMATION, WDFCMRESLIST, WDFCONTEXT,
    WDFDEVICE, WDFDRIVER, WDFMEMORY, WDFUSBDEVICE, WDFUSBPIPE,
    usb::USBD_ParseConfigurationDescriptorEx,
};

etw_driver_support::entry!(driver_entry);

fn driver_entry(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let config = WDF_DRIVER_CONFIG { EvtDriverDeviceAdd: Some(add_device), ..config() };
    create_driver(driver, service, config, None)
}

/// `EvtDriverDeviceAdd`.
extern "C" fn add_device(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut callbacks =
        sized!(WDF_PNPPOWER_EVENT_CALLBACKS { EvtDevicePrepareHardware: Some(prepare_hardware) });
    wdf!(WdfDeviceInitSetPnpPowerEventCallbacks, init, &raw mut callbacks);
    let mut device: WDFDEVICE = ptr::null_mut();
    wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, &raw mut device)
}

/// `EvtDevicePrepareHardware`: selects the configuration, and starts reading.
extern "C" fn prepare_hardware(
    device: WDFDEVICE,
    _raw: WDFCMRESLIST,
    _translated: WDFCMRESLIST,
) -> NTSTATUS {
    let mut config = WDF_USB_DEVICE_CREATE_CONFIG {
        Size: size_of::<WDF_USB_DEVICE_CREATE_CONFIG>() as u32,
        USBDClientContractVersion: USBD_CLIENT_CONTRACT_VERSION_602,
    };
    let mut target: WDFUSBDEVICE = ptr::null_mut();
    check!(wdf!(
        WdfUsbTargetDeviceCreateWithParameters, device, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES,
        &raw mut target
    ));
    let mut descriptor = USB_DEVICE_DESCRIPTOR::default();
    wdf!(WdfUsbTargetDeviceGetDeviceDescriptor, target, &raw mut descriptor);
    // The fields are copied, because the descriptor is packed.
    let (vendor, product) = (descriptor.idVendor, descriptor.idProduct);
    wdk::println!("device {vendor:04x}:{product:04x}");
    check!(find_interface(device, target));
    let mut parameters = sized!(WDF_USB_DEVICE_SELECT_CONFIG_PARAMS {
        Type: WdfUsbTargetDeviceSelectConfigTypeSingleInterface
    });
    check!(wdf!(
        WdfUsbTargetDeviceSelectConfig, target, WDF_NO_OBJECT_ATTRIBUTES, &raw mut parameters
    ));
    // SAFETY: the framework fills in the member that belongs to the type.
    let interface = unsafe { parameters.Types.SingleInterface.ConfiguredUsbInterface };
    if wdf!(WdfUsbInterfaceGetNumConfiguredPipes, interface) == 0 {
        return STATUS_DEVICE_CONFIGURATION_ERROR;
    }
    let mut information = sized!(WDF_USB_PIPE_INFORMATION {});
    let pipe = wdf!(WdfUsbInterfaceGetConfiguredPipe, interface, 0, &raw mut information);
    let mut reader = sized!(WDF_USB_CONTINUOUS_READER_CONFIG {
        TransferLength: information.MaximumPacketSize as usize,
        EvtUsbTargetPipeReadComplete: Some(read_complete)
    });
    wdf!(WdfUsbTargetPipeConfigContinuousReader, pipe, &raw mut reader)
}

/// Fails if the device's configuration does not contain interface 0.
fn find_interface(device: WDFDEVICE, target: WDFUSBDEVICE) -> NTSTATUS {
    let mut length: USHORT = 0;
    // The call without a buffer fails, and returns the required length.
    let _too_small =
        wdf!(WdfUsbTargetDeviceRetrieveConfigDescriptor, target, ptr::null_mut(), &raw mut length);
    let mut attributes = sized!(WDF_OBJECT_ATTRIBUTES { ParentObject: device.cast() });
    let mut memory: WDFMEMORY = ptr::null_mut();
    let mut buffer = ptr::null_mut();
    check!(wdf!(
        WdfMemoryCreate,
        &raw mut attributes,
        wdk_sys::_POOL_TYPE::NonPagedPoolNx,
        u32::from_le_bytes(*b"bsuT"),
        usize::from(length),
        &raw mut memory,
        &raw mut buffer
    ));
    if buffer.is_null() {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    check!(wdf!(WdfUsbTargetDeviceRetrieveConfigDescriptor, target, buffer, &raw mut length));
    let configuration: *mut USB_CONFIGURATION_DESCRIPTOR = buffer.cast();
    // SAFETY: the framework wrote the whole descriptor; -1 stands for any value.
    let interface =
        unsafe { USBD_ParseConfigurationDescriptorEx(configuration, buffer, 0, -1, -1, -1, -1) };
    if interface.is_null() { STATUS_DEVICE_CONFIGURATION_ERROR } else { STATUS_SUCCESS }
}

/// `EvtUsbTargetPipeReadComplete`.
extern "C" fn read_complete(
    _pipe: WDFUSBPIPE,
    _buffer: WDFMEMORY,
    length: usize,
    _context: WDFCONTEXT,
) {
    wdk::println!("{length} bytes from the pipe");
}
