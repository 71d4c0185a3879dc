//! Disks, files, the registry and memory.

use etw_wire::Guid as GuidOf;

use super::super::descriptor::Type::{
    Guid, Hex32, Hex64, I64, Pointer, Process, Size, Status, Thread, TickDuration, Ticks, U8, U16,
    U32, U64, Utf16, WideStatus, WideThread,
};
use super::super::descriptor::{Class, Layout, e, f, v, versions};

const DISK_TRANSFER: &[Layout] = &[
    v(
        0,
        &[
            f("DiskNumber", U32),
            f("IrpFlags", Hex32),
            f("TransferSize", U32),
            f("Reserved", U32),
            f("ByteOffset", I64),
            f("FileObject", Pointer),
        ],
    ),
    v(
        1,
        &[
            f("DiskNumber", U32),
            f("IrpFlags", Hex32),
            f("TransferSize", U32),
            f("ResponseTime", U32),
            f("ByteOffset", I64),
            f("FileObject", Pointer),
            f("HighResResponseTime", TickDuration),
        ],
    ),
    v(
        2,
        &[
            f("DiskNumber", U32),
            f("IrpFlags", Hex32),
            f("TransferSize", U32),
            f("Reserved", U32),
            f("ByteOffset", I64),
            f("FileObject", Pointer),
            f("Irp", Pointer),
            f("HighResResponseTime", TickDuration),
        ],
    ),
    v(
        3,
        &[
            f("DiskNumber", U32),
            f("IrpFlags", Hex32),
            f("TransferSize", U32),
            f("Reserved", U32),
            f("ByteOffset", I64),
            f("FileObject", Pointer),
            f("Irp", Pointer),
            f("HighResResponseTime", TickDuration),
            f("IssuingThreadId", Thread),
        ],
    ),
];

const DISK_INIT: &[Layout] =
    &[v(2, &[f("Irp", Pointer)]), v(3, &[f("Irp", Pointer), f("IssuingThreadId", Thread)])];

const DISK_FLUSH: &[Layout] = &[
    v(
        2,
        &[
            f("DiskNumber", U32),
            f("IrpFlags", Hex32),
            f("HighResResponseTime", TickDuration),
            f("Irp", Pointer),
        ],
    ),
    v(
        3,
        &[
            f("DiskNumber", U32),
            f("IrpFlags", Hex32),
            f("HighResResponseTime", TickDuration),
            f("Irp", Pointer),
            f("IssuingThreadId", Thread),
        ],
    ),
];

const DRIVER_RETURN: &[Layout] = &[
    v(1, &[f("UniqMatchId", U32), f("Irp", Pointer)]),
    v(2, &[f("Irp", Pointer), f("UniqMatchId", U32)]),
];

const DRIVER_COMPLETION_RETURN: &[Layout] =
    &[versions(1, 2, &[f("Irp", Pointer), f("UniqMatchId", U32)])];

const FILE_NAME: &[Layout] = &[versions(0, 3, &[f("FileObject", Pointer), f("FileName", Utf16)])];

const FILE_MAP: &[Layout] = &[versions(
    2,
    3,
    &[
        f("ViewBase", Pointer),
        f("FileObject", Pointer),
        f("MiscInfo", Hex64),
        f("ViewSize", Size),
        f("ProcessId", Process),
    ],
)];

const FILE_SIMPLE: &[Layout] = &[
    v(
        2,
        &[
            f("IrpPtr", Pointer),
            f("TTID", WideThread),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
        ],
    ),
    v(
        3,
        &[f("IrpPtr", Pointer), f("FileObject", Pointer), f("FileKey", Pointer), f("TTID", Thread)],
    ),
];

const FILE_TRANSFER: &[Layout] = &[
    v(
        2,
        &[
            f("Offset", U64),
            f("IrpPtr", Pointer),
            f("TTID", WideThread),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
            f("IoSize", U32),
            f("IoFlags", Hex32),
        ],
    ),
    v(
        3,
        &[
            f("Offset", U64),
            f("IrpPtr", Pointer),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
            f("TTID", Thread),
            f("IoSize", U32),
            f("IoFlags", Hex32),
        ],
    ),
];

