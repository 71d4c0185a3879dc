//! The header of a trace, `TRACE_LOGFILE_HEADER`.

use crate::layout;
use crate::time::{Clock, ClockType, FileTime, SystemTime};

/// Bits in `LogFileMode` (`EVENT_TRACE_*_MODE`).
pub mod log_file_mode {
    /// The file is written sequentially, up to an optional size limit.
    pub const SEQUENTIAL: u32 = 0x1;
    /// The oldest buffers are overwritten when the file is full.
    pub const CIRCULAR: u32 = 0x2;
    /// The session appends to an existing file.
    pub const APPEND: u32 = 0x4;
    /// A new file is started when the file is full.
    pub const NEWFILE: u32 = 0x8;
    /// Events are delivered in real time. Files never contain this bit.
    pub const REAL_TIME: u32 = 0x100;
    /// Buffers are kept in memory until a flush is requested.
    pub const BUFFERING: u32 = 0x400;
    /// Messages in all sessions with this bit are numbered in one sequence.
    pub const USE_GLOBAL_SEQUENCE: u32 = 0x4000;
    /// Messages in this session are numbered separately.
    pub const USE_LOCAL_SEQUENCE: u32 = 0x8000;
    /// Buffers are compressed in the file.
    pub const COMPRESSED: u32 = 0x0400_0000;
    /// A failure of this session does not affect others.
    pub const INDEPENDENT_SESSION: u32 = 0x0800_0000;
    /// All processors share one stream of buffers.
    pub const NO_PER_PROCESSOR_BUFFERING: u32 = 0x1000_0000;
}

/// The time zone of the machine (`TIME_ZONE_INFORMATION`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// The bias in minutes: UTC is local time plus the bias.
    pub bias: i32,
    /// The name of standard time, at most 31 UTF-16 units.
    pub standard_name: String,
    /// The date at which standard time begins.
    pub standard_date: SystemTime,
    /// The minutes that are added to the bias in standard time.
    pub standard_bias: i32,
    /// The name of daylight saving time, at most 31 UTF-16 units.
    pub daylight_name: String,
    /// The date at which daylight saving time begins.
    pub daylight_date: SystemTime,
    /// The minutes that are added to the bias in daylight saving time.
    pub daylight_bias: i32,
}

/// The settings that a session chooses for its log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileHeader {
    /// The buffer size in bytes: a whole number of KiB from 4 KiB to 1 MiB.
    pub buffer_size: u32,
    /// The number of processors, which is greater than each buffer's processor index.
    pub processors: u32,
    /// The clock type of the timestamps.
    pub clock: ClockType,
    /// The performance counter's ticks per second; positive for every clock type.
    pub perf_frequency: i64,
    /// The time at which the session started.
    pub start_time: FileTime,
    /// The clock's reading when the session started. For
    /// [`ClockType::SystemTime`], it equals `start_time`.
    pub start_clock: i64,
    /// The time at which the system was started (`BootTime`).
    pub boot_time: FileTime,
    /// Bits of [`log_file_mode`].
    pub log_file_mode: u32,
    /// The maximum file size in MiB; 0 means no limit.
    pub maximum_file_size: u32,
    /// The operating system's major version.
    pub os_major: u8,
    /// The operating system's minor version.
    pub os_minor: u8,
    /// The operating system's build number.
    pub os_build: u32,
    /// The processor speed in MHz, not zero.
    pub cpu_mhz: u32,
    /// The resolution of the system timer, in units of 100 ns.
    pub timer_resolution: u32,
    /// The session's name.
    pub session_name: String,
    /// The log file's path.
    pub log_file_name: String,
    /// The machine's time zone.
    pub time_zone: TimeZone,
    /// The session's logger id, which every buffer contains.
    pub logger_id: u16,
    /// The thread that started the session.
    pub thread_id: u32,
    /// The process that started the session.
    pub process_id: u32,
}

