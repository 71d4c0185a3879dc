//! Sessions: the buffer that events go to, and the file that it goes to.

use std::{
    collections::HashSet,
    fs::File,
    path::{Path, PathBuf},
};

use etl_file::{
    EventRecord, FileTime, LogFileHeader,
    write::{AppendError, Buffer, Finish, LogFile, WriteError},
};

use super::{ControlError, Guid};
use crate::clock::Clock;

/// Kilobytes that a buffer may have. Windows takes 16,384 (6.3.1), in a file layout
/// for large buffers that is not written here.
const BUFFER_KB: std::ops::RangeInclusive<u32> = 4..=1024;
/// Characters of a session's name (6.4.8).
const LONGEST_NAME: usize = 1024;

/// How to start a session (`StartTrace`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Its name.
    pub name: String,
    /// The .etl file it writes.
    pub file: PathBuf,
    /// The size of its buffers in kilobytes, 4 to 1024.
    pub buffer_kb: u32,
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
            private: None,
        }
    }
}

/// What a session did, as its stop tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    /// Its name.
    pub name: String,
    /// The file it wrote.
    pub file: PathBuf,
    /// Events in the file.
    pub events: u64,
    /// Events that were to be recorded and were not.
    pub events_lost: u32,
    /// Buffers in the file, the header's included.
    pub buffers_written: u32,
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
    name: String,
    path: PathBuf,
    file: LogFile<File>,
    /// The one processor's buffer.
    buffer: Buffer,
    events: u64,
    events_lost: u32,
    last_event: i64,
    /// The process that it is private to.
    pub private: Option<u32>,
    /// The providers that it does not reach by groups.
    pub disallowed: HashSet<Guid>,
}

impl Session {
    /// Whether it belongs to one process.
    pub const fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// Starts a session and creates its file.
    pub fn start(id: u16, config: SessionConfig, clock: &Clock) -> Result<Self, ControlError> {
        if config.name.is_empty() || config.name.chars().count() > LONGEST_NAME {
            return Err(ControlError::InvalidParameter(format!(
                "a session's name has 1 to {LONGEST_NAME} characters"
            )));
        }
        if !BUFFER_KB.contains(&config.buffer_kb) {
            return Err(ControlError::InvalidParameter(format!(
                "a session's buffers have {} to {} KB, not {}",
                BUFFER_KB.start(),
                BUFFER_KB.end(),
                config.buffer_kb
            )));
        }
        let size = config.buffer_kb * 1024;
        let counter = clock.counter();
        let header = LogFileHeader {
            buffer_size: size,
            processors: 1,
            logger_id: id,
            perf_frequency: Clock::FREQUENCY,
            start_clock: counter,
            start_time: FileTime::from_raw(clock.file_time(counter)),
            boot_time: FileTime::from_raw(clock.boot_time()),
            session_name: config.name.clone(),
            log_file_name: windows_path(&config.file),
            ..LogFileHeader::default()
        };
        let path = config.file;
        let failed = |error: WriteError| ControlError::File {
            path: path.clone(),
            error,
        };
        let file = File::create(&path).map_err(|error| failed(error.into()))?;
        let file = LogFile::create(file, header).map_err(failed)?;
        Ok(Self {
            name: config.name,
            path,
            file,
            buffer: Buffer::new(size, 0),
            events: 0,
            events_lost: 0,
            last_event: counter,
            private: config.private,
            disallowed: HashSet::new(),
        })
    }

    /// The session's name.
    pub fn name(&self) -> &str {
        &self.name
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

    /// Records an event for which there is room.
    pub fn append(&mut self, record: &EventRecord) -> Result<(), AppendFailure> {
        if self.buffer.try_append(record) == Err(AppendError::Full) {
            self.flush()?;
            self.buffer.try_append(record)?;
        }
        self.events += 1;
        self.last_event = self.last_event.max(record.timestamp);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        if !self.buffer.is_empty() {
            self.file.append(&self.buffer, self.last_event)?;
            self.buffer.reset();
        }
        Ok(())
    }

    /// Writes what is left and finishes the file.
    pub fn finish(mut self, clock: &Clock) -> Result<SessionReport, ControlError> {
        let path = self.path.clone();
        let failed = |error: WriteError| ControlError::File {
            path: path.clone(),
            error,
        };
        self.flush().map_err(failed)?;
        let finish = Finish {
            end_time: FileTime::from_raw(clock.file_time(clock.counter())),
            events_lost: self.events_lost,
            buffers_lost: 0,
        };
        let buffers_written = self.file.buffers_written();
        self.file.finish(finish).map_err(failed)?;
        Ok(SessionReport {
            name: self.name,
            file: self.path,
            events: self.events,
            events_lost: self.events_lost,
            buffers_written,
        })
    }
}

/// The file's name as it would be on the machine that the driver believes in.
fn windows_path(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(r"C:\traces\{name}")
}
