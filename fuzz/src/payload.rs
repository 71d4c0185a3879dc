//! Checks properties of decoded user data that hold for schemas from any source.

use etl_file::PointerSize;
use etl_file::decode::Value;
use etl_file::internals::schema::Schema;

use crate::text::{assert_harmless, assert_sentence};

/// Decodes user data with both pointer sizes, and prints the results. Returns true if both decode
/// completely.
pub fn check(schema: &Schema, user_data: &[u8]) -> bool {
    let mut whole = true;
    for pointer_size in [PointerSize::Four, PointerSize::Eight] {
        let payload = schema.decode(user_data, pointer_size);
        assert!(user_data.ends_with(&payload.leftover));
        let at = user_data.len() - payload.leftover.len();
        match &payload.error {
            None => assert_eq!(payload.fields.len(), schema.fields.len()),
            Some(error) => {
                whole = false;
                assert_sentence(error);
                assert!(payload.fields.len() < schema.fields.len());
                // The error's offset is in the field that could not be decoded.
                assert!((at..=user_data.len()).contains(&error.offset), "{error}");
            }
        }
        for ((name, value), field) in payload.fields.iter().zip(&*schema.fields) {
            assert_eq!(*name, field.name);
            print(value);
        }
    }
    whole
}

/// Prints a value as text and as JSON.
fn print(value: &Value) {
    let text = value.to_string();
    assert_harmless(&text);
    assert!(!text.contains('\n'), "{text:?}");
    let json = serde_json::to_string(value).expect("every value has JSON");
    let read: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_same_shape(value, &read);
}

/// Panics unless the JSON form contains a value with the right type.
pub fn assert_same_shape(value: &Value, json: &serde_json::Value) {
    match value {
        Value::Array(values) => {
            let found = json.as_array().expect("an array");
            assert_eq!(found.len(), values.len());
            for (value, found) in values.iter().zip(found) {
                assert_same_shape(value, found);
            }
        }
        Value::Struct(members) => {
            let found = json.as_object().expect("an object");
            assert_eq!(found.len(), members.len(), "{json}");
        }
        Value::Text(text) => assert_eq!(json.as_str(), Some(text.as_str())),
        Value::Int(number) => assert_eq!(json.as_i64(), Some(*number)),
        Value::UInt(number) => assert_eq!(json.as_u64(), Some(*number)),
        Value::Guid(guid) => assert_eq!(json.as_str().map(str::parse), Some(Ok(*guid))),
        Value::Null => assert!(json.is_null()),
        Value::Bool(truth) => assert_eq!(json.as_bool(), Some(*truth)),
        _ => assert!(!json.is_null()),
    }
}
