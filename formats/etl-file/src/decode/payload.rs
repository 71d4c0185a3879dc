//! Decodes user data according to its schema.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

use etw_wire::{Guid, InType};

use super::error::{PayloadError, PayloadErrorKind as Kind};
use super::schema::{Count, Encoding, Field, Length, Presentation, Schema};
use super::value::{Sid, Value};
use crate::code_page::CodePage;
use crate::cursor::Cursor;
use crate::read::PointerSize;
use crate::time::{FileTime, SystemTime};

/// The maximum cost of decoding an event, roughly the size of its values in bytes. Without a limit,
/// nested arrays of values without data could grow arbitrarily. An ordinary 64 KiB event stays far
/// below it.
const BUDGET: usize = 16 << 20;
/// The cost of a value besides its name.
const VALUE_COST: usize = 16;
/// The number of values without data that every event is allowed.
const EMPTY_VALUES: usize = 1024;
/// The number of additional values without data for each byte of an event's data. Without this
/// limit, small events could use any amount of memory.
const EMPTY_VALUES_PER_BYTE: usize = 4;

/// The names and values of fields.
pub type Fields = Vec<(Arc<str>, Value)>;

/// Decoded user data.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    /// The fields that could be decoded.
    pub fields: Fields,
    /// The remaining bytes: everything after the last field, or from the first field that could not
    /// be decoded.
    pub leftover: Vec<u8>,
    /// The reason why decoding stopped before the last field.
    pub error: Option<PayloadError>,
}

impl Schema {
    /// Returns the size of an event's user data, if it is the same for all events.
    pub(super) fn size(&self, pointer_size: PointerSize) -> Option<usize> {
        self.fields
            .iter()
            .try_fold(0_usize, |sum, field| sum.checked_add(size_of_field(field, pointer_size)?))
    }

    /// Decodes an event's user data.
    #[must_use]
    pub fn decode(&self, user_data: &[u8], pointer_size: PointerSize) -> Payload {
        self.decode_with(user_data, pointer_size, CodePage::default(), true)
    }

    /// Decodes an event's user data. Without `values`, only finds where decoding stops, and why.
    pub(super) fn decode_with(
        &self,
        user_data: &[u8],
        pointer_size: PointerSize,
        code_page: CodePage,
        values: bool,
    ) -> Payload {
        let mut decoder = Decoder {
            c: Cursor::new(user_data),
            refers: self.fields.iter().any(refers),
            pointer_size,
            code_page,
            budget: BUDGET,
            empty: EMPTY_VALUES
                .saturating_add(user_data.len().saturating_mul(EMPTY_VALUES_PER_BYTE)),
            numbers: Vec::new(),
        };
        let mut fields = Fields::with_capacity(if values { self.fields.len() } else { 0 });
        for field in &*self.fields {
            if !values && decoder.skip(field) {
                continue;
            }
            let start = decoder.c;
            match decoder.field(field) {
                Ok(value) if values => fields.push((Arc::clone(&field.name), value)),
                Ok(_) => {}
                Err(error) => {
                    return Payload { fields, leftover: start.rest().to_vec(), error: Some(error) };
                }
            }
        }
        Payload { fields, leftover: decoder.c.rest().to_vec(), error: None }
    }
}

struct Decoder<'a> {
    c: Cursor<'a>,
    /// True if a count or length refers to another field.
    refers: bool,
    pointer_size: PointerSize,
    code_page: CodePage,
    budget: usize,
    /// The number of values without data that are still allowed.
    empty: usize,
    /// The integers decoded so far, for counts and lengths that refer to them.
    numbers: Vec<(&'a Arc<str>, u64)>,
}

/// The reason why a value could not be decoded.
enum Fault {
    /// The error is in the field.
    Here(Kind),
    /// The error is in one of the field's members.
    Member(PayloadError),
}

impl From<Kind> for Fault {
    fn from(kind: Kind) -> Self {
        Self::Here(kind)
    }
}

