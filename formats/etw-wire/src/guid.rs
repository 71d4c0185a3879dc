//! GUIDs.

use core::{cmp::Ordering, fmt, str::FromStr};

use crate::sha1::Sha1;

/// A GUID in Windows' layout: three little-endian fields, then eight bytes. [`Guid::new`] takes the
/// fields of the WDK's `GUID`.
///
/// 16 bytes: `data1` at 0, `data2` at 4, `data3` at 6, `data4` at 8.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Guid {
    data1: u32,
    data2: u16,
    data3: u16,
    data4: [u8; 8],
}

const _: () = assert!(size_of::<Guid>() == 16 && align_of::<Guid>() == 4);

/// An error in parsing a GUID or in computing a GUID from a provider's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuidError {
    /// The text has this number of bytes instead of 36.
    Length(usize),
    /// The byte at this index is not the hyphen or hexadecimal digit that is expected there.
    Character(usize),
    /// The name has a non-ASCII character at this index. Tools compute different GUIDs from such
    /// names.
    NotAscii(usize),
}

impl GuidError {
    /// Returns the error's text; unlike `Display`, it can be called in `const` functions.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Length(_) => {
                "expected a GUID of 36 characters, as in 4f50731a-89cf-4782-b3e0-dce8c90476ba"
            }
            Self::Character(_) => {
                "expected hexadecimal digits, with hyphens after the 8th, 12th, 16th and 20th digit, \
                 as in 4f50731a-89cf-4782-b3e0-dce8c90476ba"
            }
            Self::NotAscii(_) => {
                "the provider's name has a non-ASCII character, and tools compute different GUIDs \
                 from such names; choose an ASCII name or set the GUID"
            }
        }
    }
}

impl fmt::Display for GuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for GuidError {}

/// Parses a GUID literal at compile time; an invalid literal does not compile.
///
/// ```
/// const GROUP: etw_wire::Guid = etw_wire::guid!("faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
/// assert_eq!(GROUP.to_string(), "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
/// ```
#[macro_export]
macro_rules! guid {
    ($text:expr) => {
        const {
            match $crate::Guid::parse($text) {
                ::core::result::Result::Ok(__wdk_etw_guid) => __wdk_etw_guid,
                ::core::result::Result::Err(__wdk_etw_error) => {
                    ::core::panic!("{}", __wdk_etw_error.message())
                }
            }
        }
    };
}

/// Computes a provider's GUID from its name at compile time, like [`Guid::of_name`].
///
/// ```
/// const ID: etw_wire::Guid = etw_wire::guid_of_name!("MyProvider");
/// assert_eq!(ID.to_string(), "b3864c38-4273-58c5-545b-8b3608343471");
/// ```
#[macro_export]
macro_rules! guid_of_name {
    ($name:expr) => {
        const {
            match $crate::Guid::of_name($name) {
                ::core::result::Result::Ok(__wdk_etw_guid) => __wdk_etw_guid,
                ::core::result::Result::Err(__wdk_etw_error) => {
                    ::core::panic!("{}", __wdk_etw_error.message())
                }
            }
        }
    };
}

impl Guid {
    /// The null GUID, whose bytes are all zero.
    pub const NULL: Self = Self::new(0, 0, 0, [0; 8]);

    /// Returns the GUID with these four fields.
    #[must_use]
    pub const fn new(data1: u32, data2: u16, data3: u16, data4: [u8; 8]) -> Self {
        Self { data1, data2, data3, data4 }
    }

