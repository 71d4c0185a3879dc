//! The writer of timelines.

use std::io::{self, Write};

use super::core::Core;
use super::kernel::{self, Form};
use super::summary::Summary;
use etl_file::internals::spans::Part;
use etl_file::{Decoded, LogFileHeader};

/// The maximum number of providers in the trace's attributes.
const MAX_ATTRIBUTES: usize = 256;

/// Writes a timeline in Perfetto's format.
pub struct Writer<W> {
    out: W,
    core: Core,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `out`, which should be unbuffered because the writer has a buffer.
    /// `header` is the header of the trace.
    pub fn new(out: W, header: &LogFileHeader) -> Self {
        Self { out, core: Core::new(header) }
    }

    /// Adds an event, which must not be earlier than the events before it.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn event(&mut self, event: &Decoded) -> io::Result<()> {
        self.core.event(event);
        if self.core.tracks.packets.are_many() { self.write() } else { Ok(()) }
    }

    /// Adds an attribute, which Perfetto shows in its information about the trace. Attributes that
    /// report a timeline's omissions should be added before [`Writer::finish`].
    pub fn attribute(&mut self, key: &str, value: &str) {
        self.core.tracks.packets.attributes(&[], &[(key, value)]);
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.core.tracks.packets.take())
    }

    /// Writes the rest of the timeline. Returns the output and the counts.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn finish(mut self) -> io::Result<(W, Summary)> {
        self.core.finish();
        self.write()?;
        self.out.flush()?;
        Ok((self.out, self.core.summary))
    }
}

impl Core {
    fn event(&mut self, event: &Decoded) {
        let origin = self.origin.unwrap_or_else(|| self.begin(self.session.start.min(event.time)));
        if self.interned.is_full() {
            self.interned.clear();
            self.kinds.clear();
            self.cleared = true;
        }
        let time = self.since(origin, event.time);
        self.summary.events += 1;
        self.names(event);
        let hash = self.kind(event);
        if let Some(rate) = self.kinds.get(&hash).map(|kind| kind.rate) {
            self.rates.count(rate, time, &mut self.tracks);
        }
        match kernel::form(event) {
            Some(Form::Etw(number, message)) => self.kernel(event, time, number, &message),
            Some(Form::Interval(lanes, begin)) => {
                self.interval(event, hash, origin, time, lanes, begin);
            }
            Some(Form::Sample { address }) => self.sample(event, time, address),
            Some(Form::Fact(fact)) => {
                self.fact(fact);
                self.instant(event, hash, time);
            }
            None => {
                if kernel::is_special(event) {
                    self.summary.incomplete += 1;
                }
                match Part::from_event(event) {
                    Some(Part::Start(key)) => self.start(event, hash, time, key),
                    Some(Part::Stop(key)) => self.stop(event, hash, time, &key),
                    None => self.instant(event, hash, time),
                }
            }
        }
    }

    /// Adds the packets after the last event.
    fn finish(&mut self) {
        if self.origin.is_none() {
            self.begin(self.session.start);
        }
        self.rates.finish(&mut self.tracks);
        self.summary.open_slices += self.open.len() as u64;
        let providers = self.rates.providers().iter().take(MAX_ATTRIBUTES);
        let texts: Vec<(String, String)> = providers
            .map(|provider| {
                (
                    format!("etl.provider.{}", provider.name),
                    format!("{}, {} events", provider.guid, provider.events),
                )
            })
            .collect();
        let texts: Vec<_> = texts.iter().map(|(key, value)| (&**key, &**value)).collect();
        self.tracks.packets.attributes(&self.summary.attributes(), &texts);
        self.summary.packets = self.tracks.packets.count();
    }
}
