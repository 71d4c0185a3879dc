//! Processes, threads and images.

use etw_wire::Guid;

use super::super::descriptor::Type::{
    Ansi, FileTime, Hex32, I8, I32, Pointer, Process, Sid, Size, Thread, U8, U16, U32, U64, Utf16,
    WideProcess,
};
use super::super::descriptor::{Class, Layout, e, f, optional, v, versions};

const PROCESS_LAYOUTS: &[Layout] = &[
    v(
        0,
        &[
            f("ProcessId", WideProcess),
            f("ParentId", WideProcess),
            f("UserSID", Sid),
            f("ImageFileName", Ansi),
        ],
    ),
    v(
        1,
        &[
            f("PageDirectoryBase", Pointer),
            f("ProcessId", Process),
            f("ParentId", Process),
            f("SessionId", U32),
            f("ExitStatus", I32),
            f("UserSID", Sid),
            f("ImageFileName", Ansi),
        ],
    ),
    v(
        2,
        &[
            f("UniqueProcessKey", Pointer),
            f("ProcessId", Process),
            f("ParentId", Process),
            f("SessionId", U32),
            f("ExitStatus", I32),
            f("UserSID", Sid),
            f("ImageFileName", Ansi),
            f("CommandLine", Utf16),
        ],
    ),
    v(
        3,
        &[
            f("UniqueProcessKey", Pointer),
            f("ProcessId", Process),
            f("ParentId", Process),
            f("SessionId", U32),
            f("ExitStatus", I32),
            f("DirectoryTableBase", Pointer),
            f("UserSID", Sid),
            f("ImageFileName", Ansi),
            f("CommandLine", Utf16),
        ],
    ),
    v(
        4,
        &[
            f("UniqueProcessKey", Pointer),
            f("ProcessId", Process),
            f("ParentId", Process),
            f("SessionId", U32),
            f("ExitStatus", I32),
            f("DirectoryTableBase", Pointer),
            f("Flags", Hex32),
            f("UserSID", Sid),
            f("ImageFileName", Ansi),
            f("CommandLine", Utf16),
            f("PackageFullName", Utf16),
            f("ApplicationId", Utf16),
        ],
    ),
    v(
        5,
        &[
            f("UniqueProcessKey", Pointer),
            f("ProcessId", Process),
            f("ParentId", Process),
            f("SessionId", U32),
            f("ExitStatus", I32),
            f("DirectoryTableBase", Pointer),
            f("Flags", Hex32),
            f("UserSID", Sid),
            f("ImageFileName", Ansi),
            f("CommandLine", Utf16),
            f("PackageFullName", Utf16),
            f("ApplicationId", Utf16),
            f("ExitTime", FileTime),
        ],
    ),
];

const COUNTERS: &[Layout] = &[versions(
    2,
    3,
    &[
        f("ProcessId", Process),
        f("PageFaultCount", U32),
        f("HandleCount", U32),
        f("Reserved", U32),
        f("PeakVirtualSize", Size),
        f("PeakWorkingSetSize", Size),
        f("PeakPagefileUsage", Size),
        f("QuotaPeakPagedPoolUsage", Size),
        f("QuotaPeakNonPagedPoolUsage", Size),
        f("VirtualSize", Size),
        f("WorkingSetSize", Size),
        f("PagefileUsage", Size),
        f("QuotaPagedPoolUsage", Size),
        f("QuotaNonPagedPoolUsage", Size),
        f("PrivatePageCount", Size),
    ],
)];

const WAKE: &[Layout] =
    &[v(2, &[f("Object", Pointer), f("Tag", Pointer), f("ProcessId", Process), f("Count", U32)])];

