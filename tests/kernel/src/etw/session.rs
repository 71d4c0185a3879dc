//! Sessions: the buffer that events go to, and the file that it goes to.

use std::{
    collections::{HashSet, VecDeque},
    fs::File,
    path::{Path, PathBuf},
};

use etl_file::{
    EventRecord, FileTime, LogFileHeader,
    header::log_file_mode,
    write::{AppendError, Buffer, Finish, LogFile, WriteError},
};

use super::{ControlError, Guid};
use crate::clock::Clock;

/// Kilobytes that a buffer may have. Windows takes 16,384 (6.3.1), in a file layout
/// for large buffers that is not written here.
const BUFFER_KB: std::ops::RangeInclusive<u32> = 4..=1024;
/// Characters of a session's name (6.4.8).
const LONGEST_NAME: usize = 1024;

/// Where a session's events go (R-O12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file from start to end. With a limit in kilobytes the session stops when the file
    /// has that size (6.4.4).
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
    /// Memory: the last so many buffers, which a flush writes to the file (6.4.3).
    Memory {
        /// How many.
        buffers: u32,
    },
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
        }
    }

    /// The most buffers that a file has, the header's included.
    const fn most_buffers(self, buffer_kb: u32) -> u32 {
        match self {
            Self::Sequential {
                most_kb: Some(most_kb),
            }
            | Self::Circular { most_kb }
            | Self::NewFile { most_kb } => most_kb / buffer_kb,
            Self::Sequential { most_kb: None } | Self::Memory { .. } => u32::MAX,
        }
    }
}

/// How to start a session (`StartTrace`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Its name.
    pub name: String,
    /// The .etl file it writes.
    pub file: PathBuf,
    /// The size of its buffers in kilobytes, 4 to 1024.
    pub buffer_kb: u32,
    /// Where its events go.
    pub output: Output,
    /// The process that the session is private to, for one that is
    /// (`EVENT_TRACE_PRIVATE_LOGGER_MODE`). It gets no events of drivers.
    pub private: Option<u32>,
}

impl SessionConfig {
    /// A session that writes to a file, with buffers of 64 KB.
    pub fn to_file(name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            file: file.into(),
            buffer_kb: 64,
            output: Output::Sequential { most_kb: None },
            private: None,
        }
    }
}

/// What a session did, as its stop tells.
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
    /// Buffers in the last file, the header's included.
    pub buffers_written: u32,
    /// Whether the session stopped by itself, its file being full.
    pub stopped_by_itself: bool,
}

/// Why an event for which there was room was not recorded: the session's file.
#[derive(Debug, thiserror::Error)]
pub enum AppendFailure {
    /// A full buffer could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The buffer did not take it.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// A session.
pub struct Session {
    id: u16,
    config: SessionConfig,
    /// The file that is being written; none for a session in memory.
    file: Option<LogFile<File>>,
    files: Vec<PathBuf>,
    /// The one processor's buffer.
    buffer: Buffer,
    /// Full buffers of a session in memory, the oldest first.
    ring: VecDeque<Buffer>,
    events: u64,
    events_lost: u32,
    last_event: i64,
    /// The file has its size, and nothing goes into it any more.
    full: bool,
    /// What enabled it has been told that it stopped.
    told: bool,
    buffers_written: u32,
    /// The providers that it does not reach by groups.
    pub disallowed: HashSet<Guid>,
}

impl Session {
    /// Starts a session and creates its file.
    pub fn start(id: u16, config: SessionConfig, clock: &Clock) -> Result<Self, ControlError> {
        let refuse = |why: String| Err(ControlError::InvalidParameter(why));
        if config.name.is_empty() || config.name.chars().count() > LONGEST_NAME {
            return refuse(format!(
                "a session's name has 1 to {LONGEST_NAME} characters"
            ));
        }
        if !BUFFER_KB.contains(&config.buffer_kb) {
            return refuse(format!(
                "a session's buffers have {} to {} KB, not {}",
                BUFFER_KB.start(),
                BUFFER_KB.end(),
                config.buffer_kb
            ));
        }
        // The header takes one buffer, and events another.
        if config.output.most_buffers(config.buffer_kb) < 2 {
            return refuse(format!(
                "a file with buffers of {} KB has at least {} KB",
                config.buffer_kb,
                2 * config.buffer_kb
            ));
        }
        let names_files = config.file.to_string_lossy().contains("%d");
        if matches!(config.output, Output::NewFile { .. }) && !names_files {
            return refuse("the name of a file that is followed by others has a %d".to_owned());
        }
        if matches!(config.output, Output::Memory { buffers: 0 | 1 }) {
            return refuse("a session in memory has two buffers at least (6.3.2)".to_owned());
        }
        let mut session = Self {
            id,
            file: None,
            files: Vec::new(),
            buffer: Buffer::new(config.buffer_kb * 1024, 0),
            ring: VecDeque::new(),
            events: 0,
            events_lost: 0,
            last_event: clock.counter(),
            full: false,
            told: false,
            buffers_written: 0,
            disallowed: HashSet::new(),
            config,
        };
        if !matches!(session.config.output, Output::Memory { .. }) {
            session
                .create_file(clock)
                .map_err(|error| session.failed(error))?;
        }
        Ok(session)
    }

