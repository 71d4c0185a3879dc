//! Devices that the driver opens by name, and its entries in the system's event log.

use core::{
    ptr, slice,
    sync::atomic::{AtomicU16, AtomicU32, Ordering},
};

use etw_driver_support::{at_irql, counted, made, nt, utf16};
use wdk_sys::{
    _IO_ERROR_LOG_PACKET, DEVICE_OBJECT, FILE_OBJECT, FILE_READ_ACCESS, FILE_READ_DATA,
    IO_STACK_LOCATION, IRP, IRP_MJ_CLEANUP, IRP_MJ_CLOSE, IRP_MJ_CREATE, IRP_MJ_DEVICE_CONTROL,
    LARGE_INTEGER, UNICODE_STRING,
};

use crate::{commands, own, strings::NAME};

/// The numbers of opens, cleanups and closes so far.
static OPENS: AtomicU32 = AtomicU32::new(0);
static CLEANUPS: AtomicU32 = AtomicU32::new(0);
static CLOSES: AtomicU32 = AtomicU32::new(0);

/// 1 if all APCs were disabled in the last close, and the process in which it ran.
static CLOSED: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

/// The results of `IoValidateDeviceIoControlAccess` for the last open, and of the last device
/// control: for reading, and for an access that does not exist.
static VALIDATED: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// The length in bytes of the last file's name, and its first characters.
static NAME_LENGTH: AtomicU32 = AtomicU32::new(0);
static FILE_NAME: [AtomicU16; 16] = [const { AtomicU16::new(0) }; 16];

/// Returns the result of the kernel's validation of a request's access.
fn validated(irp: *mut IRP, access: u32) -> u32 {
    nt!(IoValidateDeviceIoControlAccess, irp, access).cast_unsigned()
}

/// Counts a request, and records its properties.
pub fn note(irp: *mut IRP, location: &IO_STACK_LOCATION) {
    let [of_open, of_control, of_unknown] = &VALIDATED;
    match u32::from(location.MajorFunction) {
        IRP_MJ_CREATE => {
            OPENS.fetch_add(1, Ordering::Relaxed);
            of_open.store(validated(irp, FILE_READ_ACCESS), Ordering::Relaxed);
            note_name(location);
        }
        IRP_MJ_CLEANUP => {
            CLEANUPS.fetch_add(1, Ordering::Relaxed);
        }
        IRP_MJ_CLOSE => {
            let disabled = u32::from(nt!(KeAreAllApcsDisabled));
            let process = nt!(PsGetCurrentProcessId) as usize as u32;
            for (to, value) in CLOSED.iter().zip([disabled, process]) {
                to.store(value, Ordering::Relaxed);
            }
            CLOSES.fetch_add(1, Ordering::Relaxed);
        }
        IRP_MJ_DEVICE_CONTROL => {
            of_control.store(validated(irp, FILE_READ_ACCESS), Ordering::Relaxed);
            of_unknown.store(validated(irp, 4), Ordering::Relaxed);
        }
        _ => (),
    }
}

/// Stores the name of the file that a request opens.
fn note_name(location: &IO_STACK_LOCATION) {
    // SAFETY: an open has a file object.
    let name = unsafe { (*location.FileObject).FileName };
    NAME_LENGTH.store(u32::from(name.Length), Ordering::Relaxed);
    if name.Length == 0 {
        return;
    }
    // SAFETY: the string's buffer is as long as the string states.
    let units = unsafe { slice::from_raw_parts(name.Buffer, usize::from(name.Length) / 2) };
    for (to, unit) in FILE_NAME.iter().zip(units) {
        to.store(*unit, Ordering::Relaxed);
    }
}

/// Returns the length in characters of the last file's name, and the name's first characters.
fn last_name() -> [u32; 17] {
    let mut all = [0; 17];
    all[0] = NAME_LENGTH.load(Ordering::Relaxed) / 2;
    for (to, unit) in all.iter_mut().skip(1).zip(&FILE_NAME) {
        *to = u32::from(unit.load(Ordering::Relaxed));
    }
    all
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
    [input, length]: [usize; 2],
) -> Option<usize> {
    match code {
        commands::BY_NAME => Some(answer(&by_name(device), buffer, length)),
        commands::ERROR_LOG => Some(answer(&log_errors(device), buffer, length)),
        commands::BAD_ERROR_LOG => {
            write(device, 4, 200);
            Some(0)
        }
        commands::ODD_ERROR_LOG => {
            write(device, 3, (DUMP + 4) as u16);
            Some(0)
        }
        commands::LEAVE_ERROR_LOG => {
            let entry = allocate(device, FIXED);
            Some(answer(&[u32::from(!entry.is_null())], buffer, length))
        }
        commands::OPEN => {
            let name = UNICODE_STRING {
                Length: input as u16,
                MaximumLength: input as u16,
                Buffer: buffer.cast(),
            };
            let (status, file, _device) = open(name);
            if !file.is_null() {
                release(file);
            }
            Some(answer(&[status], buffer, length))
        }
        commands::RELEASE_RAISED => Some(answer(&release_raised(), buffer, length)),
        commands::ACCESS => {
            let of = VALIDATED.each_ref();
            let validated = of.map(|status| status.load(Ordering::Relaxed));
            Some(answer(&validated, buffer, length))
        }
        commands::FILE_NAME => Some(answer(&last_name(), buffer, length)),
        _ => None,
    }
}

