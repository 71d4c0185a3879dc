//! Provider traits: a provider's name, its group and its custom traits.
//!
//! The stand-in kernel checks traits with its own code (`services/etw/traits.rs`): tests compare
//! the two, so neither uses the other.

use core::{ffi::CStr, fmt};

use etw_wire::limits::{MAX_TRAITS_SIZE, MIN_CUSTOM_TRAIT_TYPE, TRAIT_TYPE_GROUP};

use crate::Guid;

/// A provider's traits in a buffer of `N` bytes, as `EtwSetInformation` takes them.
///
/// The blob contains its size (16 bits, including the size itself), the provider's name in UTF-8
/// with a NUL, and the traits. Each trait has its size (16 bits, including the size itself), its
/// type (8 bits) and its data.
///
/// [`Traits`] are created at compile time and are part of the image's read-only data. Create traits
/// that are known only at run time in a local variable, for
/// [`Provider::register_with`](crate::Provider::register_with):
///
/// ```
/// use wdk_etw::{TraitsBuffer, TraitsError};
///
/// let mut traits = TraitsBuffer::<64>::named("Contoso.Sample")?;
/// traits.push(128, b"unit 7")?;
/// assert_eq!(traits.as_bytes().len(), 26);
/// assert_eq!(traits.push(2, b""), Err(TraitsError::ReservedType(2)));
/// # Ok::<(), TraitsError>(())
/// ```
#[derive(Clone, Copy)]
pub struct TraitsBuffer<const N: usize> {
    bytes: [u8; N],
    length: usize,
    has_group: bool,
}

/// A provider's traits as a constant, which [`traits!`](crate::traits!) creates.
pub type Traits = TraitsBuffer<MAX_TRAITS_SIZE>;

/// The error of creating or extending traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraitsError {
    /// The provider's name contains a NUL.
    NulInName,
    /// A custom trait has this type, which is reserved for Microsoft.
    ReservedType(u8),
    /// The traits do not fit in 255 bytes or in their buffer.
    TooLarge,
    /// The provider is already in a group.
    SecondGroup,
}

impl TraitsError {
    /// Returns the error message, also in `const` functions.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::NulInName => "the provider's name contains a NUL; remove it",
            Self::ReservedType(_) => {
                "the type of a custom trait must be 128 to 255: lower types are reserved for \
                 Microsoft; set the group with its own parameter"
            }
            Self::TooLarge => {
                "the provider's traits do not fit in 255 bytes, the limit of ETW, or in their \
                 buffer; shorten the name or the custom traits"
            }
            Self::SecondGroup => {
                "the provider is already in a group and can be in only one; remove the other group"
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

/// Creates a provider's traits at compile time. The arguments are the name, and optionally `group =
/// "…"` and custom traits as `type => data`.
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
            let mut __wdk_etw_group = ::core::option::Option::None;
            $(__wdk_etw_group = ::core::option::Option::Some($crate::guid!($group));)?
            match $crate::Traits::new($name, __wdk_etw_group, &[$(($kind, &$data)),*]) {
                ::core::result::Result::Ok(__wdk_etw_traits) => __wdk_etw_traits,
                ::core::result::Result::Err(__wdk_etw_error) => {
                    ::core::panic!("{}", __wdk_etw_error.message())
                }
            }
        }
    };
}

impl<const N: usize> TraitsBuffer<N> {
    /// Creates the traits of a provider with this name, this group, and custom traits with types
    /// from 128 to 255.
    ///
    /// # Errors
    ///
    /// Returns a [`TraitsError`] if the name contains a NUL, a trait type is below 128, or the
    /// traits do not fit.
    pub const fn new(
        name: &str,
        group: Option<Guid>,
        custom: &[(u8, &[u8])],
    ) -> Result<Self, TraitsError> {
        let mut blob = match Self::named(name) {
            Ok(blob) => blob,
            Err(error) => return Err(error),
        };
        let mut pushed = match group {
            Some(group) => blob.join(group),
            None => Ok(()),
        };
        let mut rest = custom;
        while let (Ok(()), [(kind, data), after @ ..]) = (pushed, rest) {
            pushed = blob.push(*kind, data);
            rest = after;
        }
        match pushed {
            Ok(()) => Ok(blob),
            Err(error) => Err(error),
        }
    }

    /// Creates the traits of a provider with this name, without a group or custom traits.
    ///
    /// # Errors
    ///
    /// Returns [`TraitsError::NulInName`] or [`TraitsError::TooLarge`].
    pub const fn named(name: &str) -> Result<Self, TraitsError> {
        const {
            assert!(N >= 3 && N <= MAX_TRAITS_SIZE, "a buffer for traits must have 3 to 255 bytes");
        }
        let mut rest = name.as_bytes();
        while let [byte, after @ ..] = rest {
            if *byte == 0 {
                return Err(TraitsError::NulInName);
            }
            rest = after;
        }
        let mut blob = Self { bytes: [0; N], length: 2, has_group: false };
        match blob.append(&[name.as_bytes(), &[0]]) {
            Ok(()) => Ok(blob),
            Err(error) => Err(error),
        }
    }

