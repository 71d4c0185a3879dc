//! Tests traits with a reader that is independent of this crate.

use etl_file::decode::ProviderTraits;
use proptest::prelude::*;
use wdk_etw::{Guid, TraitsBuffer, TraitsError};

proptest! {
    // R-T1, R-T2, R-T5, R-C4
    #[test]
    fn a_blob_is_read_back_or_refused(
        name in "[^\\x00]{0,60}",
        group: Option<[u8; 16]>,
        custom in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..60)), 0..5),
    ) {
        let group = group.map(Guid::from_bytes);
        let parts: Vec<_> = custom.iter().map(|(kind, data)| (*kind, data.as_slice())).collect();
        let heads = 3 * parts.len() + if group.is_some() { 19 } else { 0 };
        let data: usize = parts.iter().map(|(_, data)| data.len()).sum();
        let size = 2 + name.len() + 1 + heads + data;
        match TraitsBuffer::<255>::new(&name, group, &parts) {
            Ok(blob) => {
                prop_assert!(parts.iter().all(|(kind, _)| *kind >= 128));
                let blob = blob.as_bytes();
                prop_assert_eq!(blob.len(), size);
                let read = ProviderTraits::parse(blob).unwrap();
                prop_assert_eq!(read.name, name);
                prop_assert_eq!(
                    read.group.map(etl_file::Guid::to_bytes),
                    group.map(Guid::to_bytes)
                );
                let custom: Vec<_> = read.others.iter().map(|(kind, data)| (*kind, data.as_slice())).collect();
                prop_assert_eq!(custom, parts);
            }
            Err(TraitsError::TooLarge) => prop_assert!(size > 255),
            Err(TraitsError::ReservedType(kind)) => prop_assert!(kind < 128),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
