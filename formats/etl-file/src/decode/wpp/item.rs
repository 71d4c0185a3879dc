//! The types of message arguments, and how to read them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etw_wire::{Guid, NtStatus};

use crate::code_page::CodePage;
use crate::cursor::Cursor;
use crate::decode::printf::{Argument, signed};
use crate::decode::value::{Sid, Value};
use crate::read::PointerSize;
use crate::show::Hex;
use crate::time::FileTime;

/// The type of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An integer of `size` bytes. Its placeholder determines the signedness.
    Integer {
        size: u8,
        style: Style,
    },
    /// A pointer-sized number.
    Pointer,
    Float,
    Double,
    /// Four characters, stored as a number.
    Characters,
    /// 8-bit text, terminated by a NUL.
    Ansi,
    /// UTF-16 text, terminated by a NUL.
    Wide,
    /// 8-bit text after a byte count.
    CountedAnsi,
    CountedWide,
    /// Bytes after a byte count.
    Bytes,
    Guid,
    NtStatus,
    HResult,
    Win32Error,
    Ipv4,
    Ipv6,
    /// A six-byte hardware address.
    Mac,
    Port,
    Sid,
    /// A point in time.
    Time,
    /// A time span in units of 100 ns.
    Span,
    /// A number whose values have names.
    List {
        size: u8,
        names: Names,
    },
    /// A number whose bits have names.
    Set {
        size: u8,
        names: Names,
    },
    /// An unknown type, whose size is also unknown.
    Unknown(Arc<str>),
}

/// The names of values or bits.
pub type Names = Arc<[(u64, Arc<str>)]>;

/// The notation of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Signed,
    Unsigned,
    Hexadecimal,
    Character,
}

impl Style {
    /// Returns the style of an argument's first placeholder in a message's text.
    pub fn in_text(text: &str, number: u16) -> Option<Self> {
        let place = format!("%{number}!");
        let (_, rest) = text.split_once(place.as_str())?;
        let (format, _) = rest.split_once('!')?;
        Some(match format.chars().next_back()? {
            'd' | 'i' => Self::Signed,
            'u' => Self::Unsigned,
            'x' | 'X' | 'p' | 'o' => Self::Hexadecimal,
            'c' | 'C' => Self::Character,
            _ => return None,
        })
    }
}

/// The reason why an argument cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The message ends before or inside the argument.
    #[error("the message ends before the end of argument {number}")]
    Truncated {
        /// The argument's number.
        number: u16,
    },
    /// The argument's type is unknown, so this argument and those after it cannot be read.
    #[error("the type {item} of argument {number} is unknown")]
    UnknownType {
        /// The argument's number.
        number: u16,
        /// The name of the type.
        item: Arc<str>,
    },
}

/// An argument's value, and the argument in the form that placeholders need.
pub type Read = (Value, Argument);

