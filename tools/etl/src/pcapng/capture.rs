//! The first pass over a trace with packets.

use std::collections::HashMap;
use std::io::{Read, Seek};

use etw_wire::Guid;

use super::part::{is_part, printable};
use etl_file::decode::catalog::Catalog;
use etl_file::decode::{Decoder, Value};
use etl_file::read::{EventRef, ReadError, RecordRef, TraceFile};
use etl_file::stream::{decode_record, view};

/// Microsoft-Windows-PktMon.
const PKTMON: Guid = Guid::from_u128(0x4d4f_80d9_c8bd_4d73_bb5b_19c9_0402_c5ac);
/// The Microsoft-Windows-PktMon events that contain packets, including dropped packets.
const PKTMON_PACKETS: [u16; 2] = [160, 170];
/// The class and the type of the records that describe network adapters (ETL-14.10).
const SYSTEM_CONFIG_EX: Guid = Guid::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
const NETWORK_INTERFACE: u8 = 36;
/// The maximum number of adapters with names.
const MAX_ADAPTERS: usize = 4096;

/// Returns true for the events that [`Writer`](super::Writer) uses; it ignores others.
#[must_use]
pub fn concerns(event: &EventRef<'_>) -> bool {
    is_part(event)
}

/// A description of the packets in a trace, from a pass over its records.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// The number of events with parts of packets.
    pub events: u64,
    /// The number of Microsoft-Windows-PktMon packets, which [`Writer`](super::Writer) does not
    /// write.
    pub of_pktmon: u64,
    /// The names and descriptions of network adapters, by their interface index.
    pub(super) adapters: HashMap<u32, (String, String)>,
}

impl Capture {
    /// Reads all records of a trace, buffer by buffer, for the adapters that a merged trace names.
    ///
    /// # Errors
    /// Returns [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek>(file: &mut TraceFile<R>) -> Result<Self, ReadError> {
        let mut capture = Self::default();
        let catalog = Catalog::new();
        let mut decoder = Decoder::new(&catalog);
        file.each_record(|record| capture.add(record, &mut decoder))?;
        Ok(capture)
    }

    fn add(&mut self, record: &RecordRef<'_>, decoder: &mut Decoder<'_>) {
        let Some(event) = view(record) else {
            return;
        };
        let descriptor = &event.descriptor;
        if is_part(&event) {
            self.events += 1;
        } else if event.provider == PKTMON && PKTMON_PACKETS.contains(&descriptor.id) {
            self.of_pktmon += 1;
        } else if event.provider == SYSTEM_CONFIG_EX
            && descriptor.opcode == NETWORK_INTERFACE
            && self.adapters.len() < MAX_ADAPTERS
            && let Some(decoded) = decode_record(record, decoder)
        {
            let field = |name: &str| {
                let mut fields = decoded.fields.iter();
                fields.find_map(|(field, value)| (**field == *name).then_some(value))
            };
            let text = |name| match field(name) {
                Some(Value::Text(text)) => printable(text),
                _ => String::new(),
            };
            if let Some(Value::UInt(index)) = field("InterfaceIndex")
                && let Ok(index) = u32::try_from(*index)
            {
                self.adapters.insert(index, (text("Alias"), text("Description")));
            }
        }
    }
}
