//! Debug annotations: an event's fields and their types.

use super::intern::Interned;
use super::schema::{annotation, interned};
use super::wire::Message;
use etl_file::decode::{Fields, Value};
use etl_file::internals::distinct_names;

/// The nesting depth from which values are written as text. Protocol buffer readers limit the
/// nesting of messages.
const MAX_DEPTH: usize = 24;

/// Adds annotations to a message.
pub struct Annotations<'a, 'b> {
    pub to: &'a mut Message<'b>,
    /// The message's field for annotations.
    pub number: u32,
    pub interned: &'a mut Interned,
}

impl Annotations<'_, '_> {
    /// Adds the fields of an event. Repeated names are numbered, so that no value is hidden.
    pub fn fields(&mut self, fields: &Fields) {
        let numbered = distinct_names(fields);
        for (at, (name, value)) in fields.iter().enumerate() {
            let unique = numbered.as_ref().and_then(|names| names.get(at));
            let name = unique.map_or(&**name, String::as_str);
            self.add(name, |entry| add_value(entry, value, 0));
        }
    }

    /// Adds an annotation whose value `value` encodes.
    pub fn add(&mut self, name: &str, value: impl FnOnce(&mut Message<'_>)) {
        let name = self.interned.text(interned::DEBUG_ANNOTATION_NAMES, name);
        self.to.message(self.number, |entry| {
            entry.uint(annotation::NAME_IID, name);
            value(entry);
        });
    }

    pub fn text(&mut self, name: &str, text: &str) {
        self.add(name, |to| to.text(annotation::STRING_VALUE, text));
    }

    pub fn uint(&mut self, name: &str, value: u64) {
        self.add(name, |to| to.uint(annotation::UINT_VALUE, value));
    }

    /// Adds an annotation whose text is likely to recur.
    pub fn repeated(&mut self, name: &str, text: &str) {
        let text = self.interned.text(interned::DEBUG_ANNOTATION_STRING_VALUES, text);
        self.add(name, |to| to.uint(annotation::STRING_VALUE_IID, text));
    }
}

/// Adds a value to its annotation.
fn add_value(to: &mut Message<'_>, value: &Value, depth: usize) {
    match value {
        Value::Bool(truth) => to.uint(annotation::BOOL_VALUE, u64::from(*truth)),
        Value::Int(number) => to.int(annotation::INT_VALUE, *number),
        Value::UInt(number) | Value::ProcessId(number) | Value::ThreadId(number) => {
            to.uint(annotation::UINT_VALUE, *number);
        }
        Value::Port(port) => to.uint(annotation::UINT_VALUE, u64::from(*port)),
        Value::Win32Error(code) => to.uint(annotation::UINT_VALUE, u64::from(*code)),
        // A pointer is shown in hexadecimal.
        Value::Hex(number) | Value::Pointer(number) => {
            to.uint(annotation::POINTER_VALUE, *number);
        }
        Value::NtStatus(code) | Value::HResult(code) => {
            to.uint(annotation::POINTER_VALUE, u64::from(*code));
        }
        Value::Float(number) => to.double(annotation::DOUBLE_VALUE, f64::from(*number)),
        Value::Double(number) => to.double(annotation::DOUBLE_VALUE, *number),
        Value::Text(text) => to.text(annotation::STRING_VALUE, text),
        Value::Array(values) if !values.is_empty() && depth < MAX_DEPTH => {
            for value in values {
                to.message(annotation::ARRAY_VALUES, |entry| {
                    add_value(entry, value, depth + 1);
                });
            }
        }
        Value::Struct(members) if !members.is_empty() && depth < MAX_DEPTH => {
            let numbered = distinct_names(members);
            for (at, (name, value)) in members.iter().enumerate() {
                let unique = numbered.as_ref().and_then(|names| names.get(at));
                to.message(annotation::DICT_ENTRIES, |entry| {
                    entry.text(annotation::NAME, unique.map_or(&**name, String::as_str));
                    add_value(entry, value, depth + 1);
                });
            }
        }
        Value::Named { value, signed, name } => {
            to.message(annotation::DICT_ENTRIES, |entry| {
                entry.text(annotation::NAME, "value");
                if *signed {
                    entry.int(annotation::INT_VALUE, value.cast_signed());
                } else {
                    entry.uint(annotation::UINT_VALUE, *value);
                }
            });
            to.message(annotation::DICT_ENTRIES, |entry| {
                entry.text(annotation::NAME, "name");
                entry.text(annotation::STRING_VALUE, name);
            });
        }
        Value::Null
        | Value::Binary(_)
        | Value::Code { .. }
        | Value::Guid(_)
        | Value::FileTime(_)
        | Value::SystemTime(_)
        | Value::Sid(_)
        | Value::Ipv4(_)
        | Value::Ipv6(_)
        | Value::SocketAddress(_)
        | Value::Array(_)
        | Value::Struct(_) => to.text(annotation::STRING_VALUE, &value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_below_the_limit_of_depth_are_texts() {
        let array = |value| Value::Array(vec![value]);
        let structure = |value| Value::Struct(vec![("f".into(), value)]);
        for wrap in [array as fn(Value) -> Value, structure] {
            let written = |depth| {
                let value = (0..depth).fold(Value::UInt(1), |value, _| wrap(value));
                let mut out = Vec::new();
                add_value(&mut Message::new(&mut out), &value, 0);
                out
            };
            let text = wrap(Value::UInt(1)).to_string();
            let has_text = |out: &[u8], text: &str| {
                out.windows(text.len()).any(|bytes| bytes == text.as_bytes())
            };
            assert!(!has_text(&written(1), &text));
            assert!(!has_text(&written(MAX_DEPTH), &text));
            assert!(has_text(&written(MAX_DEPTH + 1), &text));
            let text = wrap(wrap(Value::UInt(1))).to_string();
            assert!(!has_text(&written(MAX_DEPTH + 1), &text));
            assert!(has_text(&written(MAX_DEPTH + 2), &text));
        }
    }
}