    /// Adds the provider to a group.
    ///
    /// # Errors
    ///
    /// Returns [`TraitsError::SecondGroup`] or [`TraitsError::TooLarge`], and leaves the traits
    /// unchanged.
    pub const fn join(&mut self, group: Guid) -> Result<(), TraitsError> {
        if self.has_group {
            return Err(TraitsError::SecondGroup);
        }
        let appended = self.append_trait(TRAIT_TYPE_GROUP, &group.to_bytes());
        self.has_group = appended.is_ok();
        appended
    }

    /// Adds a custom trait with a type from 128 to 255.
    ///
    /// # Errors
    ///
    /// Returns [`TraitsError::ReservedType`] or [`TraitsError::TooLarge`], and leaves the traits
    /// unchanged.
    pub const fn push(&mut self, kind: u8, data: &[u8]) -> Result<(), TraitsError> {
        if kind < MIN_CUSTOM_TRAIT_TYPE {
            return Err(TraitsError::ReservedType(kind));
        }
        self.append_trait(kind, data)
    }

    const fn append_trait(&mut self, kind: u8, data: &[u8]) -> Result<(), TraitsError> {
        // This size is wrong only for data that does not fit, which `append` refuses.
        let [low, high, ..] = data.len().wrapping_add(3).to_le_bytes();
        self.append(&[&[low, high, kind], data])
    }

    /// Appends all parts or none, and updates the blob's size.
    const fn append(&mut self, parts: &[&[u8]]) -> Result<(), TraitsError> {
        let mut length = self.length;
        let mut rest = parts;
        while let [part, after @ ..] = rest {
            length = length.saturating_add(part.len());
            rest = after;
        }
        let Some((_, mut room)) = self.bytes.as_mut_slice().split_at_mut_checked(self.length)
        else {
            return Err(TraitsError::TooLarge);
        };
        if length > N {
            return Err(TraitsError::TooLarge);
        }
        let mut rest = parts;
        while let [part, after @ ..] = rest {
            let mut bytes = *part;
            while let [byte, others @ ..] = bytes {
                if let [place, left @ ..] = room {
                    *place = *byte;
                    room = left;
                }
                bytes = others;
            }
            rest = after;
        }
        self.length = length;
        let [low, high, ..] = length.to_le_bytes();
        if let [size_low, size_high, ..] = self.bytes.as_mut_slice() {
            *size_low = low;
            *size_high = high;
        }
        Ok(())
    }

    /// Returns the provider's name.
    pub(crate) fn name(&self) -> &str {
        let name = self.as_bytes().get(2..).and_then(|rest| CStr::from_bytes_until_nul(rest).ok());
        name.unwrap_or_default().to_str().unwrap_or_default()
    }

    /// Returns the blob.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        let (blob, _) = self.bytes.split_at(if self.length < N { self.length } else { N });
        blob
    }
}

impl<const N: usize> fmt::Debug for TraitsBuffer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traits").field(&self.as_bytes()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::*;

    // R-T1, R-T2, R-T5, R-C4
    #[test]
    fn the_worked_example_has_the_documented_bytes() {
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
        assert_eq!(Traits::new(&name, None, &[]).err(), Some(TraitsError::TooLarge));
        let data = [0; 300];
        assert_eq!(Traits::new("", None, &[(128, &data)]).err(), Some(TraitsError::TooLarge));
    }

    // R-C4
    #[test]
    fn a_refused_trait_leaves_a_buffer_as_it_was() {
        let mut traits = TraitsBuffer::<40>::named("Contoso.Sample").unwrap();
        traits.join(Guid::new(1, 2, 3, [4; 8])).unwrap();
        let before = traits.as_bytes().to_vec();
        assert_eq!(before.len(), 36);
        let refused = [
            (traits.join(Guid::new(1, 2, 3, [4; 8])), TraitsError::SecondGroup),
            (traits.push(127, b""), TraitsError::ReservedType(127)),
            (traits.push(128, b"ab"), TraitsError::TooLarge),
        ];
        for (result, error) in refused {
            assert_eq!(result, Err(error));
        }
        assert_eq!(traits.as_bytes(), before);
        traits.push(128, b"a").unwrap();
        assert_eq!(traits.as_bytes()[..2], [40, 0]);
        assert_eq!(traits.as_bytes()[36..], [4, 0, 128, b'a']);
        assert_eq!(TraitsBuffer::<16>::named("Contoso.Sample").err(), Some(TraitsError::TooLarge));
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
        assert_eq!(Traits::new("a\0b", None, &[]).err(), Some(TraitsError::NulInName));
        for (error, text) in [
            (TraitsError::NulInName, "the provider's name"),
            (TraitsError::ReservedType(1), "the type of a custom trait must be 128 to 255"),
            (TraitsError::TooLarge, "the provider's traits do not fit in 255 bytes"),
            (TraitsError::SecondGroup, "the provider is already in a group"),
        ] {
            assert!(error.to_string().starts_with(text), "{error}");
        }
        let traits = Traits::new("x", None, &[]).unwrap();
        assert_eq!(std::format!("{traits:?}"), "Traits([4, 0, 120, 0])");
    }
}