/// Writes numbers to a buffer. Returns their size.
fn answer(numbers: &[u32], buffer: *mut u8, length: usize) -> usize {
    let size = size_of_val(numbers).min(length);
    // SAFETY: the buffer is this long, and does not overlap the numbers.
    unsafe { ptr::copy_nonoverlapping(numbers.as_ptr().cast(), buffer, size) };
    size
}

/// Opens a device by name. Returns the status, the file and the device.
fn open(mut name: UNICODE_STRING) -> (u32, *mut FILE_OBJECT, *mut DEVICE_OBJECT) {
    let mut file: *mut FILE_OBJECT = ptr::null_mut();
    let (status, device) = made(|handle| {
        nt!(IoGetDeviceObjectPointer, &raw mut name, FILE_READ_DATA, &raw mut file, handle)
    });
    (status.cast_unsigned(), file, device)
}

fn release<T>(object: *mut T) {
    let _left = nt!(ObfDereferenceObject, object.cast());
}

/// Opens this driver's device, and releases the file in `body`. Returns the number of closes in
/// `body`, the number of closes some time later, whether all APCs were disabled in the close, and
/// its process.
fn release_in(body: impl FnOnce(*mut FILE_OBJECT)) -> [u32; 4] {
    let (_status, file, _device) = open(counted(&NAME));
    let closes = || CLOSES.load(Ordering::Relaxed);
    let before = closes();
    body(file);
    let at_once = closes() - before;
    // The interval is 10 ms.
    let mut interval = LARGE_INTEGER { QuadPart: -100_000 };
    let _status = nt!(KeDelayExecutionThread, 0, 0, &raw mut interval);
    let [disabled, process] = CLOSED.each_ref().map(|one| one.load(Ordering::Relaxed));
    [at_once, closes() - before, disabled, process]
}

fn release_raised() -> [u32; 8] {
    /// `DISPATCH_LEVEL`.
    const DISPATCH: u8 = 2;
    let raised = release_in(|file| {
        at_irql(DISPATCH, || release(file));
    });
    let guarded = release_in(|file| {
        nt!(KeEnterGuardedRegion);
        release(file);
        nt!(KeLeaveGuardedRegion);
    });
    let mut all = [0; 8];
    for (to, from) in all.iter_mut().zip(raised.into_iter().chain(guarded)) {
        *to = from;
    }
    all
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
    let attached = nt!(IoAttachDevice, above, &raw mut name, &raw mut below);
    let lower = nt!(IoGetLowerDeviceObject, above);
    release(lower);
    let lowest = nt!(IoGetLowerDeviceObject, device);
    let top = nt!(IoGetAttachedDevice, device);
    nt!(IoDetachDevice, device);
    nt!(IoDeleteDevice, above);
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
    nt!(IoAllocateErrorLogEntry, object.cast(), size).cast()
}

/// Writes an entry with up to four bytes of dump data, and a string at an offset.
fn write(device: *mut DEVICE_OBJECT, dump: u16, offset: u16) -> bool {
    let entry = allocate(device, FIXED + 6);
    if entry.is_null() {
        return false;
    }
    let value = _IO_ERROR_LOG_PACKET {
        MajorFunctionCode: 3,
        RetryCount: 2,
        DumpDataSize: dump,
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
    // SAFETY: the entry is longer than its fixed part.
    unsafe { entry.write(value) };
    let text = entry.wrapping_byte_add(DUMP + 4).cast::<[u16; 3]>();
    // SAFETY: the entry has room for the string after the dump data.
    unsafe { text.write_unaligned([u16::from(b'o'), u16::from(b'k'), 0]) };
    nt!(IoWriteErrorLogEntry, entry.cast());
    true
}

fn log_errors(device: *mut DEVICE_OBJECT) -> [u32; 5] {
    let unused = allocate(device, FIXED);
    nt!(IoFreeErrorLogEntry, unused.cast());
    [
        u32::from(!unused.is_null()),
        u32::from(allocate(device, FIXED - 1).is_null()),
        u32::from(allocate(device, 241).is_null()),
        u32::from(allocate(ptr::null_mut(), FIXED).is_null()),
        u32::from(write(device, 4, (DUMP + 4) as u16)),
    ]
}
