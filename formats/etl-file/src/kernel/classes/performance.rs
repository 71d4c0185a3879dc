//! Samples, interrupts, system calls and stacks.

use etw_wire::Guid as GuidOf;

use super::super::descriptor::Type::{
    Ansi, Pointer, Pointers, Process, Status, Texts, Thread, Ticks, U8, U16, U32, U64, Utf16,
};
use super::super::descriptor::{Class, Layout, e, f, optional, v, versions};

const DEFERRED: &[Layout] = &[versions(1, 2, &[f("InitialTime", Ticks), f("Routine", Pointer)])];

const INTERRUPT: &[Layout] = &[
    v(1, &[f("InitialTime", Ticks), f("Routine", Pointer), f("ReturnValue", U32)]),
    v(
        2,
        &[
            f("InitialTime", Ticks),
            f("Routine", Pointer),
            f("ReturnValue", U8),
            f("Vector", U8),
            f("Reserved", U16),
        ],
    ),
];

const ROUTINE: &[Layout] = &[v(2, &[f("Routine", Pointer)])];

const INTERVAL: &[Layout] = &[
    v(2, &[f("Source", U32), f("NewInterval", U32), f("OldInterval", U32)]),
    v(3, &[f("Source", U32), f("NewInterval", U32), f("OldInterval", U32), f("SourceName", Utf16)]),
];

const SPIN_LOCK: &[Layout] = &[
    v(
        2,
        &[
            f("SpinLockSpinThreshold", U32),
            f("SpinLockContentionSampleRate", U32),
            f("SpinLockAcquireSampleRate", U32),
        ],
    ),
    v(
        3,
        &[
            f("SpinLockSpinThreshold", U32),
            f("SpinLockContentionSampleRate", U32),
            f("SpinLockAcquireSampleRate", U32),
            f("SpinLockHoldThreshold", U32),
        ],
    ),
];

const IO_TIMER: &[Layout] = &[v(2, &[f("DeviceObject", Pointer), f("TimerRoutine", Pointer)])];

const TIMER: &[Layout] = &[v(
    2,
    &[
        f("DueTime", U64),
        f("MaximumDueTime", U64),
        f("Period", U64),
        f("Timer", Pointer),
        f("Callback", Pointer),
        f("CallbackContext", Pointer),
        f("TimerFlags", U8),
    ],
)];

const KEY_DEFINITION: &[Layout] =
    &[versions(0, 2, &[f("StackKey", Pointer), f("StackFrame", Pointers)])];

const KEY_REFERENCE: &[Layout] = &[versions(
    0,
    2,
    &[
        f("EventTimeStamp", Ticks),
        f("StackProcess", Process),
        f("StackThread", Thread),
        f("StackKey", Pointer),
    ],
)];

/// Samples, interrupts and system calls.
pub const PERF_INFO: Class = Class {
    guid: GuidOf::from_u128(0xce1d_bfb4_137e_4da6_87b0_3f59_aa10_2cbc),
    name: "PerfInfo",
    group: Some(0x0f),
    events: &[
        e(0x22, "Mark", &[versions(0, 2, &[f("Message", Ansi), optional("Padding", U16)])]),
        e(
            0x2e,
            "SampleProf",
            &[
                v(1, &[f("InstructionPointer", Pointer), f("ThreadId", Thread), f("Count", U16)]),
                v(
                    2,
                    &[
                        f("InstructionPointer", Pointer),
                        f("ThreadId", Thread),
                        f("Count", U16),
                        f("Reserved", U16),
                    ],
                ),
            ],
        ),
        e(
            0x2f,
            "PmcCounterProf",
            &[v(
                2,
                &[
                    f("InstructionPointer", Pointer),
                    f("ThreadId", Thread),
                    f("ProfileSource", U16),
                    f("Reserved", U16),
                ],
            )],
        ),
        e(
            0x30,
            "PmcCtrConfig",
            &[v(2, &[f("CounterCount", U32), f("CounterName", Texts("CounterCount"))])],
        ),
        e(
            0x32,
            "ISR-MSI",
            &[v(
                2,
                &[
                    f("InitialTime", Ticks),
                    f("Routine", Pointer),
                    f("ReturnValue", U8),
                    f("Vector", U8),
                    f("Reserved", U16),
                    f("MessageNumber", U32),
                ],
            )],
        ),
        e(0x33, "SysClEnter", &[v(2, &[f("SysCallAddress", Pointer)])]),
        e(0x34, "SysClExit", &[v(2, &[f("SysCallNtStatus", Status)])]),
        e(0x3a, "DebuggerEnabled", &[v(2, &[])]),
        e(0x42, "ThreadedDPC", DEFERRED),
        e(0x43, "ISR", INTERRUPT),
        e(0x44, "DPC", DEFERRED),
        e(0x45, "TimerDPC", DEFERRED),
        e(0x46, "IOTimer", DEFERRED),
        e(0x48, "SetInterval", INTERVAL),
        e(0x49, "CollectionStart", INTERVAL),
        e(0x4a, "CollectionEnd", INTERVAL),
        e(0x4b, "SpinLockCollectionStart", SPIN_LOCK),
        e(0x4c, "SpinLockCollectionEnd", SPIN_LOCK),
        e(0x5c, "ISR-Unexpected", &[v(2, &[f("Vector", U16)])]),
        e(0x5d, "IoStartTimer", IO_TIMER),
        e(0x5e, "IoStopTimer", IO_TIMER),
        e(0x5f, "ISR-PASS", INTERRUPT),
        e(0x60, "WdfISR", ROUTINE),
        e(0x61, "WdfPassiveISR", ROUTINE),
        e(0x62, "WdfDPC", ROUTINE),
        e(0x67, "WdfWorkItem", ROUTINE),
        e(0x68, "SetKTimer2", TIMER),
        e(0x69, "ExpireKTimer2", TIMER),
        e(0x6a, "CancelKTimer2", &[v(2, &[f("Timer", Pointer)])]),
        e(
            0x6b,
            "DisableKTimer2",
            &[v(
                2,
                &[
                    f("Timer", Pointer),
                    f("DisableCallback", Pointer),
                    f("DisableContext", Pointer),
                    f("TimerFlags", U8),
                ],
            )],
        ),
        e(
            0x6c,
            "FinalizeKTimer2",
            &[v(
                2,
                &[f("Timer", Pointer), f("DisableCallback", Pointer), f("DisableContext", Pointer)],
            )],
        ),
    ],
};

/// Stacks of other events.
pub const STACK_WALK: Class = Class {
    guid: GuidOf::from_u128(0xdef2_fe46_7bd6_4b80_bd94_f57f_e20d_0ce3),
    name: "StackWalk",
    group: Some(0x18),
    events: &[
        e(
            0x20,
            "Stack",
            &[versions(
                0,
                2,
                &[
                    f("EventTimeStamp", Ticks),
                    f("StackProcess", Process),
                    f("StackThread", Thread),
                    f("Stack", Pointers),
                ],
            )],
        ),
        e(0x22, "KeyCreate", KEY_DEFINITION),
        e(0x23, "KeyDelete", KEY_DEFINITION),
        e(0x24, "KeyRundown", KEY_DEFINITION),
        e(0x25, "StackKeyKernel", KEY_REFERENCE),
        e(0x26, "StackKeyUser", KEY_REFERENCE),
    ],
};