/// Processes.
pub const PROCESS: Class = Class {
    guid: Guid::from_u128(0x3d6f_a8d0_fe05_11d0_9dda_00c0_4fd7_ba7c),
    name: "Process",
    group: Some(0x03),
    events: &[
        e(0x01, "Start", PROCESS_LAYOUTS),
        e(0x02, "End", PROCESS_LAYOUTS),
        e(0x03, "DCStart", PROCESS_LAYOUTS),
        e(0x04, "DCEnd", PROCESS_LAYOUTS),
        e(0x0b, "Terminate", &[versions(0, 2, &[f("ProcessId", Process)])]),
        e(0x20, "PerfCtr", COUNTERS),
        e(0x21, "PerfCtrRundown", COUNTERS),
        e(0x23, "InSwap", &[v(2, &[f("DirectoryTableBase", Pointer), f("ProcessId", Process)])]),
        e(0x27, "Defunct", PROCESS_LAYOUTS),
        e(0x30, "WakeChargeUser", WAKE),
        e(0x31, "WakeChargeExecution", WAKE),
        e(0x32, "WakeChargeKernel", WAKE),
        e(0x33, "WakeChargeInstrumentation", WAKE),
        e(0x34, "WakeChargePreserveProcess", WAKE),
        e(0x40, "WakeReleaseUser", WAKE),
        e(0x41, "WakeReleaseExecution", WAKE),
        e(0x42, "WakeReleaseKernel", WAKE),
        e(0x43, "WakeReleaseInstrumentation", WAKE),
        e(0x44, "WakeReleasePreserveProcess", WAKE),
        e(0x50, "WakeDropUser", WAKE),
        e(0x51, "WakeDropExecution", WAKE),
        e(0x52, "WakeDropKernel", WAKE),
        e(0x53, "WakeDropInstrumentation", WAKE),
        e(0x54, "WakeDropPreserveProcess", WAKE),
        e(0x60, "WakeEventUser", &[v(2, &[f("Object", Pointer)])]),
        e(0x61, "WakeEventExecution", &[v(2, &[f("Object", Pointer)])]),
        e(0x62, "WakeEventKernel", &[v(2, &[f("Object", Pointer)])]),
        e(0x63, "WakeEventInstrumentation", &[v(2, &[f("Object", Pointer)])]),
    ],
};

const THREAD_V0: Layout = v(0, &[f("TThreadId", Thread), f("ProcessId", Process)]);

const THREAD_V1: Layout = v(
    1,
    &[
        f("ProcessId", Process),
        f("TThreadId", Thread),
        f("StackBase", Pointer),
        f("StackLimit", Pointer),
        f("UserStackBase", Pointer),
        f("UserStackLimit", Pointer),
        f("StartAddr", Pointer),
        f("Win32StartAddr", Pointer),
        f("WaitMode", I8),
    ],
);

const THREAD_V1_END: Layout = v(1, &[f("ProcessId", Process), f("TThreadId", Thread)]);

const THREAD_V2: Layout = v(
    2,
    &[
        f("ProcessId", Process),
        f("TThreadId", Thread),
        f("StackBase", Pointer),
        f("StackLimit", Pointer),
        f("UserStackBase", Pointer),
        f("UserStackLimit", Pointer),
        f("StartAddr", Pointer),
        f("Win32StartAddr", Pointer),
        f("TebBase", Pointer),
        f("SubProcessTag", U32),
    ],
);

// The name came without a new version at first, so both versions may have it.
const THREAD_V3: Layout = versions(
    3,
    4,
    &[
        f("ProcessId", Process),
        f("TThreadId", Thread),
        f("StackBase", Pointer),
        f("StackLimit", Pointer),
        f("UserStackBase", Pointer),
        f("UserStackLimit", Pointer),
        f("Affinity", Pointer),
        f("Win32StartAddr", Pointer),
        f("TebBase", Pointer),
        f("SubProcessTag", U32),
        f("BasePriority", U8),
        f("PagePriority", U8),
        f("IoPriority", U8),
        f("ThreadFlags", U8),
        optional("ThreadName", Utf16),
    ],
);

const THREAD_START: &[Layout] = &[THREAD_V0, THREAD_V1, THREAD_V2, THREAD_V3];
const THREAD_END: &[Layout] = &[THREAD_V0, THREAD_V1_END, THREAD_V2, THREAD_V3];

const PRIORITY: &[Layout] = &[versions(
    2,
    3,
    &[f("ThreadId", Thread), f("OldPriority", U8), f("NewPriority", U8), f("Reserved", U16)],
)];

