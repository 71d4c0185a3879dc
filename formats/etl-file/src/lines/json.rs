//! An event as an object in JSON.
//!
//! Masks and codes are hexadecimal strings, because they can exceed the precision of JSON readers'
//! numbers.

use std::collections::HashMap;
use std::io;
use std::string::ToString;
use std::sync::Arc;

use etw_wire::Guid;
use serde_json::Serializer;

use crate::decode::{Decoded, Kind, serialize_fields};
use crate::read::EventRef;
use crate::show::text::{self, Times};
use crate::time::FileTime;

/// The part of a line that is the same for all events of a kind.
#[derive(Debug)]
struct KindText {
    kind: Kind,
    provider: Guid,
    group: Option<Guid>,
    descriptor: crate::record::EventDescriptor,
    /// The names, in the order of [`names_of`].
    names: [Option<Arc<str>>; 5],
    keywords: Arc<[Arc<str>]>,
    text: Vec<u8>,
}

/// The maximum number of kinds whose text is cached.
const MAX_KINDS: usize = 1024;

const fn names_of(decoded: &Decoded) -> [&Option<Arc<str>>; 5] {
    let Decoded { provider_name, channel_name, level_name, opcode_name, task_name, .. } = decoded;
    [provider_name, channel_name, level_name, opcode_name, task_name]
}

impl KindText {
    fn is_of(&self, decoded: &Decoded) -> bool {
        let same = |one: &Option<Arc<str>>, other: &Option<Arc<str>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
            (None, None) => true,
            _ => false,
        };
        self.provider == decoded.provider
            && self.descriptor == decoded.descriptor
            && self.kind == decoded.kind
            && self.group == decoded.group
            && self.names.iter().zip(names_of(decoded)).all(|(one, other)| same(one, other))
            && (Arc::ptr_eq(&self.keywords, &decoded.keywords.names)
                || self.keywords == decoded.keywords.names)
    }

    fn new(decoded: &Decoded) -> Self {
        Self {
            kind: decoded.kind,
            provider: decoded.provider,
            group: decoded.group,
            descriptor: decoded.descriptor,
            names: names_of(decoded).map(Clone::clone),
            keywords: Arc::clone(&decoded.keywords.names),
            text: Self::text(decoded),
        }
    }

    fn text(decoded: &Decoded) -> Vec<u8> {
        let mut text = Vec::new();
        let out = &mut text;
        let descriptor = &decoded.descriptor;
        quoted("provider", out, |out| text::guid(decoded.provider, out));
        optional("provider_name", decoded.provider_name.as_deref(), out);
        optional_guid("group", decoded.group, out);
        number("id", descriptor.id, out);
        number("version", descriptor.version, out);
        number("channel", descriptor.channel, out);
        number("level", descriptor.level, out);
        optional("channel_name", decoded.channel_name.as_deref(), out);
        optional("level_name", decoded.level_name.as_deref(), out);
        number("opcode", descriptor.opcode, out);
        optional("opcode_name", decoded.opcode_name.as_deref(), out);
        number("task", descriptor.task, out);
        optional("task_name", decoded.task_name.as_deref(), out);
        quoted("keyword", out, |out| text::hexadecimal(descriptor.keyword, 1, out));
        let names = decoded.keywords.names.iter();
        list("keyword_names", names, out, |name, out| text::json_string(name, out));
        text
    }
}

/// Appends a comma and a member's name, which needs no escaping.
fn key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn number(name: &str, number: impl itoa::Integer, out: &mut Vec<u8>) {
    key(name, out);
    text::decimal(number, out);
}

