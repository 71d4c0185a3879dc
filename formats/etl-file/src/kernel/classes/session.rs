//! The session itself, the configuration of the machine, and smaller classes.

use etw_wire::Guid as GuidOf;

use super::super::descriptor::Type::{
    Ansi, Bytes, FileTime, Guid, Guids, Hex32, Hex64, I64, Ipv4, Pointer, Pointers, Process, Rest,
    Size, Status, Texts, TicksList, U8, U16, U32, U64, Units, Utf16,
};
use super::super::descriptor::{Class, Layout, e, f, optional, v, versions};

const GROUP_MASKS: &[Layout] = &[
    versions(
        0,
        1,
        &[
            f("GroupMask1", Hex32),
            f("GroupMask2", Hex32),
            f("GroupMask3", Hex32),
            f("GroupMask4", Hex32),
            f("GroupMask5", Hex32),
            f("GroupMask6", Hex32),
            f("GroupMask7", Hex32),
            f("GroupMask8", Hex32),
        ],
    ),
    v(
        2,
        &[
            f("GroupMask1", Hex32),
            f("GroupMask2", Hex32),
            f("GroupMask3", Hex32),
            f("GroupMask4", Hex32),
            f("GroupMask5", Hex32),
            f("GroupMask6", Hex32),
            f("GroupMask7", Hex32),
            f("GroupMask8", Hex32),
            f("KernelEventVersion", U32),
        ],
    ),
];

const EMPTY: &[Layout] = &[versions(0, 2, &[])];

const POOL_ENTRY: &[Layout] =
    &[v(2, &[f("Type", U32), f("Tag", Hex32), f("NumberOfBytes", Size), f("Entry", Pointer)])];

const SESSION_POOL_ENTRY: &[Layout] = &[v(
    2,
    &[
        f("Type", U32),
        f("Tag", Hex32),
        f("NumberOfBytes", Size),
        f("Entry", Pointer),
        f("SessionId", U32),
    ],
)];

const MESSAGE: &[Layout] = &[v(2, &[f("MessageID", U32)])];

const HANDLE: &[Layout] = &[v(
    2,
    &[
        f("Object", Pointer),
        f("Handle", Hex32),
        f("ObjectType", U16),
        optional("ObjectName", Utf16),
    ],
)];

const OBJECT_TYPE: &[Layout] =
    &[v(2, &[f("ObjectType", U16), f("Reserved", U16), f("TypeName", Utf16)])];

const HANDLE_RUNDOWN: &[Layout] = &[v(
    2,
    &[
        f("Object", Pointer),
        f("ProcessId", Process),
        f("Handle", Hex32),
        f("ObjectType", U16),
        optional("ObjectName", Utf16),
    ],
)];

const OBJECT: &[Layout] = &[v(2, &[f("Object", Pointer), f("ObjectType", U16)])];

const REFERENCE: &[Layout] = &[v(2, &[f("Object", Pointer), f("Tag", Hex32), f("Count", U32)])];

