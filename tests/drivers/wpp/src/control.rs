//! The control blocks with which sessions enable the driver's messages, and their registration.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use etw_driver_support::{guid, nt, utf16};
use wdk_sys::{
    GUID, NT_SUCCESS, NTSTATUS, PDEVICE_OBJECT, PVOID, STATUS_BUFFER_TOO_SMALL,
    STATUS_INVALID_DEVICE_REQUEST, STATUS_SUCCESS, UNICODE_STRING,
};

use crate::query::{self, Wnode};

/// The control GUIDs of the driver's two sets of flags.
pub static GUIDS: [GUID; 2] = [
    guid(0x6d2c_1f80, 0x4a57, 0x4f0c, [0x9b, 0x3e, 0x11, 0x22, 0x33, 0x44, 0x55, 0x01]),
    guid(0x6d2c_1f80, 0x4a57, 0x4f0c, [0x9b, 0x3e, 0x11, 0x22, 0x33, 0x44, 0x55, 0x02]),
];

/// A control block. WMI calls the callback at its start; the driver uses the other fields.
#[repr(C)]
pub struct ControlBlock {
    callback: WmiCallback,
    /// The trace handle, or 0.
    pub logger: AtomicU64,
    pub flags: AtomicU32,
    pub level: AtomicU32,
    handle: AtomicU64,
    number: usize,
}

const fn block(number: usize) -> ControlBlock {
    ControlBlock {
        callback: wmi_callback,
        logger: AtomicU64::new(0),
        flags: AtomicU32::new(0),
        level: AtomicU32::new(0),
        handle: AtomicU64::new(0),
        number,
    }
}

/// The control blocks of the two GUIDs. WMI uses the first block.
pub static BLOCKS: [ControlBlock; 2] = [block(0), block(1)];

/// Returns the set's trace handle if a session enables `flag` at `level`.
pub fn enabled(set: usize, flag: u32, level: u32) -> Option<u64> {
    let block = BLOCKS.get(set)?;
    let on = block.flags.load(Ordering::Acquire) & flag != 0
        && block.level.load(Ordering::Acquire) >= level;
    on.then(|| block.logger.load(Ordering::Acquire))
}

impl ControlBlock {
    fn enable(&self, logger: u64, level: u32, flags: u32) {
        self.logger.store(logger, Ordering::Release);
        self.level.store(level, Ordering::Release);
        self.flags.store(flags, Ordering::Release);
        wdk::println!(
            "set {} enabled for session {}, level {level}, flags {flags:#x}",
            self.number,
            logger & 0xFFFF
        );
    }

    fn disable(&self) {
        self.flags.store(0, Ordering::Release);
        self.level.store(0, Ordering::Release);
        self.logger.store(0, Ordering::Release);
        wdk::println!("set {} disabled", self.number);
    }
}

/// The way in which the driver registers its control GUIDs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `EtwRegisterClassicProvider`, one call for each GUID.
    Classic,
    /// `IoWMIRegistrationControl` with a callback that returns all GUIDs.
    Wmi,
}

/// Returns the address of a kernel routine, or null.
pub fn routine(name: &[u16]) -> *mut c_void {
    let bytes = (name.len() * 2) as u16;
    let mut name =
        UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: name.as_ptr().cast_mut() };
    nt!(MmGetSystemRoutineAddress, &raw mut name)
}

type ClassicCallback = extern "C" fn(*const GUID, u8, *const EnableContext, PVOID);
type RegisterClassic =
    unsafe extern "C" fn(*const GUID, u32, ClassicCallback, PVOID, *mut u64) -> NTSTATUS;
type Unregister = unsafe extern "C" fn(u64) -> NTSTATUS;

/// The argument of a classic provider's callback: the parts of the trace handle.
#[repr(C)]
pub struct EnableContext {
    logger: u16,
    level: u8,
    _internal: u8,
    flags: u32,
}

/// The callback of `EtwRegisterClassicProvider`.
extern "C" fn classic_callback(
    guid: *const GUID,
    code: u8,
    enabled: *const EnableContext,
    context: PVOID,
) {
    // SAFETY: the driver registered a control block as the context.
    let block = unsafe { &*context.cast::<ControlBlock>() };
    // SAFETY: ETW passes the provider's GUID.
    let guid = unsafe { &*guid };
    if !is_equal(guid, &GUIDS[block.number]) {
        wdk::println!("a callback for another GUID");
    }
    match code {
        0 => block.disable(),
        1 => {
            // SAFETY: an enable has a context.
            let EnableContext { logger, level, flags, .. } = unsafe { enabled.read() };
            let handle = u64::from(logger) | u64::from(level) << 16 | u64::from(flags) << 32;
            block.enable(handle, u32::from(level), flags);
        }
        other => wdk::println!("control code {other}"),
    }
}

/// Returns whether two GUIDs are equal.
pub fn is_equal(one: &GUID, other: &GUID) -> bool {
    (one.Data1, one.Data2, one.Data3, one.Data4)
        == (other.Data1, other.Data2, other.Data3, other.Data4)
}

/// `WMIENTRY_NEW`: minor function, data path, buffer size, buffer, control block, size.
type WmiCallback =
    extern "C" fn(u8, PVOID, u32, *mut u8, *const ControlBlock, *mut u32) -> NTSTATUS;

/// `WMIREGINFO` for two GUIDs.
#[repr(C)]
struct RegInfo {
    size: u32,
    next: u32,
    registry_path: u32,
    mof_resource: u32,
    count: u32,
    guids: [RegGuid; 2],
}

/// `WMIREGGUID`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RegGuid {
    guid: GUID,
    flags: u32,
    instances: u32,
    names: u64,
}

