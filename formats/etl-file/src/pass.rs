//! A pass over the decoded events of a trace on several threads.
//!
//! One thread reads the records in time order and distributes them in batches. Other threads decode
//! them and prepare the output, and the caller's thread receives the output in time order. Neither
//! the batches nor the output depend on the number of threads. The number of batches in memory is
//! limited.
//!
//! Events that are completed with other events' data pass through one thread in between, because
//! the result depends on all events before them.

use std::io::{Read, Seek};
use std::num::NonZeroUsize;

use crate::analysis::{Enricher, FirstPass};
use crate::decode::catalog::Catalog;
use crate::decode::{Decoded, Decoder};
use crate::ordered::ordered;
use crate::read::{EventRef, ReadError, RecordBatch, RecordBuf, RecordRef, Records, TraceFile};
use crate::select::Selection;
use crate::stream::{Additions, Summary, decode_record, hide_hardware_addresses, view};

/// The events of a pass, and the threads that decode them.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// The catalog with which the events are decoded.
    pub catalog: &'a Catalog,
    /// The selection of events to pass on.
    pub selection: &'a Selection,
    /// The data to add to the events of a trace with
    /// [`Contents::completes`](crate::stream::Contents::completes), which requires an additional
    /// pass; `None` leaves the events unchanged.
    pub additions: Option<&'a Additions>,
    /// True to pass on the addresses of network adapters; false to hide them with
    /// [`hide_hardware_addresses`].
    pub hardware_addresses: bool,
    /// The number of threads. With one, everything runs on the caller's thread.
    pub threads: NonZeroUsize,
}

/// Returns the number of threads that the system can run in parallel.
#[must_use]
pub fn available_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Completed events that are passed on together, with their records.
#[derive(Default)]
struct Completed {
    events: Vec<(Decoded, RecordBuf)>,
    size: usize,
}

/// The output of a batch of events.
struct Output<T, E> {
    content: T,
    counts: Summary,
    error: Option<E>,
    hardware_addresses: bool,
}

impl<T: Default, E> Output<T, E> {
    fn new(hardware_addresses: bool) -> Self {
        let counts = Summary::default();
        Self { content: T::default(), counts, error: None, hardware_addresses }
    }

