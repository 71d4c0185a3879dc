//! The writer of timelines.

use std::io::{self, Write};

use super::core::Core;
use super::kernel::{self, Form};
use super::schema::{attributes, packet};
use super::summary::Summary;
use etl_file::internals::spans::Part;
use etl_file::{Decoded, LogFileHeader};

/// The maximum number of providers in the trace's attributes.
const MAX_ATTRIBUTES: usize = 256;

/// Writes a timeline in Perfetto's format.
pub struct Writer<W> {
    core: Core<W>,
}

impl<W: Write> Writer<W> {
    /// Returns a writer to `out`, which should be unbuffered because the writer has a buffer.
    /// `header` is the header of the trace.
    pub fn new(out: W, header: &LogFileHeader) -> Self {
        Self { core: Core::new(out, header) }
    }

    /// Adds an event, which must not be earlier than the events before it.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn event(&mut self, event: &Decoded) -> io::Result<()> {
        let origin = match self.core.origin {
            Some(origin) => origin,
            None => self.core.begin(self.core.session.start.min(event.time))?,
        };
        if self.core.interned.is_full() {
            self.core.interned.clear();
            self.core.kinds.clear();
            self.core.cleared = true;
        }
        let time = self.core.since(origin, event.time);
        self.core.summary.events += 1;
        self.core.names(event)?;
        let hash = self.core.kind(event);
        if let Some(rate) = self.core.kinds.get(&hash).map(|kind| kind.rate) {
            self.core.rates.count(rate, time, &mut self.core.tracks, &mut self.core.packets)?;
        }
        match kernel::form(event) {
            Some(Form::Etw(number, message)) => self.core.kernel(event, time, number, &message),
            Some(Form::Interval(lanes, begin)) => {
                self.core.interval(event, hash, origin, time, lanes, begin)
            }
            Some(Form::Sample { address }) => self.core.sample(event, time, address),
            Some(Form::Fact(fact)) => {
                self.core.fact(fact)?;
                self.core.instant(event, hash, time)
            }
            None => {
                if kernel::is_special(event) {
                    self.core.summary.incomplete += 1;
                }
                match Part::of(event) {
                    Some(Part::Start(key)) => self.core.start(event, hash, time, key),
                    Some(Part::Stop(key)) => self.core.stop(event, hash, time, &key),
                    None => self.core.instant(event, hash, time),
                }
            }
        }
    }

    /// Adds an attribute, which Perfetto shows in its information about the trace. Attributes that
    /// report a timeline's omissions should be added before [`Writer::finish`].
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn attribute(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.core.packets.add(None, |packet| {
            packet.message(packet::TRACE_ATTRIBUTES, |to| {
                to.message(attributes::ATTRIBUTE, |to| {
                    to.text(attributes::KEY, key);
                    to.text(attributes::STRING_VALUE, value);
                });
            });
        })
    }

    /// Writes the rest of the timeline. Returns the output and the counts.
    ///
    /// # Errors
    /// Fails with the output's error.
    pub fn finish(mut self) -> io::Result<(W, Summary)> {
        if self.core.origin.is_none() {
            self.core.begin(self.core.session.start)?;
        }
        self.core.rates.finish(&mut self.core.tracks, &mut self.core.packets)?;
        self.core.summary.open_slices += self.core.open.len() as u64;
        let numbers = self.core.summary.attributes();
        let providers = self.core.rates.providers();
        let texts = providers.iter().take(MAX_ATTRIBUTES).map(|provider| {
            (
                format!("etl.provider.{}", provider.name),
                format!("{}, {} events", provider.guid, provider.events),
            )
        });
        let texts: Vec<(String, String)> = texts.collect();
        self.core.packets.add(None, |packet| {
            packet.message(packet::TRACE_ATTRIBUTES, |to| {
                for (key, value) in numbers {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.uint(attributes::LONG_VALUE, value);
                    });
                }
                for (key, value) in &texts {
                    to.message(attributes::ATTRIBUTE, |to| {
                        to.text(attributes::KEY, key);
                        to.text(attributes::STRING_VALUE, value);
                    });
                }
            });
        })?;
        self.core.summary.packets = self.core.packets.count();
        Ok((self.core.packets.finish()?, self.core.summary))
    }
}