/// Threads and their scheduling.
pub const THREAD: Class = Class {
    guid: Guid::from_u128(0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c),
    name: "Thread",
    group: Some(0x05),
    events: &[
        e(0x01, "Start", THREAD_START),
        e(0x02, "End", THREAD_END),
        e(0x03, "DCStart", THREAD_START),
        e(0x04, "DCEnd", THREAD_START),
        e(
            0x24,
            "CSwitch",
            &[
                v(
                    1,
                    &[
                        f("NewThreadId", Thread),
                        f("OldThreadId", Thread),
                        f("NewThreadPriority", I8),
                        f("OldThreadPriority", I8),
                        f("NewThreadQuantum", I8),
                        f("OldThreadQuantum", I8),
                        f("OldThreadWaitReason", I8),
                        f("OldThreadWaitMode", I8),
                        f("OldThreadState", I8),
                        f("OldThreadWaitIdealProcessor", I8),
                    ],
                ),
                v(
                    2,
                    &[
                        f("NewThreadId", Thread),
                        f("OldThreadId", Thread),
                        f("NewThreadPriority", I8),
                        f("OldThreadPriority", I8),
                        f("PreviousCState", U8),
                        f("SpareByte", I8),
                        f("OldThreadWaitReason", I8),
                        f("OldThreadWaitMode", I8),
                        f("OldThreadState", I8),
                        f("OldThreadWaitIdealProcessor", I8),
                        f("NewThreadWaitTime", U32),
                        f("Reserved", U32),
                    ],
                ),
                versions(
                    3,
                    4,
                    &[
                        f("NewThreadId", Thread),
                        f("OldThreadId", Thread),
                        f("NewThreadPriority", I8),
                        f("OldThreadPriority", I8),
                        f("PreviousCState", U8),
                        f("SpareByte", I8),
                        f("OldThreadWaitReason", I8),
                        f("ThreadFlags", I8),
                        f("OldThreadState", I8),
                        f("OldThreadWaitIdealProcessor", I8),
                        f("NewThreadWaitTime", U32),
                        f("Reserved", U32),
                    ],
                ),
            ],
        ),
        e(0x25, "CompCS", &[versions(0, 2, &[])]),
        e(
            0x29,
            "SpinLock",
            &[v(
                2,
                &[
                    f("SpinLockAddress", Pointer),
                    f("CallerAddress", Pointer),
                    f("AcquireTime", U64),
                    f("ReleaseTime", U64),
                    f("WaitTimeInCycles", U32),
                    f("SpinCount", U32),
                    f("ThreadId", Thread),
                    f("InterruptCount", U32),
                    f("Irql", U8),
                    f("AcquireDepth", U8),
                    f("Flag", U8),
                    f("Reserved", super::super::descriptor::Type::Bytes(5)),
                ],
            )],
        ),
        e(0x30, "SetPriority", PRIORITY),
        e(0x31, "SetBasePriority", PRIORITY),
        e(
            0x32,
            "ReadyThread",
            &[v(
                2,
                &[
                    f("TThreadId", Thread),
                    f("AdjustReason", I8),
                    f("AdjustIncrement", I8),
                    f("Flag", I8),
                    f("Reserved", I8),
                ],
            )],
        ),
        e(0x33, "SetPagePriority", PRIORITY),
        e(0x34, "SetIoPriority", PRIORITY),
        e(
            0x35,
            "ThreadAffinity",
            &[v(
                2,
                &[
                    f("Affinity", Pointer),
                    f("ThreadId", Thread),
                    f("Group", U16),
                    f("Reserved", U16),
                ],
            )],
        ),
        e(
            0x39,
            "WorkerThread",
            &[versions(
                1,
                2,
                &[f("TThreadId", Thread), f("StartTime", U64), f("ThreadRoutine", Pointer)],
            )],
        ),
        e(
            0x3c,
            "AntiStarvationBoost",
            &[v(
                2,
                &[
                    f("ThreadId", Thread),
                    f("ProcessorIndex", U16),
                    f("Priority", U8),
                    f("Reserved", U8),
                ],
            )],
        ),
        e(
            0x3d,
            "ThreadMigration",
            &[v(
                2,
                &[
                    f("ThreadId", Thread),
                    f("SourceProcessorIndex", U16),
                    f("TargetProcessorIndex", U16),
                    f("Priority", U8),
                    f("IdealProcessorAdjust", U8),
                    f("OldIdealProcessorIndex", U16),
                ],
            )],
        ),
        e(0x3e, "KernelQueueEnqueue", &[v(2, &[f("Entry", Pointer), f("ThreadId", Thread)])]),
        e(
            0x3f,
            "KernelQueueDequeue",
            &[v(
                2,
                &[
                    f("ThreadId", Thread),
                    f("EntryCount", U32),
                    f("Entries", super::super::descriptor::Type::Pointers),
                ],
            )],
        ),
        e(0x40, "WorkerThreadStart", &[v(2, &[f("CallbackRoutine", Pointer)])]),
        e(0x41, "WorkerThreadEnd", &[v(2, &[f("CallbackRoutine", Pointer)])]),
        e(
            0x42,
            "AutoBoostSetFloor",
            &[v(
                2,
                &[
                    f("Lock", Pointer),
                    f("ThreadId", Thread),
                    f("NewCpuPriorityFloor", U8),
                    f("OldCpuPriority", U8),
                    f("IoPriorities", U8),
                    f("BoostFlags", U8),
                ],
            )],
        ),
        e(
            0x43,
            "AutoBoostClearFloor",
            &[v(2, &[f("LockAddress", Pointer), f("ThreadId", Thread), f("BoostBitmap", Hex32)])],
        ),
        e(
            0x44,
            "AutoBoostEntryExhaustion",
            &[v(2, &[f("LockAddress", Pointer), f("ThreadId", Thread)])],
        ),
        e(0x45, "SubProcessTagChanged", &[v(2, &[f("OldTag", U32), f("NewTag", U32)])]),
        e(
            0x48,
            "SetName",
            &[versions(
                2,
                3,
                &[f("ProcessId", Process), f("ThreadId", Thread), f("ThreadName", Utf16)],
            )],
        ),
    ],
};

