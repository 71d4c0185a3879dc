//! The driver as a miniport driver: it has its own dispatch routines and its own `DEVICE_OBJECT`,
//! for which it creates a framework device.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{Service, check, config, create_driver, made, nt, sized};
use wdk_sys::{
    DRIVER_OBJECT, FILE_DEVICE_UNKNOWN, NT_SUCCESS, NTSTATUS, PDEVICE_OBJECT, PDRIVER_OBJECT,
    PWDF_DRIVER_GLOBALS, PWDF_OBJECT_ATTRIBUTES, WDF_DRIVER_CONFIG, WDF_TIMER_CONFIG, WDFDEVICE,
    WDFDRIVER, WDFTIMER,
};

use crate::framework::{attributes, child_of, wdf};

static DRIVER: AtomicPtr<wdk_sys::WDFDRIVER__> = AtomicPtr::new(ptr::null_mut());
static OBJECT: AtomicPtr<wdk_sys::DEVICE_OBJECT> = AtomicPtr::new(ptr::null_mut());
static DEVICE: AtomicPtr<wdk_sys::WDFDEVICE__> = AtomicPtr::new(ptr::null_mut());

/// `WdfDeviceMiniportCreate`. wdk-sys does not declare it, because it is in a separate header.
type MiniportCreate = unsafe extern "C" fn(
    PWDF_DRIVER_GLOBALS,
    WDFDRIVER,
    PWDF_OBJECT_ATTRIBUTES,
    PDEVICE_OBJECT,
    PDEVICE_OBJECT,
    PDEVICE_OBJECT,
    *mut WDFDEVICE,
) -> NTSTATUS;

/// `WdfDriverMiniportUnload`. wdk-sys does not declare it either.
type MiniportUnload = unsafe extern "C" fn(PWDF_DRIVER_GLOBALS, WDFDRIVER);

/// Returns an entry of the framework's table as a function of the type `F`.
///
/// # Safety
///
/// The entry must be a function of this type.
unsafe fn entry<F: Copy>(index: i32) -> F {
    // SAFETY: the stub stored the address of the framework's table before the driver's entry ran.
    let table = unsafe { wdk_sys::WdfFunctions };
    // SAFETY: the table contains all functions in the headers.
    let function = unsafe { table.add(index.cast_unsigned() as usize) };
    // SAFETY: the caller guarantees the type, and a pointer to a function has the size of an entry.
    unsafe { *function.cast::<F>() }
}

/// Creates the driver object and a device.
pub fn start(driver: &mut DRIVER_OBJECT, service: Service<'_>) -> NTSTATUS {
    let config = WDF_DRIVER_CONFIG {
        DriverInitFlags: wdk_sys::_WDF_DRIVER_INIT_FLAGS::WdfDriverInitNoDispatchOverride
            .cast_unsigned(),
        ..config()
    };
    let mut handle: WDFDRIVER = ptr::null_mut();
    check!(create_driver(driver, service, config, Some(&mut handle)));
    DRIVER.store(handle, Ordering::Relaxed);
    driver.DriverUnload = Some(unload);
    let (status, object) = made(|handle| {
        nt!(IoCreateDevice, driver, 0, ptr::null_mut(), FILE_DEVICE_UNKNOWN, 0, 0, handle)
    });
    if NT_SUCCESS(status) {
        OBJECT.store(object, Ordering::Relaxed);
        create(handle, object)
    } else {
        status
    }
}

extern "C" fn cleanup(_object: wdk_sys::WDFOBJECT) {
    wdk::println!("miniport device cleanup");
}

fn create(driver: WDFDRIVER, object: PDEVICE_OBJECT) -> NTSTATUS {
    let mut attributes = attributes();
    attributes.EvtCleanupCallback = Some(cleanup);
    let mut device: WDFDEVICE = ptr::null_mut();
    // SAFETY: the type comes from wdfminiport.h.
    let function: MiniportCreate =
        unsafe { entry(wdk_sys::_WDFFUNCENUM::WdfDeviceMiniportCreateTableIndex) };
    // SAFETY: the stub stored the globals before the driver's entry ran.
    let globals = unsafe { wdk_sys::WdfDriverGlobals };
    // SAFETY: the framework issued the handles, and the result is a local.
    let status = unsafe {
        function(
            globals,
            driver,
            &raw mut attributes,
            object,
            ptr::null_mut(),
            ptr::null_mut(),
            &raw mut device,
        )
    };
    DEVICE.store(device, Ordering::Relaxed);
    let own = wdf!(WdfDeviceWdmGetDeviceObject, device) == object;
    let attached = wdf!(WdfDeviceWdmGetAttachedDevice, device).is_null();
    let physical = wdf!(WdfDeviceWdmGetPhysicalDevice, device).is_null();
    let target = wdf!(WdfDeviceGetIoTarget, device).is_null();
    let same = wdf!(WdfDeviceGetDriver, device) == driver;
    wdk::println!("miniport {status:x} {own} {attached} {physical} {target} {same}");
    let mut config =
        sized!(WDF_TIMER_CONFIG { EvtTimerFunc: Some(timer), AutomaticSerialization: 1 });
    let mut attributes = child_of(device.cast());
    let (created, timer) =
        made(|handle| wdf!(WdfTimerCreate, &raw mut config, &raw mut attributes, handle));
    if NT_SUCCESS(created) {
        let _was_set = wdf!(WdfTimerStart, timer, -10_000);
    }
    status
}

extern "C" fn timer(_timer: WDFTIMER) {
    wdk::println!("miniport timer");
}

/// `DriverUnload`.
extern "C" fn unload(_driver: PDRIVER_OBJECT) {
    wdf!(WdfObjectDelete, DEVICE.load(Ordering::Relaxed).cast());
    nt!(IoDeleteDevice, OBJECT.load(Ordering::Relaxed));
    // SAFETY: the type comes from wdfminiport.h.
    let function: MiniportUnload =
        unsafe { entry(wdk_sys::_WDFFUNCENUM::WdfDriverMiniportUnloadTableIndex) };
    // SAFETY: the stub stored the globals before the driver's entry ran.
    let globals = unsafe { wdk_sys::WdfDriverGlobals };
    // SAFETY: the framework issued the driver object, and this is the driver's last call.
    unsafe { function(globals, DRIVER.load(Ordering::Relaxed)) };
    wdk::println!("miniport unloaded");
}
