//! Decodes payloads by their layouts.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use etw_wire::Guid;

use super::classes::KnownLayout;
use super::descriptor::Type;
use crate::cursor::{Cursor, utf16_until_nul};
use crate::decode::{Fields, PayloadError, PayloadErrorKind, Sid, Value};
use crate::read::PointerSize;
use crate::time::FileTime;

/// The result of decoding a payload by one layout and one pointer size.
pub struct Attempt {
    pub fields: Fields,
    /// Offset of the first byte that no field has.
    pub used: usize,
    pub error: Option<PayloadError>,
    /// True if every text ends with its NUL, every list at an element's end, and none has parts of
    /// wide addresses.
    clean: bool,
    pub pointer_size: PointerSize,
    /// The offsets of the readings of the session's clock and of durations, with their types.
    pub clock_values: Vec<(usize, Type)>,
}

/// A property that decides between attempts: the larger, the better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The payload ends within a field.
    Short,
    /// Bytes follow the last field.
    Surplus,
    /// Every byte belongs to a field, but a text or a list ends in a way that is not usual.
    Whole,
    /// Every byte belongs to a field.
    Exact,
}

impl Attempt {
    const fn fit(&self, length: usize) -> Fit {
        if self.error.is_some() {
            Fit::Short
        } else if self.used < length {
            Fit::Surplus
        } else if self.clean {
            Fit::Exact
        } else {
            Fit::Whole
        }
    }
}

/// The two readings of four zero bytes where a SID is expected (ETL-14.6).
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoSid {
    /// The four bytes stand for no SID.
    FourBytes,
    /// They are the lower half of an address.
    Structure,
}

/// Decodes a payload by the first layout and pointer size that fits exactly, or else by the one
/// that fits best. The pointer size of the record's header is tried first: 32-bit headers have
/// 64-bit payloads at times (ETL-14.5).
pub fn decode<'a>(
    layouts: &(impl Iterator<Item = &'a KnownLayout> + Clone),
    payload: &[u8],
    stated: PointerSize,
) -> Option<Attempt> {
    let other = match stated {
        PointerSize::Four => PointerSize::Eight,
        PointerSize::Eight => PointerSize::Four,
    };
    let mut best: Option<(Fit, Attempt)> = None;
    for no_sid in [NoSid::FourBytes, NoSid::Structure] {
        for pointer_size in [stated, other] {
            for known in layouts.clone() {
                let attempt = attempt(known, payload, pointer_size, no_sid);
                let fit = attempt.fit(payload.len());
                if fit == Fit::Exact {
                    return Some(attempt);
                }
                if best.as_ref().is_none_or(|(known, _)| fit > *known) {
                    best = Some((fit, attempt));
                }
            }
        }
    }
    best.map(|(_, attempt)| attempt)
}

fn attempt(
    known: &KnownLayout,
    payload: &[u8],
    pointer_size: PointerSize,
    no_sid: NoSid,
) -> Attempt {
    let mut reader = Reader {
        c: Cursor::new(payload),
        pointer_size,
        no_sid,
        clean: true,
        count: 0,
    };
    let mut fields = Fields::with_capacity(known.names.len());
    let mut error = None;
    let mut used = 0;
    let mut clock_values = Vec::new();
    for (field, name) in known.layout.fields.iter().zip(&known.names) {
        if field.optional && reader.c.is_empty() {
            break;
        }
        match reader.value(field.kind, &fields) {
            Ok(value) => fields.push((Arc::clone(name), value)),
            Err(kind) => {
                error = Some(PayloadError {
                    field: Arc::clone(name),
                    offset: used,
                    kind,
                });
                break;
            }
        }
        if matches!(field.kind, Type::Ticks | Type::TickDuration) {
            clock_values.push((used, field.kind));
        }
        used = reader.c.position();
    }
    Attempt {
        fields,
        used,
        error,
        clean: reader.clean,
        pointer_size,
        clock_values,
    }
}

struct Reader<'a> {
    c: Cursor<'a>,
    pointer_size: PointerSize,
    no_sid: NoSid,
    clean: bool,
    /// The last 32-bit number, which counts the GUIDs after it.
    count: u32,
}

type Result<T> = std::result::Result<T, PayloadErrorKind>;

