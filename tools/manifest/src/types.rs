//! What manifests add to the types of fields: every one has a name and a default presentation.

use etw_wire::{InType, OutType};

/// Returns the name of an encoding in manifests. It is empty for those that only `TraceLogging`
/// has, which no manifest can name.
pub fn in_type_name(in_type: InType) -> &'static str {
    in_type.name().unwrap_or_default()
}

/// Returns the presentation of an encoding for which a manifest gives none.
pub fn default_out_type(in_type: InType) -> OutType {
    let possible = in_type.out_types();
    possible.first().copied().unwrap_or(OutType::HexBinary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_manifests_can_name_has_a_default() {
        for in_type in InType::ALL {
            if let Some(name) = in_type.name() {
                assert_eq!(in_type_name(*in_type), name);
                assert!(in_type.out_types().contains(&default_out_type(*in_type)));
            }
        }
    }
}
