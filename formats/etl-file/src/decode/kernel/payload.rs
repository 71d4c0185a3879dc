//! Decodes payloads according to their layouts.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::Arc;

use etw_wire::Guid;

use super::lznt1;
use crate::code_page::CodePage;
use crate::cursor::{Cursor, utf16_until_nul};
use crate::decode::mof::{Layout, Type};
use crate::decode::{Fields, PayloadError, PayloadErrorKind, Sid, Value};
use crate::read::PointerSize;
use crate::time::FileTime;

/// The result of decoding a payload with one layout and one pointer size.
pub struct Attempt {
    pub fields: Fields,
    /// The offset of the first byte after the fields.
    pub used: usize,
    pub error: Option<PayloadError>,
    /// True if every string ends with a NUL, and no list contains halves of 64-bit addresses.
    clean: bool,
    pub pointer_size: PointerSize,
    /// The offsets and types of clock readings and durations.
    pub clock_values: Vec<(usize, Type)>,
    /// The ranges of hardware addresses.
    pub hardware: Vec<Range<usize>>,
}

/// The names of fields that contain hardware addresses.
pub const HARDWARE: [&str; 3] = ["PhysicalAddr", "PhysicalAddress", "PermanentPhysicalAddress"];

/// The maximum size in bytes of a compressed text.
const MAX_TEXT: usize = 1 << 20;

/// The rank of an attempt; larger is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The payload ends inside a field.
    Short,
    /// Bytes follow the last field.
    Surplus,
    /// Every byte belongs to a field, but a string or list ends unusually.
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

/// The two interpretations of four zero bytes instead of a SID (ETL-14.6).
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoSid {
    /// The four bytes mean that there is no SID.
    FourBytes,
    /// The four bytes are the lower half of an address.
    Structure,
}