fn optional(name: &str, value: Option<&str>, out: &mut Vec<u8>) {
    key(name, out);
    match value {
        Some(value) => text::json_string(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn optional_guid(name: &str, value: Option<Guid>, out: &mut Vec<u8>) {
    match value {
        Some(value) => quoted(name, out, |out| text::guid(value, out)),
        None => optional(name, None, out),
    }
}

fn quoted(name: &str, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    key(name, out);
    out.push(b'"');
    content(out);
    out.push(b'"');
}

fn list<T>(
    name: &str,
    items: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    write: impl Fn(T, &mut Vec<u8>),
) {
    key(name, out);
    out.push(b'[');
    for (number, item) in items.enumerate() {
        if number != 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Formats events as members of JSON objects. Caches the text that events of a kind share.
#[derive(Debug, Default)]
pub struct Members {
    times: Times,
    kinds: HashMap<u64, KindText>,
}

impl Members {
    /// Returns a format in which times are numbers of seconds since `origin`, or absolute times if it
    /// is `None`.
    #[doc(hidden)]
    #[must_use]
    pub fn since(origin: Option<FileTime>) -> Self {
        Self { times: Times::since(origin), ..Self::default() }
    }

    /// Appends an event's line. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails if a value cannot be serialized.
    pub fn line(
        &mut self,
        event: &EventRef<'_>,
        decoded: &Decoded,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.push(b'{');
        self.append(event, decoded, out)?;
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    /// Appends the members of an event's object without braces. `event` is the event as recorded.
    ///
    /// # Errors
    /// Fails if a value cannot be serialized.
    pub fn append(
        &mut self,
        event: &EventRef<'_>,
        decoded: &Decoded,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.extend_from_slice(b"\"record\":\"event\",\"kind\":\"");
        out.extend_from_slice(kind_name(decoded.kind).as_bytes());
        out.push(b'"');
        if self.times.are_relative() {
            key("time", out);
            self.times.write(decoded.time, out);
        } else {
            quoted("time", out, |out| self.times.write(decoded.time, out));
        }
        number("timestamp", decoded.timestamp, out);
        number("processor", decoded.processor, out);
        number("process", decoded.process_id, out);
        number("thread", decoded.thread_id, out);
        optional("process_name", decoded.process_name.as_deref(), out);
        optional("thread_name", decoded.thread_name.as_deref(), out);
        let name = decoded
            .provider_name
            .as_ref()
            .map_or(0, |name| Arc::as_ptr(name).cast::<u8>().addr() as u64);
        let hash = name
            ^ u64::from(decoded.descriptor.id) << 48
            ^ u64::from(decoded.descriptor.level) << 40
            ^ decoded.descriptor.keyword.rotate_left(17)
            ^ u64::from(decoded.descriptor.opcode) << 56;
        if let Some(kind) = self.kinds.get(&hash).filter(|kind| kind.is_of(decoded)) {
            out.extend_from_slice(&kind.text);
        } else {
            if self.kinds.len() >= MAX_KINDS {
                self.kinds.clear();
            }
            let kind = KindText::new(decoded);
            out.extend_from_slice(&kind.text);
            self.kinds.insert(hash, kind);
        }
        quoted("activity", out, |out| text::guid(decoded.activity, out));
        optional_guid("related_activity", decoded.related_activity, out);
        optional("event", decoded.event_name.as_deref(), out);
        optional("message", decoded.message.as_deref(), out);
        key("fields", out);
        serialize_fields(&decoded.fields, &mut Serializer::new(&mut *out))?;
        quoted("leftover", out, |out| text::hex(&decoded.leftover, out));
        list("problems", decoded.problems.iter(), out, |problem, out| {
            text::json_string(&problem.to_string(), out);
        });
        match &decoded.stack {
            None => optional("stack", None, out),
            Some(stack) => list("stack", stack.frames.iter(), out, |frame, out| {
                text::json_string(&frame.to_string(), out);
            }),
        }
        number("kernel_time", event.kernel_time, out);
        number("user_time", event.user_time, out);
        number("property", event.event_property, out);
        number("pointer_size", event.pointer_size.bytes(), out);
        list("extended", event.items.iter(), out, |(ext_type, data), out| {
            out.extend_from_slice(b"{\"type\":");
            text::decimal(ext_type, out);
            quoted("data", out, |out| text::hex(data, out));
            out.push(b'}');
        });
        quoted("payload", out, |out| text::hex(event.user_data, out));
        number("buffer", event.buffer, out);
        number("offset", event.offset, out);
        Ok(())
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Event => "event",
        Kind::Kernel { .. } => "kernel",
        Kind::Classic { .. } => "classic",
        Kind::Wpp => "wpp",
    }
}

#[cfg(test)]
mod tests;
