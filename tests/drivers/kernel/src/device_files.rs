//! Requests that the driver sends with handles of files on its own device.

use core::{
    mem::offset_of,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use wdk_sys::{
    DEVICE_OBJECT, IRP, KDPC, NTSTATUS, PDEVICE_OBJECT, PIRP, PVOID, STATUS_INVALID_HANDLE,
    STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_OBJECT_TYPE_MISMATCH,
    STATUS_PENDING, STATUS_SUCCESS,
};

use crate::{
    call::{NULL, at, call, driver, field, same, set_field},
    dispatcher::{Object, delay},
    names::{with_attributes, with_string},
    registry::common::close,
};

const DEVICE: &[u8] = br"\Device\Opened";

/// The numbers of requests so far, by major function.
static SEEN: [AtomicU32; 28] = [const { AtomicU32::new(0) }; 28];

/// The request that a DPC completes.
static PENDING: AtomicPtr<IRP> = AtomicPtr::new(core::ptr::null_mut());

/// The last byte that was written, and its offset.
static WRITTEN: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// Controls of the device `FILE_DEVICE_UNKNOWN`: with buffers of each method, one that a DPC completes, and
/// one that fails.
const BUFFERED: u32 = 0x22_2000;
const OUT_DIRECT: u32 = 0x22_2006;
const NEITHER: u32 = 0x22_200B;
const LATER: u32 = 0x22_2010;
const FAIL: u32 = 0x22_2014;

/// The offsets of fields of a request and of its stack location.
const MDL: usize = 0x08;
const SYSTEM_BUFFER: usize = 0x18;
const STATUS: usize = 0x30;
const INFORMATION: usize = 0x38;
const MODE: usize = 0x40;
const USER_BUFFER: usize = 0x70;
const LOCATION: usize = 0xB8;
const CONTROL: usize = 0x03;
const LENGTH: usize = 0x08;
const OFFSET: usize = 0x18;
const CODE: usize = 0x18;
const INPUT: usize = 0x20;
const FILE: usize = 0x30;

fn complete(irp: PIRP, status: NTSTATUS, information: u64) {
    set_field(irp.cast(), STATUS, i64::from(status));
    set_field(irp.cast(), INFORMATION, information);
    call!(IofCompleteRequest, irp, 0);
}

/// A DPC's routine, which completes the pending request.
unsafe extern "C" fn complete_later(_dpc: *mut KDPC, _: PVOID, _: PVOID, _: PVOID) {
    let irp = PENDING.swap(NULL.cast(), Ordering::Relaxed);
    set_field(field(irp.cast(), SYSTEM_BUFFER), 0, 77_u32);
    complete(irp, STATUS_SUCCESS, 4);
}

/// The timer and the DPC of the pending request.
static mut LATER_OBJECTS: [Object; 2] = [const { Object::new() }; 2];

fn pend(irp: PIRP, location: PVOID) -> NTSTATUS {
    let control = field::<u8>(location, CONTROL);
    set_field(location, CONTROL, control | 1);
    PENDING.store(irp, Ordering::Relaxed);
    let objects = &raw mut LATER_OBJECTS;
    let (timer, dpc): (PVOID, PVOID) = (objects.cast(), objects.wrapping_byte_add(64).cast());
    call!(KeInitializeTimerEx, timer, 0);
    call!(KeInitializeDpc, dpc, Some(complete_later), NULL);
    call!(KeSetTimer, timer, -100_000_i64, dpc);
    STATUS_PENDING
}

unsafe extern "C" fn dispatch(_device: PDEVICE_OBJECT, irp: PIRP) -> NTSTATUS {
    let request: PVOID = irp.cast();
    let location: PVOID = field(request, LOCATION);
    let major = field::<u8>(location, 0);
    SEEN[usize::from(major)].fetch_add(1, Ordering::Relaxed);
    same!(field::<u8>(request, MODE), 0);
    same!(field::<PVOID>(location, FILE).is_null(), false);
    let system: PVOID = field(request, SYSTEM_BUFFER);
    let (length, offset) = (field::<u32>(location, LENGTH), field::<u64>(location, OFFSET));
    let code = field::<u32>(location, CODE);
    let (status, information) = match (major, code) {
        // The information is what a driver returns for an open.
        (0, _) => (STATUS_SUCCESS, 7),
        (3, _) => {
            set_field(system, 0, offset as u8 + 1);
            (STATUS_SUCCESS, u64::from(length))
        }
        (4, _) => {
            WRITTEN[0].store(field::<u8>(system, 0).into(), Ordering::Relaxed);
            WRITTEN[1].store(offset as u32, Ordering::Relaxed);
            (STATUS_SUCCESS, u64::from(length))
        }
        (14, BUFFERED) => {
            set_field(system, 0, field::<u32>(system, 0) + 1);
            (STATUS_SUCCESS, 4)
        }
        (14, OUT_DIRECT) => {
            let to = call!(
                MmMapLockedPagesSpecifyCache,
                field::<PVOID>(request, MDL),
                0,
                1,
                NULL,
                0,
                16
            );
            set_field(to, 0, field::<u32>(system, 0) + 2);
            (STATUS_SUCCESS, 4)
        }
        (13, NEITHER) => {
            let input: PVOID = field(location, INPUT);
            set_field(field(request, USER_BUFFER), 0, field::<u32>(input, 0) + 3);
            (STATUS_SUCCESS, 4)
        }
        (14, LATER) => return pend(irp, location),
        (13 | 14, _) => (STATUS_INVALID_PARAMETER, 0),
        _ => (STATUS_SUCCESS, 0),
    };
    complete(irp, status, information);
    status
}

/// Opens a file. Returns the status, the information and the handle.
fn open(name: &[u8], access: u64, options: u64) -> (NTSTATUS, u64, PVOID) {
    let (mut handle, mut block) = (NULL, [0_u64; 2]);
    let status = with_attributes(NULL, name, 0x240, |attributes| {
        call!(
            ZwCreateFile, &mut handle, access, attributes, &mut block, NULL, 0, 3, 1, options,
            NULL, 0
        )
    });
    (status, block[1], handle)
}

/// Sends a control with a number as the input. Returns the status, the status block and the output.
fn control(handle: PVOID, event: PVOID, code: u32, input: u32) -> (NTSTATUS, [u64; 2], u32) {
    let (mut block, mut input, mut output) = ([0x55_u64; 2], input, 0_u32);
    let status = if code == NEITHER {
        call!(
            ZwFsControlFile, handle, event, None, NULL, &mut block, code, &mut input, 4,
            &mut output, 4
        )
    } else {
        call!(
            ZwDeviceIoControlFile, handle, event, None, NULL, &mut block, code, &mut input, 4,
            &mut output, 4
        )
    };
    if status == STATUS_PENDING {
        same!(block == [0x55, 0x55], true);
        if event.is_null() {
            same!(call!(ZwWaitForSingleObject, handle, 0, NULL), 0);
        } else {
            same!(call!(ZwWaitForSingleObject, event, 0, NULL), 0);
        }
    }
    (status, block, output)
}

pub fn run() {
    let mut device = NULL;
    let status = with_string(DEVICE, |name| {
        call!(IoCreateDevice, driver(), 0, name, 0x22, 0, 0, &mut device)
    });
    same!(status, 0);
    for major in [0, 2, 3, 4, 9, 13, 14, 18] {
        // SAFETY: the object belongs to this driver.
        unsafe { (*driver()).MajorFunction[major] = Some(dispatch) };
    }
    // DO_BUFFERED_IO, without DO_DEVICE_INITIALIZING.
    set_field(device, offset_of!(DEVICE_OBJECT, Flags), 4_u32);
    same!(open(br"\Device\NotOpened", 0xC010_0000, 0x20).0, STATUS_OBJECT_NAME_NOT_FOUND);
    // Synchronous use needs SYNCHRONIZE.
    same!(open(DEVICE, 3, 0x20).0, STATUS_INVALID_PARAMETER);
    let (status, information, handle) = open(br"\Device\Opened\rest", 0xC010_0000, 0x60);
    same!((status, information) == (0, 7), true);
    requests(handle);
    let (status, _, asynchronous) = open(DEVICE, 3, 0x40);
    same!(status, 0);
    later(handle, asynchronous);
    for handle in [handle, asynchronous] {
        same!(call!(ZwClose, handle), 0);
    }
    let seen = |major: usize| SEEN[major].load(Ordering::Relaxed);
    // Opens, cleanups, closes and flushes.
    same!([seen(0), seen(18), seen(2), seen(9)] == [3, 3, 3, 1], true);
    same!(control(handle, NULL, BUFFERED, 1).0, STATUS_INVALID_HANDLE);
    call!(IoDeleteDevice, device);
}

fn requests(handle: PVOID) {
    same!(control(handle, NULL, BUFFERED, 5) == (0, [0, 4], 6), true);
    same!(control(handle, NULL, OUT_DIRECT, 5) == (0, [0, 4], 7), true);
    same!(control(handle, NULL, NEITHER, 5) == (0, [0, 4], 8), true);
    // A failure without STATUS_PENDING leaves the status block and the event.
    let failed = control(handle, NULL, FAIL, 5);
    same!(failed == (STATUS_INVALID_PARAMETER, [0x55, 0x55], 0), true);
    let (mut block, mut byte, mut place) = ([0_u64; 2], 0_u8, 40_u64);
    let to = at(&mut byte);
    same!(call!(ZwReadFile, handle, NULL, None, NULL, &mut block, to, 1, at(&mut place), NULL), 0);
    same!((byte, block[1]) == (41, 1), true);
    let mut written = 9_u8;
    let from = at(&mut written);
    same!(call!(ZwWriteFile, handle, NULL, None, NULL, &mut block, from, 1, NULL, NULL), 0);
    // The driver has not moved the file's position.
    let written = || (WRITTEN[0].load(Ordering::Relaxed), WRITTEN[1].load(Ordering::Relaxed));
    same!(written() == (9, 0), true);
    same!(call!(ZwSetInformationFile, handle, &mut block, &mut place, 8, 14), 0);
    same!(call!(ZwWriteFile, handle, NULL, None, NULL, &mut block, from, 1, NULL, NULL), 0);
    same!(written() == (9, 40), true);
    same!(call!(ZwFlushBuffersFile, handle, &mut block), 0);
    // A directory is not a file.
    let mut directory = NULL;
    let status = with_attributes(NULL, br"\Device", 0x240, |attributes| {
        call!(ZwOpenDirectoryObject, &mut directory, 1, attributes)
    });
    same!(status, 0);
    same!(control(directory, NULL, BUFFERED, 1).0, STATUS_OBJECT_TYPE_MISMATCH);
    close(directory);
}

/// Sends requests that a DPC completes.
fn later(synchronous: PVOID, asynchronous: PVOID) {
    same!(control(synchronous, NULL, LATER, 1) == (0, [0, 4], 77), true);
    same!(control(asynchronous, NULL, LATER, 1) == (STATUS_PENDING, [0, 4], 77), true);
    let mut event = NULL;
    same!(call!(ZwCreateEvent, &mut event, 0x1F_0003, NULL, 0, 0), 0);
    same!(control(asynchronous, event, LATER, 1) == (STATUS_PENDING, [0, 4], 77), true);
    close(event);
    // A request keeps its event and its file until it ends, even if their handles are closed.
    let (status, _, closed) = open(DEVICE, 3, 0x40);
    same!(status, 0);
    let mut event = NULL;
    same!(call!(ZwCreateEvent, &mut event, 0x1F_0003, NULL, 0, 0), 0);
    let (mut block, mut output) = ([0x55_u64; 2], 0_u32);
    let status = call!(
        ZwDeviceIoControlFile, closed, event, None, NULL, &mut block, LATER, NULL, 0, &mut output,
        4
    );
    same!(status, STATUS_PENDING);
    close(event);
    close(closed);
    same!(SEEN[2].load(Ordering::Relaxed), 0);
    delay(-200_000);
    same!((block == [0, 4], output) == (true, 77), true);
    same!(SEEN[2].load(Ordering::Relaxed), 1);
    // Only a file that is open for synchronous use has a position.
    let (mut block, mut byte) = ([0_u64; 2], 0_u8);
    let status =
        call!(ZwReadFile, asynchronous, NULL, None, NULL, &mut block, at(&mut byte), 1, NULL, NULL);
    same!(status, STATUS_INVALID_PARAMETER);
}