/// Decodes a payload with the first layout and pointer size that fit exactly, or otherwise with
/// those that fit best. The header's pointer size is tried first; some 32-bit headers have 64-bit
/// payloads (ETL-14.5).
pub fn decode<'a>(
    layouts: &(impl Iterator<Item = &'a Layout> + Clone),
    payload: &[u8],
    stated: PointerSize,
    code_page: CodePage,
) -> Option<Attempt> {
    let other = match stated {
        PointerSize::Four => PointerSize::Eight,
        PointerSize::Eight => PointerSize::Four,
    };
    let mut best: Option<(Fit, Attempt)> = None;
    for no_sid in [NoSid::FourBytes, NoSid::Structure] {
        for pointer_size in [stated, other] {
            for known in layouts.clone() {
                let attempt = attempt(known, payload, pointer_size, code_page, no_sid);
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
    known: &Layout,
    payload: &[u8],
    pointer_size: PointerSize,
    code_page: CodePage,
    no_sid: NoSid,
) -> Attempt {
    let c = Cursor::new(payload);
    let mut reader = Reader { c, pointer_size, code_page, no_sid, clean: true, count: 0 };
    let mut fields = Fields::with_capacity(known.fields.len());
    let mut error = None;
    let mut used = 0;
    let mut clock_values = Vec::new();
    let mut hardware = Vec::new();
    for field in &known.fields {
        if field.optional && reader.c.is_empty() {
            break;
        }
        match reader.value(field.kind, &fields) {
            Ok(value) => fields.push((Arc::clone(&field.name), value)),
            Err(kind) => {
                error = Some(PayloadError { field: Arc::clone(&field.name), offset: used, kind });
                break;
            }
        }
        if matches!(field.kind, Type::Ticks | Type::TickDuration) {
            clock_values.push((used, field.kind));
        }
        let start = used;
        used = reader.c.position();
        if HARDWARE.contains(&&*field.name) {
            hardware.push(start..used);
        }
    }
    Attempt { fields, used, error, clean: reader.clean, pointer_size, clock_values, hardware }
}

struct Reader<'a> {
    c: Cursor<'a>,
    pointer_size: PointerSize,
    code_page: CodePage,
    no_sid: NoSid,
    clean: bool,
    /// The last 32-bit number, which is the count of the GUIDs after it.
    count: u32,
}

type Result<T> = std::result::Result<T, PayloadErrorKind>;

/// Returns a value, or an error if the payload was too short for it.
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
            Type::F32 => Value::Float(f32::from_bits(present(c.u32())?)),
            Type::F64 => Value::Double(f64::from_bits(present(c.u64())?)),
            Type::Bool => Value::Bool(present(c.u32())? != 0),
            Type::CountedAnsi => {
                let size = present(c.u16())?;
                let bytes = present(c.take(size.into()))?;
                Value::Text(self.code_page.decode(bytes))
            }
            Type::CountedUtf16 => {
                let size = present(c.u16())?;
                Value::Text(utf16_until_nul(present(c.take(size.into()))?))
            }
            Type::FileTime => Value::FileTime(FileTime::from_raw(present(c.i64())?)),
            Type::Process => Value::ProcessId(present(c.u32())?.into()),
            Type::Thread => Value::ThreadId(present(c.u32())?.into()),
            Type::Status => Value::NtStatus(present(c.u32())?),
            Type::Guid => Value::Guid(Guid::from_bytes(present(c.array())?)),
            Type::Bytes(count) => Value::Binary(present(c.take(count.into()))?.to_vec()),
            Type::Hardware(count) => {
                let bytes = present(c.take(count.into()))?;
                let length = usize::try_from(self.count).unwrap_or(usize::MAX);
                let bytes = bytes.get(..length).unwrap_or(bytes).iter();
                let digits: Vec<String> = bytes.map(|byte| format!("{byte:02x}")).collect();
                Value::Text(digits.join(":"))
            }
            Type::Compressed => {
                let bytes = present(c.take(c.rest().len()))?;
                let size = usize::try_from(self.count).ok().filter(|size| *size <= MAX_TEXT);
                let text = size.and_then(|size| lznt1::decompress(bytes, size));
                let text = text.ok_or(PayloadErrorKind::Compressed)?;
                // XML in UTF-16 starts with an ASCII character, and thus with a byte and a zero.
                Value::Text(match text.get(1) {
                    Some(0) => utf16_until_nul(&text),
                    _ => self.code_page.decode(text.split(|byte| *byte == 0).next().unwrap_or(&[])),
                })
            }
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
                let readings = self.c.rest().as_chunks::<8>().0.iter();
                let readings = readings
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
                let mut guids = Vec::new();
                for _ in 0..self.count {
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
                // A list of 64-bit addresses could also be read as 32-bit addresses, even when the
                // upper half of the preceding field comes first.
                let after_half = rest.split_first_chunk::<4>();
                let has_half = after_half.is_some_and(|(&half, wide)| {
                    is_upper_half(u32::from_le_bytes(half)) && are_wide(wide)
                });
                self.clean &= !are_wide(rest) && !has_half;
                let addresses = rest.as_chunks::<4>().0.iter();
                addresses
                    .map(|&address| Value::Pointer(u32::from_le_bytes(address).into()))
                    .collect()
            }
            PointerSize::Eight => {
                let addresses = rest.as_chunks::<8>().0.iter();
                addresses.map(|&address| Value::Pointer(u64::from_le_bytes(address))).collect()
            }
        };
        self.c.take(addresses.len() * self.pointer_size.bytes());
        Value::Array(addresses)
    }

    /// Reads a `TOKEN_USER`, whose address is useless, and the SID after it.
    fn sid(&mut self) -> Result<Value> {
        let rest = self.c.rest();
        if rest.starts_with(&[0; 4]) && self.no_sid == NoSid::FourBytes {
            present(self.c.take(4))?;
            return Ok(Value::Null);
        }
        present(self.c.take(2 * self.pointer_size.bytes()))?;
        let sid = Sid::read(&mut self.c)?;
        // With another revision, this is not a SID.
        self.clean &= sid.revision == 1;
        Ok(Value::Sid(sid))
    }

    /// Reads 8-bit text up to a NUL or to the end.
    fn ansi(&mut self) -> Result<Value> {
        let rest = self.c.rest();
        let length = rest.iter().position(|&byte| byte == 0);
        self.clean &= length.is_some();
        let text = present(self.c.take(length.unwrap_or(rest.len())))?;
        let text = self.code_page.decode(text);
        self.c.take(1);
        Ok(Value::Text(text))
    }

    /// Reads UTF-16 text up to a NUL or to the end.
    fn utf16(&mut self) -> Result<Value> {
        let rest = self.c.rest();
        let (units, odd) = rest.as_chunks::<2>();
        let length = units.iter().position(|&unit| unit == [0, 0]);
        self.clean &= length.is_some();
        if length.is_none() && !odd.is_empty() {
            return Err(PayloadErrorKind::OddLength(rest.len()));
        }
        let length = length.unwrap_or(units.len());
        // This unit is not a character, but the end of every kernel address.
        self.clean &= !units.iter().take(length).any(|&unit| unit == [0xFF, 0xFF]);
        let text = utf16_until_nul(present(self.c.take(2 * length))?);
        self.c.take(2);
        Ok(Value::Text(text))
    }
}

