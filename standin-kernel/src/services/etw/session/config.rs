//! A session's configuration, statistics and report.

use std::{path::PathBuf, time::Duration};

use etl_file::{ClockType, log_file_mode};

use crate::services::etw::error::ControlError;

/// The valid buffer sizes in kilobytes. Windows accepts up to 16,384 (ETW-6.3.1), but uses a
/// different file layout for large buffers, which the stand-in kernel does not support.
const BUFFER_KB: std::ops::RangeInclusive<u32> = 4..=1024;
/// The maximum length of a session name in characters (ETW-6.4.8).
const MAX_NAME_CHARACTERS: usize = 1024;
/// The default number of buffers that a session may add to its minimum.
const SPARE_BUFFERS: u32 = 20;

/// The destination of a session's events (R-O12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file that is written sequentially. If there is a limit, the session stops when the file
    /// reaches it (ETW-6.4.4).
    Sequential {
        /// The maximum file size in kilobytes, if there is a limit.
        max_kb: Option<u32>,
    },
    /// A file whose oldest buffers are overwritten once the file has reached its maximum size.
    Circular {
        /// The size in kilobytes.
        max_kb: u32,
    },
    /// A sequence of files. A new file starts whenever the current one reaches its maximum size.
    /// `%d` in the file name becomes the file's number.
    NewFile {
        /// The size in kilobytes.
        max_kb: u32,
    },
    /// Memory that keeps the most recent buffers. A flush writes them to the file (ETW-6.4.3).
    Memory {
        /// The number of buffers.
        buffers: u32,
    },
    /// No file, only real-time consumers.
    Consumers,
}

impl Output {
    /// Returns the mode flags (`EVENT_TRACE_*_MODE`) and `MaximumFileSize`.
    const fn header_fields(self) -> (u32, u32) {
        /// `EVENT_TRACE_USE_KBYTES_FOR_SIZE`.
        const KILOBYTES: u32 = 0x2000;
        match self {
            Self::Sequential { max_kb: None } => (log_file_mode::SEQUENTIAL, 0),
            Self::Sequential { max_kb: Some(most) } => {
                (log_file_mode::SEQUENTIAL | KILOBYTES, most)
            }
            Self::Circular { max_kb } => (log_file_mode::CIRCULAR | KILOBYTES, max_kb),
            Self::NewFile { max_kb } => (log_file_mode::NEWFILE | KILOBYTES, max_kb),
            Self::Memory { .. } => (log_file_mode::BUFFERING, 0),
            Self::Consumers => (0, 0),
        }
    }

    /// Returns the maximum number of buffers in a file, including the header's buffer.
    pub(super) const fn max_buffers(self, buffer_kb: u32) -> u32 {
        match self {
            Self::Sequential { max_kb: Some(max_kb) }
            | Self::Circular { max_kb }
            | Self::NewFile { max_kb } => max_kb / buffer_kb,
            Self::Sequential { max_kb: None } | Self::Memory { .. } | Self::Consumers => u32::MAX,
        }
    }
}

/// The limits of a session with real-time consumers (`EVENT_TRACE_REAL_TIME_MODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// The maximum number of buffers stored while there is no consumer. When they are full, writes
    /// to a session without a file fail (ETW-6.4.5).
    pub max_stored: usize,
    /// The maximum number of buffers that a consumer may leave unread. Further buffers are lost, and
    /// the consumer is notified.
    pub max_unread: usize,
}

impl Default for RealTime {
    fn default() -> Self {
        Self { max_stored: 64, max_unread: 64 }
    }
}

/// The source of a session's message numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// `EVENT_TRACE_USE_LOCAL_SEQUENCE`: a sequence for this session alone.
    Local,
    /// `EVENT_TRACE_USE_GLOBAL_SEQUENCE`: one sequence that all such sessions share.
    Global,
}

