//! The names and default presentations of field types in manifests.

use etw_wire::{InType, OutType};

/// Returns an encoding's name in manifests. The name is empty for encodings that exist only in
/// `TraceLogging`.
pub fn in_type_name(in_type: InType) -> &'static str {
    in_type.name().unwrap_or_default()
}

/// Returns an encoding's presentation for fields whose presentation the manifest does not specify.
pub fn default_out_type(in_type: InType) -> OutType {
    let possible = in_type.out_types();
    possible.first().copied().unwrap_or(OutType::HexBinary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_manifests_can_name_has_a_default() {
        for in_type in InType::ALL {
            if let Some(name) = in_type.name() {
                assert_eq!(in_type_name(*in_type), name);
                assert!(in_type.out_types().contains(&default_out_type(*in_type)));
            }
        }
    }
}