/// The callback of the control block that WMI uses.
extern "C" fn wmi_callback(
    minor: u8,
    _path: PVOID,
    size: u32,
    buffer: *mut u8,
    first: *const ControlBlock,
    written: *mut u32,
) -> NTSTATUS {
    const ENABLE_EVENTS: u8 = 4;
    const DISABLE_EVENTS: u8 = 5;
    const ENABLE_COLLECTION: u8 = 6;
    const DISABLE_COLLECTION: u8 = 7;
    const REGINFO: u8 = 8;
    let mut length = 0;
    let status = match minor {
        REGINFO if ptr::eq(first, &raw const BLOCKS[0]) => register_info(size, buffer, &mut length),
        ENABLE_EVENTS | DISABLE_EVENTS if size as usize >= size_of::<Wnode>() => {
            // SAFETY: its size shows that the buffer contains a header.
            let wnode = unsafe { buffer.cast::<Wnode>().read_unaligned() };
            notify(&wnode, minor == ENABLE_EVENTS);
            STATUS_SUCCESS
        }
        ENABLE_COLLECTION | DISABLE_COLLECTION => STATUS_SUCCESS,
        _ => STATUS_INVALID_DEVICE_REQUEST,
    };
    // SAFETY: WMI passes a valid pointer.
    unsafe { written.write(length) };
    status
}

/// Writes the control GUIDs to WMI's buffer. The first call requests a larger buffer.
fn register_info(size: u32, buffer: *mut u8, written: &mut u32) -> NTSTATUS {
    const TRACED_CONTROL_GUID: u32 = 0x0000_1000 | 0x0008_0000;
    /// A smaller size is not sufficient, so that WMI makes a second request.
    const WANTED: u32 = 1024;
    if size < WANTED {
        // SAFETY: the buffer is at least four bytes long.
        unsafe { buffer.cast::<u32>().write_unaligned(WANTED) };
        *written = 4;
        return STATUS_BUFFER_TOO_SMALL;
    }
    let length = size_of::<RegInfo>() as u32;
    let info = RegInfo {
        size: length,
        next: 0,
        registry_path: 0,
        mof_resource: 0,
        count: 2,
        guids: GUIDS.map(|guid| RegGuid {
            guid,
            flags: TRACED_CONTROL_GUID,
            instances: 0,
            names: 0,
        }),
    };
    // SAFETY: the buffer is large enough.
    unsafe { buffer.cast::<RegInfo>().write_unaligned(info) };
    *written = length;
    STATUS_SUCCESS
}

/// Enables or disables the set of flags whose GUID WMI passes.
fn notify(wnode: &Wnode, enable: bool) {
    let found = GUIDS.iter().position(|guid| is_equal(guid, &wnode.guid));
    let Some(block) = found.and_then(|number| BLOCKS.get(number)) else {
        wdk::println!("a callback for another GUID");
        return;
    };
    if !enable {
        block.disable();
        return;
    }
    // Drivers of this kind query the level and flags.
    let level = query::number(query::ENABLE_LEVEL, wnode);
    let flags = query::number(query::ENABLE_FLAGS, wnode);
    block.enable(wnode.historical_context, level.unwrap_or(0), flags.unwrap_or(0));
}

/// `WMIREG_ACTION_REGISTER` and `WMIREG_ACTION_DEREGISTER`, with the flags for a control block.
const REGISTER: u32 = 0x8000_0000 | 0x0001_0000 | 1;
const DEREGISTER: u32 = 0x8000_0000 | 2;

/// Registers the control GUIDs.
pub fn register(way: Way) {
    let mut major = 0;
    let _checked =
        nt!(PsGetVersion, &raw mut major, ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    if major < 6 {
        wdk::println!("Windows {major} is too old");
        return;
    }
    match way {
        Way::Classic => {
            let register = routine(&utf16(b"EtwRegisterClassicProvider"));
            if register.is_null() {
                wdk::println!("there is no EtwRegisterClassicProvider");
                return;
            }
            // SAFETY: the routine has this type.
            let register =
                unsafe { core::mem::transmute::<*mut c_void, RegisterClassic>(register) };
            for (guid, block) in GUIDS.iter().zip(&BLOCKS) {
                let context = ptr::from_ref(block).cast_mut().cast();
                // SAFETY: the GUID and the block are static.
                let status =
                    unsafe { register(guid, 0, classic_callback, context, block.handle.as_ptr()) };
                if !NT_SUCCESS(status) {
                    wdk::println!("EtwRegisterClassicProvider failed: {status:#x}");
                }
            }
        }
        Way::Wmi => {
            let status = control(REGISTER);
            if !NT_SUCCESS(status) {
                wdk::println!("IoWMIRegistrationControl failed: {status:#x}");
            }
        }
    }
}

/// Ends the registration of the control GUIDs.
pub fn unregister(way: Way) {
    match way {
        Way::Classic => {
            let unregister = routine(&utf16(b"EtwUnregister"));
            // SAFETY: the routine has this type.
            let unregister = unsafe { core::mem::transmute::<*mut c_void, Unregister>(unregister) };
            for block in &BLOCKS {
                let handle = block.handle.swap(0, Ordering::Relaxed);
                if handle != 0 {
                    // SAFETY: the handle came from the registration, and is not used again.
                    let _status = unsafe { unregister(handle) };
                }
            }
        }
        Way::Wmi => {
            let _status = control(DEREGISTER);
        }
    }
}

/// Calls `IoWMIRegistrationControl` for the first control block.
pub fn control(action: u32) -> NTSTATUS {
    let block: PDEVICE_OBJECT = (&raw const BLOCKS[0]).cast_mut().cast();
    nt!(IoWMIRegistrationControl, block, action)
}
