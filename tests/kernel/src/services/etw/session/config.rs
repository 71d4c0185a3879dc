//! A session's configuration, statistics and report.

use std::{path::PathBuf, time::Duration};

use etl_file::{ClockType, header::log_file_mode};

use super::super::error::ControlError;

/// Kilobytes that a buffer may have. Windows takes 16,384 (ETW-6.3.1), in a file layout
/// for large buffers that is not written here.
const BUFFER_KB: std::ops::RangeInclusive<u32> = 4..=1024;
/// Characters of a session's name (ETW-6.4.8).
const MAX_NAME_CHARACTERS: usize = 1024;
/// Buffers that a session may have beyond its least number, when it does not say.
const SPARE_BUFFERS: u32 = 20;

/// Where a session's events go (R-O12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file from start to end. With a limit in kilobytes the session stops when the file
    /// has that size (ETW-6.4.4).
    Sequential {
        /// The limit.
        most_kb: Option<u32>,
    },
    /// A file of which the oldest buffers are overwritten when it has its size.
    Circular {
        /// The size in kilobytes.
        most_kb: u32,
    },
    /// A new file whenever one has its size; `%d` in the name becomes its number.
    NewFile {
        /// The size in kilobytes.
        most_kb: u32,
    },
    /// Memory: the last so many buffers, which a flush writes to the file (ETW-6.4.3).
    Memory {
        /// The number of buffers.
        buffers: u32,
    },
    /// No file: consumers in real time are all there is.
    Consumers,
}

impl Output {
    /// `EVENT_TRACE_*_MODE` and `MaximumFileSize`.
    const fn header_fields(self) -> (u32, u32) {
        /// `EVENT_TRACE_USE_KBYTES_FOR_SIZE`.
        const KILOBYTES: u32 = 0x2000;
        match self {
            Self::Sequential { most_kb: None } => (log_file_mode::SEQUENTIAL, 0),
            Self::Sequential {
                most_kb: Some(most),
            } => (log_file_mode::SEQUENTIAL | KILOBYTES, most),
            Self::Circular { most_kb } => (log_file_mode::CIRCULAR | KILOBYTES, most_kb),
            Self::NewFile { most_kb } => (log_file_mode::NEWFILE | KILOBYTES, most_kb),
            Self::Memory { .. } => (log_file_mode::BUFFERING, 0),
            Self::Consumers => (0, 0),
        }
    }

    /// Returns the most buffers that a file has, the header's included.
    pub(super) const fn most_buffers(self, buffer_kb: u32) -> u32 {
        match self {
            Self::Sequential {
                most_kb: Some(most_kb),
            }
            | Self::Circular { most_kb }
            | Self::NewFile { most_kb } => most_kb / buffer_kb,
            Self::Sequential { most_kb: None } | Self::Memory { .. } | Self::Consumers => u32::MAX,
        }
    }
}

/// The limits of a session that delivers to consumers in real time (`EVENT_TRACE_REAL_TIME_MODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// Buffers that are kept while there is no consumer. With as many kept, and no file
    /// beside, writes fail (ETW-6.4.5).
    pub most_stored: usize,
    /// Buffers that a consumer may leave unread. What comes then is lost, and it is told.
    pub most_unread: usize,
}

impl Default for RealTime {
    fn default() -> Self {
        Self {
            most_stored: 64,
            most_unread: 64,
        }
    }
}

