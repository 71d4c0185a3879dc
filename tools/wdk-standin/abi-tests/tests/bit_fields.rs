//! Tests the bit field accessors and the support types of the bindings.

use wdk_sys::{DEVICE_CAPABILITIES, WDFDEVICE_INIT};

#[test]
fn writing_a_bit_field_changes_no_other() {
    let mut capabilities = DEVICE_CAPABILITIES::default();
    capabilities.set_DeviceD2(1);
    capabilities.set_Removable(1);
    assert_eq!(
        (
            capabilities.DeviceD1(),
            capabilities.DeviceD2(),
            capabilities.LockSupported(),
            capabilities.Removable()
        ),
        (0, 1, 0, 1)
    );
    capabilities.set_DeviceD2(0);
    assert_eq!((capabilities.DeviceD2(), capabilities.Removable()), (0, 1));
}

#[test]
fn a_wide_bit_field_keeps_its_neighbours() {
    let mut capabilities = DEVICE_CAPABILITIES::default();
    capabilities.set_Reserved(u32::MAX);
    assert_eq!(capabilities.DeviceD1(), 0);
    // The value is truncated to the field's width.
    assert!(capabilities.Reserved() < u32::MAX && capabilities.Reserved() & 1 == 1);
}

#[test]
fn the_pointer_accessors_access_the_same_fields() {
    let mut capabilities = DEVICE_CAPABILITIES::default();
    // SAFETY: the pointer is to a local variable.
    unsafe { DEVICE_CAPABILITIES::set_EjectSupported_raw(&raw mut capabilities, 1) };
    assert_eq!(capabilities.EjectSupported(), 1);
    // SAFETY: as above.
    let read = unsafe { DEVICE_CAPABILITIES::EjectSupported_raw(&raw const capabilities) };
    assert_eq!(read, 1);
}

#[test]
fn a_unions_bit_fields_overlay_its_other_member() {
    let mut node = wdk_sys::_RTL_BALANCED_NODE__bindgen_ty_2 { ParentValue: 0b110 };
    assert_eq!((node.Red(), node.Balance()), (0, 0b10));
    node.set_Red(1);
    // SAFETY: every bit pattern is a valid integer.
    assert_eq!(unsafe { node.ParentValue }, 0b111);
}

#[test]
fn a_type_that_the_headers_only_declare_has_no_size() {
    assert_eq!(size_of::<WDFDEVICE_INIT>(), 0);
    // The headers define the structure, but in the bindings it is a single byte.
    assert_eq!(size_of::<wdk_sys::_EPROCESS>(), 1);
}
