//! Types of the WDK for x64, with the layout of the WDK's headers and the names of Microsoft's
//! bindings.
//!
//! The file contains the types that a KMDF driver without hardware uses; types that such a driver
//! only passes along are opaque. `wdk-macros` reads this file to find the framework's signatures in
//! the function pointer types.

#![allow(
    missing_docs,
    clippy::unreadable_literal,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::pub_underscore_fields,
    clippy::struct_field_names,
    reason = "names are those of the WDK's headers, and so is their documentation"
)]

/// Implements `Default` as all bits zero, which is a valid value of each of these types.
macro_rules! zeroed_default {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: the type consists of integers, raw pointers, optional function
                // pointers and arrays of them, for which zero is a valid value.
                unsafe { ::core::mem::zeroed() }
            }
        }
    )*};
}

pub mod _DEVICE_RELATION_TYPE {
    pub type Type = ::core::ffi::c_int;
    pub const BusRelations: Type = 0;
    pub const EjectionRelations: Type = 1;
    pub const PowerRelations: Type = 2;
    pub const RemovalRelations: Type = 3;
    pub const TargetDeviceRelation: Type = 4;
    pub const SingleBusRelations: Type = 5;
    pub const TransportRelations: Type = 6;
}

pub use self::_DEVICE_RELATION_TYPE::Type as DEVICE_RELATION_TYPE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _DRIVER_EXTENSION {
    pub DriverObject: *mut _DRIVER_OBJECT,
    pub AddDevice: PDRIVER_ADD_DEVICE,
    pub Count: ULONG,
    pub ServiceKeyName: UNICODE_STRING,
}

pub type DRIVER_EXTENSION = _DRIVER_EXTENSION;

pub type PDRIVER_EXTENSION = *mut _DRIVER_EXTENSION;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _DRIVER_OBJECT {
    pub Type: CSHORT,
    pub Size: CSHORT,
    pub DeviceObject: PDEVICE_OBJECT,
    pub Flags: ULONG,
    pub DriverStart: PVOID,
    pub DriverSize: ULONG,
    pub DriverSection: PVOID,
    pub DriverExtension: PDRIVER_EXTENSION,
    pub DriverName: UNICODE_STRING,
    pub HardwareDatabase: PUNICODE_STRING,
    pub FastIoDispatch: PFAST_IO_DISPATCH,
    pub DriverInit: PDRIVER_INITIALIZE,
    pub DriverStartIo: PDRIVER_STARTIO,
    pub DriverUnload: PDRIVER_UNLOAD,
    pub MajorFunction: [PDRIVER_DISPATCH; 28],
}

pub type DRIVER_OBJECT = _DRIVER_OBJECT;

pub type PDRIVER_OBJECT = *mut _DRIVER_OBJECT;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct _EVENT_DATA_DESCRIPTOR {
    pub Ptr: ULONGLONG,
    pub Size: ULONG,
    pub __bindgen_anon_1: _EVENT_DATA_DESCRIPTOR__bindgen_ty_1,
}

pub type EVENT_DATA_DESCRIPTOR = _EVENT_DATA_DESCRIPTOR;

pub type PEVENT_DATA_DESCRIPTOR = *mut _EVENT_DATA_DESCRIPTOR;

#[repr(C)]
#[derive(Clone, Copy)]
pub union _EVENT_DATA_DESCRIPTOR__bindgen_ty_1 {
    pub Reserved: ULONG,
    pub __bindgen_anon_1: _EVENT_DATA_DESCRIPTOR__bindgen_ty_1__bindgen_ty_1,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _EVENT_DATA_DESCRIPTOR__bindgen_ty_1__bindgen_ty_1 {
    pub Type: UCHAR,
    pub Reserved1: UCHAR,
    pub Reserved2: USHORT,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _EVENT_DESCRIPTOR {
    pub Id: USHORT,
    pub Version: UCHAR,
    pub Channel: UCHAR,
    pub Level: UCHAR,
    pub Opcode: UCHAR,
    pub Task: USHORT,
    pub Keyword: ULONGLONG,
}

pub type EVENT_DESCRIPTOR = _EVENT_DESCRIPTOR;

pub type PCEVENT_DESCRIPTOR = *const EVENT_DESCRIPTOR;

pub type PEVENT_DESCRIPTOR = *mut _EVENT_DESCRIPTOR;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _EVENT_FILTER_DESCRIPTOR {
    pub Ptr: ULONGLONG,
    pub Size: ULONG,
    pub Type: ULONG,
}

pub type EVENT_FILTER_DESCRIPTOR = _EVENT_FILTER_DESCRIPTOR;

pub type PEVENT_FILTER_DESCRIPTOR = *mut _EVENT_FILTER_DESCRIPTOR;

pub mod _EVENT_INFO_CLASS {
    pub type Type = ::core::ffi::c_int;
    pub const EventProviderBinaryTrackInfo: Type = 0;
    pub const EventProviderSetReserved1: Type = 1;
    pub const EventProviderSetTraits: Type = 2;
    pub const EventProviderUseDescriptorType: Type = 3;
    pub const MaxEventInfo: Type = 4;
}

pub use self::_EVENT_INFO_CLASS::Type as EVENT_INFO_CLASS;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _GUID {
    pub Data1: u32,
    pub Data2: ::core::ffi::c_ushort,
    pub Data3: ::core::ffi::c_ushort,
    pub Data4: [::core::ffi::c_uchar; 8],
}

pub type GUID = _GUID;

pub type LPCGUID = *const GUID;

pub type LPGUID = *mut GUID;

pub type PCRM_PROTOCOL_ID = *mut GUID;

pub type PDEVPROPGUID = *mut GUID;

pub type PGUID = *mut GUID;

pub type PKCRM_PROTOCOL_ID = *mut GUID;

pub type PUOW = *mut GUID;

#[repr(C)]
#[derive(Clone, Copy)]
pub union _LARGE_INTEGER {
    pub QuadPart: LONGLONG,
    pub __bindgen_anon_1: _LARGE_INTEGER__bindgen_ty_1,
    pub u: _LARGE_INTEGER__bindgen_ty_2,
}

pub type LARGE_INTEGER = _LARGE_INTEGER;

pub type PLARGE_INTEGER = *mut LARGE_INTEGER;

pub type PPHYSICAL_ADDRESS = *mut LARGE_INTEGER;

pub type PSECURITY_INTEGER = *mut LARGE_INTEGER;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _LARGE_INTEGER__bindgen_ty_1 {
    pub LowPart: ULONG,
    pub HighPart: LONG,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _LARGE_INTEGER__bindgen_ty_2 {
    pub LowPart: ULONG,
    pub HighPart: LONG,
}

pub mod _POOL_TYPE {
    pub type Type = ::core::ffi::c_int;
    pub const NonPagedPool: Type = 0;
    pub const NonPagedPoolBase: Type = 0;
    pub const NonPagedPoolExecute: Type = 0;
    pub const PagedPool: Type = 1;
    pub const NonPagedPoolBaseMustSucceed: Type = 2;
    pub const NonPagedPoolMustSucceed: Type = 2;
    pub const DontUseThisType: Type = 3;
    pub const NonPagedPoolBaseCacheAligned: Type = 4;
    pub const NonPagedPoolCacheAligned: Type = 4;
    pub const PagedPoolCacheAligned: Type = 5;
    pub const NonPagedPoolBaseCacheAlignedMustS: Type = 6;
    pub const NonPagedPoolCacheAlignedMustS: Type = 6;
    pub const MaxPoolType: Type = 7;
    pub const NonPagedPoolSession: Type = 32;
    pub const PagedPoolSession: Type = 33;
    pub const NonPagedPoolMustSucceedSession: Type = 34;
    pub const DontUseThisTypeSession: Type = 35;
    pub const NonPagedPoolCacheAlignedSession: Type = 36;
    pub const PagedPoolCacheAlignedSession: Type = 37;
    pub const NonPagedPoolCacheAlignedMustSSession: Type = 38;
    pub const NonPagedPoolNx: Type = 512;
    pub const NonPagedPoolNxCacheAligned: Type = 516;
    pub const NonPagedPoolSessionNx: Type = 544;
}

pub use self::_POOL_TYPE::Type as POOL_TYPE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _UNICODE_STRING {
    pub Length: USHORT,
    pub MaximumLength: USHORT,
    pub Buffer: PWCH,
}

pub type PCUNICODE_STRING = *const UNICODE_STRING;

pub type PLSA_UNICODE_STRING = *mut UNICODE_STRING;

pub type PSECURITY_STRING = *mut UNICODE_STRING;

pub type PUNICODE_STRING = *mut UNICODE_STRING;

pub type UNICODE_STRING = _UNICODE_STRING;

pub mod _WDF_DEVICE_FAILED_ACTION {
    pub type Type = ::core::ffi::c_int;
    pub const WdfDeviceFailedUndefined: Type = 0;
    pub const WdfDeviceFailedAttemptRestart: Type = 1;
    pub const WdfDeviceFailedNoRestart: Type = 2;
}

pub use self::_WDF_DEVICE_FAILED_ACTION::Type as WDF_DEVICE_FAILED_ACTION;

pub mod _WDF_DEVICE_IO_TYPE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfDeviceIoUndefined: Type = 0;
    pub const WdfDeviceIoNeither: Type = 1;
    pub const WdfDeviceIoBuffered: Type = 2;
    pub const WdfDeviceIoDirect: Type = 3;
    pub const WdfDeviceIoBufferedOrDirect: Type = 4;
    pub const WdfDeviceIoMaximum: Type = 5;
}

pub use self::_WDF_DEVICE_IO_TYPE::Type as WDF_DEVICE_IO_TYPE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_DPC_CONFIG {
    pub Size: ULONG,
    pub EvtDpcFunc: PFN_WDF_DPC,
    pub AutomaticSerialization: BOOLEAN,
}

pub type PWDF_DPC_CONFIG = *mut _WDF_DPC_CONFIG;

pub type WDF_DPC_CONFIG = _WDF_DPC_CONFIG;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_DRIVER_CONFIG {
    pub Size: ULONG,
    pub EvtDriverDeviceAdd: PFN_WDF_DRIVER_DEVICE_ADD,
    pub EvtDriverUnload: PFN_WDF_DRIVER_UNLOAD,
    pub DriverInitFlags: ULONG,
    pub DriverPoolTag: ULONG,
}

pub type PWDF_DRIVER_CONFIG = *mut _WDF_DRIVER_CONFIG;

pub type WDF_DRIVER_CONFIG = _WDF_DRIVER_CONFIG;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_DRIVER_GLOBALS {
    pub Driver: WDFDRIVER,
    pub DriverFlags: ULONG,
    pub DriverTag: ULONG,
    pub DriverName: [CHAR; 32],
    pub DisplaceDriverUnload: BOOLEAN,
}

pub type PWDF_DRIVER_GLOBALS = *mut _WDF_DRIVER_GLOBALS;

pub type WDF_DRIVER_GLOBALS = _WDF_DRIVER_GLOBALS;

pub mod _WDF_DRIVER_INIT_FLAGS {
    pub type Type = ::core::ffi::c_int;
    pub const WdfDriverInitNonPnpDriver: Type = 1;
    pub const WdfDriverInitNoDispatchOverride: Type = 2;
    pub const WdfVerifyOn: Type = 4;
    pub const WdfVerifierOn: Type = 8;
    pub const WdfDriverInitCompanion: Type = 16;
}

pub use self::_WDF_DRIVER_INIT_FLAGS::Type as WDF_DRIVER_INIT_FLAGS;

pub mod _WDF_EXECUTION_LEVEL {
    pub type Type = ::core::ffi::c_int;
    pub const WdfExecutionLevelInvalid: Type = 0;
    pub const WdfExecutionLevelInheritFromParent: Type = 1;
    pub const WdfExecutionLevelPassive: Type = 2;
    pub const WdfExecutionLevelDispatch: Type = 3;
}

pub use self::_WDF_EXECUTION_LEVEL::Type as WDF_EXECUTION_LEVEL;

pub mod _WDF_FILEOBJECT_CLASS {
    pub type Type = ::core::ffi::c_int;
    pub const WdfFileObjectCanBeOptional: Type = -2147483648;
    pub const WdfFileObjectInvalid: Type = 0;
    pub const WdfFileObjectNotRequired: Type = 1;
    pub const WdfFileObjectWdfCanUseFsContext: Type = 2;
    pub const WdfFileObjectWdfCanUseFsContext2: Type = 3;
    pub const WdfFileObjectWdfCannotUseFsContexts: Type = 4;
}

pub use self::_WDF_FILEOBJECT_CLASS::Type as WDF_FILEOBJECT_CLASS;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_FILEOBJECT_CONFIG {
    pub Size: ULONG,
    pub EvtDeviceFileCreate: PFN_WDF_DEVICE_FILE_CREATE,
    pub EvtFileClose: PFN_WDF_FILE_CLOSE,
    pub EvtFileCleanup: PFN_WDF_FILE_CLEANUP,
    pub AutoForwardCleanupClose: WDF_TRI_STATE,
    pub FileObjectClass: WDF_FILEOBJECT_CLASS,
}

pub type PWDF_FILEOBJECT_CONFIG = *mut _WDF_FILEOBJECT_CONFIG;

pub type WDF_FILEOBJECT_CONFIG = _WDF_FILEOBJECT_CONFIG;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct _WDF_IO_QUEUE_CONFIG {
    pub Size: ULONG,
    pub DispatchType: WDF_IO_QUEUE_DISPATCH_TYPE,
    pub PowerManaged: WDF_TRI_STATE,
    pub AllowZeroLengthRequests: BOOLEAN,
    pub DefaultQueue: BOOLEAN,
    pub EvtIoDefault: PFN_WDF_IO_QUEUE_IO_DEFAULT,
    pub EvtIoRead: PFN_WDF_IO_QUEUE_IO_READ,
    pub EvtIoWrite: PFN_WDF_IO_QUEUE_IO_WRITE,
    pub EvtIoDeviceControl: PFN_WDF_IO_QUEUE_IO_DEVICE_CONTROL,
    pub EvtIoInternalDeviceControl: PFN_WDF_IO_QUEUE_IO_INTERNAL_DEVICE_CONTROL,
    pub EvtIoStop: PFN_WDF_IO_QUEUE_IO_STOP,
    pub EvtIoResume: PFN_WDF_IO_QUEUE_IO_RESUME,
    pub EvtIoCanceledOnQueue: PFN_WDF_IO_QUEUE_IO_CANCELED_ON_QUEUE,
    pub Settings: _WDF_IO_QUEUE_CONFIG__bindgen_ty_1,
    pub Driver: WDFDRIVER,
}

pub type PWDF_IO_QUEUE_CONFIG = *mut _WDF_IO_QUEUE_CONFIG;

pub type WDF_IO_QUEUE_CONFIG = _WDF_IO_QUEUE_CONFIG;

#[repr(C)]
#[derive(Clone, Copy)]
pub union _WDF_IO_QUEUE_CONFIG__bindgen_ty_1 {
    pub Parallel: _WDF_IO_QUEUE_CONFIG__bindgen_ty_1__bindgen_ty_1,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_IO_QUEUE_CONFIG__bindgen_ty_1__bindgen_ty_1 {
    pub NumberOfPresentedRequests: ULONG,
}

pub mod _WDF_IO_QUEUE_DISPATCH_TYPE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfIoQueueDispatchInvalid: Type = 0;
    pub const WdfIoQueueDispatchSequential: Type = 1;
    pub const WdfIoQueueDispatchParallel: Type = 2;
    pub const WdfIoQueueDispatchManual: Type = 3;
    pub const WdfIoQueueDispatchMax: Type = 4;
}

pub use self::_WDF_IO_QUEUE_DISPATCH_TYPE::Type as WDF_IO_QUEUE_DISPATCH_TYPE;

pub mod _WDF_IO_QUEUE_STATE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfIoQueueAcceptRequests: Type = 1;
    pub const WdfIoQueueDispatchRequests: Type = 2;
    pub const WdfIoQueueNoRequests: Type = 4;
    pub const WdfIoQueueDriverNoRequests: Type = 8;
    pub const WdfIoQueuePnpHeld: Type = 16;
}

pub use self::_WDF_IO_QUEUE_STATE::Type as WDF_IO_QUEUE_STATE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_OBJECT_ATTRIBUTES {
    pub Size: ULONG,
    pub EvtCleanupCallback: PFN_WDF_OBJECT_CONTEXT_CLEANUP,
    pub EvtDestroyCallback: PFN_WDF_OBJECT_CONTEXT_DESTROY,
    pub ExecutionLevel: WDF_EXECUTION_LEVEL,
    pub SynchronizationScope: WDF_SYNCHRONIZATION_SCOPE,
    pub ParentObject: WDFOBJECT,
    pub ContextSizeOverride: usize,
    pub ContextTypeInfo: PCWDF_OBJECT_CONTEXT_TYPE_INFO,
}

pub type PWDF_OBJECT_ATTRIBUTES = *mut _WDF_OBJECT_ATTRIBUTES;

pub type WDF_OBJECT_ATTRIBUTES = _WDF_OBJECT_ATTRIBUTES;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_OBJECT_CONTEXT_TYPE_INFO {
    pub Size: ULONG,
    pub ContextName: LPCSTR,
    pub ContextSize: usize,
    pub UniqueType: PCWDF_OBJECT_CONTEXT_TYPE_INFO,
    pub EvtDriverGetUniqueContextType: PFN_GET_UNIQUE_CONTEXT_TYPE,
}

pub type PCWDF_OBJECT_CONTEXT_TYPE_INFO = *const _WDF_OBJECT_CONTEXT_TYPE_INFO;

pub type PWDF_OBJECT_CONTEXT_TYPE_INFO = *mut _WDF_OBJECT_CONTEXT_TYPE_INFO;

pub type WDF_OBJECT_CONTEXT_TYPE_INFO = _WDF_OBJECT_CONTEXT_TYPE_INFO;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_PNPPOWER_EVENT_CALLBACKS {
    pub Size: ULONG,
    pub EvtDeviceD0Entry: PFN_WDF_DEVICE_D0_ENTRY,
    pub EvtDeviceD0EntryPostInterruptsEnabled: PFN_WDF_DEVICE_D0_ENTRY_POST_INTERRUPTS_ENABLED,
    pub EvtDeviceD0Exit: PFN_WDF_DEVICE_D0_EXIT,
    pub EvtDeviceD0ExitPreInterruptsDisabled: PFN_WDF_DEVICE_D0_EXIT_PRE_INTERRUPTS_DISABLED,
    pub EvtDevicePrepareHardware: PFN_WDF_DEVICE_PREPARE_HARDWARE,
    pub EvtDeviceReleaseHardware: PFN_WDF_DEVICE_RELEASE_HARDWARE,
    pub EvtDeviceSelfManagedIoCleanup: PFN_WDF_DEVICE_SELF_MANAGED_IO_CLEANUP,
    pub EvtDeviceSelfManagedIoFlush: PFN_WDF_DEVICE_SELF_MANAGED_IO_FLUSH,
    pub EvtDeviceSelfManagedIoInit: PFN_WDF_DEVICE_SELF_MANAGED_IO_INIT,
    pub EvtDeviceSelfManagedIoSuspend: PFN_WDF_DEVICE_SELF_MANAGED_IO_SUSPEND,
    pub EvtDeviceSelfManagedIoRestart: PFN_WDF_DEVICE_SELF_MANAGED_IO_RESTART,
    pub EvtDeviceSurpriseRemoval: PFN_WDF_DEVICE_SURPRISE_REMOVAL,
    pub EvtDeviceQueryRemove: PFN_WDF_DEVICE_QUERY_REMOVE,
    pub EvtDeviceQueryStop: PFN_WDF_DEVICE_QUERY_STOP,
    pub EvtDeviceUsageNotification: PFN_WDF_DEVICE_USAGE_NOTIFICATION,
    pub EvtDeviceRelationsQuery: PFN_WDF_DEVICE_RELATIONS_QUERY,
    pub EvtDeviceUsageNotificationEx: PFN_WDF_DEVICE_USAGE_NOTIFICATION_EX,
}

pub type PWDF_PNPPOWER_EVENT_CALLBACKS = *mut _WDF_PNPPOWER_EVENT_CALLBACKS;

pub type WDF_PNPPOWER_EVENT_CALLBACKS = _WDF_PNPPOWER_EVENT_CALLBACKS;

pub mod _WDF_POWER_DEVICE_STATE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfPowerDeviceInvalid: Type = 0;
    pub const WdfPowerDeviceD0: Type = 1;
    pub const WdfPowerDeviceD1: Type = 2;
    pub const WdfPowerDeviceD2: Type = 3;
    pub const WdfPowerDeviceD3: Type = 4;
    pub const WdfPowerDeviceD3Final: Type = 5;
    pub const WdfPowerDevicePrepareForHibernation: Type = 6;
    pub const WdfPowerDeviceMaximum: Type = 7;
}