impl<'a> Decoder<'a> {
    fn field(&mut self, field: &'a Field) -> Result<Value, PayloadError> {
        let offset = self.c.position();
        let located = |kind| PayloadError { field: Arc::clone(&field.name), offset, kind };
        let count = match &field.count {
            Count::Scalar => return self.one(field),
            Count::Fixed(count) => u64::from(*count),
            Count::Variable => {
                self.c.u16().map(u64::from).ok_or(Kind::TooShort).map_err(located)?
            }
            Count::Field(name) => self.number(name).map_err(located)?,
            Count::Custom(_) => return Err(located(Kind::Custom)),
        };
        if is_character(field) {
            let count = usize::try_from(count).map_err(|_| located(Kind::TooShort))?;
            return self.characters(field, count).map_err(located);
        }
        let outer = self.numbers.len();
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.one(field)?);
            self.numbers.truncate(outer);
        }
        Ok(Value::Array(values))
    }

    /// Skips a field that is a single value of a known size, to which no count or length refers.
    /// Returns false for other fields.
    fn skip(&mut self, field: &Field) -> bool {
        let is_one = field.count == Count::Scalar
            && field.in_type != Encoding::Known(InType::Struct)
            && !self.refers;
        let Some(size) = size_of_field(field, self.pointer_size).filter(|_| is_one) else {
            return false;
        };
        size <= self.c.rest().len() && self.charge(field).is_ok() && self.c.take(size).is_some()
    }

    /// Decodes a single value of a field, regardless of its count.
    fn one(&mut self, field: &'a Field) -> Result<Value, PayloadError> {
        let offset = self.c.position();
        let located = |kind| PayloadError { field: Arc::clone(&field.name), offset, kind };
        let value = self.value(field).map_err(|fault| match fault {
            Fault::Here(kind) => located(kind),
            Fault::Member(error) => error,
        })?;
        if self.c.position() == offset {
            let left = self.empty.checked_sub(1);
            self.empty = left.ok_or_else(|| located(Kind::TooManyValues))?;
        }
        Ok(value)
    }

    fn value(&mut self, field: &'a Field) -> Result<Value, Fault> {
        self.charge(field)?;
        let in_type = match field.in_type {
            Encoding::Known(in_type) => in_type,
            Encoding::Unknown(code) => return Err(Kind::UnknownType(code).into()),
        };
        let (size, kind) = match in_type {
            InType::Int8 => (1, Integer::Signed),
            InType::UInt8 => (1, Integer::Unsigned),
            InType::Int16 => (2, Integer::Signed),
            InType::UInt16 => (2, Integer::Unsigned),
            InType::Int32 => (4, Integer::Signed),
            InType::UInt32 => (4, Integer::Unsigned),
            InType::HexInt32 => (4, Integer::Hex),
            InType::Boolean => (4, Integer::Boolean),
            InType::Int64 => (8, Integer::Signed),
            InType::UInt64 => (8, Integer::Unsigned),
            InType::HexInt64 => (8, Integer::Hex),
            InType::Pointer => (self.pointer_size.bytes(), Integer::Pointer),
            InType::Null => return Ok(Value::Null),
            InType::Float => return Ok(Value::Float(f32::from_le_bytes(self.array()?))),
            InType::Double => return Ok(Value::Double(f64::from_le_bytes(self.array()?))),
            InType::Guid => return Ok(Value::Guid(Guid::from_bytes(self.array()?))),
            InType::FileTime => {
                let units = i64::from_le_bytes(self.array()?);
                return Ok(Value::FileTime(FileTime::from_raw(units)));
            }
            InType::SystemTime => {
                return Ok(Value::SystemTime(SystemTime::from_bytes(self.array()?)));
            }
            InType::Sid => return Ok(Value::Sid(Sid::read(&mut self.c)?)),
            InType::UnicodeString => {
                return Ok(Value::Text(utf16(self.run(field, 2, End::Nul)?)?));
            }
            InType::CountedUnicodeString => {
                return Ok(Value::Text(utf16(self.run(field, 2, End::Count)?)?));
            }
            InType::AnsiString => {
                let code_page = self.code_page;
                return Ok(Value::Text(code_page.decode(self.run(field, 1, End::Nul)?)));
            }
            InType::CountedAnsiString => {
                let code_page = self.code_page;
                return Ok(Value::Text(code_page.decode(self.run(field, 1, End::Count)?)));
            }
            InType::Binary | InType::CountedBinary => {
                let code_page = self.code_page;
                return Ok(binary(self.run(field, 1, End::Count)?, field.out_type, code_page));
            }
            InType::Struct => return self.structure(field),
        };
        let number = Number::read(self.take(size)?);
        if self.refers {
            self.numbers.push((&field.name, number.raw));
        }
        Ok(number.value(field, kind, self.code_page))
    }

    fn structure(&mut self, field: &'a Field) -> Result<Value, Fault> {
        let outer = self.numbers.len();
        let mut members = Fields::new();
        for member in &field.fields {
            let value = self.field(member).map_err(Fault::Member)?;
            members.push((Arc::clone(&member.name), value));
        }
        self.numbers.truncate(outer);
        Ok(Value::Struct(members))
    }

    fn charge(&mut self, field: &Field) -> Result<(), Kind> {
        let cost = VALUE_COST + field.name.len();
        self.budget = self.budget.checked_sub(cost).ok_or(Kind::TooManyValues)?;
        Ok(())
    }

    /// Returns the number that a count or length refers to.
    fn number(&self, name: &Arc<str>) -> Result<u64, Kind> {
        self.numbers
            .iter()
            .rev()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
            .ok_or_else(|| Kind::NoSuchNumber(Arc::clone(name)))
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Kind> {
        self.c.take(length).ok_or(Kind::TooShort)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Kind> {
        self.c.array().ok_or(Kind::TooShort)
    }

    /// Returns the bytes of a string or byte sequence with units of `unit` bytes.
    fn run(&mut self, field: &Field, unit: usize, end: End) -> Result<&[u8], Kind> {
        let units = match &field.length {
            Length::Fixed(units) => u64::from(*units),
            Length::Field(name) => self.number(name)?,
            Length::Natural => {
                return match end {
                    End::Nul => Ok(self.terminated(unit)),
                    End::Count => {
                        let bytes = self.c.u16().ok_or(Kind::TooShort)?;
                        self.take(usize::from(bytes))
                    }
                };
            }
        };
        let bytes = usize::try_from(units)
            .ok()
            .and_then(|units| units.checked_mul(unit))
            .ok_or(Kind::TooShort)?;
        let run = self.take(bytes)?;
        // A string shorter than its field is padded with NULs.
        if end == End::Nul {
            let kept = run
                .chunks_exact(unit)
                .rposition(|unit| unit.iter().any(|&byte| byte != 0))
                .map_or(0, |last| (last + 1) * unit);
            return run.get(..kept).ok_or(Kind::TooShort);
        }
        Ok(run)
    }

    /// Returns the bytes up to a NUL, and consumes the NUL. Without a NUL, returns all remaining
    /// bytes, like Windows' decoders.
    fn terminated(&mut self, unit: usize) -> &[u8] {
        let rest = self.c.rest();
        let text = rest
            .chunks_exact(unit)
            .position(|unit| unit.iter().all(|&byte| byte == 0))
            .unwrap_or(rest.len() / unit)
            * unit;
        let taken = self.c.take(text).unwrap_or_default();
        self.c.take(unit);
        taken
    }

    /// Decodes an array of characters as text.
    fn characters(&mut self, field: &Field, count: usize) -> Result<Value, Kind> {
        self.charge(field)?;
        let text = if field.in_type == Encoding::Known(InType::UInt16) {
            utf16(self.take(count.checked_mul(2).ok_or(Kind::TooShort)?)?)?
        } else {
            let code_page = self.code_page;
            code_page.decode(self.take(count)?)
        };
        Ok(Value::Text(text))
    }
}

/// Returns the size of a field's values, if it is the same for all events.
fn size_of_field(field: &Field, pointer_size: PointerSize) -> Option<usize> {
    let Encoding::Known(in_type) = field.in_type else {
        return None;
    };
    let size = match in_type {
        InType::Int8 | InType::UInt8 => 1,
        InType::Int16 | InType::UInt16 => 2,
        InType::Int32 | InType::UInt32 | InType::HexInt32 | InType::Boolean | InType::Float => 4,
        InType::Int64 | InType::UInt64 | InType::HexInt64 | InType::Double | InType::FileTime => 8,
        InType::Pointer => pointer_size.bytes(),
        InType::Guid | InType::SystemTime => 16,
        InType::Struct => field.fields.iter().try_fold(0_usize, |sum, member| {
            sum.checked_add(size_of_field(member, pointer_size)?)
        })?,
        _ => return None,
    };
    match field.count {
        Count::Scalar => Some(size),
        Count::Fixed(count) => size.checked_mul(count.into()),
        Count::Variable | Count::Field(_) | Count::Custom(_) => None,
    }
    // The number of values without data is limited.
    .filter(|_| size != 0)
}

/// Returns true if the count or length of a field or of one of its members is another field's
/// value.
fn refers(field: &Field) -> bool {
    matches!(field.count, Count::Field(_))
        || matches!(field.length, Length::Field(_))
        || field.fields.iter().any(refers)
}

/// The form in which a string or byte sequence without a length ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is terminated by a NUL.
    Nul,
    /// It follows a 16-bit byte count.
    Count,
}