/// The session: its header, group masks and other metadata.
pub const EVENT_TRACE: Class = Class {
    guid: GuidOf::from_u128(0x68fd_d900_4a3e_11d1_84f4_0000_f804_64e3),
    name: "EventTrace",
    group: Some(0x00),
    events: &[
        e(
            0x00,
            "Header",
            &[versions(
                0,
                2,
                &[
                    f("BufferSize", U32),
                    f("Version", Hex32),
                    f("ProviderVersion", U32),
                    f("NumberOfProcessors", U32),
                    f("EndTime", FileTime),
                    f("TimerResolution", U32),
                    f("MaxFileSize", U32),
                    f("LogFileMode", Hex32),
                    f("BuffersWritten", U32),
                    f("StartBuffers", U32),
                    f("PointerSize", U32),
                    f("EventsLost", U32),
                    f("CPUSpeed", U32),
                    f("LoggerName", Pointer),
                    f("LogFileName", Pointer),
                    f("TimeZoneInformation", Bytes(176)),
                    f("BootTime", FileTime),
                    f("PerfFreq", U64),
                    f("StartTime", FileTime),
                    f("ReservedFlags", U32),
                    f("BuffersLost", U32),
                    f("SessionNameString", Utf16),
                    f("LogFileNameString", Utf16),
                ],
            )],
        ),
        e(0x05, "Extension", GROUP_MASKS),
        e(0x08, "RDComplete", EMPTY),
        e(0x20, "EndExtension", GROUP_MASKS),
        e(0x40, "DbgIdRSDS", &[v(2, &[f("Guid", Guid), f("Age", U32), f("PdbName", Ansi)])]),
        e(0x42, "BuildInfo", &[v(2, &[f("BuildString", Utf16)]), v(2, &[f("BuildString", Ansi)])]),
        e(
            0x43,
            "ProviderBinaryPath",
            &[v(2, &[f("GuidCount", U32), f("Guid", Guids), f("BinaryPath", Utf16)])],
        ),
        e(
            0x50,
            "PartitionInfoExtension",
            &[v(
                2,
                &[
                    f("EventVersion", U16),
                    f("Reserved", U16),
                    f("PartitionType", U32),
                    f("QpcOffsetFromRoot", I64),
                    f("PartitionId", Guid),
                    f("ParentId", Guid),
                ],
            )],
        ),
        e(
            0x52,
            "LastDroppedTimes",
            &[v(2, &[f("TimeStampCount", U32), f("Padding", U32), f("TimeStamp", TicksList)])],
        ),
    ],
};

/// The configuration of the machine, as xperf and `PerfView` add it when they merge a trace
/// (ETL-14.10). Their decoders read all versions alike.
pub const SYSTEM_CONFIG_EX: Class = Class {
    guid: GuidOf::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0),
    name: "SystemConfigEx",
    group: None,
    events: &[
        e(
            32,
            "BuildInfo",
            &[versions(
                0,
                u8::MAX,
                &[f("InstallDate", FileTime), f("BuildLab", Utf16), f("ProductName", Utf16)],
            )],
        ),
        e(
            33,
            "SystemPaths",
            &[versions(
                0,
                u8::MAX,
                &[f("SystemDirectory", Utf16), f("SystemWindowsDirectory", Utf16)],
            )],
        ),
        e(34, "UnknownVolume", &[versions(0, u8::MAX, &[f("VolumeName", Utf16)])]),
        e(35, "VolumeMapping", &[versions(0, u8::MAX, &[f("NtPath", Utf16), f("DosPath", Utf16)])]),
    ],
};