pub use self::_WDF_POWER_DEVICE_STATE::Type as WDF_POWER_DEVICE_STATE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_POWER_POLICY_EVENT_CALLBACKS {
    pub Size: ULONG,
    pub EvtDeviceArmWakeFromS0: PFN_WDF_DEVICE_ARM_WAKE_FROM_S0,
    pub EvtDeviceDisarmWakeFromS0: PFN_WDF_DEVICE_DISARM_WAKE_FROM_S0,
    pub EvtDeviceWakeFromS0Triggered: PFN_WDF_DEVICE_WAKE_FROM_S0_TRIGGERED,
    pub EvtDeviceArmWakeFromSx: PFN_WDF_DEVICE_ARM_WAKE_FROM_SX,
    pub EvtDeviceDisarmWakeFromSx: PFN_WDF_DEVICE_DISARM_WAKE_FROM_SX,
    pub EvtDeviceWakeFromSxTriggered: PFN_WDF_DEVICE_WAKE_FROM_SX_TRIGGERED,
    pub EvtDeviceArmWakeFromSxWithReason: PFN_WDF_DEVICE_ARM_WAKE_FROM_SX_WITH_REASON,
}

pub type PWDF_POWER_POLICY_EVENT_CALLBACKS = *mut _WDF_POWER_POLICY_EVENT_CALLBACKS;

pub type WDF_POWER_POLICY_EVENT_CALLBACKS = _WDF_POWER_POLICY_EVENT_CALLBACKS;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct _WDF_REQUEST_PARAMETERS {
    pub Size: USHORT,
    pub MinorFunction: UCHAR,
    pub Type: WDF_REQUEST_TYPE,
    pub Parameters: _WDF_REQUEST_PARAMETERS__bindgen_ty_1,
}

pub type PWDF_REQUEST_PARAMETERS = *mut _WDF_REQUEST_PARAMETERS;

pub type WDF_REQUEST_PARAMETERS = _WDF_REQUEST_PARAMETERS;

