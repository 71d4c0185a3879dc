//! Hides the addresses of network adapters, which could identify a machine, in events and records.

use std::borrow::Cow;

use etw_wire::Guid;

use crate::addresses::{self, Address, Addresses};
use crate::code_page::CodePage;
use crate::decode::kernel::{self, Classes};
use crate::decode::schemas::{METADATA_CLASS, is_chunk};
use crate::decode::{Decoded, Fields, Value};
use crate::read::{EventRef, RecordRef};

/// The ends of the names of fields that contain an adapter's address as bytes or text.
const NAMES: [&str; 7] = [
    "physaddress", "physicaladdress", "physicaladdr", "macaddress", "macaddr", "hardwareaddress",
    "hwaddress",
];
/// The starts of the names of fields that contain a device's instance id.
const DEVICE_NAMES: [&str; 4] = ["deviceid", "deviceinstance", "instanceid", "pdoname"];

/// The offset of the activity id in an event record, the first part of its header that can contain
/// an address.
const ACTIVITY: usize = 64;

/// Microsoft-Windows-NDIS-PacketCapture and Microsoft-Windows-PktMon, with the ids of their events
/// that contain packets.
const CAPTURES: [(Guid, &[u16]); 2] = [
    (Guid::from_u128(0x2ed6_006e_4729_4609_b423_3ee7_bcd6_78ef), &[1001, 1003]),
    (Guid::from_u128(0x4d4f_80d9_c8bd_4d73_bb5b_19c9_0402_c5ac), &[160, 170]),
];

/// Returns true if an event contains a packet, with the addresses of its sender and receiver.
pub fn is_packet(event: &EventRef<'_>) -> bool {
    let known = CAPTURES.iter().find(|(provider, _)| *provider == event.provider);
    known.is_some_and(|(_, ids)| ids.contains(&event.descriptor.id))
}

/// Returns the addresses in a record that describes the machine's adapters and devices.
pub fn found(record: &RecordRef<'_>) -> Vec<Address> {
    if !kernel::can_have_hardware_addresses(record) {
        return Vec::new();
    }
    let mut found = kernel::hardware_addresses(record);
    let decoded = record.event().map_or_else(
        || kernel::decode_record(record),
        |event| kernel::decode_event(&event, &Classes::default(), CodePage::default()),
    );
    if let Some(decoded) = decoded {
        in_fields(&decoded.fields, &mut found);
    }
    found
}

/// Hides addresses in a decoded record: those of the trace, and those that its own fields contain.
/// Returns the record's bytes without them, or `None` if it has none.
pub fn hide(known: &Addresses, record: &RecordRef<'_>, decoded: &mut Decoded) -> Option<Vec<u8>> {
    let descriptor = &decoded.descriptor;
    // Schemas, and the GUIDs in them, describe other events.
    if decoded.provider == METADATA_CLASS
        || is_chunk(descriptor.id, descriptor.opcode, descriptor.task)
    {
        return None;
    }
    let mut own = Vec::new();
    in_fields(&decoded.fields, &mut own);
    let by_layout = kernel::hide_hardware_addresses(record, decoded);
    own.retain(|address| !known.contains(*address));
    let mut addresses = Cow::Borrowed(known);
    if !own.is_empty() {
        let addresses = addresses.to_mut();
        *addresses = Addresses::default();
        addresses.extend(own.into_iter().chain(known.iter()));
    }
    if addresses.is_empty() {
        return by_layout;
    }
    let start = match record.event_without_time() {
        Some(_) => ACTIVITY,
        None => kernel::RecordHeader::from_record(record)
            .map_or(record.bytes.len(), |header| header.payload),
    };
    let bytes = by_layout.as_deref().unwrap_or(record.bytes);
    let hidden = bytes.get(start..).and_then(|rest| addresses.hide(rest, false));
    let hidden = hidden.map(|rest| [bytes.get(..start).unwrap_or_default(), &rest].concat());
    in_decoded(&addresses, decoded);
    hidden.or(by_layout)
}

fn in_decoded(addresses: &Addresses, decoded: &mut Decoded) {
    decoded.fields.iter_mut().for_each(|(_, value)| in_value(addresses, value));
    if let Some(hidden) = addresses.hide(&decoded.leftover, false) {
        decoded.leftover = hidden;
    }
    if let Some(message) = &mut decoded.message {
        in_string(addresses, message);
    }
    in_guid(addresses, &mut decoded.activity);
    if let Some(related) = &mut decoded.related_activity {
        in_guid(addresses, related);
    }
}

fn in_value(addresses: &Addresses, value: &mut Value) {
    match value {
        Value::Text(text) => in_string(addresses, text),
        Value::Binary(bytes) => {
            if let Some(hidden) = addresses.hide(bytes, false) {
                *bytes = hidden;
            }
        }
        Value::Guid(guid) => in_guid(addresses, guid),
        Value::UInt(number) | Value::Hex(number) | Value::Pointer(number) => {
            let bytes = number.to_le_bytes();
            if let Some((address, [0, 0])) = bytes.split_first_chunk()
                && addresses.contains(*address)
            {
                *number = 0;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| in_value(addresses, value)),
        Value::Struct(members) => {
            for (_, value) in members {
                in_value(addresses, value);
            }
        }
        _ => {}
    }
}

fn in_string(addresses: &Addresses, text: &mut String) {
    if let Some(hidden) = addresses.hide(text.as_bytes(), true) {
        *text = String::from_utf8_lossy(&hidden).into_owned();
    }
}

fn in_guid(addresses: &Addresses, guid: &mut Guid) {
    let mut bytes = guid.to_bytes();
    if let Some(node) = bytes.last_chunk_mut()
        && addresses.contains(*node)
    {
        *node = Address::default();
        *guid = Guid::from_bytes(bytes);
    }
}

/// Adds the addresses in a field.
fn in_field(name: &str, value: &Value, found: &mut Vec<Address>) {
    match value {
        Value::Guid(guid) => found.extend(addresses::in_uuid(*guid)),
        Value::Text(text) => {
            if is_address(name) {
                found.extend(addresses::in_text(text));
            } else if DEVICE_NAMES.iter().any(|known| starts_with(name, known)) {
                found.extend(addresses::in_device_id(text));
            }
            found.extend(addresses::in_uuids(text));
        }
        Value::Binary(bytes) if is_address(name) => found.extend(addresses::address(bytes)),
        Value::Array(values) if is_address(name) && values.len() >= 6 => {
            let bytes: Option<Vec<u8>> = values
                .iter()
                .map(|value| match value {
                    Value::UInt(byte) | Value::Hex(byte) => u8::try_from(*byte).ok(),
                    _ => None,
                })
                .collect();
            found.extend(bytes.and_then(|bytes| addresses::address(&bytes)));
        }
        Value::Array(values) => values.iter().for_each(|value| in_field(name, value, found)),
        Value::Struct(members) => in_fields(members, found),
        _ => {}
    }
}

fn in_fields(fields: &Fields, found: &mut Vec<Address>) {
    for (name, value) in fields {
        in_field(name, value, found);
    }
}

fn is_address(name: &str) -> bool {
    NAMES.iter().any(|known| {
        let start = name.len().checked_sub(known.len());
        let end = start.and_then(|start| name.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(known))
    })
}

fn starts_with(name: &str, start: &str) -> bool {
    name.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}
