//! The kernel's routines: those that wdk-sys declares, and prototypes of others, which drivers
//! declare themselves.

use core::ffi::{c_char, c_int, c_void};

pub use wdk_sys::ntddk::*;
use wdk_sys::{
    ACCESS_MASK, BOOLEAN, HANDLE, KAPC, KPRIORITY, KPROCESSOR_MODE, NTSTATUS, PACCESS_STATE,
    PCUNICODE_STRING, PCWSTR, PDRIVER_OBJECT, PEPROCESS, PETHREAD, PHANDLE, PKAPC, PKTHREAD,
    PLARGE_INTEGER, POBJECT_ATTRIBUTES, POBJECT_TYPE, POOL_FLAGS, POOL_TYPE, PROCESSINFOCLASS,
    PRTL_QUERY_REGISTRY_TABLE, PSECURITY_DESCRIPTOR, PSTRING, PULONG, PUNICODE_STRING, PVOID,
    SIZE_T, ULONG, ULONGLONG, WAIT_TYPE, errno_t, wchar_t,
};

/// `PRKNORMAL_ROUTINE`, `PKKERNEL_ROUTINE` and `PKRUNDOWN_ROUTINE` of an APC.
pub type NormalRoutine = Option<unsafe extern "C" fn(PVOID, PVOID, PVOID)>;
pub type KernelRoutine =
    Option<unsafe extern "C" fn(*mut KAPC, *mut NormalRoutine, *mut PVOID, *mut PVOID, *mut PVOID)>;
pub type RundownRoutine = Option<unsafe extern "C" fn(*mut KAPC)>;

/// Compares two elements of an array.
pub type Comparison = Option<unsafe extern "C" fn(PVOID, PVOID) -> c_int>;

