//! The pipeline from the records of a trace to its decoded events, which all outputs use.
//!
//! Each record passes the same steps: it is read in time order; it is decoded, or skipped and
//! counted; other events of the trace complete the event, if this is requested; the event is
//! selected and counted; the addresses of network adapters are hidden; and the event is added to
//! the output.
//!
//! With one thread, all steps run on the caller's thread. With several, one thread reads the records
//! and distributes them in batches, other threads decode them and prepare the output, and the
//! caller's thread receives the output in time order. Completion runs on one thread in between,
//! because its result depends on all previous events. Neither the batches nor the output depend on
//! the number of threads, and the number of batches in memory is limited.

mod address_hider;
mod first_pass;
mod ordered;
mod record;
mod summary;

use std::io::{Read, Seek};
use std::num::NonZeroUsize;

pub use address_hider::AddressHider;
pub use first_pass::FirstPass;
pub use record::decode_record;
pub use summary::{RecordCount, RecordCounts, Summary};

use crate::completion::{Completer, Completion, Tables};
use crate::decode::catalog::Catalog;
use crate::decode::{Decoded, Decoder};
use crate::hiding::hide;
use crate::read::{EventRef, ReadError, RecordBatch, RecordBuf, RecordRef, Records, TraceFile};
use crate::select::Selection;
use ordered::ordered;
use record::view;

/// A configuration of the steps from a record to the output.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'a> {
    /// The catalog with which the events are decoded.
    pub catalog: &'a Catalog,
    /// The events to pass on.
    pub selection: &'a Selection,
    /// The data to add to events, which requires an additional pass over the trace. This is only
    /// necessary for traces with [`FirstPass::can_complete`]; with `None`, the events of other
    /// traces are the same.
    pub completion: Option<&'a Completion>,
    /// True to decode all of an event. False if the output needs only what identifies an event: the
    /// names of its provider, itself and its level, and its problems.
    pub details: bool,
    /// True to pass on the addresses of network adapters, which could identify a machine; false to
    /// hide them in the fields and to replace them with zeros in the user data.
    pub hardware_addresses: bool,
    /// The number of threads. With one, everything runs on the caller's thread.
    pub threads: NonZeroUsize,
}

/// Returns the number of threads that the system can run in parallel.
#[must_use]
pub fn available_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

impl<'a> Pipeline<'a> {
    /// Returns a pipeline for all events, without completion, on the caller's thread.
    #[must_use]
    pub const fn new(catalog: &'a Catalog) -> Self {
        Self {
            catalog,
            selection: Selection::ALL,
            completion: None,
            details: true,
            hardware_addresses: false,
            threads: NonZeroUsize::MIN,
        }
    }

    /// Calls `take` for every selected event, on the caller's thread and in time order. Returns the
    /// counts of the trace.
    ///
    /// # Errors
    /// Fails with the first error of `take`, or with [`ReadError::Io`] if the file cannot be read.
    pub fn each<R, E>(
        &self,
        file: &mut TraceFile<R>,
        mut take: impl FnMut(Decoded) -> Result<(), E>,
    ) -> Result<Summary, E>
    where
        R: Read + Seek + Send,
        E: From<ReadError> + Send,
    {
        self.run(
            file,
            || (),
            |(), _, event, batch: &mut Vec<Decoded>| {
                batch.push(event);
                Ok(())
            },
            |batch| batch.drain(..).try_for_each(&mut take),
        )
    }