impl Default for LogFileHeader {
    /// One processor, 64 KiB buffers, a 10 MHz performance counter, UTC, a sequential file, and
    /// Windows 10 build 19041; no names, and all times are zero.
    fn default() -> Self {
        Self {
            buffer_size: 0x1_0000,
            processors: 1,
            clock: ClockType::Qpc,
            perf_frequency: 10_000_000,
            start_time: FileTime::default(),
            start_clock: 0,
            boot_time: FileTime::default(),
            log_file_mode: log_file_mode::SEQUENTIAL,
            maximum_file_size: 0,
            os_major: 10,
            os_minor: 0,
            os_build: 19041,
            cpu_mhz: 3000,
            timer_resolution: 156_250,
            session_name: String::new(),
            log_file_name: String::new(),
            time_zone: TimeZone::default(),
            logger_id: 1,
            thread_id: 0,
            process_id: 0,
        }
    }
}

/// The reason why a header does not describe a valid log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The buffer size is not a whole number of KiB between 4 KiB and 1 MiB.
    #[error(
        "a buffer size of {0} bytes is invalid: it must be a whole number of KiB from 4 KiB to 1 MiB"
    )]
    BufferSize(u32),
    /// The number of processors is not in 1 to 256, or is not 1 although all processors share one
    /// stream.
    #[error(
        "the processor count {0} is invalid: it must be 1 to 256, or exactly 1 if all processors \
         share one stream of buffers"
    )]
    Processors(u32),
    /// The clock type is not one of the three defined values.
    #[error("clock type {0} is not defined")]
    Clock(u32),
    /// The frequency of the performance counter is not positive.
    #[error(
        "a performance counter of {0} ticks per second is invalid: the frequency must be positive"
    )]
    PerfFrequency(i64),
    /// The processor speed is zero.
    #[error("the processor speed must not be zero")]
    CpuSpeed,
    /// The two start times differ, but must be equal for the system clock.
    #[error("with the system clock, the clock reading at the start must equal the start time")]
    StartClock,
    /// A name contains a NUL.
    #[error("the {0} contains a NUL character")]
    NulInName(&'static str),
    /// The names do not fit in the first buffer.
    #[error("the header with the session and log file names takes {size} of {capacity} bytes")]
    NamesTooLong {
        /// The size of the header event.
        size: usize,
        /// The capacity of the first buffer.
        capacity: usize,
    },
}

/// The length of a time zone's name in UTF-16 units, including the NUL.
const ZONE_NAME_UNITS: usize = 32;

impl LogFileHeader {
    /// Returns the clock, which converts timestamps to absolute times.
    #[must_use]
    pub const fn session_clock(&self) -> Clock {
        Clock {
            kind: self.clock,
            perf_frequency: self.perf_frequency,
            cpu_mhz: self.cpu_mhz,
            start_clock: self.start_clock,
            start_time: self.start_time,
        }
    }

    /// Returns true if the file's buffers are compressed.
    #[must_use]
    pub const fn is_compressed(&self) -> bool {
        self.log_file_mode & log_file_mode::COMPRESSED != 0
    }

    /// Returns the reason why timestamps cannot be converted, if there is one.
    #[must_use]
    pub const fn clock_error(&self) -> Option<HeaderError> {
        match self.clock {
            ClockType::Qpc if self.perf_frequency <= 0 => {
                Some(HeaderError::PerfFrequency(self.perf_frequency))
            }
            ClockType::CpuCycles if self.cpu_mhz == 0 => Some(HeaderError::CpuSpeed),
            ClockType::Other(raw) => Some(HeaderError::Clock(raw)),
            ClockType::Qpc | ClockType::SystemTime | ClockType::CpuCycles => None,
        }
    }

    /// Validates every field that could make the file unreadable.
    pub(crate) fn validate(&self) -> Result<(), HeaderError> {
        let mode = self.log_file_mode;
        let shared = mode & log_file_mode::NO_PER_PROCESSOR_BUFFERING != 0;
        if !self.buffer_size.is_multiple_of(1024)
            || !(0x1000..=0x10_0000).contains(&self.buffer_size)
        {
            return Err(HeaderError::BufferSize(self.buffer_size));
        }
        if !(1..=256).contains(&self.processors) || (shared && self.processors != 1) {
            return Err(HeaderError::Processors(self.processors));
        }
        if let ClockType::Other(raw) = self.clock {
            return Err(HeaderError::Clock(raw));
        }
        if self.perf_frequency <= 0 {
            return Err(HeaderError::PerfFrequency(self.perf_frequency));
        }
        if self.cpu_mhz == 0 {
            return Err(HeaderError::CpuSpeed);
        }
        if self.clock == ClockType::SystemTime && self.start_clock != self.start_time.raw() {
            return Err(HeaderError::StartClock);
        }
        for (what, name) in
            [("session name", &self.session_name), ("log file name", &self.log_file_name)]
        {
            if name.contains('\0') {
                return Err(HeaderError::NulInName(what));
            }
        }
        Ok(())
    }

