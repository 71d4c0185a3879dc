//! The events of files, read buffer by buffer and completed with other data from the files.

use std::io::{self, Read, Seek};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::session::{Session, Skipped};
use super::writer::Writer;
use etl_file::{Damages, Decoded, Pipeline, ReadError, Summary, TraceFile};

/// A file and its name.
pub struct Source<'a, R> {
    /// The name to show.
    pub name: &'a str,
    /// The file.
    pub file: &'a mut TraceFile<R>,
    /// The pipeline for the file's events; its catalog should include the file's own
    /// [`schemas`](etl_file::decode::schemas).
    pub pipeline: Pipeline<'a>,
}

/// The reason why a pass over a file ended early.
enum Ended {
    Read(ReadError),
    /// The page cannot be written.
    Unwanted,
}

impl From<ReadError> for Ended {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl<R: Read + Seek + Send> Source<'_, R> {
    /// Passes on the events of the file. Returns the data that is only known at the end.
    fn send(&mut self, batches: &SyncSender<Vec<Decoded>>) -> Result<(Session, Damages), Ended> {
        let summary = self.pipeline.run(
            self.file,
            || (),
            |(), _, event, batch: &mut Vec<Decoded>| {
                batch.push(event);
                Ok(())
            },
            |batch| batches.send(std::mem::take(batch)).map_err(|_| Ended::Unwanted),
        )?;
        let session = Session::new(self.name, self.file.header());
        Ok((with_counts(session, &summary), summary.damages))
    }
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

/// The events of one file, in time order, from the thread that runs its pipeline.
struct Events {
    batches: Receiver<Vec<Decoded>>,
    batch: std::vec::IntoIter<Decoded>,
    next: Option<Decoded>,
}

impl Events {
    fn new(batches: Receiver<Vec<Decoded>>) -> Self {
        let mut events = Self { batches, batch: Vec::new().into_iter(), next: None };
        events.advance();
        events
    }

    /// Moves to the next event, and returns the current one.
    fn advance(&mut self) -> Option<Decoded> {
        let mut next = self.batch.next();
        while next.is_none()
            && let Ok(batch) = self.batches.recv()
        {
            self.batch = batch.into_iter();
            next = self.batch.next();
        }
        std::mem::replace(&mut self.next, next)
    }
}

/// Adds a pass's counts to the description of its session.
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
    /// Adds the events of files, merged by time. Memory use does not depend on the files' sizes. The
    /// pipeline of each file runs on a thread of its own.
    ///
    /// Returns the damaged parts of each file.
    ///
    /// # Errors
    /// Fails with [`SourceError`] if a file or the page's temporary file cannot be read or
    /// written.
    pub fn add_files<R: Read + Seek + Send>(
        &mut self,
        sources: &mut [Source<'_, R>],
    ) -> Result<Vec<Damages>, SourceError> {
        thread::scope(|scope| {
            let (mut passes, mut receivers) = (Vec::new(), Vec::new());
            for source in sources {
                let (sender, receiver) = sync_channel(1);
                passes.push((source.name, scope.spawn(move || source.send(&sender))));
                receivers.push(receiver);
            }
            let mut files: Vec<Events> = receivers.into_iter().map(Events::new).collect();
            loop {
                let times =
                    files.iter_mut().filter_map(|file| Some((file.next.as_ref()?.time, file)));
                let first = times.min_by_key(|(time, _)| *time);
                let Some(event) = first.and_then(|(_, file)| file.advance()) else {
                    break;
                };
                self.push(&event)?;
            }
            let finished = passes.into_iter().map(|(name, pass)| {
                match pass.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                    Ok((session, damages)) => {
                        self.add_session(session);
                        Ok(damages)
                    }
                    Err(Ended::Read(source)) => {
                        Err(SourceError::Read { name: name.to_owned(), source })
                    }
                    // The events of all files were received.
                    Err(Ended::Unwanted) => Ok(Damages::default()),
                }
            });
            finished.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_file::{Other, OtherKind};

    #[test]
    fn a_session_has_the_counts_of_its_pass() {
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
