//! A trace's records in time order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::{Read, Seek};

use super::error::{Damages, ReadError};
use super::file::TraceFile;
use super::loaded::{LoadedBuffer, Reused};
use super::record::{RecordBatch, RecordRef};

/// The total size in bytes of the buffers that can always be in memory at the same time.
const MIN_LIMIT: usize = 16 << 20;

impl<R: Read + Seek> TraceFile<R> {
    /// Returns all records except the header event, in time order. Records with equal times are in
    /// file order (ETL-9.6).
    pub fn records(&mut self) -> Records<'_, R> {
        Records::new(self)
    }
}

/// A trace's records in time order; see [`TraceFile::records`].
///
/// A buffer is read when its first record is next in time, and released after its last record.
/// Records inside a buffer are sorted by time. If so many buffers overlap in time that they would
/// need more memory than one buffer of each processor, some records are late; [`late`](Self::late)
/// counts them.
#[derive(Debug)]
pub struct Records<'t, R> {
    file: &'t mut TraceFile<R>,
    /// The next buffer to read, as a position in the order of first records.
    next: usize,
    /// The loaded buffers that are not current.
    waiting: BinaryHeap<Open>,
    current: Option<Open>,
    /// The next record of any other buffer: its time and buffer.
    bound: (i64, u32),
    spare: Vec<Reused>,
    /// The total used bytes of all open buffers, and the limit.
    open: usize,
    limit: usize,
    last: i64,
    late: u64,
    count: u64,
    damages: Damages,
}

/// A buffer in memory and the position of its next record.
#[derive(Debug)]
struct Open {
    buffer: LoadedBuffer,
    next: usize,
    key: (i64, u32),
}

impl Open {
    /// Sets the key to the next record's, if there is a next record.
    fn update(&mut self) -> bool {
        match self.buffer.timestamp(self.next) {
            Some(timestamp) => {
                self.key.0 = timestamp;
                true
            }
            None => false,
        }
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    /// Orders by time in reverse: the earliest buffer compares as the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<'t, R: Read + Seek> Records<'t, R> {
    fn new(file: &'t mut TraceFile<R>) -> Self {
        let limit = file.working_set().max(MIN_LIMIT);
        let damages = file.damages().clone();
        Self {
            file,
            next: 0,
            waiting: BinaryHeap::new(),
            current: None,
            bound: (i64::MIN, 0),
            spare: Vec::new(),
            open: 0,
            limit,
            last: i64::MIN,
            late: 0,
            count: 0,
            damages,
        }
    }

    /// Returns the next record.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the source cannot be read.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the iterator")]
    pub fn next(&mut self) -> Result<Option<RecordRef<'_>>, ReadError> {
        Ok(if self.advance()? { self.get() } else { None })
    }

    /// Moves to the next record, which [`get`](Self::get) then returns. Returns false at the end.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the source cannot be read.
    pub fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            if let Some(open) = &mut self.current
                && let Some(timestamp) = open.buffer.timestamp(open.next)
                && (timestamp, open.key.1) <= self.bound
            {
                open.next += 1;
                self.late += u64::from(timestamp < self.last);
                self.last = self.last.max(timestamp);
                self.count += 1;
                return Ok(true);
            }
            if !self.switch()? {
                return Ok(false);
            }
        }
    }

    /// Returns the record to which [`advance`](Self::advance) moved.
    #[must_use]
    pub fn get(&self) -> Option<RecordRef<'_>> {
        let open = self.current.as_ref()?;
        open.buffer.record(open.next.checked_sub(1)?)
    }

    /// Passes on all records in batches, until `push` returns false.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the source cannot be read.
    pub(crate) fn in_batches(
        &mut self,
        push: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<(), ReadError> {
        let clock = self.file.clock();
        let mut batch = RecordBatch::new(clock);
        let mut read = self.advance();
        while matches!(read, Ok(true)) {
            if self.get().is_some_and(|record| batch.push(&record))
                && !push(std::mem::replace(&mut batch, RecordBatch::new(clock)))
            {
                return Ok(());
            }
            read = self.advance();
        }
        push(batch);
        read.map(|_| ())
    }

    /// Returns the trace.
    #[must_use]
    pub const fn file(&self) -> &TraceFile<R> {
        self.file
    }

    /// Returns the number of records returned so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of records so far that followed a record with a later time.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Returns the damaged parts that were found so far.
    #[must_use]
    pub const fn damages(&self) -> &Damages {
        &self.damages
    }

    /// Makes the buffer with the earliest record the current one. Returns false at the end.
    fn switch(&mut self) -> Result<bool, ReadError> {
        if let Some(mut open) = self.current.take() {
            if open.update() {
                self.waiting.push(open);
            } else {
                self.close(open.buffer);
            }
        }
        while let Some(next) = self.file.order(self.next) {
            let is_due = self.waiting.peek().is_none_or(|first| next <= first.key);
            let is_full = self.limit <= self.open && !self.waiting.is_empty();
            if !is_due || is_full {
                break;
            }
            self.next += 1;
            let reused = self.spare.pop().unwrap_or_default();
            let Some(mut buffer) = self.file.load(next.1, reused)? else {
                continue;
            };
            for damage in buffer.damages() {
                self.damages.push(*damage);
            }
            buffer.sort();
            self.open += buffer.size();
            let mut open = Open { buffer, next: 0, key: next };
            if open.update() {
                self.waiting.push(open);
            } else {
                self.close(open.buffer);
            }
        }
        self.current = self.waiting.pop();
        let other = self.waiting.peek().map(|open| open.key);
        let unread = if self.limit <= self.open { None } else { self.file.order(self.next) };
        let end = (i64::MAX, u32::MAX);
        self.bound = other.unwrap_or(end).min(unread.unwrap_or(end));
        Ok(self.current.is_some())
    }

    fn close(&mut self, buffer: LoadedBuffer) {
        self.open = self.open.saturating_sub(buffer.size());
        self.spare.push(buffer.recycle());
    }
}
