//! What a trace's own events say about its other events: names, places and stacks.
//!
//! A [`FirstPass`] over all events collects the tables. An [`Enricher`] then completes the events of
//! a second pass, in a stream: it joins stacks, and fills in names where they are wanted.

use crate::decode::Decoded;
use crate::names::{Names, Running};
use crate::stacks::{Definitions, Joiner, StackCounts};
use crate::symbols::Symbols;

/// The tables that a first pass over a trace's events fills.
#[derive(Clone, Debug, Default)]
pub struct FirstPass {
    /// Processes, threads and images.
    pub names: Names,
    /// The stacks that keys stand for.
    pub definitions: Definitions,
}

impl FirstPass {
    /// Returns empty tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what an event says. Only kernel and classic events say something, and the events
    /// should come in the order of time.
    pub fn observe(&mut self, event: &Decoded) {
        self.names.observe(event);
        self.definitions.observe(event);
    }
}

/// Completes the events of a stream. `T` is what the caller keeps beside each event.
#[derive(Debug)]
pub struct Enricher<T> {
    names: Names,
    symbols: Symbols,
    with_names: bool,
    running: Running,
    joiner: Joiner<T>,
}

impl<T> Enricher<T> {
    /// Returns an enricher that joins stacks and gives their frames their images.
    #[must_use]
    pub fn new(first: FirstPass) -> Self {
        Self {
            names: first.names,
            symbols: Symbols::new(),
            with_names: false,
            running: Running::new(),
            joiner: Joiner::new(first.definitions),
        }
    }

    /// Also fills in the names of processes and threads.
    #[must_use]
    pub const fn with_names(mut self) -> Self {
        self.with_names = true;
        self
    }

    /// Also names the functions of frames.
    #[must_use]
    pub fn with_symbols(mut self, symbols: Symbols) -> Self {
        self.symbols = symbols;
        self
    }

    /// Takes the next event in the order of time. [`pop`](Self::pop) then returns the events that
    /// are complete.
    pub fn push(&mut self, mut event: Decoded, beside: T) {
        self.running.follow(&mut event);
        self.joiner.push(event, beside);
    }

    /// Returns the oldest event, if it need not wait for its stack any longer.
    pub fn pop(&mut self) -> Option<(Decoded, T)> {
        let next = self.joiner.pop()?;
        Some(self.complete(next))
    }

    /// Returns the oldest event, for the end of the stream.
    pub fn drain(&mut self) -> Option<(Decoded, T)> {
        let next = self.joiner.drain()?;
        Some(self.complete(next))
    }

    /// Returns the counts of stacks so far.
    #[must_use]
    pub const fn stacks(&self) -> StackCounts {
        self.joiner.counts()
    }

    fn complete(&self, (mut event, beside): (Decoded, T)) -> (Decoded, T) {
        if self.with_names {
            self.names.resolve(&mut event);
        }
        self.names.place_frames(&mut event, &self.symbols);
        (event, beside)
    }
}
