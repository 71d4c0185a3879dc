//! Device components that idle and become active.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
};

use etw_driver_support::{sized, wdf};
use wdk_sys::{
    _WDF_POWER_DEVICE_STATE, NTSTATUS, PPO_FX_COMPONENT_ACTIVE_CONDITION_CALLBACK,
    PPO_FX_COMPONENT_IDLE_CONDITION_CALLBACK, PPO_FX_COMPONENT_IDLE_STATE_CALLBACK,
    PPO_FX_DEVICE_POWER_NOT_REQUIRED_CALLBACK, PPO_FX_DEVICE_POWER_REQUIRED_CALLBACK,
    PPO_FX_POWER_CONTROL_CALLBACK, PVOID, PWDFDEVICE_INIT, WDF_PNPPOWER_EVENT_CALLBACKS,
    WDF_POWER_DEVICE_STATE, WDFCMRESLIST, WDFDEVICE, WDFDRIVER,
};

use crate::{
    call::{NULL, at, call, checks, driver, pointer, same},
    dispatcher::delay,
};

/// The device's handle.
static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(NULL);

/// Set if the driver answers in the callbacks.
static ANSWERS: AtomicBool = AtomicBool::new(true);

/// The callbacks that were called, one digit each, oldest first.
static CALLED: AtomicU64 = AtomicU64::new(0);

const ACTIVE: u64 = 1;
const IDLE: u64 = 2;
const STATE: u64 = 3;
const DIRECTED: u64 = 7;
const POWER_REQUIRED: u64 = 8;
const POWER_NOT_REQUIRED: u64 = 9;

const BLOCKING: u64 = 1;
const ASYNC_ONLY: u64 = 2;

fn note(digit: u64) {
    let before = CALLED.load(Ordering::Relaxed);
    CALLED.store(before * 10 + digit, Ordering::Relaxed);
}

/// Returns the callbacks that were called since the last call.
fn called() -> u64 {
    CALLED.swap(0, Ordering::Relaxed)
}

fn handle() -> PVOID {
    HANDLE.load(Ordering::Relaxed)
}

fn answers() -> bool {
    ANSWERS.load(Ordering::Relaxed)
}

unsafe extern "C" fn active(context: PVOID, _component: u32) {
    same!(context, 77);
    note(ACTIVE);
}

unsafe extern "C" fn idle(_context: PVOID, component: u32) {
    note(IDLE);
    if answers() {
        call!(PoFxCompleteIdleCondition, handle(), component);
    }
}

unsafe extern "C" fn state(_context: PVOID, component: u32, state: u32) {
    note(STATE + u64::from(state));
    if answers() {
        call!(PoFxCompleteIdleState, handle(), component);
    }
}

unsafe extern "C" fn power_required(_context: PVOID) {
    note(POWER_REQUIRED);
    if answers() {
        call!(PoFxReportDevicePoweredOn, handle());
    }
}

unsafe extern "C" fn power_not_required(_context: PVOID) {
    note(POWER_NOT_REQUIRED);
    if answers() {
        call!(PoFxCompleteDevicePowerNotRequired, handle());
    }
}

/// Powers the device up or down while a system without S3 sleeps. The stand-in kernel never calls
/// it.
unsafe extern "C" fn directed(_context: PVOID, _flags: u32) {
    note(DIRECTED);
}

/// `PO_FX_COMPONENT_IDLE_STATE`: latency, residency and power.
type IdleState = [u64; 3];

/// The callbacks of a device.
#[repr(C)]
struct Callbacks {
    active: PPO_FX_COMPONENT_ACTIVE_CONDITION_CALLBACK,
    idle: PPO_FX_COMPONENT_IDLE_CONDITION_CALLBACK,
    state: PPO_FX_COMPONENT_IDLE_STATE_CALLBACK,
    power_required: PPO_FX_DEVICE_POWER_REQUIRED_CALLBACK,
    power_not_required: PPO_FX_DEVICE_POWER_NOT_REQUIRED_CALLBACK,
    control: PPO_FX_POWER_CONTROL_CALLBACK,
}

const CALLBACKS: Callbacks = Callbacks {
    active: Some(active),
    idle: Some(idle),
    state: Some(state),
    power_required: Some(power_required),
    power_not_required: Some(power_not_required),
    control: None,
};