const FILE_INFO: &[Layout] = &[
    v(
        2,
        &[
            f("IrpPtr", Pointer),
            f("TTID", WideThread),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
            f("ExtraInfo", Pointer),
            f("InfoClass", U32),
        ],
    ),
    v(
        3,
        &[
            f("IrpPtr", Pointer),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
            f("ExtraInfo", Pointer),
            f("TTID", Thread),
            f("InfoClass", U32),
        ],
    ),
];

const FILE_DIRECTORY: &[Layout] = &[
    v(
        2,
        &[
            f("IrpPtr", Pointer),
            f("TTID", WideThread),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
            f("Length", U32),
            f("InfoClass", U32),
            f("FileIndex", U32),
            f("FileName", Utf16),
        ],
    ),
    v(
        3,
        &[
            f("IrpPtr", Pointer),
            f("FileObject", Pointer),
            f("FileKey", Pointer),
            f("TTID", Thread),
            f("Length", U32),
            f("InfoClass", U32),
            f("FileIndex", U32),
            f("FileName", Utf16),
        ],
    ),
];

const FILE_PATH: &[Layout] = &[versions(
    2,
    3,
    &[
        f("IrpPtr", Pointer),
        f("FileObject", Pointer),
        f("FileKey", Pointer),
        f("ExtraInfo", Pointer),
        f("TTID", Thread),
        f("InfoClass", U32),
        f("FileName", Utf16),
    ],
)];

const FILTER: &[Layout] = &[versions(
    2,
    3,
    &[
        f("RoutineAddr", Pointer),
        f("FileObject", Pointer),
        f("FileContext", Pointer),
        f("IrpPtr", Pointer),
        f("CallbackDataPtr", Pointer),
        f("MajorFunction", U32),
    ],
)];

const FILTER_COMPLETION: &[Layout] = &[versions(
    2,
    3,
    &[
        f("InitialTime", Ticks),
        f("RoutineAddr", Pointer),
        f("FileObject", Pointer),
        f("FileContext", Pointer),
        f("IrpPtr", Pointer),
        f("CallbackDataPtr", Pointer),
        f("MajorFunction", U32),
    ],
)];

const FILTER_FAILURE: &[Layout] = &[versions(
    2,
    3,
    &[
        f("RoutineAddr", Pointer),
        f("FileObject", Pointer),
        f("FileContext", Pointer),
        f("IrpPtr", Pointer),
        f("CallbackDataPtr", Pointer),
        f("MajorFunction", U32),
        f("Status", Status),
    ],
)];

const REGISTRY_KEY: &[Layout] = &[
    v(
        0,
        &[
            f("Status", WideStatus),
            f("KeyHandle", Pointer),
            f("ElapsedTime", I64),
            f("KeyName", Utf16),
        ],
    ),
    v(
        1,
        &[
            f("Status", WideStatus),
            f("KeyHandle", Pointer),
            f("ElapsedTime", I64),
            f("Index", U32),
            f("KeyName", Utf16),
        ],
    ),
    v(
        2,
        &[
            f("InitialTime", Ticks),
            f("Status", Status),
            f("Index", U32),
            f("KeyHandle", Pointer),
            f("KeyName", Utf16),
        ],
    ),
];

const REGISTRY_TRANSACTION: &[Layout] = &[v(
    2,
    &[
        f("TxrGUID", Guid),
        f("Status", Status),
        f("UowCount", U32),
        f("OperationTime", U64),
        f("Hive", Utf16),
    ],
)];

const FAULT: &[Layout] = &[v(2, &[f("VirtualAddress", Pointer), f("ProgramCounter", Pointer)])];

const VIRTUAL: &[Layout] = &[v(
    2,
    &[f("BaseAddress", Pointer), f("RegionSize", Size), f("ProcessId", Process), f("Flags", Hex32)],
)];

const VIRTUAL_RUNDOWN: &[Layout] = &[v(
    2,
    &[
        f("BaseAddress", Pointer),
        f("RegionSize", Size),
        f("ProcessId", Process),
        f("Flags", Hex32),
        f("CommitSizeInBytes", Size),
    ],
)];

