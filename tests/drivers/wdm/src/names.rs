//! Devices that the driver gets by their names, and its entries in the system's event log.

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use wdk_sys::{
    _IO_ERROR_LOG_PACKET, DEVICE_OBJECT, FILE_OBJECT, FILE_READ_DATA, IRP_MJ_CLEANUP, IRP_MJ_CLOSE,
    IRP_MJ_CREATE, UNICODE_STRING,
    ntddk::{
        IoAllocateErrorLogEntry, IoAttachDevice, IoDeleteDevice, IoDetachDevice,
        IoFreeErrorLogEntry, IoGetAttachedDevice, IoGetDeviceObjectPointer, IoGetLowerDeviceObject,
        IoWriteErrorLogEntry, ObfDereferenceObject,
    },
};

use crate::{
    commands, own,
    strings::{NAME, counted, utf16},
};

/// The numbers of opens, cleanups and closes so far.
static OPENS: AtomicU32 = AtomicU32::new(0);
static CLEANUPS: AtomicU32 = AtomicU32::new(0);
static CLOSES: AtomicU32 = AtomicU32::new(0);

/// Counts a request.
pub fn note(major: u32) {
    let count = match major {
        IRP_MJ_CREATE => &OPENS,
        IRP_MJ_CLEANUP => &CLEANUPS,
        IRP_MJ_CLOSE => &CLOSES,
        _ => return,
    };
    count.fetch_add(1, Ordering::Relaxed);
}

fn counts() -> u32 {
    let of = |count: &AtomicU32| count.load(Ordering::Relaxed);
    of(&OPENS) << 16 | of(&CLEANUPS) << 8 | of(&CLOSES)
}

/// Runs a command of this module. Returns the information.
pub fn control(
    device: *mut DEVICE_OBJECT,
    code: u32,
    buffer: *mut u8,
    length: usize,
) -> Option<usize> {
    match code {
        commands::BY_NAME => Some(answer(&by_name(device), buffer, length)),
        commands::ERROR_LOG => Some(answer(&log_errors(device), buffer, length)),
        commands::BAD_ERROR_LOG => {
            write(device, 200);
            Some(0)
        }
        commands::OF_FRAMEWORK => {
            static CONTROL: [u16; 19] = utf16(br"\Device\KmdfControl");
            Some(answer(&[open(counted(&CONTROL)).0], buffer, length))
        }
        _ => None,
    }
}

/// Writes numbers to a buffer. Returns their size.
fn answer(numbers: &[u32], buffer: *mut u8, length: usize) -> usize {
    let size = size_of_val(numbers).min(length);
    // SAFETY: the buffer has the length, and the numbers are elsewhere.
    unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast(), buffer, size) };
    size
}

/// Opens a device by its name. Returns the status, the file and the device.
fn open(mut name: UNICODE_STRING) -> (u32, *mut FILE_OBJECT, *mut DEVICE_OBJECT) {
    let mut file: *mut FILE_OBJECT = ptr::null_mut();
    let mut device: *mut DEVICE_OBJECT = ptr::null_mut();
    // SAFETY: the arguments are locals.
    let status = unsafe {
        IoGetDeviceObjectPointer(
            &raw mut name,
            FILE_READ_DATA,
            &raw mut file,
            &raw mut device,
        )
    };
    (status.cast_unsigned(), file, device)
}

fn release<T>(object: *mut T) {
    // SAFETY: the caller has a reference to the object.
    let _left = unsafe { ObfDereferenceObject(object.cast()) };
}

fn by_name(device: *mut DEVICE_OBJECT) -> [u32; 9] {
    static MISSING: [u16; 15] = utf16(br"\Device\Missing");
    let before = counts();
    let (status, file, found) = open(counted(&NAME));
    let opened = counts() - before;
    let missing = open(counted(&MISSING)).0;
    release(file);
    let closed = counts() - before;
    let above = own::create(device);
    let (mut name, mut below) = (counted(&NAME), ptr::null_mut());
    // SAFETY: the device was created above, and the others are locals.
    let attached = unsafe { IoAttachDevice(above, &raw mut name, &raw mut below) };
    // SAFETY: the device was created above.
    let lower = unsafe { IoGetLowerDeviceObject(above) };
    release(lower);
    // SAFETY: the device is this driver's.
    let lowest = unsafe { IoGetLowerDeviceObject(device) };
    // SAFETY: as above.
    let top = unsafe { IoGetAttachedDevice(device) };
    // SAFETY: a device is attached to this one.
    unsafe { IoDetachDevice(device) };
    // SAFETY: the device was created above.
    unsafe { IoDeleteDevice(above) };
    [
        status,
        u32::from(found == device),
        opened,
        closed,
        missing,
        attached.cast_unsigned(),
        u32::from(below == device && lower == device && lowest.is_null()),
        u32::from(top == above),
        counts() - before,
    ]
}

/// The offset of an entry's dump data, and the size of its fixed part.
const DUMP: usize = core::mem::offset_of!(_IO_ERROR_LOG_PACKET, DumpData);
const FIXED: u8 = size_of::<_IO_ERROR_LOG_PACKET>() as u8;

fn allocate(object: *mut DEVICE_OBJECT, size: u8) -> *mut _IO_ERROR_LOG_PACKET {
    // SAFETY: the object is null or this driver's.
    unsafe { IoAllocateErrorLogEntry(object.cast(), size) }.cast()
}

/// Writes an entry with four bytes of dump data, and a string at an offset.
fn write(device: *mut DEVICE_OBJECT, offset: u16) -> bool {
    let entry = allocate(device, FIXED + 6);
    if entry.is_null() {
        return false;
    }
    let value = _IO_ERROR_LOG_PACKET {
        MajorFunctionCode: 3,
        RetryCount: 2,
        DumpDataSize: 4,
        NumberOfStrings: 1,
        StringOffset: offset,
        ErrorCode: 0xE004_0001_u32.cast_signed(),
        UniqueErrorValue: 77,
        FinalStatus: 0xC000_009D_u32.cast_signed(),
        SequenceNumber: 5,
        IoControlCode: 6,
        DumpData: [0x0403_0201],
        ..Default::default()
    };
    // SAFETY: the entry has more than its fixed part.
    unsafe { entry.write(value) };
    let text = entry.wrapping_byte_add(DUMP + 4).cast::<[u16; 3]>();
    // SAFETY: the entry has room for the string after the dump data.
    unsafe { text.write_unaligned([u16::from(b'o'), u16::from(b'k'), 0]) };
    // SAFETY: the entry was allocated above.
    unsafe { IoWriteErrorLogEntry(entry.cast()) };
    true
}

fn log_errors(device: *mut DEVICE_OBJECT) -> [u32; 5] {
    let unused = allocate(device, FIXED);
    // SAFETY: the entry was allocated above.
    unsafe { IoFreeErrorLogEntry(unused.cast()) };
    [
        u32::from(!unused.is_null()),
        u32::from(allocate(device, FIXED - 1).is_null()),
        u32::from(allocate(device, 241).is_null()),
        u32::from(allocate(ptr::null_mut(), FIXED).is_null()),
        u32::from(write(device, (DUMP + 4) as u16)),
    ]
}
