//! GUIDs.

use core::fmt;

/// A GUID as Windows lays it out: three little-endian fields, then eight bytes.
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

/// A text that is no GUID, or a name that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuidError {
    /// The text is not 36 characters long.
    Length(usize),
    /// There is something else than a hyphen, or a hexadecimal digit, at this
    /// place.
    Character(usize),
    /// The name has a character outside ASCII at this place; tools do not agree
    /// on how such a name is hashed.
    NotAscii(usize),
}

impl GuidError {
    /// What is wrong, and what to do.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Length(_) => {
                "a GUID is 36 characters long, without braces: \
                 \"00000000-0000-0000-0000-000000000000\""
            }
            Self::Character(_) => {
                "a GUID has hexadecimal digits, and hyphens after the 8th, 12th, 16th and 20th: \
                 \"00000000-0000-0000-0000-000000000000\""
            }
            Self::NotAscii(_) => {
                "a provider's name that is to be hashed has ASCII characters only; choose another \
                 name, or give the GUID"
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

/// The GUID in a literal, checked when the driver is compiled.
///
/// ```
/// const GROUP: wdk_etw::Guid = wdk_etw::guid!("faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
/// assert_eq!(GROUP.to_string(), "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c");
/// ```
#[macro_export]
macro_rules! guid {
    ($text:expr) => {
        const {
            match $crate::Guid::parse($text) {
                Ok(guid) => guid,
                Err(error) => panic!("{}", error.message()),
            }
        }
    };
}

/// The GUID that belongs to a provider's name by the standard hash, made when
/// the driver is compiled.
///
/// ```
/// const ID: wdk_etw::Guid = wdk_etw::guid_of_name!("MyProvider");
/// assert_eq!(ID.to_string(), "b3864c38-4273-58c5-545b-8b3608343471");
/// ```
#[macro_export]
macro_rules! guid_of_name {
    ($name:expr) => {
        const {
            match $crate::Guid::of_name($name) {
                Ok(guid) => guid,
                Err(error) => panic!("{}", error.message()),
            }
        }
    };
}

impl Guid {
    /// The null GUID: all zero.
    pub const NULL: Self = Self::new(0, 0, 0, [0; 8]);

    /// The GUID with these fields.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn new(data1: u32, data2: u16, data3: u16, data4: [u8; 8]) -> Self {
        Self {
            data1,
            data2,
            data3,
            data4,
        }
    }

    /// The GUID with these 16 bytes, as they lie in memory.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let [
            a0,
            a1,
            a2,
            a3,
            b0,
            b1,
            c0,
            c1,
            d0,
            d1,
            d2,
            d3,
            d4,
            d5,
            d6,
            d7,
        ] = bytes;
        Self::new(
            u32::from_le_bytes([a0, a1, a2, a3]),
            u16::from_le_bytes([b0, b1]),
            u16::from_le_bytes([c0, c1]),
            [d0, d1, d2, d3, d4, d5, d6, d7],
        )
    }

    /// The 16 bytes, as they lie in memory.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        let [a0, a1, a2, a3] = self.data1.to_le_bytes();
        let [b0, b1] = self.data2.to_le_bytes();
        let [c0, c1] = self.data3.to_le_bytes();
        let [d0, d1, d2, d3, d4, d5, d6, d7] = self.data4;
        [
            a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, d2, d3, d4, d5, d6, d7,
        ]
    }

    /// Whether this is the null GUID.
    ///
    /// # IRQL
    ///
    /// Any.
    #[must_use]
    pub const fn is_null(self) -> bool {
        u128::from_le_bytes(self.to_bytes()) == 0
    }

    /// Reads a GUID's text, such as `4f50731a-89cf-4782-b3e0-dce8c90476ba`.
    ///
    /// # IRQL
    ///
    /// Any.
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
        let [a0, a1, a2, a3, b0, b1, c0, c1, d @ ..] = digits.to_be_bytes();
        Ok(Self::new(
            u32::from_be_bytes([a0, a1, a2, a3]),
            u16::from_be_bytes([b0, b1]),
            u16::from_be_bytes([c0, c1]),
            d,
        ))
    }

    /// The GUID that belongs to a provider's name: the standard hash, which does not
    /// tell upper from lower case.
    ///
    /// # IRQL
    ///
    /// Any.
    ///
    /// # Errors
    ///
    /// [`GuidError::NotAscii`].
    pub const fn of_name(name: &str) -> Result<Self, GuidError> {
        /// The name space of ETW providers.
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
        let [
            b0,
            b1,
            b2,
            b3,
            b4,
            b5,
            b6,
            b7,
            b8,
            b9,
            b10,
            b11,
            b12,
            b13,
            b14,
            b15,
            ..,
        ] = hash.finish();
        // The version number of a GUID made from a SHA-1 hash.
        let b7 = b7 & 0x0F | 0x50;
        Ok(Self::from_bytes([
            b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15,
        ]))
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, rest @ ..] = self.data4;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{a:02x}{b:02x}-",
            self.data1, self.data2, self.data3
        )?;
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

