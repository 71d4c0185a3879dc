//! The destinations of a session's full buffers: its file, memory and consumers.

use std::{
    collections::VecDeque,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use etl_file::{
    FileTime, LogFileHeader,
    write::{Buffer, Finish, LogFile, Losses, WriteError},
};
use parking_lot::MutexGuard;

use super::{
    config::{Output, SessionConfig},
    counts::{Counts, stamp},
    realtime::{Deliveries, records_of},
};
use crate::ground::{clock::Clock, flight};

/// The destinations of a session's full buffers.
pub struct Sink {
    id: u16,
    config: Arc<SessionConfig>,
    clock: Arc<Clock>,
    processors: u16,
    /// The current file, or `None` for a session in memory.
    file: Option<LogFile<File>>,
    pub files: Vec<PathBuf>,
    /// The full buffers of a session in memory, oldest first.
    ring: VecDeque<Buffer>,
    /// The full buffers that wait while writing is delayed.
    waiting: VecDeque<Buffer>,
    pub deliveries: Option<Deliveries>,
    /// Set while writing is delayed.
    pub held: bool,
    /// The number of upcoming buffer writes that will fail.
    pub failing: u32,
    last_event: i64,
    pub buffers_written: u32,
    /// The error that caused the loss of buffers.
    pub error: Option<String>,
}

/// The outcome of writing a buffer.
pub enum Written {
    /// The buffer can be reused.
    Free(Buffer),
    /// The buffer stays in memory with the session's other buffers.
    Kept,
}

impl Sink {
    pub fn new(id: u16, config: Arc<SessionConfig>, clock: Arc<Clock>, processors: u16) -> Self {
        Self {
            id,
            deliveries: config.real_time.map(Deliveries::new),
            last_event: clock.last(),
            config,
            clock,
            processors,
            file: None,
            files: Vec::new(),
            ring: VecDeque::new(),
            waiting: VecDeque::new(),
            held: false,
            failing: 0,
            buffers_written: 0,
            error: None,
        }
    }

    /// Returns the path of the current file, or of the first file if none is open.
    pub fn path(&self) -> &Path {
        self.files.last().unwrap_or(&self.config.file)
    }

    /// Starts the next file.
    pub fn create_file(&mut self) -> Result<(), WriteError> {
        let number = self.files.len() + 1;
        let path = match self.config.output {
            Output::NewFile { .. } => {
                let name = self.config.file.to_string_lossy();
                PathBuf::from(name.replacen("%d", &number.to_string(), 1))
            }
            _ => self.config.file.clone(),
        };
        let counter = self.clock.counter();
        let now = self.clock.file_time(counter);
        let (log_file_mode, maximum_file_size) = self.config.header_fields();
        let header = LogFileHeader {
            buffer_size: self.config.buffer_kb * 1024,
            processors: if self.config.per_processor { u32::from(self.processors) } else { 1 },
            logger_id: self.id,
            perf_frequency: Clock::FREQUENCY,
            clock: self.config.clock,
            start_clock: self.stamp(counter),
            start_time: FileTime::from_raw(now),
            boot_time: FileTime::from_raw(self.clock.boot_time()),
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

    /// Converts a reading of the counter to the session's timestamp.
    pub fn stamp(&self, counter: i64) -> i64 {
        stamp(&self.config, &self.clock, counter)
    }

    /// Accepts a full or flushed buffer. The buffer waits while writing is delayed.
    pub fn put(&mut self, buffer: Buffer, counts: &Counts, full: &AtomicBool) -> Vec<Buffer> {
        if self.held {
            self.waiting.push_back(buffer);
            return Vec::new();
        }
        match self.write(buffer, counts, full) {
            Written::Free(buffer) => vec![buffer],
            Written::Kept => Vec::new(),
        }
    }

    /// Writes the waiting buffers. Returns the buffers that are free again.
    pub fn release(&mut self, counts: &Counts, full: &AtomicBool) -> Vec<Buffer> {
        self.held = false;
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_iter()
            .filter_map(|buffer| match self.write(buffer, counts, full) {
                Written::Free(buffer) => Some(buffer),
                Written::Kept => None,
            })
            .collect()
    }

    fn write(&mut self, mut buffer: Buffer, counts: &Counts, full: &AtomicBool) -> Written {
        flight::note_progress();
        if let Some(last) = buffer.last_timestamp() {
            self.last_event = self.last_event.max(last);
        }
        if let Some(deliveries) = &mut self.deliveries
            && !buffer.is_empty()
        {
            deliveries.deliver(records_of(&buffer), counts.events_lost.load(Ordering::Relaxed));
        }
        if let Output::Memory { buffers } = self.config.output {
            self.ring.push_back(buffer);
            // Each processor has one additional buffer that is being filled.
            let streams = if self.config.per_processor { usize::from(self.processors) } else { 1 };
            let most = (buffers as usize).saturating_sub(streams);
            return if self.ring.len() > most
                && let Some(mut oldest) = self.ring.pop_front()
            {
                oldest.reset();
                Written::Free(oldest)
            } else {
                Written::Kept
            };
        }
        if let Err(error) = self.write_file(&buffer, counts, full) {
            counts.lose_buffer(&buffer);
            counts.note_losses(self.id);
            self.error.get_or_insert_with(|| error.to_string());
        }
        buffer.reset();
        Written::Free(buffer)
    }

    fn write_file(
        &mut self,
        buffer: &Buffer,
        counts: &Counts,
        full: &AtomicBool,
    ) -> Result<(), WriteError> {
        if matches!(self.config.output, Output::Consumers) || buffer.is_empty() {
            return Ok(());
        }
        if self.failing > 0 {
            self.failing -= 1;
            let error = std::io::Error::other("write failure injected by the test");
            return Err(error.into());
        }
        let most = self.config.output.max_buffers(self.config.buffer_kb);
        let is_full = self.file.as_ref().is_some_and(|file| file.buffers_written() >= most);
        match self.config.output {
            Output::Circular { .. } if is_full => {
                if let Some(file) = &mut self.file {
                    file.note_losses(counts.losses());
                    file.replace_oldest(buffer, self.last_event)?;
                }
                return Ok(());
            }
            Output::NewFile { .. } if is_full => {
                self.finish_file(counts)?;
                self.create_file()?;
            }
            Output::Sequential { .. } if is_full => {
                // The session has stopped, so the last buffers in use are lost.
                counts.lose_buffer(buffer);
                counts.note_losses(self.id);
                return Ok(());
            }
            _ => {}
        }
        if let Some(file) = &mut self.file {
            file.note_losses(counts.losses());
            file.append(buffer, self.last_event)?;
            self.buffers_written = file.buffers_written();
        }
        // The session stops when the file is full.
        if matches!(self.config.output, Output::Sequential { .. }) && self.buffers_written >= most {
            full.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Finishes the current file, if there is one.
    pub fn finish_file(&mut self, counts: &Counts) -> Result<(), WriteError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        self.buffers_written = file.buffers_written();
        let Losses { events_lost, buffers_lost } = counts.losses();
        file.finish(Finish {
            end_time: FileTime::from_raw(self.clock.file_time(self.clock.counter())),
            events_lost,
            buffers_lost,
        })?;
        Ok(())
    }

    /// Writes the buffers in memory to a file, replacing any existing file.
    pub fn write_memory(
        &mut self,
        filling: &[MutexGuard<'_, Buffer>],
        counts: &Counts,
    ) -> Result<(), WriteError> {
        self.create_file()?;
        let filling = filling.iter().map(|buffer| &**buffer);
        if let Some(file) = &mut self.file {
            for buffer in self.ring.iter().chain(filling) {
                if !buffer.is_empty() {
                    file.append(buffer, buffer.last_timestamp().unwrap_or(self.last_event))?;
                }
            }
        }
        self.finish_file(counts)
    }
}

/// Returns a Windows path that ends with the file's name.
fn windows_path(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(r"C:\traces\{name}")
}