/// The configuration of the machine.
pub const SYSTEM_CONFIG: Class = Class {
    guid: GuidOf::from_u128(0x0185_3a65_418f_4f36_aefc_dc0f_1d2f_d235),
    name: "SystemConfig",
    group: Some(0x0b),
    events: &[
        e(
            0x0a,
            "CPU",
            &[
                versions(
                    0,
                    1,
                    &[
                        f("MHz", U32),
                        f("NumberOfProcessors", U32),
                        f("MemSize", U32),
                        f("PageSize", U32),
                        f("AllocationGranularity", U32),
                        f("ComputerName", Units(256)),
                        f("DomainName", Units(132)),
                        f("HyperThreadingFlag", Pointer),
                    ],
                ),
                v(
                    2,
                    &[
                        f("MHz", U32),
                        f("NumberOfProcessors", U32),
                        f("MemSize", U32),
                        f("PageSize", U32),
                        f("AllocationGranularity", U32),
                        f("ComputerName", Units(256)),
                        f("DomainName", Units(134)),
                        f("HyperThreadingFlag", Pointer),
                    ],
                ),
                v(
                    3,
                    &[
                        f("MHz", U32),
                        f("NumberOfProcessors", U32),
                        f("MemSize", U32),
                        f("PageSize", U32),
                        f("AllocationGranularity", U32),
                        f("ComputerName", Units(256)),
                        f("DomainName", Units(134)),
                        f("HyperThreadingFlag", Pointer),
                        f("HighestUserAddress", Pointer),
                        f("ProcessorArchitecture", U16),
                        f("ProcessorLevel", U16),
                        f("ProcessorRevision", U16),
                        f("PaeEnabled", U8),
                        f("NxEnabled", U8),
                        f("MemorySpeed", U32),
                    ],
                ),
            ],
        ),
        e(
            0x0b,
            "PhyDisk",
            &[versions(
                0,
                2,
                &[
                    f("DiskNumber", U32),
                    f("BytesPerSector", U32),
                    f("SectorsPerTrack", U32),
                    f("TracksPerCylinder", U32),
                    f("Cylinders", U64),
                    f("SCSIPort", U32),
                    f("SCSIPath", U32),
                    f("SCSITarget", U32),
                    f("SCSILun", U32),
                    f("Manufacturer", Units(256)),
                    f("PartitionCount", U32),
                    f("WriteCacheEnabled", U8),
                    f("Pad", U8),
                    f("BootDriveLetter", Units(3)),
                    f("Spare", Bytes(4)),
                ],
            )],
        ),
        e(
            0x0c,
            "LogDisk",
            &[
                versions(
                    0,
                    1,
                    &[
                        f("StartOffset", U64),
                        f("PartitionSize", U64),
                        f("DiskNumber", U32),
                        f("Size", U32),
                        f("DriveType", U32),
                        f("DriveLetterString", Units(4)),
                        f("Pad1", U32),
                        f("PartitionNumber", U32),
                        f("SectorsPerCluster", U32),
                        f("BytesPerSector", U32),
                        f("Pad2", U32),
                        f("NumberOfFreeClusters", I64),
                        f("TotalNumberOfClusters", I64),
                        f("FileSystem", Units(16)),
                        f("VolumeExt", U32),
                    ],
                ),
                v(
                    2,
                    &[
                        f("StartOffset", U64),
                        f("PartitionSize", U64),
                        f("DiskNumber", U32),
                        f("Size", U32),
                        f("DriveType", U32),
                        f("DriveLetterString", Units(4)),
                        f("Pad1", U32),
                        f("PartitionNumber", U32),
                        f("SectorsPerCluster", U32),
                        f("BytesPerSector", U32),
                        f("Pad2", U32),
                        f("NumberOfFreeClusters", I64),
                        f("TotalNumberOfClusters", I64),
                        f("FileSystem", Units(16)),
                        f("VolumeExt", U32),
                        f("Pad3", U32),
                    ],
                ),
            ],
        ),
        e(
            0x0d,
            "NIC",
            &[
                versions(
                    0,
                    1,
                    &[
                        f("NICName", Units(256)),
                        f("Index", U32),
                        f("PhysicalAddrLen", U32),
                        f("PhysicalAddr", Units(8)),
                        f("Size", U32),
                        f("IpAddress", Ipv4),
                        f("SubnetMask", Ipv4),
                        f("DhcpServer", Ipv4),
                        f("Gateway", Ipv4),
                        f("PrimaryWinsServer", Ipv4),
                        f("SecondaryWinsServer", Ipv4),
                        f("DnsServer1", Ipv4),
                        f("DnsServer2", Ipv4),
                        f("DnsServer3", Ipv4),
                        f("DnsServer4", Ipv4),
                        f("Data", U32),
                    ],
                ),
                v(
                    2,
                    &[
                        f("PhysicalAddr", Hex64),
                        f("PhysicalAddrLen", U32),
                        f("Ipv4Index", U32),
                        f("Ipv6Index", U32),
                        f("NICDescription", Utf16),
                        f("IpAddresses", Utf16),
                        f("DnsServerAddresses", Utf16),
                    ],
                ),
            ],
        ),
        e(
            0x0e,
            "Video",
            &[versions(
                0,
                2,
                &[
                    f("MemorySize", U32),
                    f("XResolution", U32),
                    f("YResolution", U32),
                    f("BitsPerPixel", U32),
                    f("VRefresh", U32),
                    f("ChipType", Units(256)),
                    f("DACType", Units(256)),
                    f("AdapterString", Units(256)),
                    f("BiosString", Units(256)),
                    f("DeviceId", Units(256)),
                    f("StateFlags", Hex32),
                ],
            )],
        ),
        e(
            0x0f,
            "Services",
            &[
                versions(
                    0,
                    1,
                    &[
                        f("ServiceName", Units(34)),
                        f("DisplayName", Units(256)),
                        f("ProcessName", Units(34)),
                        f("ProcessId", Process),
                    ],
                ),
                v(
                    2,
                    &[
                        f("ProcessId", Process),
                        f("ServiceState", U32),
                        f("SubProcessTag", U32),
                        f("ServiceName", Utf16),
                        f("DisplayName", Utf16),
                        f("ProcessName", Utf16),
                    ],
                ),
                v(
                    3,
                    &[
                        f("ProcessId", Process),
                        f("ServiceState", U32),
                        f("SubProcessTag", U32),
                        f("ServiceName", Utf16),
                        f("DisplayName", Utf16),
                        f("ProcessName", Utf16),
                        f("LoadOrderGroup", Utf16),
                        f("SvchostGroup", Utf16),
                    ],
                ),
            ],
        ),
        e(
            0x10,
            "Power",
            &[versions(
                0,
                2,
                &[
                    f("S1", U8),
                    f("S2", U8),
                    f("S3", U8),
                    f("S4", U8),
                    f("S5", U8),
                    f("Pad1", U8),
                    f("Pad2", U8),
                    f("Pad3", U8),
                ],
            )],
        ),
        e(
            0x11,
            "Network",
            &[v(
                2,
                &[
                    f("TcbTablePartitions", U32),
                    f("MaxHashTableSize", U32),
                    f("MaxUserPort", U32),
                    f("TcpTimedWaitDelay", U32),
                ],
            )],
        ),
        e(
            0x12,
            "OpticalDisk",
            &[v(
                2,
                &[
                    f("DiskNumber", U16),
                    f("BusType", U16),
                    f("DeviceType", U16),
                    f("MediaType", U16),
                    f("StartingOffset", U64),
                    f("Size", U64),
                    f("NumberOfFreeBlocks", U64),
                    f("TotalNumberOfBlocks", U64),
                    f("NextWritableAddress", U64),
                    f("NumberOfSessions", U32),
                    f("NumberOfTracks", U32),
                    f("BytesPerSector", U32),
                    f("DiscStatus", U16),
                    f("LastSessionStatus", U16),
                    f("DriveLetter", Utf16),
                    f("FileSystemName", Utf16),
                    f("DeviceName", Ansi),
                    f("ManufacturerName", Ansi),
                ],
            )],
        ),
        e(
            0x15,
            "IRQ",
            &[
                versions(
                    0,
                    2,
                    &[
                        f("IRQAffinity", Hex64),
                        f("IRQNum", U32),
                        f("DeviceDescriptionLen", U32),
                        f("DeviceDescription", Utf16),
                    ],
                ),
                v(
                    3,
                    &[
                        f("IRQAffinity", Hex64),
                        f("IRQGroup", U16),
                        f("Reserved", U16),
                        f("IRQNum", U32),
                        f("DeviceDescriptionLen", U32),
                        f("DeviceDescription", Utf16),
                    ],
                ),
            ],
        ),
        e(
            0x16,
            "PnP",
            &[
                versions(
                    0,
                    2,
                    &[
                        f("IDLength", U32),
                        f("DescriptionLength", U32),
                        f("FriendlyNameLength", U32),
                        f("DeviceID", Utf16),
                        f("DeviceDescription", Utf16),
                        f("FriendlyName", Utf16),
                    ],
                ),
                v(
                    3,
                    &[
                        f("IDLength", U32),
                        f("DescriptionLength", U32),
                        f("FriendlyNameLength", U32),
                        f("DeviceID", Utf16),
                        f("DeviceDescription", Utf16),
                        f("FriendlyName", Utf16),
                        f("PdoName", Utf16),
                    ],
                ),
                v(
                    4,
                    &[
                        f("ClassGuid", Guid),
                        f("UpperFiltersCount", U32),
                        f("LowerFiltersCount", U32),
                        f("DeviceID", Utf16),
                        f("DeviceDescription", Utf16),
                        f("FriendlyName", Utf16),
                        f("PdoName", Utf16),
                        f("ServiceName", Utf16),
                        f("UpperFilters", Texts("UpperFiltersCount")),
                        f("LowerFilters", Texts("LowerFiltersCount")),
                    ],
                ),
                v(
                    4,
                    &[
                        f("ClassGuid", Guid),
                        f("UpperFiltersCount", U32),
                        f("LowerFiltersCount", U32),
                        f("DeviceID", Utf16),
                        f("DeviceDescription", Utf16),
                        f("FriendlyName", Utf16),
                        f("PdoName", Utf16),
                        f("ServiceName", Utf16),
                        optional("UpperFilters", Utf16),
                        optional("LowerFilters", Utf16),
                    ],
                ),
                v(
                    5,
                    &[
                        f("ClassGuid", Guid),
                        f("UpperFiltersCount", U32),
                        f("LowerFiltersCount", U32),
                        f("DevStatus", Hex32),
                        f("DevProblem", U32),
                        f("DeviceID", Utf16),
                        f("DeviceDescription", Utf16),
                        f("FriendlyName", Utf16),
                        f("PdoName", Utf16),
                        f("ServiceName", Utf16),
                        f("UpperFilters", Texts("UpperFiltersCount")),
                        f("LowerFilters", Texts("LowerFiltersCount")),
                    ],
                ),
                v(
                    5,
                    &[
                        f("ClassGuid", Guid),
                        f("UpperFiltersCount", U32),
                        f("LowerFiltersCount", U32),
                        f("DevStatus", Hex32),
                        f("DevProblem", U32),
                        f("DeviceID", Utf16),
                        f("DeviceDescription", Utf16),
                        f("FriendlyName", Utf16),
                        f("PdoName", Utf16),
                        f("ServiceName", Utf16),
                        optional("UpperFilters", Utf16),
                        optional("LowerFilters", Utf16),
                    ],
                ),
            ],
        ),
        e(
            0x17,
            "IDEChannel",
            &[v(
                2,
                &[
                    f("TargetId", U32),
                    f("DeviceType", U32),
                    f("DeviceTimingMode", U32),
                    f("LocationInformationLen", U32),
                    f("LocationInformation", Utf16),
                ],
            )],
        ),
        e(0x18, "NumaNode", &[]),
        e(
            0x19,
            "Platform",
            &[v(
                2,
                &[
                    f("SystemManufacturer", Utf16),
                    f("SystemProductName", Utf16),
                    f("BiosDate", Utf16),
                    f("BiosVersion", Utf16),
                ],
            )],
        ),
        e(0x1a, "ProcessorGroup", &[v(2, &[f("GroupCount", U32), f("Affinity", Pointers)])]),
        e(0x1b, "ProcessorNumber", &[]),
        e(0x1c, "DPI", &[v(2, &[f("MachineDPI", U32), f("UserDPI", U32)])]),
        e(0x1d, "CodeIntegrity", &[v(2, &[f("CodeIntegrityInfo", Hex32)])]),
        e(0x1e, "TelemetryConfiguration", &[v(2, &[f("MachineId", Guid)])]),
        e(0x1f, "Defragmentation", &[]),
        e(0x20, "MobilePlatform", &[]),
        e(
            0x21,
            "DeviceFamily",
            &[v(2, &[f("UAPInfo", Hex64), f("DeviceFamily", U32), f("DeviceForm", U32)])],
        ),
        e(0x22, "FlightIds", &[v(2, &[f("UpdateId", Utf16), f("FlightIdList", Utf16)])]),
        e(
            0x23,
            "Processors",
            &[v(
                2,
                &[
                    f("ProcessorIndex", U32),
                    f("FeatureSet", Hex32),
                    f("ProcessorSpeed", U32),
                    f("ProcessorName", Units(64)),
                    f("VendorIdentifier", Units(16)),
                    f("ProcessorIdentifier", Units(128)),
                ],
            )],
        ),
    ],
};

