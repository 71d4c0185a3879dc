//! Provider traits: a provider's name, its group, and traits of its own.

use core::fmt;

use crate::Guid;

/// A blob of traits may have this many bytes: the blob travels with every event.
const MOST_BYTES: usize = 255;
/// The type of the trait that names a provider group (`EtwProviderTraitTypeGroup`).
const GROUP: u8 = 1;
/// The first trait type that is not Microsoft's.
const FIRST_CUSTOM: u8 = 128;

/// A provider's traits, as `EtwSetInformation` takes them.
///
/// The blob: its size (16 bits, itself included), the provider's name in UTF-8 with
/// a NUL, then traits, each with its size (16 bits, itself included), a type and its
/// data. It lies in the image's read-only data, which is never paged out.
#[derive(Clone, Copy)]
pub struct Traits {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

/// Why there is no such blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraitsError {
    /// The name has a NUL in it.
    NulInName,
    /// A trait's type is Microsoft's.
    ReservedType(u8),
    /// The blob would have more than 255 bytes.
    TooLarge,
}

impl TraitsError {
    /// What is wrong, and what to do.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::NulInName => "a provider's name ends at its first NUL; remove the NUL",
            Self::ReservedType(_) => {
                "a custom trait's type is one of 128 to 255; lower ones are Microsoft's, and the \
                 group has a parameter of its own"
            }
            Self::TooLarge => {
                "a provider's traits have 255 bytes at most, since they travel with every event; \
                 shorten the name or the custom traits"
            }
        }
    }
}

impl fmt::Display for TraitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl core::error::Error for TraitsError {}

/// A provider's traits, checked when the driver is compiled: the name, then
/// optionally `group = "…"` and custom traits as `type => data`.
///
/// ```
/// use wdk_etw::{Traits, traits};
///
/// static TRAITS: Traits = traits!(
///     "Contoso.Sample",
///     group = "faaf2f61-9b26-4591-9bb1-b9b8bae2d34c",
///     128 => [1, 2, 3, 4],
/// );
/// assert_eq!(TRAITS.as_bytes().len(), 43);
/// ```
#[macro_export]
macro_rules! traits {
    ($name:expr $(, group = $group:expr)? $(, $kind:literal => $data:expr)* $(,)?) => {
        const {
            #[allow(unused_mut, unused_assignments)]
            let mut group = None;
            $(group = Some($crate::guid!($group));)?
            match $crate::Traits::new($name, group, &[$(($kind, &$data)),*]) {
                Ok(traits) => traits,
                Err(error) => panic!("{}", error.message()),
            }
        }
    };
}

impl Traits {
    /// The traits of a provider with this name, in this group, with custom traits of
    /// the types 128 to 255. IRQL: any.
    ///
    /// # Errors
    ///
    /// See [`TraitsError`].
    pub const fn new(
        name: &str,
        group: Option<Guid>,
        custom: &[(u8, &[u8])],
    ) -> Result<Self, TraitsError> {
        let mut blob = Self {
            bytes: [0; MOST_BYTES],
            length: 2,
        };
        let mut rest = name.as_bytes();
        while let [byte, after @ ..] = rest {
            if *byte == 0 {
                return Err(TraitsError::NulInName);
            }
            rest = after;
        }
        let mut appended = blob.append(name.as_bytes());
        if appended.is_ok() {
            appended = blob.append(&[0]);
        }
        if let (Ok(()), Some(group)) = (appended, group) {
            appended = blob.append_trait(GROUP, &group.to_bytes());
        }
        let mut rest = custom;
        while let (Ok(()), [(kind, data), after @ ..]) = (appended, rest) {
            appended = if *kind < FIRST_CUSTOM {
                Err(TraitsError::ReservedType(*kind))
            } else {
                blob.append_trait(*kind, data)
            };
            rest = after;
        }
        if let Err(error) = appended {
            return Err(error);
        }
        let [low, high, ..] = blob.length.to_le_bytes();
        let [size_low, size_high, ..] = &mut blob.bytes;
        *size_low = low;
        *size_high = high;
        Ok(blob)
    }

    const fn append_trait(&mut self, kind: u8, data: &[u8]) -> Result<(), TraitsError> {
        // More does not fit in any case, so the sum cannot wrap.
        if data.len() > MOST_BYTES {
            return Err(TraitsError::TooLarge);
        }
        let [low, high, ..] = data.len().wrapping_add(3).to_le_bytes();
        match self.append(&[low, high, kind]) {
            Ok(()) => self.append(data),
            Err(error) => Err(error),
        }
    }

    #[allow(clippy::indexing_slicing, reason = "the index is checked")]
    const fn append(&mut self, data: &[u8]) -> Result<(), TraitsError> {
        let mut rest = data;
        while let [byte, after @ ..] = rest {
            if self.length >= MOST_BYTES {
                return Err(TraitsError::TooLarge);
            }
            self.bytes[self.length] = *byte;
            self.length = self.length.wrapping_add(1);
            rest = after;
        }
        Ok(())
    }

    /// The blob. IRQL: any.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        let (blob, _) = self.bytes.split_at(if self.length < MOST_BYTES {
            self.length
        } else {
            MOST_BYTES
        });
        blob
    }
}

impl fmt::Debug for Traits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traits").field(&self.as_bytes()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;

    // R-T1, R-T2, R-T5, R-C4
    #[test]
    fn the_worked_example_comes_out() {
        let group = Guid::parse("faaf2f61-9b26-4591-9bb1-b9b8bae2d34c").unwrap();
        let traits = Traits::new("Contoso.Sample", Some(group), &[(128, &[1, 2, 3, 4])]).unwrap();
        let mut expected = std::vec::Vec::from(*b"\x2B\x00Contoso.Sample\x00\x13\x00\x01");
        expected.extend(group.to_bytes());
        expected.extend([7, 0, 0x80, 1, 2, 3, 4]);
        assert_eq!(traits.as_bytes(), expected);
        let name_only = Traits::new("Contoso.Sample", None, &[]).unwrap();
        assert_eq!(name_only.as_bytes(), b"\x11\x00Contoso.Sample\x00");
    }

    // R-C4
    #[test]
    fn the_largest_blob_has_255_bytes() {
        let name = "n".repeat(252);
        assert_eq!(Traits::new(&name, None, &[]).unwrap().as_bytes().len(), 255);
        let name = "n".repeat(253);
        assert_eq!(
            Traits::new(&name, None, &[]).err(),
            Some(TraitsError::TooLarge)
        );
        let data = [0; 300];
        assert_eq!(
            Traits::new("", None, &[(128, &data)]).err(),
            Some(TraitsError::TooLarge)
        );
    }

    // R-T5
    #[test]
    fn microsofts_types_are_refused() {
        for kind in 0..128 {
            assert_eq!(
                Traits::new("x", None, &[(kind, b"")]).err(),
                Some(TraitsError::ReservedType(kind))
            );
        }
        assert!(Traits::new("x", None, &[(128, b""), (255, b"a")]).is_ok());
        assert_eq!(
            Traits::new("a\0b", None, &[]).err(),
            Some(TraitsError::NulInName)
        );
    }
}
