//! The driver as a bus driver: a child list, a static child, and a function table for children.

use core::ptr;

use etw_driver_support::{check, guid, made, sized};
use wdk_sys::{
    GUID, INTERFACE, NT_SUCCESS, NTSTATUS, PVOID, PWDF_CHILD_IDENTIFICATION_DESCRIPTION_HEADER,
    PWDFDEVICE_INIT, STATUS_SUCCESS, ULONG, WDF_CHILD_IDENTIFICATION_DESCRIPTION_HEADER,
    WDF_CHILD_LIST_CONFIG, WDF_CHILD_LIST_ITERATOR, WDF_CHILD_RETRIEVE_INFO, WDF_IO_QUEUE_CONFIG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_QUERY_INTERFACE_CONFIG, WDF_REQUEST_FORWARD_OPTIONS,
    WDFCHILDLIST, WDFDEVICE, WDFQUEUE, WDFREQUEST,
};

use crate::{
    commands,
    framework::{complete, counted, utf16, wdf},
    presentation,
};

/// The identification of a child in the list.
#[repr(C)]
#[derive(Clone, Copy)]
struct Description {
    header: WDF_CHILD_IDENTIFICATION_DESCRIPTION_HEADER,
    number: u32,
}

impl Description {
    const fn new(number: u32) -> Self {
        Self {
            header: WDF_CHILD_IDENTIFICATION_DESCRIPTION_HEADER {
                IdentificationDescriptionSize: size_of::<Self>() as u32,
            },
            number,
        }
    }
}

/// `{9d3f6f1a-3f5c-4d0b-8e7b-6a1c2d3e4f50}`.
static TABLE: GUID =
    guid(0x9d3f_6f1a, 0x3f5c, 0x4d0b, [0x8e, 0x7b, 0x6a, 0x1c, 0x2d, 0x3e, 0x4f, 0x50]);

const DEVICE_ID: [u16; 10] = utf16(br"KMDF\Child");
const INSTANCE_ID: [u16; 2] = utf16(b"07");
const TEXT: [u16; 5] = utf16(b"child");
const DESCRIPTOR: [u16; 27] = utf16(b"D:P(A;;GA;;;SY)(A;;GA;;;BA)");
const ENGLISH: ULONG = 0x409;

/// Describes the child list.
pub fn configure(init: PWDFDEVICE_INIT) {
    let mut config = sized!(WDF_CHILD_LIST_CONFIG {
        IdentificationDescriptionSize: size_of::<Description>() as u32,
        EvtChildListCreateDevice: Some(create_listed)
    });
    wdf!(WdfFdoInitSetDefaultChildListConfig, init, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES);
}

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::ADD_CHILDREN => add(device),
        commands::CHILDREN => print(device),
        commands::REMOVE_CHILDREN => remove(device),
        commands::QUERY => query(device),
        commands::RETRIEVE_CHILD => retrieve(device),
        _ => return false,
    }
    complete(request, STATUS_SUCCESS);
    true
}

fn add(device: WDFDEVICE) {
    let list = wdf!(WdfFdoGetDefaultChildList, device);
    let same = wdf!(WdfChildListGetDevice, list) == device;
    let mut description = Description::new(7);
    let mut report = || {
        wdf!(
            WdfChildListAddOrUpdateChildDescriptionAsPresent,
            list,
            &raw mut description.header,
            ptr::null_mut()
        )
    };
    let first = report();
    let second = report();
    wdk::println!("list {same} {first:x} {second:x}");
    let init = wdf!(WdfPdoInitAllocate, device);
    let mut child: WDFDEVICE = ptr::null_mut();
    let status = create(init, &mut child);
    let added = wdf!(WdfFdoAddStaticChild, device, child);
    let parent = wdf!(WdfPdoGetParent, child) == device;
    wdk::println!("static {status:x} {added:x} {parent}");
}