/// Messages of `DbgPrint`.
pub const DEBUG_PRINT: Class = Class {
    guid: GuidOf::from_u128(0x1397_6d09_a327_438c_950b_7f03_1928_15c7),
    name: "DbgPrint",
    group: Some(0x0a),
    events: &[e(
        0x20,
        "DebugPrint",
        &[v(2, &[f("Component", U32), f("Level", U32), f("Message", Ansi)])],
    )],
};

/// Pool memory.
pub const POOL: Class = Class {
    guid: GuidOf::from_u128(0x0268_a8b6_74fd_4302_9dd0_6e8f_1795_c0cf),
    name: "Pool",
    group: Some(0x0e),
    events: &[
        e(0x20, "PoolAllocation", POOL_ENTRY),
        e(0x21, "SessionPoolAllocation", SESSION_POOL_ENTRY),
        e(0x22, "PoolFree", POOL_ENTRY),
        e(0x23, "SessionPoolFree", SESSION_POOL_ENTRY),
        e(0x28, "PoolSnapDCStart", EMPTY),
        e(0x29, "PoolSnapDCEnd", EMPTY),
        e(0x2a, "BigPoolSnapDCStart", EMPTY),
        e(0x2b, "BigPoolSnapDCEnd", EMPTY),
        e(0x2c, "SessionPoolSnapDCStart", EMPTY),
        e(0x2d, "SessionPoolSnapDCEnd", EMPTY),
        e(0x2e, "SessionBigPoolSnapDCStart", EMPTY),
        e(0x2f, "SessionBigPoolSnapDCEnd", EMPTY),
    ],
};