    /// Calls `each` for every selected event, on any thread. `each` adds the event to its batch's
    /// output. `take` receives the outputs on the caller's thread and in time order; the thread that
    /// created an output drops it. `state` creates a state for each thread; the output must not
    /// depend on it. Returns the counts of the trace.
    ///
    /// # Errors
    /// Fails with the first error of `each` or `take`, or with [`ReadError::Io`] if the file cannot
    /// be read. `take` receives all output of earlier events.
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
        let take = |output: &mut Output<T, E>| {
            summary.absorb(std::mem::take(&mut output.counts));
            take(&mut output.content)?;
            output.error.take().map_or(Ok(()), Err)
        };
        let Some(completion) = self.completion else {
            let mut records = file.records();
            ordered(
                self.threads,
                |push| records.in_batches(push).map_err(E::from),
                || (self.decoder(), state()),
                |(decoder, state), batch: RecordBatch| {
                    let mut decoded = Summary::default();
                    let events = batch.iter().filter_map(|record| {
                        let (event, found) = decode(&record, decoder, &mut decoded)?;
                        Some((record, event, found))
                    });
                    let mut output = self.output(events, |event, decoded, content| {
                        each(state, event, decoded, content)
                    });
                    output.counts.absorb(decoded);
                    output
                },
                take,
            )?;
            summary.late = records.late();
            summary.damages = records.damages().clone();
            return Ok(summary);
        };
        let tables = Tables::collect(file)?;
        let dropped = tables.dropped();
        let mut completer = Completer::new(tables, completion);
        let mut records = file.records();
        let mut decoded = Summary::default();
        ordered(
            self.threads,
            |push| {
                let end = self.complete(&mut records, &mut completer, &mut decoded, push);
                end.map_err(E::from)
            },
            state,
            |state, batch: Completed| {
                let records = batch.records.iter().map(RecordBuf::get);
                let events = records
                    .zip(batch.events)
                    .filter_map(|(record, decoded)| Some((record, view(&record)?, decoded)));
                self.output(events, |event, decoded, content| each(state, event, decoded, content))
            },
            take,
        )?;
        summary.absorb(decoded);
        Ok(Summary {
            late: records.late(),
            damages: records.damages().clone(),
            stacks: completer.stacks(),
            dropped,
            ..summary
        })
    }

    fn decoder(&self) -> Decoder<'a> {
        let decoder = Decoder::new(self.catalog);
        if self.details { decoder } else { decoder.without_details() }
    }

    /// Decodes a trace's records, and passes on the events in batches when they are complete.
    fn complete<R: Read + Seek + Send>(
        &self,
        records: &mut Records<'_, R>,
        completer: &mut Completer<'_, RecordBuf>,
        counts: &mut Summary,
        push: &mut dyn FnMut(Completed) -> bool,
    ) -> Result<(), ReadError> {
        let mut ready = Completed::default();
        // The error `None` ends the pass.
        let mut pass_on = |ready: &mut Completed, (event, record): (Decoded, RecordBuf)| {
            ready.size += record.size();
            ready.events.push(event);
            ready.records.push(record);
            let is_wanted = ready.size < RecordBatch::FULL || push(std::mem::take(ready));
            if is_wanted { Ok(()) } else { Err(None) }
        };
        let read = ordered(
            self.threads,
            |push| records.in_batches(push).map_err(Some),
            || self.decoder(),
            |decoder, batch: RecordBatch| {
                let mut counts = Summary::default();
                let events = batch.iter().filter_map(|record| {
                    let (_, decoded) = decode(&record, decoder, &mut counts)?;
                    Some((decoded, RecordBuf::from(&record)))
                });
                (events.collect::<Vec<_>>(), counts)
            },
            |(events, part)| {
                counts.absorb(std::mem::take(part));
                for (decoded, record) in events.drain(..) {
                    let size = record.size();
                    completer.push(decoded, record, size);
                    while let Some(next) = completer.pop() {
                        pass_on(&mut ready, next)?;
                    }
                }
                Ok(())
            },
        );
        let drained = read.and_then(|()| {
            while let Some(next) = completer.drain() {
                pass_on(&mut ready, next)?;
            }
            Ok(())
        });
        let end = match drained {
            Err(None) => return Ok(()),
            Err(Some(error)) => Err(error),
            Ok(()) => Ok(()),
        };
        push(ready);
        end
    }

    /// Selects and counts events, hides the addresses of network adapters, and adds the events to
    /// an output, until `each` fails.
    fn output<'r, T: Default, E>(
        &self,
        events: impl Iterator<Item = (RecordRef<'r>, EventRef<'r>, Decoded)>,
        mut each: impl FnMut(&EventRef<'_>, Decoded, &mut T) -> Result<(), E>,
    ) -> Output<T, E> {
        let mut output = Output { content: T::default(), counts: Summary::default(), error: None };
        for (record, event, mut decoded) in events {
            if !self.selection.wants(&decoded) {
                continue;
            }
            output.counts.count(&decoded);
            let hidden = if self.hardware_addresses {
                None
            } else {
                hide(self.catalog.addresses(), &record, &mut decoded)
            };
            let without = hidden.as_deref().map(|bytes| record.with_bytes(bytes));
            let event = without.as_ref().and_then(view).unwrap_or(event);
            if let Err(error) = each(&event, decoded, &mut output.content) {
                output.error = Some(error);
                break;
            }
        }
        output
    }
}

/// Decodes and counts a record, or counts it as skipped.
#[inline]
fn decode<'r>(
    record: &RecordRef<'r>,
    decoder: &mut Decoder<'_>,
    counts: &mut Summary,
) -> Option<(EventRef<'r>, Decoded)> {
    let event = decode_record(record, decoder);
    if event.is_some() {
        counts.decoded += 1;
    } else if let Some(other) = record.other() {
        counts.skipped.add(&other);
    }
    event
}

/// Completed events that are passed on together, with their records.
#[derive(Default)]
struct Completed {
    events: Vec<Decoded>,
    records: Vec<RecordBuf>,
    size: usize,
}

/// The output of a batch of events, and the error that ended it.
struct Output<T, E> {
    content: T,
    counts: Summary,
    error: Option<E>,
}