/// Creates the device of a child.
fn create(mut init: PWDFDEVICE_INIT, child: &mut WDFDEVICE) -> NTSTATUS {
    let without = wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, child);
    let id = counted(&DEVICE_ID);
    let instance = counted(&INSTANCE_ID);
    let text = counted(&TEXT);
    let statuses = [
        wdf!(WdfPdoInitAssignDeviceID, init, &raw const id),
        wdf!(WdfPdoInitAddHardwareID, init, &raw const id),
        wdf!(WdfPdoInitAddCompatibleID, init, &raw const id),
        wdf!(WdfPdoInitAssignInstanceID, init, &raw const instance),
        wdf!(WdfPdoInitAddDeviceText, init, &raw const text, &raw const text, ENGLISH),
    ];
    // The framework gives a child a name; the descriptor protects the child.
    let descriptor = counted(&DESCRIPTOR);
    let protected = wdf!(WdfDeviceInitAssignSDDLString, init, &raw const descriptor);
    if protected != STATUS_SUCCESS {
        return protected;
    }
    wdf!(WdfPdoInitSetDefaultLocale, init, ENGLISH);
    wdf!(WdfPdoInitAllowForwardingRequestToParent, init);
    let status = wdf!(WdfDeviceCreate, &raw mut init, WDF_NO_OBJECT_ATTRIBUTES, child);
    wdk::println!("without an id {without:x}, then {statuses:x?} {status:x}");
    if !NT_SUCCESS(status) {
        return status;
    }
    let mut table = INTERFACE {
        Size: size_of::<INTERFACE>() as u16,
        Version: 1,
        Context: (*child).cast(),
        InterfaceReference: Some(reference),
        InterfaceDereference: Some(reference),
    };
    let mut config = sized!(WDF_QUERY_INTERFACE_CONFIG {
        Interface: &raw mut table,
        InterfaceType: &raw const TABLE
    });
    check!(wdf!(WdfDeviceAddQueryInterface, *child, &raw mut config));
    forward_requests(*child)
}

/// Allows opening a child, and creates its queue, which forwards requests to the parent.
fn forward_requests(child: WDFDEVICE) -> NTSTATUS {
    let mut config = sized!(WDF_IO_QUEUE_CONFIG {
        DispatchType: wdk_sys::_WDF_IO_QUEUE_DISPATCH_TYPE::WdfIoQueueDispatchParallel,
        PowerManaged: wdk_sys::_WDF_TRI_STATE::WdfFalse,
        DefaultQueue: 1,
        EvtIoDefault: Some(forward)
    });
    config.Settings.Parallel.NumberOfPresentedRequests = ULONG::MAX;
    let mut queue: WDFQUEUE = ptr::null_mut();
    check!(wdf!(
        WdfIoQueueCreate, child, &raw mut config, WDF_NO_OBJECT_ATTRIBUTES, &raw mut queue
    ));
    wdf!(WdfDeviceCreateDeviceInterface, child, &raw const TABLE, ptr::null())
}

/// `EvtIoDefault` of a child's queue.
extern "C" fn forward(queue: WDFQUEUE, request: WDFREQUEST) {
    let mut options = sized!(WDF_REQUEST_FORWARD_OPTIONS { Flags: 1 });
    let own = wdf!(WdfRequestForwardToParentDeviceIoQueue, request, queue, &raw mut options);
    let status = wdf!(
        WdfRequestForwardToParentDeviceIoQueue,
        request,
        presentation::second_queue(),
        &raw mut options
    );
    wdk::println!("to the child's own queue {own:x}, to the parent's {status:x}");
    if !NT_SUCCESS(status) {
        complete(request, status);
    }
}

extern "C" fn reference(_context: PVOID) {
    wdk::println!("reference");
}

/// `EvtChildListCreateDevice`.
extern "C" fn create_listed(
    _list: WDFCHILDLIST,
    description: PWDF_CHILD_IDENTIFICATION_DESCRIPTION_HEADER,
    init: PWDFDEVICE_INIT,
) -> NTSTATUS {
    // SAFETY: the framework passes a description of the size that the driver configured.
    let description = unsafe { *description.cast::<Description>() };
    wdk::println!("create {}", description.number);
    let mut child: WDFDEVICE = ptr::null_mut();
    create(init, &mut child)
}