#[repr(C)]
#[derive(Clone, Copy)]
pub union _WDF_REQUEST_PARAMETERS__bindgen_ty_1 {
    pub Create: _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_1,
    pub DeviceIoControl: _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_4,
    pub Others: _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_5,
    pub Read: _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_2,
    pub Write: _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_3,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_1 {
    pub SecurityContext: PIO_SECURITY_CONTEXT,
    pub Options: ULONG,
    pub __bindgen_padding_0: [u8; 4],
    pub FileAttributes: USHORT,
    pub ShareAccess: USHORT,
    pub __bindgen_padding_1: [u8; 4],
    pub EaLength: ULONG,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_2 {
    pub Length: usize,
    pub Key: ULONG,
    pub DeviceOffset: LONGLONG,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_3 {
    pub Length: usize,
    pub Key: ULONG,
    pub DeviceOffset: LONGLONG,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_4 {
    pub OutputBufferLength: usize,
    pub InputBufferLength: usize,
    pub IoControlCode: ULONG,
    pub Type3InputBuffer: PVOID,
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_5 {
    pub Arg1: PVOID,
    pub Arg2: PVOID,
    pub IoControlCode: ULONG,
    pub Arg4: PVOID,
}

pub mod _WDF_REQUEST_STOP_ACTION_FLAGS {
    pub type Type = ::core::ffi::c_int;
    pub const WdfRequestStopActionInvalid: Type = 0;
    pub const WdfRequestStopActionSuspend: Type = 1;
    pub const WdfRequestStopActionPurge: Type = 2;
    pub const WdfRequestStopRequestCancelable: Type = 268435456;
}

pub use self::_WDF_REQUEST_STOP_ACTION_FLAGS::Type as WDF_REQUEST_STOP_ACTION_FLAGS;

pub mod _WDF_REQUEST_TYPE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfRequestTypeCreate: Type = 0;
    pub const WdfRequestTypeCreateNamedPipe: Type = 1;
    pub const WdfRequestTypeClose: Type = 2;
    pub const WdfRequestTypeRead: Type = 3;
    pub const WdfRequestTypeWrite: Type = 4;
    pub const WdfRequestTypeQueryInformation: Type = 5;
    pub const WdfRequestTypeSetInformation: Type = 6;
    pub const WdfRequestTypeQueryEA: Type = 7;
    pub const WdfRequestTypeSetEA: Type = 8;
    pub const WdfRequestTypeFlushBuffers: Type = 9;
    pub const WdfRequestTypeQueryVolumeInformation: Type = 10;
    pub const WdfRequestTypeSetVolumeInformation: Type = 11;
    pub const WdfRequestTypeDirectoryControl: Type = 12;
    pub const WdfRequestTypeFileSystemControl: Type = 13;
    pub const WdfRequestTypeDeviceControl: Type = 14;
    pub const WdfRequestTypeDeviceControlInternal: Type = 15;
    pub const WdfRequestTypeShutdown: Type = 16;
    pub const WdfRequestTypeLockControl: Type = 17;
    pub const WdfRequestTypeCleanup: Type = 18;
    pub const WdfRequestTypeCreateMailSlot: Type = 19;
    pub const WdfRequestTypeQuerySecurity: Type = 20;
    pub const WdfRequestTypeSetSecurity: Type = 21;
    pub const WdfRequestTypePower: Type = 22;
    pub const WdfRequestTypeSystemControl: Type = 23;
    pub const WdfRequestTypeDeviceChange: Type = 24;
    pub const WdfRequestTypeQueryQuota: Type = 25;
    pub const WdfRequestTypeSetQuota: Type = 26;
    pub const WdfRequestTypePnp: Type = 27;
    pub const WdfRequestTypeOther: Type = 28;
    pub const WdfRequestTypeUsb: Type = 64;
    pub const WdfRequestTypeNoFormat: Type = 255;
    pub const WdfRequestTypeMax: Type = 256;
}

pub use self::_WDF_REQUEST_TYPE::Type as WDF_REQUEST_TYPE;

pub mod _WDF_SPECIAL_FILE_TYPE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfSpecialFileUndefined: Type = 0;
    pub const WdfSpecialFilePaging: Type = 1;
    pub const WdfSpecialFileHibernation: Type = 2;
    pub const WdfSpecialFileDump: Type = 3;
    pub const WdfSpecialFileBoot: Type = 4;
    pub const WdfSpecialFilePostDisplay: Type = 5;
    pub const WdfSpecialFileGuestAssigned: Type = 6;
    pub const WdfSpecialFileMax: Type = 7;
}

pub use self::_WDF_SPECIAL_FILE_TYPE::Type as WDF_SPECIAL_FILE_TYPE;

pub mod _WDF_SYNCHRONIZATION_SCOPE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfSynchronizationScopeInvalid: Type = 0;
    pub const WdfSynchronizationScopeInheritFromParent: Type = 1;
    pub const WdfSynchronizationScopeDevice: Type = 2;
    pub const WdfSynchronizationScopeQueue: Type = 3;
    pub const WdfSynchronizationScopeNone: Type = 4;
}

pub use self::_WDF_SYNCHRONIZATION_SCOPE::Type as WDF_SYNCHRONIZATION_SCOPE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_TIMER_CONFIG {
    pub Size: ULONG,
    pub EvtTimerFunc: PFN_WDF_TIMER,
    pub Period: ULONG,
    pub AutomaticSerialization: BOOLEAN,
    pub TolerableDelay: ULONG,
    pub __bindgen_padding_0: [u8; 4],
    pub UseHighResolutionTimer: BOOLEAN,
}

pub type PWDF_TIMER_CONFIG = *mut _WDF_TIMER_CONFIG;

pub type WDF_TIMER_CONFIG = _WDF_TIMER_CONFIG;

pub mod _WDF_TRI_STATE {
    pub type Type = ::core::ffi::c_int;
    pub const WdfFalse: Type = 0;
    pub const WdfTrue: Type = 1;
    pub const WdfUseDefault: Type = 2;
}

pub use self::_WDF_TRI_STATE::Type as WDF_TRI_STATE;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _WDF_WORKITEM_CONFIG {
    pub Size: ULONG,
    pub EvtWorkItemFunc: PFN_WDF_WORKITEM,
    pub AutomaticSerialization: BOOLEAN,
}

pub type PWDF_WORKITEM_CONFIG = *mut _WDF_WORKITEM_CONFIG;

pub type WDF_WORKITEM_CONFIG = _WDF_WORKITEM_CONFIG;

pub type ACCESS_MASK = ULONG;

pub type BOOLEAN = UCHAR;

pub type CCHAR = ::core::ffi::c_char;

pub type CHAR = ::core::ffi::c_char;

pub type CSHORT = ::core::ffi::c_short;

pub type DRIVER_DISPATCH = ::core::option::Option<
    unsafe extern "C" fn(DeviceObject: *mut _DEVICE_OBJECT, Irp: *mut _IRP) -> NTSTATUS,
>;

pub type DRIVER_INITIALIZE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverObject: *mut _DRIVER_OBJECT,
        RegistryPath: PUNICODE_STRING,
    ) -> NTSTATUS,
>;

pub type DRIVER_UNLOAD =
    ::core::option::Option<unsafe extern "C" fn(DriverObject: *mut _DRIVER_OBJECT)>;

pub type HANDLE = *mut ::core::ffi::c_void;

pub type KIRQL = UCHAR;

pub type KPROCESSOR_MODE = CCHAR;

pub type KSPIN_LOCK = ULONG_PTR;

pub type LONG = i32;

pub type LONG64 = ::core::ffi::c_longlong;

pub type LONGLONG = ::core::ffi::c_longlong;

pub type LONG_PTR = ::core::ffi::c_longlong;

pub type LPCSTR = *const CHAR;

pub type NTSTATUS = LONG;

pub type PCCH = *const CHAR;

pub type PCSTR = *const CHAR;

pub type PCWSTR = *const WCHAR;

pub type PDEVICE_OBJECT = *mut _DEVICE_OBJECT;

pub type PDRIVER_ADD_DEVICE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverObject: *mut _DRIVER_OBJECT,
        PhysicalDeviceObject: *mut _DEVICE_OBJECT,
    ) -> NTSTATUS,
>;

pub type PDRIVER_DISPATCH = DRIVER_DISPATCH;

pub type PDRIVER_INITIALIZE = DRIVER_INITIALIZE;

pub type PDRIVER_STARTIO =
    ::core::option::Option<unsafe extern "C" fn(DeviceObject: *mut _DEVICE_OBJECT, Irp: *mut _IRP)>;

pub type PDRIVER_UNLOAD = DRIVER_UNLOAD;

pub type PEPROCESS = *mut _EPROCESS;

pub type PETWENABLECALLBACK = ::core::option::Option<
    unsafe extern "C" fn(
        arg1: LPCGUID,
        arg2: ULONG,
        arg3: UCHAR,
        arg4: ULONGLONG,
        arg5: ULONGLONG,
        arg6: PEVENT_FILTER_DESCRIPTOR,
        arg7: PVOID,
    ),
>;

pub type PFAST_IO_DISPATCH = *mut _FAST_IO_DISPATCH;

pub type PFN_GET_UNIQUE_CONTEXT_TYPE =
    ::core::option::Option<unsafe extern "C" fn() -> PCWDF_OBJECT_CONTEXT_TYPE_INFO>;

pub type PFN_WDFCOLLECTIONADD = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Collection: WDFCOLLECTION,
        Object: WDFOBJECT,
    ) -> NTSTATUS,
>;

pub type PFN_WDFCOLLECTIONCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        CollectionAttributes: PWDF_OBJECT_ATTRIBUTES,
        Collection: *mut WDFCOLLECTION,
    ) -> NTSTATUS,
>;

pub type PFN_WDFCOLLECTIONGETCOUNT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Collection: WDFCOLLECTION) -> ULONG,
>;

pub type PFN_WDFCOLLECTIONGETFIRSTITEM = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Collection: WDFCOLLECTION,
    ) -> WDFOBJECT,
>;

pub type PFN_WDFCOLLECTIONGETITEM = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Collection: WDFCOLLECTION,
        Index: ULONG,
    ) -> WDFOBJECT,
>;

pub type PFN_WDFCOLLECTIONREMOVE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Collection: WDFCOLLECTION,
        Item: WDFOBJECT,
    ),
>;

pub type PFN_WDFCOLLECTIONREMOVEITEM = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Collection: WDFCOLLECTION,
        Index: ULONG,
    ),
>;

pub type PFN_WDFCONTROLDEVICEINITALLOCATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Driver: WDFDRIVER,
        SDDLString: *const UNICODE_STRING,
    ) -> PWDFDEVICE_INIT,
>;

pub type PFN_WDFCONTROLFINISHINITIALIZING = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Device: WDFDEVICE),
>;

pub type PFN_WDFDEVICECONFIGUREREQUESTDISPATCHING = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Device: WDFDEVICE,
        Queue: WDFQUEUE,
        RequestType: WDF_REQUEST_TYPE,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDEVICECREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: *mut PWDFDEVICE_INIT,
        DeviceAttributes: PWDF_OBJECT_ATTRIBUTES,
        Device: *mut WDFDEVICE,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDEVICECREATEDEVICEINTERFACE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Device: WDFDEVICE,
        InterfaceClassGUID: *const GUID,
        ReferenceString: PCUNICODE_STRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDEVICECREATESYMBOLICLINK = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Device: WDFDEVICE,
        SymbolicLinkName: PCUNICODE_STRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDEVICEGETDEFAULTQUEUE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Device: WDFDEVICE) -> WDFQUEUE,
>;

pub type PFN_WDFDEVICEGETDRIVER = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Device: WDFDEVICE) -> WDFDRIVER,
>;

pub type PFN_WDFDEVICEGETIOTARGET = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Device: WDFDEVICE) -> WDFIOTARGET,
>;

pub type PFN_WDFDEVICEINITASSIGNNAME = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        DeviceName: PCUNICODE_STRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDEVICEINITASSIGNSDDLSTRING = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        SDDLString: PCUNICODE_STRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDEVICEINITFREE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, DeviceInit: PWDFDEVICE_INIT),
>;

pub type PFN_WDFDEVICEINITSETCHARACTERISTICS = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        DeviceCharacteristics: ULONG,
        OrInValues: BOOLEAN,
    ),
>;

pub type PFN_WDFDEVICEINITSETDEVICETYPE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        DeviceType: ULONG,
    ),
>;

pub type PFN_WDFDEVICEINITSETEXCLUSIVE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        IsExclusive: BOOLEAN,
    ),
>;

pub type PFN_WDFDEVICEINITSETFILEOBJECTCONFIG = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        FileObjectConfig: PWDF_FILEOBJECT_CONFIG,
        FileObjectAttributes: PWDF_OBJECT_ATTRIBUTES,
    ),
>;

pub type PFN_WDFDEVICEINITSETIOTYPE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        IoType: WDF_DEVICE_IO_TYPE,
    ),
>;

pub type PFN_WDFDEVICEINITSETPNPPOWEREVENTCALLBACKS = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        PnpPowerEventCallbacks: PWDF_PNPPOWER_EVENT_CALLBACKS,
    ),
>;

pub type PFN_WDFDEVICEINITSETPOWERPOLICYEVENTCALLBACKS = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        PowerPolicyEventCallbacks: PWDF_POWER_POLICY_EVENT_CALLBACKS,
    ),
>;

pub type PFN_WDFDEVICEINITSETREQUESTATTRIBUTES = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DeviceInit: PWDFDEVICE_INIT,
        RequestAttributes: PWDF_OBJECT_ATTRIBUTES,
    ),
>;

pub type PFN_WDFDEVICESETDEVICEINTERFACESTATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Device: WDFDEVICE,
        InterfaceClassGUID: *const GUID,
        ReferenceString: PCUNICODE_STRING,
        IsInterfaceEnabled: BOOLEAN,
    ),
>;

pub type PFN_WDFDEVICESETFAILED = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Device: WDFDEVICE,
        FailedAction: WDF_DEVICE_FAILED_ACTION,
    ),
>;

pub type PFN_WDFDEVICEWDMGETDEVICEOBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Device: WDFDEVICE) -> PDEVICE_OBJECT,
>;

pub type PFN_WDFDPCCANCEL = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Dpc: WDFDPC, Wait: BOOLEAN) -> BOOLEAN,
>;

