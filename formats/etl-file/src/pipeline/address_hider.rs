//! Hides addresses in records that are copied, not shown.

use crate::decode::Decoder;
use crate::decode::catalog::Catalog;
use crate::hiding::{hide, is_packet};
use crate::pipeline::decode_record;
use crate::read::RecordRef;

/// Hides the addresses of network adapters in the records of a trace.
#[derive(Debug)]
pub struct AddressHider<'a>(Decoder<'a>);

impl<'a> AddressHider<'a> {
    /// Returns a hider for a trace. The catalog contains what a
    /// [first pass](crate::FirstPass::read) over the trace found.
    #[must_use]
    pub fn new(catalog: &'a Catalog) -> Self {
        Self(Decoder::new(catalog))
    }

    /// Returns a record's bytes with zeros in place of addresses, or `None` if it has none. The
    /// packets of a capture stay as they are.
    pub fn hide(&mut self, record: &RecordRef<'_>) -> Option<Vec<u8>> {
        let (event, mut decoded) = decode_record(record, &mut self.0)?;
        if is_packet(&event) {
            return None;
        }
        hide(self.0.catalog().addresses(), record, &mut decoded)
    }
}
