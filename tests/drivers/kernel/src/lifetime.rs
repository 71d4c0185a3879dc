//! Registrations for the driver's device and for the driver itself, and requests of processes.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use etw_driver_support::utf16;
use wdk_sys::DRIVER_OBJECT;

use crate::call::{address, at, call, driver, low, same};

/// The device, until the unload.
static DEVICE: AtomicU64 = AtomicU64::new(0);
/// Set if the device serves requests until the unload.
static SERVES: AtomicBool = AtomicBool::new(false);
static TICKS: AtomicU64 = AtomicU64::new(0);
static REINITIALIZED: AtomicU64 = AtomicU64::new(0);

/// Creates a device with a name and a link.
fn create() -> u64 {
    static NAME: [u16; 15] = utf16(br"\Device\Library");
    let mut name = [0x001E_001E_u64, NAME.as_ptr() as u64];
    let mut device = 0_u64;
    let status = call!("IoCreateDevice", driver(), 0, at(&mut name), 0x22, 0, 0, at(&mut device));
    same!(low(status), 0);
    DEVICE.store(device, Ordering::Relaxed);
    device
}

unsafe extern "C" fn tick(device: u64, context: u64) {
    same!(device, DEVICE.load(Ordering::Relaxed));
    TICKS.fetch_add(context, Ordering::Relaxed);
}

unsafe extern "C" fn reinitialize(of: u64, context: u64, count: u64) {
    same!(of, driver());
    let before = REINITIALIZED.fetch_add(1, Ordering::Relaxed);
    same!(count & 0xFFFF_FFFF, before + 1);
    wdk::println!("reinitialized {context} {}", before + 1);
    if context == 2 {
        let routine = address(reinitialize as *const c_void);
        call!("IoRegisterDriverReinitialization", of, routine, 3);
    }
}

pub fn run() {
    let mut extension = 0_u64;
    let allocate = |size: u64, to: u64| {
        low(call!("IoAllocateDriverObjectExtension", driver(), 0x77, size, to))
    };
    same!(call!("IoGetDriverObjectExtension", driver(), 0x77), 0);
    same!(allocate(64, at(&mut extension)), 0);
    same!(extension != 0, true);
    same!(call!("IoGetDriverObjectExtension", driver(), 0x77), extension);
    let mut second = 1_u64;
    same!(allocate(64, at(&mut second)), 0xC000_0035);
    same!(second, 0);

    let device = create();
    let routine = address(tick as *const c_void);
    same!(low(call!("IoInitializeTimer", device, routine, 10)), 0);
    call!("IoStartTimer", device);
    let mut interval = -25_000_000_i64;
    call!("KeDelayExecutionThread", 0, 0, at(&mut interval));
    same!(TICKS.load(Ordering::Relaxed), 20);
    call!("IoStopTimer", device);
    call!("KeDelayExecutionThread", 0, 0, at(&mut interval));
    same!(TICKS.load(Ordering::Relaxed), 20);
    // Deleting the device stops the timer again.
    call!("IoStartTimer", device);

    same!(low(call!("IoRegisterShutdownNotification", device)), 0);
    call!("IoUnregisterShutdownNotification", device);
    same!(low(call!("IoRegisterLastChanceShutdownNotification", device)), 0);
    call!("IoDeleteDevice", device);

    let routine = address(reinitialize as *const c_void);
    call!("IoRegisterDriverReinitialization", driver(), routine, 2);
    call!("IoRegisterBootDriverReinitialization", driver(), routine, 1);
}

/// Starts a timer that was not initialized.
pub fn timer() {
    let device = create();
    call!("IoStartTimer", device);
}

/// The offsets of a request's status, the caller's buffer and the current stack location, and the
/// offsets of a device control's code and input in a stack location.
const STATUS: u64 = 0x30;
const INFORMATION: u64 = 0x38;
const USER_BUFFER: u64 = 0x70;
const LOCATION: u64 = 0xB8;
const CODE: u64 = 0x18;
const INPUT: u64 = 0x20;

