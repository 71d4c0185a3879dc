//! Events, records and files that several crates' tests use, and the comparison with third-party
//! decoders.

#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "only tests call these functions, and a panic fails the test"
)]

pub mod decoders;
pub mod kernel_records;
pub mod packets;
pub mod schema_events;
pub mod trace;
