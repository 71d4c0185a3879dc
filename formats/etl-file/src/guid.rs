//! Serialization of GUIDs.

use etw_wire::Guid;
use serde::Serializer;

/// Serializes a GUID as its text, for `serialize_with`.
pub fn serialize<S: Serializer>(guid: &Guid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(guid)
}

/// Serializes an optional GUID as its text, for `serialize_with`.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
pub fn serialize_option<S: Serializer>(
    guid: &Option<Guid>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match guid {
        Some(guid) => serialize(guid, serializer),
        None => serializer.serialize_none(),
    }
}
