//! The variables that the kernel exports, and the flight recorder of WppRecorder.sys.

use core::{
    ffi::c_char,
    sync::atomic::{AtomicU64, Ordering},
};

use wdk_sys::{PDRIVER_OBJECT, PUNICODE_STRING, PVOID};

use crate::call::{NULL, at, call, driver, field, same};

/// Returns the address of an exported variable.
pub fn variable(name: &str) -> PVOID {
    let address = etw_driver_support::routine(name);
    assert!(!address.is_null(), "{name} is not found");
    address
}

/// Reads a value from the kernel.
const fn read<T: Copy>(address: PVOID) -> T {
    field(address, 0)
}

/// Returns the object type to which an exported variable points.
pub fn object_type(name: &str) -> PVOID {
    read(variable(name))
}

/// Declares the kernel's variables as pointers, as wdm.h does without `dllimport`, and a function
/// that compares each pointer with the variable's address.
macro_rules! pointers {
    ($($name:ident)+) => {
        unsafe extern "C" {
            $(static $name: PVOID;)+
        }

        fn pointers() {
            $(
                // SAFETY: the loader has bound the pointer, and nothing changes it.
                same!(unsafe { $name }, variable(stringify!($name)));
            )+
        }
    };
}

pointers! {
    CcFastMdlReadWait CcFastReadNotPossible CcFastReadWait CmKeyObjectType ExActivationObjectType
    ExCompositionObjectType ExCoreMessagingObjectType ExDesktopObjectType ExEventObjectType
    ExRawInputManagerObjectType ExSemaphoreObjectType ExTimerObjectType ExWindowStationObjectType
    FsRtlLegalAnsiCharacterArray HalDispatchTable HalPrivateDispatchTable InitSafeBootMode
    IoAdapterObjectType IoCompletionObjectType IoDeviceHandlerObjectSize IoDeviceHandlerObjectType
    IoDeviceObjectType IoDriverObjectType IoFileObjectType IoReadOperationCount IoReadTransferCount
    IoStatisticsLock IoWriteOperationCount IoWriteTransferCount KdComPortInUse KdDebuggerEnabled
    KdDebuggerNotPresent KdEnteredDebugger KdEventLoggingEnabled KdEventLoggingPresent
    KdHvComPortInUse KeDynamicPartitioningSupported KeLastBranchMSR KeLoaderBlock KeNumberProcessors
    KiBugCheckData LpcPortObjectType Mm64BitPhysicalAddress MmBadPointer MmHighestUserAddress
    MmSectionObjectType MmSystemRangeStart MmUserProbeAddress NlsAnsiCodePage NlsLeadByteInfo
    NlsMbCodePageTag NlsMbOemCodePageTag NlsOemCodePage NlsOemLeadByteInfo NtBuildGUID NtBuildLab
    NtBuildNumber NtGlobalFlag POGOBuffer PsInitialSystemProcess PsJobType PsLoadedModuleList
    PsLoadedModuleResource PsPartitionType PsProcessType PsSiloContextNonPagedType
    PsSiloContextPagedType PsThreadType PsUILanguageComitted SeExports SeILSigningPolicyPtr
    SePublicDefaultDacl SeSystemDefaultDacl SeSystemDefaultSd SeTokenObjectType
    TmEnlistmentObjectType TmResourceManagerObjectType TmTransactionManagerObjectType
    TmTransactionObjectType psMUITest
}

