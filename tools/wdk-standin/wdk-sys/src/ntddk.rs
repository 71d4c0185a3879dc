//! Routines of ntoskrnl.exe.

#![allow(
    missing_docs,
    non_snake_case,
    clippy::missing_safety_doc,
    reason = "names are those of the WDK's headers, and so is their documentation"
)]

#[allow(clippy::wildcard_imports, reason = "signatures use most of the types")]
use crate::types::*;

#[cfg_attr(
    target_os = "windows",
    link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")
)]
unsafe extern "C" {
    pub fn DbgPrint(Format: PCSTR, ...) -> ULONG;
    pub fn DbgPrintEx(ComponentId: ULONG, Level: ULONG, Format: PCSTR, ...) -> ULONG;
    #[must_use]
    pub fn EtwActivityIdControl(ControlCode: ULONG, ActivityId: LPGUID) -> NTSTATUS;
    pub fn EtwEventEnabled(RegHandle: REGHANDLE, EventDescriptor: PCEVENT_DESCRIPTOR) -> BOOLEAN;
    pub fn EtwProviderEnabled(RegHandle: REGHANDLE, Level: UCHAR, Keyword: ULONGLONG) -> BOOLEAN;
    #[must_use]
    pub fn EtwRegister(
        ProviderId: LPCGUID,
        EnableCallback: PETWENABLECALLBACK,
        CallbackContext: PVOID,
        RegHandle: PREGHANDLE,
    ) -> NTSTATUS;
    #[must_use]
    pub fn EtwSetInformation(
        RegHandle: REGHANDLE,
        InformationClass: EVENT_INFO_CLASS,
        EventInformation: PVOID,
        InformationLength: ULONG,
    ) -> NTSTATUS;
    #[must_use]
    pub fn EtwUnregister(RegHandle: REGHANDLE) -> NTSTATUS;
    #[must_use]
    pub fn EtwWrite(
        RegHandle: REGHANDLE,
        EventDescriptor: PCEVENT_DESCRIPTOR,
        ActivityId: LPCGUID,
        UserDataCount: ULONG,
        UserData: PEVENT_DATA_DESCRIPTOR,
    ) -> NTSTATUS;
    #[must_use]
    pub fn EtwWriteEx(
        RegHandle: REGHANDLE,
        EventDescriptor: PCEVENT_DESCRIPTOR,
        Filter: ULONG64,
        Flags: ULONG,
        ActivityId: LPCGUID,
        RelatedActivityId: LPCGUID,
        UserDataCount: ULONG,
        UserData: PEVENT_DATA_DESCRIPTOR,
    ) -> NTSTATUS;
    #[must_use]
    pub fn EtwWriteString(
        RegHandle: REGHANDLE,
        Level: UCHAR,
        Keyword: ULONGLONG,
        ActivityId: LPCGUID,
        String: PCWSTR,
    ) -> NTSTATUS;
    #[must_use]
    pub fn EtwWriteTransfer(
        RegHandle: REGHANDLE,
        EventDescriptor: PCEVENT_DESCRIPTOR,
        ActivityId: LPCGUID,
        RelatedActivityId: LPCGUID,
        UserDataCount: ULONG,
        UserData: PEVENT_DATA_DESCRIPTOR,
    ) -> NTSTATUS;
    pub fn ExAllocatePool2(Flags: POOL_FLAGS, NumberOfBytes: SIZE_T, Tag: ULONG) -> PVOID;
    pub fn ExFreePool(P: PVOID);
    pub fn ExFreePoolWithTag(P: PVOID, Tag: ULONG);
    pub fn IoGetCurrentProcess() -> PEPROCESS;
    pub fn KeBugCheckEx(
        BugCheckCode: ULONG,
        BugCheckParameter1: ULONG_PTR,
        BugCheckParameter2: ULONG_PTR,
        BugCheckParameter3: ULONG_PTR,
        BugCheckParameter4: ULONG_PTR,
    ) -> !;
    #[must_use]
    pub fn KeDelayExecutionThread(
        WaitMode: KPROCESSOR_MODE,
        Alertable: BOOLEAN,
        Interval: PLARGE_INTEGER,
    ) -> NTSTATUS;
    pub fn KeQueryPerformanceCounter(PerformanceFrequency: PLARGE_INTEGER) -> LARGE_INTEGER;
    pub fn KeQuerySystemTimePrecise(CurrentTime: PLARGE_INTEGER);
    pub fn MmGetSystemRoutineAddress(SystemRoutineName: PUNICODE_STRING) -> PVOID;
    pub fn PsGetCurrentProcessId() -> HANDLE;
    pub fn PsGetCurrentThreadId() -> HANDLE;
    pub fn RtlAssert(
        VoidFailedAssertion: PVOID,
        VoidFileName: PVOID,
        LineNumber: ULONG,
        MutableMessage: PSTR,
    );
    pub fn RtlCopyUnicodeString(DestinationString: PUNICODE_STRING, SourceString: PCUNICODE_STRING);
    pub fn RtlInitUnicodeString(DestinationString: PUNICODE_STRING, SourceString: PCWSTR);
    /// The headers define this function inline, so Microsoft's bindings do not contain it; the
    /// kernel also exports it.
    pub fn KeGetCurrentIrql() -> KIRQL;
}
