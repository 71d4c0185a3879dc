//! The values of fields.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use etw_wire::Guid;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::codes;
use super::error::PayloadErrorKind;
use crate::cursor::Cursor;
use crate::show::text;
use crate::show::{Escaped, Hex};
use crate::time::{FileTime, SystemTime};

/// A field's value.
///
/// `Display` writes one line for a table, with control characters escaped; the alternate form
/// (`{:#}`) adds the names of well-known status codes. `Serialize` writes JSON: numbers as numbers,
/// addresses and codes as strings, bytes as hexadecimal digits, and named numbers and codes as
/// objects with number and name.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No data.
    Null,
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    UInt(u64),
    /// A number to be shown in hexadecimal.
    Hex(u64),
    /// A single-precision number.
    Float(f32),
    /// A double-precision number.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// A GUID.
    Guid(Guid),
    /// A point in time.
    FileTime(FileTime),
    /// A date and time of day.
    SystemTime(SystemTime),
    /// A security identifier.
    Sid(Sid),
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// A TCP or UDP port.
    Port(u16),
    /// An IP address and a port.
    SocketAddress(SocketAddr),
    /// An `NTSTATUS`.
    NtStatus(u32),
    /// An `HRESULT`.
    HResult(u32),
    /// A Win32 error code.
    Win32Error(u32),
    /// A process id.
    ProcessId(u64),
    /// A thread id.
    ThreadId(u64),
    /// An address.
    Pointer(u64),
    /// The address of code in a known image.
    Code {
        /// The address.
        address: u64,
        /// The image and the offset in it, such as `driver.sys+0x1a2c`, or the function.
        place: Arc<str>,
    },
    /// A number that a map names.
    Named {
        /// The number, or the bits of a signed 64-bit number.
        value: u64,
        /// True if the number is signed.
        signed: bool,
        /// The number's name.
        name: Arc<str>,
    },
    /// An array.
    Array(Vec<Self>),
    /// A structure: the names and values of its members.
    Struct(Vec<(Arc<str>, Self)>),
}

/// A security identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sid {
    /// The revision, 1.
    pub revision: u8,
    /// The 48-bit identifier authority.
    pub authority: u64,
    /// The subauthorities, at most 15.
    pub subauthorities: Vec<u32>,
}

impl Sid {
    /// Reads a security identifier.
    pub(crate) fn read(c: &mut Cursor<'_>) -> Result<Self, PayloadErrorKind> {
        let [revision, count] = c.array().ok_or(PayloadErrorKind::TooShort)?;
        if count > 15 {
            return Err(PayloadErrorKind::Sid(count));
        }
        let mut parts = || {
            let authority = c.array::<6>()?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            let subauthorities = (0..count).map(|_| c.u32()).collect::<Option<_>>()?;
            Some(Self { revision, authority, subauthorities })
        };
        parts().ok_or(PayloadErrorKind::TooShort)
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-{}-", self.revision)?;
        if u32::try_from(self.authority).is_ok() {
            write!(f, "{}", self.authority)?;
        } else {
            write!(f, "{:#014x}", self.authority)?;
        }
        self.subauthorities.iter().try_for_each(|subauthority| write!(f, "-{subauthority}"))
    }
}