/// Returns true if the presentation makes an array of this field a string.
const fn is_character(field: &Field) -> bool {
    use Encoding::Known;
    use Presentation::{Json, String, Utf8, Xml};
    match field.in_type {
        Known(InType::Int8 | InType::UInt8) => matches!(field.out_type, String | Utf8 | Xml | Json),
        Known(InType::UInt16) => matches!(field.out_type, String),
        _ => false,
    }
}

/// The kinds of integers, which determine the format of values without a presentation.
#[derive(Clone, Copy)]
enum Integer {
    Signed,
    Unsigned,
    Hex,
    Boolean,
    Pointer,
}

/// A decoded integer.
struct Number {
    /// The bits, zero-extended.
    raw: u64,
    /// The bits, sign-extended.
    signed: i64,
    size: usize,
}

impl Number {
    /// Reads an integer of at most eight bytes.
    fn read(bytes: &[u8]) -> Self {
        let extended = |fill: u8| {
            let mut all = [fill; 8];
            for (to, from) in all.iter_mut().zip(bytes) {
                *to = *from;
            }
            all
        };
        let negative = bytes.last().is_some_and(|top| top & 0x80 != 0);
        Self {
            raw: u64::from_le_bytes(extended(0)),
            signed: i64::from_le_bytes(extended(if negative { 0xFF } else { 0 })),
            size: bytes.len(),
        }
    }