    /// Returns the GUID with these 16 bytes in memory order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, d2, d3, d4, d5, d6, d7] = bytes;
        Self::new(
            u32::from_le_bytes([a0, a1, a2, a3]),
            u16::from_le_bytes([b0, b1]),
            u16::from_le_bytes([c0, c1]),
            [d0, d1, d2, d3, d4, d5, d6, d7],
        )
    }

    /// Returns the 16 bytes in memory order.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        let [a0, a1, a2, a3] = self.data1.to_le_bytes();
        let [b0, b1] = self.data2.to_le_bytes();
        let [c0, c1] = self.data3.to_le_bytes();
        let [d0, d1, d2, d3, d4, d5, d6, d7] = self.data4;
        [a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, d2, d3, d4, d5, d6, d7]
    }

    /// Returns whether this is the null GUID.
    #[must_use]
    pub const fn is_null(self) -> bool {
        u128::from_le_bytes(self.to_bytes()) == 0
    }

    /// Returns the GUID with these digits, in the order in which a GUID is written:
    /// `0x00112233_4455_6677_8899_aabbccddeeff` is `00112233-4455-6677-8899-aabbccddeeff`.
    #[must_use]
    pub const fn from_u128(digits: u128) -> Self {
        let [a0, a1, a2, a3, b0, b1, c0, c1, d @ ..] = digits.to_be_bytes();
        Self::new(
            u32::from_be_bytes([a0, a1, a2, a3]),
            u16::from_be_bytes([b0, b1]),
            u16::from_be_bytes([c0, c1]),
            d,
        )
    }

    /// Parses a GUID without braces, such as `4f50731a-89cf-4782-b3e0-dce8c90476ba`.
    ///
    /// [`FromStr`] also accepts braces.
    ///
    /// # Errors
    ///
    /// [`GuidError::Length`] or [`GuidError::Character`].
    pub const fn parse(text: &str) -> Result<Self, GuidError> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return Err(GuidError::Length(bytes.len()));
        }
        let mut digits: u128 = 0;
        let mut rest = bytes;
        let mut at = 0;
        while let [byte, after @ ..] = rest {
            let is_hyphen = matches!(at, 8 | 13 | 18 | 23);
            let digit = match *byte {
                b'-' if is_hyphen => None,
                _ if is_hyphen => return Err(GuidError::Character(at)),
                digit @ b'0'..=b'9' => Some(digit.wrapping_sub(b'0')),
                digit @ b'a'..=b'f' => Some(digit.wrapping_sub(b'a' - 10)),
                digit @ b'A'..=b'F' => Some(digit.wrapping_sub(b'A' - 10)),
                _ => return Err(GuidError::Character(at)),
            };
            if let Some(digit) = digit {
                digits = digits << 4 | digit as u128;
            }
            rest = after;
            at = at.wrapping_add(1);
        }
        Ok(Self::from_u128(digits))
    }

    /// Hashes a provider's name to its GUID.
    ///
    /// `TraceLogging`, .NET's `EventSource` and controllers that accept `*Name` use the same hash;
    /// it ignores case.
    ///
    /// # Errors
    ///
    /// [`GuidError::NotAscii`].
    pub const fn of_name(name: &str) -> Result<Self, GuidError> {
        /// The hash's namespace for ETW providers.
        const NAMESPACE: [u8; 16] = [
            0x48, 0x2C, 0x2D, 0xB2, 0xC3, 0x90, 0x47, 0xC8, 0x87, 0xF8, 0x1A, 0x15, 0xBF, 0xC1,
            0x30, 0xFB,
        ];
        let mut hash = Sha1::new();
        let mut rest: &[u8] = &NAMESPACE;
        while let [byte, after @ ..] = rest {
            hash.push(*byte);
            rest = after;
        }
        let mut rest = name.as_bytes();
        let mut at = 0;
        while let [byte, after @ ..] = rest {
            if !byte.is_ascii() {
                return Err(GuidError::NotAscii(at));
            }
            // UTF-16, big-endian.
            hash.push(0);
            hash.push(byte.to_ascii_uppercase());
            rest = after;
            at = at.wrapping_add(1);
        }
        let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, ..] =
            hash.finish();
        // The version of a GUID that is made from a SHA-1 hash.
        let b7 = b7 & 0x0F | 0x50;
        Ok(Self::from_bytes([b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15]))
    }
}

impl FromStr for Guid {
    type Err = GuidError;

    /// Parses a GUID, with or without braces.
    fn from_str(text: &str) -> Result<Self, GuidError> {
        let bare = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        Self::parse(bare.unwrap_or(text))
    }
}

/// Orders GUIDs by their bytes in memory, not by their written digits.
impl Ord for Guid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.to_bytes().cmp(&other.to_bytes())
    }
}

