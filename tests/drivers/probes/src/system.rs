//! Facts about the current call, and routines that the kernel may not have.

use core::{ffi::c_void, mem, ptr};

use etw_probes_interface::{ACTIVITY, GuidFields, Reply, routine};
use wdk_sys::{
    GUID, HANDLE, LARGE_INTEGER, LPCGUID, NTSTATUS, PVOID, UNICODE_STRING,
    ntddk::{
        KeGetCurrentIrql, KeQueryPerformanceCounter, MmGetSystemRoutineAddress,
        PsGetCurrentProcessId, PsGetCurrentThreadId,
    },
};

/// `EtwActivityIdControlKernel`: the code is 1 (get) or 2 (set); the second argument points to the
/// pointer that is set or received.
pub type ActivityIdControlKernel = unsafe extern "C" fn(u32, *mut LPCGUID) -> NTSTATUS;

/// `IoCreateSystemThread`.
pub type CreateSystemThread = unsafe extern "C" fn(
    PVOID,
    *mut HANDLE,
    u32,
    PVOID,
    HANDLE,
    PVOID,
    unsafe extern "C" fn(PVOID),
    PVOID,
) -> NTSTATUS;

/// `PsTerminateSystemThread`.
pub type TerminateSystemThread = unsafe extern "C" fn(NTSTATUS) -> NTSTATUS;

/// `ZwClose` and `ZwFlushKey`, which take a handle.
pub type Close = unsafe extern "C" fn(HANDLE) -> NTSTATUS;

/// The activity id to set. `EtwActivityIdControlKernel` may keep the pointer.
pub static SET: GUID = guid(ACTIVITY);

/// The longest name of a routine, in characters.
const MAX_NAME: usize = 40;

/// Returns a routine of the kernel by its name, or null. IRQL: `PASSIVE_LEVEL`.
fn address_of(name: &str) -> *mut c_void {
    let mut units = [0_u16; MAX_NAME];
    let mut length = 0_u16;
    for (unit, byte) in units.iter_mut().zip(name.bytes()) {
        *unit = u16::from(byte);
        length = length.wrapping_add(2);
    }
    let mut name =
        UNICODE_STRING { Length: length, MaximumLength: length, Buffer: units.as_mut_ptr() };
    // SAFETY: the string is a local, and the driver calls this at PASSIVE_LEVEL only.
    unsafe { MmGetSystemRoutineAddress(&raw mut name) }
}

/// Returns whether the kernel has a routine of [`routine`].
pub fn has_routine(which: u32) -> bool {
    let name = match which {
        routine::ACTIVITY_KERNEL => "EtwActivityIdControlKernel",
        routine::CREATE_THREAD => "IoCreateSystemThread",
        routine::SET_INFORMATION => "EtwSetInformation",
        routine::WRITE_EX => "EtwWriteEx",
        _ => return false,
    };
    !address_of(name).is_null()
}

/// Returns `EtwActivityIdControlKernel` if the kernel has it.
pub fn activity_id_control_kernel() -> Option<ActivityIdControlKernel> {
    let address = address_of("EtwActivityIdControlKernel");
    // SAFETY: the kernel's routine of this name has this type; null is `None`.
    unsafe { mem::transmute::<*mut c_void, Option<ActivityIdControlKernel>>(address) }
}

/// Returns `IoCreateSystemThread` if the kernel has it.
pub fn create_system_thread() -> Option<CreateSystemThread> {
    let address = address_of("IoCreateSystemThread");
    // SAFETY: as above.
    unsafe { mem::transmute::<*mut c_void, Option<CreateSystemThread>>(address) }
}

/// Returns `PsTerminateSystemThread` if the kernel has it.
pub fn terminate_system_thread() -> Option<TerminateSystemThread> {
    let address = address_of("PsTerminateSystemThread");
    // SAFETY: as above.
    unsafe { mem::transmute::<*mut c_void, Option<TerminateSystemThread>>(address) }
}

/// Returns `ZwClose` if the kernel has it.
pub fn close() -> Option<Close> {
    let address = address_of("ZwClose");
    // SAFETY: as above.
    unsafe { mem::transmute::<*mut c_void, Option<Close>>(address) }
}

/// Returns `ZwFlushKey` if the kernel has it.
pub fn flush_key() -> Option<Close> {
    let address = address_of("ZwFlushKey");
    // SAFETY: as above; the routine has the parameters of `ZwClose`.
    unsafe { mem::transmute::<*mut c_void, Option<Close>>(address) }
}

/// Returns the current IRQL.
pub fn irql() -> u8 {
    // SAFETY: the routine has no preconditions.
    unsafe { KeGetCurrentIrql() }
}

/// Returns the performance counter.
pub fn counter() -> u64 {
    // SAFETY: the frequency may be null.
    let now = unsafe { KeQueryPerformanceCounter(ptr::null_mut()) };
    // SAFETY: every member of the union has the counter's bits.
    unsafe { now.QuadPart }.cast_unsigned()
}

/// Returns the performance counter's frequency.
pub fn frequency() -> u64 {
    let mut frequency = LARGE_INTEGER { QuadPart: 0 };
    // SAFETY: the frequency is a local.
    unsafe { KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: every member of the union has the frequency's bits.
    unsafe { frequency.QuadPart }.cast_unsigned()
}

/// Returns the id of the current thread.
pub fn thread() -> u32 {
    // SAFETY: the routine has no preconditions.
    unsafe { PsGetCurrentThreadId() }.addr() as u32
}

/// Returns the id of the current process.
fn process() -> u32 {
    // SAFETY: the routine has no preconditions.
    unsafe { PsGetCurrentProcessId() }.addr() as u32
}

/// Returns an answer without results from the current place.
pub fn reply_from_here(operation: u32) -> Reply {
    Reply { irql: u32::from(irql()), process: process(), thread: thread(), ..Reply::new(operation) }
}

/// Returns a GUID of the interface.
pub const fn guid(fields: GuidFields) -> GUID {
    GUID { Data1: fields.0, Data2: fields.1, Data3: fields.2, Data4: fields.3 }
}

/// Returns a GUID's bytes.
pub fn bytes_of(guid: &GUID) -> [u8; 16] {
    let value = u128::from(guid.Data1)
        | (u128::from(guid.Data2) << 32)
        | (u128::from(guid.Data3) << 48)
        | (u128::from(u64::from_le_bytes(guid.Data4)) << 64);
    value.to_le_bytes()
}

/// Returns the GUID of these bytes.
pub const fn guid_of(bytes: &[u8; 16]) -> GUID {
    let value = u128::from_le_bytes(*bytes);
    GUID {
        Data1: value as u32,
        Data2: (value >> 32) as u16,
        Data3: (value >> 48) as u16,
        Data4: ((value >> 64) as u64).to_le_bytes(),
    }
}