impl Item {
    /// Parses a type's name. Returns `None` for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, list) = match text.split_once('(') {
            Some((name, rest)) => (name.trim_end(), Some(rest.strip_suffix(')')?)),
            None => (text, None),
        };
        let is_name =
            name.starts_with("Item") && name.chars().all(|one| one.is_ascii_alphanumeric());
        if !is_name {
            return None;
        }
        let integer = |size, style| Self::Integer { size, style };
        let named = |size, is_set: bool| {
            let names = names(list.unwrap_or_default(), is_set);
            if is_set { Self::Set { size, names } } else { Self::List { size, names } }
        };
        Some(match name {
            "ItemChar" => integer(1, Style::Signed),
            "ItemUChar" => integer(1, Style::Unsigned),
            "ItemCharShort" | "ItemShort" => integer(2, Style::Signed),
            "ItemUShort" => integer(2, Style::Unsigned),
            // The names of an enumeration's values are only in the PDB's type information.
            "ItemLong" | "ItemInt" | "ItemEnum" | "ItemFlagsEnum" => integer(4, Style::Signed),
            "ItemULong" | "ItemUInt" => integer(4, Style::Unsigned),
            "ItemULongX" | "ItemLongX" => integer(4, Style::Hexadecimal),
            "ItemLongLong" => integer(8, Style::Signed),
            "ItemULongLong" => integer(8, Style::Unsigned),
            "ItemLongLongX" | "ItemLongLongXX" | "ItemLongLongO" | "ItemULongLongX" => {
                integer(8, Style::Hexadecimal)
            }
            "ItemPtr" => Self::Pointer,
            "ItemFloat" => Self::Float,
            "ItemDouble" => Self::Double,
            "ItemChar4" => Self::Characters,
            "ItemString" | "ItemRString" | "ItemMLString" => Self::Ansi,
            "ItemWString" | "ItemRWString" => Self::Wide,
            "ItemPString" | "ItemDSString" => Self::CountedAnsi,
            "ItemPWString" | "ItemDSWString" => Self::CountedWide,
            "ItemHEXDump" | "ItemHexDump" => Self::Bytes,
            "ItemGuid" | "ItemCLSID" | "ItemLIBID" | "ItemIID" => Self::Guid,
            "ItemNTSTATUS" => Self::NtStatus,
            "ItemHRESULT" => Self::HResult,
            "ItemWINERROR" | "ItemNETEVENT" => Self::Win32Error,
            "ItemIPAddr" => Self::Ipv4,
            "ItemIPV6Addr" | "ItemIPv6Addr" => Self::Ipv6,
            "ItemMACAddr" => Self::Mac,
            "ItemPort" => Self::Port,
            "ItemSid" => Self::Sid,
            "ItemTimestamp" => Self::Time,
            "ItemTimeDelta" | "ItemWaitTime" => Self::Span,
            "ItemListByte" => named(1, false),
            "ItemListShort" => named(2, false),
            "ItemListLong" => named(4, false),
            "ItemSetByte" => named(1, true),
            "ItemSetShort" => named(2, true),
            "ItemSetLong" => named(4, true),
            _ => Self::Unknown(name.into()),
        })
    }

    /// Returns the style of a number whose placeholder does not specify one.
    pub const fn style(&self) -> Style {
        match self {
            Self::Integer { style, .. } => *style,
            _ => Style::Unsigned,
        }
    }

    /// Reads an argument. Returns `None` if bytes are missing or the type is unknown.
    #[expect(clippy::too_many_lines, reason = "there is one arm for each type")]
    pub fn read(
        &self,
        c: &mut Cursor<'_>,
        pointer: PointerSize,
        code_page: CodePage,
        style: Style,
    ) -> Option<Read> {
        Some(match self {
            Self::Integer { size, .. } => {
                let number = unsigned(c, *size)?;
                let value = match style {
                    Style::Signed => Value::Int(signed(number, *size)),
                    Style::Unsigned => Value::UInt(number),
                    Style::Hexadecimal => Value::Hex(number),
                    Style::Character => {
                        let code = u32::try_from(number).ok().and_then(char::from_u32);
                        Value::Text(code.unwrap_or(char::REPLACEMENT_CHARACTER).to_string())
                    }
                };
                of_number(value, number, *size)
            }
            Self::Pointer => {
                let size = if pointer == PointerSize::Four { 4 } else { 8 };
                let number = unsigned(c, size)?;
                of_number(Value::Pointer(number), number, size)
            }
            Self::Float => {
                let number = f32::from_le_bytes(c.array()?);
                of_float(Value::Float(number), number.into())
            }
            Self::Double => {
                let number = f64::from_le_bytes(c.array()?);
                of_float(Value::Double(number), number)
            }
            Self::Characters => {
                let bytes: [u8; 4] = c.array()?;
                let number = u32::from_le_bytes(bytes);
                let text = code_page.decode(&bytes);
                of_text(Value::Text(text.clone()), text, Some((number.into(), 4)))
            }
            Self::Ansi => text(code_page.decode(c.until_nul()?)),
            Self::Wide => {
                let (units, _) = c.rest().as_chunks::<2>();
                let length = units.iter().position(|unit| *unit == [0, 0])?;
                let read = text(wide(c.take(2 * length)?));
                c.take(2)?;
                read
            }
            Self::CountedAnsi => {
                let length = c.u16()?;
                text(code_page.decode(c.take(length.into())?))
            }
            Self::CountedWide => {
                let length = c.u16()?;
                text(wide(c.take(length.into())?))
            }
            Self::Bytes => {
                let length = c.u16()?;
                let bytes = c.take(length.into())?;
                of_text(Value::Binary(bytes.to_vec()), Hex(bytes).to_string(), None)
            }
            Self::List { size, names } => {
                let number = unsigned(c, *size)?;
                let name = names.iter().find(|(value, _)| *value == number);
                let value = name.map_or(Value::UInt(number), |(_, name)| Value::Named {
                    value: number,
                    signed: false,
                    name: Arc::clone(name),
                });
                shown(value, Some((number, *size)))
            }
            Self::Set { size, names } => {
                let number = unsigned(c, *size)?;
                let is_set = |bit: u64| bit < 64 && number >> bit & 1 != 0;
                let names = names.iter().filter(|(bit, _)| is_set(*bit));
                let names: Vec<&str> = names.map(|(_, name)| &**name).collect();
                let name = format!("[{}]", names.join(","));
                shown(
                    Value::Named { value: number, signed: false, name: name.into() },
                    Some((number, *size)),
                )
            }
            Self::Guid => shown(Value::Guid(Guid::from_bytes(c.array()?)), None),
            Self::NtStatus => {
                let code = c.u32()?;
                let name = NtStatus::from_bits(code).name();
                let name = name.map_or_else(String::new, |name| format!("({name})"));
                let text = format!("0x{code:08x}{name}");
                of_text(Value::NtStatus(code), text, Some((code.into(), 4)))
            }
            Self::HResult => status(c, Value::HResult)?,
            Self::Win32Error => status(c, Value::Win32Error)?,
            Self::Ipv4 => {
                let bytes: [u8; 4] = c.array()?;
                let number = u32::from_le_bytes(bytes);
                shown(Value::Ipv4(Ipv4Addr::from(bytes)), Some((number.into(), 4)))
            }
            Self::Ipv6 => {
                let bytes: [u8; 16] = c.array()?;
                shown(Value::Ipv6(Ipv6Addr::from(bytes)), None)
            }
            Self::Mac => {
                let bytes: [u8; 6] = c.array()?;
                text(bytes.map(|byte| format!("{byte:02x}")).join("-"))
            }
            Self::Port => {
                let number = u16::from_be_bytes(c.array()?);
                shown(Value::Port(number), Some((number.into(), 2)))
            }
            Self::Sid => shown(Value::Sid(Sid::read(c).ok()?), None),
            Self::Time => {
                let raw = c.i64()?;
                shown(Value::FileTime(FileTime::from_raw(raw)), Some((raw.cast_unsigned(), 8)))
            }
            Self::Span => {
                let raw = c.i64()?;
                let units = raw.unsigned_abs();
                let sign = if raw < 0 { "-" } else { "" };
                let text = format!("{sign}{}.{:07} s", units / 10_000_000, units % 10_000_000);
                of_text(Value::Int(raw), text, Some((raw.cast_unsigned(), 8)))
            }
            Self::Unknown(_) => return None,
        })
    }
}