/// Returns true if bytes are a list of 64-bit addresses: their upper halves are user-space or
/// kernel-space halves, which do not resemble 32-bit code addresses.
fn are_wide(bytes: &[u8]) -> bool {
    let (addresses, rest) = bytes.as_chunks::<8>();
    rest.is_empty()
        && !addresses.is_empty()
        && addresses.iter().all(|&address| {
            let [.., a, b, c, d] = address;
            is_upper_half(u32::from_le_bytes([a, b, c, d]))
        })
}

/// Returns true if a number can be the upper half of an address in user or kernel space.
fn is_upper_half(number: u32) -> bool {
    !(0x8000..0xFFFF_8000).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::super::classes::layout_of;
    use super::*;
    use PointerSize::{Eight, Four};

    const ADDRESS: &str = "Address:Pointer";
    const GUIDS: &str = "Count:U32 Ids:Guids";
    const TEXTS: &str = "Other:U8 Count:U8 Texts:Texts(Count)";
    const LIST: &str = "Stack:Pointers";
    const TEXT: &str = "Name:Utf16";
    const SID: &str = "Sid:Sid";

    /// Decodes a payload with a layout of these fields.
    fn decoded(fields: &'static str, payload: &[u8], stated: PointerSize) -> Attempt {
        decode(&std::iter::once(&layout_of(fields)), payload, stated, CodePage::default()).unwrap()
    }

    /// Returns the values, the pointer size and the number of used bytes.
    fn whole(attempt: Attempt) -> (Vec<Value>, PointerSize, usize) {
        assert_eq!(attempt.error, None);
        let values = attempt.fields.into_iter().map(|(_, value)| value);
        (values.collect(), attempt.pointer_size, attempt.used)
    }

    #[test]
    fn the_first_of_the_sizes_that_fit_best_is_used() {
        let sizes = |length: usize, stated| {
            let (_, size, used) = whole(decoded(ADDRESS, &vec![1; length], stated));
            (size, used)
        };
        assert_eq!(sizes(8, Eight), (Eight, 8));
        assert_eq!(sizes(4, Eight), (Four, 4));
        // A surplus is better than a shortage; of two surpluses, the header's pointer size wins.
        assert_eq!(sizes(5, Eight), (Four, 4));
        assert_eq!(sizes(9, Eight), (Eight, 8));
        assert_eq!(sizes(9, Four), (Four, 4));
    }

    #[test]
    fn lists_have_as_many_elements_as_there_is_room_for_or_as_were_counted() {
        const TIMES: &str = "Times:TicksList";
        let (values, _, used) = whole(decoded(TIMES, &[1; 25], Eight));
        let time = Value::Int(0x0101_0101_0101_0101);
        let times = Value::Array(vec![time.clone(), time.clone(), time]);
        assert_eq!((values, used), (vec![times], 24));

        let guids = |count: u8, bytes: usize| {
            let payload = [&[count, 0, 0, 0][..], &vec![7; bytes]].concat();
            decoded(GUIDS, &payload, Eight)
        };
        let (values, ..) = whole(guids(2, 32));
        let id = Value::Guid(Guid::from_bytes([7; 16]));
        assert_eq!(values[1], Value::Array(vec![id.clone(), id]));
        assert_eq!(guids(3, 32).error.map(|error| error.kind), Some(PayloadErrorKind::TooShort));

        let (values, _, used) = whole(decoded(TEXTS, b"\x01\x02a\0\0\0b\0\0\0", Eight));
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(values[2], Value::Array(vec![text("a"), text("b")]));
        assert_eq!(used, 10);
    }

    #[test]
    fn addresses_without_any_have_the_stated_size() {
        for stated in [Four, Eight] {
            let (values, size, _) = whole(decoded(LIST, &[], stated));
            assert_eq!((values, size), (vec![Value::Array(Vec::new())], stated));
        }
        let (_, size, used) = whole(decoded(LIST, &[1; 12], Eight));
        assert_eq!((size, used), (Four, 12));
    }

    #[test]
    fn a_text_without_an_end_has_all_units() {
        let (values, ..) = whole(decoded(TEXT, b"a\0b\0", Eight));
        assert_eq!(values, [Value::Text("ab".to_owned())]);
        assert_eq!(
            decoded(TEXT, b"a\0b", Eight).error.map(|error| error.kind),
            Some(PayloadErrorKind::OddLength(3))
        );
    }

    #[test]
    fn a_sid_has_at_most_15_parts_and_its_revision_tells_the_size_of_the_structure_before_it() {
        let sid = |parts: u8| {
            let mut payload = vec![0xAB; 16];
            payload.extend([1, parts, 0, 0, 0, 0, 0, 5]);
            payload.extend(vec![2; 4 * usize::from(parts)]);
            decoded(SID, &payload, Eight)
        };
        let (values, ..) = whole(sid(15));
        assert!(
            matches!(&values[..], [Value::Sid(sid)] if sid.subauthorities.len() == 15),
            "{values:?}"
        );
        assert!(sid(16).error.is_some());

        // With 64-bit pointers, the SID would have revision 2 and no subauthorities.
        let mut payload = vec![0xAB; 8];
        payload.extend([1, 2, 0, 0, 0, 0, 0, 5]);
        payload.extend([2, 0, 0, 0, 9, 0, 0, 0]);
        let (values, size, used) = whole(decoded(SID, &payload, Eight));
        let expected = Value::Sid(Sid { revision: 1, authority: 5, subauthorities: vec![2, 9] });
        assert_eq!((values, size, used), (vec![expected], Four, 24));
    }

    /// Returns true if one interpretation of a payload is clean.
    fn is_clean(fields: &'static str, payload: &[u8]) -> bool {
        let known = layout_of(fields);
        attempt(&known, payload, Four, CodePage::default(), NoSid::FourBytes).clean
    }

    #[test]
    fn a_text_without_an_end_is_not_clean() {
        const ANSI: &str = "Name:Ansi More:Rest";
        const TWO: &str = "First:Utf16 Second:Utf16";
        assert!(is_clean(ANSI, b"a\0"));
        assert!(!is_clean(ANSI, b"a"));
        assert!(is_clean(TEXT, b"a\0\0\0"));
        assert!(!is_clean(TEXT, b"a\0"));
        assert!(!is_clean(TEXT, b"\xFF\xFF\0\0"));
        // Following text does not make the payload clean.
        assert!(!is_clean(TWO, b"\xFF\xFF\0\0b\0\0\0"));
        assert!(is_clean(TWO, b"a\0\0\0b\0\0\0"));
    }

    #[test]
    fn a_list_of_narrow_addresses_has_no_parts_of_wide_ones() {
        let upper = 0xFFFF_FFFF_u32.to_le_bytes();
        let wide = 0xFFFF_8000_0000_1000_u64.to_le_bytes();
        let narrow = 0x1234_5678_u32.to_le_bytes();
        assert!(is_clean(LIST, &narrow));
        assert!(!is_clean(LIST, &wide));
        // The upper half of the field before the list.
        assert!(!is_clean(LIST, &[&upper[..], &wide].concat()));
        assert!(is_clean(LIST, &[&narrow[..], &wide].concat()));
        assert!(is_clean(LIST, &[upper, narrow, narrow].concat()));
    }

    #[test]
    fn four_zero_bytes_stand_for_no_sid_if_both_readings_fit() {
        const MORE: &str = "Sid:Sid More:Rest";
        let mut payload = vec![0; 16];
        payload.extend([1, 0, 0, 0, 0, 0, 0, 5]);
        let (values, _, used) = whole(decoded(MORE, &payload, Eight));
        assert_eq!((&values[0], used), (&Value::Null, 24));
        let sid = |no_sid| {
            let known = layout_of(SID);
            let (values, ..) = whole(attempt(&known, &payload, Eight, CodePage::default(), no_sid));
            matches!(values[..], [Value::Sid(_)])
        };
        assert!(!sid(NoSid::FourBytes));
        assert!(sid(NoSid::Structure));
    }
}