    /// Returns the value according to the field's map and presentation or, without these, its
    /// encoding.
    fn value(&self, field: &Field, kind: Integer, code_page: CodePage) -> Value {
        if let Some(map) = &field.map {
            let signed = !map.bits && Self::is_signed(field.out_type, kind);
            let name =
                map.name(self.raw).or_else(|| signed.then(|| map.name_of_negative(self.signed))?);
            if let Some(name) = name {
                let value = if signed { self.signed.cast_unsigned() } else { self.raw };
                return Value::Named { value, signed, name };
            }
        }
        self.presented(field.out_type, code_page).unwrap_or(match kind {
            Integer::Signed => Value::Int(self.signed),
            Integer::Unsigned => Value::UInt(self.raw),
            Integer::Hex => Value::Hex(self.raw),
            Integer::Boolean => Value::Bool(self.raw != 0),
            Integer::Pointer => Value::Pointer(self.raw),
        })
    }

    /// Returns true if the number is shown with a sign.
    const fn is_signed(presentation: Presentation, kind: Integer) -> bool {
        match presentation {
            Presentation::Signed => true,
            Presentation::Unsigned => false,
            _ => matches!(kind, Integer::Signed),
        }
    }

    /// Returns the value in a presentation that fits its size.
    fn presented(&self, presentation: Presentation, code_page: CodePage) -> Option<Value> {
        let small = u32::try_from(self.raw).ok();
        let memory = self.raw.to_le_bytes();
        Some(match presentation {
            Presentation::Boolean => Value::Bool(self.raw != 0),
            Presentation::Hex => Value::Hex(self.raw),
            Presentation::CodePointer => Value::Pointer(self.raw),
            Presentation::ProcessId => Value::ProcessId(self.raw),
            Presentation::ThreadId => Value::ThreadId(self.raw),
            Presentation::NtStatus => Value::NtStatus(small?),
            Presentation::HResult => Value::HResult(small?),
            Presentation::Win32Error => Value::Win32Error(small?),
            Presentation::Port if self.size == 2 => {
                Value::Port(u16::from_be_bytes([memory[0], memory[1]]))
            }
            Presentation::Ipv4 if self.size == 4 => {
                Value::Ipv4(Ipv4Addr::new(memory[0], memory[1], memory[2], memory[3]))
            }
            Presentation::String if self.size == 1 => Value::Text(code_page.decode(&memory[..1])),
            Presentation::String if self.size == 2 => {
                Value::Text(String::from_utf16_lossy(&[u16::from_le_bytes([memory[0], memory[1]])]))
            }
            Presentation::DateTime if self.size == 8 => {
                Value::FileTime(FileTime::from_raw(i64::from_le_bytes(memory)))
            }
            Presentation::Unsigned => Value::UInt(self.raw),
            Presentation::Signed => Value::Int(self.signed),
            _ => return None,
        })
    }
}

