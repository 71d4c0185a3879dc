//! Events, records and files that several crates' tests use, and the comparison with third-party
//! decoders.

#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "only tests call these functions, and a panic fails the test"
)]

pub mod decoders;
pub mod kernel_records;
pub mod mof;
pub mod packets;
pub mod resources;
pub mod schema_events;
pub mod sessions;
pub mod trace;

use etl_file::{Catalog, Decoded, Event, EventRecord, decode};

/// Decodes a record with its own metadata only.
pub fn decoded(record: EventRecord) -> Decoded {
    decode(&Event { record, ..Event::default() }, &Catalog::new())
}