const HEAP_RANGE: &[Layout] =
    &[v(2, &[f("HeapHandle", Pointer), f("HRAddress", Pointer), f("HRSize", Size)])];

const MEMORY_RANGE: &[Layout] =
    &[v(2, &[f("BaseAddress", Pointer), f("SizeInBytes", Size), f("Flags", Hex32)])];

/// Disk transfers, and the drivers that serve them.
pub const DISK_IO: Class = Class {
    guid: GuidOf::from_u128(0x3d6f_a8d4_fe05_11d0_9dda_00c0_4fd7_ba7c),
    name: "DiskIo",
    group: Some(0x01),
    events: &[
        e(0x0a, "Read", DISK_TRANSFER),
        e(0x0b, "Write", DISK_TRANSFER),
        e(0x0c, "ReadInit", DISK_INIT),
        e(0x0d, "WriteInit", DISK_INIT),
        e(0x0e, "FlushBuffers", DISK_FLUSH),
        e(0x0f, "FlushInit", DISK_INIT),
        e(
            0x22,
            "DrvMjFnCall",
            &[
                v(
                    1,
                    &[
                        f("UniqMatchId", U32),
                        f("RoutineAddr", Pointer),
                        f("Irp", Pointer),
                        f("MajorFunction", U32),
                        f("MinorFunction", U32),
                        f("FileObject", Pointer),
                    ],
                ),
                v(
                    2,
                    &[
                        f("MajorFunction", U32),
                        f("MinorFunction", U32),
                        f("RoutineAddr", Pointer),
                        f("FileObject", Pointer),
                        f("Irp", Pointer),
                        f("UniqMatchId", U32),
                    ],
                ),
            ],
        ),
        e(0x23, "DrvMjFnRet", DRIVER_RETURN),
        e(
            0x25,
            "DrvComplRout",
            &[versions(
                1,
                2,
                &[f("Routine", Pointer), f("IrpPtr", Pointer), f("UniqMatchId", U32)],
            )],
        ),
        e(
            0x34,
            "DrvComplReq",
            &[versions(
                1,
                2,
                &[f("RoutineAddr", Pointer), f("Irp", Pointer), f("UniqMatchId", U32)],
            )],
        ),
        e(0x35, "DrvComplReqRet", DRIVER_COMPLETION_RETURN),
        e(0x37, "OpticalRead", DISK_TRANSFER),
        e(0x38, "OpticalWrite", DISK_TRANSFER),
        e(0x39, "OpticalFlushBuffers", DISK_FLUSH),
        e(0x3a, "OpticalReadInit", DISK_INIT),
        e(0x3b, "OpticalWriteInit", DISK_INIT),
        e(0x3c, "OpticalFlushInit", DISK_INIT),
    ],
};