    /// Whether it belongs to one process.
    pub const fn is_private(&self) -> bool {
        self.config.private.is_some()
    }

    /// The process that it belongs to.
    pub const fn private(&self) -> Option<u32> {
        self.config.private
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Whether its file is full, so that it records nothing any more.
    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Whether its file is full, and nobody has been told so yet.
    pub const fn take_full(&mut self) -> bool {
        let first = self.full && !self.told;
        self.told = self.full;
        first
    }

    fn failed(&self, error: WriteError) -> ControlError {
        ControlError::File {
            path: self.files.last().unwrap_or(&self.config.file).clone(),
            error,
        }
    }

    /// Starts the next file.
    fn create_file(&mut self, clock: &Clock) -> Result<(), WriteError> {
        let number = self.files.len() + 1;
        let path = match self.config.output {
            Output::NewFile { .. } => {
                let name = self.config.file.to_string_lossy();
                PathBuf::from(name.replacen("%d", &number.to_string(), 1))
            }
            _ => self.config.file.clone(),
        };
        let counter = clock.counter();
        let (log_file_mode, maximum_file_size) = self.config.output.header_fields();
        let header = LogFileHeader {
            buffer_size: self.buffer.size(),
            processors: 1,
            logger_id: self.id,
            perf_frequency: Clock::FREQUENCY,
            start_clock: counter,
            start_time: FileTime::from_raw(clock.file_time(counter)),
            boot_time: FileTime::from_raw(clock.boot_time()),
            session_name: self.config.name.clone(),
            log_file_name: windows_path(&path),
            log_file_mode,
            maximum_file_size,
            ..LogFileHeader::default()
        };
        if self.files.last() != Some(&path) {
            self.files.push(path.clone());
        }
        self.file = Some(LogFile::create(File::create(path)?, header)?);
        Ok(())
    }

    /// An event was to be recorded and was not.
    pub const fn count_lost(&mut self) {
        self.events_lost = self.events_lost.saturating_add(1);
    }

    /// Whether an event can be recorded. Buffers go to the file as soon as they
    /// are full, so there is always an empty one.
    pub fn has_room_for(&self, record: &EventRecord) -> bool {
        Buffer::new(self.buffer.size(), 0)
            .try_append(record)
            .is_ok()
    }

    /// Records an event for which there is room, or counts it as lost if the file turns out
    /// to be full.
    pub fn append(&mut self, record: &EventRecord, clock: &Clock) -> Result<(), AppendFailure> {
        if self.buffer.try_append(record) == Err(AppendError::Full) {
            self.put_away(clock)?;
            if self.full {
                self.count_lost();
                return Ok(());
            }
            self.buffer.try_append(record)?;
        }
        self.events += 1;
        self.last_event = self.last_event.max(record.timestamp);
        Ok(())
    }

    /// Puts the full buffer where the session's output is.
    fn put_away(&mut self, clock: &Clock) -> Result<(), WriteError> {
        let most = self.config.output.most_buffers(self.config.buffer_kb);
        let is_full = self
            .file
            .as_ref()
            .is_some_and(|file| file.buffers_written() >= most);
        match self.config.output {
            Output::Memory { buffers } => {
                let empty = Buffer::new(self.buffer.size(), 0);
                self.ring
                    .push_back(std::mem::replace(&mut self.buffer, empty));
                // One more is being filled.
                while self.ring.len() >= buffers as usize {
                    self.ring.pop_front();
                }
                return Ok(());
            }
            Output::Circular { .. } if is_full => {
                if let Some(file) = &mut self.file {
                    file.replace_oldest(&self.buffer, self.last_event)?;
                }
                self.buffer.reset();
                return Ok(());
            }
            Output::NewFile { .. } if is_full => {
                self.finish_file(clock)?;
                self.create_file(clock)?;
            }
            _ => {}
        }
        self.flush()?;
        // The session stops with the buffer that fills the file.
        self.full = matches!(self.config.output, Output::Sequential { .. })
            && self
                .file
                .as_ref()
                .is_some_and(|file| file.buffers_written() >= most);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        if let Some(file) = &mut self.file
            && !self.buffer.is_empty()
        {
            file.append(&self.buffer, self.last_event)?;
            self.buffer.reset();
        }
        Ok(())
    }

    fn finish_file(&mut self, clock: &Clock) -> Result<(), WriteError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        self.buffers_written = file.buffers_written();
        file.finish(Finish {
            end_time: FileTime::from_raw(clock.file_time(clock.counter())),
            events_lost: self.events_lost,
            buffers_lost: 0,
        })?;
        Ok(())
    }