/// The configuration of a session (`StartTrace`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a bit of its own in LogFileMode"
)]
pub struct SessionConfig {
    /// Its name.
    pub name: String,
    /// The .etl file it writes; for [`Output::Consumers`], none.
    pub file: PathBuf,
    /// The size of its buffers in kilobytes, 4 to 1024.
    pub buffer_kb: u32,
    /// `MinimumBuffers`. Raised to two for each processor (ETW-6.3.2).
    pub minimum_buffers: u32,
    /// `MaximumBuffers`: as many are made when they are needed, below `DISPATCH_LEVEL`
    /// (ETW-6.3.4). Raised to the least number (ETW-6.3.3); 0 stands for twenty more.
    pub maximum_buffers: u32,
    /// Buffers that are not full are flushed so often; never for zero, but in real time
    /// every second (ETW-6.3.8).
    pub flush_timer: Duration,
    /// Where its events go.
    pub output: Output,
    /// Whether consumers can be attached.
    pub real_time: Option<RealTime>,
    /// `EVENT_TRACE_INDEPENDENT_SESSION_MODE`: it gets events that others cannot take, and
    /// others get those that it cannot (ETW-6.1.4).
    pub independent: bool,
    /// The clock of its timestamps: the performance counter, or the system's time.
    pub clock: ClockType,
    /// Whether each processor has its own buffers; without, events are in the order of
    /// their writes (`EVENT_TRACE_NO_PER_PROCESSOR_BUFFERING`).
    pub per_processor: bool,
    /// `EVENT_TRACE_USE_PAGED_MEMORY`: it gets no events of drivers (ETW-6.1.11).
    pub paged_memory: bool,
    /// Whether a thread of its own writes its file. Without, a full buffer is written
    /// before the event that found it full returns, and the same run is the same file.
    pub writer_thread: bool,
    /// The process that the session is private to, for one that is
    /// (`EVENT_TRACE_PRIVATE_LOGGER_MODE`). It gets no events of drivers.
    pub private: Option<u32>,
}

impl SessionConfig {
    /// Returns a session that writes to a file, with buffers of 64 KB.
    pub fn to_file(name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            file: file.into(),
            buffer_kb: 64,
            minimum_buffers: 0,
            maximum_buffers: 0,
            flush_timer: Duration::ZERO,
            output: Output::Sequential { most_kb: None },
            real_time: None,
            independent: false,
            clock: ClockType::Qpc,
            per_processor: true,
            paged_memory: false,
            writer_thread: false,
            private: None,
        }
    }

    /// Returns a session without a file, for consumers in real time.
    pub fn to_consumers(name: impl Into<String>) -> Self {
        Self {
            output: Output::Consumers,
            real_time: Some(RealTime::default()),
            ..Self::to_file(name, PathBuf::new())
        }
    }

    /// `LogFileMode` and `MaximumFileSize`.
    pub(super) const fn header_fields(&self) -> (u32, u32) {
        let (mut mode, most) = self.output.header_fields();
        if self.real_time.is_some() {
            mode |= log_file_mode::REAL_TIME;
        }
        if self.independent {
            mode |= log_file_mode::INDEPENDENT_SESSION;
        }
        if !self.per_processor {
            mode |= log_file_mode::NO_PER_PROCESSOR_BUFFERING;
        }
        (mode, most)
    }

    /// Returns the period of flushing buffers that are not full, if they are flushed.
    pub(super) fn flush_period(&self) -> Option<Duration> {
        if matches!(self.output, Output::Memory { .. }) {
            None
        } else if !self.flush_timer.is_zero() {
            Some(self.flush_timer)
        } else {
            self.real_time.map(|_| Duration::from_secs(1))
        }
    }

    /// Checks the configuration, and raises the numbers of buffers to what `processors`
    /// need.
    pub(super) fn settle(mut self, processors: u16) -> Result<Self, ControlError> {
        let refuse = |why: String| Err(ControlError::InvalidParameter(why));
        if self.name.is_empty() || self.name.chars().count() > MAX_NAME_CHARACTERS {
            return refuse(format!(
                "a session's name has 1 to {MAX_NAME_CHARACTERS} characters"
            ));
        }
        if !BUFFER_KB.contains(&self.buffer_kb) {
            return refuse(format!(
                "a session's buffers have {} to {} KB, not {}",
                BUFFER_KB.start(),
                BUFFER_KB.end(),
                self.buffer_kb
            ));
        }
        // The header takes one buffer, and events another.
        if self.output.most_buffers(self.buffer_kb) < 2 {
            return refuse(format!(
                "a file with buffers of {} KB has at least {} KB",
                self.buffer_kb,
                2 * self.buffer_kb
            ));
        }
        let names_files = self.file.to_string_lossy().contains("%d");
        if matches!(self.output, Output::NewFile { .. }) && !names_files {
            return refuse("the name of a file that is followed by others has a %d".to_owned());
        }
        let streams = if self.per_processor {
            u32::from(processors)
        } else {
            1
        };
        if let Output::Memory { buffers } = self.output
            && buffers < 2 * streams
        {
            return refuse(format!(
                "a session in memory has at least two buffers for each processor, which are {}",
                2 * streams
            ));
        }
        // ETW-6.4.2: what excludes what.
        if matches!(self.output, Output::Memory { .. }) && self.real_time.is_some() {
            return refuse("a session in memory has no consumers in real time".to_owned());
        }
        if self.private.is_some() && (self.real_time.is_some() || self.independent) {
            return refuse(
                "a private session is neither in real time nor independent of others".to_owned(),
            );
        }
        if matches!(self.output, Output::Consumers) && self.real_time.is_none() {
            return Err(ControlError::BadPathname);
        }
        if !matches!(self.clock, ClockType::Qpc | ClockType::SystemTime) {
            return refuse(
                "a session's timestamps count the performance counter or the system's time"
                    .to_owned(),
            );
        }
        self.minimum_buffers = self.minimum_buffers.max(2 * streams);
        self.maximum_buffers = if self.maximum_buffers == 0 {
            self.minimum_buffers + SPARE_BUFFERS
        } else {
            self.maximum_buffers.max(self.minimum_buffers)
        };
        Ok(self)
    }
}