/// File operations and the names of file objects.
pub const FILE_IO: Class = Class {
    guid: GuidOf::from_u128(0x90cb_dc39_4a3e_11d1_84f4_0000_f804_64e3),
    name: "FileIo",
    group: Some(0x04),
    events: &[
        e(0x00, "Name", FILE_NAME),
        e(0x20, "FileCreate", FILE_NAME),
        e(0x23, "FileDelete", FILE_NAME),
        e(0x24, "FileRundown", FILE_NAME),
        e(0x25, "MapFile", FILE_MAP),
        e(0x26, "UnmapFile", FILE_MAP),
        e(0x27, "MapFileDCStart", FILE_MAP),
        e(0x28, "MapFileDCEnd", FILE_MAP),
        e(
            0x40,
            "Create",
            &[
                v(
                    2,
                    &[
                        f("IrpPtr", Pointer),
                        f("TTID", WideThread),
                        f("FileObject", Pointer),
                        f("CreateOptions", Hex32),
                        f("FileAttributes", Hex32),
                        f("ShareAccess", Hex32),
                        f("OpenPath", Utf16),
                    ],
                ),
                v(
                    3,
                    &[
                        f("IrpPtr", Pointer),
                        f("FileObject", Pointer),
                        f("TTID", Thread),
                        f("CreateOptions", Hex32),
                        f("FileAttributes", Hex32),
                        f("ShareAccess", Hex32),
                        f("OpenPath", Utf16),
                    ],
                ),
            ],
        ),
        e(0x41, "Cleanup", FILE_SIMPLE),
        e(0x42, "Close", FILE_SIMPLE),
        e(0x43, "Read", FILE_TRANSFER),
        e(0x44, "Write", FILE_TRANSFER),
        e(0x45, "SetInfo", FILE_INFO),
        e(0x46, "Delete", FILE_INFO),
        e(0x47, "Rename", FILE_INFO),
        e(0x48, "DirEnum", FILE_DIRECTORY),
        e(0x49, "Flush", FILE_SIMPLE),
        e(0x4a, "QueryInfo", FILE_INFO),
        e(0x4b, "FSControl", FILE_INFO),
        e(
            0x4c,
            "OperationEnd",
            &[versions(
                2,
                3,
                &[f("IrpPtr", Pointer), f("ExtraInfo", Pointer), f("NtStatus", Status)],
            )],
        ),
        e(0x4d, "DirNotify", FILE_DIRECTORY),
        e(0x4f, "DeletePath", FILE_PATH),
        e(0x50, "RenamePath", FILE_PATH),
        e(0x51, "SetLinkPath", FILE_PATH),
        e(0x60, "PreOpInit", FILTER),
        e(0x61, "PostOpInit", FILTER),
        e(0x62, "PreOpCompletion", FILTER_COMPLETION),
        e(0x63, "PostOpCompletion", FILTER_COMPLETION),
        e(0x64, "PreOpFailure", FILTER_FAILURE),
        e(0x65, "PostOpFailure", FILTER_FAILURE),
    ],
};

/// The registry.
pub const REGISTRY: Class = Class {
    guid: GuidOf::from_u128(0xae53_722e_c863_11d2_8659_00c0_4fa3_21a1),
    name: "Registry",
    group: Some(0x09),
    events: &[
        e(0x0a, "Create", REGISTRY_KEY),
        e(0x0b, "Open", REGISTRY_KEY),
        e(0x0c, "Delete", REGISTRY_KEY),
        e(0x0d, "Query", REGISTRY_KEY),
        e(0x0e, "SetValue", REGISTRY_KEY),
        e(0x0f, "DeleteValue", REGISTRY_KEY),
        e(0x10, "QueryValue", REGISTRY_KEY),
        e(0x11, "EnumerateKey", REGISTRY_KEY),
        e(0x12, "EnumerateValueKey", REGISTRY_KEY),
        e(0x13, "QueryMultipleValue", REGISTRY_KEY),
        e(0x14, "SetInformation", REGISTRY_KEY),
        e(0x15, "Flush", REGISTRY_KEY),
        e(0x16, "KCBCreate", REGISTRY_KEY),
        e(0x17, "KCBDelete", REGISTRY_KEY),
        e(0x18, "KCBRundownBegin", REGISTRY_KEY),
        e(0x19, "KCBRundownEnd", REGISTRY_KEY),
        e(0x1a, "Virtualize", REGISTRY_KEY),
        e(0x1b, "Close", REGISTRY_KEY),
        e(0x1c, "SetSecurity", REGISTRY_KEY),
        e(0x1d, "QuerySecurity", REGISTRY_KEY),
        e(0x1e, "TxRCommit", REGISTRY_TRANSACTION),
        e(0x1f, "TxRPrepare", REGISTRY_TRANSACTION),
        e(0x20, "TxRRollback", REGISTRY_TRANSACTION),
        e(
            0x22,
            "Counters",
            &[v(
                2,
                &[
                    f("Counter1", U64),
                    f("Counter2", U64),
                    f("Counter3", U64),
                    f("Counter4", U64),
                    f("Counter5", U64),
                    f("Counter6", U64),
                    f("Counter7", U64),
                    f("Counter8", U64),
                    f("Counter9", U64),
                    f("Counter10", U64),
                    f("Counter11", U64),
                ],
            )],
        ),
        e(0x23, "Config", &[v(2, &[f("CurrentControlSet", U32)])]),
        e(
            0x24,
            "HiveInit",
            &[v(
                2,
                &[
                    f("Hive", Pointer),
                    f("OperationType", U32),
                    f("PoolTag", Hex32),
                    f("Size", U32),
                    f("FileName", Utf16),
                ],
            )],
        ),
        e(
            0x25,
            "HiveDestroy",
            &[v(2, &[f("Hive", Pointer), f("FileName", Utf16), f("Path", Utf16)])],
        ),
        e(0x26, "HiveLink", &[v(2, &[f("Hive", Pointer), f("Path", Utf16)])]),
        e(
            0x27,
            "HiveDCEnd",
            &[v(
                2,
                &[
                    f("Size", U64),
                    f("Hive", Pointer),
                    f("LoadedKeyCount", U32),
                    f("FileName", Utf16),
                    f("LinkPath", Utf16),
                ],
            )],
        ),
        e(
            0x28,
            "HiveDirty",
            &[v(2, &[f("Hive", Pointer), f("LinkPath", Utf16), f("DirtyReason", U32)])],
        ),
        e(
            0x30,
            "ChangeNotify",
            &[v(
                2,
                &[
                    f("Notification", Pointer),
                    f("KeyHandle", Pointer),
                    f("Type", U8),
                    f("WatchSubtree", U8),
                    f("Primary", U8),
                ],
            )],
        ),
    ],
};