/// Reads variables with their declarations in wdk-sys.
fn declared() {
    // SAFETY: the declaration matches the header.
    let types = unsafe { wdk_sys::PsProcessType };
    same!(types, variable("PsProcessType"));
    // SAFETY: the pointer is to the kernel's variable.
    let kind = unsafe { *types };
    same!(kind, object_type("PsProcessType"));
    let process = call!(PsGetCurrentProcess);
    let mut handle = NULL;
    same!(call!(ObOpenObjectByPointer, process, 512, NULL, 4096, kind, 0, &mut handle), 0);
    same!(call!(ZwClose, handle), 0);
    // SAFETY: the declaration matches the header.
    let absent = unsafe { wdk_sys::KdDebuggerNotPresent };
    same!(read::<u8>(absent.cast()), 1);
    // SAFETY: as above.
    let dispatch = unsafe { wdk_sys::HalDispatchTable };
    same!(read::<u32>(dispatch.cast()), wdk_sys::HAL_DISPATCH_VERSION);
    // SAFETY: as above.
    let legal: PVOID = read(unsafe { wdk_sys::FsRtlLegalAnsiCharacterArray }.cast_mut().cast());
    same!(field::<u8>(legal, b'+'.into()), 0x16);
    same!(field::<u8>(legal, b'*'.into()), 0x18);
}

/// Reads the security descriptor and the lists that the kernel exports.
fn security(local_system: PVOID) {
    let descriptor: PVOID = read(variable("SeSystemDefaultSd"));
    same!(call!(RtlValidSecurityDescriptor, descriptor), true);
    let (mut is_present, mut list, mut is_default) = (0_u8, NULL, 1_u8);
    let [present, dacl, default] = [at(&mut is_present), at(&mut list), at(&mut is_default)];
    same!(call!(RtlGetDaclSecurityDescriptor, descriptor, present, dacl, default), 0);
    same!((is_present, is_default) == (1, 0), true);
    for (name, first, count) in
        [("SePublicDefaultDacl", 0x2000_0000, 3), ("SeSystemDefaultDacl", 0x1000_0000, 2)]
    {
        let list: PVOID = read(variable(name));
        same!(read::<u8>(list), 2);
        same!(field::<u16>(list, 4), count);
        same!(field::<u32>(list, 12), first);
    }
    same!(call!(RtlEqualSid, list.wrapping_byte_add(16), local_system), true);
}

/// Acquires the lock of the list of loaded modules, as drivers that read the list do.
fn modules() {
    let lock = variable("PsLoadedModuleResource");
    call!(KeEnterCriticalRegion);
    same!(call!(ExAcquireResourceSharedLite, lock, 1), true);
    call!(ExReleaseResourceLite, lock);
    call!(KeLeaveCriticalRegion);
}

pub fn variables() {
    pointers();
    declared();
    let list = variable("PsLoadedModuleList");
    same!(read::<[PVOID; 2]>(list) == [list; 2], true);
    for (name, value) in [
        ("KdDebuggerEnabled", 0),
        ("KdDebuggerNotPresent", 1),
        ("NlsMbCodePageTag", 0),
        ("KeNumberProcessors", 1),
    ] {
        same!(read::<u8>(variable(name)), value);
    }
    same!(read::<u32>(variable("InitSafeBootMode")), 0);
    let build = variable("NtBuildNumber");
    let digits = read::<[u8; 5]>(variable("NtBuildLab"));
    let number = digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    same!(read::<u32>(build) & 0xFFFF, number);
    same!(read::<u16>(variable("PsUILanguageComitted")), 0x409);
    let probe: u64 = read(variable("MmUserProbeAddress"));
    same!(probe, 0x7FFF_FFFF_0000_u64);
    same!(read::<u64>(variable("MmHighestUserAddress")), probe - 1);
    same!(read::<u64>(variable("MmSystemRangeStart")) > probe, true);
    let (process, token) = (object_type("PsProcessType"), object_type("SeTokenObjectType"));
    same!(!process.is_null() && !token.is_null() && process != token, true);
    let system: PVOID = read(variable("PsInitialSystemProcess"));
    same!(call!(PsGetProcessId, system), 4);
    let exports: PVOID = read(variable("SeExports"));
    // The values are SeDebugPrivilege, and the SID of the local system.
    same!(field::<u64>(exports, 144), 20);
    let local_system: PVOID = field(exports, 264);
    security(local_system);
    modules();
    same!(read::<[u8; 12]>(local_system) == [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0], true);
}