/// `PO_FX_DEVICE` of the first version with one component.
#[repr(C)]
struct Device {
    version: u32,
    components: u32,
    callbacks: Callbacks,
    context: PVOID,
    id: [u64; 2],
    states: u32,
    deepest_wakeable: u32,
    idle_states: u64,
}

/// `PO_FX_DEVICE_V3` with one component. The driver also powers the device up and down when the
/// system requests it.
#[repr(C)]
struct DirectedDevice {
    version: u32,
    flags: u64,
    callbacks: Callbacks,
    directed: [Option<unsafe extern "C" fn(PVOID, u32)>; 2],
    directed_timeout: u32,
    context: PVOID,
    components: u32,
    component: DirectedComponent,
}

/// `PO_FX_COMPONENT_V2`.
#[repr(C)]
struct DirectedComponent {
    id: [u64; 2],
    flags: u64,
    deepest_wakeable: u32,
    states: u32,
    idle_states: u64,
    providers: u32,
    provider_table: u64,
}

const STATES: [IdleState; 3] = [[0, 0, 0], [10, 20, 0], [1000, 2000, 0]];

fn register(physical: PVOID, version: u32, states: u32) -> NTSTATUS {
    let table = core::ptr::from_ref(&STATES) as u64;
    let mut device = Device {
        version,
        components: 1,
        callbacks: CALLBACKS,
        context: pointer(77),
        id: [1, 2],
        states,
        deepest_wakeable: 0,
        idle_states: table,
    };
    register_as(physical, at(&mut device))
}

/// Registers a device with a description of any version.
fn register_as(physical: PVOID, description: PVOID) -> NTSTATUS {
    let mut handle = NULL;
    let result = call!(PoFxRegisterDevice, physical, description, &mut handle);
    HANDLE.store(handle, Ordering::Relaxed);
    result
}

/// Registers a device with the third version of the structure.
fn register_directed(physical: PVOID) -> NTSTATUS {
    let table = core::ptr::from_ref(&STATES) as u64;
    let mut device = DirectedDevice {
        version: 3,
        flags: 0,
        callbacks: CALLBACKS,
        directed: [Some(directed); 2],
        directed_timeout: 0,
        context: pointer(77),
        components: 1,
        component: DirectedComponent {
            id: [1, 2],
            flags: 0,
            deepest_wakeable: 0,
            states: 3,
            idle_states: table,
            providers: 0,
            provider_table: 0,
        },
    };
    register_as(physical, at(&mut device))
}

fn activate(flags: u64) {
    call!(PoFxActivateComponent, handle(), 0, flags);
}

fn idle_component(flags: u64) {
    call!(PoFxIdleComponent, handle(), 0, flags);
}

/// Creates a device and registers it.
fn prepare() -> PVOID {
    let mut device = NULL;
    call!(IoCreateDevice, driver(), 0, NULL, 0x22, 0, 0, &mut device);
    same!(register(device, 1, 3), 0);
    device
}

fn end(device: PVOID) {
    call!(PoFxUnregisterDevice, handle());
    call!(IoDeleteDevice, device);
}

pub fn run() {
    same!(register(NULL, 1, 3), 0xC000_000D_u32);
    let device = prepare();
    end(device);
    same!(register(pointer(1), 7, 3), 0xC000_000D_u32);
    same!(register(pointer(1), 1, 0), 0xC000_000D_u32);
    let device = prepare();
    // Components are active until power management starts.
    same!(called(), 0);
    call!(PoFxStartDevicePowerManagement, handle());
    same!(called(), 2 * 100 + (STATE + 2) * 10 + POWER_NOT_REQUIRED);
    activate(0);
    same!(called(), POWER_REQUIRED * 100 + STATE * 10 + ACTIVE);
    activate(BLOCKING);
    idle_component(0);
    same!(called(), 0);
    // If a driver tolerates less latency, it regains the component sooner.
    call!(PoFxSetComponentLatency, handle(), 0, 10);
    idle_component(BLOCKING);
    same!(called(), 2 * 100 + (STATE + 1) * 10 + POWER_NOT_REQUIRED);
    call!(PoFxSetComponentResidency, handle(), 0, 5);
    same!(called(), 0);
    // The callback runs on a kernel thread.
    activate(ASYNC_ONLY);
    same!(called(), 0);
    delay(-10_000);
    same!(called(), POWER_REQUIRED * 100 + STATE * 10 + ACTIVE);
    // F0 is the only state with the residency that the driver expects.
    idle_component(0);
    same!(called(), 2 * 10 + POWER_NOT_REQUIRED);
    later();
    end(device);
    third_version();
}