const fn read(address: u64) -> u64 {
    // SAFETY: the fields are in a request that this driver owns, or in a buffer that was probed.
    unsafe { (address as *const u64).read() }
}

const fn write(address: u64, value: u64) {
    // SAFETY: as above.
    unsafe { (address as *mut u64).write(value) };
}

/// Serves requests. A device control receives the caller's buffers.
unsafe extern "C" fn dispatch(_device: u64, irp: u64) -> i32 {
    let location = read(irp + LOCATION);
    // IRP_MJ_DEVICE_CONTROL.
    let written = if read(location) & 0xFF == 14 {
        same!(read(location + CODE) & 3, 3);
        let (input, output) = (read(location + INPUT), read(irp + USER_BUFFER));
        call!("ProbeForRead", input, 8, 8);
        call!("ProbeForWrite", output, 16, 8);
        let id = call!("IoGetRequestorProcessId", irp) & 0xFFFF_FFFF;
        same!(id, call!("PsGetCurrentProcessId"));
        processes(irp, id);
        write(output, read(input) + 1);
        write(output + 8, id);
        16
    } else {
        0
    };
    // IRP_MJ_SHUTDOWN.
    if read(location) & 0xFF == 16 {
        wdk::println!("shutdown");
    }
    write(irp + STATUS, 0);
    write(irp + INFORMATION, written);
    call!("IofCompleteRequest", irp, 0);
    0
}

fn processes(irp: u64, id: u64) {
    let mut process = 0_u64;
    same!(low(call!("PsLookupProcessByProcessId", id, at(&mut process))), 0);
    same!(call!("IoGetRequestorProcess", irp), process);
    same!(call!("PsGetProcessId", process), id);
    same!(call!("PsGetCurrentProcess"), process);
    same!(low(call!("PsGetProcessExitStatus", process)), 0x103);
    let (mut system, mut thread) = (0_u64, 0_u64);
    same!(low(call!("PsLookupProcessByProcessId", 4, at(&mut system))), 0);
    let missing = low(call!("PsLookupProcessByProcessId", 0x7770, at(&mut system)));
    same!(missing, 0xC000_000D_u32);
    let thread_id = call!("PsGetCurrentThreadId");
    same!(low(call!("PsLookupThreadByThreadId", thread_id, at(&mut thread))), 0);
    same!(thread, call!("KeGetCurrentThread"));
    same!(call!("IoThreadToProcess", thread), process);
    let mut state = [0_u64; 6];
    call!("KeStackAttachProcess", system, at(&mut state));
    same!(call!("PsGetCurrentProcess"), system);
    same!(call!("PsGetCurrentProcessId"), id);
    call!("KeUnstackDetachProcess", at(&mut state));
    same!(call!("PsGetCurrentProcess"), process);
    for object in [process, system, thread] {
        call!("ObfDereferenceObject", object);
    }
}

/// Creates a device whose requests this module serves.
pub fn serve() {
    let device = create();
    same!(low(call!("IoRegisterShutdownNotification", device)), 0);
    SERVES.store(true, Ordering::Relaxed);
    let object = driver() as *mut DRIVER_OBJECT;
    for major in [0, 2, 14, 16, 18] {
        // SAFETY: the routine has the parameters of a dispatch routine.
        let routine = unsafe {
            core::mem::transmute::<
                *const c_void,
                unsafe extern "C" fn(*mut wdk_sys::DEVICE_OBJECT, *mut wdk_sys::IRP) -> i32,
            >(dispatch as *const c_void)
        };
        // SAFETY: the object belongs to this driver.
        unsafe { (*object).MajorFunction[major] = Some(routine) };
    }
}

/// Deletes the device, if [`serve`] created it.
pub fn stop() {
    if SERVES.load(Ordering::Relaxed) {
        call!("IoDeleteDevice", DEVICE.load(Ordering::Relaxed));
    }
}

pub fn detach() {
    let mut state = [0_u64; 6];
    call!("KeUnstackDetachProcess", at(&mut state));
}
