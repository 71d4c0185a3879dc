//! The structures that only the framework and its drivers share, in the WDK headers' layout for
//! x64. Pointers and handles are plain addresses.

#![expect(clippy::struct_field_names, reason = "the headers use these names")]

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::abi::{UnicodeString, abi};

abi! {
    DeviceObject as "_DEVICE_OBJECT" {
        kind as "Type": u16,
        size as "Size": u16,
        reference_count as "ReferenceCount": u32,
        driver_object as "DriverObject": u64,
        next_device as "NextDevice": u64,
        attached_device as "AttachedDevice": u64,
        current_irp as "CurrentIrp": u64,
        timer as "Timer": u64,
        flags as "Flags": u32,
        characteristics as "Characteristics": u32,
        vpb as "Vpb": u64,
        device_extension as "DeviceExtension": u64,
        device_type as "DeviceType": u32,
        stack_size as "StackSize": u8,
        padding_0: [u8; 3],
        queue as "Queue": [u64; 9],
        alignment_requirement as "AlignmentRequirement": u32,
        padding_1: u32,
        device_queue as "DeviceQueue": [u64; 5],
        dpc as "Dpc": [u64; 8],
        active_thread_count as "ActiveThreadCount": u32,
        padding_2: u32,
        security_descriptor as "SecurityDescriptor": u64,
        device_lock as "DeviceLock": [u64; 3],
        sector_size as "SectorSize": u16,
        spare1 as "Spare1": u16,
        padding_3: u32,
        device_object_extension as "DeviceObjectExtension": u64,
        reserved as "Reserved": u64,
        padding_4: u64,
    }
    DeviceObjectExtension as "_DEVOBJ_EXTENSION" {
        kind as "Type": u16,
        size as "Size": u16,
        padding_0: u32,
        device_object as "DeviceObject": u64,
        power_flags as "PowerFlags": u32,
        padding_1: u32,
        dope as "Dope": u64,
        extension_flags as "ExtensionFlags": u32,
        padding_2: u32,
        device_node as "DeviceNode": u64,
        attached_to as "AttachedTo": u64,
        start_io_count as "StartIoCount": u32,
        start_io_key as "StartIoKey": u32,
        start_io_flags as "StartIoFlags": u32,
        padding_3: u32,
        vpb as "Vpb": u64,
        dependency_node as "DependencyNode": u64,
        interrupt_context as "InterruptContext": u64,
        verifier_context as "VerifierContext": u64,
    }
    StackLocation as "_IO_STACK_LOCATION" {
        major_function as "MajorFunction": u8,
        minor_function as "MinorFunction": u8,
        flags as "Flags": u8,
        control as "Control": u8,
        padding_0: u32,
        parameters as "Parameters": [u64; 4],
        device_object as "DeviceObject": u64,
        file_object as "FileObject": u64,
        completion_routine as "CompletionRoutine": u64,
        context as "Context": u64,
    }
    Mdl as "_MDL" {
        next as "Next": u64,
        size as "Size": u16,
        mdl_flags as "MdlFlags": u16,
        padding_0: u32,
        process as "Process": u64,
        mapped_system_va as "MappedSystemVa": u64,
        start_va as "StartVa": u64,
        byte_count as "ByteCount": u32,
        byte_offset as "ByteOffset": u32,
    }
    DmaEnablerConfig as "_WDF_DMA_ENABLER_CONFIG" {
        size as "Size": u32,
        profile as "Profile": u32,
        maximum_length as "MaximumLength": u64,
        fill as "EvtDmaEnablerFill": u64,
        flush as "EvtDmaEnablerFlush": u64,
        disable as "EvtDmaEnablerDisable": u64,
        enable as "EvtDmaEnablerEnable": u64,
        self_managed_io_start as "EvtDmaEnablerSelfManagedIoStart": u64,
        self_managed_io_stop as "EvtDmaEnablerSelfManagedIoStop": u64,
        address_width_override as "AddressWidthOverride": u32,
        wdm_dma_version_override as "WdmDmaVersionOverride": u32,
        flags as "Flags": u32,
        padding_0: u32,
    }
    DmaSystemProfileConfig as "_WDF_DMA_SYSTEM_PROFILE_CONFIG" {
        size as "Size": u32,
        demand_mode as "DemandMode": u8,
        looped_transfer as "LoopedTransfer": u8,
        padding_0: u16,
        dma_width as "DmaWidth": u32,
        padding_1: u32,
        device_address as "DeviceAddress": u64,
        dma_descriptor as "DmaDescriptor": u64,
    }
    CommonBufferConfig as "_WDF_COMMON_BUFFER_CONFIG" {
        size as "Size": u32,
        alignment_requirement as "AlignmentRequirement": u32,
    }
    ScatterGatherList as "_SCATTER_GATHER_LIST" {
        number_of_elements as "NumberOfElements": u32,
        padding_0: u32,
        reserved as "Reserved": u64,
        elements as "Elements": [u64; 0],
    }
    ScatterGatherElement as "_SCATTER_GATHER_ELEMENT" {
        address as "Address": u64,
        length as "Length": u32,
        padding_0: u32,
        reserved as "Reserved": u64,
    }
    RemoveLockOptions as "_WDF_REMOVE_LOCK_OPTIONS" {
        size as "Size": u32,
        flags as "Flags": u32,
    }
    UsbDeviceCreateConfig as "_WDF_USB_DEVICE_CREATE_CONFIG" {
        size as "Size": u32,
        client_contract_version as "USBDClientContractVersion": u32,
    }
    SendOptions as "_WDF_REQUEST_SEND_OPTIONS" {
        size as "Size": u32,
        flags as "Flags": u32,
        timeout as "Timeout": u64,
    }
    CompletionParameters as "_WDF_REQUEST_COMPLETION_PARAMS" {
        size as "Size": u32,
        kind as "Type": u32,
        io_status as "IoStatus": [u64; 2],
        parameters as "Parameters": [u64; 6],
    }
    ReuseParameters as "_WDF_REQUEST_REUSE_PARAMS" {
        size as "Size": u32,
        flags as "Flags": u32,
        status as "Status": u32,
        padding_0: u32,
        new_irp as "NewIrp": u64,
    }
    MemoryDescriptor as "_WDF_MEMORY_DESCRIPTOR" {
        kind as "Type": u32,
        padding_0: u32,
        value as "u": [u64; 2],
    }
    MemoryOffset as "_WDFMEMORY_OFFSET" {
        buffer_offset as "BufferOffset": u64,
        buffer_length as "BufferLength": u64,
    }
    TargetOpenParameters as "_WDF_IO_TARGET_OPEN_PARAMS" {
        size as "Size": u32,
        kind as "Type": u32,
        query_remove as "EvtIoTargetQueryRemove": u64,
        remove_canceled as "EvtIoTargetRemoveCanceled": u64,
        remove_complete as "EvtIoTargetRemoveComplete": u64,
        target_device_object as "TargetDeviceObject": u64,
        target_file_object as "TargetFileObject": u64,
        target_device_name as "TargetDeviceName": UnicodeString,
        desired_access as "DesiredAccess": u32,
        share_access as "ShareAccess": u32,
        file_attributes as "FileAttributes": u32,
        create_disposition as "CreateDisposition": u32,
        create_options as "CreateOptions": u32,
        padding_0: u32,
        ea_buffer as "EaBuffer": u64,
        ea_buffer_length as "EaBufferLength": u32,
        padding_1: u32,
        allocation_size as "AllocationSize": u64,
        file_information as "FileInformation": u32,
        padding_2: u32,
        file_name as "FileName": UnicodeString,
    }
    PnpCapabilities as "_WDF_DEVICE_PNP_CAPABILITIES" {
        size as "Size": u32,
        lock_supported as "LockSupported": u32,
        eject_supported as "EjectSupported": u32,
        removable as "Removable": u32,
        dock_device as "DockDevice": u32,
        unique_id as "UniqueID": u32,
        silent_install as "SilentInstall": u32,
        surprise_removal_ok as "SurpriseRemovalOK": u32,
        hardware_disabled as "HardwareDisabled": u32,
        no_display_in_ui as "NoDisplayInUI": u32,
        address as "Address": u32,
        ui_number as "UINumber": u32,
    }
    PowerCapabilities as "_WDF_DEVICE_POWER_CAPABILITIES" {
        size as "Size": u32,
        device_d1 as "DeviceD1": u32,
        device_d2 as "DeviceD2": u32,
        wake_from_d0 as "WakeFromD0": u32,
        wake_from_d1 as "WakeFromD1": u32,
        wake_from_d2 as "WakeFromD2": u32,
        wake_from_d3 as "WakeFromD3": u32,
        device_state as "DeviceState": [u32; 7],
        device_wake as "DeviceWake": u32,
        system_wake as "SystemWake": u32,
        d1_latency as "D1Latency": u32,
        d2_latency as "D2Latency": u32,
        d3_latency as "D3Latency": u32,
        ideal_dx_state_for_sx as "IdealDxStateForSx": u32,
    }
    DeviceState as "_WDF_DEVICE_STATE" {
        size as "Size": u32,
        disabled as "Disabled": u32,
        dont_display_in_ui as "DontDisplayInUI": u32,
        failed as "Failed": u32,
        not_disableable as "NotDisableable": u32,
        removed as "Removed": u32,
        resources_changed as "ResourcesChanged": u32,
        assigned_to_guest as "AssignedToGuest": u32,
    }
    IdleSettings as "_WDF_DEVICE_POWER_POLICY_IDLE_SETTINGS" {
        size as "Size": u32,
        idle_caps as "IdleCaps": u32,
        dx_state as "DxState": u32,
        idle_timeout as "IdleTimeout": u32,
        user_control_of_idle_settings as "UserControlOfIdleSettings": u32,
        enabled as "Enabled": u32,
        power_up_idle_device_on_system_wake as "PowerUpIdleDeviceOnSystemWake": u32,
        idle_timeout_type as "IdleTimeoutType": u32,
        exclude_d3_cold as "ExcludeD3Cold": u32,
    }
    WakeSettings as "_WDF_DEVICE_POWER_POLICY_WAKE_SETTINGS" {
        size as "Size": u32,
        dx_state as "DxState": u32,
        user_control_of_wake_settings as "UserControlOfWakeSettings": u32,
        enabled as "Enabled": u32,
        arm_for_wake_if_children_are_armed_for_wake as "ArmForWakeIfChildrenAreArmedForWake": u8,
        indicate_child_wake_on_parent_wake as "IndicateChildWakeOnParentWake": u8,
        padding_0: u16,
    }
    PowerPolicyCallbacks as "_WDF_POWER_POLICY_EVENT_CALLBACKS" {
        size as "Size": u32,
        padding_0: u32,
        arm_wake_from_s0 as "EvtDeviceArmWakeFromS0": u64,
        disarm_wake_from_s0 as "EvtDeviceDisarmWakeFromS0": u64,
        wake_from_s0_triggered as "EvtDeviceWakeFromS0Triggered": u64,
        arm_wake_from_sx as "EvtDeviceArmWakeFromSx": u64,
        disarm_wake_from_sx as "EvtDeviceDisarmWakeFromSx": u64,
        wake_from_sx_triggered as "EvtDeviceWakeFromSxTriggered": u64,
        arm_wake_from_sx_with_reason as "EvtDeviceArmWakeFromSxWithReason": u64,
    }
    QueryInterfaceConfig as "_WDF_QUERY_INTERFACE_CONFIG" {
        size as "Size": u32,
        padding_0: u32,
        interface as "Interface": u64,
        interface_type as "InterfaceType": u64,
        send_query_to_parent_stack as "SendQueryToParentStack": u8,
        padding_1: [u8; 7],
        process_query_interface_request as "EvtDeviceProcessQueryInterfaceRequest": u64,
        import_interface as "ImportInterface": u8,
        padding_2: [u8; 7],
    }
    Interface as "_INTERFACE" {
        size as "Size": u16,
        version as "Version": u16,
        padding_0: u32,
        context as "Context": u64,
        interface_reference as "InterfaceReference": u64,
        interface_dereference as "InterfaceDereference": u64,
    }
    FdoCallbacks as "_WDF_FDO_EVENT_CALLBACKS" {
        size as "Size": u32,
        padding_0: u32,
        filter_add_resource_requirements as "EvtDeviceFilterAddResourceRequirements": u64,
        filter_remove_resource_requirements as "EvtDeviceFilterRemoveResourceRequirements": u64,
        remove_added_resources as "EvtDeviceRemoveAddedResources": u64,
    }
    VersionAvailableParameters as "_WDF_DRIVER_VERSION_AVAILABLE_PARAMS" {
        size as "Size": u32,
        major_version as "MajorVersion": u32,
        minor_version as "MinorVersion": u32,
    }
    BusInformation as "_PNP_BUS_INFORMATION" {
        bus_type_guid as "BusTypeGuid": [u32; 4],
        legacy_bus_type as "LegacyBusType": u32,
        bus_number as "BusNumber": u32,
    }
    PowerFrameworkSettings as "_WDF_POWER_FRAMEWORK_SETTINGS" {
        size as "Size": u32,
        padding_0: u32,
        wdm_post_po_fx_register_device as "EvtDeviceWdmPostPoFxRegisterDevice": u64,
        wdm_pre_po_fx_unregister_device as "EvtDeviceWdmPrePoFxUnregisterDevice": u64,
        component as "Component": u64,
        component_active_condition_callback as "ComponentActiveConditionCallback": u64,
        component_idle_condition_callback as "ComponentIdleConditionCallback": u64,
        component_idle_state_callback as "ComponentIdleStateCallback": u64,
        power_control_callback as "PowerControlCallback": u64,
        po_fx_device_context as "PoFxDeviceContext": u64,
    }
    IoTypeConfig as "_WDF_IO_TYPE_CONFIG" {
        size as "Size": u32,
        read_write_io_type as "ReadWriteIoType": u32,
        device_control_io_type as "DeviceControlIoType": u32,
        direct_transfer_threshold as "DirectTransferThreshold": u32,
    }
    Irp as "_IRP" {
        kind as "Type": u16,
        size as "Size": u16,
        padding_0: u32,
        mdl_address as "MdlAddress": u64,
        flags as "Flags": u32,
        padding_1: u32,
        associated_irp as "AssociatedIrp": u64,
        thread_list_entry as "ThreadListEntry": [u64; 2],
        io_status as "IoStatus": [u64; 2],
        requestor_mode as "RequestorMode": u8,
        pending_returned as "PendingReturned": u8,
        stack_count as "StackCount": u8,
        current_location as "CurrentLocation": u8,
        cancel as "Cancel": u8,
        cancel_irql as "CancelIrql": u8,
        apc_environment as "ApcEnvironment": u8,
        allocation_flags as "AllocationFlags": u8,
        user_iosb as "UserIosb": u64,
        user_event as "UserEvent": u64,
        overlay as "Overlay": [u64; 2],
        cancel_routine as "CancelRoutine": u64,
        user_buffer as "UserBuffer": u64,
        tail as "Tail": [u64; 11],
    }
    ForwardOptions as "_WDF_REQUEST_FORWARD_OPTIONS" {
        size as "Size": u32,
        flags as "Flags": u32,
    }
    InterruptConfig as "_WDF_INTERRUPT_CONFIG" {
        size as "Size": u32,
        padding_0: u32,
        spin_lock as "SpinLock": u64,
        share_vector as "ShareVector": u32,
        floating_save as "FloatingSave": u8,
        automatic_serialization as "AutomaticSerialization": u8,
        padding_1: u16,
        isr as "EvtInterruptIsr": u64,
        dpc as "EvtInterruptDpc": u64,
        enable as "EvtInterruptEnable": u64,
        disable as "EvtInterruptDisable": u64,
        work_item as "EvtInterruptWorkItem": u64,
        interrupt_raw as "InterruptRaw": u64,
        interrupt_translated as "InterruptTranslated": u64,
        wait_lock as "WaitLock": u64,
        passive_handling as "PassiveHandling": u8,
        padding_2: [u8; 3],
        report_inactive_on_power_down as "ReportInactiveOnPowerDown": u32,
        can_wake_device as "CanWakeDevice": u8,
        padding_3: [u8; 7],
    }
    InterruptInfo as "_WDF_INTERRUPT_INFO" {
        size as "Size": u32,
        padding_0: u32,
        reserved1 as "Reserved1": u64,
        target_processor_set as "TargetProcessorSet": u64,
        reserved2 as "Reserved2": u32,
        message_number as "MessageNumber": u32,
        vector as "Vector": u32,
        irql as "Irql": u8,
        padding_1: [u8; 3],
        mode as "Mode": u32,
        polarity as "Polarity": u32,
        message_signaled as "MessageSignaled": u8,
        share_disposition as "ShareDisposition": u8,
        padding_2: [u8; 6],
        group as "Group": u16,
        padding_3: [u8; 6],
    }
    InterruptPolicy as "_WDF_INTERRUPT_EXTENDED_POLICY" {
        size as "Size": u32,
        policy as "Policy": u32,
        priority as "Priority": u32,
        padding_0: u32,
        target_processor_set_and_group as "TargetProcessorSetAndGroup": [u64; 2],
    }
    ChildListConfig as "_WDF_CHILD_LIST_CONFIG" {
        size as "Size": u32,
        identification_description_size as "IdentificationDescriptionSize": u32,
        address_description_size as "AddressDescriptionSize": u32,
        padding_0: u32,
        create_device as "EvtChildListCreateDevice": u64,
        scan_for_children as "EvtChildListScanForChildren": u64,
        identification_description_copy as "EvtChildListIdentificationDescriptionCopy": u64,
        identification_description_duplicate as "EvtChildListIdentificationDescriptionDuplicate": u64,
        identification_description_cleanup as "EvtChildListIdentificationDescriptionCleanup": u64,
        identification_description_compare as "EvtChildListIdentificationDescriptionCompare": u64,
        address_description_copy as "EvtChildListAddressDescriptionCopy": u64,
        address_description_duplicate as "EvtChildListAddressDescriptionDuplicate": u64,
        address_description_cleanup as "EvtChildListAddressDescriptionCleanup": u64,
        device_reenumerated as "EvtChildListDeviceReenumerated": u64,
    }
    ChildListIterator as "_WDF_CHILD_LIST_ITERATOR" {
        size as "Size": u32,
        flags as "Flags": u32,
        reserved as "Reserved": [u64; 4],
    }
    ChildRetrieveInfo as "_WDF_CHILD_RETRIEVE_INFO" {
        size as "Size": u32,
        padding_0: u32,
        identification_description as "IdentificationDescription": u64,
        address_description as "AddressDescription": u64,
        status as "Status": u32,
        padding_1: u32,
        identification_description_compare as "EvtChildListIdentificationDescriptionCompare": u64,
    }
    PdoCallbacks as "_WDF_PDO_EVENT_CALLBACKS" {
        size as "Size": u32,
        padding_0: u32,
        resources_query as "EvtDeviceResourcesQuery": u64,
        resource_requirements_query as "EvtDeviceResourceRequirementsQuery": u64,
        eject as "EvtDeviceEject": u64,
        set_lock as "EvtDeviceSetLock": u64,
        enable_wake_at_bus as "EvtDeviceEnableWakeAtBus": u64,
        disable_wake_at_bus as "EvtDeviceDisableWakeAtBus": u64,
        reported_missing as "EvtDeviceReportedMissing": u64,
    }
    WmiProviderConfig as "_WDF_WMI_PROVIDER_CONFIG" {
        size as "Size": u32,
        guid as "Guid": [u32; 4],
        flags as "Flags": u32,
        min_instance_buffer_size as "MinInstanceBufferSize": u32,
        padding_0: u32,
        function_control as "EvtWmiProviderFunctionControl": u64,
    }
    WmiInstanceConfig as "_WDF_WMI_INSTANCE_CONFIG" {
        size as "Size": u32,
        padding_0: u32,
        provider as "Provider": u64,
        provider_config as "ProviderConfig": u64,
        use_context_for_query as "UseContextForQuery": u8,
        register as "Register": u8,
        padding_1: [u8; 6],
        query_instance as "EvtWmiInstanceQueryInstance": u64,
        set_instance as "EvtWmiInstanceSetInstance": u64,
        set_item as "EvtWmiInstanceSetItem": u64,
        execute_method as "EvtWmiInstanceExecuteMethod": u64,
    }
    /// The key of a property, and its locale.
    DevicePropertyData as "_WDF_DEVICE_PROPERTY_DATA" {
        size as "Size": u32,
        reserved: u32,
        key as "PropertyKey": u64,
        locale as "Lcid": u32,
        flags as "Flags": u32,
    }
}