    /// Adds an event. Returns false after an error.
    fn add(
        &mut self,
        record: &RecordRef<'_>,
        mut decoded: Decoded,
        each: impl FnOnce(&EventRef<'_>, Decoded, &mut T) -> Result<(), E>,
    ) -> bool {
        self.counts.count(&decoded);
        if let Some(event) = view(record) {
            let hidden = if self.hardware_addresses {
                None
            } else {
                hide_hardware_addresses(record, &mut decoded)
            };
            let user_data = hidden.as_deref().unwrap_or(event.user_data);
            let event = EventRef { user_data, ..event };
            self.error = each(&event, decoded, &mut self.content).err();
        }
        self.error.is_none()
    }
}

impl Pass<'_> {
    /// Calls `each` for every selected event, on any thread. `each` adds the event to its batch's output.
    /// `take` receives the outputs in time order, and other threads drop them. `state` creates a state
    /// for each thread; the output must not depend on it. Returns the counts of the pass.
    ///
    /// # Errors
    /// Fails with the first error of `each` or `take`, or with [`ReadError::Io`] if the
    /// file cannot be read.
    pub fn run<R, S, T, E>(
        &self,
        file: &mut TraceFile<R>,
        state: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &EventRef<'_>, Decoded, &mut T) -> Result<(), E> + Sync,
        mut take: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<Summary, E>
    where
        R: Read + Seek + Send,
        T: Default + Send,
        E: From<ReadError> + Send,
    {
        let mut summary = Summary::default();
        let mut take = |part: &mut Output<T, E>| {
            summary.absorb(std::mem::take(&mut part.counts));
            take(&mut part.content)?;
            part.error.take().map_or(Ok(()), Err)
        };
        let Some(additions) = self.additions else {
            let mut records = file.records();
            ordered(
                self.threads,
                |push| records.in_batches(push).map_err(E::from),
                || (Decoder::new(self.catalog), state()),
                |(decoder, state), batch: RecordBatch| {
                    let mut part = Output::new(self.hardware_addresses);
                    for record in batch.iter() {
                        if let Some(decoded) = decode(&record, decoder, &mut part.counts)
                            && self.selection.wants(&decoded)
                            && !part.add(&record, decoded, |event, decoded, output| {
                                each(state, event, decoded, output)
                            })
                        {
                            break;
                        }
                    }
                    part
                },
                take,
            )?;
            summary.late = records.late();
            summary.damages = records.damages().clone();
            return Ok(summary);
        };
        let first = FirstPass::read(file)?;
        let dropped = first.dropped();
        let enricher = Enricher::new(first).with_symbols(additions.symbols.clone());
        let mut enricher = if additions.names { enricher.with_names() } else { enricher };
        let mut records = file.records();
        let mut all = Summary::default();
        ordered(
            self.threads,
            |push| self.complete(&mut records, &mut enricher, &mut all, push).map_err(E::from),
            state,
            |state, batch: Completed| {
                let mut part = Output::new(self.hardware_addresses);
                for (decoded, record) in batch.events {
                    let added = part.add(&record.get(), decoded, |event, decoded, output| {
                        each(state, event, decoded, output)
                    });
                    if !added {
                        break;
                    }
                }
                part
            },
            &mut take,
        )?;
        summary.absorb(all);
        summary.late = records.late();
        summary.damages = records.damages().clone();
        summary.stacks = enricher.stacks();
        summary.dropped = dropped;
        Ok(summary)
    }

    /// Decodes a trace's records, and passes on the selected events when they are complete.
    fn complete<R: Read + Seek + Send>(
        &self,
        records: &mut Records<'_, R>,
        enricher: &mut Enricher<RecordBuf>,
        counts: &mut Summary,
        push: &mut dyn FnMut(Completed) -> bool,
    ) -> Result<(), ReadError> {
        let mut ready = Completed::default();
        // The error `None` ends the pass.
        let mut pass_on = |ready: &mut Completed, (event, record): (Decoded, RecordBuf)| {
            if self.selection.wants(&event) {
                ready.size += record.size();
                ready.events.push((event, record));
            }
            let is_wanted = ready.size < RecordBatch::FULL || push(std::mem::take(ready));
            if is_wanted { Ok(()) } else { Err(None) }
        };
        let read = ordered(
            self.threads,
            |push| records.in_batches(push).map_err(Some),
            || Decoder::new(self.catalog),
            |decoder, batch: RecordBatch| {
                let mut counts = Summary::default();
                let events = batch.iter().filter_map(|record| {
                    let decoded = decode(&record, decoder, &mut counts)?;
                    Some((decoded, RecordBuf::from(&record)))
                });
                (events.collect::<Vec<_>>(), counts)
            },
            |(events, part)| {
                counts.absorb(std::mem::take(part));
                for (decoded, record) in events.drain(..) {
                    let size = record.size();
                    enricher.push(decoded, record, size);
                    while let Some(next) = enricher.pop() {
                        pass_on(&mut ready, next)?;
                    }
                }
                Ok(())
            },
        );
        let drained = read.and_then(|()| {
            while let Some(next) = enricher.drain() {
                pass_on(&mut ready, next)?;
            }
            Ok(())
        });
        push(ready);
        drained.map_or_else(|error: Option<ReadError>| error.map_or(Ok(()), Err), Ok)
    }
}

/// Decodes and counts a record.
fn decode(
    record: &RecordRef<'_>,
    decoder: &mut Decoder<'_>,
    counts: &mut Summary,
) -> Option<Decoded> {
    let event = decode_record(record, decoder);
    if event.is_some() {
        counts.decoded += 1;
    } else if let Some(other) = record.other() {
        counts.skipped.add(&other);
    }
    event
}
