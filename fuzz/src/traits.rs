//! Any bytes as provider traits: the stand-in kernel's check, and the decoder of files.

use etl_file::decode::{MetadataError, ProviderTraits};
use etw_testkernel::fuzzing::check_traits;

use crate::text::sentence;

/// Trait types that hold a GUID.
const GROUP: u8 = 1;
const DECODE_GUID: u8 = 2;

/// Checks that what the kernel takes, the decoder takes too, unless they are known to differ.
/// Returns the decoder's traits.
///
/// # Errors
/// The text of the error if the decoder refuses the traits.
pub fn check(blob: &[u8]) -> Result<ProviderTraits, String> {
    let accepted = check_traits(blob);
    let decoded = ProviderTraits::parse(blob);
    match (&accepted, &decoded) {
        (Ok(accepted), Ok(decoded)) => {
            assert_eq!(accepted.group, decoded.group);
            assert!(encode(decoded).len() <= blob.len());
        }
        // The kernel does not look into the decode GUID.
        (Ok(_), Err(MetadataError::TraitSize { trait_type, .. })) => {
            assert_eq!(*trait_type, DECODE_GUID);
        }
        (Ok(_), Err(error)) => panic!("ETW takes the traits, the decoder refuses them: {error}"),
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
            // Of traits that come twice, the last is kept; a name that is no UTF-8 is mended.
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

/// The offset that an error names, or 0.
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

/// The blob of some traits.
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