/// Retrieves the child in the list, which has no address description, and a missing child.
fn retrieve(device: WDFDEVICE) {
    let list = wdf!(WdfFdoGetDefaultChildList, device);
    let ask = |number: u32| {
        let mut description = Description::new(number);
        let mut info = sized!(WDF_CHILD_RETRIEVE_INFO {
            IdentificationDescription: &raw mut description.header
        });
        let child = wdf!(WdfChildListRetrievePdo, list, &raw mut info);
        (child, info.Status)
    };
    let (missing, status) = ask(8);
    let (child, there) = ask(7);
    wdk::println!("child {} {status} {} {there}", missing.is_null(), child.is_null());
    let mut description = Description::new(0);
    let id = wdf!(WdfPdoRetrieveIdentificationDescription, child, &raw mut description.header);
    let mut address = wdk_sys::WDF_CHILD_ADDRESS_DESCRIPTION_HEADER { AddressDescriptionSize: 8 };
    let by_device = wdf!(WdfPdoRetrieveAddressDescription, child, &raw mut address);
    let updated = wdf!(WdfPdoUpdateAddressDescription, child, &raw mut address);
    let by_id = wdf!(
        WdfChildListRetrieveAddressDescription, list, &raw mut description.header, &raw mut address
    );
    let of_static = wdf!(
        WdfPdoRetrieveIdentificationDescription,
        static_child(device),
        &raw mut description.header
    );
    wdk::println!(
        "id {id:x} {} address {by_device:x} {updated:x} {by_id:x} static {of_static:x}",
        description.number
    );
}

/// Returns the static child.
fn static_child(device: WDFDEVICE) -> WDFDEVICE {
    wdf!(WdfFdoLockStaticChildListForIteration, device);
    let child = wdf!(WdfFdoRetrieveNextStaticChild, device, ptr::null_mut(), 1);
    wdf!(WdfFdoUnlockStaticChildListFromIteration, device);
    child
}

fn print(device: WDFDEVICE) {
    let list = wdf!(WdfFdoGetDefaultChildList, device);
    let mut iterator = sized!(WDF_CHILD_LIST_ITERATOR { Flags: 1 });
    wdf!(WdfChildListBeginIteration, list, &raw mut iterator);
    loop {
        let mut description = Description::new(0);
        let mut info = sized!(WDF_CHILD_RETRIEVE_INFO {
            IdentificationDescription: &raw mut description.header
        });
        let (status, child) = made(|handle| {
            wdf!(WdfChildListRetrieveNextDevice, list, &raw mut iterator, handle, &raw mut info)
        });
        let is_there = !child.is_null();
        wdk::println!("listed {status:x} {} {is_there}", description.number);
        if !NT_SUCCESS(status) {
            break;
        }
    }
    wdf!(WdfChildListEndIteration, list, &raw mut iterator);
    wdf!(WdfFdoLockStaticChildListForIteration, device);
    let first = wdf!(WdfFdoRetrieveNextStaticChild, device, ptr::null_mut(), 1);
    let second = if first.is_null() {
        ptr::null_mut()
    } else {
        wdf!(WdfFdoRetrieveNextStaticChild, device, first, 1)
    };
    wdf!(WdfFdoUnlockStaticChildListFromIteration, device);
    wdk::println!("static {} {}", !first.is_null(), !second.is_null());
}

fn remove(device: WDFDEVICE) {
    let list = wdf!(WdfFdoGetDefaultChildList, device);
    // The scan finds no child.
    wdf!(WdfChildListBeginScan, list);
    wdf!(WdfChildListEndScan, list);
    let child = static_child(device);
    let missing = wdf!(WdfPdoMarkMissing, child);
    let again = wdf!(WdfPdoMarkMissing, child);
    wdk::println!("missing {missing:x} {again:x}");
}

fn query(device: WDFDEVICE) {
    let mut table = INTERFACE::default();
    let ask = |size: u16, version: u16, table: &mut INTERFACE| {
        wdf!(
            WdfFdoQueryForInterface,
            device,
            &raw const TABLE,
            table,
            size,
            version,
            ptr::null_mut()
        )
    };
    let size = size_of::<INTERFACE>() as u16;
    let found = ask(size, 1, &mut table);
    let short = ask(size - 1, 1, &mut table);
    wdk::println!("query {found:x} {short:x} version {}", table.Version);
}