pub type PFN_WDFDPCCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Config: PWDF_DPC_CONFIG,
        Attributes: PWDF_OBJECT_ATTRIBUTES,
        Dpc: *mut WDFDPC,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDPCENQUEUE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Dpc: WDFDPC) -> BOOLEAN,
>;

pub type PFN_WDFDPCGETPARENTOBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Dpc: WDFDPC) -> WDFOBJECT,
>;

pub type PFN_WDFDRIVERCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DriverObject: PDRIVER_OBJECT,
        RegistryPath: PCUNICODE_STRING,
        DriverAttributes: PWDF_OBJECT_ATTRIBUTES,
        DriverConfig: PWDF_DRIVER_CONFIG,
        Driver: *mut WDFDRIVER,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDRIVERGETREGISTRYPATH = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Driver: WDFDRIVER) -> PWSTR,
>;

pub type PFN_WDFDRIVEROPENPARAMETERSREGISTRYKEY = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Driver: WDFDRIVER,
        DesiredAccess: ACCESS_MASK,
        KeyAttributes: PWDF_OBJECT_ATTRIBUTES,
        Key: *mut WDFKEY,
    ) -> NTSTATUS,
>;

pub type PFN_WDFDRIVERWDMGETDRIVEROBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Driver: WDFDRIVER) -> PDRIVER_OBJECT,
>;

pub type PFN_WDFFILEOBJECTGETDEVICE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        FileObject: WDFFILEOBJECT,
    ) -> WDFDEVICE,
>;

pub type PFN_WDFFILEOBJECTGETFILENAME = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        FileObject: WDFFILEOBJECT,
    ) -> PUNICODE_STRING,
>;

pub type PFN_WDFIOQUEUECREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Device: WDFDEVICE,
        Config: PWDF_IO_QUEUE_CONFIG,
        QueueAttributes: PWDF_OBJECT_ATTRIBUTES,
        Queue: *mut WDFQUEUE,
    ) -> NTSTATUS,
>;

pub type PFN_WDFIOQUEUEDRAIN = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        DrainComplete: PFN_WDF_IO_QUEUE_STATE,
        Context: WDFCONTEXT,
    ),
>;

pub type PFN_WDFIOQUEUEDRAINSYNCHRONOUSLY = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Queue: WDFQUEUE),
>;

pub type PFN_WDFIOQUEUEFINDREQUEST = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        FoundRequest: WDFREQUEST,
        FileObject: WDFFILEOBJECT,
        Parameters: PWDF_REQUEST_PARAMETERS,
        OutRequest: *mut WDFREQUEST,
    ) -> NTSTATUS,
>;

pub type PFN_WDFIOQUEUEGETDEVICE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Queue: WDFQUEUE) -> WDFDEVICE,
>;

pub type PFN_WDFIOQUEUEGETSTATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        QueueRequests: PULONG,
        DriverRequests: PULONG,
    ) -> WDF_IO_QUEUE_STATE,
>;

pub type PFN_WDFIOQUEUEPURGE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        PurgeComplete: PFN_WDF_IO_QUEUE_STATE,
        Context: WDFCONTEXT,
    ),
>;

pub type PFN_WDFIOQUEUEPURGESYNCHRONOUSLY = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Queue: WDFQUEUE),
>;

pub type PFN_WDFIOQUEUEREADYNOTIFY = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        QueueReady: PFN_WDF_IO_QUEUE_STATE,
        Context: WDFCONTEXT,
    ) -> NTSTATUS,
>;

pub type PFN_WDFIOQUEUERETRIEVEFOUNDREQUEST = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        FoundRequest: WDFREQUEST,
        OutRequest: *mut WDFREQUEST,
    ) -> NTSTATUS,
>;

pub type PFN_WDFIOQUEUERETRIEVENEXTREQUEST = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        OutRequest: *mut WDFREQUEST,
    ) -> NTSTATUS,
>;

pub type PFN_WDFIOQUEUERETRIEVEREQUESTBYFILEOBJECT = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        FileObject: WDFFILEOBJECT,
        OutRequest: *mut WDFREQUEST,
    ) -> NTSTATUS,
>;

pub type PFN_WDFIOQUEUESTART = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Queue: WDFQUEUE),
>;

pub type PFN_WDFIOQUEUESTOP = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        StopComplete: PFN_WDF_IO_QUEUE_STATE,
        Context: WDFCONTEXT,
    ),
>;

pub type PFN_WDFIOQUEUESTOPANDPURGE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Queue: WDFQUEUE,
        StopAndPurgeComplete: PFN_WDF_IO_QUEUE_STATE,
        Context: WDFCONTEXT,
    ),
>;

pub type PFN_WDFIOQUEUESTOPANDPURGESYNCHRONOUSLY = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Queue: WDFQUEUE),
>;

pub type PFN_WDFIOQUEUESTOPSYNCHRONOUSLY = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Queue: WDFQUEUE),
>;

pub type PFN_WDFLOOKASIDELISTCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        LookasideAttributes: PWDF_OBJECT_ATTRIBUTES,
        BufferSize: usize,
        PoolType: POOL_TYPE,
        MemoryAttributes: PWDF_OBJECT_ATTRIBUTES,
        PoolTag: ULONG,
        Lookaside: *mut WDFLOOKASIDE,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYASSIGNBUFFER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Memory: WDFMEMORY,
        Buffer: PVOID,
        BufferSize: usize,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYCOPYFROMBUFFER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        DestinationMemory: WDFMEMORY,
        DestinationOffset: usize,
        Buffer: PVOID,
        NumBytesToCopyFrom: usize,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYCOPYTOBUFFER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        SourceMemory: WDFMEMORY,
        SourceOffset: usize,
        Buffer: PVOID,
        NumBytesToCopyTo: usize,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Attributes: PWDF_OBJECT_ATTRIBUTES,
        PoolType: POOL_TYPE,
        PoolTag: ULONG,
        BufferSize: usize,
        Memory: *mut WDFMEMORY,
        Buffer: *mut PVOID,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYCREATEFROMLOOKASIDE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Lookaside: WDFLOOKASIDE,
        Memory: *mut WDFMEMORY,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYCREATEPREALLOCATED = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Attributes: PWDF_OBJECT_ATTRIBUTES,
        Buffer: PVOID,
        BufferSize: usize,
        Memory: *mut WDFMEMORY,
    ) -> NTSTATUS,
>;

pub type PFN_WDFMEMORYGETBUFFER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Memory: WDFMEMORY,
        BufferSize: *mut usize,
    ) -> PVOID,
>;

pub type PFN_WDFOBJECTALLOCATECONTEXT = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Handle: WDFOBJECT,
        ContextAttributes: PWDF_OBJECT_ATTRIBUTES,
        Context: *mut PVOID,
    ) -> NTSTATUS,
>;

pub type PFN_WDFOBJECTCONTEXTGETOBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, ContextPointer: PVOID) -> WDFOBJECT,
>;

pub type PFN_WDFOBJECTCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Attributes: PWDF_OBJECT_ATTRIBUTES,
        Object: *mut WDFOBJECT,
    ) -> NTSTATUS,
>;

pub type PFN_WDFOBJECTDELETE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Object: WDFOBJECT),
>;

pub type PFN_WDFOBJECTDEREFERENCEACTUAL = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Handle: WDFOBJECT,
        Tag: PVOID,
        Line: LONG,
        File: PCCH,
    ),
>;

pub type PFN_WDFOBJECTGETTYPEDCONTEXTWORKER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Handle: WDFOBJECT,
        TypeInfo: PCWDF_OBJECT_CONTEXT_TYPE_INFO,
    ) -> PVOID,
>;

pub type PFN_WDFOBJECTQUERY = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Object: WDFOBJECT,
        Guid: *const GUID,
        QueryBufferLength: ULONG,
        QueryBuffer: PVOID,
    ) -> NTSTATUS,
>;

pub type PFN_WDFOBJECTREFERENCEACTUAL = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Handle: WDFOBJECT,
        Tag: PVOID,
        Line: LONG,
        File: PCCH,
    ),
>;

pub type PFN_WDFREGISTRYASSIGNULONG = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Key: WDFKEY,
        ValueName: PCUNICODE_STRING,
        Value: ULONG,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREGISTRYCLOSE =
    ::core::option::Option<unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Key: WDFKEY)>;

pub type PFN_WDFREGISTRYQUERYSTRING = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Key: WDFKEY,
        ValueName: PCUNICODE_STRING,
        String: WDFSTRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREGISTRYQUERYULONG = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Key: WDFKEY,
        ValueName: PCUNICODE_STRING,
        Value: PULONG,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREGISTRYQUERYUNICODESTRING = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Key: WDFKEY,
        ValueName: PCUNICODE_STRING,
        ValueByteLength: PUSHORT,
        Value: PUNICODE_STRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREGISTRYQUERYVALUE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Key: WDFKEY,
        ValueName: PCUNICODE_STRING,
        ValueLength: ULONG,
        Value: PVOID,
        ValueLengthQueried: PULONG,
        ValueType: PULONG,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTCOMPLETE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST, Status: NTSTATUS),
>;

pub type PFN_WDFREQUESTCOMPLETEWITHINFORMATION = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        Status: NTSTATUS,
        Information: ULONG_PTR,
    ),
>;

pub type PFN_WDFREQUESTCOMPLETEWITHPRIORITYBOOST = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        Status: NTSTATUS,
        PriorityBoost: CCHAR,
    ),
>;

pub type PFN_WDFREQUESTFORWARDTOIOQUEUE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        DestinationQueue: WDFQUEUE,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTGETFILEOBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> WDFFILEOBJECT,
>;

pub type PFN_WDFREQUESTGETINFORMATION = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> ULONG_PTR,
>;

pub type PFN_WDFREQUESTGETIOQUEUE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> WDFQUEUE,
>;

pub type PFN_WDFREQUESTGETPARAMETERS = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        Parameters: PWDF_REQUEST_PARAMETERS,
    ),
>;

pub type PFN_WDFREQUESTGETREQUESTORMODE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
    ) -> KPROCESSOR_MODE,
>;

pub type PFN_WDFREQUESTGETSTATUS = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTISCANCELED = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> BOOLEAN,
>;

pub type PFN_WDFREQUESTMARKCANCELABLE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        EvtRequestCancel: PFN_WDF_REQUEST_CANCEL,
    ),
>;

pub type PFN_WDFREQUESTMARKCANCELABLEEX = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        EvtRequestCancel: PFN_WDF_REQUEST_CANCEL,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTREQUEUE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTRETRIEVEINPUTBUFFER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        MinimumRequiredLength: usize,
        Buffer: *mut PVOID,
        Length: *mut usize,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTRETRIEVEINPUTMEMORY = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        Memory: *mut WDFMEMORY,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTRETRIEVEOUTPUTBUFFER = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        MinimumRequiredSize: usize,
        Buffer: *mut PVOID,
        Length: *mut usize,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTRETRIEVEOUTPUTMEMORY = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        Memory: *mut WDFMEMORY,
    ) -> NTSTATUS,
>;

pub type PFN_WDFREQUESTSETINFORMATION = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Request: WDFREQUEST,
        Information: ULONG_PTR,
    ),
>;

pub type PFN_WDFREQUESTSTOPACKNOWLEDGE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST, Requeue: BOOLEAN),
>;

pub type PFN_WDFREQUESTUNMARKCANCELABLE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Request: WDFREQUEST) -> NTSTATUS,
>;

pub type PFN_WDFSPINLOCKACQUIRE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, SpinLock: WDFSPINLOCK),
>;

pub type PFN_WDFSPINLOCKCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        SpinLockAttributes: PWDF_OBJECT_ATTRIBUTES,
        SpinLock: *mut WDFSPINLOCK,
    ) -> NTSTATUS,
>;

pub type PFN_WDFSPINLOCKRELEASE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, SpinLock: WDFSPINLOCK),
>;

pub type PFN_WDFSTRINGCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        UnicodeString: PCUNICODE_STRING,
        StringAttributes: PWDF_OBJECT_ATTRIBUTES,
        String: *mut WDFSTRING,
    ) -> NTSTATUS,
>;

pub type PFN_WDFSTRINGGETUNICODESTRING = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        String: WDFSTRING,
        UnicodeString: PUNICODE_STRING,
    ),
>;

pub type PFN_WDFTIMERCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Config: PWDF_TIMER_CONFIG,
        Attributes: PWDF_OBJECT_ATTRIBUTES,
        Timer: *mut WDFTIMER,
    ) -> NTSTATUS,
>;

pub type PFN_WDFTIMERGETPARENTOBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Timer: WDFTIMER) -> WDFOBJECT,
>;