/// Returns an argument that is shown as text; it is also a number if `number` is given.
const fn of_text(value: Value, text: String, number: Option<(u64, u8)>) -> Read {
    (value, Argument { text: Some(text), number, float: None })
}

fn of_number(value: Value, number: u64, size: u8) -> Read {
    (value, Argument { number: Some((number, size)), ..Argument::default() })
}

fn of_float(value: Value, number: f64) -> Read {
    (value, Argument { float: Some(number), ..Argument::default() })
}

fn text(text: String) -> Read {
    of_text(Value::Text(text.clone()), text, None)
}

/// Returns a value that is shown in its `Display` form.
fn shown(value: Value, number: Option<(u64, u8)>) -> Read {
    let text = value.in_sentence();
    of_text(value, text, number)
}

fn status(c: &mut Cursor<'_>, value: impl FnOnce(u32) -> Value) -> Option<Read> {
    let code = c.u32()?;
    Some(shown(value(code), Some((code.into(), 4))))
}

/// Reads the names in a list's parentheses: `a,b=5,c`. Numbers start at 0 and increase by one,
/// unless a number is given. The bits of a set are never numbered explicitly.
fn names(list: &str, is_set: bool) -> Names {
    let mut next = 0_u64;
    let mut names = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let (name, value) = entry
            .split_once('=')
            .filter(|_| !is_set)
            .and_then(|(name, value)| Some((name.trim_end(), etw_manifest::number(value)?)))
            .unwrap_or((entry, next));
        names.push((value, name.into()));
        next = value.wrapping_add(1);
    }
    names.into()
}

/// Reads an unsigned number of `size` bytes.
fn unsigned(c: &mut Cursor<'_>, size: u8) -> Option<u64> {
    let bytes = c.take(size.into())?.iter().rev();
    Some(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

/// Decodes UTF-16 text.
fn wide(bytes: &[u8]) -> String {
    let (units, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16_lossy(&units)
}