/// A device of the third version has the same callbacks as devices of the other versions.
fn third_version() {
    let mut device = NULL;
    call!(IoCreateDevice, driver(), 0, NULL, 0x22, 0, 0, &mut device);
    same!(register_directed(device), 0);
    call!(PoFxStartDevicePowerManagement, handle());
    same!(called(), 2 * 100 + (STATE + 2) * 10 + POWER_NOT_REQUIRED);
    activate(0);
    same!(called(), POWER_REQUIRED * 100 + STATE * 10 + ACTIVE);
    end(device);
}

/// Reports completion after the callbacks.
fn later() {
    ANSWERS.store(false, Ordering::Relaxed);
    activate(0);
    same!(called(), POWER_REQUIRED);
    call!(PoFxReportDevicePoweredOn, handle());
    same!(called(), ACTIVE);
    idle_component(0);
    same!(called(), IDLE);
    // The activation waits for the completion.
    activate(0);
    same!(called(), 0);
    call!(PoFxCompleteIdleCondition, handle(), 0);
    same!(called(), ACTIVE);
    ANSWERS.store(true, Ordering::Relaxed);
}

pub fn idle_without_activation() {
    prepare();
    idle_component(0);
}

pub fn answer_without_question() {
    prepare();
    call!(PoFxCompleteIdleState, handle(), 0);
}

pub fn left() {
    prepare();
}

pub fn registered_twice() {
    let device = prepare();
    let _status = register(device, 1, 3);
}

/// `EvtDriverDeviceAdd` of a device whose component idles while the system sleeps.
pub extern "C" fn add(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut callbacks = sized!(WDF_PNPPOWER_EVENT_CALLBACKS {
        EvtDevicePrepareHardware: Some(prepare_hardware),
        EvtDeviceReleaseHardware: Some(release_hardware),
        EvtDeviceD0Entry: Some(enter)
    });
    wdf!(WdfDeviceInitSetPnpPowerEventCallbacks, init, &raw mut callbacks);
    let mut device: WDFDEVICE = core::ptr::null_mut();
    wdf!(WdfDeviceCreate, &raw mut init, wdk_sys::WDF_NO_OBJECT_ATTRIBUTES, &raw mut device)
}

/// `EvtDevicePrepareHardware`.
extern "C" fn prepare_hardware(
    device: WDFDEVICE,
    _raw: WDFCMRESLIST,
    _translated: WDFCMRESLIST,
) -> NTSTATUS {
    let physical = wdf!(WdfDeviceWdmGetPhysicalDevice, device).cast();
    same!(register(physical, 1, 3), 0);
    call!(PoFxStartDevicePowerManagement, handle());
    same!(called(), 2 * 100 + (STATE + 2) * 10 + POWER_NOT_REQUIRED);
    wdk_sys::STATUS_SUCCESS
}

/// `EvtDeviceD0Entry`: reports that the system's return to work powered the device on.
extern "C" fn enter(_device: WDFDEVICE, before: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    if before != _WDF_POWER_DEVICE_STATE::WdfPowerDeviceD3Final {
        call!(PoFxReportDevicePoweredOn, handle());
        // The device is powered, and still does not need power.
        same!(called(), POWER_NOT_REQUIRED);
        // While the device is active, there is nothing to report.
        activate(0);
        same!(called(), POWER_REQUIRED * 100 + STATE * 10 + ACTIVE);
        call!(PoFxReportDevicePoweredOn, handle());
        same!(called(), 0);
        idle_component(0);
        same!(called(), 2 * 100 + (STATE + 2) * 10 + POWER_NOT_REQUIRED);
    }
    wdk_sys::STATUS_SUCCESS
}

/// `EvtDeviceReleaseHardware`.
extern "C" fn release_hardware(_device: WDFDEVICE, _translated: WDFCMRESLIST) -> NTSTATUS {
    call!(PoFxUnregisterDevice, handle());
    wdk::println!("done {}", checks());
    wdk_sys::STATUS_SUCCESS
}