pub type PFN_WDFTIMERSTART = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Timer: WDFTIMER,
        DueTime: LONGLONG,
    ) -> BOOLEAN,
>;

pub type PFN_WDFTIMERSTOP = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Timer: WDFTIMER,
        Wait: BOOLEAN,
    ) -> BOOLEAN,
>;

pub type PFN_WDFWAITLOCKACQUIRE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Lock: WDFWAITLOCK,
        Timeout: PLONGLONG,
    ) -> NTSTATUS,
>;

pub type PFN_WDFWAITLOCKCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        LockAttributes: PWDF_OBJECT_ATTRIBUTES,
        Lock: *mut WDFWAITLOCK,
    ) -> NTSTATUS,
>;

pub type PFN_WDFWAITLOCKRELEASE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, Lock: WDFWAITLOCK),
>;

pub type PFN_WDFWORKITEMCREATE = ::core::option::Option<
    unsafe extern "C" fn(
        DriverGlobals: PWDF_DRIVER_GLOBALS,
        Config: PWDF_WORKITEM_CONFIG,
        Attributes: PWDF_OBJECT_ATTRIBUTES,
        WorkItem: *mut WDFWORKITEM,
    ) -> NTSTATUS,
>;

pub type PFN_WDFWORKITEMENQUEUE = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, WorkItem: WDFWORKITEM),
>;

pub type PFN_WDFWORKITEMFLUSH = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, WorkItem: WDFWORKITEM),
>;

pub type PFN_WDFWORKITEMGETPARENTOBJECT = ::core::option::Option<
    unsafe extern "C" fn(DriverGlobals: PWDF_DRIVER_GLOBALS, WorkItem: WDFWORKITEM) -> WDFOBJECT,
>;

pub type PFN_WDF_DEVICE_ARM_WAKE_FROM_S0 =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_ARM_WAKE_FROM_SX =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_ARM_WAKE_FROM_SX_WITH_REASON = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: BOOLEAN, arg3: BOOLEAN) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_D0_ENTRY = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDF_POWER_DEVICE_STATE) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_D0_ENTRY_POST_INTERRUPTS_ENABLED = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDF_POWER_DEVICE_STATE) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_D0_EXIT = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDF_POWER_DEVICE_STATE) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_D0_EXIT_PRE_INTERRUPTS_DISABLED = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDF_POWER_DEVICE_STATE) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_DISARM_WAKE_FROM_S0 =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DEVICE_DISARM_WAKE_FROM_SX =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DEVICE_FILE_CREATE = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDFREQUEST, arg3: WDFFILEOBJECT),
>;

pub type PFN_WDF_DEVICE_PREPARE_HARDWARE = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDFCMRESLIST, arg3: WDFCMRESLIST) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_QUERY_REMOVE =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_QUERY_STOP =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_RELATIONS_QUERY =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE, arg2: DEVICE_RELATION_TYPE)>;

pub type PFN_WDF_DEVICE_RELEASE_HARDWARE =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDFCMRESLIST) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_SELF_MANAGED_IO_CLEANUP =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DEVICE_SELF_MANAGED_IO_FLUSH =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DEVICE_SELF_MANAGED_IO_INIT =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_SELF_MANAGED_IO_RESTART =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_SELF_MANAGED_IO_SUSPEND =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE) -> NTSTATUS>;

pub type PFN_WDF_DEVICE_SURPRISE_REMOVAL =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DEVICE_USAGE_NOTIFICATION = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDF_SPECIAL_FILE_TYPE, arg3: BOOLEAN),
>;

pub type PFN_WDF_DEVICE_USAGE_NOTIFICATION_EX = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDEVICE, arg2: WDF_SPECIAL_FILE_TYPE, arg3: BOOLEAN) -> NTSTATUS,
>;

pub type PFN_WDF_DEVICE_WAKE_FROM_S0_TRIGGERED =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DEVICE_WAKE_FROM_SX_TRIGGERED =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFDEVICE)>;

pub type PFN_WDF_DPC = ::core::option::Option<unsafe extern "C" fn(arg1: WDFDPC)>;

pub type PFN_WDF_DRIVER_DEVICE_ADD = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFDRIVER, arg2: PWDFDEVICE_INIT) -> NTSTATUS,
>;

pub type PFN_WDF_DRIVER_UNLOAD = ::core::option::Option<unsafe extern "C" fn(arg1: WDFDRIVER)>;

pub type PFN_WDF_FILE_CLEANUP = ::core::option::Option<unsafe extern "C" fn(arg1: WDFFILEOBJECT)>;

pub type PFN_WDF_FILE_CLOSE = ::core::option::Option<unsafe extern "C" fn(arg1: WDFFILEOBJECT)>;

pub type PFN_WDF_IO_QUEUE_IO_CANCELED_ON_QUEUE =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST)>;

pub type PFN_WDF_IO_QUEUE_IO_DEFAULT =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST)>;

pub type PFN_WDF_IO_QUEUE_IO_DEVICE_CONTROL = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST, arg3: usize, arg4: usize, arg5: ULONG),
>;

pub type PFN_WDF_IO_QUEUE_IO_INTERNAL_DEVICE_CONTROL = ::core::option::Option<
    unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST, arg3: usize, arg4: usize, arg5: ULONG),
>;

pub type PFN_WDF_IO_QUEUE_IO_READ =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST, arg3: usize)>;

pub type PFN_WDF_IO_QUEUE_IO_RESUME =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST)>;

pub type PFN_WDF_IO_QUEUE_IO_STOP =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST, arg3: ULONG)>;

pub type PFN_WDF_IO_QUEUE_IO_WRITE =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFREQUEST, arg3: usize)>;

pub type PFN_WDF_IO_QUEUE_STATE =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFQUEUE, arg2: WDFCONTEXT)>;

pub type PFN_WDF_OBJECT_CONTEXT_CLEANUP =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFOBJECT)>;

pub type PFN_WDF_OBJECT_CONTEXT_DESTROY =
    ::core::option::Option<unsafe extern "C" fn(arg1: WDFOBJECT)>;

pub type PFN_WDF_REQUEST_CANCEL = ::core::option::Option<unsafe extern "C" fn(arg1: WDFREQUEST)>;

pub type PFN_WDF_TIMER = ::core::option::Option<unsafe extern "C" fn(arg1: WDFTIMER)>;

pub type PFN_WDF_WORKITEM = ::core::option::Option<unsafe extern "C" fn(arg1: WDFWORKITEM)>;

pub type PIO_SECURITY_CONTEXT = *mut _IO_SECURITY_CONTEXT;

pub type PLONGLONG = *mut LONGLONG;

pub type POOL_FLAGS = ULONG64;

pub type PREGHANDLE = *mut ULONGLONG;

pub type PSTR = *mut CHAR;

pub type PULONG = *mut ULONG;

pub type PUSHORT = *mut USHORT;

pub type PVOID = *mut ::core::ffi::c_void;

pub type PWCH = *mut WCHAR;

pub type PWDFDEVICE_INIT = *mut WDFDEVICE_INIT;

pub type PWSTR = *mut WCHAR;

pub type REGHANDLE = ULONGLONG;

pub type SIZE_T = ULONG_PTR;

pub type UCHAR = ::core::ffi::c_uchar;

pub type ULONG = u32;

pub type ULONG64 = ::core::ffi::c_ulonglong;

pub type ULONGLONG = ::core::ffi::c_ulonglong;

pub type ULONG_PTR = ::core::ffi::c_ulonglong;

pub type USHORT = ::core::ffi::c_ushort;

pub type WCHAR = wchar_t;

pub type WDFCMRESLIST = *mut WDFCMRESLIST__;

pub type WDFCOLLECTION = *mut WDFCOLLECTION__;

pub type WDFCONTEXT = PVOID;

pub type WDFDEVICE = *mut WDFDEVICE__;

pub type WDFDPC = *mut WDFDPC__;

pub type WDFDRIVER = *mut WDFDRIVER__;

pub type WDFFILEOBJECT = *mut WDFFILEOBJECT__;

pub type WDFFUNC = ::core::option::Option<unsafe extern "C" fn()>;

pub type WDFIOTARGET = *mut WDFIOTARGET__;

pub type WDFKEY = *mut WDFKEY__;

pub type WDFLOOKASIDE = *mut WDFLOOKASIDE__;

pub type WDFMEMORY = *mut WDFMEMORY__;

pub type WDFOBJECT = HANDLE;

pub type WDFQUEUE = *mut WDFQUEUE__;

pub type WDFREQUEST = *mut WDFREQUEST__;

pub type WDFSPINLOCK = *mut WDFSPINLOCK__;

pub type WDFSTRING = *mut WDFSTRING__;

pub type WDFTIMER = *mut WDFTIMER__;

pub type WDFWAITLOCK = *mut WDFWAITLOCK__;

pub type WDFWORKITEM = *mut WDFWORKITEM__;

pub type WDF_STRUCT_INFO = *mut usize;

