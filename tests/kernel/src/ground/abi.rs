//! The structures that a driver and the kernel exchange, in the WDK headers' layout for x64.
//! Pointers and handles are plain addresses.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Declares plain structures, and for the tests a list of their fields' offsets.
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
        )*

        /// C name, size and named fields of every structure declared here.
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

/// A structure's layout, for the comparison with the headers' layout.
#[cfg(test)]
pub struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize, usize)],
}

abi! {
    /// A counted UTF-16 string; lengths are in bytes.
    UnicodeString as "_UNICODE_STRING" {
        length as "Length": u16,
        maximum_length as "MaximumLength": u16,
        reserved: u32,
        buffer as "Buffer": u64,
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
    /// A driver's description of itself for the loader. Newer stubs append fields (see
    /// [`BindInfo2`]).
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
    /// The framework's public globals of one driver.
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
    /// Of the union `Parameters`, two words are declared, which hold the members that the supported
    /// kinds of requests use.
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
    /// The last four bytes combine Type, Reserved1 and Reserved2.
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
    /// Bytes of header and data.
    pub size: u32,
    /// The offset from this header to the next; 0 in the last header.
    pub next_offset: u32,
}

const _: () = assert!(size_of::<EventFilterHeader>() == 24);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Returns a type's size in the data on the headers, if the type has one there.
    fn size_of_type(types: &Value, kind: &str) -> Option<u64> {
        if kind.starts_with("*mut ") || kind.starts_with("*const ") {
            return Some(8);
        }
        if let Some(array) = kind
            .strip_prefix('[')
            .and_then(|kind| kind.strip_suffix(']'))
        {
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
                let composite =
                    ["struct", "union"].map(|group| types[group][name]["size"].as_u64());
                return match composite {
                    [Some(size), _] | [_, Some(size)] => Some(size),
                    _ => size_of_type(types, types["alias"][name][0].as_str()?),
                };
            }
        };
        Some(size)
    }

    /// Compares a structure of this module with that of the headers.
    fn compare(ours: &Layout, theirs: &Value, fields: &[(&str, u64, Option<u64>)]) {
        assert_eq!(theirs["size"], ours.size, "size of {}", ours.name);
        for (name, offset, size) in ours.fields {
            let (_, their_offset, their_size) = fields
                .iter()
                .find(|field| field.0 == *name)
                .unwrap_or_else(|| panic!("{}.{name} is not in the data", ours.name));
            assert_eq!(
                *their_offset, *offset as u64,
                "offset of {}.{name}",
                ours.name
            );
            if let Some(their_size) = their_size {
                assert_eq!(*their_size, *size as u64, "size of {}.{name}", ours.name);
            }
        }
        let named = fields
            .iter()
            .filter(|field| !field.0.starts_with("__bindgen"))
            .count();
        assert_eq!(ours.fields.len(), named, "named fields of {}", ours.name);
    }

    #[test]
    fn layouts_are_those_of_the_headers() {
        let parse = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
        let headers = parse(&etw_test_support::read_headers("types.json"));
        let loader = parse(&etw_test_support::read_data("abi/loader.json"));
        let mut sized = 0;
        for ours in LAYOUTS.iter().chain(super::super::framework_abi::LAYOUTS) {
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