/// Objects and handles.
pub const OBJECT_TRACE: Class = Class {
    guid: GuidOf::from_u128(0x8949_7f50_effe_4440_8cf2_ce6b_1cdc_aca7),
    name: "Object",
    group: Some(0x11),
    events: &[
        e(0x20, "CreateHandle", HANDLE),
        e(0x21, "CloseHandle", HANDLE),
        e(
            0x22,
            "DuplicateHandle",
            &[v(
                2,
                &[
                    f("Object", Pointer),
                    f("SourceHandle", Hex32),
                    f("TargetHandle", Hex32),
                    f("TargetProcessId", Process),
                    f("ObjectType", U16),
                ],
            )],
        ),
        e(0x24, "TypeDCStart", OBJECT_TYPE),
        e(0x25, "TypeDCEnd", OBJECT_TYPE),
        e(0x26, "HandleDCStart", HANDLE_RUNDOWN),
        e(0x27, "HandleDCEnd", HANDLE_RUNDOWN),
        e(0x30, "CreateObject", OBJECT),
        e(0x31, "DeleteObject", OBJECT),
        e(0x32, "ReferenceObject", REFERENCE),
        e(0x33, "DereferenceObject", REFERENCE),
    ],
};

/// Power states.
pub const POWER: Class = Class {
    guid: GuidOf::from_u128(0xe434_45e0_0903_48c3_b878_ff0f_cceb_dd04),
    name: "Power",
    group: Some(0x12),
    events: &[e(
        0x3c,
        "IdleExitLatency",
        &[v(
            2,
            &[
                f("Flags", Hex32),
                f("PlatformState", U32),
                f("ProcessorState", U32),
                f("ReturnLatency", U32),
                f("TotalLatency", U32),
            ],
        )],
    )],
};