/// The configuration of a session (`StartTrace`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is a separate bit of LogFileMode")]
pub struct SessionConfig {
    /// The session's name.
    pub name: String,
    /// The .etl file to write. Ignored for [`Output::Consumers`].
    pub file: PathBuf,
    /// The buffer size in kilobytes, 4 to 1024.
    pub buffer_kb: u32,
    /// `MinimumBuffers`. Raised to two per processor if less (ETW-6.3.2).
    pub minimum_buffers: u32,
    /// `MaximumBuffers`. Buffers are added on demand, below `DISPATCH_LEVEL` (ETW-6.3.4). Raised to
    /// the minimum if less (ETW-6.3.3); 0 means the minimum plus 20.
    pub maximum_buffers: u32,
    /// The interval at which partly filled buffers are flushed. Zero means never or, for real-time
    /// sessions, one second (ETW-6.3.8).
    pub flush_timer: Duration,
    /// The destination of the events.
    pub output: Output,
    /// The limits of real-time delivery, or `None` if the session has no real-time consumers.
    pub real_time: Option<RealTime>,
    /// `EVENT_TRACE_INDEPENDENT_SESSION_MODE`: the session records events even if other sessions
    /// have no room for them, and vice versa (ETW-6.1.4).
    pub independent: bool,
    /// The clock for timestamps: the performance counter or the system time.
    pub clock: ClockType,
    /// Gives each processor its own buffers. If not set, events are in the order in which they were
    /// written (`EVENT_TRACE_NO_PER_PROCESSOR_BUFFERING`).
    pub per_processor: bool,
    /// `EVENT_TRACE_USE_PAGED_MEMORY`: the session receives no events from drivers (ETW-6.1.11).
    pub paged_memory: bool,
    /// Writes the file on a separate thread. If not set, the event write that fills a buffer also
    /// writes the buffer to the file, so that identical runs produce identical files.
    pub writer_thread: bool,
    /// The process of a private session (`EVENT_TRACE_PRIVATE_LOGGER_MODE`), or `None` for a
    /// system session. A private session receives no events from drivers.
    pub private: Option<u32>,
    /// The sequence that numbers the messages that request a number. If `None`, messages have no
    /// number.
    pub sequence: Option<Sequence>,
}

