//! The events of files, read buffer by buffer and completed by what the files say themselves.

use std::io::{self, Read, Seek};

use super::session::{Session, Skipped};
use super::writer::Writer;
use crate::decode::Decoded;
use crate::decode::catalog::Catalog;
use crate::read::{Damages, ReadError, TraceFile};
use crate::select::Selection;
use crate::stream::{Additions, Events};
use crate::symbols::Symbols;

/// A file and its name.
pub struct Source<'a, R> {
    /// The name that the page shows.
    pub name: &'a str,
    /// The file.
    pub file: &'a mut TraceFile<R>,
    /// What decodes the file's events; with the file's own [`schemas`](crate::schemas), more is
    /// decoded.
    pub catalog: &'a Catalog,
    /// True if the file has events that may complete its other events; see
    /// [`Contents::completes`](crate::stream::Contents::completes).
    pub completes: bool,
}

/// Events of files could not be added to a page.
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

/// The events of one file, in the order of time.
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
        let additions = Additions {
            names: true,
            symbols: symbols.clone(),
        };
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
        self.next = self.events.next()?.map(|(_, event)| event);
        Ok(())
    }

    /// Returns what is known at the end.
    fn finish(self) -> (Session, Damages) {
        let summary = self.events.summary();
        let skipped = summary.skipped.iter().map(|(kind, count)| Skipped {
            kind: kind.to_owned(),
            records: count.records,
            bytes: count.bytes,
        });
        let damages = &summary.damages;
        let session = Session {
            events: summary.decoded,
            skipped: skipped.collect(),
            damages: damages.listed().iter().map(ToString::to_string).collect(),
            damage_count: damages.count(),
            unmatched_stacks: summary.stacks.unmatched,
            late: summary.late,
            dropped: summary.dropped,
            ..Session::new(&self.name, self.events.file().header())
        };
        (session, summary.damages)
    }
}

impl Writer {
    /// Adds the events of files, merged by time, with the names and stacks that the files have
    /// themselves. A file with events that complete others is read twice; memory does not grow with
    /// it. `symbols` name the functions of stack frames.
    ///
    /// Returns the damaged parts of each file.
    ///
    /// # Errors
    /// Returns [`SourceError`] if a file or the page's temporary file cannot be read or written.
    pub fn add_files<R: Read + Seek>(
        &mut self,
        sources: &mut [Source<'_, R>],
        symbols: &Symbols,
    ) -> Result<Vec<Damages>, SourceError> {
        let failed = |name: &str, source| SourceError::Read {
            name: name.to_owned(),
            source,
        };
        let selection = Selection::default();
        let mut streams = Vec::new();
        for source in sources {
            let name = source.name;
            let stream = Stream::new(source, &selection, symbols);
            streams.push(stream.map_err(|error| failed(name, error))?);
        }
        loop {
            let waiting = streams
                .iter_mut()
                .filter_map(|stream| Some((stream.next.as_ref()?.time, stream)));
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
