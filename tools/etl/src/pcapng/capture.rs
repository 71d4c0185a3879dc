//! A pass over a trace with packets, before the pass that writes them.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::num::NonZeroUsize;

use etw_wire::Guid;

use super::part::{is_part, printable};
use super::pktmon;
use etl_file::decode::Value;
use etl_file::{Catalog, Decoded, EventRef, Pipeline, ReadError, Summary, TraceFile};

/// The class and the type of the records that describe network adapters (ETL-14.10).
const SYSTEM_CONFIG_EX: Guid = Guid::from_u128(0x9b79_ee91_b5fd_41c0_a243_4248_e266_e9d0);
const NETWORK_INTERFACE: u8 = 36;
/// The maximum number of adapters, and of components, with names.
const MAX_ADAPTERS: usize = 4096;

/// Returns true for the events that [`Writer`](super::Writer) uses; it ignores others.
#[must_use]
pub fn concerns(event: &EventRef<'_>) -> bool {
    is_part(event) || pktmon::is_packet(event)
}

/// A description of the packets in a trace, from a pass over its records.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// The number of events with packets or parts of packets.
    pub events: u64,
    /// The names and descriptions of network adapters, by their interface index.
    pub(super) adapters: HashMap<u32, (String, String)>,
    /// The names of components of the network stack, by their ids.
    pub(super) components: HashMap<u32, String>,
}

impl Capture {
    /// Reads all events of a trace, for the adapters that a merged trace names. Also returns the
    /// counts of the trace.
    ///
    /// # Errors
    /// Returns [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek + Send>(
        file: &mut TraceFile<R>,
        catalog: &Catalog,
        threads: NonZeroUsize,
    ) -> Result<(Self, Summary), ReadError> {
        let mut capture = Self::default();
        let pipeline = Pipeline { threads, ..Pipeline::new(catalog) };
        let summary = pipeline.run(
            file,
            || (),
            |(), event, decoded, part: &mut Self| {
                part.add(event, &decoded);
                Ok(())
            },
            |part| {
                capture.absorb(std::mem::take(part));
                Ok::<_, ReadError>(())
            },
        )?;
        Ok((capture, summary))
    }

    fn add(&mut self, event: &EventRef<'_>, decoded: &Decoded) {
        let descriptor = &event.descriptor;
        if concerns(event) {
            self.events += 1;
        } else if let Some((id, name)) = pktmon::component(event, decoded) {
            self.add_component(id, name);
        } else if event.provider == SYSTEM_CONFIG_EX && descriptor.opcode == NETWORK_INTERFACE {
            let text = |name| match decoded.field(name) {
                Some(Value::Text(text)) => printable(text),
                _ => String::new(),
            };
            if let Some(Value::UInt(index)) = decoded.field("InterfaceIndex")
                && let Ok(index) = u32::try_from(*index)
            {
                self.add_adapter(index, (text("Alias"), text("Description")));
            }
        }
    }

    fn add_adapter(&mut self, index: u32, names: (String, String)) {
        if self.adapters.len() < MAX_ADAPTERS {
            self.adapters.insert(index, names);
        }
    }

    fn add_component(&mut self, id: u32, name: String) {
        if self.components.len() < MAX_ADAPTERS {
            self.components.insert(id, name);
        }
    }

    /// Adds the description of later events.
    fn absorb(&mut self, later: Self) {
        self.events += later.events;
        for (id, name) in later.components {
            self.add_component(id, name);
        }
        for (index, names) in later.adapters {
            self.add_adapter(index, names);
        }
    }
}