#[cfg_attr(windows, link(name = "WppRecorder.sys", kind = "raw-dylib", modifiers = "+verbatim"))]
unsafe extern "C" {
    fn WppAutoLogStart(control: PVOID, driver: PDRIVER_OBJECT, path: PUNICODE_STRING);
    fn WppAutoLogStop(control: PVOID, driver: PDRIVER_OBJECT);
    fn WppAutoLogTrace(log: u64, level: u8, flags: u32, guid: PVOID, number: u16, ...) -> u32;
    fn imp_WppRecorderIsDefaultLogAvailable(control: PVOID) -> u8;
    fn imp_WppRecorderLogCreate(control: PVOID, parameters: PVOID, log: *mut u64) -> u32;
    fn imp_WppRecorderLogDelete(control: PVOID, log: u64) -> u32;
    fn imp_WppRecorderLogGetDefault(control: PVOID) -> u64;
    fn imp_WppRecorderLogSetIdentifier(control: PVOID, log: u64, identifier: *const c_char) -> u32;
}

/// A WPP control block of 0x50 bytes.
static CONTROL: [AtomicU64; 10] = [const { AtomicU64::new(0) }; 10];

fn control() -> PVOID {
    CONTROL.as_ptr().cast_mut().cast()
}

/// Returns the log's handle in the control block.
fn log() -> u64 {
    CONTROL[8].load(Ordering::Relaxed)
}

pub fn recorder() {
    start();
    trace();
    // SAFETY: the block belongs to this driver.
    unsafe { WppAutoLogStop(control(), driver()) };
    same!(log(), 0);
}

pub fn recorder_left() {
    start();
    trace();
}

fn start() {
    // SAFETY: the block belongs to this driver.
    unsafe { WppAutoLogStart(control(), driver(), core::ptr::null_mut()) };
    same!(log() != 0, true);
    // SAFETY: as above.
    let default = unsafe { imp_WppRecorderLogGetDefault(control()) };
    same!(default, log());
    // SAFETY: as above.
    let is_available = unsafe { imp_WppRecorderIsDefaultLogAvailable(control()) };
    same!(is_available, 1);
    let mut parameters = [0_u64; 6];
    parameters[0] = 48;
    parameters[1] = 1024;
    parameters[2] = 0x1F;
    parameters[3] = 1 | 16 << 32;
    parameters[4] = u64::from_le_bytes(*b"port \0\0\0");
    let mut own = 0_u64;
    // The header allows creating, naming and deleting logs at DISPATCH_LEVEL.
    let before = call!(KfRaiseIrql, 2);
    // SAFETY: the structure and the result are locals.
    let status = unsafe { imp_WppRecorderLogCreate(control(), at(&mut parameters), &raw mut own) };
    call!(KeLowerIrql, before);
    same!(status, 0);
    let mut guid = [7_u8; 16];
    let (mut value, end) = (5_u32, 0_u64);
    let mut write = |log: u64, level: u8, number: u16| {
        value += 1;
        // SAFETY: the GUID and the value are locals, and the log is open.
        unsafe { WppAutoLogTrace(log, level, 1, at(&mut guid), number, at(&mut value), 4_u64, end) }
    };
    same!(write(own, 4, 10), 0);
    same!(write(0, 4, 10), 0xC000_000D_u32);
    let before = call!(KfRaiseIrql, 2);
    // SAFETY: the text is a constant, and the log is open.
    let status = unsafe { imp_WppRecorderLogSetIdentifier(control(), own, c"second".as_ptr()) };
    same!(status, 0);
    same!(write(own, 4, 11), 0);
    // SAFETY: the log is open, and nothing uses it afterwards.
    same!(unsafe { imp_WppRecorderLogDelete(control(), own) }, 0);
    call!(KeLowerIrql, before);
}

fn trace() {
    let mut guid = [9_u8; 16];
    for number in 0..3_u16 {
        let mut value = u64::from(number);
        // SAFETY: the GUID and the value are locals, and the log is open.
        let status = unsafe {
            WppAutoLogTrace(log(), 2, 1, at(&mut guid), number, at(&mut value), 8_u64, 0_u64)
        };
        same!(status, 0);
    }
}
