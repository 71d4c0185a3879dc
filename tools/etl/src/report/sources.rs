//! The events of files, read buffer by buffer and completed with other data from the files.

use std::io::{self, Read, Seek};

use super::session::{Session, Skipped};
use super::writer::Writer;
use etl_file::decode::Decoded;
use etl_file::decode::catalog::Catalog;
use etl_file::read::{Damages, ReadError, TraceFile};
use etl_file::select::Selection;
use etl_file::stream::{Additions, Events, Summary, hide_hardware_addresses};
use etl_file::symbols::Symbols;

/// A file and its name.
pub struct Source<'a, R> {
    /// The name to show.
    pub name: &'a str,
    /// The file.
    pub file: &'a mut TraceFile<R>,
    /// The catalog with which the file's events are decoded; it should include the file's own
    /// [`schemas`](etl_file::decode::schemas).
    pub catalog: &'a Catalog,
    /// True if the file has events that can complete its other events; see
    /// [`Contents::completes`](etl_file::stream::Contents::completes).
    pub completes: bool,
}

/// The reason why files' events could not be added to a page.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file could not be read.
    #[error("{name}: {source}")]
    Read {
        /// The file's name.
        name: String,
        /// The reason.
        source: ReadError,
    },
    /// The temporary file of the page could not be written.
    #[error("cannot write a temporary file: {0}")]
    Write(#[from] io::Error),
}

/// The events of one file, in time order.
struct Stream<'a, R> {
    name: String,
    events: Events<'a, R>,
    next: Option<Decoded>,
}

impl<'a, R: Read + Seek> Stream<'a, R> {
    fn new(
        source: &'a mut Source<'_, R>,
        selection: &'a Selection,
        symbols: &Symbols,
    ) -> Result<Self, ReadError> {
        let (file, catalog) = (&mut *source.file, source.catalog);
        let additions = Additions { names: true, symbols: symbols.clone() };
        let mut stream = Self {
            name: source.name.to_owned(),
            events: if source.completes {
                Events::complete(file, catalog, selection, &additions)?
            } else {
                Events::new(file, catalog, selection)
            },
            next: None,
        };
        stream.advance()?;
        Ok(stream)
    }

    /// Moves to the next event.
    fn advance(&mut self) -> Result<(), ReadError> {
        self.next = self.events.next()?.map(|(record, mut event)| {
            let _hidden = hide_hardware_addresses(&record, &mut event);
            event
        });
        Ok(())
    }

    /// Returns the data that is only known at the end.
    fn finish(self) -> (Session, Damages) {
        let summary = self.events.summary();
        let session = Session::new(&self.name, self.events.file().header());
        (with_counts(session, &summary), summary.damages)
    }
}

/// Adds a stream's counts to the description of its session.
fn with_counts(session: Session, summary: &Summary) -> Session {
    let skipped = summary.skipped.iter().map(|(kind, count)| Skipped {
        kind: kind.to_owned(),
        records: count.records,
        bytes: count.bytes,
    });
    let damages = &summary.damages;
    Session {
        events: summary.decoded,
        skipped: skipped.collect(),
        damages: damages.listed().iter().map(ToString::to_string).collect(),
        damage_count: damages.count(),
        unmatched_stacks: summary.stacks.unmatched,
        late: summary.late,
        dropped: summary.dropped,
        ..session
    }
}

impl Writer {
    /// Adds the events of files, merged by time, with the names and stacks that the files contain.
    /// A file with events that complete others is read twice; memory use does not depend on its
    /// size. `symbols` provides the function names of stack frames.
    ///
    /// Returns the damaged parts of each file.
    ///
    /// # Errors
    /// Fails with [`SourceError`] if a file or the page's temporary file cannot be read or
    /// written.
    pub fn add_files<R: Read + Seek>(
        &mut self,
        sources: &mut [Source<'_, R>],
        symbols: &Symbols,
    ) -> Result<Vec<Damages>, SourceError> {
        let failed = |name: &str, source| SourceError::Read { name: name.to_owned(), source };
        let selection = Selection::default();
        let mut streams = Vec::new();
        for source in sources {
            let name = source.name;
            let stream = Stream::new(source, &selection, symbols);
            streams.push(stream.map_err(|error| failed(name, error))?);
        }
        loop {
            let waiting =
                streams.iter_mut().filter_map(|stream| Some((stream.next.as_ref()?.time, stream)));
            let Some((_, first)) = waiting.min_by_key(|(time, _)| *time) else {
                break;
            };
            if let Some(event) = first.next.take() {
                self.push(&event)?;
            }
            let advanced = first.advance();
            advanced.map_err(|error| failed(&first.name, error))?;
        }
        let finished = streams.into_iter().map(|stream| {
            let (session, damages) = stream.finish();
            self.add_session(session);
            damages
        });
        Ok(finished.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::read::{Other, OtherKind};

    #[test]
    fn a_session_has_the_counts_of_its_stream() {
        let mut summary = Summary { decoded: 1, late: 2, dropped: 3, ..Summary::default() };
        summary.stacks.unmatched = 4;
        summary.skipped.add(&Other {
            kind: OtherKind::Unknown { header_type: 0x77 },
            offset: 0,
            size: 40,
            buffer: 1,
            processor: 0,
            timestamp: None,
        });
        let session = Session { name: "Name".to_owned(), events_lost: 5, ..Session::default() };
        let expected = Session {
            events: 1,
            late: 2,
            dropped: 3,
            unmatched_stacks: 4,
            skipped: vec![Skipped { kind: "unknown 0x77".to_owned(), records: 1, bytes: 40 }],
            ..session.clone()
        };
        assert_eq!(with_counts(session, &summary), expected);
    }
}
