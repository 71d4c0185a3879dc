//! GUIDs as ETW stores them.

use std::fmt;
use std::str::FromStr;

use crate::show::Escaped;

/// A GUID, kept in the byte order of its structure in memory and on disk: the
/// first three fields are little-endian, the last eight bytes are in order.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Guid([u8; 16]);

impl Guid {
    /// The null GUID.
    pub const NULL: Self = Self([0; 16]);

    /// Takes the 16 bytes of a GUID structure.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes of the GUID structure.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Takes the digits in the order in which a GUID is written, so that
    /// `0x00112233_4455_6677_8899_aabbccddeeff` is
    /// `00112233-4455-6677-8899-aabbccddeeff`.
    #[must_use]
    pub const fn from_u128(digits: u128) -> Self {
        Self(swap_fields(digits.to_be_bytes()))
    }

    /// Whether every bit is zero, which stands for "none".
    #[must_use]
    pub fn is_null(&self) -> bool {
        *self == Self::NULL
    }
}

/// Swaps the byte order of the first three fields, the mixed-endian order for
/// the written one and back.
const fn swap_fields(b: [u8; 16]) -> [u8; 16] {
    [
        b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
        b[14], b[15],
    ]
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in swap_fields(self.0).iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

impl serde::Serialize for Guid {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not a GUID of the form `00112233-4455-6677-8899-aabbccddeeff`,
/// with or without braces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a GUID (00112233-4455-6677-8899-aabbccddeeff, braces allowed)",
    Escaped(text)
)]
pub struct ParseGuidError {
    text: String,
}

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text
            .strip_prefix('{')
            .map_or(Some(text), |rest| rest.strip_suffix('}'));
        bare.and_then(digits)
            .map(Self::from_u128)
            .ok_or_else(|| ParseGuidError {
                text: text.to_owned(),
            })
    }
}

/// The 32 digits of a GUID in its written form.
fn digits(text: &str) -> Option<u128> {
    let groups: Vec<&str> = text.split('-').collect();
    let well_formed = groups.iter().map(|g| g.len()).eq([8, 4, 4, 4, 12])
        && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    well_formed
        .then(|| u128::from_str_radix(&groups.concat(), 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_three_fields_are_little_endian_in_memory() {
        let guid = Guid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        assert_eq!(
            guid.to_bytes(),
            [
                0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd,
                0xee, 0xff
            ]
        );
        assert_eq!(guid.to_string(), "00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn text_form_reads_back_with_and_without_braces() {
        let guid = Guid::from_u128(0xb386_4c38_4273_58c5_545b_8b36_0834_3471);
        assert_eq!(guid.to_string().parse(), Ok(guid));
        assert_eq!("{B3864C38-4273-58C5-545B-8B3608343471}".parse(), Ok(guid));
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [
            "",
            "{}",
            "b3864c38",
            "{b3864c38-4273-58c5-545b-8b3608343471",
            "b3864c38-4273-58c5-545b-8b3608343471}",
            "+3864c38-4273-58c5-545b-8b3608343471",
            "b3864c384273-58c5-545b-8b36-08343471",
            "b3864c38-4273-58c5-545b-8b360834347g",
        ] {
            assert!(text.parse::<Guid>().is_err(), "{text}");
        }
    }
}
