//! The details of an event as a line of JSON that a page's script displays.
//!
//! A line is an array: the number of the event's list of field names, the field values, and an
//! object with the rare properties. A value keeps its type where the page needs it:
//!
//! | in the line | value |
//! |---|---|
//! | number, `true`, `null` | itself |
//! | string that starts with `'` | text |
//! | string that starts with `#` | bytes, in hexadecimal |
//! | other string | a value to show as written: a code, an address, a time |
//! | array | array |
//! | `{"n": name, "v": value}` | number with a name |
//! | `{"s": [[name, value], …]}` | structure |

use std::sync::Arc;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use etl_file::Decoded;
use etl_file::decode::{Stack, Value};
use etl_file::internals::show::Hex;

/// The greatest integer below which scripts represent every integer exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Serializes a value as part of a line.
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) if value.unsigned_abs() <= MAX_SAFE => {
                serializer.serialize_i64(*value)
            }
            Value::UInt(value) | Value::ProcessId(value) | Value::ThreadId(value)
                if *value <= MAX_SAFE =>
            {
                serializer.serialize_u64(*value)
            }
            Value::Port(value) => serializer.serialize_u16(*value),
            Value::Win32Error(value) => serializer.serialize_u32(*value),
            Value::Float(value) if value.is_finite() => serializer.serialize_f32(*value),
            Value::Double(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::Text(text) => serializer.collect_str(&format_args!("'{text}")),
            Value::Binary(bytes) => serializer.collect_str(&format_args!("#{}", Hex(bytes))),
            Value::Named { value, signed, name } => {
                let number =
                    if *signed { Value::Int(value.cast_signed()) } else { Value::UInt(*value) };
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("n", name.as_ref())?;
                map.serialize_entry("v", &Plain(&number))?;
                map.end()
            }
            Value::Array(values) => serializer.collect_seq(values.iter().map(Plain)),
            Value::Struct(members) => {
                let members: Vec<(&str, Plain<'_>)> =
                    members.iter().map(|(name, value)| (name.as_ref(), Plain(value))).collect();
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("s", &members)?;
                map.end()
            }
            shown => serializer.collect_str(shown),
        }
    }
}

/// The rare properties of events.
#[derive(Serialize)]
struct Extra<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    leftover: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// The frames of the call stack, innermost first.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<String>>,
    /// The names of the fields, if their list has no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<&'a str>>,
}

impl Extra<'_> {
    const fn is_empty(&self) -> bool {
        self.message.is_none()
            && self.leftover.is_empty()
            && self.problems.is_empty()
            && self.stack.is_none()
            && self.names.is_none()
    }
}

struct Line<'a> {
    shape: Option<usize>,
    event: &'a Decoded,
    extra: Extra<'a>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        seq.serialize_element(&self.shape)?;
        for (_, value) in &self.event.fields {
            seq.serialize_element(&Plain(value))?;
        }
        if !self.extra.is_empty() {
            seq.serialize_element(&self.extra)?;
        }
        seq.end()
    }
}

/// Returns the frames of a stack as text.
fn frames(stack: &Stack) -> Vec<String> {
    let frames = stack.frames.iter().map(|frame| {
        let address = format!("{:#x}", frame.address);
        let place = frame.place.as_ref();
        place.map_or_else(|| address.clone(), |place| format!("{place} ({address})"))
    });
    frames.collect()
}

/// The maximum number of numbered lists of field names.
const MAX_SHAPES: usize = 1 << 16;

/// The lists of field names, numbered by position.
#[derive(Default)]
pub struct Shapes {
    lists: Vec<Vec<Arc<str>>>,
    numbers: std::collections::HashMap<Vec<Arc<str>>, usize>,
    /// The names of the current event's fields; reused to save an allocation.
    names: Vec<Arc<str>>,
}

impl Shapes {
    fn number(&mut self, event: &Decoded) -> Option<usize> {
        self.names.clear();
        self.names.extend(event.fields.iter().map(|(name, _)| Arc::clone(name)));
        if let Some(&number) = self.numbers.get(&self.names) {
            return Some(number);
        }
        (self.lists.len() < MAX_SHAPES).then(|| {
            let number = self.lists.len();
            self.lists.push(self.names.clone());
            self.numbers.insert(self.names.clone(), number);
            number
        })
    }

    /// Returns the lists, in numerical order.
    pub fn lists(&self) -> Vec<Vec<&str>> {
        let lists = self.lists.iter();
        lists.map(|list| list.iter().map(AsRef::as_ref).collect()).collect()
    }

    /// Returns the line that describes an event.
    pub fn line(&mut self, event: &Decoded) -> serde_json::Result<Vec<u8>> {
        let shape = self.number(event);
        let names = || event.fields.iter().map(|(name, _)| name.as_ref()).collect();
        let extra = Extra {
            message: event.message.as_deref(),
            leftover: Hex(&event.leftover).to_string(),
            problems: event.problems.iter().map(ToString::to_string).collect(),
            stack: event.stack.as_ref().map(frames),
            names: shape.is_none().then(names),
        };
        serde_json::to_vec(&Line { shape, event, extra })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(value: &Value) -> String {
        serde_json::to_string(&Plain(value)).unwrap()
    }

    #[test]
    fn values_keep_what_a_script_would_lose() {
        assert_eq!(plain(&Value::UInt(MAX_SAFE)), "9007199254740991");
        assert_eq!(plain(&Value::UInt(MAX_SAFE + 1)), "\"9007199254740992\"");
        assert_eq!(plain(&Value::Int(-5)), "-5");
        assert_eq!(plain(&Value::Int(i64::MIN)), "\"-9223372036854775808\"");
        assert_eq!(plain(&Value::Double(f64::NAN)), "\"NaN\"");
        assert_eq!(plain(&Value::Text("0x1".to_owned())), "\"'0x1\"");
        assert_eq!(plain(&Value::Hex(1)), "\"0x1\"");
        assert_eq!(plain(&Value::Binary(vec![1, 0xAB])), "\"#01ab\"");
        let named = Value::Named { value: 2, signed: false, name: "Read".into() };
        assert_eq!(plain(&named), r#"{"n":"Read","v":2}"#);
        let members = vec![("x".into(), Value::Bool(true)), ("x".into(), Value::Null)];
        let nested = Value::Array(vec![Value::Struct(members)]);
        assert_eq!(plain(&nested), r#"[{"s":[["x",true],["x",null]]}]"#);
    }

    #[test]
    fn lists_of_names_beyond_the_limit_have_no_number() {
        let mut shapes = Shapes::default();
        let mut number = |name: usize| {
            shapes.number(&Decoded {
                fields: vec![(name.to_string().into(), Value::Null)],
                ..etl_fixtures::decoded(etl_file::EventRecord::default())
            })
        };
        for name in 0..0x1_0000 {
            assert_eq!(number(name), Some(name));
        }
        assert_eq!(number(0x1_0000), None);
        assert_eq!(number(7), Some(7));
    }

    #[test]
    fn numbers_that_are_none_are_texts() {
        assert_eq!(plain(&Value::Double(1.5)), "1.5");
        assert_eq!(plain(&Value::Float(0.5)), "0.5");
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(plain(&Value::Double(number)).starts_with('"'), "{number}");
        }
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(plain(&Value::Float(number)).starts_with('"'), "{number}");
        }
    }
}
