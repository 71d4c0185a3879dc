//! Prints events to standard output, in the format of `cargo etw run`.

use std::{
    collections::BTreeSet,
    fmt::Display,
    io::{self, Write},
};

use etl_file::decode::Problem;
use etl_file::decode::schemas::Collector;
use etl_file::lines::{self, Members};
use etl_file::{Catalog, Decoded, Event, EventRecord, Guid, decode, ext_type};

/// The providers of records that a session writes about itself: its header and the consumers' lost
/// events, which the session's counters include.
const OF_SESSIONS: [Guid; 2] = [
    Guid::from_u128(0x68fd_d900_4a3e_11d1_84f4_0000_f804_64e3),
    Guid::from_u128(0x6a39_9ae0_4bc6_4de9_870b_3657_f894_7e7e),
];

/// Returns whether a provider's events are records that a session writes about itself.
pub fn is_of_session(provider: Guid) -> bool {
    OF_SESSIONS.contains(&provider)
}

/// A kind of event: provider, id and version.
type Kind = (Guid, u16, u8);

/// Prints events.
pub struct Printer<W> {
    out: W,
    catalog: Catalog,
    /// The JSON formatter, or `None` for text output.
    json: Option<Members>,
    /// The kinds of events whose schema has been requested from the system.
    asked: BTreeSet<Kind>,
    printed: u64,
    /// Shows a warning.
    warn: fn(&str),
}

impl<W: Write> Printer<W> {
    /// Returns a printer to `out`.
    pub fn new(out: W, catalog: Catalog, is_json: bool) -> Self {
        let json = is_json.then(Members::default);
        Self {
            out,
            catalog,
            json,
            asked: BTreeSet::new(),
            printed: 0,
            warn: |text| eprintln!("warning: {text}"),
        }
    }

    /// Returns the number of printed events.
    pub const fn printed(&self) -> u64 {
        self.printed
    }

    /// Prints an event. If no loaded schema describes the event, calls `schema` once for each kind
    /// of event. `schema` returns records for `etl_file::decode::schemas`; its error is shown.
    pub fn event<E: Display>(
        &mut self,
        event: &Event,
        schema: impl FnOnce() -> Result<Vec<EventRecord>, E>,
    ) -> io::Result<()> {
        let mut decoded = decode(event, &self.catalog);
        let descriptor = &event.record.descriptor;
        let kind = (event.record.provider, descriptor.id, descriptor.version);
        if is_unknown(event, &decoded) && self.asked.insert(kind) {
            let mut collector = Collector::new();
            let records = schema().unwrap_or_else(|error| {
                let (provider, id, version) = kind;
                (self.warn)(&format!(
                    "event {id}, version {version}, of provider {provider} is shown as bytes: {error}"
                ));
                Vec::new()
            });
            for record in records {
                match record.encode() {
                    Ok(bytes) => collector.record(&bytes),
                    Err(error) => (self.warn)(&unusable(&error)),
                }
            }
            let schemas = collector.finish();
            for defect in schemas.defects() {
                (self.warn)(&unusable(defect));
            }
            schemas.add_to(&mut self.catalog);
            decoded = decode(event, &self.catalog);
        }
        self.printed += 1;
        self.print(event, &decoded)
    }

    /// Prints an event that was formatted elsewhere.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.printed += 1;
        writeln!(self.out, "{line}")
    }

    fn print(&mut self, event: &Event, decoded: &Decoded) -> io::Result<()> {
        let Some(members) = &mut self.json else {
            return writeln!(self.out, "{}", lines::line(decoded));
        };
        let mut line = br#"{"reason":"event","#.to_vec();
        members.append(&event.view(), decoded, &mut line)?;
        line.extend_from_slice(b"}\n");
        self.out.write_all(&line)
    }
}

fn unusable(defect: &dyn Display) -> String {
    format!("Windows' description of an event cannot be used: {defect}")
}

/// Returns whether an event is not self-describing and has no schema.
fn is_unknown(event: &Event, decoded: &Decoded) -> bool {
    let has_metadata = event.record.item(ext_type::EVENT_SCHEMA_TL).is_some();
    !has_metadata && (decoded.event_name.is_none() || decoded.problems.contains(&Problem::NoSchema))
}

#[cfg(test)]
mod tests;