impl SessionConfig {
    /// Returns the configuration of a session that writes a file, with buffers of 64 KB.
    pub fn to_file(name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            file: file.into(),
            buffer_kb: 64,
            minimum_buffers: 0,
            maximum_buffers: 0,
            flush_timer: Duration::ZERO,
            output: Output::Sequential { max_kb: None },
            real_time: None,
            independent: false,
            clock: ClockType::Qpc,
            per_processor: true,
            paged_memory: false,
            writer_thread: false,
            private: None,
            sequence: None,
        }
    }

    /// Returns the configuration of a session without a file, for real-time consumers.
    pub fn to_consumers(name: impl Into<String>) -> Self {
        Self {
            output: Output::Consumers,
            real_time: Some(RealTime::default()),
            ..Self::to_file(name, PathBuf::new())
        }
    }

    /// Returns `LogFileMode` and `MaximumFileSize`.
    pub(super) const fn header_fields(&self) -> (u32, u32) {
        let (mut mode, most) = self.output.header_fields();
        if self.real_time.is_some() {
            mode |= log_file_mode::REAL_TIME;
        }
        if self.independent {
            mode |= log_file_mode::INDEPENDENT_SESSION;
        }
        mode |= match self.sequence {
            None => 0,
            Some(Sequence::Local) => log_file_mode::USE_LOCAL_SEQUENCE,
            Some(Sequence::Global) => log_file_mode::USE_GLOBAL_SEQUENCE,
        };
        if !self.per_processor {
            mode |= log_file_mode::NO_PER_PROCESSOR_BUFFERING;
        }
        (mode, most)
    }

    /// Returns the interval at which partly filled buffers are flushed, or `None` for never.
    pub(super) fn flush_period(&self) -> Option<Duration> {
        if matches!(self.output, Output::Memory { .. }) {
            None
        } else if !self.flush_timer.is_zero() {
            Some(self.flush_timer)
        } else {
            self.real_time.map(|_| Duration::from_secs(1))
        }
    }

    /// Checks the configuration, and raises the numbers of buffers to the minimum for this number
    /// of processors.
    pub(super) fn settle(mut self, processors: u16) -> Result<Self, ControlError> {
        let refuse = |why: String| Err(ControlError::InvalidParameter(why));
        if self.name.is_empty() || self.name.chars().count() > MAX_NAME_CHARACTERS {
            return refuse(format!(
                "a session name must have 1 to {MAX_NAME_CHARACTERS} characters"
            ));
        }
        if !BUFFER_KB.contains(&self.buffer_kb) {
            return refuse(format!(
                "a session's buffer size must be {} to {} KB, not {}",
                BUFFER_KB.start(),
                BUFFER_KB.end(),
                self.buffer_kb
            ));
        }
        // The header needs one buffer, and events need another.
        if self.output.max_buffers(self.buffer_kb) < 2 {
            return refuse(format!(
                "a log file with buffers of {} KB must have at least {} KB",
                self.buffer_kb,
                2 * self.buffer_kb
            ));
        }
        let names_files = self.file.to_string_lossy().contains("%d");
        if matches!(self.output, Output::NewFile { .. }) && !names_files {
            return refuse(
                "the file name of a session that starts new files must contain %d".to_owned(),
            );
        }
        let streams = if self.per_processor { u32::from(processors) } else { 1 };
        if let Output::Memory { buffers } = self.output
            && buffers < 2 * streams
        {
            return refuse(format!(
                "a buffering-mode session (EVENT_TRACE_BUFFERING_MODE) needs at least two buffers \
                 per processor: {} in total",
                2 * streams
            ));
        }
        // ETW-6.4.2: mutually exclusive modes.
        if matches!(self.output, Output::Memory { .. }) && self.real_time.is_some() {
            return refuse(
                "a buffering-mode session (EVENT_TRACE_BUFFERING_MODE) cannot have real-time \
                 consumers"
                    .to_owned(),
            );
        }
        if self.private.is_some() && (self.real_time.is_some() || self.independent) {
            return refuse("a private session can be neither real-time nor independent".to_owned());
        }
        if matches!(self.output, Output::Consumers) && self.real_time.is_none() {
            return Err(ControlError::BadPathname);
        }
        if !matches!(self.clock, ClockType::Qpc | ClockType::SystemTime) {
            return refuse(
                "a session's timestamps must come from the performance counter or the system time"
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

/// The statistics of a running session (`ControlTrace` with `EVENT_TRACE_CONTROL_QUERY`,
/// ETW-6.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionStatistics {
    /// The number of recorded events, excluding [`Self::events_in_lost_buffers`]. A circular file
    /// contains fewer events once its oldest buffers are overwritten.
    pub events: u64,
    /// `EventsLost`: the number of events that could not be recorded.
    pub events_lost: u32,
    /// `LogBuffersLost`: the number of buffers that could not be written to the file.
    pub log_buffers_lost: u32,
    /// The number of events in the buffers that could not be written to the file.
    pub events_in_lost_buffers: u64,
    /// `RealTimeBuffersLost`: the number of buffers that could not be delivered to consumers.
    pub real_time_buffers_lost: u32,
    /// The number of buffers in the current file, including the header's buffer.
    pub buffers_written: u32,
    /// The number of recorded events for which a stack was requested. No stacks are captured.
    pub stacks_not_captured: u64,
    /// `NumberOfBuffers`: the number of buffers.
    pub buffers: u32,
    /// `FreeBuffers`: the number of buffers that are neither being filled nor waiting to be
    /// written.
    pub free_buffers: u32,
}

/// The report of a stopped session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    /// The session's name.
    pub name: String,
    /// The file that the session wrote, or the last file if there were several.
    pub file: PathBuf,
    /// All files that the session wrote, oldest first.
    pub files: Vec<PathBuf>,
    /// The number of recorded events. A circular file contains fewer events once its oldest buffers
    /// are overwritten.
    pub events: u64,
    /// The number of events that could not be recorded.
    pub events_lost: u32,
    /// The number of buffers that could not be written to the file.
    pub log_buffers_lost: u32,
    /// The number of events in the buffers that could not be written to the file.
    pub events_in_lost_buffers: u64,
    /// The number of buffers that could not be delivered to consumers.
    pub real_time_buffers_lost: u32,
    /// The number of recorded events for which a stack was requested. No stacks are captured.
    pub stacks_not_captured: u64,
    /// The number of buffers in the last file, including the header's buffer.
    pub buffers_written: u32,
    /// Set if the session stopped on its own because its file was full.
    pub stopped_by_itself: bool,
    /// The error that prevented writing the file, if any.
    pub file_error: Option<String>,
}
