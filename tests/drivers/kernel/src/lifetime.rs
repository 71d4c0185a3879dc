//! Registrations for the driver's device and for the driver itself, and requests of processes.

use core::{
    mem::offset_of,
    ptr,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
};

use etw_driver_support::utf16;
use wdk_sys::{DEVICE_OBJECT, DRIVER_OBJECT, HANDLE, NTSTATUS, PDEVICE_OBJECT, PIRP, PVOID, ULONG};

use crate::{
    call::{NULL, call, driver, field, pointer, same, set_field},
    dispatcher::delay,
};

/// The device, until the unload.
static DEVICE: AtomicPtr<DEVICE_OBJECT> = AtomicPtr::new(ptr::null_mut());
/// Set if the device serves requests until the unload.
static SERVES: AtomicBool = AtomicBool::new(false);
static TICKS: AtomicU64 = AtomicU64::new(0);
static REINITIALIZED: AtomicU64 = AtomicU64::new(0);

/// Creates a device with a name and a link.
fn create() -> PDEVICE_OBJECT {
    static NAME: [u16; 15] = utf16(br"\Device\Library");
    let mut name = [0x001E_001E_u64, NAME.as_ptr() as u64];
    let mut device = ptr::null_mut();
    same!(call!(IoCreateDevice, driver(), 0, &mut name, 0x22, 0, 0, &mut device), 0);
    DEVICE.store(device, Ordering::Relaxed);
    device
}

unsafe extern "C" fn tick(device: PDEVICE_OBJECT, context: PVOID) {
    same!(device, DEVICE.load(Ordering::Relaxed));
    TICKS.fetch_add(context as u64, Ordering::Relaxed);
}

unsafe extern "C" fn reinitialize(of: *mut DRIVER_OBJECT, context: PVOID, count: ULONG) {
    same!(of, driver());
    let before = REINITIALIZED.fetch_add(1, Ordering::Relaxed);
    same!(count, before + 1);
    wdk::println!("reinitialized {} {}", context.addr(), before + 1);
    if context.addr() == 2 {
        call!(IoRegisterDriverReinitialization, of, Some(reinitialize), pointer(3));
    }
}

pub fn run() {
    let mut extension = NULL;
    let allocate = |size: u64, to: &mut PVOID| {
        call!(IoAllocateDriverObjectExtension, driver(), pointer(0x77), size, to)
    };
    same!(call!(IoGetDriverObjectExtension, driver(), pointer(0x77)), 0);
    same!(allocate(64, &mut extension), 0);
    same!(extension.is_null(), false);
    same!(call!(IoGetDriverObjectExtension, driver(), pointer(0x77)), extension);
    let mut second = pointer(1);
    same!(allocate(64, &mut second), 0xC000_0035_u32);
    same!(second, 0);

    let device = create();
    same!(call!(IoInitializeTimer, device, Some(tick), pointer(10)), 0);
    call!(IoStartTimer, device);
    delay(-25_000_000);
    same!(TICKS.load(Ordering::Relaxed), 20);
    call!(IoStopTimer, device);
    delay(-25_000_000);
    same!(TICKS.load(Ordering::Relaxed), 20);
    // Deleting the device stops the timer again.
    call!(IoStartTimer, device);

    same!(call!(IoRegisterShutdownNotification, device), 0);
    call!(IoUnregisterShutdownNotification, device);
    same!(call!(IoRegisterLastChanceShutdownNotification, device), 0);
    call!(IoDeleteDevice, device);

    call!(IoRegisterDriverReinitialization, driver(), Some(reinitialize), pointer(2));
    call!(IoRegisterBootDriverReinitialization, driver(), Some(reinitialize), pointer(1));
}

/// Starts a timer that was not initialized.
pub fn timer() {
    let device = create();
    call!(IoStartTimer, device);
}

/// The offsets of a request's status, the caller's buffer and the current stack location, and the
/// offsets of a device control's code and input in a stack location.
const STATUS: usize = 0x30;
const INFORMATION: usize = 0x38;
const USER_BUFFER: usize = 0x70;
const LOCATION: usize = 0xB8;
const CODE: usize = 0x18;
const INPUT: usize = 0x20;

/// Returns the flags of the driver object.
fn driver_flags() -> u32 {
    // SAFETY: the object belongs to this driver.
    unsafe { (*driver()).Flags }
}

