//! The events that this crate decodes from a trace.

use std::io::{Read, Seek};

use etl_file::decode::Kind;
use etl_file::{Catalog, Decoded, FirstPass, Pipeline, ReadError, Selection, TraceFile};

/// The maximum number of events in a comparison.
pub const MAX_EVENTS: usize = 500_000;

/// A trace's decoded events, for comparison.
#[derive(Clone, Debug, Default)]
pub struct Ours {
    /// The providers' events, in time order.
    pub events: Vec<Decoded>,
    /// The number of selected kernel events, classic events and WPP messages, which are not compared.
    pub left_out: u64,
}

/// The reason why a trace's events cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum OursError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There are too many events.
    #[error(
        "more than {MAX_EVENTS} events are selected, the limit of a comparison; select fewer, for \
         example those of one provider"
    )]
    TooMany,
}

impl Ours {
    /// Decodes a trace with a catalog and with the schemas that the trace contains.
    ///
    /// # Errors
    /// Fails if the trace cannot be read, or more than [`MAX_EVENTS`] events are selected.
    pub fn read<R: Read + Seek + Send>(
        file: &mut TraceFile<R>,
        catalog: &Catalog,
        selection: &Selection,
    ) -> Result<Self, OursError> {
        let mut catalog = catalog.clone();
        FirstPass::read(file)?.schemas.add_to(&mut catalog);
        let mut ours = Self::default();
        let pipeline = Pipeline { selection, ..Pipeline::new(&catalog) };
        pipeline.each(file, |event| ours.add(event))?;
        Ok(ours)
    }

    /// Adds an event. Events must be added in time order.
    ///
    /// # Errors
    /// Fails if there are already [`MAX_EVENTS`].
    pub fn add(&mut self, event: Decoded) -> Result<(), OursError> {
        if event.kind != Kind::Event {
            self.left_out += 1;
            return Ok(());
        }
        if self.events.len() >= MAX_EVENTS {
            return Err(OursError::TooMany);
        }
        self.events.push(event);
        Ok(())
    }
}
