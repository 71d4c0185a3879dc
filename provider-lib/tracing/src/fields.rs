//! The fields of spans and events.

use core::fmt;

use tracing_core::{
    Metadata,
    field::{Field, Visit},
};
use wdk_etw::__facade::{Event, Origin};

/// The prefix of the names that `tracing` gives to unnamed events; the source file, a colon and the
/// line follow.
const UNNAMED: &str = "event ";

/// The name of the field that contains the message of a `tracing` event.
const MESSAGE: &str = "message";

/// An event that is being assembled.
pub struct Fields(pub Event);

impl Fields {
    /// Returns an event without fields.
    pub const fn new() -> Self {
        Self(Event::new())
    }

    /// Starts the event for a span or a `tracing` event, with the fields that all events contain.
    pub fn start(&mut self, name: &str, metadata: &Metadata<'_>, has_file: bool) {
        let event = &mut self.0;
        event.start(name);
        let origin = Origin {
            level: metadata.level().as_str(),
            target: metadata.target(),
            module: metadata.module_path(),
            file: metadata.file().filter(|_| has_file),
            line: metadata.line(),
        };
        origin.describe(event);
    }
}

/// Returns the name of an event.
pub fn event_name<'a>(metadata: &Metadata<'a>) -> &'a str {
    let name = metadata.name();
    let line = name
        .strip_prefix(UNNAMED)
        .zip(metadata.file())
        .and_then(|(place, file)| place.strip_prefix(file)?.strip_prefix(':'));
    if line.is_some_and(|line| line.bytes().all(|byte| byte.is_ascii_digit())) {
        "Event"
    } else {
        name
    }
}

fn name_of(field: &Field) -> &'static str {
    match field.name() {
        MESSAGE => "Message",
        name => name,
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.f64(name_of(field), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.i64(name_of(field), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.u64(name_of(field), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.bool(name_of(field), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.str(name_of(field), value);
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.0.bytes(name_of(field), value);
    }

    /// Receives values that have no dedicated type, including messages, errors and 128-bit numbers,
    /// as text.
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.format(name_of(field), format_args!("{value:?}"));
    }
}