impl PartialOrd for Guid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, rest @ ..] = self.data4;
        write!(f, "{:08x}-{:04x}-{:04x}-{a:02x}{b:02x}-", self.data1, self.data2, self.data3)?;
        for byte in rest {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::{String, ToString};

    use super::*;

    // R-O2
    #[test]
    fn a_name_has_the_guid_of_the_standard_hash() {
        for (name, guid) in [
            ("MyProvider", "b3864c38-4273-58c5-545b-8b3608343471"),
            ("Contoso.Sample", "29d5a000-45bd-558a-9252-950010cc7465"),
            ("CONTOSO.sample", "29d5a000-45bd-558a-9252-950010cc7465"),
            ("Contoso.Group", "4aa09f40-b4fd-5f91-9ca5-dfddf6a31cea"),
            ("", "4445ee6c-fd5a-5b15-047a-5866ffa76aa6"),
        ] {
            assert_eq!(Guid::of_name(name).map(|guid| guid.to_string()), Ok(guid.to_string()));
        }
    }

    #[test]
    fn names_of_every_length_around_a_hash_block_are_hashed() {
        // The padding changes at 55, 56 and 64 bytes; all hashes must differ.
        let mut seen = std::collections::HashSet::new();
        for length in 0..80 {
            let name: String = "x".repeat(length);
            assert!(seen.insert(Guid::of_name(&name).unwrap().to_bytes()));
        }
    }

    #[test]
    fn text_and_bytes_round_trip() {
        let text = "4f50731a-89cf-4782-b3e0-dce8c90476ba";
        let guid = Guid::parse(text).unwrap();
        assert_eq!(guid.to_string(), text);
        assert_eq!(Guid::from_bytes(guid.to_bytes()), guid);
        assert_eq!(guid.to_bytes()[..4], [0x1a, 0x73, 0x50, 0x4f]);
        assert_eq!(Guid::parse(&text.to_uppercase()), Ok(guid));
        assert_eq!(Guid::from_u128(0x4f50_731a_89cf_4782_b3e0_dce8_c904_76ba), guid);
        for accepted in [text, "{4F50731A-89CF-4782-B3E0-DCE8C90476BA}"] {
            assert_eq!(accepted.parse(), Ok(guid));
        }
    }

    #[test]
    fn malformed_text_is_refused_at_its_index() {
        assert_eq!(Guid::parse("{4f50731a}"), Err(GuidError::Length(10)));
        let text = "4f50731a-89cf-4782-b3e0-dce8c90476ba";
        for at in 0..text.len() {
            let mut bad = text.as_bytes().to_vec();
            bad[at] = b'x';
            let bad = String::from_utf8(bad).unwrap();
            assert_eq!(Guid::parse(&bad), Err(GuidError::Character(at)));
            // A digit instead of a hyphen, and a hyphen instead of a digit.
            let is_hyphen = text.as_bytes()[at] == b'-';
            let mut bad = text.as_bytes().to_vec();
            bad[at] = if is_hyphen { b'0' } else { b'-' };
            let bad = String::from_utf8(bad).unwrap();
            assert_eq!(Guid::parse(&bad), Err(GuidError::Character(at)));
        }
        assert_eq!(Guid::of_name("Grüße"), Err(GuidError::NotAscii(2)));
        for half in
            ["{4f50731a-89cf-4782-b3e0-dce8c90476ba", "4f50731a-89cf-4782-b3e0-dce8c90476ba}"]
        {
            assert_eq!(half.parse::<Guid>(), Err(GuidError::Length(37)));
        }
        for (error, text) in [
            (GuidError::Length(1), "expected a GUID of 36 characters, as in "),
            (GuidError::Character(1), "expected hexadecimal digits, with hyphens after "),
            (GuidError::NotAscii(1), "the provider's name has a non-ASCII character, "),
        ] {
            assert!(error.to_string().starts_with(text), "{error}");
        }
    }

    #[test]
    fn guids_are_ordered_by_their_bytes() {
        // The first byte in memory is written as the fourth.
        let low = Guid::from_u128(0xff00_0001 << 96);
        let high = Guid::from_u128(0x0000_0002 << 96);
        assert!(low < high);
        assert_eq!(low.cmp(&low), Ordering::Equal);
        assert_eq!(std::format!("{low:?}"), low.to_string());
        assert!(Guid::NULL.is_null() && !low.is_null());
    }
}