/// The counts of a session (`ControlTrace` with `EVENT_TRACE_CONTROL_QUERY`, ETW-6.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStatistics {
    /// Events that were recorded. Those of [`Self::events_in_lost_buffers`] are not among
    /// them; files that are overwritten hold fewer.
    pub events: u64,
    /// `EventsLost`: events that were to be recorded and were not.
    pub events_lost: u32,
    /// `LogBuffersLost`: buffers that could not be written to the file.
    pub log_buffers_lost: u32,
    /// Events in those.
    pub events_in_lost_buffers: u64,
    /// `RealTimeBuffersLost`: buffers that could not be delivered to consumers.
    pub real_time_buffers_lost: u32,
    /// Buffers in the present file, the header's included.
    pub buffers_written: u32,
    /// Recorded events that a stack was asked for. None is captured here.
    pub stacks_not_captured: u64,
    /// `NumberOfBuffers`: how many there are.
    pub buffers: u32,
    /// `FreeBuffers`: how many of those are neither being filled nor waiting to be written.
    pub free_buffers: u32,
}

/// The report of a session that was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    /// Its name.
    pub name: String,
    /// The file it wrote, or wrote last.
    pub file: PathBuf,
    /// All files it wrote, the oldest first.
    pub files: Vec<PathBuf>,
    /// Events that were recorded; files that are overwritten hold fewer.
    pub events: u64,
    /// Events that were to be recorded and were not.
    pub events_lost: u32,
    /// Buffers that could not be written to the file.
    pub log_buffers_lost: u32,
    /// Events in those.
    pub events_in_lost_buffers: u64,
    /// Buffers that could not be delivered to consumers.
    pub real_time_buffers_lost: u32,
    /// Recorded events that a stack was asked for. None is captured here.
    pub stacks_not_captured: u64,
    /// Buffers in the last file, the header's included.
    pub buffers_written: u32,
    /// Whether the session stopped by itself, its file being full.
    pub stopped_by_itself: bool,
    /// Why buffers were lost, if the file could not be written.
    pub file_error: Option<String>,
}