/// Takes what the payload may be too short for.
fn present<T>(value: Option<T>) -> Result<T> {
    value.ok_or(PayloadErrorKind::TooShort)
}

impl Reader<'_> {
    fn value(&mut self, kind: Type, before: &Fields) -> Result<Value> {
        let c = &mut self.c;
        Ok(match kind {
            Type::U8 => Value::UInt(present(c.u8())?.into()),
            Type::I8 => Value::Int(i8::from_le_bytes(present(c.array())?).into()),
            Type::U16 => Value::UInt(present(c.u16())?.into()),
            Type::I16 => Value::Int(i16::from_le_bytes(present(c.array())?).into()),
            Type::U32 => {
                self.count = present(c.u32())?;
                Value::UInt(self.count.into())
            }
            Type::I32 => Value::Int(present(c.i32())?.into()),
            Type::U64 | Type::TickDuration => Value::UInt(present(c.u64())?),
            Type::I64 | Type::Ticks => Value::Int(present(c.i64())?),
            Type::Hex32 => Value::Hex(present(c.u32())?.into()),
            Type::Hex64 => Value::Hex(present(c.u64())?),
            Type::FileTime => Value::FileTime(FileTime::from_raw(present(c.i64())?)),
            Type::Process => Value::ProcessId(present(c.u32())?.into()),
            Type::Thread => Value::ThreadId(present(c.u32())?.into()),
            Type::Status => Value::NtStatus(present(c.u32())?),
            Type::Guid => Value::Guid(Guid::from_bytes(present(c.array())?)),
            Type::Bytes(count) => Value::Binary(present(c.take(count.into()))?.to_vec()),
            Type::Rest => Value::Binary(present(c.take(c.rest().len()))?.to_vec()),
            Type::Ipv4 => Value::Ipv4(Ipv4Addr::from(present(c.array::<4>())?)),
            Type::Ipv6 => Value::Ipv6(Ipv6Addr::from(present(c.array::<16>())?)),
            Type::Port => Value::Port(u16::from_be_bytes(present(c.array())?)),
            Type::Units(count) => {
                Value::Text(utf16_until_nul(present(c.take(2 * usize::from(count)))?))
            }
            Type::Pointer => Value::Pointer(self.pointer()?),
            Type::Size => Value::UInt(self.pointer()?),
            Type::WideProcess => Value::ProcessId(self.pointer()?),
            Type::WideThread => Value::ThreadId(self.pointer()?),
            Type::WideStatus => {
                let status = self.pointer()? & u64::from(u32::MAX);
                Value::NtStatus(present(u32::try_from(status).ok())?)
            }
            Type::Sid => self.sid()?,
            Type::Ansi => self.ansi()?,
            Type::Utf16 => self.utf16()?,
            Type::Pointers => self.pointers(),
            Type::TicksList => {
                let (readings, rest) = self.c.rest().as_chunks::<8>();
                self.clean &= rest.is_empty();
                let readings = readings
                    .iter()
                    .map(|&reading| Value::Int(i64::from_le_bytes(reading)))
                    .collect::<Vec<_>>();
                present(self.c.take(8 * readings.len()))?;
                Value::Array(readings)
            }
            Type::Texts(name) => {
                let count = before.iter().find_map(|(known, value)| match value {
                    Value::UInt(count) if &**known == name => Some(*count),
                    _ => None,
                });
                let mut texts = Vec::new();
                for _ in 0..count.unwrap_or_default() {
                    if self.c.is_empty() {
                        return Err(PayloadErrorKind::TooShort);
                    }
                    texts.push(self.utf16()?);
                }
                Value::Array(texts)
            }
            Type::Guids => {
                let room = self.c.rest().len() / 16;
                let count = present(usize::try_from(self.count).ok())?;
                if count > room {
                    return Err(PayloadErrorKind::TooShort);
                }
                let mut guids = Vec::new();
                for _ in 0..count {
                    guids.push(Value::Guid(Guid::from_bytes(present(self.c.array())?)));
                }
                Value::Array(guids)
            }
        })
    }

    fn pointer(&mut self) -> Result<u64> {
        match self.pointer_size {
            PointerSize::Four => present(self.c.u32()).map(u64::from),
            PointerSize::Eight => present(self.c.u64()),
        }
    }

    /// Reads all remaining addresses.
    fn pointers(&mut self) -> Value {
        let rest = self.c.rest();
        let addresses: Vec<Value> = match self.pointer_size {
            PointerSize::Four => {
                // A list of 64-bit addresses is a list of 32-bit ones as well, and so is the upper
                // half of the field before it, followed by such a list.
                let after_half = rest.split_first_chunk::<4>();
                let has_half = after_half.is_some_and(|(&half, wide)| {
                    is_upper_half(u32::from_le_bytes(half)) && are_wide(wide)
                });
                self.clean &= rest.len().is_multiple_of(4) && !are_wide(rest) && !has_half;
                let addresses = rest.as_chunks::<4>().0.iter();
                addresses
                    .map(|&address| Value::Pointer(u32::from_le_bytes(address).into()))
                    .collect()
            }
            PointerSize::Eight => {
                self.clean &= rest.len().is_multiple_of(8);
                let addresses = rest.as_chunks::<8>().0.iter();
                addresses
                    .map(|&address| Value::Pointer(u64::from_le_bytes(address)))
                    .collect()
            }
        };
        self.c.take(addresses.len() * self.pointer_size.bytes());
        Value::Array(addresses)
    }

    /// Reads a `TOKEN_USER`, whose address is of no use, and the SID behind it.
    fn sid(&mut self) -> Result<Value> {
        let rest = self.c.rest();
        if rest.starts_with(&[0; 4]) && self.no_sid == NoSid::FourBytes {
            present(self.c.take(4))?;
            return Ok(Value::Null);
        }
        let structure = 2 * self.pointer_size.bytes();
        let &[revision, count] = present(rest.get(structure..).and_then(<[u8]>::first_chunk))?;
        if count > 15 {
            return Err(PayloadErrorKind::Sid(count));
        }
        present(self.c.take(structure + 2))?;
        let mut authority = [0; 8];
        let (_, low) = authority.split_at_mut(2);
        low.copy_from_slice(&present(self.c.array::<6>())?);
        let mut subauthorities = Vec::with_capacity(count.into());
        for _ in 0..count {
            subauthorities.push(present(self.c.u32())?);
        }
        // Another revision means that this is no SID.
        self.clean &= revision == 1;
        Ok(Value::Sid(Sid {
            revision,
            authority: u64::from_be_bytes(authority),
            subauthorities,
        }))
    }

    /// Reads 8-bit text up to its NUL, or up to the end.
    fn ansi(&mut self) -> Result<Value> {
        let rest = self.c.rest();
        let length = rest.iter().position(|&byte| byte == 0);
        self.clean &= length.is_some();
        let text = present(self.c.take(length.unwrap_or(rest.len())))?;
        let text = String::from_utf8_lossy(text).into_owned();
        self.c.take(1);
        Ok(Value::Text(text))
    }

    /// Reads UTF-16 text up to its NUL, or up to the end.
    fn utf16(&mut self) -> Result<Value> {
        let rest = self.c.rest();
        let (units, odd) = rest.as_chunks::<2>();
        let length = units.iter().position(|&unit| unit == [0, 0]);
        self.clean &= length.is_some();
        if length.is_none() && !odd.is_empty() {
            return Err(PayloadErrorKind::OddLength(rest.len()));
        }
        let length = length.unwrap_or(units.len());
        // The last unit of the upper half of every address of the kernel; no character.
        self.clean &= !units.iter().take(length).any(|&unit| unit == [0xFF, 0xFF]);
        let text = utf16_until_nul(present(self.c.take(2 * length))?);
        self.c.take(2);
        Ok(Value::Text(text))
    }
}

/// Returns true if bytes are a list of 64-bit addresses: the upper half of each address is that of
/// user or kernel space, which no 32-bit address of code resembles.
fn are_wide(bytes: &[u8]) -> bool {
    let (addresses, rest) = bytes.as_chunks::<8>();
    rest.is_empty()
        && !addresses.is_empty()
        && addresses.iter().all(|&address| {
            let [.., a, b, c, d] = address;
            is_upper_half(u32::from_le_bytes([a, b, c, d]))
        })
}

/// Returns true if a number may be the upper half of an address in user or kernel space.
fn is_upper_half(number: u32) -> bool {
    !(0x8000..0xFFFF_8000).contains(&number)
}
