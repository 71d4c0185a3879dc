//! The field numbers of Perfetto's messages, as in its published schema.

/// `Trace`.
pub mod trace {
    pub const PACKET: u32 = 1;
}

/// `TracePacket`.
pub mod packet {
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const SYSTEM_INFO: u32 = 45;
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const PERF_SAMPLE: u32 = 66;
    pub const ETW_EVENTS: u32 = 95;
    pub const TRACE_ATTRIBUTES: u32 = 126;

    /// `SequenceFlags`: the interned data of earlier packets is invalid.
    pub const INCREMENTAL_STATE_CLEARED: u64 = 1;
    /// `SequenceFlags`: the packet refers to interned data.
    pub const NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `TracePacketDefaults`.
pub mod defaults {
    pub const PERF_SAMPLE_DEFAULTS: u32 = 12;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
}

/// `PerfSampleDefaults` and `PerfEvents.Timebase`.
pub mod timebase {
    pub const TIMEBASE: u32 = 1;
    pub const PERIOD: u32 = 1;
    pub const COUNTER: u32 = 4;
    pub const NAME: u32 = 10;
    /// `PerfEvents.Counter`: processor time.
    pub const SW_CPU_CLOCK: u64 = 1;
}

/// `ClockSnapshot` and `ClockSnapshot.Clock`.
pub mod clock {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub const CLOCK_ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;
    /// The time since 1970.
    pub const REALTIME: u64 = 1;
    /// The time since the machine started.
    pub const BOOTTIME: u64 = 6;
}

/// `SystemInfo` and `Utsname`.
pub mod system {
    pub const UTSNAME: u32 = 1;
    pub const NUM_CPUS: u32 = 8;
    pub const SYSNAME: u32 = 1;
    pub const RELEASE: u32 = 3;
}

/// `TraceAttributes` and `TraceAttributes.Attribute`.
pub mod attributes {
    pub const ATTRIBUTE: u32 = 1;
    pub const KEY: u32 = 1;
    pub const LONG_VALUE: u32 = 2;
    pub const STRING_VALUE: u32 = 3;
}

/// `TrackDescriptor`, with `ProcessDescriptor`, `ThreadDescriptor` and `CounterDescriptor`.
pub mod track {
    pub const UUID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const PROCESS: u32 = 3;
    pub const THREAD: u32 = 4;
    pub const PARENT_UUID: u32 = 5;
    pub const COUNTER: u32 = 8;

    pub const PROCESS_PID: u32 = 1;
    pub const PROCESS_CMDLINE: u32 = 2;
    pub const PROCESS_NAME: u32 = 6;

    pub const THREAD_PID: u32 = 1;
    pub const THREAD_TID: u32 = 2;
    pub const THREAD_NAME: u32 = 5;

    pub const COUNTER_UNIT_NAME: u32 = 6;
}

/// `TrackEvent`.
pub mod event {
    pub const CATEGORY_IIDS: u32 = 3;
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK_UUID: u32 = 11;
    pub const COUNTER_VALUE: u32 = 30;
    pub const FLOW_IDS: u32 = 47;
    pub const TERMINATING_FLOW_IDS: u32 = 48;
    pub const CORRELATION_ID_STR_IID: u32 = 54;
    pub const CALLSTACK_IID: u32 = 56;

    /// `Type`.
    pub const SLICE_BEGIN: u64 = 1;
    pub const SLICE_END: u64 = 2;
    pub const INSTANT: u64 = 3;
    pub const COUNTER: u64 = 4;
}

/// `DebugAnnotation`.
pub mod annotation {
    pub const NAME_IID: u32 = 1;
    pub const BOOL_VALUE: u32 = 2;
    pub const UINT_VALUE: u32 = 3;
    pub const INT_VALUE: u32 = 4;
    pub const DOUBLE_VALUE: u32 = 5;
    pub const STRING_VALUE: u32 = 6;
    pub const POINTER_VALUE: u32 = 7;
    pub const NAME: u32 = 10;
    pub const DICT_ENTRIES: u32 = 11;
    pub const ARRAY_VALUES: u32 = 12;
    pub const STRING_VALUE_IID: u32 = 17;
}

/// `InternedData` and its entries.
pub mod interned {
    pub const EVENT_CATEGORIES: u32 = 1;
    pub const EVENT_NAMES: u32 = 2;
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub const FUNCTION_NAMES: u32 = 5;
    pub const FRAMES: u32 = 6;
    pub const CALLSTACKS: u32 = 7;
    pub const MAPPING_PATHS: u32 = 17;
    pub const MAPPINGS: u32 = 19;
    pub const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
    pub const CORRELATION_ID_STR: u32 = 43;

    /// The fields of every entry: its number and, if it is a string, the string.
    pub const IID: u32 = 1;
    pub const TEXT: u32 = 2;

    /// `Frame`.
    pub const FRAME_FUNCTION_NAME_ID: u32 = 2;
    pub const FRAME_MAPPING_ID: u32 = 3;
    pub const FRAME_REL_PC: u32 = 4;
    /// `Mapping`.
    pub const MAPPING_PATH_STRING_IDS: u32 = 7;
    /// `Callstack`.
    pub const CALLSTACK_FRAME_IDS: u32 = 2;
}

/// `PerfSample`.
pub mod sample {
    pub const CPU: u32 = 1;
    pub const PID: u32 = 2;
    pub const TID: u32 = 3;
    pub const CALLSTACK_IID: u32 = 4;
    pub const CPU_MODE: u32 = 5;
    /// `Profiling.CpuMode`.
    pub const MODE_KERNEL: u64 = 1;
    pub const MODE_USER: u64 = 2;
}

/// `EtwTraceEventBundle` and `EtwTraceEvent`.
pub mod etw {
    pub const BUNDLE_EVENT: u32 = 2;

    pub const TIMESTAMP: u32 = 1;
    pub const C_SWITCH: u32 = 2;
    pub const READY_THREAD: u32 = 3;
    pub const CPU: u32 = 4;
    pub const THREAD_ID: u32 = 5;
    pub const FILE_IO_CREATE: u32 = 7;
    pub const FILE_IO_DIR_ENUM: u32 = 8;
    pub const FILE_IO_INFO: u32 = 9;
    pub const FILE_IO_READ_WRITE: u32 = 10;
    pub const FILE_IO_SIMPLE_OP: u32 = 11;
    pub const FILE_IO_OP_END: u32 = 12;
    pub const STACK_WALK: u32 = 13;
    pub const FILE_IO_PATH_OPERATION: u32 = 14;

    /// `StackWalkEtwEvent`.
    pub const TRIGGER: u32 = 1;
    pub const WALK_CALLSTACK_IID: u32 = 2;
}