/// Serves requests. A device control receives the caller's buffers.
unsafe extern "C" fn dispatch(_device: PDEVICE_OBJECT, irp: PIRP) -> NTSTATUS {
    let request: PVOID = irp.cast();
    let location: PVOID = field(request, LOCATION);
    let major = field::<u8>(location, 0);
    // IRP_MJ_DEVICE_CONTROL.
    let written = if major == 14 {
        // DRVO_INITIALIZED; the framework has set AddDevice or not.
        same!(driver_flags() & 0x10, 0x10);
        same!(field::<u32>(location, CODE) & 3, 3);
        let (input, output): (PVOID, PVOID) = (field(location, INPUT), field(request, USER_BUFFER));
        call!(ProbeForRead, input, 8, 8);
        call!(ProbeForWrite, output, 16, 8);
        let id = call!(IoGetRequestorProcessId, irp);
        same!(id, call!(PsGetCurrentProcessId));
        processes(irp, pointer(id as usize));
        set_field(output, 0, field::<u64>(input, 0) + 1);
        set_field(output, 8, u64::from(id));
        16_u64
    } else {
        0
    };
    // IRP_MJ_SHUTDOWN.
    if major == 16 {
        wdk::println!("shutdown");
    }
    set_field(request, STATUS, 0_u64);
    set_field(request, INFORMATION, written);
    call!(IofCompleteRequest, irp, 0);
    0
}

fn processes(irp: PIRP, id: HANDLE) {
    let mut process = NULL;
    same!(call!(PsLookupProcessByProcessId, id, &mut process), 0);
    same!(call!(IoGetRequestorProcess, irp), process);
    same!(call!(PsGetProcessId, process), id);
    same!(call!(PsGetCurrentProcess), process);
    same!(call!(PsGetProcessExitStatus, process), 0x103);
    let (mut system, mut thread) = (NULL, NULL);
    same!(call!(PsLookupProcessByProcessId, pointer(4), &mut system), 0);
    same!(call!(PsLookupProcessByProcessId, pointer(0x7770), &mut system), 0xC000_000D_u32);
    let thread_id = call!(PsGetCurrentThreadId);
    same!(call!(PsLookupThreadByThreadId, thread_id, &mut thread), 0);
    same!(thread, call!(KeGetCurrentThread));
    same!(call!(IoThreadToProcess, thread), process);
    let mut state = [0_u64; 6];
    call!(KeStackAttachProcess, system, &mut state);
    same!(call!(PsGetCurrentProcess), system);
    same!(call!(PsGetCurrentProcessId), id);
    call!(KeUnstackDetachProcess, &mut state);
    same!(call!(PsGetCurrentProcess), process);
    for object in [process, system, thread] {
        call!(ObfDereferenceObject, object);
    }
}

/// Creates a device whose requests this module serves.
pub fn serve() {
    let device = create();
    same!(call!(IoRegisterShutdownNotification, device), 0);
    // The I/O manager's extension has a type and names its device.
    let extension: PVOID = field(device.cast(), offset_of!(DEVICE_OBJECT, DeviceObjectExtension));
    same!(field::<u16>(extension, 0), 13);
    same!(field::<PDEVICE_OBJECT>(extension, 8), device);
    // Until a driver stores its own, each routine is the I/O manager's.
    // SAFETY: the object belongs to this driver.
    let routines =
        unsafe { (*driver()).MajorFunction }.map(|routine| routine.map(|one| one as usize));
    same!(routines[0].is_some(), true);
    same!(routines == [routines[0]; 28], true);
    SERVES.store(true, Ordering::Relaxed);
    // DRVO_LEGACY_DRIVER, and not DRVO_INITIALIZED.
    same!(driver_flags() & 0x12, 2);
    for major in [0, 2, 14, 16, 18] {
        // SAFETY: the object belongs to this driver.
        unsafe { (*driver()).MajorFunction[major] = Some(dispatch) };
    }
}

/// Deletes the device, if [`serve`] created it.
pub fn stop() {
    // DRVO_UNLOAD_INVOKED.
    same!(driver_flags() & 1, 1);
    if SERVES.load(Ordering::Relaxed) {
        call!(IoDeleteDevice, DEVICE.load(Ordering::Relaxed));
    }
}

pub fn detach() {
    let mut state = [0_u64; 6];
    call!(KeUnstackDetachProcess, &mut state);
}