/// SHA-1 (FIPS 180-4), for use at compile time: the hash crates have no `const`
/// functions.
struct Sha1 {
    state: [u32; 5],
    block: [u8; 64],
    filled: usize,
    length: u64,
}

impl Sha1 {
    const fn new() -> Self {
        Self {
            state: [
                0x6745_2301,
                0xEFCD_AB89,
                0x98BA_DCFE,
                0x1032_5476,
                0xC3D2_E1F0,
            ],
            block: [0; 64],
            filled: 0,
            length: 0,
        }
    }

    const fn push(&mut self, byte: u8) {
        self.put(byte);
        self.length = self.length.wrapping_add(8);
    }

    #[allow(clippy::indexing_slicing, reason = "`filled` is below 64")]
    const fn put(&mut self, byte: u8) {
        self.block[self.filled] = byte;
        self.filled = self.filled.wrapping_add(1) % 64;
        if self.filled == 0 {
            self.state = Self::compress(self.state, &self.block);
        }
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "indices are below the arrays' lengths"
    )]
    const fn finish(mut self) -> [u8; 20] {
        let length = self.length.to_be_bytes();
        self.put(0x80);
        while self.filled != 56 {
            self.put(0);
        }
        let mut at = 0;
        while at < length.len() {
            self.put(length[at]);
            at = at.wrapping_add(1);
        }
        let mut digest = [0; 20];
        let mut at = 0;
        while at < digest.len() {
            digest[at] = self.state[at / 4].to_be_bytes()[at % 4];
            at = at.wrapping_add(1);
        }
        digest
    }

    #[allow(
        clippy::indexing_slicing,
        clippy::many_single_char_names,
        reason = "indices are below the arrays' lengths; the letters are the standard's"
    )]
    const fn compress(state: [u32; 5], block: &[u8; 64]) -> [u32; 5] {
        let mut w = [0_u32; 80];
        let mut t = 0_usize;
        while t < 80 {
            w[t] = if t < 16 {
                let at = t.wrapping_mul(4);
                u32::from_be_bytes([
                    block[at],
                    block[at.wrapping_add(1)],
                    block[at.wrapping_add(2)],
                    block[at.wrapping_add(3)],
                ])
            } else {
                (w[t.wrapping_sub(3)]
                    ^ w[t.wrapping_sub(8)]
                    ^ w[t.wrapping_sub(14)]
                    ^ w[t.wrapping_sub(16)])
                .rotate_left(1)
            };
            t = t.wrapping_add(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        t = 0;
        while t < 80 {
            let (f, k) = match t / 20 {
                0 => (b & c | !b & d, 0x5A82_7999),
                1 => (b ^ c ^ d, 0x6ED9_EBA1),
                2 => (b & c | b & d | c & d, 0x8F1B_BCDC),
                _ => (b ^ c ^ d, 0xCA62_C1D6),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(f)
                .wrapping_add(e)
                .wrapping_add(k)
                .wrapping_add(w[t]);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
            t = t.wrapping_add(1);
        }
        [
            state[0].wrapping_add(a),
            state[1].wrapping_add(b),
            state[2].wrapping_add(c),
            state[3].wrapping_add(d),
            state[4].wrapping_add(e),
        ]
    }
}

#[cfg(all(test, not(loom)))]
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
            assert_eq!(
                Guid::of_name(name).map(|guid| guid.to_string()),
                Ok(guid.to_string())
            );
        }
    }

    #[test]
    fn names_of_every_length_around_a_hash_block_are_hashed() {
        // 55, 56 and 64 bytes are where the padding changes; each must differ.
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
    }

    #[test]
    fn malformed_text_is_refused_at_its_place() {
        assert_eq!(Guid::parse("{4f50731a}"), Err(GuidError::Length(10)));
        let text = "4f50731a-89cf-4782-b3e0-dce8c90476ba";
        for at in 0..text.len() {
            let mut bad = text.as_bytes().to_vec();
            bad[at] = b'x';
            let bad = String::from_utf8(bad).unwrap();
            assert_eq!(Guid::parse(&bad), Err(GuidError::Character(at)));
        }
        assert_eq!(Guid::of_name("Grüße"), Err(GuidError::NotAscii(2)));
    }
}