// The import library lacks some of the names.
#[cfg_attr(windows, link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim"))]
unsafe extern "C" {
    pub fn DbgBreakPoint();
    pub fn ExAllocatePool3(
        flags: POOL_FLAGS,
        size: SIZE_T,
        tag: ULONG,
        extended: PVOID,
        count: ULONG,
    ) -> PVOID;
    pub fn ExAllocatePoolWithQuotaTag(kind: POOL_TYPE, size: SIZE_T, tag: ULONG) -> PVOID;
    pub fn ExAllocatePoolWithTag(kind: POOL_TYPE, size: SIZE_T, tag: ULONG) -> PVOID;
    pub fn IoOpenDriverRegistryKey(
        driver: PDRIVER_OBJECT,
        kind: c_int,
        access: ACCESS_MASK,
        flags: ULONG,
        key: PHANDLE,
    ) -> NTSTATUS;
    pub fn KeGetCurrentThread() -> PKTHREAD;
    pub fn KeInitializeApc(
        apc: PKAPC,
        thread: PKTHREAD,
        environment: c_int,
        kernel: KernelRoutine,
        rundown: RundownRoutine,
        normal: NormalRoutine,
        mode: KPROCESSOR_MODE,
        context: PVOID,
    );
    pub fn KeInsertQueueApc(
        apc: PKAPC,
        first: PVOID,
        second: PVOID,
        increment: KPRIORITY,
    ) -> BOOLEAN;
    pub fn KeQueryInterruptTime() -> ULONGLONG;
    pub fn KeQuerySystemTime(time: PLARGE_INTEGER);
    pub fn KeQueryTickCount(ticks: PLARGE_INTEGER);
    pub fn KeRemoveQueueApc(apc: PKAPC) -> BOOLEAN;
    pub fn ObReferenceObjectByName(
        name: PUNICODE_STRING,
        attributes: ULONG,
        state: PACCESS_STATE,
        access: ACCESS_MASK,
        kind: POBJECT_TYPE,
        mode: KPROCESSOR_MODE,
        context: PVOID,
        object: *mut PVOID,
    ) -> NTSTATUS;
    pub fn PsGetCurrentProcess() -> PEPROCESS;
    pub fn PsGetCurrentThread() -> PETHREAD;
    pub fn PsGetProcessImageFileName(process: PEPROCESS) -> *mut c_char;
    pub fn RtlFillMemory(to: PVOID, length: SIZE_T, fill: c_int);
    pub fn RtlIpv4AddressToStringA(address: PVOID, text: PVOID) -> PVOID;
    pub fn RtlIpv4AddressToStringExA(
        address: PVOID,
        port: u16,
        text: PVOID,
        length: PULONG,
    ) -> NTSTATUS;
    pub fn RtlIpv4StringToAddressA(
        text: *const c_char,
        strict: BOOLEAN,
        end: *mut PVOID,
        address: PVOID,
    ) -> NTSTATUS;
    pub fn RtlIpv6AddressToStringExA(
        address: PVOID,
        scope: ULONG,
        port: u16,
        text: PVOID,
        length: PULONG,
    ) -> NTSTATUS;
    pub fn RtlIpv6StringToAddressExW(
        text: PCWSTR,
        address: PVOID,
        scope: PULONG,
        port: *mut u16,
    ) -> NTSTATUS;
    pub fn RtlMoveMemory(to: PVOID, from: PVOID, length: SIZE_T);
    pub fn RtlPcToFileHeader(address: PVOID, base: *mut PVOID) -> PVOID;
    pub fn RtlQueryRegistryValuesEx(
        relative_to: ULONG,
        path: PCWSTR,
        table: PRTL_QUERY_REGISTRY_TABLE,
        context: PVOID,
        environment: PVOID,
    ) -> NTSTATUS;
    pub fn RtlUnicodeStringToUTF8String(
        to: PSTRING,
        from: PCUNICODE_STRING,
        allocate: BOOLEAN,
    ) -> NTSTATUS;
    pub fn RtlZeroMemory(to: PVOID, length: SIZE_T);
    pub fn SeCaptureSecurityDescriptor(
        descriptor: PSECURITY_DESCRIPTOR,
        mode: KPROCESSOR_MODE,
        kind: POOL_TYPE,
        force: BOOLEAN,
        captured: *mut PSECURITY_DESCRIPTOR,
    ) -> NTSTATUS;
    pub fn SeReleaseSecurityDescriptor(
        descriptor: PSECURITY_DESCRIPTOR,
        mode: KPROCESSOR_MODE,
        force: BOOLEAN,
    );
    pub fn ZwCreateSymbolicLinkObject(
        handle: PHANDLE,
        access: ACCESS_MASK,
        attributes: POBJECT_ATTRIBUTES,
        target: PUNICODE_STRING,
    ) -> NTSTATUS;
    pub fn ZwQueryDirectoryObject(
        directory: HANDLE,
        buffer: PVOID,
        length: ULONG,
        single: BOOLEAN,
        restart: BOOLEAN,
        context: PULONG,
        needed: PULONG,
    ) -> NTSTATUS;
    pub fn ZwQueryInformationProcess(
        process: HANDLE,
        class: PROCESSINFOCLASS,
        buffer: PVOID,
        length: ULONG,
        needed: PULONG,
    ) -> NTSTATUS;
    pub fn ZwWaitForMultipleObjects(
        count: ULONG,
        handles: *mut HANDLE,
        kind: WAIT_TYPE,
        alertable: BOOLEAN,
        timeout: PLARGE_INTEGER,
    ) -> NTSTATUS;
    pub fn _atoi64(text: *const c_char) -> i64;
    pub fn _i64tow_s(value: i64, buffer: *mut wchar_t, size: usize, radix: c_int) -> errno_t;
    pub fn _itoa(value: c_int, buffer: *mut c_char, radix: c_int) -> *mut c_char;
    pub fn _itoa_s(value: c_int, buffer: *mut c_char, size: usize, radix: c_int) -> errno_t;
    pub fn _ui64toa_s(value: u64, buffer: *mut c_char, size: usize, radix: c_int) -> errno_t;
    pub fn _ultow_s(value: u32, buffer: *mut wchar_t, size: usize, radix: c_int) -> errno_t;
    pub fn _wtoi(text: *const wchar_t) -> c_int;
    pub fn atoi(text: *const c_char) -> c_int;
    pub fn bsearch(
        key: *const c_void,
        base: *const c_void,
        count: usize,
        size: usize,
        compare: Comparison,
    ) -> PVOID;
    pub fn isalnum(character: c_int) -> c_int;
    pub fn isalpha(character: c_int) -> c_int;
    pub fn qsort(base: PVOID, count: usize, size: usize, compare: Comparison);
    pub fn rand() -> c_int;
    pub fn srand(seed: u32);
    pub fn strcspn(text: *const c_char, control: *const c_char) -> usize;
    pub fn strpbrk(text: *const c_char, control: *const c_char) -> *mut c_char;
    pub fn strtol(text: *const c_char, end: *mut *mut c_char, radix: c_int) -> i32;
    pub fn strtoul(text: *const c_char, end: *mut *mut c_char, radix: c_int) -> u32;
    pub fn wcstoul(text: *const wchar_t, end: *mut *mut wchar_t, radix: c_int) -> u32;
}
