//! The structures that a driver and the kernel exchange, in the WDK headers' layout for x64.
//! Pointers and handles are plain addresses.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Declares plain structures, and the offsets of their fields for the tests.
macro_rules! abi {
    ($($(#[$doc:meta])* $name:ident as $c_name:literal {
        $($(#[$field_doc:meta])* $field:ident $(as $c_field:literal)?: $type:ty,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
            #[repr(C)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl $crate::ground::abi::Pointee for $name {
                const NAME: &'static str = $c_name;
            }
        )*

        /// The C name, size and named fields of every structure declared here.
        #[cfg(test)]
        pub const LAYOUTS: &[$crate::ground::abi::Layout] = &[$($crate::ground::abi::Layout {
            name: $c_name,
            size: size_of::<$name>(),
            fields: &[$($((
                $c_field,
                core::mem::offset_of!($name, $field),
                size_of::<$type>(),
            ),)?)*],
        },)*];
    };
}

pub(super) use abi;

/// A structure or number that drivers pass by address.
pub trait Pointee {
    /// The name in the headers, or the Rust name of a number type.
    const NAME: &'static str;
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Pointee for $number {
            const NAME: &'static str = stringify!($number);
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 }

impl Pointee for etl_file::Guid {
    const NAME: &'static str = "_GUID";
}

impl Pointee for () {
    const NAME: &'static str = "void";
}

/// A structure's layout, which a test compares with the headers.
#[cfg(test)]
pub struct Layout {
    /// The name in the headers.
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize, usize)],
}

abi! {
    /// A counted UTF-16 string. Its lengths are in bytes.
    UnicodeString as "_UNICODE_STRING" {
        length as "Length": u16,
        maximum_length as "MaximumLength": u16,
        reserved: u32,
        buffer as "Buffer": u64,
    }
    /// The first field of every object that a thread can wait for.
    DispatcherHeader as "_DISPATCHER_HEADER" {
        /// The kind of the object.
        kind: u8,
        reserved: u8,
        /// The object's size in 32-bit units.
        units: u8,
        reserved_1: u8,
        signal_state as "SignalState": i32,
        waiters as "WaitListHead": [u64; 2],
    }
    /// `KMUTEX`.
    Mutant as "_KMUTANT" {
        header as "Header": DispatcherHeader,
        list_entry as "MutantListEntry": [u64; 2],
        owner as "OwnerThread": u64,
        abandoned as "Abandoned": u8,
        apc_disable as "ApcDisable": u8,
        reserved: [u8; 6],
    }
    /// An asynchronous procedure call.
    KernelApc as "_KAPC" {
        kind as "Type": u8,
        spare as "SpareByte0": u8,
        size as "Size": u8,
        spare_1 as "SpareByte1": u8,
        spare_2 as "SpareLong0": u32,
        thread as "Thread": u64,
        entry as "ApcListEntry": [u64; 2],
        /// The kernel, rundown and normal routines.
        routines as "Reserved": [u64; 3],
        context as "NormalContext": u64,
        first as "SystemArgument1": u64,
        second as "SystemArgument2": u64,
        environment as "ApcStateIndex": i8,
        mode as "ApcMode": i8,
        inserted as "Inserted": u8,
        reserved: [u8; 5],
    }
    Semaphore as "_KSEMAPHORE" {
        header as "Header": DispatcherHeader,
        limit as "Limit": i32,
        reserved: u32,
    }
    KernelTimer as "_KTIMER" {
        header as "Header": DispatcherHeader,
        due_time as "DueTime": u64,
        list_entry as "TimerListEntry": [u64; 2],
        dpc as "Dpc": u64,
        processor as "Processor": u32,
        period as "Period": u32,
    }
    KernelDpc as "_KDPC" {
        kind: u8,
        importance: u8,
        number: u16,
        reserved: u32,
        list_entry as "DpcListEntry": u64,
        processor_history as "ProcessorHistory": u64,
        routine as "DeferredRoutine": u64,
        context as "DeferredContext": u64,
        argument_1 as "SystemArgument1": u64,
        argument_2 as "SystemArgument2": u64,
        data as "DpcData": u64,
    }
    /// `FAST_MUTEX`, which is also `KGUARDED_MUTEX`.
    FastMutex as "_FAST_MUTEX" {
        /// 1 if no thread owns the mutex.
        count as "Count": i32,
        reserved: u32,
        owner as "Owner": u64,
        contention as "Contention": u32,
        reserved_1: u32,
        event as "Event": DispatcherHeader,
        old_irql as "OldIrql": u32,
        reserved_2: u32,
    }
    /// The handle of a queued spin lock.
    LockQueueHandle as "_KLOCK_QUEUE_HANDLE" {
        /// The next handle in the queue, and the lock.
        queue as "LockQueue": [u64; 2],
        old_irql as "OldIrql": u8,
        reserved: [u8; 7],
    }
    /// A work item that its driver allocates.
    WorkQueueItem as "_WORK_QUEUE_ITEM" {
        list as "List": [u64; 2],
        routine as "WorkerRoutine": u64,
        parameter as "Parameter": u64,
    }
    /// A memory descriptor list. The page frame numbers follow it.
    Mdl as "_MDL" {
        next as "Next": u64,
        size as "Size": i16,
        flags as "MdlFlags": u16,
        reserved: u32,
        process as "Process": u64,
        mapped as "MappedSystemVa": u64,
        start as "StartVa": u64,
        byte_count as "ByteCount": u32,
        byte_offset as "ByteOffset": u32,
    }
    /// A lookaside list, without the padding to a cache line.
    Lookaside as "_GENERAL_LOOKASIDE_POOL" {
        head: [u64; 2],
        depth as "Depth": u16,
        maximum_depth as "MaximumDepth": u16,
        total_allocates as "TotalAllocates": u32,
        allocate_misses: u32,
        total_frees as "TotalFrees": u32,
        free_misses: u32,
        kind as "Type": u32,
        tag as "Tag": u32,
        size as "Size": u32,
        allocate: u64,
        free: u64,
        list_entry as "ListEntry": [u64; 2],
        last_total_allocates as "LastTotalAllocates": u32,
        last_misses: u32,
        future as "Future": [u32; 2],
    }
    /// The name of a file or key, and the object that it is relative to.
    ObjectAttributesNt as "_OBJECT_ATTRIBUTES" {
        length as "Length": u32,
        reserved: u32,
        root as "RootDirectory": u64,
        name as "ObjectName": u64,
        attributes as "Attributes": u32,
        reserved_1: u32,
        security_descriptor as "SecurityDescriptor": u64,
        quality_of_service as "SecurityQualityOfService": u64,
    }
    QueryRegistryTable as "_RTL_QUERY_REGISTRY_TABLE" {
        query_routine as "QueryRoutine": u64,
        flags as "Flags": u32,
        reserved: u32,
        name as "Name": u64,
        entry_context as "EntryContext": u64,
        default_type as "DefaultType": u32,
        reserved_1: u32,
        default_data as "DefaultData": u64,
        default_length as "DefaultLength": u32,
        reserved_2: u32,
    }
    IoStatusBlock as "_IO_STATUS_BLOCK" {
        status: u32,
        reserved: u32,
        information as "Information": u64,
    }
    FileBasic as "_FILE_BASIC_INFORMATION" {
        creation as "CreationTime": i64,
        last_access as "LastAccessTime": i64,
        last_write as "LastWriteTime": i64,
        change as "ChangeTime": i64,
        attributes as "FileAttributes": u32,
        reserved: u32,
    }
    FileStandard as "_FILE_STANDARD_INFORMATION" {
        allocation as "AllocationSize": u64,
        end as "EndOfFile": u64,
        links as "NumberOfLinks": u32,
        delete_pending as "DeletePending": u8,
        directory as "Directory": u8,
        reserved: [u8; 2],
    }
    /// `DEVICE_OBJECT`.
    DeviceObject as "_DEVICE_OBJECT" {
        kind as "Type": i16,
        size as "Size": u16,
        reference_count as "ReferenceCount": i32,
        driver as "DriverObject": u64,
        next as "NextDevice": u64,
        attached as "AttachedDevice": u64,
        current_irp as "CurrentIrp": u64,
        timer as "Timer": u64,
        flags as "Flags": u32,
        characteristics as "Characteristics": u32,
        volume as "Vpb": u64,
        extension as "DeviceExtension": u64,
        device_type as "DeviceType": u32,
        stack_size as "StackSize": u8,
        reserved: [u8; 3],
        wait_queue as "Queue": [u64; 9],
        alignment as "AlignmentRequirement": u32,
        reserved_1: u32,
        queue as "DeviceQueue": [u64; 5],
        dpc as "Dpc": KernelDpc,
        active_threads as "ActiveThreadCount": u32,
        reserved_2: u32,
        security_descriptor as "SecurityDescriptor": u64,
        lock as "DeviceLock": DispatcherHeader,
        sector_size as "SectorSize": u16,
        spare as "Spare1": u16,
        reserved_3: u32,
        object_extension as "DeviceObjectExtension": u64,
        reserved_4 as "Reserved": u64,
        reserved_5: u64,
    }
    /// `FILE_OBJECT`.
    FileObject as "_FILE_OBJECT" {
        kind as "Type": i16,
        size as "Size": i16,
        reserved: u32,
        device as "DeviceObject": u64,
        volume as "Vpb": u64,
        context as "FsContext": u64,
        context_2 as "FsContext2": u64,
        sections as "SectionObjectPointer": u64,
        cache_map as "PrivateCacheMap": u64,
        final_status as "FinalStatus": u32,
        reserved_1: u32,
        related as "RelatedFileObject": u64,
        lock_operation as "LockOperation": u8,
        delete_pending as "DeletePending": u8,
        read_access as "ReadAccess": u8,
        write_access as "WriteAccess": u8,
        delete_access as "DeleteAccess": u8,
        shared_read as "SharedRead": u8,
        shared_write as "SharedWrite": u8,
        shared_delete as "SharedDelete": u8,
        flags as "Flags": u32,
        reserved_2: u32,
        name as "FileName": UnicodeString,
        offset as "CurrentByteOffset": u64,
        waiters as "Waiters": u32,
        busy as "Busy": u32,
        last_lock as "LastLock": u64,
        lock as "Lock": DispatcherHeader,
        event as "Event": DispatcherHeader,
        completion as "CompletionContext": u64,
        irp_list_lock as "IrpListLock": u64,
        irp_list as "IrpList": [u64; 2],
        extension as "FileObjectExtension": u64,
    }
    /// `IO_SECURITY_CONTEXT`.
    IoSecurityContext as "_IO_SECURITY_CONTEXT" {
        security_qos as "SecurityQos": u64,
        access_state as "AccessState": u64,
        desired_access as "DesiredAccess": u32,
        full_create_options as "FullCreateOptions": u32,
    }
    /// `ACCESS_STATE`.
    AccessState as "_ACCESS_STATE" {
        operation as "OperationID": u64,
        security_evaluated as "SecurityEvaluated": u8,
        generate_audit as "GenerateAudit": u8,
        generate_on_close as "GenerateOnClose": u8,
        privileges_allocated as "PrivilegesAllocated": u8,
        flags as "Flags": u32,
        remaining_desired as "RemainingDesiredAccess": u32,
        previously_granted as "PreviouslyGrantedAccess": u32,
        original_desired as "OriginalDesiredAccess": u32,
        reserved: u32,
        subject as "SubjectSecurityContext": [u64; 4],
        descriptor as "SecurityDescriptor": u64,
        aux_data as "AuxData": u64,
        privileges as "Privileges": [u32; 11],
        audit_privileges as "AuditPrivileges": u8,
        reserved_1: [u8; 3],
        object_name as "ObjectName": UnicodeString,
        object_type_name as "ObjectTypeName": UnicodeString,
    }
    /// `IRP`. Its stack locations follow it.
    Irp as "_IRP" {
        kind as "Type": i16,
        size as "Size": u16,
        reserved: u32,
        mdl as "MdlAddress": u64,
        flags as "Flags": u32,
        reserved_1: u32,
        system_buffer as "AssociatedIrp": u64,
        thread_list as "ThreadListEntry": [u64; 2],
        status_block as "IoStatus": IoStatusBlock,
        requestor_mode as "RequestorMode": u8,
        pending_returned as "PendingReturned": u8,
        stack_count as "StackCount": u8,
        current_location as "CurrentLocation": u8,
        cancel as "Cancel": u8,
        cancel_irql as "CancelIrql": u8,
        apc_environment as "ApcEnvironment": u8,
        allocation_flags as "AllocationFlags": u8,
        user_status as "UserIosb": u64,
        user_event as "UserEvent": u64,
        overlay as "Overlay": [u64; 2],
        cancel_routine as "CancelRoutine": u64,
        user_buffer as "UserBuffer": u64,
        /// Includes the thread, the current stack location and the file.
        tail as "Tail": [u64; 11],
    }
    /// `IO_STACK_LOCATION`.
    IrpStack as "_IO_STACK_LOCATION" {
        major as "MajorFunction": u8,
        minor as "MinorFunction": u8,
        flags as "Flags": u8,
        control as "Control": u8,
        reserved: u32,
        parameters as "Parameters": [u64; 4],
        device as "DeviceObject": u64,
        file as "FileObject": u64,
        completion_routine as "CompletionRoutine": u64,
        context as "Context": u64,
    }
    ClientId as "_CLIENT_ID" {
        process as "UniqueProcess": u64,
        thread as "UniqueThread": u64,
    }
    TimeFields as "_TIME_FIELDS" {
        year as "Year": i16,
        month as "Month": i16,
        day as "Day": i16,
        hour as "Hour": i16,
        minute as "Minute": i16,
        second as "Second": i16,
        milliseconds as "Milliseconds": i16,
        weekday as "Weekday": i16,
    }
    /// `DRIVER_OBJECT`. Only the fields that the framework and the stub access have names.
    DriverObject as "_DRIVER_OBJECT" {
        kind as "Type": i16,
        size as "Size": i16,
        reserved: u32,
        device_object as "DeviceObject": u64,
        flags as "Flags": u32,
        reserved_1: u32,
        driver_start as "DriverStart": u64,
        driver_size as "DriverSize": u32,
        reserved_2: u32,
        driver_section as "DriverSection": u64,
        driver_extension as "DriverExtension": u64,
        driver_name as "DriverName": UnicodeString,
        hardware_database as "HardwareDatabase": u64,
        fast_io_dispatch as "FastIoDispatch": u64,
        driver_init as "DriverInit": u64,
        driver_start_io as "DriverStartIo": u64,
        driver_unload as "DriverUnload": u64,
        major_function as "MajorFunction": [u64; 28],
    }
    /// `DRIVER_EXTENSION`.
    DriverExtension as "_DRIVER_EXTENSION" {
        driver_object as "DriverObject": u64,
        add_device as "AddDevice": u64,
        count as "Count": u32,
        reserved: u32,
        service_key_name as "ServiceKeyName": UnicodeString,
    }
    /// The information about a driver that its stub passes to the framework's loader. Newer stubs
    /// append fields (see [`BindInfo2`]).
    BindInfo as "_WDF_BIND_INFO" {
        size as "Size": u32,
        reserved: u32,
        component as "Component": u64,
        version as "Version": [u32; 3],
        function_count as "FuncCount": u32,
        function_table as "FuncTable": u64,
        module as "Module": u64,
    }
    /// The longer form of [`BindInfo`].
    BindInfo2 as "_WDF_BIND_INFO2" {
        v1 as "V1": BindInfo,
        minimum_version_required as "MinimumVersionRequired": u64,
        client_version_higher as "ClientVersionHigherThanFramework": u64,
        function_count_pointer as "FuncCountPtr": u64,
        structure_count_pointer as "StructCountPtr": u64,
        structure_table as "StructTable": u64,
    }
    /// The public globals that the framework gives to one driver.
    DriverGlobals as "_WDF_DRIVER_GLOBALS" {
        driver as "Driver": u64,
        flags as "DriverFlags": u32,
        tag as "DriverTag": u32,
        name as "DriverName": [u8; 32],
        displace_driver_unload as "DisplaceDriverUnload": u8,
        reserved: [u8; 7],
    }
    DriverConfig as "_WDF_DRIVER_CONFIG" {
        size as "Size": u32,
        reserved: u32,
        device_add as "EvtDriverDeviceAdd": u64,
        unload as "EvtDriverUnload": u64,
        init_flags as "DriverInitFlags": u32,
        pool_tag as "DriverPoolTag": u32,
    }
    ObjectAttributes as "_WDF_OBJECT_ATTRIBUTES" {
        size as "Size": u32,
        reserved: u32,
        cleanup as "EvtCleanupCallback": u64,
        destroy as "EvtDestroyCallback": u64,
        execution_level as "ExecutionLevel": u32,
        synchronization_scope as "SynchronizationScope": u32,
        parent as "ParentObject": u64,
        context_size_override as "ContextSizeOverride": u64,
        context_type as "ContextTypeInfo": u64,
    }
    ContextTypeInfo as "_WDF_OBJECT_CONTEXT_TYPE_INFO" {
        size as "Size": u32,
        reserved: u32,
        name as "ContextName": u64,
        context_size as "ContextSize": u64,
        unique_type as "UniqueType": u64,
        get_unique_type as "EvtDriverGetUniqueContextType": u64,
    }
    PnpPowerCallbacks as "_WDF_PNPPOWER_EVENT_CALLBACKS" {
        size as "Size": u32,
        reserved: u32,
        d0_entry as "EvtDeviceD0Entry": u64,
        d0_entry_post_interrupts as "EvtDeviceD0EntryPostInterruptsEnabled": u64,
        d0_exit as "EvtDeviceD0Exit": u64,
        d0_exit_pre_interrupts as "EvtDeviceD0ExitPreInterruptsDisabled": u64,
        prepare_hardware as "EvtDevicePrepareHardware": u64,
        release_hardware as "EvtDeviceReleaseHardware": u64,
        self_managed_io_cleanup as "EvtDeviceSelfManagedIoCleanup": u64,
        self_managed_io_flush as "EvtDeviceSelfManagedIoFlush": u64,
        self_managed_io_init as "EvtDeviceSelfManagedIoInit": u64,
        self_managed_io_suspend as "EvtDeviceSelfManagedIoSuspend": u64,
        self_managed_io_restart as "EvtDeviceSelfManagedIoRestart": u64,
        surprise_removal as "EvtDeviceSurpriseRemoval": u64,
        query_remove as "EvtDeviceQueryRemove": u64,
        query_stop as "EvtDeviceQueryStop": u64,
        usage_notification as "EvtDeviceUsageNotification": u64,
        relations_query as "EvtDeviceRelationsQuery": u64,
        usage_notification_ex as "EvtDeviceUsageNotificationEx": u64,
    }
    FileObjectConfig as "_WDF_FILEOBJECT_CONFIG" {
        size as "Size": u32,
        reserved: u32,
        create as "EvtDeviceFileCreate": u64,
        close as "EvtFileClose": u64,
        cleanup as "EvtFileCleanup": u64,
        auto_forward as "AutoForwardCleanupClose": u32,
        class as "FileObjectClass": u32,
    }
    IoQueueConfig as "_WDF_IO_QUEUE_CONFIG" {
        size as "Size": u32,
        dispatch_type as "DispatchType": u32,
        power_managed as "PowerManaged": u32,
        allow_zero_length as "AllowZeroLengthRequests": u8,
        default_queue as "DefaultQueue": u8,
        reserved: u16,
        io_default as "EvtIoDefault": u64,
        io_read as "EvtIoRead": u64,
        io_write as "EvtIoWrite": u64,
        io_device_control as "EvtIoDeviceControl": u64,
        io_internal_device_control as "EvtIoInternalDeviceControl": u64,
        io_stop as "EvtIoStop": u64,
        io_resume as "EvtIoResume": u64,
        io_canceled_on_queue as "EvtIoCanceledOnQueue": u64,
        presented_requests as "Settings": u32,
        reserved_1: u32,
        driver as "Driver": u64,
    }
    TimerConfig as "_WDF_TIMER_CONFIG" {
        size as "Size": u32,
        reserved: u32,
        function as "EvtTimerFunc": u64,
        period as "Period": u32,
        automatic_serialization as "AutomaticSerialization": u8,
        reserved_1: [u8; 3],
        tolerable_delay as "TolerableDelay": u32,
        reserved_2: u32,
        high_resolution as "UseHighResolutionTimer": u8,
        reserved_3: [u8; 7],
    }
    DpcConfig as "_WDF_DPC_CONFIG" {
        size as "Size": u32,
        reserved: u32,
        function as "EvtDpcFunc": u64,
        automatic_serialization as "AutomaticSerialization": u8,
        reserved_1: [u8; 7],
    }
    WorkItemConfig as "_WDF_WORKITEM_CONFIG" {
        size as "Size": u32,
        reserved: u32,
        function as "EvtWorkItemFunc": u64,
        automatic_serialization as "AutomaticSerialization": u8,
        reserved_1: [u8; 7],
    }
    /// Declares two words of the union `Parameters`: the members that the supported request types
    /// use.
    RequestParameters as "_WDF_REQUEST_PARAMETERS" {
        size as "Size": u16,
        minor_function as "MinorFunction": u8,
        reserved: u8,
        kind as "Type": u32,
        parameters as "Parameters": [u64; 4],
    }
    EventDescriptor as "_EVENT_DESCRIPTOR" {
        id as "Id": u16,
        version as "Version": u8,
        channel as "Channel": u8,
        level as "Level": u8,
        opcode as "Opcode": u8,
        task as "Task": u16,
        keyword as "Keyword": u64,
    }
    /// The last field combines Type, Reserved1 and Reserved2, which are four bytes long.
    EventDataDescriptor as "_EVENT_DATA_DESCRIPTOR" {
        pointer as "Ptr": u64,
        size as "Size": u32,
        kind: u8,
        reserved_1: u8,
        reserved_2: u16,
    }
    EventFilterDescriptor as "_EVENT_FILTER_DESCRIPTOR" {
        pointer as "Ptr": u64,
        size as "Size": u32,
        kind as "Type": u32,
    }
}

/// The header of each schematized filter in a notification's chain
/// (evntprov.h, `EVENT_FILTER_HEADER`).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct EventFilterHeader {
    /// The filter's id.
    pub id: u16,
    /// The filter's version.
    pub version: u8,
    /// Zero.
    pub reserved: [u8; 5],
    /// The bit of the session that set the filter.
    pub instance_id: u64,
    /// The size of the header and data in bytes.
    pub size: u32,
    /// The offset from this header to the next; 0 in the last header.
    pub next_offset: u32,
}

