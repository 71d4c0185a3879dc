//! Properties of the current call, and routines that some kernels lack.

use core::{ffi::c_void, mem, ptr};

pub use etw_driver_support::irql;
use etw_driver_support::{nt, routine};
use etw_probes_interface::{ACTIVITY, GuidFields, Reply, routine as known};
use wdk_sys::{GUID, HANDLE, LARGE_INTEGER, LPCGUID, NTSTATUS, PVOID};

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

/// `ZwClose` and `ZwFlushKey`. Both have a handle as their parameter.
pub type Close = unsafe extern "C" fn(HANDLE) -> NTSTATUS;

/// The activity id to set. `EtwActivityIdControlKernel` can keep the pointer.
pub static SET: GUID = guid(ACTIVITY);

/// Returns whether the kernel has a routine of [`known`].
pub fn has_routine(which: u32) -> bool {
    let name = match which {
        known::ACTIVITY_KERNEL => "EtwActivityIdControlKernel",
        known::CREATE_THREAD => "IoCreateSystemThread",
        known::SET_INFORMATION => "EtwSetInformation",
        known::WRITE_EX => "EtwWriteEx",
        _ => return false,
    };
    !routine(name).is_null()
}

/// Defines functions that look up a kernel routine.
macro_rules! routines {
    ($($function:ident: $type:ty = $name:literal;)+) => {$(
        #[doc = concat!("Returns `", $name, "` if the kernel has it. IRQL: `PASSIVE_LEVEL`.")]
        pub fn $function() -> Option<$type> {
            let address = routine($name);
            // SAFETY: the kernel's routine of this name has this type; null is `None`.
            unsafe { mem::transmute::<*mut c_void, Option<$type>>(address) }
        }
    )+};
}

routines! {
    activity_id_control_kernel: ActivityIdControlKernel = "EtwActivityIdControlKernel";
    create_system_thread: CreateSystemThread = "IoCreateSystemThread";
    terminate_system_thread: TerminateSystemThread = "PsTerminateSystemThread";
    close: Close = "ZwClose";
    flush_key: Close = "ZwFlushKey";
}

/// Returns the performance counter.
pub fn counter() -> u64 {
    let now = nt!(KeQueryPerformanceCounter, ptr::null_mut());
    // SAFETY: every member of the union has the counter's bits.
    unsafe { now.QuadPart }.cast_unsigned()
}

/// Returns the performance counter's frequency.
pub fn frequency() -> u64 {
    let mut frequency = LARGE_INTEGER { QuadPart: 0 };
    nt!(KeQueryPerformanceCounter, &raw mut frequency);
    // SAFETY: every member of the union has the frequency's bits.
    unsafe { frequency.QuadPart }.cast_unsigned()
}

/// Returns the id of the current thread.
pub fn thread() -> u32 {
    nt!(PsGetCurrentThreadId).addr() as u32
}

/// Returns the id of the current process.
fn process() -> u32 {
    nt!(PsGetCurrentProcessId).addr() as u32
}

/// Returns an answer without results, from the current context.
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
