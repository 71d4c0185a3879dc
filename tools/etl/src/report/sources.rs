//! The events of files, read buffer by buffer and completed by what the files say themselves.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek};

use super::session::{Session, Skipped};
use super::writer::Writer;
use crate::analysis::{Enricher, FirstPass};
use crate::decode::catalog::Catalog;
use crate::decode::{Decoded, decode};
use crate::kernel;
use crate::read::{Damages, ReadError, Records, TraceFile};
use crate::symbols::Symbols;
use crate::time::Clock;

/// A file and its name.
pub struct Source<'a, R> {
    /// The name that the page shows.
    pub name: &'a str,
    /// The file.
    pub file: &'a mut TraceFile<R>,
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
    records: Records<'a, R>,
    clock: Clock,
    catalog: &'a Catalog,
    enricher: Enricher<()>,
    session: Session,
    skipped: BTreeMap<String, (u64, u64)>,
    next: Option<Decoded>,
}

impl<'a, R: Read + Seek> Stream<'a, R> {
    fn new(
        source: &'a mut Source<'_, R>,
        catalog: &'a Catalog,
        symbols: &Symbols,
    ) -> Result<Self, ReadError> {
        let Source {
            name,
            file,
            completes,
        } = source;
        let first = if *completes {
            FirstPass::of(file)?
        } else {
            FirstPass::new()
        };
        let mut stream = Self {
            clock: file.clock(),
            session: Session::new(name, file.header()),
            records: file.records(),
            catalog,
            enricher: Enricher::new(first)
                .with_names()
                .with_symbols(symbols.clone()),
            skipped: BTreeMap::new(),
            next: None,
        };
        stream.advance()?;
        Ok(stream)
    }

    /// Moves to the next event.
    fn advance(&mut self) -> Result<(), ReadError> {
        self.next = loop {
            if let Some((event, ())) = self.enricher.pop() {
                break Some(event);
            }
            let Some(record) = self.records.next()? else {
                break self.enricher.drain().map(|(event, ())| event);
            };
            let decoded = match record.event() {
                Some(event) => {
                    let decoded = decode(&event.to_event(), self.catalog);
                    Some(kernel::or_by_class(decoded, &event, &self.clock))
                }
                None => kernel::decode_record(&record).map(|decoded| {
                    decoded.into_decoded(&self.clock, record.processor, record.timestamp)
                }),
            };
            if let Some(decoded) = decoded {
                self.session.events += 1;
                self.enricher.push(decoded, (), 0);
            } else {
                let kind = record
                    .kind()
                    .map_or_else(|| "damaged event".to_owned(), |kind| kind.to_string());
                let (records, bytes) = self.skipped.entry(kind).or_default();
                *records += 1;
                *bytes += record.bytes.len() as u64;
            }
        };
        Ok(())
    }

    /// Returns what is known at the end.
    fn finish(mut self) -> (Session, Damages) {
        let damages = self.records.damages().clone();
        let skipped = self.skipped.into_iter();
        self.session.skipped = skipped
            .map(|(kind, (records, bytes))| Skipped {
                kind,
                records,
                bytes,
            })
            .collect();
        self.session.damages = damages.listed().iter().map(ToString::to_string).collect();
        self.session.damage_count = damages.count();
        self.session.unmatched_stacks = self.enricher.stacks().unmatched;
        (self.session, damages)
    }
}

impl Writer {
    /// Adds the events of files, merged by time, with the names and stacks that the files have
    /// themselves. A file with events that complete others is read twice; memory does not grow with
    /// it. A catalog that has [`schemas`](crate::schemas) of the files decodes more, and `symbols`
    /// name the functions of stack frames.
    ///
    /// Returns the damaged parts of each file.
    ///
    /// # Errors
    /// Returns [`SourceError`] if a file or the page's temporary file cannot be read or written.
    pub fn add_files<R: Read + Seek>(
        &mut self,
        sources: &mut [Source<'_, R>],
        catalog: &Catalog,
        symbols: &Symbols,
    ) -> Result<Vec<Damages>, SourceError> {
        let failed = |name: &str, source| SourceError::Read {
            name: name.to_owned(),
            source,
        };
        let mut streams = Vec::new();
        for source in sources {
            let name = source.name;
            let stream = Stream::new(source, catalog, symbols);
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
            advanced.map_err(|error| failed(&first.session.file, error))?;
        }
        let finished = streams.into_iter().map(|stream| {
            let (session, damages) = stream.finish();
            self.add_session(session);
            damages
        });
        Ok(finished.collect())
    }
}