const _: () = assert!(size_of::<EventFilterHeader>() == 24);

impl FileObject {
    /// `IO_TYPE_FILE`.
    pub const TYPE: i16 = 5;
    /// The size in bytes.
    pub const SIZE: i16 = 0xD8;
}

const _: () = assert!(size_of::<FileObject>() == FileObject::SIZE as usize);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Returns the size of a type in the header data, if the data contain the type.
    fn size_of_type(types: &Value, kind: &str) -> Option<u64> {
        if kind.starts_with("*mut ") || kind.starts_with("*const ") {
            return Some(8);
        }
        if let Some(array) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
            let (element, length) = array.rsplit_once("; ")?;
            return Some(size_of_type(types, element)? * length.parse::<u64>().ok()?);
        }
        let size = match kind.trim_start_matches("c_") {
            "char" | "schar" | "uchar" | "u8" | "i8" => 1,
            "short" | "ushort" | "u16" | "i16" => 2,
            "int" | "uint" | "long" | "ulong" | "u32" | "i32" | "f32" => 4,
            "longlong" | "ulonglong" | "u64" | "i64" | "f64" | "usize" => 8,
            enumeration if enumeration.ends_with("::Type") => 4,
            name if !types["fnptr"][name].is_null() => 8,
            name => {
                let combined = ["struct", "union"].map(|group| types[group][name]["size"].as_u64());
                return match combined {
                    [Some(size), _] | [_, Some(size)] => Some(size),
                    _ => size_of_type(types, types["alias"][name][0].as_str()?),
                };
            }
        };
        Some(size)
    }

    /// Compares a structure of this module with the headers' structure.
    fn compare(ours: &Layout, theirs: &Value, fields: &[(&str, u64, Option<u64>)]) {
        assert_eq!(theirs["size"], ours.size, "size of {}", ours.name);
        for (name, offset, size) in ours.fields {
            let (_, their_offset, their_size) = fields
                .iter()
                .find(|field| field.0 == *name)
                .unwrap_or_else(|| panic!("{}.{name} is not in the data", ours.name));
            assert_eq!(*their_offset, *offset as u64, "offset of {}.{name}", ours.name);
            if let Some(their_size) = their_size {
                assert_eq!(*their_size, *size as u64, "size of {}.{name}", ours.name);
            }
        }
        let named = fields.iter().filter(|field| !field.0.starts_with("__bindgen")).count();
        assert_eq!(ours.fields.len(), named, "named fields of {}", ours.name);
    }

    #[test]
    fn layouts_are_those_of_the_headers() {
        let parse = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        let headers = parse(&etw_test_support::read_headers("types.json"));
        let loader = parse(&etw_test_support::read_data("abi/loader.json"));
        let mut sized = 0;
        let all = LAYOUTS
            .iter()
            .chain(crate::ground::framework_abi::LAYOUTS)
            .chain(crate::ground::executive_abi::LAYOUTS)
            .chain(crate::ground::pnp_abi::LAYOUTS);
        for ours in all {
            let theirs = &headers["struct"][ours.name];
            if theirs.is_null() {
                let theirs = &loader["types"][ours.name];
                let fields = theirs["fields"].as_array().expect("fields").iter();
                let fields: Vec<_> = fields
                    .map(|field| {
                        (
                            field["name"].as_str().unwrap_or("_"),
                            field["offset"].as_u64().expect("an offset"),
                            field["size"].as_u64(),
                        )
                    })
                    .collect();
                compare(ours, theirs, &fields);
                continue;
            }
            let fields = theirs["fields"].as_array().expect("fields").iter();
            let fields: Vec<_> = fields
                .map(|field| {
                    let size = size_of_type(&headers, field[1].as_str().expect("a type"));
                    sized += usize::from(size.is_some());
                    (
                        field[0].as_str().expect("a name"),
                        field[2].as_u64().expect("an offset"),
                        size,
                    )
                })
                .collect();
            compare(ours, theirs, &fields);
        }
        assert!(sized > 100, "{sized} fields whose size is compared");
    }
}

/// The types of objects that threads can wait for, as stored in the header's first byte.
pub mod dispatcher_kind {
    pub const NOTIFICATION_EVENT: u8 = 0;
    pub const SYNCHRONIZATION_EVENT: u8 = 1;
    pub const MUTANT: u8 = 2;
    pub const PROCESS: u8 = 3;
    pub const QUEUE: u8 = 4;
    pub const SEMAPHORE: u8 = 5;
    pub const THREAD: u8 = 6;
    pub const NOTIFICATION_TIMER: u8 = 8;
    pub const SYNCHRONIZATION_TIMER: u8 = 9;
}

impl DispatcherHeader {
    /// Returns the header of a new object at the address `object`, with an empty list of waiters.
    pub fn new(object: u64, kind: u8, size: usize, state: i32) -> Self {
        /// The offset of the list of waiters.
        const WAITERS: u64 = 8;
        Self {
            kind,
            reserved: 0,
            units: u8::try_from(size / 4).unwrap_or(0),
            reserved_1: 0,
            signal_state: state,
            waiters: [object.wrapping_add(WAITERS); 2],
        }
    }
}
