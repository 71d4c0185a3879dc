//! The structures for queues, tables and notifications, in addition to [`abi`](super::abi).

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::abi::{DispatcherHeader, abi};

abi! {
    /// A queue from which threads take entries.
    KernelQueue as "_KQUEUE" {
        header as "Header": DispatcherHeader,
        entries as "EntryListHead": [u64; 2],
        current as "CurrentCount": u32,
        maximum as "MaximumCount": u32,
        threads as "ThreadListHead": [u64; 2],
    }
    /// An entry of the system's event log. Dump data and strings follow it.
    ErrorLogPacket as "_IO_ERROR_LOG_PACKET" {
        major as "MajorFunctionCode": u8,
        retry_count as "RetryCount": u8,
        dump_size as "DumpDataSize": u16,
        strings as "NumberOfStrings": u16,
        string_offset as "StringOffset": u16,
        category as "EventCategory": u16,
        reserved: u16,
        error_code as "ErrorCode": u32,
        unique_value as "UniqueErrorValue": u32,
        final_status as "FinalStatus": u32,
        sequence as "SequenceNumber": u32,
        control_code as "IoControlCode": u32,
        device_offset as "DeviceOffset": i64,
        dump as "DumpData": u32,
        reserved_1: u32,
    }
    /// The opens of a file or device, by access and sharing mode.
    ShareAccess as "_SHARE_ACCESS" {
        opens as "OpenCount": u32,
        readers as "Readers": u32,
        writers as "Writers": u32,
        deleters as "Deleters": u32,
        share_read as "SharedRead": u32,
        share_write as "SharedWrite": u32,
        share_delete as "SharedDelete": u32,
    }
    /// A queue of requests for a device.
    DeviceQueue as "_KDEVICE_QUEUE" {
        /// `DeviceQueueObject`.
        kind as "Type": i16,
        size as "Size": i16,
        reserved: u32,
        list as "DeviceListHead": [u64; 2],
        lock as "Lock": u64,
        busy: u8,
        hint: [u8; 7],
    }
    /// An entry of a [`DeviceQueue`].
    DeviceQueueEntry as "_KDEVICE_QUEUE_ENTRY" {
        list as "DeviceListEntry": [u64; 2],
        key as "SortKey": u32,
        inserted as "Inserted": u8,
        reserved: [u8; 3],
    }
    /// The links of a height-balanced tree.
    BalancedLinks as "_RTL_BALANCED_LINKS" {
        parent as "Parent": u64,
        left as "LeftChild": u64,
        right as "RightChild": u64,
        /// The height of the right subtree minus the height of the left subtree.
        balance as "Balance": i8,
        reserved as "Reserved": [u8; 3],
        reserved_1: u32,
    }
    /// A table implemented as a height-balanced tree.
    AvlTable as "_RTL_AVL_TABLE" {
        /// The sentinel above the root, which is its right child.
        root as "BalancedRoot": BalancedLinks,
        ordered as "OrderedPointer": u64,
        which as "WhichOrderedElement": u32,
        count as "NumberGenericTableElements": u32,
        depth as "DepthOfTree": u32,
        reserved: u32,
        restart as "RestartKey": u64,
        deletions as "DeleteCount": u32,
        reserved_1: u32,
        compare as "CompareRoutine": u64,
        allocate as "AllocateRoutine": u64,
        free as "FreeRoutine": u64,
        context as "TableContext": u64,
    }
    /// The links of a splay tree.
    SplayLinks as "_RTL_SPLAY_LINKS" {
        /// The parent, or the node itself if it is the root.
        parent as "Parent": u64,
        left as "LeftChild": u64,
        right as "RightChild": u64,
    }
    /// A table implemented as a splay tree.
    SplayTable as "_RTL_GENERIC_TABLE" {
        root as "TableRoot": u64,
        insertions as "InsertOrderList": [u64; 2],
        ordered as "OrderedPointer": u64,
        which as "WhichOrderedElement": u32,
        count as "NumberGenericTableElements": u32,
        compare as "CompareRoutine": u64,
        allocate as "AllocateRoutine": u64,
        free as "FreeRoutine": u64,
        context as "TableContext": u64,
    }
    /// The data that `ProcessBasicInformation` returns about a process.
    ProcessBasicInformation as "_PROCESS_BASIC_INFORMATION" {
        exit_status as "ExitStatus": u32,
        reserved: u32,
        /// The process environment block. In the stand-in kernel, processes have none.
        environment as "PebBaseAddress": u64,
        affinity as "AffinityMask": u64,
        priority as "BasePriority": i32,
        reserved_1: u32,
        id as "UniqueProcessId": u64,
        parent as "InheritedFromUniqueProcessId": u64,
    }
    /// The basic information about an object.
    ObjectBasicInformation as "_PUBLIC_OBJECT_BASIC_INFORMATION" {
        attributes as "Attributes": u32,
        access as "GrantedAccess": u32,
        handles as "HandleCount": u32,
        pointers as "PointerCount": u32,
        /// Contains the size of the name's information at index 5, and the size of the type's
        /// information at index 6.
        reserved as "Reserved": [u32; 10],
    }
    /// The information about an object's type.
    ObjectTypeInformation as "__PUBLIC_OBJECT_TYPE_INFORMATION" {
        name as "TypeName": super::abi::UnicodeString,
        reserved as "Reserved": [u32; 22],
    }
    /// A registration for operations on handles.
    ObjectCallbacks as "_OB_CALLBACK_REGISTRATION" {
        version as "Version": u16,
        count as "OperationRegistrationCount": u16,
        reserved: u32,
        altitude as "Altitude": super::abi::UnicodeString,
        context as "RegistrationContext": u64,
        operations as "OperationRegistration": u64,
    }
    /// The routines for operations on handles of one object type.
    ObjectOperation as "_OB_OPERATION_REGISTRATION" {
        /// The exported variable that points to the type.
        kind as "ObjectType": u64,
        operations as "Operations": u32,
        reserved: u32,
        before as "PreOperation": u64,
        after as "PostOperation": u64,
    }
    /// A routine that is called when the system bugchecks.
    BugCheckRecord as "_KBUGCHECK_CALLBACK_RECORD" {
        entry as "Entry": [u64; 2],
        routine as "CallbackRoutine": u64,
        buffer as "Buffer": u64,
        length as "Length": u32,
        reserved: u32,
        component as "Component": u64,
        checksum as "Checksum": u64,
        state as "State": u8,
        reserved_1: [u8; 7],
    }
    /// The information that a notification routine receives about a new process.
    CreateNotifyInfo as "_PS_CREATE_NOTIFY_INFO" {
        size as "Size": u64,
        flags: u32,
        reserved: u32,
        parent as "ParentProcessId": u64,
        creator as "CreatingThreadId": super::abi::ClientId,
        file as "FileObject": u64,
        image as "ImageFileName": u64,
        command_line as "CommandLine": u64,
        status as "CreationStatus": u32,
        reserved_1: u32,
    }
    /// The information that a notification routine receives about a loaded image.
    ImageInfo as "_IMAGE_INFO" {
        properties: u32,
        reserved: u32,
        base as "ImageBase": u64,
        selector as "ImageSelector": u32,
        reserved_1: u32,
        size as "ImageSize": u64,
        section as "ImageSectionNumber": u32,
        reserved_2: u32,
    }
    /// The saved state that a thread needs to detach from a process.
    ApcState as "_KAPC_STATE" {
        lists as "ApcListHead": [u64; 4],
        process as "Process": u64,
        in_progress: u8,
        kernel_pending as "KernelApcPending": u8,
        user_pending as "UserApcPending": u8,
        reserved: [u8; 5],
    }
    /// An idle state of a component of a device.
    PowerIdleState as "_PO_FX_COMPONENT_IDLE_STATE" {
        latency as "TransitionLatency": u64,
        residency as "ResidencyRequirement": u64,
        power as "NominalPower": u32,
        reserved: u32,
    }
    /// A component of a device, version 1.
    PowerComponentV1 as "_PO_FX_COMPONENT_V1" {
        id as "Id": [u32; 4],
        state_count as "IdleStateCount": u32,
        deepest_wakeable as "DeepestWakeableIdleState": u32,
        states as "IdleStates": u64,
    }
    /// A component of a device, version 2.
    PowerComponentV2 as "_PO_FX_COMPONENT_V2" {
        id as "Id": [u32; 4],
        flags as "Flags": u64,
        deepest_wakeable as "DeepestWakeableIdleState": u32,
        state_count as "IdleStateCount": u32,
        states as "IdleStates": u64,
        provider_count as "ProviderCount": u32,
        reserved: u32,
        providers as "Providers": u64,
    }
    /// A device that its driver registers with the power management framework, version 1.
    PowerDeviceV1 as "_PO_FX_DEVICE_V1" {
        version as "Version": u32,
        component_count as "ComponentCount": u32,
        active as "ComponentActiveConditionCallback": u64,
        idle as "ComponentIdleConditionCallback": u64,
        state as "ComponentIdleStateCallback": u64,
        power_required as "DevicePowerRequiredCallback": u64,
        power_not_required as "DevicePowerNotRequiredCallback": u64,
        power_control as "PowerControlCallback": u64,
        context as "DeviceContext": u64,
        components as "Components": PowerComponentV1,
    }
    /// A device that its driver registers with the power management framework, version 2.
    PowerDeviceV2 as "_PO_FX_DEVICE_V2" {
        version as "Version": u32,
        reserved: u32,
        flags as "Flags": u64,
        active as "ComponentActiveConditionCallback": u64,
        idle as "ComponentIdleConditionCallback": u64,
        state as "ComponentIdleStateCallback": u64,
        power_required as "DevicePowerRequiredCallback": u64,
        power_not_required as "DevicePowerNotRequiredCallback": u64,
        power_control as "PowerControlCallback": u64,
        context as "DeviceContext": u64,
        component_count as "ComponentCount": u32,
        reserved_1: u32,
        components as "Components": PowerComponentV2,
    }
}