/// Advanced local procedure calls.
pub const ALPC: Class = Class {
    guid: GuidOf::from_u128(0x45d8_cccd_539f_4b72_a8b7_5c68_3142_609a),
    name: "ALPC",
    group: Some(0x1a),
    events: &[
        e(0x21, "ALPC-Send-Message", MESSAGE),
        e(0x22, "ALPC-Receive-Message", MESSAGE),
        e(0x23, "ALPC-Wait-For-Reply", MESSAGE),
        e(
            0x24,
            "ALPC-Wait-For-New-Message",
            &[
                v(2, &[f("IsServerPort", U32), f("PortName", Utf16)]),
                v(2, &[f("IsServerPort", U32), f("PortName", Ansi)]),
            ],
        ),
        e(0x25, "ALPC-Unwait", &[v(2, &[f("Status", Status)])]),
    ],
};

/// Disk transfers that a volume manager splits.
pub const SPLIT_IO: Class = Class {
    guid: GuidOf::from_u128(0xd837_ca92_12b9_44a5_ad6a_3a65_b357_8aa8),
    name: "SplitIo",
    group: Some(0x1b),
    events: &[e(0x20, "VolMgr", &[v(2, &[f("ParentIrp", Pointer), f("ChildIrp", Pointer)])])],
};

