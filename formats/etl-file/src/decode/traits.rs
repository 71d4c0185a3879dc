//! Provider traits, extended item type 12.

use etw_wire::Guid;

use super::error::MetadataError;
use crate::cursor::Cursor;

/// The data about the provider that each of its events contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderTraits {
    /// The provider's name.
    pub name: String,
    /// The provider's group (trait type 1).
    pub group: Option<Guid>,
    /// The GUID under which the provider's manifest is registered (trait type 2).
    pub decode_guid: Option<Guid>,
    /// Other traits: their types and data.
    pub others: Vec<(u8, Vec<u8>)>,
}

/// The type of the trait that contains the provider group.
const TYPE_GROUP: u8 = 1;
/// The type of the trait that contains the decode GUID.
const TYPE_DECODE_GUID: u8 = 2;
/// The size of the two fields before a trait's data: its size and type.
const TRAIT_HEADER: usize = 3;

impl ProviderTraits {
    /// Reads a traits blob: size, name, traits.
    ///
    /// # Errors
    /// Fails with [`MetadataError`] if the blob or one of its parts is damaged.
    pub fn parse(blob: &[u8]) -> Result<Self, MetadataError> {
        let (traits, error) = Self::read(blob);
        error.map_or(Ok(traits), Err)
    }

    /// Reads a traits blob up to the first error, and returns the parts read and the error.
    pub(super) fn read(blob: &[u8]) -> (Self, Option<MetadataError>) {
        let mut traits = Self::default();
        let (blob, error) = match super::error::sized_block(blob) {
            Ok(block) => (block, None),
            Err(error) => (blob, Some(error)),
        };
        let read = traits.read_parts(blob);
        (traits, error.or_else(|| read.err()))
    }

    fn read_parts(&mut self, blob: &[u8]) -> Result<(), MetadataError> {
        let mut c = Cursor::new(blob);
        c.take(2);
        let name = c.until_nul().ok_or(MetadataError::UnterminatedName { offset: 2 })?;
        self.name = String::from_utf8_lossy(name).into_owned();
        while !c.is_empty() {
            let offset = c.position();
            let overrun = MetadataError::Overrun { offset, what: "trait" };
            let size = c.u16().ok_or(overrun)?;
            let trait_type = c.u8().ok_or(overrun)?;
            let data = usize::from(size)
                .checked_sub(TRAIT_HEADER)
                .and_then(|length| c.take(length))
                .ok_or(overrun)?;
            let guid = || {
                data.try_into().map(Guid::from_bytes).map_err(|_| MetadataError::TraitSize {
                    offset,
                    trait_type,
                    size,
                })
            };
            match trait_type {
                TYPE_GROUP => self.group = Some(guid()?),
                TYPE_DECODE_GUID => self.decode_guid = Some(guid()?),
                _ => self.others.push((trait_type, data.to_vec())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name, a group and a custom trait of type 128.
    const BLOB: [u8; 43] = *b"\x2B\0Contoso.Sample\0\
        \x13\0\x01\x61\x2F\xAF\xFA\x26\x9B\x91\x45\x9B\xB1\xB9\xB8\xBA\xE2\xD3\x4C\
        \x07\0\x80\x01\x02\x03\x04";

    // R-T1 R-T2 R-T5
    #[test]
    fn name_group_and_custom_traits_are_read() {
        let traits = ProviderTraits::parse(&BLOB).unwrap();
        assert_eq!(traits.name, "Contoso.Sample");
        let group = Guid::from_u128(0xfaaf_2f61_9b26_4591_9bb1_b9b8_bae2_d34c);
        assert_eq!(traits.group, Some(group));
        assert_eq!(traits.decode_guid, None);
        assert_eq!(traits.others, [(128, vec![1, 2, 3, 4])]);
    }

    #[test]
    fn every_cut_of_a_blob_is_refused() {
        for length in 0..BLOB.len() {
            let cut = BLOB.get(..length).unwrap();
            assert!(ProviderTraits::parse(cut).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_trait_that_extends_past_the_end_is_located() {
        let blob = b"\x08\0A\0\x05\0\x80x";
        assert_eq!(
            ProviderTraits::parse(blob),
            Err(MetadataError::Overrun { offset: 4, what: "trait" })
        );
    }

    #[test]
    fn group_of_another_size_is_refused() {
        let blob = b"\x08\0A\0\x04\0\x01x";
        assert_eq!(
            ProviderTraits::parse(blob),
            Err(MetadataError::TraitSize { offset: 4, trait_type: 1, size: 4 })
        );
    }
}