    /// Writes what is in the buffers (`EVENT_TRACE_CONTROL_FLUSH`): for a session in memory
    /// a file of what it holds now, in place of one that was written before.
    pub fn flush_now(&mut self, clock: &Clock) -> Result<(), ControlError> {
        let flushed = if matches!(self.config.output, Output::Memory { .. }) {
            self.write_memory(clock)
        } else if self.full {
            Ok(())
        } else {
            self.put_away(clock)
        };
        flushed.map_err(|error| self.failed(error))
    }

    fn write_memory(&mut self, clock: &Clock) -> Result<(), WriteError> {
        self.create_file(clock)?;
        if let Some(file) = &mut self.file {
            for buffer in self.ring.iter().chain([&self.buffer]) {
                if !buffer.is_empty() {
                    file.append(buffer, self.last_event)?;
                }
            }
        }
        self.finish_file(clock)
    }

    /// Writes what is left and finishes the file.
    pub fn finish(mut self, clock: &Clock) -> Result<SessionReport, ControlError> {
        let most = self.config.output.most_buffers(self.config.buffer_kb);
        let has_room = self
            .file
            .as_ref()
            .is_some_and(|file| file.buffers_written() < most);
        let written = if has_room || self.buffer.is_empty() {
            self.flush()
        } else {
            self.put_away(clock)
        };
        written
            .and_then(|()| self.finish_file(clock))
            .map_err(|error| self.failed(error))?;
        Ok(SessionReport {
            name: self.config.name,
            file: self.files.last().cloned().unwrap_or(self.config.file),
            files: self.files,
            events: self.events,
            events_lost: self.events_lost,
            buffers_written: self.buffers_written,
            stopped_by_itself: self.full,
        })
    }
}

/// The file's name as it would be on the machine that the driver believes in.
fn windows_path(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(r"C:\traces\{name}")
}