const IMAGE_LAYOUTS: &[Layout] = &[
    v(0, &[f("ImageBase", Pointer), f("ImageSize", U32), f("FileName", Utf16)]),
    v(
        1,
        &[
            f("ImageBase", Pointer),
            f("ImageSize", Size),
            f("ProcessId", Process),
            f("FileName", Utf16),
        ],
    ),
    v(
        2,
        &[
            f("ImageBase", Pointer),
            f("ImageSize", Size),
            f("ProcessId", Process),
            f("ImageChecksum", Hex32),
            f("TimeDateStamp", Hex32),
            f("Reserved0", U32),
            f("DefaultBase", Pointer),
            f("Reserved1", U32),
            f("Reserved2", U32),
            f("Reserved3", U32),
            f("Reserved4", U32),
            f("FileName", Utf16),
        ],
    ),
    v(
        3,
        &[
            f("ImageBase", Pointer),
            f("ImageSize", Size),
            f("ProcessId", Process),
            f("ImageChecksum", Hex32),
            f("TimeDateStamp", Hex32),
            f("SignatureLevel", U8),
            f("SignatureType", U8),
            f("Reserved0", U16),
            f("DefaultBase", Pointer),
            f("Reserved1", U32),
            f("Reserved2", U32),
            f("Reserved3", U32),
            f("Reserved4", U32),
            f("FileName", Utf16),
        ],
    ),
];

/// Images: programs, libraries and drivers in memory.
pub const IMAGE: Class = Class {
    guid: Guid::from_u128(0x2cb1_5d1d_5fc1_11d2_abe1_00a0_c911_f518),
    name: "Image",
    group: Some(0x14),
    events: &[
        e(0x02, "UnLoad", IMAGE_LAYOUTS),
        e(0x03, "DCStart", IMAGE_LAYOUTS),
        e(0x04, "DCEnd", IMAGE_LAYOUTS),
        e(0x0a, "Load", IMAGE_LAYOUTS),
        e(0x21, "KernelBase", &[v(2, &[f("ImageBase", Pointer)])]),
        e(0x22, "HypercallPage", &[v(2, &[f("HypercallPageVa", Pointer)])]),
    ],
};

/// What merging tools add about images, so that their symbols can be found.
pub const IMAGE_ID: Class = Class {
    guid: Guid::from_u128(0xb3e6_75d7_2554_4f18_830b_2762_7325_60de),
    name: "ImageId",
    group: None,
    events: &[
        e(
            0x00,
            "Info",
            &[versions(
                0,
                2,
                &[
                    f("ImageBase", Pointer),
                    f("ImageSize", Size),
                    f("ProcessId", Process),
                    f("TimeDateStamp", Hex32),
                    f("OriginalFileName", Utf16),
                ],
            )],
        ),
        e(
            0x24,
            "DbgIdRSDS",
            &[versions(
                0,
                2,
                &[
                    f("ImageBase", Pointer),
                    f("ProcessId", Process),
                    f("GuidSig", super::super::descriptor::Type::Guid),
                    f("Age", U32),
                    f("PdbFileName", Ansi),
                ],
            )],
        ),
        e(
            0x40,
            "FileVersion",
            &[versions(
                0,
                2,
                &[
                    f("ImageSize", U32),
                    f("TimeDateStamp", Hex32),
                    f("OrigFileName", Utf16),
                    f("FileDescription", Utf16),
                    f("FileVersion", Utf16),
                    f("BinFileVersion", Utf16),
                    f("VerLanguage", Utf16),
                    f("ProductName", Utf16),
                    f("CompanyName", Utf16),
                    f("ProductVersion", Utf16),
                    f("FileId", Utf16),
                    f("ProgramId", Utf16),
                ],
            )],
        ),
    ],
};