impl Value {
    /// Returns the name of a well-known `NTSTATUS`, `HRESULT` or Win32 error, such as
    /// `STATUS_ACCESS_DENIED`.
    #[must_use]
    pub fn status_name(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::NtStatus(code) => codes::ntstatus(*code),
            Self::HResult(code) => codes::hresult(*code),
            Self::Win32Error(code) => codes::win32(*code),
            _ => None,
        }
    }

    /// Appends the value in its `Display` form; `codes` selects the alternate form.
    #[doc(hidden)]
    pub fn show(&self, codes: bool, out: &mut Vec<u8>) {
        match self {
            Self::Int(number) => text::decimal(*number, out),
            Self::UInt(number) | Self::ProcessId(number) | Self::ThreadId(number) => {
                text::decimal(*number, out);
            }
            Self::Hex(number) | Self::Pointer(number) => text::hexadecimal(*number, 1, out),
            Self::Guid(guid) => text::guid(*guid, out),
            Self::Text(content) => {
                out.push(b'"');
                text::escaped(content, out);
                out.push(b'"');
            }
            Self::Binary(bytes) => {
                out.extend_from_slice(b"hex:");
                text::hex(bytes, out);
            }
            Self::Array(values) => {
                out.push(b'[');
                for (i, value) in values.iter().enumerate() {
                    out.extend_from_slice(if i == 0 { b"" } else { b", " });
                    value.show(codes, out);
                }
                out.push(b']');
            }
            other if codes => out.extend_from_slice(format!("{other:#}").as_bytes()),
            other => out.extend_from_slice(other.to_string().as_bytes()),
        }
    }

    /// Returns the approximate memory size of the value in bytes.
    pub(crate) fn size(&self) -> usize {
        let content = match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
            Self::Named { name, .. } => name.len(),
            Self::Code { place, .. } => place.len(),
            Self::Array(values) => values.iter().map(Self::size).sum(),
            Self::Struct(members) => members.iter().map(|(_, value)| value.size()).sum(),
            Self::Sid(sid) => size_of_val(&*sid.subauthorities),
            _ => 0,
        };
        size_of::<Self>() + content
    }

    /// Returns the value as it appears in a message: text without quotation marks.
    pub(crate) fn in_sentence(&self) -> String {
        match self {
            Self::Text(text) => Escaped(text).to_string(),
            Self::Named { name, .. } => Escaped(name).to_string(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Int(value) => write!(f, "{value}"),
            Self::UInt(value) | Self::ProcessId(value) | Self::ThreadId(value) => {
                write!(f, "{value}")
            }
            Self::Hex(value) | Self::Pointer(value) => write!(f, "{value:#x}"),
            Self::Code { address, place } => write!(f, "{address:#x} {}", Escaped(place)),
            Self::Float(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "\"{}\"", Escaped(text)),
            Self::Binary(bytes) => write!(f, "hex:{}", Hex(bytes)),
            Self::Guid(guid) => write!(f, "{guid}"),
            Self::FileTime(time) => write!(f, "{time}"),
            Self::SystemTime(time) => write!(f, "{time}"),
            Self::Sid(sid) => write!(f, "{sid}"),
            Self::Ipv4(address) => write!(f, "{address}"),
            Self::Ipv6(address) => write!(f, "{address}"),
            Self::Port(port) => write!(f, "{port}"),
            Self::SocketAddress(address) => write!(f, "{address}"),
            Self::NtStatus(code) | Self::HResult(code) => {
                status(self, format_args!("{code:#010x}"), f)
            }
            Self::Win32Error(code) => status(self, format_args!("{code}"), f),
            Self::Named { value, signed, name } => {
                let name = Escaped(name);
                if *signed {
                    write!(f, "{name}({})", value.cast_signed())
                } else {
                    write!(f, "{name}({value})")
                }
            }
            Self::Array(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Struct(members) => {
                f.write_str("{")?;
                for (i, (name, value)) in members.iter().enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{}=", Escaped(name))?;
                    value.fmt(f)?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Writes a status code; the alternate form includes its name.
fn status(value: &Value, code: fmt::Arguments<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = value.status_name().filter(|_| f.alternate());
    if let Some(name) = name {
        return write!(f, "{name}({code})");
    }
    f.write_fmt(code)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(name) = self.status_name() {
            let mut map = serializer.serialize_map(Some(2))?;
            match self {
                Self::Win32Error(code) => map.serialize_entry("value", code)?,
                code => map.serialize_entry("value", &code.to_string())?,
            }
            map.serialize_entry("name", &name)?;
            return map.end();
        }
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::UInt(value) | Self::ProcessId(value) | Self::ThreadId(value) => {
                serializer.serialize_u64(*value)
            }
            Self::Float(value) if value.is_finite() => serializer.serialize_f32(*value),
            Self::Double(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Binary(bytes) => written(serializer, |out| text::hex(bytes, out)),
            Self::Hex(value) | Self::Pointer(value) => {
                written(serializer, |out| text::hexadecimal(*value, 1, out))
            }
            Self::NtStatus(code) | Self::HResult(code) => {
                written(serializer, |out| text::hexadecimal((*code).into(), 8, out))
            }
            Self::Guid(guid) => written(serializer, |out| text::guid(*guid, out)),
            Self::Port(port) => serializer.serialize_u16(*port),
            Self::Win32Error(code) => serializer.serialize_u32(*code),
            Self::Named { value, signed, name } => {
                let mut map = serializer.serialize_map(Some(2))?;
                if *signed {
                    map.serialize_entry("value", &value.cast_signed())?;
                } else {
                    map.serialize_entry("value", value)?;
                }
                map.serialize_entry("name", name.as_ref())?;
                map.end()
            }
            Self::Array(values) => serializer.collect_seq(values),
            Self::Struct(members) => serialize_fields(members, serializer),
            Self::Code { .. }
            | Self::Float(_)
            | Self::Double(_)
            | Self::FileTime(_)
            | Self::SystemTime(_)
            | Self::Sid(_)
            | Self::Ipv4(_)
            | Self::Ipv6(_)
            | Self::SocketAddress(_) => serializer.collect_str(self),
        }
    }
}

/// Serializes the ASCII text that a function of [`text`] writes; this is faster than `Display`.
fn written<S: Serializer>(
    serializer: S,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<S::Ok, S::Error> {
    let mut out = Vec::with_capacity(40);
    write(&mut out);
    serializer.serialize_str(str::from_utf8(&out).unwrap_or_default())
}

/// Serializes named values as an object, with the names from [`distinct_names`].
///
/// # Errors
/// Fails with the serializer's error.
pub fn serialize_fields<S: Serializer>(
    fields: &[(Arc<str>, Value)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let names = distinct_names(fields);
    serializer.collect_map(fields.iter().enumerate().map(|(at, (name, value))| {
        let distinct = names.as_ref().and_then(|names| names.get(at));
        (distinct.map_or(&**name, String::as_str), value)
    }))
}

/// The maximum number of fields whose names are compared pairwise.
const FEW: usize = 16;

/// Makes the names of fields distinct: `x`, `x#2`. Skips numbers that would produce another field's
/// name. Returns `None` if all names are already distinct.
#[must_use]
pub fn distinct_names(fields: &[(Arc<str>, Value)]) -> Option<Vec<String>> {
    let are_distinct = if fields.len() <= FEW {
        let earlier = |at| fields.iter().take(at).map(|(name, _)| name);
        !(0..).zip(fields).any(|(at, (name, _))| earlier(at).any(|other| other == name))
    } else {
        let names: HashSet<&str> = fields.iter().map(|(name, _)| &**name).collect();
        names.len() == fields.len()
    };
    if are_distinct {
        return None;
    }
    let mut used: HashSet<String> = fields.iter().map(|(name, _)| name.to_string()).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::with_capacity(fields.len());
    for (name, _) in fields {
        let seen = seen.entry(name).or_default();
        *seen += 1;
        let mut unique = name.to_string();
        while *seen > 1 {
            unique = format!("{name}#{seen}");
            if used.insert(unique.clone()) {
                break;
            }
            *seen += 1;
        }
        names.push(unique);
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_on_one_line_and_cannot_control_a_terminal() {
        let value = Value::Text("a\n\u{1b}[2J \u{202e}é".to_owned());
        assert_eq!(value.to_string(), r#""a\n\u{1b}[2J \u{202e}é""#);
    }

    #[test]
    fn numbers_that_json_lacks_are_strings() {
        let json = |value| serde_json::to_string(&value).unwrap();
        assert_eq!(json(Value::Double(f64::NAN)), "\"NaN\"");
        assert_eq!(json(Value::Float(f32::INFINITY)), "\"inf\"");
        assert_eq!(json(Value::Float(0.1)), "0.1");
        assert_eq!(json(Value::UInt(u64::MAX)), "18446744073709551615");
        assert_eq!(json(Value::NtStatus(0xC000_0000)), "\"0xc0000000\"");
    }

    #[test]
    fn status_codes_have_their_names_in_json_and_on_request_in_text() {
        let all = [
            (Value::NtStatus(0xC000_0022), "\"0xc0000022\"", "STATUS_ACCESS_DENIED"),
            (
                Value::HResult(0x8007_0002),
                "\"0x80070002\"",
                "HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND)",
            ),
            (Value::Win32Error(5), "5", "ERROR_ACCESS_DENIED"),
        ];
        for (value, json, name) in all {
            let object = format!(r#"{{"value":{json},"name":"{name}"}}"#);
            assert_eq!(serde_json::to_string(&value).unwrap(), object);
            let text = json.trim_matches('"');
            assert_eq!(value.to_string(), text);
            assert_eq!(format!("{value:#}"), format!("{name}({text})"));
            let inside = Value::Struct(vec![("a".into(), Value::Array(vec![value]))]);
            assert_eq!(inside.to_string(), format!("{{a=[{text}]}}"));
            assert_eq!(format!("{inside:#}"), format!("{{a=[{name}({text})]}}"));
        }
        assert_eq!(format!("{:#}", Value::HResult(0xDDCD)), "0x0000ddcd");
        assert_eq!(format!("{:#}", Value::UInt(5)), "5");
    }

    #[test]
    fn fields_with_the_same_name_are_all_shown() {
        let member = |value| ("x".into(), Value::UInt(value));
        let value = Value::Struct(vec![member(1), member(2)]);
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"x":1,"x#2":2}"#);
        assert_eq!(value.to_string(), "{x=1, x=2}");
    }

    #[test]
    fn an_added_number_never_produces_another_fields_name() {
        let members = ["x", "x", "x#2", "x"].into_iter().zip(1..);
        let members = members.map(|(name, value)| (name.into(), Value::UInt(value)));
        let value = Value::Struct(members.collect());
        assert_eq!(serde_json::to_string(&value).unwrap(), r#"{"x":1,"x#3":2,"x#2":3,"x#4":4}"#);
    }

    #[test]
    fn only_names_that_repeat_are_numbered() {
        let distinct = |names: &[&str]| {
            let names = names.iter();
            let fields = names.map(|name| ((*name).into(), Value::Null));
            distinct_names(&fields.collect::<Vec<_>>())
        };
        let many: Vec<String> = (0..=FEW).map(|n| n.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for names in [&[][..], &["a"], &["a", "b"], &many] {
            assert_eq!(distinct(names), None, "{names:?}");
        }
        assert_eq!(distinct(&["a", "b", "a"]).unwrap(), ["a", "b", "a#2"]);
        let more = distinct(&[&many[..], &["3"]].concat()).unwrap();
        assert_eq!(more.last().unwrap(), "3#2");
        assert_eq!(more[..many.len()], many);
    }

    #[test]
    fn security_identifiers_have_their_usual_form() {
        let mut sid = Sid { revision: 1, authority: 5, subauthorities: vec![32, 544] };
        assert_eq!(sid.to_string(), "S-1-5-32-544");
        sid.authority = 0x1234_5678_9ABC;
        assert_eq!(sid.to_string(), "S-1-0x123456789abc-32-544");
    }

    #[test]
    fn the_size_of_a_value_includes_what_it_owns() {
        let owned = |value: Value| value.size() - size_of::<Value>();
        assert_eq!(owned(Value::UInt(7)), 0);
        assert_eq!(owned(Value::Text("four".to_owned())), 4);
        assert_eq!(owned(Value::Binary(vec![0; 9])), 9);
        let named = Value::Named { value: 1, signed: false, name: "seven77".into() };
        assert_eq!(owned(named), 7);
        let code = Value::Code { address: 1, place: "a.sys+0x1".into() };
        assert_eq!(owned(code), 9);
        let both = vec![Value::Binary(vec![0; 3]), Value::Null];
        let inner = 3 + 2 * size_of::<Value>();
        assert_eq!(owned(Value::Array(both)), inner);
        let members = vec![("name".into(), Value::Binary(vec![0; 3]))];
        assert_eq!(owned(Value::Struct(members)), 3 + size_of::<Value>());
        let sid = Value::Sid(Sid { revision: 1, authority: 5, subauthorities: vec![1, 2, 3] });
        assert_eq!(owned(sid), 12);
    }
}
