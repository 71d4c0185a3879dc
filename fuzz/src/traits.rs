//! Reads arbitrary bytes as provider traits, with both the stand-in kernel's check and the decoder
//! for files.

use etl_file::decode::{MetadataError, ProviderTraits};
use standin_kernel::fuzzing::check_traits;

use crate::text::sentence;

/// The trait type whose data is the provider group's GUID.
const GROUP: u8 = 1;
const DECODE_GUID: u8 = 2;

/// Checks that the decoder accepts all traits that the kernel accepts, except for known
/// differences. Returns the decoder's traits.
///
/// # Errors
/// Fails with the text of the error if the decoder rejects the traits.
pub fn check(blob: &[u8]) -> Result<ProviderTraits, String> {
    let accepted = check_traits(blob);
    let decoded = ProviderTraits::parse(blob);
    match (&accepted, &decoded) {
        (Ok(accepted), Ok(decoded)) => {
            assert_eq!(accepted.group, decoded.group);
            assert!(encode(decoded).len() <= blob.len());
        }
        // The kernel does not check the size of the decode GUID.
        (Ok(_), Err(MetadataError::TraitSize { trait_type, .. })) => {
            assert_eq!(*trait_type, DECODE_GUID);
        }
        (Ok(_), Err(error)) => {
            panic!("the kernel accepts the traits, but the decoder rejects them: {error}")
        }
        (Err((rule, what)), _) => {
            assert!(rule.number().is_some());
            assert!(!what.is_empty());
        }
    }
    match &decoded {
        Ok(traits) => {
            let size = usize::from(u16::from_le_bytes([blob[0], blob[1]]));
            let own = &blob[..size];
            let again = encode(traits);
            // The decoder keeps the last of repeated traits and replaces invalid UTF-8 in names.
            if again.len() == own.len() {
                assert_eq!(ProviderTraits::parse(&again).as_ref(), Ok(traits));
                assert!(check_traits(&again).is_ok(), "{again:02x?}");
            }
        }
        Err(error) => {
            assert!(offset(error) <= blob.len(), "{error}");
        }
    }
    decoded.map_err(|error| sentence(&error))
}

/// Returns the offset that an error reports, or 0.
#[must_use]
pub const fn offset(error: &MetadataError) -> usize {
    match *error {
        MetadataError::Size { present, .. } => present,
        MetadataError::UnterminatedName { offset }
        | MetadataError::Overrun { offset, .. }
        | MetadataError::TraitSize { offset, .. }
        | MetadataError::StructWithoutCount { offset }
        | MetadataError::TooDeep { offset } => offset,
    }
}

/// Returns the blob of traits.
fn encode(traits: &ProviderTraits) -> Vec<u8> {
    let mut blob = vec![0, 0];
    blob.extend(traits.name.as_bytes());
    blob.push(0);
    let mut put = |kind: u8, data: &[u8]| {
        let size = u16::try_from(3 + data.len()).expect("it was a trait");
        blob.extend(size.to_le_bytes());
        blob.push(kind);
        blob.extend(data);
    };
    for (kind, guid) in [(GROUP, traits.group), (DECODE_GUID, traits.decode_guid)] {
        if let Some(guid) = guid {
            put(kind, &guid.to_bytes());
        }
    }
    for (kind, data) in &traits.others {
        put(*kind, data);
    }
    if let Ok(size) = u16::try_from(blob.len()) {
        blob[..2].copy_from_slice(&size.to_le_bytes());
    }
    blob
}
