//! The packets of Microsoft-Windows-PktMon, which `pktmon start --capture` enables.
//!
//! A packet passes several components of the network stack, and each of them logs it. The fields are
//! those of the event's schema, if the trace contains one; otherwise, the payload has the published
//! layout (ETL-16.4).

use etw_wire::Guid;

use super::part::{Medium, printable};
use etl_file::decode::Value;
use etl_file::{Decoded, EventRef};

/// Microsoft-Windows-PktMon.
pub const PROVIDER: Guid = Guid::from_u128(0x4d4f_80d9_c8bd_4d73_bb5b_19c9_0402_c5ac);
/// The ids of the events with packets that pass, and with packets that are dropped.
const PASSED: u16 = 160;
const DROPPED: u16 = 170;

/// Returns true for an event with a packet.
pub fn is_packet(event: &EventRef<'_>) -> bool {
    event.provider == PROVIDER && matches!(event.descriptor.id, PASSED | DROPPED)
}

/// A packet that a component of the network stack logged.
#[derive(Debug, Default)]
pub struct Packet {
    /// The number that a packet has in all components.
    pub(super) group: u64,
    pub(super) component: u32,
    /// `PKTMON_DIRECTION_TAG`.
    direction: u64,
    /// `PKTMON_PACKET_TYPE`.
    kind: u64,
    original: usize,
    pub(super) bytes: Vec<u8>,
    comment: Vec<String>,
}

/// The fields after the packet's group, with the starts of their names, which differ between
/// versions of the schema, and their sizes in the published layout.
const FIELDS: [(Field, &str, usize); 11] = [
    (Field::Number, "PktNumber", 2),
    (Field::Appearance, "Appearance", 2),
    (Field::Direction, "Dir", 2),
    (Field::Kind, "PacketType", 2),
    (Field::Component, "Component", 2),
    (Field::Edge, "Edge", 2),
    (Field::Filter, "Filter", 2),
    (Field::Reason, "DropReason", 4),
    (Field::Location, "DropLocation", 4),
    (Field::Original, "Original", 2),
    (Field::Logged, "Logged", 2),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Number,
    Appearance,
    Direction,
    Kind,
    Component,
    Edge,
    Filter,
    Reason,
    Location,
    Original,
    Logged,
}

impl Packet {
    /// Reads a packet. Returns `None` if the event has none, or if its payload has neither a schema nor the published layout.
    #[must_use]
    pub fn read(event: &EventRef<'_>, decoded: &Decoded) -> Option<Self> {
        if !is_packet(event) {
            return None;
        }
        let mut packet = Self::default();
        let is_dropped = event.descriptor.id == DROPPED;
        if let Some(bytes) = decoded.fields.iter().rev().find_map(|(_, value)| match value {
            Value::Binary(bytes) => Some(bytes),
            _ => None,
        }) {
            bytes.clone_into(&mut packet.bytes);
            packet.group = decoded.fields.first().and_then(|(_, value)| number(value))?;
            for (name, value) in &decoded.fields {
                let known = FIELDS.iter().find(|(_, start, _)| name.starts_with(start));
                if let (Some((field, ..)), Some(number)) = (known, number(value)) {
                    let text = match value {
                        Value::Named { name, .. } => printable(name),
                        value => value.to_string(),
                    };
                    packet.add(*field, number, &text, is_dropped);
                }
            }
            return Some(packet);
        }
        let mut rest = event.user_data;
        packet.group = unsigned(&mut rest, 8)?;
        for (field, _, size) in FIELDS {
            let number = unsigned(&mut rest, size)?;
            packet.add(field, number, &number.to_string(), is_dropped);
            if field == Field::Logged && usize::try_from(number) != Ok(rest.len()) {
                return None;
            }
        }
        rest.clone_into(&mut packet.bytes);
        Some(packet)
    }

    fn add(&mut self, field: Field, number: u64, text: &str, is_dropped: bool) {
        let what = match field {
            Field::Direction => {
                self.direction = number;
                "direction"
            }
            Field::Kind => {
                self.kind = number;
                return;
            }
            Field::Component => {
                self.component = u32::try_from(number).unwrap_or(u32::MAX);
                "component"
            }
            Field::Original => {
                self.original = usize::try_from(number).unwrap_or(0);
                return;
            }
            Field::Logged => return,
            Field::Number => "packet",
            Field::Appearance => "appearance",
            Field::Edge => "edge",
            Field::Filter => "filter",
            Field::Reason | Field::Location if !is_dropped && number == 0 => return,
            Field::Reason => "dropped for reason",
            Field::Location => "at",
        };
        self.comment.push(format!("{what} {text}"));
    }

    /// Returns the form of the packet, if it is known.
    pub(super) const fn medium(&self) -> Option<Medium> {
        match self.kind {
            1 => Some(Medium::Ethernet),
            2 => Some(Medium::Wlan),
            3 => Some(Medium::Tunnel),
            _ => None,
        }
    }

    /// Returns the direction for `epb_flags`: inbound 1, outbound 2, unknown 0. A component's input
    /// (`In`) can be in either direction.
    pub(super) const fn direction(&self) -> u32 {
        match self.direction {
            3 | 5 => 1,
            4 | 6 => 2,
            _ => 0,
        }
    }

    /// Returns the length of the packet before it was cut.
    pub(super) fn original(&self) -> usize {
        self.original.max(self.bytes.len())
    }

    /// Returns a comment with the properties that have no pcapng option.
    pub(super) fn comment(&self, event: &EventRef<'_>) -> String {
        let ids = format!("process {}, thread {}", event.process_id, event.thread_id);
        format!("{ids}, group {}, {}", self.group, self.comment.join(", "))
    }
}

/// Returns the id and the name of the component that an event describes.
pub fn component(event: &EventRef<'_>, decoded: &Decoded) -> Option<(u32, String)> {
    if event.provider != PROVIDER || is_packet(event) {
        return None;
    }
    let of = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| decoded.field(name));
        found.cloned()
    };
    let id = number(&of(["ComponentId", "Id"])?)?;
    match of(["ComponentName", "Name"])? {
        Value::Text(name) => Some((u32::try_from(id).ok()?, printable(&name))),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::UInt(number) | Value::Hex(number) => Some(*number),
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Named { value, .. } => Some(*value),
        _ => None,
    }
}

/// Consumes a number of at most eight bytes.
fn unsigned(bytes: &mut &[u8], size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..size)?.copy_from_slice(bytes.split_off(..size)?);
    Some(u64::from_le_bytes(number))
}