/// Decodes UTF-16LE text.
fn utf16(bytes: &[u8]) -> Result<String, Kind> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return Err(Kind::OddLength(bytes.len()));
    };
    if units.iter().all(|[low, high]| low.is_ascii() && *high == 0) {
        return Ok(units.iter().map(|[low, _]| char::from(*low)).collect());
    }
    let units: Vec<u16> = units.iter().map(|&unit| u16::from_le_bytes(unit)).collect();
    Ok(String::from_utf16_lossy(&units))
}

/// Returns bytes in a presentation that fits them.
fn binary(bytes: &[u8], presentation: Presentation, code_page: CodePage) -> Value {
    let address = match presentation {
        Presentation::Ipv6 => {
            bytes.try_into().ok().map(|octets: [u8; 16]| Value::Ipv6(octets.into()))
        }
        Presentation::SocketAddress => socket_address(bytes).map(Value::SocketAddress),
        Presentation::String | Presentation::Utf8 | Presentation::Xml | Presentation::Json => {
            Some(Value::Text(code_page.decode(bytes)))
        }
        _ => None,
    };
    address.unwrap_or_else(|| Value::Binary(bytes.to_vec()))
}

/// Decodes `SOCKADDR_IN` and `SOCKADDR_IN6`, with Windows' address families.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    const INET: u16 = 2;
    const INET6: u16 = 23;
    let mut c = Cursor::new(bytes);
    let family = c.u16()?;
    let port = u16::from_be_bytes(c.array()?);
    match family {
        INET => {
            let address: [u8; 4] = c.array()?;
            Some(SocketAddrV4::new(address.into(), port).into())
        }
        INET6 => {
            let flow = u32::from_be_bytes(c.array()?);
            let address: [u8; 16] = c.array()?;
            let scope = c.u32()?;
            Some(SocketAddrV6::new(Ipv6Addr::from(address), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