pub type wchar_t = u16;

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFCMRESLIST__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFCOLLECTION__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFDEVICE_INIT {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFDEVICE__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFDPC__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFDRIVER__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFFILEOBJECT__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFIOTARGET__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFKEY__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFLOOKASIDE__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFMEMORY__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFQUEUE__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFREQUEST__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFSPINLOCK__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFSTRING__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFTIMER__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFWAITLOCK__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct WDFWORKITEM__ {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _DEVICE_OBJECT {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _EPROCESS {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _FAST_IO_DISPATCH {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _IO_SECURITY_CONTEXT {
    _unused: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct _IRP {
    _unused: [u8; 0],
}

zeroed_default! {
    _DRIVER_EXTENSION
    _DRIVER_OBJECT
    _EVENT_DATA_DESCRIPTOR
    _EVENT_DATA_DESCRIPTOR__bindgen_ty_1
    _EVENT_DATA_DESCRIPTOR__bindgen_ty_1__bindgen_ty_1
    _EVENT_DESCRIPTOR
    _EVENT_FILTER_DESCRIPTOR
    _GUID
    _LARGE_INTEGER
    _LARGE_INTEGER__bindgen_ty_1
    _LARGE_INTEGER__bindgen_ty_2
    _UNICODE_STRING
    _WDF_DPC_CONFIG
    _WDF_DRIVER_CONFIG
    _WDF_DRIVER_GLOBALS
    _WDF_FILEOBJECT_CONFIG
    _WDF_IO_QUEUE_CONFIG
    _WDF_IO_QUEUE_CONFIG__bindgen_ty_1
    _WDF_IO_QUEUE_CONFIG__bindgen_ty_1__bindgen_ty_1
    _WDF_OBJECT_ATTRIBUTES
    _WDF_OBJECT_CONTEXT_TYPE_INFO
    _WDF_PNPPOWER_EVENT_CALLBACKS
    _WDF_POWER_POLICY_EVENT_CALLBACKS
    _WDF_REQUEST_PARAMETERS
    _WDF_REQUEST_PARAMETERS__bindgen_ty_1
    _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_1
    _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_2
    _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_3
    _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_4
    _WDF_REQUEST_PARAMETERS__bindgen_ty_1__bindgen_ty_5
    _WDF_TIMER_CONFIG
    _WDF_WORKITEM_CONFIG
}

/// The indices of the functions in the framework's function table.
pub mod _WDFFUNCENUM {
    pub type Type = ::core::ffi::c_int;
    pub const WdfChildListCreateTableIndex: Type = 0;
    pub const WdfChildListGetDeviceTableIndex: Type = 1;
    pub const WdfChildListRetrievePdoTableIndex: Type = 2;
    pub const WdfChildListRetrieveAddressDescriptionTableIndex: Type = 3;
    pub const WdfChildListBeginScanTableIndex: Type = 4;
    pub const WdfChildListEndScanTableIndex: Type = 5;
    pub const WdfChildListBeginIterationTableIndex: Type = 6;
    pub const WdfChildListRetrieveNextDeviceTableIndex: Type = 7;
    pub const WdfChildListEndIterationTableIndex: Type = 8;
    pub const WdfChildListAddOrUpdateChildDescriptionAsPresentTableIndex: Type = 9;
    pub const WdfChildListUpdateChildDescriptionAsMissingTableIndex: Type = 10;
    pub const WdfChildListUpdateAllChildDescriptionsAsPresentTableIndex: Type = 11;
    pub const WdfChildListRequestChildEjectTableIndex: Type = 12;
    pub const WdfCollectionCreateTableIndex: Type = 13;
    pub const WdfCollectionGetCountTableIndex: Type = 14;
    pub const WdfCollectionAddTableIndex: Type = 15;
    pub const WdfCollectionRemoveTableIndex: Type = 16;
    pub const WdfCollectionRemoveItemTableIndex: Type = 17;
    pub const WdfCollectionGetItemTableIndex: Type = 18;
    pub const WdfCollectionGetFirstItemTableIndex: Type = 19;
    pub const WdfCollectionGetLastItemTableIndex: Type = 20;
    pub const WdfCommonBufferCreateTableIndex: Type = 21;
    pub const WdfCommonBufferGetAlignedVirtualAddressTableIndex: Type = 22;
    pub const WdfCommonBufferGetAlignedLogicalAddressTableIndex: Type = 23;
    pub const WdfCommonBufferGetLengthTableIndex: Type = 24;
    pub const WdfControlDeviceInitAllocateTableIndex: Type = 25;
    pub const WdfControlDeviceInitSetShutdownNotificationTableIndex: Type = 26;
    pub const WdfControlFinishInitializingTableIndex: Type = 27;
    pub const WdfDeviceGetDeviceStateTableIndex: Type = 28;
    pub const WdfDeviceSetDeviceStateTableIndex: Type = 29;
    pub const WdfWdmDeviceGetWdfDeviceHandleTableIndex: Type = 30;
    pub const WdfDeviceWdmGetDeviceObjectTableIndex: Type = 31;
    pub const WdfDeviceWdmGetAttachedDeviceTableIndex: Type = 32;
    pub const WdfDeviceWdmGetPhysicalDeviceTableIndex: Type = 33;
    pub const WdfDeviceWdmDispatchPreprocessedIrpTableIndex: Type = 34;
    pub const WdfDeviceAddDependentUsageDeviceObjectTableIndex: Type = 35;
    pub const WdfDeviceAddRemovalRelationsPhysicalDeviceTableIndex: Type = 36;
    pub const WdfDeviceRemoveRemovalRelationsPhysicalDeviceTableIndex: Type = 37;
    pub const WdfDeviceClearRemovalRelationsDevicesTableIndex: Type = 38;
    pub const WdfDeviceGetDriverTableIndex: Type = 39;
    pub const WdfDeviceRetrieveDeviceNameTableIndex: Type = 40;
    pub const WdfDeviceAssignMofResourceNameTableIndex: Type = 41;
    pub const WdfDeviceGetIoTargetTableIndex: Type = 42;
    pub const WdfDeviceGetDevicePnpStateTableIndex: Type = 43;
    pub const WdfDeviceGetDevicePowerStateTableIndex: Type = 44;
    pub const WdfDeviceGetDevicePowerPolicyStateTableIndex: Type = 45;
    pub const WdfDeviceAssignS0IdleSettingsTableIndex: Type = 46;
    pub const WdfDeviceAssignSxWakeSettingsTableIndex: Type = 47;
    pub const WdfDeviceOpenRegistryKeyTableIndex: Type = 48;
    pub const WdfDeviceSetSpecialFileSupportTableIndex: Type = 49;
    pub const WdfDeviceSetCharacteristicsTableIndex: Type = 50;
    pub const WdfDeviceGetCharacteristicsTableIndex: Type = 51;
    pub const WdfDeviceGetAlignmentRequirementTableIndex: Type = 52;
    pub const WdfDeviceSetAlignmentRequirementTableIndex: Type = 53;
    pub const WdfDeviceInitFreeTableIndex: Type = 54;
    pub const WdfDeviceInitSetPnpPowerEventCallbacksTableIndex: Type = 55;
    pub const WdfDeviceInitSetPowerPolicyEventCallbacksTableIndex: Type = 56;
    pub const WdfDeviceInitSetPowerPolicyOwnershipTableIndex: Type = 57;
    pub const WdfDeviceInitRegisterPnpStateChangeCallbackTableIndex: Type = 58;
    pub const WdfDeviceInitRegisterPowerStateChangeCallbackTableIndex: Type = 59;
    pub const WdfDeviceInitRegisterPowerPolicyStateChangeCallbackTableIndex: Type = 60;
    pub const WdfDeviceInitSetIoTypeTableIndex: Type = 61;
    pub const WdfDeviceInitSetExclusiveTableIndex: Type = 62;
    pub const WdfDeviceInitSetPowerNotPageableTableIndex: Type = 63;
    pub const WdfDeviceInitSetPowerPageableTableIndex: Type = 64;
    pub const WdfDeviceInitSetPowerInrushTableIndex: Type = 65;
    pub const WdfDeviceInitSetDeviceTypeTableIndex: Type = 66;
    pub const WdfDeviceInitAssignNameTableIndex: Type = 67;
    pub const WdfDeviceInitAssignSDDLStringTableIndex: Type = 68;
    pub const WdfDeviceInitSetDeviceClassTableIndex: Type = 69;
    pub const WdfDeviceInitSetCharacteristicsTableIndex: Type = 70;
    pub const WdfDeviceInitSetFileObjectConfigTableIndex: Type = 71;
    pub const WdfDeviceInitSetRequestAttributesTableIndex: Type = 72;
    pub const WdfDeviceInitAssignWdmIrpPreprocessCallbackTableIndex: Type = 73;
    pub const WdfDeviceInitSetIoInCallerContextCallbackTableIndex: Type = 74;
    pub const WdfDeviceCreateTableIndex: Type = 75;
    pub const WdfDeviceSetStaticStopRemoveTableIndex: Type = 76;
    pub const WdfDeviceCreateDeviceInterfaceTableIndex: Type = 77;
    pub const WdfDeviceSetDeviceInterfaceStateTableIndex: Type = 78;
    pub const WdfDeviceRetrieveDeviceInterfaceStringTableIndex: Type = 79;
    pub const WdfDeviceCreateSymbolicLinkTableIndex: Type = 80;
    pub const WdfDeviceQueryPropertyTableIndex: Type = 81;
    pub const WdfDeviceAllocAndQueryPropertyTableIndex: Type = 82;
    pub const WdfDeviceSetPnpCapabilitiesTableIndex: Type = 83;
    pub const WdfDeviceSetPowerCapabilitiesTableIndex: Type = 84;
    pub const WdfDeviceSetBusInformationForChildrenTableIndex: Type = 85;
    pub const WdfDeviceIndicateWakeStatusTableIndex: Type = 86;
    pub const WdfDeviceSetFailedTableIndex: Type = 87;
    pub const WdfDeviceStopIdleNoTrackTableIndex: Type = 88;
    pub const WdfDeviceResumeIdleNoTrackTableIndex: Type = 89;
    pub const WdfDeviceGetFileObjectTableIndex: Type = 90;
    pub const WdfDeviceEnqueueRequestTableIndex: Type = 91;
    pub const WdfDeviceGetDefaultQueueTableIndex: Type = 92;
    pub const WdfDeviceConfigureRequestDispatchingTableIndex: Type = 93;
    pub const WdfDmaEnablerCreateTableIndex: Type = 94;
    pub const WdfDmaEnablerGetMaximumLengthTableIndex: Type = 95;
    pub const WdfDmaEnablerGetMaximumScatterGatherElementsTableIndex: Type = 96;
    pub const WdfDmaEnablerSetMaximumScatterGatherElementsTableIndex: Type = 97;
    pub const WdfDmaTransactionCreateTableIndex: Type = 98;
    pub const WdfDmaTransactionInitializeTableIndex: Type = 99;
    pub const WdfDmaTransactionInitializeUsingRequestTableIndex: Type = 100;
    pub const WdfDmaTransactionExecuteTableIndex: Type = 101;
    pub const WdfDmaTransactionReleaseTableIndex: Type = 102;
    pub const WdfDmaTransactionDmaCompletedTableIndex: Type = 103;
    pub const WdfDmaTransactionDmaCompletedWithLengthTableIndex: Type = 104;
    pub const WdfDmaTransactionDmaCompletedFinalTableIndex: Type = 105;
    pub const WdfDmaTransactionGetBytesTransferredTableIndex: Type = 106;
    pub const WdfDmaTransactionSetMaximumLengthTableIndex: Type = 107;
    pub const WdfDmaTransactionGetRequestTableIndex: Type = 108;
    pub const WdfDmaTransactionGetCurrentDmaTransferLengthTableIndex: Type = 109;
    pub const WdfDmaTransactionGetDeviceTableIndex: Type = 110;
    pub const WdfDpcCreateTableIndex: Type = 111;
    pub const WdfDpcEnqueueTableIndex: Type = 112;
    pub const WdfDpcCancelTableIndex: Type = 113;
    pub const WdfDpcGetParentObjectTableIndex: Type = 114;
    pub const WdfDpcWdmGetDpcTableIndex: Type = 115;
    pub const WdfDriverCreateTableIndex: Type = 116;
    pub const WdfDriverGetRegistryPathTableIndex: Type = 117;
    pub const WdfDriverWdmGetDriverObjectTableIndex: Type = 118;
    pub const WdfDriverOpenParametersRegistryKeyTableIndex: Type = 119;
    pub const WdfWdmDriverGetWdfDriverHandleTableIndex: Type = 120;
    pub const WdfDriverRegisterTraceInfoTableIndex: Type = 121;
    pub const WdfDriverRetrieveVersionStringTableIndex: Type = 122;
    pub const WdfDriverIsVersionAvailableTableIndex: Type = 123;
    pub const WdfFdoInitWdmGetPhysicalDeviceTableIndex: Type = 124;
    pub const WdfFdoInitOpenRegistryKeyTableIndex: Type = 125;
    pub const WdfFdoInitQueryPropertyTableIndex: Type = 126;
    pub const WdfFdoInitAllocAndQueryPropertyTableIndex: Type = 127;
    pub const WdfFdoInitSetEventCallbacksTableIndex: Type = 128;
    pub const WdfFdoInitSetFilterTableIndex: Type = 129;
    pub const WdfFdoInitSetDefaultChildListConfigTableIndex: Type = 130;
    pub const WdfFdoQueryForInterfaceTableIndex: Type = 131;
    pub const WdfFdoGetDefaultChildListTableIndex: Type = 132;
    pub const WdfFdoAddStaticChildTableIndex: Type = 133;
    pub const WdfFdoLockStaticChildListForIterationTableIndex: Type = 134;
    pub const WdfFdoRetrieveNextStaticChildTableIndex: Type = 135;
    pub const WdfFdoUnlockStaticChildListFromIterationTableIndex: Type = 136;
    pub const WdfFileObjectGetFileNameTableIndex: Type = 137;
    pub const WdfFileObjectGetFlagsTableIndex: Type = 138;
    pub const WdfFileObjectGetDeviceTableIndex: Type = 139;
    pub const WdfFileObjectWdmGetFileObjectTableIndex: Type = 140;
    pub const WdfInterruptCreateTableIndex: Type = 141;
    pub const WdfInterruptQueueDpcForIsrTableIndex: Type = 142;
    pub const WdfInterruptSynchronizeTableIndex: Type = 143;
    pub const WdfInterruptAcquireLockTableIndex: Type = 144;
    pub const WdfInterruptReleaseLockTableIndex: Type = 145;
    pub const WdfInterruptEnableTableIndex: Type = 146;
    pub const WdfInterruptDisableTableIndex: Type = 147;
    pub const WdfInterruptWdmGetInterruptTableIndex: Type = 148;
    pub const WdfInterruptGetInfoTableIndex: Type = 149;
    pub const WdfInterruptSetPolicyTableIndex: Type = 150;
    pub const WdfInterruptGetDeviceTableIndex: Type = 151;
    pub const WdfIoQueueCreateTableIndex: Type = 152;
    pub const WdfIoQueueGetStateTableIndex: Type = 153;
    pub const WdfIoQueueStartTableIndex: Type = 154;
    pub const WdfIoQueueStopTableIndex: Type = 155;
    pub const WdfIoQueueStopSynchronouslyTableIndex: Type = 156;
    pub const WdfIoQueueGetDeviceTableIndex: Type = 157;
    pub const WdfIoQueueRetrieveNextRequestTableIndex: Type = 158;
    pub const WdfIoQueueRetrieveRequestByFileObjectTableIndex: Type = 159;
    pub const WdfIoQueueFindRequestTableIndex: Type = 160;
    pub const WdfIoQueueRetrieveFoundRequestTableIndex: Type = 161;
    pub const WdfIoQueueDrainSynchronouslyTableIndex: Type = 162;
    pub const WdfIoQueueDrainTableIndex: Type = 163;
    pub const WdfIoQueuePurgeSynchronouslyTableIndex: Type = 164;
    pub const WdfIoQueuePurgeTableIndex: Type = 165;
    pub const WdfIoQueueReadyNotifyTableIndex: Type = 166;
    pub const WdfIoTargetCreateTableIndex: Type = 167;
    pub const WdfIoTargetOpenTableIndex: Type = 168;
    pub const WdfIoTargetCloseForQueryRemoveTableIndex: Type = 169;
    pub const WdfIoTargetCloseTableIndex: Type = 170;
    pub const WdfIoTargetStartTableIndex: Type = 171;
    pub const WdfIoTargetStopTableIndex: Type = 172;
    pub const WdfIoTargetGetStateTableIndex: Type = 173;
    pub const WdfIoTargetGetDeviceTableIndex: Type = 174;
    pub const WdfIoTargetQueryTargetPropertyTableIndex: Type = 175;
    pub const WdfIoTargetAllocAndQueryTargetPropertyTableIndex: Type = 176;
    pub const WdfIoTargetQueryForInterfaceTableIndex: Type = 177;
    pub const WdfIoTargetWdmGetTargetDeviceObjectTableIndex: Type = 178;
    pub const WdfIoTargetWdmGetTargetPhysicalDeviceTableIndex: Type = 179;
    pub const WdfIoTargetWdmGetTargetFileObjectTableIndex: Type = 180;
    pub const WdfIoTargetWdmGetTargetFileHandleTableIndex: Type = 181;
    pub const WdfIoTargetSendReadSynchronouslyTableIndex: Type = 182;
    pub const WdfIoTargetFormatRequestForReadTableIndex: Type = 183;
    pub const WdfIoTargetSendWriteSynchronouslyTableIndex: Type = 184;
    pub const WdfIoTargetFormatRequestForWriteTableIndex: Type = 185;
    pub const WdfIoTargetSendIoctlSynchronouslyTableIndex: Type = 186;
    pub const WdfIoTargetFormatRequestForIoctlTableIndex: Type = 187;
    pub const WdfIoTargetSendInternalIoctlSynchronouslyTableIndex: Type = 188;
    pub const WdfIoTargetFormatRequestForInternalIoctlTableIndex: Type = 189;
    pub const WdfIoTargetSendInternalIoctlOthersSynchronouslyTableIndex: Type = 190;
    pub const WdfIoTargetFormatRequestForInternalIoctlOthersTableIndex: Type = 191;
    pub const WdfMemoryCreateTableIndex: Type = 192;
    pub const WdfMemoryCreatePreallocatedTableIndex: Type = 193;
    pub const WdfMemoryGetBufferTableIndex: Type = 194;
    pub const WdfMemoryAssignBufferTableIndex: Type = 195;
    pub const WdfMemoryCopyToBufferTableIndex: Type = 196;
    pub const WdfMemoryCopyFromBufferTableIndex: Type = 197;
    pub const WdfLookasideListCreateTableIndex: Type = 198;
    pub const WdfMemoryCreateFromLookasideTableIndex: Type = 199;
    pub const WdfDeviceMiniportCreateTableIndex: Type = 200;
    pub const WdfDriverMiniportUnloadTableIndex: Type = 201;
    pub const WdfObjectGetTypedContextWorkerTableIndex: Type = 202;
    pub const WdfObjectAllocateContextTableIndex: Type = 203;
    pub const WdfObjectContextGetObjectTableIndex: Type = 204;
    pub const WdfObjectReferenceActualTableIndex: Type = 205;
    pub const WdfObjectDereferenceActualTableIndex: Type = 206;
    pub const WdfObjectCreateTableIndex: Type = 207;
    pub const WdfObjectDeleteTableIndex: Type = 208;
    pub const WdfObjectQueryTableIndex: Type = 209;
    pub const WdfPdoInitAllocateTableIndex: Type = 210;
    pub const WdfPdoInitSetEventCallbacksTableIndex: Type = 211;
    pub const WdfPdoInitAssignDeviceIDTableIndex: Type = 212;
    pub const WdfPdoInitAssignInstanceIDTableIndex: Type = 213;
    pub const WdfPdoInitAddHardwareIDTableIndex: Type = 214;
    pub const WdfPdoInitAddCompatibleIDTableIndex: Type = 215;
    pub const WdfPdoInitAddDeviceTextTableIndex: Type = 216;
    pub const WdfPdoInitSetDefaultLocaleTableIndex: Type = 217;
    pub const WdfPdoInitAssignRawDeviceTableIndex: Type = 218;
    pub const WdfPdoMarkMissingTableIndex: Type = 219;
    pub const WdfPdoRequestEjectTableIndex: Type = 220;
    pub const WdfPdoGetParentTableIndex: Type = 221;
    pub const WdfPdoRetrieveIdentificationDescriptionTableIndex: Type = 222;
    pub const WdfPdoRetrieveAddressDescriptionTableIndex: Type = 223;
    pub const WdfPdoUpdateAddressDescriptionTableIndex: Type = 224;
    pub const WdfPdoAddEjectionRelationsPhysicalDeviceTableIndex: Type = 225;
    pub const WdfPdoRemoveEjectionRelationsPhysicalDeviceTableIndex: Type = 226;
    pub const WdfPdoClearEjectionRelationsDevicesTableIndex: Type = 227;
    pub const WdfDeviceAddQueryInterfaceTableIndex: Type = 228;
    pub const WdfRegistryOpenKeyTableIndex: Type = 229;
    pub const WdfRegistryCreateKeyTableIndex: Type = 230;
    pub const WdfRegistryCloseTableIndex: Type = 231;
    pub const WdfRegistryWdmGetHandleTableIndex: Type = 232;
    pub const WdfRegistryRemoveKeyTableIndex: Type = 233;
    pub const WdfRegistryRemoveValueTableIndex: Type = 234;
    pub const WdfRegistryQueryValueTableIndex: Type = 235;
    pub const WdfRegistryQueryMemoryTableIndex: Type = 236;
    pub const WdfRegistryQueryMultiStringTableIndex: Type = 237;
    pub const WdfRegistryQueryUnicodeStringTableIndex: Type = 238;
    pub const WdfRegistryQueryStringTableIndex: Type = 239;
    pub const WdfRegistryQueryULongTableIndex: Type = 240;
    pub const WdfRegistryAssignValueTableIndex: Type = 241;
    pub const WdfRegistryAssignMemoryTableIndex: Type = 242;
    pub const WdfRegistryAssignMultiStringTableIndex: Type = 243;
    pub const WdfRegistryAssignUnicodeStringTableIndex: Type = 244;
    pub const WdfRegistryAssignStringTableIndex: Type = 245;
    pub const WdfRegistryAssignULongTableIndex: Type = 246;
    pub const WdfRequestCreateTableIndex: Type = 247;
    pub const WdfRequestCreateFromIrpTableIndex: Type = 248;
    pub const WdfRequestReuseTableIndex: Type = 249;
    pub const WdfRequestChangeTargetTableIndex: Type = 250;
    pub const WdfRequestFormatRequestUsingCurrentTypeTableIndex: Type = 251;
    pub const WdfRequestWdmFormatUsingStackLocationTableIndex: Type = 252;
    pub const WdfRequestSendTableIndex: Type = 253;
    pub const WdfRequestGetStatusTableIndex: Type = 254;
    pub const WdfRequestMarkCancelableTableIndex: Type = 255;
    pub const WdfRequestUnmarkCancelableTableIndex: Type = 256;
    pub const WdfRequestIsCanceledTableIndex: Type = 257;
    pub const WdfRequestCancelSentRequestTableIndex: Type = 258;
    pub const WdfRequestIsFrom32BitProcessTableIndex: Type = 259;
    pub const WdfRequestSetCompletionRoutineTableIndex: Type = 260;
    pub const WdfRequestGetCompletionParamsTableIndex: Type = 261;
    pub const WdfRequestAllocateTimerTableIndex: Type = 262;
    pub const WdfRequestCompleteTableIndex: Type = 263;
    pub const WdfRequestCompleteWithPriorityBoostTableIndex: Type = 264;
    pub const WdfRequestCompleteWithInformationTableIndex: Type = 265;
    pub const WdfRequestGetParametersTableIndex: Type = 266;
    pub const WdfRequestRetrieveInputMemoryTableIndex: Type = 267;
    pub const WdfRequestRetrieveOutputMemoryTableIndex: Type = 268;
    pub const WdfRequestRetrieveInputBufferTableIndex: Type = 269;
    pub const WdfRequestRetrieveOutputBufferTableIndex: Type = 270;
    pub const WdfRequestRetrieveInputWdmMdlTableIndex: Type = 271;
    pub const WdfRequestRetrieveOutputWdmMdlTableIndex: Type = 272;
    pub const WdfRequestRetrieveUnsafeUserInputBufferTableIndex: Type = 273;
    pub const WdfRequestRetrieveUnsafeUserOutputBufferTableIndex: Type = 274;
    pub const WdfRequestSetInformationTableIndex: Type = 275;
    pub const WdfRequestGetInformationTableIndex: Type = 276;
    pub const WdfRequestGetFileObjectTableIndex: Type = 277;
    pub const WdfRequestProbeAndLockUserBufferForReadTableIndex: Type = 278;
    pub const WdfRequestProbeAndLockUserBufferForWriteTableIndex: Type = 279;
    pub const WdfRequestGetRequestorModeTableIndex: Type = 280;
    pub const WdfRequestForwardToIoQueueTableIndex: Type = 281;
    pub const WdfRequestGetIoQueueTableIndex: Type = 282;
    pub const WdfRequestRequeueTableIndex: Type = 283;
    pub const WdfRequestStopAcknowledgeTableIndex: Type = 284;
    pub const WdfRequestWdmGetIrpTableIndex: Type = 285;
    pub const WdfIoResourceRequirementsListSetSlotNumberTableIndex: Type = 286;
    pub const WdfIoResourceRequirementsListSetInterfaceTypeTableIndex: Type = 287;
    pub const WdfIoResourceRequirementsListAppendIoResListTableIndex: Type = 288;
    pub const WdfIoResourceRequirementsListInsertIoResListTableIndex: Type = 289;
    pub const WdfIoResourceRequirementsListGetCountTableIndex: Type = 290;
    pub const WdfIoResourceRequirementsListGetIoResListTableIndex: Type = 291;
    pub const WdfIoResourceRequirementsListRemoveTableIndex: Type = 292;
    pub const WdfIoResourceRequirementsListRemoveByIoResListTableIndex: Type = 293;
    pub const WdfIoResourceListCreateTableIndex: Type = 294;
    pub const WdfIoResourceListAppendDescriptorTableIndex: Type = 295;
    pub const WdfIoResourceListInsertDescriptorTableIndex: Type = 296;
    pub const WdfIoResourceListUpdateDescriptorTableIndex: Type = 297;
    pub const WdfIoResourceListGetCountTableIndex: Type = 298;
    pub const WdfIoResourceListGetDescriptorTableIndex: Type = 299;
    pub const WdfIoResourceListRemoveTableIndex: Type = 300;
    pub const WdfIoResourceListRemoveByDescriptorTableIndex: Type = 301;
    pub const WdfCmResourceListAppendDescriptorTableIndex: Type = 302;
    pub const WdfCmResourceListInsertDescriptorTableIndex: Type = 303;
    pub const WdfCmResourceListGetCountTableIndex: Type = 304;
    pub const WdfCmResourceListGetDescriptorTableIndex: Type = 305;
    pub const WdfCmResourceListRemoveTableIndex: Type = 306;
    pub const WdfCmResourceListRemoveByDescriptorTableIndex: Type = 307;
    pub const WdfStringCreateTableIndex: Type = 308;
    pub const WdfStringGetUnicodeStringTableIndex: Type = 309;
    pub const WdfObjectAcquireLockTableIndex: Type = 310;
    pub const WdfObjectReleaseLockTableIndex: Type = 311;
    pub const WdfWaitLockCreateTableIndex: Type = 312;
    pub const WdfWaitLockAcquireTableIndex: Type = 313;
    pub const WdfWaitLockReleaseTableIndex: Type = 314;
    pub const WdfSpinLockCreateTableIndex: Type = 315;
    pub const WdfSpinLockAcquireTableIndex: Type = 316;
    pub const WdfSpinLockReleaseTableIndex: Type = 317;
    pub const WdfTimerCreateTableIndex: Type = 318;
    pub const WdfTimerStartTableIndex: Type = 319;
    pub const WdfTimerStopTableIndex: Type = 320;
    pub const WdfTimerGetParentObjectTableIndex: Type = 321;
    pub const WdfUsbTargetDeviceCreateTableIndex: Type = 322;
    pub const WdfUsbTargetDeviceRetrieveInformationTableIndex: Type = 323;
    pub const WdfUsbTargetDeviceGetDeviceDescriptorTableIndex: Type = 324;
    pub const WdfUsbTargetDeviceRetrieveConfigDescriptorTableIndex: Type = 325;
    pub const WdfUsbTargetDeviceQueryStringTableIndex: Type = 326;
    pub const WdfUsbTargetDeviceAllocAndQueryStringTableIndex: Type = 327;
    pub const WdfUsbTargetDeviceFormatRequestForStringTableIndex: Type = 328;
    pub const WdfUsbTargetDeviceGetNumInterfacesTableIndex: Type = 329;
    pub const WdfUsbTargetDeviceSelectConfigTableIndex: Type = 330;
    pub const WdfUsbTargetDeviceWdmGetConfigurationHandleTableIndex: Type = 331;
    pub const WdfUsbTargetDeviceRetrieveCurrentFrameNumberTableIndex: Type = 332;
    pub const WdfUsbTargetDeviceSendControlTransferSynchronouslyTableIndex: Type = 333;
    pub const WdfUsbTargetDeviceFormatRequestForControlTransferTableIndex: Type = 334;
    pub const WdfUsbTargetDeviceIsConnectedSynchronousTableIndex: Type = 335;
    pub const WdfUsbTargetDeviceResetPortSynchronouslyTableIndex: Type = 336;
    pub const WdfUsbTargetDeviceCyclePortSynchronouslyTableIndex: Type = 337;
    pub const WdfUsbTargetDeviceFormatRequestForCyclePortTableIndex: Type = 338;
    pub const WdfUsbTargetDeviceSendUrbSynchronouslyTableIndex: Type = 339;
    pub const WdfUsbTargetDeviceFormatRequestForUrbTableIndex: Type = 340;
    pub const WdfUsbTargetPipeGetInformationTableIndex: Type = 341;
    pub const WdfUsbTargetPipeIsInEndpointTableIndex: Type = 342;
    pub const WdfUsbTargetPipeIsOutEndpointTableIndex: Type = 343;
    pub const WdfUsbTargetPipeGetTypeTableIndex: Type = 344;
    pub const WdfUsbTargetPipeSetNoMaximumPacketSizeCheckTableIndex: Type = 345;
    pub const WdfUsbTargetPipeWriteSynchronouslyTableIndex: Type = 346;
    pub const WdfUsbTargetPipeFormatRequestForWriteTableIndex: Type = 347;
    pub const WdfUsbTargetPipeReadSynchronouslyTableIndex: Type = 348;
    pub const WdfUsbTargetPipeFormatRequestForReadTableIndex: Type = 349;
    pub const WdfUsbTargetPipeConfigContinuousReaderTableIndex: Type = 350;
    pub const WdfUsbTargetPipeAbortSynchronouslyTableIndex: Type = 351;
    pub const WdfUsbTargetPipeFormatRequestForAbortTableIndex: Type = 352;
    pub const WdfUsbTargetPipeResetSynchronouslyTableIndex: Type = 353;
    pub const WdfUsbTargetPipeFormatRequestForResetTableIndex: Type = 354;
    pub const WdfUsbTargetPipeSendUrbSynchronouslyTableIndex: Type = 355;
    pub const WdfUsbTargetPipeFormatRequestForUrbTableIndex: Type = 356;
    pub const WdfUsbInterfaceGetInterfaceNumberTableIndex: Type = 357;
    pub const WdfUsbInterfaceGetNumEndpointsTableIndex: Type = 358;
    pub const WdfUsbInterfaceGetDescriptorTableIndex: Type = 359;
    pub const WdfUsbInterfaceSelectSettingTableIndex: Type = 360;
    pub const WdfUsbInterfaceGetEndpointInformationTableIndex: Type = 361;
    pub const WdfUsbTargetDeviceGetInterfaceTableIndex: Type = 362;
    pub const WdfUsbInterfaceGetConfiguredSettingIndexTableIndex: Type = 363;
    pub const WdfUsbInterfaceGetNumConfiguredPipesTableIndex: Type = 364;
    pub const WdfUsbInterfaceGetConfiguredPipeTableIndex: Type = 365;
    pub const WdfUsbTargetPipeWdmGetPipeHandleTableIndex: Type = 366;
    pub const WdfVerifierDbgBreakPointTableIndex: Type = 367;
    pub const WdfVerifierKeBugCheckTableIndex: Type = 368;
    pub const WdfWmiProviderCreateTableIndex: Type = 369;
    pub const WdfWmiProviderGetDeviceTableIndex: Type = 370;
    pub const WdfWmiProviderIsEnabledTableIndex: Type = 371;
    pub const WdfWmiProviderGetTracingHandleTableIndex: Type = 372;
    pub const WdfWmiInstanceCreateTableIndex: Type = 373;
    pub const WdfWmiInstanceRegisterTableIndex: Type = 374;
    pub const WdfWmiInstanceDeregisterTableIndex: Type = 375;
    pub const WdfWmiInstanceGetDeviceTableIndex: Type = 376;
    pub const WdfWmiInstanceGetProviderTableIndex: Type = 377;
    pub const WdfWmiInstanceFireEventTableIndex: Type = 378;
    pub const WdfWorkItemCreateTableIndex: Type = 379;
    pub const WdfWorkItemEnqueueTableIndex: Type = 380;
    pub const WdfWorkItemGetParentObjectTableIndex: Type = 381;
    pub const WdfWorkItemFlushTableIndex: Type = 382;
    pub const WdfCommonBufferCreateWithConfigTableIndex: Type = 383;
    pub const WdfDmaEnablerGetFragmentLengthTableIndex: Type = 384;
    pub const WdfDmaEnablerWdmGetDmaAdapterTableIndex: Type = 385;
    pub const WdfUsbInterfaceGetNumSettingsTableIndex: Type = 386;
    pub const WdfDeviceRemoveDependentUsageDeviceObjectTableIndex: Type = 387;
    pub const WdfDeviceGetSystemPowerActionTableIndex: Type = 388;
    pub const WdfInterruptSetExtendedPolicyTableIndex: Type = 389;
    pub const WdfIoQueueAssignForwardProgressPolicyTableIndex: Type = 390;
    pub const WdfPdoInitAssignContainerIDTableIndex: Type = 391;
    pub const WdfPdoInitAllowForwardingRequestToParentTableIndex: Type = 392;
    pub const WdfRequestMarkCancelableExTableIndex: Type = 393;
    pub const WdfRequestIsReservedTableIndex: Type = 394;
    pub const WdfRequestForwardToParentDeviceIoQueueTableIndex: Type = 395;
    pub const WdfCxDeviceInitAllocateTableIndex: Type = 396;
    pub const WdfCxDeviceInitAssignWdmIrpPreprocessCallbackTableIndex: Type = 397;
    pub const WdfCxDeviceInitSetIoInCallerContextCallbackTableIndex: Type = 398;
    pub const WdfCxDeviceInitSetRequestAttributesTableIndex: Type = 399;
    pub const WdfCxDeviceInitSetFileObjectConfigTableIndex: Type = 400;
    pub const WdfDeviceWdmDispatchIrpTableIndex: Type = 401;
    pub const WdfDeviceWdmDispatchIrpToIoQueueTableIndex: Type = 402;
    pub const WdfDeviceInitSetRemoveLockOptionsTableIndex: Type = 403;
    pub const WdfDeviceConfigureWdmIrpDispatchCallbackTableIndex: Type = 404;
    pub const WdfDmaEnablerConfigureSystemProfileTableIndex: Type = 405;
    pub const WdfDmaTransactionInitializeUsingOffsetTableIndex: Type = 406;
    pub const WdfDmaTransactionGetTransferInfoTableIndex: Type = 407;
    pub const WdfDmaTransactionSetChannelConfigurationCallbackTableIndex: Type = 408;
    pub const WdfDmaTransactionSetTransferCompleteCallbackTableIndex: Type = 409;
    pub const WdfDmaTransactionSetImmediateExecutionTableIndex: Type = 410;
    pub const WdfDmaTransactionAllocateResourcesTableIndex: Type = 411;
    pub const WdfDmaTransactionSetDeviceAddressOffsetTableIndex: Type = 412;
    pub const WdfDmaTransactionFreeResourcesTableIndex: Type = 413;
    pub const WdfDmaTransactionCancelTableIndex: Type = 414;
    pub const WdfDmaTransactionWdmGetTransferContextTableIndex: Type = 415;
    pub const WdfInterruptQueueWorkItemForIsrTableIndex: Type = 416;
    pub const WdfInterruptTryToAcquireLockTableIndex: Type = 417;
    pub const WdfIoQueueStopAndPurgeTableIndex: Type = 418;
    pub const WdfIoQueueStopAndPurgeSynchronouslyTableIndex: Type = 419;
    pub const WdfIoTargetPurgeTableIndex: Type = 420;
    pub const WdfUsbTargetDeviceCreateWithParametersTableIndex: Type = 421;
    pub const WdfUsbTargetDeviceQueryUsbCapabilityTableIndex: Type = 422;
    pub const WdfUsbTargetDeviceCreateUrbTableIndex: Type = 423;
    pub const WdfUsbTargetDeviceCreateIsochUrbTableIndex: Type = 424;
    pub const WdfDeviceWdmAssignPowerFrameworkSettingsTableIndex: Type = 425;
    pub const WdfDmaTransactionStopSystemTransferTableIndex: Type = 426;
    pub const WdfCxVerifierKeBugCheckTableIndex: Type = 427;
    pub const WdfInterruptReportActiveTableIndex: Type = 428;
    pub const WdfInterruptReportInactiveTableIndex: Type = 429;
    pub const WdfDeviceInitSetReleaseHardwareOrderOnFailureTableIndex: Type = 430;
    pub const WdfGetTriageInfoTableIndex: Type = 431;
    pub const WdfDeviceInitSetIoTypeExTableIndex: Type = 432;
    pub const WdfDeviceQueryPropertyExTableIndex: Type = 433;
    pub const WdfDeviceAllocAndQueryPropertyExTableIndex: Type = 434;
    pub const WdfDeviceAssignPropertyTableIndex: Type = 435;
    pub const WdfFdoInitQueryPropertyExTableIndex: Type = 436;
    pub const WdfFdoInitAllocAndQueryPropertyExTableIndex: Type = 437;
    pub const WdfDeviceStopIdleActualTableIndex: Type = 438;
    pub const WdfDeviceResumeIdleActualTableIndex: Type = 439;
    pub const WdfDeviceGetSelfIoTargetTableIndex: Type = 440;
    pub const WdfDeviceInitAllowSelfIoTargetTableIndex: Type = 441;
    pub const WdfIoTargetSelfAssignDefaultIoQueueTableIndex: Type = 442;
    pub const WdfDeviceOpenDevicemapKeyTableIndex: Type = 443;
    pub const WdfDmaTransactionSetSingleTransferRequirementTableIndex: Type = 444;
    pub const WdfCxDeviceInitSetPnpPowerEventCallbacksTableIndex: Type = 445;
    pub const WdfFileObjectGetInitiatorProcessIdTableIndex: Type = 446;
    pub const WdfRequestGetRequestorProcessIdTableIndex: Type = 447;
    pub const WdfDeviceRetrieveCompanionTargetTableIndex: Type = 448;
    pub const WdfCompanionTargetSendTaskSynchronouslyTableIndex: Type = 449;
    pub const WdfCompanionTargetWdmGetCompanionProcessTableIndex: Type = 450;
    pub const WdfDriverOpenPersistentStateRegistryKeyTableIndex: Type = 451;
    pub const WdfDriverErrorReportApiMissingTableIndex: Type = 452;
    pub const WdfPdoInitRemovePowerDependencyOnParentTableIndex: Type = 453;
    pub const WdfCxDeviceInitAllocateContextTableIndex: Type = 454;
    pub const WdfCxDeviceInitGetTypedContextWorkerTableIndex: Type = 455;
    pub const WdfCxDeviceInitSetPowerPolicyEventCallbacksTableIndex: Type = 456;
    pub const WdfDeviceSetDeviceInterfaceStateExTableIndex: Type = 457;
    pub const WdfFunctionTableNumEntries: Type = 458;
}
pub use self::_WDFFUNCENUM::Type as WDFFUNCENUM;