    /// Returns the header event: a system header, a `TRACE_LOGFILE_HEADER` that states one written
    /// buffer, and the two names, without trailing padding.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, HeaderError> {
        self.validate()?;
        let names: Vec<u8> = [&self.session_name, &self.log_file_name]
            .into_iter()
            .flat_map(|name| name.encode_utf16().chain([0]))
            .flat_map(u16::to_le_bytes)
            .collect();
        let size = layout::SYSTEM_HEADER + layout::LOGFILE_HEADER + names.len();
        let room = usize::try_from(self.buffer_size)
            .map_or(layout::MAX_RECORD, |b| b - layout::BUFFER_HEADER);
        let capacity = room.min(layout::MAX_RECORD);
        let too_long = HeaderError::NamesTooLong { size, capacity };
        if layout::align8(size) > room {
            return Err(too_long);
        }
        let record_size = u16::try_from(size).map_err(|_| too_long)?;

        let mut out = Vec::with_capacity(size);
        // SYSTEM_TRACE_HEADER: version 2, the 64-bit form, hook 0.
        out.extend([2, 0, layout::HEADER_SYSTEM64, layout::MARKER]);
        out.extend(record_size.to_le_bytes());
        out.extend([0, 0]);
        out.extend(self.thread_id.to_le_bytes());
        out.extend(self.process_id.to_le_bytes());
        out.extend(self.start_clock.to_le_bytes());
        out.extend([0; 8]);
        // TRACE_LOGFILE_HEADER.
        out.extend(self.buffer_size.to_le_bytes());
        let layout_version = if self.is_compressed() { [2, 0] } else { [1, 5] };
        out.extend([self.os_major, self.os_minor]);
        out.extend(layout_version);
        out.extend(self.os_build.to_le_bytes());
        out.extend(self.processors.to_le_bytes());
        out.extend([0; 8]); // EndTime, unknown while recording
        out.extend(self.timer_resolution.to_le_bytes());
        out.extend(self.maximum_file_size.to_le_bytes());
        out.extend((self.log_file_mode & !log_file_mode::REAL_TIME).to_le_bytes());
        out.extend(1_u32.to_le_bytes()); // BuffersWritten
        out.extend(1_u32.to_le_bytes()); // StartBuffers
        out.extend(8_u32.to_le_bytes()); // PointerSize
        out.extend([0; 4]); // EventsLost
        out.extend(self.cpu_mhz.to_le_bytes());
        out.extend([0; 16]); // LoggerName and LogFileName, no pointers on disk
        self.time_zone.encode_into(&mut out);
        out.extend([0; 4]); // alignment of BootTime
        out.extend(self.boot_time.raw().to_le_bytes());
        out.extend(self.perf_frequency.to_le_bytes());
        out.extend(self.start_time.raw().to_le_bytes());
        out.extend(self.clock.raw().to_le_bytes());
        out.extend([0; 4]); // BuffersLost
        out.extend(names);
        Ok(out)
    }
}

impl TimeZone {
    fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend(self.bias.to_le_bytes());
        encode_zone_name(&self.standard_name, out);
        out.extend(self.standard_date.to_bytes());
        out.extend(self.standard_bias.to_le_bytes());
        encode_zone_name(&self.daylight_name, out);
        out.extend(self.daylight_date.to_bytes());
        out.extend(self.daylight_bias.to_le_bytes());
    }
}

/// Appends a fixed-length name, truncated to leave room for the NUL.
fn encode_zone_name(name: &str, out: &mut Vec<u8>) {
    let mut units = [0_u16; ZONE_NAME_UNITS];
    let room = ZONE_NAME_UNITS - 1;
    for (to, from) in units.iter_mut().take(room).zip(name.encode_utf16()) {
        *to = from;
    }
    out.extend(units.into_iter().flat_map(u16::to_le_bytes));
}