/// Page faults and virtual memory.
pub const PAGE_FAULT: Class = Class {
    guid: GuidOf::from_u128(0x3d6f_a8d3_fe05_11d0_9dda_00c0_4fd7_ba7c),
    name: "PageFault",
    group: Some(0x02),
    events: &[
        e(0x0a, "TransitionFault", FAULT),
        e(0x0b, "DemandZeroFault", FAULT),
        e(0x0c, "CopyOnWrite", FAULT),
        e(0x0d, "GuardPageFault", FAULT),
        e(0x0e, "HardPageFault", FAULT),
        e(0x0f, "AccessViolation", FAULT),
        e(
            0x20,
            "HardFault",
            &[v(
                2,
                &[
                    f("InitialTime", Ticks),
                    f("ReadOffset", U64),
                    f("VirtualAddress", Pointer),
                    f("FileObject", Pointer),
                    f("TThreadId", Thread),
                    f("ByteCount", U32),
                ],
            )],
        ),
        e(0x62, "VirtualAlloc", VIRTUAL),
        e(0x63, "VirtualFree", VIRTUAL),
        e(
            0x64,
            "HRRundown",
            &[
                v(
                    2,
                    &[
                        f("HeapHandle", Pointer),
                        f("HRFlags", Hex32),
                        f("HRPid", Process),
                        f("HRRangeCount", U32),
                    ],
                ),
                v(
                    3,
                    &[
                        f("HeapHandle", Pointer),
                        f("HRFlags", Hex32),
                        f("HRPid", Process),
                        f("HRRangeCount", U32),
                        f("Reserved", U32),
                    ],
                ),
            ],
        ),
        e(
            0x65,
            "HRCreate",
            &[v(
                2,
                &[f("HeapHandle", Pointer), f("FirstRangeSize", Size), f("HRCreateFlags", Hex32)],
            )],
        ),
        e(0x66, "HRReserve", HEAP_RANGE),
        e(0x67, "HRRelease", HEAP_RANGE),
        e(0x68, "HRDestroy", &[v(2, &[f("HeapHandle", Pointer)])]),
        e(
            0x69,
            "ImageLoadBacked",
            &[v(
                2,
                &[
                    f("FileObject", Pointer),
                    f("DeviceChar", Hex32),
                    f("FileChar", U16),
                    f("LoadFlags", U16),
                ],
            )],
        ),
        e(0x7f, "VirtualRotate", MEMORY_RANGE),
        e(0x80, "VirtualAllocDCStart", VIRTUAL_RUNDOWN),
        e(0x81, "VirtualAllocDCEnd", VIRTUAL_RUNDOWN),
        e(0x86, "MemResetInfo", MEMORY_RANGE),
    ],
};
