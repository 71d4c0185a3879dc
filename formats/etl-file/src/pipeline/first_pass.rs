//! The first pass over a trace, which needs no schemas.

use std::io::{Read, Seek};

use crate::addresses::Addresses;
use crate::completion::Tables;
use crate::decode::schemas::{Collector, Schemas};
use crate::hiding;
use crate::read::{ReadError, TraceFile};

/// The results of the first pass over a trace: what the next passes need to know.
#[derive(Debug)]
pub struct FirstPass {
    /// The schemas that the trace itself contains.
    pub schemas: Schemas,
    /// True if the trace has events that can complete other events; see
    /// [`Pipeline::completion`](super::Pipeline::completion).
    pub can_complete: bool,
}

impl FirstPass {
    /// Reads all records of a trace, buffer by buffer.
    ///
    /// # Errors
    /// Fails with [`ReadError::Io`] if the file cannot be read.
    pub fn read<R: Read + Seek>(file: &mut TraceFile<R>) -> Result<Self, ReadError> {
        let mut collector = Collector::new();
        let mut can_complete = false;
        let mut addresses = Addresses::default();
        file.each_record(|record| {
            collector.record(record.bytes);
            can_complete = can_complete || Tables::need(record);
            addresses.extend(hiding::found(record));
        })?;
        Ok(Self { schemas: collector.finish().with_addresses(addresses), can_complete })
    }
}