/// Jobs. Only the name is known.
pub const JOB: Class = Class {
    guid: GuidOf::from_u128(0x3282_fc76_feed_498e_8aa7_e70f_459d_430e),
    name: "Job",
    group: Some(0x07),
    events: &[],
};

/// The notification facility. Only the name is known.
pub const WNF: Class = Class {
    guid: GuidOf::from_u128(0x4269_5762_ea50_497a_9068_5cbb_b35e_0b95),
    name: "Wnf",
    group: Some(0x0d),
    events: &[],
};

/// Heaps. Only the name is known.
pub const HEAP: Class = Class {
    guid: GuidOf::from_u128(0x2229_62ab_6180_4b88_a825_346b_75f2_a24a),
    name: "Heap",
    group: Some(0x10),
    events: &[],
};

/// Module-bound events. Only the name is known.
pub const MODBOUND: Class = Class {
    guid: GuidOf::from_u128(0xa915_2f00_3f58_4bee_92a1_70c7_d079_d5dd),
    name: "ModBound",
    group: Some(0x13),
    events: &[],
};

/// Further DPC events. Only the name is known.
pub const DPC: Class = Class {
    guid: GuidOf::from_u128(0xb2d1_4872_7c5b_463d_8419_ee9b_f7d2_3e04),
    name: "Dpc",
    group: Some(0x15),
    events: &[],
};

/// The cache manager. Only the name is known.
pub const CACHE: Class = Class {
    guid: GuidOf::from_u128(0x7687_a439_f752_45b8_b741_321a_ec0f_8df9),
    name: "Cc",
    group: Some(0x16),
    events: &[],
};

/// Critical sections. Only the name is known.
pub const CRITICAL_SECTION: Class = Class {
    guid: GuidOf::from_u128(0x3ac6_6736_cc59_4cff_8115_8df5_0e39_816b),
    name: "CritSec",
    group: Some(0x17),
    events: &[],
};

/// User-mode scheduling. Only the name is known.
pub const UMS: Class = Class {
    guid: GuidOf::from_u128(0x9aec_974b_5b8e_4118_9b92_3186_d800_2ce5),
    name: "UmsEvent",
    group: Some(0x19),
    events: &[],
};

/// Thread pools. Only the name is known.
pub const THREAD_POOL: Class = Class {
    guid: GuidOf::from_u128(0xc861_d0e2_a2c1_4d36_9f9c_970b_ab94_3a12),
    name: "ThreadPool",
    group: Some(0x1c),
    events: &[],
};

/// The hypervisor. Only the name is known.
pub const HYPERVISOR: Class = Class {
    guid: GuidOf::from_u128(0x7f2a_405c_69b5_4bf9_a1f5_30e8_f1af_ab5e),
    name: "HypervisorTrace",
    group: Some(0x1d),
    events: &[],
};

/// The hypervisor, continued. Only the name is known.
pub const HYPERVISOR_EXTENDED: Class = Class {
    guid: GuidOf::from_u128(0x2ce9_a149_effe_42f0_a635_a1d3_9e26_c8f2),
    name: "HypervisorXTrace",
    group: Some(0x1e),
    events: &[],
};

/// Schemas that a merged trace contains (ETL-13.1). The payloads have no version.
pub const EVENT_METADATA: Class = Class {
    guid: crate::decode::schemas::METADATA_CLASS,
    name: "EventMetadata",
    group: None,
    events: &[
        e(
            32,
            "EventInfo",
            &[versions(
                0,
                u8::MAX,
                &[
                    f("ProviderGuid", Guid),
                    f("EventGuid", Guid),
                    f("EventId", U16),
                    f("EventVersion", U8),
                    f("EventChannel", U8),
                    f("EventLevel", U8),
                    f("EventOpcode", U8),
                    f("EventTask", U16),
                    f("EventKeyword", Hex64),
                    f("DecodingSource", U32),
                    f("Data", Rest),
                ],
            )],
        ),
        // Some writers leave the provider's GUID out, so that nothing tells where the map starts.
        e(33, "MapInfo", &[versions(0, u8::MAX, &[f("Data", Rest)])]),
    ],
};
